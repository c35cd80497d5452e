/* worker/load/host_mem.c - one charged arena for each buffer. */
#include "host_mem.h"

#include <assert.h>

#include "layers/bind.h"

int
host_mem_alloc(struct host_mem *m, struct mem_ledger *ledger,
    enum mem_tag tag, uint64_t nbytes, const char *what,
    struct device_buf *ret, struct err *reterr)
{
	struct arena *a = &m->arena[m->n];
	int rc;

	assert(m->n < HOST_MEM_BUFS);	/* the stage keeps to max_maps */
	if ((rc = arena_open(a, ledger, tag, nbytes, what, reterr)) < 0)
		return rc;
	m->n++;
	/* The load writes all weights itself, and reports its progress. */
	if (tag != MEM_WEIGHTS)
		region_touch(&a->map);
	*ret = (struct device_buf){ .host = a->map.base,
	    .nbytes = nbytes };
	return 0;
}

int
host_mem_upload(struct device *d, const struct weights *ws,
    struct device_buf *weights, uint32_t i, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	(void)d;
	(void)reterr;
	weights_store(ws, weights->host, i, row0, nrows, src);
	return 0;
}

void
host_mem_close(struct host_mem *m)
{
	while (m->n > 0)
		arena_close(&m->arena[--m->n]);
}
