/* config/completion.c - completion scripts for bash and zsh, made from the table
 * of options, so that a new row completes without another change. */
#include "conf.h"

#include <errno.h>
#include <string.h>
#include <bsd/string.h>

#include "keys.h"

#define MODEL_FILES	"*.gguf"

/* How the value of an option is completed. */
enum value {
	VALUE_NONE,		/* there is none */
	VALUE_FREE,		/* a number or a text: no proposal */
	VALUE_FILE, VALUE_MODEL, VALUE_CONF, VALUE_KV_TYPE, VALUE_DEVICE
};

static enum value
value_of(const struct setting *s)
{
	if (s->arg == NULL)
		return VALUE_NONE;
	if (s->letter == 'm' && s->key != NULL)
		return VALUE_MODEL;
	if (s->letter == 'c')
		return VALUE_CONF;
	if (s->letter == 's')
		return VALUE_DEVICE;
	if (s->type == KEY_KV_TYPE || s->type == KEY_KV_ONE)
		return VALUE_KV_TYPE;
	return s->type == KEY_PATH ? VALUE_FILE : VALUE_FREE;
}

static void
print_kv_types(FILE *fp)
{
	unsigned i;

	for (i = 0; i < KV_NTYPES; i++)
		fprintf(fp, "%s%s", i > 0 ? " " : "", kv_type_name(i));
}

static void
print_commands(FILE *fp)
{
	enum command cmd;

	for (cmd = CMD_RUN; cmd <= CMD_HELP; cmd++)
		fprintf(fp, "%s ", command_name(cmd));
	fputs("--version", fp);
}

/* --- bash --- */

static void
print_bash_words(enum command cmd, FILE *fp)
{
	const struct setting *s;
	unsigned i;

	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (!option_is_taken(s, cmd))
			continue;
		if (s->letter != 0)
			fprintf(fp, " -%c", s->letter);
		if (s->option != NULL)
			fprintf(fp, " --%s", s->option);
	}
}

/* Both names of an option after a command, as patterns. */
static void
print_bash_names(const char *cmd, const struct setting *s, FILE *fp)
{
	if (s->letter != 0)
		fprintf(fp, "|%s:-%c", cmd, s->letter);
	if (s->option != NULL)
		fprintf(fp, "|%s:--%s", cmd, s->option);
}

/* "run:-f|run:--prompts|*:-m" for each option whose value is of this kind. */
static void
print_bash_pattern(enum value value, FILE *fp)
{
	const struct setting *s;
	enum command cmd;
	unsigned i;

	fputs("\t''", fp);		/* which is no command and option */
	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (value_of(s) != value || s->cmds == 0)
			continue;
		if (s->cmds == ~0u)
			print_bash_names("*", s, fp);
		for (cmd = CMD_RUN; s->cmds != ~0u && cmd < CMD_HELP; cmd++)
			if (option_is_taken(s, cmd))
				print_bash_names(command_name(cmd), s, fp);
	}
}

static void
print_bash_case(enum value value, const char *action, FILE *fp)
{
	print_bash_pattern(value, fp);
	fprintf(fp, ")\n\t\t%s\n\t\treturn ;;\n", action);
}

static const char bash_head[] =
"# bash completion for straddle, made by: straddle help completion bash\n"
"\n"
"_straddle_words()\n"
"{\n"
"\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$2\")\n"
"}\n"
"\n"
"# _straddle_files PATTERN WORD: files that match, and folders.\n"
"_straddle_files()\n"
"{\n"
"\tmapfile -t COMPREPLY < <(compgen -f -X \"!$1\" -- \"$2\"; \\\n"
"\t    [ \"$1\" = '*' ] || compgen -d -- \"$2\")\n"
"\tcompopt -o filenames 2>/dev/null\n"
"}\n"
"\n"
"_straddle()\n"
"{\n"
"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
"\tlocal cmd=${COMP_WORDS[1]} options=\n"
"\n"
"\tCOMPREPLY=()\n"
"\t# --option=value is three words.\n"
"\tif [ \"$cur\" = = ]; then\n"
"\t\tcur=\n"
"\telif [ \"$prev\" = = ]; then\n"
"\t\tprev=${COMP_WORDS[COMP_CWORD-2]}\n"
"\tfi\n"
"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
"\t\t_straddle_words \"";

static void
print_bash(FILE *fp)
{
	enum command cmd;

	fputs(bash_head, fp);
	print_commands(fp);
	fputs("\" \"$cur\"\n\t\treturn\n\tfi\n\tcase $cmd:$prev in\n"
	    "\thelp:completion)\n\t\t_straddle_words \"bash zsh\" \"$cur\"\n"
	    "\t\treturn ;;\n\thelp:*)\n\t\t_straddle_words \"", fp);
	print_commands(fp);
	fputs(" options completion\" \"$cur\"\n\t\treturn ;;\n", fp);
	print_bash_case(VALUE_FILE, "_straddle_files '*' \"$cur\"", fp);
	print_bash_case(VALUE_MODEL, "_straddle_files '" MODEL_FILES
	    "' \"$cur\"", fp);
	print_bash_case(VALUE_CONF, "_straddle_files '*.conf' \"$cur\"", fp);
	print_bash_case(VALUE_DEVICE, "_straddle_words \"cpu hexagon rknpu "
	    "ascend null\" "
	    "\"$cur\"", fp);
	print_bash_pattern(VALUE_KV_TYPE, fp);
	fputs(")\n\t\t_straddle_words \"", fp);
	print_kv_types(fp);
	fputs("\" \"$cur\"\n\t\treturn ;;\n", fp);
	print_bash_case(VALUE_FREE, ":", fp);
	fputs("\tesac\n\tcase $cmd in\n", fp);
	for (cmd = CMD_RUN; cmd < CMD_HELP; cmd++) {
		fprintf(fp, "\t%s)\n\t\toptions=\"", command_name(cmd));
		print_bash_words(cmd, fp);
		fputs("\" ;;\n", fp);
	}
	fputs("\tesac\n\tcase $cur in\n\t-*)\n\t\t_straddle_words \"$options\" "
	    "\"$cur\" ;;\n\t*)\n\t\t_straddle_files '" MODEL_FILES
	    "' \"$cur\" ;;\n\tesac\n}\n\ncomplete -F _straddle straddle\n", fp);
}

/* --- zsh --- */

/* The beginning of a help text, up to its first remark, quoted for '-x[...]'. */
static void
print_zsh_text(const struct setting *s, FILE *fp)
{
	char text[OPTIONS_TEXT_LEN];
	const char *p;

	options_text(s, text, sizeof(text));
	for (p = text; *p != '\0' && *p != '\n' && *p != ';'; p++) {
		if (*p == ':' && (p[1] == ' ' || p[1] == '\n'))
			break;
		if ((*p == '.' && p[1] == ' ') || (*p == ' ' && p[1] == '('))
			break;
		if (*p == '\'')
			fputs("'\\''", fp);
		else if (strchr("[]\\", *p) != NULL)
			fprintf(fp, "\\%c", *p);
		else
			fputc(*p, fp);
	}
}

static void
print_zsh_value(const struct setting *s, FILE *fp)
{
	if (s->arg == NULL)
		return;
	fprintf(fp, ":%s:", s->arg);
	switch (value_of(s)) {
	case VALUE_FILE:
		fputs("_files", fp);
		break;
	case VALUE_MODEL:
		fputs("_files -g \"" MODEL_FILES "\"", fp);
		break;
	case VALUE_CONF:
		fputs("_files -g \"*.conf\"", fp);
		break;
	case VALUE_KV_TYPE:
		fputc('(', fp);
		print_kv_types(fp);
		fputc(')', fp);
		break;
	case VALUE_DEVICE:
		fputs("(cpu hexagon rknpu ascend null)", fp);
		break;
	case VALUE_NONE:
	case VALUE_FREE:
		fputc(' ', fp);
		break;
	}
}

static void
print_zsh_option(const struct setting *s, const char *name, FILE *fp)
{
	int repeats = s->letter == 's' || s->type == KEY_TEXTS;

	fprintf(fp, " \\\n\t\t    '%s%s[", repeats ? "*" : "", name);
	print_zsh_text(s, fp);
	fputc(']', fp);
	print_zsh_value(s, fp);
	fputc('\'', fp);
}

static void
print_zsh_command(enum command cmd, FILE *fp)
{
	const struct setting *s;
	char name[OPT_TEXT_LEN];
	unsigned i;

	fprintf(fp, "\t%s)\n\t\t_arguments", command_name(cmd));
	for (i = 0; (s = setting_at(i)) != NULL; i++) {
		if (!option_is_taken(s, cmd))
			continue;
		if (s->letter != 0) {
			snprintf(name, sizeof(name), "-%c", s->letter);
			print_zsh_option(s, name, fp);
		}
		if (s->option != NULL) {
			snprintf(name, sizeof(name), "--%s", s->option);
			print_zsh_option(s, name, fp);
		}
	}
	fputs(" \\\n\t\t    '*:file:_files -g \"" MODEL_FILES "\"' ;;\n", fp);
}

static void
print_zsh(FILE *fp)
{
	enum command cmd;

	fputs("#compdef straddle\n"
	    "# zsh completion for straddle, made by: straddle help completion "
	    "zsh\n\n_straddle()\n{\n\tlocal cmd=$words[2]\n\n"
	    "\tif (( CURRENT == 2 )); then\n\t\tcompadd -- ", fp);
	print_commands(fp);
	fputs("\n\t\treturn\n\tfi\n\tshift words\n\t(( CURRENT-- ))\n"
	    "\tcase $cmd in\n", fp);
	for (cmd = CMD_RUN; cmd < CMD_HELP; cmd++)
		print_zsh_command(cmd, fp);
	fputs("\thelp)\n\t\tif [[ $words[2] == completion ]] && "
	    "(( CURRENT == 3 )); then\n\t\t\tcompadd bash zsh\n\t\telse\n"
	    "\t\t\tcompadd -- ", fp);
	print_commands(fp);
	fputs(" options completion\n\t\tfi ;;\n\tesac\n}\n\n"
	    "_straddle \"$@\"\n", fp);
}

int
cli_completion(const char *shell, FILE *fp)
{
	if (strcmp(shell, "bash") == 0)
		print_bash(fp);
	else if (strcmp(shell, "zsh") == 0)
		print_zsh(fp);
	else
		return -EINVAL;
	return 0;
}
