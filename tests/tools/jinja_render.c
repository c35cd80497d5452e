/* tests/tools/jinja_render.c - renders chat templates, for comparisons with other
 * engines.
 *
 * usage: jinja_render TEMPLATE.jinja [VARS.json]	the rendering, to stdout
 *        jinja_render --cases FILE.json...		compare; FILE.jinja is next to it
 *        jinja_render --lines FILE.jsonl		one rendering a line
 *        jinja_render --time N TEMPLATE.jinja VARS.json	us a rendering
 *
 * A case of FILE.json has variables, and expect (a text), error (words of the
 * message) or fails.  A line of FILE.jsonl is [template, variables]; a line of the
 * answer is ["ok", text] or ["error", message].  Exit status: 0, 1 a difference
 * or a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/jinja_json.h"

static const struct jinja_limits limits = JINJA_LIMITS;

static char *
read_file(const char *path, size_t *ret_n)
{
	FILE *fp = fopen(path, "re");
	char *s = NULL;
	size_t cap = 0;
	ssize_t n;

	if (fp == NULL) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	n = getdelim(&s, &cap, EOF, fp);
	fclose(fp);
	*ret_n = n > 0 ? (size_t)n : 0;
	return s;
}

static json_t *
load_json(const char *path)
{
	json_error_t e;
	json_t *v = json_load_file(path, 0, &e);

	if (v == NULL) {
		fprintf(stderr, "%s: %s\n", path, e.text);
		exit(EXIT_FAILURE);
	}
	return v;
}

/* The variable now, "YYYY-MM-DD", is the date of strftime_now. */
static const struct tm *
read_now(json_t *vars)
{
	static struct tm tm;
	const char *now = json_string_value(json_object_get(vars, "now"));

	memset(&tm, 0, sizeof(tm));
	return now != NULL && strptime(now, "%Y-%m-%d", &tm) != NULL ? &tm :
	    NULL;
}

static int
render_one(const char *path, const char *vars_path)
{
	json_t *vars = vars_path != NULL ? load_json(vars_path) : json_object();
	struct jinja_out out;
	struct err e;
	size_t n;
	char *text = read_file(path, &n);
	int rc = jinja_render_json(text, n, vars, &limits, read_now(vars), &out,
	    &e);

	if (rc < 0)
		fprintf(stderr, "%s\n", e.msg);
	else
		fwrite(out.text, 1, out.n, stdout);
	return rc < 0;
}

/* --- cases --- */

static int
is_own_key(const char *key)
{
	static const char *const own[] = { "name", "expect", "error", "fails",
	    "notes" };
	size_t i;

	for (i = 0; i < NITEMS(own); i++)
		if (strcmp(key, own[i]) == 0)
			return 1;
	return 0;
}

static json_t *
case_vars(json_t *file, json_t *c)
{
	json_t *vars = json_object(), *v;
	const char *key;

	json_object_foreach(c, key, v)
		if (!is_own_key(key))
			json_object_set(vars, key, v);
	json_object_set(vars, "now", json_object_get(file, "now"));
	if (json_is_string(json_object_get(file, "bos_token")))
		json_object_set(vars, "bos_token", json_object_get(file,
		    "bos_token"));
	if (json_is_string(json_object_get(file, "eos_token")))
		json_object_set(vars, "eos_token", json_object_get(file,
		    "eos_token"));
	return vars;
}

static int
holds(const char *text, size_t n, json_t *file, json_t *c, struct err *e)
{
	json_t *vars = case_vars(file, c), *want = json_object_get(c, "expect");
	const char *words = json_string_value(json_object_get(c, "error"));
	struct jinja_out out;
	int rc, ok;
	size_t i;

	e->msg[0] = '\0';
	rc = jinja_render_json(text, n, vars, &limits, read_now(vars), &out, e);
	json_decref(vars);
	if (want == NULL) {
		ok = rc < 0 && (words == NULL || strstr(e->msg, words) != NULL);
		if (rc == 0)
			snprintf(e->msg, sizeof(e->msg), "it does not fail");
	} else {
		ok = rc == 0 && out.n == json_string_length(want) &&
		    memcmp(out.text, json_string_value(want), out.n) == 0;
		if (rc == 0 && !ok) {
			for (i = 0; i < out.n && out.text[i] ==
			    json_string_value(want)[i]; i++)
				;
			snprintf(e->msg, sizeof(e->msg), "byte %zu: %.60s", i,
			    out.text + i);
		}
	}
	if (rc == 0)
		jinja_out_free(&out);
	return ok;
}

static int
compare(char **paths)
{
	unsigned good = 0, all = 0;
	struct err e;
	json_t *c;
	size_t i;

	for (; *paths != NULL; paths++) {
		json_t *file = load_json(*paths);
		char *path = malloc(strlen(*paths) + 8), *text;
		size_t n;

		strcpy(path, *paths);
		strcpy(strrchr(path, '.'), ".jinja");
		text = read_file(path, &n);
		json_array_foreach(json_object_get(file, "cases"), i, c) {
			all++;
			if (holds(text, n, file, c, &e)) {
				good++;
				continue;
			}
			printf("FAIL %s, %s: %s\n", *paths, json_string_value(
			    json_object_get(c, "name")), e.msg);
		}
		free(text);
		free(path);
		json_decref(file);
	}
	printf("%u of %u cases\n", good, all);
	return good < all;
}

static int
render_lines(const char *path)
{
	FILE *fp = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	if (fp == NULL) {
		perror(path);
		return 1;
	}
	while (getline(&line, &cap, fp) > 0) {
		json_t *v = json_loads(line, 0, NULL), *out;
		json_t *t = json_array_get(v, 0);
		struct jinja_out o;
		struct err e;

		if (jinja_render_json(json_string_value(t),
		    json_string_length(t), json_array_get(v, 1), &limits, NULL,
		    &o, &e) == 0) {
			out = json_pack("[ss#]", "ok", o.text, (int)o.n);
			jinja_out_free(&o);
		} else
			out = json_pack("[ss]", "error", e.msg);
		if (out == NULL)
			puts("null");
		else {
			json_dumpf(out, stdout, JSON_ENSURE_ASCII);
			putchar('\n');
		}
		json_decref(out);
		json_decref(v);
	}
	free(line);
	fclose(fp);
	return 0;
}

static int
measure(unsigned n, const char *path, const char *vars_path)
{
	json_t *vars = load_json(vars_path);
	struct timespec a, b;
	struct jinja_out out;
	struct err e;
	size_t len;
	char *text = read_file(path, &len);
	unsigned i;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < n; i++) {
		if (jinja_render_json(text, len, vars, &limits, read_now(vars),
		    &out, &e) < 0) {
			fprintf(stderr, "%s\n", e.msg);
			return 1;
		}
		jinja_out_free(&out);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.1f us\n", ((double)(b.tv_sec - a.tv_sec) * 1e6 +
	    (double)(b.tv_nsec - a.tv_nsec) / 1e3) / n);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--cases") == 0)
		return compare(argv + 2);
	if (argc == 3 && strcmp(argv[1], "--lines") == 0)
		return render_lines(argv[2]);
	if (argc == 5 && strcmp(argv[1], "--time") == 0)
		return measure((unsigned)atoi(argv[2]), argv[3], argv[4]);
	if (argc == 2 || argc == 3)
		return render_one(argv[1], argv[2]);
	fprintf(stderr, "usage: jinja_render TEMPLATE.jinja [VARS.json]\n");
	return 2;
}
