/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of some bytes (FNV-1a, 64 bits) for tables and names. It does not
 * resist an attacker who looks for collisions.
 */
#ifndef WF_BASE_HASH_H
#define WF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t wf_base_hash(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

#endif
