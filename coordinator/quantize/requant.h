/* coordinator/quantize/requant.h - a model's tensors, each in another type.
 * Owns: the choice of types, and the threads that read, convert and write.
 * Called by cmd_quantize.  Knows no command line and prints nothing; takes
 * 1.25 MiB a thread, whatever the model's size. */
#ifndef COORDINATOR_QUANTIZE_REQUANT_H
#define COORDINATOR_QUANTIZE_REQUANT_H

#include <stdatomic.h>

#include "config/units.h"
#include "layers/gguf/write.h"

/* --- which type (quantize/types.c) --- */

enum { REQUANT_DEFAULT = QUANT_NTYPES };

struct requant_want {
	uint32_t type;
	uint32_t head;		/* of the output head; REQUANT_DEFAULT: Q6_K for
				 * Q4_K and Q5_K, type for all others */
	uint32_t fallback;	/* where rows have no whole blocks of it;
				 * REQUANT_DEFAULT: see quantize/types.c */
};

/* Type by its name, in letters of any case; ERR_USAGE with what there is when
 * it is none, or none that can be made.  what names it in the message. */
int requant_type_parse(const char *what, const char *text, uint32_t *ret,
    struct err *reterr);

/* The number that general.file_type has for a model of mostly this type. */
uint32_t requant_file_type(uint32_t type);

/* Fill in ret[ntensors].  Norms, vectors, routers of experts and what is no
 * weight keep their type; matrices and embeddings get want->type, the head its
 * own.  A tensor that cannot be read is refused by its name. */
int requant_types(const struct gguf *g, const struct requant_want *want,
    uint32_t *ret, struct err *reterr);

/* --- doing it (requant.c) --- */

/* Of one tensor.  Its error is sqrt(errors / squares). */
struct requant_result {
	double errors, squares;	/* sums over its weights; 0 for a copy */
};

struct requant {
	const struct gguf *g;
	const struct gguf_out *out;
	const char *out_path;		/* for messages */
	int out_fd;			/* of file_bytes; the header is not
					 * written here */
	unsigned nthreads;		/* pinned to cpus by turns */
	struct cpuset cpus;		/* one at least */
	/* Ends the work with -EINTR when it is set; by a signal's handler. */
	const volatile atomic_int *stop;
	/* Called with a lock held, by any thread: tensor i is written, in order
	 * of i; so many bytes of the source are done.  May be NULL. */
	void (*done)(void *arg, uint64_t i, const struct requant_result *r);
	void (*tick)(void *arg, uint64_t done_bytes);
	void *arg;
};

/* Convert every tensor.  The result does not depend on nthreads. */
int requant_run(const struct requant *q, struct err *reterr);

#endif
