/* layers/gguf/lookup.c - finds keys and tensors by name, and reads values. */
#include "parse.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[GGUF_NTYPES] = {
	[GGUF_U8] = "u8", [GGUF_I8] = "i8", [GGUF_U16] = "u16",
	[GGUF_I16] = "i16", [GGUF_U32] = "u32", [GGUF_I32] = "i32",
	[GGUF_F32] = "f32", [GGUF_BOOL] = "bool", [GGUF_STRING] = "string",
	[GGUF_ARRAY] = "array", [GGUF_U64] = "u64", [GGUF_I64] = "i64",
	[GGUF_F64] = "f64"
};

const char *
gguf_type_name(enum gguf_type t)
{
	return (unsigned)t < GGUF_NTYPES ? type_names[t] : "unknown";
}

/* Both indexes are sorted, not hashed: no choice of names makes them slow. */
static int
by_key(const void *pa, const void *pb)
{
	const struct gguf_kv *a = *(const struct gguf_kv *const *)pa;
	const struct gguf_kv *b = *(const struct gguf_kv *const *)pb;

	return strcmp(a->key.data, b->key.data);
}

static int
by_name(const void *pa, const void *pb)
{
	const struct gguf_tensor *a = *(const struct gguf_tensor *const *)pa;
	const struct gguf_tensor *b = *(const struct gguf_tensor *const *)pb;

	return strcmp(a->name, b->name);
}

int
gguf_index_keys(struct gguf *g, const struct gguf_kv **ret_twice,
    struct err *reterr)
{
	struct gguf_priv *priv = g->priv;
	const struct gguf_kv **k;
	uint64_t i;

	if ((k = calloc(g->nkv + 1, sizeof(*k))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for %"
		    PRIu64 " keys", g->file->path, g->nkv);
	priv->by_key = k;
	for (i = 0; i < g->nkv; i++)
		k[i] = &g->kv[i];
	qsort(k, g->nkv, sizeof(*k), by_key);
	for (i = 1; i < g->nkv; i++)
		if (by_key(&k[i - 1], &k[i]) == 0) {
			*ret_twice = MAX(k[i - 1], k[i]);
			return -EEXIST;
		}
	return 0;
}

int
gguf_index_tensors(struct gguf *g, const struct gguf_tensor **ret_twice,
    struct err *reterr)
{
	struct gguf_priv *priv = g->priv;
	const struct gguf_tensor **t;
	uint64_t i;

	if ((t = calloc(g->ntensors + 1, sizeof(*t))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for %"
		    PRIu64 " tensors", g->file->path, g->ntensors);
	priv->by_name = t;
	for (i = 0; i < g->ntensors; i++)
		t[i] = &g->tensor[i];
	qsort(t, g->ntensors, sizeof(*t), by_name);
	for (i = 1; i < g->ntensors; i++)
		if (by_name(&t[i - 1], &t[i]) == 0) {
			*ret_twice = MAX(t[i - 1], t[i]);
			return -EEXIST;
		}
	return 0;
}

const struct gguf_kv *
gguf_find(const struct gguf *g, const char *key)
{
	const struct gguf_priv *priv = g->priv;
	const struct gguf_kv want = { .key.data = key }, *pwant = &want;
	const struct gguf_kv **found;

	found = bsearch(&pwant, priv->by_key, g->nkv, sizeof(*found), by_key);
	return found != NULL ? *found : NULL;
}

const struct gguf_tensor *
gguf_find_tensor(const struct gguf *g, const char *name)
{
	const struct gguf_priv *priv = g->priv;
	uint64_t lo = 0, hi = g->ntensors, mid;
	int cmp;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		cmp = strcmp(name, priv->by_name[mid]->name);
		if (cmp == 0)
			return priv->by_name[mid];
		if (cmp < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return NULL;
}

/* Report a value of the wrong type; returns -EBADMSG. */
static int
mismatch(const struct gguf *g, const struct gguf_kv *kv, const char *want,
    struct err *reterr)
{
	int array = kv->type == GGUF_ARRAY;

	return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: at byte %" PRIu64
	    ": the key \"%.80s\" is %s%s, %s is needed", g->file->path,
	    kv->offset, kv->key.data, array ? "an array of " : "of type ",
	    gguf_type_name(array ? kv->v.a.type : kv->type), want);
}

int
gguf_get_u32(const struct gguf *g, const char *key, uint32_t *ret,
    struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	if (kv == NULL)
		return -ENOENT;
	switch (kv->type) {
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
		if (kv->v.u > UINT32_MAX)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: at byte %" PRIu64 ": the key \"%.80s\" is %"
			    PRIu64 ": must be 0 to %" PRIu32,
			    g->file->path, kv->offset, key, kv->v.u,
			    UINT32_MAX);
		*ret = (uint32_t)kv->v.u;
		return 0;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		if (kv->v.i < 0 || kv->v.i > UINT32_MAX)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: at byte %" PRIu64 ": the key \"%.80s\" is %"
			    PRId64 ": must be 0 to %" PRIu32,
			    g->file->path, kv->offset, key, kv->v.i,
			    UINT32_MAX);
		*ret = (uint32_t)kv->v.i;
		return 0;
	default:
		return mismatch(g, kv, "an integer", reterr);
	}
}

int
gguf_get_f32(const struct gguf *g, const char *key, float *ret,
    struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	double v;

	if (kv == NULL)
		return -ENOENT;
	switch (kv->type) {
	case GGUF_F32:
	case GGUF_F64:
		v = kv->v.f;
		break;
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
		v = (double)kv->v.u;
		break;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		v = (double)kv->v.i;
		break;
	default:
		return mismatch(g, kv, "a number", reterr);
	}
	if (!(fabs(v) <= (double)FLT_MAX))	/* NaN too */
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: at byte %"
		    PRIu64 ": the key \"%.80s\" is %g, a finite f32 is needed",
		    g->file->path, kv->offset, key, v);
	*ret = (float)v;
	return 0;
}

int
gguf_get_bool(const struct gguf *g, const char *key, int *ret,
    struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	if (kv == NULL)
		return -ENOENT;
	if (kv->type != GGUF_BOOL)
		return mismatch(g, kv, "bool", reterr);
	*ret = (int)kv->v.u;
	return 0;
}

int
gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *ret,
    struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);

	if (kv == NULL)
		return -ENOENT;
	if (kv->type != GGUF_STRING)
		return mismatch(g, kv, "string", reterr);
	*ret = kv->v.s;
	return 0;
}

int
gguf_get_array(const struct gguf *g, const char *key, enum gguf_type type,
    const void **ret_data, uint64_t *ret_count, struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	char want[32];

	if (kv == NULL)
		return -ENOENT;
	if (kv->type != GGUF_ARRAY || kv->v.a.type != type) {
		snprintf(want, sizeof(want), "an array of %s",
		    gguf_type_name(type));
		return mismatch(g, kv, want, reterr);
	}
	if (kv->v.a.data == NULL)
		return err_set(reterr, ERR_RUN, -ENODATA, "%s: the elements "
		    "of the key \"%.80s\" are not at hand", g->file->path, key);
	*ret_data = kv->v.a.data;
	*ret_count = kv->v.a.count;
	return 0;
}

#define ELEMENT(type)	\
	(memcpy(&e.type, at + i * sizeof(e.type), sizeof(e.type)), e.type)

int
gguf_array_int(const struct gguf_kv *kv, uint64_t i, int64_t *ret)
{
	union {
		uint8_t u8; int8_t i8; uint16_t u16; int16_t i16;
		uint32_t u32; int32_t i32; uint64_t u64; int64_t i64;
	} e;
	const char *at = kv->v.a.data;

	if (kv->type != GGUF_ARRAY)
		return -EINVAL;
	if (at == NULL)
		return -ENODATA;
	switch (kv->v.a.type) {
	case GGUF_U8:
		*ret = ELEMENT(u8);
		return 0;
	case GGUF_I8:
		*ret = ELEMENT(i8);
		return 0;
	case GGUF_U16:
		*ret = ELEMENT(u16);
		return 0;
	case GGUF_I16:
		*ret = ELEMENT(i16);
		return 0;
	case GGUF_U32:
		*ret = ELEMENT(u32);
		return 0;
	case GGUF_I32:
		*ret = ELEMENT(i32);
		return 0;
	case GGUF_U64:
		if (ELEMENT(u64) > INT64_MAX)
			return -ERANGE;
		*ret = (int64_t)e.u64;
		return 0;
	case GGUF_I64:
		*ret = ELEMENT(i64);
		return 0;
	default:
		return -EINVAL;
	}
}
