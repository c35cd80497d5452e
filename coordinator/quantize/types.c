/* coordinator/quantize/types.c - chooses the type of each tensor. */
#include "requant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/guess.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"

/* The types that can be encoded, each with its value of general.file_type, and
 * the fallback for rows that are not whole blocks of it.  For blocks of 256
 * that is the next larger type with blocks of 32, as in llama.cpp. */
static const struct {
	uint32_t type, file_type, fallback;
} encodable[] = {
	{ QUANT_F32, 0, QUANT_F32 },
	{ QUANT_F16, 1, QUANT_F16 },
	{ QUANT_BF16, 32, QUANT_BF16 },
	{ QUANT_Q8_0, 7, QUANT_F16 },
	{ QUANT_Q4_0, 2, QUANT_F16 },
	{ QUANT_Q4_1, 3, QUANT_F16 },
	{ QUANT_Q5_0, 8, QUANT_F16 },
	{ QUANT_Q5_1, 9, QUANT_F16 },
	{ QUANT_IQ4_NL, 25, QUANT_F16 },
	{ QUANT_MXFP4, 38, QUANT_F16 },
	{ QUANT_Q4_K, 14, QUANT_Q5_0 },
	{ QUANT_Q5_K, 16, QUANT_Q5_1 },
	{ QUANT_Q6_K, 18, QUANT_Q8_0 },
};

/* Tensors whose name contains one of these keep their type: they are small and
 * sensitive, or no operand of a matrix product. */
static const char *const kept[] = {
	"_norm", "ffn_gate_inp", "position_embd", "token_types", "rope_freqs",
	"ssm_conv1d", "attn_rel_b"
};

static unsigned
find_encodable(uint32_t type)
{
	unsigned i;

	for (i = 0; i < NITEMS(encodable) && encodable[i].type != type; i++)
		;
	return i;
}

uint32_t
requant_file_type(uint32_t type)
{
	return encodable[find_encodable(type)].file_type;
}

static void
list_encodable(char *buf, size_t len)
{
	size_t at = 0;
	unsigned i;

	for (i = 0; i < NITEMS(encodable) && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s",
		    i == 0 ? "" : i + 1 < NITEMS(encodable) ? ", " : " or ",
		    quant_info(encodable[i].type)->name);
}

/* For the name of a mix, such as Q4_K_M, the type that it is made of, else
 * NULL. */
static const char *
find_mix_base(const char *text)
{
	const char *name;
	size_t n;
	unsigned i;

	for (i = 0; i < NITEMS(encodable); i++) {
		name = quant_info(encodable[i].type)->name;
		n = strlen(name);
		if (strncasecmp(text, name, n) == 0 && text[n] == '_' &&
		    strlen(text) == n + 2)
			return name;
	}
	return NULL;
}

int
requant_type_parse(const char *option, const char *text, uint32_t *ret,
    struct err *reterr)
{
	struct guess guess = { .typed = text };
	const char *name;
	char list[160];
	unsigned i;

	for (i = 0; i < NITEMS(encodable); i++) {
		name = quant_info(encodable[i].type)->name;
		if (strcasecmp(text, name) == 0) {
			*ret = encodable[i].type;
			return 0;
		}
		guess_try(&guess, name);
	}
	if ((name = find_mix_base(text)) != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is a "
		    "mix of types, which is not supported; use %s: one type "
		    "for all matrices but the head", option, text, name);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is no "
		    "type to convert to: did you mean %s?", option, text,
		    guess.best);
	list_encodable(list, sizeof(list));
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is no type "
	    "to convert to; use %s", option, text, list);
}

static int
is_kept(const struct gguf_tensor *t)
{
	size_t len = strlen(t->name);
	unsigned i;

	if (t->ne[1] * t->ne[2] * t->ne[3] == 1 || len < 7 ||
	    strcmp(t->name + len - 7, ".weight") != 0)
		return 1;
	for (i = 0; i < NITEMS(kept); i++)
		if (strstr(t->name, kept[i]) != NULL)
			return 1;
	switch (t->type) {
	case QUANT_I8:
	case QUANT_I16:
	case QUANT_I32:
	case QUANT_I64:
	case QUANT_F64:
		return 1;
	default:
		return 0;
	}
}

/* The first of `wanted`, its fallback and F16 whose blocks divide the row. */
static uint32_t
choose_type(const struct gguf_tensor *t, uint32_t wanted, uint32_t fallback)
{
	if (quant_row_bytes(wanted, t->ne[0]) != 0)
		return wanted;
	if (fallback == REQUANT_DEFAULT)
		fallback = encodable[find_encodable(wanted)].fallback;
	return quant_row_bytes(fallback, t->ne[0]) != 0 ? fallback :
	    QUANT_F16;
}

int
requant_types(const struct gguf *g, const struct requant_want *want,
    uint32_t *ret, struct err *reterr)
{
	const char *head = gguf_find_tensor(g, "output.weight") != NULL ?
	    "output.weight" : "token_embd.weight";
	uint32_t head_type = want->head;
	const struct gguf_tensor *t;
	uint64_t i;

	if (head_type == REQUANT_DEFAULT)
		head_type = want->type == QUANT_Q4_K ||
		    want->type == QUANT_Q5_K ? QUANT_Q6_K : want->type;
	for (i = 0; i < g->ntensors; i++) {
		t = &g->tensor[i];
		if (t->nbytes == 0)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
			    "tensor \"%s\" has the unknown type %" PRIu32 ", "
			    "whose size is unknown: it cannot be copied",
			    g->file[t->file].path, t->name, t->type);
		ret[i] = is_kept(t) ? t->type : choose_type(t,
		    strcmp(t->name, head) == 0 ? head_type : want->type,
		    want->fallback);
		if (ret[i] != t->type && dequant[t->type] == NULL)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
			    "tensor \"%s\" has type %s, which cannot be "
			    "decoded", g->file[t->file].path, t->name,
			    quant_info(t->type)->name);
	}
	return 0;
}
