/* coordinator/quantize/protocol.h - messages between the coordinator and the
 * converter, its child that reads and converts a model.
 * Owns: numbers and payloads.  Frames: shm/chan.h.  Both sides are the same
 * build; the coordinator checks length, order and every number of what it gets.
 *
 *   coordinator                         converter
 *   CONVERT_START              ->       makes its threads
 *                              <-       CONVERT_HELLO
 *   (puts the cap in force)
 *   CONVERT_CONFINE            ->       gives up its rights
 *                              <-       CONVERT_CONFINED
 *   CONVERT_FILE               ->       parses the header
 *                              <-       CONVERT_PARTS
 *     both again for each further part
 *                              <-       CONVERT_LAYOUT
 *   CONVERT_OUT                ->       converts
 *                              <-       CONVERT_TICK*, CONVERT_TENSOR of each
 *                                       tensor in order, CONVERT_DONE
 * at any time:                 <-       WIRE_ERROR (shm/wire.h), then it leaves */
#ifndef COORDINATOR_QUANTIZE_PROTOCOL_H
#define COORDINATOR_QUANTIZE_PROTOCOL_H

#include "layers/gguf/gguf.h"
#include "shm/wire.h"
#include "requant.h"

enum convert_type {
	CONVERT_START = 1, CONVERT_CONFINE, CONVERT_FILE, CONVERT_OUT,
	CONVERT_HELLO = 128, CONVERT_CONFINED, CONVERT_PARTS, CONVERT_LAYOUT,
	CONVERT_TICK, CONVERT_TENSOR, CONVERT_DONE
};

/* fds: none. */
struct convert_start {
	uint64_t cpus[MAX_CPUS / 64];	/* never empty */
	uint32_t threads;
	struct requant_want want;
};

struct convert_hello {
	uint64_t rss_bytes;		/* 0 = unknown */
};

/* CONVERT_CONFINE, CONVERT_CONFINED and CONVERT_DONE: no payload, no fds. */

/* CONVERT_FILE, CONVERT_OUT: the path for messages, with its NUL.  fds: [0] a
 * part, opened read-only; or the output, which is read and written. */

struct convert_parts {
	uint32_t count;			/* the same in every answer */
};

struct convert_layout {
	uint64_t ntensors;
	uint64_t tensor_bytes;		/* of the source; the last tick's */
	uint64_t file_bytes;		/* of the output */
	struct requant_count count;
	/* Tensors to convert that are quantized already; tensors of unknown
	 * type, and the first of these. */
	uint64_t nquantized, nunknown;
	uint32_t unknown_type;
	char unknown_name[GGUF_MAX_NAME + 4];
	int32_t confined[CONFINE_NPARTS];	/* 0 = in force, else -errno */
};

struct convert_tick {
	uint64_t done_bytes;
};

/* One side of a tensor: what it was, or what it became. */
struct convert_side {
	uint64_t nbytes, stored_bytes;	/* gguf_stored_bytes() */
	uint32_t type;			/* may be unknown */
	uint32_t pad;
};

struct convert_tensor {
	char name[GGUF_MAX_NAME + 4];
	uint32_t ndims;
	uint64_t ne[GGUF_MAX_DIMS];
	struct convert_side from, to;
	struct requant_result result;
};

#endif
