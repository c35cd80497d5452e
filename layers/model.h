/* layers/model.h - what a GGUF file holds, as a model: shape and extents.
 * Owns: hyper-parameters and the extent of every tensor by unit.  Coordinator
 * only (it reads untrusted metadata).  Knows no sessions and no caps. */
#ifndef LAYERS_MODEL_H
#define LAYERS_MODEL_H

#include "config/err.h"
#include "arch.h"
#include "bind.h"
#include "extent.h"
#include "layers/gguf/gguf.h"

enum { MODEL_SHARED = 3 };

/* Units in pipeline order: 0 = embedding, 1 .. 2 n_layer = halves of layers
 * (arch.h), 2 n_layer + 1 = output head. */
struct model {
	const struct gguf *g;
	struct hparams hp;
	struct extent *ext;	/* [next], ordered by unit */
	uint32_t next;
	uint32_t nunits;	/* 2 n_layer + 2 */
	uint32_t *first;	/* [nunits + 1]: unit u has ext[first[u]..] */
	/* What every session with half a layer has: frequency factors. */
	struct extent shared[MODEL_SHARED];
	uint32_t nshared;
};

/* -EBADMSG / -ENOTSUP with ERR_MODEL: the message names the key or tensor,
 * what it has and what it should have.  g must stay open. */
int model_open(const struct gguf *g, struct model **ret, struct err *reterr);
void model_close(struct model *m);

/* The extents that a session holding units [u0, u1) reads, each once: a tied
 * head beside its embedding is not read twice; what is shared comes with any
 * half of a layer.  out has room for model_range_max().  Returns the count. */
uint32_t model_range(const struct model *m, uint32_t u0, uint32_t u1,
    struct extent *out);
uint32_t model_range_max(const struct model *m);

/* The halves of layers among units [u0, u1). */
void model_sublayers(const struct model *m, uint32_t u0, uint32_t u1,
    uint32_t *ret_first, uint32_t *ret_n);

/* The first unit of which a session that begins with unit u0, and has the head,
 * computes something only for the rows that want logits: of the last layer what
 * comes behind its keys and values (role_before_kv()). */
static inline uint32_t
model_for_logits(const struct model *m, uint32_t u0)
{
	return MAX(u0, m->nunits - 3);
}

/* Is there a kernel for every tensor that the model uses?  -ENOTSUP with
 * ERR_MODEL names file, tensor and type, and the types that have one. */
int model_check_kernels(const struct model *m, const struct kernels *k,
    struct err *reterr);

/* Tensors of the file that no extent is of: nothing is computed with them.  Their
 * number; *ret_first is the first, NULL if there is none (or no memory to look for
 * them). */
uint64_t model_unused(const struct model *m,
    const struct gguf_tensor **ret_first);

/* Parameters of the whole model (a tied head counts once). */
uint64_t model_params(const struct model *m);

#endif
