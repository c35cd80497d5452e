/* shm/mem.h - a session's account of its bytes, by tag, under its cap.
 * Owns: struct mem_ledger.  Called by everything that takes long-lived memory,
 * before it touches it.  Allocates nothing, does not depend on sessions. */
#ifndef SHM_MEM_H
#define SHM_MEM_H

#include "config/base.h"
#include "config/err.h"

enum mem_tag {
	MEM_WEIGHTS, MEM_KV, MEM_COMPUTE, MEM_STAGING, MEM_RINGS, MEM_RUNTIME,
	MEM_EMULATOR,		/* a process that emulates the device */
	MEM_NTAGS
};

/* Invariant: sum of tag_bytes == used_bytes <= cap_bytes;
 * peak_bytes is the largest used_bytes so far. */
struct mem_ledger {
	uint64_t cap_bytes;
	uint64_t used_bytes;
	uint64_t peak_bytes;
	uint64_t tag_bytes[MEM_NTAGS];
	uint64_t tag_peak[MEM_NTAGS];
	uint64_t huge_bytes;	/* part of used_bytes: huge pages asked for */
	char session[MAX_NAME];	/* for messages */
};

void mem_ledger_init(struct mem_ledger *m, const char *session,
    uint64_t cap_bytes);

/* 0, or -ENOMEM with ERR_FIT and a message that names what, session, tag, the
 * bytes asked, the bytes left and the cap.  what: "tensor blk.3.ffn_up". */
int mem_charge(struct mem_ledger *m, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct err *reterr);

/* Give back nbytes, at most what the tag holds (more is a program error). */
void mem_release(struct mem_ledger *m, enum mem_tag tag, uint64_t nbytes);

/* Count the peaks of the tags from here on; the peak of their sum stays. */
void mem_restart_tag_peaks(struct mem_ledger *m);

uint64_t mem_left(const struct mem_ledger *m);
const char *mem_tag_name(enum mem_tag tag);	/* "weights", "kv", ... */

#endif
