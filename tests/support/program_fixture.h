/* tests/support/program_fixture.h - the program of a stage, and its inputs.
 * Owns: a model file, the layout of its weights, the program.  Called by the
 * tests of programs and of the plan. */
#ifndef TESTS_SUPPORT_PROGRAM_FIXTURE_H
#define TESTS_SUPPORT_PROGRAM_FIXTURE_H

#include "layers/build.h"
#include "tiny.h"

enum { FIXTURE_BATCH = 24, FIXTURE_HEAD_ROWS = 5 };

/* A program for units [u0, u1) and its inputs. */
struct program_fixture {
	struct gguf *g;
	struct model *m;
	struct extent *ext;
	uint32_t next;
	struct kernels k;
	struct weights ws;
	struct program_env env;
	struct program *p;
};

/* Set up the environment of units [u0, u1) of t, at most all, and leave p NULL
 * for the test to build. */
void program_fixture_init(struct program_fixture *b, const struct tiny *t,
    uint32_t u0, uint32_t u1);
/* The same, and build the program. */
void program_fixture_open(struct program_fixture *b, const struct tiny *t,
    uint32_t u0, uint32_t u1);
void program_fixture_close(struct program_fixture *b);

/* Weight bytes that are read per token. */
uint64_t token_weight_bytes(const struct program *p);

#endif
