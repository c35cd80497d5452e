/* kernels/hexagon/rt.c - start-up and system calls.
 *
 * On Hexagon, trap0(#1) is a system call of Linux, with its number in r6 and
 * arguments from r0 on (arch/hexagon/kernel/vm_entry.S); the numbers are the
 * generic ones (include/uapi/asm-generic/unistd.h). */
#include "rt.h"

enum { SYS_CLOSE = 57, SYS_EXIT_GROUP = 94, SYS_FUTEX = 98, SYS_GETPPID = 173,
    SYS_MUNMAP = 215, SYS_MMAP2 = 222 };
enum { PROT_RW = 3, MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_ANONYMOUS = 0x20 };
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1 };

extern uint8_t _end[];		/* end of our image, set by the linker */

static uint32_t
call(uint32_t nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
    uint32_t f)
{
	register uint32_t r0 __asm__("r0") = a;
	register uint32_t r1 __asm__("r1") = b;
	register uint32_t r2 __asm__("r2") = c;
	register uint32_t r3 __asm__("r3") = d;
	register uint32_t r4 __asm__("r4") = e;
	register uint32_t r5 __asm__("r5") = f;
	register uint32_t r6 __asm__("r6") = nr;

	__asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r3),
	    "r"(r4), "r"(r5), "r"(r6) : "memory");
	return r0;
}

int
rt_close(int fd)
{
	return (int)call(SYS_CLOSE, (uint32_t)fd, 0, 0, 0, 0, 0);
}

/* Addresses reach beyond 2 GiB: only the last 4095 values are errors. */
int
rt_map(int fd, uint32_t nbytes, void **ret)
{
	uint32_t flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	uint32_t p;

	/* Ask for addresses right after our image: the emulator starts at 1
	 * GiB by default, which would split the free addresses. */
	p = call(SYS_MMAP2, (uint32_t)_end, nbytes, PROT_RW, flags,
	    (uint32_t)fd, 0);
	if (p > -4096u)
		p = call(SYS_MMAP2, 0, nbytes, PROT_RW, flags, (uint32_t)fd,
		    0);
	if (p > -4096u)
		return (int)p;
	*ret = (void *)p;
	return 0;
}

void
rt_unmap(void *p, uint32_t nbytes)
{
	call(SYS_MUNMAP, (uint32_t)p, nbytes, 0, 0, 0, 0);
}

void
rt_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t ms)
{
	/* The kernel's struct timespec of 32-bit machines. */
	const int32_t ts[2] = { (int32_t)(ms / 1000),
	    (int32_t)(ms % 1000 * 1000000) };

	call(SYS_FUTEX, (uint32_t)word, FUTEX_WAIT, seen, (uint32_t)ts, 0, 0);
}

void
rt_wake(_Atomic uint32_t *word)
{
	call(SYS_FUTEX, (uint32_t)word, FUTEX_WAKE, 1, 0, 0, 0);
}

int
rt_parent(void)
{
	return (int)call(SYS_GETPPID, 0, 0, 0, 0, 0, 0);
}

uint64_t
rt_pcycles(void)
{
	uint64_t n;

	__asm__ volatile("%0 = upcycle" : "=r"(n));
	return n;
}

void
rt_exit(int code)
{
	for (;;)
		call(SYS_EXIT_GROUP, (uint32_t)code, 0, 0, 0, 0, 0);
}

/* The emulator's stack is in the middle of the addresses and would halve the
 * largest mapping: use a stack next to the code, and unmap the emulator's.
 * That one has 8 MiB (qemu -s) and ends at the page above the stack pointer;
 * below it are a guard page and the page of the signal trampoline, unused
 * because we have no handlers. */
enum { STACK_BYTES = 256 << 10, GIVEN_BYTES = 8 << 20, PAGE_BYTES = 65536 };

__attribute__((aligned(128), used)) static uint8_t stack[STACK_BYTES];

__attribute__((noreturn, used)) static void
start(uint32_t given)
{
	uint32_t end = (given & -PAGE_BYTES) + PAGE_BYTES;

	rt_unmap((void *)(end - GIVEN_BYTES - 2 * PAGE_BYTES), GIVEN_BYTES +
	    2 * PAGE_BYTES);
	rt_exit(domain_main());
}

/* A frame pointer of 0 ends the chain of frames. */
__asm__(".globl _start\n_start:\n\tr30 = #0\n\tr0 = r29\n"
    "\tr29 = ##stack + 262144\n\tjump start\n");
