/* worker/null/device.c - a device that computes nothing: the template for new
 * devices, and a test double.
 *
 * It implements the whole contract of device.h except arithmetic: a span that
 * writes a slot copies its input there, or writes zeros when it has none.  It
 * supports every operation except attention, so that a session on it shows a
 * fallback.  To write a device, copy this file, keep the order of the functions
 * and replace the bodies; each comment says what belongs there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/load/host_mem.h"

struct null_span {
	const struct program *p;
	struct span s;
};

struct device {
	struct device_conf conf;
	struct host_mem mem;
	struct null_span *span;		/* [nspans] */
	uint32_t nspans;
};

/* Look for the runtime (dlopen) and the device node; query or measure the
 * limits.  When nothing is found, say what was looked for and where. */
static int
null_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	(void)dc;
	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	ret->found = 1;
	snprintf(ret->reason, sizeof(ret->reason),
	    "always there; computes nothing: for tests and as a template");
	return 0;
}

/* Open the runtime's session or domain.  Here: keep the settings. */
static int
null_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct device *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device null", dc->session);
	d->conf = *dc;
	*ret = d;
	return 0;
}

/* State the runtime's limits; the stage respects them. */
static void
null_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = (struct device_traits){
		.host_visible = 1, .align = HOST_MEM_ALIGN,
		.largest_map = UINT64_MAX, .max_maps = HOST_MEM_BUFS,
	};
}

/* Check type, shape, alignment and kernel: yes, or no and the reason. */
static int
null_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	reason[0] = '\0';
	if (op->kind != OP_ATTENTION)
		return 1;
	snprintf(reason, REASON_LEN, "no kernel for %s", op_name(op->kind));
	return 0;
}

/* Charge the ledger first, then allocate device memory, then touch it. */
static int
null_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	return host_mem_alloc(&d->mem, d->conf.ledger, tag, nbytes, what, ret,
	    reterr);
}

/* Compile, capture or describe the span once. */
static int
null_prepare(struct device *d, const struct program *p, const struct span *s,
    const struct device_buf *kv, const struct device_buf *compute,
    uint32_t *ret_handle, struct err *reterr)
{
	struct null_span *span;

	(void)kv;
	(void)compute;
	span = reallocarray(d->span, d->nspans + 1, sizeof(*span));
	if (span == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for span %u of device null", d->conf.session,
		    d->nspans);
	d->span = span;
	span[d->nspans] = (struct null_span){ .p = p, .s = *s };
	*ret_handle = d->nspans++;
	return 0;
}

/* Submit the span.  Here: the last span of a part forwards the input. */
static int
null_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	const struct program *p;
	const struct tensor *out;
	const struct op *last;
	uint64_t nbytes;
	int head;

	if (handle >= d->nspans)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "device null: unknown span %u", handle);
	p = d->span[handle].p;
	head = d->span[handle].s.first >= p->nbody;
	last = &p->op[d->span[handle].s.end - 1];
	if (last->out == NO_TENSOR)
		return 0;
	out = &p->t[last->out];
	if (out->store != STORE_OUTPUT || b->output == NULL)
		return 0;
	nbytes = (head ? b->nselect : b->nrows) * out->row_bytes;
	if (!head && !p->env.embedding)
		memcpy(b->output, b->input, nbytes);
	else
		memset(b->output, 0, nbytes);
	return 0;
}

/* Wait for the runtime, always with a deadline. */
static int
null_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	(void)d;
	(void)deadline_ns;
	(void)reterr;
	return 0;
}

/* Free every buffer and span; keep the session. */
static int
null_reset(struct device *d, struct err *reterr)
{
	(void)reterr;
	host_mem_close(&d->mem);
	free(d->span);
	d->span = NULL;
	d->nspans = 0;
	return 0;
}

/* Free every buffer and the session; accept NULL. */
static void
null_close(struct device *d)
{
	if (d == NULL)
		return;
	host_mem_close(&d->mem);
	free(d->span);
	free(d);
}

const struct device_ops device_null = {
	.version = DEVICE_VERSION,
	.kind = "null",
	.layout = LAYOUT_HOST,
	/* Only here: a device that computes is tested when it is opened. */
	.computes_nothing = 1,
	.probe = null_probe,
	.open = null_open,
	.traits = null_traits,
	.supports = null_supports,
	.alloc = null_alloc,
	/* Repacks rows into the device's layout.  Here: the CPU's layout, for the
	 * operations that fall back. */
	.upload = host_mem_upload,
	.prepare = null_prepare,
	.run = null_run,
	.sync = null_sync,
	.reset = null_reset,
	.close = null_close,
};
