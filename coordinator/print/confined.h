/* coordinator/print/confined.h - how the workers are confined, in words.
 * Called by the engine and output.  Owns nothing. */
#ifndef COORDINATOR_PRINT_CONFINED_H
#define COORDINATOR_PRINT_CONFINED_H

#include <jansson.h>

#include "coordinator/session/sessions.h"

/* Log, once all have loaded: at debug level each worker's confinement; always one
 * note if a part is missing from any of them. */
void confined_log(const struct sessions *ss);

/* {"capabilities":true,"no_new_privs":true,...}: true, or why the part is
 * missing. */
json_t *confined_json(const struct session *s);

#endif
