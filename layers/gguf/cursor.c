/* layers/gguf/cursor.c - bounded buffered reads and their errors. */
#include "cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Numbers are copied from the file unchanged. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian");

void
cursor_init(struct gguf_cursor *c, const char *path, int fd, uint64_t nbytes,
    uint64_t max_bytes, struct err *reterr)
{
	c->path = path;
	c->fd = fd;
	c->err = reterr;
	c->nbytes = nbytes;
	c->max_bytes = MIN(nbytes, max_bytes);
	c->off = 0;
	c->kind = c->name = NULL;
	c->buf_left = 0;
}

/* " (key "general.name")" or ""; a long name is cut off. */
static const char *
context(const struct gguf_cursor *c, char *buf, size_t len)
{
	if (c->name == NULL)
		return "";
	snprintf(buf, len, " (%s \"%.80s\")", c->kind, c->name);
	return buf;
}

int
cursor_fail(const struct gguf_cursor *c, uint64_t at, const char *fmt, ...)
{
	char text[512], where[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(c->err, ERR_MODEL, -EBADMSG, "%s: at byte %" PRIu64
	    ": %s%s", c->path, at, text, context(c, where, sizeof(where)));
}

int
cursor_truncated(const struct gguf_cursor *c, uint64_t off, uint64_t nbytes)
{
	char where[128];

	return err_set(c->err, ERR_MODEL, -EBADMSG, "%s: truncated: needs %"
	    PRIu64 " bytes at offset %" PRIu64 ", the file has %" PRIu64 "%s",
	    c->path, nbytes, off, c->nbytes, context(c, where, sizeof(where)));
}

int
cursor_need(const struct gguf_cursor *c, uint64_t count, uint64_t item_bytes)
{
	uint64_t nbytes;

	if (count <= (c->max_bytes - c->off) / item_bytes)
		return 0;
	if (count <= (c->nbytes - c->off) / item_bytes)
		return cursor_fail(c, c->off, "the header is longer than the "
		    "allowed %" PRIu64 " bytes", c->max_bytes);
	if (__builtin_mul_overflow(count, item_bytes, &nbytes))
		return cursor_fail(c, c->off, "truncated: needs %" PRIu64
		    " items of at least %" PRIu64 " bytes, the file has %"
		    PRIu64 " bytes", count, item_bytes, c->nbytes);
	return cursor_truncated(c, c->off, nbytes);
}

/* Read all of [off, off + nbytes), which is within the size from fstat(). */
static int
read_at(const struct gguf_cursor *c, uint8_t *dst, uint64_t nbytes,
    uint64_t off)
{
	ssize_t n;

	while (nbytes > 0) {
		n = pread(c->fd, dst, nbytes, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			n = -errno;
			return err_set(c->err, ERR_MODEL, (int)n,
			    "%s: reading at byte %" PRIu64 ": %s", c->path,
			    off, strerror((int)-n));
		}
		if (n == 0)
			return cursor_fail(c, off, "the file was truncated "
			    "while it was read");
		dst += n;
		off += (uint64_t)n;
		nbytes -= (uint64_t)n;
	}
	return 0;
}

int
cursor_read(struct gguf_cursor *c, void *dst, uint64_t nbytes)
{
	uint8_t *out = dst;
	uint64_t n;
	int rc;

	if ((rc = cursor_need(c, nbytes, 1)) < 0)
		return rc;
	for (;;) {
		n = MIN(nbytes, c->buf_left);
		memcpy(out, c->buf + (sizeof(c->buf) - c->buf_left), n);
		c->buf_left -= (uint32_t)n;
		c->off += n;
		out += n;
		nbytes -= n;
		if (nbytes == 0)
			return 0;
		if (nbytes >= sizeof(c->buf)) {	/* bypass the buffer */
			rc = read_at(c, out, nbytes, c->off);
			c->off += nbytes;
			return rc;
		}
		/* Fill the end of the buffer: unread bytes are its tail. */
		n = MIN(sizeof(c->buf), c->max_bytes - c->off);
		if ((rc = read_at(c, c->buf + (sizeof(c->buf) - n), n,
		    c->off)) < 0)
			return rc;
		c->buf_left = (uint32_t)n;
	}
}

int
cursor_skip(struct gguf_cursor *c, uint64_t nbytes)
{
	int rc;

	if ((rc = cursor_need(c, nbytes, 1)) < 0)
		return rc;
	c->off += nbytes;
	c->buf_left = nbytes < c->buf_left ? c->buf_left - (uint32_t)nbytes : 0;
	return 0;
}

void
cursor_rewind(struct gguf_cursor *c, uint64_t off)
{
	c->off = off;
	c->buf_left = 0;
}

int
cursor_u32(struct gguf_cursor *c, uint32_t *ret)
{
	return cursor_read(c, ret, sizeof(*ret));
}

int
cursor_u64(struct gguf_cursor *c, uint64_t *ret)
{
	return cursor_read(c, ret, sizeof(*ret));
}
