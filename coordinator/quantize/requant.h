/* coordinator/quantize/requant.h - converts a model's tensors to other types.
 * Owns: the choice of types, and what the threads do that read, convert and
 * write.  Called by the converter (converter.c), requant_type_parse() by the
 * command.  Prints nothing.  Uses REQUANT_THREAD_BYTES per thread, whatever the
 * model's size. */
#ifndef COORDINATOR_QUANTIZE_REQUANT_H
#define COORDINATOR_QUANTIZE_REQUANT_H

#include "layers/gguf/write.h"
#include "layers/par.h"

/* --- choice of types (types.c) --- */

enum { REQUANT_DEFAULT = QUANT_NTYPES };

struct requant_want {
	uint32_t type;
	uint32_t head;		/* type of the output head; REQUANT_DEFAULT:
				 * Q6_K with Q4_K and Q5_K, else `type` */
	uint32_t fallback;	/* for tensors whose rows are not whole blocks
				 * of `type`; REQUANT_DEFAULT: see types.c */
};

/* Parse a type's name, in any case.  ERR_USAGE: unknown, or no type that can be
 * encoded; the message lists those.  option names the argument in messages. */
int requant_type_parse(const char *option, const char *text, uint32_t *ret,
    struct err *reterr);

/* Matrices that are to have want->type or the head's. */
struct requant_count {
	uint64_t wanted;
	uint64_t fallback;	/* of them, those with another type, because
				 * their rows are not whole blocks */
	uint32_t fallback_type;	/* of the last of these */
};

/* Choose the type of each tensor, ret[ntensors].  Norms, vectors, routers of
 * experts and tensors that are no weights keep their type.  Matrices and
 * embeddings get want->type, the output head want->head.  A tensor of an unknown
 * type keeps it.  -EBADMSG names a tensor whose type cannot be decoded. */
int requant_types(const struct gguf *g, const struct requant_want *want,
    uint32_t *ret, struct requant_count *ret_count, struct err *reterr);

/* --- conversion (requant.c) --- */

enum { REQUANT_THREAD_BYTES = 5 << 18 };

/* Error of one tensor, relative: sqrt(errors / squares). */
struct requant_result {
	double errors, squares;	/* sums of squared differences and of squared
				 * weights; 0 for a copied tensor */
};

struct requant {
	const struct gguf *g;
	const struct gguf_out *out;
	const char *out_path;		/* for messages */
	int out_fd;			/* has out->file_bytes; the caller
					 * writes the header */
	struct par *par;		/* its threads do the work */
	/* Callbacks, NULL = none.  Any thread calls them, with a lock held.
	 * done: tensor i is written; called in the order of i.
	 * tick: done_bytes of the source are converted. */
	void (*done)(void *arg, uint64_t i, const struct requant_result *r);
	void (*tick)(void *arg, uint64_t done_bytes);
	void *arg;
};

/* Convert every tensor.  The bytes written do not depend on the number of
 * threads. */
int requant_run(const struct requant *q, struct err *reterr);

#endif
