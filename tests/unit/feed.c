/* tests/unit/feed.c - tokens that are fed until somebody stops it.
 * Stand-ins replace the pipeline: it takes any number of batches. */
#include "tests/support/t.h"

#include "coordinator/engine/impl.h"

enum { CTX = 64, BATCH = 4 };

static struct batch_row rows[BATCH];
static struct pipeline pipe_;
static struct engine engine = { .pipe = &pipe_, .rows = rows,
    .plan = { .ctx_tok = CTX, .batch_rows = BATCH } };
static uint32_t ids[CTX], sent, most, nticks, stop_at;

/* --- stand-ins --- */

int
pipeline_has_room(struct pipeline *p)
{
	(void)p;
	return 1;
}

int
pipeline_submit(struct pipeline *p, const struct batch_row *r, uint32_t n)
{
	(void)r;
	sent += n;
	p->in_flight++;
	most = MAX(most, p->in_flight);
	return 0;
}

int
pipeline_control(struct pipeline *p, enum batch_kind kind, uint32_t seq,
    uint32_t pos)
{
	(void)p;
	(void)kind;
	(void)seq;
	(void)pos;
	return -1;
}

/* The last batch has a row of logits. */
int
pipeline_next(struct pipeline *p, struct result *ret, struct err *reterr)
{
	static const float logits[1];

	(void)reterr;
	p->in_flight--;
	*ret = (struct result){ .rows = rows, .logits = logits, .last = 1 };
	ret->hdr.nrows = p->in_flight == 0 && sent == CTX;
	return 0;
}

void
pipeline_done(struct pipeline *p)
{
	(void)p;
}

unsigned
plan_parallel_stages(const struct plan *p)
{
	(void)p;
	return 1;
}

double
plan_last_ratio(const struct plan *p)
{
	(void)p;
	return 1;
}

/* --- */

static int
tick(void *arg, uint32_t done, uint32_t n)
{
	(void)arg;
	ck_assert_uint_eq(done, sent);
	ck_assert_uint_eq(n, CTX);
	nticks++;
	return done >= stop_at;
}

static void
feed(uint32_t stop, unsigned nsessions)
{
	struct err e;
	uint32_t ret;

	engine.plan.nsessions = nsessions;
	sent = most = nticks = 0;
	stop_at = stop;
	t_ok(engine_feed_ticking(&engine, 0, 0, ids, CTX, NULL, tick, NULL,
	    &ret, &e), &e);
	ck_assert_uint_eq(ret, sent);
	ck_assert_uint_eq(pipe_.in_flight, 0);
}

START_TEST(a_stop_waits_for_few_batches)
{
	unsigned n;

	for (n = 1; n < 5; n++) {
		feed(UINT32_MAX, n);
		ck_assert_uint_eq(sent, CTX);
		ck_assert_uint_eq(most, n + 1);
	}
}
END_TEST

START_TEST(after_a_stop_nobody_is_asked_again)
{
	feed(5 * BATCH, 2);
	ck_assert_uint_eq(sent, 5 * BATCH);
	feed(BATCH, 3);
	ck_assert_uint_eq(sent, BATCH);
	ck_assert_uint_eq(nticks, 1);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_stop_waits_for_few_batches,
		after_a_stop_nobody_is_asked_again,
	};

	return t_main("feed", 20, tests, NITEMS(tests));
}
