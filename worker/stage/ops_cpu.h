/* worker/stage/ops_cpu.h - a program's operations on the host, with kernels/.
 * Owns: nothing; works on buffers that the caller holds.  Called by
 * cpu/device.c on every thread of the session at once. */
#ifndef WORKER_STAGE_OPS_CPU_H
#define WORKER_STAGE_OPS_CPU_H

#include "ops_ctx.h"

/* Run ops [first, end), with the barriers that the program asks for.  Call it
 * on all threads. */
void ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread);

#endif
