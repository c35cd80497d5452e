/* worker/confine/calls.c - system calls that a confined child may make.
 *
 * Every call that is not in these lists is denied.  Each entry says who needs
 * the call.  Remove entries that nobody needs; a new entry must be harmless in
 * the hands of an attacker who controls the worker.  Such a worker can use up
 * its cores, corrupt its own results and send wrong data to the coordinator,
 * which validates everything; it can reach no file, no network and no other
 * process, and can run no code that is not in the program. */
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/devices.h"
#include "confine.h"
#include "shm/chan.h"
#include "shm/region.h"

enum arg_rule {
	ANY,
	NO_EXEC,	/* third argument: no PROT_EXEC */
	ON_CHANNEL,	/* first argument: the channel */
	ON_OUTPUT,	/* first argument: CONFINE_OUTPUT_FD */
	ON_SELF,	/* first argument: this process */
	THIS_THREAD,	/* first argument: 0 */
	GET_SEALS,	/* second argument: F_GET_SEALS */
	ADD_SEALS,	/* F_ADD_SEALS */
	DUP_FD,		/* F_DUPFD_CLOEXEC */
	FASTRPC,	/* second argument: an ioctl of FastRPC, type 'R' */
	DMA_HEAP,	/* of DMA heaps, type 'H' */
	DRM,		/* of a DRM node, type 'd' */
	DMA_BUF,	/* of a DMA buffer, type 'b' */
	/* Calls of the nodes of an Ascend processor.  Their types are capital
	 * letters: from '@' to '_' without 'T', the terminal's.  One rule for
	 * each bit in which a type differs from 'T'. */
	DAVINCI_1, DAVINCI_2, DAVINCI_4, DAVINCI_8, DAVINCI_16,
	ADD_FILTER,	/* first argument: SECCOMP_SET_MODE_FILTER */
	/* Second argument: what a ring may still be told. */
	RING_BUFFERS, RING_FILES, RING_ENABLE
};

struct permission {
	int nr;
	enum arg_rule rule;
};

/* Before and after the load. */
static const struct permission permissions[] = {
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

/* Until the load is done. */
static const struct permission load_permissions[] = {
	/* Read the model: the ring was made before, can only read, and only
	 * these are left to do with it (load/uring.h).  Or pread64(). */
	{ SCMP_SYS(io_uring_enter), ANY },
	{ SCMP_SYS(io_uring_register), RING_BUFFERS },
	{ SCMP_SYS(io_uring_register), RING_FILES },
	{ SCMP_SYS(io_uring_register), RING_ENABLE },
	/* Is the file the planned one?  Drop its pages from the cache. */
	{ SCMP_SYS(fstat), ANY },
	{ SCMP_SYS(fadvise64), ANY },
	/* qsort() asks for the size of memory. */
	{ SCMP_SYS(sysinfo), ANY },
	/* Each thread binds itself to a core after the load. */
	{ SCMP_SYS(sched_setaffinity), THIS_THREAD },
	/* The second step. */
	{ SCMP_SYS(seccomp), ADD_FILTER },
};

/* Further calls: those that some kinds of devices need (config/devices.c), and
 * those of other children (confine.h). */
static const struct {
	unsigned right;
	int load_only;
	struct permission p;
} right_permissions[] = {
	/* Memory that the emulator inherited gets its size when it is mapped,
	 * and keeps it. */
	{ DEVICE_RIGHT_EMULATOR, 1, { SCMP_SYS(ftruncate), ANY } },
	{ DEVICE_RIGHT_EMULATOR, 1, { SCMP_SYS(fcntl), ADD_SEALS } },
	/* Its exit status. */
	{ DEVICE_RIGHT_EMULATOR, 0, { SCMP_SYS(wait4), ANY } },

	/* libcdsprpc.so talks to the DSP on the node that it holds open, and
	 * allocates from the DMA heap; no other descriptor is a device.
	 * Untested on silicon. */
	{ DEVICE_RIGHT_DSP, 0, { SCMP_SYS(ioctl), FASTRPC } },
	{ DEVICE_RIGHT_DSP, 1, { SCMP_SYS(ioctl), DMA_HEAP } },
	/* The tests' stand-in for it allocates memfds. */
	{ DEVICE_RIGHT_DSP, 1, { SCMP_SYS(memfd_create), ANY } },
	{ DEVICE_RIGHT_DSP, 1, { SCMP_SYS(ftruncate), ANY } },
	{ DEVICE_RIGHT_DSP, 1, { SCMP_SYS(fcntl), DUP_FD } },

	/* librknnrt.so talks to the NPU on the DRM node that it holds open, and
	 * exports memory as DMA buffers; no other descriptor is a device.
	 * Untested on silicon. */
	{ DEVICE_RIGHT_NPU, 0, { SCMP_SYS(ioctl), DRM } },
	{ DEVICE_RIGHT_NPU, 0, { SCMP_SYS(ioctl), DMA_BUF } },
	{ DEVICE_RIGHT_NPU, 1, { SCMP_SYS(fcntl), DUP_FD } },
	/* The tests' stand-in for it allocates memfds. */
	{ DEVICE_RIGHT_NPU, 1, { SCMP_SYS(memfd_create), ANY } },
	{ DEVICE_RIGHT_NPU, 1, { SCMP_SYS(ftruncate), ANY } },

	/* CANN talks to the processor on nodes that it holds open; no other
	 * descriptor is a device.  Untested on silicon. */
	{ DEVICE_RIGHT_ASCEND, 0, { SCMP_SYS(ioctl), DAVINCI_1 } },
	{ DEVICE_RIGHT_ASCEND, 0, { SCMP_SYS(ioctl), DAVINCI_2 } },
	{ DEVICE_RIGHT_ASCEND, 0, { SCMP_SYS(ioctl), DAVINCI_4 } },
	{ DEVICE_RIGHT_ASCEND, 0, { SCMP_SYS(ioctl), DAVINCI_8 } },
	{ DEVICE_RIGHT_ASCEND, 0, { SCMP_SYS(ioctl), DAVINCI_16 } },

	/* The converter writes its output, whose size is reserved, and no other
	 * file: those of the model came read-only. */
	{ CONFINE_RIGHT_OUTPUT, 0, { SCMP_SYS(pwrite64), ON_OUTPUT } },
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
allow_on(scmp_filter_ctx ctx, const struct permission *p, int channel)
{
	struct scmp_arg_cmp arg = { 0 };
	unsigned bit;

	switch (p->rule) {
	case ANY:
		break;
	case NO_EXEC:
		arg = masked_arg(2, PROT_EXEC, 0);
		break;
	case ON_CHANNEL:
		arg = masked_arg(0, UINT32_MAX, channel);
		break;
	case ON_OUTPUT:
		arg = masked_arg(0, UINT32_MAX, CONFINE_OUTPUT_FD);
		break;
	case ON_SELF:
		arg = masked_arg(0, UINT32_MAX, getpid());
		break;
	case THIS_THREAD:
		arg = masked_arg(0, UINT32_MAX, 0);
		break;
	case GET_SEALS:
		arg = masked_arg(1, UINT32_MAX, F_GET_SEALS);
		break;
	case ADD_SEALS:
		arg = masked_arg(1, UINT32_MAX, F_ADD_SEALS);
		break;
	case DUP_FD:
		arg = masked_arg(1, UINT32_MAX, F_DUPFD_CLOEXEC);
		break;
	case FASTRPC:
		arg = masked_arg(1, 0xff00, 'R' << 8);
		break;
	case DMA_HEAP:
		arg = masked_arg(1, 0xff00, 'H' << 8);
		break;
	case DRM:
		arg = masked_arg(1, 0xff00, 'd' << 8);
		break;
	case DMA_BUF:
		arg = masked_arg(1, 0xff00, 'b' << 8);
		break;
	case DAVINCI_1:
	case DAVINCI_2:
	case DAVINCI_4:
	case DAVINCI_8:
	case DAVINCI_16:
		bit = 1u << (p->rule - DAVINCI_1);
		arg = masked_arg(1, (0xe0 | bit) << 8,
		    (int)((0x40 | (~(unsigned)'T' & bit)) << 8));
		break;
	case ADD_FILTER:
		arg = masked_arg(0, UINT32_MAX, SECCOMP_SET_MODE_FILTER);
		break;
	case RING_BUFFERS:
		arg = masked_arg(1, UINT32_MAX, IORING_REGISTER_BUFFERS);
		break;
	case RING_FILES:
		arg = masked_arg(1, UINT32_MAX, IORING_REGISTER_FILES);
		break;
	case RING_ENABLE:
		arg = masked_arg(1, UINT32_MAX, IORING_REGISTER_ENABLE_RINGS);
		break;
	}
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, p->nr,
	    p->rule != ANY, &arg);
}

static int
allow(scmp_filter_ctx ctx, const struct permission *p, const int *channels,
    unsigned nchannels)
{
	unsigned i, n = p->rule == ON_CHANNEL ? nchannels : 1;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		rc = allow_on(ctx, p, channels[i]);
	return rc;
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

static int
allow_rights(scmp_filter_ctx ctx, enum confine_step step, unsigned rights)
{
	unsigned i;
	int rc;

	for (i = 0; i < NITEMS(right_permissions); i++) {
		if (!(right_permissions[i].right & rights) ||
		    (right_permissions[i].load_only &&
		    step != CONFINE_BEFORE_LOAD))
			continue;
		rc = allow_on(ctx, &right_permissions[i].p, -1);
		/* Two rights may list the same call. */
		if (rc < 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}

/* A denied call traps, so that the handler can report it.  Calls of another
 * architecture (32-bit on a 64-bit kernel) kill the process. */
int
confine_filter(enum confine_step step, unsigned rights,
    const int *channels, unsigned nchannels, struct sock_filter **ret,
    unsigned short *ret_n)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_TRAP);
	unsigned i;
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH,
	    SCMP_ACT_KILL_PROCESS);
	for (i = 0; rc == 0 && i < NITEMS(permissions); i++)
		rc = allow(ctx, &permissions[i], channels, nchannels);
	for (i = 0; rc == 0 && step == CONFINE_BEFORE_LOAD &&
	    i < NITEMS(load_permissions); i++)
		rc = allow_on(ctx, &load_permissions[i], -1);
	if (rc == 0)
		rc = allow_rights(ctx, step, rights);
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
