/* worker/ascend/memory.h - memory of an Ascend device, and of its host.
 * Owns: pools of device memory, and blocks of host memory.  Called by the device
 * on its one thread, with a context.  Does not charge a ledger: it counts what
 * the device has given, and the caller charges that. */
#ifndef WORKER_ASCEND_MEMORY_H
#define WORKER_ASCEND_MEMORY_H

#include "lib.h"

enum { ACL_ALIGN = 128 };	/* of every block; operators need 32, copies 64 */

/* The calls that memory comes from. */
struct acl_source {
	const struct acl_lib *lib;
	const struct acl_machine *machine;
	const char *session;
	uint32_t device;
};

/* --- host memory.  In RC mode aclrtMallocHost() returns any address, and frees
 * only that one --- */

struct acl_host_block {
	void *p;			/* aligned */
	void *raw;			/* as the library gave it */
	uint64_t nbytes;
};

/* Bytes to ask the library for, and those that it then counts: in RC mode as memory
 * of the device. */
uint64_t acl_host_bytes(uint64_t nbytes);
uint64_t acl_host_held(const struct acl_machine *m, uint64_t nbytes);

int acl_host_alloc(const struct acl_source *src, uint64_t nbytes,
    const char *what, struct acl_host_block *ret, struct err *reterr);
/* Accepts a block of zeros. */
int acl_host_free(const struct acl_source *src, struct acl_host_block *b,
    struct err *reterr);

/* --- pools --- */

enum acl_strategy {
	ACL_POOL_VIRTUAL,	/* one range of addresses, memory by granules */
	ACL_POOL_BEST_FIT,	/* chunks, cut to size */
	ACL_POOL_SLOTS,		/* a block of its own for each request */
	ACL_STRATEGIES
};

const char *acl_strategy_name(enum acl_strategy s);

struct acl_pool_plan {
	enum acl_strategy strategy;
	uint64_t cap_bytes;	/* the pool never holds more */
	uint64_t granule_bytes;	/* ACL_POOL_VIRTUAL */
	uint64_t chunk_bytes;	/* ACL_POOL_BEST_FIT */
	uint32_t max_blocks;	/* live at once */
};

/* Find the first strategy that works here, by trying it: fill strategy and
 * sizes of ret, whose cap and blocks are set.  reason: why not an earlier one.
 * Leaves nothing allocated. */
int acl_pool_choose(const struct acl_source *src, struct acl_pool_plan *ret,
    char reason[128], struct err *reterr);

/* Held: by the device's own count, with what it adds to each block.  Slack is
 * the rest of it, free room included. */
struct acl_pool_count {
	uint64_t asked_bytes, held_bytes, slack_bytes;
	uint64_t peak_bytes;		/* most that was held */
	uint32_t blocks, areas;
};

struct acl_pool;

int acl_pool_open(const struct acl_source *src,
    const struct acl_pool_plan *plan, struct acl_pool **ret,
    struct err *reterr);

/* Room for a block at a multiple of ACL_ALIGN.  -ENOMEM: the cap, named with what
 * is held, or the device.  -ENOSPC: after acl_pool_seal(), no free room is large
 * enough. */
int acl_pool_alloc(struct acl_pool *p, uint64_t nbytes, const char *what,
    void **ret, struct err *reterr);

/* Free a block: its room is kept for others.  No task may need it. */
void acl_pool_free(struct acl_pool *p, void *block);

/* From now on the library is asked for nothing more. */
void acl_pool_seal(struct acl_pool *p);

void acl_pool_read(const struct acl_pool *p, struct acl_pool_count *ret);

/* Room of a request, and the slack that a pool of these requests may have at
 * most while none was freed. */
uint64_t acl_pool_room(const struct acl_pool_plan *plan, uint64_t nbytes);
uint64_t acl_pool_slack(const struct acl_pool_plan *plan,
    const uint64_t *nbytes, uint32_t n);

/* Give everything back; accepts NULL. */
int acl_pool_close(struct acl_pool *p, struct err *reterr);

#endif
