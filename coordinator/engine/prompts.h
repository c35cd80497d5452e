/* coordinator/engine/prompts.h - run --prompts: a file of prompts in, JSON lines out.
 * Owns: where in the file it is, the lines not yet printed, the first failure.
 * Called by run, through generate(). */
#ifndef COORDINATOR_ENGINE_PROMPTS_H
#define COORDINATOR_ENGINE_PROMPTS_H

#include "generate.h"
#include "lines.h"

struct prompts {
	struct engine *eng;
	const char *path;
	const char *at, *eof;		/* of the file's bytes */
	uint32_t index;			/* of the line at `at` */
	struct lines lines;
	uint32_t nfailed;
	struct err first;		/* failure */
	uint64_t hash;			/* of the last line's last logits */
	uint32_t hash_index;
	int have_hash;
};

/* file must outlive p; ret is what generate() is to be given. */
void prompts_init(struct prompts *p, struct engine *eng, const struct source *file,
    struct generate_ops *ret);

/* After generate(): 0, or that some lines failed, with the first. */
int prompts_verdict(const struct prompts *p, struct err *reterr);

void prompts_done(struct prompts *p);

/* A prompt as ids, checked against the context. */
int prompt_encode(const struct engine *eng, const struct source *prompt,
    uint32_t **ret_ids, uint32_t *ret_n, struct err *reterr);

#endif
