/* tests/support/t.h - what every libcheck program of ours shares. */
#ifndef TESTS_SUPPORT_T_H
#define TESTS_SUPPORT_T_H

#include <check.h>
#include <stdint.h>

#include "config/err.h"

enum { T_SKIP = 77 };		/* exit code: not possible on this machine */

/* Run the suite made of these test functions, each with a timeout in seconds.
 * CK_FORK=no in the environment runs them in one process (for debuggers).
 * Returns the program's exit code. */
int t_main(const char *name, double timeout_s, const TTest *const *tests,
    unsigned ntests);

/* Seed of this run: STRADDLE_SEED when set, else drawn; printed once, so that
 * a failure can be replayed.  t_rand() draws from it (xorshift). */
uint64_t t_seed(void);
uint64_t t_rand(void);
uint64_t t_rand_below(uint64_t n);	/* n > 0 */
float t_rand_float(float lo, float hi);

/* Does this run try every combination (FULL in the environment), not a sample? */
int t_full(void);

/* Is item i of n in this run's sample of `most` items?  All are under FULL; the
 * sample is drawn with t_seed(), a run of neighbours from a random one on. */
int t_sampled(uint32_t i, uint32_t n, uint32_t most);

/* A fresh folder, removed with what is in it when the test program ends. */
const char *t_tmpdir(void);

/* Path of a file of tests/data, whatever the working directory:
 * STRADDLE_TESTS when set, else "tests". */
const char *t_data(const char *name);

/* build/straddle, or what STRADDLE_BIN names. */
const char *t_bin(void);

/* A number in KiB of /proc/self/FILE, in bytes: ("status", "VmSize:"); 0 where
 * there is none. */
uint64_t t_proc_bytes(const char *file, const char *key);

/* Check writes down every assertion that holds, so that a crash is reported with
 * the last one: a system call each, millions of them in our loops.  Only the
 * first time that a line is come by does so here: (after this point) is then
 * the last line that was new. */
void t_mark(const char *file, int line);
#define _mark_point(file, line)	t_mark(file, line)

/* Assert rc == 0 and show err's text when it is not. */
#define t_ok(rc, e) \
	ck_assert_msg((rc) == 0, "rc %d: %s", (int)(rc), (e)->msg)

#endif
