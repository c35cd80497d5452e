/* coordinator/engine/queries.c - questions to a short-lived worker. */
#include "queries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "impl.h"
#include "coordinator/session/device_cache.h"

/* The choices of the device that was probed last, which its verification needs. */
static struct {
	char kind[MAX_NAME];
	struct plan_limits limits;
} probed;

/* 0 = not an answer that anyone asks for. */
static size_t
answer_bytes(uint32_t type)
{
	switch (type) {
	case WIRE_PLACED:
		return sizeof(struct wire_placed);
	case WIRE_LIMIT:
		return sizeof(struct wire_limit);
	case WIRE_CHECK:
		return sizeof(struct wire_check);
	case WIRE_SUPPORT:
		return sizeof(struct wire_support);
	case WIRE_VERIFIED:
		return sizeof(struct wire_verified);
	default:
		return 0;
	}
}

#define END(text)	((text)[sizeof(text) - 1] = '\0')

void
query_end_texts(uint32_t type, void *answer)
{
	struct wire_placed *placed = answer;
	struct wire_limit *limit = answer;
	struct wire_check *check = answer;
	struct wire_support *support = answer;
	struct wire_verified *verified = answer;

	switch (type) {
	case WIRE_PLACED:
		END(placed->share);
		END(placed->op);
		END(placed->tensor);
		END(placed->reason);
		break;
	case WIRE_LIMIT:
		END(limit->name);
		END(limit->from);
		break;
	case WIRE_CHECK:
		END(check->what);
		END(check->text);
		break;
	case WIRE_SUPPORT:
		END(support->op);
		END(support->type);
		END(support->reason);
		break;
	case WIRE_VERIFIED:
		END(verified->op);
		END(verified->type);
		END(verified->reason);
		break;
	}
}

/* Pass the device's trials on as one more check. */
static void
pass_verdict(const struct session *s, const struct chan_msg *m, query_fn *fn,
    void *arg)
{
	const struct session_conf *sc = s->plan->conf;
	struct wire_check wc = { .ok = 1 };
	struct wire_verdict wv;

	if (m->nbytes != sizeof(wv))
		return;
	memcpy(&wv, m->buf, sizeof(wv));
	END(wv.why);
	_Static_assert(sizeof(wc.text) >= DEVICE_CACHE_TEXT, "its text");
	strlcpy(wc.what, "trials", sizeof(wc.what));
	device_cache_note(sc->device, &wv, wc.text);
	fn(arg, WIRE_CHECK, &wc);
}

static void
note_choice(const struct session *s, const struct chan_msg *m)
{
	struct wire_traits wt;

	if (m->nbytes != sizeof(wt))
		return;
	memcpy(&wt, m->buf, sizeof(wt));
	strlcpy(probed.kind, s->plan->conf->device, sizeof(probed.kind));
	probed.limits.choice = wt.choice;
}

/* Ask, with what is known already (n bytes), and pass on the answers until
 * WIRE_END. */
static int
ask(struct session *s, uint32_t question, const void *known, size_t n,
    query_fn *fn, void *arg, struct err *reterr)
{
	struct chan_msg *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return err_nomem(reterr, "a message of session %s",
		    s->plan->conf->name);
	rc = session_send(s, question, known, n, NULL, 0, reterr);
	while (rc == 0 && (rc = session_recv_answer(s, m, reterr)) == 0 &&
	    m->type != WIRE_END)
		if (m->type == WIRE_TRAITS) {
			note_choice(s, m);
		} else if (m->type == WIRE_VERDICT) {
			pass_verdict(s, m, fn, arg);
		} else if (m->nbytes > 0 &&
		    m->nbytes == answer_bytes(m->type)) {
			query_end_texts(m->type, m->buf);
			fn(arg, m->type, m->buf);
		}
	free(m);
	return rc;
}

int
query_placement(const struct engine *eng, unsigned i, query_fn *fn,
    void *arg, struct err *reterr)
{
	struct session s;
	int rc;

	if ((rc = session_probe(&eng->plan.session[i], eng->conf, NULL, -1, &s,
	    reterr)) < 0)
		return rc;
	if ((rc = session_send_confine(&s, 0, reterr)) == 0 &&
	    (rc = session_send_model(&s, &eng->plan, reterr)) == 0)
		rc = ask(&s, WIRE_EXPLAIN, NULL, 0, fn, arg, reterr);
	session_close(&s);
	return rc;
}

/* The config's first session of this kind, or one with its own defaults. */
static struct session_conf
session_like(const struct conf *c, const char *kind)
{
	struct session_conf sc = c->session[0];
	int i;

	sc.port[0] = '\0';
	sc.domain_bytes = 0;
	sc.iommu_domain = -1;
	for (i = 0; i < c->nsessions; i++)
		if (strcmp(c->session[i].device, kind) == 0)
			return c->session[i];
	return sc;
}

static int
ask_of_kind(const struct conf *c, const char *kind, uint32_t question,
    query_fn *fn, void *arg, struct err *reterr)
{
	struct session_conf sc = session_like(c, kind);
	struct plan_session ps = plan_empty_session(&sc, 1);
	struct wire_probe wp = { 0 };
	struct session s;
	int rc;

	/* The question is about the kind, not about where a session runs. */
	sc.node = -1;
	sc.priority = (struct priority){ PRIO_DEFAULT, 0 };
	strlcpy(sc.device, kind, sizeof(sc.device));
	strlcpy(sc.name, kind, sizeof(sc.name));
	if (question == WIRE_VERIFY && strcmp(probed.kind, kind) == 0)
		ps.limits = &probed.limits;
	if ((rc = session_probe(&ps, c, NULL, -1, &s, reterr)) < 0)
		return rc;
	/* A verification trusts nothing that was found out earlier. */
	if (question == WIRE_PROBE && !c->verify &&
	    device_cache_read(sc.device, &wp.verdict))
		wp.has_verdict = 1;
	rc = ask(&s, question, &wp, question == WIRE_PROBE ? sizeof(wp) : 0,
	    fn, arg, reterr);
	session_close(&s);
	return rc;
}

int
query_device(const struct conf *c, const char *kind, query_fn *fn, void *arg,
    struct err *reterr)
{
	return ask_of_kind(c, kind, WIRE_PROBE, fn, arg, reterr);
}

int
query_verify(const struct conf *c, const char *kind, query_fn *fn, void *arg,
    struct err *reterr)
{
	return ask_of_kind(c, kind, WIRE_VERIFY, fn, arg, reterr);
}
