/* coordinator/plan/plan.h - the part of the model that each session holds, and
 * every byte that it will use.
 * Owns: struct plan.  Called by the engine, and read by sessions and tables.
 * Depends on sizes only: it opens no file and starts no process. */
#ifndef COORDINATOR_PLAN_PLAN_H
#define COORDINATOR_PLAN_PLAN_H

#include "config/conf.h"
#include "config/room.h"
#include "kernels/ascend/work.h"
#include "kernels/rknpu/work.h"
#include "layers/model.h"
#include "layers/program.h"
#include "shm/layout.h"
#include "shm/mem.h"

/* Units are the model's: the embedding, two sublayers for each layer
 * (attention, and the feed-forward part), the output head.  Unless the config
 * asks for half layers, the two sublayers of a layer stay together. */

/* Slots of a ring.  Between stages: two, so that one is filled while the other
 * is read; four, unless they are large, between stages that run in parallel, so
 * that one slow batch does not stop the neighbours.  Into the first stage: small
 * ones for ids.  Out of the last stage: two for blocks of logits. */
enum { SLOTS_IDS = 4, SLOTS_STAGE = 2, SLOTS_PARALLEL = 4, SLOTS_LOGITS = 2 };
#define SLOT_LARGE	(8 * MIB)

/* The sessions that are served by the same worker process as a session, itself
 * included: their number, the first of them, and the sum of their threads. */
struct plan_worker {
	unsigned n, first, threads;
};

struct plan_session {
	const struct session_conf *conf;
	struct plan_worker worker;
	uint32_t u0, u1;		/* units [u0, u1) */
	int embedding, head;
	uint32_t first_sublayer, nsublayers;	/* arch.h */
	unsigned threads;
	int own_cores;			/* no other session uses conf's cores */
	struct cpuset cores;		/* that its threads run on: with
					 * own_cores the fastest of conf's */
	uint64_t cap_bytes;
	char lowered_by[ROOM_BY];	/* what lowered the cap; "" = nothing */
	const struct plan_limits *limits;	/* of its device; NULL = none */
	const struct plan_limits *capped_by;	/* limits, or NULL = conf */
	uint64_t bytes[MEM_NTAGS];	/* memory, exact, by tag */
	uint64_t total_bytes;		/* sum of bytes[] */
	uint64_t device_bytes;		/* of its device's own memory, a bound;
					 * counted in bytes[] too */
	uint64_t device_share;		/* of what is free there, by the caps of
					 * the sessions on it; 0 = no limit */
	uint64_t file_bytes;		/* read from the file */
	uint64_t token_bytes;		/* weights read for each token */
	double row_time;		/* of a prompt row, in any unit */
};

struct plan {
	const struct model *model;
	int half_layers;		/* cuts may be inside a layer */
	uint32_t ctx_tok, batch_rows, head_rows, nseqs;
	int charged_once;			/* as in plan_env */
	enum kv_type kfmt, vfmt;
	/* The plan exceeds this room by so much; NULL = it fits into all. */
	const struct plan_room *short_room;
	uint64_t short_bytes;
	unsigned nsessions;
	struct plan_session session[MAX_SESSIONS];
};

/* Memory of this machine for the sessions of one NUMA node, or for all. */
struct plan_room {
	struct room room;
	int node;			/* -1 = for all sessions */
};

enum { PLAN_ROOMS = 1 + MAX_SESSIONS };

/* Limits and traits of a session's device, as probed. */
struct plan_limits {
	uint64_t total_bytes;		/* UINT64_MAX = no limit */
	uint64_t largest_bytes;		/* of one buffer; 0 = no limit */
	uint64_t maps;			/* buffers at once; 0 = no limit */
	/* Memory of the emulator's process; 0 = there is none. */
	uint64_t library_bytes;		/* that its library takes in a worker */
	uint64_t emulator_bytes;	/* before it maps a session's buffers */
	uint64_t emulator_file_bytes;	/* page cache of its program */
	enum weight_layout layout;
	struct device_choice choice;	/* given to its workers as it is */
	int copies_rows;		/* rows pass through a buffer of the
					 * device: copied_rows_bytes() */
	uint64_t open_bytes;		/* charged when it is opened */
	struct npu_chip npu;		/* with LAYOUT_RKNPU */
	struct ascend_chip ascend;	/* with LAYOUT_ASCEND */
	uint64_t device_free_bytes;	/* of its own memory; 0 = no limit */
	char device_from[96];		/* origin of it */
	char from[96];			/* origin of total_bytes */
	char largest_from[96];		/* origin of largest_bytes */
};

/* Inputs in addition to the config. */
struct plan_env {
	const struct model *model;
	const struct kernels *kernels;
	uint64_t free_bytes;		/* shared by sessions without a cap */
	/* [nrooms], what the sessions must fit into together: of all first;
	 * nrooms 0 = this machine's memory is not considered. */
	const struct plan_room *rooms;
	unsigned nrooms;
	/* The most that one process can have (rlimits); may be NULL. */
	void (*process_room)(unsigned threads, struct room *ret);
	int overcommit;			/* sessions without a cap get one that
					 * suffices */
	/* 1 = a ring is charged to one session: a group counts each page where
	 * it was touched first.  0 = to both that map it, as VmHWM does. */
	int charged_once;
	/* Measured memory of a worker with this many threads and nothing
	 * loaded. */
	uint64_t (*runtime_bytes)(void *arg, unsigned threads);
	/* The same of a worker that serves several sessions with this many
	 * threads in all; 0 = not measured.  May be NULL. */
	uint64_t (*shared_bytes)(void *arg, unsigned threads,
	    unsigned nsessions);
	void *arg;
	/* [MAX_CPUS], cores_speeds() of all sessions' cores; NULL = all equal.
	 */
	const uint32_t *core_speed;
	/* cores_seconds() of all sessions' cores; NULL = none. */
	const struct cpuset *core_seconds;
	/* Returns the limits of a session's device, NULL = it has none; the
	 * function may be NULL. */
	const struct plan_limits *(*limits)(const struct session_conf *sc);
	/* Run-to-run variation of the measured memory.  Advice, and the choice
	 * of plan_fit(), keep this much spare. */
	uint64_t margin_bytes;
	uint64_t runtime_extra_bytes;	/* used by fit.c; otherwise 0 */
	int no_room_check;		/* used by fit.c: rooms lower caps, and
					 * their sum may exceed them */
};

/* The context where none is given. */
static inline uint32_t
plan_default_context(const struct model *m)
{
	return MIN(m->hp.ctx_train, 4096);
}

/* The context that c asks for. */
static inline uint32_t
plan_asked_context(const struct conf *c, const struct model *m)
{
	return c->ctx_tok == CTX_TRAINED ?
	    MIN(m->hp.ctx_train, (uint32_t)LIMIT_CONTEXT) :
	    c->ctx_tok > 0 ? (uint32_t)c->ctx_tok : plan_default_context(m);
}

/* Plan c over its sessions.  On 0 every session's total is at most its cap, and
 * their sum fits into every room.
 * -ENOSPC with ERR_FIT: the message names the session or the room, the bytes
 * that it lacks, and what would fit: more sessions, cuts inside layers, a
 * smaller context or batch, another KV type.  ret is then the nearest plan,
 * which may be shown but not run.
 * -EINVAL with ERR_USAGE: more sessions than pieces, or a KV type that cannot
 * hold the heads. */
int plan_build(const struct conf *c, const struct plan_env *env,
    struct plan *ret, struct err *reterr);

enum { PLAN_WHY_LEN = 1024 };

/* Plan what fits under c's caps (plan --fit).  One session is a pattern: choose
 * the fewest like it.  Several sessions are kept: choose the first that helps
 * among cuts inside layers, a smaller batch, KV type q8_0, a smaller context,
 * and the last three together.
 *
 * 0 = the chosen settings are in ret_conf, their plan in ret (which points into
 * ret_conf), and a description of the choice in why; else as plan_build(). */
int plan_fit(const struct conf *c, const struct plan_env *env,
    struct conf *ret_conf, struct plan *ret, char why[PLAN_WHY_LEN],
    struct err *reterr);

/* Bytes by which the largest buffer of a session exceeds what its device maps
 * at once; 0 = it fits. */
uint64_t plan_buffer_excess(const struct plan_session *ps);

/* Bytes by which a session exceeds its share of its device's own memory. */
uint64_t plan_device_excess(const struct plan_session *ps);

/* Planned bytes of the sessions of a NUMA node; -1 = of all. */
uint64_t plan_bytes(const struct plan *p, int node);

/* Slots and slot size of the ring into session s (s == nsessions: out of the
 * last one). */
void plan_ring(const struct plan *p, unsigned s, uint32_t *ret_nslots,
    uint32_t *ret_slot_bytes);

/* 1 = session s is charged for ring i, which is one of its two: always for the
 * one into it, and the last session for the one out of it. */
int plan_charges_ring(const struct plan *p, unsigned s, unsigned i);

/* The largest number of sessions that a model can be cut into. */
unsigned plan_pieces(int half_layers, const struct model *m);

/* The number of threads of a session. */
unsigned plan_threads(const struct session_conf *s);
/* 1 = session s of c shares no core with another session. */
int plan_own_cores(const struct conf *c, unsigned s);
/* 1 = each thread has a core on which no other thread of ours runs. */
int plan_core_each(const struct plan_session *ps);

/* The worker of session s of c. */
struct plan_worker plan_worker_of(const struct conf *c, unsigned s);

/* A session that holds nothing and has no cap, on the cores of sc. */
struct plan_session plan_empty_session(const struct session_conf *sc,
    unsigned threads);

/* The number of stages that run in parallel: all, or 1 where any two share
 * cores, because they would only take turns. */
unsigned plan_parallel_stages(const struct plan *p);

/* The last stage's time for a prompt row, divided by the slowest stage's. */
double plan_last_ratio(const struct plan *p);

#endif
