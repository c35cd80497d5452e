/* shm/wire.h - control messages: numbers, payloads, protocol version.
 * Plain structs of fixed widths; both ends run the same binary on the same
 * machine.  The receiver checks the length of every payload and the range of
 * every field.
 *
 * coordinator                          worker
 *   WIRE_SHARE* (if the worker ->
 *   serves several sessions)
 *   WIRE_START                 ->
 *                              <-        WIRE_HELLO   (bound, threads made)
 *   WIRE_CONFINE               ->        opens its device, gives up most
 *                                        rights
 *   WIRE_MODEL, WIRE_EXTENTS*, ->
 *   WIRE_FILE*, WIRE_RINGS
 *   WIRE_LOAD                  ->        loads, gives up more rights
 *                              <-        WIRE_READY
 *   (batches travel in the rings, with control that must stay in order)
 *   WIRE_STATS_ASK             ->
 *                              <-        WIRE_STATS
 *   WIRE_RENEW (any time after WIRE_RINGS, when another worker was lost)
 *                              ->        forgets its sequences, takes new
 *                              <-        rings, WIRE_RENEWED, goes on
 *   WIRE_DRILL (stress)        ->        injects a fault; no answer
 *   closes the channel         ->        leaves
 * or, instead of WIRE_LOAD:
 *   WIRE_EXPLAIN               ->
 *                              <-        WIRE_PLACED*  (one per op), leaves
 * or, instead of WIRE_CONFINE:
 *   WIRE_PROBE                 ->
 *                              <-        WIRE_TRAITS, WIRE_LIMIT*,
 *                                        WIRE_CHECK*, WIRE_VERDICT if any,
 *                                        WIRE_SUPPORT*, leaves
 *   WIRE_VERIFY                ->        opens its device, tests it
 *                              <-        WIRE_VERIFIED* (one per operation and
 *                                        type), leaves
 * at any time:                 <-        WIRE_ERROR, then it leaves */
#ifndef SHM_WIRE_H
#define SHM_WIRE_H

#include "config/base.h"
#include "layout.h"
#include "mem.h"

#define WIRE_VERSION	14u

enum wire_type {
	WIRE_START = 1, WIRE_MODEL, WIRE_EXTENTS, WIRE_FILE, WIRE_RINGS,
	WIRE_LOAD, WIRE_EXPLAIN, WIRE_PROBE, WIRE_STATS_ASK, WIRE_RENEW,
	WIRE_DRILL, WIRE_CONFINE, WIRE_VERIFY, WIRE_SHARE,
	WIRE_HELLO = 64, WIRE_READY, WIRE_STATS, WIRE_PLACED, WIRE_LIMIT,
	WIRE_SUPPORT, WIRE_END, WIRE_ERROR, WIRE_RENEWED,
	WIRE_CHECK, WIRE_TRAITS, WIRE_VERIFIED, WIRE_VERDICT
};

/* First, where sessions share a worker: how many, with the first one.  fds: the
 * channels of further ones, which get orders of their own; more in the next
 * message until there are so many. */
struct wire_share {
	uint32_t nsessions;
};

/* fds: [0] the status page. */
struct wire_start {
	uint32_t version;
	char name[MAX_NAME];
	char device[MAX_NAME];
	char port[MAX_NAME];		/* way to reach it; "" = any */
	uint64_t domain_bytes;		/* address space; 0 = default */
	int32_t iommu_domain;		/* its number; -1 = none */
	uint32_t pad;
	uint64_t cpus[MAX_CPUS / 64];	/* never empty */
	int32_t node;			/* -1 = none asked */
	uint32_t priority_kind;		/* enum priority_kind */
	int32_t priority_level;
	uint32_t threads;
	uint32_t own_cores;		/* 1 = each thread has a core that no
					 * other session uses */
	int32_t verbose;
	uint32_t strict;
	uint64_t cap_bytes;
	uint64_t planned[MEM_NTAGS];	/* bytes by tag, from the plan */
	struct device_choice choice;	/* of the plan */
};

/* fds: none.  No part of the model follows before it. */
struct wire_confine {
	uint32_t opens_device;	/* 0 = no load follows: WIRE_EXPLAIN */
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

/* fds: [0] opened buffered, [1] opened with O_DIRECT if direct.  The worker
 * refuses a file that differs from the planned one. */
struct wire_file {
	char name[WIRE_FILE_NAME];	/* base name for messages, truncated */
	uint64_t nbytes;
	uint64_t dev, ino;
	int64_t mtime_ns, ctime_ns;
	uint32_t direct;
	uint32_t mem_align, off_align;
	uint32_t pad;
};

#define WIRE_PAYS_IN	1u
#define WIRE_PAYS_OUT	2u

/* fds: [0] input ring, [1] output ring, [2] doorbell of the output ring (head
 * only). */
struct wire_rings {
	uint32_t in_nslots, in_slot_bytes;
	uint32_t out_nslots, out_slot_bytes;
	uint32_t pays;			/* WIRE_PAYS_*: charged to it */
	uint32_t owns;			/* WIRE_PAYS_*: touched first by it */
	uint32_t has_bell;
	uint32_t spin_ns;
	uint32_t epoch;
	uint32_t pad;
};

/* A new epoch.  fds: the input ring if has_in, the output ring if has_out, with
 * the geometry of the rings that they replace. */
struct wire_renew {
	uint32_t epoch;
	uint32_t has_in, has_out;
};

/* The stage holds no sequence and drops slots of older epochs. */
struct wire_renewed {
	uint32_t epoch;
};

struct wire_hello {
	uint32_t version;
	uint32_t pad;
	uint64_t rss_bytes;	/* VmHWM + VmPTE with nothing loaded */
};

/* Rights that a worker gives up before and after its load
 * (worker/confine/confine.h). */
enum confine_part {
	CONFINE_CAPS, CONFINE_PRIVS, CONFINE_DUMP, CONFINE_FILES,
	CONFINE_LOAD, CONFINE_CALLS,
	CONFINE_NPARTS
};

struct wire_ready {
	uint64_t file_bytes, read_bytes;
	uint64_t load_ns, wait_ns;
	uint64_t loaded_ns;	/* event_now_ns() when the last weight was read */
	uint64_t reserve_ns;	/* device opened, memory reserved and touched */
	uint32_t load_path;	/* enum load_path */
	uint32_t direct, registered;
	uint32_t device_ops, cpu_ops;
	int32_t confined[CONFINE_NPARTS];	/* 0 = in force, else -errno */
};

struct wire_stats {
	uint64_t tag_bytes[MEM_NTAGS];	/* the ledger's peak, by tag */
	uint64_t ledger_peak;
	uint64_t hwm_bytes, pte_bytes;	/* VmHWM and VmPTE */
	/* Resident memory of the device's emulator, 0 = none: private memory
	 * and page tables; its program files; the session's buffers, mapped
	 * a second time. */
	uint64_t emulator_bytes, emulator_file_bytes, emulator_mapped_bytes;
	uint64_t huge_asked_bytes;	/* charged now with huge pages asked */
	uint64_t huge_bytes;		/* AnonHugePages, if huge_known */
	uint32_t huge_known;
	uint32_t huge_off;		/* 1 = disabled for the process */
	uint64_t batches, busy_ns;
	uint64_t device_calls, device_ns;	/* spans run, their time */
	/* As the device's library counts them, 0 = it has no memory of its own:
	 * see struct device_account. */
	uint64_t device_bytes, slack_bytes, pinned_bytes, apart_bytes;
};

struct wire_placed {
	int32_t layer;
	uint32_t on_device;	/* 1 = the session's device, 0 = CPU */
	uint32_t head;		/* part of the head */
	uint32_t barrier_before;	/* the threads wait for each other */
	char share[8];		/* how threads divide it: "columns" */
	char op[16];
	char tensor[80];	/* weight's name, "" = none */
	char reason[128];	/* struct placed_op (layers/place.h) */
};

/* The traits of a kind of device that the plan needs (worker/device.h). */
struct wire_traits {
	struct device_choice choice;
	uint32_t copies_rows;	/* 1 = allocates copied_rows_bytes() */
	uint64_t open_bytes;	/* charged when it is opened */
	/* As in struct device_probe. */
	uint32_t ascend_fns;
	uint32_t npu_cores, npu_segment;
	uint64_t npu_context_bytes;
	uint32_t ascend_has_memory, ascend_cut_k, ascend_has_slots;
	uint32_t ascend_workspace_percent;
	uint64_t ascend_granule_bytes, ascend_workspace_bytes;
	uint64_t ascend_graph_bytes;
};

/* WIRE_PROBE: what the coordinator has of both.  fds: none. */
struct wire_probe {
	uint32_t has_verdict, has_shapes;
	uint32_t is_next;		/* the verdict is of another device of
					 * the same run, to be used as it is */
	uint32_t pad;
	struct device_verdict verdict;	/* of an earlier probe */
	struct device_shapes shapes;	/* of the model */
};

/* The results of trials, if they are worth keeping. */
struct wire_verdict {
	uint32_t is_kept;	/* 1 = the one that came with WIRE_PROBE */
	uint32_t is_partial;	/* 1 = no time was left: for this run only */
	char why[160];		/* it was not taken, or "" */
	struct device_verdict verdict;
};

struct wire_limit {
	char name[32];		/* "total_bytes" */
	uint64_t value;
	uint32_t known;		/* 0 = unknown: ignore value */
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

enum selftest_verdict {
	SELFTEST_UNCLAIMED,	/* the device does not claim it: reason */
	SELFTEST_OK,
	SELFTEST_WRONG,
	SELFTEST_MISSED,	/* claimed, but not tested */
	SELFTEST_NVERDICTS
};

/* An operation of a device, compared with the reference kernels
 * (worker/stage/selftest.h). */
struct wire_verified {
	char op[16];		/* "layer" = all of one; "" = no result yet:
				 * the test goes on */
	char type[16];		/* of weights, keys and values, "" = none */
	uint32_t verdict;	/* enum selftest_verdict */
	float got, want;	/* where the error is largest */
	uint32_t pad;
	uint64_t n;		/* numbers compared */
	double error, limit;	/* in units of a row's root mean square */
	char reason[128];
};

/* WIRE_END: no payload; closes a list. */

struct wire_error {
	uint32_t kind;		/* enum err_kind */
	int32_t rc;
	char msg[1024];
};

/* Faults to inject, any time after WIRE_HELLO, so that `straddle stress` can
 * show which limits hold.  No other command sends them. */
enum drill_kind {
	/* In every read of the following load: */
	DRILL_SLOW = 1,		/* each takes n ns longer */
	DRILL_SHORT,		/* each returns n bytes at most */
	DRILL_EIO,		/* the nth, from 0, fails */
	DRILL_END,		/* from the nth on the file is at its end */
	/* Now: */
	DRILL_FILL,		/* charge all the ledger has left, and touch all
				 * of it but n bytes */
	DRILL_CHARGE,		/* charge n bytes */
	DRILL_EAT		/* touch n bytes without charging them */
};

struct wire_drill {
	uint32_t kind;		/* enum drill_kind */
	uint32_t pad;
	uint64_t n;
};

#endif
