/* worker/ascend/memory.c - see memory.h.
 *
 * A pool is a list of pieces, used or free, in the order of their addresses in
 * areas.  An area is what the library gave: one range that grows (virtual
 * memory), chunks, or a block for each piece (slots).  Free neighbours become one
 * piece; a request takes the smallest that is large enough. */
#include "memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memo.h"

/* Bytes that the device adds to a block [D]. */
static uint64_t
device_bytes(uint64_t nbytes)
{
	return ALIGN_UP(nbytes, 32) + 32;
}

/* --- host memory --- */

uint64_t
acl_host_bytes(uint64_t nbytes)
{
	/* Blocks in memory that a program manages itself: 32 bytes more [D]. */
	return ALIGN_UP(nbytes, 32) + 32 + ACL_ALIGN - 1;
}

uint64_t
acl_host_held(const struct acl_machine *m, uint64_t nbytes)
{
	if (nbytes == 0)
		return 0;
	return m->is_rc ? device_bytes(acl_host_bytes(nbytes)) :
	    acl_host_bytes(nbytes);
}

int
acl_host_alloc(const struct acl_source *src, uint64_t nbytes,
    const char *what, struct acl_host_block *ret, struct err *reterr)
{
	void *raw = NULL;
	int rc;

	memset(ret, 0, sizeof(*ret));
	acl_memo_next_call();
	rc = src->lib->aclrtMallocHost(&raw, acl_host_bytes(nbytes));
	if (rc != ACL_SUCCESS) {
		rc = acl_failed(src->lib, src->session, "aclrtMallocHost", rc,
		    reterr);
		err_prefix(reterr, "%s (%" PRIu64 " bytes)", what, nbytes);
		return rc;
	}
	ret->raw = raw;
	ret->p = (void *)(uintptr_t)ALIGN_UP((uintptr_t)raw, ACL_ALIGN);
	ret->nbytes = nbytes;
	return 0;
}

int
acl_host_free(const struct acl_source *src, struct acl_host_block *b,
    struct err *reterr)
{
	int rc = ACL_SUCCESS;

	if (b->raw != NULL)
		rc = src->lib->aclrtFreeHost(b->raw);
	memset(b, 0, sizeof(*b));
	return rc == ACL_SUCCESS ? 0 : acl_failed(src->lib, src->session,
	    "aclrtFreeHost", rc, reterr);
}

/* --- sizes --- */

const char *
acl_strategy_name(enum acl_strategy s)
{
	static const char *const names[] = {
		"virtual memory", "best fit", "slots",
	};

	return s < ACL_STRATEGIES ? names[s] : "none";
}

/* aclrtMalloc() aligns to 64; the rest of ACL_ALIGN is asked for. */
static uint64_t
area_ask(uint64_t nbytes)
{
	return nbytes + ACL_ALIGN - 64;
}

/* Slots have sizes of 8 steps for each power of two, so that one that was freed
 * fits many requests. */
static uint64_t
slot_room(uint64_t room)
{
	uint64_t step = ACL_ALIGN;

	while (step * 16 <= room)
		step *= 2;
	return ALIGN_UP(room, step);
}

uint64_t
acl_pool_room(const struct acl_pool_plan *plan, uint64_t nbytes)
{
	uint64_t room = ALIGN_UP(ALIGN_UP(nbytes, 32) + 32, ACL_ALIGN);

	return plan->strategy == ACL_POOL_SLOTS ? slot_room(room) : room;
}

uint64_t
acl_pool_slack(const struct acl_pool_plan *plan, const uint64_t *nbytes,
    uint32_t n)
{
	uint64_t slack = 0, area = device_bytes(area_ask(0)) + 32;
	uint32_t i;

	for (i = 0; i < n; i++)
		slack += acl_pool_room(plan, nbytes[i]) - nbytes[i];
	switch (plan->strategy) {
	case ACL_POOL_VIRTUAL:
		return slack + plan->granule_bytes;
	case ACL_POOL_SLOTS:
		return slack + n * area;
	default:
		break;
	}
	/* The end of each chunk is smaller than the request that began the next
	 * one. */
	for (i = 0; i < n; i++)
		slack += MIN(acl_pool_room(plan, nbytes[i]),
		    plan->chunk_bytes / 2) + area;
	return slack + plan->chunk_bytes;
}

/* --- the pool --- */

struct area {
	void *raw, *base;
	uint64_t nbytes;		/* usable, from base */
	uint64_t held;
};

struct piece {
	uint32_t area;
	int is_free;
	uint64_t at, nbytes, asked;
};

struct acl_pool {
	struct acl_source src;
	struct acl_pool_plan plan;
	struct area *area;		/* [max_areas] */
	uint32_t nareas, max_areas;
	struct piece *piece;		/* [max_pieces] */
	uint32_t npieces, max_pieces;
	void **handle;			/* [nhandles] memory of granules */
	uint32_t nhandles, max_handles;
	uint64_t asked, held, peak;
	uint32_t nblocks;
	int sealed;
};

static struct aclrt_mem_prop
properties(const struct acl_source *src)
{
	return (struct aclrt_mem_prop){
		.handle_type = ACL_MEM_HANDLE_TYPE_NONE,
		.allocation_type = ACL_MEM_ALLOCATION_TYPE_PINNED,
		.mem_attr = ACL_HBM_MEM_HUGE,
		.location = { src->device, ACL_MEM_LOCATION_DEVICE },
	};
}

static int
failed(const struct acl_pool *p, const char *call, int code,
    struct err *reterr)
{
	return acl_failed(p->src.lib, p->src.session, call, code, reterr);
}

/* A place for a piece before i. */
static struct piece *
insert_piece(struct acl_pool *p, uint32_t i)
{
	assert(p->npieces < p->max_pieces);
	memmove(&p->piece[i + 1], &p->piece[i], (p->npieces++ - i) *
	    sizeof(*p->piece));
	return &p->piece[i];
}

static void
remove_piece(struct acl_pool *p, uint32_t i)
{
	memmove(&p->piece[i], &p->piece[i + 1], (--p->npieces - i) *
	    sizeof(*p->piece));
}

/* Make free neighbours of one area one piece. */
static void
merge(struct acl_pool *p, uint32_t i)
{
	if (i + 1 < p->npieces && p->piece[i + 1].is_free &&
	    p->piece[i + 1].area == p->piece[i].area) {
		p->piece[i].nbytes += p->piece[i + 1].nbytes;
		remove_piece(p, i + 1);
	}
	if (i > 0 && p->piece[i - 1].is_free && p->piece[i - 1].area ==
	    p->piece[i].area) {
		p->piece[i - 1].nbytes += p->piece[i].nbytes;
		remove_piece(p, i);
	}
}

static void
add_free(struct acl_pool *p, uint32_t area, uint64_t at, uint64_t nbytes)
{
	*insert_piece(p, p->npieces) = (struct piece){ .area = area,
	    .is_free = 1, .at = at, .nbytes = nbytes };
	merge(p, p->npieces - 1);
}

static void
hold(struct acl_pool *p, uint64_t nbytes)
{
	p->held += nbytes;
	p->peak = MAX(p->peak, p->held);
}

static int
check_cap(const struct acl_pool *p, uint64_t more, const char *what,
    uint64_t nbytes, struct err *reterr)
{
	if (more <= p->plan.cap_bytes - p->held)
		return 0;
	return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: %s needs %" PRIu64
	    " bytes: the device's pool holds %" PRIu64 ", takes %" PRIu64
	    " more (%s), and may hold %" PRIu64 "; raise the cap",
	    p->src.session, what, nbytes, p->held, more,
	    acl_strategy_name(p->plan.strategy), p->plan.cap_bytes);
}

/* --- growth --- */

static int
add_area(struct acl_pool *p, uint64_t usable, const char *what,
    uint64_t nbytes, struct err *reterr)
{
	struct area *a = &p->area[p->nareas];
	uint64_t held = device_bytes(area_ask(usable));
	int rc;

	if (p->nareas == p->max_areas)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: %s: the "
		    "device's pool has %u areas, its limit: blocks of growing "
		    "sizes came and went", p->src.session, what, p->nareas);
	if ((rc = check_cap(p, held, what, nbytes, reterr)) < 0)
		return rc;
	rc = p->src.lib->aclrtMalloc(&a->raw, area_ask(usable),
	    ACL_MEM_MALLOC_HUGE_FIRST);
	if (rc != ACL_SUCCESS)
		return failed(p, "aclrtMalloc", rc, reterr);
	a->base = (void *)(uintptr_t)ALIGN_UP((uintptr_t)a->raw, ACL_ALIGN);
	a->nbytes = usable;
	a->held = held;
	hold(p, held);
	add_free(p, p->nareas++, 0, usable);
	return 0;
}

/* A chunk, smaller where the cap is near.  A request of more than half a chunk gets
 * memory of its own: it would leave the rest of each chunk unused. */
static int
add_chunk(struct acl_pool *p, uint64_t room, const char *what,
    uint64_t nbytes, struct err *reterr)
{
	uint64_t left = p->plan.cap_bytes - p->held;
	uint64_t usable = room > p->plan.chunk_bytes / 2 ? room :
	    p->plan.chunk_bytes;

	if (device_bytes(area_ask(usable)) > left)
		usable = left < device_bytes(area_ask(room)) ? room :
		    ALIGN_DOWN(left - 32 - 64 - 32, ACL_ALIGN);
	return add_area(p, MAX(usable, room), what, nbytes, reterr);
}

/* Give the range's next granules memory. */
static int
add_granules(struct acl_pool *p, uint64_t nbytes, struct err *reterr)
{
	struct aclrt_mem_prop prop = properties(&p->src);
	struct area *a = &p->area[0];
	void **h = &p->handle[p->nhandles];
	int rc;

	assert(p->nhandles < p->max_handles);
	rc = p->src.lib->aclrtMallocPhysical(h, nbytes, &prop, 0);
	if (rc != ACL_SUCCESS)
		return failed(p, "aclrtMallocPhysical", rc, reterr);
	rc = p->src.lib->aclrtMapMem((char *)a->base + a->nbytes, nbytes, 0,
	    *h, 0);
	if (rc != ACL_SUCCESS) {
		p->src.lib->aclrtFreePhysical(*h);
		return failed(p, "aclrtMapMem", rc, reterr);
	}
	p->nhandles++;
	add_free(p, 0, a->nbytes, nbytes);
	a->nbytes += nbytes;
	a->held += nbytes;
	hold(p, nbytes);
	return 0;
}

/* Room at the range's end counts. */
static int
grow_range(struct acl_pool *p, uint64_t room, const char *what,
    uint64_t nbytes, struct err *reterr)
{
	const struct piece *last = p->npieces > 0 ? &p->piece[p->npieces - 1] :
	    NULL;
	uint64_t left = last != NULL && last->is_free ? last->nbytes : 0;
	uint64_t more = ALIGN_UP(room - left, p->plan.granule_bytes);
	int rc;

	if ((rc = check_cap(p, more, what, nbytes, reterr)) < 0)
		return rc;
	while (more > 0 && rc == 0) {
		rc = add_granules(p, p->plan.granule_bytes, reterr);
		more -= p->plan.granule_bytes;
	}
	return rc;
}

static int
grow(struct acl_pool *p, uint64_t room, const char *what, uint64_t nbytes,
    struct err *reterr)
{
	if (p->sealed)
		return err_set(reterr, ERR_RUN, -ENOSPC, "session %s: %s needs "
		    "%" PRIu64 " bytes of the device's pool, which is sealed: "
		    "it has %" PRIu64 " free bytes, but not in one piece",
		    p->src.session, what, nbytes, p->held - p->asked);
	switch (p->plan.strategy) {
	case ACL_POOL_VIRTUAL:
		return grow_range(p, room, what, nbytes, reterr);
	case ACL_POOL_BEST_FIT:
		return add_chunk(p, room, what, nbytes, reterr);
	default:
		return add_area(p, room, what, nbytes, reterr);
	}
}

/* --- blocks --- */

/* The smallest free piece of at least so many bytes, or -1.  A slot is taken
 * whole: not one of more than twice the size. */
static int64_t
find_piece(const struct acl_pool *p, uint64_t room)
{
	const struct piece *q;
	int64_t best = -1;
	uint32_t i;

	for (i = 0; i < p->npieces; i++) {
		q = &p->piece[i];
		if (!q->is_free || q->nbytes < room || (q->nbytes > 2 * room &&
		    p->plan.strategy == ACL_POOL_SLOTS && !p->sealed))
			continue;
		if (best < 0 || q->nbytes < p->piece[best].nbytes)
			best = i;
	}
	return best;
}

static void *
take_piece(struct acl_pool *p, uint32_t i, uint64_t room, uint64_t nbytes)
{
	struct piece rest = p->piece[i];

	if (p->plan.strategy != ACL_POOL_SLOTS && rest.nbytes > room) {
		rest.at += room;
		rest.nbytes -= room;
		p->piece[i].nbytes = room;
		*insert_piece(p, i + 1) = rest;
	}
	p->piece[i].is_free = 0;
	p->piece[i].asked = nbytes;
	p->asked += nbytes;
	p->nblocks++;
	return (char *)p->area[p->piece[i].area].base + p->piece[i].at;
}

int
acl_pool_alloc(struct acl_pool *p, uint64_t nbytes, const char *what,
    void **ret, struct err *reterr)
{
	uint64_t room = acl_pool_room(&p->plan, nbytes);
	int64_t i;
	int rc;

	if (nbytes == 0 || nbytes > p->plan.cap_bytes)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: %s needs "
		    "%" PRIu64 " bytes: the device's pool may hold %" PRIu64,
		    p->src.session, what, nbytes, p->plan.cap_bytes);
	if (p->nblocks == p->plan.max_blocks)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: %s: the "
		    "device's pool has %u blocks, its limit", p->src.session,
		    what, p->nblocks);
	if ((i = find_piece(p, room)) < 0) {
		acl_memo_next_call();
		if ((rc = grow(p, room, what, nbytes, reterr)) < 0)
			return rc;
		i = find_piece(p, room);
		assert(i >= 0);
	}
	*ret = take_piece(p, (uint32_t)i, room, nbytes);
	return 0;
}

void
acl_pool_free(struct acl_pool *p, void *block)
{
	struct piece *q;
	uint32_t i;

	for (i = 0; i < p->npieces; i++) {
		q = &p->piece[i];
		if (!q->is_free && (char *)p->area[q->area].base + q->at ==
		    (char *)block)
			break;
	}
	assert(i < p->npieces);
	p->asked -= p->piece[i].asked;
	p->nblocks--;
	p->piece[i].is_free = 1;
	p->piece[i].asked = 0;
	merge(p, i);
}

void
acl_pool_seal(struct acl_pool *p)
{
	p->sealed = 1;
}

void
acl_pool_read(const struct acl_pool *p, struct acl_pool_count *ret)
{
	*ret = (struct acl_pool_count){
		.asked_bytes = p->asked, .held_bytes = p->held,
		.slack_bytes = p->held - p->asked, .peak_bytes = p->peak,
		.blocks = p->nblocks, .areas = p->nareas,
	};
}

/* --- open, close --- */

static int
reserve_range(struct acl_pool *p, struct err *reterr)
{
	uint64_t nbytes = ALIGN_DOWN(p->plan.cap_bytes, p->plan.granule_bytes);
	int rc;

	if (nbytes == 0)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: a cap of "
		    "%" PRIu64 " bytes is less than a granule of the device's "
		    "memory, %" PRIu64, p->src.session, p->plan.cap_bytes,
		    p->plan.granule_bytes);
	p->max_handles = (uint32_t)(nbytes / p->plan.granule_bytes);
	p->handle = calloc(p->max_handles, sizeof(*p->handle));
	if (p->handle == NULL)
		return err_nomem(reterr, "the pool's granules");
	rc = p->src.lib->aclrtReserveMemAddress(&p->area[0].base, nbytes, 0,
	    NULL, ACL_RESERVE_HUGE);
	if (rc != ACL_SUCCESS)
		return failed(p, "aclrtReserveMemAddress", rc, reterr);
	p->area[0].raw = p->area[0].base;
	p->nareas = 1;
	return 0;
}

int
acl_pool_open(const struct acl_source *src, const struct acl_pool_plan *plan,
    struct acl_pool **ret, struct err *reterr)
{
	struct acl_pool *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (p == NULL)
		return err_nomem(reterr, "a pool of the device");
	p->src = *src;
	p->plan = *plan;
	/* A free piece follows a used one, or begins an area; one more while
	 * neighbours become one. */
	p->max_areas = 2 * plan->max_blocks + 1;
	p->max_pieces = 2 * plan->max_blocks + p->max_areas + 1;
	p->area = calloc(p->max_areas, sizeof(*p->area));
	p->piece = calloc(p->max_pieces, sizeof(*p->piece));
	if (p->area == NULL || p->piece == NULL)
		rc = err_nomem(reterr, "a pool of %u blocks",
		    plan->max_blocks);
	else if (plan->strategy == ACL_POOL_VIRTUAL)
		rc = reserve_range(p, reterr);
	if (rc < 0) {
		acl_pool_close(p, NULL);
		return rc;
	}
	*ret = p;
	return 0;
}

static int
close_range(struct acl_pool *p, const char **ret_call)
{
	const struct acl_lib *l = p->src.lib;
	uint64_t granule = p->plan.granule_bytes;
	int rc = ACL_SUCCESS;

	while (p->nhandles > 0) {
		int r = l->aclrtUnmapMem((char *)p->area[0].base +
		    --p->nhandles * granule);

		*ret_call = "aclrtUnmapMem";
		if (r == ACL_SUCCESS) {
			r = l->aclrtFreePhysical(p->handle[p->nhandles]);
			*ret_call = "aclrtFreePhysical";
		}
		rc = rc != ACL_SUCCESS ? rc : r;
	}
	if (p->nareas > 0 && rc == ACL_SUCCESS) {
		rc = l->aclrtReleaseMemAddress(p->area[0].raw);
		*ret_call = "aclrtReleaseMemAddress";
	}
	return rc;
}

int
acl_pool_close(struct acl_pool *p, struct err *reterr)
{
	const char *call = "aclrtFree";
	int rc = ACL_SUCCESS, r;
	uint32_t i;

	if (p == NULL)
		return 0;
	if (p->plan.strategy == ACL_POOL_VIRTUAL)
		rc = close_range(p, &call);
	else
		for (i = 0; i < p->nareas; i++) {
			r = p->src.lib->aclrtFree(p->area[i].raw);
			rc = rc != ACL_SUCCESS ? rc : r;
		}
	if (rc != ACL_SUCCESS)
		rc = failed(p, call, rc, reterr);
	free(p->area);
	free(p->piece);
	free(p->handle);
	free(p);
	return rc;
}

/* --- which strategy --- */

/* Open a pool of one granule, fill it, close it. */
static int
try_pool(const struct acl_source *src, const struct acl_pool_plan *plan,
    uint64_t nbytes, struct err *reterr)
{
	struct acl_pool *p;
	void *block;
	int rc, closed;

	if ((rc = acl_pool_open(src, plan, &p, reterr)) < 0)
		return rc;
	rc = acl_pool_alloc(p, nbytes, "a trial of the pool", &block, reterr);
	closed = acl_pool_close(p, rc < 0 ? NULL : reterr);
	return rc < 0 ? rc : closed;
}

/* The recommended granule; 0 = virtual memory does not work, with the reason. */
static uint64_t
find_granule(const struct acl_source *src, char reason[128])
{
	struct aclrt_mem_prop prop = properties(src);
	size_t granule = 0;
	int rc;

	if (src->machine->is_rc) {
		snprintf(reason, 128, "no virtual memory in RC mode");
		return 0;
	}
	if (!acl_has_virtual_memory(src->lib, src->machine)) {
		snprintf(reason, 128, "this CANN has no virtual memory");
		return 0;
	}
	rc = src->lib->aclrtMemGetAllocationGranularity(&prop,
	    ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule);
	if (rc == ACL_SUCCESS && granule >= ACL_ALIGN && (granule &
	    (granule - 1)) == 0)
		return granule;
	snprintf(reason, 128, "no virtual memory: granularity: %d, %s", rc,
	    acl_code_name(rc));
	return 0;
}

static int
try_virtual(const struct acl_source *src, struct acl_pool_plan *plan,
    char reason[128])
{
	struct acl_pool_plan trial;
	struct err e = { 0 };

	plan->granule_bytes = find_granule(src, reason);
	if (plan->granule_bytes == 0)
		return 0;
	if (plan->cap_bytes < plan->granule_bytes) {
		snprintf(reason, 128, "the cap is below a granule, %" PRIu64
		    " bytes", plan->granule_bytes);
		return 0;
	}
	plan->strategy = ACL_POOL_VIRTUAL;
	trial = *plan;
	trial.cap_bytes = plan->granule_bytes;
	if (try_pool(src, &trial, ACL_ALIGN, &e) == 0)
		return 1;
	snprintf(reason, 128, "no virtual memory: %.100s", e.msg);
	return 0;
}

enum { CHUNKS = 16 };			/* of a pool that is full */

int
acl_pool_choose(const struct acl_source *src, struct acl_pool_plan *ret,
    char reason[128], struct err *reterr)
{
	uint64_t nbytes;
	int rc;

	reason[0] = '\0';
	ret->chunk_bytes = 0;
	if (try_virtual(src, ret, reason))
		return 0;
	ret->granule_bytes = 0;
	ret->strategy = ACL_POOL_BEST_FIT;
	ret->chunk_bytes = ALIGN_UP(ret->cap_bytes / CHUNKS, ACL_ALIGN);
	nbytes = MIN(ret->chunk_bytes, ret->cap_bytes / 2);
	if (nbytes > 0 && try_pool(src, ret, nbytes, NULL) == 0)
		return 0;
	ret->strategy = ACL_POOL_SLOTS;
	ret->chunk_bytes = 0;
	snprintf(reason, 128, "no block of %" PRIu64 " bytes", nbytes);
	rc = try_pool(src, ret, 64, reterr);
	return rc;
}
