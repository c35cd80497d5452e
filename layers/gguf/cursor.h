/* layers/gguf/cursor.h - a bounded, buffered reader of one untrusted file.
 * Owns: the position and the wording of errors.  Called by parse.c only.  Knows
 * bytes, not GGUF.
 * Guarantee: never reads beyond the size given at the start.  A file that
 * shrinks meanwhile is an error, not a signal: hence pread(), not mmap(). */
#ifndef LAYERS_GGUF_CURSOR_H
#define LAYERS_GGUF_CURSOR_H

#include "config/base.h"
#include "config/err.h"

enum { CURSOR_BUF_BYTES = 64 * 1024 };

struct gguf_cursor {
	const char *path;
	int fd;
	struct err *err;
	uint64_t nbytes;	/* size of the file */
	uint64_t max_bytes;	/* limit of reading */
	uint64_t off;		/* offset of the next byte */
	const char *kind;	/* for messages: "key" or "tensor", */
	const char *name;	/* and its name; NULL = not known yet */
	uint32_t buf_left;	/* unread bytes: the tail of buf */
	uint8_t buf[CURSOR_BUF_BYTES];
};

void cursor_init(struct gguf_cursor *c, const char *path, int fd,
    uint64_t nbytes, uint64_t max_bytes, struct err *reterr);

/* Set "path: at byte <at>: <text> (<kind> <name>)"; returns -EBADMSG. */
int cursor_fail(const struct gguf_cursor *c, uint64_t at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Report that the file ends before off + nbytes; returns -EBADMSG. */
int cursor_truncated(const struct gguf_cursor *c, uint64_t off,
    uint64_t nbytes);

/* Check that the rest of the file can hold count items of at least item_bytes
 * each, before memory is allocated for a count that the file claims. */
int cursor_need(const struct gguf_cursor *c, uint64_t count,
    uint64_t item_bytes);

/* Skip nbytes, which the file must have. */
int cursor_skip(struct gguf_cursor *c, uint64_t nbytes);
/* Continue at an offset before the current one. */
void cursor_rewind(struct gguf_cursor *c, uint64_t off);

int cursor_read(struct gguf_cursor *c, void *dst, uint64_t nbytes);
int cursor_u32(struct gguf_cursor *c, uint32_t *ret);
int cursor_u64(struct gguf_cursor *c, uint64_t *ret);

#endif
