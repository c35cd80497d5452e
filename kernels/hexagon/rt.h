/* kernels/hexagon/rt.h - the runtime of a freestanding Hexagon domain.
 * Owns: system calls of Linux, and functions that the compiler calls.  Called
 * by the domain's files only.  Does not depend on packets. */
#ifndef KERNELS_HEXAGON_RT_H
#define KERNELS_HEXAGON_RT_H

#include <stddef.h>
#include <stdint.h>

/* These return -errno on failure. */
int rt_close(int fd);
/* Maps nbytes of fd, shared; with fd = -1 private zeros.  Sets *ret on 0. */
int rt_map(int fd, uint32_t nbytes, void **ret);
void rt_unmap(void *p, uint32_t nbytes);
/* Sleeps while *word == seen, for at most ms milliseconds. */
void rt_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t ms);
void rt_wake(_Atomic uint32_t *word);
int rt_parent(void);			/* the parent's process id */
uint64_t rt_pcycles(void);
__attribute__((noreturn)) void rt_exit(int code);

/* The domain's main(): returns the exit code. */
int domain_main(void);

/* The compiler calls these by name. */
void *memcpy(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
void *__hexagon_memcpy_likely_aligned_min32bytes_mult8bytes(void *dst,
    const void *src, size_t n);
uint32_t __hexagon_udivsi3(uint32_t a, uint32_t b);
uint32_t __hexagon_umodsi3(uint32_t a, uint32_t b);

#endif
