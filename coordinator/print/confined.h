/* coordinator/print/confined.h - how the workers are confined, in words.
 * Called by the engine, output and explain.  Owns nothing. */
#ifndef COORDINATOR_PRINT_CONFINED_H
#define COORDINATOR_PRINT_CONFINED_H

#include <jansson.h>

#include "coordinator/session/sessions.h"

/* Log, once all have loaded: at debug level each worker's confinement; always one
 * note if a part is missing from any of them. */
void confined_log(const struct sessions *ss);

/* Further rights of a confined worker on this kind of device: "size memory
 * that ... (emulator); ...", "" = nothing. */
void confined_rights(const char *kind, char *buf, size_t len);

/* ["emulator","dsp"] */
json_t *confined_rights_json(const char *kind);

/* {"capabilities":true,"no_new_privs":true,...}: true, or why the part is
 * missing. */
json_t *confined_json(const struct session *s);

#endif
