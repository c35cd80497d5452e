/* layers/gguf/check.c - checks that the parser of a file and the view of a flat
 * block share. */
#include "parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/plain.h"

int
gguf_is_alignment(uint64_t n)
{
	return n >= GGUF_MIN_ALIGNMENT && n <= GGUF_MAX_ALIGNMENT &&
	    (n & (n - 1)) == 0;
}

uint64_t
gguf_plain_bytes(const char *text, uint64_t len)
{
	uint64_t i;
	unsigned n;

	for (i = 0; i < len; i += n)
		if ((n = plain_len(text + i, len - i)) == 0)
			break;
	return i;
}

int
gguf_tensor_bytes(const struct gguf_tensor *t, uint64_t *ret,
    char why[GGUF_WHY_LEN])
{
	const struct quant_info *info = quant_info(t->type);
	uint64_t nrows = 1, nelem, row;
	uint32_t i;

	snprintf(why, GGUF_WHY_LEN, "too many elements");
	for (i = 1; i < GGUF_MAX_DIMS; i++)
		if (__builtin_mul_overflow(nrows, t->ne[i], &nrows))
			return -EBADMSG;
	if (__builtin_mul_overflow(nrows, t->ne[0], &nelem) ||
	    nelem > INT64_MAX)
		return -EBADMSG;
	*ret = 0;
	if (info == NULL || nelem == 0)
		return 0;
	snprintf(why, GGUF_WHY_LEN, "rows of %" PRIu64 " elements, %s needs a "
	    "multiple of %" PRIu32, t->ne[0], info->name, info->block);
	if (t->ne[0] % info->block != 0)
		return -EBADMSG;
	snprintf(why, GGUF_WHY_LEN, "too many bytes");
	row = quant_row_bytes(t->type, t->ne[0]);
	if (row == 0 || __builtin_mul_overflow(row, nrows, ret))
		return -EBADMSG;
	return 0;
}

/* By file and offset, then by descending size, so that a tensor of an unknown
 * type (0 bytes) that starts with another one counts as overlapping. */
static int
by_place(const void *pa, const void *pb)
{
	const struct gguf_tensor *a = *(const struct gguf_tensor *const *)pa;
	const struct gguf_tensor *b = *(const struct gguf_tensor *const *)pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return (a->nbytes < b->nbytes) - (a->nbytes > b->nbytes);
}

int
gguf_sort_by_place(const struct gguf *g, const struct gguf_tensor ***ret,
    uint64_t *ret_n, struct err *reterr)
{
	const struct gguf_tensor **t;
	uint64_t i, n = 0;

	if ((t = calloc(g->ntensors + 1, sizeof(*t))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "%s: no memory for %"
		    PRIu64 " tensors", g->file->path, g->ntensors);
	for (i = 0; i < g->ntensors; i++)
		if (gguf_elements(&g->tensor[i]) > 0)
			t[n++] = &g->tensor[i];
	qsort(t, n, sizeof(*t), by_place);
	*ret = t;
	*ret_n = n;
	return 0;
}

uint64_t
gguf_room(const struct gguf *g, const struct gguf_tensor *const *sorted,
    uint64_t n, uint64_t i)
{
	const struct gguf_tensor *t = sorted[i];

	return (i + 1 < n && sorted[i + 1]->file == t->file ?
	    sorted[i + 1]->offset : g->file[t->file].nbytes) - t->offset;
}
