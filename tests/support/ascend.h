/* tests/support/ascend.h - CANN's libraries, replaced by stand-ins
 * (tests/standin/libascendcl.c), one process for each setting of their
 * switches. */
#ifndef TESTS_SUPPORT_ASCEND_H
#define TESTS_SUPPORT_ASCEND_H

#include "t.h"
#include "worker/ascend/ascend.h"
#include "tests/standin/ascend_counts.h"

/* Which libraries of operators dlopen() will find. */
enum as_family { AS_OLD, AS_SPLIT, AS_NO_OPERATORS, AS_NO_COMPILER };

/* Run fn in a child process with these switches, CANN loaded and initialized,
 * device 0 set; it must end by itself, with no misuse and nothing left. */
#define as_run(switches, fn) \
	ck_assert_msg(as_child((switches), AS_OLD, 1, (fn)) == 0, "with %s", \
	    (switches))
/* The same, with nothing but the libraries to be found. */
#define as_run_bare(switches, family, fn) \
	ck_assert_msg(as_child((switches), (family), 0, (fn)) == 0, "with %s", \
	    (switches))
/* Returns waitpid()'s status. */
int as_child(const char *switches, enum as_family family, int ready,
    void (*fn)(void));

/* Let dlopen() find the stand-ins. */
void as_preload(const char *switches, enum as_family family);

const struct acl_lib *as_lib(void);
struct ascend_standin_counts as_counts(void);

/* Set in a child that is ready. */
extern struct acl_machine as_machine;
extern struct acl_source as_source;

/* Expect this code of a call of the library. */
#define as_is(code, call)	ck_assert_int_eq((call), (code))
#define as_ok(call)		as_is(ACL_SUCCESS, call)

/* Expect a misuse with this text, and end. */
#define AS_MISUSED(n, text) do {					\
	struct ascend_standin_counts c_ = as_counts();			\
	ck_assert_msg(c_.misuses == (n) && strstr(c_.first_misuse,	\
	    (text)) != NULL, "%u misuses: %s", c_.misuses,		\
	    c_.first_misuse);						\
	_exit(0);							\
} while (0)

#define HAS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" without \"%s\"", \
	    (text), (part))

/* --- sessions and products, of which a child has one --- */

/* Session npu0 on device 0, with a stream. */
void as_open(struct acl_session *s);
/* It must have nothing left but memory. */
void as_close(struct acl_session *s);

/* A choice of aclnnMatmul in three classes of rows, with results of c_type, a pool of
 * slots, and all operators right; fns: ASCEND_FN_... */
struct acl_choice as_choice(const struct acl_session *s, int c_type,
    uint32_t fns);

/* End a device with such a session, whose ledger is of a GiB: it must have nothing left. */
void as_close_device(struct device *d);

/* Device memory, until as_free_blocks(). */
void *as_block(uint64_t nbytes);
void as_free_blocks(void);

/* Make A and C, of p's sizes, and the workspace of the calls so far. */
void as_open_products(struct acl_products *p);
/* Free these, and all blocks. */
void as_close_products(struct acl_products *p);

/* Multiples of 1/8 from -7/8 to 7/8. */
uint16_t as_random_half(void);

/* --- tensors --- */

/* A row-major tensor in device memory of its own. */
struct as_tensor {
	struct acl_tensor *t;
	void *data;
	size_t n, nbytes;
	int dtype;
	int64_t dims[4];
	unsigned ndims;
};

struct as_tensor as_new(int dtype, unsigned ndims, const int64_t *dims);
struct as_tensor as_matrix(int dtype, int64_t rows, int64_t cols);
/* Random values that are small multiples of 1/8; of integers, small. */
void as_fill(struct as_tensor *x, float *ret);
void as_put(struct as_tensor *x, const float *v);
void as_get(const struct as_tensor *x, float *v);
void as_free(struct as_tensor *x);

/* Run phase two with a workspace, wait, and free the workspace.  Returns the first
 * code that is not 0. */
int as_finish(enum acl_operator op, uint64_t ws_bytes,
    struct acl_executor *ex);
/* Both phases: AS_OP(Mm, a.t, b.t, c.t, 0). */
#define AS_OP(op, ...) __extension__ ({					\
	uint64_t ws_ = 0;						\
	struct acl_executor *ex_ = NULL;				\
	int rc_ = as_lib()->op(__VA_ARGS__, &ws_, &ex_);		\
	rc_ != ACL_SUCCESS ? rc_ : as_finish(ACL_OP_##op, ws_, ex_);	\
})

#endif
