/* tests/standin/rknnrt_conf.c - switches, injected faults and counters of the
 * stand-in for librknnrt.so. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "rknnrt.h"

/* A fault of a call: fail=run:-2@10. */
enum fault_kind { FAULT_FAIL, FAULT_HANG, FAULT_ABORT };
struct fault {
	enum fault_kind kind;
	char call[32];
	int code, at;			/* at = 0: each time */
	int calls;
};

enum { MAX_FAULTS = 8 };
static struct fault faults[MAX_FAULTS];
static unsigned nfaults;
static int once_fd = -1, report_fd = -1, lock_fd = -1;

pthread_mutex_t rknn_lock = PTHREAD_MUTEX_INITIALIZER;
struct rknn_standin_counts rknn_counts;

static struct switches sw;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

/* --- messages --- */

void
complain(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "E RKNN: %s\n", text);
}

void
fatal_error(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "E RKNN: %s\n", text);
	abort();
}

void
misused(const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (rknn_counts.misuses++ == 0)
		memcpy(rknn_counts.first_misuse, text, sizeof(text));
	fprintf(stderr, "stand-in for librknnrt.so: misuse: %s\n", text);
}

/* --- the value of a switch --- */

NORETURN static void
bad_switch(const char *name, const char *value)
{
	fprintf(stderr, "STRADDLE_RKNN: %s=%s is not understood\n", name,
	    value);
	exit(1);
}

static long
number(const char *name, const char *value)
{
	char *end;
	long v = strtol(value, &end, 0);

	if (*value == '\0' || *end != '\0')
		bad_switch(name, value);
	return v;
}

/* "10240+10304", "all", "none" */
static void
read_list(const char *name, char *value, struct list *ret)
{
	char *word;

	memset(ret, 0, sizeof(*ret));
	if (strcmp(value, "all") == 0)
		ret->all = 1;
	if (strcmp(value, "all") == 0 || strcmp(value, "none") == 0)
		return;
	while ((word = strsep(&value, "+")) != NULL) {
		if (ret->n == NITEMS(ret->v))
			bad_switch(name, word);
		ret->v[ret->n++] = (int)number(name, word);
	}
}

int
list_has(const struct list *l, int v)
{
	unsigned i;

	for (i = 0; i < l->n; i++)
		if (l->v[i] == v)
			return 1;
	return l->all;
}

/* "run:-2@10+create:-4", "run@3" */
static void
read_faults(enum fault_kind kind, char *value)
{
	char *word, *part;
	struct fault *f;

	while ((word = strsep(&value, "+")) != NULL) {
		if (nfaults == MAX_FAULTS)
			bad_switch("faults", word);
		f = &faults[nfaults++];
		f->kind = kind;
		f->code = RKNN_ERR_FAIL;
		if ((part = strchr(word, '@')) != NULL) {
			*part++ = '\0';
			f->at = (int)number(word, part);
		}
		if ((part = strchr(word, ':')) != NULL) {
			*part++ = '\0';
			f->code = (int)number(word, part);
		}
		snprintf(f->call, sizeof(f->call), "%s", word);
	}
}

static void
read_version(const char *value)
{
	int major, minor, patch;

	if (sscanf(value, "%d.%d.%d", &major, &minor, &patch) != 3)
		bad_switch("version", value);
	sw.release = RELEASE(major, minor, patch);
	snprintf(sw.version, sizeof(sw.version), "%s (stand-in)", value);
}

static void
read_query(const char *value)
{
	sw.query = strcmp(value, "none") == 0 ? QUERY_NONE :
	    strcmp(value, "version") == 0 ? QUERY_VERSION : QUERY_ALL;
}

/* A file that is open before the process is confined. */
static int
open_file(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);

	if (fd < 0)
		bad_switch("file", path);
	return fd;
}

/* Switches with one number each. */
static int
read_number(const char *name, const char *value)
{
	const struct { const char *name; int *ret; } ints[] = {
		{ "coherent", &sw.coherent }, { "abort-9", &sw.abort_9 },
		{ "segments", &sw.segments }, { "max-k", &sw.max_k },
		{ "fds", (int *)&sw.fds }, { "time", (int *)&sw.time },
		{ "switch-us", (int *)&sw.switch_us },
	};
	const struct { const char *name; uint64_t *ret; } sizes[] = {
		{ "domain-bytes", &sw.domain_bytes },
		{ "largest-bytes", &sw.largest_bytes },
		{ "internal-bytes", &sw.internal_bytes },
	};
	unsigned i;

	for (i = 0; i < NITEMS(ints); i++)
		if (strcmp(ints[i].name, name) == 0) {
			*ints[i].ret = (int)number(name, value);
			return 1;
		}
	for (i = 0; i < NITEMS(sizes); i++)
		if (strcmp(sizes[i].name, name) == 0) {
			*sizes[i].ret = (uint64_t)number(name, value);
			return 1;
		}
	return 0;
}

static void
read_switch(const char *name, char *value)
{
	if (strcmp(name, "soc") == 0) {
		if ((sw.chip = find_chip(value)) == NULL)
			bad_switch(name, value);
	} else if (strcmp(name, "version") == 0)
		read_version(value);
	else if (strcmp(name, "answer") == 0)
		snprintf(sw.version, sizeof(sw.version), "%s", value);
	else if (strcmp(name, "driver") == 0)
		snprintf(sw.driver, sizeof(sw.driver), "%s", value);
	else if (strcmp(name, "types") == 0) {
		sw.has_types = 1;
		read_list(name, value, &sw.types);
	} else if (strcmp(name, "abort-k") == 0) {
		sw.has_abort_k = 1;
		read_list(name, value, &sw.abort_k);
	} else if (strcmp(name, "zero") == 0)
		read_list(name, value, &sw.zero);
	else if (strcmp(name, "wrong") == 0)
		read_list(name, value, &sw.wrong);
	else if (strcmp(name, "query") == 0)
		read_query(value);
	else if (strcmp(name, "fail") == 0)
		read_faults(FAULT_FAIL, value);
	else if (strcmp(name, "hang") == 0)
		read_faults(FAULT_HANG, value);
	else if (strcmp(name, "abort") == 0)
		read_faults(FAULT_ABORT, value);
	else if (strcmp(name, "once") == 0)
		once_fd = open_file(value, 0);
	else if (strcmp(name, "report") == 0)
		report_fd = open_file(value, O_APPEND);
	else if (strcmp(name, "lock") == 0)
		lock_fd = open_file(value, 0);
	else if (!read_number(name, value))
		bad_switch(name, value);
}

static void
read_switches(void)
{
	const char *e = getenv("STRADDLE_RKNN");
	char *copy = strdup(e != NULL ? e : ""), *rest = copy, *word, *value;

	sw.chip = find_chip("rk3588");
	read_version("2.3.2");
	snprintf(sw.driver, sizeof(sw.driver), "%s", "0.9.8");
	sw.abort_9 = 1;
	sw.segments = 1;
	sw.domain_bytes = UINT64_C(4) << 30;
	sw.largest_bytes = UINT32_MAX;
	sw.internal_bytes = UINT64_MAX;
	sw.query = QUERY_ALL;
	while ((word = strsep(&rest, ",")) != NULL) {
		if (*word == '\0')
			continue;
		if ((value = strchr(word, '=')) == NULL)
			bad_switch(word, "");
		*value++ = '\0';
		read_switch(word, value);
	}
	free(copy);
}

const struct switches *
switches(void)
{
	pthread_once(&read_once, read_switches);
	return &sw;
}

/* Files must be open before the process is confined. */
__attribute__((constructor)) static void
read_early(void)
{
	switches();
}

/* --- faults --- */

/* With once=FILE, is this the first fault of all processes?  The file has a byte
 * from then on. */
static int
is_first(void)
{
	char c = 'x';

	return once_fd < 0 || (pread(once_fd, &c, 1, 0) == 0 &&
	    write(once_fd, &c, 1) == 1);
}

static struct fault *
due_fault(const char *call)
{
	struct fault *f, *due = NULL;

	pthread_mutex_lock(&rknn_lock);
	for (f = faults; f < faults + nfaults; f++)
		if (strcmp(f->call, call) == 0 && (++f->calls == f->at ||
		    f->at == 0) && due == NULL && is_first())
			due = f;
	pthread_mutex_unlock(&rknn_lock);
	return due;
}

int
injected(const char *call)
{
	const struct fault *f = switches() != NULL ? due_fault(call) : NULL;

	if (f == NULL)
		return RKNN_SUCC;
	if (f->kind == FAULT_ABORT)
		fatal_error("%s: injected abort", call);
	while (f->kind == FAULT_HANG)	/* a confined process may sleep */
		nanosleep(&(struct timespec){ .tv_sec = 3600 }, NULL);
	return f->code;
}

void
check_alone(int domain)
{
	static int held = LOCK_UN;
	int want = domain != 0 ? LOCK_EX : LOCK_SH, rc = 0;

	if (switches() == NULL || lock_fd < 0)
		return;
	/* A confined process may not lock: only what is not held yet. */
	pthread_mutex_lock(&rknn_lock);
	if (held != LOCK_EX && held != want &&
	    (rc = flock(lock_fd, want | LOCK_NB)) == 0)
		held = want;
	pthread_mutex_unlock(&rknn_lock);
	if (rc < 0)
		fatal_error("kernel panic: another process uses the NPU, and "
		    "one of the two a domain but 0");
}

/* --- counters --- */

EXPORT void
rknn_standin_counts(struct rknn_standin_counts *ret)
{
	pthread_mutex_lock(&rknn_lock);
	*ret = rknn_counts;
	pthread_mutex_unlock(&rknn_lock);
}

__attribute__((destructor)) static void
report(void)
{
	const struct rknn_standin_counts *c = &rknn_counts;

	if (report_fd >= 0)
		dprintf(report_fd, "pid %d: %ju creates, %ju runs, %ju syncs, "
		    "%ju switches of the domain; at exit %u contexts, %u "
		    "memories; %u misuses%s%s\n", (int)getpid(),
		    (uintmax_t)c->creates, (uintmax_t)c->runs,
		    (uintmax_t)c->syncs, (uintmax_t)c->switches, c->contexts,
		    c->mems, c->misuses, c->misuses != 0 ? ": " : "",
		    c->first_misuse);
}
