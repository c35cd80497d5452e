/* config/keys.c - one setting read from text, and printed. */
#include "keys.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "devices.h"
#include "plain.h"
#include "utf8.h"
#include "words.h"

/* Longest device kind: kind and index must still make a session's name. */
enum { MAX_DEVICE = 20 };

/* Characters of a session's name, which also names its cgroup. */
static const char name_chars[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

static int
set_bool(int *field, const char *text, struct err *reterr)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a truth value: write true or false", text);
	*field = *text == 't';
	return 0;
}

static int
set_int(const struct setting *s, int *field, const char *text,
    struct err *reterr)
{
	int64_t n;
	int rc;

	if ((rc = units_parse_int(text, (int64_t)s->lo, (int64_t)s->hi, &n,
	    reterr)) == 0)
		*field = (int)n;
	return rc;
}

/* All 64 bits, so that every seed that a run draws and prints is accepted. */
static int
set_seed(struct sampling_conf *sampling, const char *text, struct err *reterr)
{
	size_t n = strspn(text, "0123456789");
	uint64_t seed;

	if (strcmp(text, "-1") == 0) {	/* as elsewhere: draw one */
		sampling->seed_given = 0;
		return 0;
	}
	errno = 0;
	seed = strtoull(text, NULL, 10);
	if (n == 0 || text[n] != '\0' || errno == ERANGE)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a seed: must be 0 to %" PRIu64 ", or -1 "
		    "for a random one", text, UINT64_MAX);
	sampling->seed = seed;
	sampling->seed_given = 1;
	return 0;
}

static int
set_cap(struct session_conf *session, const char *text, struct err *reterr)
{
	uint64_t nbytes;
	int rc;

	if ((rc = units_parse_bytes(text, &nbytes, reterr)) < 0)
		return rc;
	if (nbytes == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is zero bytes: give at least one, or omit cap for "
		    "an equal share of the free memory", text);
	/* No session fits in less: the unit was forgotten. */
	if (nbytes < MIB && text[strspn(text, "0123456789.")] == '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL, "%.64s means %"
		    PRIu64 " byte%s: did you mean %.64sMiB?", text, nbytes,
		    nbytes == 1 ? "" : "s", text);
	session->cap_bytes = nbytes;
	session->cap_given = 1;
	return 0;
}

static int
set_size(const struct setting *s, uint64_t *field, const char *text,
    struct err *reterr)
{
	char range[KEY_VALUE_LEN];
	uint64_t nbytes;
	int rc;

	if ((rc = units_parse_bytes(text, &nbytes, reterr)) < 0)
		return rc;
	if ((double)nbytes < s->lo || (double)nbytes > s->hi)
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s' is out of "
		    "range: must be %s", text, key_range(s, range));
	*field = nbytes;
	return 0;
}

static int
set_port(char *field, const char *text, struct err *reterr)
{
	int rc = device_check_port(text, reterr);

	if (rc == 0)
		strlcpy(field, text, MAX_NAME);
	return rc;
}

static int
set_kv_type(const struct setting *s, enum kv_type *field, const char *text,
    struct err *reterr)
{
	char range[KEY_VALUE_LEN];

	if (kv_type_parse(text, field) == 0)
		return 0;
	return err_set(reterr, ERR_USAGE, -EINVAL,
	    "'%.64s' is not a KV type: write %s", text, key_range(s, range));
}

static int
set_kv_types(const struct setting *s, struct conf *c, const char *text,
    struct err *reterr)
{
	int rc = set_kv_type(s, &c->kv_type_k, text, reterr);

	c->kv_type_v = c->kv_type_k;
	return rc;
}

static int
set_device(char *field, const char *text, struct err *reterr)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");

	if (n == 0 || n > MAX_DEVICE || text[n] != '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a device kind: write one word of "
		    "lower-case letters and digits, such as cpu or null", text);
	strlcpy(field, text, MAX_NAME);
	return 0;
}

static int
set_cores(char *field, const char *text, struct err *reterr)
{
	struct cpuset set;
	int rc;

	if (strcmp(text, "big") != 0 && strcmp(text, "little") != 0 &&
	    (rc = units_parse_cpus(text, &set, reterr)) < 0)
		return rc;
	if (strlcpy(field, text, sizeof(((struct session_conf *)0)->cores)) >=
	    sizeof(((struct session_conf *)0)->cores))
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "the core list is too long: write ranges, such as 0-63");
	return 0;
}

static int
set_priority(struct priority *field, const char *text, struct err *reterr)
{
	int64_t n = 0;
	int rc = 0;

	if (strcmp(text, "default") == 0)
		field->kind = PRIO_DEFAULT;
	else if (strncmp(text, "nice:", 5) == 0 &&
	    (rc = units_parse_int(text + 5, -20, 19, &n, reterr)) == 0)
		field->kind = PRIO_NICE;
	else if (strncmp(text, "fifo:", 5) == 0 &&
	    (rc = units_parse_int(text + 5, 1, 99, &n, reterr)) == 0)
		field->kind = PRIO_REALTIME;
	else if (rc == 0)
		rc = err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a priority: write default, nice:-20 to "
		    "nice:19, or fifo:1 to fifo:99 (real time)", text);
	if (rc == 0)
		field->level = (int)n;
	return rc;
}

static int
set_string(const struct setting *s, char **field, const char *text,
    struct err *reterr)
{
	char *copy;

	if (s->type == KEY_PATH && *text == '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "the path is empty: name a file");
	if ((copy = strdup(text)) == NULL)
		return err_nomem(reterr, "a value of %zu bytes", strlen(text));
	free(*field);
	*field = copy;
	return 0;
}

/* "1,2,4,8", in the order they will be measured. */
static int
set_list(const struct setting *s, struct int_list *field, const char *text,
    struct err *reterr)
{
	struct int_list list = { 0 };
	char *copy, *rest, *item;
	int64_t n;
	int rc = 0;

	if ((copy = rest = strdup(text)) == NULL)
		return err_nomem(reterr, "the list %s", text);
	while (rc == 0 && (item = strsep(&rest, ",")) != NULL) {
		if (list.n == NITEMS(list.v))
			rc = err_set(reterr, ERR_USAGE, -EINVAL,
			    "too many numbers: at most %zu are allowed",
			    NITEMS(list.v));
		else if ((rc = units_parse_int(item, (int64_t)s->lo,
		    (int64_t)s->hi, &n, reterr)) == 0)
			list.v[list.n++] = (int)n;
	}
	free(copy);
	if (rc == 0)
		*field = list;
	return rc;
}

/* Matching works in whole characters, so that none is cut. */
static int
add_text(struct text_list *field, const char *text, struct err *reterr)
{
	size_t n = strlen(text), i, len;

	if (n == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "the text is empty");
	if (n > MAX_STOP_BYTES)
		return err_set(reterr, ERR_USAGE, -EINVAL, "the text has %zu "
		    "bytes: at most %d are allowed", n, MAX_STOP_BYTES);
	for (i = 0; i < n; i += len)
		if ((len = utf8_len((const uint8_t *)text + i, n - i)) == 0)
			return err_set(reterr, ERR_USAGE, -EINVAL,
			    "the text is not UTF-8");
	if (field->n == MAX_STOPS)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "given too often: at most %d times are allowed", MAX_STOPS);
	if ((field->v[field->n] = strdup(text)) == NULL)
		return err_nomem(reterr, "a text of %zu bytes", n);
	field->n++;
	return 0;
}

/* A name that only has to equal others. */
static int
set_name(char *field, const char *text, struct err *reterr)
{
	size_t n = strspn(text, name_chars);

	if (n == 0 || n >= MAX_NAME || text[n] != '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s' is not a "
		    "name: write 1 to %d letters, digits, '_', '.' and '-'",
		    text, MAX_NAME - 1);
	strlcpy(field, text, MAX_NAME);
	return 0;
}

static int
set_word(const struct setting *s, int *field, const char *text,
    struct err *reterr)
{
	char range[KEY_VALUE_LEN];
	int i;

	for (i = 0; s->words[i] != NULL; i++)
		if (strcmp(s->words[i], text) == 0) {
			*field = i;
			return 0;
		}
	return err_set(reterr, ERR_USAGE, -EINVAL, "\"%s\" is not one of %s",
	    text, key_range(s, range));
}

int
key_set(const struct setting *s, void *base, const char *text,
    struct err *reterr)
{
	void *field = (char *)base + s->off;

	switch (s->type) {
	case KEY_BOOL:
		return set_bool(field, text, reterr);
	case KEY_INT:
		return set_int(s, field, text, reterr);
	case KEY_REAL:
		return units_parse_real(text, s->lo, s->hi, field, reterr);
	case KEY_SEED:
		return set_seed(&((struct conf *)base)->sampling, text, reterr);
	case KEY_CAP:
		return set_cap(base, text, reterr);
	case KEY_KV_TYPE:
		return set_kv_types(s, base, text, reterr);
	case KEY_KV_ONE:
		return set_kv_type(s, field, text, reterr);
	case KEY_WORD:
		return set_word(s, field, text, reterr);
	case KEY_DEVICE:
		return set_device(field, text, reterr);
	case KEY_CORES:
		return set_cores(field, text, reterr);
	case KEY_PRIORITY:
		return set_priority(field, text, reterr);
	case KEY_PORT:
		return set_port(field, text, reterr);
	case KEY_NAME:
		return set_name(field, text, reterr);
	case KEY_SIZE:
		return set_size(s, field, text, reterr);
	case KEY_PATH:
	case KEY_TEXT:
		return set_string(s, field, text, reterr);
	case KEY_LIST:
		return set_list(s, field, text, reterr);
	case KEY_TEXTS:
		return add_text(field, text, reterr);
	case KEY_OTHER:
		break;
	}
	return -EINVAL;
}

void
key_set_default(const struct setting *s, struct conf *c)
{
	void *field = (char *)c + s->off;

	if (s->preset == 0)
		return;
	if (s->type == KEY_INT || s->type == KEY_WORD)
		*(int *)field = (int)s->preset;
	else if (s->type == KEY_REAL)
		*(double *)field = s->preset;
	else if (s->type == KEY_KV_ONE)
		*(enum kv_type *)field = (enum kv_type)s->preset;
}

char *
key_range(const struct setting *s, char buf[KEY_VALUE_LEN])
{
	char lo[UNITS_BYTES_LEN], hi[UNITS_BYTES_LEN];
	unsigned i;

	buf[0] = '\0';
	if (s->type == KEY_INT || s->type == KEY_LIST)
		snprintf(buf, KEY_VALUE_LEN, "%.0f to %.0f", s->lo, s->hi);
	else if (s->type == KEY_REAL)
		snprintf(buf, KEY_VALUE_LEN, "%g to %g", s->lo, s->hi);
	else if (s->type == KEY_SIZE)
		snprintf(buf, KEY_VALUE_LEN, "%s to %s",
		    units_format_bytes((uint64_t)s->lo, lo),
		    units_format_bytes((uint64_t)s->hi, hi));
	else if (s->type == KEY_KV_TYPE || s->type == KEY_KV_ONE)
		for (i = 0; i < KV_NTYPES; i++)
			words_add(buf, KEY_VALUE_LEN, i + 1 == KV_NTYPES ?
			    " or " : ", ", "%s", kv_type_name(i));
	else if (s->type == KEY_WORD)
		for (i = 0; s->words[i] != NULL; i++)
			words_add(buf, KEY_VALUE_LEN, s->words[i + 1] == NULL ?
			    " or " : ", ", "%s", s->words[i]);
	return buf;
}

/* A string in the quotes of the configuration language.  An unescaped dollar
 * would start an environment variable. */
static void
print_quoted(const char *text, FILE *fp)
{
	const char *end = text + strlen(text);
	unsigned len;

	putc('"', fp);
	for (; text < end; text += MAX(len, 1)) {
		len = plain_len(text, (size_t)(end - text));
		if (*text == '\n')
			fputs("\\n", fp);
		if (len == 0 && *text != '\n')
			fprintf(fp, "\\x%02x", (uint8_t)*text);
		if (len > 0 && strchr("\"\\$", *text) != NULL)
			putc('\\', fp);
		fwrite(text, 1, len, fp);
	}
	putc('"', fp);
}

/* Absolute, because a printed file may be moved to another folder. */
static void
print_path(const char *path, FILE *fp)
{
	char *cwd = *path == '/' ? NULL : getcwd(NULL, 0), *full;

	if (cwd != NULL && asprintf(&full, "%s/%s", cwd, path) >= 0) {
		print_quoted(full, fp);
		free(full);
	} else
		print_quoted(path, fp);
	free(cwd);
}

/* 1 when nobody set the field, or another key says the same. */
static int
is_unset(const struct setting *s, const void *base)
{
	const char *field = (const char *)base + s->off;
	const struct session_conf *session = base;
	const struct conf *c = base;

	switch (s->type) {
	case KEY_INT:
		return *(const int *)(const void *)field < s->lo;
	case KEY_SEED:
		return !c->sampling.seed_given;
	case KEY_CAP:
		return !session->cap_given;
	case KEY_CORES:
	case KEY_PORT:
	case KEY_NAME:
		return *field == '\0';
	case KEY_SIZE:
		return *(const uint64_t *)(const void *)field == 0;
	case KEY_PRIORITY:
		return session->priority.kind == PRIO_DEFAULT;
	case KEY_PATH:
	case KEY_TEXT:
		return *(char *const *)(const void *)field == NULL;
	case KEY_KV_TYPE:
	case KEY_KV_ONE:
		return (s->type == KEY_KV_ONE) ==
		    (c->kv_type_k == c->kv_type_v);
	default:
		return 0;
	}
}

char *
key_format(const struct setting *s, const void *base, char buf[KEY_VALUE_LEN])
{
	const void *field = (const char *)base + s->off;
	const struct priority *prio = field;

	buf[0] = '\0';
	switch (s->type) {
	case KEY_BOOL:
		strlcpy(buf, *(const int *)field ? "true" : "false",
		    KEY_VALUE_LEN);
		break;
	case KEY_INT:
		snprintf(buf, KEY_VALUE_LEN, "%d", *(const int *)field);
		break;
	case KEY_REAL:
		units_format_real(*(const double *)field, buf);
		break;
	case KEY_SEED:
		snprintf(buf, KEY_VALUE_LEN, "%" PRIu64,
		    ((const struct conf *)base)->sampling.seed);
		break;
	case KEY_CAP:
	case KEY_SIZE:
		units_format_bytes(*(const uint64_t *)field, buf);
		break;
	case KEY_KV_TYPE:
		strlcpy(buf, kv_type_name(((const struct conf *)base)->
		    kv_type_k), KEY_VALUE_LEN);
		break;
	case KEY_KV_ONE:
		strlcpy(buf, kv_type_name(*(const enum kv_type *)field),
		    KEY_VALUE_LEN);
		break;
	case KEY_WORD:
		strlcpy(buf, s->words[*(const int *)field], KEY_VALUE_LEN);
		break;
	case KEY_PRIORITY:
		snprintf(buf, KEY_VALUE_LEN, "%s:%d", prio->kind == PRIO_NICE ?
		    "nice" : "fifo", prio->level);
		break;
	case KEY_DEVICE:
	case KEY_CORES:
	case KEY_PORT:
	case KEY_NAME:
		strlcpy(buf, field, KEY_VALUE_LEN);
		break;
	case KEY_PATH:
	case KEY_TEXT:
	case KEY_TEXTS:
	case KEY_LIST:
	case KEY_OTHER:
		break;
	}
	return buf;
}

void
key_print(const struct setting *s, const void *base, const char *indent,
    FILE *fp)
{
	char value[KEY_VALUE_LEN];

	if (is_unset(s, base))
		return;
	fprintf(fp, "%s%s = ", indent, s->key);
	if (s->type == KEY_PATH)
		print_path(*(char *const *)(const void *)
		    ((const char *)base + s->off), fp);
	else if (s->type == KEY_TEXT)
		print_quoted(*(char *const *)(const void *)
		    ((const char *)base + s->off), fp);
	else if (s->type == KEY_BOOL || s->type == KEY_INT ||
	    s->type == KEY_REAL || s->type == KEY_SEED)
		fputs(key_format(s, base, value), fp);
	else
		print_quoted(key_format(s, base, value), fp);
	putc('\n', fp);
}

void
session_defaults(struct session_conf *s)
{
	memset(s, 0, sizeof(*s));
	strlcpy(s->device, DEVICE_DEFAULT, sizeof(s->device));
	s->node = -1;
	s->iommu_domain = -1;
}

int
session_set_name(struct session_conf *s, const char *name, struct err *reterr)
{
	size_t n = strspn(name, name_chars);

	if (n == 0 || n >= MAX_NAME || name[n] != '\0' || *name == '.' ||
	    *name == '-')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a session name: write 1 to %d letters, "
		    "digits, '_', '.' and '-', not beginning with '.' or '-'",
		    name, MAX_NAME - 1);
	strlcpy(s->name, name, sizeof(s->name));
	return 0;
}
