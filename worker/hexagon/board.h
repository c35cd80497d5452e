/* worker/hexagon/board.h - what a board with a Qualcomm DSP has, and what
 * stands in the way of using it.  Owns: nothing.  Called by the fastrpc port
 * and the probe; reads files only.  root is BOARD_ROOT but for tests. */
#ifndef WORKER_HEXAGON_BOARD_H
#define WORKER_HEXAGON_BOARD_H

#include <sys/types.h>

#include "worker/device.h"

#define BOARD_ROOT	""

/* 1: a DSP's device node or remote processor is there. */
int board_is_one(const char *root);

/* Our module is looked for in the folders of DSP_LIBRARY_PATH: where nobody
 * has set it, that is the program's own folder, then the usual ones. */
void board_module_path(void);

/* Who is to open the nodes; NULL instead: this process. */
struct board_user {
	uid_t uid;
	unsigned ngids;
	gid_t gid[64];
};

/* Everything that a session needs, one after the other, each with the remedy
 * when it is not so; where there is no board, that alone. */
void board_look(const char *root, const struct board_user *user,
    struct device_probe *ret);

#endif
