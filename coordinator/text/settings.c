/* coordinator/text/settings.c - reads the keys tokenizer.ggml.* of the GGUF
 * specification, beside the lists of tokens and merges. */
#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/log.h"

#define PREFIX	"tokenizer.ggml."

enum { VALUE_LEN = 32 };

/* Keys with unusable values, "KEY is VALUE, ...", for one note. */
struct odd_keys {
	char text[800];
	size_t len;
	unsigned n;
};

static void
describe_value(const struct gguf_kv *kv, char *out, size_t outlen)
{
	switch (kv->type) {
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
		snprintf(out, outlen, "%" PRIu64, kv->v.u);
		return;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		snprintf(out, outlen, "%" PRId64, kv->v.i);
		return;
	default:
		snprintf(out, outlen, "of type %s", gguf_type_name(kv->type));
	}
}

static void
add_odd_key(struct odd_keys *odd, const struct gguf_kv *kv, const char *value)
{
	size_t room = sizeof(odd->text) - odd->len;
	int n;

	odd->n++;
	n = snprintf(odd->text + odd->len, room, "%s%.80s is %s",
	    odd->len > 0 ? ", " : "", kv->key.data, value);
	if (n > 0 && (size_t)n < room)
		odd->len += (size_t)n;
	else		/* out of room: only counted */
		odd->text[odd->len] = '\0';
}

/* The token that the value names, or NO_TOKEN. */
static int32_t
token_of(const struct vocab *v, const struct gguf_kv *kv)
{
	switch (kv->type) {
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
		return kv->v.u < v->n ? (int32_t)kv->v.u : NO_TOKEN;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		return kv->v.i >= 0 && kv->v.i < (int64_t)v->n ?
		    (int32_t)kv->v.i : NO_TOKEN;
	default:
		return NO_TOKEN;
	}
}

/* Read an id.  Without a usable one it is `def` if that token is of this
 * kind. */
static int32_t
read_id(const struct vocab *v, const struct gguf *g, const char *key,
    uint32_t def, enum token_kind kind)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	int32_t id = kv != NULL ? token_of(v, kv) : NO_TOKEN;

	if (id == NO_TOKEN && def < v->n && vocab_kind(v, def) == kind)
		return (int32_t)def;
	return id;
}

/* Some writers have no type for yes and no, but 0 and 1. */
static int
is_bool(const struct gguf_kv *kv)
{
	switch (kv->type) {
	case GGUF_BOOL:
		return 1;
	case GGUF_U8:
	case GGUF_U16:
	case GGUF_U32:
	case GGUF_U64:
		return kv->v.u <= 1;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		return kv->v.i == 0 || kv->v.i == 1;
	default:
		return 0;
	}
}

static int
read_bool(const struct gguf *g, const char *key, int def,
    struct odd_keys *odd)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	char value[VALUE_LEN];

	if (kv == NULL)
		return def;
	if (is_bool(kv))
		return kv->v.u != 0;
	describe_value(kv, value, sizeof(value));
	add_odd_key(odd, kv, value);
	return def;
}

/* Is it a key whose value is an id?  Those that this program does not use are
 * noted, too: another program may stumble over them. */
static int
is_id_key(const struct gguf_str *key)
{
	static const char suffix[] = "_token_id";
	size_t n = sizeof(suffix) - 1;

	return key->len > sizeof(PREFIX) - 1 + n &&
	    memcmp(key->data, PREFIX, sizeof(PREFIX) - 1) == 0 &&
	    memcmp(key->data + key->len - n, suffix, n) == 0;
}

static void
find_odd_ids(const struct gguf *g, const struct vocab *v,
    struct odd_keys *odd)
{
	char value[VALUE_LEN];
	uint64_t i;

	for (i = 0; i < g->nkv; i++) {
		if (!is_id_key(&g->kv[i].key) ||
		    token_of(v, &g->kv[i]) != NO_TOKEN)
			continue;
		describe_value(&g->kv[i], value, sizeof(value));
		add_odd_key(odd, &g->kv[i], value);
	}
}

/* Read the list of tokens like eos, and note what is none. */
static void
read_listed(const struct gguf *g, const struct vocab *v,
    struct settings *ret, struct odd_keys *odd)
{
	const struct gguf_kv *kv = gguf_find(g, PREFIX "eos_token_ids");
	char value[VALUE_LEN];
	uint64_t i;
	int64_t id;
	int rc, noted = 0;

	if (kv == NULL)
		return;
	if (kv->type != GGUF_ARRAY) {
		describe_value(kv, value, sizeof(value));
		add_odd_key(odd, kv, value);
		return;
	}
	for (i = 0; i < kv->v.a.count; i++) {
		rc = gguf_array_int(kv, i, &id);
		if (rc == 0 && id >= 0 && id < (int64_t)v->n &&
		    ret->nlisted < MAX_LISTED_ENDS) {
			ret->listed[ret->nlisted++] = (int32_t)id;
			continue;
		}
		if (noted)		/* one is enough for the note */
			continue;
		noted = 1;
		if (rc < 0)
			snprintf(value, sizeof(value), "a list of %s",
			    gguf_type_name(kv->v.a.type));
		else if (ret->nlisted == MAX_LISTED_ENDS)
			snprintf(value, sizeof(value), "a list of more than %d",
			    MAX_LISTED_ENDS);
		else
			snprintf(value, sizeof(value), "%" PRId64, id);
		add_odd_key(odd, kv, value);
	}
}

void
settings_read(const struct gguf *g, const struct vocab *v, int is_spm,
    struct settings *ret)
{
	const struct gguf_kv *name = gguf_find(g, "general.name");
	struct odd_keys odd = { .len = 0 };

	*ret = (struct settings){
		/* SentencePiece's usual ids; and for BPE llama.cpp's choice,
		 * the end-of-text token of Falcon's vocabulary. */
		.bos = read_id(v, g, PREFIX "bos_token_id", is_spm ? 1 : 11,
		    TOKEN_CONTROL),
		.eos = read_id(v, g, PREFIX "eos_token_id", is_spm ? 2 : 11,
		    TOKEN_CONTROL),
		.eot = read_id(v, g, PREFIX "eot_token_id", UINT32_MAX,
		    TOKEN_CONTROL),
		.eom = read_id(v, g, PREFIX "eom_token_id", UINT32_MAX,
		    TOKEN_CONTROL),
		.unk = read_id(v, g, PREFIX "unknown_token_id",
		    is_spm ? 0 : UINT32_MAX, TOKEN_UNKNOWN),
		.add_bos = read_bool(g, PREFIX "add_bos_token", -1, &odd),
		.space_prefix = read_bool(g, PREFIX "add_space_prefix", is_spm,
		    &odd),
		/* No key marks these models; llama.cpp tests the name, too. */
		.rstrip = name != NULL && name->type == GGUF_STRING &&
		    (strcasestr(name->v.s.data, "phi-3") != NULL ||
		    strcasestr(name->v.s.data, "phi3") != NULL),
	};
	find_odd_ids(g, v, &odd);
	read_listed(g, v, ret, &odd);
	if (odd.n > 0)
		log_info("note: %s: %s, with a vocabulary of %" PRIu32
		    " tokens: as if %s missing", g->file->path, odd.text, v->n,
		    odd.n > 1 ? "these keys were" : "the key were");
}
