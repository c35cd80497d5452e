/* tests/unit/gguf_write.c - tests of the GGUF writer: a header made from
 * another is identical if nothing changes, and the reader finds every change. */
#include "tests/support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/gguf/write.h"
#include "tests/support/gguf_walk.h"
#include "tests/support/gguf_writer.h"

static struct err err;

static struct gguf *
must_open(const char *path)
{
	const char *broken;
	struct gguf *g;

	t_ok(gguf_open(path, &g, &err), &err);
	broken = gguf_walk(g);
	ck_assert_msg(broken == NULL, "broken: %s", broken);
	return g;
}

static const char *
tmp_path(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", t_tmpdir(), name);
	return path;
}

/* Every type of value, extremes of integers, a string with any bytes. */
static void
put_keys(struct gguf_writer *w)
{
	static const int16_t i16[] = { -32768, 7 };
	static const char text[] = "a\0b\xff\n";
	const int64_t least = INT64_MIN;
	const double third = 1.0 / 3;

	gw_kv_str(w, "general.architecture", "none");
	gw_kv_u32(w, "general.alignment", 128);
	w->alignment = 128;
	gw_key(w, "k.u8", GGUF_U8);
	gw_u8(w, 255);
	gw_key(w, "k.i8", GGUF_I8);
	gw_u8(w, 0x80);
	gw_kv_u16(w, "k.u16", 65535);
	gw_key(w, "k.i16", GGUF_I16);
	gw_bytes(w, i16, 2);
	gw_kv_i32(w, "k.i32", -5);
	gw_kv_f32(w, "k.f32", 1e-40f);
	gw_kv_bool(w, "k.bool", 1);
	gw_key(w, "k.u64", GGUF_U64);
	gw_u64(w, UINT64_MAX);
	gw_key(w, "k.i64", GGUF_I64);
	gw_bytes(w, &least, sizeof(least));
	gw_key(w, "k.f64", GGUF_F64);
	gw_bytes(w, &third, sizeof(third));
	gw_key(w, "k.text", GGUF_STRING);
	gw_u64(w, sizeof(text));
	gw_bytes(w, text, sizeof(text));
	gw_array(w, "k.texts", GGUF_STRING, 3);
	gw_str(w, "x");
	gw_str(w, "");
	gw_str(w, "yz");
	gw_array(w, "k.shorts", GGUF_I16, 2);
	gw_bytes(w, i16, sizeof(i16));
	gw_array(w, "k.none", GGUF_F64, 0);
}

/* Tensors of odd sizes, so that each needs padding. */
static void
put_tensors(struct gguf_writer *w)
{
	gw_tensor(w, "a.weight", QUANT_F16, 2, (uint64_t[]){ 96, 3 }, 576);
	gw_tensor(w, "b", QUANT_F32, 1, (uint64_t[]){ 5 }, 20);
	gw_tensor(w, "c", QUANT_F32, 4, (uint64_t[]){ 1, 1, 1, 3 }, 12);
	w->data_bytes = ALIGN_UP(w->data_bytes, 128);
}

START_TEST(an_unchanged_file_has_an_identical_header)
{
	static const uint32_t type[] = { QUANT_F16, QUANT_F32, QUANT_F32 };
	struct gguf_writer w;
	struct gguf_out o;
	struct gguf *g;
	unsigned i;

	gw_open(&w);
	put_keys(&w);
	put_tensors(&w);
	gw_save(&w, tmp_path("same.gguf"));
	g = must_open(tmp_path("same.gguf"));
	t_ok(gguf_out_make(g, type, NULL, 0, &o, &err), &err);
	ck_assert_uint_eq(o.header_bytes, w.len);
	ck_assert(memcmp(o.header, w.buf, w.len) == 0);
	ck_assert_uint_eq(o.file_bytes, g->file->nbytes);
	for (i = 0; i < 3; i++) {
		ck_assert_uint_eq(o.tensor[i].offset, g->tensor[i].offset);
		ck_assert_uint_eq(o.tensor[i].nbytes, g->tensor[i].nbytes);
	}
	gguf_out_free(&o);
	gguf_close(g);
	gw_close(&w);
}
END_TEST

/* Another program wrote the demo model, with both keys at the end. */
START_TEST(the_header_of_the_demo_model_is_reproduced)
{
	static const struct gguf_set set[] = {
		{ "general.quantization_version", 2 },
		{ "general.file_type", 7 }
	};
	struct gguf *g = must_open(t_data("kjv-q8_0.gguf"));
	uint32_t *type = calloc(g->ntensors, sizeof(*type));
	char *was = malloc(g->file->data_off);
	struct gguf_out o;
	uint64_t i;

	for (i = 0; i < g->ntensors; i++)
		type[i] = g->tensor[i].type;
	t_ok(gguf_out_make(g, type, set, 2, &o, &err), &err);
	ck_assert_uint_eq(o.header_bytes, g->file->data_off);
	ck_assert_uint_eq(o.file_bytes, g->file->nbytes);
	ck_assert_int_eq(pread(g->file->fd, was, o.header_bytes, 0),
	    (ssize_t)o.header_bytes);
	ck_assert(memcmp(was, o.header, o.header_bytes) == 0);
	gguf_out_free(&o);
	free(was);
	free(type);
	gguf_close(g);
}
END_TEST

static void
save_file(const struct gguf_out *o, const char *path)
{
	FILE *fp = fopen(path, "we");

	ck_assert_ptr_nonnull(fp);
	ck_assert_uint_eq(fwrite(o->header, 1, o->header_bytes, fp),
	    o->header_bytes);
	ck_assert_int_eq(fflush(fp), 0);
	ck_assert_int_eq(ftruncate(fileno(fp), (off_t)o->file_bytes), 0);
	fclose(fp);
}

START_TEST(the_reader_finds_every_change)
{
	static const uint32_t type[] = { QUANT_Q4_0, QUANT_F32, QUANT_F32 };
	static const struct gguf_set set[] = { { "k.u8", 77 }, { "new", 3 } };
	struct gguf_writer w;
	struct gguf_out o;
	struct gguf *g;
	uint32_t v = 0;

	gw_open(&w);
	w.version = 2;
	put_keys(&w);
	gw_kv_u16(&w, "split.no", 0);
	gw_kv_u16(&w, "split.count", 1);
	put_tensors(&w);
	gw_save(&w, tmp_path("old.gguf"));
	g = must_open(tmp_path("old.gguf"));
	t_ok(gguf_out_make(g, type, set, 2, &o, &err), &err);
	save_file(&o, tmp_path("new.gguf"));
	gguf_close(g);

	g = must_open(tmp_path("new.gguf"));
	ck_assert_uint_eq(g->file->version, 3);
	ck_assert_uint_eq(g->alignment, 128);
	ck_assert_uint_eq(g->nkv, w.nkv - 2 + 1);
	t_ok(gguf_get_u32(g, "k.u8", &v, &err), &err);
	ck_assert_uint_eq(v, 77);
	t_ok(gguf_get_u32(g, "new", &v, &err), &err);
	ck_assert_uint_eq(v, 3);
	ck_assert_ptr_null(gguf_find(g, "split.count"));
	ck_assert_uint_eq(g->tensor[0].type, QUANT_Q4_0);
	ck_assert_uint_eq(g->tensor[0].nbytes, 3 * 3 * 18);
	ck_assert_uint_eq(g->tensor[2].ndims, 4);
	ck_assert_uint_eq(g->tensor[2].offset, o.tensor[2].offset);
	gguf_out_free(&o);
	gguf_close(g);
	gw_close(&w);
}
END_TEST

START_TEST(rows_without_whole_blocks_are_refused)
{
	static const uint32_t type[] = { QUANT_Q4_K, QUANT_F32, QUANT_F32 };
	struct gguf_writer w;
	struct gguf_out o;
	struct gguf *g;

	gw_open(&w);
	put_keys(&w);
	put_tensors(&w);
	gw_save(&w, tmp_path("bad.gguf"));
	g = must_open(tmp_path("bad.gguf"));
	ck_assert_int_lt(gguf_out_make(g, type, NULL, 0, &o, &err), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "\"a.weight\""));
	gguf_out_free(&o);
	gguf_close(g);
	gw_close(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		an_unchanged_file_has_an_identical_header,
		the_header_of_the_demo_model_is_reproduced,
		the_reader_finds_every_change,
		rows_without_whole_blocks_are_refused,
	};

	return t_main("gguf_write", 20, tests, NITEMS(tests));
}
