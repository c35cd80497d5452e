/* worker/ascend/board.h - checks what CANN needs on a machine.
 * Owns: nothing.  Called by the device's probe; reads files and the environment,
 * and calls no library. */
#ifndef WORKER_ASCEND_BOARD_H
#define WORKER_ASCEND_BOARD_H

#include "lib.h"
#include "worker/device.h"

/* Where the driver tells its version, and where the package of operators has its
 * binaries, one folder for each series of processors. */
#define BOARD_DRIVER	"/usr/local/Ascend/driver/version.info"
#define BOARD_KERNELS	"built-in/op_impl/ai_core/tbe/kernel"

/* Add checks of the environment, the driver and the nodes below root ("" = this
 * machine).  soc: "Ascend310B1", or "" where no library could be asked: then the
 * package of operators is not looked for. */
void board_check(const char *root, const char *soc, unsigned number,
    struct device_probe *ret);

/* The folder of a processor's kernels in the package of operators: "ascend310b".
 * The series, not its variants: Ascend310B1 to B4 share one. */
void board_kernels_name(const char *soc, char *ret, size_t len);

#endif
