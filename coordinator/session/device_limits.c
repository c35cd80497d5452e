/* coordinator/session/device_limits.c - probes devices for their limits. */
#include "device_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/devices.h"
#include "device_cache.h"
#include "session.h"

/* More than any device charges when it is opened. */
#define MAX_OPEN_BYTES	GIB

static struct {
	unsigned n;
	struct {
		char kind[MAX_NAME], port[MAX_NAME];
		uint64_t domain_bytes;
		struct plan_limits l;
	} of[MAX_SESSIONS];
} known;

const struct plan_limits *
device_limits_of(const struct session_conf *sc)
{
	unsigned i;

	for (i = 0; i < known.n; i++)
		if (strcmp(known.of[i].kind, sc->device) == 0 &&
		    strcmp(known.of[i].port, sc->port) == 0 &&
		    known.of[i].domain_bytes == sc->domain_bytes)
			return &known.of[i].l;
	return NULL;
}

/* Memory that a session needs beside its buffers. */
static int
store_need(const struct session_conf *sc, const struct wire_limit *wl,
    struct plan_limits *ret, struct err *reterr)
{
	const struct {
		const char *name;
		uint64_t *to;
	} needs[] = {
		{ "emulator_bytes", &ret->emulator_bytes },
		{ "library_bytes", &ret->library_bytes },
		{ "emulator_file_bytes", &ret->emulator_file_bytes },
	};
	size_t i;

	for (i = 0; i < NITEMS(needs); i++) {
		if (strcmp(wl->name, needs[i].name) != 0)
			continue;
		if (wl->value > SESSION_MOST_BYTES)
			return err_set(reterr, ERR_RUN, -EPROTO, "session %s: "
			    "its worker says that device %s needs %" PRIu64
			    " bytes (%s), more than 1 PiB: this is an error of "
			    "the worker", sc->name, sc->device, wl->value,
			    wl->name);
		*needs[i].to = wl->value;
	}
	return 0;
}

static int
store_limit(const struct session_conf *sc, const struct wire_limit *wl,
    struct plan_limits *ret, struct err *reterr)
{
	if (strcmp(wl->name, "found") == 0 && wl->value == 0)
		return err_set(reterr, ERR_RUN, -ENODEV, "session %s: no "
		    "device %s here: %s", sc->name, sc->device, wl->from);
	if (strcmp(wl->name, "total_bytes") == 0 && wl->known) {
		ret->total_bytes = wl->value;
		strlcpy(ret->from, wl->from, sizeof(ret->from));
	}
	if (strcmp(wl->name, "device_free_bytes") == 0 && wl->known) {
		ret->device_free_bytes = wl->value;
		strlcpy(ret->device_from, wl->from, sizeof(ret->device_from));
	}
	if (strcmp(wl->name, "largest_mapping_bytes") == 0 && wl->known) {
		ret->largest_bytes = wl->value;
		strlcpy(ret->largest_from, wl->from,
		    sizeof(ret->largest_from));
	}
	if (strcmp(wl->name, "mappings") == 0 && wl->known)
		ret->maps = wl->value;
	return wl->known ? store_need(sc, wl, ret, reterr) : 0;
}

/* A plan without the traits would be too small: refuse malformed ones. */
static int
store_traits(const struct session_conf *sc, const struct chan_msg *m,
    struct plan_limits *ret, struct err *reterr)
{
	struct wire_traits wt = { 0 };

	if (m->nbytes == sizeof(wt))
		memcpy(&wt, m->buf, sizeof(wt));
	if (m->nbytes != sizeof(wt) || wt.choice.layout >= LAYOUT_NTYPES ||
	    wt.copies_rows > 1 || wt.open_bytes > MAX_OPEN_BYTES ||
	    (wt.choice.layout == LAYOUT_RKNPU && (wt.npu_cores < 1 ||
	    wt.npu_cores > NPU_CORES || wt.npu_segment < NPU_ALIGN ||
	    wt.npu_segment % NPU_ALIGN != 0 ||
	    wt.npu_context_bytes > MAX_OPEN_BYTES)) ||
	    (layout_is_ascend(wt.choice.layout) && (wt.ascend_has_memory > 1 ||
	    wt.ascend_fns > ASCEND_FN_ALL || wt.ascend_cut_k > 1 ||
	    wt.ascend_has_slots > 1 ||
	    wt.ascend_graph_bytes > ASCEND_GRAPHS_BYTES ||
	    wt.ascend_granule_bytes > MAX_OPEN_BYTES ||
	    (wt.ascend_granule_bytes & (wt.ascend_granule_bytes - 1)) != 0 ||
	    wt.ascend_workspace_percent > ASCEND_MOST_PERCENT ||
	    wt.ascend_workspace_bytes > MAX_OPEN_BYTES)))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "worker sent malformed traits of device %s: %u bytes, "
		    "layout %u", sc->name, sc->device, m->nbytes,
		    wt.choice.layout);
	ret->layout = wt.choice.layout;
	ret->choice = wt.choice;
	ret->copies_rows = (int)wt.copies_rows;
	ret->open_bytes = wt.open_bytes;
	ret->npu = (struct npu_chip){ wt.npu_cores, wt.npu_segment,
	    wt.npu_context_bytes };
	ret->ascend = (struct ascend_chip){
	    .has_memory = wt.ascend_has_memory, .cut_k = wt.ascend_cut_k,
	    .granule_bytes = wt.ascend_granule_bytes,
	    .has_slots = (uint16_t)wt.ascend_has_slots,
	    .workspace_percent = wt.ascend_workspace_percent,
	    .groups = layout_is_ascend(wt.choice.layout) ?
	    (uint16_t)(wt.choice.layout - LAYOUT_ASCEND) : 0,
	    .workspace_bytes = wt.ascend_workspace_bytes,
	    .fns = wt.ascend_fns, .graph_bytes = wt.ascend_graph_bytes };
	return 0;
}

/* Keep the device's trials for the next start. */
static void
keep_verdict(const struct session_conf *sc, const struct chan_msg *m)
{
	struct wire_verdict wv;
	char text[DEVICE_CACHE_TEXT];

	if (m->nbytes != sizeof(wv))
		return;
	memcpy(&wv, m->buf, sizeof(wv));
	wv.why[sizeof(wv.why) - 1] = '\0';
	device_cache_note(sc->device, &wv, text);
}

static int
recv_limits(struct session *s, struct chan_msg *m,
    const struct session_conf *sc, struct plan_limits *ret, struct err *reterr)
{
	struct wire_limit wl;
	int rc;

	while ((rc = session_recv_answer(s, m, reterr)) == 0 &&
	    m->type != WIRE_END) {
		if (m->type == WIRE_TRAITS &&
		    (rc = store_traits(sc, m, ret, reterr)) < 0)
			break;
		if (m->type == WIRE_VERDICT)
			keep_verdict(sc, m);
		if (m->type != WIRE_LIMIT || m->nbytes != sizeof(wl))
			continue;
		memcpy(&wl, m->buf, sizeof(wl));
		wl.name[sizeof(wl.name) - 1] = wl.from[sizeof(wl.from) - 1] =
		    '\0';
		if ((rc = store_limit(sc, &wl, ret, reterr)) < 0)
			break;
	}
	return rc;
}

/* Was another device of this kind probed for this run? */
static int
was_probed(const char *kind)
{
	unsigned i;

	for (i = 0; i < known.n; i++)
		if (strcmp(known.of[i].kind, kind) == 0)
			return 1;
	return 0;
}

static int
probe(const struct conf *c, const struct session_conf *sc,
    const struct device_shapes *shapes, struct plan_limits *ret,
    struct err *reterr)
{
	struct plan_session ps = plan_empty_session(sc, 1);
	struct chan_msg *m = malloc(sizeof(*m));
	struct wire_probe wp = { .has_shapes = 1, .shapes = *shapes };
	struct session s;
	int rc;

	if (m == NULL)
		return err_nomem(reterr, "a message of session %s", sc->name);
	wp.has_verdict = (uint32_t)device_cache_read(sc->device,
	    &wp.verdict);
	wp.is_next = wp.has_verdict && was_probed(sc->device);
	if ((rc = session_probe(&ps, c, NULL, -1, &s, reterr)) == 0) {
		if ((rc = session_send(&s, WIRE_PROBE, &wp, sizeof(wp), NULL, 0,
		    reterr)) == 0)
			rc = recv_limits(&s, m, sc, ret, reterr);
		session_close(&s);
	}
	free(m);
	return rc;
}

int
device_limits_probe(const struct conf *c, const struct device_shapes *shapes,
    struct err *reterr)
{
	const struct session_conf *sc;
	struct plan_limits l;
	int i, rc;

	for (i = 0; i < c->nsessions; i++) {
		sc = &c->session[i];
		if (device_has_no_limits(sc->device) ||
		    device_limits_of(sc) != NULL)
			continue;
		l = (struct plan_limits){ .total_bytes = UINT64_MAX };
		if ((rc = probe(c, sc, shapes, &l, reterr)) < 0)
			return rc;
		strlcpy(known.of[known.n].kind, sc->device, MAX_NAME);
		strlcpy(known.of[known.n].port, sc->port, MAX_NAME);
		known.of[known.n].domain_bytes = sc->domain_bytes;
		known.of[known.n++].l = l;
	}
	return 0;
}
