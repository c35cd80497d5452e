/* layers/gguf/open.c - open a model's files, find and read what is in them. */
#include "parse.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Both indices are sorted, not hashed: no choice of names makes them slow. */
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
gguf_index_keys(struct gguf *g, struct err *reterr)
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
		if (by_key(&k[i - 1], &k[i]) == 0)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: at byte %" PRIu64 ": the key \"%.80s\" is "
			    "there twice", g->file->path,
			    MAX(k[i - 1]->offset, k[i]->offset),
			    k[i]->key.data);
	return 0;
}

static int
index_tensors(struct gguf *g, struct err *reterr)
{
	struct gguf_priv *priv = g->priv;
	const struct gguf_tensor **t, *later;
	uint64_t i;

	if ((t = calloc(g->ntensors + 1, sizeof(*t))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for %"
		    PRIu64 " tensors", g->file->path, g->ntensors);
	priv->by_name = t;
	for (i = 0; i < g->ntensors; i++)
		t[i] = &g->tensor[i];
	qsort(t, g->ntensors, sizeof(*t), by_name);
	for (i = 1; i < g->ntensors; i++) {
		if (by_name(&t[i - 1], &t[i]) != 0)
			continue;
		later = MAX(t[i - 1], t[i]);
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: at byte %"
		    PRIu64 ": the tensor \"%s\" is there twice",
		    g->file[later->file].path,
		    priv->declared[later - g->tensor], later->name);
	}
	return 0;
}

/* What a part says of its set; count 1 = not split.  Numbers start at 0 in
 * the file and at 1 in its name. */
struct split {
	uint32_t no, count;
};

static int
split_get(const struct gguf *part, struct split *ret, struct err *reterr)
{
	const char *path = part->file->path;
	int rc;

	ret->no = 0;
	ret->count = 1;
	rc = gguf_get_u32(part, "split.count", &ret->count, reterr);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (ret->count <= 1) {
		ret->count = 1;
		return 0;
	}
	if (ret->count > GGUF_MAX_FILES)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.count "
		    "is %" PRIu32 ", at most %d are allowed", path,
		    ret->count, GGUF_MAX_FILES);
	rc = gguf_get_u32(part, "split.no", &ret->no, reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.count "
		    "is %" PRIu32 " but there is no split.no", path,
		    ret->count);
	if (rc == 0 && ret->no >= ret->count)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.no is "
		    "%" PRIu32 " of a split.count of %" PRIu32, path, ret->no,
		    ret->count);
	return rc;
}

/* path with its number made that of part no.  NULL when path does not end as
 * part s of such a set does, or there is no memory. */
static char *
split_path(const char *path, const struct split *s, uint32_t no)
{
	char want[64];
	size_t len = strlen(path), suffix;
	char *p;

	suffix = (size_t)snprintf(want, sizeof(want), "-%05" PRIu32 "-of-%05"
	    PRIu32 ".gguf", s->no + 1, s->count);
	if (len < suffix || strcmp(path + len - suffix, want) != 0)
		return NULL;
	if (asprintf(&p, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf",
	    (int)(len - suffix), path, no + 1, s->count) < 0)
		return NULL;
	return p;
}

/* Move part's file and tensors behind those of g. */
static int
merge(struct gguf *g, struct gguf *part)
{
	struct gguf_priv *priv = g->priv, *ppriv = part->priv;
	uint64_t n = g->ntensors + part->ntensors, i;
	struct gguf_tensor *t;
	struct gguf_file *f;
	uint64_t *d;

	if ((f = reallocarray(g->file, g->nfiles + 1, sizeof(*f))) == NULL)
		return -ENOMEM;
	g->file = f;
	if ((t = reallocarray(g->tensor, n + 1, sizeof(*t))) == NULL)
		return -ENOMEM;
	g->tensor = t;
	if ((d = reallocarray(priv->declared, n + 1, sizeof(*d))) == NULL)
		return -ENOMEM;
	priv->declared = d;
	for (i = 0; i < part->ntensors; i++) {
		d[g->ntensors] = ppriv->declared[i];
		t[g->ntensors] = part->tensor[i];
		t[g->ntensors++].file = g->nfiles;
	}
	g->tensor_bytes += part->tensor_bytes;
	f[g->nfiles++] = *part->file;
	part->file->path = NULL;
	part->file->fd = -1;
	return 0;
}

/* Part no of the set that g is the first part of. */
static int
open_part(struct gguf *g, const struct split *first, uint32_t no,
    struct err *reterr)
{
	struct gguf *part = NULL;
	struct split s;
	char *path;
	int rc;

	if ((path = split_path(g->file->path, first, no)) == NULL)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: part 1 of %"
		    PRIu32 " of a split model, but the name does not end in "
		    "-00001-of-%05" PRIu32 ".gguf", g->file->path,
		    first->count, first->count);
	rc = gguf_parse_file(path, &part, reterr);
	if (rc == -ENOENT)
		err_set(reterr, ERR_MODEL, rc, "%s: part %" PRIu32 " of %"
		    PRIu32 " is missing", path, no + 1, first->count);
	if (rc < 0 || (rc = split_get(part, &s, reterr)) < 0)
		goto done;
	if (s.no != no || s.count != first->count)
		rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: says it is "
		    "part %" PRIu32 " of %" PRIu32 ", not %" PRIu32 " of %"
		    PRIu32, path, s.no + 1, s.count, no + 1, first->count);
	else if ((rc = merge(g, part)) < 0)
		rc = err_set(reterr, ERR_RUN, rc, "%s: no memory", path);
done:
	gguf_close(part);
	free(path);
	return rc;
}

static int
open_parts(struct gguf *g, const struct split *first, struct err *reterr)
{
	const char *path = g->file->path;
	uint32_t no, want;
	char *p;
	int rc;

	if (first->no > 0) {
		p = split_path(path, first, 0);
		rc = err_set(reterr, ERR_MODEL, -EBADMSG, "%s: part %"
		    PRIu32 " of %" PRIu32 " of a split model: name the first part, "
		    "%s", path, first->no + 1, first->count,
		    p != NULL ? p : "which ends in -00001-of-...");
		free(p);
		return rc;
	}
	for (no = 1; no < first->count; no++)
		if ((rc = open_part(g, first, no, reterr)) < 0)
			return rc;
	rc = gguf_get_u32(g, "split.tensors.count", &want, reterr);
	if (rc == 0 && want == g->ntensors)
		return 0;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return rc == -ENOENT ?
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: no split.tensors.count",
	    g->file->path) :
	    err_set(reterr, ERR_MODEL, -EBADMSG, "%s: split.tensors.count is "
	    "%" PRIu32 ", the %" PRIu32 " parts hold %" PRIu64,
	    g->file->path, want, first->count, g->ntensors);
}

int
gguf_open(const char *path, struct gguf **ret, struct err *reterr)
{
	struct gguf *g;
	struct split s;
	int rc;

	*ret = NULL;
	if ((rc = gguf_parse_file(path, &g, reterr)) < 0)
		return rc;
	if ((rc = split_get(g, &s, reterr)) < 0 ||
	    (s.count > 1 && (rc = open_parts(g, &s, reterr)) < 0) ||
	    (rc = index_tensors(g, reterr)) < 0) {
		gguf_close(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void
gguf_close(struct gguf *g)
{
	struct gguf_priv *priv;
	struct gguf_chunk *k;
	uint32_t i;

	if (g == NULL)
		return;
	if ((priv = g->priv) != NULL) {
		while ((k = priv->pool) != NULL) {
			priv->pool = k->next;
			free(k);
		}
		free(priv->declared);
		free(priv->by_key);
		free(priv->by_name);
		free(priv);
	}
	for (i = 0; i < g->nfiles; i++) {
		if (g->file[i].fd >= 0)
			close(g->file[i].fd);
		free(g->file[i].path);
	}
	free(g->file);
	free(g->kv);
	free(g->tensor);
	free(g);
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

/* -EBADMSG for a value that is not what was asked for. */
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
			    PRIu64 ", at most %" PRIu32 " is allowed",
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
			    PRId64 ", 0 to %" PRIu32 " is allowed",
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

	if (kv == NULL)
		return -ENOENT;
	if (kv->type != GGUF_F32 && kv->type != GGUF_F64)
		return mismatch(g, kv, "f32", reterr);
	if (!(fabs(kv->v.f) <= (double)FLT_MAX))	/* NaN too */
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: at byte %"
		    PRIu64 ": the key \"%.80s\" is %g, a finite f32 is needed",
		    g->file->path, kv->offset, key, kv->v.f);
	*ret = (float)kv->v.f;
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
	*ret_data = kv->v.a.data;
	*ret_count = kv->v.a.count;
	return 0;
}
