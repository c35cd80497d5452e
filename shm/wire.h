/* shm/wire.h - control messages: numbers, payloads, protocol version.
 * Plain structs, fixed widths, same machine and same binary on both ends.  The
 * receiver checks the length of every payload and the range of every field.
 *
 * coordinator                          worker
 *   WIRE_START                 ->
 *                              <-        WIRE_HELLO   (bound, threads made)
 *   WIRE_MODEL, WIRE_EXTENTS*, ->
 *   WIRE_FILE*, WIRE_RINGS
 *   WIRE_LOAD                  ->        loads
 *                              <-        WIRE_READY
 *   (batches travel in the rings; control in order with them)
 *   WIRE_STATS_ASK             ->
 *                              <-        WIRE_STATS
 *   WIRE_RENEW (from WIRE_RINGS on, whenever another worker was lost)
 *                              ->        forgets its sequences, takes new
 *                              <-        rings, WIRE_RENEWED, and goes on
 *   WIRE_DRILL (stress)        ->        does something wrong; no answer
 *   closes the channel         ->        leaves
 * or, instead of WIRE_LOAD:
 *   WIRE_EXPLAIN               ->
 *                              <-        WIRE_PLACED*  (one per op), leaves
 * or, instead of WIRE_MODEL:
 *   WIRE_PROBE                 ->
 *                              <-        WIRE_TRAITS, WIRE_LIMIT*,
 *                                        WIRE_CHECK*, WIRE_SUPPORT*, leaves
 * at any time:                 <-        WIRE_ERROR, then it leaves */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include "config/base.h"
#include "mem.h"

#define WIRE_VERSION	5u

enum wire_type {
	WIRE_START = 1, WIRE_MODEL, WIRE_EXTENTS, WIRE_FILE, WIRE_RINGS,
	WIRE_LOAD, WIRE_EXPLAIN, WIRE_PROBE, WIRE_STATS_ASK, WIRE_RENEW,
	WIRE_DRILL,
	WIRE_HELLO = 64, WIRE_READY, WIRE_STATS, WIRE_PLACED, WIRE_LIMIT,
	WIRE_SUPPORT, WIRE_END, WIRE_ERROR, WIRE_RENEWED,
	WIRE_CHECK, WIRE_TRAITS
};

/* fds: [0] the status page. */
struct wire_start {
	uint32_t version;
	char name[MAX_NAME];
	char device[MAX_NAME];
	char port[MAX_NAME];		/* of several ways to it; "" = any */
	uint64_t domain_bytes;		/* 0 = as many as silicon has */
	uint64_t cpus[MAX_CPUS / 64];	/* never empty */
	int32_t node;			/* -1 = none asked */
	uint32_t priority_kind;		/* enum priority_kind */
	int32_t priority_level;
	uint32_t threads;
	uint32_t own_cores;		/* 1 = each thread has one: no other
					 * session runs on them */
	int32_t verbose;
	uint32_t strict;
	uint64_t cap_bytes;
	uint64_t planned[MEM_NTAGS];	/* what the plan foresaw */
};

/* fds: none.  The payload is struct wire_model, then struct hparams. */
struct wire_model {
	uint32_t first_sublayer, nsublayers;	/* of layers: layers/arch.h */
	uint32_t embedding, head;
	uint32_t batch_rows, head_rows;
	uint32_t ctx_tok, nseqs;
	uint32_t kfmt, vfmt;		/* enum kv_type */
	uint32_t nextents, nfiles;
};

/* WIRE_EXTENTS: an array of struct extent.  fds: none. */

enum { WIRE_FILE_NAME = 128 };

/* fds: [0] buffered description, [1] O_DIRECT description if direct.  The
 * worker refuses a file that is no longer the one that was planned. */
struct wire_file {
	char name[WIRE_FILE_NAME];	/* base name, cut to fit: for messages */
	uint64_t nbytes;
	uint64_t dev, ino;
	int64_t mtime_ns;
	uint32_t direct;
	uint32_t mem_align, off_align;
	uint32_t pad;
};

#define WIRE_PAYS_IN	1u
#define WIRE_PAYS_OUT	2u

/* fds: [0] ring in, [1] ring out, [2] bell of the ring out (head only). */
struct wire_rings {
	uint32_t in_nslots, in_slot_bytes;
	uint32_t out_nslots, out_slot_bytes;
	uint32_t pays;			/* WIRE_PAYS_*: what it is charged */
	uint32_t owns;			/* the same: what it touches first */
	uint32_t has_bell;
	uint32_t spin_ns;
	uint32_t epoch;
	uint32_t pad;
};

/* A new epoch.  fds: the ring in if has_in, the ring out if has_out, of the
 * same sizes as those they replace. */
struct wire_renew {
	uint32_t epoch;
	uint32_t has_in, has_out;
};

/* The stage holds no sequence, and hands on nothing of an older epoch. */
struct wire_renewed {
	uint32_t epoch;
};

struct wire_hello {
	uint32_t version;
	uint32_t pad;
	uint64_t rss_bytes;	/* VmHWM + VmPTE with nothing loaded */
};

/* What a worker gives up after its load (worker/confine/confine.h). */
enum confine_part {
	CONFINE_CAPS, CONFINE_PRIVS, CONFINE_DUMP, CONFINE_FILES,
	CONFINE_CALLS,
	CONFINE_NPARTS
};

struct wire_ready {
	uint64_t file_bytes, read_bytes;
	uint64_t load_ns, wait_ns;
	uint32_t load_path;	/* enum load_path */
	uint32_t direct, registered;
	uint32_t device_ops, cpu_ops;
	int32_t confined[CONFINE_NPARTS];	/* 0 = holds; -errno: why not */
};

struct wire_stats {
	uint64_t tag_bytes[MEM_NTAGS];	/* the ledger's highest, by tag */
	uint64_t ledger_peak;
	uint64_t hwm_bytes, pte_bytes;	/* the kernel's: VmHWM, VmPTE */
	/* Of the emulator, 0 = there is none: private with its page tables;
	 * its program's files; the session's own buffers, once more. */
	uint64_t emulator_bytes, emulator_file_bytes, emulator_mapped_bytes;
	uint64_t huge_asked_bytes;	/* of what the ledger holds now */
	uint64_t huge_bytes;		/* of the process, if huge_known */
	uint32_t huge_known;
	uint32_t huge_off;		/* 1 = switched off for the process */
	uint64_t batches, busy_ns;
	uint64_t device_calls, device_ns;	/* messages to it, their time */
};

struct wire_placed {
	int32_t layer;
	uint32_t on_device;	/* 1 = the session's device, 0 = CPU */
	uint32_t head;		/* part of the head */
	uint32_t barrier_before;		/* the session's threads meet before it */
	char share[8];		/* what each of them does: "columns" */
	char op[16];
	char tensor[80];	/* weight's name, "" = none */
	char reason[128];	/* why not on the device; "" otherwise */
};

/* A kind of device, as far as the plan must know it (worker/device.h). */
struct wire_traits {
	uint32_t layout;	/* enum weight_layout */
	uint32_t copies_rows;	/* 1 = allocates copied_rows_bytes() */
	uint64_t open_bytes;	/* charged when it is opened */
};

struct wire_limit {
	char name[32];		/* "total_bytes" */
	uint64_t value;
	uint32_t known;		/* 0 = unknown: value means nothing */
	uint32_t pad;
	char from[384];		/* how it is known */
};

struct wire_support {
	char op[16];
	char type[16];		/* weight type, "" = none */
	uint32_t yes;
	uint32_t pad;
	char reason[128];
};

struct wire_check {
	char what[24];		/* "device node" */
	uint32_t ok;
	uint32_t pad;
	char text[320];
};

/* WIRE_END: no payload; closes a list. */

struct wire_error {
	uint32_t kind;		/* enum err_kind */
	int32_t rc;
	char msg[1024];
};

/* From WIRE_HELLO on.  What goes wrong, so that it can be seen what holds; from
 * `straddle stress` alone. */
enum drill_kind {
	/* In every read of a load that follows: */
	DRILL_SLOW = 1,		/* it takes n ns longer */
	DRILL_SHORT,		/* it brings n bytes at most */
	DRILL_EIO,		/* the nth, from 0, fails */
	DRILL_END,		/* from the nth on the file is at its end */
	/* Now: */
	DRILL_FILL,		/* charge all that the ledger has left, and touch
				 * it but for n bytes */
	DRILL_CHARGE,		/* charge n bytes */
	DRILL_EAT		/* touch n bytes without a word to the ledger */
};

struct wire_drill {
	uint32_t kind;		/* enum drill_kind */
	uint32_t pad;
	uint64_t n;
};

#endif
