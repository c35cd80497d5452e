/* layers/shares.c - the rule of shares.h, and the balance of columns. */
#include "shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* What an op does with a tensor. */
struct access {
	uint16_t tensor;
	enum op_share share;
	int writes;
};

enum { MOST_ACCESSES = 4 };

/* Reads all of its input, whatever part of the output a thread makes. */
static int
reads_all(const struct op *op)
{
	return op_is_matmul(op->kind) || op->kind == OP_ATTENTION ||
	    op->kind == OP_SELECT_ROWS;
}

static unsigned
accesses(const struct op *op, struct access ret[MOST_ACCESSES])
{
	unsigned n = 0, i;

	if (op->out != NO_TENSOR)
		ret[n++] = (struct access){ op->out, op->share, 1 };
	for (i = 0; i < NITEMS(op->in); i++)
		if (op->in[i] != NO_TENSOR)
			ret[n++] = (struct access){ op->in[i],
			    reads_all(op) ? SHARE_ANY : op->share, 0 };
	/* Threads look at all routes, and MOE_ROWS writes into them. */
	if (op->routes != NO_TENSOR)
		ret[n++] = (struct access){ op->routes, SHARE_ANY,
		    op->kind == OP_MOE_ROWS };
	return n;
}

/* May a thread, in op b, touch what another one touches in op a, and one of
 * them write it? */
static int
collide(const struct op *a, const struct op *b)
{
	struct access x[MOST_ACCESSES], y[MOST_ACCESSES];
	unsigned nx = accesses(a, x), ny = accesses(b, y), i, j;

	/* Keys and values are no tensors. */
	if ((a->kind == OP_KV_STORE || b->kind == OP_KV_STORE) &&
	    (a->kind == OP_ATTENTION || b->kind == OP_ATTENTION))
		return 1;
	for (i = 0; i < nx; i++)
		for (j = 0; j < ny; j++) {
			if (x[i].tensor != y[j].tensor ||
			    !(x[i].writes || y[j].writes))
				continue;
			if (x[i].share != y[j].share ||
			    x[i].share == SHARE_ANY ||
			    (x[i].share == SHARE_COLS && a->group != b->group))
				return 1;
		}
	return 0;
}

/* Units of columns that an op by columns can be cut at: 32 activations are a
 * block of 8 bits, and pairs of BF16 stay whole. */
static uint32_t
unit_of(const struct op *op)
{
	return op_is_matmul(op->kind) ? op->w->kern->tile :
	    op->kind == OP_QUANTIZE ? 32 : 1;
}

static uint32_t
common_multiple(uint32_t a, uint32_t b)
{
	uint32_t n = a;

	while (n % b != 0)
		n += a;
	return n;
}

/* The op of [first, i) that wrote tensor id last; NULL = none did. */
static const struct op *
writer_of(const struct program *p, uint32_t first, uint32_t i, uint16_t id)
{
	while (id != NO_TENSOR && i-- > first)
		if (p->op[i].out == id)
			return &p->op[i];
	return NULL;
}

/* Op i and all of group b since `first` go with group a. */
static void
join(struct program *p, uint32_t first, uint32_t i, uint32_t a, uint32_t b)
{
	struct share_group *g = &p->group[a];
	uint32_t j;

	g->unit = common_multiple(g->unit, p->group[b].unit);
	g->first = MIN(g->first, p->group[b].first);
	for (j = first; j < i; j++)
		if (p->op[j].share == SHARE_COLS && p->op[j].group == b)
			p->op[j].group = (uint16_t)a;
}

/* An op on elements follows those that made its operands, where they were made
 * by columns since the last meeting: op `first`. */
static void
follow(struct program *p, uint32_t first, uint32_t i)
{
	struct op *op = &p->op[i];
	const struct op *from;
	unsigned j;

	op->share = SHARE_ROWS;
	for (j = 0; j < NITEMS(op->in); j++) {
		from = writer_of(p, first, i, op->in[j]);
		if (from == NULL || from->share != SHARE_COLS)
			continue;
		if (op->share == SHARE_COLS && op->group != from->group)
			join(p, first, i, op->group, from->group);
		op->share = SHARE_COLS;
		op->group = from->group;
	}
}

/* How the threads share op i, when they met before op `first`. */
static void
choose(struct program *p, uint32_t first, uint32_t i)
{
	struct op *op = &p->op[i];

	switch (op->kind) {
	case OP_MATMUL:
	case OP_MATMUL_ID:
		op->share = SHARE_COLS;
		break;
	case OP_ATTENTION:
	case OP_MOE_ROWS:
		op->share = SHARE_ANY;
		break;
	case OP_SELECT_ROWS:	/* forward, where it is in place */
		op->share = i < p->nbody ? SHARE_ANY : SHARE_ROWS;
		break;
	case OP_QUANTIZE:
	case OP_SWIGLU:
	case OP_GEGLU:
	case OP_SWIGLU_OAI:
	case OP_ADD:
	case OP_SCALE:
	case OP_SOFTCAP:
	case OP_MOE_SUM:
		follow(p, first, i);
		break;
	default:
		op->share = SHARE_ROWS;
	}
}

static int
must_meet(const struct program *p, uint32_t first, uint32_t i)
{
	uint32_t j;

	for (j = first; j < i; j++)
		if (collide(&p->op[j], &p->op[i]))
			return 1;
	return 0;
}

void
shares_find(struct program *p)
{
	struct share_group *g;
	struct op *op;
	uint32_t i, first = 0;

	for (i = 0; i < p->nops; i++) {
		op = &p->op[i];
		if (op_is_matmul(op->kind)) {
			op->group = (uint16_t)p->ngroups;
			p->group[p->ngroups++] = (struct share_group){
				.cols = p->t[op->out].cols,
				.unit = unit_of(op), .first = i
			};
		}
		choose(p, first, i);
		/* The head is a part of its own: it may be run again.  What
		 * halves of layers have in the scratch does not depend on what
		 * is before them. */
		op->barrier_before = op->begins || i == p->nwhole || i == p->nkept ||
		    i == p->nbody || must_meet(p, first, i);
		if (op->barrier_before) {
			first = i;
			choose(p, first, i);
		}
		if (op->share != SHARE_COLS)
			continue;
		g = &p->group[op->group];
		g->unit = common_multiple(g->unit, unit_of(op));
	}
	for (op = p->op; op < p->op + p->nops; op++)
		if (op->share == SHARE_COLS) {
			g = &p->group[op->group];
			g->nops++;
			g->token_bytes += op_token_bytes(p, op);
		}
}

uint32_t
shares_first(const struct program *p, uint32_t i)
{
	while (i > 0 && !p->op[i].barrier_before)
		i--;
	return i;
}

/* --- the balance --- */

/* Fewer loads are below each next level: where rounding makes them more, as
 * loads of this very level do, there is nothing left to be had. */
double
shares_level(const double *load, const double *width, unsigned n, double cost)
{
	double level = INFINITY, sum, under;
	unsigned t, count, before = n + 1;

	for (;;) {
		sum = cost;
		under = 0;
		for (count = 0, t = 0; t < n; t++)
			if (load[t] < level * width[t]) {
				sum += load[t];
				under += width[t];
				count++;
			}
		if (count >= before || count == 0)
			return level;
		before = count;
		level = sum / under;
	}
}

/* What the threads have to do until they meet, and how fast they are. */
struct loads {
	double *load, *speed;	/* [n] */
	unsigned n;
};

/* Whole units of group g to each thread, on top of what it has to do. */
static void
cut_group(const struct share_group *g, struct loads *l, uint32_t *cut)
{
	const double cost = (double)g->token_bytes;
	uint32_t nunits = DIV_UP(g->cols, g->unit), to, from = 0;
	double level = shares_level(l->load, l->speed, l->n, cost);
	double one = cost / nunits, at = 0;
	unsigned t;

	for (t = 0; t < l->n; t++) {
		at += fmax(level * l->speed[t] - l->load[t], 0) / one;
		to = t == l->n - 1 ? nunits :
		    MIN((uint32_t)(at + 0.5), nunits);
		cut[t] = MIN(from * g->unit, g->cols);
		l->load[t] += (to - from) * one;
		from = to;
	}
	cut[l->n] = g->cols;
}

int
shares_cut(const struct program *p, const struct par *par, uint32_t *ret_cut)
{
	const unsigned n = par->nthreads;
	struct loads l = { .load = calloc(2 * n, sizeof(*l.load)), .n = n };
	uint32_t i, g, first = UINT32_MAX;
	unsigned t;

	if (l.load == NULL)
		return -ENOMEM;
	l.speed = l.load + n;
	for (t = 0; t < n; t++)
		l.speed[t] = par_speed(par, t);
	for (i = 0; i < p->nops; i++) {
		g = p->op[i].group;
		/* A group's first op cuts it. */
		if (!op_is_matmul(p->op[i].kind) || p->group[g].first != i)
			continue;
		if (shares_first(p, i) != first) {
			first = shares_first(p, i);
			for (t = 0; t < n; t++)
				l.load[t] = 0;
		}
		cut_group(&p->group[g], &l, ret_cut + (size_t)g * (n + 1));
	}
	free(l.load);
	return 0;
}
