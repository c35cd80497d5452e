/* tests/unit/reader_lies.c - tests of the coordinator with a liar in the reader's
 * place (tests/support/liar.h): it is ended, and the next text has another reader. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "config/log.h"
#include "tests/support/pieces_cases.h"
#include "tests/support/reader_fixture.h"

static size_t longest_note;

static void
drop_note(int level, const char *text)
{
	(void)level;
	if (strstr(text, "nnnn") == NULL)
		return;		/* not the liar's */
	ck_assert_msg(strncmp(text, "the reader: ", 12) == 0, "%s", text);
	longest_note = MAX(longest_note, strlen(text));
}

/* Put a liar in the reader's place. */
static void
replace_by(const char *lie)
{
	const pid_t pid = fx_pid();

	setenv(LIE_ENV, lie, 1);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
}

/* It was ended; an honest one takes over. */
static void
is_ended(void)
{
	ck_assert_int_eq(fx_pid(), -1);
	unsetenv(LIE_ENV);
	fx_same_ids("and it was so");
}

START_TEST(liar_is_ended)
{
	static const struct {
		const char *lie, *words;
	} t[] = {
		{ "version", "sent version 2, not 1; it was ended" },
		{ "short-hello", "in place of 192; it was ended" },
		{ "two-parts", "a count of 2 parts in place of 1" },
		{ "many-parts", "a count of 4294967295 parts; it was ended" },
		{ "error-short", "an error of 4 bytes" },
		{ "notes", "a note that it must not (1028 bytes, number 65)" },
		{ "note-short", "a note that it must not (1027 bytes" },
		{ "fds", "sent descriptors" },
		{ "ids-many", "1024 ids of a text that has at most 56" },
		{ "ids-more", "1 ids, and says 2" },
		{ "ids-high", "token id 4294967295 of a vocabulary of" },
		{ "ids-odd", "a list of ids of 3 bytes" },
		{ "ids-none", "a list of ids of 0 bytes" },
		{ "end-short", "the end of a text, 8 bytes" }
	};
	unsigned i;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	for (i = 0; i < NITEMS(t); i++) {
		replace_by(t[i].lie);
		fx_fails(-ECOMM, t[i].words);
		is_ended();
	}
	fx_close();
}
END_TEST

/* Whatever code and kind it has: the text alone has failed. */
START_TEST(refusal_of_a_text_is_no_more)
{
	static const char *const lie[] = { "signal", "success" };
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n, i;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	for (i = 0; i < NITEMS(lie); i++) {
		replace_by(lie[i]);
		ck_assert_int_eq(tokenizer_encode(fx.theirs, "abc", 3, 1, 0, &ids,
		    &n, &e), -ECOMM);
		ck_assert_int_eq(e.kind, ERR_RUN);
		ck_assert_str_eq(e.msg, "the reader: a lie");
		ck_assert_int_gt(fx_pid(), 0);
	}
	fx_close();
}
END_TEST

START_TEST(late_answer_is_not_taken_for_the_next)
{
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("refuse-text");
	fx_fails(-ECOMM, "the reader: a lie");
	ck_assert_int_gt(fx_pid(), 0);
	fx_fails(-ECOMM, "the reader sent an answer to text 1 in place of 2");
	is_ended();
	replace_by("refuse-twice");
	fx_fails(-ECOMM, "the reader: a lie");
	fx_fails(-ECOMM, "the reader sent a refusal of text 1 in place of 2");
	is_ended();
	replace_by("two-answers");
	t_ok(tokenizer_encode(fx.theirs, "abc", 3, 1, 0, &ids, &n, &e), &e);
	free(ids);
	fx_fails(-ECOMM, "the reader sent an answer to text 1 in place of 2");
	is_ended();
	fx_close();
}
END_TEST

START_TEST(counts_that_cannot_be_end_the_reader)
{
	const struct text_part part[] = { { "abc", 3, 0 }, { "a", 1, 0 } };
	struct err e = { .kind = ERR_NONE };
	uint32_t counts[2];

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("few-counts");
	ck_assert_int_eq(tokenizer_count(fx.theirs, part, 2, 0, counts, &e),
	    -ECOMM);
	ck_assert_ptr_nonnull(strstr(e.msg, "the lengths of 1 texts in place "
	    "of 2"));
	is_ended();
	replace_by("large-count");
	ck_assert_int_eq(tokenizer_count(fx.theirs, part, 2, 0, counts, &e),
	    -ECOMM);
	ck_assert_ptr_nonnull(strstr(e.msg, "a length of 1000000 ids of a "
	    "text that has at most 16"));
	is_ended();
	fx_close();
}
END_TEST

START_TEST(reader_that_goes_on_after_a_stop_is_ended)
{
	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("no-end");
	reader_set_poll(fx.reader, fx_poll_interrupts);
	fx_fails(-EINTR, "interrupted");
	reader_set_poll(fx.reader, NULL);
	is_ended();
	fx_close();
}
END_TEST

START_TEST(poll_ends_a_send_that_waits)
{
	const size_t nbytes = 16 << 20;
	struct err e = { .kind = ERR_NONE };
	char *text = calloc(nbytes, 1);
	uint32_t *ids;
	size_t n;

	ck_assert_ptr_nonnull(text);
	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("deaf");
	reader_set_poll(fx.reader, fx_poll_interrupts);
	ck_assert_int_eq(tokenizer_encode(fx.theirs, text, nbytes, 1, 0, &ids, &n,
	    &e), -EINTR);
	reader_set_poll(fx.reader, NULL);
	is_ended();
	fx_close();
	free(text);
}
END_TEST

START_TEST(reader_that_cannot_take_over_is_ended)
{
	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("refuse-open");
	fx_fails(-ECOMM, "the reader: a lie");
	is_ended();
	fx_close();
}
END_TEST

START_TEST(texts_without_an_end_are_cut)
{
	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	log_init("reader", 2);
	log_to(drop_note);
	replace_by("no-nul");
	fx_fails(-ECOMM, "the reader: rrrr");
	ck_assert_uint_eq(longest_note, strlen("the reader: ") +
	    READ_NOTE_BYTES - 1);
	ck_assert_int_gt(fx_pid(), 0);
	replace_by("error");
	fx_fails(-ECOMM, "the reader gave up: eeee");
	is_ended();
	fx_close();
}
END_TEST

START_TEST(reader_that_cannot_be_sent_to_is_ended)
{
	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("turned");
	fx_fails(-ECOMM, "closed its channel");
	is_ended();
	fx_close();
}
END_TEST

/* --- renderings --- */

static int
render(struct err *e)
{
	const struct render_job job = { .jinja = "a", .njinja = 1, .vars = "" };
	struct rendering r;
	int rc = tokenizer_render(fx.theirs, &job, &r, e);

	if (rc == 0)
		rendering_done(&r);
	return rc;
}

START_TEST(rendering_that_cannot_be_ends_the_reader)
{
	static const struct {
		const char *lie, *words;
	} t[] = {
		{ "rendered-late", "an answer to text 2 in place of 1" },
		{ "rendered-more", "35 bytes of a rendering, and says 4 in 2" },
		{ "rendered-spans", "says 3 in 18446744073709551615 spans" },
		{ "rendered-short", "the end of a rendering, 8 bytes" },
		{ "span-none", "spans that are not those of a text of 3" },
		{ "span-long", "spans that are not those" },
		{ "span-few", "spans that are not those" },
		{ "span-mark", "spans that are not those" },
		{ "output-none", "a rendering of 0 bytes with 0 more" },
		{ "output-flood", "a rendering of 20971520 bytes with" }
	};
	struct err e = { .kind = ERR_NONE };
	unsigned i;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	for (i = 0; i < NITEMS(t); i++) {
		replace_by(t[i].lie);
		ck_assert_int_eq(render(&e), -ECOMM);
		ck_assert_msg(strstr(e.msg, t[i].words) != NULL,
		    "\"%s\" is not in: %s", t[i].words, e.msg);
		is_ended();
	}
	fx_close();
}
END_TEST

/* A refusal is the template's error, and nothing else. */
START_TEST(refusal_of_a_rendering_is_no_more)
{
	struct err e = { .kind = ERR_NONE };

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("rendered-lie");
	ck_assert_int_eq(render(&e), -ECOMM);
	ck_assert_int_eq(e.kind, ERR_RUN);
	replace_by("rendered-refused");
	ck_assert_int_eq(render(&e), -ECANCELED);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_str_eq(e.msg, "a lie");
	fx_close();
}
END_TEST

int
main(int argc, char **argv, char **envp)
{
	const TTest *const tests[] = {
		liar_is_ended,
		refusal_of_a_text_is_no_more,
		late_answer_is_not_taken_for_the_next,
		counts_that_cannot_be_end_the_reader,
		reader_that_goes_on_after_a_stop_is_ended,
		poll_ends_a_send_that_waits,
		reader_that_cannot_take_over_is_ended,
		texts_without_an_end_are_cut,
		rendering_that_cannot_be_ends_the_reader,
		refusal_of_a_rendering_is_no_more,
		reader_that_cannot_be_sent_to_is_ended
	};

	return fx_main(argc, argv, envp, "reader_lies", tests, NITEMS(tests));
}
