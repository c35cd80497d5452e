/* shm/chan.c - messages with fds over a SOCK_SEQPACKET socket.
 *
 * Each message is one packet: a frame of 16 bytes and the payload; fds travel
 * as one SCM_RIGHTS.  The frame repeats the length and the fd count that the
 * kernel reports; a packet in which they differ is rejected. */
#include "chan.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "event.h"

#define FRAME_MAGIC	0x4e414843u	/* "CHAN" */

/* Bytes of SO_SNDBUF that the kernel reserves for itself in each packet. */
#define SNDBUF_RESERVE	32

struct frame {
	uint32_t magic, type, nbytes, nfds;
};
_Static_assert(sizeof(struct frame) == 16, "frame ABI");

union control {
	struct cmsghdr align;
	uint8_t buf[CMSG_SPACE(CHAN_MAX_FDS * sizeof(int))];
};

/* A packet must fit into the send buffer whole.  Twice the largest message
 * stays below the limit of an unprivileged user; read back what was granted. */
static int
grow_sndbuf(int fd)
{
	int want = 2 * CHAN_MAX_BYTES, got = 0;
	socklen_t len = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &got, &len) < 0)
		return -errno;
	if (got < CHAN_MAX_BYTES + (int)sizeof(struct frame) + SNDBUF_RESERVE)
		return -EMSGSIZE;
	return 0;
}

int
chan_pair(struct chan *ret_a, struct chan *ret_b, struct err *reterr)
{
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		rc = -errno;
		return err_set(reterr, ERR_RUN, rc, "control channel: %s",
		    strerror(-rc));
	}
	if ((rc = grow_sndbuf(fds[0])) < 0 || (rc = grow_sndbuf(fds[1])) < 0) {
		close(fds[0]);
		close(fds[1]);
		return err_set(reterr, ERR_RUN, rc, "control channel: cannot "
		    "get a send buffer for messages of %d bytes (see "
		    "net.core.wmem_max): %s", CHAN_MAX_BYTES, strerror(-rc));
	}
	ret_a->fd = fds[0];
	ret_b->fd = fds[1];
	return 0;
}

/* 0 = try again; -ETIMEDOUT when the deadline has passed already. */
static int
wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	uint64_t now_ns = event_now_ns(), left_ns;
	struct timespec ts;

	if (deadline_ns <= now_ns)
		return -ETIMEDOUT;
	left_ns = deadline_ns - now_ns;
	ts.tv_sec = (time_t)(left_ns / 1000000000);
	ts.tv_nsec = (long)(left_ns % 1000000000);
	if (ppoll(&pfd, 1, deadline_ns == EVENT_FOREVER ? NULL : &ts,
	    NULL) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static void
put_fds(struct msghdr *mh, union control *ctl, const int *fds, unsigned nfds)
{
	struct cmsghdr *cm;

	memset(ctl, 0, sizeof(*ctl));
	mh->msg_control = ctl->buf;
	mh->msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	cm = CMSG_FIRSTHDR(mh);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
}

/* The kernel counts the descriptors that all processes of a user have sent and
 * nobody has received yet; the limit is that of one process's files. */
#define REFS_NS	UINT64_C(1000000000)

static int
wait_for_refs(uint64_t *end_ns, uint64_t deadline_ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	const uint64_t now = event_now_ns();

	if (*end_ns == 0)
		*end_ns = now + REFS_NS;
	if (now >= deadline_ns)
		return -ETIMEDOUT;
	if (now >= *end_ns)
		return -EMFILE;
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	return 0;
}

int
chan_send(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    const int *fds, unsigned nfds, uint64_t deadline_ns)
{
	struct frame frame = { FRAME_MAGIC, type, (uint32_t)nbytes, nfds };
	struct iovec iov[2] = {
		{ .iov_base = &frame, .iov_len = sizeof(frame) },
		{ .iov_base = (void *)(uintptr_t)buf, .iov_len = nbytes }
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = NITEMS(iov) };
	union control ctl;
	uint64_t refs_ns = 0;
	int rc;

	if (nbytes > CHAN_MAX_BYTES || nfds > CHAN_MAX_FDS)
		return -EINVAL;
	if (nfds > 0)
		put_fds(&mh, &ctl, fds, nfds);
	for (;;) {
		if (sendmsg(c->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno == ECONNRESET)
			return -EPIPE;
		if (errno == ETOOMANYREFS && nfds > 0) {
			if ((rc = wait_for_refs(&refs_ns, deadline_ns)) < 0)
				return rc;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if ((rc = wait_for(c->fd, POLLOUT, deadline_ns)) < 0)
			return rc;
	}
}

/* Collect every fd that the kernel installed, so that none leaks. */
static void
gather_fds(struct msghdr *mh, struct chan_msg *m)
{
	struct cmsghdr *cm;
	size_t nfds;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS)
			continue;
		/* The control buffer has room for no more than m->fds. */
		nfds = MIN((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int),
		    NITEMS(m->fds) - m->nfds);
		memcpy(m->fds + m->nfds, CMSG_DATA(cm), nfds * sizeof(int));
		m->nfds += (uint32_t)nfds;
	}
}

/* Do frame and kernel agree about a packet of nbytes? */
static int
check_frame(const struct frame *frame, const struct msghdr *mh, size_t nbytes,
    const struct chan_msg *m)
{
	if (mh->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EBADMSG;
	if (nbytes < sizeof(*frame) || frame->magic != FRAME_MAGIC ||
	    frame->nbytes != nbytes - sizeof(*frame) ||
	    frame->nfds != m->nfds)
		return -EBADMSG;
	return 0;
}

int
chan_recv(struct chan *c, struct chan_msg *m, uint64_t deadline_ns)
{
	struct frame frame = { 0 };
	struct iovec iov[2] = {
		{ .iov_base = &frame, .iov_len = sizeof(frame) },
		{ .iov_base = m->buf, .iov_len = sizeof(m->buf) }
	};
	union control ctl;
	struct msghdr mh = {
		.msg_iov = iov, .msg_iovlen = NITEMS(iov),
		.msg_control = ctl.buf, .msg_controllen = sizeof(ctl.buf)
	};
	ssize_t n;
	int reset = 0, rc;

	m->type = m->nbytes = m->nfds = 0;
	while ((n = recvmsg(c->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
		/* The peer closed with unread data.  The kernel reports it
		 * once, ahead of the data that the peer sent: read on. */
		if (errno == ECONNRESET) {
			if (reset++)
				return -EPIPE;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if ((rc = wait_for(c->fd, POLLIN, deadline_ns)) < 0)
			return rc;
	}
	gather_fds(&mh, m);
	/* An empty packet looks like end of file; treat it as one. */
	rc = n == 0 ? -EPIPE : check_frame(&frame, &mh, (size_t)n, m);
	if (rc < 0) {
		chan_msg_done(m);
		return rc;
	}
	m->type = frame.type;
	m->nbytes = frame.nbytes;
	return 0;
}

int
chan_take_fd(struct chan_msg *m, unsigned i)
{
	int fd;

	if (i >= m->nfds)
		return -1;
	fd = m->fds[i];
	m->fds[i] = -1;
	return fd;
}

void
chan_msg_done(struct chan_msg *m)
{
	unsigned i;

	for (i = 0; i < m->nfds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->nfds = 0;
}

void
chan_close(struct chan *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
