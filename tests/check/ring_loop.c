/* tests/check/ring_loop.c - passes messages around a loop of processes, through rings.
 *
 *	ring_loop [--kill] PROCESSES MESSAGES SEED
 *
 * Process i reads from ring i and writes to ring i + 1; process 0 starts each message
 * and checks it when it comes back, before it starts the next.  Every process checks
 * the number, the hop and the contents of every message.  With --kill, one process
 * dies by SIGKILL at a step drawn from the seed: before it reads a slot, with the next
 * slot half written, or before it releases the old slot.  All others must then time
 * out and report it.  Exits with 0 if they did or, without --kill, if all rounds were
 * complete. */
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
enum { EXIT_DONE = 0, EXIT_WRONG = 1, EXIT_TIMED_OUT = 10 };

/* After this time a waiting process checks whether the victim has died; if not, it
 * waits on, because a neighbour may be slow on a busy machine.  tests/run.sh limits
 * the time of a process that waits forever. */
#define DEADLINE_NS	UINT64_C(500000000)
#define SLOT_BYTES	4096u

enum moment { BEFORE_READ, MID_SLOT, BEFORE_RELEASE, NMOMENTS };

struct message {
	uint64_t number;	/* of the round */
	uint64_t hop;		/* its reader's number; nprocs = back at process 0 */
	uint64_t words[NWORDS];
};
_Static_assert(sizeof(struct message) <= SLOT_BYTES, "a slot holds a message");

static struct {
	unsigned nprocs;
	uint64_t nmessages, seed;
	int kill;
	unsigned victim;	/* these four drawn from the seed */
	uint64_t kill_number;
	enum moment kill_moment;
	uint32_t spin_ns;
	_Atomic uint32_t *dead;	/* shared memory: the victim is about to die */
} run;

/* splitmix64 (Steele, Lea, Flood 2014): a hash of x. */
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
die_if_due(unsigned self, uint64_t number, enum moment moment)
{
	if (run.kill && self == run.victim && number == run.kill_number &&
	    moment == run.kill_moment) {
		atomic_store(run.dead, 1);
		kill(getpid(), SIGKILL);
	}
}

/* Print the error rc of this process and exit. */
static void
exit_with(unsigned self, const char *error, uint64_t number, int rc)
{
	fprintf(stderr, "process %u: %s in round %" PRIu64 ": %s\n", self,
	    error, number, strerror(-rc));
	_exit(rc == -ETIMEDOUT ? EXIT_TIMED_OUT : EXIT_WRONG);
}

typedef int wait_fn(struct ring *r, uint64_t deadline_ns);

/* Wait until the ring is ready, or the wait times out and the victim has died. */
static int
wait_on_ring(wait_fn *wait, struct ring *r)
{
	int rc;

	do {
		rc = wait(r, event_now_ns() + DEADLINE_NS);
	} while (rc == -ETIMEDOUT && atomic_load(run.dead) == 0);
	return rc;
}

static void
send_message(struct ring *out, unsigned self, uint64_t number)
{
	struct message *m;
	unsigned i;
	int rc;

	if ((rc = wait_on_ring(ring_wait_room_spsc, out)) < 0)
		exit_with(self, "no room", number, rc);
	if ((m = ring_reserve_spsc(out)) == NULL)
		exit_with(self, "no slot", number, -EPROTO);
	m->number = number;
	m->hop = self + 1;
	for (i = 0; i < NWORDS; i++) {
		if (i == NWORDS / 2)
			die_if_due(self, number, MID_SLOT);
		m->words[i] = word_of(number, i);
	}
	ring_commit_spsc(out);
}

static void
check_message(const struct message *m, unsigned self, uint64_t number)
{
	uint64_t hop = self == 0 ? run.nprocs : self;
	unsigned i;

	if (m->number != number || m->hop != hop)
		exit_with(self, "the wrong message", number, -EBADMSG);
	for (i = 0; i < NWORDS; i++)
		if (m->words[i] != word_of(number, i))
			exit_with(self, "wrong contents", number, -EBADMSG);
}

static const struct message *
receive_message(struct ring *in, unsigned self, uint64_t number)
{
	const struct message *m;
	int rc;

	die_if_due(self, number, BEFORE_READ);
	if ((rc = wait_on_ring(ring_wait_data_spsc, in)) < 0)
		exit_with(self, "no message", number, rc);
	if ((m = ring_peek_spsc(in)) == NULL)
		exit_with(self, "no slot", number, -EPROTO);
	check_message(m, self, number);
	return m;
}

static void
process_main(unsigned self, struct ring *in, struct ring *out)
{
	uint64_t number;

	in->spin_ns = out->spin_ns = run.spin_ns;
	for (number = 0; number < run.nmessages; number++) {
		if (self == 0)
			send_message(out, self, number);
		receive_message(in, self, number);
		if (self != 0)
			send_message(out, self, number);
		die_if_due(self, number, BEFORE_RELEASE);
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

/* The process ended as expected. */
static int
is_expected_end(unsigned self, int status)
{
	if (run.kill && self == run.victim)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && WEXITSTATUS(status) ==
	    (run.kill ? EXIT_TIMED_OUT : EXIT_DONE);
}

/* Wait for all processes and print a summary; returns the exit status. */
static int
wait_for_all(const pid_t *pids)
{
	unsigned i, nbad = 0;
	int status;

	for (i = 0; i < run.nprocs; i++) {
		if (waitpid(pids[i], &status, 0) == pids[i] &&
		    is_expected_end(i, status))
			continue;
		fprintf(stderr, "process %u: ended with status %#x\n", i,
		    (unsigned)status);
		nbad++;
	}
	if (run.kill)
		printf("process %u killed in round %" PRIu64 ", %u of %u "
		    "survivors timed out\n", run.victim, run.kill_number,
		    run.nprocs - 1 - MIN(nbad, run.nprocs - 1),
		    run.nprocs - 1);
	else
		printf("%" PRIu64 " rounds of %u processes: %s\n",
		    run.nmessages, run.nprocs, nbad ? "FAILED" : "all complete "
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

/* The kill comes at least two rounds before the last.  If the victim dies after it has
 * passed its message on, that round still completes, and the next one reaches the
 * processes before the victim; each survivor must have a later message to wait for. */
static int
parse_args(int argc, char **argv)
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

	if (parse_args(argc, argv) < 0)
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
	rc = wait_for_all(pids);
	for (i = 0; i < run.nprocs; i++)
		region_close(&rings[i]);
	return rc;
}
