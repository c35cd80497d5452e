/* worker/ascend/groups.c - see groups.h. */
#include "groups.h"

#include <math.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "layout.h"

/* A group of zeros may have any scale in a file, also one that overflows here. */
static uint16_t
divided(uint16_t d, float scale, int is_zero)
{
	return is_zero ? 0 : float_to_half(half_to_float(d) / scale);
}

static int
are_all(const uint8_t *q, uint32_t n, uint8_t value)
{
	uint32_t i;

	for (i = 0; i < n && q[i] == value; i++)
		;
	return i == n;
}

void
acl_groups_q8_0(uint8_t *quants, uint16_t *scales, const void *src, uint32_t k,
    float scale)
{
	const struct block_q8_0 *b = src;
	uint32_t i, n = k / ACL_GROUP;

	if (isnan(scale)) {
		memset(quants, 0, k);
		memset(scales, 0, n * sizeof(*scales));
		return;
	}
	for (i = 0; i < n; i++, b++) {
		memcpy(quants + i * ACL_GROUP, b->q, ACL_GROUP);
		scales[i] = divided(b->d, scale, are_all((const void *)b->q,
		    ACL_GROUP, 0));
	}
}

void
acl_groups_q4_0(uint8_t *quants, uint16_t *scales, const void *src, uint32_t k,
    float scale)
{
	const struct block_q4_0 *b = src;
	uint32_t i, n = k / ACL_GROUP;

	if (isnan(scale)) {
		memset(quants, 0, k / 2);
		memset(scales, 0, n * sizeof(*scales));
		return;
	}
	for (i = 0; i < n; i++, b++) {
		acl_int4_from_q4_0(quants + i * ACL_GROUP / 2, b->q);
		scales[i] = divided(b->d, scale, are_all(b->q, ACL_GROUP / 2,
		    0x88));
	}
}
