/* coordinator/engine/seed.c - a random seed where the user gave none. */
#include "seed.h"

#include <sys/random.h>

#include "config/log.h"
#include "shm/event.h"

void
seed_draw(struct conf *c)
{
	if (c->sampling.seed_given || c->sampling.temp <= 0)
		return;
	if (getrandom(&c->sampling.seed, sizeof(c->sampling.seed), 0) < 0)
		c->sampling.seed = event_now_ns();
	c->sampling.seed >>= 32;
}

void
seed_show(const struct conf *c)
{
	if (!c->sampling.seed_given && c->sampling.temp > 0)
		log_info("seed %llu", (unsigned long long)c->sampling.seed);
}
