/* config/base.h - macros and limits that every file uses.
 * Owns: small macros and the limits that size static tables.  Included by all.
 * Depends on libc only. */
#ifndef CONFIG_BASE_H
#define CONFIG_BASE_H

#include <stddef.h>
#include <stdint.h>

#define NITEMS(a)	(sizeof(a) / sizeof((a)[0]))
#define CACHELINE	64
#define SMALL_PAGE	4096		/* smallest page size */

#define KIB		((uint64_t)1 << 10)
#define MIB		((uint64_t)1 << 20)
#define GIB		((uint64_t)1 << 30)

#define MIN(a, b)	((a) < (b) ? (a) : (b))
#define MAX(a, b)	((a) > (b) ? (a) : (b))

/* align must be a power of two; the caller has checked for overflow. */
#define ALIGN_UP(n, align) \
	(((n) + ((uint64_t)(align) - 1)) & ~((uint64_t)(align) - 1))
#define ALIGN_DOWN(n, align)	((n) & ~((uint64_t)(align) - 1))
#define DIV_UP(n, d)	(((n) + (d) - 1) / (d))

#define PRINTF_LIKE(fmt, args)	__attribute__((format(printf, fmt, args)))
#define NORETURN	__attribute__((noreturn))
#define UNUSED		__attribute__((unused))

/* 1 in a build with ASan or TSan, which add shadow memory, terabytes of address
 * space, threads and an allocator of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED	1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED	0
#endif

/* Upper limits of what a user can request, checked by the parsers. */
enum {
	MAX_SESSIONS = 64,	/* sessions of one pipeline */
	MAX_NAME = 32,		/* session name, with the NUL */
	MAX_CPUS = 1024,	/* core numbers are below this */
	MAX_BATCH = 4096,	/* rows of one batch */
	MAX_SEQS = 256,		/* live sequences */
	LIMIT_CONTEXT = 1 << 24,	/* tokens of a context */
	LIMIT_RECOVER = 1000000	/* lost workers that a run survives */
};

#endif
