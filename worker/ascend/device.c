/* worker/ascend/device.c - an Ascend processor as a device.
 *
 *	device.c	the contract of worker/device.h
 *	board.c		checks of the machine
 *	lib.c codes.c	the library, and its codes
 *	memory.c	pools of device memory, aligned host memory
 *	layout.c	layouts of weights
 *
 * An operation that the processor does not compute runs on the session's cores, in
 * the same memory, with the CPU's bits; explain says why. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/meminfo.h"
#include "shm/event.h"
#include "worker/load/host_mem.h"
#include "board.h"
#include "memory.h"

struct device {
	struct device_conf conf;
	struct acl_machine machine;
	struct acl_source src;
	int is_set;			/* the thread has the device */
	struct device *host;		/* the host's cores: device_cpu */
	struct host_mem mem;
	/* The program, with the first span. */
	const struct program *p;
	uint32_t host_ops;
	uint64_t calls, ns;
};

/* The text of a message that will get the session's name in front. */
static const char *
without_session(const char *session, const char *msg)
{
	char prefix[MAX_NAME + 16];

	snprintf(prefix, sizeof(prefix), "session %s: ", session);
	return strncmp(msg, prefix, strlen(prefix)) == 0 ? msg +
	    strlen(prefix) : msg;
}

/* --- the library and the device --- */

static unsigned
number_of(const struct device_conf *dc)
{
	return (unsigned)atoi(dc->port);	/* config/devices.c checked it */
}

/* Load CANN, start it, and give this thread the device; detach() undoes what was
 * done. */
static int
attach(struct device *d, struct err *reterr)
{
	const char *session = d->conf.session;
	struct acl_source *src = &d->src;
	int rc;

	*src = (struct acl_source){ .machine = &d->machine,
	    .session = session, .device = number_of(&d->conf) };
	if ((rc = acl_load(&src->lib, reterr)) < 0) {
		src->lib = NULL;
		err_prefix(reterr, "session %s", session);
		return rc;
	}
	if ((rc = acl_start(src->lib, session, reterr)) < 0 ||
	    (rc = acl_find_machine(src->lib, session, &d->machine,
	    reterr)) < 0)
		return rc;
	if (src->device >= d->machine.ndevices)
		return err_set(reterr, ERR_RUN, -ENODEV, "session %s: there "
		    "is no device %u: CANN finds %u, numbered from 0", session,
		    src->device, d->machine.ndevices);
	rc = src->lib->aclrtSetDevice((int32_t)src->device);
	if (rc != ACL_SUCCESS)
		return acl_failed(src->lib, session, "aclrtSetDevice", rc,
		    reterr);
	d->is_set = 1;
	return 0;
}

static void
detach(struct device *d)
{
	if (d->src.lib == NULL)
		return;
	if (d->is_set)
		d->src.lib->aclrtResetDevice((int32_t)d->src.device);
	d->is_set = 0;
	acl_finish(d->src.lib, d->conf.session, NULL);
	d->src.lib = NULL;
}

/* --- probe --- */

#define SMAPS		"/proc/self/smaps_rollup"

/* Memory of the library, rounded up, so that plans do not differ from run to
 * run. */
#define STEP_BYTES	(512 * KIB)

/* The memory of a card is HBM or DDR; for the kind that it does not have, the
 * library answers 0 or the other's numbers. */
static void
add_memory(const struct device *d, struct device_probe *ret)
{
	static const struct { int attr; const char *from; } kinds[] = {
		{ ACL_HBM_MEM, "aclrtGetMemInfo(ACL_HBM_MEM)" },
		{ ACL_DDR_MEM, "aclrtGetMemInfo(ACL_DDR_MEM)" },
	};
	size_t free_bytes = 0, total = 0;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++)
		if (d->src.lib->aclrtGetMemInfo(kinds[i].attr, &free_bytes,
		    &total) == ACL_SUCCESS && total > 0)
			break;
	if (i == NITEMS(kinds) || free_bytes > total) {
		device_add_limit(ret, "device_total_bytes", 0, 0,
		    "aclrtGetMemInfo() tells neither HBM nor DDR");
		return;
	}
	device_add_limit(ret, "device_total_bytes", 1, total, kinds[i].from);
	device_add_limit(ret, "device_free_bytes", 1, free_bytes,
	    d->machine.is_rc ? "the same; memory of the host, which moves" :
	    kinds[i].from);
}

static void
add_limits(const struct device *d, struct device_probe *ret)
{
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 4 };
	char reason[128], from[96];
	struct err e = { 0 };

	add_memory(d, ret);
	device_add_limit(ret, "devices", 1, d->machine.ndevices,
	    "aclrtGetDeviceCount()");
	device_add_limit(ret, "alignment", 1, ACL_ALIGN,
	    "operators need 32, copies 64, both with this");
	if (acl_pool_choose(&d->src, &plan, reason, &e) < 0) {
		device_add_limit(ret, "pool_granule_bytes", 0, 0,
		    without_session(d->conf.session, e.msg));
		return;
	}
	snprintf(from, sizeof(from), "pool of %s%s%.60s",
	    acl_strategy_name(plan.strategy), reason[0] != '\0' ? ": " : "",
	    reason);
	device_add_limit(ret, "pool_granule_bytes", 1, plan.granule_bytes > 0 ?
	    plan.granule_bytes : ACL_ALIGN, from);
}

static void
add_checks(const struct device *d, const struct err *e,
    struct device_probe *ret)
{
	const char *root = secure_getenv("STRADDLE_ASCEND_ROOT");
	const struct acl_lib *l = d->src.lib;

	if (l == NULL) {
		board_add(ret, "library", 0, "%.300s",
		    without_session(d->conf.session, e->msg));
	} else {
		board_add(ret, "library", 1, "%.120s, interface %d.%d.%d",
		    l->path, d->machine.version[0], d->machine.version[1],
		    d->machine.version[2]);
		board_add(ret, "operators", 1, l->nops > 1 ?
		    "%u split libraries: " ACL_OPS_NN " and others" :
		    "%u library, of an older release: " ACL_OPS, l->nops);
	}
	board_check(root != NULL ? root : "", d->machine.soc,
	    number_of(&d->conf), ret);
	if (d->is_set)
		board_add(ret, "run mode", 1, d->machine.is_rc ? "RC: the "
		    "program runs on the processor's own cores, and both share "
		    "one memory" : "EP: a card, with memory of its own");
}

static int
ascend_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	struct device d = { .conf = *dc };
	uint64_t before = 0, after = 0;
	struct err e = { 0 };

	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	(void)meminfo_read(SMAPS, "Rss", &before);
	if (attach(&d, &e) < 0) {
		strlcpy(ret->reason, without_session(dc->session, e.msg),
		    sizeof(ret->reason));
		add_checks(&d, &e, ret);
		detach(&d);
		return 0;
	}
	ret->found = 1;
	ret->choice = (struct device_choice){ .is_made = 1,
	    .layout = LAYOUT_HOST };
	snprintf(ret->reason, sizeof(ret->reason), "%s, device %u of %u, %s; "
	    "%.160s", d.machine.soc, d.src.device, d.machine.ndevices,
	    d.machine.is_rc ? "RC mode" : "EP mode", d.src.lib->path);
	add_limits(&d, ret);
	add_checks(&d, &e, ret);
	if (before > 0 && meminfo_read(SMAPS, "Rss", &after) == 0)
		device_add_limit(ret, "library_bytes", 1, ALIGN_UP(after >
		    before ? after - before : 0, STEP_BYTES) + STEP_BYTES,
		    "growth of a worker that opens it");
	detach(&d);
	return 0;
}

/* --- open --- */

static int
ascend_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct device *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device ascend", dc->session);
	d->conf = *dc;
	if ((rc = device_cpu.open(dc, &d->host, reterr)) < 0 ||
	    (rc = attach(d, reterr)) < 0) {
		device_ascend.close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

static void
ascend_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = (struct device_traits){
		.host_visible = 1, .async = 1, .align = HOST_MEM_ALIGN,
		.largest_map = UINT64_MAX, .max_maps = HOST_MEM_BUFS,
	};
}

/* --- placement and memory --- */

static int
ascend_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	reason[0] = '\0';
	if (op->kind == OP_MATMUL_ID)
		strlcpy(reason, "products whose matrix differs from row to "
		    "row are not built for it yet", REASON_LEN);
	else if (op->kind != OP_MATMUL && op->kind != OP_QUANTIZE)
		strlcpy(reason, "not built for it yet", REASON_LEN);
	else if (op->w != NULL && weight_is_for_host(&op->w->ext))
		strlcpy(reason, "the choice of experts keeps the host's "
		    "precision", REASON_LEN);
	else
		return 1;
	return 0;
}

static int
ascend_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	return host_mem_alloc(&d->mem, d->conf.ledger, tag, nbytes, what, ret,
	    reterr);
}

/* --- spans --- */

#define NOT_TRIED	"no operator of the processor is tried yet"

static int
ascend_explain(struct device *d, const struct program *p, const struct op *op,
    char ret[REASON_LEN], struct err *reterr)
{
	(void)d;
	(void)p;
	(void)op;
	(void)reterr;
	strlcpy(ret, NOT_TRIED, REASON_LEN);
	return 1;
}

static int
refuse_strict(const struct device *d, const struct op *op, const char *reason,
    struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %s %s runs on "
	    "the CPU because: %s (strict = true)", d->conf.session,
	    op_name(op->kind), op->w != NULL ? op->w->ext.name : "", reason);
}

static int
ascend_prepare(struct device *d, const struct program *p,
    const struct span *s, const struct device_buf *kv,
    const struct device_buf *compute, uint32_t *ret_handle,
    struct err *reterr)
{
	if (d->conf.strict)
		return refuse_strict(d, &p->op[s->first], NOT_TRIED, reterr);
	d->host_ops += s->end - s->first;
	return device_cpu.prepare(d->host, p, s, kv, compute, ret_handle,
	    reterr);
}

static int
ascend_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	return device_cpu.run(d->host, handle, b, reterr);
}

static int
ascend_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	return device_cpu.sync(d->host, deadline_ns, reterr);
}

static void
ascend_account(const struct device *d, struct device_account *ret)
{
	*ret = (struct device_account){ .calls = d->calls, .ns = d->ns,
	    .host_ops = d->host_ops };
}

static int
ascend_reset(struct device *d, struct err *reterr)
{
	d->p = NULL;
	d->host_ops = 0;
	d->calls = d->ns = 0;
	host_mem_close(&d->mem);
	return device_cpu.reset(d->host, reterr);
}

static void
ascend_close(struct device *d)
{
	if (d == NULL)
		return;
	host_mem_close(&d->mem);
	device_cpu.close(d->host);
	detach(d);
	free(d);
}

const struct device_ops device_ascend = {
	.version = DEVICE_VERSION,
	.kind = "ascend",
	.layout = LAYOUT_HOST,
	.probe = ascend_probe,
	.open = ascend_open,
	.traits = ascend_traits,
	.supports = ascend_supports,
	.alloc = ascend_alloc,
	.upload = host_mem_upload,
	.prepare = ascend_prepare,
	.run = ascend_run,
	.sync = ascend_sync,
	.account = ascend_account,
	.explain = ascend_explain,
	.reset = ascend_reset,
	.close = ascend_close,
};
