/* tests/unit/orders.c - a worker refuses orders whose numbers do not fit.
 *
 * A coordinator of another build, or one with a fault, must not make a worker
 * write beyond its buffers. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels/types/quant.h"
#include "layers/extent.h"
#include "shm/layout.h"
#include "worker/orders/team.h"

static struct worker w;
static struct team team;
static struct par par = { .nthreads = 1 };
static struct err err;

/* A message with this payload; n descriptors of /dev/null. */
static void
receive(const void *a, size_t na, const void *b, size_t nb, unsigned nfds)
{
	unsigned i;

	chan_msg_done(&w.msg);
	memcpy(w.msg.buf, a, na);
	if (nb > 0)
		memcpy(w.msg.buf + na, b, nb);
	w.msg.nbytes = (uint32_t)(na + nb);
	w.msg.nfds = nfds;
	for (i = 0; i < nfds; i++)
		w.msg.fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
forget_model(void)
{
	order_close_files(&w);
	free(w.ext);
	free(w.file);
	w.ext = NULL;
	w.file = NULL;
	w.next = 0;
}

/* As after WIRE_START. */
static void
start(void)
{
	memset(&w, 0, sizeof(w));
	team_init(&team, &w, NULL);
	w.sc.par = &par;
	w.sc.dev = &device_cpu;
	w.sc.ledger = &w.ledger;
	mem_ledger_init(&w.ledger, "t", GIB);
	kernels_init(&w.kernels, cpu_flags());
	w.sc.kernels = &w.kernels;
	strcpy(w.sc.start.name, "t");
	w.is_confined = 1;		/* WIRE_CONFINE */
}

static int
is_refused(int rc)
{
	return rc == -EBADMSG &&
	    strstr(err.msg, "unexpected control message") != NULL;
}

/* --- WIRE_MODEL --- */

static const struct hparams sound_hp = { .arch = 0, .n_layer = 4,
	.n_embd = 64, .n_ff = 128, .n_vocab = 320, .n_head = 4,
	.n_head_kv = 2, .head_dim = 16, .v_dim = 16, .n_rot = 16,
	.n_expert = 8, .n_expert_used = 2, .n_ff_expert = 128,
	.moe_gate = GATE_SOFTMAX, .moe_scale = 1, .ctx_train = 128,
	.rope_base = 10000, .rope_scale = 1, .rope_orig_ctx = 128,
	.yarn_fast = 32, .yarn_slow = 1, .rope_mscale = 1, .rms_eps = 1e-6f,
	.embd_scale = 1, .attn_scale = 0.25f };
static const struct wire_model sound_model = { .first_sublayer = 2,
	.nsublayers = 6, .head = 1, .batch_rows = 16, .head_rows = 4,
	.ctx_tok = 64, .nseqs = 2, .kfmt = KV_F16, .vfmt = KV_F16,
	.nextents = 1, .nfiles = 1 };

static int
send_model(const struct wire_model *m, const struct hparams *hp)
{
	int rc;

	memset(&err, 0, sizeof(err));
	receive(m, sizeof(*m), hp, sizeof(*hp), 0);
	if ((rc = order_model(&w, &err)) == 0)
		return 0;
	ck_assert_ptr_null(w.ext);	/* nothing was kept */
	return rc;
}

/* A field at its limit, which is accepted, and beyond it. */
static void
check_field(uint32_t *field, uint32_t last, uint32_t beyond,
    const struct wire_model *m, const struct hparams *hp, const char *name)
{
	uint32_t sound = *field;

	*field = last;
	ck_assert_msg(send_model(m, hp) == 0, "%s of %u: %s", name, last,
	    err.msg);
	forget_model();
	*field = beyond;
	ck_assert_msg(is_refused(send_model(m, hp)), "%s of %u is accepted",
	    name, beyond);
	*field = sound;
}

START_TEST(a_model_with_impossible_numbers_is_refused)
{
	struct wire_model m = sound_model;
	struct hparams hp = sound_hp;
	uint32_t arches = 0;

	start();
	while (arch_info(arches) != NULL)
		arches++;
#define HP(field, last, beyond) \
	check_field(&hp.field, last, beyond, &m, &hp, #field)
#define M(field, last, beyond) \
	check_field(&m.field, last, beyond, &m, &hp, #field)
	HP(arch, arches - 1, arches);
	HP(arch, 0, UINT32_MAX);
	HP(n_embd, 1, 0);
	HP(n_head, 2, 0);
	HP(n_head, 6, 5);
	HP(n_head_kv, 1, 0);
	HP(n_head_kv, 4, 3);
	HP(n_vocab, 1, 0);
	HP(n_rot, 16, 18);		/* head_dim: 16 */
	HP(n_layer, MAX_LAYERS, MAX_LAYERS + 1);
	HP(n_expert, MAX_EXPERTS, MAX_EXPERTS + 1);
	HP(n_expert_used, 8, 9);
	HP(n_expert_used, 1, 0);
	M(batch_rows, MAX_BATCH, MAX_BATCH + 1);
	M(batch_rows, 4, 3);		/* head_rows: 4 */
	M(head_rows, 1, 0);
	M(head_rows, 16, 17);
	M(nseqs, 1, 0);
	M(nseqs, MAX_SEQS, MAX_SEQS + 1);
	M(ctx_tok, 1, 0);
	M(kfmt, KV_NTYPES - 1, KV_NTYPES);
	M(vfmt, KV_NTYPES - 1, KV_NTYPES);
	M(nsublayers, 6, 7);		/* 2 + 7 of 8 */
	M(nsublayers, 0, 9);
	M(nsublayers, 0, UINT32_MAX);
	M(first_sublayer, 0, 3);
	M(first_sublayer, 2, UINT32_MAX);
	M(nextents, (1u << 20) - 1, 1u << 20);
	M(nfiles, (1u << 16) - 1, 1u << 16);
#undef HP
#undef M
}
END_TEST

START_TEST(a_model_of_another_length_or_a_second_one_is_refused)
{
	const struct wire_model *m = &sound_model;
	const struct hparams *hp = &sound_hp;

	start();
	receive(m, sizeof(*m), hp, sizeof(*hp) - 1, 0);
	ck_assert(is_refused(order_model(&w, &err)));
	receive(m, sizeof(*m), hp, sizeof(*hp), 1);
	ck_assert(is_refused(order_model(&w, &err)));
	w.is_confined = 0;		/* before WIRE_CONFINE */
	receive(m, sizeof(*m), hp, sizeof(*hp), 0);
	ck_assert(is_refused(order_model(&w, &err)));
	w.is_confined = 1;
	t_ok(send_model(m, hp), &err);
	receive(m, sizeof(*m), hp, sizeof(*hp), 0);
	ck_assert(is_refused(order_model(&w, &err)));
	forget_model();
	chan_msg_done(&w.msg);
}
END_TEST

/* --- WIRE_SHARE --- */

/* Further sessions of the process, up to a number that is never reached here, so
 * that no thread starts. */
START_TEST(more_sessions_than_announced_are_refused)
{
	struct wire_share ws = { .nsessions = MAX_SESSIONS };
	struct wire_start start_order = { .version = WIRE_VERSION };

	start();
	receive(&ws, sizeof(ws), NULL, 0, 1);
	ck_assert(is_refused(order_share(&w, &err)));	/* after WIRE_START */
	w.sc.par = NULL;
	receive(&ws, sizeof(ws), NULL, 0, 0);
	ck_assert(is_refused(order_share(&w, &err)));
	receive(&ws, sizeof(ws) - 1, NULL, 0, 1);
	ck_assert(is_refused(order_share(&w, &err)));
	ws.nsessions = MAX_SESSIONS + 1;
	receive(&ws, sizeof(ws), NULL, 0, 1);
	ck_assert(is_refused(order_share(&w, &err)));
	ws.nsessions = 2;
	receive(&ws, sizeof(ws), NULL, 0, 2);
	ck_assert(is_refused(order_share(&w, &err)));
	ck_assert_uint_eq(team.nhave, 1);
	ws.nsessions = 4;
	receive(&ws, sizeof(ws), NULL, 0, 1);
	t_ok(order_share(&w, &err), &err);
	ck_assert_uint_eq(team.nhave, 2);
	ws.nsessions = 5;		/* another number */
	receive(&ws, sizeof(ws), NULL, 0, 1);
	ck_assert(is_refused(order_share(&w, &err)));
	ws.nsessions = 4;
	receive(&ws, sizeof(ws), NULL, 0, 3);
	ck_assert(is_refused(order_share(&w, &err)));
	/* Not before all are there. */
	receive(&start_order, sizeof(start_order), NULL, 0, 1);
	ck_assert(is_refused(order_start(&w, &err)));
	chan_close(&team.of[1]->chan);
	free(team.of[1]);
	chan_msg_done(&w.msg);
}
END_TEST

/* --- WIRE_EXTENTS, WIRE_FILE --- */

START_TEST(no_more_extents_than_announced)
{
	static struct extent x[4];
	struct wire_model m = sound_model;

	m.nextents = 3;
	memset(x, 'x', sizeof(x));
	start();
	receive(x, sizeof(x[0]), NULL, 0, 0);
	ck_assert(is_refused(order_extents(&w, &err)));	/* no model */
	t_ok(send_model(&m, &sound_hp), &err);
	receive(x, 4 * sizeof(x[0]), NULL, 0, 0);
	ck_assert(is_refused(order_extents(&w, &err)));
	receive(x, sizeof(x[0]) + 1, NULL, 0, 0);
	ck_assert(is_refused(order_extents(&w, &err)));
	receive(x, 2 * sizeof(x[0]), NULL, 0, 0);
	t_ok(order_extents(&w, &err), &err);
	ck_assert(!order_model_is_complete(&w));
	ck_assert_uint_eq(strlen(w.ext[1].name), EXTENT_NAME - 1);
	receive(x, 2 * sizeof(x[0]), NULL, 0, 0);
	ck_assert(is_refused(order_extents(&w, &err)));
	receive(x, sizeof(x[0]), NULL, 0, 0);
	t_ok(order_extents(&w, &err), &err);
	ck_assert(order_model_is_complete(&w));
	receive(x, sizeof(x[0]), NULL, 0, 0);
	ck_assert(is_refused(order_extents(&w, &err)));
	forget_model();
}
END_TEST

START_TEST(no_more_files_than_announced)
{
	struct wire_file wf = { .direct = 1 };
	struct wire_model m = sound_model;

	memset(wf.name, 'n', sizeof(wf.name));
	m.nfiles = 2;
	start();
	receive(&wf, sizeof(wf), NULL, 0, 2);
	ck_assert(is_refused(order_file(&w, &err)));	/* no model */
	t_ok(send_model(&m, &sound_hp), &err);
	receive(&wf, sizeof(wf), NULL, 0, 0);
	ck_assert(is_refused(order_file(&w, &err)));
	receive(&wf, sizeof(wf), NULL, 0, 1);		/* direct: two */
	ck_assert(is_refused(order_file(&w, &err)));
	receive(&wf, sizeof(wf), NULL, 0, 2);
	t_ok(order_file(&w, &err), &err);
	ck_assert_uint_eq(strlen(w.file[0].name), WIRE_FILE_NAME - 1);
	wf.direct = 0;
	receive(&wf, sizeof(wf), NULL, 0, 1);
	t_ok(order_file(&w, &err), &err);
	receive(&wf, sizeof(wf), NULL, 0, 1);
	ck_assert(is_refused(order_file(&w, &err)));
	forget_model();
	chan_msg_done(&w.msg);
}
END_TEST

/* --- WIRE_LOAD --- */

/* Order the load with rings of these slots.  Without extents the stage cannot
 * be made, so that rings that fit end in another error. */
static int
load_is_refused(int embedding, int head, uint64_t in, uint64_t out)
{
	const struct device_conf dc = { .session = "t", .par = &par,
	    .ledger = &w.ledger };
	struct wire_model m = sound_model;
	int refused;

	m.embedding = (uint32_t)embedding;
	m.head = (uint32_t)head;
	m.nextents = m.nfiles = 0;
	start();
	t_ok(send_model(&m, &sound_hp), &err);
	t_ok(device_cpu.open(&dc, &w.sc.opened, &err), &err);
	w.have_rings = 1;
	w.in.slot_bytes = (uint32_t)in;
	w.out.slot_bytes = (uint32_t)out;
	receive("", 0, NULL, 0, 0);
	memset(&err, 0, sizeof(err));
	refused = is_refused(order_load(&w, &err));
	ck_assert(refused || err.kind == ERR_MODEL);
	ck_assert_int_eq(refused, w.sc.opened != NULL);
	device_cpu.close(w.sc.opened);
	forget_model();
	return refused;
}

START_TEST(a_load_without_an_open_device_is_refused)
{
	const uint64_t body = slot_bytes(sound_model.batch_rows,
	    sound_hp.n_embd);
	struct wire_model m = sound_model;

	m.head = 0;
	m.nextents = m.nfiles = 0;
	start();
	t_ok(send_model(&m, &sound_hp), &err);
	w.have_rings = 1;
	w.in.slot_bytes = w.out.slot_bytes = (uint32_t)body;
	receive("", 0, NULL, 0, 0);
	ck_assert(is_refused(order_load(&w, &err)));
	forget_model();
}
END_TEST

/* --- WIRE_CONFINE --- */

START_TEST(a_confinement_out_of_order_is_refused)
{
	struct wire_confine wc = { .opens_device = 0 };

	start();
	receive(&wc, sizeof(wc), NULL, 0, 0);
	ck_assert(is_refused(order_confine(&w, &err)));	/* a second */
	receive("", 0, NULL, 0, 0);
	ck_assert(is_refused(order_probe(&w, &err)));
	ck_assert(is_refused(order_verify(&w, &err)));
	w.is_confined = 0;
	receive(&wc, sizeof(wc), NULL, 0, 0);		/* no verdict */
	ck_assert(is_refused(order_probe(&w, &err)));
	receive(&wc, sizeof(wc) - 1, NULL, 0, 0);
	ck_assert(is_refused(order_confine(&w, &err)));
	receive(&wc, sizeof(wc), NULL, 0, 1);
	ck_assert(is_refused(order_confine(&w, &err)));
	w.sc.par = NULL;		/* before WIRE_START */
	receive(&wc, sizeof(wc), NULL, 0, 0);
	ck_assert(is_refused(order_confine(&w, &err)));
	ck_assert(!w.is_confined);
	ck_assert(is_refused(order_verify(&w, &err)));
	chan_msg_done(&w.msg);
}
END_TEST

/* --- WIRE_PROBE --- */

static int probes, has_verdict, nshapes;

static int
note_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	(void)ret;
	probes++;
	has_verdict = dc->verdict != NULL;
	nshapes = dc->shapes == NULL ? -1 : (int)dc->shapes->nmatrices;
	return err_set(reterr, ERR_RUN, -EIO, "noted");
}

static int
send_probe(const struct wire_probe *wp)
{
	receive(wp, sizeof(*wp), NULL, 0, 0);
	return order_probe(&w, &err);
}

START_TEST(shapes_that_no_model_has_are_refused)
{
	const struct device_ops noting = { .probe = note_probe };
	struct wire_probe sound = { .has_verdict = 1, .has_shapes = 1 }, wp;
	const struct wire_probe none = { 0 };

	sound.shapes = (struct device_shapes){ .nmatrices = DEVICE_MATRICES,
	    .nnorms = 1, .ngates = 1, .eps = 1e-5f, .norm = { 256 },
	    .gate = { 1 } };
	for (unsigned i = 0; i < DEVICE_MATRICES; i++)
		sound.shapes.matrix[i] = (struct device_matrix){ 1, INT32_MAX,
		    QUANT_Q8_0 };
	start();
	w.is_confined = 0;
	w.sc.dev = &noting;
	ck_assert_int_eq(send_probe(&sound), -EIO);
	ck_assert(has_verdict);
	ck_assert_int_eq(nshapes, DEVICE_MATRICES);
	ck_assert_int_eq(send_probe(&none), -EIO);
	ck_assert(!has_verdict);
	ck_assert_int_eq(nshapes, -1);
#define REFUSED(change)	do {						\
	wp = sound;							\
	change;								\
	ck_assert_msg(is_refused(send_probe(&wp)), #change);		\
} while (0)
	REFUSED(wp.has_verdict = 2);
	REFUSED(wp.is_next = 2);
	REFUSED(wp.has_shapes = 2);
	REFUSED(wp.shapes.nmatrices = DEVICE_MATRICES + 1);
	REFUSED(wp.shapes.nmatrices = UINT32_MAX);
	REFUSED(wp.shapes.nnorms = DEVICE_NORMS + 1);
	REFUSED(wp.shapes.ngates = DEVICE_GATES + 1);
	REFUSED(wp.shapes.matrix[31].n = 0);
	REFUSED(wp.shapes.matrix[31].k = 0);
	REFUSED(wp.shapes.matrix[31].k = UINT32_C(1) << 31);
	REFUSED(wp.shapes.matrix[31].type = QUANT_NTYPES);
	REFUSED(wp.shapes.norm[0] = 0);
	REFUSED(wp.shapes.gate[0] = UINT32_MAX);
	REFUSED(wp.shapes.eps = -1);
	REFUSED(wp.shapes.eps = NAN);
	ck_assert_int_eq(probes, 2);
	receive(&sound, sizeof(sound) - 1, NULL, 0, 0);
	ck_assert(is_refused(order_probe(&w, &err)));
	receive(&sound, sizeof(sound), NULL, 0, 1);
	ck_assert(is_refused(order_probe(&w, &err)));
	chan_msg_done(&w.msg);
}
END_TEST

START_TEST(rings_that_are_too_small_for_the_stage_are_refused)
{
	const uint32_t rows = sound_model.batch_rows;
	const uint64_t ids = slot_bytes(rows, 0);
	const uint64_t body = slot_bytes(rows, sound_hp.n_embd);
	const uint64_t logits = slot_bytes(sound_model.head_rows,
	    sound_hp.n_vocab);
	static const uint64_t less[] = { 1, CACHELINE, 256 };
	unsigned i;

	ck_assert(!load_is_refused(0, 0, body, body));
	ck_assert(!load_is_refused(1, 0, ids, body));
	ck_assert(!load_is_refused(0, 1, body, logits));
	ck_assert(!load_is_refused(1, 1, ids, logits));
	ck_assert(!load_is_refused(1, 1, 2 * ids, 2 * logits));
	for (i = 0; i < NITEMS(less); i++) {
		ck_assert(load_is_refused(0, 0, body - less[i], body));
		ck_assert(load_is_refused(0, 0, body, body - less[i]));
		ck_assert(load_is_refused(1, 0, ids - less[i], body));
		ck_assert(load_is_refused(0, 1, body, logits - less[i]));
	}
	ck_assert(load_is_refused(0, 0, ids, body));
	ck_assert(load_is_refused(0, 0, body, 0));
	ck_assert(load_is_refused(0, 0, 0, body));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_model_with_impossible_numbers_is_refused,
		a_model_of_another_length_or_a_second_one_is_refused,
		more_sessions_than_announced_are_refused,
		no_more_extents_than_announced, no_more_files_than_announced,
		a_load_without_an_open_device_is_refused,
		a_confinement_out_of_order_is_refused,
		shapes_that_no_model_has_are_refused,
		rings_that_are_too_small_for_the_stage_are_refused
	};

	return t_main("orders", 60, tests, NITEMS(tests));
}
