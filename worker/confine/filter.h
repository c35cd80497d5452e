/* worker/confine/filter.h - the seccomp filter as a value.
 * Owns: struct confine.  calls.c makes it from its list of allowed calls,
 * confine.c puts it in force; included by those two only. */
#ifndef WORKER_CONFINE_FILTER_H
#define WORKER_CONFINE_FILTER_H

#include <linux/filter.h>

/* A call beyond this number is denied like the others, and has no name. */
enum { CONFINE_CALLS_NAMED = 512, CONFINE_NAMES_BYTES = 16 * 1024 };

enum confine_step { CONFINE_BEFORE_LOAD, CONFINE_AFTER_LOAD, CONFINE_NSTEPS };

struct confine {
	struct {
		struct sock_filter *filter;	/* [n]; NULL: not made */
		unsigned short n;
	} step[CONFINE_NSTEPS];
	int error;			/* why not: -errno */
	const char *who;		/* "its worker" */
	const char *when;		/* of the step in force, in words */
	/* [call number]: offset of its name in names, 0 = none. */
	unsigned short name[CONFINE_CALLS_NAMED];
	char names[CONFINE_NAMES_BYTES];
};

/* Make the program that allows the calls a worker needs from this step on, with
 * these rights and channels (confine.h), and traps all others; -errno. */
int confine_filter(enum confine_step step, unsigned rights,
    const int *channels, unsigned nchannels, struct sock_filter **ret,
    unsigned short *ret_n);

/* Look up the names of all calls, while allocations are still allowed. */
void confine_names(struct confine *c);

#endif
