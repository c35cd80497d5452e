/* worker/ascend/layout.c - see layout.h. */
#include "layout.h"

#include <assert.h>
#include <string.h>

uint64_t
acl_nz_index(uint32_t rows, uint32_t size, uint32_t row, uint32_t col)
{
	uint32_t tile = ACL_NZ_BYTES / size;
	uint64_t down = DIV_UP((uint64_t)rows, ACL_NZ_ROWS);

	return ((col / tile * down + row / ACL_NZ_ROWS) * ACL_NZ_ROWS +
	    row % ACL_NZ_ROWS) * tile + col % tile;
}

uint64_t
acl_nz_elements(uint32_t rows, uint32_t cols, uint32_t size)
{
	uint64_t r = ALIGN_UP((uint64_t)rows, ACL_NZ_ROWS), n;
	uint64_t c = ALIGN_UP((uint64_t)cols, ACL_NZ_BYTES / size);

	if (__builtin_mul_overflow(r, c, &n) || n > UINT64_MAX / size)
		return 0;
	return n;
}

void
acl_nz_pack(void *dst, const void *src, uint32_t rows, uint32_t cols,
    uint32_t size, uint32_t row0, uint32_t nrows)
{
	uint32_t tile = ACL_NZ_BYTES / size, row, col, n, last = row0 + nrows;
	char *to;

	assert(size == 1 || size == 2 || size == 4);
	if (last == rows)
		last = (uint32_t)ALIGN_UP(rows, ACL_NZ_ROWS);
	for (row = row0; row < last; row++)
		for (col = 0; col < cols; col += tile) {
			to = (char *)dst + acl_nz_index(rows, size, row, col) *
			    size;
			n = row < rows ? MIN(tile, cols - col) * size : 0;
			if (n > 0)
				memcpy(to, (const char *)src +
				    ((uint64_t)(row - row0) * cols + col) *
				    size, n);
			memset(to + n, 0, ACL_NZ_BYTES - n);
		}
}

void
acl_int4_from_q4_0(uint8_t dst[16], const uint8_t q[16])
{
	unsigned i;

	/* q - 8 in 4 bits is q with its highest bit flipped. */
	for (i = 0; i < 8; i++) {
		dst[i] = (uint8_t)((q[2 * i] & 15) | (q[2 * i + 1] & 15) << 4)
		    ^ 0x88;
		dst[i + 8] = (uint8_t)(q[2 * i] >> 4 | (q[2 * i + 1] & 0xf0))
		    ^ 0x88;
	}
}
