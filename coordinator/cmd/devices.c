/* coordinator/cmd/devices.c - each device kind: found or not, limits, support.
 * Asks a short-lived worker, because the coordinator loads no device runtime. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "config/cores.h"
#include "config/devices.h"
#include "config/plain.h"
#include "config/room.h"
#include "config/units.h"
#include "shm/wire.h"
#include "cmd.h"
#include "coordinator/engine/queries.h"
#include "coordinator/print/output.h"

struct report {
	json_t *device;		/* JSON, or NULL: text on stdout */
	char last_op[16];
};

static void
on_limit(struct report *a, const struct wire_limit *wl)
{
	char buf[UNITS_BYTES_LEN];
	int is_bytes = strstr(wl->name, "bytes") != NULL;

	if (strcmp(wl->name, "found") == 0) {
		if (a->device == NULL) {
			printf("  %s: %s\n", wl->value ? "found" :
			    "not found", PLAIN(wl->from));
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
	printf("  %-22s %-12s (%s)\n", wl->name, buf, PLAIN(wl->from));
}

static void
on_check(struct report *a, const struct wire_check *wc)
{
	json_t *list;

	if (a->device == NULL) {
		printf("  %-22s %s: %s\n", wc->what, wc->ok ? "ok" :
		    "not ok", PLAIN(wc->text));
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
on_support(struct report *a, const struct wire_support *ws)
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
		fputs(PLAIN(ws->reason), stdout);
}

static void
on_answer(void *arg, uint32_t type, const void *answer)
{
	if (type == WIRE_LIMIT)
		on_limit(arg, answer);
	else if (type == WIRE_CHECK)
		on_check(arg, answer);
	else if (type == WIRE_SUPPORT)
		on_support(arg, answer);
}

/* A kind that this build lacks is a result, not a failure. */
static void
report_not_built(struct report *a)
{
	static const char reason[] = "not compiled into this build";

	if (a->device == NULL) {
		printf("  not found: %s\n", reason);
		return;
	}
	json_object_set_new(a->device, "found", json_false());
	json_object_set_new(a->device, "reason", json_string(reason));
	json_object_set_new(a->device, "limits", json_object());
}

/* What this process may use of the machine: cores, CPU time and memory. */
static json_t *
report_machine(const struct conf *c, struct err *reterr)
{
	const struct quota *q = &c->quota;
	char list[256], size[UNITS_BYTES_LEN];
	struct cpuset cpus;
	struct room room;
	unsigned n;

	if (cores_allowed(&cpus, reterr) < 0)
		return NULL;
	n = cpuset_count(&cpus);
	units_format_cpus(&cpus, list, sizeof(list));
	room_all("", &room);
	if (c->json)
		return json_pack("{s:s,s:o,s:o,s:i,s:o,s:s}", "cores", list,
		    "cpu_quota", q->cores > 0 ? json_real(q->cores) :
		    json_null(), "cpu_quota_by", q->cores > 0 ?
		    json_string(q->by) : json_null(), "default_threads",
		    (int)quota_threads(q, n), "free_bytes",
		    room.free_bytes != UINT64_MAX ?
		    json_integer((json_int_t)room.free_bytes) : json_null(),
		    "free_by", room.by);
	printf("this machine\n  %-22s %-12s (%u by affinity and cpuset)\n",
	    "cores", list, n);
	if (q->cores > 0)
		printf("  %-22s %-12.4g (%s)\n", "CPU quota, cores", q->cores,
		    q->by);
	printf("  %-22s %-12u (of a session%s)\n", "default threads",
	    quota_threads(q, n), q->cores > 0 && q->cores < n ?
	    ", by the quota" : "");
	if (room.free_bytes != UINT64_MAX)
		printf("  %-22s %-12s (%s)\n", "free memory",
		    units_human_bytes(room.free_bytes, size), room.by);
	return json_null();
}

int
cmd_devices(const struct conf *c, struct err *reterr)
{
	json_t *list = json_array(), *machine;
	struct report a;
	const char *kind;
	unsigned i;
	int rc = 0;

	if ((machine = report_machine(c, reterr)) == NULL)
		return -EIO;
	for (i = 0; (kind = device_kind(i)) != NULL && rc == 0; i++) {
		memset(&a, 0, sizeof(a));
		if (c->json)
			a.device = json_pack("{s:s}", "kind", kind);
		else
			printf("%s\n", kind);
		rc = query_device(c, kind, on_answer, &a, reterr);
		if (rc == -ENODEV) {
			report_not_built(&a);
			rc = 0;
		} else if (!c->json) {
			putchar('\n');
		}
		if (c->json)
			json_array_append_new(list, a.device);
	}
	if (rc == 0 && c->json)
		return output_json(json_pack("{s:o,s:o}", "machine", machine,
		    "devices", list), 1, reterr);
	json_decref(machine);
	json_decref(list);
	return rc;
}
