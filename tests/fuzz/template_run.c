/* tests/fuzz/template_run.c - fuzzer of the template engine: any text compiles or is
 * refused, and any program ends within its limits.  A libFuzzer target; with
 * fuzz/main.c it replays files. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/jinja_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char variables[] = "{\"messages\": [{\"role\": \"user\", \"content\": "
    "\"h\\u00e9 <|x|>\\n\"}, {\"role\": \"assistant\", \"content\": \" a,b \", "
    "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
    "[1, 2.5, null, true]}}}]}], \"tools\": [{\"items\": [1], \"type\": \"x\"}], "
    "\"bos_token\": \"<s>\", \"n\": null, \"l\": [3, 1, 2], \"i\": 7, \"e\": {}, "
    "\"add_generation_prompt\": true}";

static void
require(int ok, const char *complaint)
{
	if (!ok) {
		fprintf(stderr, "fuzz_template_run: %s\n", complaint);
		abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct jinja_limits limits = {
		.source_bytes = 16 * KIB, .nesting = 40, .macro_depth = 10,
		.depth = 200, .steps = 20000, .memory_bytes = MIB,
		.output_bytes = 64 * KIB, .range = 1000
	};
	static json_t *vars;
	const struct tm now = { .tm_year = 124, .tm_mday = 1 };
	struct jinja_out out;
	struct err e = { .kind = ERR_NONE };
	size_t i;
	int rc;

	if (vars == NULL)
		vars = json_loads(variables, 0, NULL);
	rc = jinja_render_json((const char *)data, n, vars, &limits, &now, &out,
	    &e);
	if (rc < 0) {
		require(rc == -EBADMSG || rc == -E2BIG || rc == -EINVAL ||
		    rc == -ECANCELED, "an error of another kind");
		require(strncmp(e.msg, "line ", 5) == 0, "an error without a "
		    "place");
		for (i = 0; e.msg[i] != '\0'; i++)
			require((unsigned char)e.msg[i] >= ' ', "a message has "
			    "bytes for a terminal");
		return 0;
	}
	require(out.n <= 64 * KIB, "more output than the limit");
	for (i = 0; i < out.n; i++)
		require(out.by[i] == 't' || out.by[i] == 'i', "a byte without "
		    "an origin");
	jinja_out_free(&out);
	return 0;
}
