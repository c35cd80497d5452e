/* worker/load/host_mem.h - buffers of a device that works in host memory.
 * Owns: their arenas.  Called by alloc, upload and close of a device. */
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

/* upload of struct device_ops, for a device whose weights lie in memory that the
 * host can write. */
int host_mem_upload(struct device *d, const struct weights *ws,
    struct device_buf *weights, uint32_t i, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr);

/* Free all buffers. */
void host_mem_close(struct host_mem *m);

#endif
