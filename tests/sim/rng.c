/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random streams: splitmix64, seeded by the scenario and the purpose.
 */
#include "sim.h"

uint64_t sim_rng_next(struct sim_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

__extension__ typedef unsigned __int128 wide;

/* Without a division, because it is called at every point. */
static uint64_t scale(uint64_t x, uint64_t n)
{
	return (uint64_t)((wide)x * n >> 64);
}

uint64_t sim_rng_below(struct sim_rng *rng, uint64_t n)
{
	return n ? scale(sim_rng_next(rng), n) : 0;
}

bool sim_rng_one_in(struct sim_rng *rng, uint64_t n)
{
	return n && !scale(sim_rng_next(rng), n);
}

void sim_rng_seed(struct sim_rng *rng, uint64_t seed, const char *purpose)
{
	uint64_t hash = 0xcbf29ce484222325u;

	while (*purpose)
		hash = (hash ^ (unsigned char)*purpose++) * 0x100000001b3u;
	rng->state = seed * 0x9e3779b97f4a7c15u ^ hash;
	sim_rng_next(rng);
}
