/* config/guess.h - what a mistyped name was meant to be.
 * Owns: the distance between two words.  Called by the readers of flags and
 * files for their messages.  Knows no name itself. */
#ifndef CONFIG_GUESS_H
#define CONFIG_GUESS_H

/* Begins with what was typed; .best is the nearest name tried so far, NULL
 * while none is near enough to be worth saying. */
struct guess {
	const char *typed, *best;
	unsigned distance;	/* of best */
};

void guess_try(struct guess *g, const char *name);

#endif
