/* coordinator/text/probe.c - what a chat template writes behind an answer. */
#include "probe.h"

#include <errno.h>
#include <string.h>

#include "variables.h"

#define BLANKS	" \t\r\n"

/* No template has it. */
static const char answer[] = "Straddle-asks-for-the-end";

int
probe_has_channels(const char *jinja, size_t n)
{
	static const char start[] = "<|start|>", channel[] = "<|channel|>";

	return memmem(jinja, n, start, strlen(start)) != NULL &&
	    memmem(jinja, n, channel, strlen(channel)) != NULL;
}

static void
put_token(struct variables *v, const char *name, const struct gguf_str *s)
{
	if (s == NULL)
		return;
	variables_name(v, name);
	variables_string(v, s->data, s->len, JINJA_TEMPLATE);
}

static void
put_message(struct variables *v, const char *role, const char *text)
{
	variables_bracket(v, '{');
	variables_name(v, "role");
	variables_role(v, role, strlen(role));
	variables_name(v, "content");
	variables_string(v, text, strlen(text), JINJA_INPUT);
	variables_bracket(v, '}');
}

static void
put_conversation(struct variables *v, const struct gguf_str *bos,
    const struct gguf_str *eos)
{
	put_token(v, "bos_token", bos);
	put_token(v, "eos_token", eos);
	variables_name(v, "messages");
	variables_bracket(v, '[');
	put_message(v, "user", "A");
	put_message(v, "assistant", answer);
	put_message(v, "user", "B");
	variables_bracket(v, ']');
	variables_name(v, "add_generation_prompt");
	variables_bool(v, 1);
}

/* Copy the first word of what the template wrote behind the answer. */
static void
take_end(const struct rendering *r, char ret[PROBE_END_BYTES + 1])
{
	const size_t len = strlen(answer);
	const char *at = r->text, *p;
	size_t i, n;

	for (i = 0; i + 1 < r->nspans; at += r->span[i++].nbytes) {
		n = r->span[i].nbytes;
		if (r->span[i].is_template || n < len ||
		    memcmp(at + n - len, answer, len) != 0)
			continue;
		p = at + n;
		for (n = r->span[i + 1].nbytes; n > 0 &&
		    strchr(BLANKS, *p) != NULL; n--)
			p++;
		for (i = 0; i < MIN(n, (size_t)PROBE_END_BYTES) &&
		    strchr(BLANKS, p[i]) == NULL; i++)
			ret[i] = p[i];
		ret[i] = '\0';
		return;
	}
}

int
probe_answer_end(render_fn *fn, void *arg, const char *jinja, size_t n,
    const struct gguf_str *bos, const struct gguf_str *eos,
    char ret[PROBE_END_BYTES + 1], struct err *reterr)
{
	const struct tm now = { .tm_mday = 1, .tm_year = 126, .tm_wday = 4 };
	struct render_job job = { .jinja = jinja, .njinja = n, .now = &now };
	struct variables v = { 0 };
	struct rendering r;
	int rc;

	ret[0] = '\0';
	put_conversation(&v, bos, eos);
	if ((rc = variables_end(&v, reterr)) == 0) {
		job.vars = v.data;
		job.nvars = v.n;
		rc = fn(arg, &job, &r, reterr);
	}
	variables_done(&v);
	if (rc == 0) {
		take_end(&r, ret);
		rendering_done(&r);
	}
	return render_is_refusal(rc) ? 0 : rc;
}
