/* tests/support/pieces_cases.h - small vocabularies of both kinds, with a chat
 * template and without.
 * Called by unit/pieces.c, by pieces_seeds and by tests of the reader.  Owns
 * nothing: the files are the caller's. */
#ifndef TESTS_SUPPORT_PIECES_CASES_H
#define TESTS_SUPPORT_PIECES_CASES_H

enum { PIECES_NCASES = 4 };

/* Write vocabulary i into folder; returns its path, in a static buffer. */
const char *pieces_case_save(unsigned i, const char *folder);

#endif
