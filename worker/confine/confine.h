/* worker/confine/confine.h - rights that a child gives up, in two steps.
 * Owns: the filters of system calls, made before the worker's base memory is
 * measured, and the names of the calls that they deny.  Called by
 * the worker's orders to confine and to load, and by the other children of the
 * coordinator, which have the first step only.
 *
 * The first step comes before anything of the model arrives, once the device is
 * open and the pool's threads run.  Then the process can compute, sleep, use
 * the channel and the files that it holds open, be sent others over it, map
 * memory that is not executable, and exit:
 *
 *	CONFINE_CAPS	no capability, and no thread can gain one
 *	CONFINE_PRIVS	no new privileges, whatever is executed
 *	CONFINE_DUMP	not dumpable: no core, no tracing by its own user
 *	CONFINE_FILES	Landlock: no file by name, no TCP, no signal outside
 *			(except the one that ends its own children with it)
 *	CONFINE_LOAD	seccomp: only the calls of confine/calls.c: no new
 *			socket, file by name, program, process or thread
 *
 * The second step comes after the load:
 *
 *	CONFINE_CALLS	seccomp: not the calls that only the load needs
 *
 * Each part applies to every thread of the process, or is reported with the
 * reason why it does not.  That is no error, because results do not depend on
 * it: emulators and some containers lack the last three. */
#ifndef WORKER_CONFINE_CONFINE_H
#define WORKER_CONFINE_CONFINE_H

#include "layers/par.h"
#include "shm/chan.h"
#include "shm/wire.h"

struct confine;

/* Rights of children that have no device, beside DEVICE_RIGHT_*. */
enum {
	CONFINE_RIGHT_OUTPUT = 1 << 16,	/* write at any offset of the one file
					 * on CONFINE_OUTPUT_FD */
	CONFINE_OUTPUT_FD = CHAN_FD + 1
};

/* Make the filters, with the rights of a device (config/devices.h) or those
 * above, for the child that messages call `who` ("its worker"; kept by pointer).  NULL = out of
 * memory; confine_before_load() accepts NULL and reports it. */
struct confine *confine_open(const char *who, unsigned rights);

/* The same for a worker that serves several channels. */
struct confine *confine_open_on(const char *who, unsigned rights,
    const int *channels, unsigned nchannels);

/* The calling thread reports a denied call on this channel instead of
 * CHAN_FD. */
void confine_speak_on(int chan_fd);

/* The first step, on every thread of par.  An io_uring must have restrictions,
 * because its requests bypass the filter.  A denied call is reported over the
 * channel as WIRE_ERROR, with its name, and ends the process.  ret[part]: 0 =
 * in force, else -errno. */
void confine_before_load(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS]);

/* The same for a process of one thread. */
void confine_single(struct confine *c, int32_t ret[CONFINE_NPARTS]);

/* The second step; ret is what the first reported.  No io_uring may be open. */
void confine_after_load(struct confine *c, int32_t ret[CONFINE_NPARTS]);

/* Is a filter in force?  Then this process cannot send signals. */
int confine_holds(void);

/* Accepts NULL. */
void confine_close(struct confine *c);

#endif
