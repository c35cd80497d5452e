/* worker/rknpu/memo.c - see memo.h. */
#include "memo.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

#define MAGIC	0x4d55504eu	/* "NPUM" */

/* Memos of this process, for its last moment. */
static struct npu_memo *_Atomic noted[RKNN_DOMAINS];

static void
blame_all(void)
{
	unsigned i;
	struct npu_memo *m;

	for (i = 0; i < RKNN_DOMAINS; i++)
		if ((m = noted[i]) != NULL)
			m->blamed = 1;
}

/* The signal's usual effect follows: of the library's abort(), or of the fault
 * that occurs again. */
static void
on_signal(int sig)
{
	(void)sig;
	blame_all();
}

static void
note_end(void)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGILL,
	    SIGFPE };
	static _Atomic int is_set;
	struct sigaction sa = { .sa_handler = on_signal,
	    .sa_flags = (int)SA_RESETHAND }, old;
	unsigned i;

	if (is_set++)
		return;
	for (i = 0; i < NITEMS(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &sa, NULL);
	(void)atexit(blame_all);
}

static int
is_same(struct npu_shape a, struct npu_shape b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

int
npu_memo_is_lost(const struct npu_memo *m, struct npu_shape s)
{
	unsigned i;

	for (i = 0; i < MIN(m->nlost, (uint32_t)NPU_MEMO_LOST); i++)
		if (is_same(m->lost[i], s))
			return 1;
	return m->nlost >= NPU_MEMO_LOST;
}

struct npu_memo *
npu_memo_open(void *memo, size_t nbytes, unsigned *ret_new)
{
	struct npu_memo *m = memo;
	unsigned i;

	_Static_assert(sizeof(*m) <= 256, "the memo of a device");
	*ret_new = 0;
	if (m == NULL || nbytes < sizeof(*m))
		return NULL;
	if (m->magic != MAGIC || m->nlost > NPU_MEMO_LOST)
		memset(m, 0, sizeof(*m));
	m->magic = MAGIC;
	for (i = 0; i < NPU_CORES; i++) {
		if (m->blamed && is_same(m->busy[i], NPU_SHAPE_ALL)) {
			m->nlost = NPU_MEMO_LOST;
			(*ret_new)++;
		} else if (m->blamed && m->busy[i].m != 0 && m->nlost <
		    NPU_MEMO_LOST && !npu_memo_is_lost(m, m->busy[i])) {
			m->lost[m->nlost++] = m->busy[i];
			(*ret_new)++;
		}
		m->busy[i].m = 0;
	}
	m->blamed = 0;
	note_end();
	for (i = 0; i < RKNN_DOMAINS; i++) {
		struct npu_memo *none = NULL;

		if (atomic_compare_exchange_strong(&noted[i], &none, m))
			break;
	}
	return m;
}

void
npu_memo_close(struct npu_memo *m)
{
	unsigned i;

	for (i = 0; m != NULL && i < RKNN_DOMAINS; i++)
		if (noted[i] == m)
			noted[i] = NULL;
}

void
npu_memo_begin(struct npu_memo *m, unsigned core, struct npu_shape s)
{
	if (m != NULL)
		m->busy[core] = s;
}

void
npu_memo_end(struct npu_memo *m, unsigned core)
{
	if (m != NULL)
		m->busy[core].m = 0;
}

void
npu_memo_blame(struct npu_memo *m, int blame)
{
	if (m != NULL)
		m->blamed = blame != 0;
}
