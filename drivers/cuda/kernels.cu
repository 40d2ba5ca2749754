/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels: one warp for a piece. The driver compiles this file when it is
 * first used on a machine, for the GPU that is there.
 */
#include "cuda/deflate.h"
#include "cuda/inflate.h"

/* Blocks of two warps: of those, as many fit on a multiprocessor as registers
 * and shared memory allow, and neither waits for many others. */
#define INFLATE_WARPS 2

extern "C" __global__ void __launch_bounds__(32 * INFLATE_WARPS)
	weft_inflate_1(struct wf_piece *pieces, uint32_t count)
{
	__shared__ struct wf_inflate_space space[INFLATE_WARPS];
	uint32_t warp = threadIdx.x / 32;
	uint32_t i = blockIdx.x * INFLATE_WARPS + warp;

	if (i < count)
		wf_piece_inflate(&pieces[i], (const uint8_t *)pieces[i].src,
				 (uint8_t *)pieces[i].dst,
				 (const uint8_t *)pieces[i].dict, &space[warp]);
}

extern "C" __global__ void __launch_bounds__(32)
	weft_deflate_1(struct wf_piece *pieces, uint32_t count, uint32_t *tokens)
{
	__shared__ struct wf_deflate_space space;
	uint32_t i = blockIdx.x;

	if (i < count)
		wf_piece_deflate(&pieces[i], (const uint8_t *)pieces[i].src,
				 (uint8_t *)pieces[i].dst,
				 tokens + (wf_u64)i * WF_PIECE_TOKENS, &space);
}
