/* tests/support/gguf_walk.c - see gguf_walk.h. */
#include "gguf_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers/gguf/flat.h"

/* Keeps the compiler from removing the reads. */
static volatile uint64_t sink;

static void
read_bytes(const void *p, uint64_t nbytes)
{
	const uint8_t *b = p;
	uint64_t i, sum = 0;

	for (i = 0; i < nbytes; i++)
		sum += b[i];
	sink += sum;
}

/* A view has no elements, and says so. */
static const char *
walk_absent(const struct gguf *g, const struct gguf_kv *kv)
{
	const void *data;
	uint64_t n;
	int64_t v;

	if (kv->v.a.type >= GGUF_NTYPES || kv->v.a.data != NULL)
		return "an array of a view has a known type, and no elements";
	return gguf_array_int(kv, 0, &v) == -ENODATA && gguf_get_array(g,
	    kv->key.data, kv->v.a.type, &data, &n, NULL) == -ENODATA ? NULL :
	    "a view refuses to read an array";
}

static const char *
walk_array(const struct gguf_kv *kv)
{
	static const uint8_t bytes[GGUF_NTYPES] = {
		1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
	};
	const struct gguf_str *s = kv->v.a.data;
	uint64_t i;

	if (kv->v.a.type >= GGUF_NTYPES)
		return "an array has elements of a known type";
	if ((uintptr_t)kv->v.a.data % 8 != 0)
		return "an array is aligned";
	if (kv->v.a.type == GGUF_ARRAY) {
		read_bytes(s->data, s->len + 1);
		return NULL;
	}
	if (kv->v.a.type != GGUF_STRING) {
		read_bytes(kv->v.a.data, kv->v.a.count * bytes[kv->v.a.type]);
		return NULL;
	}
	for (i = 0; i < kv->v.a.count; i++)
		read_bytes(s[i].data, s[i].len + 1);
	return NULL;
}

static const char *
walk_kv(const struct gguf *g, const struct gguf_kv *kv, int is_view)
{
	if (kv->key.len == 0 || kv->key.len > GGUF_MAX_KEY ||
	    strlen(kv->key.data) != kv->key.len)
		return "a key is a C string of 1 to 65535 bytes";
	if (gguf_find(g, kv->key.data) != kv)
		return "each key is found and unique";
	if (kv->offset > g->file[0].nbytes)
		return "a value's offset lies in the file";
	if (kv->type == GGUF_STRING) {
		read_bytes(kv->v.s.data, kv->v.s.len);
		if (kv->v.s.data[kv->v.s.len] != '\0')
			return "a string is NUL-terminated";
	}
	if (kv->type == GGUF_BOOL && kv->v.u > 1)
		return "a bool is 0 or 1";
	if (kv->type != GGUF_ARRAY)
		return NULL;
	return is_view ? walk_absent(g, kv) : walk_array(kv);
}

static const char *
walk_tensor(const struct gguf *g, const struct gguf_tensor *t)
{
	const struct gguf_file *f;
	uint64_t nrows = 1;
	int i;

	if (t->file >= g->nfiles)
		return "a tensor's file index is valid";
	f = &g->file[t->file];
	if (t->name[0] == '\0' || strlen(t->name) > GGUF_MAX_NAME)
		return "a tensor's name is a C string";
	if (gguf_find_tensor(g, t->name) != t)
		return "each tensor is found and unique";
	if (t->ndims > GGUF_MAX_DIMS)
		return "a tensor has up to 4 dimensions";
	for (i = 0; i < GGUF_MAX_DIMS; i++) {
		if (i >= (int)t->ndims && t->ne[i] != 1)
			return "unused dimensions are 1";
		nrows *= i > 0 ? t->ne[i] : 1;
	}
	if (gguf_elements(t) == 0)
		return t->nbytes != 0 ? "an empty tensor has no bytes" : NULL;
	if (t->offset < f->data_off || t->offset >= f->nbytes ||
	    t->nbytes > f->nbytes - t->offset)
		return "a tensor lies in its file's data section";
	if (t->room < t->nbytes || t->room > f->nbytes - t->offset)
		return "a tensor's room reaches the next or the end";
	if (quant_info(t->type) == NULL ? t->nbytes != 0 :
	    t->nbytes != nrows * quant_row_bytes(t->type, t->ne[0]))
		return "nbytes follows from type and dims";
	return NULL;
}

static const char *
walk(const struct gguf *g, int is_view)
{
	const char *broken;
	uint64_t i, sum = 0;

	if (g->nfiles < 1 || (g->alignment & (g->alignment - 1)) != 0)
		return "there is a file, and the alignment is a power of two";
	for (i = 0; i < g->nkv; i++)
		if ((broken = walk_kv(g, &g->kv[i], is_view)) != NULL)
			return broken;
	for (i = 0; i < g->ntensors; i++) {
		if ((broken = walk_tensor(g, &g->tensor[i])) != NULL)
			return broken;
		sum += g->tensor[i].nbytes;
	}
	return sum == g->tensor_bytes ? NULL :
	    "tensor_bytes is the sum of all tensors";
}

const char *
gguf_walk(const struct gguf *g)
{
	return walk(g, 0);
}

const char *
gguf_walk_view(const struct gguf *g, const void *block, uint64_t nbytes)
{
	const char *broken = walk(g, 1);
	uint64_t n;
	void *copy;
	int same;

	if (broken != NULL)
		return broken;
	if (gguf_flat_bytes(g, &n, NULL) < 0 || n != nbytes)
		return "a view needs as many bytes as its block has";
	if ((copy = malloc(n)) == NULL)
		return "there is memory";
	gguf_flat_write(g, copy);
	same = memcmp(copy, block, n) == 0;
	free(copy);
	return same ? NULL : "a view writes the block that it was read from";
}

const char *
gguf_walk_refusal(const char *path, int rc, const struct gguf *g,
    const struct err *e)
{
	if (rc != -EBADMSG)
		return "a bad file is -EBADMSG";
	if (g != NULL)
		return "no struct gguf is returned on failure";
	if (e->kind != ERR_MODEL)
		return "a bad file is ERR_MODEL";
	if (strncmp(e->msg, path, strlen(path)) != 0 ||
	    strncmp(e->msg + strlen(path), ": ", 2) != 0)
		return "the message begins with the path";
	return NULL;
}
