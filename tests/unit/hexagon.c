/* tests/unit/hexagon.c - tests of Hexagon sessions under the emulator: batch
 * invariance, accuracy, limits, and the end of a domain.  Skipped without an
 * emulator or a built domain. */
#include "tests/support/t.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/cores.h"
#include "shm/event.h"
#include "config/devices.h"
#include "worker/confine/confine.h"
#include "worker/hexagon/domain.h"
#include "worker/hexagon/ops.h"
#include "worker/stage/pool.h"
#include "worker/stage/state.h"
#include "tests/support/chain.h"
#include "tests/support/make_model.h"

enum { TEXT = 40, VOCAB = 320 };
#define WAIT_NS	UINT64_C(600000000000)	/* longer than any reply takes */

static uint32_t text[CHAIN_CTX];

static void
draw_text(void)
{
	unsigned i;

	for (i = 0; i < CHAIN_CTX; i++)
		text[i] = (uint32_t)t_rand_below(VOCAB);
}

static void
run_chain(struct chain *l, const struct chain_conf *lc, uint32_t seq,
    uint32_t chunk)
{
	struct err e = { 0 };

	t_ok(chain_open(l, lc, &e), &e);
	chain_send_text(l, seq, 0, text, TEXT, chunk);
	chain_send_stop(l);
	t_ok(chain_run(l, &e), &e);
}

/* Normalized mean squared error of b: squared differences from a, divided by
 * the squared deviations of a from its mean. */
static double
nmse(const struct chain *a, const struct chain *b)
{
	double num = 0, den = 0, mean;
	uint32_t p, i;

	for (p = 0; p < TEXT; p++) {
		const float *x = chain_logits(a, 0, p);
		const float *y = chain_logits(b, 0, p);

		for (i = 0, mean = 0; i < VOCAB; i++)
			mean += (double)x[i] / VOCAB;
		for (i = 0; i < VOCAB; i++) {
			num += pow((double)x[i] - (double)y[i], 2);
			den += pow((double)x[i] - mean, 2);
		}
	}
	return num / den;
}

START_TEST(logits_do_not_depend_on_domains_batches_or_rows)
{
	static const uint32_t types[] = { QUANT_Q8_0, QUANT_Q4_0,
	    QUANT_MXFP4, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1, QUANT_IQ4_NL };
	static struct chain one, many;
	struct chain_conf lc = CHAIN_CONF;
	unsigned i;

	draw_text();
	for (i = 0; i < NITEMS(types); i++) {
		if (!t_sampled(i, NITEMS(types), 1))
			continue;
		lc = (struct chain_conf)CHAIN_CONF;
		lc.tiny.type = types[i];
		lc.fmt = (enum kv_type)(i % KV_NTYPES);
		lc.dev[0] = &device_hexagon;
		run_chain(&one, &lc, 0, 1);
		lc.nstages = 3;
		lc.cut[1] = 1;
		/* Cut inside layers too; the last cut leaves one sublayer
		 * beside the head. */
		lc.cut[2] = 6 + i % 3;
		lc.head_rows = 3;
		run_chain(&many, &lc, 2, 13);
		ck_assert_msg(chain_same_logits(&one, 0, &many, 2, 0, TEXT),
		    "%s", quant_info(types[i])->name);
		chain_close(&one);
		chain_close(&many);
	}
}
END_TEST

/* A domain stores weight scales in 15 bits and has its own exp, so its logits
 * are close to those of the CPU, not equal.  One 8-bit activation that rounds
 * to its neighbour makes more of them do so in later layers.  In sum, the error
 * cannot exceed that of the 8-bit rounding itself, 5e-4. */
START_TEST(logits_are_close_to_those_of_the_cpu)
{
	static const uint32_t types[] = { QUANT_Q8_0, QUANT_Q4_0,
	    QUANT_IQ4_NL, QUANT_MXFP4, QUANT_Q4_1, QUANT_Q5_0, QUANT_Q5_1,
	    QUANT_F16, QUANT_BF16 };
	static struct chain cpu, dsp, mixed;
	struct chain_conf lc;
	unsigned i;

	draw_text();
	for (i = 0; i < NITEMS(types); i++) {
		if (!t_sampled(i, NITEMS(types), 2))
			continue;
		lc = (struct chain_conf)CHAIN_CONF;
		lc.tiny.type = types[i];
		run_chain(&cpu, &lc, 0, 7);
		lc.dev[0] = &device_hexagon;
		run_chain(&dsp, &lc, 0, 7);
		ck_assert_msg(nmse(&cpu, &dsp) < 1e-3, "%s: NMSE %g",
		    quant_info(types[i])->name, nmse(&cpu, &dsp));
		/* Three stages: Hexagon, CPU, Hexagon. */
		lc.nstages = 3;
		lc.cut[1] = 3;
		lc.cut[2] = 4 + i % 2;
		lc.dev[1] = &device_cpu;
		lc.dev[2] = &device_hexagon;
		run_chain(&mixed, &lc, 0, 16);
		ck_assert_msg(nmse(&cpu, &mixed) < 1e-3, "%s mixed: NMSE %g",
		    quant_info(types[i])->name, nmse(&cpu, &mixed));
		chain_close(&cpu);
		chain_close(&dsp);
		chain_close(&mixed);
	}
}
END_TEST

/* Ops that a domain does not support run on the host.  The text is fixed: a
 * router may depend on one rounding, and a row that goes to another expert is
 * entirely different. */
START_TEST(logits_of_every_family_are_close_to_those_of_the_cpu)
{
	static const struct {
		const char *name;
		double max_nmse;
	} families[] = {
		{ "tiny-llama3", 1e-3 }, { "tiny-mixtral", 1e-2 },
		{ "tiny-qwen2", 1e-3 }, { "tiny-qwen3", 1e-3 },
		{ "tiny-qwen3moe", 1e-2 }, { "tiny-gemma2", 1e-3 },
		{ "tiny-gemma3", 1e-3 }, { "tiny-phi3", 1e-3 },
		{ "tiny-gpt-oss", 1e-2 }
	};
	static struct chain cpu, dsp;
	struct chain_conf lc;
	char path[256], options[64];
	unsigned i;

	for (i = 0; i < TEXT; i++)
		text[i] = i * i * 31 % VOCAB;
	for (i = 0; i < NITEMS(families); i++) {
		if (!t_sampled(i, NITEMS(families), 3))
			continue;
		snprintf(path, sizeof(path), "%s/family.gguf", t_tmpdir());
		snprintf(options, sizeof(options), "%s q8_0",
		    families[i].name);
		make_model(options, path);
		lc = (struct chain_conf)CHAIN_CONF;
		lc.path = path;
		run_chain(&cpu, &lc, 0, 7);
		lc.dev[0] = &device_hexagon;
		run_chain(&dsp, &lc, 0, 7);
		ck_assert_msg(nmse(&cpu, &dsp) < families[i].max_nmse,
		    "%s: NMSE %g", families[i].name, nmse(&cpu, &dsp));
		chain_close(&cpu);
		chain_close(&dsp);
	}
}
END_TEST

START_TEST(bf16_activations_are_left_to_the_host)
{
	static const enum op_kind kinds[] = { OP_QUANTIZE, OP_MOE_ROWS };
	struct tensor t = { .act = ACT_BF16 };
	struct program p = { .t = &t, .ntensors = 1 };
	char reason[REASON_LEN];
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++) {
		struct op op = { .kind = kinds[i] };

		t.act = ACT_BF16;
		ck_assert(!hexagon_supports(NULL, &p, &op, reason));
		ck_assert_ptr_nonnull(strstr(reason, "BF16"));
		t.act = ACT_Q8;
		ck_assert(hexagon_supports(NULL, &p, &op, reason));
	}
}
END_TEST

START_TEST(an_error_status_is_reported_with_op_and_tensor)
{
	static const uint32_t zeros[MAX_BATCH];
	static struct chain l;
	struct chain_conf lc = CHAIN_CONF;
	struct err e = { 0 };
	struct stage_span *sp;
	/* More rows than its buffers can hold. */
	struct batch b = { .nrows = MAX_BATCH, .seq = zeros, .pos = zeros,
	    .token = zeros, .select = zeros };
	uint32_t i = 0;

	lc.dev[0] = &device_hexagon;
	t_ok(chain_open(&l, &lc, &e), &e);
	while (!l.part[0].s->pl.span[i].on_device)
		i++;
	sp = &l.part[0].s->span[i];
	t_ok(sp->ops->run(sp->dev, sp->handle, &b, &e), &e);
	ck_assert_int_eq(sp->ops->sync(sp->dev, event_now_ns() + WAIT_NS,
	    &e), -EIO);
	ck_assert_msg(strstr(e.msg, "stage0") != NULL && strstr(e.msg,
	    "of layer 0") != NULL && strstr(e.msg, "an operand outside its "
	    "buffer") != NULL, "%s", e.msg);
	chain_close(&l);
}
END_TEST

static struct domain *
open_domain(void)
{
	const struct domain_conf dc = { "htp0", "emulated", DOMAIN_BYTES, 0 };
	struct domain *d = NULL;
	struct err e = { 0 };

	t_ok(domain_open(&dc, &d, &e), &e);
	return d;
}

START_TEST(a_domain_refuses_mappings_beyond_its_address_space)
{
	struct domain *d = open_domain();
	struct domain_mem m;
	struct err e = { 0 };
	uint64_t total = 0;
	int rc;

	while ((rc = domain_map(d, 256 * MIB, "KV cache", &m, &e)) == 0)
		total += m.nbytes;
	ck_assert_int_eq(rc, -ENOBUFS);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_msg(strstr(e.msg, "htp0: KV cache") != NULL && strstr(e.msg,
	    "268435456 bytes: its address space is full: ") != NULL &&
	    strstr(e.msg, " MiB more is all that its device hexagon gives") !=
	    NULL, "%s", e.msg);
	ck_assert_uint_ge(total, 2 * GIB);
	ck_assert_uint_lt(total, DOMAIN_BYTES);
	domain_close(d);
}
END_TEST

/* Each round maps less than the one before and then more. */
START_TEST(unmapped_memory_can_be_mapped_again)
{
	const struct domain_conf dc = { "htp0", "emulated", 32 * MIB, 0 };
	static const uint64_t nbytes[] = { 8 * MIB, 4096, 20 * MIB, 20 * MIB };
	struct domain_memory mem;
	struct domain *d = NULL;
	struct domain_mem m;
	struct err e = { 0 };
	unsigned i, j;

	t_ok(domain_open(&dc, &d, &e), &e);
	for (i = 0; i < NITEMS(nbytes); i++) {
		t_ok(domain_map(d, nbytes[i], "weights", &m, &e), &e);
		ck_assert_uint_eq(m.handle, 0);
		for (j = 0; j < nbytes[i]; j += 4096)
			ck_assert_uint_eq(((uint8_t *)m.host)[j], 0);
		memset(m.host, 1, nbytes[i]);
		t_ok(domain_map(d, 4096, "keys", &m, &e), &e);
		ck_assert_uint_eq(m.handle, 1);
		t_ok(domain_unmap_all(d, &e), &e);
	}
	domain_memory(d, &mem);
	ck_assert_uint_lt(mem.mapped_bytes, 4 * MIB);
	domain_close(d);
}
END_TEST

START_TEST(the_probe_finds_the_limits_of_a_domain)
{
	const struct device_conf dc = { .session = "htp0",
	    .port = "emulated" };
	struct device_probe p;
	struct err e = { 0 };
	uint64_t total = 0, largest = 0;
	unsigned i;

	t_ok(device_hexagon.probe(&dc, &p, &e), &e);
	ck_assert_msg(p.found, "%s", p.reason);
	for (i = 0; i < p.nlimits; i++) {
		if (strcmp(p.limit[i].name, "total_bytes") == 0)
			total = p.limit[i].value;
		if (strcmp(p.limit[i].name, "largest_mapping_bytes") == 0)
			largest = p.limit[i].value;
		ck_assert_int_ne(p.limit[i].from[0], '\0');
	}
	ck_assert_uint_gt(total, 3 * GIB);
	ck_assert_uint_lt(total, DOMAIN_BYTES);
	ck_assert_uint_gt(largest, GIB);
	ck_assert_uint_le(largest, total);
}
END_TEST

START_TEST(a_killed_domain_is_named)
{
	struct domain *d = open_domain();
	struct domain_reply r;
	struct err e = { 0 };

	ck_assert_int_eq(kill(domain_pid(d), SIGKILL), 0);
	domain_request(d)->kind = HXQ_HELLO;
	ck_assert_int_eq(domain_call(d, &r, &e), -ESRCH);
	ck_assert_msg(strstr(e.msg, "htp0") != NULL &&
	    strstr(e.msg, "killed by signal 9") != NULL, "%s", e.msg);
	domain_close(d);
}
END_TEST

START_TEST(a_hanging_domain_is_given_up_at_the_deadline)
{
	struct domain *d = open_domain();
	struct domain_reply r;
	struct err e = { 0 };

	ck_assert_int_eq(kill(domain_pid(d), SIGSTOP), 0);
	domain_request(d)->kind = HXQ_HELLO;
	t_ok(domain_send(d, &e), &e);
	ck_assert_int_eq(domain_wait(d, event_now_ns() + 50000000, &r, &e),
	    -ETIMEDOUT);
	ck_assert_msg(strstr(e.msg, "htp0") != NULL, "%s", e.msg);
	domain_close(d);	/* must not hang */
}
END_TEST

/* A minimal worker: open a domain, start threads, confine itself, and write the
 * domain's pid to fd.  Then close the domain and exit, or wait to be killed. */
static NORETURN void
run_confined_child(int fd, int closes)
{
	struct pool_conf pc = { .nthreads = 2 };
	struct domain *d = open_domain();
	struct confine *filter = confine_open("its worker",
	    DEVICE_RIGHT_EMULATOR);
	_Atomic uint32_t never = 0;
	int32_t held[CONFINE_NPARTS];
	pid_t pid = domain_pid(d);
	struct par *par;
	struct err e = { 0 };

	if (cores_allowed(&pc.cpus, &e) < 0 ||
	    pool_open(&pc, &par, &e) < 0 || kill(pid, SIGSTOP) < 0)
		_exit(2);
	confine_before_load(filter, par, held);
	confine_after_load(filter, held);
	if (write(fd, &pid, sizeof(pid)) != sizeof(pid))
		_exit(3);
	while (!closes)
		event_wait(&never, 0, EVENT_FOREVER);
	domain_close(d);
	_exit(0);
}

/* 1 if pid does not exist, or is a zombie that its new parent has not
 * reaped. */
static int
is_gone(pid_t pid)
{
	char path[64], line[256] = "", *end;
	FILE *fp;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((fp = fopen(path, "re")) == NULL)
		return 1;
	end = fgets(line, sizeof(line), fp) != NULL ? strrchr(line, ')') :
	    NULL;
	fclose(fp);
	return end == NULL || end[2] == 'Z' || end[2] == 'X';
}

/* The domain is stopped, and a confined process has no system call to kill
 * it. */
START_TEST(a_hanging_domain_ends_with_its_confined_worker)
{
	pid_t child, domain;
	int closes, p[2], status;

	for (closes = 0; closes < 2; closes++) {
		ck_assert_int_eq(pipe(p), 0);
		fflush(stdout);
		ck_assert_int_ge(child = fork(), 0);
		if (child == 0)
			run_confined_child(p[1], closes);
		close(p[1]);
		ck_assert_int_eq(read(p[0], &domain, sizeof(domain)),
		    sizeof(domain));
		close(p[0]);
		if (!closes)
			kill(child, SIGKILL);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(closes ? WIFEXITED(status) &&
		    WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
		while (!is_gone(domain))	/* else the test times out */
			poll(NULL, 0, 1);
	}
}
END_TEST

/* Send a packet of n times this buffer; a run is of no operations. */
static uint32_t
status_of(struct domain *d, uint32_t kind, unsigned n, struct hxq_buf b)
{
	const struct hx_run run = { 0 };
	struct hxq_packet *q = domain_request(d);
	struct domain_reply r;
	struct err e = { 0 };
	unsigned i;

	q->kind = kind;
	q->nbufs = n;
	for (i = 0; i < n; i++)
		q->buf[i] = b;
	if (kind == HXQ_RUN) {
		memcpy(q->msg, &run, sizeof(run));
		q->nbytes = sizeof(run);
	}
	t_ok(domain_call(d, &r, &e), &e);
	return r.status;
}

START_TEST(a_domain_refuses_buffers_outside_its_maps)
{
	struct domain *d = open_domain();
	struct domain_mem m;
	struct err e = { 0 };
	struct hxq_buf b;

	t_ok(domain_map(d, 64 * KIB, "weights", &m, &e), &e);
	/* Maps: of a handle that does not exist or is in use, of nothing. */
	b = (struct hxq_buf){ .nbytes = 4096 };
	for (b.handle = HXQ_MAPS; b.handle < 8 * HXQ_MAPS; b.handle++)
		ck_assert_uint_eq(status_of(d, HXQ_MAP, 1, b), HXQ_EBADMSG);
	b.handle = UINT32_MAX;
	ck_assert_uint_eq(status_of(d, HXQ_MAP, 1, b), HXQ_EBADMSG);
	b.handle = m.handle;
	ck_assert_uint_eq(status_of(d, HXQ_MAP, 1, b), HXQ_EBADMSG);
	b = (struct hxq_buf){ .handle = m.handle + 1 };
	ck_assert_uint_eq(status_of(d, HXQ_MAP, 1, b), HXQ_EBADMSG);
	b.nbytes = 4096;
	ck_assert_uint_eq(status_of(d, HXQ_MAP, 0, b), HXQ_EBADMSG);
	ck_assert_uint_eq(status_of(d, HXQ_MAP, 2, b), HXQ_EBADMSG);
	/* Buffers of a run: whole, then past their map's end. */
	b = (struct hxq_buf){ .handle = m.handle, .nbytes = m.nbytes };
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_OK);
	b.nbytes++;
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ERANGE);
	b.offset = 1;
	b.nbytes = m.nbytes;
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ERANGE);
	b.offset = m.nbytes + 1;
	b.nbytes = 1;
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ERANGE);
	b.offset = 4096;		/* the sum wraps at 2^64 */
	b.nbytes = UINT64_MAX - 4095;
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ERANGE);
	b = (struct hxq_buf){ .handle = HXQ_MAPS, .nbytes = 1 };
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ENOMAP);
	b.handle = m.handle + 1;
	ck_assert_uint_eq(status_of(d, HXQ_RUN, 1, b), HXQ_ENOMAP);
	b = (struct hxq_buf){ .handle = m.handle, .nbytes = 1 };
	ck_assert_uint_eq(status_of(d, HXQ_RUN, HX_NBUFS + 1, b),
	    HXQ_EBADMSG);
	domain_close(d);
}
END_TEST

START_TEST(a_queue_is_bounded_and_refuses_bad_packets)
{
	struct domain *d = open_domain();
	struct domain_reply r;
	struct err e = { 0 };
	struct hxq_packet *q;
	unsigned i;

	for (i = 0; i < HXQ_SLOTS; i++) {
		ck_assert_ptr_nonnull(q = domain_request(d));
		q->kind = i == 0 ? 999 : HXQ_HELLO;
		q->nbytes = i == 1 ? UINT32_MAX : 0;
		q->nbufs = i == 2 ? HXQ_MAX_BUFS + 1 : 0;
		t_ok(domain_send(d, &e), &e);
	}
	ck_assert_ptr_null(domain_request(d));
	for (i = 0; i < HXQ_SLOTS; i++) {
		t_ok(domain_wait(d, event_now_ns() + WAIT_NS, &r, &e), &e);
		ck_assert_uint_eq(r.status, i < 3 ? HXQ_EBADMSG : HXQ_OK);
	}
	ck_assert_ptr_nonnull(domain_request(d));
	domain_close(d);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		logits_do_not_depend_on_domains_batches_or_rows,
		logits_are_close_to_those_of_the_cpu,
		bf16_activations_are_left_to_the_host,
		logits_of_every_family_are_close_to_those_of_the_cpu,
		an_error_status_is_reported_with_op_and_tensor,
		a_domain_refuses_mappings_beyond_its_address_space,
		unmapped_memory_can_be_mapped_again,
		the_probe_finds_the_limits_of_a_domain,
		a_killed_domain_is_named,
		a_hanging_domain_is_given_up_at_the_deadline,
		a_hanging_domain_ends_with_its_confined_worker,
		a_domain_refuses_buffers_outside_its_maps,
		a_queue_is_bounded_and_refuses_bad_packets,
	};
	const struct hexagon_port *port;
	char what[DOMAIN_WHAT];
	struct err e = { 0 };

	if (domain_find("emulated", &port, what, &e) < 0) {
		printf("%s\n", e.msg);
		return T_SKIP;
	}
	return t_main("hexagon", 120, tests, NITEMS(tests));
}
