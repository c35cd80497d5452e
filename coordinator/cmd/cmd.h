/* coordinator/cmd/cmd.h - one function per command; each returns 0 or -errno with
 * a message.  Called by main only, after conf_check(): all settings that a command
 * requires are set. */
#ifndef COORDINATOR_CMD_CMD_H
#define COORDINATOR_CMD_CMD_H

#include "config/conf.h"

int cmd_run(const struct conf *c, struct err *reterr);
int cmd_chat(const struct conf *c, struct err *reterr);
int cmd_plan(const struct conf *c, struct err *reterr);
int cmd_inspect(const struct conf *c, struct err *reterr);
int cmd_devices(const struct conf *c, struct err *reterr);
int cmd_explain(const struct conf *c, struct err *reterr);
int cmd_tokenize(const struct conf *c, struct err *reterr);
int cmd_detokenize(const struct conf *c, struct err *reterr);
int cmd_render(const struct conf *c, struct err *reterr);
int cmd_eval(const struct conf *c, struct err *reterr);
int cmd_bench(const struct conf *c, struct err *reterr);
int cmd_stress(const struct conf *c, struct err *reterr);
int cmd_quantize(const struct conf *c, struct err *reterr);

#endif
