/* worker/stage/procmem.h - this process's memory as the kernel counts it.
 * Owns: /proc/self/status and smaps_rollup, opened at start because a confined
 * worker opens no path.  Called by the worker's main and orders. */
#ifndef WORKER_STAGE_PROCMEM_H
#define WORKER_STAGE_PROCMEM_H

#include "config/err.h"

struct procmem {
	uint64_t hwm_bytes;	/* VmHWM: peak resident set, shared pages too */
	uint64_t pte_bytes;	/* VmPTE: page tables, now */
	uint64_t huge_bytes;	/* AnonHugePages, now: whole huge pages */
	int huge_known;		/* 0 = unknown: ignore huge_bytes */
	int huge_off;		/* 1 = prctl(PR_SET_THP_DISABLE) is set */
};

struct procmem_files {
	int status_fd;
	int rollup_fd;		/* -1 = none */
};

#define PROCMEM_NONE	{ .status_fd = -1, .rollup_fd = -1 }

/* -errno when there is no /proc. */
int procmem_open(struct procmem_files *ret, struct err *reterr);
int procmem_read(const struct procmem_files *f, struct procmem *ret);
void procmem_close(struct procmem_files *f);

/* Parse the text of the two files; rollup NULL: it could not be read.  -ENOENT:
 * status has no VmHWM, which the memory table needs. */
int procmem_parse(const char *status, const char *rollup,
    struct procmem *ret);

#endif
