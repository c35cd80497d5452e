/* coordinator/text/hash.c - keyed hashes for tables of untrusted keys. */
#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

struct sip {
	uint64_t v[4];
};

static inline uint64_t
rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void
sip_round(struct sip *s)
{
	uint64_t *v = s->v;

	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static inline void
sip_begin(struct sip *s, const struct hash_key *key)
{
	s->v[0] = key->k[0] ^ UINT64_C(0x736f6d6570736575);
	s->v[1] = key->k[1] ^ UINT64_C(0x646f72616e646f6d);
	s->v[2] = key->k[0] ^ UINT64_C(0x6c7967656e657261);
	s->v[3] = key->k[1] ^ UINT64_C(0x7465646279746573);
}

static inline void
sip_word(struct sip *s, uint64_t word)
{
	s->v[3] ^= word;
	sip_round(s);
	s->v[0] ^= word;
}

static inline uint64_t
sip_end(struct sip *s)
{
	s->v[2] ^= 0xff;
	sip_round(s);
	sip_round(s);
	sip_round(s);
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

uint64_t
hash_bytes(const struct hash_key *key, const void *data, size_t nbytes)
{
	const uint8_t *p = data;
	uint64_t word, last = (uint64_t)nbytes << 56;
	struct sip s;
	size_t i;

	sip_begin(&s, key);
	for (i = 0; i + 8 <= nbytes; i += 8) {
		memcpy(&word, p + i, 8);
		sip_word(&s, word);
	}
	word = 0;
	memcpy(&word, p + i, nbytes - i);
	sip_word(&s, last | word);
	return sip_end(&s);
}

uint64_t
hash_number(const struct hash_key *key, uint64_t n)
{
	struct sip s;

	sip_begin(&s, key);
	sip_word(&s, n);
	sip_word(&s, UINT64_C(8) << 56);
	return sip_end(&s);
}

/* --- keys --- */

static struct hash_key master;
static uint64_t ndrawn;			/* 0 = master is not drawn */

int
hash_init(struct err *reterr)
{
	ssize_t n;

	if (ndrawn > 0)
		return 0;
	do
		n = getrandom(&master, sizeof(master), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(master))
		return err_set(reterr, ERR_RUN, n < 0 ? -errno : -EIO,
		    "getrandom: %s", strerror(n < 0 ? errno : EIO));
	ndrawn = 1;
	return 0;
}

int
hash_draw_key(struct hash_key *ret, struct err *reterr)
{
	int rc = hash_init(reterr);

	if (rc < 0)
		return rc;
	ret->k[0] = hash_number(&master, ndrawn++);
	ret->k[1] = hash_number(&master, ndrawn++);
	return 0;
}
