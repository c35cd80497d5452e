/* tests/support/script.c - see script.h. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned
u16_at(const uint8_t *p)
{
	return p[0] | (unsigned)p[1] << 8;
}

int
script_next(struct script *s, struct step *ret)
{
	if (s->n < 3)
		return 0;
	ret->op = s->data[0];
	ret->n = MIN((size_t)u16_at(s->data + 1), s->n - 3);
	ret->bytes = s->data + 3;
	s->data += 3 + ret->n;
	s->n -= 3 + ret->n;
	return 1;
}

size_t
script_change(const struct step *st, void *buf, size_t nbytes, size_t room)
{
	const uint8_t *p = st->bytes, *end = p + st->n;
	size_t at, n;

	while (end - p >= 3) {
		at = u16_at(p);
		n = MIN((size_t)p[2], (size_t)(end - p - 3));
		if (p[2] == 0)
			nbytes = MIN(at, room);
		else if (at < room)
			memcpy((uint8_t *)buf + at, p + 3, MIN(n, room - at));
		p += 3 + n;
	}
	return nbytes;
}

int
script_send(const struct step *st, struct chan *c, uint32_t first_type, int fd)
{
	int fds[CHAN_MAX_FDS];
	unsigned i;

	if (st->n < 2)
		return -1;
	for (i = 0; i < NITEMS(fds); i++)
		fds[i] = fd;
	return chan_send(c, first_type + st->bytes[0], st->bytes + 2,
	    st->n - 2, fds, MIN(st->bytes[1], (unsigned)NITEMS(fds)), 0);
}

int
script_send_raw(const struct step *st, struct chan *c)
{
	return send(c->fd, st->bytes, st->n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ?
	    -1 : 0;
}

int
script_lowest_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

void
script_require(int ok, const char *complaint)
{
	if (ok)
		return;
	fprintf(stderr, "fuzzer: %s\n", complaint);
	abort();
}
