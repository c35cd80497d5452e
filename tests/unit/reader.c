/* tests/unit/reader.c - tests of the reader, in a process of its own: it says what
 * the same code says in this process, it can be interrupted, and it is replaced. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/log.h"
#include "coordinator/text/variables.h"
#include "layers/gguf/flat.h"
#include "layers/hparams.h"
#include "tests/support/make_model.h"
#include "tests/support/pieces_cases.h"
#include "tests/support/reader_fixture.h"

/* --- what it says --- */

/* The same block describes both directories. */
static void
same_directory(void)
{
	const struct gguf *view = reader_directory(fx.reader);
	struct hparams hp = { 0 };
	struct err e = { .kind = ERR_NONE }, why = { .kind = ERR_NONE };
	struct model *m = NULL;
	uint64_t a, b;
	char *block;
	int rc;

	t_ok(gguf_flat_bytes(fx.g, &a, &e), &e);
	t_ok(gguf_flat_bytes(view, &b, &e), &e);
	ck_assert_uint_eq(a, b);
	ck_assert_ptr_nonnull(block = calloc(2, a));
	gguf_flat_write(fx.g, block);
	gguf_flat_write(view, block + a);
	ck_assert_mem_eq(block, block + a, a);
	free(block);
	rc = hparams_read(fx.g, &hp, &why);
	ck_assert_int_eq(reader_model(fx.reader, &m, &e), rc);
	if (rc == 0) {
		ck_assert_mem_eq(&fx.reader->directory.hp, &hp, sizeof(hp));
		model_close(m);
		return;
	}
	ck_assert_int_eq(e.kind, why.kind);
	ck_assert_int_eq(strncmp(e.msg, "the reader: ", 12), 0);
	ck_assert_str_eq(e.msg + 12, why.msg);
}

static void
same_random_texts(unsigned n)
{
	static const char *const piece[] = { "In the beginning ", "abc", " ",
	    "\n", "\xe2\x96\x81", "\xc3\xa4", "\xff", "<|im_end|>", "<s>", "0" };
	char text[2048];
	size_t len;

	while (n-- > 0) {
		len = 0;
		do
			len += (size_t)sprintf(text + len, "%s",
			    piece[t_rand_below(NITEMS(piece))]);
		while (len < sizeof(text) - 32 && t_rand_below(20) != 0);
		fx_same_ids(text);
	}
}

/* Parts of both kinds, and their lengths. */
static void
same_parts(void)
{
	static const struct text_part part[] = { { "<s>a", 4, 1 },
	    { "<s>b<|im_end|>", 14, 0 }, { "", 0, 0 },
	    { "<|im_end|>\xff ", 12, 1 } };
	const int flags[] = { 0, ENCODE_BOS, ENCODE_BOS_ALWAYS, ENCODE_MORE };
	struct err e = { .kind = ERR_NONE };
	uint32_t *a, *b, na[NITEMS(part)], nb[NITEMS(part)];
	size_t n, m, i;

	for (i = 0; i < NITEMS(flags); i++) {
		t_ok(tokenizer_encode_parts(fx.theirs, part, NITEMS(part),
		    flags[i], &a, &n, &e), &e);
		t_ok(tokenizer_encode_parts(fx.ours, part, NITEMS(part),
		    flags[i], &b, &m, &e), &e);
		ck_assert_uint_eq(n, m);
		ck_assert_mem_eq(a, b, n * sizeof(*a));
		free(a);
		free(b);
		t_ok(tokenizer_count(fx.theirs, part, NITEMS(part), flags[i], na,
		    &e), &e);
		t_ok(tokenizer_count(fx.ours, part, NITEMS(part), flags[i], nb,
		    &e), &e);
		ck_assert_mem_eq(na, nb, sizeof(na));
	}
}

static const char jinja[] = "{% for m in messages %}<s>{{ m }}<|im_end|>"
    "{% endfor %}{{ strftime_now('%Y') }}";

/* A conversation of n messages. */
static void
put_messages(struct variables *v, unsigned n)
{
	variables_name(v, "messages");
	variables_bracket(v, '[');
	while (n-- > 0)
		variables_string(v, "<s>a <|im_end|>\xff", 16, JINJA_INPUT);
	variables_bracket(v, ']');
}

/* Render with one of the two; 0 if it succeeds. */
static int
render(const struct tokenizer *t, const char *text, const struct variables *v,
    int wants_ids, struct rendering *ret, struct err *e)
{
	const struct tm now = { .tm_year = 126, .tm_mday = 1 };
	const struct render_job job = { .jinja = text, .njinja = strlen(text),
	    .vars = v->data, .nvars = v->n, .now = &now,
	    .wants_ids = wants_ids, .flags = ENCODE_BOS };

	return tokenizer_render(t, &job, ret, e);
}

static void
same_rendering(unsigned nmessages)
{
	struct err e = { .kind = ERR_NONE };
	struct variables v = { 0 };
	struct rendering a, b;

	put_messages(&v, nmessages);
	t_ok(render(fx.theirs, jinja, &v, 0, &a, &e), &e);
	t_ok(render(fx.ours, jinja, &v, 0, &b, &e), &e);
	ck_assert_uint_eq(a.nbytes, b.nbytes);
	ck_assert_mem_eq(a.text, b.text, a.nbytes);
	ck_assert_uint_eq(a.nspans, b.nspans);
	ck_assert_mem_eq(a.span, b.span, a.nspans * sizeof(*a.span));
	rendering_done(&a);
	rendering_done(&b);
	t_ok(render(fx.theirs, jinja, &v, 1, &a, &e), &e);
	t_ok(render(fx.ours, jinja, &v, 1, &b, &e), &e);
	ck_assert_uint_eq(a.nids, b.nids);
	ck_assert_mem_eq(a.ids, b.ids, a.nids * sizeof(*a.ids));
	rendering_done(&a);
	rendering_done(&b);
	variables_done(&v);
}

static void
same_in_both(const char *path)
{
	fx_open(path, NULL);
	same_directory();
	fx_same_ids("");
	fx_same_ids("In the beginning God created the heaven and the earth.");
	same_random_texts(20);
	same_parts();
	same_rendering(0);
	same_rendering(3);
	fx_close();
}

START_TEST(reader_says_what_this_process_would)
{
	char path[4200];
	unsigned i;

	for (i = 0; i < PIECES_NCASES; i++)
		same_in_both(pieces_case_save(i, t_tmpdir()));
	same_in_both(t_data("kjv-q8_0.gguf"));
	snprintf(path, sizeof(path), "%s/m.gguf", t_tmpdir());
	make_model("tiny Q8_0 --split 3", path);
	snprintf(path, sizeof(path), "%s/m-00001-of-00003.gguf", t_tmpdir());
	same_in_both(path);
}
END_TEST

/* Texts and ids of many messages. */
START_TEST(long_text_comes_back_whole)
{
	struct err e = { .kind = ERR_NONE };
	const size_t nbytes = 300001;
	char *text = malloc(nbytes);
	size_t i;

	ck_assert_ptr_nonnull(text);
	for (i = 0; i < nbytes; i++)
		text[i] = i % 7 == 0 ? ' ' : (char)('a' + t_rand_below(26));
	fx_open(t_data("kjv-q8_0.gguf"), NULL);
	t_ok(fx_encode(text, nbytes, &e), &e);
	fx_close();
	free(text);
}
END_TEST

/* More spans than a message holds. */
START_TEST(long_conversation_comes_back_whole)
{
	fx_open(pieces_case_save(1, t_tmpdir()), NULL);
	same_rendering(20000);
	fx_close();
}
END_TEST

/* --- what it refuses --- */

static void
template_fails(const char *text, int rc, const char *words)
{
	const struct variables none = { 0 };
	struct err e = { .kind = ERR_NONE };
	struct rendering r;

	ck_assert_int_eq(render(fx.theirs, text, &none, 1, &r, &e), rc);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_msg(strncmp(e.msg, words, strlen(words)) == 0, "%s", e.msg);
}

/* Also one that would use up the memory or the time of the reader, which stays. */
START_TEST(template_that_fails_says_why)
{
	pid_t pid;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	pid = fx_pid();
	template_fails("{{ raise_exception('a\x01b') }}", -ECANCELED,
	    "line 1, column ");
	template_fails("{% if %}", -EBADMSG, "line 1, column ");
	template_fails("{{ a.b }}", -EINVAL, "line 1, column ");
	template_fails("{{ 'x' * 10 ** 9 }}", -E2BIG, "line 1, column ");
	template_fails("{% for a in range(99999) %}{% for b in range(99999) %}"
	    "{{ '' }}{% endfor %}{% endfor %}", -E2BIG, "");
	template_fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", -E2BIG,
	    "line 1, column ");
	ck_assert_int_eq(fx_pid(), pid);
	fx_same_ids("and it was so");
	fx_close();
}
END_TEST


START_TEST(file_that_is_no_model_is_refused)
{
	struct err e = { .kind = ERR_NONE }, here;
	char path[4200];
	FILE *fp;
	int rc;

	snprintf(path, sizeof(path), "%s/text", t_tmpdir());
	ck_assert_ptr_nonnull(fp = fopen(path, "w"));
	fputs("a text that is no model at all\n", fp);
	fclose(fp);
	rc = gguf_open(path, &fx.g, &here);
	ck_assert_int_lt(rc, 0);
	ck_assert_int_eq(fx_try_open(path, NULL, &e), rc);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_int_eq(strncmp(e.msg, "the reader: ", 12), 0);
	ck_assert_str_eq(e.msg + 12, here.msg);
	fx_nothing_is_left();
	/* The coordinator finds this without a reader. */
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(fx_try_open(path, NULL, &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.msg, path));
}
END_TEST

START_TEST(text_beyond_the_limits_is_not_sent)
{
	static const struct text_part parts[READ_MAX_PARTS + 1];
	/* Its bytes are not looked at. */
	const struct text_part large[] = { { "", READ_MAX_TEXT, 0 },
	    { "a", 1, 0 } };
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n;

	fx_open(pieces_case_save(0, t_tmpdir()), NULL);
	ck_assert_int_eq(tokenizer_encode_parts(fx.theirs, parts, NITEMS(parts),
	    0, &ids, &n, &e), -E2BIG);
	ck_assert_int_eq(tokenizer_encode_parts(fx.theirs, parts, 0, 0, &ids, &n,
	    &e), -E2BIG);
	ck_assert_int_eq(tokenizer_encode_parts(fx.theirs, large, 2, 0, &ids, &n,
	    &e), -E2BIG);
	ck_assert_int_eq(e.kind, ERR_RUN);
	fx_same_ids("and it was so");
	fx_close();
}
END_TEST

START_TEST(changed_file_is_not_read_again)
{
	const char *path = pieces_case_save(0, t_tmpdir());
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n;
	FILE *fp;

	t_ok(fx_try_open(path, NULL, &e), &e);
	t_ok(reader_tokenizer(fx.reader, &fx.theirs, &e), &e);
	ck_assert_ptr_nonnull(fp = fopen(path, "a"));
	fputs("more", fp);
	fclose(fp);
	/* The reader has all that it needs. */
	t_ok(tokenizer_encode(fx.theirs, "abc", 3, 1, 0, &ids, &n, &e), &e);
	free(ids);
	kill(fx_pid(), SIGKILL);
	ck_assert_int_eq(tokenizer_encode(fx.theirs, "abc", 3, 1, 0, &ids, &n,
	    &e), -ESTALE);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "has changed"));
	ck_assert_int_eq(fx_pid(), -1);
	reader_close(fx.reader);
	fx_nothing_is_left();
}
END_TEST

/* --- a poll that ends a wait --- */

START_TEST(interrupted_text_leaves_the_reader)
{
	struct err e = { .kind = ERR_NONE };
	const size_t nbytes = 1 << 20;		/* half a second's work */
	char *text = malloc(nbytes);
	uint32_t *ids = NULL;
	size_t n;
	pid_t pid;

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', nbytes);
	fx_open(t_data("kjv-q8_0.gguf"), NULL);
	pid = fx_pid();
	reader_set_poll(fx.reader, fx_poll_interrupts);
	ck_assert_int_eq(tokenizer_encode(fx.theirs, text, nbytes, 1, 0, &ids,
	    &n, &e), -EINTR);
	ck_assert_str_eq(e.msg, "interrupted");
	reader_set_poll(fx.reader, NULL);
	fx_same_ids("and it was so");
	ck_assert_int_eq(fx_pid(), pid);
	fx_close();
	free(text);
}
END_TEST

/* One that does not answer READ_STOP either. */
START_TEST(interrupted_text_ends_a_stopped_reader)
{
	pid_t pid;

	fx_open(pieces_case_save(1, t_tmpdir()), NULL);
	pid = fx_pid();
	kill(pid, SIGSTOP);
	reader_set_poll(fx.reader, fx_poll_interrupts);
	fx_fails(-EINTR, "interrupted");
	reader_set_poll(fx.reader, NULL);
	ck_assert_int_eq(fx_pid(), -1);
	fx_same_ids("and it was so");
	ck_assert_int_ne(fx_pid(), pid);
	fx_close();
}
END_TEST

static int
poll_fails(struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -ECANCELED, "not at all");
}

START_TEST(poll_ends_the_wait_for_a_header)
{
	struct err e = { .kind = ERR_NONE };

	setenv(PAUSE_ENV, "10000", 1);
	ck_assert_int_eq(fx_try_open(t_data("kjv-q8_0.gguf"), poll_fails, &e),
	    -ECANCELED);
	ck_assert_str_eq(e.msg, "not at all");
	fx_nothing_is_left();
}
END_TEST

/* --- loss --- */

static unsigned kills;			/* that poll may do */

static int
poll_kills(struct err *reterr)
{
	(void)reterr;
	if (fx.polls++ > 0 && kills > 0 && fx_pid() > 0) {
		kills--;
		kill(fx_pid(), SIGKILL);
	}
	return 0;
}

/* A text whose reader is killed n times while it waits. */
static void
lose(unsigned n)
{
	setenv(PAUSE_ENV, "2000", 1);	/* of the children that follow */
	kill(fx_pid(), SIGSTOP);
	fx.polls = 0;
	kills = n;
	reader_set_poll(fx.reader, poll_kills);
}

START_TEST(killed_reader_is_replaced_once)
{
	pid_t pid;

	fx_open(t_data("kjv-q8_0.gguf"), NULL);
	pid = fx_pid();
	lose(1);
	fx_same_ids("and it was so");
	ck_assert_uint_eq(kills, 0);
	ck_assert_int_ne(fx_pid(), pid);
	lose(2);
	fx_fails(-ECOMM, "killed by signal 9");
	ck_assert_uint_eq(kills, 0);
	fx_same_ids("and it was so");
	fx.conf.recover = 0;
	lose(1);
	fx_fails(-ECOMM, "killed by signal 9");
	fx_same_ids("and it was so");
	fx_close();
}
END_TEST

START_TEST(reader_killed_while_rendering_is_replaced_once)
{
	struct err e = { .kind = ERR_NONE };
	struct variables v = { 0 };
	struct rendering r;
	pid_t pid;

	fx_open(t_data("kjv-q8_0.gguf"), NULL);
	put_messages(&v, 3);
	pid = fx_pid();
	lose(1);
	same_rendering(3);
	ck_assert_uint_eq(kills, 0);
	ck_assert_int_ne(fx_pid(), pid);
	lose(2);
	ck_assert_int_eq(render(fx.theirs, jinja, &v, 1, &r, &e), -ECOMM);
	ck_assert_ptr_nonnull(strstr(e.msg, "killed by signal 9"));
	same_rendering(3);
	variables_done(&v);
	fx_close();
}
END_TEST

/* Without a model. */
START_TEST(bare_reader_renders_and_is_replaced)
{
	const struct render_job job = { .jinja = "{{ 1 + 1 }}", .njinja = 11,
	    .vars = "" };
	struct err e = { .kind = ERR_NONE };
	struct rendering r;
	unsigned i;

	conf_defaults(&fx.conf);
	log_init("reader", -1);
	t_ok(child_open_program(&e), &e);
	t_ok(reader_open_bare(&fx.conf, NULL, &fx.reader, &e), &e);
	for (i = 0; i < 2; i++) {
		t_ok(reader_render(fx.reader, &job, &r, &e), &e);
		ck_assert_str_eq(r.text, "2");
		rendering_done(&r);
		kill(fx_pid(), SIGKILL);
	}
	reader_close(fx.reader);
}
END_TEST

START_TEST(reader_lost_between_texts_is_replaced)
{
	pid_t pid;

	fx_open(pieces_case_save(2, t_tmpdir()), NULL);
	pid = fx_pid();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
	    WEXITED | WNOWAIT), 0);
	fx_same_ids("and it was so");
	ck_assert_int_ne(fx_pid(), pid);
	fx_close();
}
END_TEST

START_TEST(reader_lost_before_the_vocabulary_is_replaced_once)
{
	const char *path = pieces_case_save(3, t_tmpdir());
	struct err e = { .kind = ERR_NONE };
	unsigned recover;
	uint32_t *ids;
	size_t n;

	for (recover = 0; recover < 2; recover++) {
		t_ok(fx_try_open(path, NULL, &e), &e);
		reader_close(fx.reader);
		/* One that was not asked yet cannot have answered. */
		fx.conf.recover = (int)recover;
		t_ok(reader_open(&fx.conf, &(struct reader_how){ 0 },
		    &fx.reader, &e), &e);
		kill(fx_pid(), SIGKILL);
		if (recover == 0) {
			ck_assert_int_eq(reader_tokenizer(fx.reader, &fx.theirs,
			    &e), -ECOMM);
			ck_assert_ptr_nonnull(strstr(e.msg, "killed by"));
		} else {
			t_ok(reader_tokenizer(fx.reader, &fx.theirs, &e), &e);
			t_ok(tokenizer_encode(fx.theirs, "abc", 3, 1, 0, &ids,
			    &n, &e), &e);
			ck_assert_uint_gt(n, 0);
			free(ids);
		}
		reader_close(fx.reader);
		fx_nothing_is_left();
	}
}
END_TEST

int
main(int argc, char **argv, char **envp)
{
	const TTest *const tests[] = {
		reader_says_what_this_process_would,
		reader_lost_before_the_vocabulary_is_replaced_once,
		long_text_comes_back_whole,
		long_conversation_comes_back_whole,
		template_that_fails_says_why,
		file_that_is_no_model_is_refused,
		text_beyond_the_limits_is_not_sent,
		changed_file_is_not_read_again,
		interrupted_text_leaves_the_reader,
		interrupted_text_ends_a_stopped_reader,
		poll_ends_the_wait_for_a_header,
		killed_reader_is_replaced_once,
		reader_killed_while_rendering_is_replaced_once,
		bare_reader_renders_and_is_replaced,
		reader_lost_between_texts_is_replaced
	};

	return fx_main(argc, argv, envp, "reader", tests, NITEMS(tests));
}
