/* worker/load/plan.c - which bytes of the files go into which read.
 * Items are taken in file order and cut at whole row steps, so that each read
 * fills as much of a block as it can.  Neighbours share a read: norms of 1 KiB,
 * the end of one matrix and the beginning of the next. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int
check_item(const struct load_file *files, uint32_t nfiles,
    const struct load_item *it, struct err *reterr)
{
	const struct extent *x = &it->ext;
	struct load_file now;
	char label[LOAD_LABEL];
	int rc;

	if (x->file >= nfiles)
		return err_set(reterr, ERR_MODEL, -EINVAL,
		    "tensor %.*s: in file %u of %u", EXTENT_NAME - 1, x->name,
		    x->file + 1, nfiles);
	if (x->nrows == 0 || x->nbytes == 0 || x->nbytes % x->nrows != 0 ||
	    it->row_step == 0)
		return err_set(reterr, ERR_MODEL, -EINVAL, "%s: %" PRIu64
		    " bytes cannot be %u rows, read %u at a time",
		    load_label(files, x, label), x->nbytes, x->nrows,
		    it->row_step);
	now = files[x->file];
	if ((rc = load_identify(&now)) < 0)
		return err_set(reterr, ERR_RUN, rc, "%s: fstat: %s",
		    load_label(files, x, label), strerror(-rc));
	if (x->offset > now.nbytes || x->nbytes > now.nbytes - x->offset)
		return err_set(reterr, ERR_MODEL, -ENODATA, "%s: %" PRIu64
		    " bytes at offset %" PRIu64 " do not lie in a file of %"
		    PRIu64 " bytes", load_label(files, x, label), x->nbytes,
		    x->offset, now.nbytes);
	return 0;
}

static int
check(const struct load_conf *lc, const struct load_file *files,
    uint32_t nfiles, const struct load_item *items, uint32_t nitems,
    struct err *reterr)
{
	uint32_t i;
	int rc;

	if (lc->depth < 1 || lc->depth > LOAD_MAX_DEPTH ||
	    lc->block_bytes == 0 || lc->block_bytes % LOAD_GRAIN != 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "loading: %u reads "
		    "of %u bytes: 1 to %d reads of a multiple of %d bytes "
		    "are allowed", lc->depth, lc->block_bytes, LOAD_MAX_DEPTH,
		    LOAD_GRAIN);
	for (i = 0; i < nitems; i++)
		if ((rc = check_item(files, nfiles, &items[i], reterr)) < 0)
			return rc;
	return load_check_files(files, nfiles, reterr);
}

static int
compare_places(const void *a, const void *b)
{
	const struct load_item *const *pa = a, *const *pb = b;
	const struct extent *x = &(*pa)->ext, *y = &(*pb)->ext;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return *pa < *pb ? -1 : *pa > *pb;
}

int
load_plan_open(struct load_plan *p, const struct load_conf *lc,
    const struct load_file *files, uint32_t nfiles,
    const struct load_item *items, uint32_t nitems, struct err *reterr)
{
	uint32_t i;
	int rc;

	if ((rc = check(lc, files, nfiles, items, nitems, reterr)) < 0)
		return rc;
	*p = (struct load_plan){
		.files = files, .items = items,
		.nfiles = nfiles, .nitems = nitems,
		.block_bytes = load_block_bytes(lc, items, nitems),
		.order = calloc(MAX(nitems, 1), sizeof(p->order[0]))
	};
	if (p->order == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "loading: no memory "
		    "for the table of %u tensors", nitems);
	for (i = 0; i < nitems; i++)
		p->order[i] = &items[i];
	qsort(p->order, nitems, sizeof(p->order[0]), compare_places);
	return 0;
}

void
load_plan_close(struct load_plan *p)
{
	free(p->order);
	p->order = NULL;
}

/* Rows of the item, from row on, that fit into room bytes in whole steps. */
static uint32_t
rows_that_fit(const struct load_item *it, uint32_t row, uint64_t room)
{
	uint64_t rows = room / load_row_bytes(it);

	if (rows >= it->ext.nrows - row)
		return it->ext.nrows - row;
	return (uint32_t)(rows - rows % it->row_step);
}

/* Can the item at p->next share r's read without a grain that neither needs?
 * Extents may overlap or leave gaps. */
static int
is_neighbour(const struct load_plan *p, const struct load_range *r)
{
	const struct extent *x;

	if (p->next.row != 0 || p->next.nth == p->nitems)
		return 0;
	x = &p->order[p->next.nth]->ext;
	return x->file == r->file && x->offset >= r->offset &&
	    x->offset - r->offset <
	    ALIGN_UP(r->nbytes, LOAD_GRAIN) + LOAD_GRAIN;
}

int
load_plan_next(struct load_plan *p, struct load_range *r)
{
	const struct load_item *it;
	uint64_t begin;			/* of the item's rows, in the block */
	uint32_t rows;

	if (p->next.nth == p->nitems)
		return 0;
	it = p->order[p->next.nth];
	*r = (struct load_range){
		.from = p->next, .file = it->ext.file,
		.offset = ALIGN_DOWN(load_row_offset(it, p->next.row),
		    LOAD_GRAIN)
	};
	do {
		it = p->order[p->next.nth];
		begin = load_row_offset(it, p->next.row) - r->offset;
		rows = begin >= p->block_bytes ? 0 : rows_that_fit(it,
		    p->next.row, p->block_bytes - begin);
		if (rows == 0)
			break;
		r->nbytes = MAX(r->nbytes, begin + rows * load_row_bytes(it));
		p->next.row += rows;
		if (p->next.row == it->ext.nrows)
			p->next = (struct load_pos){ .nth = p->next.nth + 1 };
	} while (is_neighbour(p, r));
	r->to = p->next;
	return 1;
}

uint32_t
load_range_rows(const struct load_plan *p, const struct load_range *r,
    struct load_pos pos)
{
	if (pos.nth > r->to.nth)
		return 0;
	return (pos.nth == r->to.nth ? r->to.row :
	    p->order[pos.nth]->ext.nrows) - pos.row;
}
