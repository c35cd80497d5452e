/* layers/gguf/flat.c - a directory as one block without pointers.
 *
 *	struct flat_head
 *	struct flat_file	[nfiles]
 *	struct flat_kv		[nkv]
 *	struct gguf_tensor	[ntensors]
 *	text: each key and, where its value is a string, that; in the order of
 *	the keys, each followed by a NUL; zeros up to a multiple of 8 bytes
 *
 * Every part begins where the one before it ends, so that the block has no
 * offsets of its own.  Host byte order. */
#include "flat.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

enum { FLAT_MAGIC = 0x31464753, MIN_HEADER = 24, ALIGN = GGUF_FLAT_ALIGN };

struct flat_head {
	uint32_t magic, nfiles;
	uint64_t nkv, ntensors;
	uint64_t alignment, tensor_bytes;
};

struct flat_file {
	uint64_t data_off;
	uint32_t version, zero;
};

struct flat_kv {
	uint64_t key_len;
	uint64_t offset;
	uint32_t type;
	uint32_t element;	/* type of an array's elements, else 0 */
	uint64_t value;		/* a number's 64 bits; bytes of a string; count
				 * of an array */
};

/* The view points at the records in the block. */
_Static_assert(sizeof(struct flat_head) % ALIGN == 0 &&
    sizeof(struct flat_file) % ALIGN == 0 &&
    sizeof(struct flat_kv) % ALIGN == 0 &&
    sizeof(struct gguf_tensor) % ALIGN == 0 &&
    _Alignof(struct gguf_tensor) <= ALIGN, "records are aligned");
_Static_assert(sizeof(((struct gguf_kv *)NULL)->v.f) == sizeof(uint64_t) &&
    offsetof(struct gguf_kv, v.i) == offsetof(struct gguf_kv, v.u) &&
    offsetof(struct gguf_kv, v.f) == offsetof(struct gguf_kv, v.u),
    "a number is 64 bits");

/* --- the side that writes --- */

static int
over_limit(const struct gguf *g, uint64_t n, uint64_t limit, const char *what,
    struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: the header has %"
	    PRIu64 " %s: at most %" PRIu64 " are supported", g->file->path, n,
	    what, limit);
}

/* Name the largest string, which is the likely cause. */
static int
over_bytes(const struct gguf *g, uint64_t n, struct err *reterr)
{
	const struct gguf_kv *kv, *largest = NULL;
	int rc = over_limit(g, n, GGUF_FLAT_MAX_BYTES, "bytes of keys, "
	    "strings and tensors", reterr);

	for (kv = g->kv; kv < g->kv + g->nkv; kv++)
		if (kv->type == GGUF_STRING &&
		    (largest == NULL || kv->v.s.len > largest->v.s.len))
			largest = kv;
	if (largest == NULL || reterr == NULL || largest->v.s.len < n / 2)
		return rc;
	return err_set(reterr, ERR_MODEL, rc, "%s: the key \"%.80s\" has a "
	    "text of %" PRIu64 " bytes; at most %d bytes of keys, strings and "
	    "tensors are supported", g->file->path, largest->key.data,
	    largest->v.s.len, GGUF_FLAT_MAX_BYTES);
}

static uint64_t
records_bytes(uint64_t nfiles, uint64_t nkv, uint64_t ntensors)
{
	return sizeof(struct flat_head) + nfiles * sizeof(struct flat_file) +
	    nkv * sizeof(struct flat_kv) +
	    ntensors * sizeof(struct gguf_tensor);
}

int
gguf_flat_bytes(const struct gguf *g, uint64_t *ret, struct err *reterr)
{
	const struct gguf_kv *kv;
	uint64_t n, i;

	if (g->nkv > GGUF_FLAT_MAX_KV)
		return over_limit(g, g->nkv, GGUF_FLAT_MAX_KV, "keys", reterr);
	if (g->ntensors > GGUF_FLAT_MAX_TENSORS)
		return over_limit(g, g->ntensors, GGUF_FLAT_MAX_TENSORS,
		    "tensors", reterr);
	/* The parser has read all text from a header of at most
	 * GGUF_MAX_HEADER: no overflow. */
	n = records_bytes(g->nfiles, g->nkv, g->ntensors);
	for (i = 0; i < g->nkv; i++) {		/* g->kv may be NULL */
		kv = &g->kv[i];
		n += kv->key.len + 1;
		if (kv->type == GGUF_STRING)
			n += kv->v.s.len + 1;
	}
	n = ALIGN_UP(n, ALIGN);
	if (n > GGUF_FLAT_MAX_BYTES)
		return over_bytes(g, n, reterr);
	*ret = n;
	return 0;
}

static void
put(char **at, const void *p, uint64_t nbytes)
{
	if (nbytes > 0)
		memcpy(*at, p, nbytes);
	*at += nbytes;
}

static void
put_kv(char **at, const struct gguf_kv *kv)
{
	struct flat_kv f = {
		.key_len = kv->key.len, .offset = kv->offset, .type = kv->type
	};

	if (kv->type == GGUF_ARRAY) {
		f.element = kv->v.a.type;
		f.value = kv->v.a.count;
	} else if (kv->type == GGUF_STRING)
		f.value = kv->v.s.len;
	else
		memcpy(&f.value, &kv->v, sizeof(f.value));
	put(at, &f, sizeof(f));
}

void
gguf_flat_write(const struct gguf *g, void *block)
{
	const struct flat_head head = {
		.magic = FLAT_MAGIC, .nfiles = g->nfiles, .nkv = g->nkv,
		.ntensors = g->ntensors, .alignment = g->alignment,
		.tensor_bytes = g->tensor_bytes
	};
	static const char zeros[ALIGN];
	const struct gguf_kv *kv;
	struct flat_file f = { 0 };
	char *at = block;
	uint64_t i;

	put(&at, &head, sizeof(head));
	for (i = 0; i < g->nfiles; i++) {
		f.data_off = g->file[i].data_off;
		f.version = g->file[i].version;
		put(&at, &f, sizeof(f));
	}
	for (i = 0; i < g->nkv; i++)
		put_kv(&at, &g->kv[i]);
	put(&at, g->tensor, g->ntensors * sizeof(*g->tensor));
	for (i = 0; i < g->nkv; i++) {
		kv = &g->kv[i];
		put(&at, kv->key.data, kv->key.len + 1);
		if (kv->type == GGUF_STRING)
			put(&at, kv->v.s.data, kv->v.s.len + 1);
	}
	put(&at, zeros, -(uint64_t)(at - (char *)block) % ALIGN);
}

/* --- the side that checks --- */

struct view {
	const struct flat_head *head;
	const struct flat_file *file;	/* [nfiles] */
	const struct flat_kv *kv;	/* [nkv] */
	const char *text;		/* not yet taken */
	uint64_t text_bytes;
	struct gguf *g;
	struct err *err;
};

PRINTF_LIKE(2, 3) static int
bad(const struct view *v, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(v->err, ERR_RUN, -EBADMSG, "the reader's image: %s",
	    text);
}

/* Find the parts of the block; counts are limited before they are used. */
static int
open_head(struct view *v, const void *block, uint64_t nbytes, uint32_t nfiles)
{
	const struct flat_head *h = block;
	uint64_t n;

	if ((uintptr_t)block % ALIGN != 0 || nbytes % ALIGN != 0 ||
	    nbytes < sizeof(*h) || nbytes > GGUF_FLAT_MAX_BYTES)
		return bad(v, "%" PRIu64 " bytes are no directory", nbytes);
	if (h->magic != FLAT_MAGIC)
		return bad(v, "no directory begins with 0x%08" PRIx32,
		    h->magic);
	if (h->nfiles != nfiles || nfiles < 1 || nfiles > GGUF_MAX_FILES)
		return bad(v, "%" PRIu32 " files, %" PRIu32 " are open",
		    h->nfiles, nfiles);
	if (h->nkv > GGUF_FLAT_MAX_KV || h->ntensors > GGUF_FLAT_MAX_TENSORS)
		return bad(v, "%" PRIu64 " keys and %" PRIu64 " tensors: must "
		    "be at most %d and %d", h->nkv, h->ntensors,
		    GGUF_FLAT_MAX_KV, GGUF_FLAT_MAX_TENSORS);
	n = records_bytes(nfiles, h->nkv, h->ntensors);
	if (n > nbytes)
		return bad(v, "%" PRIu64 " keys and %" PRIu64 " tensors in %"
		    PRIu64 " bytes", h->nkv, h->ntensors, nbytes);
	if (!gguf_is_alignment(h->alignment))
		return bad(v, "an alignment of %" PRIu64, h->alignment);
	v->head = h;
	v->file = (const struct flat_file *)(h + 1);
	v->kv = (const struct flat_kv *)(v->file + nfiles);
	v->text = (const char *)block + n;
	v->text_bytes = nbytes - n;
	return 0;
}

static int
open_files(struct view *v, const struct gguf_file *file)
{
	struct gguf_file *f;
	uint64_t align;
	uint32_t i;

	for (i = 0; i < v->head->nfiles; i++) {
		f = &v->g->file[i];
		*f = file[i];
		f->data_off = v->file[i].data_off;
		f->version = v->file[i].version;
		/* Each part of a split model may have an alignment of its
		 * own; without tensors, its data may begin behind its end. */
		align = i == 0 ? v->head->alignment : GGUF_MIN_ALIGNMENT;
		if (f->data_off < MIN_HEADER || f->data_off % align != 0 ||
		    (f->data_off > f->nbytes &&
		    f->data_off - f->nbytes >= GGUF_MAX_ALIGNMENT))
			return bad(v, "the data of file %" PRIu32 " begins at "
			    "byte %" PRIu64, i, f->data_off);
		if ((f->version != 2 && f->version != 3) ||
		    v->file[i].zero != 0)
			return bad(v, "file %" PRIu32 " has version %" PRIu32,
			    i, f->version);
	}
	return 0;
}

/* Take the next len bytes of text, which must end in a NUL. */
static int
take_text(struct view *v, uint64_t no, uint64_t len, struct gguf_str *ret)
{
	if (len >= v->text_bytes)
		return bad(v, "key %" PRIu64 ": a text of %" PRIu64 " bytes, %"
		    PRIu64 " are left", no, len, v->text_bytes);
	if (v->text[len] != '\0')
		return bad(v, "key %" PRIu64 ": a text does not end in NUL",
		    no);
	ret->data = v->text;
	ret->len = len;
	v->text += len + 1;
	v->text_bytes -= len + 1;
	return 0;
}

static int
is_float(double v)
{
	if (!isfinite(v))
		return 1;
	return fabs(v) <= (double)FLT_MAX && (double)(float)v == v;
}

/* Can a number of kv's type have kv's value? */
static int
number_fits(const struct gguf_kv *kv)
{
	switch (kv->type) {
	case GGUF_U8:
		return kv->v.u <= UINT8_MAX;
	case GGUF_U16:
		return kv->v.u <= UINT16_MAX;
	case GGUF_U32:
		return kv->v.u <= UINT32_MAX;
	case GGUF_I8:
		return kv->v.i >= INT8_MIN && kv->v.i <= INT8_MAX;
	case GGUF_I16:
		return kv->v.i >= INT16_MIN && kv->v.i <= INT16_MAX;
	case GGUF_I32:
		return kv->v.i >= INT32_MIN && kv->v.i <= INT32_MAX;
	case GGUF_F32:
		return is_float(kv->v.f);
	case GGUF_BOOL:
		return kv->v.u <= 1;
	case GGUF_U64:
	case GGUF_I64:
	case GGUF_F64:
		return 1;
	default:
		return 0;	/* not possible: see open_value() */
	}
}

/* kv is zeroed but for its key, type and offset. */
static int
open_value(struct view *v, uint64_t no, struct gguf_kv *kv)
{
	const struct flat_kv *f = &v->kv[no];

	if (f->type >= GGUF_NTYPES ||
	    f->element >= (f->type == GGUF_ARRAY ? GGUF_NTYPES : 1))
		return bad(v, "key \"%.80s\": type %" PRIu32 " of %" PRIu32,
		    kv->key.data, f->type, f->element);
	/* A value lies in the header, and has at least a byte there. */
	if (f->offset >= v->g->file->data_off ||
	    f->offset >= v->g->file->nbytes)
		return bad(v, "key \"%.80s\": its value is at byte %" PRIu64,
		    kv->key.data, f->offset);
	kv->type = f->type;
	kv->offset = f->offset;
	if (kv->type == GGUF_STRING)
		return take_text(v, no, f->value, &kv->v.s);
	if (kv->type == GGUF_ARRAY) {
		kv->v.a.type = f->element;
		kv->v.a.count = f->value;
		if (f->value > v->g->file->nbytes)
			return bad(v, "key \"%.80s\": %" PRIu64 " elements in "
			    "a file of %" PRIu64 " bytes", kv->key.data,
			    f->value, v->g->file->nbytes);
		return 0;
	}
	kv->v.u = f->value;
	return number_fits(kv) ? 0 : bad(v, "key \"%.80s\": its value is no "
	    "%s", kv->key.data, gguf_type_name(kv->type));
}

static int
open_keys(struct view *v)
{
	const struct gguf_kv *twice;
	struct gguf_kv *kv;
	uint64_t i;
	int rc;

	for (i = 0; i < v->head->nkv; i++) {
		kv = &v->g->kv[i];
		if (v->kv[i].key_len < 1 || v->kv[i].key_len > GGUF_MAX_KEY)
			return bad(v, "key %" PRIu64 ": a name of %" PRIu64
			    " bytes", i, v->kv[i].key_len);
		if ((rc = take_text(v, i, v->kv[i].key_len, &kv->key)) < 0)
			return rc;
		if (gguf_plain_bytes(kv->key.data, kv->key.len) < kv->key.len)
			return bad(v, "key %" PRIu64 ": its name is not "
			    "printable UTF-8", i);
		if ((rc = open_value(v, i, kv)) < 0)
			return rc;
	}
	for (i = 0; i < v->text_bytes; i++)
		if (v->text_bytes >= ALIGN || v->text[i] != '\0')
			return bad(v, "%" PRIu64 " bytes belong to no key",
			    v->text_bytes);
	rc = gguf_index_keys(v->g, &twice, v->err);
	return rc != -EEXIST ? rc : bad(v, "two keys \"%.80s\"",
	    twice->key.data);
}

/* The name is plain text that ends in the record; else a message that gives the
 * record's number. */
static int
check_tensor_name(const struct view *v, const struct gguf_tensor *t,
    uint64_t no)
{
	uint64_t len = strnlen(t->name, sizeof(t->name));

	if (len == 0 || len == sizeof(t->name) ||
	    gguf_plain_bytes(t->name, len) < len)
		return bad(v, "tensor %" PRIu64 ": its name is not 1 to %d "
		    "bytes of printable UTF-8", no, GGUF_MAX_NAME);
	return 0;
}

static int
check_shape(const struct view *v, const struct gguf_tensor *t)
{
	char why[GGUF_WHY_LEN];
	uint64_t nbytes;
	uint32_t i;

	if (t->ndims > GGUF_MAX_DIMS)
		return bad(v, "tensor \"%s\": %" PRIu32 " dimensions", t->name,
		    t->ndims);
	for (i = t->ndims; i < GGUF_MAX_DIMS; i++)
		if (t->ne[i] != 1)
			return bad(v, "tensor \"%s\": %" PRIu64 " elements in "
			    "a dimension that it does not have", t->name,
			    t->ne[i]);
	if (gguf_tensor_bytes(t, &nbytes, why) < 0)
		return bad(v, "tensor \"%s\": %s", t->name, why);
	if (t->nbytes != nbytes)
		return bad(v, "tensor \"%s\": %" PRIu64 " bytes: must be %"
		    PRIu64, t->name, t->nbytes, nbytes);
	return 0;
}

/* A tensor without elements may be anywhere. */
static int
check_place(const struct view *v, const struct gguf_tensor *t)
{
	const struct gguf_file *f = &v->g->file[t->file];
	uint64_t align = t->file == 0 ? v->head->alignment :
	    GGUF_MIN_ALIGNMENT;

	if (t->offset < f->data_off || (t->offset - f->data_off) % align != 0)
		return bad(v, "tensor \"%s\": at byte %" PRIu64 ", the data "
		    "begins at %" PRIu64, t->name, t->offset, f->data_off);
	if (gguf_elements(t) == 0)
		return t->room == 0 ? 0 : bad(v, "tensor \"%s\": %" PRIu64
		    " bytes of room for no element", t->name, t->room);
	if (t->offset > f->nbytes ||
	    MAX(t->nbytes, 1) > f->nbytes - t->offset)
		return bad(v, "tensor \"%s\": %" PRIu64 " bytes at byte %"
		    PRIu64 ", the file has %" PRIu64, t->name, t->nbytes,
		    t->offset, f->nbytes);
	return 0;
}

/* No two tensors share a byte, and each knows the room that it has. */
static int
check_rooms(const struct view *v)
{
	const struct gguf_tensor **t;
	uint64_t i, n, room;
	int rc;

	if ((rc = gguf_sort_by_place(v->g, &t, &n, v->err)) < 0)
		return rc;
	for (i = 0; i < n && rc == 0; i++) {
		room = gguf_room(v->g, t, n, i);
		if (t[i]->nbytes > room)
			rc = bad(v, "tensor \"%s\": its data overlaps that "
			    "of \"%s\"", t[i + 1]->name, t[i]->name);
		else if (t[i]->room != room)
			rc = bad(v, "tensor \"%s\": %" PRIu64 " bytes of "
			    "room: must be %" PRIu64, t[i]->name, t[i]->room,
			    room);
	}
	free(t);
	return rc;
}

static int
open_tensors(struct view *v)
{
	const struct gguf_tensor *t = v->g->tensor, *twice;
	uint64_t i, sum = 0;
	uint32_t file = 0;	/* of the tensor before */
	int rc;

	for (i = 0; i < v->head->ntensors; i++, t++) {
		if ((rc = check_tensor_name(v, t, i)) < 0 ||
		    (rc = check_shape(v, t)) < 0)
			return rc;
		if (t->file < file || t->file >= v->head->nfiles)
			return bad(v, "tensor \"%s\": in file %" PRIu32,
			    t->name, t->file);
		file = t->file;
		if ((rc = check_place(v, t)) < 0)
			return rc;
		if (__builtin_add_overflow(sum, t->nbytes, &sum))
			return bad(v, "too many bytes of tensors");
	}
	if (sum != v->head->tensor_bytes)
		return bad(v, "%" PRIu64 " bytes of tensors: must be %" PRIu64,
		    v->head->tensor_bytes, sum);
	if ((rc = check_rooms(v)) < 0)
		return rc;
	rc = gguf_index_tensors(v->g, &twice, v->err);
	return rc != -EEXIST ? rc : bad(v, "two tensors \"%s\"", twice->name);
}

/* The empty view; its files are not owned yet. */
static struct gguf *
make_view(const struct view *v)
{
	const struct flat_head *h = v->head;
	struct gguf_priv *priv = calloc(1, sizeof(*priv));
	struct gguf *g = calloc(1, sizeof(*g));

	if (priv == NULL || g == NULL) {
		free(priv);
		free(g);
		return NULL;
	}
	g->priv = priv;
	priv->is_view = 1;
	priv->nparts = h->nfiles;
	g->file = calloc(h->nfiles, sizeof(*g->file));
	g->kv = calloc(h->nkv + 1, sizeof(*g->kv));
	if (g->file == NULL || g->kv == NULL) {
		gguf_close(g);
		return NULL;
	}
	g->nkv = h->nkv;
	g->ntensors = h->ntensors;
	g->tensor = (struct gguf_tensor *)(uintptr_t)(v->kv + h->nkv);
	g->alignment = h->alignment;
	g->tensor_bytes = h->tensor_bytes;
	return g;
}

int
gguf_flat_open(const void *block, uint64_t nbytes, struct gguf_file *file,
    uint32_t nfiles, struct gguf **ret, struct err *reterr)
{
	struct view v = { .err = reterr };
	uint32_t i;
	int rc;

	*ret = NULL;
	if ((rc = open_head(&v, block, nbytes, nfiles)) < 0)
		return rc;
	if ((v.g = make_view(&v)) == NULL)
		return err_nomem(reterr, "the keys of %s", file->path);
	if ((rc = open_files(&v, file)) < 0 || (rc = open_keys(&v)) < 0 ||
	    (rc = open_tensors(&v)) < 0) {
		gguf_close(v.g);
		return rc;
	}
	v.g->nfiles = nfiles;
	for (i = 0; i < nfiles; i++) {
		file[i].path = NULL;
		file[i].fd = -1;
	}
	*ret = v.g;
	return 0;
}
