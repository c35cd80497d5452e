/* coordinator/engine/own.c - the coordinator's own cap, and its row. */
#include "own.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/own_cap.h"
#include "config/units.h"
#include "coordinator/print/source.h"

/* bench reads a buffer of at most 1 GiB (bench/roofline_read.c) with a thread per
 * core. */
static uint64_t
bench_bytes(void)
{
	struct rlimit stack;
	uint64_t each = 8 * MIB;

	if (getrlimit(RLIMIT_STACK, &stack) == 0 &&
	    stack.rlim_cur != RLIM_INFINITY)
		each = stack.rlim_cur;
	return GIB + 16 * MIB + (uint64_t)sysconf(_SC_NPROCESSORS_CONF) * each;
}

static uint64_t
command_bytes(const struct conf *c)
{
	if (c->cmd == CMD_BENCH)
		return bench_bytes();
	/* Logits of whole works. */
	return c->cmd == CMD_STRESS ? 64 * MIB : 0;
}

/* Results that wait for one before them; a file of /load as JSON. */
static uint64_t
spare_bytes(const struct conf *c)
{
	return c->prompts_file != NULL ? 64 * MIB :
	    c->cmd == CMD_CHAT ? 16 * MIB : 0;
}

static int
refuse_cap(const struct own *o, const struct conf *c, const struct plan *p,
    struct err *reterr)
{
	char cap[UNITS_BYTES_LEN], least[UNITS_BYTES_LEN];

	return err_set(reterr, ERR_FIT, -ENOSPC, "the coordinator needs %s "
	    "for this model, a context of %u tokens and %u sequence%s; its "
	    "cap is %s: raise --coordinator-cap, or leave it out",
	    units_human_bytes(own_least(&o->need), least), p->ctx_tok,
	    p->nseqs, p->nseqs == 1 ? "" : "s",
	    units_human_bytes(c->coordinator_cap_bytes, cap));
}

/* Tokens that the penalty looks at, as engine/decoder.c limits them. */
static uint32_t
window_of(const struct conf *c, const struct plan *p)
{
	const int n = c->sampling.repeat_last_n;

	return c->sampling.repeat_penalty == 1 ? 0 : n < 0 ? p->ctx_tok + 1 :
	    MIN((uint32_t)n, p->ctx_tok + 1);
}

int
own_open(struct own *o, const struct conf *c, const struct plan *p,
    struct err *reterr)
{
	const uint64_t given = c->coordinator_cap_bytes;
	uint64_t most, cap;
	const struct own_input in = { .base_bytes = own_cap_used(&most),
	    .command_bytes = command_bytes(c),
	    .spare_bytes = spare_bytes(c),
	    .text_bytes = c->cmd == CMD_EVAL ? SOURCE_TEXT_BYTES : 0,
	    .window_tok = window_of(c, p) };

	own_need(&in, p, &o->need);
	/* A peak of before shall not seem to exceed the cap. */
	cap = given > 0 ? given : MAX(o->need.total_bytes,
	    ALIGN_UP(most, MIB));
	o->text_bytes = own_text_within(&o->need, cap);
	if (o->text_bytes == 0)
		return refuse_cap(o, c, p, reterr);
	if (given == 0)		/* a text leaves the spare memory alone */
		o->text_bytes = MIN(o->text_bytes, o->need.text_bytes /
		    OWN_TEXT_FACTOR);
	return own_cap_set(cap, o->need.rings_bytes, reterr);
}

/* In no group with a limit of its own. */
static void
add_row(const char *role, pid_t pid, uint64_t planned_bytes,
    struct process_list *l)
{
	const struct own_cap *cap = own_cap();
	struct enforce e = { .by = cap->limit_bytes != UINT64_MAX ?
	    ENFORCE_RLIMIT : ENFORCE_LEDGER,
	    .limit_bytes = cap->limit_bytes, .group = CGROUP_INIT };

	strlcpy(e.why, cap->why, sizeof(e.why));
	process_add(l, role, pid, cap->cap_bytes, planned_bytes, &e);
}

void
own_add_row(const struct own *o, int started, struct process_list *l)
{
	add_row("coordinator", started ? getpid() : 0, o->need.total_bytes, l);
}

void
own_add_keeper(pid_t pid, struct process_list *l)
{
	add_row("keeper", pid, 0, l);
}
