/* layers/shares.c - places the barriers and balances columns over threads. */
#include "shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* How an op uses a tensor. */
struct access {
	uint16_t tensor;
	enum op_share share;
	int writes;
};

enum { MAX_ACCESSES = 4 };

/* 1 if each thread reads all of the input for its part of the output. */
static int
reads_all(const struct op *op)
{
	return op_is_matmul(op->kind) || op->kind == OP_ATTENTION ||
	    op->kind == OP_SELECT_ROWS;
}

static unsigned
list_accesses(const struct op *op, struct access ret[MAX_ACCESSES])
{
	unsigned n = 0, i;

	if (op->out != NO_TENSOR)
		ret[n++] = (struct access){ op->out, op->share, 1 };
	for (i = 0; i < NITEMS(op->in); i++)
		if (op->in[i] != NO_TENSOR)
			ret[n++] = (struct access){ op->in[i],
			    reads_all(op) ? SHARE_ANY : op->share, 0 };
	/* Threads read all routes, and MOE_ROWS writes into them. */
	if (op->routes != NO_TENSOR)
		ret[n++] = (struct access){ op->routes, SHARE_ANY,
		    op->kind == OP_MOE_ROWS };
	return n;
}

/* 1 if a thread in op b may use data that another one uses in op a, and one of
 * them writes it. */
static int
ops_conflict(const struct op *a, const struct op *b)
{
	struct access x[MAX_ACCESSES], y[MAX_ACCESSES];
	unsigned nx = list_accesses(a, x), ny = list_accesses(b, y), i, j;

	/* The KV cache is not a tensor. */
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

/* Multiple of columns at which an op can be cut; 32 activations are one 8-bit
 * block, and a BF16 pair stays whole. */
static uint32_t
column_unit(const struct op *op)
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

/* The last op of [first, i) that wrote tensor id, or NULL. */
static const struct op *
writer_of(const struct program *p, uint32_t first, uint32_t i, uint16_t id)
{
	while (id != NO_TENSOR && i-- > first)
		if (p->op[i].out == id)
			return &p->op[i];
	return NULL;
}

/* Merge group b, whose ops are in [first, i), into group a. */
static void
merge_groups(struct program *p, uint32_t first, uint32_t i, uint32_t a,
    uint32_t b)
{
	struct share_group *g = &p->group[a];
	uint32_t j;

	g->unit = common_multiple(g->unit, p->group[b].unit);
	g->first = MIN(g->first, p->group[b].first);
	for (j = first; j < i; j++)
		if (p->op[j].share == SHARE_COLS && p->op[j].group == b)
			p->op[j].group = (uint16_t)a;
}

/* Divide an elementwise op like the ops that made its operands, if they were
 * divided by columns since the last barrier, before op `first`. */
static void
follow_operands(struct program *p, uint32_t first, uint32_t i)
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
			merge_groups(p, first, i, op->group, from->group);
		op->share = SHARE_COLS;
		op->group = from->group;
	}
}

/* Decide how op i is divided, if the last barrier is before op `first`. */
static void
choose_share(struct program *p, uint32_t first, uint32_t i)
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
	case OP_SELECT_ROWS:	/* the body's is in place: in order of rows */
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
		follow_operands(p, first, i);
		break;
	default:
		op->share = SHARE_ROWS;
	}
}

static int
needs_barrier(const struct program *p, uint32_t first, uint32_t i)
{
	uint32_t j;

	for (j = first; j < i; j++)
		if (ops_conflict(&p->op[j], &p->op[i]))
			return 1;
	return 0;
}

void
shares_assign(struct program *p)
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
				.unit = column_unit(op), .first = i
			};
		}
		choose_share(p, first, i);
		/* The head runs several times.  A sublayer starts with a
		 * barrier, so that its scratch does not depend on the one
		 * before it. */
		op->barrier_before = op->begins || i == p->nwhole ||
		    i == p->nkept || i == p->nbody || needs_barrier(p, first, i);
		if (op->barrier_before) {
			first = i;
			choose_share(p, first, i);
		}
		if (op->share != SHARE_COLS)
			continue;
		g = &p->group[op->group];
		g->unit = common_multiple(g->unit, column_unit(op));
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

/* Each iteration lowers the level, so that fewer loads are below it, until
 * their number stays.  Rounding can make it grow for loads at the level: stop
 * then. */
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

/* Work of each thread until the next barrier, and its speed. */
struct loads {
	double *load, *speed;	/* [n] */
	unsigned n;
};

/* Give each thread whole units of group g, in addition to its load so far. */
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
		/* Cut a group at its first op. */
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
