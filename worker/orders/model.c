/* worker/orders/model.c - WIRE_MODEL, WIRE_EXTENTS and WIRE_FILE: which part of
 * the model this worker holds, and the files that it reads it from. */
#include "team.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "layers/hparams_check.h"

/* Are the numbers in the ranges that the rest of the worker relies on? */
static int
is_model_sane(const struct wire_model *m, const struct hparams *hp)
{
	return hparams_check(hp, NULL) == 0 &&
	    m->batch_rows >= 1 && m->batch_rows <= MAX_BATCH &&
	    m->head_rows >= 1 && m->head_rows <= m->batch_rows &&
	    m->nseqs >= 1 && m->nseqs <= MAX_SEQS && m->ctx_tok >= 1 &&
	    m->kfmt < KV_NTYPES && m->vfmt < KV_NTYPES &&
	    m->nsublayers <= 2 * hp->n_layer &&
	    m->first_sublayer <= 2 * hp->n_layer - m->nsublayers &&
	    m->nextents < 1u << 20 && m->nfiles < 1u << 16;
}

/* "straddle: htp0 embedding layers 0-5", for ps and top. */
static void
set_title(struct worker *w)
{
	const struct wire_model *m = &w->sc.model;
	char layers[SUBLAYERS_LEN], title[sizeof(w->title)];

	sublayers_text(m->first_sublayer, m->nsublayers, layers);
	snprintf(title, sizeof(title), "%s%s%s%s%s", w->sc.start.name,
	    m->embedding ? " embedding" : "", layers[0] != '\0' ?
	    " layers " : "", layers, m->head ? " head" : "");
	team_set_title(w, title);
}

int
order_model(struct worker *w, struct err *reterr)
{
	struct wire_model *m = &w->sc.model;

	if (w->ext != NULL || !w->is_confined || w->msg.nfds != 0 ||
	    w->msg.nbytes != sizeof(*m) + sizeof(w->sc.hp))
		return order_refuse(w, reterr);
	memcpy(m, w->msg.buf, sizeof(*m));
	memcpy(&w->sc.hp, w->msg.buf + sizeof(*m), sizeof(w->sc.hp));
	if (!is_model_sane(m, &w->sc.hp))
		return order_refuse(w, reterr);
	w->ext = calloc(m->nextents + 1, sizeof(*w->ext));
	w->file = calloc(m->nfiles + 1, sizeof(*w->file));
	if (w->ext == NULL || w->file == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "the lists of %u extents and %u files", m->nextents,
		    m->nfiles);
	w->sc.ext = w->ext;
	set_title(w);
	return 0;
}

int
order_extents(struct worker *w, struct err *reterr)
{
	uint32_t n = w->msg.nbytes / sizeof(struct extent), i;

	if (w->ext == NULL || w->msg.nbytes % sizeof(struct extent) != 0 ||
	    w->msg.nfds != 0 || n > w->sc.model.nextents - w->next)
		return order_refuse(w, reterr);
	memcpy(w->ext + w->next, w->msg.buf, w->msg.nbytes);
	for (i = w->next; i < w->next + n; i++)
		w->ext[i].name[EXTENT_NAME - 1] = '\0';
	w->next += n;
	return 0;
}

int
order_file(struct worker *w, struct err *reterr)
{
	struct wire_file wf;
	struct load_file *f;
	int rc;

	if (w->file == NULL || w->nfile == w->sc.model.nfiles ||
	    w->msg.nfds < 1)
		return order_refuse(w, reterr);
	if ((rc = order_payload(w, &wf, sizeof(wf), w->msg.nfds, reterr)) < 0)
		return rc;
	if (w->msg.nfds != (wf.direct ? 2 : 1))
		return order_refuse(w, reterr);
	wf.name[sizeof(wf.name) - 1] = '\0';
	f = &w->file[w->nfile++];
	f->fd = chan_take_fd(&w->msg, 0);
	f->direct_fd = wf.direct ? chan_take_fd(&w->msg, 1) : -1;
	strlcpy(f->name, wf.name, sizeof(f->name));
	f->nbytes = wf.nbytes;
	f->dev = wf.dev;
	f->ino = wf.ino;
	f->mtime_ns = wf.mtime_ns;
	f->ctime_ns = wf.ctime_ns;
	f->mem_align = wf.mem_align;
	f->off_align = wf.off_align;
	return 0;
}

int
order_model_is_complete(const struct worker *w)
{
	return w->ext != NULL && w->next == w->sc.model.nextents;
}

void
order_close_files(struct worker *w)
{
	struct load_file *f;

	while (w->nfile > 0) {
		f = &w->file[--w->nfile];
		close(f->fd);
		if (f->direct_fd >= 0)
			close(f->direct_fd);
	}
}
