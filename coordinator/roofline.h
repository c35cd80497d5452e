/* coordinator/roofline.h - what the machine itself can do, measured.
 * Called by bench, in slices between its runs: shared machines drift. */
#ifndef COORDINATOR_ROOFLINE_H
#define COORDINATOR_ROOFLINE_H

#include "../config/err.h"

/* Bytes per second that n threads read together from a buffer far larger than
 * any cache; nbytes in all, taken for one slice. */
int roofline_read(unsigned nthreads, uint64_t nbytes, double *ret_bytes_s,
    struct err *reterr);

#endif
