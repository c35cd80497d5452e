/* tests/tools/mkgguf.c - write a GGUF model of a named shape with random weights, whose
 * activations stay finite and whose logits are about 1 to 10.  Shape, type, options and
 * seed determine every byte. */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <bsd/stdlib.h>

#include "tests/support/big_vocab.h"
#include "tests/support/families.h"
#include "tests/support/gguf_encode.h"
#include "tests/support/gguf_fill.h"
#include "tests/support/gguf_writer.h"

enum { FILE_BUF_BYTES = 1 << 20, ROPE_ORIG_CTX = 8192 };

/* A vocabulary whose size is its own, not the shape's. */
static const struct vocab_kind {
	const char *name;
	uint32_t ntokens;
	void (*write)(struct gguf_writer *w);
} vocab_kinds[] = {
	{ "bpe", BIG_BPE_TOKENS, big_vocab_bpe },
	{ "spm", BIG_SPM_TOKENS, big_vocab_spm }
};

static struct {
	struct shape shape;	/* the named shape, as changed by options */
	uint32_t type;
	const char *out;
	uint64_t seed;
	uint32_t parts;
	int tied, bias;
	const struct vocab_kind *vocab;		/* NULL = small, of the shape */
} opt = { .seed = 1, .parts = 1 };

struct tensor {
	char name[GGUF_MAX_NAME + 1];
	const struct tensor_def *def;
	uint64_t ne[3];
	uint32_t ndims, type;
	uint64_t nelem, nbytes;
	uint32_t part;
};

static int
wanted(const struct tensor_def *def)
{
	switch (def->wanted) {
	case WITH_HEAD:
		return !opt.tied;
	case WITH_BIAS:
		return opt.bias;
	case WITH_FACTORS:
		return opt.shape.rope_factor > 0;
	case ALWAYS:
		break;
	}
	return 1;
}

/* mkgguf can write tensors of this type. */
static int
is_writable(uint32_t type)
{
	static const float zeros[ENCODE_MAX_BLOCK];
	uint8_t block[ENCODE_MAX_BLOCK * 4];

	return type == QUANT_F32 || type == QUANT_F16 || type == QUANT_BF16 ||
	    encode_block(type, block, zeros);
}

static void NORETURN
usage(void)
{
	unsigned i;

	fprintf(stderr, "usage: mkgguf SHAPE TYPE OUT.gguf [--layers N] "
	    "[--ctx N] [--seed N] [--tied] [--bias] [--split N] "
	    "[--big-vocab bpe | spm]\nshapes:");
	for (i = 0; i < nshapes; i++)
		fprintf(stderr, " %s", shapes[i].name);
	fprintf(stderr, "\ntypes:");
	for (i = 0; i < QUANT_NTYPES; i++)
		if (is_writable(i))
			fprintf(stderr, " %s", quant_info(i)->name);
	fprintf(stderr, "\n");
	exit(2);
}

static uint64_t
number(const char *text, uint64_t lo, uint64_t hi)
{
	const char *why;
	long long n = strtonum(text, (long long)lo, (long long)hi, &why);

	if (why != NULL)
		errx(2, "%s is %s: %" PRIu64 " to %" PRIu64 " is allowed",
		    text, why, lo, hi);
	return (uint64_t)n;
}

static const struct vocab_kind *
vocab_kind_of(const char *name)
{
	unsigned i;

	for (i = 0; i < NITEMS(vocab_kinds); i++)
		if (strcmp(name, vocab_kinds[i].name) == 0)
			return &vocab_kinds[i];
	usage();
}

static void
parse_options(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "layers", required_argument, NULL, 'l' },
		{ "ctx", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "split", required_argument, NULL, 'n' },
		{ "tied", no_argument, NULL, 't' },
		{ "bias", no_argument, NULL, 'b' },
		{ "big-vocab", required_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 }
	};
	uint32_t layers = 0, ctx = 0;
	unsigned i, t;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 'l': layers = (uint32_t)number(optarg, 1, 1000); break;
		case 'c': ctx = (uint32_t)number(optarg, 1, 1 << 24); break;
		case 's': opt.seed = number(optarg, 0, INT64_MAX); break;
		case 'n':
			opt.parts = (uint32_t)number(optarg, 1,
			    GGUF_MAX_FILES);
			break;
		case 't': opt.tied = 1; break;
		case 'b': opt.bias = 1; break;
		case 'v': opt.vocab = vocab_kind_of(optarg); break;
		default: usage();
		}
	if (argc - optind != 3)
		usage();
	for (i = 0; i < nshapes; i++)
		if (strcmp(argv[optind], shapes[i].name) == 0)
			break;
	for (t = 0; t < QUANT_NTYPES; t++)
		if (is_writable(t) && strcasecmp(argv[optind + 1],
		    quant_info(t)->name) == 0)
			break;
	if (i == nshapes || t == QUANT_NTYPES)
		usage();
	opt.shape = shapes[i];
	opt.type = t;
	opt.out = argv[optind + 2];
	if (layers > 0)
		opt.shape.layers = layers;
	if (ctx > 0)
		opt.shape.ctx = ctx;
	if (opt.vocab != NULL)
		opt.shape.vocab = opt.vocab->ntokens;
}

/* A vocabulary as SentencePiece makes it: three control tokens, a token for each byte,
 * then pieces in descending order of score. */
static void
write_vocab(struct gguf_writer *w)
{
	enum { NCONTROL = 3, NBYTES = 256, NORMAL = 1, UNKNOWN = 2,
	    CONTROL = 3, BYTE = 6 };
	static const char *const control[] = { "<unk>", "<s>", "</s>" };
	uint32_t n = opt.shape.vocab, i;
	char text[32];
	float score;

	gw_kv_str(w, "tokenizer.ggml.model", "llama");
	gw_kv_str(w, "tokenizer.ggml.pre", "default");
	gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, n);
	for (i = 0; i < n; i++) {
		if (i < NCONTROL)
			snprintf(text, sizeof(text), "%s", control[i]);
		else if (i < NCONTROL + NBYTES)
			snprintf(text, sizeof(text), "<0x%02X>", i - NCONTROL);
		else	/* U+2581 stands for a space */
			snprintf(text, sizeof(text), "\xe2\x96\x81w%u",
			    i - NCONTROL - NBYTES);
		gw_str(w, text);
	}
	gw_array(w, "tokenizer.ggml.scores", GGUF_F32, n);
	for (i = 0; i < n; i++) {
		score = i < NCONTROL + NBYTES ? 0.0f :
		    -(float)(i - NCONTROL - NBYTES);
		gw_bytes(w, &score, sizeof(score));
	}
	gw_array(w, "tokenizer.ggml.token_type", GGUF_I32, n);
	for (i = 0; i < n; i++)
		gw_u32(w, i == 0 ? UNKNOWN : i < NCONTROL ? CONTROL :
		    i < NCONTROL + NBYTES ? BYTE : NORMAL);
	gw_kv_u32(w, "tokenizer.ggml.bos_token_id", 1);
	gw_kv_u32(w, "tokenizer.ggml.eos_token_id", 2);
	gw_kv_u32(w, "tokenizer.ggml.unknown_token_id", 0);
	gw_kv_bool(w, "tokenizer.ggml.add_bos_token", 1);
	gw_kv_bool(w, "tokenizer.ggml.add_space_prefix", 1);
}

/* Keys that only some families have. */
static void
write_family_keys(struct gguf_writer *w)
{
	const struct shape *s = &opt.shape;
	const struct {
		const char *name;
		uint32_t value;
		int wanted;
	} num[] = {
		{ "attention.key_length", s->head_dim,
		    s->head_dim * s->heads != s->width },
		{ VALUE_LENGTH, s->head_dim,
		    s->head_dim * s->heads != s->width },
		{ "expert_count", s->experts, s->experts > 0 },
		{ "expert_used_count", s->experts_used, s->experts > 0 },
		{ "expert_feed_forward_length", s->expert_ffn,
		    s->experts > 0 }
	};
	const struct extra_key *k;
	char key[96];
	unsigned i;

	for (i = 0; i < NITEMS(num); i++) {
		snprintf(key, sizeof(key), "%s.%s", s->arch, num[i].name);
		if (num[i].wanted)
			gw_kv_u32(w, key, num[i].value);
	}
	for (k = s->keys; k != NULL && k->name != NULL; k++) {
		snprintf(key, sizeof(key), "%s.%s", s->arch, k->name);
		if (k->type == GGUF_U32)
			gw_kv_u32(w, key, (uint32_t)k->value);
		else if (k->type == GGUF_F32)
			gw_kv_f32(w, key, (float)k->value);
		else if (k->type == GGUF_BOOL)
			gw_kv_bool(w, key, k->value != 0);
		else
			gw_kv_str(w, key, k->text);
	}
}

static void
write_metadata(struct gguf_writer *w)
{
	const struct shape *s = &opt.shape;
	const struct {
		const char *name;
		uint32_t value;
	} num[] = {
		{ "block_count", s->layers },
		{ "context_length", s->ctx },
		{ "embedding_length", s->width },
		{ "feed_forward_length", s->ffn },
		{ "attention.head_count", s->heads },
		{ "attention.head_count_kv", s->kv_heads },
		{ "rope.dimension_count", s->head_dim },
		{ "vocab_size", s->vocab }
	};
	char key[96];
	unsigned i;

	gw_kv_str(w, "general.architecture", s->arch);
	gw_kv_str(w, "general.name", s->title);
	gw_kv_u32(w, "general.quantization_version", 2);
	gw_kv_u32(w, "general.file_type", quant_info(opt.type)->file_type);
	for (i = 0; i < NITEMS(num); i++) {
		snprintf(key, sizeof(key), "%s.%s", s->arch, num[i].name);
		gw_kv_u32(w, key, num[i].value);
	}
	snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon",
	    s->arch);
	gw_kv_f32(w, key, 1e-5f);
	snprintf(key, sizeof(key), "%s.rope.freq_base", s->arch);
	gw_kv_f32(w, key, s->rope_base);
	write_family_keys(w);
	if (opt.vocab != NULL)
		opt.vocab->write(w);
	else
		write_vocab(w);
}

static uint32_t
v_dim(void)
{
	const struct extra_key *k;

	for (k = opt.shape.keys; k != NULL && k->name != NULL; k++)
		if (strcmp(k->name, VALUE_LENGTH) == 0)
			return (uint32_t)k->value;
	return opt.shape.head_dim;
}

static uint64_t
dim_size(enum dim d)
{
	const struct shape *s = &opt.shape;
	const uint64_t size[D_NDIMS] = {
		[D_NONE] = 1, [D_EMBD] = s->width,
		[D_Q] = s->heads * s->head_dim,
		[D_K] = s->kv_heads * s->head_dim,
		[D_V] = s->kv_heads * v_dim(), [D_O] = s->heads * v_dim(),
		[D_QKV] = (s->heads + s->kv_heads) * s->head_dim +
		    s->kv_heads * v_dim(),
		[D_FFN] = s->ffn, [D_GATE_UP] = 2 * s->ffn,
		[D_VOCAB] = s->vocab, [D_ROPE] = s->head_dim / 2,
		[D_HEAD] = s->head_dim, [D_HEADS] = s->heads,
		[D_EXPERTS] = s->experts, [D_EXPERT_FFN] = s->expert_ffn
	};

	return size[d];
}

/* The type of a tensor: the one asked for, or F32 for small tensors.  In a model with
 * experts MXFP4 is for the experts only; the other tensors get the types that such
 * models often have. */
static uint32_t
type_of(enum content c)
{
	uint32_t type = opt.type;

	switch (c) {
	case EXPERTS:
	case EXPERTS_IN:
		return type;
	case MATRIX:
	case MATRIX_IN:
		return type == QUANT_MXFP4 && opt.shape.experts > 0 ?
		    QUANT_Q4_0 : type;
	case EMBEDDING:
	case HEAD:
		return type == QUANT_MXFP4 && opt.shape.experts > 0 ?
		    QUANT_Q8_0 : type;
	default:
		return QUANT_F32;
	}
}

static void
make_tensor(const struct tensor_def *def, uint32_t layer, struct tensor *t)
{
	t->def = def;
	if (def->place == IN_LAYER)
		snprintf(t->name, sizeof(t->name), "blk.%" PRIu32 ".%s",
		    layer, def->name);
	else
		snprintf(t->name, sizeof(t->name), "%s", def->name);
	t->ne[0] = dim_size(def->in);
	t->ne[1] = dim_size(def->out);
	t->ne[2] = dim_size(def->mats);
	t->ndims = def->out == D_NONE ? 1 : def->mats == D_NONE ? 2 : 3;
	t->type = type_of(def->content);
	t->nelem = t->ne[0] * t->ne[1] * t->ne[2];
	t->nbytes = quant_row_bytes(t->type, t->ne[0]) * t->ne[1] * t->ne[2];
	if (t->nbytes == 0)
		errx(2, "%s: rows of %" PRIu64 " are not blocks of %" PRIu32
		    " that %s needs: take another shape", t->name, t->ne[0],
		    quant_info(t->type)->block, quant_info(t->type)->name);
}

/* All tensors in file order, split into parts of about the same size. */
static struct tensor *
make_tensors(uint32_t *ret_count)
{
	const struct tensor_def *def;
	struct tensor *t = NULL;
	uint64_t total = 0, before = 0;
	uint32_t n = 0, i, place, layer, nlayers;

	for (place = 0; place < NPLACES; place++) {
		nlayers = place == IN_LAYER ? opt.shape.layers : 1;
		for (layer = 0; layer < nlayers; layer++)
			for (def = opt.shape.tensors; def->name; def++) {
				if (def->place != place ||
				    !wanted(def))
					continue;
				t = reallocarray(t, n + 1, sizeof(*t));
				if (t == NULL)
					err(1, "tensors");
				make_tensor(def, layer, &t[n]);
				total += t[n++].nbytes;
			}
	}
	for (i = 0; i < n; i++) {
		t[i].part = (uint32_t)(before * opt.parts / total);
		before += t[i].nbytes;
	}
	*ret_count = n;
	return t;
}

static void
write_tensor(FILE *fp, const struct tensor *t, uint32_t index)
{
	const struct shape *s = &opt.shape;
	/* The generator is a counter, so tensors need seeds that are far apart. */
	uint64_t seed = (opt.seed + 1) * UINT64_C(0xd1342543de82ef95) +
	    ((uint64_t)index << 40);
	float std = t->def->gain / sqrtf((float)t->ne[0]);
	static const char zeros[32];

	switch (t->def->content) {
	case MATRIX_IN:
	case EXPERTS_IN:
		std /= sqrtf(2.0f * (float)s->layers);
		/* fall through */
	case MATRIX:
	case EMBEDDING:
	case HEAD:
	case EXPERTS:
	case ROUTER:
		fill_weights(fp, t->type, t->nelem, 0, std, seed);
		break;
	case NORM:
		fill_weights(fp, t->type, t->nelem, 1.0f, 0.1f, seed);
		break;
	case BIAS:
		fill_weights(fp, t->type, t->nelem, 0, 0.1f, seed);
		break;
	case SINKS:
		fill_weights(fp, t->type, t->nelem, 0, 1, seed);
		break;
	case LONG_FACTORS:
		fill_weights(fp, t->type, t->nelem, 2.0f, 0.3f, seed);
		break;
	case ROPE_FACTORS:
		fill_rope_factors(fp, (unsigned)t->nelem, s->rope_base,
		    s->rope_factor, ROPE_ORIG_CTX);
		break;
	}
	fwrite(zeros, 1, ALIGN_UP(t->nbytes, 32) - t->nbytes, fp);
}

static void
write_part(const struct tensor *t, uint32_t count, uint32_t part,
    const char *path)
{
	struct gguf_writer w;
	uint64_t nbytes;
	uint32_t i;
	FILE *fp;

	gw_open(&w);
	if (part == 0)
		write_metadata(&w);
	if (opt.parts > 1) {
		gw_kv_u16(&w, "split.no", (uint16_t)part);
		gw_kv_u16(&w, "split.count", (uint16_t)opt.parts);
		gw_kv_i32(&w, "split.tensors.count", (int32_t)count);
	}
	for (i = 0; i < count; i++)
		if (t[i].part == part)
			gw_tensor(&w, t[i].name, t[i].type, t[i].ndims,
			    t[i].ne, t[i].nbytes);
	gw_finish(&w);

	if ((fp = fopen(path, "wb")) == NULL)
		err(1, "%s", path);
	setvbuf(fp, NULL, _IOFBF, FILE_BUF_BYTES);
	fwrite(w.buf, 1, w.len, fp);
	for (i = 0; i < count; i++)
		if (t[i].part == part)
			write_tensor(fp, &t[i], i);
	nbytes = (uint64_t)ftello(fp);
	if (ferror(fp) || fclose(fp) != 0)
		err(1, "%s", path);
	gw_close(&w);
	printf("%s %" PRIu64 "\n", path, nbytes);
}

int
main(int argc, char **argv)
{
	struct tensor *t;
	uint32_t count, part;
	char *path;
	size_t stem;

	parse_options(argc, argv);
	t = make_tensors(&count);
	stem = strlen(opt.out);
	if (stem > 5 && strcmp(opt.out + stem - 5, ".gguf") == 0)
		stem -= 5;
	for (part = 0; part < opt.parts; part++) {
		if ((opt.parts == 1 ? asprintf(&path, "%s", opt.out) :
		    asprintf(&path, "%.*s-%05" PRIu32 "-of-%05" PRIu32
		    ".gguf", (int)stem, opt.out, part + 1, opt.parts)) < 0)
			err(1, "%s", opt.out);
		write_part(t, count, part, path);
		free(path);
	}
	free(t);
	return 0;
}
