/* coordinator/text/jinja/error.c - memory, budgets and failures of a compilation
 * or a rendering. */
#include "impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct jblock {
	struct jblock *next;
	_Alignas(16) char bytes[];
};

enum { BLOCK_BYTES = 64 * 1024, ALIGN = 16, CLOCK_STEPS = 1 << 16 };

void *
jarena_alloc(struct jarena *a, size_t n, int *ret_host)
{
	struct jblock *b;
	size_t size;
	char *p;

	*ret_host = 0;
	if (n > a->limit_bytes || a->used_bytes > a->limit_bytes - n)
		return NULL;
	n = ALIGN_UP(MAX(n, (size_t)1), ALIGN);
	if (n > (size_t)(a->end - a->at)) {
		size = MAX(n, (size_t)BLOCK_BYTES);
		if ((b = malloc(sizeof(*b) + size)) == NULL) {
			*ret_host = 1;
			return NULL;
		}
		b->next = a->blocks;
		a->blocks = b;
		/* A large piece has a block of its own; the rest of the current
		 * block stays in use. */
		if (n >= BLOCK_BYTES / 2) {
			a->used_bytes += n;
			return b->bytes;
		}
		a->at = b->bytes;
		a->end = b->bytes + size;
	}
	p = a->at;
	a->at += n;
	a->used_bytes += n;
	return p;
}

void
jarena_free(struct jarena *a)
{
	struct jblock *b, *next;

	for (b = a->blocks; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	memset(a, 0, sizeof(*a));
}

/* Make msg[n] one line: a template's words must not move a terminal's cursor. */
static void
make_plain(char *msg)
{
	char *s;

	for (s = msg; *s != '\0'; s++) {
		uint8_t c = (uint8_t)*s;

		if (c == '\n' || c == '\r' || c == '\t')
			*s = ' ';
		else if (c < ' ' || c == 0x7f)
			*s = '?';
		else if (c == 0xc2 && (uint8_t)s[1] >= 0x80 &&
		    (uint8_t)s[1] < 0xa0)
			*s = s[1] = '?';	/* C1 */
	}
}

void
jfail(struct jrun *r, int rc, const char *fmt, ...)
{
	char msg[960];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	make_plain(msg);
	r->rc = err_set(r->err, r->program != NULL ? ERR_MODEL : ERR_RUN, rc,
	    "line %u, column %u: %s", r->line, r->col, msg);
	longjmp(r->leave, 1);
}

void *
jalloc(struct jrun *r, size_t n)
{
	int is_host;
	void *p = jarena_alloc(r->arena, n, &is_host);

	if (p != NULL)
		return p;
	if (is_host)
		jfail(r, -ENOMEM, "no memory for the template");
	jfail(r, -E2BIG, "the template needs more than its limit of %zu bytes "
	    "of memory", r->limits->memory_bytes);
}

void *
jzalloc(struct jrun *r, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	p = jalloc(r, bytes);
	memset(p, 0, bytes);
	return p;
}

/* A busy machine must not make a template fail. */
static uint64_t
cpu_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void
jstart_clock(struct jrun *r)
{
	if (r->limits->time_ms > 0)
		r->deadline_ns = cpu_time_ns() +
		    (uint64_t)r->limits->time_ms * 1000000;
}

void
jstep(struct jrun *r, uint64_t n)
{
	r->steps += n;
	if (r->steps > r->limits->steps)
		jfail(r, -E2BIG, "the template exceeds its limit of %llu steps",
		    (unsigned long long)r->limits->steps);
	if (r->steps - r->checked_steps < CLOCK_STEPS)
		return;
	r->checked_steps = r->steps;
	if (r->deadline_ns != 0 && cpu_time_ns() > r->deadline_ns)
		jfail(r, -E2BIG, "the template exceeds its limit of %u ms of CPU "
		    "time",
		    r->limits->time_ms);
}

void
jenter(struct jrun *r)
{
	if (++r->depth > r->limits->depth)
		jfail(r, -E2BIG, "the template exceeds its limit of %u for the "
		    "depth of evaluation", r->limits->depth);
}

const char *
jformat(struct jrun *r, const char *fmt, ...)
{
	char text[256], *s;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s = jalloc(r, strlen(text) + 1);
	return strcpy(s, text);
}
