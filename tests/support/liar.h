/* tests/support/liar.h - a reader that takes another's place and lies.
 * Called by unit/reader.c in the role of the reader.  It reads no file: what it
 * has to say before the first text is the same for every model. */
#ifndef TESTS_SUPPORT_LIAR_H
#define TESTS_SUPPORT_LIAR_H

/* Serve CHAN_FD until it closes; `lie` is one of
 *
 *	refuse-open	READ_OPEN is refused
 *	two-parts	a model of two parts
 *	refuse-text	each text is refused, and then answered
 *	no-nul		a note and a refusal whose texts have no end
 *	error		an error whose text has no end, and it stays
 *	two-answers	each text is answered twice
 *	few-counts	one count too few
 *	large-count	a count that its text cannot have
 *	no-end		no answer, and after READ_STOP notes that do not end
 *	deaf		reads nothing after READ_VOCAB
 *	turned		lets nothing be sent to it after READ_VOCAB; notes that do
 *			not end
 *
 * Returns the exit code. */
int liar_main(const char *lie);

#endif
