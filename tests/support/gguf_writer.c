/* tests/support/gguf_writer.c - see gguf_writer.h. */
#include "gguf_writer.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 24 };	/* magic, version and both counts */

void
gw_open(struct gguf_writer *w)
{
	static const char zeros[HEADER_BYTES];

	memset(w, 0, sizeof(*w));
	memcpy(w->magic, "GGUF", sizeof(w->magic));
	w->version = 3;
	w->alignment = 32;
	if ((w->fp = open_memstream(&w->buf, &w->len)) == NULL)
		err(1, "open_memstream");
	gw_bytes(w, zeros, sizeof(zeros));	/* filled in by gw_finish() */
}

void
gw_bytes(struct gguf_writer *w, const void *p, size_t n)
{
	if (fwrite(p, 1, n, w->fp) != n)
		err(1, "gguf_writer");
}

void
gw_u8(struct gguf_writer *w, uint8_t v)
{
	gw_bytes(w, &v, sizeof(v));
}

void
gw_u32(struct gguf_writer *w, uint32_t v)
{
	gw_bytes(w, &v, sizeof(v));
}

void
gw_u64(struct gguf_writer *w, uint64_t v)
{
	gw_bytes(w, &v, sizeof(v));
}

void
gw_str(struct gguf_writer *w, const char *s)
{
	gw_u64(w, strlen(s));
	gw_bytes(w, s, strlen(s));
}

void
gw_key(struct gguf_writer *w, const char *key, enum gguf_type type)
{
	gw_str(w, key);
	gw_u32(w, type);
	w->nkv++;
}

void
gw_kv_u16(struct gguf_writer *w, const char *key, uint16_t v)
{
	gw_key(w, key, GGUF_U16);
	gw_bytes(w, &v, sizeof(v));
}

void
gw_kv_u32(struct gguf_writer *w, const char *key, uint32_t v)
{
	gw_key(w, key, GGUF_U32);
	gw_u32(w, v);
}

void
gw_kv_i32(struct gguf_writer *w, const char *key, int32_t v)
{
	gw_key(w, key, GGUF_I32);
	gw_bytes(w, &v, sizeof(v));
}

void
gw_kv_f32(struct gguf_writer *w, const char *key, float v)
{
	gw_key(w, key, GGUF_F32);
	gw_bytes(w, &v, sizeof(v));
}

void
gw_kv_bool(struct gguf_writer *w, const char *key, int v)
{
	gw_key(w, key, GGUF_BOOL);
	gw_u8(w, (uint8_t)v);
}

void
gw_kv_str(struct gguf_writer *w, const char *key, const char *v)
{
	gw_key(w, key, GGUF_STRING);
	gw_str(w, v);
}

void
gw_array(struct gguf_writer *w, const char *key, enum gguf_type type,
    uint64_t count)
{
	gw_key(w, key, GGUF_ARRAY);
	gw_u32(w, type);
	gw_u64(w, count);
}

void
gw_tensor_at(struct gguf_writer *w, const char *name, uint32_t type,
    uint32_t ndims, const uint64_t *ne, uint64_t offset)
{
	gw_str(w, name);
	gw_u32(w, ndims);
	gw_bytes(w, ne, ndims * sizeof(*ne));
	gw_u32(w, type);
	gw_u64(w, offset);
	w->ntensors++;
}

void
gw_tensor(struct gguf_writer *w, const char *name, uint32_t type,
    uint32_t ndims, const uint64_t *ne, uint64_t nbytes)
{
	uint64_t offset = ALIGN_UP(w->data_bytes, w->alignment);

	gw_tensor_at(w, name, type, ndims, ne, offset);
	w->data_bytes = offset + nbytes;
}

void
gw_finish(struct gguf_writer *w)
{
	uint64_t n;

	fflush(w->fp);
	for (n = w->len; n % w->alignment != 0; n++)
		gw_u8(w, 0);
	if (fclose(w->fp) != 0)
		err(1, "gguf_writer");
	w->fp = NULL;
	memcpy(w->buf, w->magic, sizeof(w->magic));
	memcpy(w->buf + 4, &w->version, sizeof(w->version));
	memcpy(w->buf + 8, &w->ntensors, sizeof(w->ntensors));
	memcpy(w->buf + 16, &w->nkv, sizeof(w->nkv));
}

void
gw_save(struct gguf_writer *w, const char *path)
{
	FILE *fp;

	gw_finish(w);
	if ((fp = fopen(path, "wb")) == NULL ||
	    fwrite(w->buf, 1, w->len, fp) != w->len || fflush(fp) != 0 ||
	    ftruncate(fileno(fp), (off_t)(w->len + w->data_bytes)) != 0 ||
	    fclose(fp) != 0)
		err(1, "%s", path);
}

void
gw_close(struct gguf_writer *w)
{
	if (w->fp != NULL)
		fclose(w->fp);
	free(w->buf);
	w->fp = NULL;
	w->buf = NULL;
}
