/* coordinator/bench/report.c - prints the machine's peaks, the results and the
 * sweep, as text or JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/plain.h"
#include "bench.h"
#include "coordinator/print/output.h"

/* Report other load on the cores when our share of their time is below this. */
#define SHARE_NOTE	0.95

static const struct {
	enum roof kind;
	const char *key;	/* in the JSON */
	const char *text;
} roofs[] = {
	{ ROOF_READ, "read_gbs", "read, GB/s" },
	{ ROOF_INT8, "int8_gops", "int8, Gop/s" },
	{ ROOF_BF16, "bf16_gflops", "bf16, Gop/s" },
	{ ROOF_F32, "f32_gflops", "f32, Gop/s" },
};

static struct bench_result
result_of(const struct bench *b, const struct bench_test *t)
{
	struct bounds best = roofline_best(b->roof);

	best.per_s[ROOF_DISK] = series_max(&b->disk);
	return bench_result(b, t, &best,
	    (double)roofline_cache_bytes(b->roof));
}

/* Mean speed over that with the fewest sessions of the sweep. */
static double
relative_speed(const struct bench *b, const struct bench_test *t)
{
	const struct bench_test *other;
	const struct bench_split *base = NULL;
	double speed = 0;
	unsigned i;

	for (i = 0; i < b->nsplits; i++)
		if (b->split[i].why_not.kind == ERR_NONE && (base == NULL ||
		    b->split[i].nsessions < base->nsessions))
			base = &b->split[i];
	for (i = 0; base != NULL && i < base->tests.n; i++) {
		other = &base->tests.t[i];
		if (strcmp(other->name, t->name) == 0)
			speed = series_mean(&other->speed);
	}
	return speed > 0 ? series_mean(&t->speed) / speed : 0;
}

/* --- JSON --- */

static json_t *
roof_json(const struct roofline *r, enum roof kind)
{
	json_t *a = json_array();
	unsigned n;

	for (n = 1; n <= roofline_ncores(r); n++)
		json_array_append_new(a, json_real(roofline_at(r, kind, n) /
		    1e9));
	return a;
}

static json_t *
roofline_json(const struct bench *b)
{
	const struct roofline *r = b->roof;
	struct read_shape shape = roofline_shape(r);
	json_t *o = json_object(), *how = json_object();
	unsigned i;

	for (i = 0; i < NITEMS(roofs); i++) {
		const char *name = roofline_how(r, roofs[i].kind);

		if (name == NULL)
			continue;
		json_object_set_new(o, roofs[i].key,
		    roof_json(r, roofs[i].kind));
		json_object_set_new(how, roof_name(roofs[i].kind),
		    json_string(name));
	}
	json_object_set_new(o, "disk_gbs", b->disk.n > 0 ?
	    json_real(series_max(&b->disk) / 1e9) : json_null());
	if (b->disk.n > 0)
		json_object_set_new(o, "disk_direct",
		    json_boolean(b->disk_direct));
	json_object_set_new(o, "how", how);
	json_object_set_new(o, "cores",
	    json_integer((json_int_t)roofline_ncores(r)));
	json_object_set_new(o, "clock_ghz",
	    json_real(roofline_clock_hz(r) / 1e9));
	json_object_set_new(o, "cpu_share", json_real(roofline_share(r)));
	json_object_set_new(o, "slice_ms", json_integer(b->c->slice_ms));
	json_object_set_new(o, "read_buffer",
	    json_integer((json_int_t)roofline_buffer_bytes(r)));
	json_object_set_new(o, "last_cache",
	    json_integer((json_int_t)roofline_cache_bytes(r)));
	json_object_set_new(o, "read_streams", json_integer(1 << shape.way));
	json_object_set_new(o, "read_ahead",
	    json_integer((json_int_t)(shape.ahead & ~PEAK_READ_HOW)));
	json_object_set_new(o, "read_ahead_twice",
	    json_boolean(shape.ahead & PEAK_READ_TWICE));
	json_object_set_new(o, "read_once",
	    json_boolean(shape.ahead & PEAK_READ_ONCE));
	json_object_set_new(o, "read_pages",
	    json_boolean(shape.ahead & PEAK_READ_PAGES));
	return o;
}

/* A loading test has "gbs" for its speed, and "tps" is null. */
static json_t *
result_json(const struct bench *b, const struct bench_test *t)
{
	double unit = t->kind == BENCH_LOAD ? 1e9 : 1;
	const char *key = t->kind == BENCH_LOAD ? "gbs" : "tps";
	const struct bench_result r = result_of(b, t);
	json_t *o = json_pack("{s:s,s:n}", "test", t->name, "tps");

	json_object_set_new(o, key, json_real(series_mean(&t->speed) / unit));
	json_object_set_new(o, "sd", json_real(series_sd(&t->speed) / unit));
	json_object_set_new(o, "bound", json_string(roof_name(r.bound)));
	json_object_set_new(o, "fraction", r.why_not != NULL ? json_null() :
	    json_real(r.fraction));
	json_object_set_new(o, "fraction_of_share", r.of_share_known ?
	    json_real(r.of_share) : json_null());
	json_object_set_new(o, t->kind == BENCH_LOAD ? "limit_gbs" :
	    "limit_tps", json_real(r.limit / unit));
	json_object_set_new(o, "no_fraction_because", r.why_not != NULL ?
	    json_string(r.why_not) : json_null());
	json_object_set_new(o, "disturbed", json_boolean(r.disturbed));
	if (t->kind == BENCH_GENERATE) {
		json_object_set_new(o, "depth", json_integer(t->depth));
		json_object_set_new(o, "sequences", json_integer(t->nseqs));
	}
	return o;
}

static json_t *
results_json(const struct bench *b, const struct bench_tests *ts,
    int with_relative)
{
	json_t *a = json_array(), *o;
	unsigned i;

	for (i = 0; i < ts->n; i++) {
		if (ts->t[i].speed.n == 0)
			continue;
		o = result_json(b, &ts->t[i]);
		if (with_relative)
			json_object_set_new(o, "relative",
			    json_real(relative_speed(b, &ts->t[i])));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *
sweep_json(const struct bench *b)
{
	const struct bench_split *sp;
	json_t *a = json_array(), *o;

	for (sp = b->split; sp < b->split + b->nsplits; sp++) {
		o = json_pack("{s:i,s:s,s:i}", "sessions", sp->nsessions,
		    "cores", sp->shared ? "shared" : "divided",
		    "cores_each", (int)sp->cores_each);
		if (sp->why_not.kind != ERR_NONE)
			json_object_set_new(o, "why_not",
			    output_json_string(sp->why_not.msg));
		json_object_set_new(o, "results",
		    results_json(b, &sp->tests, 1));
		json_array_append_new(a, o);
	}
	return a;
}

static int
report_json(const struct bench *b, struct err *reterr)
{
	json_t *o = json_object();

	json_object_set_new(o, "roofline", roofline_json(b));
	json_object_set_new(o, "results", results_json(b, &b->own, 0));
	if (b->nsplits > 0)
		json_object_set_new(o, "sweep", sweep_json(b));
	return output_json(o, 1, reterr);
}

/* --- text --- */

/* The next of 1, 2, 4, ... and all. */
static unsigned
next_count(unsigned n, unsigned all)
{
	return n < all && 2 * n > all ? all : 2 * n;
}

static void
print_machine(const struct bench *b)
{
	const struct roofline *r = b->roof;
	unsigned all = roofline_ncores(r), n, i;
	struct read_shape shape = roofline_shape(r);
	char buffer[UNITS_BYTES_LEN], cache[UNITS_BYTES_LEN] = "unknown size";
	char cores[24];

	printf("%-12s", "cores");
	for (n = 1; n <= all; n = next_count(n, all)) {
		snprintf(cores, sizeof(cores), "%u", n);
		printf(" %9s", cores);
	}
	putchar('\n');
	for (i = 0; i < NITEMS(roofs); i++) {
		const char *how = roofline_how(r, roofs[i].kind);

		if (how == NULL)
			continue;
		printf("%-12s", roofs[i].text);
		for (n = 1; n <= all; n = next_count(n, all))
			printf(" %9.1f", roofline_at(r, roofs[i].kind, n) /
			    1e9);
		printf("   %s", how);
		if (roofs[i].kind == ROOF_READ)
			printf(", %d stream%s, %d bytes ahead%s%s",
			    1 << shape.way, shape.way > 0 ? "s" : "",
			    (int)(shape.ahead & ~PEAK_READ_HOW),
			    shape.ahead & PEAK_READ_TWICE ?
			    " and twice that" :
			    shape.ahead & PEAK_READ_ONCE ?
			    ", non-temporal" : "",
			    shape.ahead & PEAK_READ_PAGES ?
			    ", pages earlier" : "");
		else
			printf(", %.1f per cycle", roofline_at(r, roofs[i].kind,
			    1) / roofline_clock_hz(r));
		putchar('\n');
	}
	if (b->disk.n > 0)
		printf("%-12s %9.2f   the model's files, %s\n",
		    "disk, GB/s", series_max(&b->disk) / 1e9,
		    b->disk_direct ? "direct" :
		    "through the page cache, dropped first");
	if (roofline_cache_bytes(r) > 0)
		units_human_bytes(roofline_cache_bytes(r), cache);
	printf("cycles at %.2f GHz; read buffer %s, last-level caches "
	    "%s\n", roofline_clock_hz(r) / 1e9,
	    units_human_bytes(roofline_buffer_bytes(r), buffer), cache);
}

/* In the tables of a sweep a bound that does not hold is a dash.  Give the
 * reason of the first. */
static void
print_dash(const struct bench *b)
{
	const struct bench_split *sp;
	const struct bench_test *t;
	struct bench_result r;

	for (sp = b->split; sp < b->split + b->nsplits; sp++)
		for (t = sp->tests.t; t < sp->tests.t + sp->tests.n; t++) {
			if (t->speed.n == 0)
				continue;
			r = result_of(b, t);
			if (r.why_not == NULL)
				continue;
			printf("note: -: the bound of %s (%s) does not hold: "
			    "%s\n", t->name, roof_name(r.bound), r.why_not);
			return;
		}
}

/* Print the conditions that limit what the numbers mean. */
static void
print_notes(const struct bench *b)
{
	const struct roofline *r = b->roof;
	char weights[UNITS_BYTES_LEN], cache[UNITS_BYTES_LEN];

	if (roofline_share(r) < SHARE_NOTE)
		printf("note: other load: the benchmark had the cores for "
		    "%.0f %% of the time; fractions assume an idle machine, "
		    "those in brackets use only that share\n",
		    100 * roofline_share(r));
	if (!b->cores_alone)
		printf("note: the bounds are those of the host's cores; the "
		    "peaks of a session's own device are unknown\n");
	if (roofline_buffer_bytes(r) < roofline_cache_bytes(r))
		printf("note: only %s could be spared for the read buffer, "
		    "which fits into caches of %s: memory is slower\n",
		    units_human_bytes(roofline_buffer_bytes(r), weights),
		    units_human_bytes(roofline_cache_bytes(r), cache));
	if (b->weight_bytes > 0 &&
	    b->weight_bytes < (double)roofline_cache_bytes(r))
		printf("note: %s of weights fit into caches of %s, so that "
		    "memory does not bound generation\n",
		    units_human_bytes((uint64_t)b->weight_bytes, weights),
		    units_human_bytes(roofline_cache_bytes(r), cache));
	print_dash(b);
}

static void
print_test(const struct bench *b, const struct bench_test *t)
{
	double unit = t->kind == BENCH_LOAD ? 1e9 : 1;
	const char *name = t->kind == BENCH_LOAD ? "GB/s" : "t/s";
	int digits = t->kind == BENCH_LOAD ? 2 : 1;
	const struct bench_result r = result_of(b, t);

	printf("%-18s %9.*f +- %.*f %s", t->name, digits,
	    series_mean(&t->speed) / unit, digits,
	    series_sd(&t->speed) / unit, name);
	if (r.why_not != NULL) {
		printf("; the bound of %.*f (%s) does not hold: %s\n", digits,
		    r.limit / unit, roof_name(r.bound), r.why_not);
		return;
	}
	printf(", %.1f %% of the %.*f that %s allows", 100 * r.fraction,
	    digits, r.limit / unit, roof_name(r.bound));
	if (roofline_share(b->roof) < SHARE_NOTE && r.of_share_known &&
	    t->kind != BENCH_LOAD)
		printf(" (%.1f %%)", 100 * r.of_share);
	putchar('\n');
}

/* --- the sweep, in tables of two tests each --- */

enum { TESTS_IN_TABLE = 2 };

static int
in_table(const struct bench_tests *ts, unsigned i, unsigned from)
{
	return i < ts->n && i < from + TESTS_IN_TABLE &&
	    ts->t[i].kind != BENCH_LOAD;
}

static void
print_split(const struct bench *b, const struct bench_split *sp,
    unsigned from)
{
	const struct bench_test *t;
	struct bench_result r;
	char fraction[16];
	unsigned i;

	printf("%-8d %-5u %-8s", sp->nsessions, sp->cores_each,
	    sp->nsessions == 1 ? "" : sp->shared ? "shared" : "its own");
	for (i = from; in_table(&sp->tests, i, from); i++) {
		t = &sp->tests.t[i];
		if (t->speed.n == 0)
			break;
		r = result_of(b, t);
		snprintf(fraction, sizeof(fraction), r.why_not != NULL ? "-" :
		    "%.1f %%", 100 * r.fraction);
		printf(" %18.1f  %7s %-4s %5.2f", series_mean(&t->speed),
		    fraction, roof_name(r.bound), relative_speed(b, t));
	}
	if (sp->why_not.kind != ERR_NONE)
		printf("  %s", PLAIN(sp->why_not.msg));
	putchar('\n');
}

static void
print_sweep(const struct bench *b)
{
	unsigned from, i;
	char text[64];

	for (from = 0; in_table(&b->own, from, from);
	    from += TESTS_IN_TABLE) {
		printf("\n%-8s %-14s", "sessions", "cores each");
		for (i = from; in_table(&b->own, i, from); i++) {
			snprintf(text, sizeof(text), "%s t/s",
			    b->own.t[i].name);
			printf(" %18s  %-12s %5s", text, "of bound", "x");
		}
		putchar('\n');
		for (i = 0; i < b->nsplits; i++)
			print_split(b, &b->split[i], from);
	}
	puts("x: relative to the speed with the fewest sessions");
}

static void
report_text(const struct bench *b)
{
	unsigned i;

	print_machine(b);
	putchar('\n');
	for (i = 0; i < b->own.n; i++)
		if (b->own.t[i].speed.n > 0)
			print_test(b, &b->own.t[i]);
	if (b->nsplits > 0)
		print_sweep(b);
	print_notes(b);
}

int
bench_report(const struct bench *b, struct err *reterr)
{
	if (b->c->json)
		return report_json(b, reterr);
	report_text(b);
	return 0;
}
