/* kernels/attn/kv.c - layout of keys and values in the KV cache. */
#include <string.h>

#include "kernels/kernels.h"

/* Copy n elements of `size` bytes, KEY_LANES elements apart. */
static inline void
copy_to_lane(uint8_t *dst, const void *src, uint32_t n, size_t size)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		memcpy(dst + i * size * KEY_LANES,
		    (const uint8_t *)src + i * size, size);
}

static uint8_t *
key_block(void *keys, enum kv_type f, uint32_t head_dim, uint32_t pos)
{
	return (uint8_t *)keys + pos / KEY_LANES * KEY_LANES *
	    kv_row_bytes(f, head_dim);
}

static void
prefetch_for_write(const uint8_t *p, uint64_t nbytes)
{
	const uint8_t *end = p + nbytes;

	for (p -= (uintptr_t)p % CACHELINE; p < end; p += CACHELINE)
		__builtin_prefetch(p, 1);
}

void
kv_prefetch(void *keys, enum kv_type kfmt, uint32_t head_dim, void *values,
    enum kv_type vfmt, uint32_t v_dim, uint32_t pos)
{
	const uint64_t v_row = kv_row_bytes(vfmt, v_dim);

	prefetch_for_write(key_block(keys, kfmt, head_dim, pos), KEY_LANES *
	    kv_row_bytes(kfmt, head_dim));
	prefetch_for_write((uint8_t *)values + pos * v_row, v_row);
}

/* Through a buffer of limited size on the stack. */
void
kv_store_key(const struct kernels *k, void *keys, enum kv_type f,
    uint32_t head_dim, uint32_t pos, const float *x)
{
	uint8_t *block = key_block(keys, f, head_dim, pos);
	uint32_t lane = pos % KEY_LANES, i, n;
	union {
		float f32[256];
		uint16_t f16[256];
		struct block_q8_0 q8_0[8];
	} row;

	for (i = 0; i < head_dim; i += n) {
		n = MIN(head_dim - i, NITEMS(row.f32));
		k->kv_store(&row, f, x + i, n);
		if (f == KV_F32) {
			copy_to_lane(block + (i * KEY_LANES + lane) * 4, &row,
			    n, 4);
		} else if (f == KV_F16) {
			copy_to_lane(block + (i * KEY_LANES + lane) * 2, &row,
			    n, 2);
		} else {
			struct block_q8_0 *b = row.q8_0;
			uint32_t j;

			for (j = i; j < i + n; j += 32, b++) {
				memcpy(block + (j / 32 * KEY_LANES + lane) * 2,
				    &b->d, sizeof(b->d));
				copy_to_lane(block + head_dim +
				    j * KEY_LANES + lane, b->q, 32, 1);
			}
		}
	}
}
