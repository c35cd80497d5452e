/* tests/fuzz/chan.c - fuzzer of chan_recv(): hostile packets.
 *
 * Input: packets, each of two bytes of length, one byte with the number of fds, and
 * contents.  chan_recv() must return a packet as the message that was sent, or
 * refuse it with -EBADMSG (an empty one: -EPIPE), and must not leak an fd.
 *
 * A libFuzzer target; with fuzz/main.c it replays files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shm/chan.h"

enum { FDS_MAX = 2 * CHAN_MAX_FDS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void
require(int ok, const char *complaint)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz_chan: %s\n", complaint);
	abort();
}

static void
send_packet(int sock, const uint8_t *data, size_t nbytes, unsigned nfds)
{
	_Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(FDS_MAX *
	    sizeof(int))] = { 0 };
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)data, .iov_len = nbytes
	};
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm = (struct cmsghdr *)ctl;
	unsigned i;

	if (nfds > 0) {
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(cm) + i * sizeof(int), &sock,
			    sizeof(int));
		mh.msg_control = ctl;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	require(sendmsg(sock, &mh, MSG_DONTWAIT) == (ssize_t)nbytes,
	    "the packet was not sent");
}

static void
check_packet(struct chan *a, struct chan *b, const uint8_t *data,
    size_t nbytes, unsigned nfds)
{
	static struct chan_msg m;
	int rc;

	send_packet(a->fd, data, nbytes, nfds);
	rc = chan_recv(b, &m, 0);
	if (rc == 0) {
		require(m.nbytes + 16 == nbytes,
		    "the message's length differs from the packet's");
		require(m.nfds == nfds,
		    "the message's number of fds differs from the packet's");
		require(memcmp(m.buf, data + 16, m.nbytes) == 0,
		    "the message's contents differ from the packet's");
	} else {
		require(rc == (nbytes == 0 ? -EPIPE : -EBADMSG),
		    "chan_recv() returned an unexpected error");
		require(m.nfds == 0, "a refused packet has fds");
	}
	chan_msg_done(&m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct chan a, b;
	size_t len;
	unsigned nfds;
	int low;

	require(chan_pair(&a, &b, NULL) == 0, "cannot create a channel");
	low = dup(a.fd);
	close(low);
	while (nbytes >= 3) {
		len = MIN((size_t)(data[0] | data[1] << 8), nbytes - 3);
		nfds = data[2] % (FDS_MAX + 1);
		check_packet(&a, &b, data + 3, len, nfds);
		data += 3 + len;
		nbytes -= 3 + len;
		require(dup(a.fd) == low, "an fd leaked");
		close(low);
	}
	chan_close(&a);
	chan_close(&b);
	return 0;
}
