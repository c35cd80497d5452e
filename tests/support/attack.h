/* tests/support/attack.h - what an attacker's code in the reader would do.
 * Called by faulty.c in the reader's process, once it is confined.  Knows no
 * other process. */
#ifndef TESTS_SUPPORT_ATTACK_H
#define TESTS_SUPPORT_ATTACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ATTACK_NAME = 24 };	/* of an attack, with its NUL */

/* Before confinement: the process to attack, names of calls. */
void attack_init(pid_t coordinator);

/* Is `name` an attack that needs no message: calls, memory, no answer, floods? */
int attack_acts(const char *name);
/* Then do it.  What came of it is written to stderr. */
void attack_act(const char *name);

/* The reader's next message was of this type. */
void attack_saw(uint32_t type);
/* Is `name` a lie in messages of this type?  Then falsify the payload, which
 * has room for CHAN_MAX_BYTES. */
int attack_lie(const char *name, uint32_t *type, void *buf, size_t *nbytes);

/* The image was written to fd: do what `name` says to it.  0 = nothing.  draw:
 * random numbers below a limit. */
int attack_image(const char *name, int fd, uint64_t nbytes,
    uint32_t (*draw)(uint32_t limit));
/* Does an attacker keep this descriptor, which is about to be closed? */
int attack_keeps(int fd);
/* It was answered. */
void attack_image_late(const char *name);

#endif
