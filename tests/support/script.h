/* tests/support/script.h - a fuzzer's input as a list of steps, some of which
 * change sound messages.
 * Called by fuzz/answers.c, fuzz/requests.c and reader_fixture.c.  Knows no
 * messages. */
#ifndef TESTS_SUPPORT_SCRIPT_H
#define TESTS_SUPPORT_SCRIPT_H

#include "config/base.h"
#include "shm/chan.h"

struct script {
	const uint8_t *data;
	size_t n;			/* bytes left */
};

/* In the input: op: u8; number of bytes: u16; the bytes. */
struct step {
	uint8_t op;
	const uint8_t *bytes;
	size_t n;
};

/* 0 = the script has ended.  A step that is cut off is as long as what is left. */
int script_next(struct script *s, struct step *ret);

/* Change a sound message of nbytes in buf, which has room for more.  The step's
 * bytes are changes: where: u16; how many bytes: u8; the bytes.  Those of 0 bytes
 * set the message's length.  Returns the length. */
size_t script_change(const struct step *st, void *buf, size_t nbytes,
    size_t room);

/* Send the step's bytes as a message: its type, relative to READ_OPEN: u8; number
 * of descriptors: u8; the payload.  Each descriptor is fd. */
int script_send(const struct step *st, struct chan *c, uint32_t first_type,
    int fd);
/* Send them as a packet without a frame. */
int script_send_raw(const struct step *st, struct chan *c);

/* The lowest free descriptor. */
int script_lowest_fd(void);

/* End the program with this complaint unless ok. */
void script_require(int ok, const char *complaint);

#endif
