/* tests/support/plan_fixture.h - models, configs and machines to plan for.
 * Called by the tests of the plan and of fit. */
#ifndef TESTS_SUPPORT_PLAN_FIXTURE_H
#define TESTS_SUPPORT_PLAN_FIXTURE_H

#include "coordinator/plan/plan.h"
#include "tiny.h"

/* The inputs of a plan. */
struct plan_fixture {
	struct gguf *g;
	struct model *m;
	struct kernels k;
	struct conf c;
	struct plan_env env;
};

/* Base memory of a worker, as plan_env.runtime_bytes. */
uint64_t fixture_runtime_bytes(void *arg, unsigned threads);

/* Open a model; no sessions, 64 GiB free. */
void plan_fixture_open(struct plan_fixture *fx, const struct tiny *t);
void plan_fixture_close(struct plan_fixture *fx);

/* Add a session on a core of its own. */
void fixture_add_session(struct plan_fixture *fx, uint64_t cap);

/* Open a random model with random settings and up to nsessions sessions. */
void plan_fixture_open_random(struct plan_fixture *fx, int nsessions);

/* Set caps near the needs of a plan without caps: some suffice, some do not. */
void fixture_set_random_caps(struct plan_fixture *fx);

/* Bytes of a session with the whole model and no cap. */
uint64_t fixture_whole_bytes(const struct plan_fixture *fx);

/* Assert that the sessions hold all units, each once and in order. */
void fixture_check_ranges(const struct plan_fixture *fx, const struct plan *p);

#endif
