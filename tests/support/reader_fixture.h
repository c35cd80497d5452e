/* tests/support/reader_fixture.h - a model that is open in a reader, and in the
 * test's process.
 * Called by the reader's tests.  Owns: both, one at a time.  The reader is the
 * test's own program. */
#ifndef TESTS_SUPPORT_READER_FIXTURE_H
#define TESTS_SUPPORT_READER_FIXTURE_H

#include "coordinator/reader/state.h"
#include "t.h"

/* For the children: what they do in place of a reader's work (liar.h), and how
 * long they wait before it. */
#define LIE_ENV		"STRADDLE_TEST_LIE"
#define PAUSE_ENV	"STRADDLE_TEST_PAUSE_MS"

extern struct reader_fixture {
	struct conf conf;
	struct reader *reader;
	struct tokenizer *theirs, *ours;	/* in the reader; here */
	struct gguf *g;				/* here */
	unsigned polls;				/* calls of poll */
	int low_fd;				/* lowest free one, before all */
} fx;

/* reader_open(). */
int fx_try_open(const char *path, tokenizer_poll_fn *poll, struct err *e);
/* Open the model in the reader, and here. */
void fx_open(const char *path, tokenizer_poll_fn *poll);
/* Close both; nothing may be left. */
void fx_close(void);
/* The reader is gone, with all that belonged to it. */
void fx_nothing_is_left(void);

/* The reader's process, -1 = there is none. */
pid_t fx_pid(void);

/* Encode a text in both; the ids must be the same.  Returns the reader's error. */
int fx_encode(const char *text, size_t nbytes, struct err *e);
void fx_same_ids(const char *text);
/* A text fails with this code and message. */
void fx_fails(int want, const char *words);

/* A poll whose second call fails with -EINTR: the first one comes before the
 * text is sent. */
int fx_poll_interrupts(struct err *reterr);

/* The program's main(): the tests, or the reader. */
int fx_main(int argc, char **argv, char **envp, const char *name,
    const TTest *const *tests, unsigned ntests);

#endif
