/* config/roles.c - how a child of the coordinator begins. */
#include "roles.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <bsd/unistd.h>

#include "log.h"

void
role_begin(const char *log_name, int last_fd)
{
	log_init(log_name, 0);
	/* Executed through a descriptor, the process is named after its
	 * number. */
	prctl(PR_SET_NAME, "straddle");
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	closefrom(last_fd + 1);
	/* The coordinator shows whole lines, also those of a library. */
	setlinebuf(stdout);
}
