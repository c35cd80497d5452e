/* tests/support/syscalls.c - reads and passes on the arguments of a call. */
#include "syscalls.h"

#include <dlfcn.h>

#include "t.h"

/* Undefined arguments are read from the caller's stack. */
NO_ASAN void
syscall_args(long ret[SYSCALL_ARGS], va_list ap)
{
	int i;

	for (i = 0; i < SYSCALL_ARGS; i++)
		ret[i] = va_arg(ap, long);
}

long
syscall_real(long nr, const long a[SYSCALL_ARGS])
{
	static long (*real)(long, ...);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
