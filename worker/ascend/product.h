/* worker/ascend/product.h - products of 16-bit floats on an Ascend processor.
 * Owns: tensors and executors, one for each shape of a call; buffers A and C.
 * Called by the device and its trials.  Allocates nothing once the products are
 * prepared, where CANN lets executors be used again.
 * W may be integers in groups of 32 with a 16-bit scale for each (groups.h).
 *
 * C (rows x n) = A (rows x k) . W^T.  W (n x k) and A are cut into segments of K, one
 * whole segment after the other, each row-major; C has a block for each segment and
 * each part of N, and the host adds the segments up in ascending order.  A product
 * has one of the choice's numbers of rows; those that are missing are zeros. */
#ifndef WORKER_ASCEND_PRODUCT_H
#define WORKER_ASCEND_PRODUCT_H

#include "kernels/ascend/work.h"
#include "ops.h"
#include "session.h"
#include "shapes.h"

enum acl_way {
	ACL_WAY_NONE, ACL_WAY_MM, ACL_WAY_MATMUL, ACL_WAY_BATCH_MATMUL,
	ACL_WAY_CONVOLUTION,
	ACL_WAY_CLASSIC,		/* classic.h */
	ACL_WAY_GROUPS,			/* the only one for integers */
	ACL_NWAYS
};
const char *acl_way_name(enum acl_way way);	/* "aclnnMm" */
int acl_way_is_there(const struct acl_lib *lib, enum acl_way way);
/* May calls of this kind be captured at all? */
int acl_way_has_graphs(enum acl_way way);

/* How W lies: row-major (ND), or in FRACTAL_NZ (layout.h), which the library made of
 * it in place, or which was packed here. */
enum acl_nz { ACL_ND, ACL_NZ_BY_LIBRARY, ACL_NZ_BY_US, ACL_NZ_KINDS };
int acl_nz_is_there(const struct acl_lib *lib, enum acl_way way,
    enum acl_nz nz);

enum { ACL_CLASSES = 3, ACL_MOST_N = ASCEND_MOST_N };

enum { ACL_REASON = 56 };

/* How matrices of a format are multiplied. */
struct acl_form {
	uint8_t way;			/* enum acl_way */
	uint8_t c_type;			/* of C: ACL_FLOAT or ACL_FLOAT16 */
	uint8_t nclasses;
	uint8_t nz;			/* enum acl_nz */
	uint16_t rows[ACL_CLASSES];	/* of a product, ascending */
};

/* Matrices of one shape that are multiplied otherwise than their format's form says,
 * because that is faster. */
struct acl_shape_way {
	uint32_t n, k;
	uint8_t format;
	uint8_t way, nz;		/* as in struct acl_form */
	uint8_t twin[ACL_CLASSES];	/* a faster way for so many rows, with
					 * the bits of `way`; 0 = none */
	uint8_t pad[2];
};
enum { ACL_SHAPE_WAYS = 16 };

/* All that decides bits: made in the probe (trial.h), the same in every session.
 * Without a way for 16-bit floats nothing is multiplied. */
struct acl_choice {
	uint32_t magic;			/* ACL_CHOICE */
	struct acl_form form[ASCEND_FORMATS];
	uint8_t strategy;		/* of the pool, enum acl_strategy */
	uint8_t pad;
	struct ascend_chip chip;
	char reason[ACL_REASON];	/* why not an earlier way, or none */
	uint32_t fn[ACL_FNS];		/* outcomes of other operators (ops.h) */
	int32_t graph_why;		/* why there are no graphs (graph.h), */
	int32_t graph_fns_why;		/* or only such of products */
	struct acl_unfit unfit;		/* shapes of the model */
	uint16_t nshapes;
	uint16_t pad2;
	uint32_t graphs;		/* ways whose replays are right:
					 * ACL_GRAPH_BIT() */
	struct acl_shape_way shape[ACL_SHAPE_WAYS];	/* [nshapes] */
};
#define ACL_CHOICE	0x34434341u	/* "ACC4" */

struct acl_matrix;

/* How a matrix is multiplied; only its shape and format are looked at. */
struct acl_form acl_form_of(const struct acl_choice *c,
    const struct acl_matrix *w);

/* The way of its products of the form's class i of rows. */
enum acl_way acl_way_of(const struct acl_choice *c,
    const struct acl_matrix *w, unsigned i);

#define ACL_GRAPH_BIT(way, nz)						\
	(1u << ((unsigned)(nz) * (unsigned)ACL_NWAYS + (unsigned)(way)))
#define ACL_GRAPH_BITS	ACL_GRAPH_BIT(ACL_WAY_NONE, ACL_NZ_KINDS)

/* May all of its calls be captured (graph.h)?  The trials of its ways were right. */
int acl_matrix_has_graphs(const struct acl_choice *c,
    const struct acl_matrix *w);

/* A call of the operator: one part of N, one segment of K, one class of rows. */
struct acl_call;

struct acl_products {
	struct acl_session *s;
	const struct acl_choice *choice;
	struct acl_call *call;		/* [ncalls] */
	unsigned ncalls;
	uint64_t workspace_need;	/* of all calls so far */
	int is_limited;			/* to ascend_workspace() */
	/* In a trial: the number of calls that were made; when the last operator may
	 * be compiled, 0 = at any time. */
	uint32_t *steps;
	uint64_t compile_by_ns;
	/* Set by the owner before anything runs. */
	uint16_t *a;			/* the host's A, as the device's */
	void *c;
	void *device_a, *device_c;	/* in RC mode the same as a and c */
	uint64_t a_bytes, c_bytes;
	void *workspace;
	uint64_t workspace_bytes;
};

/* A matrix on the device. */
struct acl_matrix {
	uint32_t n, k;
	enum ascend_format format;
	const void *w;			/* device memory */
};

/* Make the calls for a shape, unless there are some.  -ENOTSUP: the device refuses
 * it, and the message's end says why.  Touches no memory of the device. */
int acl_products_prepare(struct acl_products *p, const struct acl_matrix *w,
    struct err *reterr);

/* Rows of the class for m of them. */
uint32_t acl_products_rows(const struct acl_products *p,
    const struct acl_matrix *w, uint32_t m);

/* Rows that A is filled for, for a batch of m: with those that are missing in its
 * last product. */
uint32_t acl_products_fill(const struct acl_products *p, uint32_t m);

/* Index in A of element `at` of row r.  rows: A was filled for so many, a
 * multiple of the largest class. */
uint64_t acl_a_index(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r, uint32_t at);

/* On a card, start the copy of A, filled for `rows` rows of k. */
int acl_products_send(struct acl_products *p, uint32_t k, uint32_t rows,
    struct err *reterr);

/* Bytes of C that a product of m rows needs. */
uint64_t acl_products_c_bytes(const struct acl_products *p,
    const struct acl_matrix *w, uint32_t m);

/* Start the product with rows [r0, r0 + m) of A, which was filled for `rows` rows,
 * and the copy of C that a card needs.  at: where its part of C begins, a multiple of
 * ACL_ALIGN bytes. */
int acl_products_start(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t r0, uint32_t m, uint64_t at, struct err *reterr);

/* The same without that copy: C stays on the device. */
int acl_products_compute(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t r0, uint32_t m, uint64_t at, struct err *reterr);

/* Read row r of a product, which has been waited for: w->n sums over the
 * segments. */
void acl_products_read(const struct acl_products *p,
    const struct acl_matrix *w, uint32_t m, uint64_t at, uint32_t r,
    float *ret);

/* Destroy the calls. */
void acl_products_close(struct acl_products *p);

/* Once all of W is there: let the library rearrange it, if it must.  Waits. */
int acl_products_convert(struct acl_products *p, const struct acl_matrix *w,
    struct err *reterr);

/* Where element (row, col) of W is put on the device, before the conversion. */
uint64_t acl_w_index(const struct acl_products *p, const struct acl_matrix *w,
    uint32_t row, uint32_t col);

#endif
