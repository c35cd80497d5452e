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

/* Parts of a request, for text.c and render.c.  Send parts in few messages, however
 * many there are. */
int reader_send_bytes(struct reader *r, const struct text_part *part,
    size_t nparts, struct err *reterr);
/* A text of nbytes has no more ids than this. */
uint64_t reader_most_ids(uint64_t nbytes);
/* Append the ids of the answer to *ids, which has *n. */
int reader_recv_ids(struct reader *r, uint32_t **ids, size_t *n, uint64_t most,
    struct losses *ret_lost, struct err *reterr);
int reader_check_ids(struct reader *r, const uint32_t *ids, size_t n,
    struct err *reterr);

#endif
