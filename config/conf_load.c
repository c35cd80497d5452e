/* config/conf_load.c - defaults, then the config file, then the command line;
 * and the result printed as a config file. */
#include "conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "keys.h"

void
conf_defaults(struct conf *c)
{
	const struct setting *s;
	unsigned i;

	memset(c, 0, sizeof(*c));
	c->verbose = 1;
	for (i = 0; (s = setting_at(i)) != NULL; i++)
		if (s->section != SECTION_SESSION)
			key_set_default(s, c);
}

int
conf_load(int argc, char **argv, struct conf *ret, struct err *reterr)
{
	int rc;

	conf_defaults(ret);
	if ((rc = cli_find_config(argc, argv, &ret->config_path, reterr)) < 0)
		return rc;
	if (ret->config_path != NULL &&
	    (rc = conf_parse_file(ret->config_path, ret, reterr)) < 0)
		return rc;
	if ((rc = cli_parse(argc, argv, ret, reterr)) < 0)
		return rc;
	return conf_check(ret, reterr);
}

static void
print_section(enum section section, const void *base, const char *indent,
    FILE *fp)
{
	const struct setting *s = NULL;

	while ((s = setting_next(section, s)) != NULL)
		key_print(s, base, indent, fp);
}

int
conf_print(const struct conf *c, FILE *fp)
{
	int i;

	print_section(SECTION_TOP, c, "", fp);
	fputs("\nsampling {\n", fp);
	print_section(SECTION_SAMPLING, c, "\t", fp);
	fputs("}\n", fp);
	for (i = 0; i < c->nsessions; i++) {
		fprintf(fp, "\nsession %s {\n", c->session[i].name);
		print_section(SECTION_SESSION, &c->session[i], "\t", fp);
		fputs("}\n", fp);
	}
	return fflush(fp) == 0 && !ferror(fp) ? 0 : -EIO;
}

/* Free the texts and paths of the table; two rows may share a field. */
static void
free_strings(struct conf *c)
{
	const struct setting *s;
	char **field;
	unsigned i;

	while (c->stop.n > 0)
		free(c->stop.v[--c->stop.n]);
	while (c->template_args.n > 0)
		free(c->template_args.v[--c->template_args.n]);
	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (s->type != KEY_TEXT && s->type != KEY_PATH)
			continue;
		field = (char **)(void *)((char *)c + s->off);
		free(*field);
		*field = NULL;
	}
}

void
conf_free(struct conf *c)
{
	free_strings(c);
	free(c->config_path);
	free(c->out_path);
	free(c->quant_type);
	free(c->help_topic);
	free(c->help_shell);
	conf_defaults(c);
}
