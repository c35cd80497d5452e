/* config/caps.h - the capabilities of a thread: capabilities(7).
 * Owns nothing.  Called where a process gives up rights: config/rights.c, the
 * confinement of children, and emulators.  Does not decide what is kept. */
#ifndef CONFIG_CAPS_H
#define CONFIG_CAPS_H

#include "base.h"

#define CAPS_BIT(cap)	(UINT64_C(1) << (cap))

/* Keep, of the capabilities that this thread has, only those in `own`, and let
 * programs that it executes have only those in `later` (the bounding set).  No
 * others can be gained.  Without CAP_SETPCAP the bounding set stays.  Between
 * fork and exec this is allowed.  0 or -errno, which errno has, too. */
int caps_keep(uint64_t own, uint64_t later);

/* The capabilities that this thread may use; 0 also where they cannot be known. */
uint64_t caps_held(void);

#endif
