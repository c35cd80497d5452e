/* layers/bind.c - lays out extents in memory and finds them by role. */
#include "bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

static int
refuse_type(const struct extent *e, const struct kernels *k, struct err *reterr)
{
	const struct quant_info *qi = quant_info(e->type);
	char known[256] = "";
	uint32_t t;

	for (t = 0; t < QUANT_NTYPES; t++) {
		if (k->mat[t].name == NULL)
			continue;
		if (known[0] != '\0')
			strlcat(known, ", ", sizeof(known));
		strlcat(known, quant_info(t)->name, sizeof(known));
	}
	return err_set(reterr, ERR_MODEL, -ENOTSUP,
	    "tensor %s has type %s: supported are %s", e->name,
	    qi != NULL ? qi->name : "unknown", known);
}

/* Rows of each matrix of an extent. */
static uint32_t
mat_rows(const struct extent *e)
{
	return e->nrows / MAX(e->nmats, 1);
}

int
weight_is_for_host(const struct extent *e)
{
	return e->role == ROLE_ROUTER || e->rows_only ||
	    role_info(e->role)->use == USE_EXPERTS;
}

/* 1 if w is the expert after w[-1]: it is laid out as if both were one stacked
 * extent. */
static int
is_next_expert(const struct weight *w)
{
	const struct extent *e = &w->ext, *before = &w[-1].ext;

	return role_info(e->role)->use == USE_EXPERTS &&
	    e->role == before->role && e->layer == before->layer &&
	    e->type == before->type && e->ncols == before->ncols &&
	    mat_rows(e) == mat_rows(before);
}

static uint64_t
matrix_bytes(const struct weight *w, const struct kernels *k)
{
	uint64_t packed = w->kern->packed_bytes(w->mat.n, w->mat.k);

	return weight_is_for_host(&w->ext) || k->device_bytes == NULL ?
	    packed : MAX(packed, k->device_bytes(k->device_groups, w->ext.type,
	    w->mat.n, w->mat.k));
}

int
weights_layout(const struct extent *ext, uint32_t n, const struct kernels *k,
    struct weights *ret, struct err *reterr)
{
	struct weights ws = { .n = n };
	struct weight *w;
	uint32_t i;

	if ((ws.w = calloc(MAX(n, 1), sizeof(*ws.w))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "the layout of %u tensors", n);
	for (i = 0; i < n; i++) {
		w = &ws.w[i];
		w->ext = ext[i];
		if (ext[i].role >= ROLE_COUNT || ext[i].type >= QUANT_NTYPES)
			goto fail;
		if (mat_rows(&ext[i]) == 0 ||
		    ext[i].nrows % MAX(ext[i].nmats, 1) != 0) {
			free(ws.w);
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "tensor %s: %u rows are not %u equal matrices",
			    ext[i].name, ext[i].nrows, ext[i].nmats);
		}
		if (role_info(ext[i].role)->use == USE_VECTOR) {
			w->nbytes = (uint64_t)ext[i].nrows * ext[i].ncols *
			    sizeof(float);
		} else {
			w->kern = weight_is_for_host(&ext[i]) ?
			    &k->host[ext[i].type] : &k->mat[ext[i].type];
			if (w->kern->name == NULL)
				goto fail;
			w->mat.n = mat_rows(&ext[i]);
			w->mat.k = ext[i].ncols;
			w->mat_bytes = ALIGN_UP(matrix_bytes(w, k), 64);
			w->nbytes = w->mat_bytes * MAX(ext[i].nmats, 1);
			w->mat.type = ext[i].type;
		}
		w->offset = i > 0 && is_next_expert(w) ?
		    w[-1].offset + w[-1].nbytes : ws.nbytes;
		ws.nbytes = ALIGN_UP(w->offset + w->nbytes, WEIGHT_ALIGN);
	}
	*ret = ws;
	return 0;
fail:
	free(ws.w);
	return refuse_type(&ext[i], k, reterr);
}

void
weights_free(struct weights *ws)
{
	free(ws->w);
	ws->w = NULL;
	ws->n = 0;
}

void
weights_place(struct weights *ws, void *base)
{
	const uintptr_t p = (uintptr_t)base;	/* base may be NULL */
	struct weight *w;

	for (w = ws->w; w < ws->w + ws->n; w++) {
		if (w->kern != NULL)
			w->mat.data = (void *)(p + w->offset);
		else
			w->vec = (const float *)(p + w->offset);
	}
}

uint32_t
weight_row_step(const struct weight *w)
{
	if (w->kern == NULL)
		return 1;
	return w->mat.n == w->ext.nrows || w->mat.n % w->kern->tile == 0 ?
	    w->kern->tile : w->mat.n;
}

/* Convert n values of a float type to float32. */
static void
store_vector(float *dst, const uint8_t *src, uint32_t type, uint64_t n)
{
	uint64_t i;
	uint16_t h;

	if (type == QUANT_F32) {
		memcpy(dst, src, n * sizeof(*dst));
		return;
	}
	for (i = 0; i < n; i++) {
		memcpy(&h, src + 2 * i, sizeof(h));
		dst[i] = type == QUANT_F16 ? half_to_float(h) :
		    bf16_to_float(h);
	}
}

/* The rows may span several matrices. */
static void
store_matrices(const struct weight *w, uint8_t *dst, const uint8_t *src,
    uint32_t row0, uint32_t nrows)
{
	uint64_t row_bytes = quant_row_bytes(w->ext.type, w->ext.ncols);
	uint32_t at, n;

	for (; nrows > 0; row0 += n, nrows -= n, src += n * row_bytes) {
		at = row0 % w->mat.n;
		n = MIN(nrows, w->mat.n - at);
		w->kern->pack(dst + row0 / w->mat.n * w->mat_bytes, src, at,
		    n, w->mat.n, w->mat.k);
	}
}

void
weights_store(const struct weights *ws, void *base, uint32_t i, uint32_t row0,
    uint32_t nrows, const void *src)
{
	const struct weight *w = &ws->w[i];
	uint8_t *dst = (uint8_t *)base + w->offset;

	if (w->kern != NULL)
		store_matrices(w, dst, src, row0, nrows);
	else
		store_vector((float *)(void *)dst +
		    (uint64_t)row0 * w->ext.ncols, src, w->ext.type,
		    (uint64_t)nrows * w->ext.ncols);
}

const struct weight *
weights_find(const struct weights *ws, enum role role, int layer)
{
	uint32_t i;

	for (i = 0; i < ws->n; i++)
		if (ws->w[i].ext.role == role && ws->w[i].ext.layer == layer)
			return &ws->w[i];
	return NULL;
}
