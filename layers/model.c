/* layers/model.c - turns a file's tensors into extents by unit. */
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "hparams.h"
#include "hparams_check.h"

/* Check that tensor t fits the role and fill its extent; t is all of it, or one
 * of `parts` experts. */
static int
take_tensor(struct model *m, const struct gguf_tensor *t, enum role role,
    int layer, uint32_t parts, struct extent *e, struct err *reterr)
{
	const char *path = m->g->file[t->file].path;
	const struct quant_info *qi = quant_info(t->type);
	uint32_t n, k, of, row = 0;

	role_shape(role, &m->hp, &n, &k);
	of = n /= parts;
	if (arch_info(m->hp.arch)->fused)
		role_fused(role, &m->hp, &row, &of);
	if (qi == NULL)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: tensor %s has unknown type %u", path, t->name,
		    t->type);
	if (t->ne[0] != k || t->ne[1] * t->ne[2] * t->ne[3] != of)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: tensor %s is %llu x %llu: according to the metadata "
		    "it must be %u x %u", path, t->name,
		    (unsigned long long)(t->ne[1] * t->ne[2] * t->ne[3]),
		    (unsigned long long)t->ne[0], of, k);
	if (role_info(role)->use == USE_VECTOR && t->type != QUANT_F32 &&
	    t->type != QUANT_F16 && t->type != QUANT_BF16)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: tensor %s has type %s: a vector must be F32, F16 "
		    "or BF16", path, t->name, qi->name);
	memset(e, 0, sizeof(*e));
	strlcpy(e->name, t->name, sizeof(e->name));
	/* nbytes is 0 for an unknown type, which weights_layout() rejects. */
	e->offset = t->offset + t->nbytes / of * row;
	e->nbytes = t->nbytes / of * n;
	e->file = t->file;
	e->role = role;
	e->layer = layer;
	e->type = t->type;
	e->ncols = k;
	e->nrows = n;
	e->nmats = role_info(role)->use == USE_EXPERTS ? m->hp.n_expert /
	    parts : 1;
	return 0;
}

/* The name pattern of the tensor with this role. */
static const char *
pattern_of(const struct model *m, enum role role)
{
	uint32_t row, n;
	const char *s = NULL;

	if (arch_info(m->hp.arch)->fused)
		s = role_fused(role, &m->hp, &row, &n);
	return s != NULL ? s : role_info(role)->pattern;
}

PRINTF_LIKE(3, 0) static const struct gguf_tensor *
find_tensor(const struct model *m, char name[GGUF_MAX_NAME + 1],
    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, GGUF_MAX_NAME + 1, fmt, ap);
	va_end(ap);
	return gguf_find_tensor(m->g, name);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* Early Mixtral files have one tensor per expert.  Consecutive extents of these
 * are laid out like a stack: bind.c. */
static int
add_each_expert(struct model *m, enum role role, int layer, int *ret_have,
    struct err *reterr)
{
	const char *fmt = role_info(role)->each;
	const struct gguf_tensor *t, *first = NULL;
	char name[GGUF_MAX_NAME + 1];
	uint32_t i;
	int rc;

	for (i = 0; i < m->hp.n_expert; i++) {
		t = find_tensor(m, name, fmt, layer, i);
		if (t == NULL && i == 0)
			return 0;
		if (t == NULL)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: the "
			    "tensor %s is missing: the file has %s, for the "
			    "first of %u experts", m->g->file[0].path, name,
			    first->name, m->hp.n_expert);
		first = i == 0 ? t : first;
		if ((rc = take_tensor(m, t, role, layer, m->hp.n_expert,
		    &m->ext[m->next++], reterr)) < 0)
			return rc;
		if (t->type != first->type)
			return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: the "
			    "tensor %s has type %s, but %s has %s: all experts "
			    "of a layer must have the same type; convert the "
			    "file with straddle quantize",
			    m->g->file[t->file].path, t->name,
			    quant_info(t->type)->name, first->name,
			    quant_info(first->type)->name);
	}
	*ret_have = 1;
	return 0;
}

/* Append the extents of role; *ret_have = 1 if the tensor exists. */
static int
add_extent(struct model *m, enum role role, int layer, int required,
    int *ret_have, struct err *reterr)
{
	const struct gguf_tensor *t;
	char name[GGUF_MAX_NAME + 1];
	int rc;

	*ret_have = 0;
	if (!role_is_in_model(role, &m->hp))
		return 0;
	t = find_tensor(m, name, pattern_of(m, role), layer);
	if (t == NULL && role_info(role)->each != NULL &&
	    ((rc = add_each_expert(m, role, layer, ret_have, reterr)) < 0 ||
	    *ret_have))
		return rc;
	*ret_have = t != NULL;
	if (t == NULL && required)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the tensor %s is missing", m->g->file[0].path, name);
	if (t == NULL)
		return 0;
	if ((rc = take_tensor(m, t, role, layer, 1, &m->ext[m->next],
	    reterr)) < 0)
		return rc;
	m->next++;
	return 0;
}

#pragma GCC diagnostic pop

static int
add_sublayer(struct model *m, uint32_t sublayer, struct err *reterr)
{
	const struct arch_info *a = arch_info(m->hp.arch);
	const int ffn = sublayer % 2;
	enum role r;
	unsigned i;
	int rc, have;

	for (i = 0; i < a->nrequired + a->noptional; i++) {
		r = i < a->nrequired ? a->required[i] :
		    a->optional[i - a->nrequired];
		if (role_is_ffn(r, &m->hp) == ffn &&
		    (rc = add_extent(m, r, (int)(sublayer / 2),
		    i < a->nrequired, &have, reterr)) < 0)
			return rc;
	}
	return 0;
}

/* If the file has no matrix for the head, the head is tied to the embedding. */
static int
add_head(struct model *m, struct err *reterr)
{
	struct extent *tied;
	int rc, have;

	if ((rc = add_extent(m, ROLE_OUTPUT_NORM, -1, 1, &have, reterr)) < 0 ||
	    (rc = add_extent(m, ROLE_OUTPUT, -1, 0, &have, reterr)) < 0)
		return rc;
	m->hp.tied = !have;
	m->ext[m->first[0]].rows_only = have != 0;
	if (!have) {
		tied = &m->ext[m->next++];
		*tied = m->ext[m->first[0]];
		tied->role = ROLE_OUTPUT;
	}
	return 0;
}

/* Move the frequency factors into m->shared. */
static int
add_shared(struct model *m, struct err *reterr)
{
	static const enum role roles[MODEL_SHARED] = { ROLE_ROPE_FREQS,
	    ROLE_ROPE_LONG, ROLE_ROPE_SHORT };
	unsigned i;
	int rc, have;

	for (i = 0; i < MODEL_SHARED; i++) {
		if ((rc = add_extent(m, roles[i], -1, 0, &have, reterr)) < 0)
			return rc;
		if (have)
			m->shared[m->nshared++] = m->ext[--m->next];
	}
	return 0;
}

int
model_open(const struct gguf *g, struct model **ret, struct err *reterr)
{
	struct hparams hp;
	int rc;

	if ((rc = hparams_read(g, &hp, reterr)) < 0)
		return rc;
	return model_build(g, &hp, ret, reterr);
}

int
model_build(const struct gguf *g, const struct hparams *hp,
    struct model **ret, struct err *reterr)
{
	struct model *m;
	uint32_t u;
	int rc, have;

	if ((rc = hparams_check(hp, reterr)) < 0)
		return rc;
	if ((m = calloc(1, sizeof(*m))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "the model");
	m->g = g;
	m->hp = *hp;
	m->nunits = 2 * m->hp.n_layer + 2;
	m->first = calloc(m->nunits + 1, sizeof(*m->first));
	/* A role of experts may have one extent per tensor. */
	m->ext = calloc((size_t)m->nunits * ROLE_COUNT + g->ntensors,
	    sizeof(*m->ext));
	if (m->first == NULL || m->ext == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "no memory for the "
		    "tables of %llu tensors",
		    (unsigned long long)g->ntensors);
		goto fail;
	}
	if ((rc = add_shared(m, reterr)) < 0)
		goto fail;
	if ((rc = add_extent(m, ROLE_TOKEN_EMBD, -1, 1, &have, reterr)) < 0)
		goto fail;
	for (u = 1; u < m->nunits - 1; u++) {
		m->first[u] = m->next;
		if ((rc = add_sublayer(m, u - 1, reterr)) < 0)
			goto fail;
	}
	m->first[m->nunits - 1] = m->next;
	if ((rc = add_head(m, reterr)) < 0)
		goto fail;
	m->first[m->nunits] = m->next;
	*ret = m;
	return 0;
fail:
	model_close(m);
	return rc;
}

void
model_close(struct model *m)
{
	if (m == NULL)
		return;
	free(m->ext);
	free(m->first);
	free(m);
}

uint32_t
model_range_max(const struct model *m)
{
	return m->next + MODEL_SHARED;
}

void
model_sublayers(const struct model *m, uint32_t u0, uint32_t u1,
    uint32_t *ret_first, uint32_t *ret_n)
{
	uint32_t from = MAX(u0, 1), to = MIN(u1, m->nunits - 1);

	*ret_first = from - 1;
	*ret_n = to > from ? to - from : 0;
}

uint32_t
model_range(const struct model *m, uint32_t u0, uint32_t u1,
    struct extent *out)
{
	uint32_t i, n = 0, first, nsublayers;
	int both = m->hp.tied && u0 == 0 && u1 == m->nunits;

	for (i = m->first[u0]; i < m->first[u1]; i++)
		if (!(both && m->ext[i].role == ROLE_OUTPUT))
			out[n++] = m->ext[i];
	model_sublayers(m, u0, u1, &first, &nsublayers);
	for (i = 0; i < m->nshared && nsublayers > 0; i++)
		out[n++] = m->shared[i];
	return n;
}

int
model_check_kernels(const struct model *m, const struct kernels *k,
    struct err *reterr)
{
	struct weights ws;
	uint32_t i;
	int rc;

	/* One by one, so that the message names the right part of a split. */
	for (i = 0; i < m->next; i++) {
		rc = weights_layout(&m->ext[i], 1, k, &ws, reterr);
		if (rc < 0) {
			err_prefix(reterr, "%s",
			    m->g->file[m->ext[i].file].path);
			return rc;
		}
		weights_free(&ws);
	}
	return 0;
}

static void
mark_used(const struct model *m, const struct extent *e, uint32_t n,
    uint8_t *used)
{
	const struct gguf_tensor *t;
	uint32_t i;

	for (i = 0; i < n; i++)
		if ((t = gguf_find_tensor(m->g, e[i].name)) != NULL)
			used[t - m->g->tensor] = 1;
}

uint64_t
model_unused(const struct model *m, const struct gguf_tensor **ret_first)
{
	uint8_t *used = calloc(m->g->ntensors + 1, 1);
	uint64_t i, n = 0;

	*ret_first = NULL;
	if (used == NULL)
		return 0;
	mark_used(m, m->ext, m->next, used);
	mark_used(m, m->shared, m->nshared, used);
	for (i = 0; i < m->g->ntensors; i++)
		if (!used[i] && n++ == 0)
			*ret_first = &m->g->tensor[i];
	free(used);
	return n;
}

uint64_t
model_params(const struct model *m)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < m->next; i++)
		if (!(m->hp.tied && m->ext[i].role == ROLE_OUTPUT))
			n += (uint64_t)m->ext[i].nrows * m->ext[i].ncols;
	return n;
}
