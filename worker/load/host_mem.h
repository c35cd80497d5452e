/* worker/load/host_mem.h - buffers of a device that works in host memory.
 * Owns: their arenas.  Called by alloc and close of a device. */
#ifndef WORKER_LOAD_HOST_MEM_H
#define WORKER_LOAD_HOST_MEM_H

#include "shm/arena.h"
#include "worker/device.h"

enum {
	HOST_MEM_BUFS = 8,		/* the device's trait max_maps */
	HOST_MEM_ALIGN = 64		/* the kernels' cache line */
};

struct host_mem {
	struct arena arena[HOST_MEM_BUFS];
	unsigned n;
};

/* As alloc of struct device_ops. */
int host_mem_alloc(struct host_mem *m, struct mem_ledger *ledger,
    enum mem_tag tag, uint64_t nbytes, const char *what,
    struct device_buf *ret, struct err *reterr);

/* Free all buffers. */
void host_mem_close(struct host_mem *m);

#endif
