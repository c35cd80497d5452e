/* coordinator/cmd/chat_talk.h - what the files of the command chat share.
 * Owns: nothing.  Included by chat.c, chat_commands.c and chat_file.c. */
#ifndef COORDINATOR_CMD_CHAT_TALK_H
#define COORDINATOR_CMD_CHAT_TALK_H

#include "config/conf.h"
#include "coordinator/engine/chat.h"
#include "coordinator/print/lineedit.h"
#include "coordinator/print/status.h"
#include "coordinator/print/thoughts.h"

struct talk {
	const struct conf *c;
	struct engine *eng;
	struct chat *chat;
	struct lineedit *le;
	int sigint_fd;		/* -1: Ctrl-C ends everything */
	unsigned nfailed;	/* lines without an answer */
	unsigned nunsaved;	/* /save that failed */
	struct status reading;	/* of a long message */
	struct thoughts_frame thoughts;
	int has_shown;		/* some of the last answer */
	int warned;		/* that the context is nearly full */
	int has_quit;		/* /quit */
};

/* chat_commands.c: run a line without its slash.  A line that cannot be done is
 * reported and counted; a negative return ends the conversation. */
/* Has the user pressed Ctrl-C since the last call? */
int talk_is_interrupted(const struct talk *k);

int talk_command(struct talk *k, const char *line, struct err *reterr);

/* chat_file.c.  JSON: [{"role":"system","content":"..."}, {"role":"user",...},
 * {"role":"assistant",...}, ...]; the first may be missing.  An answer may have
 * its thoughts as "reasoning_content". */

/* Write the conversation.  -EEXIST without `replace`: there is such a file. */
int talk_save(const struct talk *k, const char *path, int replace,
    struct err *reterr);
/* Replace the conversation by that of a file, which may be hostile.
 * ERR_USAGE: it cannot be, and nothing has changed. */
int talk_load(struct talk *k, const char *path, uint32_t *ret_dropped,
    struct err *reterr);

#endif
