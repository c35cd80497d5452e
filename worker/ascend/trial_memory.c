/* worker/ascend/trial_memory.c - see trial_memory.h. */
#include "trial_memory.h"

#include "shm/event.h"

/* The device's own timeout of an operator comes first. */
#define WAIT_NS		(UINT64_C(1000000000) * (ACL_OPERATOR_S + 2))

static int
add_block(const struct acl_session *s, struct acl_trial_memory *m,
    uint64_t nbytes, void **ret, struct err *reterr)
{
	const struct acl_source *src = &s->src;
	int rc = src->lib->aclrtMalloc(ret, nbytes, ACL_MEM_MALLOC_HUGE_FIRST);

	if (rc != ACL_SUCCESS)
		return acl_failed(src->lib, src->session, "aclrtMalloc", rc,
		    reterr);
	m->block[m->nblocks++] = *ret;
	return 0;
}

int
acl_trial_alloc(struct acl_products *p, uint64_t w_bytes,
    struct acl_trial_memory *m, void **ret_w, struct err *reterr)
{
	const struct acl_session *s = p->s;
	int rc;

	if ((rc = acl_host_alloc(&s->src, p->a_bytes, "A", &m->host[0],
	    reterr)) < 0 || (rc = acl_host_alloc(&s->src, p->c_bytes, "C",
	    &m->host[1], reterr)) < 0)
		return rc;
	p->a = p->device_a = m->host[0].p;
	p->c = p->device_c = m->host[1].p;
	if (p->choice->chip.has_memory && ((rc = add_block(s, m, p->a_bytes,
	    &p->device_a, reterr)) < 0 || (rc = add_block(s, m, p->c_bytes,
	    &p->device_c, reterr)) < 0))
		return rc;
	p->workspace = NULL;
	if (p->workspace_need > 0 && (rc = add_block(s, m, p->workspace_need,
	    &p->workspace, reterr)) < 0)
		return rc;
	return add_block(s, m, w_bytes, ret_w, reterr);
}

void
acl_trial_free(const struct acl_session *s, struct acl_trial_memory *m)
{
	unsigned i;

	while (m->nblocks > 0)
		s->src.lib->aclrtFree(m->block[--m->nblocks]);
	for (i = 0; i < NITEMS(m->host); i++)
		acl_host_free(&s->src, &m->host[i], NULL);
}

int
acl_trial_multiply(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t m, float *ret, struct err *reterr)
{
	uint32_t r;
	int rc;

	if ((rc = acl_products_send(p, w->k, rows, reterr)) < 0 ||
	    (rc = acl_products_start(p, w, rows, 0, m, 0, reterr)) < 0 ||
	    (rc = acl_session_wait(p->s, event_now_ns() + WAIT_NS,
	    reterr)) < 0)
		return rc;
	for (r = 0; r < m; r++)
		acl_products_read(p, w, m, 0, r, ret + (uint64_t)r * w->n);
	return 0;
}
