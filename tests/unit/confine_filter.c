/* tests/unit/confine_filter.c - the seccomp program as the kernel would run it.
 *
 * unit/confine makes real calls from confined processes.  This program
 * interprets the filter instead, so that it covers every call number, every
 * kind of argument and every architecture, on any machine. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/base.h"
#include "config/devices.h"
#include "shm/chan.h"
#include "worker/confine/confine.h"
#include "worker/confine/filter.h"

#if defined(__x86_64__)
#define NATIVE	AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE	AUDIT_ARCH_AARCH64
#endif

enum { NR_END = 1024, X32_BIT = 0x40000000 };

static struct sock_filter *prog;
static unsigned short nprog;

/* --- classic BPF, as far as seccomp has it --- */

static uint32_t
operate(uint32_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_AND:	return a & b;
	case BPF_OR:	return a | b;
	case BPF_ADD:	return a + b;
	case BPF_SUB:	return a - b;
	case BPF_RSH:	return a >> b;
	case BPF_LSH:	return a << b;
	}
	ck_abort_msg("unknown operation %#x", code);
	return 0;
}

static int
compare(uint32_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:	return a == b;
	case BPF_JGT:	return a > b;
	case BPF_JGE:	return a >= b;
	case BPF_JSET:	return (a & b) != 0;
	}
	ck_abort_msg("unknown comparison %#x", code);
	return 0;
}

/* The program's answer to a call.  Jumps only go forward, so it ends. */
static uint32_t
answer(const struct seccomp_data *d)
{
	const struct sock_filter *f;
	uint32_t a = 0, mem[BPF_MEMWORDS] = { 0 };
	unsigned pc;

	for (pc = 0; pc < nprog; pc++) {
		f = &prog[pc];
		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			if (BPF_MODE(f->code) == BPF_MEM) {
				ck_assert_uint_lt(f->k, BPF_MEMWORDS);
				a = mem[f->k];
				break;
			}
			ck_assert_uint_eq(f->code, BPF_LD | BPF_W | BPF_ABS);
			ck_assert_uint_le(f->k, sizeof(*d) - sizeof(a));
			memcpy(&a, (const char *)d + f->k, sizeof(a));
			break;
		case BPF_ST:
			ck_assert_uint_lt(f->k, BPF_MEMWORDS);
			mem[f->k] = a;
			break;
		case BPF_ALU:
			ck_assert_uint_eq(BPF_SRC(f->code), BPF_K);
			a = operate(f->code, a, f->k);
			break;
		case BPF_JMP:
			ck_assert_uint_eq(BPF_SRC(f->code), BPF_K);
			pc += BPF_OP(f->code) == BPF_JA ? f->k :
			    compare(f->code, a, f->k) ? f->jt : f->jf;
			break;
		case BPF_RET:
			ck_assert_uint_eq(f->code, BPF_RET | BPF_K);
			return f->k;
		default:
			ck_abort_msg("unknown instruction %#x", f->code);
		}
	}
	ck_abort_msg("the program has no end");
	return 0;
}

static uint32_t
answer_to(uint32_t arch, int nr, const uint64_t arg[6])
{
	struct seccomp_data d = { .nr = nr, .arch = arch };

	memcpy(d.args, arg, sizeof(d.args));
	return answer(&d);
}

static int
is_allowed(long nr, const uint64_t arg[6])
{
	uint32_t a = answer_to(NATIVE, (int)nr, arg);

	/* Nothing else: LOG and TRACE would let the call pass. */
	ck_assert_msg(a == SECCOMP_RET_ALLOW || a == SECCOMP_RET_TRAP,
	    "call %ld: answer %#x", nr, a);
	return a == SECCOMP_RET_ALLOW;
}

static void
draw_args(uint64_t arg[6])
{
	unsigned i;

	for (i = 0; i < 6; i++)
		arg[i] = t_rand() >> t_rand_below(64);
}

/* A step, and the rights of a device or of another child. */
static const struct mode {
	enum confine_step step;
	unsigned rights;
} modes[] = {
	{ CONFINE_BEFORE_LOAD, 0 }, { CONFINE_AFTER_LOAD, 0 },
	{ CONFINE_BEFORE_LOAD, DEVICE_RIGHT_EMULATOR },
	{ CONFINE_AFTER_LOAD, DEVICE_RIGHT_EMULATOR },
	{ CONFINE_BEFORE_LOAD, DEVICE_RIGHT_DSP },
	{ CONFINE_AFTER_LOAD, DEVICE_RIGHT_DSP },
	{ CONFINE_BEFORE_LOAD, DEVICE_RIGHT_EMULATOR | DEVICE_RIGHT_DSP },
	{ CONFINE_AFTER_LOAD, DEVICE_RIGHT_EMULATOR | DEVICE_RIGHT_DSP },
	{ CONFINE_BEFORE_LOAD, DEVICE_RIGHT_NPU },
	{ CONFINE_AFTER_LOAD, DEVICE_RIGHT_NPU },
	{ CONFINE_BEFORE_LOAD, DEVICE_RIGHT_ASCEND },
	{ CONFINE_AFTER_LOAD, DEVICE_RIGHT_ASCEND },
	{ CONFINE_BEFORE_LOAD, CONFINE_RIGHT_OUTPUT },
	{ CONFINE_AFTER_LOAD, CONFINE_RIGHT_OUTPUT },
};

/* The channels of a worker that serves two sessions. */
enum { OTHER_CHANNEL = CHAN_FD + 4 };
static const int channels[] = { CHAN_FD, OTHER_CHANNEL };

/* In the process of each test: the program names its process. */
static void
make_filter(const struct mode *m)
{
	free(prog);
	ck_assert_int_eq(confine_filter(m->step, m->rights, channels,
	    NITEMS(channels), &prog, &nprog), 0);
	ck_assert_uint_gt(nprog, 0);
}

/* --- what a worker may call --- */

/* Argument `at` decides: an int, of which the kernel sees 32 bits. */
enum { NEVER_DENIED = -1 };
enum { ALWAYS, LOADING };
static const struct call {
	long nr;
	int at;
	uint32_t good[3], bad[4];	/* 0 after the first: none */
	int when;
	unsigned right;			/* 0 = every device */
} calls[] = {
	{ SYS_futex, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_sched_yield, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_restart_syscall, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_clock_nanosleep, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_clock_gettime, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_ppoll, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_pread64, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_read, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_write, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_writev, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_close, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_lseek, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_munmap, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_mremap, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_madvise, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_brk, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_exit, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_exit_group, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_rt_sigprocmask, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_rt_sigaction, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_rt_sigreturn, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_getpid, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_gettid, NEVER_DENIED, { 0 }, { 0 }, ALWAYS, 0 },
	{ SYS_recvmsg, 0, { CHAN_FD, OTHER_CHANNEL }, { 0, CHAN_FD + 1,
	    UINT32_MAX }, ALWAYS, 0 },
	{ SYS_sendmsg, 0, { CHAN_FD, OTHER_CHANNEL }, { 0, CHAN_FD + 1,
	    UINT32_MAX }, ALWAYS, 0 },
	{ SYS_fcntl, 1, { F_GET_SEALS }, { F_DUPFD, F_SETFL, F_SETOWN,
	    F_ADD_SEALS }, ALWAYS, 0 },
	{ SYS_mmap, 2, { PROT_READ | PROT_WRITE, PROT_READ },
	    { PROT_EXEC, PROT_READ | PROT_EXEC,
	    PROT_READ | PROT_WRITE | PROT_EXEC, UINT32_MAX }, ALWAYS, 0 },
	{ SYS_mprotect, 2, { PROT_READ | PROT_WRITE, PROT_READ },
	    { PROT_EXEC, PROT_READ | PROT_EXEC,
	    PROT_READ | PROT_WRITE | PROT_EXEC, UINT32_MAX }, ALWAYS, 0 },
	{ SYS_tgkill, 0, { 0 }, { 1, 2, UINT32_MAX }, ALWAYS, 0 },
					/* good: this process */
	{ SYS_io_uring_enter, NEVER_DENIED, { 0 }, { 0 }, LOADING, 0 },
	{ SYS_io_uring_register, 1, { IORING_REGISTER_BUFFERS,
	    IORING_REGISTER_FILES, IORING_REGISTER_ENABLE_RINGS },
	    { IORING_UNREGISTER_BUFFERS, IORING_REGISTER_PERSONALITY,
	    IORING_REGISTER_IOWQ_AFF, 1u << 31 }, LOADING, 0 },
	{ SYS_fstat, NEVER_DENIED, { 0 }, { 0 }, LOADING, 0 },
	{ SYS_fadvise64, NEVER_DENIED, { 0 }, { 0 }, LOADING, 0 },
	{ SYS_sysinfo, NEVER_DENIED, { 0 }, { 0 }, LOADING, 0 },
	{ SYS_sched_setaffinity, 0, { 0 }, { 1, 2, UINT32_MAX }, LOADING, 0 },
	{ SYS_seccomp, 0, { SECCOMP_SET_MODE_FILTER },
	    { SECCOMP_SET_MODE_STRICT, SECCOMP_GET_NOTIF_SIZES, UINT32_MAX },
	    LOADING, 0 },
	{ SYS_ftruncate, NEVER_DENIED, { 0 }, { 0 }, LOADING,
	    DEVICE_RIGHT_EMULATOR },
	{ SYS_fcntl, 1, { F_ADD_SEALS }, { F_DUPFD, F_SETFL, F_SETOWN },
	    LOADING, DEVICE_RIGHT_EMULATOR },
	{ SYS_wait4, NEVER_DENIED, { 0 }, { 0 }, ALWAYS,
	    DEVICE_RIGHT_EMULATOR },
	/* FastRPC's type is 'R', that of DMA heaps 'H'; 0x5412 is TIOCSTI. */
	{ SYS_ioctl, 1, { 'R' << 8, 0xc0105200u | 3 }, { 0x5412, 0x5413,
	    0x8901, 'R' }, ALWAYS, DEVICE_RIGHT_DSP },
	{ SYS_ioctl, 1, { 0xc0184800u }, { 0x5412, 0x5413, 0x8901, 'H' },
	    LOADING, DEVICE_RIGHT_DSP },
	{ SYS_memfd_create, NEVER_DENIED, { 0 }, { 0 }, LOADING,
	    DEVICE_RIGHT_DSP },
	{ SYS_ftruncate, NEVER_DENIED, { 0 }, { 0 }, LOADING,
	    DEVICE_RIGHT_DSP },
	{ SYS_fcntl, 1, { F_DUPFD_CLOEXEC }, { F_DUPFD, F_SETFL, F_SETOWN },
	    LOADING, DEVICE_RIGHT_DSP },
	/* A DRM node's type is 'd', that of DMA buffers 'b'. */
	{ SYS_ioctl, 1, { 'd' << 8, 0xc0306441u, 0x40086200u }, { 0x5412,
	    0x5413, 0x8901, 'd' }, ALWAYS, DEVICE_RIGHT_NPU },
	{ SYS_fcntl, 1, { F_DUPFD_CLOEXEC }, { F_DUPFD, F_SETFL, F_SETOWN },
	    LOADING, DEVICE_RIGHT_NPU },
	{ SYS_memfd_create, NEVER_DENIED, { 0 }, { 0 }, LOADING,
	    DEVICE_RIGHT_NPU },
	{ SYS_ftruncate, NEVER_DENIED, { 0 }, { 0 }, LOADING,
	    DEVICE_RIGHT_NPU },
	/* Capital letters without 'T', which is a terminal's. */
	{ SYS_ioctl, 1, { 'M' << 8, 0xc0105500u | 3, 'D' << 8 }, { 0x5412,
	    0x5413, 0x8901, 'M' }, ALWAYS, DEVICE_RIGHT_ASCEND },
	{ SYS_pwrite64, 0, { CONFINE_OUTPUT_FD }, { 0, CHAN_FD,
	    CONFINE_OUTPUT_FD + 1, UINT32_MAX }, ALWAYS,
	    CONFINE_RIGHT_OUTPUT },
};

static int
is_in_mode(const struct call *c, const struct mode *m)
{
	return (c->when == ALWAYS || m->step == CONFINE_BEFORE_LOAD) &&
	    (c->right == 0 || (c->right & m->rights));
}

/* Value i of the list of a call; 0 = there are no more. */
static int
value_of(const uint32_t *list, unsigned n, unsigned i, uint32_t *ret)
{
	if (i >= n || (i > 0 && list[i] == 0))
		return 0;
	*ret = list[i];
	return 1;
}

/* May a process in this mode make the call, with this value of the argument
 * that decides? */
static int
may_call(const struct mode *m, long nr, uint32_t value)
{
	const struct call *c;
	uint32_t good;
	unsigned i;

	for (c = calls; c < calls + NITEMS(calls); c++) {
		if (c->nr != nr || !is_in_mode(c, m))
			continue;
		if (c->at == NEVER_DENIED)
			return 1;
		/* Calls whose type is a capital letter, but not a terminal's. */
		if (c->right == DEVICE_RIGHT_ASCEND)
			return (value >> 8 & 0xe0) == 0x40 &&
			    (value >> 8 & 0xff) != 'T';
		for (i = 0; value_of(c->good, NITEMS(c->good), i, &good); i++)
			if (value == (nr == SYS_tgkill ? (uint32_t)getpid() :
			    good))
				return 1;
	}
	return 0;
}

static int
is_listed(const struct mode *m, long nr)
{
	const struct call *c;

	for (c = calls; c < calls + NITEMS(calls); c++)
		if (c->nr == nr && is_in_mode(c, m))
			return 1;
	return 0;
}

START_TEST(every_other_call_is_denied_whatever_its_arguments)
{
	const struct mode *m;
	uint64_t arg[6];
	unsigned round;
	long nr;

	for (m = modes; m < modes + NITEMS(modes); m++) {
		make_filter(m);
		for (nr = 0; nr < NR_END; nr++)
			for (round = 0; round < 8 && !is_listed(m, nr);
			    round++) {
				draw_args(arg);
				ck_assert_msg(!is_allowed(nr, arg),
				    "mode %td: call %ld is allowed",
				    m - modes, nr);
			}
	}
}
END_TEST

/* Whatever the upper half of the argument and the other arguments have. */
static void
check_value(const struct mode *m, const struct call *c, uint32_t value)
{
	uint64_t arg[6];

	draw_args(arg);
	if (c->at != NEVER_DENIED)
		arg[c->at] = arg[c->at] << 32 | value;
	ck_assert_msg(is_allowed(c->nr, arg) == may_call(m, c->nr, value),
	    "mode %td: call %ld with %#x is %s", m - modes, c->nr, value,
	    may_call(m, c->nr, value) ? "denied" : "allowed");
}

START_TEST(a_call_is_allowed_by_its_one_argument)
{
	const struct mode *m;
	const struct call *c;
	unsigned round, i;
	uint32_t v;

	for (m = modes; m < modes + NITEMS(modes); m++) {
		make_filter(m);
		for (c = calls; c < calls + NITEMS(calls); c++)
			for (round = 0; round < 50; round++) {
				for (i = 0; value_of(c->good, NITEMS(c->good),
				    i, &v); i++)
					check_value(m, c, c->nr == SYS_tgkill ?
					    (uint32_t)getpid() : v);
				for (i = 0; value_of(c->bad, NITEMS(c->bad), i,
				    &v); i++)
					check_value(m, c, v);
			}
	}
}
END_TEST

static void
check_foreign(uint32_t arch)
{
	uint64_t arg[6];
	int nr;

	for (nr = -1; nr < NR_END && arch != NATIVE; nr++) {
		draw_args(arg);
		ck_assert_msg(answer_to(arch, nr, arg) ==
		    SECCOMP_RET_KILL_PROCESS, "architecture %#x: call %d: "
		    "answer %#x", arch, nr, answer_to(arch, nr, arg));
	}
}

/* Numbers of a 32-bit process mean other calls: its 5 is open(), our 5 is not.
 * A 64-bit process makes them with int $0x80. */
START_TEST(a_call_of_another_architecture_kills_the_process)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM,
	    AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_RISCV64, 0,
	    UINT32_MAX };
	const struct mode *m;
	unsigned i;

	for (m = modes; m < modes + NITEMS(modes); m++) {
		make_filter(m);
		for (i = 0; i < NITEMS(foreign); i++)
			check_foreign(foreign[i]);
	}
}
END_TEST

/* x32 has the architecture of x86-64; a bit of the number tells them apart. */
START_TEST(no_call_of_x32_is_allowed)
{
	const struct mode *m;
	uint64_t arg[6];
	int nr;

	for (m = modes; m < modes + NITEMS(modes); m++) {
		make_filter(m);
		for (nr = 0; nr < NR_END; nr++) {
			draw_args(arg);
			ck_assert_msg(answer_to(NATIVE, nr | X32_BIT, arg) !=
			    SECCOMP_RET_ALLOW, "x32: call %d is allowed", nr);
		}
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_other_call_is_denied_whatever_its_arguments,
		a_call_is_allowed_by_its_one_argument,
		a_call_of_another_architecture_kills_the_process,
		no_call_of_x32_is_allowed
	};

	/* libseccomp asks the kernel; qemu's user emulation answers no. */
	if (seccomp_api_get() < 3) {
		puts("seccomp cannot kill a whole process here");
		return T_SKIP;
	}
	return t_main("confine_filter", 30, tests, NITEMS(tests));
}
