/* tests/unit/progress.c - the lines that a load prints where no terminal is. */
#include "tests/support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/print/progress.h"

static struct sessions ss;
static const struct session_conf conf = { .name = "a" };
static struct plan_session plan = { .conf = &conf, .file_bytes = 4096 };
static struct stage_status status;

/* The output of a tick when the ten seconds of pg are over; free() it. */
static char *
tick(struct progress *pg)
{
	FILE *screen = stderr;
	char *text = NULL;
	size_t len;

	pg->next_ns = 0;
	stderr = open_memstream(&text, &len);
	ck_assert_ptr_nonnull(stderr);
	progress_tick(&ss, pg);
	fclose(stderr);
	stderr = screen;
	return text;
}

static void
prints(struct progress *pg, const char *want)
{
	char *text = tick(pg);

	if (*want == '\0')
		ck_assert_str_eq(text, "");
	else
		ck_assert_msg(strncmp(text, want, strlen(want)) == 0,
		    "'%s', not '%s'", text, want);
	free(text);
}

START_TEST(a_load_reserves_memory_and_then_reads)
{
	struct progress pg;

	ss.n = 1;
	session_init(&ss.s[0], &plan);
	ss.s[0].status = &status;
	progress_init(&pg, 1);
	pg.tty = 0;
	prints(&pg, "a: reserving memory for ");
	status.load_bytes = 1024;
	prints(&pg, "a: loaded 1.00 KiB of 4.00 KiB in ");
	status.load_bytes = 4096;
	ss.s[0].state = SESSION_READY;
	prints(&pg, "a: loaded 4.00 KiB of 4.00 KiB in ");
	prints(&pg, "");	/* once */
	/* A session may have nothing to read. */
	pg.printed[0] = 0;
	plan.file_bytes = 0;
	status.load_bytes = 0;
	prints(&pg, "a: loaded 0 B of 0 B in ");
	pg.on = 0;
	pg.printed[0] = 0;
	prints(&pg, "");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_load_reserves_memory_and_then_reads,
	};

	return t_main("progress", 20, tests, NITEMS(tests));
}
