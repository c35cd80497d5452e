/* coordinator/text/hash.h - keyed hashes for tables of untrusted keys.
 * Owns nothing.  Called by vocab.c, bpe.c and split.c.  A file cannot choose
 * texts that collide: it does not know the key, which is drawn for each table. */
#ifndef COORDINATOR_TEXT_HASH_H
#define COORDINATOR_TEXT_HASH_H

#include "config/err.h"

struct hash_key {
	uint64_t k[2];
};

/* Take random bytes from the kernel, once: a process that will not be able to
 * calls this before. */
int hash_init(struct err *reterr);
/* Draw a random key.  By one thread at a time. */
int hash_draw_key(struct hash_key *ret, struct err *reterr);

/* SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"). */
uint64_t hash_bytes(const struct hash_key *key, const void *data,
    size_t nbytes);
/* The same of one number. */
uint64_t hash_number(const struct hash_key *key, uint64_t n);

#endif
