/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the kernels' code with hostile data: deflate streams with any set of
 * codes, wrong fields, flipped bits and missing ends, decoded by the code of a
 * piece and by zlib. Both must accept or reject them, with the same bytes
 * before that, and the code of a piece must stay within its input and its room.
 * Then the plain data is compressed, and zlib must restore it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp_drv.h>

#include "alg/drivers.h"
#include "cuda/deflate.h"
#include "cuda/inflate.h"
#include "deflate_writer.h"
#include "target.h"

#define IN_MOST (32u << 10)
#define OUT_MOST (64u << 10)
#define GUARD 64

struct wf_fuzz_stats wf_fuzz_stats;

static void expect(int is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "cuda_piece: %s\n", what);
	abort();
}

/* malloc() of exactly this size, so that a sanitizer detects an access beyond
 * it. */
static uint8_t *exact(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	expect(copy != NULL, "no memory");
	if (len)
		memcpy(copy, data, len);
	return copy;
}

static void check_guard(const uint8_t *room, size_t len)
{
	for (size_t i = 0; i < GUARD; i++)
		expect(room[len + i] == 0xa5, "written behind the room");
}

static void run_inflate(const uint8_t *in, size_t len, size_t room,
			uint8_t *ours, uint8_t *theirs)
{
	static struct wf_inflate_space space;
	struct wf_piece p = { .src_len = (uint32_t)len,
			      .dst_len = (uint32_t)room };
	struct wd_comp_job job = {
		.src = in, .src_len = len, .dst = theirs, .dst_len = room
	};
	int ret;

	memset(ours + room, 0xa5, GUARD);
	wf_piece_inflate(&p, in, ours, NULL, &space);
	check_guard(ours, room);
	expect(p.produced <= room && p.consumed <= len, "lengths");
	ret = wf_drv_zlib.inflate(&job);
	if (!ret || ret == -EBADMSG || ret == -ENODATA)
		expect(!memcmp(ours, theirs,
			       p.produced < job.produced ? p.produced :
							   job.produced),
		       "other bytes than zlib's");
	switch (ret) {
	case 0:
		expect(p.status == WF_PIECE_OK, "refused what zlib takes");
		expect(p.produced == job.produced, "another length");
		expect(p.consumed == job.consumed, "another end");
		wf_fuzz_stats.completed++;
		break;
	case -ENOSPC:
		/* If the room is full, only one of the two may see a wrong
		 * symbol behind it. */
		expect(p.status == WF_PIECE_FULL || p.status == WF_PIECE_BAD ||
			       p.status == WF_PIECE_SHORT,
		       "took what has no room");
		break;
	default:
		expect(p.status != WF_PIECE_OK, "took what zlib refuses");
		wf_fuzz_stats.failed++;
		break;
	}
}

static void run_deflate(const uint8_t *in, size_t len, uint8_t *packed,
			uint8_t *out)
{
	static struct wf_deflate_space space;
	static uint32_t tokens[WF_PIECE_TOKENS];
	size_t room = WF_PIECE_BOUND(len);
	struct wf_piece p = { .src_len = (uint32_t)len,
			      .dst_len = (uint32_t)room,
			      .flags = WF_PIECE_FINAL };
	struct wd_comp_job job = { .src = packed, .dst = out, .dst_len = len };

	memset(packed + room, 0xa5, GUARD);
	wf_piece_deflate(&p, in, packed, tokens, &space);
	check_guard(packed, room);
	expect(p.status == WF_PIECE_OK, "the bound is too small");
	job.src_len = p.produced;
	expect(!wf_drv_zlib.inflate(&job) && job.produced == len &&
		       job.consumed == p.produced && !memcmp(in, out, len),
	       "zlib does not get it back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t in[IN_MOST];
	static uint8_t ours[OUT_MOST + GUARD + 64];
	static uint8_t theirs[OUT_MOST + GUARD + 64];
	static uint8_t packed[WF_PIECE_BOUND(OUT_MOST) + GUARD];
	struct wf_fuzz_program p = { data, size, size };
	size_t made = 0, len, room;
	uint8_t *copy;

	len = wf_fuzz_write_deflate(&p, in, sizeof(in),
				    wf_fuzz_next(&p, IN_MOST), 0,
				    wf_fuzz_rarely(&p, 2) ? 0 : 50, &made);
	if (wf_fuzz_rarely(&p, 3) && len)
		in[wf_fuzz_next(&p, (unsigned int)len)] ^=
			(uint8_t)(1u << wf_fuzz_next(&p, 8));
	if (wf_fuzz_rarely(&p, 4))
		len = wf_fuzz_next(&p, (unsigned int)len + 1);
	room = wf_fuzz_rarely(&p, 4) ? wf_fuzz_next(&p, OUT_MOST) : OUT_MOST;
	copy = exact(in, len);
	run_inflate(copy, len, room, ours, theirs);
	free(copy);
	copy = exact(ours, room);
	run_deflate(copy, room, packed, theirs);
	free(copy);
	copy = exact(in, len);
	run_deflate(copy, len, packed, theirs);
	free(copy);
	return 0;
}
