/* coordinator/quantize/origin.h - which file a conversion was made from.
 * Owns: the extended attribute user.straddle.origin of a converted file.  Called
 * by cmd/quantize.c.  Does not change a byte of the file. */
#ifndef COORDINATOR_QUANTIZE_ORIGIN_H
#define COORDINATOR_QUANTIZE_ORIGIN_H

#include "layers/gguf/gguf.h"

/* Record that fd, which is written, holds a conversion of in.  A file system
 * without extended attributes, or without times of birth, records nothing. */
void origin_record(int fd, const struct gguf *in);

/* Is the file at path a conversion of an earlier state of in, unchanged since
 * it was written?  Then nothing is lost that in can still give. */
int origin_is_outdated(const char *path, const struct gguf *in);

#endif
