/* tests/support/gguf_writer.h - writes GGUF headers, valid and invalid ones.
 * Owns: the bytes of one header, in memory.  Called by mkgguf and by tests.
 * Checks nothing: tests write files that a reader must refuse.  Out of memory
 * ends the program. */
#ifndef TESTS_SUPPORT_GGUF_WRITER_H
#define TESTS_SUPPORT_GGUF_WRITER_H

#include <stdio.h>

#include "layers/gguf/gguf.h"

struct gguf_writer {
	FILE *fp;
	char *buf;		/* valid after gw_finish() */
	size_t len;
	/* Final values are written by gw_finish(); a test may change them
	 * before. */
	char magic[4];
	uint32_t version;
	uint64_t nkv, ntensors;	/* counted so far */
	uint32_t alignment;	/* of the padding; 32 by default */
	uint64_t data_bytes;	/* end of the last tensor */
};

void gw_open(struct gguf_writer *w);

/* Raw pieces. */
void gw_bytes(struct gguf_writer *w, const void *p, size_t n);
void gw_u8(struct gguf_writer *w, uint8_t v);
void gw_u32(struct gguf_writer *w, uint32_t v);
void gw_u64(struct gguf_writer *w, uint64_t v);
void gw_str(struct gguf_writer *w, const char *s);

/* Metadata must come before the first tensor.  gw_key() writes only key and
 * type; the caller writes the value. */
void gw_key(struct gguf_writer *w, const char *key, enum gguf_type type);
void gw_kv_u16(struct gguf_writer *w, const char *key, uint16_t v);
void gw_kv_u32(struct gguf_writer *w, const char *key, uint32_t v);
void gw_kv_i32(struct gguf_writer *w, const char *key, int32_t v);
void gw_kv_f32(struct gguf_writer *w, const char *key, float v);
void gw_kv_bool(struct gguf_writer *w, const char *key, int v);
void gw_kv_str(struct gguf_writer *w, const char *key, const char *v);
/* Write key, type and length of an array; the caller writes the elements. */
void gw_array(struct gguf_writer *w, const char *key, enum gguf_type type,
    uint64_t count);

/* Write one directory entry as given. */
void gw_tensor_at(struct gguf_writer *w, const char *name, uint32_t type,
    uint32_t ndims, const uint64_t *ne, uint64_t offset);

/* Write the entry of a tensor of nbytes that follows the last one, aligned. */
void gw_tensor(struct gguf_writer *w, const char *name, uint32_t type,
    uint32_t ndims, const uint64_t *ne, uint64_t nbytes);

/* Pad to the alignment and write the counts; then buf and len are the
 * header. */
void gw_finish(struct gguf_writer *w);

/* gw_finish(), then write a file: the header and data_bytes zeros. */
void gw_save(struct gguf_writer *w, const char *path);
void gw_close(struct gguf_writer *w);

#endif
