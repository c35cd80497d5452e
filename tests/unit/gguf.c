/* tests/unit/gguf.c - tests of the GGUF reader: contents of valid files,
 * refusal of all others. */
#include "tests/support/t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/gguf_cases.h"
#include "tests/support/gguf_walk.h"

enum {
	DEMO_DATA_OFF = 50080,	/* header of kjv-q8_0.gguf: 50059, padded */
	MUTATION_ROUNDS = 2000,
	BIG_VOCAB = 256 * 1024
};

static const uint64_t ne_32[] = { 32 };

static const char *
tmp_path(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % NITEMS(path)];

	snprintf(p, sizeof(path[0]), "%s/%s", t_tmpdir(), name);
	return p;
}

static unsigned
count_fds(void)
{
	unsigned n = 0;
	DIR *d;

	ck_assert_ptr_nonnull(d = opendir("/proc/self/fd"));
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static struct gguf *
must_open(const char *path)
{
	struct err e = { .kind = ERR_NONE };
	const char *broken;
	struct gguf *g;
	int rc;

	rc = gguf_open(path, &g, &e);
	t_ok(rc, &e);
	broken = gguf_walk(g);
	ck_assert_msg(broken == NULL, "%s: broken: %s", path, broken);
	return g;
}

/* The file must be refused as a bad model, with text in the message. */
static void
must_refuse(const char *path, const char *text)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf *g = NULL;
	const char *broken;
	int rc;

	rc = gguf_open(path, &g, &e);
	ck_assert_msg(rc < 0, "%s was accepted", path);
	broken = gguf_walk_refusal(path, rc, g, &e);
	ck_assert_msg(broken == NULL, "%s: broken: %s (%d, %s)", path, broken,
	    rc, e.msg);
	ck_assert_msg(strstr(e.msg, text) != NULL, "\"%s\" is not in: %s",
	    text, e.msg);
}

static char *
read_demo(size_t *ret_len)
{
	char *buf;
	FILE *fp;
	struct stat st;

	ck_assert_ptr_nonnull(fp = fopen(t_data("kjv-q8_0.gguf"), "rb"));
	ck_assert_int_eq(fstat(fileno(fp), &st), 0);
	*ret_len = (size_t)st.st_size;
	ck_assert_ptr_nonnull(buf = malloc(*ret_len));
	ck_assert_uint_eq(fread(buf, 1, *ret_len, fp), *ret_len);
	fclose(fp);
	return buf;
}

/* Copy the demo model to path, to be corrupted.  Returns its bytes. */
static char *
copy_demo(const char *path)
{
	size_t len;
	char *buf = read_demo(&len);
	FILE *fp;

	ck_assert_ptr_nonnull(fp = fopen(path, "wb"));
	ck_assert_uint_eq(fwrite(buf, 1, len, fp), len);
	ck_assert_int_eq(fclose(fp), 0);
	return buf;
}

START_TEST(demo_model_is_read_completely)
{
	const char *path = t_data("kjv-q8_0.gguf");
	struct gguf *g = must_open(path);
	const struct gguf_tensor *t;
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(g->nfiles, 1);
	ck_assert_str_eq(g->file->path, path);
	ck_assert_int_ge(g->file->fd, 0);
	ck_assert_int_eq(fcntl(g->file->fd, F_GETFL) & O_NONBLOCK, 0);
	ck_assert_uint_eq(g->file->nbytes, (uint64_t)st.st_size);
	ck_assert_uint_eq(g->file->data_off, DEMO_DATA_OFF);
	ck_assert_uint_eq(g->file->dev, st.st_dev);
	ck_assert_uint_eq(g->file->ino, st.st_ino);
	ck_assert_int_eq(g->file->mtime_ns, st.st_mtim.tv_sec * 1000000000LL +
	    st.st_mtim.tv_nsec);
	ck_assert_uint_eq(g->file->version, 3);
	ck_assert_uint_eq(g->alignment, 32);
	ck_assert_uint_eq(g->nkv, 24);
	ck_assert_uint_eq(g->ntensors, 74);

	t = gguf_find_tensor(g, "blk.7.ffn_down.weight");
	ck_assert_ptr_nonnull(t);
	ck_assert_uint_eq(t->ndims, 2);
	ck_assert_uint_eq(t->ne[0], 512);
	ck_assert_uint_eq(t->ne[1], 256);
	ck_assert_uint_eq(t->ne[2], 1);
	ck_assert_uint_eq(t->type, QUANT_Q8_0);
	ck_assert_uint_eq(t->offset, DEMO_DATA_OFF + 5169152);
	ck_assert_uint_eq(t->nbytes, 512 / 32 * 34 * 256);
	ck_assert_str_eq(g->tensor[0].name, "output_norm.weight");
	ck_assert_uint_eq(g->tensor[0].type, QUANT_F32);
	ck_assert_uint_eq(g->tensor[0].nbytes, 1024);
	ck_assert_uint_eq(g->tensor_bytes, (uint64_t)st.st_size -
	    DEMO_DATA_OFF);
	ck_assert_ptr_null(gguf_find_tensor(g, "blk.8.ffn_down.weight"));
	ck_assert_ptr_null(gguf_find_tensor(g, ""));
	gguf_close(g);
}
END_TEST

START_TEST(a_file_that_changes_after_it_was_opened_is_noticed)
{
	static const struct timespec then[2] = { { .tv_sec = 1 },
	    { .tv_sec = 1 } };
	const char *path = tmp_path("changes.gguf");
	struct gguf_writer w;
	struct stat before, now;
	struct err e;
	struct gguf *g;

	gw_open(&w);
	gw_kv_u32(&w, "a", 1);
	gw_save(&w, path);
	gw_close(&w);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, then, 0), 0);
	g = must_open(path);
	t_ok(gguf_check_unchanged(g, &e), &e);
	/* Dated back: only ctime tells, in steps of some milliseconds. */
	ck_assert_int_eq(stat(path, &before), 0);
	do {
		usleep(1000);
		ck_assert_int_eq(utimensat(AT_FDCWD, path, then, 0), 0);
		ck_assert_int_eq(stat(path, &now), 0);
	} while (now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	ck_assert_int_eq(gguf_check_unchanged(g, &e), -ESTALE);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "has changed while it was read"));
	gguf_close(g);
}
END_TEST

START_TEST(demo_metadata_is_read_by_type)
{
	struct gguf *g = must_open(t_data("kjv-q8_0.gguf"));
	const struct gguf_kv *kv;
	const struct gguf_str *tok;
	const float *score;
	const int32_t *kind;
	const void *data;
	struct gguf_str s;
	struct err e;
	uint64_t n;
	uint32_t u;
	float f;
	int b, rc;

	t_ok(rc = gguf_get_str(g, "general.architecture", &s, &e), &e);
	ck_assert_str_eq(s.data, "llama");
	ck_assert_uint_eq(s.len, 5);
	t_ok(rc = gguf_get_u32(g, "llama.block_count", &u, &e), &e);
	ck_assert_uint_eq(u, 8);
	kv = gguf_find(g, "llama.block_count");
	ck_assert_uint_eq(kv->offset, 148);
	t_ok(rc = gguf_get_f32(g, "llama.rope.freq_base", &f, &e), &e);
	ck_assert(f == 10000.0f);
	t_ok(rc = gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &b, &e),
	    &e);
	ck_assert_int_eq(b, 1);
	t_ok(rc = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING,
	    &data, &n, &e), &e);
	tok = data;
	ck_assert_uint_eq(n, 2048);
	ck_assert_str_eq(tok[0].data, "<unk>");
	ck_assert_str_eq(tok[258].data, "<0xFF>");
	ck_assert_uint_eq(tok[258].len, 6);
	t_ok(rc = gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &data,
	    &n, &e), &e);
	score = data;
	ck_assert_uint_eq(n, 2048);
	ck_assert(score[0] == 0.0f);
	ck_assert(score[2047] < score[300]);
	t_ok(rc = gguf_get_array(g, "tokenizer.ggml.token_type", GGUF_I32,
	    &data, &n, &e), &e);
	kind = data;
	ck_assert_int_eq(kind[0], 2);
	ck_assert_int_eq(kind[3], 6);
	ck_assert_int_eq(kind[2047], 1);
	ck_assert_ptr_null(gguf_find(g, "llama.nothing"));
	gguf_close(g);
}
END_TEST

static void
check_cases(void)
{
	const char *path;
	unsigned i;

	for (i = 0; i < gguf_ncases; i++) {
		path = gguf_case_save(&gguf_case[i], t_tmpdir());
		if (gguf_case[i].refusal == NULL)
			gguf_close(must_open(path));
		else
			must_refuse(path, gguf_case[i].refusal);
	}
}

START_TEST(each_case_is_accepted_or_refused_as_declared)
{
	unsigned fds = count_fds();

	check_cases();
	ck_assert_uint_eq(count_fds(), fds);
}
END_TEST

/* A count that a file claims must not make the reader allocate memory. */
START_TEST(no_case_needs_more_than_64_mib)
{
	struct rlimit old, rl;

	if (SANITIZED)
		return;
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
	rl = old;
	rl.rlim_cur = 64 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &rl), 0);
	check_cases();
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &old), 0);
}
END_TEST

START_TEST(stored_corpus_is_accepted_or_refused_by_file_name)
{
	char path[PATH_MAX];
	struct dirent *de;
	unsigned n = 0;
	DIR *d;

	ck_assert_ptr_nonnull(d = opendir(t_data("../corpus/gguf")));
	while ((de = readdir(d)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s",
		    t_data("../corpus/gguf"), de->d_name);
		if (strncmp(de->d_name, "ok-", 3) == 0)
			gguf_close(must_open(path));
		else
			must_refuse(path, "");
		n++;
	}
	closedir(d);
	ck_assert_uint_ge(n, gguf_ncases);
}
END_TEST

START_TEST(truncated_header_is_refused_at_every_length)
{
	const char *path = tmp_path("cut.gguf");
	unsigned fds = count_fds();
	off_t len;

	free(copy_demo(path));
	for (len = DEMO_DATA_OFF; len >= 0; len -= len > 1024 ? 1024 : 1) {
		ck_assert_int_eq(truncate(path, len), 0);
		must_refuse(path, "truncated");
	}
	ck_assert_uint_eq(count_fds(), fds);
}
END_TEST

START_TEST(truncated_data_is_refused_with_the_tensor_name)
{
	const char *path = tmp_path("cut.gguf");
	size_t len;

	free(copy_demo(path));
	free(read_demo(&len));
	ck_assert_int_eq(truncate(path, (off_t)len - 1), 0);
	must_refuse(path, "truncated: needs 139264 bytes at offset 5498784, "
	    "the file has 5638047 (tensor \"blk.7.ffn_up.weight\")");
	ck_assert_int_eq(truncate(path, DEMO_DATA_OFF), 0);
	must_refuse(path, "truncated: needs 1024 bytes at offset 50080");
}
END_TEST

/* Random bytes of the header change: the file must be refused, or the result
 * must be consistent. */
START_TEST(mutated_header_is_refused_or_consistent)
{
	const char *path = tmp_path("mutated.gguf"), *broken;
	char *demo = copy_demo(path), mutated[DEMO_DATA_OFF];
	unsigned fds = count_fds(), round, i, naccepted = 0;
	struct err e;
	struct gguf *g;
	size_t span;
	int fd, rc;

	ck_assert_int_ge(fd = open(path, O_WRONLY), 0);
	for (round = 0; round < MUTATION_ROUNDS; round++) {
		/* Half of the rounds only mutate the keys before the
		 * vocabulary, which have most of the structure. */
		span = round % 2 ? 641 : sizeof(mutated);
		memcpy(mutated, demo, sizeof(mutated));
		for (i = (unsigned)t_rand_below(4) + 1; i > 0; i--)
			mutated[t_rand_below(span)] = (char)t_rand();
		ck_assert_int_eq(pwrite(fd, mutated, sizeof(mutated), 0),
		    sizeof(mutated));
		g = NULL;
		rc = gguf_open(path, &g, &e);
		broken = rc == 0 ? gguf_walk(g) :
		    gguf_walk_refusal(path, rc, g, &e);
		ck_assert_msg(broken == NULL, "round %u: broken: %s (%d, %s)",
		    round, broken, rc, e.msg);
		naccepted += rc == 0;
		gguf_close(g);
	}
	close(fd);
	free(demo);
	ck_assert_uint_eq(count_fds(), fds);
	/* Both outcomes must occur. */
	ck_assert_uint_gt(naccepted, 0);
	ck_assert_uint_lt(naccepted, MUTATION_ROUNDS);
}
END_TEST

START_TEST(every_value_type_is_read_as_written)
{
	static const struct {
		const char *key;
		int64_t want;
	} ints[] = {
		{ "one.u8", 0xfe }, { "one.i8", -2 }, { "one.u16", 0xfffe },
		{ "one.i16", -2 }, { "one.u32", 0xfffffffe },
		{ "one.i32", -2 }, { "one.u64", -2 }, { "one.i64", -2 },
		{ "one.bool", 1 }
	};
	const struct gguf_kv *kv;
	const struct gguf_str *s;
	struct gguf *g;
	unsigned i;

	for (i = 0; strcmp(gguf_case[i].name, "ok-all-types") != 0; i++)
		;
	g = must_open(gguf_case_save(&gguf_case[i], t_tmpdir()));
	ck_assert_uint_eq(g->nkv, 26);
	for (i = 0; i < NITEMS(ints); i++) {
		kv = gguf_find(g, ints[i].key);
		ck_assert_str_eq(gguf_type_name(kv->type), ints[i].key + 4);
		ck_assert_int_eq(kv->v.i, ints[i].want);
	}
	ck_assert(gguf_find(g, "one.f32")->v.f == -1.5);
	ck_assert(gguf_find(g, "one.f64")->v.f == -0.25);
	kv = gguf_find(g, "one.string");
	ck_assert_uint_eq(kv->v.s.len, 3);
	ck_assert_mem_eq(kv->v.s.data, "a\0b", 4);

	ck_assert_int_eq(((const int8_t *)gguf_find(g, "two.i8")->v.a.data)[0],
	    -2);
	ck_assert_uint_eq(((const uint16_t *)
	    gguf_find(g, "two.u16")->v.a.data)[0], 0xfffe);
	ck_assert_int_eq(((const int64_t *)
	    gguf_find(g, "two.i64")->v.a.data)[0], -2);
	ck_assert_int_eq(((const int32_t *)
	    gguf_find(g, "two.i32")->v.a.data)[1], 1);
	ck_assert(((const float *)gguf_find(g, "two.f32")->v.a.data)[1] ==
	    FLT_MAX);
	ck_assert(((const double *)gguf_find(g, "two.f64")->v.a.data)[1] ==
	    DBL_MAX);
	kv = gguf_find(g, "two.string");
	ck_assert_uint_eq(kv->v.a.count, 2);
	s = kv->v.a.data;
	ck_assert_str_eq(s[0].data, "");
	ck_assert_str_eq(s[1].data, "\xe2\x96\x81the");
	ck_assert_uint_eq(s[1].len, 6);
	ck_assert_uint_eq(gguf_find(g, "none.string")->v.a.count, 0);
	gguf_close(g);
}
END_TEST

/* Sums that wrap at 2^64 would put these tensors into the file. */
START_TEST(places_and_sizes_near_the_end_of_64_bits_are_refused)
{
	static const struct {
		uint64_t ne, offset;
		const char *text;
	} cases[] = {
		{ 8, UINT64_MAX - 31, "too large" },	/* before the data */
		{ 8, UINT64_MAX - 63, "too large" },
		{ 8, UINT64_C(1) << 63, "truncated" },
		{ 8, INT64_MAX - 31, "truncated" },
		/* 2^64 - 32 and 2^64 - 4096 bytes of F32 */
		{ (UINT64_C(1) << 62) - 8, 0, "truncated" },
		{ (UINT64_C(1) << 62) - 1024, 0, "truncated" },
		{ (UINT64_C(1) << 62) - 8, 4096, "truncated" }
	};
	const char *path = tmp_path("wrap.gguf");
	struct gguf_writer w;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		gw_open(&w);
		gw_kv_str(&w, "general.architecture", "llama");
		gw_tensor_at(&w, "t", QUANT_F32, 1, &cases[i].ne,
		    cases[i].offset);
		w.data_bytes = 8192;
		gw_save(&w, path);
		gw_close(&w);
		must_refuse(path, cases[i].text);
	}
}
END_TEST

/* The file has bytes enough for what its header claims, all zero. */
START_TEST(millions_of_keys_or_tensors_are_refused_before_they_are_parsed)
{
	const char *path = tmp_path("many.gguf");
	struct gguf_writer w;
	int tensors;

	for (tensors = 0; tensors < 2; tensors++) {
		gw_open(&w);
		gw_kv_str(&w, "general.architecture", "llama");
		w.data_bytes = 64 << 20;
		*(tensors ? &w.ntensors : &w.nkv) = (1 << 20) + 1;
		gw_save(&w, path);
		gw_close(&w);
		must_refuse(path, tensors ? "1048577 tensors: at most" :
		    "1048577 keys: at most");
	}
}
END_TEST

START_TEST(getters_refuse_other_types_and_ranges)
{
	const char *path = tmp_path("types.gguf");
	struct gguf_writer w;
	const void *data = NULL;
	struct gguf_str s;
	struct gguf *g;
	struct err e;
	uint64_t n;
	uint32_t u = 7;
	float f = 7;
	int b;

	gw_open(&w);
	gw_kv_u16(&w, "u16", 65535);
	gw_kv_i32(&w, "i32", 5);
	gw_kv_i32(&w, "negative", -1);
	gw_key(&w, "big", GGUF_U64);
	gw_u64(&w, UINT64_C(1) << 32);
	gw_key(&w, "bigger", GGUF_I64);
	gw_u64(&w, UINT64_C(1) << 32);
	gw_kv_f32(&w, "inf", INFINITY);
	gw_kv_f32(&w, "nan", NAN);
	gw_key(&w, "nan64", GGUF_F64);
	gw_bytes(&w, &(double){ -NAN }, 8);
	gw_key(&w, "f64", GGUF_F64);
	gw_bytes(&w, &(double){ 0.5 }, 8);
	gw_key(&w, "huge", GGUF_F64);
	gw_bytes(&w, &(double){ 1e300 }, 8);
	gw_kv_str(&w, "str", "x");
	gw_array(&w, "arr", GGUF_U32, 1);
	gw_u32(&w, 9);
	gw_save(&w, path);
	gw_close(&w);
	g = must_open(path);

	t_ok(gguf_get_u32(g, "u16", &u, &e), &e);
	ck_assert_uint_eq(u, 65535);
	t_ok(gguf_get_u32(g, "i32", &u, &e), &e);
	ck_assert_uint_eq(u, 5);
	t_ok(gguf_get_f32(g, "f64", &f, &e), &e);
	ck_assert(f == 0.5f);
	t_ok(gguf_get_f32(g, "negative", &f, &e), &e);
	ck_assert(f == -1);
	t_ok(gguf_get_f32(g, "big", &f, &e), &e);
	ck_assert(f == 0x1p32f);
	t_ok(gguf_get_array(g, "arr", GGUF_U32, &data, &n, &e), &e);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(*(const uint32_t *)data, 9);

	ck_assert_int_eq(gguf_get_u32(g, "absent", &u, &e), -ENOENT);
	ck_assert_int_eq(gguf_get_f32(g, "absent", &f, &e), -ENOENT);
	ck_assert_int_eq(gguf_get_bool(g, "absent", &b, &e), -ENOENT);
	ck_assert_int_eq(gguf_get_str(g, "absent", &s, &e), -ENOENT);
	ck_assert_int_eq(gguf_get_array(g, "absent", GGUF_U8, &data, &n, &e),
	    -ENOENT);

#define REFUSED(call, text) do { \
	memset(&e, 0, sizeof(e)); \
	ck_assert_int_eq((call), -EBADMSG); \
	ck_assert_int_eq(e.kind, ERR_MODEL); \
	ck_assert_msg(strstr(e.msg, (text)) != NULL, "%s", e.msg); \
} while (0)
	REFUSED(gguf_get_u32(g, "negative", &u, &e), "is -1: must be 0 to "
	    "4294967295");
	REFUSED(gguf_get_u32(g, "big", &u, &e), "is 4294967296: must be");
	REFUSED(gguf_get_u32(g, "bigger", &u, &e), "is 4294967296: must be");
	REFUSED(gguf_get_u32(g, "f64", &u, &e), "of type f64, an integer");
	REFUSED(gguf_get_u32(g, "arr", &u, &e), "an array of u32, an integer");
	REFUSED(gguf_get_f32(g, "inf", &f, &e), "is inf, a finite f32");
	REFUSED(gguf_get_f32(g, "huge", &f, &e), "is 1e+300, a finite f32");
	REFUSED(gguf_get_f32(g, "nan", &f, &e), "nan, a finite f32");
	REFUSED(gguf_get_f32(g, "nan64", &f, &e), "nan, a finite f32");
	REFUSED(gguf_get_f32(g, "str", &f, &e), "of type string, a number is");
	REFUSED(gguf_get_bool(g, "u16", &b, &e), "bool is needed");
	REFUSED(gguf_get_str(g, "u16", &s, &e), "string is needed");
	REFUSED(gguf_get_array(g, "arr", GGUF_STRING, &data, &n, &e),
	    "an array of u32, an array of string is needed");
	REFUSED(gguf_get_array(g, "str", GGUF_STRING, &data, &n, &e),
	    "of type string, an array of string is needed");
#undef REFUSED
	ck_assert_uint_eq(u, 5);	/* unchanged by failures */
	ck_assert_str_eq(gguf_type_name(GGUF_I16), "i16");
	ck_assert_str_eq(gguf_type_name(99), "unknown");
	gguf_close(g);
}
END_TEST

START_TEST(header_beyond_256_mib_is_refused)
{
	const char *path = tmp_path("long.gguf");
	struct gguf_writer w;

	gw_open(&w);
	gw_array(&w, "long", GGUF_U8, GGUF_MAX_HEADER);
	w.data_bytes = (uint64_t)GGUF_MAX_HEADER + 4096;	/* sparse */
	gw_save(&w, path);
	gw_close(&w);
	must_refuse(path, "the header is longer than the allowed 268435456 "
	    "bytes (key \"long\")");
}
END_TEST

START_TEST(vocabulary_of_256k_tokens_is_read_completely)
{
	const char *path = tmp_path("vocab.gguf");
	const struct gguf_str *tok;
	struct gguf_writer w;
	const void *data;
	struct gguf *g;
	struct err e;
	char text[32];
	uint64_t n;
	uint32_t i;

	gw_open(&w);
	gw_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, BIG_VOCAB);
	for (i = 0; i < BIG_VOCAB; i++) {
		snprintf(text, sizeof(text), "token-%u", i);
		gw_str(&w, text);
	}
	gw_array(&w, "tokenizer.ggml.scores", GGUF_F32, BIG_VOCAB);
	for (i = 0; i < BIG_VOCAB; i++)
		gw_bytes(&w, &(float){ (float)i }, 4);
	gw_save(&w, path);
	gw_close(&w);

	g = must_open(path);
	t_ok(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &data,
	    &n, &e), &e);
	tok = data;
	ck_assert_uint_eq(n, BIG_VOCAB);
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "token-%u", i);
		ck_assert_str_eq(tok[i].data, text);
	}
	t_ok(gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &data, &n,
	    &e), &e);
	for (i = 0; i < n; i++)
		ck_assert(((const float *)data)[i] == (float)i);
	gguf_close(g);
}
END_TEST

/* Write a part with two tensors.  Its name says part no (from 0) of count; its
 * keys say key_no of key_count, and ntensors as split.tensors.count. */
static const char *
save_part(unsigned no, unsigned count, uint16_t key_no, uint16_t key_count,
    int32_t ntensors)
{
	struct gguf_writer w;
	const char *path;
	char name[64];

	snprintf(name, sizeof(name), "m-%05u-of-%05u.gguf", no + 1, count);
	path = tmp_path(name);
	gw_open(&w);
	gw_kv_u16(&w, "split.no", key_no);
	gw_kv_u16(&w, "split.count", key_count);
	gw_kv_i32(&w, "split.tensors.count", ntensors);
	if (no == 1) {		/* each part has an alignment of its own */
		w.alignment = 64;
		gw_kv_u32(&w, "general.alignment", 64);
	}
	snprintf(name, sizeof(name), "blk.%u.a", no);
	gw_tensor(&w, name, QUANT_F32, 1, ne_32, 128);
	snprintf(name, sizeof(name), "blk.%u.b", no);
	gw_tensor(&w, name, QUANT_F32, 1, ne_32, 128);
	gw_save(&w, path);
	gw_close(&w);
	return path;
}

START_TEST(split_set_is_opened_completely)
{
	const struct gguf_tensor *t;
	unsigned fds = count_fds(), i;
	const char *first;
	struct gguf *g;
	char name[32];

	save_part(1, 3, 1, 3, 6);
	save_part(2, 3, 2, 3, 6);
	first = save_part(0, 3, 0, 3, 6);
	g = must_open(first);
	ck_assert_uint_eq(g->nfiles, 3);
	ck_assert_uint_eq(g->ntensors, 6);
	ck_assert_uint_eq(g->nkv, 3);
	ck_assert_uint_eq(g->alignment, 32);
	ck_assert_uint_eq(g->tensor_bytes, 6 * 128);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "blk.%u.b", i);
		t = gguf_find_tensor(g, name);
		ck_assert_uint_eq(t->file, i);
		ck_assert_uint_eq(t->offset, g->file[i].data_off + 128);
		ck_assert_ptr_eq(t, &g->tensor[2 * i + 1]);
	}
	ck_assert_ptr_nonnull(strstr(g->file[2].path,
	    "m-00003-of-00003.gguf"));
	ck_assert_uint_eq(count_fds(), fds + 3);
	gguf_close(g);
	ck_assert_uint_eq(count_fds(), fds);
}
END_TEST

/* No descriptor can be opened while the parts are parsed. */
START_TEST(split_set_is_parsed_from_descriptors)
{
	const char *path = save_part(0, 3, 0, 3, 6);
	struct rlimit old, none;
	struct err e = { .kind = ERR_NONE };
	unsigned fds = count_fds(), i;
	struct gguf_file f[3];
	struct gguf *g;
	uint32_t n;

	save_part(1, 3, 1, 3, 6);
	save_part(2, 3, 2, 3, 6);
	t_ok(gguf_file_open(path, &f[0], &e), &e);
	t_ok(gguf_part_open(&f[0], 3, 1, &f[1], &e), &e);
	t_ok(gguf_part_open(&f[0], 3, 2, &f[2], &e), &e);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(open(path, O_RDONLY), -1);
	t_ok(gguf_begin(&f[0], &g, &n, &e), &e);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(f[0].fd, -1);

	/* A refused part stays the caller's. */
	ck_assert_int_eq(gguf_add_part(g, &f[2], &e), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.msg, "m-00003-of-00003.gguf: is part 3 "
	    "of 3, but must be 2 of 3"));
	ck_assert_int_ge(f[2].fd, 0);
	ck_assert_uint_eq(g->nfiles, 1);
	for (i = 1; i < 3; i++)
		t_ok(gguf_add_part(g, &f[i], &e), &e);
	t_ok(gguf_finish(g, &e), &e);
	ck_assert_ptr_null(gguf_walk(g));
	ck_assert_uint_eq(g->ntensors, 6);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	gguf_close(g);
	ck_assert_uint_eq(count_fds(), fds);
}
END_TEST

START_TEST(first_part_that_is_refused_stays_the_callers)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf_file f, part;
	struct gguf *g;
	uint32_t n;

	t_ok(gguf_file_open(save_part(1, 3, 1, 3, 6), &f, &e), &e);
	ck_assert_int_eq(gguf_begin(&f, &g, &n, &e), -EBADMSG);
	ck_assert_ptr_null(g);
	ck_assert_int_ge(fcntl(f.fd, F_GETFD), 0);
	ck_assert_int_eq(gguf_part_open(&f, 3, 1, &part, &e), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.msg, "its name must end in "
	    "-00001-of-00003.gguf"));
	gguf_file_close(&f);
	ck_assert_int_eq(f.fd, -1);
}
END_TEST

START_TEST(split_set_with_a_part_missing_names_it)
{
	const char *first = save_part(0, 3, 0, 3, 6);
	unsigned fds = count_fds();
	struct gguf *g = NULL;
	struct err e;

	save_part(2, 3, 2, 3, 6);
	unlink(tmp_path("m-00002-of-00003.gguf"));	/* another test's */
	ck_assert_int_eq(gguf_open(first, &g, &e), -ENOENT);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "m-00002-of-00003.gguf: part 2 "
	    "of 3 is missing"));
	ck_assert_ptr_null(g);
	ck_assert_uint_eq(count_fds(), fds);
}
END_TEST

START_TEST(split_set_opened_by_a_later_part_names_the_first)
{
	char want[600];
	const char *first, *second;

	first = save_part(0, 3, 0, 3, 6);
	second = save_part(1, 3, 1, 3, 6);
	snprintf(want, sizeof(want), "part 2 of 3 of a split model: give the "
	    "first part, %s", first);
	must_refuse(second, want);
}
END_TEST

/* The set must be refused, with text in the message; that may name any part. */
static void
refuse_set(const char *first, const char *text)
{
	struct gguf *g = NULL;
	struct err e;

	ck_assert_int_eq(gguf_open(first, &g, &e), -EBADMSG);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_null(g);
	ck_assert_msg(strstr(e.msg, text) != NULL, "%s", e.msg);
}

START_TEST(split_set_whose_parts_disagree_is_refused)
{
	const char *first, *second;

	first = save_part(0, 2, 0, 2, 4);
	save_part(1, 2, 0, 2, 4);
	refuse_set(first, "m-00002-of-00002.gguf: is part 1 of 2, "
	    "but must be 2 of 2");
	save_part(1, 2, 1, 3, 4);
	refuse_set(first, "is part 2 of 3, but must be 2 of 2");
	save_part(1, 2, 1, 2, 4);
	first = save_part(0, 2, 0, 2, 5);
	refuse_set(first, "split.tensors.count is 5, the 2 parts hold 4");
	first = save_part(0, 2, 0, 2, -4);
	refuse_set(first, "is -4: must be 0 to");

	/* A part that is not GGUF; one that repeats a tensor of the first. */
	first = save_part(0, 2, 0, 2, 4);
	second = save_part(1, 2, 1, 2, 4);
	ck_assert_int_eq(truncate(second, 10), 0);
	refuse_set(first, "m-00002-of-00002.gguf: truncated");
	ck_assert_int_eq(rename(save_part(0, 9, 1, 2, 4), second), 0);
	refuse_set(first, "m-00002-of-00002.gguf: at byte 106: "
	    "duplicate tensor \"blk.0.a\"");
}
END_TEST

START_TEST(paths_that_are_no_regular_files_are_refused)
{
	const char *fifo = tmp_path("fifo");
	struct gguf *g = NULL;
	struct err e;

	ck_assert_int_eq(gguf_open("/no/such/model.gguf", &g, &e), -ENOENT);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_str_eq(e.msg, "/no/such/model.gguf: No such file or "
	    "directory");
	ck_assert_int_eq(gguf_open(t_tmpdir(), &g, &e), -EISDIR);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(gguf_open(fifo, &g, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "not a regular file"));
	ck_assert_int_eq(gguf_open("/no/such/model.gguf", &g, NULL), -ENOENT);
	ck_assert_ptr_null(g);
	gguf_close(NULL);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		demo_model_is_read_completely, demo_metadata_is_read_by_type,
		a_file_that_changes_after_it_was_opened_is_noticed,
		each_case_is_accepted_or_refused_as_declared,
		no_case_needs_more_than_64_mib,
		stored_corpus_is_accepted_or_refused_by_file_name,
		truncated_header_is_refused_at_every_length,
		truncated_data_is_refused_with_the_tensor_name,
		mutated_header_is_refused_or_consistent,
		every_value_type_is_read_as_written,
		places_and_sizes_near_the_end_of_64_bits_are_refused,
		millions_of_keys_or_tensors_are_refused_before_they_are_parsed,
		getters_refuse_other_types_and_ranges,
		header_beyond_256_mib_is_refused,
		vocabulary_of_256k_tokens_is_read_completely,
		split_set_is_opened_completely,
		split_set_is_parsed_from_descriptors,
		first_part_that_is_refused_stays_the_callers,
		split_set_with_a_part_missing_names_it,
		split_set_opened_by_a_later_part_names_the_first,
		split_set_whose_parts_disagree_is_refused,
		paths_that_are_no_regular_files_are_refused
	};

	return t_main("gguf", 60, tests, NITEMS(tests));
}
