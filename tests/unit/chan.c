/* tests/unit/chan.c - tests of the control channel: framing, fds, deadlines,
 * hostile peers. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/chan.h"
#include "shm/event.h"

#define MS	UINT64_C(1000000)

static struct chan a, b;
static struct chan_msg msg;

static void
open_pair(void)
{
	struct err e;

	t_ok(chan_pair(&a, &b, &e), &e);
}

static void
close_pair(void)
{
	chan_close(&a);
	chan_close(&b);
	chan_close(&b);		/* harmless */
}

static uint64_t
deadline_in(uint64_t ns)
{
	return event_now_ns() + ns;
}

/* The lowest free fd number, which grows when an fd leaks. */
static int
lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

/* Send a raw packet, as a hostile peer could. */
static void
send_raw(const void *buf, size_t nbytes, unsigned nfds)
{
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)buf, .iov_len = nbytes
	};
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	_Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(64 * sizeof(int))];
	struct cmsghdr *cm = (struct cmsghdr *)ctl;
	unsigned i;

	if (nfds > 0) {
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(cm) + i * sizeof(int), &a.fd,
			    sizeof(int));
		mh.msg_control = ctl;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	}
	ck_assert_int_eq(sendmsg(a.fd, &mh, 0), (ssize_t)nbytes);
}

/* Store the bytes of a valid packet without fds; returns their number. */
static size_t
make_valid_packet(uint8_t *buf, size_t len)
{
	ssize_t n;

	ck_assert_int_eq(chan_send(&a, 7, "hello", 5, NULL, 0, 0), 0);
	n = recv(b.fd, buf, len, 0);
	ck_assert_int_gt(n, 5);
	return (size_t)n;
}

START_TEST(messages_of_every_size_arrive_whole_and_in_order)
{
	static const size_t sizes[] = {
		0, 1, 15, 4096, CHAN_MAX_BYTES - 1, CHAN_MAX_BYTES
	};
	uint8_t *buf = malloc(CHAN_MAX_BYTES);
	unsigned i;
	size_t k;

	for (k = 0; k < CHAN_MAX_BYTES; k++)
		buf[k] = (uint8_t)t_rand();
	open_pair();
	for (i = 0; i < NITEMS(sizes); i++) {
		ck_assert_int_eq(chan_send(&a, i, buf, sizes[i], NULL, 0,
		    deadline_in(1000 * MS)), 0);
		if (i % 2 == 0)		/* two in flight */
			continue;
		for (k = i - 1; k <= i; k++) {
			ck_assert_int_eq(chan_recv(&b, &msg,
			    deadline_in(1000 * MS)), 0);
			ck_assert_uint_eq(msg.type, k);
			ck_assert_uint_eq(msg.nbytes, sizes[k]);
			ck_assert_uint_eq(msg.nfds, 0);
			ck_assert_mem_eq(msg.buf, buf, sizes[k]);
		}
	}
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -ETIMEDOUT);
	close_pair();
	free(buf);
}
END_TEST

START_TEST(both_directions_are_independent)
{
	open_pair();
	ck_assert_int_eq(chan_send(&a, 1, "to b", 4, NULL, 0, 0), 0);
	ck_assert_int_eq(chan_send(&b, 2, "to a", 4, NULL, 0, 0), 0);
	ck_assert_int_eq(chan_recv(&a, &msg, 0), 0);
	ck_assert_uint_eq(msg.type, 2);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	ck_assert_uint_eq(msg.type, 1);
	close_pair();
}
END_TEST

START_TEST(fds_arrive_close_on_exec_and_belong_to_the_receiver)
{
	struct stat sent[CHAN_MAX_FDS], got;
	int fds[CHAN_MAX_FDS], fd, low;
	unsigned i;

	open_pair();
	low = lowest_fd();
	for (i = 0; i < CHAN_MAX_FDS; i++) {
		fds[i] = memfd_create("t", 0);
		fstat(fds[i], &sent[i]);
	}
	ck_assert_int_eq(chan_send(&a, 3, "x", 1, fds, CHAN_MAX_FDS, 0), 0);
	for (i = 0; i < CHAN_MAX_FDS; i++)
		close(fds[i]);		/* the sender still owns them */
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	ck_assert_uint_eq(msg.nfds, CHAN_MAX_FDS);
	for (i = 0; i < CHAN_MAX_FDS; i += 2) {
		fd = chan_take_fd(&msg, i);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		fstat(fd, &got);
		ck_assert_uint_eq(got.st_ino, sent[i].st_ino);
		ck_assert_int_eq(chan_take_fd(&msg, i), -1);
		close(fd);
	}
	ck_assert_int_eq(chan_take_fd(&msg, CHAN_MAX_FDS), -1);
	chan_msg_done(&msg);		/* closes the other half */
	chan_msg_done(&msg);
	ck_assert_int_eq(lowest_fd(), low);
	close_pair();
}
END_TEST

START_TEST(oversized_messages_are_refused_before_sending)
{
	int fds[CHAN_MAX_FDS + 1] = { 0 };

	open_pair();
	ck_assert_int_eq(chan_send(&a, 1, msg.buf, CHAN_MAX_BYTES + 1, NULL,
	    0, 0), -EINVAL);
	ck_assert_int_eq(chan_send(&a, 1, msg.buf, SIZE_MAX, NULL, 0, 0),
	    -EINVAL);
	ck_assert_int_eq(chan_send(&a, 1, NULL, 0, fds, CHAN_MAX_FDS + 1, 0),
	    -EINVAL);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -ETIMEDOUT);
	close_pair();
}
END_TEST

START_TEST(a_corrupt_packet_is_ebadmsg_and_its_fds_are_closed)
{
	uint8_t good[64], bad[64];
	size_t n, i;
	int low;

	open_pair();
	low = lowest_fd();
	n = make_valid_packet(good, sizeof(good));
	for (i = 0; i < n - 5; i++) {	/* any byte of the header */
		memcpy(bad, good, n);
		bad[i] ^= 0x40;
		send_raw(bad, n, 0);
		if (i >= 4 && i < 8) {		/* any type is valid */
			ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
			continue;
		}
		ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
		send_raw(bad, n, 3);
		ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
		ck_assert_uint_eq(msg.nfds, 0);
		ck_assert_int_eq(lowest_fd(), low);
	}
	for (i = 1; i < n; i++) {	/* shorter than its header says */
		send_raw(good, i, 1);
		ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
	}
	memset(bad, 0, sizeof(bad));	/* longer than its header says */
	memcpy(bad, good, n);
	send_raw(bad, n + 1, 0);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
	send_raw(good, n, 1);		/* an fd that its header omits */
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
	send_raw(good, n, 0);		/* the channel still works */
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	ck_assert_mem_eq(msg.buf, "hello", 5);
	ck_assert_int_eq(lowest_fd(), low);
	close_pair();
}
END_TEST

/* qemu-user does not set MSG_CTRUNC: truncated fds cannot be detected there. */
static int
sets_msg_ctrunc(void)
{
	_Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(sizeof(int))];
	struct msghdr mh = {
		.msg_control = ctl, .msg_controllen = sizeof(ctl)
	};
	struct cmsghdr *cm = (struct cmsghdr *)ctl;
	uint8_t byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	int fd[2];			/* padding leaves room for two */

	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	send_raw("x", 1, 5);
	ck_assert_int_eq(recvmsg(b.fd, &mh, 0), 1);
	memcpy(fd, CMSG_DATA(cm), cm->cmsg_len - CMSG_LEN(0));
	close(fd[0]);
	if (cm->cmsg_len > CMSG_LEN(sizeof(int)))
		close(fd[1]);
	return (mh.msg_flags & MSG_CTRUNC) != 0;
}

/* The header agrees with what fits into the buffers, but the packet has more:
 * only the kernel's flags show it. */
START_TEST(too_many_fds_or_bytes_are_ebadmsg)
{
	static _Alignas(4) uint8_t big[CHAN_MAX_BYTES + 4096];
	uint32_t *frame = (uint32_t *)(void *)big;	/* 2: nbytes, 3: nfds */
	size_t n;
	int low;

	open_pair();
	if (!sets_msg_ctrunc()) {
		close_pair();
		return;
	}
	low = lowest_fd();
	n = make_valid_packet(big, sizeof(big));
	frame[3] = CHAN_MAX_FDS;
	send_raw(big, n, CHAN_MAX_FDS);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	chan_msg_done(&msg);
	send_raw(big, n, CHAN_MAX_FDS + 1);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
	send_raw(big, n, 64);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);

	frame[2] = CHAN_MAX_BYTES;
	frame[3] = 2;
	send_raw(big, CHAN_MAX_BYTES + n - 5, 2);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	chan_msg_done(&msg);
	send_raw(big, CHAN_MAX_BYTES + n - 4, 2);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EBADMSG);
	ck_assert_int_eq(lowest_fd(), low);
	close_pair();
}
END_TEST

START_TEST(an_empty_packet_with_fds_leaks_none)
{
	int low;

	open_pair();
	low = lowest_fd();
	send_raw("", 0, 4);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -EPIPE);
	ck_assert_int_eq(lowest_fd(), low);
	close_pair();
}
END_TEST

START_TEST(a_closed_peer_is_epipe_without_a_signal)
{
	open_pair();
	ck_assert_int_eq(chan_send(&a, 9, "last", 4, NULL, 0, 0), 0);
	chan_close(&a);
	ck_assert_int_eq(chan_send(&b, 1, "x", 1, NULL, 0, deadline_in(MS)),
	    -EPIPE);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	ck_assert_mem_eq(msg.buf, "last", 4);
	ck_assert_int_eq(chan_recv(&b, &msg, deadline_in(1000 * MS)), -EPIPE);
	close_pair();

	open_pair();			/* a message was left unread */
	ck_assert_int_eq(chan_send(&b, 9, "lost", 4, NULL, 0, 0), 0);
	ck_assert_int_eq(chan_send(&a, 9, "why", 3, NULL, 0, 0), 0);
	chan_close(&a);
	ck_assert_int_eq(chan_recv(&b, &msg, deadline_in(1000 * MS)), 0);
	ck_assert_mem_eq(msg.buf, "why", 3);
	ck_assert_int_eq(chan_recv(&b, &msg, deadline_in(1000 * MS)), -EPIPE);
	ck_assert_int_eq(chan_recv(&b, &msg, deadline_in(1000 * MS)), -EPIPE);
	close_pair();
}
END_TEST

START_TEST(waits_end_at_their_deadlines)
{
	uint64_t deadline;
	int rc, n = 0;

	open_pair();
	deadline = deadline_in(30 * MS);
	ck_assert_int_eq(chan_recv(&b, &msg, deadline), -ETIMEDOUT);
	ck_assert_uint_ge(event_now_ns(), deadline);
	while ((rc = chan_send(&a, 1, msg.buf, CHAN_MAX_BYTES, NULL, 0, 0)) ==
	    0)
		n++;
	ck_assert_int_eq(rc, -ETIMEDOUT);
	ck_assert_int_ge(n, 1);
	deadline = deadline_in(30 * MS);
	ck_assert_int_eq(chan_send(&a, 1, msg.buf, CHAN_MAX_BYTES, NULL, 0,
	    deadline), -ETIMEDOUT);
	ck_assert_uint_ge(event_now_ns(), deadline);
	while (n-- > 0)
		ck_assert_int_eq(chan_recv(&b, &msg, 0), 0);
	ck_assert_int_eq(chan_recv(&b, &msg, 0), -ETIMEDOUT);
	close_pair();
}
END_TEST

START_TEST(a_sender_waits_for_a_slow_reader)
{
	enum { COUNT = 50 };
	int i, status;
	pid_t pid;

	open_pair();
	if ((pid = fork()) == 0) {
		for (i = 0; i < COUNT; i++)
			if (chan_send(&a, (uint32_t)i, msg.buf, CHAN_MAX_BYTES,
			    NULL, 0, EVENT_FOREVER) < 0)
				_exit(1);
		_exit(0);
	}
	chan_close(&a);
	for (i = 0; i < COUNT; i++) {
		usleep(1000);
		ck_assert_int_eq(chan_recv(&b, &msg, EVENT_FOREVER), 0);
		ck_assert_uint_eq(msg.type, i);
		ck_assert_uint_eq(msg.nbytes, CHAN_MAX_BYTES);
	}
	ck_assert_int_eq(chan_recv(&b, &msg, EVENT_FOREVER), -EPIPE);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close_pair();
}
END_TEST

START_TEST(the_pair_is_close_on_exec)
{
	open_pair();
	ck_assert_int_eq(fcntl(a.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(b.fd, F_GETFD), FD_CLOEXEC);
	close_pair();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		messages_of_every_size_arrive_whole_and_in_order,
		both_directions_are_independent,
		fds_arrive_close_on_exec_and_belong_to_the_receiver,
		oversized_messages_are_refused_before_sending,
		a_corrupt_packet_is_ebadmsg_and_its_fds_are_closed,
		too_many_fds_or_bytes_are_ebadmsg,
		an_empty_packet_with_fds_leaks_none,
		a_closed_peer_is_epipe_without_a_signal,
		waits_end_at_their_deadlines,
		a_sender_waits_for_a_slow_reader,
		the_pair_is_close_on_exec
	};

	return t_main("chan", 60, tests, NITEMS(tests));
}
