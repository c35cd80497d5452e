/* tests/support/liar.h - a reader that takes another's place and lies.
 * Called by reader_fixture.c in the role of the reader.  It reads no file: what it
 * has to say before the first text is the same for every model. */
#ifndef TESTS_SUPPORT_LIAR_H
#define TESTS_SUPPORT_LIAR_H

/* Serve CHAN_FD until it closes; `lie` is one of
 *
 *	version		it has another version
 *	short-hello	its first message is too short
 *	refuse-open	READ_OPEN is refused
 *	two-parts	a model of two parts
 *	many-parts	of more parts than there can be
 *	deaf		reads nothing after READ_VOCAB
 *	turned		lets nothing be sent to it after READ_VOCAB; notes that do
 *			not end
 *
 * or what it does with each text:
 *
 *	refuse-text	refuses it, and then answers
 *	refuse-twice	refuses it twice
 *	two-answers	answers twice
 *	no-end		no answer, and after READ_STOP notes that do not end
 *	few-counts	one count too few
 *	large-count	a count that its text cannot have
 *	no-nul		a note and a refusal whose texts have no end
 *	error		an error whose text has no end, and it stays
 *	error-short	an error that is too short
 *	notes		too many notes
 *	note-short	a note that is too short
 *	fds		descriptors
 *	signal		refuses it with the code of a signal
 *	success		refuses it with the code of a success
 *	ids-many	more ids than it can have
 *	ids-more	fewer ids than it says
 *	ids-high	an id beyond every vocabulary
 *	ids-odd		bytes that are no ids
 *	ids-none	no ids, in a message
 *	end-short	a last message that is too short
 *
 * Returns the exit code. */
int liar_main(const char *lie);

#endif
