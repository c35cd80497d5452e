/* kernels/hexagon/domain.h - the operations of a Hexagon domain.
 * Owns: their prototypes, and the batch that they work on.  Called by main.c,
 * on the one thread that takes packets from loop.c or skel.c.  Does not depend
 * on any model: the host sends its operations. */
#ifndef KERNELS_HEXAGON_DOMAIN_H
#define KERNELS_HEXAGON_DOMAIN_H

#include "layout.h"
#include "queue.h"

/* A batch: the buffers of a packet, its rows, and the model. */
struct hx_batch {
	uint8_t *base[HX_NBUFS];
	uint32_t nbytes[HX_NBUFS];
	const struct hx_model *m;
	uint32_t nrows, nselect;
	const uint32_t *seq, *pos;	/* [nrows] */
	const uint32_t *select;		/* [nselect] */
};

/* Row r of an operand. */
static inline void *
hx_at(const struct hx_batch *b, const struct hx_ref *ref, uint32_t r)
{
	return b->base[ref->buf] + ref->offset + r * ref->row_bytes;
}

static inline uint32_t
hx_rows(const struct hx_batch *b, const struct hx_op *op)
{
	if (op->experts)
		return b->nrows * b->m->n_expert_used;
	return op->head ? b->nselect : b->nrows;
}

/* Executes request q and fills response r, except its id and kind.  Returns an
 * enum hxq_status. */
uint32_t domain_dispatch(const struct hxq_packet *q, struct hxq_packet *r);

/* Sets the memory of a handle, for callers that map it themselves. */
void domain_bind(uint32_t handle, void *base, uint32_t nbytes);

/* Counts finished operations.  Set before the first packet. */
extern _Atomic uint32_t *domain_progress;

/* Each returns an enum hxq_status. */
typedef uint32_t hx_fn(const struct hx_batch *b, const struct hx_op *op);
hx_fn hx_rms_norm, hx_quantize, hx_matmul, hx_rope, hx_kv_store,
    hx_attention, hx_glu, hx_add, hx_scale, hx_softcap, hx_moe_route,
    hx_moe_rows, hx_matmul_id, hx_moe_sum, hx_select_rows;

/* The arena of an operation (vtcm.c).  hx_vtcm_begin() frees everything;
 * hx_vtcm_take() returns 128-aligned memory, NULL when the limit is reached
 * (HXQ_EVTCM).  hx_vtcm_limit() sets the limit in bytes, 0 = HX_VTCM_BYTES. */
enum { HX_VTCM_BYTES = 2 << 20 };
void hx_vtcm_limit(uint32_t nbytes);
void hx_vtcm_begin(void);
uint32_t hx_vtcm_left(void);
void *hx_vtcm_take(uint32_t nbytes);

/* Rows [r0, r1) of op's activations times the matrix at w, plus bias (NULL =
 * none): mat.c for quantized weights, mat_f32.c for floats. */
typedef uint32_t hx_matrix_fn(const struct hx_batch *b, const struct hx_op *op,
    const uint8_t *w, const float *bias, uint32_t r0, uint32_t r1);
hx_matrix_fn hx_matrix_q8, hx_matrix_f32;

/* The keys (value = 0) or values (1) of a sequence and KV head. */
uint8_t *hx_kv_at(const struct hx_batch *b, const struct hx_op *op,
    uint32_t seq, uint32_t head, int value);

void hx_quantize_row(struct act_q8 *y, const float *x, uint32_t k,
    uint8_t bias, uint32_t fine);

/* --- numbers, math.c --- */

float hx_exp(float x);		/* 0 below -87 */
float hx_div(float a, float b);	/* both finite, b and a / b normal */
float hx_rsqrt(double x);	/* x > 0 */
float hx_tanh(float x);

static inline float
hx_from_half(uint16_t h)
{
	uint32_t sign = (uint32_t)(h >> 15) << 31;
	uint32_t u = (uint32_t)(h & 0x7fff) << 13;

	if (u - (1u << 23) < 30u << 23)		/* normal */
		return hx_float((u + (112u << 23)) | sign);
	if (u >= 31u << 23)
		return hx_float(u | 0x7f800000 | sign);
	return hx_float(hx_bits(hx_float(u) * 0x1p112f) | sign);
}
uint16_t hx_to_half(float x);	/* to nearest even */

#endif
