/* tests/unit/reader.c - tests of the reader, in a process of its own: it says what
 * the same code says in this process, it can be interrupted and replaced, and a
 * liar in its place is ended. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/unistd.h>

#include "config/log.h"
#include "config/roles.h"
#include "coordinator/reader/state.h"
#include "layers/gguf/flat.h"
#include "layers/hparams.h"
#include "tests/support/liar.h"
#include "tests/support/make_model.h"
#include "tests/support/pieces_cases.h"

/* For the children: what they do in place of a reader's work (liar.h), and how
 * long they wait before it. */
#define LIE_ENV		"STRADDLE_TEST_LIE"
#define PAUSE_ENV	"STRADDLE_TEST_PAUSE_MS"

static struct conf conf;
static struct reader *reader;		/* of the test */
static struct tokenizer *theirs, *ours;	/* in the reader; here */
static struct gguf *g;
static unsigned polls, kills;		/* poll's calls; kills that it may do */
static int low_fd;			/* the lowest free one, before all */

/* --- the model --- */

static int
lowest_free_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

static int
try_open(const char *path, tokenizer_poll_fn *poll, struct err *e)
{
	const struct reader_how how = { .poll = poll, .wants_vocab = 1 };

	conf_defaults(&conf);
	conf.model_path = (char *)(uintptr_t)path;
	conf.verbose = 0;
	log_init("reader", -1);
	t_ok(child_open_program(e), e);
	low_fd = lowest_free_fd();
	return reader_open(&conf, &how, &reader, e);
}

/* The reader is gone, with all that belonged to it. */
static void
nothing_is_left(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(lowest_free_fd(), low_fd);
}

/* Open the model in the reader, and here. */
static void
open_both(const char *path, tokenizer_poll_fn *poll)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(try_open(path, poll, &e), &e);
	t_ok(reader_tokenizer(reader, &theirs, &e), &e);
	t_ok(gguf_open(path, &g, &e), &e);
	t_ok(tokenizer_open(g, &ours, &e), &e);
}

static void
close_both(void)
{
	tokenizer_close(ours);
	gguf_close(g);
	reader_close(reader);
	nothing_is_left();
}

static pid_t
reader_pid(void)
{
	return reader->p.child.pid;
}

/* --- texts --- */

static int
encode_here_and_there(const char *text, size_t nbytes, struct err *e)
{
	uint32_t *a = NULL, *b;
	size_t na, nb;
	int rc = tokenizer_encode(theirs, text, nbytes, 1, 0, &a, &na, e);

	if (rc < 0) {
		ck_assert_ptr_null(a);
		return rc;
	}
	t_ok(tokenizer_encode(ours, text, nbytes, 1, 0, &b, &nb, e), e);
	ck_assert_uint_eq(na, nb);
	ck_assert(na == 0 || memcmp(a, b, na * sizeof(*a)) == 0);
	free(a);
	free(b);
	return 0;
}

static void
same_ids(const char *text)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(encode_here_and_there(text, strlen(text), &e), &e);
}

/* A text fails with this code and message. */
static void
fails(int want, const char *words)
{
	struct err e = { .kind = ERR_NONE };
	int rc = encode_here_and_there("and it was so", 13, &e);

	ck_assert_msg(rc == want, "rc %d: %s", rc, e.msg);
	ck_assert_msg(strstr(e.msg, words) != NULL, "\"%s\" is not in: %s",
	    words, e.msg);
}

/* The same block describes both directories. */
static void
same_directory(void)
{
	const struct gguf *view = reader_directory(reader);
	struct hparams hp = { 0 };
	struct err e = { .kind = ERR_NONE }, why = { .kind = ERR_NONE };
	struct model *m = NULL;
	uint64_t a, b;
	char *block;
	int rc;

	t_ok(gguf_flat_bytes(g, &a, &e), &e);
	t_ok(gguf_flat_bytes(view, &b, &e), &e);
	ck_assert_uint_eq(a, b);
	ck_assert_ptr_nonnull(block = calloc(2, a));
	gguf_flat_write(g, block);
	gguf_flat_write(view, block + a);
	ck_assert_mem_eq(block, block + a, a);
	free(block);
	rc = hparams_read(g, &hp, &why);
	ck_assert_int_eq(reader_model(reader, &m, &e), rc);
	if (rc == 0) {
		ck_assert_mem_eq(&reader->directory.hp, &hp, sizeof(hp));
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
		same_ids(text);
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
		t_ok(tokenizer_encode_parts(theirs, part, NITEMS(part),
		    flags[i], &a, &n, &e), &e);
		t_ok(tokenizer_encode_parts(ours, part, NITEMS(part),
		    flags[i], &b, &m, &e), &e);
		ck_assert_uint_eq(n, m);
		ck_assert_mem_eq(a, b, n * sizeof(*a));
		free(a);
		free(b);
		t_ok(tokenizer_count(theirs, part, NITEMS(part), flags[i], na,
		    &e), &e);
		t_ok(tokenizer_count(ours, part, NITEMS(part), flags[i], nb,
		    &e), &e);
		ck_assert_mem_eq(na, nb, sizeof(na));
	}
}

static void
same_in_both(const char *path)
{
	open_both(path, NULL);
	same_directory();
	same_ids("");
	same_ids("In the beginning God created the heaven and the earth.");
	same_random_texts(20);
	same_parts();
	close_both();
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
	open_both(t_data("kjv-q8_0.gguf"), NULL);
	t_ok(encode_here_and_there(text, nbytes, &e), &e);
	close_both();
	free(text);
}
END_TEST

/* --- what it refuses --- */

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
	rc = gguf_open(path, &g, &here);
	ck_assert_int_lt(rc, 0);
	ck_assert_int_eq(try_open(path, NULL, &e), rc);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_int_eq(strncmp(e.msg, "the reader: ", 12), 0);
	ck_assert_str_eq(e.msg + 12, here.msg);
	nothing_is_left();
	/* What the coordinator finds needs no reader. */
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(try_open(path, NULL, &e), -ENOENT);
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

	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	ck_assert_int_eq(tokenizer_encode_parts(theirs, parts, NITEMS(parts),
	    0, &ids, &n, &e), -E2BIG);
	ck_assert_int_eq(tokenizer_encode_parts(theirs, parts, 0, 0, &ids, &n,
	    &e), -E2BIG);
	ck_assert_int_eq(tokenizer_encode_parts(theirs, large, 2, 0, &ids, &n,
	    &e), -E2BIG);
	ck_assert_int_eq(e.kind, ERR_RUN);
	same_ids("and it was so");
	close_both();
}
END_TEST

START_TEST(changed_file_is_not_read_again)
{
	const char *path = pieces_case_save(0, t_tmpdir());
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n;
	FILE *fp;

	t_ok(try_open(path, NULL, &e), &e);
	t_ok(reader_tokenizer(reader, &theirs, &e), &e);
	ck_assert_ptr_nonnull(fp = fopen(path, "a"));
	fputs("more", fp);
	fclose(fp);
	/* The reader has all that it needs. */
	t_ok(tokenizer_encode(theirs, "abc", 3, 1, 0, &ids, &n, &e), &e);
	free(ids);
	kill(reader_pid(), SIGKILL);
	ck_assert_int_eq(tokenizer_encode(theirs, "abc", 3, 1, 0, &ids, &n,
	    &e), -ESTALE);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "has changed"));
	ck_assert_int_eq(reader_pid(), -1);
	reader_close(reader);
	nothing_is_left();
}
END_TEST

/* --- a poll that ends a wait --- */

static int
poll_interrupts(struct err *reterr)
{
	/* The first call comes before the text is sent. */
	return polls++ == 0 ? 0 : err_set(reterr, ERR_RUN, -EINTR,
	    "interrupted");
}

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
	open_both(t_data("kjv-q8_0.gguf"), NULL);
	pid = reader_pid();
	reader_set_poll(reader, poll_interrupts);
	ck_assert_int_eq(tokenizer_encode(theirs, text, nbytes, 1, 0, &ids,
	    &n, &e), -EINTR);
	ck_assert_str_eq(e.msg, "interrupted");
	reader_set_poll(reader, NULL);
	same_ids("and it was so");
	ck_assert_int_eq(reader_pid(), pid);
	close_both();
	free(text);
}
END_TEST

/* One that does not answer READ_STOP either. */
START_TEST(interrupted_text_ends_a_stopped_reader)
{
	pid_t pid;

	open_both(pieces_case_save(1, t_tmpdir()), NULL);
	pid = reader_pid();
	kill(pid, SIGSTOP);
	reader_set_poll(reader, poll_interrupts);
	fails(-EINTR, "interrupted");
	reader_set_poll(reader, NULL);
	ck_assert_int_eq(reader_pid(), -1);
	same_ids("and it was so");
	ck_assert_int_ne(reader_pid(), pid);
	close_both();
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
	ck_assert_int_eq(try_open(t_data("kjv-q8_0.gguf"), poll_fails, &e),
	    -ECANCELED);
	ck_assert_str_eq(e.msg, "not at all");
	nothing_is_left();
}
END_TEST

/* --- loss --- */

static int
poll_kills(struct err *reterr)
{
	(void)reterr;
	if (polls++ > 0 && kills > 0 && reader_pid() > 0) {
		kills--;
		kill(reader_pid(), SIGKILL);
	}
	return 0;
}

/* A text whose reader is killed n times while it waits. */
static void
lose(unsigned n)
{
	setenv(PAUSE_ENV, "200", 1);	/* of the children that follow */
	kill(reader_pid(), SIGSTOP);
	polls = 0;
	kills = n;
	reader_set_poll(reader, poll_kills);
}

START_TEST(killed_reader_is_replaced_once)
{
	pid_t pid;

	open_both(t_data("kjv-q8_0.gguf"), NULL);
	pid = reader_pid();
	lose(1);
	same_ids("and it was so");
	ck_assert_uint_eq(kills, 0);
	ck_assert_int_ne(reader_pid(), pid);
	lose(2);
	fails(-ECOMM, "killed by signal 9");
	ck_assert_uint_eq(kills, 0);
	same_ids("and it was so");
	conf.recover = 0;
	lose(1);
	fails(-ECOMM, "killed by signal 9");
	same_ids("and it was so");
	close_both();
}
END_TEST

START_TEST(reader_lost_between_texts_is_replaced)
{
	pid_t pid;

	open_both(pieces_case_save(2, t_tmpdir()), NULL);
	pid = reader_pid();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 },
	    WEXITED | WNOWAIT), 0);
	same_ids("and it was so");
	ck_assert_int_ne(reader_pid(), pid);
	close_both();
}
END_TEST

/* --- liars --- */

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
	const pid_t pid = reader_pid();

	setenv(LIE_ENV, lie, 1);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
}

/* It was ended; an honest one takes over. */
static void
is_ended(void)
{
	ck_assert_int_eq(reader_pid(), -1);
	unsetenv(LIE_ENV);
	same_ids("and it was so");
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

	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	for (i = 0; i < NITEMS(t); i++) {
		replace_by(t[i].lie);
		fails(-ECOMM, t[i].words);
		is_ended();
	}
	close_both();
}
END_TEST

/* Whatever code and kind it has: the text alone has failed. */
START_TEST(refusal_of_a_text_is_no_more)
{
	static const char *const lie[] = { "signal", "success" };
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n, i;

	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	for (i = 0; i < NITEMS(lie); i++) {
		replace_by(lie[i]);
		ck_assert_int_eq(tokenizer_encode(theirs, "abc", 3, 1, 0, &ids,
		    &n, &e), -ECOMM);
		ck_assert_int_eq(e.kind, ERR_RUN);
		ck_assert_str_eq(e.msg, "the reader: a lie");
		ck_assert_int_gt(reader_pid(), 0);
	}
	close_both();
}
END_TEST

START_TEST(late_answer_is_not_taken_for_the_next)
{
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t n;

	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("refuse-text");
	fails(-ECOMM, "the reader: a lie");
	ck_assert_int_gt(reader_pid(), 0);
	fails(-ECOMM, "the reader sent an answer to text 1 in place of 2");
	is_ended();
	replace_by("two-answers");
	t_ok(tokenizer_encode(theirs, "abc", 3, 1, 0, &ids, &n, &e), &e);
	free(ids);
	fails(-ECOMM, "the reader sent an answer to text 1 in place of 2");
	is_ended();
	close_both();
}
END_TEST

START_TEST(counts_that_cannot_be_end_the_reader)
{
	const struct text_part part[] = { { "abc", 3, 0 }, { "a", 1, 0 } };
	struct err e = { .kind = ERR_NONE };
	uint32_t counts[2];

	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("few-counts");
	ck_assert_int_eq(tokenizer_count(theirs, part, 2, 0, counts, &e),
	    -ECOMM);
	ck_assert_ptr_nonnull(strstr(e.msg, "the lengths of 1 texts in place "
	    "of 2"));
	is_ended();
	replace_by("large-count");
	ck_assert_int_eq(tokenizer_count(theirs, part, 2, 0, counts, &e),
	    -ECOMM);
	ck_assert_ptr_nonnull(strstr(e.msg, "a length of 1000000 ids of a "
	    "text that has at most 16"));
	is_ended();
	close_both();
}
END_TEST

START_TEST(reader_that_goes_on_after_a_stop_is_ended)
{
	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("no-end");
	reader_set_poll(reader, poll_interrupts);
	fails(-EINTR, "interrupted");
	reader_set_poll(reader, NULL);
	is_ended();
	close_both();
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
	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("deaf");
	reader_set_poll(reader, poll_interrupts);
	ck_assert_int_eq(tokenizer_encode(theirs, text, nbytes, 1, 0, &ids, &n,
	    &e), -EINTR);
	reader_set_poll(reader, NULL);
	is_ended();
	close_both();
	free(text);
}
END_TEST

START_TEST(reader_that_cannot_take_over_is_ended)
{
	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("refuse-open");
	fails(-ECOMM, "the reader: a lie");
	is_ended();
	close_both();
}
END_TEST

START_TEST(texts_without_an_end_are_cut)
{
	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	log_init("reader", 2);
	log_to(drop_note);
	replace_by("no-nul");
	fails(-ECOMM, "the reader: rrrr");
	ck_assert_uint_eq(longest_note, strlen("the reader: ") +
	    READ_NOTE_BYTES - 1);
	ck_assert_int_gt(reader_pid(), 0);
	replace_by("error");
	fails(-ECOMM, "the reader gave up: eeee");
	is_ended();
	close_both();
}
END_TEST

START_TEST(reader_that_cannot_be_sent_to_is_ended)
{
	open_both(pieces_case_save(0, t_tmpdir()), NULL);
	replace_by("turned");
	fails(-ECOMM, "closed its channel");
	is_ended();
	close_both();
}
END_TEST

static int
serve(int argc, char **argv)
{
	const char *lie = getenv(LIE_ENV), *pause_ms = getenv(PAUSE_ENV);

	if (pause_ms != NULL)
		usleep((useconds_t)atoi(pause_ms) * 1000);
	return lie != NULL ? liar_main(lie) : reader_main(argc, argv);
}

int
main(int argc, char **argv, char **envp)
{
	const TTest *const tests[] = {
		reader_says_what_this_process_would,
		long_text_comes_back_whole,
		file_that_is_no_model_is_refused,
		text_beyond_the_limits_is_not_sent,
		changed_file_is_not_read_again,
		interrupted_text_leaves_the_reader,
		interrupted_text_ends_a_stopped_reader,
		poll_ends_the_wait_for_a_header,
		killed_reader_is_replaced_once,
		reader_lost_between_texts_is_replaced,
		liar_is_ended,
		refusal_of_a_text_is_no_more,
		late_answer_is_not_taken_for_the_next,
		counts_that_cannot_be_end_the_reader,
		reader_that_goes_on_after_a_stop_is_ended,
		poll_ends_a_send_that_waits,
		reader_that_cannot_take_over_is_ended,
		texts_without_an_end_are_cut,
		reader_that_cannot_be_sent_to_is_ended
	};

	setproctitle_init(argc, argv, envp);
	/* The children are this program, in their role. */
	if (argc == 2 && strcmp(argv[1], ROLE_READER_ARG) == 0)
		return serve(argc, argv);
	return t_main("reader", 60, tests, NITEMS(tests));
}
