/* tests/support/reference.c - see reference.h.  layers/families/ names the
 * sources of the formulas. */
#include "reference.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weights.h"

struct ref {
	const struct gguf *g;
	const char *arch;
	int layer;
	uint32_t n, ctx;		/* tokens */
	uint32_t embd, heads, kv_heads, dim, v_dim;
	double eps;
};

/* --- the file --- */

static double
get_number(const struct ref *m, const char *key, double absent)
{
	char name[128];
	const struct gguf_kv *kv;

	snprintf(name, sizeof(name), "%s.%s", m->arch, key);
	if ((kv = gguf_find(m->g, name)) == NULL)
		return absent;
	return kv->type == GGUF_F32 ? kv->v.f : (double)kv->v.u;
}

static int
is_arch(const struct ref *m, const char *arch)
{
	return strcmp(m->arch, arch) == 0;
}

static int
is_gemma(const struct ref *m)
{
	return is_arch(m, "gemma2") || is_arch(m, "gemma3");
}

/* All weights of a tensor of this layer or of the model; NULL if the tensor is
 * missing.  The caller frees them. */
static double *
load_weights(const struct ref *m, const char *name, int of_layer)
{
	const struct gguf_tensor *t;
	char full[GGUF_MAX_NAME + 1];
	uint64_t i, n, row_bytes;
	uint8_t *raw;
	double *w;

	if (of_layer)
		snprintf(full, sizeof(full), "blk.%d.%s", m->layer, name);
	else
		snprintf(full, sizeof(full), "%s", name);
	if ((t = gguf_find_tensor(m->g, full)) == NULL)
		return NULL;
	n = t->ne[0] * t->ne[1] * t->ne[2];
	row_bytes = quant_row_bytes(t->type, t->ne[0]);
	raw = malloc(t->nbytes);
	w = malloc(n * sizeof(*w));
	ck_assert_int_eq(pread(m->g->file[0].fd, raw, t->nbytes,
	    (off_t)t->offset), (ssize_t)t->nbytes);
	for (i = 0; i < n; i++)
		w[i] = weight_at(t->type, raw + i / t->ne[0] * row_bytes,
		    i % t->ne[0], NULL);
	free(raw);
	return w;
}

/* --- linear algebra, one vector at a time --- */

/* y (n) = W (n x k) x + bias */
static void
matvec(double *y, const double *w, const double *bias, const double *x,
    uint32_t n, uint32_t k)
{
	uint32_t i, j;

	for (i = 0; i < n; i++) {
		y[i] = bias != NULL ? bias[i] : 0;
		for (j = 0; j < k; j++)
			y[i] += w[(size_t)i * k + j] * x[j];
	}
}

/* matvec() with a named tensor and its bias, for all tokens: x (m->n x k). */
static double *
apply_linear(const struct ref *m, const char *name, const double *x, uint32_t n,
    uint32_t k)
{
	char of[64];
	double *w, *b, *y = malloc((size_t)m->n * n * sizeof(*y));
	uint32_t i;

	snprintf(of, sizeof(of), "%s.weight", name);
	w = load_weights(m, of, 1);
	ck_assert_msg(w != NULL, "no %s", of);
	snprintf(of, sizeof(of), "%s.bias", name);
	b = load_weights(m, of, 1);
	for (i = 0; i < m->n; i++)
		matvec(y + (size_t)i * n, w, b, x + (size_t)i * k, n, k);
	free(w);
	free(b);
	return y;
}

static void
normalize(double *x, const double *w, uint32_t k, double eps)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < k; i++)
		sum += x[i] * x[i];
	for (i = 0; i < k; i++)
		x[i] *= w[i] / sqrt(sum / k + eps);
}

/* Returns a normalized copy of count vectors of k elements; a plain copy if the
 * family has no such norm. */
static double *
copy_normalized(const struct ref *m, const char *name, const double *x,
    uint64_t count, uint32_t k, int of_layer)
{
	double *y = malloc(count * k * sizeof(*y));
	double *w = load_weights(m, name, of_layer);
	uint64_t i;

	memcpy(y, x, count * k * sizeof(*y));
	for (i = 0; i < count && w != NULL; i++)
		normalize(y + i * k, w, k, m->eps);
	free(w);
	return y;
}

static void
add_vector(double *x, const double *y, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] += y[i];
}

/* --- rotary embedding --- */

/* Is this layer's attention limited to a sliding window? */
static int
is_local(const struct ref *m)
{
	if (get_number(m, "attention.sliding_window", 0) == 0)
		return 0;
	if (is_arch(m, "gemma3"))
		return m->layer % 6 != 5;
	if (is_arch(m, "gemma2") || is_arch(m, "gpt-oss"))
		return m->layer % 2 == 0;
	return 1;
}

/* YaRN's ramp: share of interpolation of dimension pair i. */
static double
interpolated(const struct ref *m, double base, uint32_t i)
{
	double orig = get_number(m, "rope.scaling.original_context_length", 0);
	double lo = m->dim * log(orig / (32 * 2 * M_PI)) / (2 * log(base));
	double hi = m->dim * log(orig / (2 * M_PI)) / (2 * log(base));

	lo = fmax(floor(lo), 0);
	hi = fmin(ceil(hi), m->dim - 1);
	return i < lo ? 0 : i > hi ? 1 : (i - lo) / (hi - lo);
}

/* Angle of pair i from one position to the next, in radians; *ret_by is the
 * factor of cosine and sine. */
static double
frequency(const struct ref *m, uint32_t i, double *ret_by)
{
	double base = get_number(m, "rope.freq_base", 10000), f, s, r, *w;
	double factor = get_number(m, "rope.scaling.factor", 1);

	*ret_by = get_number(m, "rope.scaling.attn_factor", 1);
	if (is_arch(m, "gemma3") && is_local(m))
		return pow(10000, -2.0 * i / m->dim);
	f = pow(base, -2.0 * i / m->dim);
	s = f / factor;
	if (is_arch(m, "gpt-oss")) {
		*ret_by *= 0.1 * log(factor) + 1;
		r = interpolated(m, base, i);
		s = r * s + (1 - r) * f;
	}
	if (is_arch(m, "phi3"))
		w = load_weights(m, m->ctx > get_number(m,
		    "rope.scaling.original_context_length", 0) ?
		    "rope_factors_long.weight" : "rope_factors_short.weight",
		    0);
	else			/* Llama 3.1 and later */
		w = load_weights(m, "rope_freqs.weight", 0);
	if (w != NULL)
		s /= w[i];
	free(w);
	return s;
}

/* x (m->n x count x dim), in place */
static void
rotate_heads(const struct ref *m, double *x, uint32_t count)
{
	int halves = !is_arch(m, "llama");
	uint32_t i, t, h, a, b;
	double f, by, c, s, *v, u;

	for (i = 0; i < m->dim / 2; i++) {
		f = frequency(m, i, &by);
		a = halves ? i : 2 * i;
		b = halves ? i + m->dim / 2 : 2 * i + 1;
		for (t = 0; t < m->n; t++) {
			c = by * cos(t * f);
			s = by * sin(t * f);
			for (h = 0; h < count; h++) {
				v = x + ((size_t)t * count + h) * m->dim;
				u = v[a];
				v[a] = u * c - v[b] * s;
				v[b] = u * s + v[b] * c;
			}
		}
	}
}

/* --- attention --- */

/* Attention of one query of token t; out (v_dim) */
static void
attend_query(const struct ref *m, const double *q, const double *k,
    const double *v, uint32_t t, uint32_t head, const double *sinks,
    double *out)
{
	double cap = get_number(m, "attn_logit_softcapping", 0), score[512];
	double max = sinks != NULL ? sinks[head] : -INFINITY, sum;
	uint32_t window = (uint32_t)get_number(m, "attention.sliding_window",
	    0);
	uint32_t j, d, first = 0, kv = head / (m->heads / m->kv_heads);
	size_t step = (size_t)m->kv_heads * m->dim;
	size_t v_step = (size_t)m->kv_heads * m->v_dim;

	if (is_local(m) && t >= window)
		first = t - window + 1;
	for (j = first; j <= t; j++) {
		for (score[j] = 0, d = 0; d < m->dim; d++)
			score[j] += q[d] * k[j * step + kv * m->dim + d];
		score[j] /= sqrt(m->dim);
		if (cap > 0)
			score[j] = cap * tanh(score[j] / cap);
		max = fmax(max, score[j]);
	}
	sum = sinks != NULL ? exp(sinks[head] - max) : 0;
	for (j = first; j <= t; j++)
		sum += exp(score[j] - max);
	for (d = 0; d < m->v_dim; d++)
		for (out[d] = 0, j = first; j <= t; j++)
			out[d] += exp(score[j] - max) / sum *
			    v[j * v_step + kv * m->v_dim + d];
}

/* Copy columns [from, from + n) of rows of `of` columns. */
static double *
copy_columns(const struct ref *m, const double *x, uint32_t of, uint32_t from,
    uint32_t n)
{
	double *y = malloc((size_t)m->n * n * sizeof(*y));
	uint32_t t;

	for (t = 0; t < m->n; t++)
		memcpy(y + (size_t)t * n, x + (size_t)t * of + from,
		    n * sizeof(*y));
	return y;
}

static double *
project_heads(const struct ref *m, const char *name, const char *norm_name,
    const double *h, uint32_t from, uint32_t count)
{
	uint32_t n = count * (norm_name != NULL ? m->dim : m->v_dim);
	uint32_t all = (m->heads + m->kv_heads) * m->dim +
	    m->kv_heads * m->v_dim;
	double *x, *y;

	if (is_arch(m, "phi3")) {
		y = apply_linear(m, "attn_qkv", h, all, m->embd);
		x = copy_columns(m, y, all, from, n);
		free(y);
	} else {
		x = apply_linear(m, name, h, n, m->embd);
	}
	if (norm_name == NULL)
		return x;
	y = copy_normalized(m, norm_name, x, (uint64_t)m->n * count, m->dim, 1);
	free(x);
	rotate_heads(m, y, count);
	return y;
}

static double *
attention(const struct ref *m, const double *h)
{
	uint32_t nq = m->heads * m->dim, nk = m->kv_heads * m->dim, t, i;
	uint32_t na = m->heads * m->v_dim;
	double *q = project_heads(m, "attn_q", "attn_q_norm.weight", h, 0,
	    m->heads);
	double *k = project_heads(m, "attn_k", "attn_k_norm.weight", h, nq,
	    m->kv_heads);
	double *v = project_heads(m, "attn_v", NULL, h, nq + nk, m->kv_heads);
	double *sinks = load_weights(m, "attn_sinks.weight", 1), *y;
	double *a = malloc((size_t)m->n * na * sizeof(*a));

	for (t = 0; t < m->n; t++)
		for (i = 0; i < m->heads; i++)
			attend_query(m, q + (size_t)t * nq + i * m->dim, k, v,
			    t, i, sinks, a + (size_t)t * na + i * m->v_dim);
	y = apply_linear(m, "attn_output", a, m->embd, na);
	free(q);
	free(k);
	free(v);
	free(a);
	free(sinks);
	return y;
}

/* --- feed-forward --- */

static double
activation(const struct ref *m, double g, double u)
{
	if (is_gemma(m))
		return g / 2 * (1 + tanh(sqrt(2 / M_PI) *
		    (g + 0.044715 * g * g * g))) * u;
	if (is_arch(m, "gpt-oss")) {
		g = fmin(g, 7);
		u = fmin(fmax(u, -7), 7);
		return g / (1 + exp(-1.702 * g)) * (u + 1);
	}
	return g / (1 + exp(-g)) * u;
}

static double *
feed_forward(const struct ref *m, const double *h)
{
	uint32_t ff = (uint32_t)get_number(m, "feed_forward_length", 0), t, i;
	double *gate, *up, *y;

	if (is_arch(m, "phi3")) {
		y = apply_linear(m, "ffn_up", h, 2 * ff, m->embd);
		gate = copy_columns(m, y, 2 * ff, 0, ff);
		up = copy_columns(m, y, 2 * ff, ff, ff);
		free(y);
	} else {
		gate = apply_linear(m, "ffn_gate", h, ff, m->embd);
		up = apply_linear(m, "ffn_up", h, ff, m->embd);
	}
	for (t = 0; t < m->n; t++)
		for (i = 0; i < ff; i++)
			gate[(size_t)t * ff + i] = activation(m,
			    gate[(size_t)t * ff + i], up[(size_t)t * ff + i]);
	y = apply_linear(m, "ffn_down", gate, m->embd, ff);
	free(gate);
	free(up);
	return y;
}

/* Replace the router's output for one token by the weights of all n experts; 0
 * for those not chosen. */
static void
route_token(const struct ref *m, double *w, uint32_t n, uint32_t used)
{
	double sum = 0, chosen = 0, max = -INFINITY;
	uint32_t i, j, better;
	double p[64];

	for (i = 0; i < n; i++)
		max = fmax(max, w[i]);
	for (i = 0; i < n; i++)
		sum += exp(w[i] - max);
	for (i = 0; i < n; i++) {
		for (better = 0, j = 0; j < n; j++)
			better += w[j] > w[i];
		p[i] = better < used ? exp(w[i] - max) / sum : 0;
		chosen += p[i];
	}
	for (i = 0; i < n; i++)
		w[i] = p[i] / (get_number(m, "expert_weights_norm", 1) != 0 ?
		    chosen : 1) * get_number(m, "expert_weights_scale", 1);
}

/* The matrices and biases of all experts of a layer. */
struct bank {
	double *w, *bias;
	uint32_t n, k;
};

/* Join one tensor for each expert into one for all. */
static double *
stack_experts(const struct ref *m, const char *name, uint32_t nmats, size_t n)
{
	double *all = malloc(nmats * n * sizeof(*all)), *one;
	char of[64];
	uint32_t i;

	for (i = 0; i < nmats; i++) {
		snprintf(of, sizeof(of), "%s.%u.weight", name, i);
		one = load_weights(m, of, 1);
		ck_assert_ptr_nonnull(one);
		memcpy(all + i * n, one, n * sizeof(*one));
		free(one);
	}
	return all;
}

static struct bank
load_bank(const struct ref *m, const char *name, uint32_t n, uint32_t k)
{
	struct bank b = { .n = n, .k = k };
	char of[64];

	snprintf(of, sizeof(of), "%s_exps.weight", name);
	b.w = load_weights(m, of, 1);
	if (b.w == NULL)
		b.w = stack_experts(m, name,
		    (uint32_t)get_number(m, "expert_count", 0),
		    (size_t)n * k);
	snprintf(of, sizeof(of), "%s_exps.bias", name);
	b.bias = load_weights(m, of, 1);
	return b;
}

static void
apply_expert(const struct bank *b, uint32_t e, const double *x, double *y)
{
	matvec(y, b->w + (size_t)e * b->n * b->k, b->bias != NULL ?
	    b->bias + (size_t)e * b->n : NULL, x, b->n, b->k);
}

static double *
mixture_of_experts(const struct ref *m, const double *h)
{
	uint32_t n = (uint32_t)get_number(m, "expert_count", 0), t, e, i;
	uint32_t used = (uint32_t)get_number(m, "expert_used_count", 0);
	uint32_t ff = (uint32_t)get_number(m, "expert_feed_forward_length",
	    get_number(m, "feed_forward_length", 0));
	double *w = apply_linear(m, "ffn_gate_inp", h, n, m->embd);
	double *y = calloc((size_t)m->n * m->embd, sizeof(*y));
	double g[512], u[512], out[512];
	struct bank b[3] = { load_bank(m, "ffn_gate", ff, m->embd),
	    load_bank(m, "ffn_up", ff, m->embd),
	    load_bank(m, "ffn_down", m->embd, ff) };

	for (t = 0; t < m->n; t++) {
		route_token(m, w + (size_t)t * n, n, used);
		for (e = 0; e < n; e++) {
			apply_expert(&b[0], e, h + (size_t)t * m->embd, g);
			apply_expert(&b[1], e, h + (size_t)t * m->embd, u);
			for (i = 0; i < ff; i++)
				g[i] = activation(m, g[i], u[i]);
			apply_expert(&b[2], e, g, out);
			for (i = 0; i < m->embd; i++)
				y[(size_t)t * m->embd + i] +=
				    w[(size_t)t * n + e] * out[i];
		}
	}
	for (i = 0; i < 3; i++) {
		free(b[i].w);
		free(b[i].bias);
	}
	free(w);
	return y;
}

/* --- the model --- */

/* x += post(f(pre(x))); a norm that the family lacks is the identity. */
static void
add_sublayer(const struct ref *m, double *x, const char *pre, const char *post,
    double *(*f)(const struct ref *m, const double *h))
{
	double *h = copy_normalized(m, pre, x, m->n, m->embd, 1);
	double *y = f(m, h), *z;

	z = copy_normalized(m, post, y, m->n, m->embd, 1);
	add_vector(x, z, (uint64_t)m->n * m->embd);
	free(h);
	free(y);
	free(z);
}

double *
reference_logits(const struct gguf *g, const uint32_t *token, uint32_t n,
    uint32_t ctx)
{
	struct ref m = { .g = g, .n = n, .ctx = ctx,
	    .arch = gguf_find(g, "general.architecture")->v.s.data };
	uint32_t layers = (uint32_t)get_number(&m, "block_count", 0), t, i;
	const struct gguf_tensor *e = gguf_find_tensor(g, "token_embd.weight");
	uint32_t vocab = (uint32_t)e->ne[1];
	double *embd = load_weights(&m, "token_embd.weight", 0);
	double *x, *h, *y, *head;
	double cap = get_number(&m, "final_logit_softcapping", 0);
	int moe = get_number(&m, "expert_count", 0) > 0;

	m.embd = (uint32_t)get_number(&m, "embedding_length", 0);
	m.heads = (uint32_t)get_number(&m, "attention.head_count", 0);
	m.kv_heads = (uint32_t)get_number(&m, "attention.head_count_kv", 0);
	m.dim = (uint32_t)get_number(&m, "attention.key_length",
	    m.embd / m.heads);
	m.v_dim = (uint32_t)get_number(&m, "attention.value_length",
	    m.embd / m.heads);
	m.eps = get_number(&m, "attention.layer_norm_rms_epsilon", 0);
	x = malloc((size_t)n * m.embd * sizeof(*x));
	for (t = 0; t < n; t++)
		for (i = 0; i < m.embd; i++)
			x[(size_t)t * m.embd + i] =
			    embd[(size_t)token[t] * m.embd + i] *
			    (is_gemma(&m) ? sqrt(m.embd) : 1);
	for (m.layer = 0; m.layer < (int)layers; m.layer++) {
		add_sublayer(&m, x, "attn_norm.weight", is_gemma(&m) ?
		    "post_attention_norm.weight" : "", attention);
		add_sublayer(&m, x,
		    is_arch(&m, "gpt-oss") ?
		    "post_attention_norm.weight" : "ffn_norm.weight",
		    "post_ffw_norm.weight",
		    moe ? mixture_of_experts : feed_forward);
	}
	h = copy_normalized(&m, "output_norm.weight", x, n, m.embd, 0);
	head = load_weights(&m, "output.weight", 0);
	y = malloc((size_t)n * vocab * sizeof(*y));
	for (t = 0; t < n; t++)
		matvec(y + (size_t)t * vocab, head != NULL ? head : embd,
		    NULL, h + (size_t)t * m.embd, vocab, m.embd);
	for (i = 0; i < n * vocab && cap > 0; i++)
		y[i] = cap * tanh(y[i] / cap);
	free(x);
	free(h);
	free(head);
	free(embd);
	return y;
}
