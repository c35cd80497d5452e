/* worker/hexagon/board.h - checks the requirements of a board with a Qualcomm
 * DSP.
 * Owns: nothing.  Called by the fastrpc port and the probe; reads files only.
 * root is BOARD_ROOT except in tests. */
#ifndef WORKER_HEXAGON_BOARD_H
#define WORKER_HEXAGON_BOARD_H

#include <sys/types.h>

#include "worker/device.h"

#define BOARD_ROOT	""

/* 1 = this machine has a DSP's device node or remote processor. */
int board_is_one(const char *root);

/* Set DSP_LIBRARY_PATH, where FastRPC looks for our module, unless the user
 * did: the program's folder, ../lib/straddle from there, then the usual ones. */
void board_module_path(void);

/* The user who opens the nodes; NULL in its place = this process. */
struct board_user {
	uid_t uid;
	unsigned ngids;
	gid_t gid[64];
};

/* Check everything that a session needs, each with a remedy when it is missing.
 * Without a board, say that only. */
void board_look(const char *root, const struct board_user *user,
    struct device_probe *ret);

#endif
