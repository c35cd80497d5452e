/* coordinator/engine/format.c - a model's chat format in its vocabulary. */
#include "format.h"

#include <stdio.h>
#include <string.h>

static const char *
lost_note(const struct chat_template *ct, const struct conf *c)
{
	if ((ct->lost & LOST_SYSTEM) && c->system != NULL)
		return "; not followed: the place of the system text";
	if ((ct->lost & LOST_TURNS) && c->cmd == CMD_CHAT)
		return "; not followed: what it does in later turns";
	return NULL;
}

void
format_note(const struct chat_template *ct, const struct conf *c,
    char note[CHAT_NOTE_LEN])
{
	const int is_plain = chat_template_is_plain(ct);
	const char *lost;
	size_t n;

	if (is_plain && ct->lost == 0)
		snprintf(note, CHAT_NOTE_LEN, "the model has no chat "
		    "template: messages go in as they are");
	else if (is_plain)
		snprintf(note, CHAT_NOTE_LEN, "the model's chat template is "
		    "none that is known here (%s): messages go in as they "
		    "are, and answers may be poor", ct->why);
	else if (ct->lost & LOST_ALL)
		snprintf(note, CHAT_NOTE_LEN, "chat template: %s, by its "
		    "markers; the model's own is not followed in all (%s)%s%s",
		    ct->name, ct->why, *ct->also != '\0' ? "; it also has " :
		    "", ct->also);
	else {
		n = (size_t)snprintf(note, CHAT_NOTE_LEN, "chat template: %s",
		    ct->name);
		if ((lost = lost_note(ct, c)) != NULL)
			snprintf(note + n, CHAT_NOTE_LEN - n, "%s (%s)", lost,
			    ct->why);
	}
}

/* Parts of user turn `turn`; *ret_flags: how they are encoded. */
static size_t
turn_parts(const struct chat_template *ct, unsigned turn, const char *system,
    const char *text, size_t nbytes, int special,
    struct text_part parts[CHAT_MAX_PARTS], int *ret_flags)
{
	struct text_part user = { text, nbytes, special };
	struct text_part sys = { system, 0, special };

	if (system != NULL)
		sys.nbytes = strlen(system);
	*ret_flags = turn > 0 ? ENCODE_MORE : ct->writes_bos ?
	    ENCODE_BOS_ALWAYS : ENCODE_BOS;
	return chat_template_turn(ct, turn, system != NULL ? &sys : NULL, &user,
	    parts);
}

int
format_encode_turn(const struct tokenizer *t, unsigned turn,
    const char *system, const char *text, size_t nbytes, int special,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	struct text_part parts[CHAT_MAX_PARTS];
	int flags;
	size_t n = turn_parts(tokenizer_chat_template(t), turn, system, text,
	    nbytes, special, parts, &flags);

	return tokenizer_encode_parts(t, parts, n, flags, ret_ids, ret_n,
	    reterr);
}

int
format_keeps(const struct chat_template *ct, const struct chat_pair *p)
{
	const char *kept = p->answer;
	size_t nkept = p->nanswer;

	chat_template_keep(ct, &kept, &nkept);
	return ct->begun_bytes == 0 && ct->reopen[0] == '\0' &&
	    nkept == p->nanswer;
}

int
format_encode_earlier(const struct tokenizer *t, unsigned turn,
    const char *system, const struct chat_pair *p, int special,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	const struct chat_template *ct = tokenizer_chat_template(t);
	struct text_part parts[CHAT_MAX_PARTS];
	struct text_part answer = { p->answer, p->nanswer, special };
	int flags;
	size_t n = turn_parts(ct, turn, system, p->user, p->nuser, special,
	    parts, &flags);

	parts[n - 1].nbytes -= ct->begun_bytes;
	parts[n++] = (struct text_part){ ct->reopen, strlen(ct->reopen), 1 };
	chat_template_keep(ct, &answer.text, &answer.nbytes);
	parts[n++] = answer;
	return tokenizer_encode_parts(t, parts, n, flags, ret_ids, ret_n,
	    reterr);
}
