/* worker/rknpu/lib.h - loads librknnrt.so, Rockchip's runtime for its NPU.
 * Owns: the loaded library, one per process; never unloaded, because it has
 * threads.  Called by the device and its probe.  Calls block and have no
 * deadline, and the library may end the process: that is the caller's
 * business. */
#ifndef WORKER_RKNPU_LIB_H
#define WORKER_RKNPU_LIB_H

#include "soc.h"

#define RKNN_LIBRARY	"librknnrt.so"

#define RKNN_FUNCTIONS(X)						\
	X(rknn_matmul_create) X(rknn_matmul_set_io_mem)			\
	X(rknn_matmul_set_core_mask) X(rknn_matmul_run)			\
	X(rknn_matmul_destroy) X(rknn_create_mem)			\
	X(rknn_create_mem_from_fd) X(rknn_destroy_mem) X(rknn_query)	\
	X(rknn_mem_sync)

/* NULL where the library is older. */
#define RKNN_LATER_FUNCTIONS(X)						\
	X(rknn_create_mem2) X(rknn_matmul_set_quant_params)		\
	X(rknn_matmul_get_quant_params) X(rknn_matmul_set_dynamic_shape) \
	X(rknn_matmul_create_dynamic_shape)				\
	X(rknn_B_normal_layout_to_native_layout)

/* Releases as numbers that can be compared. */
#define RKNN_RELEASE(major, minor, patch) \
	((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))
#define RKNN_1_6	RKNN_RELEASE(1, 6, 0)
#define RKNN_2_0	RKNN_RELEASE(2, 0, 0)
#define RKNN_2_1	RKNN_RELEASE(2, 1, 0)
#define RKNN_2_3	RKNN_RELEASE(2, 3, 0)
#define RKNN_2_3_2	RKNN_RELEASE(2, 3, 2)

struct rknn_lib {
	void *so;
	char path[128];			/* of the file that was loaded */
	uint32_t at_least;		/* the release, by its functions: 1.6,
					 * 2.0 or 2.1 */
	uint64_t max_files;		/* descriptors, one an allocation */
#define X(f)	__typeof__(f) *f;
	RKNN_FUNCTIONS(X)
	/* The helper that converts B is NULL in 2.0.0b0 too, where it takes
	 * other arguments. */
	RKNN_LATER_FUNCTIONS(X)
#undef X
};

/* Load it once, on any thread, and raise the limit of descriptors: each
 * allocation takes one.  -ENOENT: no such library, or one older than 1.6; the
 * message has the remedy. */
int rknn_load(const struct rknn_lib **ret, struct err *reterr);

/* The library's release. */
struct rknn_release {
	uint32_t number;		/* RKNN_RELEASE() */
	char text[80];			/* "2.3.2 (429f97ae6b@2025-04-09...)" */
	char driver[32];		/* of the kernel's driver; "" = unknown */
	const char *from;		/* "rknn_query", "its functions" */
};

/* Ask a context.  The functions decide where the library does not answer, or
 * answers with a release that its functions contradict. */
void rknn_ask_release(const struct rknn_lib *lib, uint64_t ctx,
    struct rknn_release *ret);

/* The same with a small context of its own, which proves that the NPU takes
 * products at all. */
int rknn_find_release(const struct rknn_lib *lib, const char *session,
    struct rknn_release *ret, struct err *reterr);

/* --- what a release can do --- */

/* The first release with this product; 0 = unknown. */
uint32_t rknn_matmul_since(int type);

/* Fill a product of M x K and K x N with row-major matrices, everything else
 * 0. */
void rknn_info(struct rknn_matmul_info *ret, int type, uint32_t m, uint32_t k,
    uint32_t n);

/* Check that the release knows every field of info, before the library reads a
 * field that it does not have.  -EINVAL names field and release. */
int rknn_check_info(uint32_t release, const struct rknn_matmul_info *info,
    struct err *reterr);

/* --- codes --- */

/* "RKNN_ERR_TIMEOUT"; "an unknown code" */
const char *rknn_code_name(int code);

/* Report a call that returned code: session, call, code, meaning, remedy.
 * Returns -ENOMEM when memory or addresses ran out, -ETIMEDOUT, -ENODEV when the
 * NPU is missing, -EINVAL when it refuses the shape or type, else -EIO. */
int rknn_failed(const char *session, const char *call, int code,
    struct err *reterr);

/* Report a call that returned no memory: descriptors, the domain's addresses, or
 * the machine's memory ran out.  highest_fd: of all memory so far, -1 = none.
 * Returns -EMFILE or -ENOMEM.  No system call. */
int rknn_no_memory(const char *session, const char *what, uint64_t nbytes,
    int domain, int highest_fd, struct err *reterr);

#endif
