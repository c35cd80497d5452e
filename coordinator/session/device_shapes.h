/* coordinator/session/device_shapes.h - the shapes of a model that a device may try
 * before it computes them.
 * Owns: nothing.  Called by the engine before devices are probed. */
#ifndef COORDINATOR_SESSION_DEVICE_SHAPES_H
#define COORDINATOR_SESSION_DEVICE_SHAPES_H

#include "layers/model.h"
#include "shm/layout.h"

/* Fill ret: matrices that a device may multiply by, columns of norms of whole rows and
 * of SwiGLU; each once, the first that fit. */
void device_shapes_of(const struct model *m, struct device_shapes *ret);

#endif
