/* worker/board.h - what a board with a Qualcomm DSP has, and what stands in
 * the way of using it.
 * Owns: nothing.  Called by the fastrpc port and the probe; reads files only.
 * root is BOARD_ROOT but for tests. */
#ifndef WORKER_BOARD_H
#define WORKER_BOARD_H

#include "device.h"

#define BOARD_ROOT	""

/* 1: a DSP's device node or remote processor is there. */
int board_is_one(const char *root);

/* Our module is looked for in the folders of DSP_LIBRARY_PATH: where nobody
 * has set it, that is the program's own folder, then the usual ones. */
void board_module_path(void);

/* Everything that a session needs, one after the other, each with the remedy
 * when it is not so. */
void board_look(const char *root, struct device_probe *ret);

#endif
