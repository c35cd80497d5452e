/* coordinator/text/split.c - cuts special tokens out of raw text.
 *
 * An automaton of Aho and Corasick ("Efficient string matching", 1975) over the
 * reversed texts reads the text from its end.  At each byte its state is the
 * longest prefix of a reversed token that ends there, and knows the longest
 * token that begins at this byte.  Cutting then goes from the front. */
#include "split.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The texts of all special tokens together: Gemma's, the longest in use, have
 * some 60 KiB. */
enum { MAX_SPECIAL_BYTES = 4 << 20, POLL_BYTES = 256 << 10 };

struct special_node {
	uint32_t parent;
	uint32_t child, sibling;	/* first child, next sibling; 0 = none */
	uint32_t fail;		/* longest proper suffix that is a node */
	int32_t user, any;	/* longest token here, user-defined or of any
				 * kind, or NO_TOKEN */
	uint8_t byte;		/* that leads here from the parent */
};

/* --- building --- */

static uint32_t *
find_slot(const struct specials *sp, uint32_t node, uint8_t byte)
{
	uint32_t i = (uint32_t)hash_number(&sp->key,
	    (uint64_t)node << 8 | byte);

	for (;; i++) {
		uint32_t *s = &sp->slot[i & sp->slot_mask];

		if (*s == 0 || (sp->node[*s].parent == node &&
		    sp->node[*s].byte == byte))
			return s;
	}
}

/* The child of a node; 0 = it has none by this byte. */
static uint32_t
find_child(const struct specials *sp, uint32_t node, uint8_t byte)
{
	return node == 0 ? sp->root[byte] : *find_slot(sp, node, byte);
}

static uint32_t
add_child(struct specials *sp, uint32_t parent, uint8_t byte)
{
	uint32_t i = sp->n++;

	sp->node[i] = (struct special_node){ .parent = parent, .byte = byte,
	    .user = NO_TOKEN, .any = NO_TOKEN,
	    .sibling = sp->node[parent].child };
	sp->node[parent].child = i;
	if (parent == 0)
		sp->root[byte] = i;
	else
		*find_slot(sp, parent, byte) = i;
	return i;
}

static uint32_t
step(const struct specials *sp, uint32_t state, uint8_t byte)
{
	uint32_t next;

	while ((next = find_child(sp, state, byte)) == 0 && state != 0)
		state = sp->node[state].fail;
	return next;
}

/* Among tokens with equal texts the vocabulary finds the last one. */
static int
is_indexed(const struct vocab *v, uint32_t id)
{
	const struct gguf_str *s = &v->text[id];

	return s->len > 0 && vocab_is_special(v, (int32_t)id, 1) &&
	    vocab_find(v, s->data, s->len) == (int32_t)id;
}

static void
add_token(struct specials *sp, const struct vocab *v, uint32_t id)
{
	const struct gguf_str *s = &v->text[id];
	uint32_t node = 0, next;
	uint64_t i;

	for (i = s->len; i-- > 0; node = next) {
		uint8_t byte = (uint8_t)s->data[i];

		if ((next = find_child(sp, node, byte)) == 0)
			next = add_child(sp, node, byte);
	}
	sp->node[node].any = (int32_t)id;
	if (vocab_is_special(v, (int32_t)id, 0)) {
		sp->node[node].user = (int32_t)id;
		sp->has_user = 1;
	}
}

/* Set fail, user and any of every node, breadth first: those of shorter
 * prefixes come before. */
static int
link_nodes(struct specials *sp)
{
	uint32_t *queue = reallocarray(NULL, sp->n, sizeof(*queue));
	uint32_t head, tail = 0, i;

	if (queue == NULL)
		return -ENOMEM;
	queue[tail++] = 0;
	for (head = 0; head < tail; head++) {
		for (i = sp->node[queue[head]].child; i != 0;
		    i = sp->node[i].sibling) {
			struct special_node *c = &sp->node[i];

			c->fail = c->parent == 0 ? 0 : step(sp,
			    sp->node[c->parent].fail, c->byte);
			if (c->user == NO_TOKEN)
				c->user = sp->node[c->fail].user;
			if (c->any == NO_TOKEN)
				c->any = sp->node[c->fail].any;
			queue[tail++] = i;
		}
	}
	free(queue);
	return 0;
}

static int
fill(struct specials *sp, const struct vocab *v, uint64_t nbytes)
{
	size_t nslots = 16;
	uint32_t i;

	while (nslots < nbytes * 2)
		nslots *= 2;
	sp->slot_mask = (uint32_t)(nslots - 1);
	sp->slot = calloc(nslots, sizeof(*sp->slot));
	sp->node = reallocarray(NULL, nbytes + 1, sizeof(*sp->node));
	if (sp->slot == NULL || sp->node == NULL)
		return -ENOMEM;
	sp->node[0] = (struct special_node){ .user = NO_TOKEN,
	    .any = NO_TOKEN };
	sp->n = 1;
	for (i = 0; i < v->n; i++) {
		if (is_indexed(v, i))
			add_token(sp, v, i);
	}
	return link_nodes(sp);
}

int
specials_build(const struct vocab *v, struct specials *ret,
    struct err *reterr)
{
	uint64_t nbytes = 0;
	uint32_t i;
	int rc;

	*ret = (struct specials){ .n = 0 };
	for (i = 0; i < v->n; i++)
		nbytes += is_indexed(v, i) ? v->text[i].len : 0;
	if (nbytes == 0)
		return 0;
	if (nbytes > MAX_SPECIAL_BYTES)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "the control and "
		    "user-defined tokens have %" PRIu64 " bytes of text, at "
		    "most %d are allowed", nbytes, MAX_SPECIAL_BYTES);
	if ((rc = hash_draw_key(&ret->key, reterr)) < 0)
		return rc;
	if (fill(ret, v, nbytes) < 0)
		return err_nomem(reterr, "the index of %" PRIu64 " bytes of "
		    "special tokens", nbytes);
	return 0;
}

void
specials_done(struct specials *sp)
{
	free(sp->slot);
	free(sp->node);
}

/* --- searching --- */

struct split {
	const struct specials *sp;
	const struct vocab *v;
	int rstrip;		/* drop blanks after special tokens */
	const char *text;
	const struct text_part *part;	/* [nparts], which make up text */
	size_t nparts;
	size_t nbytes;
};

/* A special token that begins at off.  Every byte of a text may begin one. */
struct found {
	uint32_t off;
	int32_t id;
};

struct found_list {
	struct found *f;	/* [n], from the last on */
	size_t n, cap;
};

struct fragments {
	struct fragment *f;
	size_t n, cap;
};

static int
add_found(struct found_list *l, size_t off, int32_t id)
{
	if (l->n == l->cap) {
		size_t cap = MAX(l->cap * 2, (size_t)16);
		struct found *f = reallocarray(l->f, cap, sizeof(*f));

		if (f == NULL)
			return -ENOMEM;
		l->f = f;
		l->cap = cap;
	}
	l->f[l->n++] = (struct found){ (uint32_t)off, id };
	return 0;
}

static int
add_fragment(struct fragments *l, size_t off, size_t nbytes, int32_t id)
{
	if (l->n == l->cap) {
		size_t cap = MAX(l->cap * 2, (size_t)16);
		struct fragment *f = reallocarray(l->f, cap, sizeof(*f));

		if (f == NULL)
			return -ENOMEM;
		l->f = f;
		l->cap = cap;
	}
	l->f[l->n++] = (struct fragment){ off, nbytes, id };
	return 0;
}

static uint64_t
length_of(const struct vocab *v, int32_t id)
{
	return id == NO_TOKEN ? 0 : v->text[id].len;
}

/* Collect the longest token at each place, from the last on.  User-defined
 * tokens may cross the borders of parts; for control tokens each part that
 * allows them is a text of its own. */
static int
find_tokens(const struct split *s, struct found_list *found,
    struct err *reterr)
{
	const struct special_node *node = s->sp->node;
	size_t i, end = s->nbytes, p = s->nparts;
	uint32_t user = 0;
	int rc = 0;

	while (p-- > 0 && rc == 0) {
		uint32_t any = 0;

		for (i = end; i > end - s->part[p].nbytes && rc == 0; i--) {
			uint8_t byte = (uint8_t)s->text[i - 1];
			int32_t id = NO_TOKEN;

			if (s->sp->has_user) {
				user = step(s->sp, user, byte);
				id = node[user].user;
			}
			if (s->part[p].special) {
				any = step(s->sp, any, byte);
				if (length_of(s->v, node[any].any) >
				    length_of(s->v, id))
					id = node[any].any;
			}
			if (i % POLL_BYTES == 0 && s->v->poll != NULL)
				rc = s->v->poll(reterr);
			if (id != NO_TOKEN && rc == 0)
				rc = add_found(found, i - 1, id);
		}
		end -= s->part[p].nbytes;
	}
	return rc;
}

/* --- cutting --- */

static int
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Phi-3's templates put a line break after each special token, but its
 * training data did not.  The blanks after these three are kept. */
static int
swallows_blanks(const struct split *s, int32_t id)
{
	static const char *const keeps[] = { "<unk>", "<s>", "<|endoftext|>" };
	size_t i;

	if (!s->rstrip)
		return 0;
	for (i = 0; i < NITEMS(keeps); i++) {
		if (vocab_find(s->v, keeps[i], strlen(keeps[i])) == id)
			return 0;
	}
	return 1;
}

/* Cut the text at the tokens found, from the first on. */
static int
cut_text(const struct split *s, const struct found_list *found,
    struct fragments *out)
{
	size_t at = 0, i = found->n;
	int rc = 0;

	while (i-- > 0 && rc == 0) {
		const struct found *f = &found->f[i];
		size_t len = s->v->text[f->id].len;

		if (f->off < at)	/* within the last token, or swallowed */
			continue;
		if (f->off > at)
			rc = add_fragment(out, at, f->off - at, NO_TOKEN);
		if (rc == 0)
			rc = add_fragment(out, f->off, len, f->id);
		at = f->off + len;
		if (swallows_blanks(s, f->id)) {
			while (at < s->nbytes && is_blank(s->text[at]))
				at++;
		}
	}
	if (rc == 0 && at < s->nbytes)
		rc = add_fragment(out, at, s->nbytes - at, NO_TOKEN);
	return rc;
}

int
split_special_tokens(const struct specials *sp, const struct vocab *v,
    int rstrip, const char *text, const struct text_part *part, size_t nparts,
    struct fragment **ret, size_t *ret_n, struct err *reterr)
{
	struct split s = { sp, v, rstrip, text, part, nparts, 0 };
	struct found_list found = { 0 };
	struct fragments out = { 0 };
	int special = 0, rc = 0;
	size_t i;

	for (i = 0; i < nparts; i++) {
		s.nbytes += part[i].nbytes;
		special |= part[i].special;
	}
	if (sp->n > 0 && (sp->has_user || special))
		rc = find_tokens(&s, &found, reterr);
	if (rc == 0)
		rc = cut_text(&s, &found, &out);
	free(found.f);
	if (rc < 0) {
		free(out.f);
		return rc;
	}
	*ret = out.f;
	*ret_n = out.n;
	return 0;
}
