/* coordinator/cmd/inspect.c - header, hyper-parameters and tensors of a file.
 * Works for any GGUF, and says why a model would not run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/plain.h"
#include "config/rights.h"
#include "config/utf8.h"
#include "kernels/cpu.h"
#include "layers/model.h"
#include "cmd.h"
#include "coordinator/engine/form.h"
#include "coordinator/print/output.h"
#include "coordinator/reader/reader.h"
#include "coordinator/text/tokenizer.h"

enum { MAX_SHOWN = 60 };	/* bytes of a string */

static const char *
tensor_type(const struct gguf_tensor *t)
{
	static char unknown[32];
	const struct quant_info *qi = quant_info(t->type);

	if (qi != NULL)
		return qi->name;
	snprintf(unknown, sizeof(unknown), "type %u", t->type);
	return unknown;
}

/* Cut off at a whole character. */
static void
print_string(struct gguf_str s)
{
	size_t n = MIN(s.len, MAX_SHOWN);

	if (n < s.len)
		n -= utf8_unfinished((const uint8_t *)s.data, n);
	putchar('"');
	plain_print(stdout, s.data, n);
	fputs(n < s.len ? "...\"" : "\"", stdout);
}

static void
print_value(const struct gguf_kv *kv)
{
	switch (kv->type) {
	case GGUF_STRING:
		print_string(kv->v.s);
		break;
	case GGUF_ARRAY:
		printf("%s[%" PRIu64 "]", gguf_type_name(kv->v.a.type),
		    kv->v.a.count);
		break;
	case GGUF_F32:
	case GGUF_F64:
		printf("%g", kv->v.f);
		break;
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		printf("%" PRId64, kv->v.i);
		break;
	case GGUF_BOOL:
		fputs(kv->v.u ? "true" : "false", stdout);
		break;
	default:
		printf("%" PRIu64, kv->v.u);
	}
}

static json_t *
json_value(const struct gguf_kv *kv)
{
	switch (kv->type) {
	case GGUF_STRING:
		return output_json_text(kv->v.s.data, kv->v.s.len);
	case GGUF_ARRAY:
		return json_pack("{s:s,s:o}", "array",
		    gguf_type_name(kv->v.a.type), "count",
		    output_json_u64(kv->v.a.count));
	case GGUF_F32:
	case GGUF_F64:
		return output_json_real(kv->v.f, kv->type == GGUF_F32);
	case GGUF_I8:
	case GGUF_I16:
	case GGUF_I32:
	case GGUF_I64:
		return json_integer(kv->v.i);
	case GGUF_BOOL:
		return json_boolean(kv->v.u != 0);
	default:
		return output_json_u64(kv->v.u);
	}
}

/* Why this file would not run, or "" if it would; the number of its parameters, 0
 * when it is not a complete model.  Negative: it cannot be told now. */
static int
check_runs(const struct reader *r, uint64_t *ret_params, struct err *e)
{
	struct kernels k;
	struct model *m;
	int rc;

	*ret_params = 0;
	e->msg[0] = '\0';
	if ((rc = reader_model(r, &m, e)) < 0)
		return e->kind == ERR_RUN ? rc : 0;
	*ret_params = model_params(m);
	kernels_init(&k, cpu_flags());
	if ((rc = model_check_kernels(m, &k, e)) == 0)
		e->msg[0] = '\0';
	model_close(m);
	return rc < 0 && e->kind == ERR_RUN ? rc : 0;
}

/* --- what chat needs --- */

static const char template_key[] = "tokenizer.chat_template";

/* FNV-1a: tells one template from another. */
static uint64_t
hash_text(struct gguf_str s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325), i;

	for (i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.data[i]) * UINT64_C(0x100000001b3);
	return h;
}

static const char *
shown_name(const struct form *f)
{
	return form_is_plain(f) ? "plain lines" : form_name(f);
}

/* The vocabulary and the form of r's model; *ret_t = NULL with 0: e says why there
 * is no vocabulary. */
static int
open_form(const struct conf *c, struct reader *r, struct tokenizer **ret_t,
    struct form **ret, struct err *e)
{
	int rc;

	*ret_t = NULL;
	if ((rc = reader_tokenizer(r, ret_t, e)) < 0) {
		*ret_t = NULL;
		return e->kind == ERR_RUN ? rc : 0;
	}
	return form_open(c, reader_directory(r), *ret_t, ret, e);
}

static void
print_lines(struct gguf_str s)
{
	const char *end = s.data + s.len, *line, *next;

	for (line = s.data; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next != NULL ? next : end;
		fputs("    ", stdout);
		plain_print(stdout, line, (size_t)(next - line));
		putchar('\n');
	}
}

static int
print_chat(const struct conf *c, struct reader *r, struct err *reterr)
{
	const struct gguf *g = reader_directory(r);
	struct form *form;
	struct gguf_str text;
	struct tokenizer *t;
	const int32_t *end;
	unsigned i, n;
	int rc;

	if (gguf_find(g, "tokenizer.ggml.model") == NULL)
		return 0;
	if ((rc = open_form(c, r, &t, &form, reterr)) < 0)
		return rc;
	if (t == NULL) {
		printf("\nchat: no: %s\n", PLAIN(reterr->msg));
		return 0;
	}
	printf("\nchat: %s\n", shown_name(form));
	if (gguf_get_str(g, template_key, &text, NULL) == 0) {
		printf("  template: %" PRIu64 " bytes, hash %016" PRIx64 "\n",
		    text.len, hash_text(text));
		if (c->verbose > 1)
			print_lines(text);
	} else {
		puts("  the file has no chat template");
	}
	if (form_why(form) != NULL)
		printf("  not followed: %s\n", PLAIN(form_why(form)));
	form_close(form);
	n = tokenizer_ends(t, &end);
	fputs(n > 0 ? "  an answer ends with" : "  no token ends an answer",
	    stdout);
	for (i = 0; i < n; i++) {
		printf("%s %" PRId32 " ", i > 0 ? "," : "", end[i]);
		print_string(tokenizer_text(t, (uint32_t)end[i]));
	}
	putchar('\n');
	return 0;
}

/* null where the file has no vocabulary that can be read. */
static int
add_chat(json_t *to, const struct conf *c, struct reader *r,
    struct err *reterr)
{
	const struct gguf *g = reader_directory(r);
	struct form *form;
	struct gguf_str text;
	struct tokenizer *t;
	const int32_t *end;
	json_t *o, *ends;
	unsigned i, n;
	char hash[24];
	int rc;

	if ((rc = open_form(c, r, &t, &form, reterr)) < 0 || t == NULL) {
		json_object_set_new(to, "chat", json_null());
		return rc;
	}
	o = json_object();
	json_object_set_new(o, "form", json_string(shown_name(form)));
	if (gguf_get_str(g, template_key, &text, NULL) == 0) {
		snprintf(hash, sizeof(hash), "%016" PRIx64, hash_text(text));
		json_object_set_new(o, "template_hash", json_string(hash));
	} else
		json_object_set_new(o, "template_hash", json_null());
	json_object_set_new(o, "not_followed", form_why(form) == NULL ?
	    json_null() : output_json_string(form_why(form)));
	form_close(form);
	ends = json_array();
	n = tokenizer_ends(t, &end);
	for (i = 0; i < n; i++) {
		text = tokenizer_text(t, (uint32_t)end[i]);
		json_array_append_new(ends, json_pack("{s:i,s:o}", "id",
		    (int)end[i], "text", output_json_text(text.data,
		    text.len)));
	}
	json_object_set_new(o, "ends", ends);
	json_object_set_new(to, "chat", o);
	return 0;
}

struct type_sum {
	uint64_t count, nbytes;
};

static void
sum_types(const struct gguf *g, struct type_sum sums[QUANT_NTYPES + 1])
{
	uint64_t i;
	uint32_t t;

	for (i = 0; i < g->ntensors; i++) {
		t = MIN(g->tensor[i].type, QUANT_NTYPES);
		sums[t].count++;
		sums[t].nbytes += g->tensor[i].nbytes;
	}
}

static int
print_text(const struct conf *c, struct reader *r, struct err *reterr)
{
	const struct gguf *g = reader_directory(r);
	struct type_sum sums[QUANT_NTYPES + 1] = { 0 };
	char buf[UNITS_BYTES_LEN];
	struct err e = { 0 };
	uint64_t i, params;
	uint32_t t, f;
	int rc;

	for (f = 0; f < g->nfiles; f++)
		printf("file %s: GGUF version %u, %" PRIu64 " bytes, data "
		    "from %" PRIu64 "\n", PLAIN(g->file[f].path), g->file[f].version,
		    g->file[f].nbytes, g->file[f].data_off);
	printf("alignment %" PRIu64 "\n\nmetadata, %" PRIu64 " keys\n",
	    g->alignment, g->nkv);
	for (i = 0; i < g->nkv; i++) {
		printf("  %-44.*s %-7s ", (int)g->kv[i].key.len,
		    g->kv[i].key.data, gguf_type_name(g->kv[i].type));
		print_value(&g->kv[i]);
		putchar('\n');
	}
	sum_types(g, sums);
	printf("\ntensors, %" PRIu64 ", %s\n", g->ntensors,
	    units_human_bytes(g->tensor_bytes, buf));
	for (t = 0; t <= QUANT_NTYPES; t++)
		if (sums[t].count > 0)
			printf("  %-8s %6" PRIu64 " tensors  %s\n",
			    t < QUANT_NTYPES && quant_info(t) != NULL ?
			    quant_info(t)->name : "unknown", sums[t].count,
			    units_human_bytes(sums[t].nbytes, buf));
	for (i = 0; i < g->ntensors && c->verbose > 1; i++)
		printf("  %-40s %-7s %6" PRIu64 " x %-6" PRIu64 " at %" PRIu64
		    "\n", g->tensor[i].name, tensor_type(&g->tensor[i]),
		    g->tensor[i].ne[1] * g->tensor[i].ne[2] *
		    g->tensor[i].ne[3], g->tensor[i].ne[0],
		    g->tensor[i].offset);
	if ((rc = print_chat(c, r, &e)) < 0 ||
	    (rc = check_runs(r, &params, &e)) < 0) {
		*reterr = e;
		return rc;
	}
	if (params > 0)
		printf("\nparameters: %" PRIu64, params);
	printf("\nruns: %s\n", e.msg[0] == '\0' ? "yes" : PLAIN(e.msg));
	return 0;
}

static json_t *
tensor_json(const struct gguf_tensor *t)
{
	json_t *o = json_object(), *ne = json_array();
	uint32_t d;

	for (d = 0; d < t->ndims; d++)
		json_array_append_new(ne, output_json_u64(t->ne[d]));
	json_object_set_new(o, "name", json_string(t->name));
	json_object_set_new(o, "type", json_string(tensor_type(t)));
	json_object_set_new(o, "shape", ne);
	json_object_set_new(o, "file", json_integer(t->file));
	json_object_set_new(o, "offset", output_json_u64(t->offset));
	json_object_set_new(o, "bytes", output_json_u64(t->nbytes));
	return o;
}

static int
print_json(const struct conf *c, struct reader *r, struct err *reterr)
{
	const struct gguf *g = reader_directory(r);
	json_t *o = json_object(), *kv = json_object(), *ts = json_array();
	struct err e = { 0 };
	uint64_t i, params;
	int rc;

	for (i = 0; i < g->nkv; i++)
		json_object_set_new(kv, g->kv[i].key.data,
		    json_value(&g->kv[i]));
	for (i = 0; i < g->ntensors; i++)
		json_array_append_new(ts, tensor_json(&g->tensor[i]));
	if ((rc = add_chat(o, c, r, &e)) < 0 ||
	    (rc = check_runs(r, &params, &e)) < 0) {
		*reterr = e;
		json_decref(o);
		json_decref(kv);
		json_decref(ts);
		return rc;
	}
	json_object_set_new(o, "parameters",
	    json_integer((json_int_t)params));
	json_object_set_new(o, "file", output_json_string(g->file[0].path));
	json_object_set_new(o, "version", json_integer(g->file[0].version));
	json_object_set_new(o, "files", json_integer(g->nfiles));
	json_object_set_new(o, "alignment",
	    json_integer((json_int_t)g->alignment));
	json_object_set_new(o, "tensor_bytes",
	    json_integer((json_int_t)g->tensor_bytes));
	json_object_set_new(o, "metadata", kv);
	json_object_set_new(o, "tensors", ts);
	json_object_set_new(o, "runs", json_boolean(e.msg[0] == '\0'));
	json_object_set_new(o, "why_not", e.msg[0] == '\0' ? json_null() :
	    output_json_string(e.msg));
	return output_json(o, 1, reterr);
}

int
cmd_inspect(const struct conf *c, struct err *reterr)
{
	const struct reader_how how = { .poll = NULL };
	struct reader *r;
	int rc;

	if ((rc = reader_open(c, &how, &r, reterr)) < 0)
		return rc;
	if ((rc = rights_settle(0, reterr)) < 0)
		;
	else if (c->json)
		rc = print_json(c, r, reterr);
	else
		rc = print_text(c, r, reterr);
	reader_close(r);
	return rc;
}
