/* coordinator/quantize/convert.h - the coordinator's side of a conversion: opens
 * the model's files, starts the converter and believes nothing that it says.
 * Owns: the converter (converter.c), its cap, and the model's open files.  Called
 * by cmd/quantize.c, which opens the output and prints.  Parses nothing of the
 * model: names and numbers come from the converter, checked and bounded. */
#ifndef COORDINATOR_QUANTIZE_CONVERT_H
#define COORDINATOR_QUANTIZE_CONVERT_H

#include <stdatomic.h>

#include "config/units.h"
#include "coordinator/cap/enforce.h"
#include "coordinator/session/child.h"
#include "coordinator/session/messages.h"
#include "protocol.h"

struct convert_conf {
	const char *model_path;
	struct requant_want want;
	unsigned threads;
	struct cpuset cpus;		/* at least one */
	/* Set by a signal's handler to end a wait with -EINTR. */
	const volatile atomic_int *stop;
};

struct convert {
	const struct convert_conf *conf;
	struct gguf *in;		/* its files only */
	struct child child;
	struct chan chan;
	struct chan_msg *msg;
	struct messages messages;
	struct enforce enforce;
	uint64_t cap_bytes;
	struct convert_layout layout;
};

#define CONVERT_NONE	{ .child = CHILD_NONE, .chan = { .fd = -1 },	\
			    .messages = MESSAGES_NONE }

/* Open the files, start the converter, and let it lay the output out.  An error
 * of the converter keeps its kind and its text.  Needs convert_close() in every
 * case; conf is kept by pointer. */
int convert_open(struct convert *c, const struct convert_conf *conf,
    struct err *reterr);

/* Bytes of the model's files. */
uint64_t convert_in_bytes(const struct convert *c);

struct convert_calls {
	/* Each tensor in order; how much of layout.tensor_bytes is done. */
	void (*tensor)(void *arg, const struct convert_tensor *t);
	void (*tick)(void *arg, uint64_t done_bytes);
	void *arg;
};

/* Convert into out_fd, which has layout.file_bytes and is handed to the
 * converter; path is for messages. */
int convert_run(struct convert *c, int out_fd, const char *path,
    const struct convert_calls *calls, struct err *reterr);

/* End the converter; accepts CONVERT_NONE. */
void convert_close(struct convert *c);

/* --- parts of the above, for tests --- */

/* Is what a converter says about a model of in_bytes possible?  -EBADMSG. */
int convert_check_layout(const struct convert_layout *l, uint64_t in_bytes,
    struct err *reterr);
int convert_check_tensor(const struct convert_tensor *t, struct err *reterr);

#endif
