/* coordinator/plan/plan.h - which session holds what, with every byte foreseen.
 * Owns: struct plan.  Called by run, plan, explain, bench and stress.  Knows
 * sizes: it opens no file and starts no process. */
#ifndef COORDINATOR_PLAN_PLAN_H
#define COORDINATOR_PLAN_PLAN_H

#include "config/conf.h"
#include "kernels/kernels.h"
#include "layers/model.h"
#include "layers/program.h"
#include "shm/mem.h"

/* Units are the model's: the embedding, halves of layers, the output head.
 * Unless the config asks for half layers, a layer's two stay together. */

/* Slots: two between stages, so that one is filled while the other is read;
 * between stages that work at the same time two more, unless they are large, so
 * that none waits when another takes longer for once; a few small ones for ids;
 * two for blocks of logits. */
enum { SLOTS_IDS = 4, SLOTS_STAGE = 2, SLOTS_AT_ONCE = 4, SLOTS_LOGITS = 2 };
#define SLOT_LARGE	(8 * MIB)

struct plan_session {
	const struct session_conf *conf;
	uint32_t u0, u1;		/* units [u0, u1) */
	int embedding, head;
	uint32_t first_sublayer, nsublayers;	/* of layers: arch.h */
	unsigned threads;
	int own_cores;			/* no other session runs on conf's */
	struct cpuset cores;		/* that its threads run on: of its own
					 * as many as threads, the best */
	uint64_t cap_bytes;
	const struct plan_limits *limits;	/* of its device; NULL = none */
	const struct plan_limits *capped_by;	/* limits, or NULL = conf */
	uint64_t bytes[MEM_NTAGS];	/* exact, by tag */
	uint64_t total_bytes;		/* their sum */
	uint64_t file_bytes;		/* of the extents it reads */
	uint64_t token_bytes;		/* weights read for each token */
	double row_time;		/* of a prompt, in any unit */
};

struct plan {
	const struct model *model;
	int half_layers;		/* cuts may be inside a layer */
	uint32_t ctx_tok, batch_rows, head_rows, nseqs;
	int pays_once;			/* as in plan_env */
	enum kv_type kfmt, vfmt;
	unsigned nsessions;
	struct plan_session session[MAX_SESSIONS];
};

/* What a kind of device lets a session have, beside the session's cap. */
struct plan_limits {
	uint64_t total_bytes;		/* UINT64_MAX = all that there is */
	uint64_t largest_bytes;		/* of one buffer; 0 = any */
	uint64_t maps;			/* buffers at once; 0 = any */
	/* Of a process that stands for it; 0 = none does. */
	uint64_t emulator_bytes;	/* before it maps a session's buffers */
	uint64_t emulator_file_bytes;	/* its program's; page cache */
	/* What it takes beside the stage's buffers, and how it packs weights. */
	enum weight_layout layout;
	int copies_rows;		/* rows pass through a buffer of its
					 * own: copied_rows_bytes() */
	uint64_t open_bytes;		/* to be open at all; 0 = nothing */
	char from[96];			/* how total_bytes is known, */
	char largest_from[96];		/* and largest_bytes */
};

/* What the plan cannot know by itself. */
struct plan_env {
	const struct model *model;
	const struct kernels *kernels;
	uint64_t free_bytes;		/* to share among sessions without a cap */
	/* 1: a group counts each page of a ring where it was touched first, so
	 * it is charged to one session; 0: to both that map it, as VmHWM does. */
	int pays_once;
	/* Memory of a worker with this many threads and nothing loaded, as
	 * measured. */
	uint64_t (*runtime_bytes)(void *arg, unsigned threads);
	void *arg;
	/* [MAX_CPUS], cores_speeds() of all sessions' cores; NULL = alike. */
	const uint32_t *core_speed;
	/* cores_seconds() of these; NULL = none. */
	const struct cpuset *core_seconds;
	/* NULL, or the limits of a session's device; NULL = it has none. */
	const struct plan_limits *(*limits)(const struct session_conf *sc);
	/* So much more it may come out when it is measured again: what is
	 * advised, or chosen by plan_fit(), leaves room for it. */
	uint64_t waver_bytes;
	uint64_t runtime_more;		/* plan/fit.c's own; else 0 */
};

/* Plan c over its sessions.  0, with every session's total <= its cap.
 * -ENOSPC with ERR_FIT: the message names the session, the shortfall, and what
 * would fit: more sessions, cuts inside layers, a smaller context or batch,
 * another KV type.  ret is then the nearest plan, to be shown but not run.
 * -EINVAL with ERR_USAGE: more sessions than pieces, a KV type that cannot hold
 * the heads. */
int plan_build(const struct conf *c, const struct plan_env *env,
    struct plan *ret, struct err *reterr);

enum { PLAN_WHY_LEN = 1024 };

/* Plan what fits under c's caps (plan --fit).  One session is a pattern: the
 * fewest like it.  Several are what there is: the first that helps of cuts
 * inside layers, a smaller batch, KV type q8_0, a smaller context, all three.
 *
 * 0 with the settings chosen in ret_conf, their plan in ret (which points into
 * ret_conf) and the choice in words in why; else as plan_build(). */
int plan_fit(const struct conf *c, const struct plan_env *env,
    struct conf *ret_conf, struct plan *ret, char why[PLAN_WHY_LEN],
    struct err *reterr);

/* What the largest buffer of a session lacks in its device, 0 = it fits. */
uint64_t plan_over_largest(const struct plan_session *ps);

/* Ring into session s (s == nsessions: out of the last). */
void plan_ring(const struct plan *p, unsigned s, uint32_t *ret_nslots,
    uint32_t *ret_slot_bytes);

/* Does session s pay for ring i, which is one of its two?  For what leads into
 * it, and the last one for what leads out. */
int plan_pays(const struct plan *p, unsigned s, unsigned i);

/* The most sessions that a model can be cut into. */
unsigned plan_pieces(int half_layers, const struct model *m);

/* Threads that a session will have; cores that it shares with no other. */
unsigned plan_threads(const struct session_conf *s);
int plan_own_cores(const struct conf *c, unsigned s);
/* Has each thread a core that nothing else of ours runs on? */
int plan_core_each(const struct plan_session *ps);

/* A session that holds nothing and has no cap, on the cores of sc. */
struct plan_session plan_nothing(const struct session_conf *sc,
    unsigned threads);

/* Stages that work at the same time: all, or, where any two share cores, one.
 * Those only lose by being given more at once. */
unsigned plan_at_once(const struct plan *p);

/* The last stage's time for a row of a prompt over the slowest's. */
double plan_last(const struct plan *p);

#endif
