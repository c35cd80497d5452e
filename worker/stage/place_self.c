/* worker/stage/place_self.c - NUMA node and scheduling priority of this
 * process. */
#include "place_self.h"

#include <errno.h>
#include <numa.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "config/priority.h"

static int
bind_node(int node, struct err *reterr)
{
	struct bitmask *nodes;

	if (numa_available() < 0) {
		/* A kernel without NUMA has one node, 0. */
		if (node == 0)
			return 0;
		return err_set(reterr, ERR_USAGE, -ENODEV,
		    "node %d: this machine has no NUMA nodes", node);
	}
	if (node > numa_max_node())
		return err_set(reterr, ERR_USAGE, -ENODEV,
		    "node %d: this machine has nodes 0 to %d", node,
		    numa_max_node());
	if ((nodes = numa_allocate_nodemask()) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "node %d: no "
		    "memory for a mask of nodes", node);
	numa_bitmask_setbit(nodes, (unsigned)node);
	errno = 0;
	numa_set_membind(nodes);
	numa_free_nodemask(nodes);
	if (errno != 0 && errno != ENOSYS)
		return err_set(reterr, ERR_RUN, -errno,
		    "node %d: binding memory: %s", node, strerror(errno));
	return 0;
}

static int
set_priority(uint32_t kind, int level, struct err *reterr)
{
	struct sched_param sp = { .sched_priority = level };
	int error = 0;

	/* A process started under a nicer level than asked for keeps it: only
	 * root may lower it. */
	if (kind == PRIO_NICE && setpriority(PRIO_PROCESS, 0, level) < 0)
		error = errno;
	if (error != 0 && (level < 0 || getpriority(PRIO_PROCESS, 0) < level))
		return err_set(reterr, ERR_RUN, -error, "priority nice:%d: %s "
		    "(a negative value needs CAP_SYS_NICE or RLIMIT_NICE)",
		    level, strerror(error));
	/* Threads made later inherit the policy. */
	if (kind == PRIO_REALTIME &&
	    sched_setscheduler(0, SCHED_FIFO, &sp) < 0)
		return err_set(reterr, ERR_RUN, -errno, "priority fifo:%d: %s "
		    "(real-time needs CAP_SYS_NICE or RLIMIT_RTPRIO)", level,
		    strerror(errno));
	return 0;
}

int
place_self(const struct wire_start *ws, struct err *reterr)
{
	int rc;

	if (ws->node >= 0 && (rc = bind_node(ws->node, reterr)) < 0)
		return rc;
	return set_priority(ws->priority_kind, ws->priority_level, reterr);
}
