/* worker/confine/filter.h - the filter, between the list of what it allows and
 * the code that puts it in force.  Included by confine*.c only. */
#ifndef WORKER_CONFINE_FILTER_H
#define WORKER_CONFINE_FILTER_H

#include <linux/filter.h>

/* A call beyond this number is denied like the others, and has no name. */
enum { CONFINE_CALLS_NAMED = 512, CONFINE_NAMES_BYTES = 16 * 1024 };

struct confine {
	struct sock_filter *filter;	/* [nfilter]; NULL: not made */
	unsigned short nfilter;
	int error;			/* why not: -errno */
	/* Of every call of this machine: a name in names, 0 = none. */
	unsigned short name[CONFINE_CALLS_NAMED];
	char names[CONFINE_NAMES_BYTES];
};

/* The program that allows what a worker needs and traps all else; -errno. */
int confine_filter(struct sock_filter **ret, unsigned short *ret_n);

/* Look the names of all calls up, while there may be allocations. */
void confine_names(struct confine *c);

#endif
