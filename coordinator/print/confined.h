/* coordinator/print/confined.h - how the workers are confined, in words.
 * Called by the engine, output, explain and quantize.  Owns nothing. */
#ifndef COORDINATOR_PRINT_CONFINED_H
#define COORDINATOR_PRINT_CONFINED_H

#include <jansson.h>

#include "coordinator/session/sessions.h"

/* Log, once all have loaded: at debug level each worker's confinement; always one
 * note if a part is missing from any of them. */
void confined_log(const struct sessions *ss);

/* The same for a child that is of no session, at debug level only; may: what it
 * may do beyond other children. */
void confined_log_child(const char *who, const int32_t held[CONFINE_NPARTS],
    const char *may);

/* Further rights of a confined worker on this kind of device: "size memory
 * that ... (emulator); ...", "" = nothing. */
void confined_rights(const char *kind, char *buf, size_t len);

/* ["emulator","dsp"] */
json_t *confined_rights_json(const char *kind);

/* {"capabilities":true,"no_new_privs":true,...}: true, or why the part is
 * missing. */
json_t *confined_json(const struct session *s);

#endif
