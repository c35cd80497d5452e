/* layers/gguf/parse.c - parses a file's header: metadata and tensor directory.
 *
 *	"GGUF" version:u32 ntensors:u64 nkv:u64
 *	nkv      x key:string type:u32 value
 *	ntensors x name:string ndims:u32 ne:u64[ndims] type:u32 offset:u64
 *	padding to the alignment, then the data; offsets count from there
 *	string = len:u64 bytes; array = type:u32 count:u64 elements */
#include "parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cursor.h"

enum {
	CHUNK_BYTES = 256 * 1024,
	DEFAULT_ALIGNMENT = 32,
	/* Smallest entries in a file, to check claimed counts against. */
	MIN_STRING_BYTES = 8,
	MIN_KV_BYTES = 8 + 1 + 4 + 1,
	MIN_ARRAY_BYTES = 4 + 8,
	MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8,
	MAX_DEPTH = 16,		/* of arrays in arrays */
	/* Keys, or tensors, of a file; real ones have some thousands. */
	MAX_ENTRIES = 1 << 20
};

const uint8_t gguf_type_bytes[GGUF_NTYPES] = {
	[GGUF_U8] = 1, [GGUF_I8] = 1, [GGUF_U16] = 2, [GGUF_I16] = 2,
	[GGUF_U32] = 4, [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1,
	[GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8
};

struct parser {
	struct gguf_cursor c;
	struct gguf *g;
	struct gguf_priv *priv;
};

/* Allocate nbytes, aligned to 8, that live as long as the file is open. */
static void *
pool_take(struct parser *p, uint64_t nbytes)
{
	struct gguf_chunk *k = p->priv->pool;
	uint64_t need = ALIGN_UP(nbytes, 8), size;
	void *ret;

	if (k == NULL || need > k->nbytes - k->used_bytes) {
		size = MAX(need, CHUNK_BYTES);
		if ((k = malloc(sizeof(*k) + size)) == NULL) {
			err_set(p->c.err, ERR_RUN, -ENOMEM, "%s: no memory "
			    "for %" PRIu64 " bytes of metadata", p->c.path,
			    size);
			return NULL;
		}
		k->used_bytes = 0;
		k->nbytes = size;
		k->next = p->priv->pool;
		p->priv->pool = k;
	}
	ret = k->data + k->used_bytes;
	k->used_bytes += need;
	return ret;
}

/* Make room for another entry after n in *array by doubling it, so that memory
 * follows the entries read, not the number claimed. */
static int
grow(struct parser *p, void *array, uint64_t n, size_t entry_bytes)
{
	void **pp = array, *new;

	if ((n & (n - 1)) != 0)
		return 0;
	if ((new = reallocarray(*pp, n > 0 ? n * 2 : 1, entry_bytes)) == NULL)
		return err_set(p->c.err, ERR_RUN, -ENOMEM, "%s: no memory for "
		    "%" PRIu64 " entries", p->c.path, n * 2);
	*pp = new;
	return 0;
}

static int
parse_string_body(struct parser *p, uint64_t len, struct gguf_str *ret)
{
	char *data;
	int rc;

	if ((rc = cursor_need(&p->c, len, 1)) < 0)
		return rc;
	if ((data = pool_take(p, len + 1)) == NULL)
		return -ENOMEM;
	if ((rc = cursor_read(&p->c, data, len)) < 0)
		return rc;
	data[len] = '\0';
	ret->data = data;
	ret->len = len;
	return 0;
}

static int
parse_string(struct parser *p, struct gguf_str *ret)
{
	uint64_t len;
	int rc;

	if ((rc = cursor_u64(&p->c, &len)) < 0)
		return rc;
	return parse_string_body(p, len, ret);
}

/* Parse a key or tensor name: safe for terminals and JSON. */
static int
parse_name(struct parser *p, const char *kind, uint64_t max_len,
    struct gguf_str *ret)
{
	uint64_t at = p->c.off, len, i;
	int rc;

	p->c.name = NULL;
	if ((rc = cursor_u64(&p->c, &len)) < 0)
		return rc;
	if (len == 0 || len > max_len)
		return cursor_fail(&p->c, at, "%s name of %" PRIu64
		    " bytes: must be 1 to %" PRIu64, kind, len,
		    max_len);
	if ((rc = parse_string_body(p, len, ret)) < 0)
		return rc;
	if ((i = gguf_plain_bytes(ret->data, len)) < len)
		return cursor_fail(&p->c, at, "%s name with the byte 0x%02x, "
		    "which is not printable UTF-8", kind,
		    (uint8_t)ret->data[i]);
	p->c.kind = kind;
	p->c.name = ret->data;
	return 0;
}

static int
check_bools(struct parser *p, const struct gguf_kv *kv, const uint8_t *b,
    uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		if (b[i] > 1)
			return cursor_fail(&p->c, kv->offset, "bool of value "
			    "%u: must be 0 or 1", b[i]);
	return 0;
}

static int
parse_scalar(struct parser *p, struct gguf_kv *kv)
{
	union {
		uint8_t u8; int8_t i8; uint16_t u16; int16_t i16;
		uint32_t u32; int32_t i32; float f32;
		uint64_t u64; int64_t i64; double f64;
	} raw;
	int rc;

	if ((rc = cursor_read(&p->c, &raw, gguf_type_bytes[kv->type])) < 0)
		return rc;
	switch (kv->type) {
	case GGUF_U8:	kv->v.u = raw.u8; break;
	case GGUF_U16:	kv->v.u = raw.u16; break;
	case GGUF_U32:	kv->v.u = raw.u32; break;
	case GGUF_U64:	kv->v.u = raw.u64; break;
	case GGUF_I8:	kv->v.i = raw.i8; break;
	case GGUF_I16:	kv->v.i = raw.i16; break;
	case GGUF_I32:	kv->v.i = raw.i32; break;
	case GGUF_I64:	kv->v.i = raw.i64; break;
	case GGUF_F32:	kv->v.f = (double)raw.f32; break;
	case GGUF_F64:	kv->v.f = raw.f64; break;
	case GGUF_BOOL:
		kv->v.u = raw.u8;
		return check_bools(p, kv, &raw.u8, 1);
	default:
		break;		/* not possible: see parse_kv() */
	}
	return 0;
}

/* Skip the elements of an array in an array. */
static int
skip_elements(struct parser *p, const struct gguf_kv *kv, uint32_t type,
    uint64_t count, unsigned depth)
{
	uint64_t i, n;
	uint32_t inner;
	int rc;

	if (type >= GGUF_NTYPES)
		return cursor_fail(&p->c, kv->offset, "array of unknown value "
		    "type %" PRIu32, type);
	if (depth > MAX_DEPTH)
		return cursor_fail(&p->c, kv->offset, "arrays nested more than "
		    "%d deep", MAX_DEPTH);
	n = type == GGUF_STRING ? MIN_STRING_BYTES : type == GGUF_ARRAY ?
	    MIN_ARRAY_BYTES : gguf_type_bytes[type];
	if ((rc = cursor_need(&p->c, count, n)) < 0)
		return rc;
	if (type != GGUF_STRING && type != GGUF_ARRAY)
		return cursor_skip(&p->c, count * n);
	for (i = 0; i < count && rc == 0; i++) {
		inner = GGUF_U8;	/* a string's bytes */
		if ((type == GGUF_ARRAY &&
		    (rc = cursor_u32(&p->c, &inner)) < 0) ||
		    (rc = cursor_u64(&p->c, &n)) < 0)
			return rc;
		rc = skip_elements(p, kv, inner, n, depth + 1);
	}
	return rc;
}

/* No model needs these: the bytes are kept for copies of the file. */
static int
parse_nested(struct parser *p, struct gguf_kv *kv)
{
	struct gguf_str *raw = pool_take(p, sizeof(*raw));
	uint64_t start = p->c.off, end;
	int rc;

	if (raw == NULL)
		return -ENOMEM;
	kv->v.a.data = raw;
	if ((rc = skip_elements(p, kv, GGUF_ARRAY, kv->v.a.count, 1)) < 0)
		return rc;
	end = p->c.off;
	cursor_rewind(&p->c, start);
	return parse_string_body(p, end - start, raw);
}

static int
parse_array(struct parser *p, struct gguf_kv *kv)
{
	struct gguf_str *str;
	uint32_t type;
	uint64_t count, i;
	void *data;
	int rc;

	if ((rc = cursor_u32(&p->c, &type)) < 0 ||
	    (rc = cursor_u64(&p->c, &count)) < 0)
		return rc;
	if (type >= GGUF_NTYPES)
		return cursor_fail(&p->c, kv->offset, "array of unknown value "
		    "type %" PRIu32, type);
	kv->v.a.type = type;
	kv->v.a.count = count;
	if (type == GGUF_ARRAY)
		return parse_nested(p, kv);
	if (type == GGUF_STRING) {
		if ((rc = cursor_need(&p->c, count, MIN_STRING_BYTES)) < 0)
			return rc;
		if ((str = pool_take(p, count * sizeof(*str))) == NULL)
			return -ENOMEM;
		kv->v.a.data = str;
		for (i = 0; i < count; i++)
			if ((rc = parse_string(p, &str[i])) < 0)
				return rc;
		return 0;
	}
	if ((rc = cursor_need(&p->c, count, gguf_type_bytes[type])) < 0)
		return rc;
	if ((data = pool_take(p, count * gguf_type_bytes[type])) == NULL)
		return -ENOMEM;
	kv->v.a.data = data;
	if ((rc = cursor_read(&p->c, data, count * gguf_type_bytes[type])) < 0)
		return rc;
	return type == GGUF_BOOL ? check_bools(p, kv, data, count) : 0;
}

static int
parse_kv(struct parser *p, struct gguf_kv *kv)
{
	uint32_t type;
	int rc;

	memset(kv, 0, sizeof(*kv));
	if ((rc = parse_name(p, "key", GGUF_MAX_KEY, &kv->key)) < 0 ||
	    (rc = cursor_u32(&p->c, &type)) < 0)
		return rc;
	kv->type = type;
	kv->offset = p->c.off;
	if (type >= GGUF_NTYPES)
		return cursor_fail(&p->c, kv->offset - sizeof(type),
		    "unknown value type %" PRIu32, type);
	if (type == GGUF_STRING)
		return parse_string(p, &kv->v.s);
	if (type == GGUF_ARRAY)
		return parse_array(p, kv);
	return parse_scalar(p, kv);
}

static int
parse_tensor(struct parser *p, struct gguf_tensor *t)
{
	struct gguf_str name;
	uint64_t at = p->c.off;
	char why[GGUF_WHY_LEN];
	uint32_t i;
	int rc;

	memset(t, 0, sizeof(*t));
	if ((rc = parse_name(p, "tensor", GGUF_MAX_NAME, &name)) < 0 ||
	    (rc = cursor_u32(&p->c, &t->ndims)) < 0)
		return rc;
	memcpy(t->name, name.data, name.len + 1);
	if (t->ndims > GGUF_MAX_DIMS)
		return cursor_fail(&p->c, at, "%" PRIu32 " dimensions: must "
		    "be at most %d", t->ndims, GGUF_MAX_DIMS);
	for (i = 0; i < GGUF_MAX_DIMS; i++)
		t->ne[i] = 1;
	for (i = 0; i < t->ndims; i++)
		if ((rc = cursor_u64(&p->c, &t->ne[i])) < 0)
			return rc;
	if ((rc = cursor_u32(&p->c, &t->type)) < 0 ||
	    (rc = cursor_u64(&p->c, &t->offset)) < 0)
		return rc;
	if (gguf_tensor_bytes(t, &t->nbytes, why) < 0)
		return cursor_fail(&p->c, at, "%s", why);
	return 0;
}

/* Turn the offset in the data section into one in the file, and check it. */
static int
tensor_place(struct parser *p, struct gguf_tensor *t, uint64_t at)
{
	const struct gguf *g = p->g;
	uint64_t rel = t->offset, least = MAX(t->nbytes, 1);

	p->c.kind = "tensor";
	p->c.name = t->name;
	if (rel % g->alignment != 0)
		return cursor_fail(&p->c, at, "offset %" PRIu64 " is not a "
		    "multiple of the alignment %" PRIu64, rel, g->alignment);
	if (__builtin_add_overflow(g->file->data_off, rel, &t->offset))
		return cursor_fail(&p->c, at, "offset %" PRIu64 " is too "
		    "large", rel);
	if (gguf_elements(t) == 0)
		return 0;
	if (t->offset > g->file->nbytes ||
	    least > g->file->nbytes - t->offset)
		return cursor_truncated(&p->c, t->offset, least);
	return 0;
}

/* Also computes the room of every tensor. */
static int
check_overlaps(struct parser *p)
{
	struct gguf *g = p->g;
	const struct gguf_tensor **t;
	struct gguf_tensor *own;
	uint64_t i, n;
	int rc;

	if ((rc = gguf_sort_by_place(g, &t, &n, p->c.err)) < 0)
		return rc;
	for (i = 0; i < n; i++) {
		own = &g->tensor[t[i] - g->tensor];
		own->room = gguf_room(g, t, n, i);
	}
	for (i = 1; i < n && rc == 0; i++) {
		if (t[i - 1]->nbytes <= t[i - 1]->room)
			continue;
		p->c.name = t[i]->name;
		rc = cursor_fail(&p->c, p->priv->declared[t[i] - g->tensor],
		    "its data at offset %" PRIu64 " overlaps that of \"%s\"",
		    t[i]->offset, t[i - 1]->name);
	}
	free(t);
	return rc;
}

static int
parse_magic(struct parser *p)
{
	uint32_t magic, version;
	int rc;

	if ((rc = cursor_u32(&p->c, &magic)) < 0)
		return rc;
	if (memcmp(&magic, "GGUF", sizeof(magic)) != 0)
		return cursor_fail(&p->c, 0, "not a GGUF file: it starts with "
		    "0x%08" PRIx32 ", not with \"GGUF\"",
		    __builtin_bswap32(magic));
	if ((rc = cursor_u32(&p->c, &version)) < 0)
		return rc;
	if (version != 0 && (version & 0xffff) == 0)
		return cursor_fail(&p->c, 4, "big-endian GGUF file (version "
		    "%" PRIu32 "), only little-endian files are supported",
		    __builtin_bswap32(version));
	if (version != 2 && version != 3)
		return cursor_fail(&p->c, 4, "GGUF version %" PRIu32
		    ", only 2 and 3 are supported", version);
	p->g->file->version = version;
	return 0;
}

static int
parse_alignment(struct parser *p)
{
	const struct gguf_kv *kv = gguf_find(p->g, "general.alignment");
	uint32_t n = DEFAULT_ALIGNMENT;
	int rc;

	if (kv != NULL && (rc = gguf_get_u32(p->g, "general.alignment", &n,
	    p->c.err)) < 0)
		return rc;
	if (!gguf_is_alignment(n))
		return cursor_fail(&p->c, kv->offset, "general.alignment is "
		    "%" PRIu32 ": must be a power of two from %d to %d", n,
		    GGUF_MIN_ALIGNMENT, GGUF_MAX_ALIGNMENT);
	p->g->alignment = n;
	return 0;
}

/* The names of keys, for gguf_find(). */
static int
index_keys(struct parser *p)
{
	const struct gguf_kv *twice;
	int rc = gguf_index_keys(p->g, &twice, p->c.err);

	return rc != -EEXIST ? rc : cursor_fail(&p->c, twice->offset,
	    "duplicate key \"%.80s\"", twice->key.data);
}

/* Refuse at once what would take much memory to parse. */
static int
check_count(struct parser *p, uint64_t at, uint64_t n, const char *what)
{
	return n > MAX_ENTRIES ? cursor_fail(&p->c, at, "the header has %"
	    PRIu64 " %s: at most %d are read", n, what, MAX_ENTRIES) : 0;
}

static int
parse_header(struct parser *p)
{
	struct gguf *g = p->g;
	uint64_t ntensors, nkv, i;
	int rc;

	if ((rc = parse_magic(p)) < 0 ||
	    (rc = cursor_u64(&p->c, &ntensors)) < 0 ||
	    (rc = cursor_u64(&p->c, &nkv)) < 0 ||
	    (rc = cursor_need(&p->c, nkv, MIN_KV_BYTES)) < 0 ||
	    (rc = cursor_need(&p->c, ntensors, MIN_TENSOR_BYTES)) < 0 ||
	    (rc = check_count(p, 8, ntensors, "tensors")) < 0 ||
	    (rc = check_count(p, 16, nkv, "keys")) < 0)
		return rc;
	for (; g->nkv < nkv; g->nkv++)
		if ((rc = grow(p, &g->kv, g->nkv, sizeof(*g->kv))) < 0 ||
		    (rc = parse_kv(p, &g->kv[g->nkv])) < 0)
			return rc;
	p->c.name = NULL;
	if ((rc = index_keys(p)) < 0 ||
	    (rc = parse_alignment(p)) < 0)
		return rc;
	for (; g->ntensors < ntensors; g->ntensors++) {
		if ((rc = grow(p, &g->tensor, g->ntensors,
		    sizeof(*g->tensor))) < 0 ||
		    (rc = grow(p, &p->priv->declared, g->ntensors,
		    sizeof(*p->priv->declared))) < 0)
			return rc;
		p->priv->declared[g->ntensors] = p->c.off;
		if ((rc = parse_tensor(p, &g->tensor[g->ntensors])) < 0)
			return rc;
	}
	g->file->data_off = ALIGN_UP(p->c.off, g->alignment);
	for (i = 0; i < ntensors; i++) {
		if ((rc = tensor_place(p, &g->tensor[i],
		    p->priv->declared[i])) < 0)
			return rc;
		g->tensor_bytes += g->tensor[i].nbytes;
	}
	return ntensors > 0 ? check_overlaps(p) : 0;
}

int
gguf_parse(const struct gguf_file *file, struct gguf **ret,
    struct err *reterr)
{
	struct parser *p;
	struct gguf *g;
	int rc;

	*ret = NULL;
	p = calloc(1, sizeof(*p));
	g = calloc(1, sizeof(*g));
	if (p == NULL || g == NULL ||
	    (g->priv = calloc(1, sizeof(struct gguf_priv))) == NULL ||
	    (g->file = calloc(1, sizeof(*g->file))) == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for "
		    "the parser", file->path);
		goto fail;
	}
	*g->file = *file;
	p->g = g;
	p->priv = g->priv;
	cursor_init(&p->c, file->path, file->fd, file->nbytes,
	    GGUF_MAX_HEADER, reterr);
	if ((rc = parse_header(p)) < 0)
		goto fail;
	free(p);
	g->nfiles = 1;
	*ret = g;
	return 0;
fail:
	free(p);
	gguf_close(g);		/* with no file: the caller's stays open */
	return rc;
}
