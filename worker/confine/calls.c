/* worker/confine/calls.c - what a confined worker may ask of the kernel.
 *
 * Everything that is not in this list is denied.  Each line says who needs the
 * call: one that nobody needs any more must go, and one that is new here must
 * be harmless to a worker that somebody else has taken over.  Such a worker
 * can burn its cores, spoil its own results and lie to the coordinator, which
 * believes nothing that it says; it can reach no file, no network, no other
 * process, and can run no code that was not in the program. */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/chan.h"

enum arg_rule {
	ANY,
	NO_EXEC,	/* third argument: no PROT_EXEC */
	ON_CHANNEL,	/* first argument: the channel */
	ON_SELF,	/* first argument: this process */
	GET_SEALS,	/* second argument: F_GET_SEALS */
	FASTRPC		/* second argument: a request of FastRPC, 'R' */
};

static const struct permission {
	int nr;
	enum arg_rule rule;
} permissions[] = {
	/* Threads sleep at gates, the stage in front of its rings; who spins
	 * between jobs gives way. */
	{ SCMP_SYS(futex), ANY },
	{ SCMP_SYS(sched_yield), ANY },
	/* A sleep goes on where SIGSTOP and SIGCONT have cut it. */
	{ SCMP_SYS(restart_syscall), ANY },
	{ SCMP_SYS(clock_nanosleep), ANY },
	/* Where the vDSO cannot tell the time, and the CPU time of threads. */
	{ SCMP_SYS(clock_gettime), ANY },

	/* Orders and answers.  No other socket, even if one were there. */
	{ SCMP_SYS(recvmsg), ON_CHANNEL },
	{ SCMP_SYS(sendmsg), ON_CHANNEL },
	{ SCMP_SYS(ppoll), ANY },

	/* Files that it holds: its own status, stderr, the bell of the last
	 * ring.  What the C library says before it aborts is a writev(). */
	{ SCMP_SYS(pread64), ANY },
	{ SCMP_SYS(read), ANY },
	{ SCMP_SYS(write), ANY },
	{ SCMP_SYS(writev), ANY },
	{ SCMP_SYS(close), ANY },

	/* A ring made anew beside a lost neighbour comes over the channel: its
	 * seals and size are looked at, and it is mapped. */
	{ SCMP_SYS(fcntl), GET_SEALS },
	{ SCMP_SYS(lseek), ANY },

	/* Memory comes and goes; the allocator has its own when there is an
	 * error to be told.  No page is ever made executable. */
	{ SCMP_SYS(mmap), NO_EXEC },
	{ SCMP_SYS(mprotect), NO_EXEC },
	{ SCMP_SYS(munmap), ANY },
	{ SCMP_SYS(mremap), ANY },
	{ SCMP_SYS(madvise), ANY },
	{ SCMP_SYS(brk), ANY },

	/* Does a device's own process live still, and how did it end? */
	{ SCMP_SYS(wait4), ANY },

	/* libcdsprpc.so speaks with the DSP by them, on the node that it holds:
	 * here, nobody else holds a device.  Untested on silicon. */
	{ SCMP_SYS(ioctl), FASTRPC },

	/* A thread ends, the process ends, or it aborts: a signal to itself. */
	{ SCMP_SYS(exit), ANY },
	{ SCMP_SYS(exit_group), ANY },
	{ SCMP_SYS(rt_sigprocmask), ANY },
	{ SCMP_SYS(rt_sigaction), ANY },
	{ SCMP_SYS(rt_sigreturn), ANY },
	{ SCMP_SYS(getpid), ANY },
	{ SCMP_SYS(gettid), ANY },
	{ SCMP_SYS(tgkill), ON_SELF },
};

/* These bits of argument n have this value; an int has garbage above it. */
static struct scmp_arg_cmp
bits(unsigned n, uint32_t mask, int value)
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
		arg = bits(2, PROT_EXEC, 0);
		break;
	case ON_CHANNEL:
		arg = bits(0, UINT32_MAX, CHAN_FD);
		break;
	case ON_SELF:
		arg = bits(0, UINT32_MAX, getpid());
		break;
	case GET_SEALS:
		arg = bits(1, UINT32_MAX, F_GET_SEALS);
		break;
	case FASTRPC:
		arg = bits(1, 0xff00, 'R' << 8);
		break;
	}
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, p->nr,
	    p->rule != ANY, &arg);
}

/* The program, out of the file that libseccomp writes it to. */
static int
export(scmp_filter_ctx ctx, struct sock_filter **ret, unsigned short *ret_n)
{
	int fd = memfd_create("straddle-filter", MFD_CLOEXEC), rc;
	struct sock_filter *f = NULL;
	off_t nbytes;

	if (fd < 0)
		return -errno;
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

/* What is denied is trapped, so that it can be told; calls of another machine
 * (32-bit ones on a 64-bit kernel) are not even understood. */
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
		rc = export(ctx, ret, ret_n);
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
