/* worker/rknpu/api.h - the matrix product's part of librknnrt.so, Rockchip's
 * runtime for its NPU.
 * Owns: declarations of a foreign ABI, written from its facts alone: names,
 * numbers, sizes and offsets.  Included by lib.h, which loads the library, and
 * by tests/standin/, which stands in for it.
 *
 * Sources of the facts:
 *	H	the runtime's headers, releases 1.6.0 to 2.3.2
 *	M	measured by others on an RK3588 with 2.3.2
 *	I	issue reports
 *
 * Releases differ in [H]:
 *	1.6.0	products 1, 2 and 10; K up to 10240.  Its struct rknn_matmul_info
 *		ends after 24 bytes with two 32-bit layouts.  A later one whose
 *		new fields are 0 has the same first bytes.
 *	2.0.0b0	products 3 to 8 and 11, quantization parameters, dynamic M,
 *		domains, rknn_create_mem2(), and a helper that converts B under
 *		the name, but not with the arguments, of the later one
 *	2.1.0	product 9, B as its transpose, scales of groups, the helper
 *	2.3.0	product 12
 *	2.3.2	product 15, memory in SRAM
 * 1.5.x is too old: no rknn_mem_sync(), and another meaning of `type`.
 *
 * Only 64-bit systems: on 32-bit ARM a context has 32 bits. */
#ifndef WORKER_RKNPU_API_H
#define WORKER_RKNPU_API_H

#include <stddef.h>
#include <stdint.h>

enum { RKNN_MAX_DIMS = 16, RKNN_MAX_NAME_LEN = 256 };

/* --- codes [H] --- */

enum rknn_code {
	RKNN_SUCC = 0,
	RKNN_ERR_FAIL = -1,
	RKNN_ERR_TIMEOUT = -2,
	RKNN_ERR_DEVICE_UNAVAILABLE = -3,
	RKNN_ERR_MALLOC_FAIL = -4,
	RKNN_ERR_PARAM_INVALID = -5,
	RKNN_ERR_MODEL_INVALID = -6,
	RKNN_ERR_CTX_INVALID = -7,
	RKNN_ERR_INPUT_INVALID = -8,
	RKNN_ERR_OUTPUT_INVALID = -9,
	RKNN_ERR_DEVICE_UNMATCH = -10,
	RKNN_ERR_INCOMPATIBLE_PRE_COMPILE_MODEL = -11,
	RKNN_ERR_INCOMPATIBLE_OPTIMIZATION_LEVEL_VERSION = -12,
	RKNN_ERR_TARGET_PLATFORM_UNMATCH = -13
};

/* --- types [H] --- */

enum rknn_tensor_type {
	RKNN_TENSOR_FLOAT32 = 0, RKNN_TENSOR_FLOAT16 = 1,
	RKNN_TENSOR_INT8 = 2, RKNN_TENSOR_UINT8 = 3, RKNN_TENSOR_INT16 = 4,
	RKNN_TENSOR_UINT16 = 5, RKNN_TENSOR_INT32 = 6,
	RKNN_TENSOR_UINT32 = 7, RKNN_TENSOR_INT64 = 8, RKNN_TENSOR_BOOL = 9,
	RKNN_TENSOR_INT4 = 10, RKNN_TENSOR_BFLOAT16 = 11
};

/* Product of A and B, with the type of C. */
enum rknn_matmul_type {
	RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1,
	RKNN_INT8_MM_INT8_TO_INT32 = 2,
	RKNN_INT8_MM_INT8_TO_INT8 = 3,
	RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4,
	RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5,
	RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6,
	RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7,
	RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8,
	RKNN_INT8_MM_INT8_TO_FLOAT32 = 9,
	RKNN_INT4_MM_INT4_TO_INT16 = 10,
	RKNN_INT8_MM_INT4_TO_INT32 = 11,
	RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12,
	RKNN_INT8_MM_INT4_TO_FLOAT16 = 15,
	RKNN_MATMUL_TYPES = 16		/* one above the last number */
};

/* Row-major; the NPU's own; B only: row-major and transposed. */
enum rknn_matmul_layout {
	RKNN_MM_LAYOUT_NORM = 0, RKNN_MM_LAYOUT_NATIVE = 1,
	RKNN_MM_LAYOUT_TP_NORM = 2
};

/* 2.0.0b0 had two only: 0 a layer, 1 a channel. */
enum rknn_matmul_quant_type {
	RKNN_QUANT_TYPE_PER_LAYER_SYM = 0, RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1,
	RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2,
	RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3,
	RKNN_QUANT_TYPE_PER_GROUP_SYM = 4, RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5
};

/* A product takes one core: masks of more than one bit are refused [M, I]. */
enum rknn_core_mask {
	RKNN_NPU_CORE_AUTO = 0, RKNN_NPU_CORE_0 = 1, RKNN_NPU_CORE_1 = 2,
	RKNN_NPU_CORE_2 = 4, RKNN_NPU_CORE_0_1 = 3, RKNN_NPU_CORE_0_1_2 = 7,
	RKNN_NPU_CORE_ALL = 0xffff, RKNN_NPU_CORE_UNDEFINED = 0x10000
};

enum rknn_mem_sync_mode {
	RKNN_MEMORY_SYNC_TO_DEVICE = 1, RKNN_MEMORY_SYNC_FROM_DEVICE = 2,
	RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3
};

/* Flags of rknn_create_mem2(). */
enum rknn_mem_alloc_flags {
	RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0, RKNN_FLAG_MEMORY_CACHEABLE = 1,
	RKNN_FLAG_MEMORY_NON_CACHEABLE = 2, RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4,
	RKNN_FLAG_MEMORY_NO_CONTEXT = 0x20000
};

/* Flags of a struct rknn_tensor_mem. */
enum rknn_tensor_mem_flags {
	RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1,
	RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2,
	RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3
};

enum rknn_query_cmd {
	RKNN_QUERY_SDK_VERSION = 5, RKNN_QUERY_MEM_SIZE = 6
};

/* Address spaces of 4 GiB: enum of domains of rknn_matmul_info [H]. */
enum { RKNN_DOMAINS = 16 };

/* --- structures [H, compiled] --- */

struct rknn_tensor_mem {
	void *virt_addr;
	uint64_t phys_addr;
	int32_t fd;			/* one for each allocation */
	int32_t offset;
	uint32_t size, flags;
	void *priv_data;
};

struct rknn_matmul_tensor_attr {
	char name[RKNN_MAX_NAME_LEN];	/* "A", "B", "C" */
	uint32_t n_dims;		/* 2; native: A and C 3, B 4 */
	uint32_t dims[RKNN_MAX_DIMS];
	uint32_t size;			/* bytes */
	int32_t type;			/* enum rknn_tensor_type */
};

struct rknn_matmul_io_attr {
	struct rknn_matmul_tensor_attr A, B, C;
};

/* Zero it first.  From B_quant_type on, 1.6.0 has only the two layouts, of 32
 * bits each. */
struct rknn_matmul_info {
	int32_t M, K, N;
	int32_t type;			/* enum rknn_matmul_type */
	int16_t B_layout, B_quant_type;
	int16_t AC_layout, AC_quant_type;
	int32_t iommu_domain_id;
	int16_t group_size;
	int8_t reserved[34];
};

struct rknn_matmul_shape {
	int32_t M, K, N;
};

struct rknn_quant_params {
	char name[RKNN_MAX_NAME_LEN];
	float *scale;
	int32_t scale_len;
	int32_t *zp;
	int32_t zp_len;
};

struct rknn_sdk_version {
	char api_version[256];		/* "2.3.2 (429f97ae6b@2025-04-09...)" */
	char drv_version[256];		/* "0.9.8" */
};

struct rknn_mem_size {
	uint32_t total_weight_size, total_internal_size;
	uint64_t total_dma_allocated_size;
	uint32_t total_sram_size, free_sram_size;
	uint32_t reserved[10];
};

#define RKNN_SIZE(type, nbytes) \
	_Static_assert(sizeof(struct type) == (nbytes), "ABI: " #type)
#define RKNN_AT(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), \
	    "ABI: " #type "." #field)

_Static_assert(sizeof(void *) == 8, "only 64-bit systems");
RKNN_SIZE(rknn_tensor_mem, 40);
RKNN_AT(rknn_tensor_mem, phys_addr, 8);
RKNN_AT(rknn_tensor_mem, fd, 16);
RKNN_AT(rknn_tensor_mem, offset, 20);
RKNN_AT(rknn_tensor_mem, size, 24);
RKNN_AT(rknn_tensor_mem, flags, 28);
RKNN_AT(rknn_tensor_mem, priv_data, 32);
RKNN_SIZE(rknn_matmul_tensor_attr, 332);
RKNN_AT(rknn_matmul_tensor_attr, n_dims, 256);
RKNN_AT(rknn_matmul_tensor_attr, dims, 260);
RKNN_AT(rknn_matmul_tensor_attr, size, 324);
RKNN_AT(rknn_matmul_tensor_attr, type, 328);
RKNN_SIZE(rknn_matmul_io_attr, 996);
RKNN_AT(rknn_matmul_io_attr, B, 332);
RKNN_AT(rknn_matmul_io_attr, C, 664);
RKNN_SIZE(rknn_matmul_info, 64);
RKNN_AT(rknn_matmul_info, K, 4);
RKNN_AT(rknn_matmul_info, N, 8);
RKNN_AT(rknn_matmul_info, type, 12);
RKNN_AT(rknn_matmul_info, B_layout, 16);
RKNN_AT(rknn_matmul_info, B_quant_type, 18);
RKNN_AT(rknn_matmul_info, AC_layout, 20);
RKNN_AT(rknn_matmul_info, AC_quant_type, 22);
RKNN_AT(rknn_matmul_info, iommu_domain_id, 24);
RKNN_AT(rknn_matmul_info, group_size, 28);
RKNN_AT(rknn_matmul_info, reserved, 30);
RKNN_SIZE(rknn_matmul_shape, 12);
RKNN_SIZE(rknn_quant_params, 288);
RKNN_AT(rknn_quant_params, scale, 256);
RKNN_AT(rknn_quant_params, scale_len, 264);
RKNN_AT(rknn_quant_params, zp, 272);
RKNN_AT(rknn_quant_params, zp_len, 280);
RKNN_SIZE(rknn_sdk_version, 512);
RKNN_SIZE(rknn_mem_size, 64);
RKNN_AT(rknn_mem_size, total_dma_allocated_size, 8);
RKNN_AT(rknn_mem_size, free_sram_size, 20);
#undef RKNN_SIZE
#undef RKNN_AT

/* --- functions [H] --- */

/* Fills io_attr. */
int rknn_matmul_create(uint64_t *ctx, struct rknn_matmul_info *info,
    struct rknn_matmul_io_attr *io_attr);
/* The attr's name says which matrix.  B that is not native is converted now,
 * and later changes of it are not seen; all else is used in place [M]. */
int rknn_matmul_set_io_mem(uint64_t ctx, struct rknn_tensor_mem *mem,
    struct rknn_matmul_tensor_attr *attr);
int rknn_matmul_set_core_mask(uint64_t ctx, int mask);
int rknn_matmul_run(uint64_t ctx);	/* blocks */
int rknn_matmul_destroy(uint64_t ctx);
struct rknn_tensor_mem *rknn_create_mem(uint64_t ctx, uint32_t nbytes);
struct rknn_tensor_mem *rknn_create_mem_from_fd(uint64_t ctx, int32_t fd,
    void *p, uint32_t nbytes, int32_t offset);
int rknn_destroy_mem(uint64_t ctx, struct rknn_tensor_mem *mem);
int rknn_query(uint64_t ctx, int cmd, void *ret, uint32_t nbytes);

/* 1.6.0.  Of no effect on memory of rknn_create_mem_from_fd() [M]. */
int rknn_mem_sync(uint64_t ctx, struct rknn_tensor_mem *mem, int mode);

/* 2.0.0b0. */
struct rknn_tensor_mem *rknn_create_mem2(uint64_t ctx, uint64_t nbytes,
    uint64_t flags);
int rknn_matmul_set_quant_params(uint64_t ctx,
    struct rknn_quant_params *params);
int rknn_matmul_get_quant_params(uint64_t ctx,
    struct rknn_quant_params *params, float *scale);
int rknn_matmul_set_dynamic_shape(uint64_t ctx,
    struct rknn_matmul_shape *shape);

/* 2.1.0.  Only M may vary. */
int rknn_matmul_create_dynamic_shape(uint64_t *ctx,
    struct rknn_matmul_info *info, int nshapes,
    struct rknn_matmul_shape *shapes, struct rknn_matmul_io_attr *io_attrs);
/* In 2.0.0b0 other arguments: (in, out, K, N, subN, subK, type).  Reads int4
 * from one byte a value [M]. */
int rknn_B_normal_layout_to_native_layout(void *in, void *out, int K, int N,
    struct rknn_matmul_info *info);

#endif
