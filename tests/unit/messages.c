/* tests/unit/messages.c - tests of what a worker's messages become: lines,
 * escapes, limits, and a pipe on which nobody waits. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/session/messages.h"

#define MS	UINT64_C(1000000)
#define S	UINT64_C(1000000000)

static char got[1 << 20];
static size_t nbytes;
static unsigned ngot;
static struct messages m;

static void
keep(const char *name, const char *text)
{
	int n = snprintf(got + nbytes, sizeof(got) - nbytes, "%s: %s\n", name,
	    text);

	ck_assert_int_gt(n, 0);
	nbytes += (size_t)n;
	ck_assert_uint_lt(nbytes, sizeof(got));
	ngot++;
}

static void
start(void)
{
	nbytes = 0;
	got[0] = '\0';
	ngot = 0;
	messages_init(&m, "a", "its worker", keep);
}

static void
add(uint64_t now_ns, const char *text)
{
	messages_add(&m, now_ns, text, strlen(text));
}

static void
add_lines(uint64_t now_ns, unsigned n)
{
	while (n-- > 0)
		add(now_ns, "line\n");
}

static unsigned
count(const char *text)
{
	const char *p = got;
	unsigned n = 0;

	while ((p = strstr(p, text)) != NULL) {
		p += strlen(text);
		n++;
	}
	return n;
}

START_TEST(each_line_has_the_name_whatever_the_pieces)
{
	static const char text[] = "one\n\ntwo words\nthree";
	unsigned i;

	start();
	for (i = 0; text[i] != '\0'; i++)
		messages_add(&m, S, text + i, 1);
	ck_assert_str_eq(got, "a: its worker wrote: one\n"
	    "a: its worker wrote: two words\n");
	messages_finish(&m, S);
	ck_assert_str_eq(got, "a: its worker wrote: one\n"
	    "a: its worker wrote: two words\n"
	    "a: its worker wrote: three\n");
}
END_TEST

START_TEST(nothing_that_a_terminal_obeys_is_shown)
{
	static const char text[] = "\x1b[2J\r\t\0z\xc2\x9b\xff\xe2\x80\xae\n";

	start();
	messages_add(&m, S, text, sizeof(text) - 1);
	ck_assert_str_eq(got, "a: its worker wrote: "
	    "\\x1b[2J\\r\\t\\x00z\\u009b\\xff\\u202e\n");
}
END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
	char line[2 * MESSAGES_LINE + 2];
	unsigned i;

	start();
	line[0] = 'x';
	for (i = 1; i + 1 < sizeof(line); i += 2)
		memcpy(line + i, "\xc3\xbc", 2);
	messages_add(&m, S, line, i);
	messages_finish(&m, S);
	ck_assert_uint_eq(ngot, 3);
	ck_assert_uint_eq(count("\\x"), 0);
	ck_assert_uint_eq(count("\xc3\xbc"), i / 2);

	/* The longest form of a piece fits. */
	start();
	memset(line, '\x1b', sizeof(line));
	messages_add(&m, S, line, 2 * MESSAGES_LINE);
	ck_assert_uint_eq(ngot, 2);
	ck_assert_uint_eq(count("\\x1b"), 2 * MESSAGES_LINE);
}
END_TEST

START_TEST(a_flood_is_bounded_and_its_loss_is_said)
{
	unsigned before;

	start();
	add_lines(S, MESSAGES_BURST + 7);
	ck_assert_uint_eq(ngot, MESSAGES_BURST);
	/* A little time does not end the flood: no pair of lines each tick. */
	add_lines(S + 250 * MS, 1);
	ck_assert_uint_eq(ngot, MESSAGES_BURST);
	/* A second does. */
	add_lines(2 * S, 1000);
	ck_assert_uint_eq(ngot, MESSAGES_BURST + 1 + MESSAGES_RESUME);
	ck_assert_uint_eq(count("its worker wrote too much: at least 8 lines, of "
	    "32 bytes, left out\n"), 1);
	/* Hours of silence allow one burst, not more. */
	before = ngot;
	add_lines(5000 * S, 2 * MESSAGES_BURST);
	ck_assert_uint_eq(ngot, before + 1 + MESSAGES_BURST);
	/* The rest is said at the end. */
	messages_finish(&m, 5000 * S);
	ck_assert_uint_eq(count("left out"), 3);
}
END_TEST

START_TEST(all_workers_together_are_bounded)
{
	unsigned i;

	start();
	for (i = 0; i < 2 * MESSAGES_ALL; i++)
		add_lines((i + 1) * S, MESSAGES_RESUME);
	ck_assert_uint_eq(count("line\n"), MESSAGES_ALL);
	start();
	add_lines(S, 1);
	ck_assert_uint_eq(ngot, 0);
	/* Not the last words. */
	messages_start_last(&m);
	add(S, "the cause\n");
	ck_assert_uint_eq(count("the cause"), 1);
}
END_TEST

START_TEST(last_words_have_a_bound_of_their_own)
{
	start();
	add_lines(S, 2 * MESSAGES_BURST);
	ck_assert_uint_eq(ngot, MESSAGES_BURST);
	messages_start_last(&m);
	add_lines(S, MESSAGES_LAST - 1);
	messages_start_last(&m);
	add_lines(S, 10);
	messages_finish(&m, S);
	ck_assert_uint_eq(ngot, MESSAGES_BURST + 1 + MESSAGES_LAST + 1);
	ck_assert_uint_eq(count("left out"), 2);
}
END_TEST

START_TEST(nobody_waits_for_the_pipe)
{
	static char block[MESSAGES_PIPE_BYTES];
	struct err e = { 0 };
	size_t sent = 0;
	ssize_t n;
	int fd;

	start();
	t_ok(messages_open(&m, "a", "its worker", &fd, &e), &e);
	m.show = keep;
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_ne(fcntl(m.fd, F_GETFD) & FD_CLOEXEC, 0);
	messages_read(&m);			/* nothing came */
	memset(block, 'x', sizeof(block));
	block[1] = '\n';
	while ((n = write(fd, block, sizeof(block))) > 0)
		sent += (size_t)n;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_uint_eq(sent, m.pipe_bytes);
	messages_read(&m);
	ck_assert_uint_gt(ngot, 1);
	ck_assert_int_lt(read(m.fd, block, 1), 0);	/* all was read */
	ck_assert_int_gt(write(fd, "\nlast words", 11), 0);
	close(fd);
	messages_close(&m);
	ck_assert_uint_eq(count("a: its worker wrote: last words\n"), 1);
	ck_assert_int_eq(m.fd, -1);
	messages_close(&m);
	messages_read(&m);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		each_line_has_the_name_whatever_the_pieces,
		nothing_that_a_terminal_obeys_is_shown,
		a_long_line_is_cut_between_characters,
		a_flood_is_bounded_and_its_loss_is_said,
		all_workers_together_are_bounded,
		last_words_have_a_bound_of_their_own,
		nobody_waits_for_the_pipe
	};

	return t_main("messages", 60, tests, NITEMS(tests));
}
