/* worker/rknpu/soc.h - Rockchip's chips with an NPU, and which one this machine
 * has.
 * Owns: the table of chips.  Called by layout.c, lib.c and the device; reads
 * files only.  root is RKNPU_ROOT except in tests.  A chip's numbers are what
 * documents and reports say: the device asks the runtime, measures, and uses
 * these as a check. */
#ifndef WORKER_RKNPU_SOC_H
#define WORKER_RKNPU_SOC_H

#include "config/err.h"
#include "api.h"

#define RKNPU_ROOT	""

/* Widths of the elements of A and B. */
enum rknpu_width { RKNPU_4_BITS, RKNPU_8_BITS, RKNPU_16_BITS, RKNPU_WIDTHS };

struct rknpu_soc {
	const char *name;		/* "RK3588" */
	const char *compatible[2];	/* as in the device tree */
	unsigned ncores;
	/* Bit t: product t.  Those that the manual names, and those of them
	 * that are created but abort or give wrong results. */
	uint32_t types, broken_types;
	/* Native layouts: columns of A in a group; columns and rows of a tile
	 * of B; 0 = no such width. */
	uint8_t a_group[RKNPU_WIDTHS];
	uint8_t b_cols[RKNPU_WIDTHS], b_rows[RKNPU_WIDTHS];
	uint32_t segment_k;		/* native B is cut into segments of so
					 * many rows; 0 = never cut */
};

/* Chip i; NULL after the last one. */
const struct rknpu_soc *rknpu_soc(unsigned i);

/* Find the chip in /proc/device-tree/compatible.  -ENODEV: another machine, or a
 * chip that is not in the table; the message names it. */
int rknpu_find_soc(const char *root, const struct rknpu_soc **ret,
    struct err *reterr);

/* K and N of a product on soc must be multiples of these; 0 = type unknown. */
uint32_t rknpu_align_k(const struct rknpu_soc *soc, int type);
uint32_t rknpu_align_n(const struct rknpu_soc *soc, int type);

/* Element types of a product's three matrices; 0 = type unknown. */
int rknpu_matmul_types(int type, int *ret_a, int *ret_b, int *ret_c);

/* Bits of an element, of enum rknn_tensor_type; 0 = unknown. */
unsigned rknpu_tensor_bits(int tensor_type);

/* Find the NPU's DRM node, without root: "/dev/dri/renderD129".  0 = none: the
 * kernel lacks Rockchip's driver. */
int rknpu_find_node(const char *root, char *ret, size_t len);

/* Version of the kernel's driver, "0.9.8": from debugfs or procfs, else asked of
 * the DRM node.  *ret_from says how.  0 = unknown. */
int rknpu_driver_version(const char *root, char *ret, size_t len,
    const char **ret_from);

#endif
