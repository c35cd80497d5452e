/* coordinator/text/template.c - a model's chat format, from its template.
 *
 * A file's template is a Jinja program (tokenizer.chat_template), and running
 * it is not done here.  template_read.c reads its literals for a few shapes of
 * a conversation, and the format is what these have in common.  A shape that
 * contradicts the format, or cannot be read, is noted as lost. */
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template_read.h"
#include "template_table.h"

enum { MAX_TEMPLATE_BYTES = 1 << 18 };

static const struct chat_template plain = { .name = "plain",
    .first = (char[]){ "" }, .system = { (char[]){ "" }, (char[]){ "\n" } },
    .empty = (char[]){ "\n" }, .answer = (char[]){ "" },
    .reopen = (char[]){ "" }, .close = (char[]){ "\n" } };

const struct chat_template *
chat_template_plain(void)
{
	return &plain;
}

int
chat_template_is_plain(const struct chat_template *ct)
{
	return strcmp(ct->name, plain.name) == 0;
}

/* --- reading the shapes --- */

#define SYSTEM	{ .role = READ_SYSTEM }
#define EMPTY	{ .role = READ_SYSTEM, .is_empty = 1 }
#define USER	{ .role = READ_USER }
#define ANSWER	{ .role = READ_ASSISTANT }
#define THOUGHT	{ .role = READ_ASSISTANT, .thinks = 1 }

enum shape_id {
	SHAPE_USER, SHAPE_SYSTEM, SHAPE_EMPTY, SHAPE_TURNS, SHAPE_THOUGHTS,
	SHAPE_THREE, SHAPE_SYSTEM_TURNS, NSHAPES
};

static const struct read_shape shapes[NSHAPES] = {
	[SHAPE_USER] = { { USER }, 1 },
	[SHAPE_SYSTEM] = { { SYSTEM, USER }, 2 },
	[SHAPE_EMPTY] = { { EMPTY, USER }, 2 },
	[SHAPE_TURNS] = { { USER, ANSWER, USER }, 3 },
	[SHAPE_THOUGHTS] = { { USER, THOUGHT, USER }, 3 },
	[SHAPE_THREE] = { { USER, THOUGHT, USER, ANSWER, USER }, 5 },
	[SHAPE_SYSTEM_TURNS] = { { SYSTEM, USER, ANSWER, USER, ANSWER, USER },
	    6 },
};

struct derivation {
	struct chat_template *ct;
	struct template_tokens tokens;
	struct read_vars vars;
	const struct template_family *family;	/* by its markers, or NULL */
	struct read_result shape[NSHAPES];
	int rc[NSHAPES];
};

static void
note_loss(struct chat_template *ct, unsigned lost, const char *why)
{
	if (ct->lost == 0)
		snprintf(ct->why, sizeof(ct->why), "%s", why);
	ct->lost |= lost;
}

/* The reason why this shape does not have the format. */
static const char *
shape_reason(const struct derivation *d, enum shape_id id)
{
	const struct read_result *s = &d->shape[id];

	if (s->refused)
		return id == SHAPE_SYSTEM || id == SHAPE_EMPTY ?
		    "it refuses a system text" : "it refuses such a turn";
	return d->rc[id] < 0 ? s->why : "its texts depend on the turn";
}

/* Are the message texts exactly these, in this order? */
static int
has_holes(const struct derivation *d, enum shape_id id, unsigned n,
    const unsigned *hole)
{
	const struct read_result *s = &d->shape[id];

	return d->rc[id] == 0 && s->n == n &&
	    memcmp(s->hole, hole, n * sizeof(*hole)) == 0;
}

#define HOLES(...) \
	NITEMS(((unsigned[]){ __VA_ARGS__ })), (unsigned[]){ __VA_ARGS__ }

/* Copy text, without BOS where the template writes it.  NULL: no memory. */
static char *
copy_start(const struct derivation *d, const char *text)
{
	return strdup(d->ct->writes_bos ? text + strlen(d->vars.bos) : text);
}

static int
begins_with_bos(const struct derivation *d, const char *text)
{
	const char *bos = d->vars.bos;

	return bos != NULL && *bos != '\0' &&
	    strncmp(text, bos, strlen(bos)) == 0;
}

static int
take_first(struct derivation *d)
{
	struct read_result *s = &d->shape[SHAPE_USER];
	struct chat_template *ct = d->ct;

	ct->writes_bos = begins_with_bos(d, s->text[0]);
	ct->first = copy_start(d, s->text[0]);
	ct->answer = strdup(s->text[1]);
	ct->edit_user = s->edit[0];
	return ct->first != NULL && ct->answer != NULL ? 0 : -ENOMEM;
}

/* --- the system text --- */

static int
take_system(struct derivation *d)
{
	struct read_result *s = &d->shape[SHAPE_SYSTEM];
	struct chat_template *ct = d->ct;

	ct->system[0] = copy_start(d, s->text[0]);
	ct->system[1] = strdup(s->text[1]);
	ct->edit_system = s->edit[0];
	ct->edit_user_after_system = s->edit[1];
	return ct->system[0] != NULL && ct->system[1] != NULL ? 0 : -ENOMEM;
}

/* Without a place in the template, a system text goes in front of the first
 * user message, or where the family has it. */
static int
place_system(struct derivation *d)
{
	const struct template_family *f = d->family;
	struct chat_template *ct = d->ct;

	if (f != NULL && !f->system_in_user &&
	    !d->shape[SHAPE_SYSTEM].refused) {
		if (asprintf(&ct->system[0], "%s%s", f->begin,
		    f->system[0]) < 0 || asprintf(&ct->system[1], "%s%s",
		    f->system[1], f->user[0]) < 0)
			return -ENOMEM;
		return 0;
	}
	if (asprintf(&ct->system[0], "%s%s", ct->first, f != NULL &&
	    f->system_in_user ? f->system[0] : "") < 0)
		return -ENOMEM;
	ct->system[1] = strdup(f != NULL && f->system_in_user ?
	    f->system[1] : "\n\n");
	return ct->system[1] != NULL ? 0 : -ENOMEM;
}

static int
derive_system(struct derivation *d)
{
	const struct read_result *s = &d->shape[SHAPE_SYSTEM],
	    *e = &d->shape[SHAPE_EMPTY];
	struct chat_template *ct = d->ct;
	int rc;

	if (has_holes(d, SHAPE_SYSTEM, HOLES(0, 1)) &&
	    begins_with_bos(d, s->text[0]) == ct->writes_bos &&
	    strcmp(s->text[2], ct->answer) == 0) {
		rc = take_system(d);
	} else {
		note_loss(ct, LOST_SYSTEM, shape_reason(d, SHAPE_SYSTEM));
		rc = place_system(d);
	}
	if (rc < 0)
		return rc;
	if (has_holes(d, SHAPE_EMPTY, HOLES(1)) &&
	    begins_with_bos(d, e->text[0]) == ct->writes_bos &&
	    strcmp(e->text[1], ct->answer) == 0)
		ct->empty = copy_start(d, e->text[0]);
	else
		ct->empty = strdup(ct->first);
	return ct->empty != NULL ? 0 : -ENOMEM;
}

/* --- later turns --- */

/* Do texts from..from+n-1 of s alternate between these two? */
static int
alternates(const struct read_result *s, unsigned from, unsigned n,
    const char *open, const char *close)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(s->text[from + i], i % 2 == 0 ? open : close) != 0)
			return 0;
	return 1;
}

/* Is an answer's thought dropped, 1, or kept as it is, 0?  -1: neither. */
static int
drops_thoughts(const struct derivation *d, const char *open,
    const char *close)
{
	const struct read_result *s = &d->shape[SHAPE_THOUGHTS],
	    *turns = &d->shape[SHAPE_TURNS];

	if (has_holes(d, SHAPE_THOUGHTS, HOLES(0, 1, 2)))
		return alternates(s, 1, 2, open, close) ? 1 : -1;
	if (!has_holes(d, SHAPE_THOUGHTS, HOLES(0, READ_MAX_MESSAGES + 1, 1,
	    2)) || strcmp(s->text[1], open) != 0 ||
	    strcmp(s->text[2], d->vars.think_end) != 0 ||
	    strcmp(s->text[3], close) != 0)
		return -1;
	return (s->edit[1] | s->edit[2]) == turns->edit[1] ? 0 : -1;
}

/* Does the format of the second turn hold for further ones, and after a
 * system text? */
static int
turns_go_on(const struct derivation *d, int drops, const char *open,
    const char *close)
{
	const struct read_result *three = &d->shape[SHAPE_THREE],
	    *with = &d->shape[SHAPE_SYSTEM_TURNS];
	const struct chat_template *ct = d->ct;

	if (drops ? !has_holes(d, SHAPE_THREE, HOLES(0, 1, 2, 3, 4)) ||
	    !alternates(three, 1, 4, open, close) :
	    !has_holes(d, SHAPE_THREE, HOLES(0, READ_MAX_MESSAGES + 1, 1, 2, 3,
	    4)) || !alternates(three, 4, 2, open, close))
		return 0;
	if (strcmp(three->text[three->n], ct->answer) != 0)
		return 0;
	return (ct->lost & LOST_SYSTEM) != 0 ||
	    (has_holes(d, SHAPE_SYSTEM_TURNS, HOLES(0, 1, 2, 3, 4, 5)) &&
	    alternates(with, 2, 4, open, close) &&
	    strcmp(with->text[1], ct->system[1]) == 0 &&
	    with->edit[0] == ct->edit_system &&
	    with->edit[1] == ct->edit_user_after_system &&
	    with->edit[3] == ct->edit_next_user &&
	    strcmp(with->text[6], ct->answer) == 0);
}

static int
take_turns(struct derivation *d)
{
	const struct read_result *s = &d->shape[SHAPE_TURNS];
	struct chat_template *ct = d->ct;
	const char *open = s->text[1], *close = s->text[2];
	size_t common = 0;
	int drops;

	if (!has_holes(d, SHAPE_TURNS, HOLES(0, 1, 2)) ||
	    strcmp(s->text[3], ct->answer) != 0 ||
	    s->edit[0] != ct->edit_user)
		return 0;
	while (open[common] != '\0' && open[common] == ct->answer[common])
		common++;
	if (open[common] != '\0' && ct->answer[common] != '\0')
		return 0;
	ct->edit_next_user = s->edit[2];
	if ((drops = drops_thoughts(d, open, close)) < 0 ||
	    !turns_go_on(d, drops, open, close))
		return 0;
	ct->begun_bytes = strlen(ct->answer + common);
	ct->edit_answer = s->edit[1];
	ct->edit_rest = d->shape[SHAPE_THOUGHTS].edit[1];
	if ((ct->reopen = strdup(open + common)) == NULL ||
	    (ct->close = strdup(close)) == NULL || (drops &&
	    (ct->think_end = strdup(d->vars.think_end)) == NULL))
		return -ENOMEM;
	return 1;
}

static int
derive_turns(struct derivation *d)
{
	const struct template_family *f = d->family;
	struct chat_template *ct = d->ct;
	int rc = take_turns(d), i = SHAPE_TURNS;

	if (rc != 0)
		return MIN(rc, 0);
	while (i < SHAPE_SYSTEM_TURNS && d->rc[i] == 0)
		i++;
	note_loss(ct, LOST_TURNS, shape_reason(d, (enum shape_id)i));
	ct->edit_next_user = ct->edit_user;
	if ((ct->reopen = strdup("")) == NULL)
		return -ENOMEM;
	if (f != NULL)
		rc = asprintf(&ct->close, "%s%s", f->answer[1], f->user[0]);
	else
		rc = asprintf(&ct->close, "%s%s", d->vars.eos != NULL ?
		    d->vars.eos : "", ct->first);
	return rc < 0 ? -ENOMEM : 0;
}

/* --- the fallbacks --- */

static int
take_family(struct chat_template *ct, const struct template_family *f)
{
	const char *before = f->system_in_user ? f->user[0] : "";
	const char *behind = f->system_in_user ? "" : f->user[0];

	ct->name = f->name;
	ct->channels = f->channels;
	if (asprintf(&ct->first, "%s%s", f->begin, f->user[0]) < 0 ||
	    asprintf(&ct->system[0], "%s%s%s", f->begin, before,
	    f->system[0]) < 0 ||
	    asprintf(&ct->system[1], "%s%s", f->system[1], behind) < 0 ||
	    asprintf(&ct->empty, "%s%s", ct->system[0], ct->system[1]) < 0 ||
	    asprintf(&ct->close, "%s%s", f->answer[1], f->user[0]) < 0 ||
	    (ct->reopen = strdup("")) == NULL ||
	    asprintf(&ct->answer, "%s%s", f->user[1], f->answer[0]) < 0)
		return -ENOMEM;
	return 0;
}

static int
take_plain(struct chat_template *ct)
{
	ct->name = plain.name;
	ct->first = strdup(plain.first);
	ct->system[0] = strdup(plain.system[0]);
	ct->system[1] = strdup(plain.system[1]);
	ct->empty = strdup(plain.empty);
	ct->answer = strdup(plain.answer);
	ct->reopen = strdup(plain.reopen);
	ct->close = strdup(plain.close);
	return ct->first != NULL && ct->system[0] != NULL &&
	    ct->system[1] != NULL && ct->empty != NULL && ct->answer != NULL &&
	    ct->reopen != NULL && ct->close != NULL ? 0 : -ENOMEM;
}

/* Name the parts that the text of an unreadable template mentions. */
static void
name_parts(struct chat_template *ct, const char *jinja, size_t nbytes)
{
	static const char *const words[][2] = {
		{ "You are ", "a system text of its own" },
		{ "tools", "tools" }, { "date", "dates" },
		{ "strftime", "dates" }, { "think", "thinking" }
	};
	size_t i, n = 0;

	for (i = 0; i < NITEMS(words); i++) {
		if (memmem(jinja, nbytes, words[i][0],
		    strlen(words[i][0])) == NULL ||
		    strstr(ct->also, words[i][1]) != NULL)
			continue;
		n += (size_t)snprintf(ct->also + n, sizeof(ct->also) - n,
		    "%s%s", n > 0 ? ", " : "", words[i][1]);
	}
}

/* --- the whole --- */

static const char *
find_think_end(const char *jinja, size_t nbytes)
{
	static const char *const ends[] = { "</think>", "[/THINK]",
	    "</seed:think>", "</thinking>", "</reasoning>" };
	size_t i;

	for (i = 0; i < NITEMS(ends); i++)
		if (memmem(jinja, nbytes, ends[i], strlen(ends[i])) != NULL)
			return ends[i];
	return ends[0];
}

static int
read_shapes(struct derivation *d)
{
	int i;

	for (i = 0; i < NSHAPES; i++) {
		d->rc[i] = template_read(&d->tokens, &d->vars, &shapes[i],
		    &d->shape[i]);
		if (d->rc[i] == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static int
derive(struct derivation *d, const char *jinja, size_t nbytes)
{
	struct chat_template *ct = d->ct;
	const char *why = "it is not well-formed";
	int rc;

	d->family = template_family_find(jinja, nbytes);
	d->vars.think_end = find_think_end(jinja, nbytes);
	if (nbytes > MAX_TEMPLATE_BYTES) {
		why = "it has more than 256 KiB";
		rc = -EINVAL;
	} else {
		rc = template_tokens_init(&d->tokens, jinja, nbytes);
	}
	if (rc == 0 && (rc = read_shapes(d)) == 0) {
		if (has_holes(d, SHAPE_USER, HOLES(0))) {
			ct->name = d->family != NULL ? d->family->name :
			    "its own";
			if ((rc = take_first(d)) < 0 ||
			    (rc = derive_system(d)) < 0)
				return rc;
			return derive_turns(d);
		}
		why = d->rc[SHAPE_USER] < 0 ? shape_reason(d, SHAPE_USER) :
		    "it does not write the message once";
	}
	if (rc == -ENOMEM)
		return rc;
	note_loss(ct, LOST_ALL | LOST_SYSTEM | LOST_TURNS, why);
	name_parts(ct, jinja, nbytes);
	return d->family != NULL ? take_family(ct, d->family) :
	    take_plain(ct);
}

int
chat_template_open(const char *jinja, size_t nbytes,
    const struct template_vars *vars, struct chat_template **ret,
    struct err *reterr)
{
	struct chat_template *ct = calloc(1, sizeof(*ct));
	struct derivation d = { .ct = ct, .vars = { .bos = vars->bos,
	    .eos = vars->eos, .now = vars->now } };
	int rc, i;

	if (ct == NULL)
		rc = -ENOMEM;
	else if (jinja == NULL)
		rc = take_plain(ct);
	else
		rc = derive(&d, jinja, nbytes);
	template_tokens_done(&d.tokens);
	for (i = 0; i < NSHAPES; i++)
		read_result_done(&d.shape[i]);
	if (rc < 0) {
		chat_template_close(ct);
		return err_nomem(reterr, "the chat template of %zu bytes",
		    nbytes);
	}
	*ret = ct;
	return 0;
}

void
chat_template_close(struct chat_template *ct)
{
	if (ct == NULL)
		return;
	free(ct->first);
	free(ct->system[0]);
	free(ct->system[1]);
	free(ct->empty);
	free(ct->answer);
	free(ct->reopen);
	free(ct->close);
	free(ct->think_end);
	free(ct);
}

/* --- a turn --- */

/* Length of the blank that p[n] begins with (from the end: ends with), or
 * 0. */
static size_t
blank_at(const char *p, size_t n, int from_end)
{
	/* Python's str.isspace() beyond ASCII. */
	static const char *const wide[] = { "\xc2\x85", "\u00a0", "\u1680",
	    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005",
	    "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
	    "\u2029", "\u202f", "\u205f", "\u3000" };
	size_t i;
	char c;

	if (n == 0)
		return 0;
	c = from_end ? p[n - 1] : p[0];
	if (c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f))
		return 1;
	for (i = 0; i < NITEMS(wide); i++) {
		size_t len = strlen(wide[i]);

		if (len <= n && memcmp(from_end ? p + n - len : p, wide[i],
		    len) == 0)
			return len;
	}
	return 0;
}

void
chat_template_strip(const char **text, size_t *nbytes, unsigned edit)
{
	size_t n;

	while ((edit & EDIT_LEFT) && (n = blank_at(*text, *nbytes, 0)) > 0) {
		*text += n;
		*nbytes -= n;
	}
	while ((edit & EDIT_RIGHT) && (n = blank_at(*text, *nbytes, 1)) > 0)
		*nbytes -= n;
	while ((edit & EDIT_LEFT_LINES) && *nbytes > 0 && **text == '\n') {
		(*text)++;
		(*nbytes)--;
	}
	while ((edit & EDIT_RIGHT_LINES) && *nbytes > 0 &&
	    (*text)[*nbytes - 1] == '\n')
		(*nbytes)--;
}

void
chat_template_keep(const struct chat_template *ct, const char **text,
    size_t *nbytes)
{
	const char *from = *text, *end = from + *nbytes, *p;
	size_t len = ct->think_end != NULL ? strlen(ct->think_end) : 0;

	while (len > 0 && (p = memmem(from, (size_t)(end - from),
	    ct->think_end, len)) != NULL)
		from = p + len;
	*nbytes = (size_t)(end - from);
	chat_template_strip(&from, nbytes, from != *text ? ct->edit_rest :
	    ct->edit_answer);
	*text = from;
}

static struct text_part
trusted_part(const char *text)
{
	return (struct text_part){ text, strlen(text), 1 };
}

static struct text_part
stripped_part(const struct text_part *part, unsigned edit)
{
	struct text_part p = *part;

	chat_template_strip(&p.text, &p.nbytes, edit);
	return p;
}

size_t
chat_template_turn(const struct chat_template *ct, unsigned turn,
    const struct text_part *system, const struct text_part *user,
    struct text_part parts[CHAT_MAX_PARTS])
{
	unsigned edit = turn > 0 ? ct->edit_next_user : ct->edit_user;
	size_t n = 0;

	if (turn > 0) {
		parts[n++] = trusted_part(ct->close);
	} else if (system == NULL) {
		parts[n++] = trusted_part(ct->first);
	} else if (system->nbytes == 0) {
		parts[n++] = trusted_part(ct->empty);
	} else {
		parts[n++] = trusted_part(ct->system[0]);
		parts[n++] = stripped_part(system, ct->edit_system);
		parts[n++] = trusted_part(ct->system[1]);
		edit = ct->edit_user_after_system;
	}
	parts[n++] = stripped_part(user, edit);
	parts[n++] = trusted_part(ct->answer);
	return n;
}
