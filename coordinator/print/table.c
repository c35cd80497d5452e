/* coordinator/print/table.c - the memory tables: the bytes of each session, and of
 * the other processes, as planned or as measured. */
#include "output.h"

#include <math.h>
#include <string.h>
#include <bsd/string.h>

#include "config/plain.h"
#include "config/words.h"
#include "columns.h"
#include "domains.h"

static int is_wide;

void
output_wide(int on)
{
	is_wide = on;
}

/* The units of a session: "embd+0-1+2.attn", "2.ffn+3+head". */
static char *
format_units(const struct plan_session *ps, char *buf, size_t len)
{
	char layers[SUBLAYERS_LEN];

	buf[0] = '\0';
	if (ps->embedding)
		words_add(buf, len, "+", "embd");
	sublayers_text(ps->first_sublayer, ps->nsublayers, layers);
	if (layers[0] != '\0')
		words_add(buf, len, "+", "%s", layers);
	if (ps->head)
		words_add(buf, len, "+", "head");
	return buf;
}

/* Per batch: messages to an out-of-process device, and where the time went.  Or
 * that the device computes nothing. */
static void
print_device(FILE *fp, const struct session *s)
{
	const struct wire_stats *st = &s->stats;
	double n = (double)st->batches, ns = (double)st->device_ns;

	if (s->ready.device_ops == 0 && s->ready.cpu_ops > 0)
		fprintf(fp, "%s: 0 operations on %s, %u on the CPU: "
		    "straddle explain says why\n", s->name,
		    s->plan->conf->device, s->ready.cpu_ops);
	if (st->device_bytes > 0)
		fprintf(fp, "%s: device memory %.2f MiB, of it %.2f slack; "
		    "pinned on the host %.2f: in weights and compute\n",
		    s->name, (double)st->device_bytes / (double)MIB,
		    (double)st->slack_bytes / (double)MIB,
		    (double)st->pinned_bytes / (double)MIB);
	if (st->device_calls == 0 || st->batches == 0)
		return;
	fprintf(fp, "%s: %u operations on %s, %u on the CPU; per batch: %.1f "
	    "messages, %.2f ms on the device, %.2f ms on the host\n",
	    s->name, s->ready.device_ops, s->plan->conf->device,
	    s->ready.cpu_ops, (double)st->device_calls / n, ns / n / 1e6,
	    ((double)st->busy_ns - ns) / n / 1e6);
}

/* The enforcement that a run would get; nothing has been started yet. */
static void
print_expected_enforcement(FILE *fp)
{
	const char *why;

	enforce_best(&why);
	fprintf(fp, "caps: held by %s%s%s\n", enforce_best_name(),
	    why != NULL ? ", because " : "",
	    why != NULL ? PLAIN(why) : "");
}

/* The source of the peaks, and the enforcement of the caps. */
static void
print_enforcement(FILE *fp, const struct sessions *ss, int emulated)
{
	const struct enforce *e = ss->enforce;

	fprintf(fp, ss->s[0].peak.shared ? "peak: %s of the worker, with "
	    "shared pages (rings, libraries)\n" : "peak: %s of the group; who "
	    "touches a page first pays\n", ss->s[0].peak.from);
	if (e->by == ENFORCE_CGROUP)
		fprintf(fp, "caps: held by %s, limits read back, swap %s\n",
		    enforce_name(e), e->group.swap_limited ? "included" :
		    "not included (the kernel does not account it)");
	else
		fprintf(fp, "caps: held by %s%s, because %s\n", e->by ==
		    ENFORCE_RLIMIT ? "RLIMIT_DATA, which does not see shared "
		    "memory (rings)" : "the ledger alone", emulated &&
		    e->by == ENFORCE_RLIMIT ? " and does not hold emulators" :
		    "", PLAIN(e->why));
}

/* The rows of one table.  ss NULL = as planned. */
struct rows {
	const struct plan *p;
	const struct sessions *ss;
};

/* Bytes that a column shows of each session, as floating point because they may
 * be negative. */
typedef double bytes_of(const struct plan_session *ps, const struct session *s,
    unsigned tag);

/* NAN, which a column shows as "-", unless it is known. */
static double
known(int is_known, uint64_t nbytes)
{
	return is_known ? (double)nbytes : (double)NAN;
}

static double
cap_of(const struct plan_session *ps, const struct session *s, unsigned tag)
{
	(void)s;
	(void)tag;
	return (double)ps->cap_bytes;
}

static double
tag_of(const struct plan_session *ps, const struct session *s, unsigned tag)
{
	return (double)(s != NULL ? s->stats.tag_bytes[tag] : ps->bytes[tag]);
}

static double
total_of(const struct plan_session *ps, const struct session *s, unsigned tag)
{
	(void)s;
	(void)tag;
	return (double)ps->total_bytes;
}

static double
peak_of(const struct plan_session *ps, const struct session *s, unsigned tag)
{
	(void)ps;
	(void)tag;
	/* The kernel counts processes, not sessions. */
	return known(session_is_first(s), s->peak.nbytes);
}

static double
unaccounted_of(const struct plan_session *ps, const struct session *s,
    unsigned tag)
{
	(void)ps;
	(void)tag;
	return session_is_first(s) ? (double)session_worker_unaccounted(s) :
	    (double)NAN;
}

enum { HAS_SIGNS = 1, IN_MIB = 2 };

/* Two decimals, so that columns add up by eye; unless IN_MIB is set, a column of a
 * narrow table is in GiB where it has 1000 MiB or more.  v: bytes of each row. */
static struct column *
add_column(struct columns *t, const char *head, const double *v, int flags)
{
	struct column *c = columns_add(t, head, 1);
	double max = 0, unit = MIB;
	unsigned i;

	for (i = 0; i < t->nrows; i++)
		max = fmax(max, fabs(v[i]));	/* ignores NAN */
	c->unit = "MiB";
	if (!is_wide && !(flags & IN_MIB) && max >= 999.995 * MIB) {
		c->unit = "GiB";
		unit = GIB;
	}
	for (i = 0; i < t->nrows; i++)
		if (isnan(v[i]))
			strlcpy(c->cell[i], "-", CELL_LEN);
		else
			snprintf(c->cell[i], CELL_LEN, flags & HAS_SIGNS ?
			    "%+.2f" : "%.2f", v[i] / unit);
	return c;
}

static struct column *
add_bytes(struct columns *t, const char *head, const struct rows *r,
    bytes_of *of, unsigned tag)
{
	double v[COLUMNS_ROWS];
	unsigned i;

	for (i = 0; i < t->nrows; i++)
		v[i] = of(&r->p->session[i],
		    r->ss != NULL ? &r->ss->s[i] : NULL, tag);
	return add_column(t, head, v, of == unaccounted_of ? HAS_SIGNS : 0);
}

/* The columns without numbers, on the left. */
static void
add_names(struct columns *t, const struct plan *p)
{
	struct column *c[3];
	unsigned i;

	c[0] = columns_add(t, "session", 0);
	c[1] = columns_add(t, "device", 0);
	c[2] = columns_add(t, "holds", 0);
	for (i = 0; i < p->nsessions; i++) {
		strlcpy(c[0]->cell[i], p->session[i].conf->name, CELL_LEN);
		strlcpy(c[1]->cell[i], p->session[i].conf->device, CELL_LEN);
		format_units(&p->session[i], c[2]->cell[i], CELL_LEN);
	}
}

/* "cgroup v2", "cgroup v2, with b". */
static void
format_enforced(const struct session *s, char cell[CELL_LEN])
{
	const struct worker_proc *p = s->proc;

	strlcpy(cell, enforce_name(p->enforce), CELL_LEN);
	if (p->n == 2)
		words_add(cell, CELL_LEN, "", ", with %s",
		    p->of[p->of[0] == s]->name);
	else if (p->n > 2)
		words_add(cell, CELL_LEN, "", ", with %u others", p->n - 1);
}

static void
add_measured(struct columns *t, const struct rows *r)
{
	struct column *c;
	unsigned i;

	add_bytes(t, "peak", r, peak_of, 0)->heads_group = 1;
	add_bytes(t, "unaccounted", r, unaccounted_of, 0);
	c = columns_add(t, "enforced by", 0);
	for (i = 0; i < t->nrows; i++)
		format_enforced(&r->ss->s[i], c->cell[i]);
}

/* Sessions that share a worker share what the kernel knows of it. */
static void
print_shared(FILE *fp, const struct plan *p, int is_measured)
{
	char names[256], cap[UNITS_BYTES_LEN];
	const struct plan_session *ps;
	uint64_t sum;
	unsigned i, k;

	for (i = 0; i < p->nsessions; i++) {
		ps = &p->session[i];
		if (ps->worker.n < 2 || ps->worker.first != i)
			continue;
		names[0] = '\0';
		for (sum = 0, k = i; k < p->nsessions; k++) {
			if (p->session[k].worker.first != i)
				continue;
			words_add(names, sizeof(names), ", ", "%s",
			    p->session[k].conf->name);
			sum += p->session[k].cap_bytes;
		}
		fprintf(fp, "%s: one worker process, held to the sum of their "
		    "caps, %s; the row of %s has the memory of the process "
		    "itself%s\n", names, units_human_bytes(sum, cap),
		    ps->conf->name, is_measured ? ", and the peak of all" :
		    "");
	}
}

/* The processes that are no sessions have a table of their own: they have few of
 * the columns. */
static void
print_processes(FILE *fp, const struct process_list *pl, int is_measured)
{
	double cap[PROCESS_MAX], planned[PROCESS_MAX], peak[PROCESS_MAX];
	static struct columns t;
	const struct process *q;
	struct column *names, *by;
	unsigned i;

	columns_init(&t, pl->n);
	names = columns_add(&t, "process", 0);
	for (i = 0; i < pl->n; i++) {
		q = &pl->row[i];
		strlcpy(names->cell[i], q->role, CELL_LEN);
		cap[i] = known(q->cap_bytes > 0, q->cap_bytes);
		planned[i] = known(q->planned_bytes > 0, q->planned_bytes);
		peak[i] = known(q->peak.from != NULL, q->peak.nbytes);
	}
	add_column(&t, "cap", cap, IN_MIB);
	add_column(&t, "planned", planned, IN_MIB);
	if (is_measured)
		add_column(&t, "peak", peak, IN_MIB);
	by = columns_add(&t, "enforced by", 0);
	for (i = 0; i < pl->n; i++)
		strlcpy(by->cell[i], pl->row[i].enforced_by, CELL_LEN);
	columns_print(fp, &t, "other processes", is_wide ? 0 : COLUMNS_WIDTH);
	for (i = 0; i < pl->n; i++)
		if (pl->row[i].limit_bytes == UINT64_MAX &&
		    pl->row[i].why[0] != '\0')
			fprintf(fp, "%s: its cap is not enforced, because %s\n",
			    pl->row[i].role, PLAIN(pl->row[i].why));
}

void
output_table(FILE *fp, const struct plan *p, const struct sessions *ss,
    const struct process_list *pl)
{
	static const char *const heads[] = { "weights", "KV", "compute",
	    "staging", "rings", "runtime", "emulator" };
	const unsigned ntags = MEM_NTAGS - !domains_have_emulator(p);
	const struct rows r = { p, ss };
	static struct columns t;
	unsigned i;

	columns_init(&t, p->nsessions);
	add_names(&t, p);
	add_bytes(&t, "cap", &r, cap_of, 0);
	for (i = 0; i < ntags; i++)
		add_bytes(&t, heads[i], &r, tag_of, i);
	if (ss != NULL)
		add_measured(&t, &r);
	else
		add_bytes(&t, "total", &r, total_of, 0);
	columns_print(fp, &t, "memory", is_wide ? 0 : COLUMNS_WIDTH);
	print_shared(fp, p, ss != NULL);
	if (ss != NULL)
		print_enforcement(fp, ss, domains_have_emulator(p));
	else
		print_expected_enforcement(fp);
	print_processes(fp, pl, ss != NULL);
	if (ss != NULL)
		domains_print(fp, p, ss);
	for (i = 0; ss != NULL && i < p->nsessions; i++)
		print_device(fp, &ss->s[i]);
}
