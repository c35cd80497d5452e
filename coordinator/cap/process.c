/* coordinator/cap/process.c - fills the rows of the processes that are no
 * sessions. */
#include "process.h"

#include <bsd/string.h>

#include "config/meminfo.h"

/* VmHWM + VmPTE; 0 = the process has gone, or /proc does not say. */
static uint64_t
hwm_bytes(pid_t pid)
{
	uint64_t hwm = 0, pte = 0;

	if (meminfo_read_process((int)pid, "VmHWM", &hwm) < 0)
		return 0;
	meminfo_read_process((int)pid, "VmPTE", &pte);
	return hwm + pte;
}

void
process_add(struct process_list *l, const char *role, pid_t pid,
    uint64_t cap_bytes, uint64_t planned_bytes, const struct enforce *e)
{
	struct process *p;

	if (l->n == PROCESS_MAX)
		return;
	p = &l->row[l->n++];
	*p = (struct process){ .pid = pid, .cap_bytes = cap_bytes,
	    .planned_bytes = planned_bytes, .enforced_by = "none",
	    .limit_bytes = UINT64_MAX };
	strlcpy(p->role, role, sizeof(p->role));
	if (e != NULL) {
		/* A process has no ledger of its own. */
		if (e->by != ENFORCE_LEDGER)
			p->enforced_by = enforce_name(e);
		p->limit_bytes = e->limit_bytes;
		strlcpy(p->why, e->why, sizeof(p->why));
	}
	if (pid == 0)
		return;
	enforce_read_peak(e, hwm_bytes(pid), &p->peak);
	if (p->peak.nbytes == 0)
		p->peak.from = NULL;
}
