/* layers/model.h - a GGUF file as a model: its shape and its extents by unit.
 * Owns: hyper-parameters and the extent of every tensor.  Never in a worker.
 * Does not depend on sessions or caps. */
#ifndef LAYERS_MODEL_H
#define LAYERS_MODEL_H

#include "config/err.h"
#include "arch.h"
#include "bind.h"
#include "extent.h"
#include "layers/gguf/gguf.h"

enum { MODEL_SHARED = 3 };

/* Units in pipeline order: 0 = embedding, 1 .. 2 n_layer = sublayers (arch.h),
 * 2 n_layer + 1 = output head. */
struct model {
	const struct gguf *g;
	struct hparams hp;
	struct extent *ext;	/* [next], ordered by unit */
	uint32_t next;
	uint32_t nunits;	/* 2 n_layer + 2 */
	uint32_t *first;	/* [nunits + 1]: unit u has ext[first[u]..] */
	/* Frequency factors: read by every session with a sublayer. */
	struct extent shared[MODEL_SHARED];
	uint32_t nshared;
};

/* g must stay open.  -EBADMSG or -ENOTSUP with ERR_MODEL: the message names the
 * key or tensor, its value and the expected one. */
int model_open(const struct gguf *g, struct model **ret, struct err *reterr);
/* The same with hyper-parameters that were read elsewhere and may be anything
 * (hparams_check.h).  Looks at g's tensors and files only, not at its
 * metadata. */
int model_build(const struct gguf *g, const struct hparams *hp,
    struct model **ret, struct err *reterr);
void model_close(struct model *m);

/* Write to out (room for model_range_max() extents) the extents that a session
 * with units [u0, u1) reads, each once: a tied head in the same session as its
 * embedding is omitted, shared extents are included with any sublayer.  Returns
 * the count. */
uint32_t model_range(const struct model *m, uint32_t u0, uint32_t u1,
    struct extent *out);
uint32_t model_range_max(const struct model *m);

/* The sublayers among units [u0, u1). */
void model_sublayers(const struct model *m, uint32_t u0, uint32_t u1,
    uint32_t *ret_first, uint32_t *ret_n);

/* For a session with the head whose first unit is u0: the first unit in which
 * it computes only the rows that need logits, once the last layer's keys and
 * values are stored (role_before_kv()). */
static inline uint32_t
model_for_logits(const struct model *m, uint32_t u0)
{
	return MAX(u0, m->nunits - 3);
}

/* Check that k has a kernel for every tensor of the model.  -ENOTSUP with
 * ERR_MODEL: the message names file, tensor, type, and the supported types. */
int model_check_kernels(const struct model *m, const struct kernels *k,
    struct err *reterr);

/* Count the tensors of the file that the model does not use; *ret_first is the
 * first one, NULL if there is none or no memory to search. */
uint64_t model_unused(const struct model *m,
    const struct gguf_tensor **ret_first);

/* Parameters of the whole model (a tied head counts once). */
uint64_t model_params(const struct model *m);

#endif
