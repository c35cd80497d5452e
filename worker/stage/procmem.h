/* worker/stage/procmem.h - this process's memory as the kernel counts it.
 * Owns: /proc/self/status and smaps_rollup, opened at start: a worker opens no
 * path later. */
#ifndef WORKER_STAGE_PROCMEM_H
#define WORKER_STAGE_PROCMEM_H

#include "config/err.h"

struct procmem {
	uint64_t hwm_bytes;	/* VmHWM: peak resident set, shared pages too */
	uint64_t pte_bytes;	/* VmPTE: page tables, now */
	uint64_t huge_bytes;	/* AnonHugePages, now: whole huge pages */
	int huge_known;		/* 0 = nobody says: huge_bytes means nothing */
	int huge_off;		/* 1 = prctl(PR_SET_THP_DISABLE) holds */
};

struct procmem_files {
	int status_fd;
	int rollup_fd;		/* -1 = there is none */
};

#define PROCMEM_NONE	{ .status_fd = -1, .rollup_fd = -1 }

/* -errno when there is no /proc. */
int procmem_open(struct procmem_files *ret, struct err *reterr);
int procmem_read(const struct procmem_files *f, struct procmem *ret);
void procmem_close(struct procmem_files *f);

/* What the text of the two files says; rollup NULL: it could not be read.
 * -ENOENT: no VmHWM, the one number that nothing works without. */
int procmem_parse(const char *status, const char *rollup,
    struct procmem *ret);

#endif
