/* tests/standin/ascend_conf.c - switches, injected faults, handles and counters of
 * the stand-in for CANN's libraries. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "ascend.h"

/* A fault of a call: fail=aclrtMalloc:207018@2. */
enum fault_kind { FAULT_FAIL, FAULT_LATE, FAULT_HANG, FAULT_ABORT };
struct fault {
	enum fault_kind kind;
	char call[48];
	int code, at;			/* at = 0: each time */
	int calls;
};

enum { MAX_FAULTS = 16 };
static struct fault faults[MAX_FAULTS];
static unsigned nfaults;

/* Tasks that take longer, by the model of times. */
enum { MAX_SLOW = 8 };
static struct slow {
	char op[48];			/* "ND": products with row-major W */
	uint64_t percent;
	long rows;			/* only products of so many; 0 = all */
} slow[MAX_SLOW];
static unsigned nslow;

static int once_fd = -1, report_fd = -1;
enum { REPORT_BYTES = 384 };		/* of a line */
static off_t report_at;
static struct {
	char op[24];
	int64_t n, k;
	enum shape_fault fault;
} shapes[MAX_FAULTS];
static unsigned nshapes;
static char missing[1024], zero[256], wrong[256];
static char drops[256], rebinds[256];

pthread_mutex_t ascend_lock = PTHREAD_MUTEX_INITIALIZER;
struct ascend_standin_counts ascend_counts;

static void open_report(const char *path);

static struct switches sw;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;

/* --- messages --- */

static _Thread_local char recent[256];
static _Thread_local int has_recent;

int
ascend_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(recent, sizeof(recent), fmt, ap);
	va_end(ap);
	has_recent = 1;
	return code;
}

EXPORT const char *
aclGetRecentErrMsg(void)
{
	int had = has_recent;

	has_recent = 0;
	return had ? recent : NULL;
}

void
ascend_fatal(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "[ERROR] ASCENDCL: %s\n", text);
	abort();
}

void
ascend_misused(const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (ascend_counts.misuses++ == 0)
		memcpy(ascend_counts.first_misuse, text, sizeof(text));
	fprintf(stderr, "stand-in for libascendcl.so: misuse: %s\n", text);
	ascend_report();
}

/* --- the value of a switch --- */

NORETURN static void
bad_switch(const char *name, const char *value)
{
	fprintf(stderr, "STRADDLE_ASCEND: %s=%s is not understood\n", name,
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

/* "aclrtMalloc:207018@2+Mm:361001" */
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
		f->code = kind == FAULT_LATE ? ACL_ERROR_RT_AICPU_EXCEPTION :
		    ACLNN_ERR_RUNTIME_ERROR;
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

/* "Mm:300@1+ND:200" */
static void
read_slow(char *value)
{
	char *word, *part;
	struct slow *s;

	while ((word = strsep(&value, "+")) != NULL) {
		if (nslow == MAX_SLOW)
			bad_switch("slow", word);
		s = &slow[nslow++];
		if ((part = strchr(word, '@')) != NULL) {
			*part++ = '\0';
			s->rows = number(word, part);
		}
		if ((part = strchr(word, ':')) == NULL)
			bad_switch("slow", word);
		*part++ = '\0';
		s->percent = (uint64_t)number(word, part);
		snprintf(s->op, sizeof(s->op), "%s", word);
	}
}

uint64_t
ascend_slowed(const char *op, const struct task_time *t)
{
	const struct slow *s;
	uint64_t ns = t->ns;

	for (s = slow; s < slow + nslow; s++)
		if ((strcmp(s->op, op) == 0 || (t->is_nd &&
		    strcmp(s->op, "ND") == 0)) && (s->rows == 0 || s->rows ==
		    t->rows))
			ns = ns * s->percent / 100;
	return ns;
}

static int
open_file(const char *path, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);

	if (fd < 0)
		bad_switch("file", path);
	return fd;
}

/* Index of a value among the names that a switch may have. */
static int
read_name(const char *name, const char *const *names, unsigned n,
    const char *value)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(names[i], value) == 0)
			return (int)i;
	bad_switch(name, value);
}

static int
read_ops(const char *value)
{
	static const char *const names[] = { "all", "board", "docs", "none",
	    "classic" };

	return read_name("ops", names, NITEMS(names), value);
}

static int
read_company(const char *value)
{
	static const char *const names[] = { "none", "rows", "place" };

	return read_name("company", names, NITEMS(names), value);
}

/* "product:96x288:company+RmsNorm:288:wrong" */
static void
read_shapes(char *value)
{
	static const char *const names[] = { "fine", "company", "wrong",
	    "late", "abort" };
	char *word, *n, *k, *how;

	while ((word = strsep(&value, "+")) != NULL) {
		if (nshapes == MAX_FAULTS || (n = strchr(word, ':')) == NULL ||
		    (how = strchr(n + 1, ':')) == NULL)
			bad_switch("shape", word);
		*n++ = *how++ = '\0';
		if ((k = strchr(n, 'x')) != NULL)
			*k++ = '\0';
		snprintf(shapes[nshapes].op, sizeof(shapes[nshapes].op), "%s",
		    word);
		shapes[nshapes].n = number("shape", n);
		shapes[nshapes].k = k != NULL ? number("shape", k) : 0;
		shapes[nshapes++].fault = (enum shape_fault)read_name("shape",
		    names, NITEMS(names), how);
	}
}

static void
set_soc(const char *value)
{
	if (strcmp(value, "310B") == 0)
		value = "Ascend310B1";
	else if (strcmp(value, "910B") == 0)
		value = "Ascend910B2";
	snprintf(sw.soc, sizeof(sw.soc), "%s", value);
	sw.is_310b = sw.is_rc = sw.quirks =
	    strncmp(sw.soc, "Ascend310B", 10) == 0;
	sw.ops = sw.is_310b ? OPS_BOARD : OPS_ALL;
	sw.vmm = !sw.is_rc;
	sw.ndevices = sw.is_310b ? 1 : 2;
}

static int
read_number(const char *name, const char *value)
{
	const struct { const char *name; int *ret; } ints[] = {
		{ "rc", &sw.is_rc }, { "quirks", &sw.quirks },
		{ "vmm", &sw.vmm }, { "stub", &sw.stub },
		{ "nd", &sw.nd }, { "nz", &sw.nz },
		{ "offsets", &sw.offsets },
		{ "both", &sw.both },
		{ "host-skew", (int *)&sw.host_skew },
		{ "devices", (int *)&sw.ndevices },
		{ "workspace-percent", (int *)&sw.workspace_percent },
		{ "delay-us", (int *)&sw.delay_us },
		{ "launch-us", (int *)&sw.launch_us },
		{ "event-errors", &sw.event_errors },
		{ "fn-workspace", (int *)&sw.fn_workspace },
		{ "graph-stale", &sw.graph_stale },
		{ "capture", &sw.capture },
		{ "times", &sw.times },
		{ "wide-sums", &sw.wide_sums },
	};
	const struct { const char *name; uint64_t *ret; } sizes[] = {
		{ "mem-bytes", &sw.mem_bytes },
		{ "granule-bytes", &sw.granule_bytes },
		{ "graph-bytes", &sw.graph_bytes },
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
	if (strcmp(name, "soc") == 0)
		set_soc(value);
	else if (strcmp(name, "ops") == 0)
		sw.ops = (enum operators)read_ops(value);
	else if (strcmp(name, "company") == 0)
		sw.company = (enum company)read_company(value);
	else if (strcmp(name, "as") == 0)
		sw.refuse_as = strcmp(value, "missing") == 0 ? 0 :
		    (int)number(name, value);
	else if (strcmp(name, "missing") == 0)
		snprintf(missing, sizeof(missing), "%s", value);
	else if (strcmp(name, "zero") == 0)
		snprintf(zero, sizeof(zero), "%s", value);
	else if (strcmp(name, "wrong") == 0)
		snprintf(wrong, sizeof(wrong), "%s", value);
	else if (strcmp(name, "shape") == 0)
		read_shapes(value);
	else if (strcmp(name, "slow") == 0)
		read_slow(value);
	else if (strcmp(name, "graph-drops") == 0)
		snprintf(drops, sizeof(drops), "%s", value);
	else if (strcmp(name, "graph-rebinds") == 0)
		snprintf(rebinds, sizeof(rebinds), "%s", value);
	else if (strcmp(name, "fail") == 0)
		read_faults(FAULT_FAIL, value);
	else if (strcmp(name, "late") == 0)
		read_faults(FAULT_LATE, value);
	else if (strcmp(name, "hang") == 0)
		read_faults(FAULT_HANG, value);
	else if (strcmp(name, "abort") == 0)
		read_faults(FAULT_ABORT, value);
	else if (strcmp(name, "once") == 0)
		once_fd = open_file(value, 0);
	else if (strcmp(name, "report") == 0)
		open_report(value);
	else if (!read_number(name, value))
		bad_switch(name, value);
}

static void
read_switches(void)
{
	const char *e = getenv("STRADDLE_ASCEND");
	char *copy = strdup(e != NULL ? e : ""), *rest = copy, *word, *value;

	set_soc("910B");
	sw.refuse_as = ACLNN_ERR_RUNTIME_ERROR;
	sw.mem_bytes = GIB;
	sw.granule_bytes = 2 * MIB;
	sw.host_skew = 16;
	sw.event_errors = sw.capture = sw.times = 1;
	sw.nd = sw.nz = sw.offsets = 1;
	sw.graph_bytes = 4 * KIB;
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
ascend_switches(void)
{
	pthread_once(&read_once, read_switches);
	return &sw;
}

/* Files must be open before the process is confined. */
__attribute__((constructor)) static void
read_early(void)
{
	ascend_switches();
}

int
ascend_listed(const char *list, const char *name)
{
	const char *p = list[0] == 'm' ? missing : list[0] == 'z' ? zero :
	    strcmp(list, "graph-drops") == 0 ? drops : list[0] == 'g' ?
	    rebinds : wrong;
	size_t len = strlen(name), n;

	for (; *p != '\0'; p += n + (p[n] == '+')) {
		n = strcspn(p, "+");
		if ((n == len && memcmp(p, name, n) == 0) ||
		    (n == 3 && memcmp(p, "all", 3) == 0))
			return 1;
	}
	return 0;
}

/* --- faults --- */

enum shape_fault
ascend_shape_fault(const char *op, int64_t n, int64_t k)
{
	unsigned i;

	ascend_switches();
	for (i = 0; i < nshapes; i++)
		if (strcmp(shapes[i].op, op) == 0 && shapes[i].n == n &&
		    shapes[i].k == k)
			return shapes[i].fault;
	return SHAPE_FINE;
}

int
ascend_shape_run(enum shape_fault f)
{
	if (f == SHAPE_ABORT)
		ascend_fatal("injected abort of a shape");
	return f == SHAPE_LATE ? ACL_ERROR_RT_AICPU_EXCEPTION : 0;
}

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
due_fault(const char *call, int of_task)
{
	struct fault *f, *due = NULL;

	pthread_mutex_lock(&ascend_lock);
	for (f = faults; f < faults + nfaults; f++) {
		int later = f->kind == FAULT_LATE || (f->kind == FAULT_HANG &&
		    strncmp(f->call, "acl", 3) != 0);

		if (later == of_task && strcmp(f->call, call) == 0 &&
		    (++f->calls == f->at || f->at == 0) && due == NULL &&
		    is_first())
			due = f;
	}
	pthread_mutex_unlock(&ascend_lock);
	return due;
}

int
ascend_injected(const char *call)
{
	const struct fault *f = due_fault(call, 0);

	if (f == NULL)
		return 0;
	if (f->kind == FAULT_ABORT)
		ascend_fatal("%s: injected abort", call);
	while (f->kind == FAULT_HANG)	/* a confined process may sleep */
		nanosleep(&(struct timespec){ .tv_sec = 3600 }, NULL);
	return ascend_fail(f->code, "EE9999: [PID: 1] %s\n\tinjected into %s",
	    "inner error", call);
}

int
ascend_injected_task(const char *op)
{
	const struct fault *f = due_fault(op, 1);

	return f == NULL ? 0 : f->kind == FAULT_HANG ? -1 : f->code;
}

int
ascend_enter(const char *call)
{
	if (ascend_switches()->stub)
		return ACL_ERROR_STUB_LIBRARY;
	if (!ascend_is_initialized())
		return ascend_fail(ACL_ERROR_UNINITIALIZE, "%s before aclInit",
		    call);
	return ascend_injected(call);
}

void
ascend_family(int split)
{
	static int family = -1;

	if (family >= 0 && family != split && !ascend_switches()->both)
		ascend_fatal("libopapi.so and its split libraries in one "
		    "process");
	family = split;
}

/* --- handles: kind, generation and index --- */

enum { MAX_HANDLES = 1 << 16 };
static struct { void *object; uint32_t generation; uint8_t kind; }
    table[MAX_HANDLES];
static unsigned next_handle, live[HANDLE_KINDS];

void *
ascend_new_handle(enum handle_kind kind, void *object)
{
	unsigned i, n;

	for (n = 0; n < MAX_HANDLES; n++) {
		i = next_handle++ % MAX_HANDLES;
		if (table[i].object == NULL)
			break;
	}
	if (n == MAX_HANDLES)
		return NULL;
	table[i].object = object;
	table[i].kind = (uint8_t)kind;
	table[i].generation++;
	live[kind]++;
	return (void *)(uintptr_t)(UINT64_C(0x7) << 60 |
	    (uint64_t)kind << 52 | (uint64_t)(table[i].generation &
	    0xffffff) << 24 | (uint64_t)i << 4);
}

static int
index_of(enum handle_kind kind, const void *handle)
{
	static const char *const names[HANDLE_KINDS] = {
		"", "context", "stream", "event", "physical memory", "tensor",
		"scalar", "array", "list of tensors", "executor",
		"graph", "description", "data buffer", "set of attributes",
		"compiled operator",
	};
	uint64_t v = (uint64_t)(uintptr_t)handle;
	unsigned i = (unsigned)(v >> 4) % MAX_HANDLES;

	if (v >> 60 == 7 && (v >> 52 & 0xff) == kind &&
	    table[i].object != NULL && table[i].kind == kind &&
	    (table[i].generation & 0xffffff) == (v >> 24 & 0xffffff))
		return (int)i;
	ascend_misused("the %s %#jx does not exist, or no longer", names[kind],
	    (uintmax_t)v);
	return -1;
}

void *
ascend_find(enum handle_kind kind, const void *handle)
{
	int i = index_of(kind, handle);

	return i < 0 ? NULL : table[i].object;
}

void *
ascend_end_handle(enum handle_kind kind, const void *handle)
{
	int i = index_of(kind, handle);
	void *object;

	if (i < 0)
		return NULL;
	object = table[i].object;
	table[i].object = NULL;
	live[kind]--;
	return object;
}

void *
ascend_new_object(enum handle_kind kind, const void *value, size_t nbytes)
{
	void *p = malloc(nbytes), *h;

	if (p == NULL)
		return NULL;
	memcpy(p, value, nbytes);
	pthread_mutex_lock(&ascend_lock);
	h = ascend_new_handle(kind, p);
	pthread_mutex_unlock(&ascend_lock);
	return h;
}

int
ascend_end_object(enum handle_kind kind, const void *handle)
{
	void *p;

	pthread_mutex_lock(&ascend_lock);
	p = ascend_end_handle(kind, handle);
	pthread_mutex_unlock(&ascend_lock);
	free(p);
	return p != NULL;
}

unsigned
ascend_live(enum handle_kind kind)
{
	return live[kind];
}

void
ascend_each(enum handle_kind kind, int (*fn)(void *object, void *arg),
    void *arg)
{
	unsigned i;

	for (i = 0; i < MAX_HANDLES; i++)
		if (table[i].object != NULL && table[i].kind == kind)
			fn(table[i].object, arg);
}

/* --- counters --- */

static void
count_handles(void)
{
	struct ascend_standin_counts *c = &ascend_counts;

	c->tensors = live[HANDLE_TENSOR] + live[HANDLE_SCALAR] +
	    live[HANDLE_INTS] + live[HANDLE_LIST] + live[HANDLE_DESC] +
	    live[HANDLE_BUFFER] + live[HANDLE_ATTR];
	c->executors = live[HANDLE_EXECUTOR] + live[HANDLE_OP];
	c->streams = live[HANDLE_STREAM];
	c->events = live[HANDLE_EVENT];
	c->contexts = live[HANDLE_CONTEXT];
	c->graphs = live[HANDLE_GRAPH];
}

EXPORT void
ascend_standin_counts(struct ascend_standin_counts *ret)
{
	pthread_mutex_lock(&ascend_lock);
	count_handles();
	*ret = ascend_counts;
	pthread_mutex_unlock(&ascend_lock);
}

/* Write this process's line again, with the lock.  A worker is killed in the end,
 * and a confined one may write, but not at an offset. */
void
ascend_report(void)
{
	const struct ascend_standin_counts *c = &ascend_counts;
	char line[REPORT_BYTES + 1];
	int n;

	if (report_fd < 0)
		return;
	count_handles();
	n = snprintf(line, sizeof(line), "pid %d: at most %ju bytes of the "
	    "device, %ju of the host; now %ju, %ju, %u blocks, %u tensors, %u "
	    "executors, %u streams; %ju tasks, %ju products, %ju replays; %u "
	    "misuses%s%s",
	    (int)getpid(), (uintmax_t)c->peak_bytes,
	    (uintmax_t)c->host_peak_bytes, (uintmax_t)c->device_bytes,
	    (uintmax_t)c->host_bytes, c->blocks, c->tensors, c->executors,
	    c->streams, (uintmax_t)c->tasks, (uintmax_t)c->products,
	    (uintmax_t)c->replays,
	    c->misuses, c->misuses != 0 ? ": " : "", c->first_misuse);
	memset(line + n, ' ', sizeof(line) - (size_t)n);
	line[REPORT_BYTES - 1] = '\n';
	if (lseek(report_fd, report_at, SEEK_SET) != report_at ||
	    write(report_fd, line, REPORT_BYTES) != REPORT_BYTES)
		perror("stand-in for libascendcl.so: report");
}

/* This process's line is the file's next one. */
static void
open_report(const char *path)
{
	report_fd = open_file(path, 0);
	flock(report_fd, LOCK_EX);
	report_at = lseek(report_fd, 0, SEEK_END);
	ascend_report();
	flock(report_fd, LOCK_UN);
}

__attribute__((destructor)) static void
report_end(void)
{
	ascend_report();
}
