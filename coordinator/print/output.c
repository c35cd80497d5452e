/* coordinator/print/output.c - what people and machines read. */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "confined.h"
#include "domains.h"
#include "config/plain.h"
#include "config/units.h"
#include "config/utf8.h"

/* Signals are blocked and read from a descriptor (engine/signals.c), so they do not
 * interrupt a write: it must wait for both. */
static int watched_fd = -1;

/* A slow reader may take its time.  After a signal it still gets the text so far,
 * but must read it within HURRY_MS. */
enum { FOR_EVER = -1, HURRY_MS = 5000 };
static int timeout_ms = FOR_EVER;

void
output_watch(int signal_fd)
{
	watched_fd = signal_fd;
}

void
output_hurry(void)
{
	timeout_ms = HURRY_MS;
}

/* 0 when stdout accepts bytes, -EINTR when a signal is pending. */
static int
wait_writable(void)
{
	struct pollfd p[2] = {
		{ .fd = STDOUT_FILENO, .events = POLLOUT },
		{ .fd = watched_fd, .events = POLLIN },
	};
	int n;

	while ((n = poll(p, 2, timeout_ms)) < 0)
		if (errno != EINTR)
			return -errno;
	if (n == 0) {
		timeout_ms = 0;
		return -ETIMEDOUT;
	}
	return p[0].revents == 0 && p[1].revents != 0 ? -EINTR : 0;
}

static int
write_all(const char *text, size_t nbytes)
{
	ssize_t n;
	int rc;

	while (nbytes > 0) {
		if ((rc = wait_writable()) < 0)
			return rc;
		/* A writable pipe takes this much without blocking. */
		n = write(STDOUT_FILENO, text, MIN(nbytes, (size_t)PIPE_BUF));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return -errno;
		text += n;
		nbytes -= (size_t)n;
	}
	return 0;
}

/* Write text as a terminal may have it, with escapes. */
static int
write_plain(const char *text, size_t nbytes)
{
	enum { PART = 256 };
	char buf[PLAIN_GROWTH * PART + 1];
	size_t n, held;
	int rc = 0;

	while (nbytes > 0 && rc == 0) {
		n = MIN(nbytes, PART);
		held = n < nbytes ? utf8_unfinished((const uint8_t *)text, n) : 0;
		n -= held;
		rc = write_all(buf, plain_copy(buf, sizeof(buf), text, n,
		    PLAIN_LINES));
		text += n;
		nbytes -= n;
	}
	return rc;
}

int
output_text(const char *text, size_t nbytes)
{
	static int is_terminal = -1;

	if (is_terminal < 0)
		is_terminal = isatty(STDOUT_FILENO);
	return is_terminal ? write_plain(text, nbytes) :
	    write_all(text, nbytes);
}

/* "-" for a speed that was not measured. */
static const char *
format_speed(double tps, char *buf, size_t len)
{
	snprintf(buf, len, tps > 0 ? "%.1f" : "-", tps);
	return buf;
}

void
output_speed(FILE *fp, const struct speeds *sp)
{
	char speed[32], read[UNITS_COUNT_LEN], all[UNITS_COUNT_LEN];
	char size[UNITS_BYTES_LEN];

	fprintf(fp, "memory reserved: %s in %.3f s\n", units_human_bytes(
	    sp->reserve_bytes, size), sp->reserve_s);
	fprintf(fp, "load %.3f s, %.2f GB/s | prompt ", sp->load_s,
	    sp->load_gbs);
	if (sp->prompt_read < sp->prompt_tok)
		fprintf(fp, "%s of ", units_count(sp->prompt_read, read));
	fprintf(fp, "%s token%s, %s t/s | ", units_count(sp->prompt_tok, all),
	    sp->prompt_tok == 1 ? "" : "s",
	    format_speed(sp->prompt_tps, speed, sizeof(speed)));
	fprintf(fp, "generated %u token%s, %s t/s | ", sp->gen_tok,
	    sp->gen_tok == 1 ? "" : "s",
	    format_speed(sp->gen_tps, speed, sizeof(speed)));
	if (sp->ttft_s > 0)
		fprintf(fp, "first token after %.3f s\n", sp->ttft_s);
	else
		fputs("no first token\n", fp);
	if (sp->seqs > 0)
		fprintf(fp, "sequences at once: %u | rows per batch: %.1f | "
		    "all in %.3f s\n", sp->seqs, sp->batch_rows,
		    sp->all_s);
	if (sp->losses > 0)
		fprintf(fp, "lost workers: %u | recovered in %.3f s "
		    "(included in the speeds)\n", sp->losses, sp->lost_s);
	if (sp->have_hash)
		fprintf(fp, "hash of the last logits: %016" PRIx64 "\n",
		    sp->logits_hash);
}

/* --- JSON --- */

/* Each Jansson call reports its own failure, and with fifty keys to set none is
 * checked.  A failed allocation is remembered here instead, and output_json()
 * reports it once. */
static int json_failed;

static void *
json_alloc(size_t nbytes)
{
	void *p = malloc(nbytes);

	if (p == NULL)
		json_failed = 1;
	return p;
}

void
output_init(void)
{
	json_set_alloc_funcs(json_alloc, free);
}

int
output_json_lost(void)
{
	return json_failed;
}

/* Set key to [first, last], or null. */
static void
set_layers(json_t *o, const char *key, struct layer_range l)
{
	json_object_set_new(o, key, l.n == 0 ? json_null() : json_pack(
	    "[i,i]", (int)l.first, (int)(l.first + l.n - 1)));
}

/* Null where the number is not known. */
static json_t *
bytes_json(int known, uint64_t nbytes)
{
	return known ? json_integer((json_int_t)nbytes) : json_null();
}

static json_t *
session_json(const struct plan_session *ps, const struct session *s)
{
	json_t *o = json_object();
	unsigned t;

	json_object_set_new(o, "name", json_string(ps->conf->name));
	json_object_set_new(o, "device", json_string(ps->conf->device));
	json_object_set_new(o, "embedding", json_boolean(ps->embedding));
	set_layers(o, "layers", sublayers_to_layers(ps->first_sublayer,
	    ps->nsublayers));
	set_layers(o, "attention", sublayers_attn(ps->first_sublayer, ps->nsublayers));
	set_layers(o, "ffn", sublayers_ffn(ps->first_sublayer, ps->nsublayers));
	json_object_set_new(o, "head", json_boolean(ps->head));
	json_object_set_new(o, "cap", json_integer((json_int_t)ps->cap_bytes));
	for (t = 0; t < MEM_NTAGS; t++)
		json_object_set_new(o, mem_tag_name(t),
		    json_integer((json_int_t)(s != NULL ?
		    s->stats.tag_bytes[t] : ps->bytes[t])));
	json_object_set_new(o, "planned",
	    json_integer((json_int_t)ps->total_bytes));
	json_object_set_new(o, "threads", json_integer(ps->threads));
	json_object_set_new(o, "process", ps->worker.n < 2 ? json_null() :
	    json_string(ps->conf->process));
	json_object_set_new(o, "enforced_by", json_string(s != NULL ?
	    enforce_name(s->proc->enforce) : enforce_best_name()));
	if (s == NULL)
		return o;
	/* The process's numbers stand at the first session that it serves. */
	json_object_set_new(o, "peak", bytes_json(session_is_first(s),
	    s->peak.nbytes));
	json_object_set_new(o, "unaccounted", bytes_json(session_is_first(s),
	    (uint64_t)session_worker_unaccounted(s)));
	json_object_set_new(o, "peak_from", json_string(s->peak.from));
	json_object_set_new(o, "peak_has_shared",
	    json_boolean(s->peak.shared));
	json_object_set_new(o, "huge", bytes_json(s->stats.huge_known &&
	    session_is_first(s), s->stats.huge_bytes));
	json_object_set_new(o, "huge_asked",
	    json_integer((json_int_t)s->stats.huge_asked_bytes));
	json_object_set_new(o, "limit",
	    s->proc->enforce->limit_bytes > INT64_MAX ? json_null() :
	    json_integer((json_int_t)s->proc->enforce->limit_bytes));
	json_object_set_new(o, "no_group_because", s->proc->enforce->why[0] == '\0' ?
	    json_null() : output_json_text(s->proc->enforce->why,
	    strlen(s->proc->enforce->why)));
	json_object_set_new(o, "batches",
	    json_integer((json_int_t)s->stats.batches));
	json_object_set_new(o, "device_ops",
	    json_integer(s->ready.device_ops));
	json_object_set_new(o, "cpu_ops", json_integer(s->ready.cpu_ops));
	json_object_set_new(o, "device_messages",
	    json_integer((json_int_t)s->stats.device_calls));
	json_object_set_new(o, "device_s", json_real(
	    (double)s->stats.device_ns / 1e9));
	json_object_set_new(o, "device_bytes",
	    json_integer((json_int_t)s->stats.device_bytes));
	json_object_set_new(o, "device_slack",
	    json_integer((json_int_t)s->stats.slack_bytes));
	json_object_set_new(o, "pinned",
	    json_integer((json_int_t)s->stats.pinned_bytes));
	json_object_set_new(o, "host_s", json_real(
	    (double)(s->stats.busy_ns - s->stats.device_ns) / 1e9));
	domains_json(o, s);
	json_object_set_new(o, "confined", confined_json(s));
	return o;
}

/* The columns of a session; null where one does not apply. */
static json_t *
process_json(const struct process *q)
{
	const int is_measured = q->peak.from != NULL;
	json_t *o = json_object();
	unsigned t;

	json_object_set_new(o, "name", json_string(q->role));
	json_object_set_new(o, "device", json_null());
	json_object_set_new(o, "pid", bytes_json(q->pid > 0,
	    (uint64_t)q->pid));
	json_object_set_new(o, "cap", bytes_json(q->cap_bytes > 0,
	    q->cap_bytes));
	for (t = 0; t < MEM_NTAGS; t++)
		json_object_set_new(o, mem_tag_name(t), bytes_json(
		    t == MEM_RUNTIME && q->planned_bytes > 0,
		    q->planned_bytes));
	json_object_set_new(o, "planned", bytes_json(q->planned_bytes > 0,
	    q->planned_bytes));
	json_object_set_new(o, "enforced_by", json_string(q->enforced_by));
	json_object_set_new(o, "limit", bytes_json(q->limit_bytes <=
	    INT64_MAX, q->limit_bytes));
	json_object_set_new(o, "no_group_because", q->why[0] == '\0' ?
	    json_null() : output_json_string(q->why));
	json_object_set_new(o, "peak", bytes_json(is_measured,
	    q->peak.nbytes));
	json_object_set_new(o, "unaccounted", json_null());
	json_object_set_new(o, "peak_from", is_measured ?
	    json_string(q->peak.from) : json_null());
	json_object_set_new(o, "peak_has_shared", is_measured ?
	    json_boolean(q->peak.shared) : json_null());
	return o;
}

static json_t *
processes_json(const struct process_list *pl)
{
	json_t *a = json_array();
	unsigned i;

	for (i = 0; i < pl->n; i++)
		json_array_append_new(a, process_json(&pl->row[i]));
	return a;
}

json_t *
output_sessions(const struct plan *p, const struct sessions *ss,
    const struct process_list *pl)
{
	json_t *a = json_array();
	unsigned i;

	for (i = 0; i < p->nsessions; i++)
		json_array_append_new(a, session_json(&p->session[i],
		    ss != NULL ? &ss->s[i] : NULL));
	return json_pack("{s:o,s:o}", "sessions", a, "processes",
	    processes_json(pl));
}

static json_t *
speed_json(double tps)
{
	return tps > 0 ? json_real(tps) : json_null();
}

void
output_add_speeds(json_t *o, const struct speeds *sp)
{
	char hash[24];

	if (sp->have_hash) {
		snprintf(hash, sizeof(hash), "%016" PRIx64, sp->logits_hash);
		json_object_set_new(o, "logits_hash", json_string(hash));
	}
	json_object_set_new(o, "reserve_s", json_real(sp->reserve_s));
	json_object_set_new(o, "reserve_bytes",
	    output_json_u64(sp->reserve_bytes));
	json_object_set_new(o, "load_s", json_real(sp->load_s));
	json_object_set_new(o, "load_gbs", json_real(sp->load_gbs));
	json_object_set_new(o, "prompt_tokens", json_integer(sp->prompt_tok));
	json_object_set_new(o, "prompt_tokens_read",
	    json_integer(sp->prompt_read));
	json_object_set_new(o, "gen_tokens", json_integer(sp->gen_tok));
	json_object_set_new(o, "prompt_tps", speed_json(sp->prompt_tps));
	json_object_set_new(o, "gen_tps", speed_json(sp->gen_tps));
	json_object_set_new(o, "ttft_s", speed_json(sp->ttft_s));
	json_object_set_new(o, "losses", json_integer(sp->losses));
	json_object_set_new(o, "lost_s", json_real(sp->lost_s));
}

json_t *
output_json_text(const char *text, size_t nbytes)
{
	static const char bad[] = UTF8_REPLACEMENT;
	json_t *s;
	char *clean;
	size_t i = 0, n = 0;
	unsigned len;

	if ((clean = json_alloc(nbytes * 3 + 1)) == NULL)
		return NULL;
	while (i < nbytes) {
		len = utf8_len((const uint8_t *)text + i, nbytes - i);
		memcpy(clean + n, len > 0 ? text + i : bad, len > 0 ? len : 3);
		n += len > 0 ? len : 3;
		i += len > 0 ? len : 1;
	}
	s = json_stringn(clean, n);
	free(clean);
	return s;
}

json_t *
output_json_string(const char *text)
{
	return output_json_text(text, strlen(text));
}

int
output_refuse_model(const struct gguf *g, const char *path,
    struct err *reterr)
{
	const struct gguf_file *f;
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	for (f = g->file; f < g->file + g->nfiles; f++)
		if (st.st_dev == f->dev && st.st_ino == f->ino)
			return err_set(reterr, ERR_USAGE, -EINVAL, "%s: is "
			    "the file that is read (%s): give another name "
			    "for the output", path, f->path);
	return 0;
}

/* Jansson's integers are signed, and its reals have one precision for all.  Other
 * numbers are strings until the text is made: MARK, which nobody who writes prompts
 * or models can know, and the digits. */
enum { MARK_LEN = 37 };

static const char *
mark(void)
{
	static char text[MARK_LEN + 1];
	const uint8_t *random;
	unsigned i;

	if (text[0] != '\0')
		return text;
	strlcpy(text, "u64-", sizeof(text));
	/* 16 random bytes that the kernel gives to every process. */
	random = (const uint8_t *)(uintptr_t)getauxval(AT_RANDOM);
	for (i = 0; i < 16; i++)
		snprintf(text + 4 + 2 * i, 3, "%02x", random != NULL ?
		    random[i] : i);
	strlcat(text, "-", sizeof(text));
	return text;
}

json_t *
output_json_u64(uint64_t n)
{
	char text[MARK_LEN + 24];

	if (n <= INT64_MAX)
		return json_integer((json_int_t)n);
	snprintf(text, sizeof(text), "%s%" PRIu64, mark(), n);
	return json_string(text);
}

/* The fewest digits that read back as v; 9 always do for f32, 17 for f64. */
static void
format_exact(double v, int is_f32, char *buf, size_t len)
{
	int digits = is_f32 ? 6 : 15;

	do
		snprintf(buf, len, "%.*g", digits, v);
	while (is_f32 ? strtof(buf, NULL) != (float)v && ++digits <= 9 :
	    strtod(buf, NULL) != v && ++digits <= 17);
	if (strpbrk(buf, ".e") == NULL)		/* a reader's real, too */
		strlcat(buf, ".0", len);
}

json_t *
output_json_real(double v, int is_f32)
{
	char text[MARK_LEN + 320];

	if (isnan(v))
		return json_string("NaN");
	if (isinf(v))
		return json_string(v > 0 ? "Infinity" : "-Infinity");
	strlcpy(text, mark(), sizeof(text));
	format_exact(v, is_f32, text + MARK_LEN, sizeof(text) - MARK_LEN);
	return json_string(text);
}

/* Turn marked strings into numbers, in place. */
static void
unmark(char *json)
{
	const char *from = json, *m = mark();

	while (*from != '\0') {
		if (*from != '"' || strncmp(from + 1, m, MARK_LEN) != 0) {
			*json++ = *from++;
			continue;
		}
		for (from += 1 + MARK_LEN; *from != '"'; )
			*json++ = *from++;
		from++;
	}
	*json = '\0';
}

int
output_json(json_t *o, int indent, struct err *reterr)
{
	char *dump = json_dumps(o, (indent ? JSON_INDENT(1) : JSON_COMPACT) |
	    JSON_REAL_PRECISION(7));
	char *text;
	int rc;

	if (dump != NULL)
		unmark(dump);
	text = dump != NULL ? plain_json(dump) : NULL;
	rc = json_failed || text == NULL ? -ENOMEM : 0;
	json_decref(o);
	free(dump);
	if (rc < 0) {
		free(text);
		return err_nomem(reterr, "the JSON output");
	}
	if ((rc = output_text(text, strlen(text))) == 0)
		rc = output_text("\n", 1);
	free(text);
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "stdout: %s",
		    strerror(-rc));
	return 0;
}
