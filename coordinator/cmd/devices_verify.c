/* coordinator/cmd/devices_verify.c - one line for each operation and type. */
#include "devices_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/plain.h"
#include "config/words.h"
#include "shm/wire.h"
#include "coordinator/engine/queries.h"
#include "coordinator/print/output.h"
#include "coordinator/print/wrap.h"

/* Columns of the operation and its type. */
enum { INDENT = 25 };

static const char *const verdicts[SELFTEST_NVERDICTS] = {
	[SELFTEST_UNCLAIMED] = "unclaimed",
	[SELFTEST_OK] = "ok",
	[SELFTEST_WRONG] = "wrong",
	[SELFTEST_MISSED] = "untested",
};

static void
print_line(const char *op, const char *type, const char *text)
{
	char name[40], head[48];
	struct wrap w;

	snprintf(name, sizeof(name), "%s%s%s", op, *type != '\0' ? " " : "",
	    type);
	snprintf(head, sizeof(head), "  %-*s", INDENT - 3, name);
	wrap_begin(&w, stdout, INDENT, PLAIN(head));
	wrap_words(&w, PLAIN(text));
	wrap_end(&w);
}

static void
print_verified(const struct wire_verified *wv)
{
	char text[sizeof(wv->reason) + 160];

	switch (wv->verdict) {
	case SELFTEST_OK:
		snprintf(text, sizeof(text), "ok: error %.2g, limit %.2g, %"
		    PRIu64 " numbers", wv->error, wv->limit, wv->n);
		break;
	case SELFTEST_WRONG:
		snprintf(text, sizeof(text), "WRONG: %g instead of %g, error "
		    "%.2g, limit %.2g, %" PRIu64 " numbers", (double)wv->got,
		    (double)wv->want, wv->error, wv->limit, wv->n);
		break;
	case SELFTEST_MISSED:
		snprintf(text, sizeof(text), "not tested");
		break;
	default:
		snprintf(text, sizeof(text), "not claimed: %s", wv->reason);
	}
	print_line(wv->op, wv->type, text);
}

/* JSON has no infinity. */
static json_t *
number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static void
list_verified(json_t *list, const struct wire_verified *wv)
{
	const int compared = wv->verdict == SELFTEST_OK ||
	    wv->verdict == SELFTEST_WRONG;

	json_array_append_new(list, json_pack(
	    "{s:o,s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "op",
	    output_json_string(wv->op), "type", output_json_string(wv->type),
	    "verdict", verdicts[wv->verdict], "error", compared ?
	    number(wv->error) : json_null(), "limit", number(wv->limit),
	    "got", compared ? number((double)wv->got) : json_null(), "want",
	    compared ? number((double)wv->want) : json_null(), "numbers",
	    output_json_u64(wv->n), "reason",
	    output_json_string(wv->reason)));
}

/* A worker that invents a verdict must not pass for one that is right. */
static void
on_verified(void *arg, uint32_t type, const void *answer)
{
	struct wire_verified wv;
	struct verify *v = arg;

	if (type != WIRE_VERIFIED)
		return;
	memcpy(&wv, answer, sizeof(wv));
	if (wv.op[0] == '\0')		/* it goes on */
		return;
	if (wv.verdict >= SELFTEST_NVERDICTS)
		wv.verdict = SELFTEST_WRONG;
	v->nright += wv.verdict == SELFTEST_OK;
	v->nwrong += wv.verdict == SELFTEST_WRONG;
	v->nuntested += wv.verdict == SELFTEST_MISSED;
	v->nunclaimed += wv.verdict == SELFTEST_UNCLAIMED;
	if (v->list != NULL)
		list_verified(v->list, &wv);
	else
		print_verified(&wv);
}

/* The device or its worker failed: the lines before it, if any, hold. */
static void
report_failure(struct verify *v, const char *kind, const struct err *e)
{
	char text[sizeof(e->msg) + 16];

	words_add(v->failed, sizeof(v->failed), ", ", "%s", kind);
	if (v->list != NULL) {
		json_array_append_new(v->list, json_pack("{s:s,s:s,s:s,s:o}",
		    "op", "all", "type", "", "verdict", "failed", "reason",
		    output_json_string(e->msg)));
		return;
	}
	snprintf(text, sizeof(text), "FAILED: %s", e->msg);
	print_line("all", "", text);
}

int
verify_device(struct verify *v, const struct conf *c, const char *kind,
    json_t **ret, struct err *reterr)
{
	const unsigned nwrong = v->nwrong;
	int rc;

	v->list = c->json ? json_array() : NULL;
	if (v->list == NULL)
		puts("  verified, errors in units of a row's root mean "
		    "square:");
	rc = query_verify(c, kind, on_verified, v, reterr);
	if (v->nwrong > nwrong)
		words_add(v->wrong, sizeof(v->wrong), ", ", "%s", kind);
	if (rc < 0 && rc != -EINTR) {
		report_failure(v, kind, reterr);
		rc = 0;
	}
	*ret = v->list;
	return rc;
}

int
verify_end(const struct verify *v, const struct conf *c, struct err *reterr)
{
	if (!c->json)
		printf("verified: %u ok, %u wrong, %u not tested, %u not "
		    "claimed\n", v->nright, v->nwrong, v->nuntested,
		    v->nunclaimed);
	if (v->nwrong == 0 && v->failed[0] == '\0')
		return 0;
	if (v->nwrong == 0)
		return err_set(reterr, ERR_RUN, -EREMOTEIO, "the test of "
		    "device %s failed, which says nothing about its results: "
		    "see the line \"all\"", v->failed);
	return err_set(reterr, ERR_RUN, -EREMOTEIO, "%u of %u results are "
	    "wrong, on device %s: leave it out of every -s, and report the "
	    "output of straddle devices --verify --json", v->nwrong,
	    v->nwrong + v->nright, v->wrong);
}
