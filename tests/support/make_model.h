/* tests/support/make_model.h - a model of mkgguf's, for tests in C.
 * Owns: nothing; the file is the caller's.  Called by the tests. */
#ifndef TESTS_SUPPORT_MAKE_MODEL_H
#define TESTS_SUPPORT_MAKE_MODEL_H

/* mkgguf OPTIONS OUT; fails the test when that fails. */
void make_model(const char *options, const char *out);

#endif
