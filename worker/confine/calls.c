/* worker/confine/calls.c - system calls that a confined worker may make.
 *
 * Every call that is not in this list is denied.  Each entry says who needs the
 * call.  Remove entries that nobody needs; a new entry must be harmless in the
 * hands of an attacker who controls the worker.  Such a worker can use up its
 * cores, corrupt its own results and send wrong data to the coordinator, which
 * validates everything; it can reach no file, no network and no other process,
 * and can run no code that is not in the program. */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/chan.h"
#include "shm/region.h"

enum arg_rule {
	ANY,
	NO_EXEC,	/* third argument: no PROT_EXEC */
	ON_CHANNEL,	/* first argument: the channel */
	ON_SELF,	/* first argument: this process */
	GET_SEALS,	/* second argument: F_GET_SEALS */
	FASTRPC		/* second argument: an ioctl of FastRPC, type 'R' */
};

static const struct permission {
	int nr;
	enum arg_rule rule;
} permissions[] = {
	/* Threads sleep at gates, the stage at its rings; a thread that spins
	 * between jobs yields. */
	{ SCMP_SYS(futex), ANY },
	{ SCMP_SYS(sched_yield), ANY },
	/* SIGSTOP and SIGCONT interrupt a sleep, which then continues. */
	{ SCMP_SYS(restart_syscall), ANY },
	{ SCMP_SYS(clock_nanosleep), ANY },
	/* The vDSO may not have the clock; CPU time of threads. */
	{ SCMP_SYS(clock_gettime), ANY },

	/* Orders and reports, on the channel's socket only. */
	{ SCMP_SYS(recvmsg), ON_CHANNEL },
	{ SCMP_SYS(sendmsg), ON_CHANNEL },
	{ SCMP_SYS(ppoll), ANY },

	/* Files held open: /proc/self/status, the pipe of messages (stderr),
	 * the doorbell of the last ring.  The C library writes its abort message
	 * with writev(). */
	{ SCMP_SYS(pread64), ANY },
	{ SCMP_SYS(read), ANY },
	{ SCMP_SYS(write), ANY },
	{ SCMP_SYS(writev), ANY },
	{ SCMP_SYS(close), ANY },

	/* Attach a new ring after a neighbour was lost: check its seals and
	 * size. */
	{ SCMP_SYS(fcntl), GET_SEALS },
	{ SCMP_SYS(lseek), ANY },

	/* Map rings, and allocate memory for error messages.  No page may
	 * become executable. */
	{ SCMP_SYS(mmap), NO_EXEC },
	{ SCMP_SYS(mprotect), NO_EXEC },
	{ SCMP_SYS(munmap), ANY },
	{ SCMP_SYS(mremap), ANY },
	{ SCMP_SYS(madvise), ANY },
	{ SCMP_SYS(brk), ANY },

	/* The exit status of a device's own process. */
	{ SCMP_SYS(wait4), ANY },

	/* libcdsprpc.so talks to the DSP on the node that it holds open; no
	 * other descriptor is a device.  Untested on silicon. */
	{ SCMP_SYS(ioctl), FASTRPC },

	/* End a thread or the process; abort() signals itself. */
	{ SCMP_SYS(exit), ANY },
	{ SCMP_SYS(exit_group), ANY },
	{ SCMP_SYS(rt_sigprocmask), ANY },
	{ SCMP_SYS(rt_sigaction), ANY },
	{ SCMP_SYS(rt_sigreturn), ANY },
	{ SCMP_SYS(getpid), ANY },
	{ SCMP_SYS(gettid), ANY },
	{ SCMP_SYS(tgkill), ON_SELF },
};

/* Argument n has this value under the mask.  The upper half of an int argument
 * is undefined. */
static struct scmp_arg_cmp
masked_arg(unsigned n, uint32_t mask, int value)
{
	return (struct scmp_arg_cmp){ .arg = n, .op = SCMP_CMP_MASKED_EQ,
	    .datum_a = mask, .datum_b = (uint32_t)value };
}

static int
allow(scmp_filter_ctx ctx, const struct permission *p)
{
	struct scmp_arg_cmp arg = { 0 };

	switch (p->rule) {
	case ANY:
		break;
	case NO_EXEC:
		arg = masked_arg(2, PROT_EXEC, 0);
		break;
	case ON_CHANNEL:
		arg = masked_arg(0, UINT32_MAX, CHAN_FD);
		break;
	case ON_SELF:
		arg = masked_arg(0, UINT32_MAX, getpid());
		break;
	case GET_SEALS:
		arg = masked_arg(1, UINT32_MAX, F_GET_SEALS);
		break;
	case FASTRPC:
		arg = masked_arg(1, 0xff00, 'R' << 8);
		break;
	}
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, p->nr,
	    p->rule != ANY, &arg);
}

/* Read the program back from the file that libseccomp writes. */
static int
export_program(scmp_filter_ctx ctx, struct sock_filter **ret,
    unsigned short *ret_n)
{
	int fd = region_memfd("straddle-filter"), rc;
	struct sock_filter *f = NULL;
	off_t nbytes;

	if (fd < 0)
		return fd;
	if ((rc = seccomp_export_bpf(ctx, fd)) < 0)
		goto out;
	nbytes = lseek(fd, 0, SEEK_END);
	if (nbytes <= 0 || nbytes > BPF_MAXINSNS * (off_t)sizeof(*f)) {
		rc = -EPROTO;
	} else if ((f = malloc((size_t)nbytes)) == NULL) {
		rc = -ENOMEM;
	} else if (pread(fd, f, (size_t)nbytes, 0) != nbytes) {
		free(f);
		rc = -EIO;
	} else {
		*ret = f;
		*ret_n = (unsigned short)((size_t)nbytes / sizeof(*f));
	}
out:
	close(fd);
	return rc;
}

/* A denied call traps, so that the handler can report it.  Calls of another
 * architecture (32-bit on a 64-bit kernel) kill the process. */
int
confine_filter(struct sock_filter **ret, unsigned short *ret_n)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_TRAP);
	unsigned i;
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS);
	for (i = 0; rc == 0 && i < NITEMS(permissions); i++)
		rc = allow(ctx, &permissions[i]);
	if (rc == 0)
		rc = export_program(ctx, ret, ret_n);
	seccomp_release(ctx);
	return rc;
}

void
confine_names(struct confine *c)
{
	unsigned nr, end = 1;		/* 0: no name */
	size_t len;
	char *name;

	for (nr = 0; nr < CONFINE_CALLS_NAMED; nr++) {
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE,
		    (int)nr);
		if (name == NULL)
			continue;
		len = strlen(name) + 1;
		if (len <= sizeof(c->names) - end) {
			memcpy(c->names + end, name, len);
			c->name[nr] = (unsigned short)end;
			end += (unsigned)len;
		}
		free(name);
	}
}
