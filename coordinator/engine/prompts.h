/* coordinator/engine/prompts.h - run --prompts: one prompt per line, one JSON
 * line per result.
 * Owns: the position in the file, lines not yet printed, the first failure.
 * Called by run, through generate(). */
#ifndef COORDINATOR_ENGINE_PROMPTS_H
#define COORDINATOR_ENGINE_PROMPTS_H

#include "generate.h"
#include "lines.h"

struct prompts {
	struct engine *eng;
	const char *path;
	const char *at, *eof;		/* unread bytes of the file */
	uint32_t index;			/* of the line at `at` */
	struct lines lines;
	uint32_t nfailed;
	struct err first_err;		/* of the first line that failed */
	uint64_t hash;			/* of the last line's last logits */
	uint32_t hash_index;
	int have_hash;
};

/* The context that the longest line of file and -n need, at most the default
 * one: what the stages reserve follows from it, for each sequence.  Needs the
 * tokenizer, but no plan.  -EINTR only: other errors come with the line. */
int prompts_context(struct engine *eng, const struct source *file,
    uint32_t *ret, struct err *reterr);

/* file must outlive p.  *ret is to be passed to generate(). */
void prompts_init(struct prompts *p, struct engine *eng,
    const struct source *file, struct generate_ops *ret);

/* After generate(): 0, or an error with the first failure and the number of
 * lines that failed. */
int prompts_result(const struct prompts *p, struct err *reterr);

void prompts_done(struct prompts *p);

/* Encode a prompt, malloc'ed, and check it against the context. */
int prompt_encode(const struct engine *eng, const struct source *prompt,
    uint32_t **ret_ids, uint32_t *ret_n, struct err *reterr);

#endif
