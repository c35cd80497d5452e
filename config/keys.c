/* config/keys.c - the tables of settings; one setting read, one printed. */
#include "keys.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "devices.h"

/* Longest device kind: kind and index must still make a session's name. */
enum { MAX_DEVICE = 20, MAX_NODE = 1023 };

/* 32 bits of addresses, less what the emulator keeps at their end. */
#define DOMAIN_MOST	(4 * GIB - 16 * MIB)

#define COMMON(field)	offsetof(struct conf, field)
#define SAMPLING(field)	offsetof(struct sampling_conf, field)
#define SESSION(field)	offsetof(struct session_conf, field)

const struct conf_key common_keys[COMMON_NKEYS] = {
[COMMON_MODEL]   = { "model", KEY_PATH, COMMON(model_path), 0, 0 },
[COMMON_CONTEXT] = { "context", KEY_INT, COMMON(ctx_tok), 1, LIMIT_CONTEXT },
[COMMON_BATCH]   = { "batch", KEY_INT, COMMON(batch_rows), 1, MAX_BATCH },
[COMMON_KV_TYPE] = { "kv_type", KEY_KV_TYPE, 0, 0, 0 },
[COMMON_KV_TYPE_K] = { "kv_type_k", KEY_KV_ONE, COMMON(kv_type_k), 0, 0 },
[COMMON_KV_TYPE_V] = { "kv_type_v", KEY_KV_ONE, COMMON(kv_type_v), 0, 0 },
[COMMON_HALF_LAYERS] = { "half_layers", KEY_BOOL, COMMON(half_layers), 0, 0 },
[COMMON_STRICT]  = { "strict", KEY_BOOL, COMMON(strict), 0, 0 },
[COMMON_RECOVER] = { "recover", KEY_INT, COMMON(recover), 0, LIMIT_RECOVER },
};

const struct conf_key sampling_keys[SAMPLING_NKEYS] = {
[SAMPLING_TEMP]  = { "temp", KEY_REAL, SAMPLING(temp), 0, 100 },
[SAMPLING_TOP_K] = { "top_k", KEY_INT, SAMPLING(top_k), 0, 1 << 24 },
[SAMPLING_TOP_P] = { "top_p", KEY_REAL, SAMPLING(top_p), 0, 1 },
[SAMPLING_MIN_P] = { "min_p", KEY_REAL, SAMPLING(min_p), 0, 1 },
[SAMPLING_REPEAT_PENALTY] = { "repeat_penalty", KEY_REAL,
    SAMPLING(repeat_penalty), 0.01, 100 },
[SAMPLING_REPEAT_LAST_N] = { "repeat_last_n", KEY_INT,
    SAMPLING(repeat_last_n), 0, LIMIT_CONTEXT },
[SAMPLING_SEED]  = { "seed", KEY_SEED, 0, 0, 0 },
};

const struct conf_key session_keys[SESSION_NKEYS] = {
[SESSION_DEVICE]   = { "device", KEY_DEVICE, SESSION(device), 0, 0 },
[SESSION_CORES]    = { "cores", KEY_CORES, SESSION(cores), 0, 0 },
[SESSION_NODE]     = { "node", KEY_INT, SESSION(node), 0, MAX_NODE },
[SESSION_CAP]      = { "cap", KEY_CAP, 0, 0, 0 },
[SESSION_THREADS]  = { "threads", KEY_INT, SESSION(threads), 1, MAX_CPUS },
[SESSION_PRIORITY] = { "priority", KEY_PRIORITY, SESSION(priority), 0, 0 },
[SESSION_PORT]     = { "port", KEY_PORT, SESSION(port), 0, 0 },
[SESSION_DOMAIN]   = { "domain", KEY_SIZE, SESSION(domain_bytes), 64 * MIB,
    DOMAIN_MOST },
};

/* The characters of a session's name, which also names its memory group. */
static const char name_chars[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

static int
set_bool(int *field, const char *text, struct err *reterr)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not known: write true or false", text);
	*field = *text == 't';
	return 0;
}

static int
set_int(const struct conf_key *k, int *field, const char *text,
    struct err *reterr)
{
	int64_t n;
	int rc;

	if ((rc = units_parse_int(text, (int64_t)k->lo, (int64_t)k->hi, &n,
	    reterr)) == 0)
		*field = (int)n;
	return rc;
}

/* Every seed that a run can draw and print can be given back to it. */
static int
set_seed(struct sampling_conf *s, const char *text, struct err *reterr)
{
	size_t n = strspn(text, "0123456789");
	uint64_t seed;

	errno = 0;
	seed = strtoull(text, NULL, 10);
	if (n == 0 || text[n] != '\0' || errno == ERANGE)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a seed: 0 to %" PRIu64 " is allowed", text,
		    UINT64_MAX);
	s->seed = seed;
	s->seed_given = 1;
	return 0;
}

static int
set_cap(struct session_conf *s, const char *text, struct err *reterr)
{
	uint64_t nbytes;
	int rc;

	if ((rc = units_parse_bytes(text, &nbytes, reterr)) < 0)
		return rc;
	if (nbytes == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' holds nothing: give at least one byte, or leave "
		    "cap out for an equal share of the free memory", text);
	/* No session lives in less, and so few bytes are meant by nobody. */
	if (nbytes < MIB && text[strspn(text, "0123456789.")] == '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL, "%.64s means %"
		    PRIu64 " byte%s: did you mean %.64sMiB?", text, nbytes,
		    nbytes == 1 ? "" : "s", text);
	s->cap_bytes = nbytes;
	s->cap_given = 1;
	return 0;
}

static int
set_size(const struct conf_key *k, uint64_t *field, const char *text,
    struct err *reterr)
{
	char lo[UNITS_BYTES_LEN], hi[UNITS_BYTES_LEN];
	uint64_t nbytes;
	int rc;

	if ((rc = units_parse_bytes(text, &nbytes, reterr)) < 0)
		return rc;
	if ((double)nbytes < k->lo || (double)nbytes > k->hi)
		return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s' is out of "
		    "range: %s to %s is allowed", text,
		    units_format_bytes((uint64_t)k->lo, lo),
		    units_format_bytes((uint64_t)k->hi, hi));
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
set_kv_type(enum kv_type *field, const char *text, struct err *reterr)
{
	if (kv_type_parse(text, field) == 0)
		return 0;
	return err_set(reterr, ERR_USAGE, -EINVAL,
	    "'%.64s' is not a KV type: write f16, q8_0 or f32", text);
}

static int
set_kv_types(struct conf *c, const char *text, struct err *reterr)
{
	int rc = set_kv_type(&c->kv_type_k, text, reterr);

	c->kv_type_v = c->kv_type_k;
	return rc;
}

static int
set_device(char *field, const char *text, struct err *reterr)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");

	if (n == 0 || n > MAX_DEVICE || text[n] != '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a device kind: write one word of small "
		    "letters and digits, such as cpu or null", text);
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
set_string(const struct conf_key *k, char **field, const char *text,
    struct err *reterr)
{
	char *copy;

	if (k->type == KEY_PATH && *text == '\0')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "the path is empty: name a file");
	if ((copy = strdup(text)) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	free(*field);
	*field = copy;
	return 0;
}

/* "1,2,4,8", in the order they will be measured. */
static int
set_list(const struct conf_key *k, struct int_list *field, const char *text,
    struct err *reterr)
{
	struct int_list list = { 0 };
	char *copy, *rest, *item;
	int64_t n;
	int rc = 0;

	if ((copy = rest = strdup(text)) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	while (rc == 0 && (item = strsep(&rest, ",")) != NULL) {
		if (list.n == NITEMS(list.v))
			rc = err_set(reterr, ERR_USAGE, -EINVAL,
			    "too many numbers: %zu are allowed",
			    NITEMS(list.v));
		else if ((rc = units_parse_int(item, (int64_t)k->lo,
		    (int64_t)k->hi, &n, reterr)) == 0)
			list.v[list.n++] = (int)n;
	}
	free(copy);
	if (rc == 0)
		*field = list;
	return rc;
}

int
key_set(const struct conf_key *k, void *base, const char *text,
    struct err *reterr)
{
	void *field = (char *)base + k->off;

	switch (k->type) {
	case KEY_BOOL:
		return set_bool(field, text, reterr);
	case KEY_INT:
		return set_int(k, field, text, reterr);
	case KEY_REAL:
		return units_parse_real(text, k->lo, k->hi, field, reterr);
	case KEY_SEED:
		return set_seed(base, text, reterr);
	case KEY_CAP:
		return set_cap(base, text, reterr);
	case KEY_KV_TYPE:
		return set_kv_types(base, text, reterr);
	case KEY_KV_ONE:
		return set_kv_type(field, text, reterr);
	case KEY_DEVICE:
		return set_device(field, text, reterr);
	case KEY_CORES:
		return set_cores(field, text, reterr);
	case KEY_PRIORITY:
		return set_priority(field, text, reterr);
	case KEY_PORT:
		return set_port(field, text, reterr);
	case KEY_SIZE:
		return set_size(k, field, text, reterr);
	case KEY_PATH:
	case KEY_TEXT:
		return set_string(k, field, text, reterr);
	case KEY_LIST:
		return set_list(k, field, text, reterr);
	}
	return -EINVAL;
}

/* A string in the quotes of the configuration language, where the dollar
 * would otherwise begin a variable of the environment. */
static void
print_quoted(const char *text, FILE *fp)
{
	putc('"', fp);
	for (; *text != '\0'; text++) {
		if (strchr("\"\\$\n", *text) != NULL)
			putc('\\', fp);
		putc(*text == '\n' ? 'n' : *text, fp);
	}
	putc('"', fp);
}

/* Absolute, because a printed file may be put into another folder. */
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

/* 1 when the field says that nobody asked, or another says the same. */
static int
key_unset(const struct conf_key *k, const void *base)
{
	const char *field = (const char *)base + k->off;

	switch (k->type) {
	case KEY_INT:
		return *(const int *)(const void *)field < k->lo;
	case KEY_SEED:
		return !((const struct sampling_conf *)base)->seed_given;
	case KEY_CAP:
		return !((const struct session_conf *)base)->cap_given;
	case KEY_CORES:
	case KEY_PORT:
		return *field == '\0';
	case KEY_SIZE:
		return *(const uint64_t *)(const void *)field == 0;
	case KEY_PRIORITY:
		return ((const struct session_conf *)base)->priority.kind ==
		    PRIO_DEFAULT;
	case KEY_PATH:
		return *(char *const *)(const void *)field == NULL;
	case KEY_KV_TYPE:
	case KEY_KV_ONE:
		return (k->type == KEY_KV_ONE) ==
		    (((const struct conf *)base)->kv_type_k ==
		    ((const struct conf *)base)->kv_type_v);
	default:
		return 0;
	}
}

void
key_print(const struct conf_key *k, const void *base, const char *indent,
    FILE *fp)
{
	const void *field = (const char *)base + k->off;
	const struct priority *prio = field;
	char size[UNITS_BYTES_LEN], real[UNITS_REAL_LEN];

	if (key_unset(k, base))
		return;
	fprintf(fp, "%s%s = ", indent, k->name);
	switch (k->type) {
	case KEY_BOOL:
		fputs(*(const int *)field ? "true" : "false", fp);
		break;
	case KEY_INT:
		fprintf(fp, "%d", *(const int *)field);
		break;
	case KEY_REAL:
		fputs(units_format_real(*(const double *)field, real), fp);
		break;
	case KEY_SEED:
		fprintf(fp, "%" PRIu64,
		    ((const struct sampling_conf *)base)->seed);
		break;
	case KEY_CAP:
		print_quoted(units_format_bytes(
		    ((const struct session_conf *)base)->cap_bytes, size), fp);
		break;
	case KEY_KV_TYPE:
		print_quoted(kv_type_name(
		    ((const struct conf *)base)->kv_type_k), fp);
		break;
	case KEY_KV_ONE:
		print_quoted(kv_type_name(*(const enum kv_type *)field), fp);
		break;
	case KEY_PRIORITY:
		fprintf(fp, "\"%s:%d\"", prio->kind == PRIO_NICE ? "nice" :
		    "fifo", prio->level);
		break;
	case KEY_PATH:
		print_path(*(char *const *)field, fp);
		break;
	case KEY_SIZE:
		print_quoted(units_format_bytes(*(const uint64_t *)field,
		    size), fp);
		break;
	case KEY_DEVICE:
	case KEY_CORES:
	case KEY_PORT:
		print_quoted(field, fp);
		break;
	case KEY_TEXT:
	case KEY_LIST:		/* flags only */
		break;
	}
	putc('\n', fp);
}

void
session_defaults(struct session_conf *s)
{
	memset(s, 0, sizeof(*s));
	strlcpy(s->device, DEVICE_DEFAULT, sizeof(s->device));
	s->node = -1;
}

int
session_set_name(struct session_conf *s, const char *name, struct err *reterr)
{
	size_t n = strspn(name, name_chars);

	if (n == 0 || n >= MAX_NAME || name[n] != '\0' || *name == '.' ||
	    *name == '-')
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%.64s' is not a session name: write 1 to %d letters, "
		    "digits, '_', '.' and '-', the first no '.' or '-'", name,
		    MAX_NAME - 1);
	strlcpy(s->name, name, sizeof(s->name));
	return 0;
}
