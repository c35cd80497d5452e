/* layers/gguf/write.c - writes a header; parse.c describes the format. */
#include "write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

enum { VERSION = 3 };

/* Writes to memory; fclose() reports a failure. */
static void
put(FILE *fp, const void *p, size_t nbytes)
{
	fwrite(p, 1, nbytes, fp);
}

static void
put_u32(FILE *fp, uint32_t v)
{
	put(fp, &v, sizeof(v));
}

static void
put_u64(FILE *fp, uint64_t v)
{
	put(fp, &v, sizeof(v));
}

static void
put_str(FILE *fp, struct gguf_str s)
{
	put_u64(fp, s.len);
	put(fp, s.data, s.len);
}

/* On a little-endian host a narrow integer is the start of a wide one. */
static void
put_value(FILE *fp, const struct gguf_kv *kv)
{
	const struct gguf_str *s = kv->v.a.data;
	float f;
	uint64_t i;

	switch (kv->type) {
	case GGUF_STRING:
		put_str(fp, kv->v.s);
		break;
	case GGUF_ARRAY:
		put_u32(fp, kv->v.a.type);
		put_u64(fp, kv->v.a.count);
		if (kv->v.a.type == GGUF_ARRAY)
			put(fp, s->data, s->len);
		else if (kv->v.a.type != GGUF_STRING)
			put(fp, kv->v.a.data, kv->v.a.count *
			    gguf_type_bytes[kv->v.a.type]);
		for (i = 0; kv->v.a.type == GGUF_STRING && i < kv->v.a.count;
		    i++)
			put_str(fp, s[i]);
		break;
	case GGUF_F32:
		f = (float)kv->v.f;
		put(fp, &f, sizeof(f));
		break;
	default:
		put(fp, &kv->v, gguf_type_bytes[kv->type]);
	}
}

static int
is_set(const struct gguf_set *set, unsigned nset, const char *key)
{
	unsigned i;

	for (i = 0; i < nset; i++)
		if (strcmp(set[i].key, key) == 0)
			return 1;
	return 0;
}

/* Keys of a split, which the new file does not have. */
static int
is_split_key(const char *key)
{
	return strcmp(key, "split.no") == 0 ||
	    strcmp(key, "split.count") == 0 ||
	    strcmp(key, "split.tensors.count") == 0;
}

static void
put_set(FILE *fp, const struct gguf_set *s)
{
	put_str(fp, (struct gguf_str){ s->key, strlen(s->key) });
	put_u32(fp, GGUF_U32);
	put_u32(fp, s->value);
}

/* Returns the number of keys written. */
static uint64_t
put_metadata(FILE *fp, const struct gguf *g, const struct gguf_set *set,
    unsigned nset)
{
	const struct gguf_kv *kv;
	uint64_t n = 0;
	unsigned i;

	for (kv = g->kv; kv < g->kv + g->nkv; kv++) {
		if (is_split_key(kv->key.data) ||
		    is_set(set, nset, kv->key.data))
			continue;
		put_str(fp, kv->key);
		put_u32(fp, kv->type);
		put_value(fp, kv);
		n++;
	}
	for (i = 0; i < nset; i++)
		put_set(fp, &set[i]);
	return n + nset;
}

/* Offsets from the start of the data section. */
static int
place_tensors(const struct gguf *g, const uint32_t *type, struct gguf_out *o,
    uint64_t *ret_bytes, struct err *reterr)
{
	struct gguf_tensor *t;
	uint64_t i, row, nrows, end = 0;

	for (i = 0; i < g->ntensors; i++) {
		t = &o->tensor[i];
		*t = g->tensor[i];
		nrows = t->ne[1] * t->ne[2] * t->ne[3];
		row = quant_row_bytes(type[i], t->ne[0]);
		if (gguf_elements(t) == 0) {
			row = 1;	/* whatever its other dimensions */
			nrows = 0;
		} else if (quant_info(type[i]) == NULL) {
			row = t->room;		/* copied as it is */
			nrows = 1;
		}
		/* INT64_MAX / 2 leaves room for the alignment. */
		if (row == 0 || nrows > (INT64_MAX / 2 - end) / row)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
			    "tensor \"%s\" is too large or has rows that do "
			    "not fit type %" PRIu32, g->file->path, t->name,
			    type[i]);
		t->type = type[i];
		t->file = 0;
		t->offset = end;
		t->nbytes = row * nrows;
		end = ALIGN_UP(end + t->nbytes, g->alignment);
	}
	*ret_bytes = end;
	return 0;
}

static void
put_directory(FILE *fp, const struct gguf_out *o)
{
	const struct gguf_tensor *t;

	for (t = o->tensor; t < o->tensor + o->ntensors; t++) {
		put_str(fp, (struct gguf_str){ t->name, strlen(t->name) });
		put_u32(fp, t->ndims);
		put(fp, t->ne, t->ndims * sizeof(*t->ne));
		put_u32(fp, t->type);
		put_u64(fp, t->offset);
	}
}

static void
put_zeros(FILE *fp, uint64_t n)
{
	while (n-- > 0)
		putc(0, fp);
}

int
gguf_out_make(const struct gguf *g, const uint32_t *type,
    const struct gguf_set *set, unsigned nset, struct gguf_out *ret,
    struct err *reterr)
{
	uint64_t data_bytes = 0, nkv = 0, i;
	FILE *fp;
	int rc;

	*ret = (struct gguf_out){ .ntensors = g->ntensors };
	if (((struct gguf_priv *)g->priv)->is_view)
		return err_set(reterr, ERR_RUN, -ENODATA, "%s: no header can "
		    "be written without the arrays of the metadata",
		    g->file->path);
	ret->tensor = calloc(g->ntensors + 1, sizeof(*ret->tensor));
	fp = open_memstream(&ret->header, &ret->header_bytes);
	if (ret->tensor == NULL || fp == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for a "
		    "new header", g->file->path);
		goto done;
	}
	if ((rc = place_tensors(g, type, ret, &data_bytes, reterr)) < 0)
		goto done;
	put(fp, "GGUF", 4);
	put_u32(fp, VERSION);
	put_u64(fp, g->ntensors);
	put_u64(fp, 0);			/* number of keys: set below */
	nkv = put_metadata(fp, g, set, nset);
	put_directory(fp, ret);
	fflush(fp);
	put_zeros(fp, ALIGN_UP(ret->header_bytes, g->alignment) -
	    ret->header_bytes);
done:
	if (fp != NULL && fclose(fp) != 0 && rc == 0)
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for a "
		    "new header", g->file->path);
	if (rc < 0)
		return rc;
	memcpy(ret->header + 16, &nkv, sizeof(nkv));
	for (i = 0; i < ret->ntensors; i++)
		ret->tensor[i].offset += ret->header_bytes;
	ret->file_bytes = ret->header_bytes + data_bytes;
	return 0;
}

void
gguf_out_free(struct gguf_out *o)
{
	free(o->header);
	free(o->tensor);
	*o = (struct gguf_out){ 0 };
}
