/* tests/support/syscalls.h - for tests that replace syscall(): its arguments, and the
 * C library's own.  Does not define syscall() itself: every test would link it. */
#ifndef TESTS_SUPPORT_SYSCALLS_H
#define TESTS_SUPPORT_SYSCALLS_H

#include <stdarg.h>

enum { SYSCALL_ARGS = 6 };

/* Read all arguments that a call may have; a call with fewer leaves the others
 * undefined. */
void syscall_args(long ret[SYSCALL_ARGS], va_list ap);

/* Make the call. */
long syscall_real(long nr, const long a[SYSCALL_ARGS]);

#endif
