/* tests/unit/ascend_capture.c - tests of which steps a graph has, on the stand-in for
 * CANN: norms, products and SwiGLU between two actions of the host; the bits of their
 * replays, their memory, and their names in messages. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/ascend.h"
#include "worker/ascend/graph.h"
#include "worker/ascend/rows.h"

#define WAIT_NS	UINT64_C(300000000000)
#define GRAPH_BYTES	4096
enum { K = 64, N = 80, ROWS = 16, MOST_OPS = 8 };

#define HAS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" without \"%s\"", \
	    (text), (part))

/* --- a program: a letter for each operation --- */

static struct hparams hp = { .rms_eps = 1e-5f };
static struct weight weight[MOST_OPS];
static struct weights ws = { .w = weight };
static struct op op[MOST_OPS];
static struct tensor tensor[2 + MOST_OPS];
static struct program program;
static struct mem_ledger ledger;
static struct device d;
static float scales[MOST_OPS][N], rows[2 + MOST_OPS][ROWS * N];
static float replayed[2 + MOST_OPS][ROWS * N];
static struct { const char *ops; int32_t fns_why; uint16_t few, many;
	uint64_t graph_bytes; } want;

static void
add_weight(struct op *o, enum role role, const char *name, int is_matrix)
{
	struct weight *w = &weight[ws.n++];

	*w = (struct weight){ .ext = { .role = (uint32_t)role,
	    .type = QUANT_F32 } };
	snprintf(w->ext.name, sizeof(w->ext.name), "%s", name);
	if (is_matrix)
		w->mat = (struct mat){ .n = N, .k = K,
		    .data = scales[w - weight] };
	o->w = w;
}

/* n: a norm of x; p: a product with the last norm's rows, or x; g and u: those of
 * SwiGLU, s, which must follow. */
static void
make_program(const char *ops)
{
	uint16_t from = 0, out;
	struct op *o = op;

	ws.n = 0;
	for (; *ops != '\0'; ops++, o++) {
		out = (uint16_t)(1 + (o - op));
		*o = (struct op){ .kind = *ops == 'n' ? OP_RMS_NORM :
		    *ops == 's' ? OP_SWIGLU : OP_MATMUL, .out = out,
		    .in = { *ops == 'n' ? 0 : from, NO_TENSOR },
		    .routes = NO_TENSOR };
		if (*ops == 's') {
			o->in[0] = (uint16_t)(out - 2);
			o->in[1] = (uint16_t)(out - 1);
		} else if (*ops == 'n') {
			add_weight(o, ROLE_FFN_NORM, "norm", 0);
			from = out;
		} else
			add_weight(o, *ops == 'g' ? ROLE_FFN_GATE : *ops ==
			    'u' ? ROLE_FFN_UP : ROLE_ATTN_Q, *ops == 'g' ?
			    "gate" : *ops == 'u' ? "up" : "query", 1);
		tensor[out] = (struct tensor){ .store = STORE_SCRATCH,
		    .act = ACT_F32, .cols = *ops == 'n' ? K : N,
		    .row_bytes = N * sizeof(float),
		    .offset = out * sizeof(rows[0]) };
	}
	tensor[0] = (struct tensor){ .store = STORE_SCRATCH, .act = ACT_F32,
	    .cols = K, .row_bytes = N * sizeof(float) };
	program = (struct program){ .env = { .hp = &hp, .ws = &ws,
	    .batch_rows = ROWS, .head_rows = 1 }, .op = op,
	    .nops = (uint32_t)(o - op), .nbody = (uint32_t)(o - op),
	    .nwhole = (uint32_t)(o - op), .nkept = (uint32_t)(o - op),
	    .t = tensor, .ntensors = (uint32_t)(o - op) + 1 };
}

/* --- the device --- */

static void
random_rows(float *ret, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		ret[i] = ((float)t_rand_below(2000) - 1000) / 1000;
}

static void
load(void)
{
	static float values[N * K];
	struct err e = { 0 };
	uint32_t i;

	t_ok(acl_place(&d, &program, &ws, &e), &e);
	for (i = 0; i < ws.n; i++) {
		const struct acl_weight *w = acl_find_weight(&d, i);

		random_rows(values, N * K);
		if (w == NULL)
			t_ok(acl_norms_upload(&d, i, values, &e), &e);
		else
			t_ok(acl_put_weights(&d.products, &w->m, QUANT_F32, 0,
			    N, values, d.row, w->scale, &e), &e);
	}
}

static uint32_t cut_at;			/* 0 = the program is one span */

static void
prepare(uint32_t first, uint32_t end)
{
	const struct device_buf compute = { rows, sizeof(rows) };
	const struct span s = { first, end, 1 };
	struct err e = { 0 };

	t_ok(acl_prepare(&d, &s, &compute, &compute, &e), &e);
}

static void
open_device(void)
{
	unsigned i;

	make_program(want.ops);
	mem_ledger_init(&ledger, "npu0", GIB);
	d = (struct device){ .conf = { .session = "npu0", .par = &par_alone,
	    .ledger = &ledger }, .memo = &d.own_memo, .p = &program };
	as_open(&d.s);
	d.choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { ACL_WAY_MATMUL, ACL_FLOAT16, want.many > 0
	    ? 2 : 1, 0, { want.few, want.many } }, .strategy = ACL_POOL_SLOTS,
	    .chip = { .has_memory = !d.s.machine.is_rc, .has_slots = 1,
	    .fns = ASCEND_FN_NORMS | ASCEND_FN_SWIGLU, .workspace_bytes = MIB,
	    .graph_bytes = want.graph_bytes }, .graphs = ACL_GRAPH_BITS - 1,
	    .graph_fns_why = want.fns_why };
	for (i = 0; i < ACL_FNS; i++)
		d.choice.fn[i] = acl_fn_pack(ACL_FN_RIGHT, 0);
	load();
	if (cut_at > 0)
		prepare(0, cut_at);
	prepare(cut_at, program.nops);
}

static int
run(uint32_t n, struct err *reterr)
{
	const struct batch b = { .nrows = n, .nselect = n };
	uint32_t i;
	int rc = 0;

	d.batch = &b;
	for (i = 0; i < d.nspans && rc == 0; i++) {
		d.running = &d.span[i];
		rc = acl_run_span(&d, event_now_ns() + WAIT_NS, reterr);
	}
	d.running = NULL;
	d.batch = NULL;
	return rc;
}

/* Run new rows by graphs, then by calls: the same tasks, if rows fill a class, and the
 * same bits.  Returns the number of replays. */
static unsigned
replays(uint32_t n)
{
	const int is_full = n == want.few || n == want.many;
	const uint32_t nclasses = d.ngraph_rows;
	struct ascend_standin_counts before = as_counts(), after;
	struct err e = { 0 };

	memset(rows, 0xff, sizeof(rows));
	random_rows(rows[0], ROWS * N);
	t_ok(run(n, &e), &e);
	after = as_counts();
	memcpy(replayed, rows, sizeof(rows));
	memset(rows[1], 0xff, sizeof(rows) - sizeof(rows[0]));
	d.ngraph_rows = 0;
	t_ok(run(n, &e), &e);
	d.ngraph_rows = nclasses;
	ck_assert_mem_eq(rows, replayed, sizeof(rows));
	if (is_full)
		ck_assert_uint_eq(as_counts().tasks - after.tasks, after.tasks -
		    before.tasks);
	ck_assert_uint_eq(as_counts().replays, after.replays);
	ck_assert_uint_eq(as_counts().allocations, before.allocations);
	return (unsigned)(after.replays - before.replays);
}

/* --- chains --- */

static unsigned want_replays;

static void
check_chains(void)
{
	open_device();
	ck_assert_uint_eq(as_counts().graphs, 2 * want_replays);
	ck_assert_uint_eq(replays(1), want_replays);
	ck_assert_uint_eq(replays(5), want_replays);
	ck_assert_uint_eq(replays(8), want_replays);
	ck_assert_uint_eq(replays(1), want_replays);
	/* More rows than a graph has. */
	ck_assert_uint_eq(replays(9), 0);
	ck_assert_uint_eq(replays(ROWS), 0);
	ck_assert_uint_eq(replays(8), want_replays);
	as_close_device(&d);
}

#define CHAINS(program, why, n) do {					\
	want.ops = (program);						\
	want.fns_why = (why);						\
	want.few = 1;							\
	want.many = 8;							\
	want.graph_bytes = GRAPH_BYTES;					\
	want_replays = (n);						\
	as_run_bare("", AS_OLD, check_chains);				\
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000",	\
	    AS_SPLIT, check_chains);					\
} while (0)

START_TEST(a_graph_has_all_between_two_actions_of_the_host)
{
	CHAINS("pp", ACL_GRAPH_FINE, 1);
	CHAINS("npp", ACL_GRAPH_FINE, 1);
	CHAINS("ngus", ACL_GRAPH_FINE, 1);
	CHAINS("nppngus", ACL_GRAPH_FINE, 2);
	CHAINS("ngusngus", ACL_GRAPH_FINE, 2);
}
END_TEST

START_TEST(swiglu_and_other_products_do_not_share_c)
{
	CHAINS("npgus", ACL_GRAPH_FINE, 2);
	/* The last product is a call. */
	CHAINS("ngusp", ACL_GRAPH_FINE, 1);
}
END_TEST

START_TEST(products_are_captured_alone_where_norms_may_not_be)
{
	CHAINS("npp", ACL_GRAPH_DIFFERS, 1);
	CHAINS("npgus", ACL_GRAPH_DIFFERS, 1);
	CHAINS("ngus", ACL_GRAPH_DIFFERS, 0);
}
END_TEST

/* --- memory --- */

static void
check_memory(void)
{
	open_device();
	/* 20 tasks: operators that are no products have 8 rows. */
	ck_assert_uint_eq(as_counts().graphs, 1);
	ck_assert_uint_eq(d.ngraphs, 2);
	ck_assert_uint_le(d.ngraphs, d.most_graphs);
	ck_assert_uint_eq(as_counts().device_bytes - d.held.device_bytes,
	    d.ngraphs * GRAPH_BYTES);
	ck_assert_uint_eq(replays(5), 1);
	as_close_device(&d);
}

static void
check_bound(void)
{
	open_device();
	/* There is room for the 15 tasks of SwiGLU.  The capture of its norm's
	 * chain ends after 16, and its graph is freed. */
	ck_assert_uint_eq(as_counts().peak_bytes, as_counts().device_bytes);
	ck_assert_uint_eq(d.most_graphs, 1);
	ck_assert_uint_eq(as_counts().graphs, 1);
	ck_assert_uint_eq(d.ngraphs, 1);
	ck_assert_ptr_null(d.step[0].graph[0].graph);
	ck_assert_uint_eq(replays(5), 1);
	as_close_device(&d);
}

START_TEST(a_graph_of_many_tasks_counts_as_several)
{
	want.ops = "ngus";
	want.fns_why = ACL_GRAPH_FINE;
	want.few = 16;
	want.many = 0;
	want.graph_bytes = GRAPH_BYTES;
	as_run_bare("", AS_OLD, check_memory);
	want.graph_bytes = ASCEND_GRAPHS_BYTES;
	as_run_bare("", AS_OLD, check_bound);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_SPLIT,
	    check_bound);
}
END_TEST

static unsigned want_graphs, want_few, want_many;

static void
check_room(void)
{
	open_device();
	ck_assert_uint_eq(d.ngraphs, want_graphs);
	ck_assert_uint_eq(as_counts().graphs, want_graphs);
	/* Also those that were freed had room. */
	ck_assert_uint_le(as_counts().peak_bytes - as_counts().device_bytes,
	    (d.most_graphs - d.ngraphs) * GRAPH_BYTES);
	ck_assert_uint_eq(replays(1), want_few);
	ck_assert_uint_eq(replays(8), want_many);
	as_close_device(&d);
}

#define ROOM_FOR(switches, program, units, graphs, few_, many_) do {	\
	want.ops = (program);						\
	want.fns_why = ACL_GRAPH_FINE;					\
	want.few = 1;							\
	want.many = 8;							\
	want.graph_bytes = ASCEND_GRAPHS_BYTES / (units);		\
	want_graphs = (graphs);						\
	want_few = (few_);						\
	want_many = (many_);						\
	as_run_bare((switches), AS_OLD, check_room);			\
} while (0)

START_TEST(a_graph_is_as_large_as_its_memory_allows)
{
	/* The copy of A; a product and the copy of its C. */
	ROOM_FOR("", "ppppppp", 1, 1, 1, 0);
	ROOM_FOR("", "pppppppp", 1, 0, 0, 0);
	ROOM_FOR("fail=aclmdlRICaptureEnd:507903", "pppppppp", 1, 0, 0, 0);
}
END_TEST

START_TEST(few_rows_are_captured_first)
{
	ROOM_FOR("", "ppnpp", 1, 1, 1, 0);
	ROOM_FOR("", "ppnpp", 2, 2, 2, 0);
	ROOM_FOR("", "ppnpp", 3, 3, 2, 1);
	ROOM_FOR("", "ppnpp", 4, 4, 2, 2);
	/* Also those of a later span. */
	cut_at = 2;
	ROOM_FOR("", "ppnpp", 1, 1, 1, 0);
	ROOM_FOR("", "ppnpp", 2, 2, 2, 0);
	ROOM_FOR("", "ppnpp", 3, 3, 2, 1);
	ROOM_FOR("", "ppnpp", 4, 4, 2, 2);
}
END_TEST

/* --- messages --- */

static const char *want_text;

static void
check_message(void)
{
	struct err e = { 0 };

	open_device();
	ck_assert_int_lt(run(1, &e), 0);
	HAS(e.msg, want_text);
	/* The stream may be lost, and memory with it. */
	_exit(0);
}

#define FAILS(program, switches, text) do {				\
	want.ops = (program);						\
	want.fns_why = ACL_GRAPH_FINE;					\
	want.few = 1;							\
	want.many = 8;							\
	want.graph_bytes = GRAPH_BYTES;					\
	want_text = (text);						\
	as_run_bare((switches), AS_OLD, check_message);			\
} while (0)

START_TEST(messages_name_what_a_graph_has)
{
	FAILS("pp", "fail=aclmdlRIExecuteAsync:507000", "session npu0: captured "
	    "product with query, query: ");
	FAILS("npp", "fail=aclmdlRIExecuteAsync:507000", "session npu0: "
	    "captured norm norm, product with query, query: ");
	FAILS("ngus", "fail=aclmdlRIExecuteAsync:507000", "session npu0: "
	    "captured norm norm, SwiGLU with gate and up: ");
	FAILS("npgus", "fail=aclmdlRIExecuteAsync:507000@2", "session npu0: "
	    "captured SwiGLU with gate and up: ");
	/* When it is waited for. */
	FAILS("npp", "late=RmsNorm:507018", "session npu0: norm norm, product "
	    "with query, query: ");
	FAILS("ngus", "late=Silu:507018", "session npu0: norm norm, SwiGLU "
	    "with gate and up: ");
	/* The norm has been waited for. */
	FAILS("npgus", "late=Silu:507018", "session npu0: SwiGLU with gate "
	    "and up: ");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_graph_has_all_between_two_actions_of_the_host,
		swiglu_and_other_products_do_not_share_c,
		products_are_captured_alone_where_norms_may_not_be,
		a_graph_of_many_tasks_counts_as_several,
		a_graph_is_as_large_as_its_memory_allows,
		few_rows_are_captured_first,
		messages_name_what_a_graph_has,
	};

	return t_main("ascend_capture", 60, tests, NITEMS(tests));
}
