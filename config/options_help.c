/* config/options_help.c - the help lines of options, made from their rows. */
#include "options.h"

#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "keys.h"
#include "words.h"

enum { INDENT = 20, WIDTH = 79 };

/* "[,cores=LIST][,node=N]...": the keys that -s takes after the device. */
static void
session_keys(char *buf, size_t len)
{
	const struct setting *s = NULL;
	size_t n = 0;

	buf[0] = '\0';
	while ((s = setting_next(SECTION_SESSION, s)) != NULL && n < len)
		if (s->arg != NULL)
			n += (size_t)snprintf(buf + n, len - n, "[,%s=%s]",
			    s->key, s->arg);
}

/* Append to buf the value of the placeholder at p; return its end. */
static const char *
add_value(const struct setting *s, const char *p, char *buf, size_t len)
{
	static struct conf defaults;	/* too large for a stack */
	char value[KEY_VALUE_LEN];

	if (strncmp(p, "{range}", 7) == 0)
		key_range(s, value);
	else if (strncmp(p, "{session}", 9) == 0)
		session_keys(value, sizeof(value));
	else {
		conf_defaults(&defaults);
		key_format(s, &defaults, value);
	}
	strlcat(buf, value, len);
	return p + strcspn(p, "}") + 1;
}

void
options_text(const struct setting *s, char *buf, size_t len)
{
	const char *p = s->help;
	char one[2] = "";

	buf[0] = '\0';
	while (*p != '\0') {
		if (*p == '{') {
			p = add_value(s, p, buf, len);
			continue;
		}
		one[0] = *p++;
		strlcat(buf, one, len);
	}
}

/* Bytes of text that fit on a line of `room`, cut at a space or after a "]". */
static size_t
line_length(const char *text, size_t room)
{
	size_t i, best = 0, n = strcspn(text, "\n");

	if (n <= room)
		return n;
	for (i = 1; i <= room; i++)
		if (text[i] == ' ' || (text[i] == '[' && text[i - 1] == ']'))
			best = i;
	return best > 0 ? best : n;
}

/* "  -d, --depth LIST  " and the help, wrapped to its right. */
static void
add_option(const struct setting *s, char *buf, size_t len)
{
	char text[OPTIONS_TEXT_LEN], head[64] = "  ";
	const char *p = text;
	size_t n;

	if (s->letter != 0)
		words_add(head, sizeof(head), "", "-%c", s->letter);
	if (s->option != NULL)
		words_add(head, sizeof(head), "", "%s--%s",
		    s->letter != 0 ? ", " : "", s->option);
	if (s->arg != NULL)
		words_add(head, sizeof(head), "", " %s", s->arg);
	n = strlen(head);
	n = (size_t)snprintf(head + n, sizeof(head) - n, "%*s",
	    (int)MAX(INDENT - (int)n, 2), "") + n;
	options_text(s, text, sizeof(text));
	strlcat(buf, head, len);
	while (*p != '\0') {
		n = line_length(p, WIDTH - (p == text ? n : INDENT));
		words_add(buf, len, "", "%s%.*s\n", p == text ? "" :
		    "                    ", (int)n, p);
		p += n;
		p += *p == ' ' || *p == '\n';
	}
}

/* Nearly every command takes it; quantize has threads of its own. */
static int
is_common(const struct setting *s)
{
	return (s->cmds | 1u << CMD_QUANTIZE) == ~0u;
}

void
options_help(enum command cmd, int common, char *buf, size_t len)
{
	const struct setting *s;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++)
		if (option_is_taken(s, cmd) && is_common(s) == common)
			add_option(s, buf, len);
}
