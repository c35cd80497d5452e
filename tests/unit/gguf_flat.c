/* tests/unit/gguf_flat.c - tests of flat directories: a view says what the file
 * says, and a block that was tampered with is refused or consistent. */
#include "tests/support/t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/gguf/flat.h"
#include "layers/gguf/write.h"
#include "tests/support/families.h"
#include "tests/support/flat_input.h"
#include "tests/support/gguf_cases.h"
#include "tests/support/gguf_walk.h"
#include "tests/support/make_model.h"

/* The block's records, written out a second time. */
enum {
	HEAD_BYTES = 40, FILE_BYTES = 16, KV_BYTES = 32,
	AT_MAGIC = 0, AT_NFILES = 4, AT_NKV = 8, AT_NTENSORS = 16,
	AT_ALIGNMENT = 24, AT_TENSOR_BYTES = 32,
	FILE_DATA_OFF = 0, FILE_VERSION = 8, FILE_ZERO = 12,
	KV_KEY_LEN = 0, KV_OFFSET = 8, KV_TYPE = 16, KV_ELEMENT = 20,
	KV_VALUE = 24
};

/* A file's directory as a block in memory of exactly its size. */
struct flat {
	struct gguf *g;
	uint8_t *block;
	uint64_t nbytes;
};

static void
flat_make(struct flat *f, const char *path)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(gguf_open(path, &f->g, &e), &e);
	t_ok(gguf_flat_bytes(f->g, &f->nbytes, &e), &e);
	ck_assert_ptr_nonnull(f->block = malloc(f->nbytes));
	gguf_flat_write(f->g, f->block);
}

static void
flat_free(struct flat *f)
{
	free(f->block);
	gguf_close(f->g);
}

/* The caller's files, as if it had opened the same ones. */
static struct gguf_file *
copy_files(const struct gguf *g)
{
	struct gguf_file *f = calloc(g->nfiles, sizeof(*f));
	uint32_t i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < g->nfiles; i++) {
		f[i] = g->file[i];
		f[i].fd = dup(g->file[i].fd);
		f[i].path = strdup(g->file[i].path);
		ck_assert_ptr_nonnull(f[i].path);
		f[i].data_off = f[i].version = 0;
	}
	return f;
}

/* Returns what gguf_flat_open() does; whatever it accepts must be sound. */
static int
view_open(const struct flat *f, struct gguf **ret, struct err *e)
{
	struct gguf_file *file = copy_files(f->g);
	const char *broken;
	uint32_t i;
	int rc;

	rc = gguf_flat_open(f->block, f->nbytes, file, f->g->nfiles, ret, e);
	for (i = 0; i < f->g->nfiles; i++) {
		ck_assert(rc == 0 ? file[i].fd == -1 : file[i].fd >= 0);
		gguf_file_close(&file[i]);
	}
	free(file);
	if (rc == 0) {
		broken = gguf_walk_view(*ret, f->block, f->nbytes);
		ck_assert_msg(broken == NULL, "broken: %s", broken);
		return 0;
	}
	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_int_eq(e->kind, ERR_RUN);
	ck_assert_ptr_null(*ret);
	ck_assert_msg(strncmp(e->msg, "the reader's image: ", 20) == 0, "%s",
	    e->msg);
	return rc;
}

static void
refuse(const struct flat *f, const char *text)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf *g = NULL;

	ck_assert_msg(view_open(f, &g, &e) < 0, "accepted: %s", text);
	ck_assert_msg(strstr(e.msg, text) != NULL, "\"%s\" is not in: %s",
	    text, e.msg);
}

/* Open a view, which must be sound. */
static struct gguf *
accept(const struct flat *f)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf *g;

	t_ok(view_open(f, &g, &e), &e);
	return g;
}

static void
same_kv(const struct gguf_kv *a, const struct gguf_kv *b)
{
	ck_assert_uint_eq(a->key.len, b->key.len);
	ck_assert_str_eq(a->key.data, b->key.data);
	ck_assert_uint_eq(a->type, b->type);
	ck_assert_uint_eq(a->offset, b->offset);
	if (a->type == GGUF_STRING) {
		ck_assert_uint_eq(a->v.s.len, b->v.s.len);
		ck_assert_mem_eq(a->v.s.data, b->v.s.data, a->v.s.len + 1);
	} else if (a->type == GGUF_ARRAY) {
		ck_assert_uint_eq(a->v.a.type, b->v.a.type);
		ck_assert_uint_eq(a->v.a.count, b->v.a.count);
	} else
		ck_assert_uint_eq(a->v.u, b->v.u);
}

static void
same_tensor(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
	ck_assert_str_eq(a->name, b->name);
	ck_assert_uint_eq(a->ndims, b->ndims);
	ck_assert_mem_eq(a->ne, b->ne, sizeof(a->ne));
	ck_assert_uint_eq(a->type, b->type);
	ck_assert_uint_eq(a->file, b->file);
	ck_assert_uint_eq(a->offset, b->offset);
	ck_assert_uint_eq(a->nbytes, b->nbytes);
	ck_assert_uint_eq(a->room, b->room);
}

/* The view of the file at path says what the parser says. */
static void
check_round_trip(const char *path)
{
	struct err e = { .kind = ERR_NONE };
	struct flat f;
	struct gguf *g;
	uint64_t i;

	flat_make(&f, path);
	g = accept(&f);
	ck_assert_uint_eq(g->nfiles, f.g->nfiles);
	for (i = 0; i < g->nfiles; i++) {
		ck_assert_str_eq(g->file[i].path, f.g->file[i].path);
		ck_assert_uint_eq(g->file[i].nbytes, f.g->file[i].nbytes);
		ck_assert_uint_eq(g->file[i].ino, f.g->file[i].ino);
		ck_assert_uint_eq(g->file[i].data_off, f.g->file[i].data_off);
		ck_assert_uint_eq(g->file[i].version, f.g->file[i].version);
		ck_assert_int_ge(g->file[i].fd, 0);
	}
	ck_assert_uint_eq(g->nkv, f.g->nkv);
	ck_assert_uint_eq(g->ntensors, f.g->ntensors);
	ck_assert_uint_eq(g->alignment, f.g->alignment);
	ck_assert_uint_eq(g->tensor_bytes, f.g->tensor_bytes);
	for (i = 0; i < g->nkv; i++)
		same_kv(&g->kv[i], &f.g->kv[i]);
	for (i = 0; i < g->ntensors; i++)
		same_tensor(&g->tensor[i], &f.g->tensor[i]);
	t_ok(gguf_check_unchanged(g, &e), &e);
	gguf_close(g);
	flat_free(&f);
}

START_TEST(view_of_the_demo_model_says_what_the_file_says)
{
	check_round_trip(t_data("kjv-q8_0.gguf"));
}
END_TEST

START_TEST(view_of_every_valid_header_says_what_it_says)
{
	unsigned i, n = 0;

	for (i = 0; i < gguf_ncases; i++)
		if (gguf_case[i].refusal == NULL) {
			check_round_trip(gguf_case_save(&gguf_case[i],
			    t_tmpdir()));
			n++;
		}
	ck_assert_uint_gt(n, 10);
}
END_TEST

START_TEST(view_of_a_model_of_each_family_says_what_the_file_says)
{
	char path[512], options[64];
	unsigned i;

	snprintf(path, sizeof(path), "%s/family.gguf", t_tmpdir());
	for (i = 0; i < nshapes; i++) {
		if (strncmp(shapes[i].name, "tiny", 4) != 0)
			continue;
		snprintf(options, sizeof(options), "%s F32",
		    shapes[i].name);
		make_model(options, path);
		check_round_trip(path);
	}
}
END_TEST

/* Part no of a set of 2, with an alignment of its own. */
static const char *
save_part(unsigned no)
{
	static const uint64_t ne[] = { 33 };
	static char path[2][512];
	struct gguf_writer w;

	snprintf(path[no], sizeof(path[no]), "%s/m-%05u-of-00002.gguf",
	    t_tmpdir(), no + 1);
	gw_open(&w);
	w.alignment = no == 0 ? 64 : 8;
	gw_kv_u32(&w, "general.alignment", w.alignment);
	gw_kv_u16(&w, "split.no", (uint16_t)no);
	gw_kv_u16(&w, "split.count", 2);
	gw_kv_i32(&w, "split.tensors.count", 4);
	gw_tensor(&w, no == 0 ? "a" : "c", QUANT_F32, 1, ne, 132);
	gw_tensor(&w, no == 0 ? "b" : "d", QUANT_F32, 1, ne, 132);
	gw_save(&w, path[no]);
	gw_close(&w);
	return path[no];
}

START_TEST(view_of_a_split_model_says_what_the_files_say)
{
	const char *first = save_part(0);

	save_part(1);
	check_round_trip(first);
}
END_TEST

/* A small file with a key of every kind and a tensor of every kind. */
enum { KEY_U8, KEY_I8, KEY_U16, KEY_F32, KEY_BOOL, KEY_STRING, KEY_ARRAY,
	KEY_F64, KEY_COUNT };
enum { T_Q8, T_UNKNOWN, T_EMPTY, T_F32, T_COUNT };

static const char *
save_small(void)
{
	static const uint64_t ne_32[] = { 32 }, ne_0[] = { 0, 7 },
	    ne_64x3[] = { 64, 3 };
	static const double f64 = 1e300;
	static char path[512];
	struct gguf_writer w;

	snprintf(path, sizeof(path), "%s/small.gguf", t_tmpdir());
	gw_open(&w);
	gw_key(&w, "a.u8", GGUF_U8);
	gw_u8(&w, 200);
	gw_key(&w, "b.i8", GGUF_I8);
	gw_u8(&w, 0x80);
	gw_kv_u16(&w, "c.u16", 65535);
	gw_kv_f32(&w, "d.f32", 0.1f);
	gw_kv_bool(&w, "e.bool", 1);
	gw_key(&w, "f.string", GGUF_STRING);
	gw_u64(&w, 5);
	gw_bytes(&w, "\xff\0\033[m", 5);
	gw_array(&w, "g.array", GGUF_U32, 2);
	gw_u64(&w, 7);
	gw_key(&w, "h.f64", GGUF_F64);
	gw_bytes(&w, &f64, sizeof(f64));
	gw_tensor(&w, "q8", QUANT_Q8_0, 2, ne_64x3, 204);
	gw_tensor(&w, "unknown", 99, 1, ne_32, 40);
	gw_tensor(&w, "empty", QUANT_F32, 2, ne_0, 0);
	gw_tensor(&w, "f32", QUANT_F32, 1, ne_32, 128);
	gw_save(&w, path);
	gw_close(&w);
	return path;
}

static void
put_u32(struct flat *f, uint64_t at, uint32_t v)
{
	ck_assert_uint_le(at + sizeof(v), f->nbytes);
	memcpy(f->block + at, &v, sizeof(v));
}

static void
put_u64(struct flat *f, uint64_t at, uint64_t v)
{
	ck_assert_uint_le(at + sizeof(v), f->nbytes);
	memcpy(f->block + at, &v, sizeof(v));
}

static uint64_t
kv_at(const struct flat *f, unsigned no)
{
	return HEAD_BYTES + f->g->nfiles * FILE_BYTES + no * KV_BYTES;
}

static struct gguf_tensor *
tensor_of(struct flat *f, uint64_t no)
{
	return (struct gguf_tensor *)(void *)(f->block +
	    kv_at(f, (unsigned)f->g->nkv)) + no;
}

static char *
text_of(struct flat *f)
{
	return (char *)tensor_of(f, f->g->ntensors);
}

/* Change `field`, the block must be refused, change it back. */
#define refuse_with(f, field, new, text) do {				\
	__typeof__(field) old_ = (field);				\
	(field) = (new);						\
	refuse((f), (text));						\
	(field) = old_;							\
} while (0)

/* The same with a number of the records before the tensors. */
static void
refuse_u32(struct flat *f, uint64_t at, uint32_t v, const char *text)
{
	uint32_t old;

	memcpy(&old, f->block + at, sizeof(old));
	put_u32(f, at, v);
	refuse(f, text);
	put_u32(f, at, old);
}

static void
refuse_u64(struct flat *f, uint64_t at, uint64_t v, const char *text)
{
	uint64_t old;

	memcpy(&old, f->block + at, sizeof(old));
	put_u64(f, at, v);
	refuse(f, text);
	put_u64(f, at, old);
}

START_TEST(block_whose_size_or_counts_are_wrong_is_refused)
{
	struct flat f;
	uint64_t n;

	flat_make(&f, save_small());
	gguf_close(accept(&f));
	n = f.nbytes;
	for (f.nbytes = 0; f.nbytes < n; f.nbytes++)
		refuse(&f, "");
	f.nbytes = n;
	refuse_u32(&f, AT_MAGIC, 0, "no directory begins with");
	refuse_u32(&f, AT_NFILES, 2, "2 files, 1 are open");
	refuse_u32(&f, AT_NFILES, 0, "0 files, 1 are open");
	refuse_u64(&f, AT_NKV, KEY_COUNT - 1, "");
	refuse_u64(&f, AT_NKV, KEY_COUNT + 1, "");
	refuse_u64(&f, AT_NKV, GGUF_FLAT_MAX_KV, "keys and 4 tensors in");
	refuse_u64(&f, AT_NKV, GGUF_FLAT_MAX_KV + 1, "must be at most");
	refuse_u64(&f, AT_NKV, UINT64_MAX / KV_BYTES + 1 + KEY_COUNT,
	    "must be at most");
	refuse_u64(&f, AT_NTENSORS, T_COUNT + 1, "");
	refuse_u64(&f, AT_NTENSORS, T_COUNT - 1, "");
	refuse_u64(&f, AT_NTENSORS, UINT64_C(1) << 61, "must be at most");
	refuse_u64(&f, AT_ALIGNMENT, 0, "an alignment of 0");
	refuse_u64(&f, AT_ALIGNMENT, 48, "an alignment of 48");
	refuse_u64(&f, AT_ALIGNMENT, UINT64_C(1) << 32, "an alignment of");
	refuse_u64(&f, AT_TENSOR_BYTES, 0, "0 bytes of tensors: must be 332");
	gguf_close(accept(&f));
	flat_free(&f);
}
END_TEST

START_TEST(files_of_the_block_that_cannot_be_are_refused)
{
	struct flat f;

	flat_make(&f, save_small());
	refuse_u64(&f, HEAD_BYTES + FILE_DATA_OFF, 0, "data of file 0");
	refuse_u64(&f, HEAD_BYTES + FILE_DATA_OFF,
	    f.g->file->data_off + 1, "data of file 0");
	refuse_u64(&f, HEAD_BYTES + FILE_DATA_OFF,
	    ALIGN_UP(f.g->file->nbytes, 32) + GGUF_MAX_ALIGNMENT,
	    "data of file 0");
	refuse_u64(&f, HEAD_BYTES + FILE_DATA_OFF,
	    f.g->file->data_off + 32, "the data begins at");
	refuse_u32(&f, HEAD_BYTES + FILE_VERSION, 1, "has version 1");
	refuse_u32(&f, HEAD_BYTES + FILE_ZERO, 1, "has version");
	flat_free(&f);
}
END_TEST

START_TEST(keys_of_the_block_that_cannot_be_are_refused)
{
	const struct gguf_kv *kv;
	struct flat f;
	struct gguf *g;
	uint64_t at;
	char *text;

	flat_make(&f, save_small());
	g = accept(&f);
	at = kv_at(&f, KEY_U8);
	refuse_u64(&f, at + KV_KEY_LEN, 0, "a name of 0 bytes");
	refuse_u64(&f, at + KV_KEY_LEN, 65536, "a name of 65536 bytes");
	refuse_u64(&f, at + KV_KEY_LEN, 5, "does not end in NUL");
	refuse_u64(&f, at + KV_KEY_LEN, 9, "not printable UTF-8");
	refuse_u64(&f, at + KV_KEY_LEN, 65535, "of 65535 bytes, 64 are left");
	refuse_u32(&f, at + KV_TYPE, GGUF_NTYPES, "type 13 of 0");
	refuse_u32(&f, at + KV_TYPE, GGUF_STRING, "a text of 200 bytes");
	refuse_u32(&f, at + KV_ELEMENT, 1, "type 0 of 1");
	refuse_u64(&f, at + KV_OFFSET, f.g->file->data_off,
	    "its value is at byte");
	refuse_u64(&f, at + KV_VALUE, 256, "its value is no u8");
	refuse_u64(&f, kv_at(&f, KEY_I8) + KV_VALUE, (uint64_t)-129, "no i8");
	refuse_u64(&f, kv_at(&f, KEY_I8) + KV_VALUE, 128, "no i8");
	refuse_u64(&f, kv_at(&f, KEY_U16) + KV_VALUE, 65536, "no u16");
	refuse_u64(&f, kv_at(&f, KEY_BOOL) + KV_VALUE, 2, "no bool");
	refuse_u64(&f, kv_at(&f, KEY_F32) + KV_VALUE, 1, "no f32");
	refuse_u32(&f, kv_at(&f, KEY_F64) + KV_TYPE, GGUF_F32, "no f32");
	at = kv_at(&f, KEY_STRING);
	refuse_u64(&f, at + KV_VALUE, UINT64_MAX, "a text of 1844");
	refuse_u64(&f, at + KV_VALUE, 4, "does not end in NUL");
	at = kv_at(&f, KEY_ARRAY);
	refuse_u32(&f, at + KV_ELEMENT, GGUF_NTYPES, "type 9 of 13");
	refuse_u64(&f, at + KV_VALUE, f.g->file->nbytes + 1, "elements in a");
	text = text_of(&f);
	refuse_with(&f, text[0], '\033', "not printable UTF-8");
	refuse_with(&f, text[0], '\x80', "not printable UTF-8");
	refuse_with(&f, text[4], 'x', "does not end in NUL");
	f.block[f.nbytes - 1] = 1;
	refuse(&f, "");
	f.block[f.nbytes - 1] = 0;

	/* A string value may be any bytes. */
	kv = gguf_find(g, "f.string");
	ck_assert_mem_eq(kv->v.s.data, "\xff\0\033[m", 6);
	gguf_close(g);
	flat_free(&f);
}
END_TEST

START_TEST(two_keys_or_tensors_of_one_name_are_refused)
{
	struct flat f;
	char *text;

	flat_make(&f, save_small());
	text = text_of(&f);
	ck_assert_str_eq(text + 5, "b.i8");
	memcpy(text + 5, "a.u8", 4);
	refuse(&f, "two keys \"a.u8\"");
	memcpy(text + 5, "b.i8", 4);
	strcpy(tensor_of(&f, T_F32)->name, "q8");
	refuse(&f, "two tensors \"q8\"");
	flat_free(&f);
}
END_TEST

START_TEST(tensors_of_the_block_that_cannot_be_are_refused)
{
	struct gguf_tensor *t, *u, *v;
	struct flat f;
	uint64_t end;

	flat_make(&f, save_small());
	t = tensor_of(&f, T_Q8);
	u = tensor_of(&f, T_UNKNOWN);
	v = tensor_of(&f, T_F32);
	end = f.g->file->nbytes;
	refuse_with(&f, t->name[0], '\0', "its name is not");
	refuse_with(&f, t->name[1], '\n', "its name is not");
	refuse_with(&f, t->name[1], '\x9b', "its name is not");
	memset(u->name, 'n', sizeof(u->name));
	refuse(&f, "tensor 1: its name is not 1 to 64 bytes");
	memset(u->name, 0, sizeof(u->name));
	strcpy(u->name, "unknown");
	refuse_with(&f, t->ndims, 5, "5 dimensions");
	refuse_with(&f, t->ndims, UINT32_MAX, "dimensions");
	refuse_with(&f, t->ndims, 1, "in a dimension that it does not have");
	refuse_with(&f, t->ne[2], 2, "in a dimension that it does not have");
	refuse_with(&f, t->ne[0], 65, "Q8_0 needs a multiple of 32");
	refuse_with(&f, t->ne[1], UINT64_C(1) << 60, "too many elements");
	refuse_with(&f, t->ne[1], 4, "204 bytes: must be 272");
	refuse_with(&f, t->nbytes, 136, "136 bytes: must be 204");
	refuse_with(&f, u->nbytes, 1, "1 bytes: must be 0");
	refuse_with(&f, t->type, QUANT_F32, "204 bytes: must be 768");
	refuse_with(&f, t->file, 1, "in file 1");
	refuse_with(&f, t->offset, t->offset - 32, "the data begins at");
	refuse_with(&f, t->offset, t->offset + 8, "the data begins at");
	refuse_with(&f, t->offset, ALIGN_UP(end, 32), "the file has");
	refuse_with(&f, t->offset, ALIGN_DOWN(UINT64_MAX, 32), "");
	refuse_with(&f, v->offset, u->offset,
	    "\"unknown\": its data overlaps that of \"f32\"");
	refuse_with(&f, u->offset, t->offset, "its data overlaps that of");
	refuse_with(&f, t->room, t->room + 1, "bytes of room: must be");
	refuse_with(&f, u->room, u->room + 32, "bytes of room: must be");
	refuse_with(&f, tensor_of(&f, T_EMPTY)->room, 1, "for no element");
	gguf_close(accept(&f));

	/* They overlap, and their rooms are what they would be. */
	v->offset = t->offset + 32;
	v->room = u->offset - v->offset;
	t->room = 32;
	u->room = end - u->offset;
	refuse(&f, "\"f32\": its data overlaps that of \"q8\"");
	flat_free(&f);
}
END_TEST

START_TEST(tensor_beyond_the_end_of_its_own_part_is_refused)
{
	const char *first = save_part(0), *second = save_part(1);
	struct gguf_tensor *c, *d;
	struct flat f;

	flat_make(&f, first);
	ck_assert_uint_ne(f.g->file[0].data_off, f.g->file[1].data_off);
	ck_assert_str_eq(f.g->file[1].path, second);
	c = tensor_of(&f, 2);
	d = tensor_of(&f, 3);
	refuse_with(&f, c->file, 0, "");
	refuse_with(&f, d->file, 0, "in file 0");
	refuse_with(&f, d->file, 2, "in file 2");
	refuse_with(&f, d->offset, ALIGN_UP(f.g->file[1].nbytes, 8),
	    "the file has");
	refuse_with(&f, d->offset, c->offset, "overlaps that of \"c\"");
	refuse_with(&f, d->offset, d->offset + 4, "the data begins at");
	refuse_u64(&f, HEAD_BYTES + FILE_BYTES + FILE_DATA_OFF,
	    f.g->file[1].data_off + 4, "data of file 1");
	gguf_close(accept(&f));
	flat_free(&f);
}
END_TEST

/* view_open() checks whatever is accepted. */
static void
try_block(const struct flat *f, unsigned *naccepted)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf *g;

	if (view_open(f, &g, &e) == 0) {
		gguf_close(g);
		(*naccepted)++;
	}
}

START_TEST(any_changed_byte_is_refused_or_consistent)
{
	static const uint8_t flips[] = { 1, 2, 0x20, 0x80, 0xff };
	unsigned accepted = 0, i;
	struct flat f;
	uint64_t at;

	flat_make(&f, save_small());
	for (at = 0; at < f.nbytes; at++)
		for (i = 0; i < NITEMS(flips); i++) {
			f.block[at] ^= flips[i];
			try_block(&f, &accepted);
			f.block[at] ^= flips[i];
		}
	ck_assert_uint_gt(accepted, 0);
	flat_free(&f);
}
END_TEST

START_TEST(any_changed_number_is_refused_or_consistent)
{
	static const uint64_t odd[] = { 0, 1, 31, 32, 255, INT32_MAX,
	    UINT32_MAX, (uint64_t)1 << 32, INT64_MAX, (uint64_t)1 << 63,
	    (uint64_t)-32, UINT64_MAX };
	unsigned accepted = 0, i;
	uint64_t at, old, v;
	struct flat f;

	flat_make(&f, save_small());
	for (at = 0; at + 8 <= f.nbytes; at += 4)
		for (i = 0; i < 2 * NITEMS(odd); i++) {
			memcpy(&old, f.block + at, sizeof(old));
			v = i < NITEMS(odd) ? odd[i] :
			    old + odd[i - NITEMS(odd)];
			put_u64(&f, at, v);
			try_block(&f, &accepted);
			put_u64(&f, at, old);
		}
	ck_assert_uint_gt(accepted, 0);
	flat_free(&f);
}
END_TEST

/* The fuzzer's seeds; those that begin with ok- are accepted. */
START_TEST(stored_blocks_are_accepted_or_refused_by_file_name)
{
	static uint8_t data[1 << 20];
	const char *broken;
	struct dirent *de;
	unsigned n = 0;
	char path[512];
	size_t len;
	FILE *fp;
	DIR *d;
	int rc;

	ck_assert_ptr_nonnull(d = opendir(t_data("../corpus/flat")));
	while ((de = readdir(d)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s",
		    t_data("../corpus/flat"), de->d_name);
		ck_assert_ptr_nonnull(fp = fopen(path, "rb"));
		len = fread(data, 1, sizeof(data), fp);
		fclose(fp);
		broken = flat_input_try(data, len, &rc);
		ck_assert_msg(broken == NULL, "%s: %s", path, broken);
		ck_assert_msg((rc == 0) == (strncmp(de->d_name, "ok-", 3) ==
		    0), "%s: rc %d", path, rc);
		n++;
	}
	closedir(d);
	ck_assert_uint_ge(n, 14);
}
END_TEST

START_TEST(random_blocks_are_refused_or_consistent)
{
	unsigned accepted = 0, i, j, n = t_full() ? 200000 : 20000;
	uint8_t *good;
	struct flat f;

	save_part(1);
	flat_make(&f, save_part(0));
	ck_assert_ptr_nonnull(good = malloc(f.nbytes));
	memcpy(good, f.block, f.nbytes);
	for (i = 0; i < n; i++) {
		for (j = (unsigned)t_rand_below(6); j < 7; j++)
			f.block[t_rand_below(f.nbytes)] =
			    (uint8_t)(t_rand() >> t_rand_below(8));
		try_block(&f, &accepted);
		memcpy(f.block, good, f.nbytes);
	}
	ck_assert_uint_gt(accepted, 0);
	free(good);
	flat_free(&f);
}
END_TEST

/* A file of n keys, each a string of len bytes, and of m empty tensors. */
static struct gguf *
open_large(unsigned n, unsigned len, unsigned m)
{
	static const uint64_t ne[] = { 0 };
	struct err e = { .kind = ERR_NONE };
	char path[512], name[32], *text;
	struct gguf_writer w;
	struct gguf *g;
	unsigned i;

	ck_assert_ptr_nonnull(text = malloc(len + 1));
	memset(text, 'x', len);
	text[len] = '\0';
	snprintf(path, sizeof(path), "%s/large.gguf", t_tmpdir());
	gw_open(&w);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "key.%u", i);
		gw_kv_str(&w, name, text);
	}
	for (i = 0; i < m; i++) {
		snprintf(name, sizeof(name), "t.%u", i);
		gw_tensor(&w, name, QUANT_F32, 1, ne, 0);
	}
	gw_save(&w, path);
	gw_close(&w);
	free(text);
	t_ok(gguf_open(path, &g, &e), &e);
	return g;
}

static void
refuse_large(struct gguf *g, const char *text)
{
	struct err e = { .kind = ERR_NONE };
	uint64_t n;

	ck_assert_int_eq(gguf_flat_bytes(g, &n, &e), -ENOTSUP);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_msg(strstr(e.msg, "/large.gguf: the header has ") != NULL &&
	    strstr(e.msg, text) != NULL, "%s", e.msg);
	gguf_close(g);
}

START_TEST(headers_beyond_the_limits_are_refused_when_written)
{
	struct err e = { .kind = ERR_NONE };
	struct gguf *g = open_large(GGUF_FLAT_MAX_KV, 1,
	    GGUF_FLAT_MAX_TENSORS), *view;
	struct flat f = { .g = g };

	t_ok(gguf_flat_bytes(g, &f.nbytes, &e), &e);
	ck_assert_ptr_nonnull(f.block = malloc(f.nbytes));
	gguf_flat_write(g, f.block);
	view = accept(&f);
	gguf_close(view);
	flat_free(&f);
	refuse_large(open_large(GGUF_FLAT_MAX_KV + 1, 1, 0),
	    "65537 keys: at most 65536");
	refuse_large(open_large(1, 1, GGUF_FLAT_MAX_TENSORS + 1),
	    "131073 tensors: at most 131072");
	refuse_large(open_large(33, 1 << 20, 1), "at most 33554432");
	gguf_close(open_large(31, 1 << 20, 1));
}
END_TEST

START_TEST(a_file_that_changes_is_noticed_through_the_view)
{
	const char *path = save_small();
	struct err e = { .kind = ERR_NONE };
	struct flat f;
	struct gguf *g;

	flat_make(&f, path);
	g = accept(&f);
	t_ok(gguf_check_unchanged(g, &e), &e);
	ck_assert_int_eq(truncate(path, 10), 0);
	ck_assert_int_eq(gguf_check_unchanged(g, &e), -ESTALE);
	gguf_close(g);
	flat_free(&f);
}
END_TEST

START_TEST(a_view_cannot_be_written_as_a_file)
{
	struct err e = { .kind = ERR_NONE };
	uint32_t type[T_COUNT];
	struct gguf_out out;
	struct flat f;
	struct gguf *g;
	unsigned i;

	flat_make(&f, save_small());
	g = accept(&f);
	for (i = 0; i < T_COUNT; i++)
		type[i] = g->tensor[i].type;
	t_ok(gguf_out_make(f.g, type, NULL, 0, &out, &e), &e);
	gguf_out_free(&out);
	ck_assert_int_eq(gguf_out_make(g, type, NULL, 0, &out, &e), -ENODATA);
	ck_assert_int_eq(e.kind, ERR_RUN);
	gguf_out_free(&out);
	gguf_close(g);
	flat_free(&f);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		view_of_the_demo_model_says_what_the_file_says,
		view_of_every_valid_header_says_what_it_says,
		view_of_a_model_of_each_family_says_what_the_file_says,
		view_of_a_split_model_says_what_the_files_say,
		block_whose_size_or_counts_are_wrong_is_refused,
		files_of_the_block_that_cannot_be_are_refused,
		keys_of_the_block_that_cannot_be_are_refused,
		two_keys_or_tensors_of_one_name_are_refused,
		tensors_of_the_block_that_cannot_be_are_refused,
		tensor_beyond_the_end_of_its_own_part_is_refused,
		any_changed_byte_is_refused_or_consistent,
		any_changed_number_is_refused_or_consistent,
		stored_blocks_are_accepted_or_refused_by_file_name,
		random_blocks_are_refused_or_consistent,
		headers_beyond_the_limits_are_refused_when_written,
		a_file_that_changes_is_noticed_through_the_view,
		a_view_cannot_be_written_as_a_file
	};

	return t_main("gguf_flat", 60, tests, NITEMS(tests));
}
