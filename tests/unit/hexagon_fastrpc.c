/* tests/unit/hexagon_fastrpc.c - tests of Hexagon sessions through
 * libcdsprpc.so.  A stand-in for that library (standin/cdsprpc.c) runs the
 * domain's code under the emulator, refuses each step in turn, hangs and dies.
 * None of this has run on silicon.  Skipped without an emulator or a built
 * domain. */
#include "tests/support/t.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "shm/event.h"
#include "worker/hexagon/fastrpc_guard.h"
#include "worker/hexagon/fastrpc_lib.h"
#include "worker/hexagon/domain.h"
#include "tests/support/chain.h"
#include "tests/standin/cdsprpc.h"

enum { TEXT = 30, VOCAB = 320 };

static __typeof__(standin_live) *count_live;
static __typeof__(standin_pid) *get_pid;

/* Load the stand-in, so that a later dlopen("libcdsprpc.so") finds it. */
static void
load_standin(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	void *so, *p, *q;
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		exit(1);
	strcpy(slash + 1, "../standin/" FASTRPC_LIBRARY);
	if ((so = dlopen(path, RTLD_NOW)) == NULL ||
	    (p = dlsym(so, "standin_live")) == NULL ||
	    (q = dlsym(so, "standin_pid")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&count_live, &p, sizeof(p));
	memcpy(&get_pid, &q, sizeof(q));
}

static int
open_with_timeout(uint64_t step_ns, struct domain **ret, struct err *reterr)
{
	const struct domain_conf dc = { "htp0", "fastrpc", DOMAIN_BYTES,
	    step_ns };

	*ret = NULL;
	return domain_open(&dc, ret, reterr);
}

static int
open_fastrpc(struct domain **ret, struct err *reterr)
{
	return open_with_timeout(0, ret, reterr);
}

static struct domain *
must_open(void)
{
	struct domain *d;
	struct err e = { 0 };

	t_ok(open_fastrpc(&d, &e), &e);
	return d;
}

/* --- a model --- */

static uint32_t text[CHAIN_CTX];

static void
run_chain(struct chain *l, const struct chain_conf *lc, uint32_t chunk)
{
	struct err e = { 0 };

	t_ok(chain_open(l, lc, &e), &e);
	chain_send_text(l, 0, 0, text, TEXT, chunk);
	chain_send_stop(l);
	t_ok(chain_run(l, &e), &e);
}

/* Memory is synchronized only where a packet says so: a missing flag changes
 * the logits.  Q5_0 falls back to the CPU, so results of the host are
 * synchronized too. */
START_TEST(logits_equal_those_of_a_domain_with_shared_memory)
{
	static const uint32_t types[] = { QUANT_Q8_0, QUANT_Q4_0,
	    QUANT_Q5_0 };
	static struct chain emulated, fastrpc;
	struct chain_conf lc;
	unsigned i;

	for (i = 0; i < CHAIN_CTX; i++)
		text[i] = (uint32_t)t_rand_below(VOCAB);
	for (i = 0; i < NITEMS(types); i++) {
		lc = (struct chain_conf)CHAIN_CONF;
		lc.tiny.type = types[i];
		lc.fmt = (enum kv_type)i;
		lc.dev[0] = &device_hexagon;
		lc.port = "emulated";
		run_chain(&emulated, &lc, 7);
		lc.port = "fastrpc";
		lc.nstages = 2;
		lc.cut[1] = 4 + i % 2;
		run_chain(&fastrpc, &lc, 1);
		ck_assert_msg(chain_same_logits(&emulated, 0, &fastrpc, 0, 0,
		    TEXT), "%s", quant_info(types[i])->name);
		ck_assert_uint_gt(count_live(), 0);
		chain_close(&emulated);
		chain_close(&fastrpc);
		ck_assert_uint_eq(count_live(), 0);
	}
}
END_TEST

/* --- refused steps --- */

static const struct step {
	const char *call;
	unsigned code;
	const char *want;		/* expected besides call and code */
} steps[] = {
	{ "DSPRPC_GET_DSP_INFO", 0x14, "straddle devices" },
	{ "FASTRPC_RESERVE_NEW_SESSION", 0x8a, "no session is left" },
	{ "FASTRPC_RESERVE_NEW_SESSION", 0xd, "end other programs" },
	{ "FASTRPC_GET_URI", 0x4d, "newer libcdsprpc.so" },
	{ "DSPRPC_CONTROL_UNSIGNED_MODULE", 0x14, "sign the module" },
	{ "FASTRPC_REGISTER_STATUS_NOTIFICATIONS", 0xe, "newer" },
	{ "remote_handle64_open", 0x72, "refuses the connection" },
	{ "remote_handle64_open", 0x80000445, "of the DSP (no such file): put "
	    "the module" },
	{ "remote_handle64_open", 0x81, "sign the module with the tools" },
	{ "DSPRPC_CONTROL_LATENCY", 0xe, "newer" },
	{ "dspqueue_create", 0xe, "the board's own release" },
	{ "dspqueue_export", 0x1, "the board's own release" },
	{ "start", 0x80000414, "of this build" },
	{ "dspqueue_write", 0xd, "bad state" },
	{ "dspqueue_read", 0x10, "bad item" },
};

START_TEST(a_refused_step_is_named_with_code_and_remedy)
{
	const struct step *s;
	struct err e = { 0 };
	char refuse[80], code[16];
	struct domain *d;

	for (s = steps; s < steps + NITEMS(steps); s++) {
		snprintf(code, sizeof(code), "0x%x", s->code);
		snprintf(refuse, sizeof(refuse), "%s=%s", s->call, code);
		setenv("STANDIN_REFUSE", refuse, 1);
		ck_assert_int_lt(open_fastrpc(&d, &e), 0);
		ck_assert_ptr_null(d);
		ck_assert_msg(strstr(e.msg, "session htp0") != NULL &&
		    strstr(e.msg, s->call) != NULL &&
		    strstr(e.msg, code) != NULL &&
		    strstr(e.msg, s->want) != NULL, "%s", e.msg);
		unsetenv("STANDIN_REFUSE");
		ck_assert_msg(count_live() == 0, "%s: %u resources leaked",
		    s->call, count_live());
	}
	/* The next domain finds everything free. */
	d = must_open();
	domain_close(d);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

START_TEST(optional_calls_may_be_refused)
{
	static const char *const optional[] = {
		"FASTRPC_REGISTER_STATUS_NOTIFICATIONS=0x14",
		"DSPRPC_CONTROL_LATENCY=0x6c"
	};
	struct domain *d;
	unsigned i;

	for (i = 0; i < NITEMS(optional); i++) {
		setenv("STANDIN_REFUSE", optional[i], 1);
		d = must_open();
		domain_close(d);
		unsetenv("STANDIN_REFUSE");
		ck_assert_uint_eq(count_live(), 0);
	}
}
END_TEST

/* A DSP has few sessions; a closed one can be opened again. */
START_TEST(sessions_are_limited_and_can_be_reused)
{
	struct domain *d[5];
	struct err e = { 0 };
	unsigned i, n = 0;

	while (n < NITEMS(d) && open_fastrpc(&d[n], &e) == 0)
		n++;
	ck_assert_uint_eq(n, 4);
	ck_assert_msg(strstr(e.msg, "FASTRPC_RESERVE_NEW_SESSION failed with "
	    "0x8a (no session is left)") != NULL, "%s", e.msg);
	domain_close(d[1]);
	d[1] = must_open();
	for (i = 0; i < n; i++)
		domain_close(d[i]);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

/* --- memory --- */

START_TEST(refused_memory_is_named_and_released)
{
	static const struct { const char *refuse, *want[2]; } cases[] = {
		{ "rpcmem_alloc2=1", { "rpcmem_alloc2", "dma_heap" } },
		{ "rpcmem_to_fd=1", { "rpcmem_to_fd", "release" } },
		{ "fastrpc_mmap=0x2", { "cannot map 1048576 bytes",
		    "fastrpc_mmap failed with 0x2 (no memory)" } },
	};
	struct domain *d = must_open();
	struct domain_mem m;
	struct err e = { 0 };
	unsigned i, before = count_live();

	for (i = 0; i < NITEMS(cases); i++) {
		setenv("STANDIN_REFUSE", cases[i].refuse, 1);
		ck_assert_int_lt(domain_map(d, MIB, "KV cache", &m, &e), 0);
		ck_assert_msg(strstr(e.msg, "KV cache") != NULL &&
		    strstr(e.msg, cases[i].want[0]) != NULL &&
		    strstr(e.msg, cases[i].want[1]) != NULL, "%s", e.msg);
		unsetenv("STANDIN_REFUSE");
		ck_assert_uint_eq(count_live(), before);
	}
	t_ok(domain_map(d, MIB, "KV cache", &m, &e), &e);
	domain_close(d);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

START_TEST(a_domain_refuses_mappings_beyond_its_address_space)
{
	struct domain *d = must_open();
	struct domain_mem m;
	struct err e = { 0 };
	uint64_t total = 0;
	int rc;

	while ((rc = domain_map(d, 512 * MIB, "weights", &m, &e)) == 0)
		total += m.nbytes;
	ck_assert_int_eq(rc, -ENOBUFS);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_uint_ge(total, 2 * GIB);
	ck_assert_uint_lt(total, DOMAIN_BYTES);
	domain_close(d);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

START_TEST(a_domain_has_at_most_sixteen_mappings)
{
	struct domain *d = must_open();
	const unsigned empty = count_live();
	struct domain_mem m;
	struct err e = { 0 };
	unsigned i, n;

	for (i = 0; i < 2; i++) {
		for (n = 0; domain_map(d, 4096, "a page", &m, &e) == 0; n++)
			;
		ck_assert_uint_eq(n, HXQ_MAPS);
		ck_assert_msg(strstr(e.msg, "at most 16 mappings") != NULL,
		    "%s", e.msg);
		t_ok(domain_unmap_all(d, &e), &e);
		ck_assert_uint_eq(count_live(), empty);
	}
	domain_close(d);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

/* --- limits --- */

static const struct device_limit *
find_limit(const struct device_probe *p, const char *name)
{
	unsigned i;

	for (i = 0; i < p->nlimits; i++)
		if (strcmp(p->limit[i].name, name) == 0)
			return &p->limit[i];
	ck_abort_msg("no %s", name);
	return NULL;
}

START_TEST(limits_are_queried_or_measured)
{
	const struct device_conf dc = { .session = "htp0",
	    .port = "fastrpc" };
	struct device_probe p;
	struct err e = { 0 };
	uint64_t total;

	t_ok(device_hexagon.probe(&dc, &p, &e), &e);
	ck_assert_msg(p.found && strstr(p.reason, "untested on silicon") !=
	    NULL && strstr(p.reason, FASTRPC_LIBRARY) != NULL, "%s",
	    p.reason);
	total = find_limit(&p, "total_bytes")->value;
	ck_assert_uint_gt(total, 3 * GIB);
	ck_assert_uint_lt(total, DOMAIN_BYTES);
	ck_assert_ptr_nonnull(strstr(find_limit(&p, "total_bytes")->from,
	    "until fastrpc_mmap refused: 0x2"));
	ck_assert_uint_eq(find_limit(&p, "largest_mapping_bytes")->value,
	    2 * GIB);
	ck_assert_uint_eq(find_limit(&p, "hexagon_version")->value, 0x68);
	ck_assert_uint_eq(find_limit(&p, "hvx_units")->value, 4);
	ck_assert_uint_eq(find_limit(&p, "vtcm_bytes")->value, 2 * MIB);
	ck_assert_uint_eq(count_live(), 0);
	/* If the host runs out of memory first, the domain's limit is
	 * unknown. */
	setenv("STANDIN_REFUSE", "rpcmem_alloc2=1", 1);
	t_ok(device_hexagon.probe(&dc, &p, &e), &e);
	unsetenv("STANDIN_REFUSE");
	ck_assert(!find_limit(&p, "total_bytes")->known);
	ck_assert_ptr_nonnull(strstr(find_limit(&p, "total_bytes")->from,
	    "rpcmem_alloc2"));
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

START_TEST(a_domain_of_another_size_is_refused)
{
	const struct domain_conf dc = { "htp0", "fastrpc", GIB, 0 };
	struct domain *d = NULL;
	struct err e = { 0 };

	ck_assert_int_eq(domain_open(&dc, &d, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

/* --- the end of a domain --- */

START_TEST(a_notification_reports_the_death_of_a_domain)
{
	struct domain *d = must_open();
	struct domain_reply r;
	struct err e = { 0 };

	ck_assert_int_gt(get_pid(0), 0);
	ck_assert_int_eq(kill(get_pid(0), SIGSTOP), 0);
	domain_request(d)->kind = HXQ_HELLO;
	t_ok(domain_send(d, &e), &e);
	ck_assert_int_eq(kill(get_pid(0), SIGKILL), 0);
	ck_assert_int_eq(domain_wait(d, event_now_ns() +
	    UINT64_C(300000000000), &r, &e), -ESRCH);
	ck_assert_msg(strstr(e.msg, "htp0: its Hexagon domain died of an "
	    "exception") != NULL, "%s", e.msg);
	domain_close(d);
	ck_assert_uint_eq(count_live(), 0);
	d = must_open();	/* the old notification does not affect it */
	domain_close(d);
}
END_TEST

START_TEST(a_hanging_domain_is_given_up_at_the_deadline)
{
	struct domain *d = must_open();
	struct domain_reply r;
	struct err e = { 0 };

	ck_assert_int_eq(kill(get_pid(0), SIGSTOP), 0);
	domain_request(d)->kind = HXQ_HELLO;
	t_ok(domain_send(d, &e), &e);
	ck_assert_int_eq(domain_wait(d, event_now_ns() + 50000000, &r, &e),
	    -ETIMEDOUT);
	ck_assert_ptr_nonnull(strstr(e.msg, "htp0"));
	domain_close(d);	/* must not hang */
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

/* These calls return only when the guard has killed the process on the DSP. */
START_TEST(a_hanging_call_is_ended)
{
	static const char *const calls[] = { "remote_handle64_open",
	    "start" };
	struct err e = { 0 };
	struct domain *d;
	unsigned i;

	for (i = 0; i < NITEMS(calls); i++) {
		setenv("STANDIN_HANG", calls[i], 1);
		ck_assert_int_eq(open_with_timeout(2000000000, &d, &e),
		    -ETIMEDOUT);
		ck_assert_msg(strstr(e.msg, "htp0") != NULL &&
		    strstr(e.msg, "was killed") != NULL, "%s", e.msg);
		unsetenv("STANDIN_HANG");
		ck_assert_uint_eq(count_live(), 0);
	}
}
END_TEST

START_TEST(a_hanging_stop_is_ended)
{
	struct err e = { 0 };
	struct domain *d;

	t_ok(open_with_timeout(UINT64_C(15000000000), &d, &e), &e);
	setenv("STANDIN_HANG", "stop", 1);
	domain_close(d);
	unsetenv("STANDIN_HANG");
	ck_assert_uint_eq(count_live(), 0);
}
END_TEST

/* --- the guard alone --- */

static void
count_expiry(void *arg)
{
	++*(_Atomic uint32_t *)arg;
	event_wake(arg);
}

START_TEST(a_guard_fires_once_and_only_after_its_deadline)
{
	static _Atomic uint32_t fired;
	struct guard *g;
	struct err e = { 0 };

	t_ok(guard_open(count_expiry, &fired, &g, &e), &e);
	guard_arm(g, event_now_ns() + UINT64_C(3600000000000));
	ck_assert_int_eq(guard_disarm(g), 0);
	ck_assert_uint_eq(fired, 0);
	guard_arm(g, event_now_ns());
	while (fired == 0)
		event_wait(&fired, 0, EVENT_FOREVER);
	ck_assert_int_eq(guard_disarm(g), 1);
	ck_assert_int_eq(guard_disarm(g), 0);
	guard_close(g);
	ck_assert_uint_eq(fired, 1);
	guard_close(NULL);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		logits_equal_those_of_a_domain_with_shared_memory,
		a_refused_step_is_named_with_code_and_remedy,
		optional_calls_may_be_refused,
		sessions_are_limited_and_can_be_reused,
		refused_memory_is_named_and_released,
		a_domain_refuses_mappings_beyond_its_address_space,
		a_domain_has_at_most_sixteen_mappings,
		limits_are_queried_or_measured,
		a_domain_of_another_size_is_refused,
		a_notification_reports_the_death_of_a_domain,
		a_hanging_domain_is_given_up_at_the_deadline,
		a_hanging_call_is_ended,
		a_hanging_stop_is_ended,
		a_guard_fires_once_and_only_after_its_deadline,
	};
	const struct hexagon_port *port;
	char what[DOMAIN_WHAT];
	struct err e = { 0 };

	if (domain_find("emulated", &port, what, &e) < 0) {
		printf("%s\n", e.msg);
		return T_SKIP;
	}
	load_standin();
	return t_main("hexagon_fastrpc", 120, tests, NITEMS(tests));
}
