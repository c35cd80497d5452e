/* coordinator/cmd/devices.c - each device kind: found or not, limits, support.
 * Asks a short-lived worker, because the coordinator loads no device runtime. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "config/cores.h"
#include "config/devices.h"
#include "config/plain.h"
#include "config/room.h"
#include "config/units.h"
#include "config/words.h"
#include "shm/wire.h"
#include "cmd.h"
#include "devices_verify.h"
#include "coordinator/engine/queries.h"
#include "coordinator/print/output.h"
#include "coordinator/print/wrap.h"

/* There are fewer weight types than MAX_REASONS. */
enum { MAX_REASONS = 32, TYPES_LEN = 256, LIMIT_INDENT = 25, OP_INDENT = 15 };

/* The weight types for which an operation is not supported, and why. */
struct refusal {
	char before[128], after[128];	/* the reason, around the type's name */
	char types[TYPES_LEN];	/* "F16, Q4_1"; "" = the operation has none */
};

struct report {
	json_t *device;		/* JSON, or NULL: text on stdout */
	int found;
	/* The operation in progress; "" = none. */
	char op[16];
	char yes[TYPES_LEN];
	struct refusal no[MAX_REASONS];
	unsigned nno;
};

/* "  NAME   text", with text wrapped to the right of the names. */
static void
print_item(const char *name, size_t indent, const char *text)
{
	char head[48];
	struct wrap w;

	snprintf(head, sizeof(head), "  %-*s", (int)indent - 3, name);
	wrap_begin(&w, stdout, indent, PLAIN(head));
	wrap_words(&w, PLAIN(text));
	wrap_end(&w);
}

static void
print_found(int found, const char *why)
{
	struct wrap w;

	wrap_begin(&w, stdout, 4, found ? "  found:" : "  not found:");
	wrap_words(&w, PLAIN(why));
	wrap_end(&w);
}

static void
on_limit(struct report *a, const struct wire_limit *wl)
{
	char buf[UNITS_BYTES_LEN], text[sizeof(wl->from) + 64];
	int is_bytes = strstr(wl->name, "bytes") != NULL;

	if (strcmp(wl->name, "found") == 0) {
		a->found = wl->value != 0;
		if (a->device == NULL) {
			print_found(wl->value != 0, wl->from);
			return;
		}
		json_object_set_new(a->device, "found",
		    json_boolean(wl->value != 0));
		json_object_set_new(a->device, "reason",
		    output_json_string(wl->from));
		json_object_set_new(a->device, "limits", json_object());
		json_object_set_new(a->device, "supports", json_array());
		return;
	}
	if (a->device != NULL) {
		json_object_set_new(json_object_get(a->device, "limits"),
		    wl->name, json_pack("{s:o,s:o}", "value", wl->known ?
		    output_json_u64(wl->value) : json_null(), "from",
		    output_json_string(wl->from)));
		return;
	}
	if (!wl->known)
		snprintf(buf, sizeof(buf), "unknown");
	else if (is_bytes)
		units_human_bytes(wl->value, buf);
	else
		snprintf(buf, sizeof(buf), "%" PRIu64, wl->value);
	snprintf(text, sizeof(text), "%s (%s)", buf, wl->from);
	print_item(wl->name, LIMIT_INDENT, text);
}

static void
on_check(struct report *a, const struct wire_check *wc)
{
	char text[sizeof(wc->text) + 16];
	json_t *list;

	if (a->device == NULL) {
		snprintf(text, sizeof(text), "%s: %s", wc->ok ? "ok" :
		    "not ok", wc->text);
		print_item(wc->what, LIMIT_INDENT, text);
		return;
	}
	if ((list = json_object_get(a->device, "checks")) == NULL) {
		list = json_array();
		json_object_set_new(a->device, "checks", list);
	}
	json_array_append_new(list, json_pack("{s:o,s:b,s:o}", "what",
	    output_json_string(wc->what), "ok", (int)wc->ok, "text",
	    output_json_string(wc->text)));
}

/* Print the operation in progress. */
static void
print_support(struct report *a)
{
	const struct refusal *r;
	char text[4096];

	if (a->op[0] == '\0')
		return;
	strlcpy(text, a->yes, sizeof(text));
	for (r = a->no; r < a->no + a->nno; r++)
		words_add(text, sizeof(text), "; ", "no: %s%s%s", r->before,
		    r->types, r->after);
	print_item(a->op, OP_INDENT, text);
	a->op[0] = a->yes[0] = '\0';
	a->nno = 0;
}

/* Cut the reason at the type's name: those that differ in nothing else are one.
 * A reason that does not name its type ends with the types that it is for. */
static void
add_refusal(struct report *a, const struct wire_support *ws)
{
	const char *at = ws->type[0] != '\0' ? strstr(ws->reason, ws->type) :
	    NULL;
	struct refusal this = { 0 }, *r;

	snprintf(this.before, sizeof(this.before), "%.*s", (int)(at != NULL ?
	    (size_t)(at - ws->reason) : strlen(ws->reason)), ws->reason);
	if (at != NULL)
		strlcpy(this.after, at + strlen(ws->type), sizeof(this.after));
	else if (ws->type[0] != '\0')
		strlcat(this.before, ": ", sizeof(this.before));
	for (r = a->no; r < a->no + a->nno; r++)
		if (strcmp(r->before, this.before) == 0 &&
		    strcmp(r->after, this.after) == 0)
			break;
	if (r == a->no + MAX_REASONS)
		return;
	if (r == a->no + a->nno) {
		*r = this;
		a->nno++;
	}
	words_add(r->types, sizeof(r->types), ", ", "%s", ws->type);
}

static void
on_support(struct report *a, const struct wire_support *ws)
{
	if (a->device != NULL) {
		json_array_append_new(json_object_get(a->device, "supports"),
		    json_pack("{s:o,s:o,s:b,s:o}", "op",
		    output_json_string(ws->op), "type",
		    output_json_string(ws->type), "yes", (int)ws->yes,
		    "reason", output_json_string(ws->reason)));
		return;
	}
	if (strcmp(a->op, ws->op) != 0)
		print_support(a);
	strlcpy(a->op, ws->op, sizeof(a->op));
	if (!ws->yes)
		add_refusal(a, ws);
	else
		words_add(a->yes, sizeof(a->yes), " ", "%s",
		    ws->type[0] != '\0' ? ws->type : "yes");
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
		print_found(0, reason);
		return;
	}
	json_object_set_new(a->device, "found", json_false());
	json_object_set_new(a->device, "reason", json_string(reason));
	json_object_set_new(a->device, "limits", json_object());
}

static void PRINTF_LIKE(2, 3)
print_value(const char *name, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_item(name, LIMIT_INDENT, text);
}

/* Print the cores, CPU time and memory that this process may use.  *ret:
 * with --json; names of groups need not be UTF-8. */
static int
report_machine(const struct conf *c, json_t **ret, struct err *reterr)
{
	const struct quota *q = &c->quota;
	char list[256], size[UNITS_BYTES_LEN];
	struct cpuset cpus;
	struct room room;
	unsigned n;
	int rc;

	if ((rc = cores_allowed(&cpus, reterr)) < 0)
		return rc;
	n = cpuset_count(&cpus);
	units_format_cpus(&cpus, list, sizeof(list));
	room_all("", &room);
	if (c->json) {
		*ret = json_pack("{s:s,s:o,s:o,s:i,s:o,s:o}", "cores", list,
		    "cpu_quota", q->cores > 0 ? json_real(q->cores) :
		    json_null(), "cpu_quota_by", q->cores > 0 ?
		    output_json_string(q->by) : json_null(), "default_threads",
		    (int)quota_threads(q, n), "free_bytes",
		    room.free_bytes != UINT64_MAX ?
		    json_integer((json_int_t)room.free_bytes) : json_null(),
		    "free_by", output_json_string(room.by));
		return 0;
	}
	puts("this machine");
	print_value("cores", "%s (%u by affinity and cpuset)", list, n);
	if (q->cores > 0)
		print_value("CPU quota, cores", "%.4g (%s)", q->cores, q->by);
	print_value("default threads", "%u (of a session%s)",
	    quota_threads(q, n), q->cores > 0 && q->cores < n ?
	    ", by the quota" : "");
	if (room.free_bytes != UINT64_MAX)
		print_value("free memory", "%s (%s)",
		    units_human_bytes(room.free_bytes, size), room.by);
	return 0;
}

/* Report one kind; its JSON is appended to list. */
static int
report_kind(const struct conf *c, const char *kind, struct verify *v,
    json_t *list, struct err *reterr)
{
	struct report a = { 0 };
	json_t *verified = NULL;
	int rc;

	if (c->json)
		a.device = json_pack("{s:s}", "kind", kind);
	else
		printf("%s\n", kind);
	rc = query_device(c, kind, on_answer, &a, reterr);
	if (rc == -ENODEV) {
		report_not_built(&a);
		rc = 0;
	} else if (!c->json) {
		print_support(&a);
	}
	if (rc == 0 && c->verify && a.found)
		rc = verify_device(v, c, kind, &verified, reterr);
	if (!c->json)
		return rc;
	if (verified != NULL)
		json_object_set_new(a.device, "verified", verified);
	json_array_append_new(list, a.device);
	return rc;
}

int
cmd_devices(const struct conf *c, struct err *reterr)
{
	json_t *list = json_array(), *machine = NULL;
	struct verify v = { 0 };
	const char *kind;
	unsigned i;
	int rc;

	rc = report_machine(c, &machine, reterr);
	for (i = 0; (kind = device_kind(i)) != NULL && rc == 0; i++)
		rc = report_kind(c, kind, &v, list, reterr);
	if (rc == 0 && c->json)
		rc = output_json(json_pack("{s:o,s:o}", "machine", machine,
		    "devices", list), 1, reterr);
	else {
		json_decref(machine);
		json_decref(list);
	}
	return rc == 0 && c->verify ? verify_end(&v, c, reterr) : rc;
}
