/* coordinator/cmd_plan.c - the split and the memory table, nothing started. */
#include <errno.h>

#include "commands.h"
#include "output.h"

int
cmd_plan(const struct conf *c, struct err *reterr)
{
	struct job j;
	int rc;

	if (c->check_only) {
		conf_print(c, stdout);
		return 0;
	}
	if ((rc = job_open(&j, c, reterr)) == 0)
		rc = job_plan(&j, reterr);
	/* A plan that does not fit is shown all the same. */
	if (c->json && rc == 0)
		rc = output_json(output_sessions(&j.plan, NULL), 1, reterr);
	else if (!c->json && (rc == 0 || rc == -ENOSPC))
		output_table(stdout, &j.plan, NULL);
	job_close(&j);
	return rc;
}
