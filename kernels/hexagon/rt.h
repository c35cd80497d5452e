/* kernels/hexagon/rt.h - what a freestanding Hexagon domain needs of a
 * runtime: system calls of Linux, memory, a word to sleep on.
 * Called by the domain's files only. */
#ifndef KERNELS_HEXAGON_RT_H
#define KERNELS_HEXAGON_RT_H

#include <stddef.h>
#include <stdint.h>

/* -errno on failure. */
int rt_close(int fd);
/* nbytes of fd, shared, or of fd -1: private and zero.  *ret on 0. */
int rt_map(int fd, uint32_t nbytes, void **ret);
void rt_unmap(void *p, uint32_t nbytes);
/* Sleep while *word == seen, at most ms. */
void rt_wait(_Atomic uint32_t *word, uint32_t seen, uint32_t ms);
void rt_wake(_Atomic uint32_t *word);
int rt_parent(void);			/* its process id */
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
