/* tests/support/gguf_cases.c - see gguf_cases.h.  One builder for each file;
 * the table at the end has the verdicts. */
#include "gguf_cases.h"

#include <float.h>

static const uint64_t ne_32[] = { 32 };
static const uint64_t ne_64x3[] = { 64, 3 };

static void
nothing(struct gguf_writer *w)
{
	(void)w;
}

static void
version_2(struct gguf_writer *w)
{
	w->version = 2;
	gw_kv_str(w, "general.architecture", "llama");
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
}

/* Every type, alone and in an array of two. */
static void
all_types(struct gguf_writer *w)
{
	static const uint8_t bytes[GGUF_NTYPES] = {
		1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
	};
	static const uint64_t neg = (uint64_t)-2, one = 1;
	static const float f32[2] = { -1.5f, FLT_MAX };
	static const double f64[2] = { -0.25, DBL_MAX };
	const void *v;
	char key[32];
	unsigned t;

	for (t = 0; t < GGUF_NTYPES; t++) {
		if (t == GGUF_STRING || t == GGUF_ARRAY)
			continue;
		v = t == GGUF_F32 ? (const void *)f32 : t == GGUF_F64 ?
		    (const void *)f64 : t == GGUF_BOOL ? &one : &neg;
		snprintf(key, sizeof(key), "one.%s", gguf_type_name(t));
		gw_key(w, key, t);
		gw_bytes(w, v, bytes[t]);
		snprintf(key, sizeof(key), "two.%s", gguf_type_name(t));
		gw_array(w, key, t, 2);
		gw_bytes(w, v, bytes[t]);
		gw_bytes(w, t == GGUF_F32 ? (const void *)&f32[1] :
		    t == GGUF_F64 ? (const void *)&f64[1] : &one, bytes[t]);
	}
	gw_key(w, "one.string", GGUF_STRING);
	gw_u64(w, 3);
	gw_bytes(w, "a\0b", 3);
	gw_array(w, "two.string", GGUF_STRING, 2);
	gw_str(w, "");
	gw_str(w, "\xe2\x96\x81the");
	gw_array(w, "none.u64", GGUF_U64, 0);
	gw_array(w, "none.string", GGUF_STRING, 0);
}

static void
some_tensors(struct gguf_writer *w)
{
	static const uint64_t ne_4[] = { 256, 1, 2, 3 };

	gw_tensor(w, "f32", QUANT_F32, 1, ne_32, 128);
	gw_tensor(w, "q8_0", QUANT_Q8_0, 2, ne_64x3, 204);
	gw_tensor(w, "q6_k", QUANT_Q6_K, 4, ne_4, 6 * 210);
	gw_tensor(w, "of.type.99", 99, 1, ne_32, 1);
}

static void
alignment_256(struct gguf_writer *w)
{
	w->alignment = 256;
	gw_kv_u32(w, "general.alignment", 256);
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
	gw_tensor(w, "b", QUANT_F32, 1, ne_32, 128);
}

/* The directory may list tensors in another order than the data. */
static void
reversed(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, 128);
	gw_tensor_at(w, "b", QUANT_F32, 1, ne_32, 0);
	w->data_bytes = 256;
}

static void
wrong_magic(struct gguf_writer *w)
{
	w->magic[3] = 'X';
}

static void
version_1(struct gguf_writer *w)
{
	w->version = 1;
}

static void
version_4(struct gguf_writer *w)
{
	w->version = 4;
}

static void
big_endian(struct gguf_writer *w)
{
	w->version = 3u << 24;
}

static void
keys_2p63(struct gguf_writer *w)
{
	w->nkv = UINT64_C(1) << 63;
}

static void
keys_2p32(struct gguf_writer *w)
{
	gw_kv_str(w, "general.architecture", "llama");
	w->nkv = UINT64_C(1) << 32;
}

static void
tensors_2p63(struct gguf_writer *w)
{
	w->ntensors = UINT64_C(1) << 63;
}

static void
tensors_2p32(struct gguf_writer *w)
{
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
	w->ntensors = UINT64_C(1) << 32;
}

static void
array_2p61(struct gguf_writer *w)	/* count * 8 wraps to 0 */
{
	gw_array(w, "long", GGUF_F64, UINT64_C(1) << 61);
	gw_u64(w, 0);
}

static void
array_2p32(struct gguf_writer *w)
{
	gw_array(w, "long", GGUF_U8, UINT64_C(1) << 32);
	gw_u64(w, 0);
}

static void
strings_2p60(struct gguf_writer *w)	/* count * sizeof wraps to 0 */
{
	gw_array(w, "long", GGUF_STRING, UINT64_C(1) << 60);
	gw_u64(w, 0);
}

static void
string_2p64(struct gguf_writer *w)	/* length + 1 wraps to 0 */
{
	gw_key(w, "long", GGUF_STRING);
	gw_u64(w, UINT64_MAX);
}

static void
string_in_array(struct gguf_writer *w)
{
	gw_array(w, "strings", GGUF_STRING, 2);
	gw_str(w, "a");
	gw_u64(w, 1 << 20);
}

static void
nested_array(struct gguf_writer *w)
{
	gw_array(w, "nested", GGUF_ARRAY, 1);
	gw_u32(w, GGUF_U8);
	gw_u64(w, 0);
}

/* Arrays of arrays of numbers and strings, one of them empty. */
static void
nested_arrays(struct gguf_writer *w)
{
	gw_array(w, "nested", GGUF_ARRAY, 3);
	gw_u32(w, GGUF_U16);
	gw_u64(w, 2);
	gw_u32(w, 0x20001);
	gw_u32(w, GGUF_STRING);
	gw_u64(w, 2);
	gw_str(w, "a");
	gw_str(w, "");
	gw_u32(w, GGUF_ARRAY);
	gw_u64(w, 1);
	gw_u32(w, GGUF_F64);
	gw_u64(w, 0);
	gw_kv_u32(w, "after", 7);
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
}

static void
nested_17(struct gguf_writer *w)
{
	unsigned i;

	gw_array(w, "nested", GGUF_ARRAY, 1);
	for (i = 0; i < 17; i++) {
		gw_u32(w, i < 16 ? GGUF_ARRAY : GGUF_U8);
		gw_u64(w, 1);
	}
	gw_u8(w, 1);
}

static void
nested_of_13(struct gguf_writer *w)
{
	gw_array(w, "nested", GGUF_ARRAY, 1);
	gw_u32(w, 13);
	gw_u64(w, 0);
}

static void
nested_2p62(struct gguf_writer *w)	/* count * 4 wraps to 0 */
{
	gw_array(w, "nested", GGUF_ARRAY, 1);
	gw_u32(w, GGUF_F32);
	gw_u64(w, UINT64_C(1) << 62);
}

static void
array_of_13(struct gguf_writer *w)
{
	gw_array(w, "unknown", 13, 0);
}

static void
value_13(struct gguf_writer *w)
{
	gw_key(w, "unknown", 13);
	gw_u64(w, 0);
}

static void
bool_2(struct gguf_writer *w)
{
	gw_kv_bool(w, "maybe", 2);
}

static void
bools_2(struct gguf_writer *w)
{
	gw_array(w, "maybe", GGUF_BOOL, 2);
	gw_u8(w, 1);
	gw_u8(w, 2);
}

static void
key_empty(struct gguf_writer *w)
{
	gw_kv_u32(w, "", 1);
}

static void
key_with_nul(struct gguf_writer *w)
{
	gw_u64(w, 3);
	gw_bytes(w, "a\0b", 3);
	gw_u32(w, GGUF_U8);
	gw_u8(w, 0);
	w->nkv++;
}

static void
key_with_escape(struct gguf_writer *w)
{
	gw_kv_u32(w, "general.\033[2J", 1);
}

static void
key_too_long(struct gguf_writer *w)
{
	gw_u64(w, GGUF_MAX_KEY + 1);
	gw_str(w, "...");	/* enough bytes for the smallest key */
	w->nkv++;
}

static void
key_twice(struct gguf_writer *w)
{
	gw_kv_u32(w, "b", 1);
	gw_kv_u32(w, "a", 1);
	gw_kv_str(w, "b", "1");
}

static void
alignment_string(struct gguf_writer *w)
{
	gw_kv_str(w, "general.alignment", "32");
}

static void
alignment_0(struct gguf_writer *w)
{
	gw_kv_u32(w, "general.alignment", 0);
}

static void
alignment_48(struct gguf_writer *w)
{
	gw_kv_u32(w, "general.alignment", 48);
}

static void
alignment_4(struct gguf_writer *w)
{
	gw_kv_u32(w, "general.alignment", 4);
}

static void
alignment_2p21(struct gguf_writer *w)
{
	gw_kv_u32(w, "general.alignment", 1 << 21);
}

static void
tensor_twice(struct gguf_writer *w)
{
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
	gw_tensor(w, "b", QUANT_F32, 1, ne_32, 128);
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
}

static void
tensor_name_65(struct gguf_writer *w)
{
	gw_tensor(w, "12345678901234567890123456789012"
	    "123456789012345678901234567890123", QUANT_F32, 1, ne_32, 128);
}

static void
tensor_name_64(struct gguf_writer *w)
{
	gw_tensor(w, "12345678901234567890123456789012"
	    "12345678901234567890123456789012", QUANT_F32, 1, ne_32, 128);
}

static void
dims_0(struct gguf_writer *w)
{
	gw_tensor(w, "a", QUANT_F32, 0, ne_32, 4);
}

static void
dims_5(struct gguf_writer *w)
{
	static const uint64_t ne[] = { 1, 1, 1, 1, 1 };

	gw_tensor(w, "a", QUANT_F32, 5, ne, 4);
}

static void
dim_of_0(struct gguf_writer *w)
{
	static const uint64_t ne[] = { 32, 0 };

	gw_tensor(w, "a", QUANT_F32, 2, ne, 0);
}

/* Empty tensors: at the offset of another, inside it, past the end. */
static void
empty_tensors(struct gguf_writer *w)
{
	static const uint64_t ne[] = { 0, 7 };

	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, 0);
	gw_tensor_at(w, "b", QUANT_F32, 2, ne, 0);
	gw_tensor_at(w, "c", QUANT_Q4_K, 2, ne, 64);
	gw_tensor_at(w, "d", 99, 1, ne, 1 << 20);
	w->data_bytes = 128;
}

static void
names_in_utf8(struct gguf_writer *w)
{
	gw_kv_u32(w, "na\xc3\xafve", 1);
	gw_tensor(w, "\xe9\x87\x8d.\xf0\x9f\xa6\x99", QUANT_F32, 1, ne_32, 128);
}

static void
name_with_c1(struct gguf_writer *w)
{
	gw_tensor(w, "a\xc2\x9b" "2J", QUANT_F32, 1, ne_32, 128);
}

static void
name_not_utf8(struct gguf_writer *w)
{
	gw_tensor(w, "a\xff", QUANT_F32, 1, ne_32, 128);
}

static void
elements_2p64(struct gguf_writer *w)	/* the count wraps to 0 */
{
	static const uint64_t ne[] = { 32, UINT64_C(1) << 59 };

	gw_tensor(w, "a", QUANT_F32, 2, ne, 128);
}

static void
rows_2p64(struct gguf_writer *w)
{
	static const uint64_t ne[] = {
		1, UINT64_C(1) << 32, UINT64_C(1) << 32
	};

	gw_tensor(w, "a", 99, 3, ne, 128);
}

static void
bytes_2p64(struct gguf_writer *w)	/* the count fits, the bytes do not */
{
	static const uint64_t ne[] = { 32, UINT64_C(1) << 57 };

	gw_tensor(w, "a", QUANT_F32, 2, ne, 128);
}

static void
row_of_33(struct gguf_writer *w)
{
	static const uint64_t ne[] = { 33, 2 };

	gw_tensor(w, "a", QUANT_Q4_0, 2, ne, 36);
}

static void
offset_odd(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, 8);
	w->data_bytes = 256;
}

static void
offset_2p64(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, (uint64_t)-32);
	w->data_bytes = 256;
}

static void
offset_past_end(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, 1 << 20);
	w->data_bytes = 256;
}

static void
unknown_past_end(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", 99, 1, ne_32, 256);
	w->data_bytes = 256;
}

static void
data_short(struct gguf_writer *w)
{
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
	w->data_bytes = 127;
}

static void
overlap(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", QUANT_F32, 1, ne_32, 96);
	gw_tensor_at(w, "b", QUANT_F32, 1, ne_32, 0);
	w->data_bytes = 256;
}

static void
overlap_same(struct gguf_writer *w)
{
	gw_tensor_at(w, "a", 99, 1, ne_32, 32);
	gw_tensor_at(w, "b", QUANT_F32, 1, ne_32, 32);
	w->data_bytes = 256;
}

static void
split_unnamed(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.no", 0);
	gw_kv_u16(w, "split.count", 2);
	gw_kv_i32(w, "split.tensors.count", 0);
}

static void
split_later(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.no", 1);
	gw_kv_u16(w, "split.count", 2);
	gw_kv_i32(w, "split.tensors.count", 0);
}

static void
split_no_beyond(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.no", 2);
	gw_kv_u16(w, "split.count", 2);
}

static void
split_without_no(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.count", 2);
}

static void
split_2000(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.no", 0);
	gw_kv_u16(w, "split.count", 2000);
}

static void
split_negative(struct gguf_writer *w)
{
	gw_kv_i32(w, "split.count", -1);
}

static void
split_of_1(struct gguf_writer *w)
{
	gw_kv_u16(w, "split.count", 1);
	gw_tensor(w, "a", QUANT_F32, 1, ne_32, 128);
}

const struct gguf_case gguf_case[] = {
	{ "ok-nothing", nothing, NULL },
	{ "ok-version-2", version_2, NULL },
	{ "ok-all-types", all_types, NULL },
	{ "ok-some-tensors", some_tensors, NULL },
	{ "ok-alignment-256", alignment_256, NULL },
	{ "ok-reversed", reversed, NULL },
	{ "ok-tensor-name-64", tensor_name_64, NULL },
	{ "ok-split-of-1", split_of_1, NULL },
	{ "ok-nested-array", nested_array, NULL },
	{ "ok-nested-arrays", nested_arrays, NULL },
	{ "ok-dims-0", dims_0, NULL },
	{ "ok-dim-of-0", dim_of_0, NULL },
	{ "ok-empty-tensors", empty_tensors, NULL },
	{ "ok-names-in-utf8", names_in_utf8, NULL },
	{ "bad-magic", wrong_magic, "at byte 0: not a GGUF file" },
	{ "bad-version-1", version_1, "at byte 4: GGUF version 1, only 2" },
	{ "bad-version-4", version_4, "at byte 4: GGUF version 4, only 2" },
	{ "bad-big-endian", big_endian, "at byte 4: big-endian GGUF file "
	    "(version 3)" },
	{ "bad-keys-2p63", keys_2p63, "at byte 24: truncated" },
	{ "bad-keys-2p32", keys_2p32, "truncated: needs 60129542144 bytes at "
	    "offset 24, the file has" },
	{ "bad-tensors-2p63", tensors_2p63, "at byte 24: truncated" },
	{ "bad-tensors-2p32", tensors_2p32, "truncated: needs" },
	{ "bad-array-2p61", array_2p61, "(key \"long\")" },
	{ "bad-array-2p32", array_2p32, "truncated: needs 4294967296 bytes" },
	{ "bad-strings-2p60", strings_2p60, "(key \"long\")" },
	{ "bad-string-2p64", string_2p64, "truncated: needs "
	    "18446744073709551615 bytes" },
	{ "bad-string-in-array", string_in_array, "truncated: needs 1048576 "
	    "bytes" },
	{ "bad-nested-17", nested_17, "at byte 42: arrays nested more than "
	    "16 deep (key \"nested\")" },
	{ "bad-nested-of-13", nested_of_13, "array of unknown value type 13" },
	{ "bad-nested-2p62", nested_2p62, "truncated: needs 4611686018427387904 "
	    "items of at least 4 bytes" },
	{ "bad-array-of-13", array_of_13, "array of unknown value type 13" },
	{ "bad-value-13", value_13, "at byte 39: unknown value type 13" },
	{ "bad-bool-2", bool_2, "bool of value 2: must be 0 or 1" },
	{ "bad-bools-2", bools_2, "bool of value 2: must be 0 or 1" },
	{ "bad-key-empty", key_empty, "at byte 24: key name of 0 bytes" },
	{ "bad-key-with-nul", key_with_nul, "byte 0x00" },
	{ "bad-key-with-escape", key_with_escape, "byte 0x1b" },
	{ "bad-key-too-long", key_too_long, "key name of 65536 bytes: must "
	    "be 1 to 65535" },
	{ "bad-key-twice", key_twice, "at byte 71: duplicate key \"b\"" },
	{ "bad-alignment-string", alignment_string, "\"general.alignment\" is "
	    "of type string, an integer is needed" },
	{ "bad-alignment-0", alignment_0, "general.alignment is 0: must be "
	    "a power of two" },
	{ "bad-alignment-48", alignment_48, "general.alignment is 48" },
	{ "bad-alignment-4", alignment_4, "general.alignment is 4" },
	{ "bad-alignment-2p21", alignment_2p21, "is 2097152: must be a "
	    "power of two from 8 to 1048576" },
	{ "bad-tensor-twice", tensor_twice, "at byte 90: duplicate tensor "
	    "\"a\"" },
	{ "bad-tensor-name-65", tensor_name_65, "tensor name of 65 bytes: "
	    "must be 1 to 64" },
	{ "bad-name-with-c1", name_with_c1, "name with the byte 0xc2" },
	{ "bad-name-not-utf8", name_not_utf8, "name with the byte 0xff" },
	{ "bad-dims-5", dims_5, "5 dimensions: must be at most 4 (tensor "
	    "\"a\")" },
	{ "bad-elements-2p64", elements_2p64, "too many elements" },
	{ "bad-rows-2p64", rows_2p64, "too many elements" },
	{ "bad-bytes-2p64", bytes_2p64, "too many bytes" },
	{ "bad-row-of-33", row_of_33, "rows of 33 elements, Q4_0 needs a "
	    "multiple of 32" },
	{ "bad-offset-odd", offset_odd, "offset 8 is not a multiple of the "
	    "alignment 32" },
	{ "bad-offset-2p64", offset_2p64, "is too large" },
	{ "bad-offset-past-end", offset_past_end, "truncated: needs 128 bytes "
	    "at offset 1048640, the file has 320 (tensor \"a\")" },
	{ "bad-unknown-past-end", unknown_past_end, "truncated: needs 1 "
	    "bytes at offset 320, the file has 320" },
	{ "bad-data-short", data_short, "truncated: needs 128 bytes at offset "
	    "64, the file has 191" },
	{ "bad-overlap", overlap, "at byte 24: its data at offset 192 "
	    "overlaps that of \"b\" (tensor \"a\")" },
	{ "bad-overlap-same", overlap_same, "at byte 24: its data at offset "
	    "128 overlaps that of \"b\"" },
	{ "bad-split-unnamed", split_unnamed, "part 1 of 2 of a split model: "
	    "its name must end in -00001-of-00002.gguf" },
	{ "bad-split-later", split_later, "part 2 of 2 of a split model: give "
	    "the first part" },
	{ "bad-split-no-beyond", split_no_beyond, "split.no is 2 of a "
	    "split.count of 2" },
	{ "bad-split-without-no", split_without_no, "the key split.no is missing" },
	{ "bad-split-2000", split_2000, "must be at most 1024" },
	{ "bad-split-negative", split_negative, "is -1: must be 0 to "
	    "4294967295" }
};

const unsigned gguf_ncases = NITEMS(gguf_case);

const char *
gguf_case_save(const struct gguf_case *c, const char *folder)
{
	static char path[512];
	struct gguf_writer w;

	snprintf(path, sizeof(path), "%s/%s.gguf", folder, c->name);
	gw_open(&w);
	c->build(&w);
	gw_save(&w, path);
	gw_close(&w);
	return path;
}
