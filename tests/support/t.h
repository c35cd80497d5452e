/* tests/support/t.h - shared by every libcheck program: runner, seed, paths. */
#ifndef TESTS_SUPPORT_T_H
#define TESTS_SUPPORT_T_H

#include <check.h>
#include <stdint.h>

#include "config/err.h"

enum { T_SKIP = 77 };		/* exit code: cannot run on this machine */

/* A function that reads memory which ASan knows to be undefined. */
#define NO_ASAN	__attribute__((no_sanitize_address))

/* Run these tests as one suite, each with a timeout in seconds.  CK_FORK=no in
 * the environment runs them in one process (for debuggers).  Returns the
 * program's exit code. */
int t_main(const char *name, double timeout_s, const TTest *const *tests,
    unsigned ntests);

/* Seed of this run: STRADDLE_SEED if set, else drawn.  Printed once, so that a
 * failure can be replayed.  t_rand() draws from it (xorshift). */
uint64_t t_seed(void);
uint64_t t_rand(void);
uint64_t t_rand_below(uint64_t n);	/* n > 0 */
float t_rand_float(float lo, float hi);

/* Does this run try all combinations, not a sample (FULL is set)? */
int t_full(void);

/* Is item i of n in this run's sample of `most` items?  With FULL, all are.
 * The sample is a run of neighbours that begins at an item drawn with
 * t_seed(). */
int t_sampled(uint32_t i, uint32_t n, uint32_t most);

/* A fresh folder; removed with its content when the test program ends. */
const char *t_tmpdir(void);

/* Write a file below a folder that stands in for "/", and create the folders on
 * its path.  A file that is there is replaced. */
void t_put_file(const char *root, const char *path, const void *bytes,
    size_t nbytes);

/* Path of a file in tests/data; STRADDLE_TESTS replaces "tests" if set. */
const char *t_data(const char *name);

/* Path of the program: STRADDLE_BIN if set, else build/straddle. */
const char *t_bin(void);

/* A field of /proc/self/FILE that is in KiB, as bytes; 0 if it is missing.
 * Example: t_proc_bytes("status", "VmSize:"). */
uint64_t t_proc_bytes(const char *file, const char *key);

/* libcheck records every passed assertion with a system call, to report the
 * last one after a crash; our loops pass millions.  Record a source line only
 * the first time that it is reached: "(after this point)" of a crash report
 * then names the last new line. */
void t_mark(const char *file, int line);
#define _mark_point(file, line)	t_mark(file, line)

/* Assert rc == 0 and show err's text when it is not. */
#define t_ok(rc, e) \
	ck_assert_msg((rc) == 0, "rc %d: %s", (int)(rc), (e)->msg)

#endif
