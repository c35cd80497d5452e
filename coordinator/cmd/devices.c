/* coordinator/cmd/devices.c - each device kind: found or not, limits, support.
 * Asks a short-lived worker: the coordinator loads no device runtime. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "cmd.h"
#include "coordinator/print/output.h"

/* Kinds that the word list of the design knows; the worker says of each
 * whether this binary has it. */
static const char *const kinds[] = {
	"cpu", "hexagon", "ascend", "rknpu", "opencl", "null"
};

struct answers {
	json_t *device;		/* JSON, or NULL: text on stdout */
	char last_op[16];
};

static void
on_limit(struct answers *a, const struct wire_limit *wl)
{
	char buf[UNITS_BYTES_LEN];
	int is_bytes = strstr(wl->name, "bytes") != NULL;

	if (strcmp(wl->name, "found") == 0) {
		if (a->device == NULL) {
			printf("  %s: %s\n", wl->value ? "found" :
			    "not found", wl->from);
			return;
		}
		json_object_set_new(a->device, "found",
		    json_boolean(wl->value != 0));
		json_object_set_new(a->device, "reason",
		    json_string(wl->from));
		json_object_set_new(a->device, "limits", json_object());
		json_object_set_new(a->device, "supports", json_array());
		return;
	}
	if (a->device != NULL) {
		json_object_set_new(json_object_get(a->device, "limits"),
		    wl->name, json_pack("{s:o,s:s}", "value", wl->known ?
		    json_integer((json_int_t)wl->value) : json_null(),
		    "from", wl->from));
		return;
	}
	if (!wl->known)
		snprintf(buf, sizeof(buf), "unknown");
	else if (is_bytes)
		units_human_bytes(wl->value, buf);
	else
		snprintf(buf, sizeof(buf), "%" PRIu64, wl->value);
	printf("  %-22s %-12s (%s)\n", wl->name, buf, wl->from);
}

static void
on_check(struct answers *a, const struct wire_check *wc)
{
	json_t *list;

	if (a->device == NULL) {
		printf("  %-22s %s: %s\n", wc->what, wc->ok ? "ok" :
		    "not ok", wc->text);
		return;
	}
	if ((list = json_object_get(a->device, "checks")) == NULL) {
		list = json_array();
		json_object_set_new(a->device, "checks", list);
	}
	json_array_append_new(list, json_pack("{s:s,s:b,s:s}", "what",
	    wc->what, "ok", (int)wc->ok, "text", wc->text));
}

static void
on_support(struct answers *a, const struct wire_support *ws)
{
	if (a->device != NULL) {
		json_array_append_new(json_object_get(a->device, "supports"),
		    json_pack("{s:s,s:s,s:b,s:s}", "op", ws->op, "type",
		    ws->type, "yes", (int)ws->yes, "reason", ws->reason));
		return;
	}
	if (strcmp(a->last_op, ws->op) != 0)
		printf("%s  %-12s", a->last_op[0] != '\0' ? "\n" : "",
		    ws->op);
	strlcpy(a->last_op, ws->op, sizeof(a->last_op));
	printf(" %s%s%s", ws->type[0] != '\0' ? ws->type : "",
	    ws->type[0] != '\0' && ws->yes ? "" : " ", ws->yes ?
	    (ws->type[0] != '\0' ? "" : "yes") : "no: ");
	if (!ws->yes)
		fputs(ws->reason, stdout);
}

/* Answers until WIRE_END. */
static int
hear(struct session *s, struct chan_msg *m, struct answers *a,
    struct err *reterr)
{
	struct wire_support ws;
	struct wire_check wc;
	struct wire_limit wl;
	int rc;

	for (;;) {
		if ((rc = session_answer(s, m, reterr)) < 0)
			return rc;
		if (m->type == WIRE_END)
			return 0;
		if (m->type == WIRE_LIMIT && m->nbytes == sizeof(wl)) {
			memcpy(&wl, m->buf, sizeof(wl));
			on_limit(a, &wl);
		} else if (m->type == WIRE_CHECK && m->nbytes == sizeof(wc)) {
			memcpy(&wc, m->buf, sizeof(wc));
			on_check(a, &wc);
		} else if (m->type == WIRE_SUPPORT &&
		    m->nbytes == sizeof(ws)) {
			memcpy(&ws, m->buf, sizeof(ws));
			on_support(a, &ws);
		}
	}
}

/* One of this kind that the user named, or any. */
static struct session_conf
session_like(const struct conf *c, const char *kind)
{
	struct session_conf sc = c->session[0];
	int i;

	sc.port[0] = '\0';
	sc.domain_bytes = 0;
	for (i = 0; i < c->nsessions; i++)
		if (strcmp(c->session[i].device, kind) == 0)
			return c->session[i];
	return sc;
}

static int
ask(const struct conf *c, const char *kind, struct chan_msg *m,
    struct answers *a, struct err *reterr)
{
	struct session_conf sc = session_like(c, kind);
	struct plan_session ps = plan_nothing(&sc, 1);
	struct session s;
	int rc;

	/* The kind is asked about, not where a session would run. */
	sc.node = -1;
	sc.priority = (struct priority){ PRIO_DEFAULT, 0 };
	strlcpy(sc.device, kind, sizeof(sc.device));
	strlcpy(sc.name, kind, sizeof(sc.name));
	if ((rc = session_probe(&ps, c, NULL, -1, &s, reterr)) < 0)
		return rc;
	if ((rc = session_send(&s, WIRE_PROBE, NULL, 0, NULL, 0,
	    reterr)) == 0)
		rc = hear(&s, m, a, reterr);
	session_close(&s);
	return rc;
}

/* A kind that this build lacks is an answer, not a failure. */
static void
not_built(struct answers *a)
{
	static const char reason[] = "this build has no driver for it (looked "
	    "for one among those compiled in)";

	if (a->device == NULL) {
		printf("  not found: %s\n", reason);
		return;
	}
	json_object_set_new(a->device, "found", json_false());
	json_object_set_new(a->device, "reason", json_string(reason));
	json_object_set_new(a->device, "limits", json_object());
}

int
cmd_devices(const struct conf *c, struct err *reterr)
{
	struct chan_msg *m = malloc(sizeof(*m));
	json_t *list = json_array();
	struct answers a;
	unsigned i;
	int rc = 0;

	if (m == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	for (i = 0; i < NITEMS(kinds) && rc == 0; i++) {
		memset(&a, 0, sizeof(a));
		if (c->json)
			a.device = json_pack("{s:s}", "kind", kinds[i]);
		else
			printf("%s\n", kinds[i]);
		rc = ask(c, kinds[i], m, &a, reterr);
		if (rc == -ENODEV) {
			not_built(&a);
			rc = 0;
		} else if (!c->json) {
			putchar('\n');
		}
		if (c->json)
			json_array_append_new(list, a.device);
	}
	free(m);
	if (rc == 0 && c->json)
		return output_json(json_pack("{s:o}", "devices", list), 1,
		    reterr);
	json_decref(list);
	return rc;
}
