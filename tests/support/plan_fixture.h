/* tests/support/plan_fixture.h - models, configs and machines to plan for. */
#ifndef TESTS_SUPPORT_PLAN_FIXTURE_H
#define TESTS_SUPPORT_PLAN_FIXTURE_H

#include "coordinator/plan/plan.h"
#include "tiny.h"

/* A model, a config, and what the plan is told of the rest. */
struct plan_fixture {
	struct gguf *g;
	struct model *m;
	struct kernels k;
	struct conf c;
	struct plan_env env;
};

/* What the plan is told that a worker's runtime takes. */
uint64_t fixture_runtime_bytes(void *arg, unsigned threads);

/* A model without sessions, on a machine with 64 GiB free. */
void plan_fixture_open(struct plan_fixture *fx, const struct tiny *t);
void plan_fixture_close(struct plan_fixture *fx);

/* One more session, on a core of its own. */
void fixture_add_session(struct plan_fixture *fx, uint64_t cap);

/* A random model, random settings, and up to nsessions sessions. */
void plan_fixture_open_random(struct plan_fixture *fx, int nsessions);

/* Caps around what a plan without caps would take: they sometimes suffice. */
void fixture_set_random_caps(struct plan_fixture *fx);

/* Bytes of the whole model in one session without a cap. */
uint64_t fixture_whole_bytes(const struct plan_fixture *fx);

/* The sessions hold all units, each once and in order. */
void fixture_check_ranges(const struct plan_fixture *fx, const struct plan *p);

#endif
