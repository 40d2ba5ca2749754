/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A piece as the host describes it to the kernels, and what they answer. Both
 * sides are compiled from this file; the sizes are asserted on both.
 */
#ifndef WF_CUDA_PIECE_DEFS_H
#define WF_CUDA_PIECE_DEFS_H

#include "cuda/lanes.h"

/* The largest piece that is compressed: positions in it fit into 16 bits. */
#define WF_PIECE_MOST 65536u
/* Room for the compressed form of a piece of @len bytes: blocks that do not
 * shrink are stored (5 bytes each, WF_PIECE_BLOCKS of them at most), and an
 * empty stored block ends it. A multiple of 4. */
#define WF_PIECE_BOUND(len) (((len) + 64u) & ~3u)
/* Tokens of one block, 4 bytes each, in memory of their own. */
#define WF_PIECE_TOKENS 16384u
/* Of a window that a distance may reach back. */
#define WF_PIECE_WINDOW 32768u

#define WF_PIECE_FINAL (1u << 0)   /* deflate: the stream ends with it */
#define WF_PIECE_CRC32 (1u << 1)   /* the check of the plain data */
#define WF_PIECE_ADLER32 (1u << 2) /* ... or this one */

/* wf_piece.status */
enum {
	WF_PIECE_OK,	/* inflate: up to the end of the final block */
	WF_PIECE_FULL,	/* the output does not fit */
	WF_PIECE_SHORT, /* inflate: the input ends before the final block */
	WF_PIECE_BAD,	/* inflate: the input is not deflate data */
	WF_PIECE_NONE,	/* no kernel has been here */
};

struct wf_piece {
	wf_u64 src; /* addresses of the device */
	wf_u64 dst;
	wf_u64 dict; /* inflate: what came before the output */
	uint32_t src_len;
	uint32_t dst_len;
	uint32_t dict_len;
	uint32_t flags; /* WF_PIECE_* */
	/* Results. */
	uint32_t status;
	uint32_t consumed;
	uint32_t produced;
	uint32_t check;
	uint32_t
		border; /* inflate, with SHORT: between two blocks, on a byte */
	uint32_t zero;	/* to a multiple of 16 bytes */
};

#ifdef __CUDACC__
static_assert(sizeof(struct wf_piece) == 64, "the layout of both sides");
#else
_Static_assert(sizeof(struct wf_piece) == 64, "the layout of both sides");
#endif

#endif
