/* tests/standin/ascend_mem.c - memory of the stand-in for libascendcl.so.
 *
 * A device's addresses are a range of the process that nobody can read: its
 * bytes lie in a second range, the shadow.  So a program that touches device
 * memory, as it could not on a card, dies.  In RC mode both are one range, and
 * aclrtMallocHost() takes from it, not aligned. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ascend.h"

enum { MAX_BLOCKS = 1 << 15, GAP = 64, POISON = 0xff };

struct block {				/* of the device's addresses */
	uint64_t at, nbytes;		/* with the gap */
	uint64_t user, asked, device;	/* user: the offset given out */
	int is_host, is_reserved;
};

struct physical {
	uint64_t nbytes, at;
	int is_mapped;
};

static struct block blocks[MAX_BLOCKS];	/* by address */
static unsigned nblocks;
static struct { char *p; uint64_t nbytes; } pinned[MAX_BLOCKS];
static unsigned npinned;
static struct { uint64_t at, nbytes; } maps[MAX_BLOCKS];
static unsigned nmaps;
static char *base, *shadow;
static uint64_t range_bytes;		/* of addresses: more than memory */

/* --- the ranges --- */

static int
open_ranges(void)
{
	const struct switches *sw = ascend_switches();
	/* Shared, as a driver maps it: RLIMIT_DATA does not count it. */
	int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;

	if (base != NULL)
		return 0;
	range_bytes = sw->mem_bytes * (sw->is_rc ? 1 : 4);
	shadow = mmap(NULL, range_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	base = sw->is_rc ? shadow : mmap(NULL, range_bytes, PROT_NONE, flags,
	    -1, 0);
	if (shadow == MAP_FAILED || base == MAP_FAILED)
		ascend_fatal("no addresses for the device's memory");
	return 0;
}

static int
is_device_address(const void *p)
{
	return base != NULL && (const char *)p >= base &&
	    (const char *)p < base + range_bytes;
}

/* Room of nbytes at a multiple of align: the place in the table, or -1. */
static int
find_room(uint64_t nbytes, uint64_t align, uint64_t *ret_at)
{
	uint64_t at = 0;
	unsigned i;

	if (nblocks == MAX_BLOCKS)
		return -1;
	for (i = 0; i < nblocks; i++) {
		if (blocks[i].at >= at && blocks[i].at - at >= nbytes)
			break;
		at = ALIGN_UP(blocks[i].at + blocks[i].nbytes, align);
	}
	if (nbytes > range_bytes || at > range_bytes - nbytes)
		return -1;
	*ret_at = at;
	return (int)i;
}

static struct block *
take_room(uint64_t nbytes, uint64_t align)
{
	uint64_t at;
	int i;

	open_ranges();
	if ((i = find_room(nbytes, align, &at)) < 0)
		return NULL;
	memmove(&blocks[i + 1], &blocks[i], (nblocks - (unsigned)i) *
	    sizeof(*blocks));
	nblocks++;
	blocks[i] = (struct block){ .at = at, .nbytes = nbytes, .user = at };
	return &blocks[i];
}

/* The last block that begins at or before an address. */
static struct block *
block_before(uint64_t at)
{
	unsigned low = 0, high = nblocks;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (blocks[mid].at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? &blocks[low - 1] : NULL;
}

static struct block *
block_of(const void *p)
{
	struct block *b;

	if (!is_device_address(p))
		return NULL;
	b = block_before((uint64_t)((const char *)p - base));
	return b != NULL && b->user == (uint64_t)((const char *)p - base) ?
	    b : NULL;
}

static void
drop_block(struct block *b)
{
	ascend_counts.asked_bytes -= b->asked;
	ascend_counts.device_bytes -= b->device;
	ascend_counts.blocks -= !b->is_reserved;
	ascend_report();
	if (!b->is_reserved)
		memset(shadow + b->at, POISON, b->nbytes);
	nblocks--;
	memmove(b, b + 1, (size_t)(blocks + nblocks - b) * sizeof(*b));
}

static int
charge(uint64_t asked, uint64_t device)
{
	struct ascend_standin_counts *c = &ascend_counts;

	if (device > ascend_switches()->mem_bytes - c->device_bytes)
		return 0;
	c->asked_bytes += asked;
	c->device_bytes += device;
	c->peak_bytes = MAX(c->peak_bytes, c->device_bytes);
	c->allocations++;
	return 1;
}

int
ascend_take_memory(uint64_t nbytes)
{
	int rc = charge(0, nbytes);

	ascend_report();
	return rc;
}

void
ascend_give_memory(uint64_t nbytes)
{
	ascend_counts.device_bytes -= nbytes;
	ascend_report();
}

static int
is_mapped(uint64_t at, uint64_t nbytes)
{
	uint64_t end = at + nbytes;
	unsigned i;

	for (i = 0; i < nmaps && at < end; i++)
		if (maps[i].at <= at && maps[i].at + maps[i].nbytes > at) {
			at = maps[i].at + maps[i].nbytes;
			i = (unsigned)-1;	/* from the first again */
		}
	return at >= end;
}

void *
ascend_bytes(const void *p, uint64_t nbytes)
{
	struct block *b;
	uint64_t at;

	if (!is_device_address(p))
		return NULL;
	at = (uint64_t)((const char *)p - base);
	if ((b = block_before(at)) == NULL || at < b->user)
		return NULL;
	if (b->is_reserved ? !is_mapped(at, nbytes) :
	    at - b->user + nbytes > b->asked)
		return NULL;
	return shadow + at;
}

int
ascend_is_pinned(const void *p, uint64_t nbytes)
{
	unsigned i;

	for (i = 0; i < npinned; i++)
		if ((const char *)p >= pinned[i].p && (const char *)p + nbytes <=
		    pinned[i].p + pinned[i].nbytes)
			return 1;
	return 0;
}

/* --- blocks --- */

static int
allocate(void **p, uint64_t asked, uint64_t device, int is_host)
{
	const struct switches *sw = ascend_switches();
	struct block *b;
	uint64_t skew = is_host ? sw->host_skew : 0;

	if (p == NULL || asked == 0)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0001: size is "
		    "0 or the pointer is missing");
	pthread_mutex_lock(&ascend_lock);
	if (asked >= sw->mem_bytes || !charge(asked, device)) {
		pthread_mutex_unlock(&ascend_lock);
		return ascend_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
		    "EL0004: %ju bytes", (uintmax_t)asked);
	}
	b = take_room(ALIGN_UP(asked + skew, GAP) + GAP, GAP);
	if (b == NULL)
		ascend_fatal("no room for %ju bytes", (uintmax_t)asked);
	b->user = b->at + skew;
	b->asked = asked;
	b->device = device;
	b->is_host = is_host;
	ascend_counts.blocks++;
	ascend_report();
	memset(shadow + b->at, POISON, b->nbytes);
	*p = base + b->user;
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

EXPORT int
aclrtMalloc(void **p, size_t nbytes, UNUSED int policy)
{
	ENTER_CONTEXT();
	return allocate(p, nbytes, ALIGN_UP(nbytes, 32) + 32, 0);
}

EXPORT int
aclrtMallocAlign32(void **p, size_t nbytes, UNUSED int policy)
{
	ENTER_CONTEXT();
	return allocate(p, nbytes, ALIGN_UP(nbytes, 32), 0);
}

static int
free_block(void *p, int is_host)
{
	struct block *b;
	int rc = ACL_SUCCESS;

	pthread_mutex_lock(&ascend_lock);
	b = block_of(p);
	if (b == NULL || b->is_host != is_host || b->is_reserved) {
		ascend_misused("memory %p is freed, which is none, or of "
		    "another kind", p);
		rc = ACL_ERROR_RT_PARAM_INVALID;
	} else
		drop_block(b);
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclrtFree(void *p)
{
	ENTER_CONTEXT();
	if (p == NULL)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0002: NULL");
	return free_block(p, 0);
}

EXPORT int
aclrtMallocHost(void **p, size_t nbytes)
{
	void *q;

	ENTER_CONTEXT();
	if (ascend_switches()->is_rc)
		return allocate(p, nbytes, ALIGN_UP(nbytes, 32) + 32, 1);
	if (p == NULL || nbytes == 0)
		return ACL_ERROR_INVALID_PARAM;
	if (posix_memalign(&q, 64, nbytes) != 0)
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	pthread_mutex_lock(&ascend_lock);
	if (npinned == MAX_BLOCKS)
		ascend_fatal("too much pinned memory");
	pinned[npinned].p = q;
	pinned[npinned++].nbytes = nbytes;
	ascend_counts.host_bytes += nbytes;
	ascend_counts.host_peak_bytes = MAX(ascend_counts.host_peak_bytes,
	    ascend_counts.host_bytes);
	ascend_counts.blocks++;
	ascend_counts.allocations++;
	ascend_report();
	pthread_mutex_unlock(&ascend_lock);
	*p = q;
	return ACL_SUCCESS;
}

static int
free_pinned(void *p)
{
	unsigned i;

	pthread_mutex_lock(&ascend_lock);
	for (i = 0; i < npinned && pinned[i].p != p; i++)
		;
	if (i == npinned)
		ascend_misused("host memory %p is freed, which is none", p);
	else {
		ascend_counts.host_bytes -= pinned[i].nbytes;
		ascend_counts.blocks--;
		ascend_report();
		pinned[i] = pinned[--npinned];
		i = UINT32_MAX;
	}
	pthread_mutex_unlock(&ascend_lock);
	if (i != UINT32_MAX)
		return ACL_ERROR_RT_PARAM_INVALID;
	free(p);
	return ACL_SUCCESS;
}

EXPORT int
aclrtFreeHost(void *p)
{
	ENTER_CONTEXT();
	if (p == NULL)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0002: NULL");
	return ascend_switches()->is_rc ? free_block(p, 1) : free_pinned(p);
}

EXPORT int
aclrtGetMemInfo(int attr, size_t *free_bytes, size_t *total_bytes)
{
	const struct switches *sw = ascend_switches();
	int is_there = attr == ACL_HBM_MEM || (attr == ACL_DDR_MEM &&
	    sw->is_310b);

	ENTER_CONTEXT();
	if (attr < 0 || attr > 17)
		return ACL_ERROR_INVALID_PARAM;
	pthread_mutex_lock(&ascend_lock);
	*total_bytes = is_there ? sw->mem_bytes : 0;
	*free_bytes = is_there ? sw->mem_bytes - ascend_counts.device_bytes :
	    0;
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

/* --- copies: of the host's address, or the device's.  The kind does not
 * matter, if it is one --- */

struct copy { void *dst; const void *src; size_t n; int value, is_set; };

/* The bytes behind an address of either; NULL and a misuse if it is the device's
 * but not memory.  With the lock. */
static void *
either(const void *p, size_t n)
{
	void *q = ascend_bytes(p, n);
	union { const void *in; void *out; } u = { .in = p };

	if (q == NULL && is_device_address(p)) {
		ascend_misused("%zu bytes at %p are not, or no longer, memory "
		    "of the device", n, p);
		return NULL;
	}
	return q != NULL ? q : u.out;
}

static int
do_copy(void *arg)
{
	const struct copy *c = arg;
	void *dst, *src = NULL;

	pthread_mutex_lock(&ascend_lock);
	dst = either(c->dst, c->n);
	if (!c->is_set)
		src = either(c->src, c->n);
	pthread_mutex_unlock(&ascend_lock);
	if (dst == NULL || (src == NULL && !c->is_set))
		return ACL_ERROR_RT_PARAM_INVALID;
	if (c->is_set)
		memset(dst, c->value, c->n);
	else
		memmove(dst, src, c->n);
	return ACL_SUCCESS;
}

EXPORT int
aclrtMemcpy(void *dst, size_t dst_bytes, const void *src, size_t nbytes,
    int kind)
{
	struct copy c = { dst, src, nbytes, 0, 0 };

	ENTER_CONTEXT();
	if (dst == NULL || src == NULL || nbytes > dst_bytes || kind < 0 ||
	    kind >= ACL_MEMCPY_KINDS)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0001: copy");
	return do_copy(&c);
}

EXPORT int
aclrtMemset(void *p, size_t p_bytes, int32_t value, size_t nbytes)
{
	struct copy c = { p, NULL, nbytes, value, 1 };

	ENTER_CONTEXT();
	if (p == NULL || nbytes > p_bytes)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0001: set");
	return do_copy(&c);
}

static int
is_unaligned(const void *p)
{
	return (uintptr_t)p % 64 != 0;
}

EXPORT int
aclrtMemcpyAsync(void *dst, size_t dst_bytes, const void *src, size_t nbytes,
    int kind, void *stream)
{
	struct copy c = { dst, src, nbytes, 0, 0 };
	int from, to, is_rc = ascend_switches()->is_rc, pageable, rc;

	ENTER_CONTEXT();
	if (dst == NULL || src == NULL || nbytes > dst_bytes || kind < 0 ||
	    kind >= ACL_MEMCPY_KINDS)
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0001: copy");
	pthread_mutex_lock(&ascend_lock);
	from = is_device_address(src);
	to = is_device_address(dst);
	pageable = (!from && !ascend_is_pinned(src, nbytes)) ||
	    (!to && !ascend_is_pinned(dst, nbytes));
	pthread_mutex_unlock(&ascend_lock);
	if (is_rc && (!from || !to))
		return ascend_fail(ACL_ERROR_RT_PARAM_INVALID, "EH0001: in RC "
		    "mode copies are of the device's memory");
	if (!from && !to)
		return ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1003: "
		    "host to host");
	if (from && to && (is_unaligned(dst) || is_unaligned(src)))
		return ascend_fail(107008, "EE1001: addresses must be aligned "
		    "to 64");
	rc = ascend_queue(stream, "aclrtMemcpyAsync", do_copy, &c, sizeof(c));
	return rc == ACL_SUCCESS && pageable ? aclrtSynchronizeStream(stream) :
	    rc;
}

EXPORT int
aclrtMemsetAsync(void *p, size_t p_bytes, int32_t value, size_t nbytes,
    void *stream)
{
	struct copy c = { p, NULL, nbytes, value, 1 };

	ENTER_CONTEXT();
	if (p == NULL || nbytes > p_bytes || !is_device_address(p))
		return ascend_fail(ACL_ERROR_INVALID_PARAM, "EH0001: set");
	return ascend_queue(stream, "aclrtMemsetAsync", do_copy, &c,
	    sizeof(c));
}

/* --- virtual memory --- */

#define ENTER_VIRTUAL(f)	do {					\
	int rc_ = ascend_enter(f);					\
	if (rc_ == 0)							\
		rc_ = ascend_need_context(f);				\
	if (rc_ == 0 && !ascend_switches()->vmm)			\
		rc_ = ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,	\
		    "EE1003: %s in RC mode", f);			\
	if (rc_ != 0)							\
		return rc_;						\
} while (0)

static int
prop_is_right(const struct aclrt_mem_prop *prop)
{
	return prop != NULL && prop->handle_type == ACL_MEM_HANDLE_TYPE_NONE &&
	    prop->allocation_type == ACL_MEM_ALLOCATION_TYPE_PINNED &&
	    prop->location.type == ACL_MEM_LOCATION_DEVICE &&
	    prop->location.id < ascend_switches()->ndevices &&
	    prop->mem_attr >= 0 && prop->mem_attr < ACL_MEM_ATTRS &&
	    prop->reserve == 0;
}

OPTIONAL(aclrtMemGetAllocationGranularity, struct aclrt_mem_prop *prop,
    int option, size_t *granularity)
{
	ENTER_VIRTUAL("aclrtMemGetAllocationGranularity");
	if (!prop_is_right(prop) || option < 0 || option > 1)
		return ACL_ERROR_RT_PARAM_INVALID;
	*granularity = ascend_switches()->granule_bytes;
	return ACL_SUCCESS;
}

OPTIONAL(aclrtReserveMemAddress, void **p, size_t nbytes, size_t align,
    UNUSED void *hint, uint64_t flags)
{
	uint64_t granule = ascend_switches()->granule_bytes;
	struct block *b;

	ENTER_VIRTUAL("aclrtReserveMemAddress");
	if (align != 0 || flags > ACL_RESERVE_HUGE || nbytes == 0)
		return ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&ascend_lock);
	if ((b = take_room(ALIGN_UP(nbytes, granule), granule)) != NULL) {
		b->is_reserved = 1;
		*p = base + b->at;
	}
	pthread_mutex_unlock(&ascend_lock);
	return b != NULL ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}

OPTIONAL(aclrtReleaseMemAddress, void *p)
{
	struct block *b;
	int rc = ACL_SUCCESS;
	unsigned i;

	ENTER_VIRTUAL("aclrtReleaseMemAddress");
	pthread_mutex_lock(&ascend_lock);
	if ((b = block_of(p)) == NULL || !b->is_reserved) {
		ascend_misused("address %p is released, which is not "
		    "reserved", p);
		rc = ACL_ERROR_RT_PARAM_INVALID;
	} else {
		for (i = 0; i < nmaps; i++)
			if (maps[i].at >= b->at && maps[i].at < b->at +
			    b->nbytes)
				ascend_misused("address %p is released, and "
				    "has memory", p);
		drop_block(b);
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

OPTIONAL(aclrtMallocPhysical, void **handle, size_t nbytes,
    const struct aclrt_mem_prop *prop, uint64_t flags)
{
	struct physical *ph;

	ENTER_VIRTUAL("aclrtMallocPhysical");
	if (!prop_is_right(prop) || flags != 0 || nbytes == 0 || nbytes %
	    ascend_switches()->granule_bytes != 0)
		return ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&ascend_lock);
	*handle = NULL;
	if (charge(nbytes, nbytes)) {
		if ((ph = calloc(1, sizeof(*ph))) == NULL)
			ascend_fatal("no memory");
		ph->nbytes = nbytes;
		ascend_counts.blocks++;
		ascend_report();
		*handle = ascend_new_handle(HANDLE_PHYSICAL, ph);
	}
	pthread_mutex_unlock(&ascend_lock);
	return *handle != NULL ? ACL_SUCCESS :
	    ascend_fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "EL0004: %zu bytes",
	    nbytes);
}

OPTIONAL(aclrtFreePhysical, void *handle)
{
	struct physical *ph;

	ENTER_VIRTUAL("aclrtFreePhysical");
	pthread_mutex_lock(&ascend_lock);
	if ((ph = ascend_end_handle(HANDLE_PHYSICAL, handle)) != NULL) {
		if (ph->is_mapped)
			ascend_misused("memory is freed, and mapped");
		ascend_counts.asked_bytes -= ph->nbytes;
		ascend_counts.device_bytes -= ph->nbytes;
		ascend_counts.blocks--;
		ascend_report();
	}
	pthread_mutex_unlock(&ascend_lock);
	free(ph);
	return ph != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

/* The addresses must lie in one reservation, and have no memory yet. */
static int
can_map(const void *p, uint64_t nbytes)
{
	const struct block *b;
	uint64_t at, i;

	if (!is_device_address(p))
		return 0;
	at = (uint64_t)((const char *)p - base);
	b = block_before(at);
	if (b == NULL || !b->is_reserved || at - b->at + nbytes > b->nbytes ||
	    at % ascend_switches()->granule_bytes != 0 || nmaps == MAX_BLOCKS)
		return 0;
	for (i = 0; i < nmaps; i++)
		if (maps[i].at < at + nbytes && maps[i].at + maps[i].nbytes >
		    at)
			return 0;
	return 1;
}

OPTIONAL(aclrtMapMem, void *p, size_t nbytes, size_t offset, void *handle,
    uint64_t flags)
{
	struct physical *ph;
	int rc = ACL_ERROR_RT_PARAM_INVALID;

	ENTER_VIRTUAL("aclrtMapMem");
	pthread_mutex_lock(&ascend_lock);
	ph = ascend_find(HANDLE_PHYSICAL, handle);
	if (ph != NULL && offset == 0 && flags == 0 && ph->nbytes == nbytes &&
	    !ph->is_mapped && can_map(p, nbytes)) {
		ph->is_mapped = 1;
		ph->at = (uint64_t)((char *)p - base);
		maps[nmaps].at = ph->at;
		maps[nmaps++].nbytes = nbytes;
		memset(shadow + ph->at, POISON, nbytes);
		rc = ACL_SUCCESS;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

/* Find the handle of a mapping. */
static int
unmap_if_at(void *object, void *arg)
{
	struct physical *ph = object;

	if (ph->is_mapped && ph->at == *(uint64_t *)arg)
		ph->is_mapped = 0;
	return 0;
}

static void
unmap_physical(uint64_t at)
{
	ascend_each(HANDLE_PHYSICAL, unmap_if_at, &at);
}

OPTIONAL(aclrtUnmapMem, void *p)
{
	unsigned i;

	ENTER_VIRTUAL("aclrtUnmapMem");
	pthread_mutex_lock(&ascend_lock);
	for (i = 0; i < nmaps; i++)
		if (base + maps[i].at == (char *)p)
			break;
	if (i == nmaps)
		ascend_misused("address %p is unmapped, which has no memory",
		    p);
	else {
		unmap_physical(maps[i].at);
		memset(shadow + maps[i].at, POISON, maps[i].nbytes);
		maps[i] = maps[--nmaps];
		i = UINT32_MAX;
	}
	pthread_mutex_unlock(&ascend_lock);
	return i == UINT32_MAX ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}
