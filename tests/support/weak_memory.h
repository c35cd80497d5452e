/* tests/support/weak_memory.h - a memory model weaker than the machine's.
 *
 * Two threads run in turns.  Each atomic operation draws which thread is next,
 * and which of the values that C11 permits a load returns.  A missing
 * order then shows on x86 too, which forgives most of them.
 *
 * The model: each location has the list of its stores; each thread has a view,
 * the oldest store of each location that it may still read.  A store with
 * release carries its thread's view, a load with acquire takes it over.
 * seq_cst operations on a location see the last one before them.  Order of
 * stores to a location = order of execution.
 *
 * Data that is not atomic is a pair of locations: wm_write_data() and
 * wm_read_data() report an access that another thread's access does not
 * happen before: a data race. */
#ifndef TESTS_SUPPORT_WEAK_MEMORY_H
#define TESTS_SUPPORT_WEAK_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

/* Run both functions to their end, once.  NULL, or what went wrong; then the
 * functions must return soon: their waits do not block any more. */
typedef void wm_thread_fn(void *arg);
const char *wm_run(wm_thread_fn *a, wm_thread_fn *b, void *arg);
/* The problem so far. */
const char *wm_problem(void);

uint32_t wm_load(const volatile void *word, memory_order order);
void wm_store(volatile void *word, uint32_t value, memory_order order);

enum wm_rmw { WM_EXCHANGE, WM_OR, WM_AND };
uint32_t wm_update(volatile void *word, enum wm_rmw how, uint32_t value,
    memory_order order);

/* As event.h.  The kernel's barrier makes its load of the word seq_cst; a store
 * that is not may still be on its way. */
int wm_wait(const volatile void *word, uint32_t seen);
void wm_wake(const volatile void *word);

/* Data of any size that starts at p. */
void wm_write_data(const void *p);
void wm_read_data(const void *p);

#endif
