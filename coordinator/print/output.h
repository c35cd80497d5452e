/* coordinator/print/output.h - text, the memory table, the speed line, JSON.
 * Called by the commands.  Results go to stdout, the rest to stderr. */
#ifndef COORDINATOR_PRINT_OUTPUT_H
#define COORDINATOR_PRINT_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/cap/process.h"
#include "coordinator/session/sessions.h"

/* Speeds of a run; 0 = not measured. */
struct speeds {
	double load_s, load_gbs;	/* reading the file */
	double reserve_s;	/* opening devices, touching memory */
	uint64_t reserve_bytes;
	uint32_t prompt_tok, gen_tok;
	uint32_t prompt_read;	/* of prompt_tok: less when interrupted */
	double prompt_tps, gen_tps, ttft_s;
	uint32_t seqs;		/* at once; 0 = one prompt, not printed */
	double batch_rows;	/* mean of all batches */
	double all_s;		/* the time that the speeds are over */
	unsigned losses;	/* workers lost and replaced */
	double lost_s;		/* spent on recovery, part of the times above */
	uint64_t logits_hash;
	int have_hash;
};

/* Call before any JSON is made.  Without it, JSON that lost parts to a failed
 * allocation would be printed. */
void output_init(void);
/* Has an allocation for JSON failed?  Reading JSON then fails with any message. */
int output_json_lost(void);

/* Write all bytes to stdout now, also to a slow or non-blocking reader.  On a
 * terminal, text is whole characters, and controls but newlines and tabs are
 * escaped (config/plain.h); elsewhere bytes are exact.  -EPIPE:
 * the reader has gone.  -EINTR: a signal has come on the descriptor given to
 * output_watch() (-1 = none).  After output_hurry(), called when a signal has
 * come, a reader has a few seconds: then this call and all later ones return
 * -ETIMEDOUT. */
int output_text(const char *text, size_t nbytes);
void output_watch(int signal_fd);
void output_hurry(void);

/* -EINVAL if writing to path would overwrite a file of the model. */
int output_refuse_model(const struct gguf *g, const char *path,
    struct err *reterr);

/* The memory table, one row per session, then that of the other processes.  ss
 * NULL: as planned; else as measured, with the peaks that the kernel counted.  It
 * fits 80 columns, cut into blocks and in units chosen by column, unless
 * output_wide() asked for one block in MiB.  table.c */
void output_wide(int on);
void output_table(FILE *fp, const struct plan *p, const struct sessions *ss,
    const struct process_list *pl);
void output_speed(FILE *fp, const struct speeds *sp);

/* {"sessions":[...],"processes":[...]}.  Scripts rely on the keys. */
json_t *output_sessions(const struct plan *p, const struct sessions *ss,
    const struct process_list *pl);
void output_add_speeds(json_t *o, const struct speeds *sp);
/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
json_t *output_json_text(const char *text, size_t nbytes);
json_t *output_json_string(const char *text);
/* A JSON number of all 64 bits; Jansson's own would be negative above INT64_MAX.
 * Only output_json() prints it as a number. */
json_t *output_json_u64(uint64_t n);
/* A JSON number that reads back as v; "NaN", "Infinity" or "-Infinity" where v is
 * none. */
json_t *output_json_real(double v, int is_f32);
/* Print o on stdout, on one line or indented, and free it. */
int output_json(json_t *o, int indent, struct err *reterr);

#endif
