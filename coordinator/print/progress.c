/* coordinator/print/progress.c - shows the progress of the load. */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "config/units.h"
#include "shm/event.h"
#include "status.h"

enum { BAR = 24, BLOCK_COLS = 72 };
#define LINE_NS		UINT64_C(10000000000)
/* Loads shorter than this draw nothing before their end. */
#define QUIET_NS	UINT64_C(200000000)

void
progress_init(struct progress *pg, int on)
{
	memset(pg, 0, sizeof(*pg));
	pg->on = on;
	pg->tty = status_on_terminal();
	pg->t0_ns = event_now_ns();
	pg->next_ns = pg->t0_ns + LINE_NS;
}

/* 0 for a session that was lost and has no new worker yet. */
static uint64_t
done_bytes(const struct session *s)
{
	return s->status == NULL ? 0 : atomic_load_explicit(
	    &s->status->load_bytes, memory_order_relaxed);
}

/* Memory is touched before the first weight is read, which takes longer than
 * reading where the context is long. */
static int
is_reserving(const struct session *s)
{
	return s->state != SESSION_READY && done_bytes(s) == 0;
}

static void
draw_block(struct progress *pg, const struct sessions *ss)
{
	char have[UNITS_BYTES_LEN], all[UNITS_BYTES_LEN];
	const struct session *s;
	uint64_t done, total;
	int fill;

	/* To the first column too: ^C and typed keys have moved the cursor. */
	if (pg->drawn > 0)
		fprintf(stderr, "\r\033[%uA", pg->drawn);
	for (s = ss->s; s < ss->s + ss->n; s++) {
		total = MAX(s->plan->file_bytes, 1);
		done = MIN(done_bytes(s), total);
		fill = (int)(done * BAR / total);
		fprintf(stderr, "\033[K%-12s [%.*s%*s] ", s->name, fill,
		    "########################", BAR - fill, "");
		if (is_reserving(s))
			fputs("reserving memory\n", stderr);
		else
			fprintf(stderr, "%s of %s\n",
			    units_human_bytes(done, have),
			    units_human_bytes(s->plan->file_bytes, all));
	}
	pg->drawn = ss->n;
}

/* A block larger than the window would scroll at every redraw. */
static int
block_fits(const struct sessions *ss)
{
	struct winsize ws;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 &&
	    ws.ws_row > ss->n && ws.ws_col >= BLOCK_COLS;
}

static void
print_lines(struct progress *pg, const struct sessions *ss, int all)
{
	char have[UNITS_BYTES_LEN], total[UNITS_BYTES_LEN];
	const struct session *s;
	double seconds;
	unsigned i;

	for (i = 0; i < ss->n; i++) {
		s = &ss->s[i];
		if (pg->printed[i] || (s->state != SESSION_READY && !all))
			continue;
		pg->printed[i] = s->state == SESSION_READY;
		seconds = (double)(event_now_ns() - pg->t0_ns) / 1e9;
		if (is_reserving(s))
			fprintf(stderr, "%s: reserving memory for %.2f s\n",
			    s->name, seconds);
		else
			fprintf(stderr, "%s: loaded %s of %s in %.2f s\n",
			    s->name, units_human_bytes(done_bytes(s), have),
			    units_human_bytes(s->plan->file_bytes, total),
			    seconds);
	}
}

void
progress_tick(const struct sessions *ss, void *arg)
{
	struct progress *pg = arg;
	uint64_t now = event_now_ns();

	if (!pg->on)
		return;
	if (pg->tty) {
		if (now - pg->t0_ns >= QUIET_NS && block_fits(ss))
			draw_block(pg, ss);
		return;
	}
	print_lines(pg, ss, now >= pg->next_ns);
	if (now >= pg->next_ns)
		pg->next_ns += LINE_NS;
}

void
progress_done(struct progress *pg, const struct sessions *ss)
{
	if (pg->on && pg->tty && pg->drawn > 0 && block_fits(ss))
		draw_block(pg, ss);
	fflush(stderr);
}
