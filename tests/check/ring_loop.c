/* tests/check/ring_loop.c - one message round a loop of processes, through rings.
 *
 *	ring_loop [--kill] PROCESSES MESSAGES SEED
 *
 * Process i takes from ring i and gives to ring i + 1; process 0 starts each
 * message and checks what comes back before it starts the next.  Every process
 * checks the number, the hop and the contents of every message.  With --kill,
 * one process dies by SIGKILL at a step drawn from the seed: before it takes,
 * with the next slot half written, or before it gives the old slot back.  All
 * others must end up waiting for what no longer comes, and say so.  Exit 0 if
 * that, or without --kill the full number of rounds, is what happened. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ring.h"

enum { MAX_PROCS = 256, NSLOTS = 2, NWORDS = 500 };
enum { EXIT_DONE = 0, EXIT_WRONG = 1, EXIT_NOTICED = 10 };

/* After so long a survivor asks whether somebody is dead; while nobody is, it
 * waits on, for how long a neighbour may take is the machine's business.  The
 * tests have a limit of their own for one that waits for ever. */
#define DEADLINE_NS	UINT64_C(500000000)
#define SLOT_BYTES	4096u

enum moment { BEFORE_TAKE, MID_SLOT, BEFORE_RELEASE, NMOMENTS };

struct message {
	uint64_t number;	/* of the round */
	uint64_t hop;		/* process that must take it; nprocs = home */
	uint64_t words[NWORDS];
};
_Static_assert(sizeof(struct message) <= SLOT_BYTES, "a message is a slot");

static struct {
	unsigned nprocs;
	uint64_t nmessages, seed;
	int kill;
	unsigned victim;	/* these four drawn from the seed */
	uint64_t kill_number;
	enum moment kill_moment;
	uint32_t spin_ns;
	_Atomic uint32_t *dead;	/* shared by all: the victim is at its end */
} run;

/* splitmix64 (Steele, Lea, Flood 2014): a number's own random number. */
static uint64_t
mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint64_t
word_of(uint64_t number, unsigned i)
{
	return mix(run.seed ^ (number * NWORDS + i));
}

static void
die_if_now(unsigned self, uint64_t number, enum moment moment)
{
	if (run.kill && self == run.victim && number == run.kill_number &&
	    moment == run.kill_moment) {
		atomic_store(run.dead, 1);
		kill(getpid(), SIGKILL);
	}
}

/* The end of a survivor: rc says why it could not go on. */
static void
give_up(unsigned self, const char *what, uint64_t number, int rc)
{
	fprintf(stderr, "process %u: %s in round %" PRIu64 ": %s\n", self,
	    what, number, strerror(-rc));
	_exit(rc == -ETIMEDOUT ? EXIT_NOTICED : EXIT_WRONG);
}

typedef int wait_fn(struct ring *r, uint64_t deadline_ns);

static int
wait_while_all_live(wait_fn *wait, struct ring *r)
{
	int rc;

	do {
		rc = wait(r, event_now_ns() + DEADLINE_NS);
	} while (rc == -ETIMEDOUT && atomic_load(run.dead) == 0);
	return rc;
}

static void
put(struct ring *out, unsigned self, uint64_t number)
{
	struct message *m;
	unsigned i;
	int rc;

	if ((rc = wait_while_all_live(ring_wait_room_spsc, out)) < 0)
		give_up(self, "no room", number, rc);
	if ((m = ring_reserve_spsc(out)) == NULL)
		give_up(self, "no slot", number, -EPROTO);
	m->number = number;
	m->hop = self + 1;
	for (i = 0; i < NWORDS; i++) {
		if (i == NWORDS / 2)
			die_if_now(self, number, MID_SLOT);
		m->words[i] = word_of(number, i);
	}
	ring_commit_spsc(out);
}

static void
check(const struct message *m, unsigned self, uint64_t number)
{
	uint64_t hop = self == 0 ? run.nprocs : self;
	unsigned i;

	if (m->number != number || m->hop != hop)
		give_up(self, "another message", number, -EBADMSG);
	for (i = 0; i < NWORDS; i++)
		if (m->words[i] != word_of(number, i))
			give_up(self, "other contents", number, -EBADMSG);
}

static const struct message *
get(struct ring *in, unsigned self, uint64_t number)
{
	const struct message *m;
	int rc;

	die_if_now(self, number, BEFORE_TAKE);
	if ((rc = wait_while_all_live(ring_wait_data_spsc, in)) < 0)
		give_up(self, "no message", number, rc);
	if ((m = ring_peek_spsc(in)) == NULL)
		give_up(self, "no slot", number, -EPROTO);
	check(m, self, number);
	return m;
}

static void
process_main(unsigned self, struct ring *in, struct ring *out)
{
	uint64_t number;

	in->spin_ns = out->spin_ns = run.spin_ns;
	for (number = 0; number < run.nmessages; number++) {
		if (self == 0)
			put(out, self, number);
		get(in, self, number);
		if (self != 0)
			put(out, self, number);
		die_if_now(self, number, BEFORE_RELEASE);
		ring_release_spsc(in);
	}
	_exit(EXIT_DONE);
}

static pid_t
start_process(unsigned self, const struct region *rings)
{
	struct ring in, out;
	struct err e;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (ring_attach(rings[self].fd, RING_SIDE_CONSUMER, NSLOTS,
	    SLOT_BYTES, &in, &e) < 0 ||
	    ring_attach(dup(rings[(self + 1) % run.nprocs].fd),
	    RING_SIDE_PRODUCER, NSLOTS, SLOT_BYTES, &out, &e) < 0) {
		fprintf(stderr, "process %u: %s\n", self, e.msg);
		_exit(EXIT_WRONG);
	}
	process_main(self, &in, &out);
	return 0;
}

/* Did process self end as it should? */
static int
ended_well(unsigned self, int status)
{
	if (run.kill && self == run.victim)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && WEXITSTATUS(status) ==
	    (run.kill ? EXIT_NOTICED : EXIT_DONE);
}

static int
reap(const pid_t *pids)
{
	unsigned i, nbad = 0;
	int status;

	for (i = 0; i < run.nprocs; i++) {
		if (waitpid(pids[i], &status, 0) == pids[i] &&
		    ended_well(i, status))
			continue;
		fprintf(stderr, "process %u: ended with status %#x\n", i,
		    (unsigned)status);
		nbad++;
	}
	if (run.kill)
		printf("process %u killed in round %" PRIu64 ", %u of %u "
		    "survivors noticed\n", run.victim, run.kill_number,
		    run.nprocs - 1 - MIN(nbad, run.nprocs - 1),
		    run.nprocs - 1);
	else
		printf("%" PRIu64 " rounds of %u processes: %s\n",
		    run.nmessages, run.nprocs, nbad ? "FAILED" : "all whole "
		    "and in order");
	return nbad ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int
usage(void)
{
	fprintf(stderr, "usage: ring_loop [--kill] PROCESSES (1..%d) "
	    "MESSAGES (1 or more; with --kill 3) SEED\n", MAX_PROCS);
	return 2;
}

/* A victim that dies with its message handed over lets that round end and the
 * next one reach the processes before it, who are done if that was the last:
 * the kill comes two rounds before the end, so that every survivor still has
 * something to wait for. */
static int
parse(int argc, char **argv)
{
	run.kill = argc > 1 && strcmp(argv[1], "--kill") == 0;
	argv += run.kill;
	if (argc - run.kill != 4)
		return -EINVAL;
	run.nprocs = (unsigned)strtoul(argv[1], NULL, 0);
	run.nmessages = strtoull(argv[2], NULL, 0);
	run.seed = strtoull(argv[3], NULL, 0);
	if (run.nprocs < 1 || run.nprocs > MAX_PROCS ||
	    run.nmessages < (run.kill ? 3 : 1))
		return -EINVAL;
	run.victim = (unsigned)(mix(run.seed + 1) % run.nprocs);
	run.kill_number = run.kill ? mix(run.seed + 2) % (run.nmessages - 2) :
	    0;
	run.kill_moment = mix(run.seed + 3) % NMOMENTS;
	run.spin_ns = mix(run.seed + 4) % 2 ? 0 : 3000;
	return 0;
}

int
main(int argc, char **argv)
{
	struct region rings[MAX_PROCS];
	pid_t pids[MAX_PROCS];
	struct err e;
	unsigned i;
	int rc;

	if (parse(argc, argv) < 0)
		return usage();
	run.dead = mmap(NULL, sizeof(*run.dead), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run.dead == MAP_FAILED) {
		perror("ring_loop: mmap");
		return EXIT_FAILURE;
	}
	for (i = 0; i < run.nprocs; i++) {
		if (ring_create("loop", NSLOTS, SLOT_BYTES, &rings[i],
		    &e) < 0) {
			fprintf(stderr, "ring_loop: %s\n", e.msg);
			return EXIT_FAILURE;
		}
	}
	for (i = 0; i < run.nprocs; i++)
		pids[i] = start_process(i, rings);
	rc = reap(pids);
	for (i = 0; i < run.nprocs; i++)
		region_close(&rings[i]);
	return rc;
}
