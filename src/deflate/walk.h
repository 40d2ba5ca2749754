/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks over the blocks of a complete raw deflate stream without unpacking it,
 * to find its last block and its last bit. libdeflate only makes whole streams;
 * with this the last block can be made an inner one, so that more may follow.
 * It refuses every header that zlib refuses.
 */
#ifndef WF_DEFLATE_WALK_H
#define WF_DEFLATE_WALK_H

#include <stddef.h>
#include <stdint.h>

struct wf_walk {
	size_t final_bit; /* where the BFINAL bit of the last block is */
	size_t end_bit;	  /* the first bit after the last block */
};

/* 0, -EBADMSG if it is no complete stream within @len bytes, or -ENOMEM. */
int wf_deflate_walk(const uint8_t *data, size_t len, struct wf_walk *walk);

#endif
