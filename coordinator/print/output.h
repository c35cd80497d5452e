/* coordinator/print/output.h - text, the memory table, the speed line, JSON.
 * Called by the commands.  Results go to stdout, the rest to stderr. */
#ifndef COORDINATOR_PRINT_OUTPUT_H
#define COORDINATOR_PRINT_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/session/sessions.h"

/* Speeds of a run; 0 = nothing was measured. */
struct speeds {
	double load_s, load_gbs;
	uint32_t prompt_tok, gen_tok;
	double prompt_tps, gen_tps, ttft_s;
	uint32_t seqs;		/* at once; 0 = one prompt, nothing to say */
	double batch_rows;	/* mean of all batches */
	double all_s;		/* that the speeds are of */
	unsigned losses;	/* workers lost and brought back */
	double lost_s;		/* that it took, within the others' */
	uint64_t logits_hash;
	int have_hash;
};

/* Before any JSON is made: so that none is printed with parts missing. */
void output_init(void);

/* Write all of it to stdout now, also to a slow or non-blocking reader; -EPIPE
 * when nobody reads any more, -EINTR when a signal comes in on the descriptor
 * that output_watch() was given (-1 = none).  After output_hurry(), for when
 * a signal has come, a reader gets some seconds and no more: -ETIMEDOUT, then
 * and from then on. */
int output_text(const char *text, size_t nbytes);
void output_watch(int signal_fd);
void output_hurry(void);

/* A file that is written may replace anything but the model that is read:
 * -EINVAL. */
int output_refuse_model(const struct gguf *g, const char *path,
    struct err *reterr);

/* One row per session.  ss NULL: what the plan foresees; else with what the
 * kernel counted. */
void output_table(FILE *fp, const struct plan *p, const struct sessions *ss);
void output_speed(FILE *fp, const struct speeds *sp);

/* {"sessions":[...]} with the stable keys of design.md 9. */
json_t *output_sessions(const struct plan *p, const struct sessions *ss);
void output_add_speeds(json_t *o, const struct speeds *sp);
/* Text as a JSON string; bytes that are not UTF-8 become U+FFFD. */
json_t *output_json_text(const char *text, size_t nbytes);
/* One line (or indented) on stdout, then free it. */
int output_json(json_t *o, int indent, struct err *reterr);

#endif
