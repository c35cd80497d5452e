/* shm/chan.h - control messages between the coordinator and one worker.
 * Owns: a SOCK_SEQPACKET socket.  Messages are typed, length-checked, and may
 * carry up to CHAN_MAX_FDS fds.  Knows the framing, not the meaning
 * (wire.h).  Guarantee: a message longer than its buffer, with an unknown
 * frame or with too many fds is -EBADMSG and every fd in it is closed. */
#ifndef SHM_CHAN_H
#define SHM_CHAN_H

#include "config/base.h"
#include "config/err.h"

enum {
	CHAN_FD = 3,			/* where a worker finds its channel */
	CHAN_MAX_BYTES = 64 * 1024,	/* payload of one message */
	CHAN_MAX_FDS = 16
};

struct chan {
	int fd;				/* -1 = closed */
};

struct chan_msg {
	uint32_t type;			/* enum wire_type */
	uint32_t nbytes;		/* payload bytes in buf */
	uint32_t nfds;
	int fds[CHAN_MAX_FDS];		/* the receiver's; -1 once taken */
	_Alignas(16) uint8_t buf[CHAN_MAX_BYTES];
};

/* Make two connected ends, close-on-exec. */
int chan_pair(struct chan *ret_a, struct chan *ret_b, struct err *reterr);

/* Send one message; fds stay the caller's.  Blocks while the peer's buffer is
 * full, up to deadline_ns (absolute, CLOCK_MONOTONIC).
 * -EPIPE: the peer is gone.  -ETIMEDOUT.  Never raises SIGPIPE. */
int chan_send(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    const int *fds, unsigned nfds, uint64_t deadline_ns);

/* Receive one message into m.  0; -ETIMEDOUT; -EPIPE at end of file;
 * -EBADMSG.  deadline_ns 0 = do not wait. */
int chan_recv(struct chan *c, struct chan_msg *m, uint64_t deadline_ns);

/* Take fd i out of a message (it is the caller's now), -1 if there is none. */
int chan_take_fd(struct chan_msg *m, unsigned i);

/* Close the fds that nobody took. */
void chan_msg_done(struct chan_msg *m);

void chan_close(struct chan *c);

#endif
