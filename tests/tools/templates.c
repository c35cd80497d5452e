/* tests/tools/templates.c - chat templates against their true renderings, which
 * lie outside the tree: a conversation of plain texts must come out byte by
 * byte, or the format must say that this part of the template is lost.
 *
 * usage: templates FILE.json...
 *
 * FILE.json names its template, the texts of bos_token and eos_token, and cases:
 * messages with what the template makes of them (expect), or an error. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/text/template.h"

static unsigned nexact, nlost, nwrong;

static void
add(char **text, const char *s, size_t n)
{
	size_t old = strlen(*text);

	*text = realloc(*text, old + n + 1);
	memcpy(*text + old, s, n);
	(*text)[old + n] = '\0';
}

static void
add_parts(char **text, const struct text_part *part, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		add(text, part[i].text, part[i].nbytes);
}

/* Only texts of the three roles, in turn, up to a user's, and no options.  No
 * template makes an error of the texts, but some of empty ones, which chat does
 * not send. */
static int
is_plain_case(json_t *c)
{
	static const char *const known[] = { "name", "expect", "error", "notes",
	    "messages", "add_generation_prompt" };
	json_t *messages = json_object_get(c, "messages"), *m, *v;
	const char *key, *role = "";
	size_t i, k;

	if (!json_is_true(json_object_get(c, "add_generation_prompt")) ||
	    (strcmp(json_string_value(json_object_get(c, "name")), "empty") ==
	    0 && json_object_get(c, "expect") == NULL))
		return 0;
	json_object_foreach(c, key, v) {
		for (k = 0; k < NITEMS(known); k++)
			if (strcmp(key, known[k]) == 0)
				break;
		if (k == NITEMS(known))
			return 0;
	}
	json_array_foreach(messages, i, m) {
		const char *want;

		role = json_string_value(json_object_get(m, "role"));
		k = i + (strcmp(json_string_value(json_object_get(
		    json_array_get(messages, 0), "role")), "system") != 0);
		want = k == 0 ? "system" : k % 2 == 1 ? "user" : "assistant";
		if (json_object_size(m) != 2 || strcmp(role, want) != 0 ||
		    !json_is_string(json_object_get(m, "content")))
			return 0;
	}
	return strcmp(role, "user") == 0;
}

static char *
render(const struct chat_template *ct, const char *bos, json_t *messages)
{
	struct text_part parts[CHAT_MAX_PARTS], sys, user;
	char *text = strdup("");
	const char *role, *s;
	json_t *m;
	size_t i, n;
	unsigned turn = 0;
	int has_system = 0;

	if (ct->writes_bos)
		add(&text, bos, strlen(bos));
	json_array_foreach(messages, i, m) {
		role = json_string_value(json_object_get(m, "role"));
		s = json_string_value(json_object_get(m, "content"));
		n = json_string_length(json_object_get(m, "content"));
		if (strcmp(role, "system") == 0) {
			sys = (struct text_part){ s, n, 0 };
			has_system = 1;
		} else if (strcmp(role, "user") == 0) {
			user = (struct text_part){ s, n, 0 };
			add_parts(&text, parts, chat_template_turn(ct, turn++,
			    has_system ? &sys : NULL, &user, parts));
		} else {
			text[strlen(text) - ct->begun_bytes] = '\0';
			add(&text, ct->reopen, strlen(ct->reopen));
			chat_template_keep(ct, &s, &n);
			add(&text, s, n);
		}
	}
	return text;
}

static void
check_case(const struct chat_template *ct, const char *path, const char *bos,
    json_t *c)
{
	json_t *messages = json_object_get(c, "messages");
	const char *want = json_string_value(json_object_get(c, "expect"));
	const char *first = json_string_value(json_object_get(
	    json_array_get(messages, 0), "role"));
	unsigned lost = LOST_ALL;
	char *got = render(ct, bos, messages);

	if (strcmp(first, "system") == 0)
		lost |= LOST_SYSTEM;
	if (json_array_size(messages) > 2)
		lost |= LOST_TURNS;
	if ((ct->lost & lost) != 0) {
		nlost++;
	} else if (want != NULL && strcmp(got, want) == 0) {
		nexact++;
	} else {
		nwrong++;
		printf("%s: %s: WRONG\n  want %s\n  got  %s\n", path,
		    json_string_value(json_object_get(c, "name")),
		    want != NULL ? want : "an error", got);
	}
	free(got);
}

static time_t
parse_date(const char *s)
{
	struct tm tm = { .tm_isdst = -1 };

	return s != NULL && strptime(s, "%Y-%m-%d", &tm) != NULL ?
	    mktime(&tm) : time(NULL);
}

static int
check_file(const char *path)
{
	json_error_t je;
	json_t *o = json_load_file(path, 0, &je), *c;
	struct template_vars vars;
	struct chat_template *ct;
	struct err e;
	const char *jinja, *slash = strrchr(path, '/');
	char *file, *buf = NULL;
	size_t i, n = 0;
	FILE *fp;

	if (o == NULL) {
		printf("%s: %s\n", path, je.text);
		return -1;
	}
	jinja = json_string_value(json_object_get(o, "template"));
	if (asprintf(&file, "%.*s/%s", slash != NULL ? (int)(slash - path) : 1,
	    slash != NULL ? path : ".", jinja) < 0 ||
	    (fp = fopen(file, "r")) == NULL) {
		printf("%s: cannot open\n", jinja);
		return -1;
	}
	n = getdelim(&buf, &n, EOF, fp) < 0 ? 0 : strlen(buf);
	fclose(fp);
	vars = (struct template_vars){
	    .bos = json_string_value(json_object_get(o, "bos_token")),
	    .eos = json_string_value(json_object_get(o, "eos_token")),
	    .now = parse_date(json_string_value(json_object_get(o, "now"))) };
	if (chat_template_open(buf, n, &vars, &ct, &e) < 0) {
		printf("%s: %s\n", path, e.msg);
		return -1;
	}
	printf("%-52s %s%s%s%s %s\n", slash != NULL ? slash + 1 : path,
	    ct->name, ct->lost & LOST_ALL ? " -all" : "",
	    ct->lost & LOST_SYSTEM ? " -system" : "",
	    ct->lost & LOST_TURNS ? " -turns" : "", ct->why);
	json_array_foreach(json_object_get(o, "cases"), i, c)
		if (is_plain_case(c))
			check_case(ct, path, vars.bos != NULL ? vars.bos : "",
			    c);
	chat_template_close(ct);
	free(file);
	free(buf);
	json_decref(o);
	return 0;
}

int
main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (check_file(argv[i]) < 0)
			return 1;
	printf("%u exact, %u said to be lost, %u wrong\n", nexact, nlost,
	    nwrong);
	return nwrong > 0 || nexact == 0;
}
