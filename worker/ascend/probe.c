/* worker/ascend/probe.c - limits and checks of an Ascend processor, and how it
 * multiplies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/meminfo.h"
#include "config/words.h"
#include "shm/event.h"
#include "ascend.h"
#include "board.h"
#include "classic.h"
#include "graph.h"
#include "shape_trial.h"
#include "trial.h"
#include "verdict.h"

const char *
acl_without_session(const char *session, const char *msg)
{
	char prefix[MAX_NAME + 16];

	snprintf(prefix, sizeof(prefix), "session %s: ", session);
	return strncmp(msg, prefix, strlen(prefix)) == 0 ? msg +
	    strlen(prefix) : msg;
}

unsigned
acl_number(const struct device_conf *dc)
{
	return (unsigned)atoi(dc->port);	/* config/devices.c checked
						 * it */
}

#define SMAPS		"/proc/self/smaps_rollup"

/* A trial without progress, longer than an operator's timeout; and all of them.  The
 * coordinator waits for a minute. */
#define STALL_NS	(UINT64_C(1000000000) * (ACL_OPERATOR_S + 8))
#define MOST_NS		UINT64_C(20000000000)

/* Time for all shapes of a model, after all others. */
#define MODEL_NS	UINT64_C(30000000000)

/* Memory of the library, rounded up, so that plans do not differ from run to
 * run. */
#define STEP_BYTES	(512 * KIB)

/* The same with the graph engine, which is large, and after a trial. */
#define ENGINE_STEP_BYTES	(32 * MIB)

/* The memory of a card is HBM or DDR; for the kind that it does not have, the
 * library answers 0 or the other's numbers. */
static void
add_memory(const struct acl_session *s, struct device_probe *ret)
{
	static const struct { int attr; const char *from; } kinds[] = {
		{ ACL_HBM_MEM, "aclrtGetMemInfo(ACL_HBM_MEM)" },
		{ ACL_DDR_MEM, "aclrtGetMemInfo(ACL_DDR_MEM)" },
	};
	size_t free_bytes = 0, total = 0;
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++)
		if (s->src.lib->aclrtGetMemInfo(kinds[i].attr, &free_bytes,
		    &total) == ACL_SUCCESS && total > 0)
			break;
	if (i == NITEMS(kinds) || free_bytes > total) {
		device_add_limit(ret, "device_total_bytes", 0, 0,
		    "aclrtGetMemInfo() tells neither HBM nor DDR");
		return;
	}
	device_add_limit(ret, "device_total_bytes", 1, total, kinds[i].from);
	device_add_limit(ret, "device_free_bytes", 1, free_bytes,
	    s->machine.is_rc ? "the same; memory of the host, which moves" :
	    kinds[i].from);
}

static void
add_limits(const struct acl_session *s, struct device_probe *ret)
{
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 4 };
	char reason[128], from[96];
	struct err e = { 0 };

	add_memory(s, ret);
	device_add_limit(ret, "devices", 1, s->machine.ndevices,
	    "aclrtGetDeviceCount()");
	device_add_limit(ret, "alignment", 1, ACL_ALIGN,
	    "operators need 32, copies 64, both with this");
	if (acl_pool_choose(&s->src, &plan, reason, &e) < 0) {
		device_add_limit(ret, "pool_granule_bytes", 0, 0,
		    acl_without_session(s->src.session, e.msg));
		return;
	}
	snprintf(from, sizeof(from), "pool of %s%s%.60s",
	    acl_strategy_name(plan.strategy), reason[0] != '\0' ? ": " : "",
	    reason);
	device_add_limit(ret, "pool_granule_bytes", 1, plan.granule_bytes > 0 ?
	    plan.granule_bytes : ACL_ALIGN, from);
}

static const char *
root_folder(void)
{
	const char *root = secure_getenv("STRADDLE_ASCEND_ROOT");

	return root != NULL ? root : "";
}

static void
add_checks(const struct acl_session *s, const struct err *e,
    struct device_probe *ret)
{
	const struct acl_lib *l = s->src.lib;

	if (l == NULL) {
		probe_add(ret, "library", 0, "%.300s",
		    acl_without_session(s->src.session, e->msg));
	} else {
		probe_add(ret, "library", 1, "%.120s, interface %d.%d.%d",
		    l->path, s->machine.version[0], s->machine.version[1],
		    s->machine.version[2]);
		probe_add(ret, "operators", 1, l->nops > 1 ?
		    "%u split libraries: " ACL_OPS_NN " and others" :
		    "%u library, of an older release: " ACL_OPS, l->nops);
	}
	board_check(root_folder(), s->machine.soc,
	    s->src.device, ret);
	if (s->is_set)
		probe_add(ret, "run mode", 1, s->machine.is_rc ? "RC: the "
		    "program runs on the processor's own cores, and both share "
		    "one memory" : "EP: a card, with memory of its own");
}

static const char *
nz_text(const struct acl_form *f)
{
	return f->nz == ACL_ND ? "" : f->nz == ACL_NZ_BY_US ?
	    " in FRACTAL_NZ, packed here" : " in FRACTAL_NZ";
}

static void
tell_products(const struct acl_choice *c, const char *groups_reason,
    struct device_probe *ret)
{
	const struct acl_form *f = &c->form[ASCEND_HALF];

	if (f->way == ACL_WAY_NONE) {
		probe_add(ret, "products", 0, "none runs, all of the model "
		    "will run on the CPU: %.55s", c->reason);
		return;
	}
	probe_add(ret, "products", 1, "%s of 16-bit floats%s, results of %s, "
	    "in blocks of %s%u rows%s%s%.55s", acl_way_name(
	    (enum acl_way)f->way), nz_text(f), f->c_type == ACL_FLOAT ?
	    "32 bits" : "16 bits", f->nclasses > 1 ? "1, 8 or " : "",
	    f->rows[f->nclasses - 1], c->chip.cut_k ?
	    ", K in segments of 4096" : "", c->reason[0] != '\0' ? "; not " :
	    "", c->reason);
	if (c->chip.groups == 0)
		probe_add(ret, "integer weights", 0, "all weights become "
		    "16-bit floats: %.55s", groups_reason);
	else
		probe_add(ret, "integer weights", 1, "%s: 8 bits%s%s%s%.55s",
		    acl_way_name(ACL_WAY_GROUPS), c->chip.groups >=
		    ASCEND_INT4 ? ", Q4_0 4 bits" : "", c->chip.groups >=
		    ASCEND_OFFSETS ? ", Q4_1 and Q4_K 4 bits" : "",
		    groups_reason[0] == '\0' ? "" : c->chip.groups >=
		    ASCEND_INT4 ? "; no offsets: " : "; not 4 bits: ",
		    groups_reason);
}

void
acl_tell_operators(const struct acl_choice *c, struct device_probe *ret)
{
	enum { MOST = sizeof(ret->check[0].text) };
	char text[MOST] = "right:", other[64], buf[ACL_FN_WORDS];
	const char *between = "; not: ";
	unsigned i, nright = 0;

	for (i = 0; i < ACL_FNS; i++)
		if (acl_fn_outcome(c->fn[i]) == ACL_FN_RIGHT)
			words_add(text, MOST, nright++ > 0 ? ", " : " ", "%s",
			    acl_fn_name((enum acl_fn)i) + strlen("aclnn"));
	if (nright == 0)
		words_add(text, MOST, " ", "none");
	for (i = 0; i < ACL_FNS; i++) {
		if (acl_fn_outcome(c->fn[i]) == ACL_FN_RIGHT)
			continue;
		snprintf(other, sizeof(other), "%s (%s)", acl_fn_name(
		    (enum acl_fn)i) + strlen("aclnn"), acl_fn_words(c->fn[i],
		    buf));
		if (strlen(text) + strlen(between) + strlen(other) >= MOST) {
			probe_add(ret, "other operators", nright > 0, "%s",
			    text);
			strlcpy(text, "not: ", MOST);
			between = "";
		}
		words_add(text, MOST, between, "%s", other);
		between = ", ";
	}
	probe_add(ret, "other operators", nright > 0, "%s", text);
}

static void
tell_graphs(const struct acl_choice *c, struct device_probe *ret)
{
	const char *others = (c->chip.fns & ASCEND_FN_SWIGLU) != 0 ?
	    "norms and SwiGLU" : "norms";
	char text[ACL_GRAPH_TEXT], fns[ACL_GRAPH_TEXT + 32] = "";

	if (c->chip.fns != 0 && c->graph_fns_why == ACL_GRAPH_FINE)
		snprintf(fns, sizeof(fns), ", with %s", others);
	else if (c->chip.fns != 0)
		snprintf(fns, sizeof(fns), ", without %s (%s)", others,
		    acl_graph_text(c->graph_fns_why, text));
	if (c->chip.graph_bytes > 0)
		probe_add(ret, "captured graphs", 1, "products of few rows%s, "
		    "%ju bytes of the device for each", fns,
		    (uintmax_t)c->chip.graph_bytes);
	else
		probe_add(ret, "captured graphs", 0, "none, calls are made "
		    "one by one: %s", acl_graph_text(c->graph_why, text));
}

static int
is_right(const struct acl_choice *c, enum acl_fn fn)
{
	return acl_fn_outcome(c->fn[fn]) == ACL_FN_RIGHT;
}

/* ASCEND_FN_... of operators that are right. */
static uint32_t
usable_fns(const struct acl_choice *c)
{
	uint32_t fns = ASCEND_FN_NORMS;

	if (!is_right(c, ACL_FN_NORM) || !is_right(c, ACL_FN_TO_HALF))
		return 0;
	if (!is_right(c, ACL_FN_SCALE))
		return fns;
	if (is_right(c, ACL_FN_SILU) && is_right(c, ACL_FN_MUL))
		fns |= ASCEND_FN_SWIGLU;
	if (is_right(c, ACL_FN_SCALE_ROWS) && (is_right(c, ACL_FN_ADD) ||
	    is_right(c, ACL_FN_ADD_TO)))
		fns |= ASCEND_FN_ADDS | (is_right(c, ACL_FN_ADD_NORM) ?
		    ASCEND_FN_ADD_NORMS : 0);
	return fns;
}

/* Take the ways of an earlier probe, or try all.  A probe that found no way is not kept,
 * because a remedy would change it.  One that had too little time or memory is for this
 * run only. */
static int
find_ways(struct acl_session *s, const struct device_verdict *known,
    struct acl_notes *notes, struct acl_choice *c,
    char groups_reason[ACL_REASON], struct device_probe *ret)
{
	const unsigned shortages = acl_shortages();
	char key[DEVICE_KEY_BYTES];
	int rc, is_taken = 0;

	acl_verdict_key(s, root_folder(), key);
	if (known != NULL && key[0] != '\0' && notes->outcome[
	    ACL_NOTE_ENGINE] == ACL_FINE) {
		/* This may load the engine. */
		notes->trying = 1 + ACL_NOTE_ENGINE;
		is_taken = acl_verdict_take(known, key, s, c, groups_reason,
		    ret->verdict_why, sizeof(ret->verdict_why));
		notes->trying = 0;
	}
	if (is_taken) {
		ret->verdict = *known;
		ret->verdict_is_kept = 1;
		return 0;
	}
	if ((rc = acl_choose(s, notes, c, groups_reason)) == 0 &&
	    c->form[ASCEND_HALF].way != ACL_WAY_NONE)
		rc = acl_graph_try(s, notes, c);
	if (rc == 0 && c->form[ASCEND_HALF].way != ACL_WAY_NONE)
		rc = acl_graph_try_fns(s, notes, usable_fns(c), c);
	if (rc == 0 && c->form[ASCEND_HALF].way != ACL_WAY_NONE) {
		acl_verdict_fill(c, groups_reason, key, &ret->verdict);
		ret->verdict_is_partial = notes->is_late != 0 ||
		    acl_shortages() > shortages;
	}
	return rc;
}

#define SHAPES	"shapes of models"

/* List the model's shapes that must not run, and tell all outcomes. */
static void
judge_shapes(const struct acl_shapes *model, struct acl_choice *c,
    struct device_probe *ret)
{
	char unfit[256] = "", text[112];
	const struct acl_shape *s;
	unsigned refused = 0, left = 0;

	for (s = model->shape; s < model->shape + model->n; s++) {
		const enum acl_fn_outcome o = acl_fn_outcome(s->outcome);

		refused += o == ACL_FN_REFUSED;
		left += o == ACL_FN_UNTRIED;
		acl_unfit_add(&c->unfit, s);
		if (!acl_outcome_is_unfit(o))
			continue;
		acl_shape_text(s, text, sizeof(text));
		words_add(unfit, sizeof(unfit), ", ", "%s", text);
	}
	c->unfit.tried = (uint16_t)(model->n - left);
	probe_add(ret, SHAPES, unfit[0] == '\0' && refused + left == 0, "%u "
	    "of this model were tried%s%.180s%s", c->unfit.tried, unfit[0] !=
	    '\0' ? ", and run on the CPU: " : "", unfit, left > 0 ? "; no time "
	    "or memory was left for others" : refused > 0 ?
	    "; the library refuses others" : "");
}

/* Without a model: all outcomes of earlier starts. */
static void
tell_known(const struct acl_shapes *known, struct device_probe *ret)
{
	unsigned unfit = 0;
	uint32_t i;

	for (i = 0; i < known->n; i++)
		unfit += (unsigned)acl_outcome_is_unfit(acl_fn_outcome(
		    known->shape[i].outcome));
	if (known->n > 0)
		probe_add(ret, SHAPES, unfit == 0, "%u were tried by earlier "
		    "starts; %u of them run on the CPU, explain says why",
		    known->n, unfit);
}

static int
has_new_shapes(const struct acl_shapes *now, const struct acl_shapes *before)
{
	uint32_t i;

	for (i = 0; i < now->n; i++)
		if (acl_shapes_find(before, now->shape[i].kind,
		    now->shape[i].n, now->shape[i].k) == NULL)
			return 1;
	return 0;
}

/* Try the model's shapes that no earlier probe has tried, and keep the outcomes.
 * Returns 0 or -EAGAIN. */
static int
try_model(struct acl_session *s, const struct device_conf *dc,
    struct acl_notes *notes, struct acl_choice *c, struct device_probe *ret)
{
	const struct device_shapes *want = dc->shapes;
	struct acl_shapes known, before, model;
	unsigned shortages;
	int rc;

	acl_verdict_shapes(&ret->verdict, &known);
	if (want == NULL) {
		tell_known(&known, ret);
		return 0;
	}
	before = known;
	/* Shapes that the first device of a run left untried stay so. */
	if (dc->is_next && ret->verdict_is_kept)
		notes->is_late = 1;
	if ((rc = acl_try_model(s, notes, c, want, event_now_ns() + MODEL_NS,
	    &known, &model)) < 0)
		return rc;
	judge_shapes(&model, c, ret);
	if (!has_new_shapes(&known, &before))
		return 0;
	shortages = acl_shortages();
	if ((rc = acl_graph_try_ways(s, notes, c)) < 0)
		return rc;
	ret->verdict_is_partial |= acl_shortages() > shortages;
	acl_verdict_put_shapes(&ret->verdict, &known, c);
	if (ret->verdict_is_kept)
		strlcpy(ret->verdict_why, "not the ways, only shapes of this "
		    "model", sizeof(ret->verdict_why));
	ret->verdict_is_kept = 0;
	return 0;
}

/* Find out how the processor multiplies.  Without a way the plan needs no room
 * in its memory. */
static int
choose(struct acl_session *s, const struct device_conf *dc,
    struct acl_notes *notes, struct device_probe *ret)
{
	struct acl_choice c = { .magic = ACL_CHOICE };
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 4 };
	char reason[128], groups_reason[ACL_REASON] = "";
	const struct acl_form *f = &c.form[ASCEND_HALF];
	struct err e = { 0 };
	int rc = 0;

	c.chip.has_memory = !s->machine.is_rc;
	if (acl_session_stream(s, &e) < 0 ||
	    acl_pool_choose(&s->src, &plan, reason, &e) < 0) {
		snprintf(c.reason, sizeof(c.reason), "%.*s",
		    (int)sizeof(c.reason) - 1,
		    acl_without_session(s->src.session, e.msg));
	} else {
		c.strategy = (uint8_t)plan.strategy;
		c.chip.granule_bytes = plan.granule_bytes;
		c.chip.has_slots = plan.strategy == ACL_POOL_SLOTS;
		rc = find_ways(s, dc->verdict, notes, &c, groups_reason, ret);
	}
	c.chip.fns |= usable_fns(&c);
	tell_products(&c, groups_reason, ret);
	if (f->way != ACL_WAY_NONE)
		acl_tell_operators(&c, ret);
	if (f->way != ACL_WAY_NONE && !s->machine.is_rc)
		tell_graphs(&c, ret);
	if (rc == 0 && f->way != ACL_WAY_NONE)
		rc = try_model(s, dc, notes, &c, ret);
	_Static_assert(sizeof(c) <= DEVICE_CHOICE_BYTES, "a device's choice");
	ret->choice.is_made = 1;
	ret->choice.layout = f->way == ACL_WAY_NONE ? LAYOUT_HOST :
	    LAYOUT_ASCEND + c.chip.groups;
	memcpy(ret->choice.of_device, &c, sizeof(c));
	ret->ascend = c.chip;
	return rc;
}

/* Add the library's memory: the growth of this process's from before to after bytes, or
 * up to now if a worker will start the graph engine. */
static void
add_library(struct acl_session *s, const struct acl_choice *c,
    struct acl_notes *notes, uint64_t before, uint64_t after,
    struct device_probe *ret)
{
	uint64_t step = STEP_BYTES;

	if (c->form[ASCEND_HALF].way == ACL_WAY_CLASSIC) {
		notes->trying = 1 + ACL_NOTE_ENGINE;
		acl_classic_start_engine(s);
		notes->trying = 0;
		(void)meminfo_read(SMAPS, "Rss", &after);
		step = ENGINE_STEP_BYTES;
	}
	if (before > 0 && after > 0)
		device_add_limit(ret, "library_bytes", 1, ALIGN_UP(after >
		    before ? after - before : 0, step) + STEP_BYTES,
		    step == STEP_BYTES ? "growth of a worker that opens it" :
		    "growth of a worker that compiles an operator");
}

/* Probe the device.  Runs in a process of its own. */
static int
probe_here(void *arg, struct acl_notes *notes, void *result,
    struct err *reterr)
{
	struct device_conf dc = *(const struct device_conf *)arg;
	struct device_probe *ret = result;
	/* A shape ended the process before this one: its ways. */
	const struct device_verdict earlier = ret->verdict;
	const int was_partial = ret->verdict_is_partial;
	uint64_t before = 0, after = 0;
	struct acl_choice c;
	struct acl_session s;
	struct err e = { 0 };
	int rc;

	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	if (earlier.key[0] != '\0')
		dc.verdict = &earlier;
	(void)meminfo_read(SMAPS, "Rss", &before);
	if (acl_session_open(dc.session, acl_number(&dc), &s, &e) < 0) {
		strlcpy(ret->reason, acl_without_session(dc.session, e.msg),
		    sizeof(ret->reason));
		add_checks(&s, &e, ret);
		acl_session_close(&s);
		return 0;
	}
	ret->found = 1;
	snprintf(ret->reason, sizeof(ret->reason), "%s, device %u of %u, %s; "
	    "%.160s", s.machine.soc, s.src.device, s.machine.ndevices,
	    s.machine.is_rc ? "RC mode" : "EP mode", s.src.lib->path);
	add_limits(&s, ret);
	add_checks(&s, &e, ret);
	(void)meminfo_read(SMAPS, "Rss", &after);
	rc = choose(&s, &dc, notes, ret);
	if (dc.verdict == &earlier) {
		ret->verdict_is_kept = 0;
		ret->verdict_is_partial |= was_partial;
	}
	memcpy(&c, ret->choice.of_device, sizeof(c));
	add_library(&s, &c, notes, before, after, ret);
	acl_session_close(&s);
	return rc;
}

int
acl_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	struct device_conf conf = *dc;
	struct err e = { 0 };
	int rc = acl_attempt(dc->session, probe_here, &conf, STALL_NS, MOST_NS,
	    ret, sizeof(*ret), &e);

	if (rc == -ECHILD) {
		memset(ret, 0, sizeof(*ret));
		strlcpy(ret->reason, acl_without_session(dc->session, e.msg),
		    sizeof(ret->reason));
		return 0;
	}
	if (rc < 0)
		*reterr = e;
	return rc;
}
