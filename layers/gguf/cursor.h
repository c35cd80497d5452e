/* layers/gguf/cursor.h - a bounded, buffered reader over one untrusted file.
 * Owns: the position and the words of every refusal.  Called by gguf/parse.c
 * alone.  Knows bytes, not GGUF.
 * Guarantee: never reads past the size given at the start, whatever it is
 * asked for; a file that shrinks meanwhile is a refusal, not a signal (so
 * pread and no map). */
#ifndef LAYERS_GGUF_CURSOR_H
#define LAYERS_GGUF_CURSOR_H

#include "config/base.h"
#include "config/err.h"

enum { CURSOR_BUF_BYTES = 64 * 1024 };

struct gguf_cursor {
	const char *path;
	int fd;
	struct err *err;
	uint64_t nbytes;	/* of the file */
	uint64_t max_bytes;	/* what may be read of it */
	uint64_t off;		/* of the next byte */
	const char *kind;	/* what is being read, for messages: "key", */
	const char *name;	/* and its name; NULL = not known yet */
	uint32_t buf_left;	/* bytes of buf not yet taken: its tail */
	uint8_t buf[CURSOR_BUF_BYTES];
};

void cursor_init(struct gguf_cursor *c, const char *path, int fd,
    uint64_t nbytes, uint64_t max_bytes, struct err *reterr);

/* -EBADMSG and "path: at byte <at>: <text> (<kind> <name>)". */
int cursor_fail(const struct gguf_cursor *c, uint64_t at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Refuse a file that ends before nbytes behind off. */
int cursor_truncated(const struct gguf_cursor *c, uint64_t off,
    uint64_t nbytes);

/* 0 when count items of at least item_bytes each can still follow: asked
 * before memory is taken for a count that the file claims. */
int cursor_need(const struct gguf_cursor *c, uint64_t count,
    uint64_t item_bytes);

int cursor_read(struct gguf_cursor *c, void *dst, uint64_t nbytes);
int cursor_u32(struct gguf_cursor *c, uint32_t *ret);
int cursor_u64(struct gguf_cursor *c, uint64_t *ret);

#endif
