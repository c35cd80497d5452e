/* coordinator/quantize/types.c - which type each tensor of a model gets. */
#include "requant.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/guess.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"

/* What other programs call the models that we make, general.file_type, and
 * what takes the place of a type where rows have no whole blocks of it: for
 * blocks of 256 the type of 32 that is next above, as the field does it. */
static const struct {
	uint32_t type, file_type, fallback;
} made[] = {
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

/* By its name or part of it: small tensors that decide much, or that are no
 * matrix of a product. */
static const char *const kept[] = {
	"_norm", "ffn_gate_inp", "position_embd", "token_types", "rope_freqs",
	"ssm_conv1d", "attn_rel_b"
};

static unsigned
find_made(uint32_t type)
{
	unsigned i;

	for (i = 0; i < NITEMS(made) && made[i].type != type; i++)
		;
	return i;
}

uint32_t
requant_file_type(uint32_t type)
{
	return made[find_made(type)].file_type;
}

static void
list_made(char *buf, size_t len)
{
	size_t at = 0;
	unsigned i;

	for (i = 0; i < NITEMS(made) && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s",
		    i == 0 ? "" : i + 1 < NITEMS(made) ? ", " : " and ",
		    quant_info(made[i].type)->name);
}

/* Q4_K_M and its kin. */
static const char *
mix_of(const char *text)
{
	const char *name;
	size_t n;
	unsigned i;

	for (i = 0; i < NITEMS(made); i++) {
		name = quant_info(made[i].type)->name;
		n = strlen(name);
		if (strncasecmp(text, name, n) == 0 && text[n] == '_' &&
		    strlen(text) == n + 2)
			return name;
	}
	return NULL;
}

int
requant_type_parse(const char *what, const char *text, uint32_t *ret,
    struct err *reterr)
{
	struct guess guess = { .typed = text };
	const char *name;
	char list[160];
	unsigned i;

	for (i = 0; i < NITEMS(made); i++) {
		name = quant_info(made[i].type)->name;
		if (strcasecmp(text, name) == 0) {
			*ret = made[i].type;
			return 0;
		}
		guess_try(&guess, name);
	}
	if ((name = mix_of(text)) != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is a "
		    "mix of types that is not made here: %s is all of one "
		    "type but for the head", what, text, name);
	if (guess.best != NULL)
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is no "
		    "type that can be made: did you mean %s?", what, text,
		    guess.best);
	list_made(list, sizeof(list));
	return err_set(reterr, ERR_USAGE, -EINVAL, "%s: '%.64s' is no type "
	    "that can be made: %s can", what, text, list);
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

/* The first of wanted, its fallback and F16 that has whole blocks in a row. */
static uint32_t
that_fits(const struct gguf_tensor *t, uint32_t wanted, uint32_t fallback)
{
	if (quant_row_bytes(wanted, t->ne[0]) != 0)
		return wanted;
	if (fallback == REQUANT_DEFAULT)
		fallback = made[find_made(wanted)].fallback;
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
			    "tensor \"%s\" is of type %" PRIu32 ", which is "
			    "not known here: it cannot even be copied",
			    g->file[t->file].path, t->name, t->type);
		ret[i] = is_kept(t) ? t->type : that_fits(t,
		    strcmp(t->name, head) == 0 ? head_type : want->type,
		    want->fallback);
		if (ret[i] != t->type && dequant[t->type] == NULL)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
			    "tensor \"%s\" is of type %s, which cannot be "
			    "read here", g->file[t->file].path, t->name,
			    quant_info(t->type)->name);
	}
	return 0;
}
