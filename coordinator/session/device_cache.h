/* coordinator/session/device_cache.h - keeps what devices tried, so that the next
 * start need not.
 * Owns: the files $XDG_CACHE_HOME/straddle/devices/KIND (~/.cache without that
 * variable), each with one struct device_verdict, which all devices of the kind share:
 * two that choose by times must not choose differently.  Called by the probes of
 * devices, and when a session is lost.  Does not know what is in a verdict: the
 * worker checks its key and its bounds.
 *
 * A file may be damaged, or of anyone: it is read as bytes of one length with a
 * checksum, and only if no other user can write it.  Nothing here is an error of
 * the command: without a file the device tries again, and -v says why.  The files
 * may be removed at any time. */
#ifndef COORDINATOR_SESSION_DEVICE_CACHE_H
#define COORDINATOR_SESSION_DEVICE_CACHE_H

#include "shm/wire.h"

enum { DEVICE_CACHE_TEXT = 320 };

/* A file's bytes.  Fixed widths; read by the machine that wrote it. */
struct device_record {
	char magic[8];			/* DEVICE_RECORD */
	uint64_t made_s;		/* seconds since 1970 */
	char kind[MAX_NAME];
	struct device_verdict verdict;
	uint64_t sum;			/* of all bytes before it */
};
#define DEVICE_RECORD	"STRVERD2"

/* Fill in magic, kind and sum. */
void device_record_seal(struct device_record *r, const char *kind);
/* NULL: bytes[n] is the record of this kind, and texts in it end.  Otherwise what is
 * wrong. */
const char *device_record_check(const void *bytes, size_t n,
    const char *kind);

/* The verdict of an earlier probe: the file's, or one that this process could not
 * keep.  1, or 0 = none. */
int device_cache_read(const char *kind, struct device_verdict *ret);

/* Take a probe's answer, keep a new verdict, and say where it came from. */
void device_cache_note(const char *kind, const struct wire_verdict *wv,
    char ret[DEVICE_CACHE_TEXT]);

/* A session on a device failed: remove its verdict, if this process used one.
 * is_opening: it had not loaded yet, and the user is told to start again. */
void device_cache_forget(const char *kind, int is_opening);

#endif
