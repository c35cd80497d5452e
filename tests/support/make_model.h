/* tests/support/make_model.h - runs mkgguf for tests in C.
 * Owns nothing: the file is the caller's.  Called by unit tests. */
#ifndef TESTS_SUPPORT_MAKE_MODEL_H
#define TESTS_SUPPORT_MAKE_MODEL_H

/* Run "mkgguf OPTIONS OUT"; an error fails the test. */
void make_model(const char *options, const char *out);

#endif
