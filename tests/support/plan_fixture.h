/* tests/support/plan_fixture.h - models, configs and machines to plan for. */
#ifndef TESTS_SUPPORT_PLAN_FIXTURE_H
#define TESTS_SUPPORT_PLAN_FIXTURE_H

#include "coordinator/plan/plan.h"
#include "tiny.h"

/* A model, a config, and what the plan is told of the rest. */
struct world {
	struct gguf *g;
	struct model *m;
	struct kernels k;
	struct conf c;
	struct plan_env env;
};

/* What the plan is told that a worker's runtime takes. */
uint64_t world_runtime_bytes(void *arg, unsigned threads);

/* A model without sessions, on a machine with 64 GiB free. */
void world_set_up(struct world *w, const struct tiny *t);
void world_tear_down(struct world *w);

/* One more session, on a core of its own. */
void world_add_session(struct world *w, uint64_t cap);

/* A random model, random settings, and up to nsessions sessions. */
void world_set_up_random(struct world *w, int nsessions);

/* Caps around what a plan without caps would take: they sometimes suffice. */
void world_set_random_caps(struct world *w);

/* Bytes of the whole model in one session without a cap. */
uint64_t world_whole_bytes(const struct world *w);

/* The sessions hold all units, each once and in order. */
void world_check_ranges(const struct world *w, const struct plan *p);

#endif
