/* worker/procmem.h - this process's memory as the kernel counts it.
 * Owns: an open /proc/self/status, taken at start: a worker opens no path
 * later. */
#ifndef WORKER_PROCMEM_H
#define WORKER_PROCMEM_H

#include "../config/err.h"

struct procmem {
	uint64_t hwm_bytes;	/* VmHWM: peak resident set, shared pages too */
	uint64_t pte_bytes;	/* VmPTE: page tables, now */
};

/* -errno when there is no /proc. */
int procmem_open(int *ret_fd, struct err *reterr);
int procmem_read(int fd, struct procmem *ret);

#endif
