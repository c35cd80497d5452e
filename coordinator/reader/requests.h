/* coordinator/reader/requests.h - messages between the coordinator and its
 * reader: numbers, payloads, limits.
 * Plain structs of fixed widths; both ends run the same binary on the same
 * machine.  The receiver checks the length of every payload and the range of
 * every field.
 *
 * coordinator                          reader
 *                              <-        READ_HELLO   (confined)
 *   READ_OPEN                  ->        parses the first part's header
 *                              <-        READ_PARTS
 *   READ_PART*                 ->        parses the others
 *                              <-        READ_DIRECTORY  (in the memfd)
 *   READ_VOCAB                 ->        builds the tokenizer
 *                              <-        READ_PIECES     (in the memfd)
 *   READ_TEXT, READ_BYTES*     ->        encodes the text
 *                              <-        READ_IDS*, READ_ENCODED
 *   READ_RENDER, READ_BYTES*   ->        runs a chat template, and encodes what
 *                                        it wrote if ids are wanted
 *                              <-        READ_IDS*, READ_ENCODED or
 *                              <-        READ_OUTPUT*, READ_RENDERED
 *   READ_STOP (any time)       ->        ends the request in work, if any
 *   closes the channel         ->        leaves
 * instead of an answer:        <-        READ_REFUSED: the request failed, and
 *                                        the reader goes on
 * before an answer:            <-        READ_NOTE*: a line to log
 * at any time:                 <-        WIRE_ERROR (shm/wire.h), then it leaves */
#ifndef COORDINATOR_READER_REQUESTS_H
#define COORDINATOR_READER_REQUESTS_H

#include <limits.h>
#include <stddef.h>

#include "config/err.h"
#include "coordinator/text/losses.h"
#include "layers/arch.h"
#include "shm/chan.h"
#include "shm/wire.h"

#define READ_VERSION	1u

/* Not the numbers of enum wire_type. */
enum read_type {
	READ_OPEN = 128, READ_PART, READ_VOCAB, READ_TEXT, READ_BYTES,
	READ_STOP, READ_RENDER,
	READ_HELLO = 192, READ_PARTS, READ_DIRECTORY, READ_PIECES, READ_IDS,
	READ_ENCODED, READ_REFUSED, READ_NOTE,
	READ_OUTPUT, READ_RENDERED
};

enum {
	READ_MAX_PARTS = 1024,		/* of one text */
	/* Notes before one answer; more are left out. */
	READ_MAX_NOTES = 64,
	READ_NOTE_BYTES = 1024,
	READ_NOW_FIELDS = 9,
	READ_IDS_EACH = CHAN_MAX_BYTES / sizeof(uint32_t)
};

/* Bytes of all parts of one text together. */
#define READ_MAX_TEXT	(UINT64_C(1) << 30)

struct read_hello {
	uint32_t version;
	int32_t confined[CONFINE_NPARTS];	/* 0 = in force, else -errno */
	uint32_t pad;
};

/* fds: [0] the first part; [1] the memfd, if has_image. */
struct read_open {
	uint32_t version;
	int32_t verbose;
	uint32_t has_image;	/* 0 = a reader that replaces another */
	char path[PATH_MAX];	/* for messages; the reader opens nothing */
};

struct read_parts {
	uint32_t n;		/* 1 = not split */
};

/* fds: [0] the part. */
struct read_part {
	char path[PATH_MAX];
};

/* A result, or the reason why there is none. */
struct read_result {
	int32_t rc;		/* 0 = there is a result */
	uint32_t kind;		/* enum err_kind */
	char msg[1024];
};

/* The memfd has nbytes of layers/gguf/flat.h. */
struct read_directory {
	uint64_t nbytes;
	struct read_result model;	/* of hp */
	struct hparams hp;
	uint32_t pad;
};

/* fds: [0] the memfd, if has_image. */
struct read_vocab {
	uint32_t has_image;
};

/* The memfd has nbytes of coordinator/text/pieces.h. */
struct read_pieces {
	uint64_t nbytes;
};

struct read_text_part {
	uint64_t nbytes;
	uint64_t special;	/* 0 or 1 */
};

/* The payload has nparts of them.  Their bytes follow in READ_BYTES. */
struct read_text {
	uint64_t number;	/* from 1; of the child's texts */
	uint32_t nparts;
	int32_t flags;		/* ENCODE_* */
	struct read_text_part part[READ_MAX_PARTS];
};

static inline size_t
read_text_bytes(uint32_t nparts)
{
	return offsetof(struct read_text, part) + nparts *
	    sizeof(struct read_text_part);
}

/* Possible without a model, but for wants_ids.  The bytes of the template, of the
 * variables (coordinator/text/variables.h) and of the tail follow in READ_BYTES. */
struct read_render {
	uint64_t number;	/* from the same count as texts */
	uint64_t template_bytes, vars_bytes, tail_bytes;
	uint32_t has_tail, wants_ids, special, has_now;	/* 0 or 1 */
	int32_t flags;		/* ENCODE_* */
	/* The fields of struct tm, tm_sec to tm_isdst, in its order. */
	int32_t now[READ_NOW_FIELDS];
};

/* READ_OUTPUT has nspans of struct render_span, then their text. */
struct read_rendered {
	uint64_t number;
	uint64_t nspans, nbytes;
};

/* READ_BYTES: up to CHAN_MAX_BYTES of the text, at least one.
 * READ_IDS: an array of uint32_t. */

struct read_encoded {
	uint64_t number;	/* of the text */
	uint64_t nids;		/* that READ_IDS gave */
	struct losses lost;
};

struct read_refused {
	uint64_t number;	/* of the text or rendering; 0 = it was another
				 * request */
	struct read_result why;
};

struct read_note {
	int32_t level;		/* as log_init() */
	char text[READ_NOTE_BYTES];
};

#endif
