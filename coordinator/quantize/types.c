/* coordinator/quantize/types.c - chooses the type of each tensor. */
#include "requant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/guess.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"

/* Tensors whose name contains one of these keep their type: they are small and
 * sensitive, or no operand of a matrix product. */
static const char *const kept[] = {
	"_norm", "ffn_gate_inp", "position_embd", "token_types", "rope_freqs",
	"ssm_conv1d", "attn_rel_b"
};

/* The first type from `type` on that can be encoded; QUANT_NTYPES = none. */
static uint32_t
next_encodable(uint32_t type)
{
	while (type < QUANT_NTYPES && encode[type] == NULL)
		type++;
	return type;
}

#define EACH_ENCODABLE(type)						\
	type = next_encodable(0); type < QUANT_NTYPES;			\
	    type = next_encodable(type + 1)

static void
list_encodable(char *buf, size_t len)
{
	size_t at = 0;
	uint32_t type;

	for (EACH_ENCODABLE(type))
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s",
			    at == 0 ? "" : next_encodable(type + 1) <
			    QUANT_NTYPES ? ", " : " or ",
			    quant_info(type)->name);
}

/* For the name of a mix, such as Q4_K_M, the type that it is made of, else
 * NULL. */
static const char *
find_mix_base(const char *text)
{
	const char *name;
	size_t n;
	uint32_t type;

	for (EACH_ENCODABLE(type)) {
		name = quant_info(type)->name;
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
	uint32_t type;

	for (EACH_ENCODABLE(type)) {
		name = quant_info(type)->name;
		if (strcasecmp(text, name) == 0) {
			*ret = type;
			return 0;
		}
		guess_try(&guess, name);
	}
	if ((name = find_mix_base(text)) != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is a "
		    "mix of types, which is not supported; use %s: one type "
		    "for all matrices but the head", option, text, name);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is not a "
		    "supported output type: did you mean %s?", option, text,
		    guess.best);
	list_encodable(list, sizeof(list));
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is not a "
	    "supported output type; use %s", option, text, list);
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
		fallback = quant_info(wanted)->fallback;
	return quant_row_bytes(fallback, t->ne[0]) != 0 ? fallback :
	    QUANT_F16;
}

static void
add_choice(struct requant_count *n, uint32_t wanted, uint32_t chosen)
{
	n->wanted++;
	if (chosen != wanted) {
		n->fallback++;
		n->fallback_type = chosen;
	}
}

int
requant_types(const struct gguf *g, const struct requant_want *want,
    uint32_t *ret, struct requant_count *ret_count, struct err *reterr)
{
	const char *head = gguf_find_tensor(g, "output.weight") != NULL ?
	    "output.weight" : "token_embd.weight";
	uint32_t head_type = want->head, wanted;
	const struct gguf_tensor *t;
	uint64_t i;

	*ret_count = (struct requant_count){ 0 };
	if (head_type == REQUANT_DEFAULT)
		head_type = want->type == QUANT_Q4_K ||
		    want->type == QUANT_Q5_K ? QUANT_Q6_K : want->type;
	for (i = 0; i < g->ntensors; i++) {
		t = &g->tensor[i];
		if (gguf_elements(t) == 0 || quant_info(t->type) == NULL) {
			ret[i] = t->type;
			continue;
		}
		wanted = strcmp(t->name, head) == 0 ? head_type : want->type;
		ret[i] = is_kept(t) ? t->type : choose_type(t, wanted,
		    want->fallback);
		if (!is_kept(t))
			add_choice(ret_count, wanted, ret[i]);
		if (ret[i] != t->type && dequant[t->type] == NULL)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
			    "tensor \"%s\" has type %s, which cannot be "
			    "decoded", g->file[t->file].path, t->name,
			    quant_info(t->type)->name);
	}
	return 0;
}
