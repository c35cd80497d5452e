/* config/guess.h - suggests the name that a mistyped one was meant to be.
 * Owns: the edit distance between two words.  Called by the parsers of options
 * and config files for their messages.  Holds no names. */
#ifndef CONFIG_GUESS_H
#define CONFIG_GUESS_H

/* Start with .typed set.  .best is the nearest name tried so far, NULL while
 * none is near enough to be suggested. */
struct guess {
	const char *typed, *best;
	unsigned distance;	/* of best */
};

void guess_try(struct guess *g, const char *name);

#endif
