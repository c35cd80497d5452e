/* layers/place.c - places a program's operations and groups them into spans. */
#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void
cut_spans(const struct program *p, struct placement *pl)
{
	struct span *s = NULL;
	uint32_t i;

	for (i = 0; i < p->nops; i++) {
		if (s == NULL || s->on_device != pl->op[i].on_device ||
		    i == p->nbody) {
			if (i == p->nbody)
				pl->nbody_spans = pl->nspans;
			s = &pl->span[pl->nspans++];
			s->first = i;
			s->on_device = pl->op[i].on_device;
		}
		s->end = i + 1;
	}
	if (p->nbody == p->nops)
		pl->nbody_spans = pl->nspans;
}

int
place_program(const struct program *p, supports_fn *supports, void *arg,
    int strict, struct placement *ret, struct err *reterr)
{
	struct placement pl = { 0 };
	const struct op *op, *first = NULL;
	char where[24] = "";
	uint32_t i;

	pl.op = calloc(p->nops + 1, sizeof(*pl.op));
	pl.span = calloc(p->nops + 1, sizeof(*pl.span));
	if (pl.op == NULL || pl.span == NULL) {
		placement_free(&pl);
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "the placement of %u operations", p->nops);
	}
	for (i = 0; i < p->nops; i++) {
		op = &p->op[i];
		pl.op[i].on_device = supports(arg, p, op, pl.op[i].reason);
		if (pl.op[i].on_device) {
			pl.device_ops++;
		} else {
			pl.cpu_ops++;
			first = first != NULL ? first : op;
		}
	}
	if (strict && first != NULL) {
		if (first->layer >= 0)
			snprintf(where, sizeof(where), " of layer %d",
			    first->layer);
		err_set(reterr, ERR_RUN, -ENOTSUP, "strict: %u of %u "
		    "operations would fall back to the CPU; the first is "
		    "%s%s (%s): %s", pl.cpu_ops, p->nops,
		    op_name(first->kind), where,
		    first->w != NULL ? first->w->ext.name : "no weight",
		    pl.op[first - p->op].reason);
		placement_free(&pl);
		return -ENOTSUP;
	}
	cut_spans(p, &pl);
	*ret = pl;
	return 0;
}

void
placement_free(struct placement *pl)
{
	free(pl->op);
	free(pl->span);
	pl->op = NULL;
	pl->span = NULL;
}
