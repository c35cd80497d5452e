/* tests/support/make_model.c - see make_model.h. */
#include "make_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "t.h"

/* The tool is below the folder of the program: build/tests/tools/mkgguf for
 * build/straddle.  RUN, if set, is an emulator to run it with. */
void
make_model(const char *options, const char *out)
{
	const char *bin = t_bin(), *slash = strrchr(bin, '/');
	const char *run = getenv("RUN");
	char cmd[2048];
	int rc;

	snprintf(cmd, sizeof(cmd), "%s %.*s/tests/tools/mkgguf %s %s > %s.log",
	    run ? run : "", slash ? (int)(slash - bin) : 1,
	    slash ? bin : ".", options, out, out);
	rc = system(cmd);
	ck_assert_msg(WIFEXITED(rc) && WEXITSTATUS(rc) == 0, "%s", cmd);
}
