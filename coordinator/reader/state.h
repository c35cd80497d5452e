/* coordinator/reader/state.h - struct reader, for the files of this folder. */
#ifndef COORDINATOR_READER_STATE_H
#define COORDINATOR_READER_STATE_H

#include "shm/region.h"
#include "proc.h"
#include "reader.h"
#include "config/conf.h"
#include "coordinator/text/tokenizer.h"
#include "layers/gguf/gguf.h"

struct reader {
	const struct conf *conf;
	struct reader_how how;
	struct reader_proc p;
	uint64_t image_bytes;		/* that a memfd is lent with */
	struct region directory_map, pieces_map;
	struct gguf *g;			/* a view of directory_map */
	struct read_directory directory;	/* as it came, checked */
	int vocab_fd;			/* lent for the vocabulary, which was
					 * asked for; -1 = not yet */
	struct tokenizer *tokenizer;	/* of pieces_map */
};

/* Have a child that can encode: start another one where it was lost. */
int reader_revive(struct reader *r, struct err *reterr);

/* A tokenizer_encode_fn; arg is the reader. */
tokenizer_encode_fn reader_encode;

#endif
