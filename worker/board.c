/* worker/board.c - see board.h. */
#include "board.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order in which libcdsprpc.so opens them (its open_device_node()). */
static const char *const nodes[] = {
	"/dev/fastrpc-cdsp-secure", "/dev/fastrpc-cdsp", "/dev/adsprpc-smd",
};

/* Where boards keep the DSP's files: its shell, for one. */
#define DSP_FOLDERS	"/usr/lib/dsp;/usr/lib/dsp/cdsp;/usr/lib/rfsa/adsp"

/* state of the remote processor called cdsp; 0 = there is none. */
static int
cdsp_state(const char *root, char *ret, size_t len)
{
	(void)root; (void)ret; (void)len;
	return 0;
}

int
board_is_one(const char *root)
{
	char path[PATH_MAX], state[32];
	unsigned i;

	for (i = 0; i < NITEMS(nodes); i++) {
		snprintf(path, sizeof(path), "%s%s", root, nodes[i]);
		if (access(path, F_OK) == 0)
			return 1;
	}
	return cdsp_state(root, state, sizeof(state));
}

void
board_module_path(void)
{
	char value[PATH_MAX + sizeof(DSP_FOLDERS) + 1], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0 || getenv("DSP_LIBRARY_PATH") != NULL ||
	    getenv("ADSP_LIBRARY_PATH") != NULL)
		return;
	self[n] = '\0';
	if ((slash = strrchr(self, '/')) != NULL)
		*slash = '\0';
	snprintf(value, sizeof(value), "%s;" DSP_FOLDERS, self);
	setenv("DSP_LIBRARY_PATH", value, 0);
}
