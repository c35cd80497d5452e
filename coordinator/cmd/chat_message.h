/* coordinator/cmd/chat_message.h - lines that a user types, to messages.
 * Owns: the text of the last message.  Called by chat.c.
 *
 *	text			a message
 *	text \			a message that goes on in the next line
 *	"""			a message of the lines up to one that ends in """
 *	//text			a message that begins with a slash
 *	/text			a command
 *
 * A pasted text that has newlines is a message as it is. */
#ifndef COORDINATOR_CMD_CHAT_MESSAGE_H
#define COORDINATOR_CMD_CHAT_MESSAGE_H

#include "coordinator/print/lineedit.h"
#include "coordinator/print/source.h"

enum message_kind {
	MESSAGE_END,		/* of input */
	MESSAGE_TEXT,
	MESSAGE_COMMAND,	/* without its slash */
	MESSAGE_CUT_OFF		/* the input ended in a block */
};

struct message {
	enum message_kind kind;
	size_t most;		/* set by the caller: a longer text is cut to
				 * one byte more */
	struct source text;
};

/* Read the next one; it lives until the next call. */
int message_read(struct lineedit *le, struct message *ret, struct err *reterr);
void message_free(struct message *m);

#endif
