/* tests/unit/serve.c - tests of the reader's side, in this process: a request that
 * may not come ends it, one that cannot be answered is refused. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/units.h"
#include "coordinator/reader/serve.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/pieces_cases.h"

static struct serve s;
static struct chan peer;		/* the coordinator's end */
static struct chan_msg answer;
static int fds[3];			/* the model; memory to lend; the same */

/* --- requests --- */

static void
start(const char *path)
{
	memset(&s, 0, sizeof(s));
	s.confined[CONFINE_LOAD] = -ENOSYS;	/* this process is not */
	ck_assert_int_eq(chan_pair(&s.chan, &peer, NULL), 0);
	fds[0] = open(path, O_RDONLY);
	fds[1] = memfd_create("test", MFD_ALLOW_SEALING);
	fds[2] = fds[1];
	ck_assert_int_ge(fds[0], 0);
	ck_assert_int_eq(ftruncate(fds[1], MIB), 0);
}

static void
stop(void)
{
	chan_msg_done(&answer);
	chan_msg_done(&s.msg);
	encoder_close(s.encoder);
	renderer_close(s.renderer);
	gguf_close(s.g);
	chan_close(&s.chan);
	chan_close(&peer);
	close(fds[0]);
	close(fds[1]);
}

static void
send_request(uint32_t type, const void *buf, size_t nbytes, unsigned nfds)
{
	ck_assert_int_eq(chan_send(&peer, type, buf, nbytes, fds, nfds, 0), 0);
}

static void
hear(uint32_t type)
{
	ck_assert_int_eq(chan_recv(&peer, &answer, 0), 0);
	ck_assert_uint_eq(answer.type, type);
	ck_assert_uint_eq(answer.nfds, 0);
}

/* The request that was sent is answered or refused. */
static void
is_served(void)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(serve_one(&s, &e), &e);
	ck_assert_int_eq(s.leave, 0);
}

static void
is_refused(int rc, const char *words)
{
	struct read_refused r;

	is_served();
	hear(READ_REFUSED);
	ck_assert_uint_eq(answer.nbytes, sizeof(r));
	memcpy(&r, answer.buf, sizeof(r));
	ck_assert_int_eq(r.why.rc, rc);
	ck_assert_uint_eq(r.number, s.number);
	ck_assert_msg(strstr(r.why.msg, words) != NULL, "%s", r.why.msg);
}

/* It is none that may come now. */
static void
is_bad(void)
{
	struct err e = { .kind = ERR_NONE };

	ck_assert_int_eq(serve_one(&s, &e), -EPROTO);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_ptr_nonnull(strstr(e.msg, "which may not come now"));
}

/* --- opening --- */

static struct read_open
sound_open(void)
{
	struct read_open o = { .version = READ_VERSION, .has_image = 1 };

	strlcpy(o.path, "m-00001-of-00002.gguf", sizeof(o.path));
	return o;
}

static const char *
small_model(void)
{
	return pieces_case_save(1, t_tmpdir());
}

#define OPEN_IS_BAD(nbytes, nfds, ...)					\
	do {								\
		struct read_open o = sound_open();			\
									\
		start(small_model());					\
		__VA_ARGS__;						\
		send_request(READ_OPEN, &o, nbytes, nfds);		\
		is_bad();						\
		stop();							\
	} while (0)

START_TEST(open_that_cannot_be_ends_the_reader)
{
	OPEN_IS_BAD(sizeof(o) - 1, 2, (void)o);
	OPEN_IS_BAD(0, 2, (void)o);
	OPEN_IS_BAD(sizeof(o), 2, o.version++);
	OPEN_IS_BAD(sizeof(o), 2, o.has_image = 0);
	OPEN_IS_BAD(sizeof(o), 1, (void)o);
	OPEN_IS_BAD(sizeof(o), 3, o.has_image = 2);
	OPEN_IS_BAD(sizeof(o), 0, o.has_image = UINT32_MAX);
	OPEN_IS_BAD(sizeof(o), 2, memset(o.path, 'x', sizeof(o.path)));
}
END_TEST

static void
send_open(void)
{
	const struct read_open o = sound_open();

	send_request(READ_OPEN, &o, sizeof(o), 2);
}

static void
open_sound(void)
{
	start(small_model());
	send_open();
	is_served();
	hear(READ_PARTS);
	hear(READ_DIRECTORY);
}

START_TEST(second_open_ends_the_reader)
{
	open_sound();
	send_open();
	is_bad();
	stop();
}
END_TEST

START_TEST(file_that_cannot_be_read_is_refused)
{
	start("/dev/null");
	send_open();
	is_refused(-EINVAL, "m-00001-of-00002.gguf: not a regular file");
	stop();
}
END_TEST

static void
send_vocab(uint32_t has_image)
{
	const struct read_vocab v = { .has_image = has_image };

	ck_assert_int_eq(chan_send(&peer, READ_VOCAB, &v, sizeof(v), &fds[1],
	    has_image, 0), 0);
}

START_TEST(block_beyond_the_lent_memory_is_refused)
{
	start(small_model());
	ck_assert_int_eq(ftruncate(fds[1], 8), 0);
	send_open();
	is_served();
	hear(READ_PARTS);
	hear(READ_REFUSED);
	stop();
	open_sound();
	ck_assert_int_eq(ftruncate(fds[1], 8), 0);
	send_vocab(1);
	is_refused(-E2BIG, "ulimit -f");
	stop();
}
END_TEST

/* --- parts --- */

/* The header of the first of two. */
static const char *
first_part(void)
{
	static char path[4200];
	struct gguf_writer w;

	snprintf(path, sizeof(path), "%s/first.gguf", t_tmpdir());
	gw_open(&w);
	gw_kv_u16(&w, "split.no", 0);
	gw_kv_u16(&w, "split.count", 2);
	gw_kv_i32(&w, "split.tensors.count", 0);
	gw_save(&w, path);
	gw_close(&w);
	return path;
}

#define PART_IS_BAD(type, nbytes, nfds, ...)				\
	do {								\
		struct read_part part = { "m-00002-of-00002.gguf" };	\
									\
		start(first_part());					\
		send_open();						\
		__VA_ARGS__;						\
		send_request(type, &part, nbytes, nfds);		\
		is_bad();						\
		hear(READ_PARTS);					\
		stop();							\
	} while (0)

START_TEST(part_that_cannot_be_ends_the_reader)
{
	PART_IS_BAD(READ_VOCAB, sizeof(part), 1, (void)part);
	PART_IS_BAD(READ_PART, sizeof(part) - 1, 1, (void)part);
	PART_IS_BAD(READ_PART, sizeof(part), 0, (void)part);
	PART_IS_BAD(READ_PART, sizeof(part), 2, (void)part);
	PART_IS_BAD(READ_PART, sizeof(part), 1,
	    memset(part.path, 'x', sizeof(part.path)));
}
END_TEST

/* --- the vocabulary --- */

#define VOCAB_IS_BAD(nbytes, nfds, ...)					\
	do {								\
		struct read_vocab v = { .has_image = 1 };		\
									\
		open_sound();						\
		__VA_ARGS__;						\
		send_request(READ_VOCAB, &v, nbytes, nfds);		\
		is_bad();						\
		stop();							\
	} while (0)

static void
open_vocab(void)
{
	open_sound();
	send_vocab(0);
	is_served();
	hear(READ_PIECES);
}

START_TEST(vocabulary_out_of_order_ends_the_reader)
{
	VOCAB_IS_BAD(sizeof(v) - 1, 1, (void)v);
	VOCAB_IS_BAD(sizeof(v), 0, (void)v);
	VOCAB_IS_BAD(sizeof(v), 2, v.has_image = 2);
	start(small_model());
	send_vocab(0);
	is_bad();
	stop();
	open_vocab();
	send_vocab(0);
	is_bad();
	stop();
}
END_TEST

/* --- texts --- */

/* "abc" and "d". */
static struct read_text
sound_text(void)
{
	struct read_text t = { .number = 7, .nparts = 2,
	    .part = { { 3, 0 }, { 1, 1 } } };

	return t;
}

#define TEXT_IS_BAD(nbytes, nfds, ...)					\
	do {								\
		struct read_text t = sound_text();			\
									\
		open_vocab();						\
		__VA_ARGS__;						\
		send_request(READ_TEXT, &t, nbytes, nfds);		\
		send_request(READ_BYTES, "abcd", 4, 0);			\
		is_bad();						\
		stop();							\
	} while (0)

START_TEST(text_that_cannot_be_ends_the_reader)
{
	const size_t n = read_text_bytes(2);

	TEXT_IS_BAD(0, 0, (void)t);
	TEXT_IS_BAD(read_text_bytes(0) - 1, 0, (void)t);
	TEXT_IS_BAD(read_text_bytes(0), 0, t.nparts = 0);
	TEXT_IS_BAD(n - 1, 0, (void)t);
	TEXT_IS_BAD(n, 1, (void)t);
	TEXT_IS_BAD(n, 0, t.nparts = 3);
	TEXT_IS_BAD(sizeof(t), 0, t.nparts = READ_MAX_PARTS + 1);
	TEXT_IS_BAD(sizeof(t), 0, t.nparts = UINT32_MAX);
	TEXT_IS_BAD(n, 0, t.part[1].special = 2);
	TEXT_IS_BAD(n, 0, t.part[1].nbytes = READ_MAX_TEXT);
	TEXT_IS_BAD(n, 0, t.part[1].nbytes = UINT64_MAX - 2);
}
END_TEST

/* Bytes that do not fit the text before them. */
static void
bytes_are_bad(uint32_t type, size_t nbytes, unsigned nfds)
{
	const struct read_text t = sound_text();

	open_vocab();
	send_request(READ_TEXT, &t, read_text_bytes(2), 0);
	send_request(READ_BYTES, "ab", 2, 0);
	send_request(type, "cde", nbytes, nfds);
	is_bad();
	stop();
}

START_TEST(bytes_that_cannot_be_end_the_reader)
{
	bytes_are_bad(READ_BYTES, 3, 0);
	bytes_are_bad(READ_BYTES, 0, 0);
	bytes_are_bad(READ_BYTES, 2, 1);
	bytes_are_bad(READ_STOP, 2, 0);
}
END_TEST

START_TEST(text_before_the_vocabulary_ends_the_reader)
{
	const struct read_text t = sound_text();

	open_sound();
	send_request(READ_TEXT, &t, read_text_bytes(2), 0);
	is_bad();
	stop();
}
END_TEST

START_TEST(answer_repeats_the_number_of_its_text)
{
	const struct read_text t = sound_text();
	struct read_encoded done;

	open_vocab();
	send_request(READ_TEXT, &t, read_text_bytes(2), 0);
	send_request(READ_BYTES, "abc", 3, 0);
	send_request(READ_BYTES, "d", 1, 0);
	is_served();
	hear(READ_IDS);
	hear(READ_ENCODED);
	memcpy(&done, answer.buf, sizeof(done));
	ck_assert_uint_eq(done.number, 7);
	stop();
}
END_TEST

/* --- conversations --- */

static const char jinja[] = "<s>{{ t }}", block[] = "s\1\0\0\0ts\3\0\0\0abc";

static struct read_render
sound_render(void)
{
	struct read_render q = { .number = 9,
	    .template_bytes = sizeof(jinja) - 1,
	    .vars_bytes = sizeof(block) - 1, .has_now = 1,
	    .now = { 59, 59, 23, 31, 11, 126, 4, 364, 0 } };

	return q;
}

static void
send_render(const struct read_render *q)
{
	send_request(READ_RENDER, q, sizeof(*q), 0);
	send_request(READ_BYTES, jinja, sizeof(jinja) - 1, 0);
	send_request(READ_BYTES, block, sizeof(block) - 1, 0);
}

static void
hear_text(void)
{
	struct read_rendered done;

	is_served();
	hear(READ_OUTPUT);
	hear(READ_OUTPUT);
	ck_assert_uint_eq(answer.nbytes, 6);
	ck_assert_mem_eq(answer.buf, "<s>abc", 6);
	hear(READ_RENDERED);
	memcpy(&done, answer.buf, sizeof(done));
	ck_assert_uint_eq(done.number, 9);
	ck_assert_uint_eq(done.nspans, 2);
	ck_assert_uint_eq(done.nbytes, 6);
}

#define RENDER_IS_BAD(nbytes, nfds, ...)				\
	do {								\
		struct read_render q = sound_render();			\
									\
		open_vocab();						\
		__VA_ARGS__;						\
		send_request(READ_RENDER, &q, nbytes, nfds);		\
		is_bad();						\
		stop();							\
	} while (0)

START_TEST(rendering_that_cannot_be_ends_the_reader)
{
	unsigned i;

	RENDER_IS_BAD(sizeof(q) - 1, 0, (void)q);
	RENDER_IS_BAD(0, 0, (void)q);
	RENDER_IS_BAD(sizeof(q), 1, (void)q);
	RENDER_IS_BAD(sizeof(q), 0,
	    q.template_bytes = RENDER_MAX_TEMPLATE + 1);
	RENDER_IS_BAD(sizeof(q), 0, q.template_bytes = UINT64_MAX);
	RENDER_IS_BAD(sizeof(q), 0, q.vars_bytes = UINT64_MAX);
	RENDER_IS_BAD(sizeof(q), 0, q.tail_bytes = 1);
	RENDER_IS_BAD(sizeof(q), 0, q.has_tail = 1;
	    q.tail_bytes = q.vars_bytes + 1);
	RENDER_IS_BAD(sizeof(q), 0, q.has_tail = 2);
	RENDER_IS_BAD(sizeof(q), 0, q.wants_ids = 2);
	RENDER_IS_BAD(sizeof(q), 0, q.special = 2);
	RENDER_IS_BAD(sizeof(q), 0, q.has_now = 2);
	for (i = 0; i < READ_NOW_FIELDS - 1; i++) {
		RENDER_IS_BAD(sizeof(q), 0, q.now[i] = INT32_MAX);
		RENDER_IS_BAD(sizeof(q), 0, q.now[i] = INT32_MIN);
	}
}
END_TEST

START_TEST(rendering_needs_no_model)
{
	struct read_render q = sound_render();
	const struct read_open o = sound_open();

	start(small_model());
	send_render(&q);
	hear_text();
	/* Another template; ids need a vocabulary. */
	q.template_bytes = 0;
	q.vars_bytes = 0;
	send_request(READ_RENDER, &q, sizeof(q), 0);
	is_served();
	hear(READ_RENDERED);
	q.wants_ids = 1;
	send_request(READ_RENDER, &q, sizeof(q), 0);
	is_bad();
	stop();
	/* It has given up what opening a model needs. */
	start(small_model());
	q = sound_render();
	send_render(&q);
	hear_text();
	send_request(READ_OPEN, &o, sizeof(o), 2);
	is_bad();
	stop();
}
END_TEST

START_TEST(template_or_variables_that_fail_are_refused)
{
	struct read_render q = sound_render();

	open_vocab();
	q.template_bytes = 2;
	q.vars_bytes = 0;
	send_request(READ_RENDER, &q, sizeof(q), 0);
	send_request(READ_BYTES, "{{", 2, 0);
	is_refused(-EBADMSG, "line 1");
	q.template_bytes = 0;
	q.vars_bytes = 1;
	send_request(READ_RENDER, &q, sizeof(q), 0);
	send_request(READ_BYTES, "x", 1, 0);
	is_refused(-EPROTO, "no block of values");
	q = sound_render();
	send_render(&q);
	hear_text();
	q.wants_ids = 1;
	send_render(&q);
	is_served();
	hear(READ_IDS);
	hear(READ_ENCODED);
	stop();
}
END_TEST

/* --- anything else --- */

START_TEST(unknown_request_ends_the_reader)
{
	open_vocab();
	/* They belong to a request that has ended. */
	send_request(READ_STOP, NULL, 0, 0);
	is_served();
	send_request(READ_PART, NULL, 0, 2);
	is_served();
	send_request(READ_BYTES, "abc", 3, 0);
	is_bad();
	send_request(READ_HELLO, NULL, 0, 0);
	is_bad();
	send_request(UINT32_MAX, NULL, 0, 0);
	is_bad();
	stop();
}
END_TEST

START_TEST(reader_leaves_with_its_channel)
{
	struct err e = { .kind = ERR_NONE };

	start(small_model());
	shutdown(peer.fd, SHUT_RDWR);
	t_ok(serve_one(&s, &e), &e);
	ck_assert_int_eq(s.leave, 1);
	stop();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		open_that_cannot_be_ends_the_reader,
		second_open_ends_the_reader,
		file_that_cannot_be_read_is_refused,
		block_beyond_the_lent_memory_is_refused,
		part_that_cannot_be_ends_the_reader,
		vocabulary_out_of_order_ends_the_reader,
		text_that_cannot_be_ends_the_reader,
		bytes_that_cannot_be_end_the_reader,
		text_before_the_vocabulary_ends_the_reader,
		answer_repeats_the_number_of_its_text,
		rendering_that_cannot_be_ends_the_reader,
		rendering_needs_no_model,
		template_or_variables_that_fail_are_refused,
		unknown_request_ends_the_reader,
		reader_leaves_with_its_channel
	};

	return t_main("serve", 60, tests, NITEMS(tests));
}
