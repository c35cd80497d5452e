/* worker/load/plan.c - which bytes of the files go into which read.
 * Items are taken in file order and cut at whole row steps, so that each read
 * fills a block as far as it can.  Neighbours share a read: norms of 1 KiB,
 * the end of one matrix and the beginning of the next. */
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *
load_who(const struct load_file *files, const struct extent *x,
    char buf[LOAD_WHO])
{
	snprintf(buf, LOAD_WHO, "%s: tensor %.*s", files[x->file].name,
	    EXTENT_NAME - 1, x->name);
	return buf;
}

int
load_identify(struct load_file *f)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	f->nbytes = (uint64_t)st.st_size;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) +
	    st.st_mtim.tv_nsec;
	return 0;
}

static int
check_file(const struct load_file *f, struct err *reterr)
{
	struct load_file now = *f;
	char how[96];
	int rc;

	if ((rc = load_identify(&now)) < 0)
		return err_set(reterr, ERR_RUN, rc, "%s: fstat: %s", f->name,
		    strerror(-rc));
	if (now.dev != f->dev || now.ino != f->ino)
		snprintf(how, sizeof(how), "it is another file");
	else if (now.nbytes != f->nbytes)
		snprintf(how, sizeof(how), "it has %" PRIu64 " bytes, it had %"
		    PRIu64, now.nbytes, f->nbytes);
	else if (now.mtime_ns != f->mtime_ns)
		snprintf(how, sizeof(how), "its time of modification is "
		    "another");
	else
		return 0;
	return err_set(reterr, ERR_MODEL, -ESTALE, "%s has changed since it "
	    "was planned: %s; run again when nothing writes to it", f->name,
	    how);
}

int
load_check_files(const struct load_file *files, uint32_t nfiles,
    struct err *reterr)
{
	uint32_t i;
	int rc;

	for (i = 0; i < nfiles; i++)
		if ((rc = check_file(&files[i], reterr)) < 0)
			return rc;
	return 0;
}

static int
check_item(const struct load_file *files, uint32_t nfiles,
    const struct load_item *it, struct err *reterr)
{
	const struct extent *x = &it->ext;
	struct load_file now;
	char who[LOAD_WHO];
	int rc;

	if (x->file >= nfiles)
		return err_set(reterr, ERR_MODEL, -EINVAL,
		    "tensor %.*s: in file %u of %u", EXTENT_NAME - 1, x->name,
		    x->file + 1, nfiles);
	if (x->nrows == 0 || x->nbytes == 0 || x->nbytes % x->nrows != 0 ||
	    it->row_step == 0)
		return err_set(reterr, ERR_MODEL, -EINVAL, "%s: %" PRIu64
		    " bytes cannot be %u rows, read %u at a time",
		    load_who(files, x, who), x->nbytes, x->nrows,
		    it->row_step);
	now = files[x->file];
	if ((rc = load_identify(&now)) < 0)
		return err_set(reterr, ERR_RUN, rc, "%s: fstat: %s",
		    load_who(files, x, who), strerror(-rc));
	if (x->offset > now.nbytes || x->nbytes > now.nbytes - x->offset)
		return err_set(reterr, ERR_MODEL, -ENODATA, "%s: %" PRIu64
		    " bytes at offset %" PRIu64 " do not lie in a file of %"
		    PRIu64 " bytes", load_who(files, x, who), x->nbytes,
		    x->offset, now.nbytes);
	return 0;
}

int
load_check(const struct load_conf *lc, const struct load_file *files,
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

void
load_sort(struct loader *ld)
{
	uint32_t i;

	for (i = 0; i < ld->nitems; i++)
		ld->order[i] = &ld->items[i];
	qsort(ld->order, ld->nitems, sizeof(ld->order[0]), compare_places);
}

/* Rows of it from row on that fit into room bytes, in whole steps. */
static uint32_t
rows_that_fit(const struct load_item *it, uint32_t row, uint64_t room)
{
	uint64_t rows = room / load_row_bytes(it);

	if (rows >= it->ext.nrows - row)
		return it->ext.nrows - row;
	return (uint32_t)(rows - rows % it->row_step);
}

/* Can the item at ld->next share q's read without a grain that neither needs?
 * (Not always: extents may overlap or leave gaps.) */
static int
is_neighbour(const struct loader *ld, const struct load_req *q)
{
	const struct extent *x;

	if (ld->next.row != 0 || ld->next.nth == ld->nitems)
		return 0;
	x = &ld->order[ld->next.nth]->ext;
	return x->file == q->file && x->offset >= q->offset &&
	    x->offset - q->offset <
	    ALIGN_UP(q->want_bytes, LOAD_GRAIN) + LOAD_GRAIN;
}

int
load_cut(struct loader *ld, struct load_req *q)
{
	const struct load_item *it;
	uint64_t begin;			/* of the piece, in the block */
	uint32_t rows;

	if (ld->next.nth == ld->nitems)
		return 0;
	it = ld->order[ld->next.nth];
	*q = (struct load_req){
		.from = ld->next, .file = it->ext.file,
		.offset = ALIGN_DOWN(load_row_offset(it, ld->next.row),
		    LOAD_GRAIN)
	};
	do {
		it = ld->order[ld->next.nth];
		begin = load_row_offset(it, ld->next.row) - q->offset;
		rows = begin >= ld->block_bytes ? 0 : rows_that_fit(it,
		    ld->next.row, ld->block_bytes - begin);
		if (rows == 0)
			break;
		q->want_bytes = MAX(q->want_bytes,
		    begin + rows * load_row_bytes(it));
		ld->next.row += rows;
		if (ld->next.row == it->ext.nrows)
			ld->next = (struct load_pos){ .nth = ld->next.nth + 1 };
	} while (is_neighbour(ld, q));
	q->to = ld->next;
	return 1;
}

uint32_t
load_piece_rows(const struct loader *ld, const struct load_req *q,
    struct load_pos p)
{
	if (p.nth > q->to.nth)
		return 0;
	return (p.nth == q->to.nth ? q->to.row :
	    ld->order[p.nth]->ext.nrows) - p.row;
}
