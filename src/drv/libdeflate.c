/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdeflate: the best ratio for its speed, on whole buffers only. Pieces that
 * are not final are made by turning the last block of a whole stream into an
 * inner one. It keeps idle compressors (drv/shelf), since one costs hundreds of
 * kilobytes to make.
 */
#include "alg/drivers.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "deflate/walk.h"
#include "drv/shelf.h"

#define LEVELS 13

/* From level 10 on one takes about 9 MiB, so that few of them are kept. */
#define LARGE ((size_t)9 << 20)

static struct wf_drv_shelf compressors[LEVELS] = {
	[10] = { .large = LARGE },
	[11] = { .large = LARGE },
	[12] = { .large = LARGE },
};
static struct wf_drv_shelf decompressors;

/*
 * zlib's level to libdeflate's, measured (docs/compression.md): the cheapest
 * that stays well within 5 % of zlib's size on every kind of file, which is
 * another one for each kind; and the cheapest within half a percent of it on
 * most.
 */
enum kind {
	BINARY,
	TEXT,	    /* gains more from lazy matching */
	REPETITIVE, /* gains more from long searches */
	TIGHT,
	KINDS
};

static const int levels[KINDS][10] = {
	[BINARY] = { 0, 1, 1, 1, 2, 4, 4, 5, 6, 7 },
	[TEXT] = { 0, 1, 1, 1, 3, 4, 5, 6, 6, 7 },
	[REPETITIVE] = { 0, 1, 1, 2, 3, 5, 6, 7, 7, 8 },
	[TIGHT] = { 0, 1, 1, 2, 3, 5, 6, 7, 7, 8 },
};

/* Samples that determine the kind: one piece in this many bytes, at level 1,
 * which is some per cent of the work to come. */
#define SAMPLE 4096u
#define SAMPLE_EVERY (4 * SAMPLE)
#define SAMPLES_MOST 8
#define REPETITIVE_RATIO 5

static void free_compressor(void *c)
{
	libdeflate_free_compressor(c);
}

static void free_decompressor(void *d)
{
	libdeflate_free_decompressor(d);
}

static struct libdeflate_compressor *compressor_get(int level)
{
	struct libdeflate_compressor *c =
		wf_drv_shelf_take(&compressors[level]);

	return c ? c : libdeflate_alloc_compressor(level);
}

static void compressor_put(int level, struct libdeflate_compressor *c)
{
	wf_drv_shelf_put(&compressors[level], c, free_compressor);
}

/* Makes a whole stream of *@len bytes an open one that ends on a byte. */
static int open_end(uint8_t *data, size_t *len, size_t room)
{
	static const uint8_t marker[4] = { 0x00, 0x00, 0xff, 0xff };
	struct wf_walk walk;
	size_t end;
	int ret = wf_deflate_walk(data, *len, &walk);

	/* The walk has refused what libdeflate wrote, which is not known to
	 * happen. With -ENOSPC the data is stored. */
	if (ret)
		return ret == -ENOMEM ? ret : -ENOSPC;
	/* Three zero bits (an empty stored block), then up to a byte. */
	end = (walk.end_bit + 3 + 7) / 8;
	if (end + 4 > room)
		return -ENOSPC;
	data[walk.final_bit / 8] &= (uint8_t) ~(1u << walk.final_bit % 8);
	if (walk.end_bit % 8)
		data[walk.end_bit / 8] &=
			(uint8_t)((1u << walk.end_bit % 8) - 1);
	for (size_t i = (walk.end_bit + 7) / 8; i < end; i++)
		data[i] = 0;
	memcpy(data + end, marker, 4);
	*len = end + 4;
	return 0;
}

/* dst is used to work in. */
static enum kind kind_of(const struct wd_comp_job *job)
{
	size_t count = job->src_len / SAMPLE_EVERY, step, size = 0;
	struct libdeflate_compressor *c;
	enum kind kind = TEXT;

	if (job->tight)
		return TIGHT;
	if (job->level < 3 || !count)
		return BINARY; /* no difference, or not worth it */
	if (count > SAMPLES_MOST)
		count = SAMPLES_MOST;
	step = job->src_len / count;
	c = compressor_get(1);
	if (!c)
		return REPETITIVE;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *at = job->src + i * step + (step - SAMPLE) / 2;
		size_t n = libdeflate_deflate_compress(c, at, SAMPLE, job->dst,
						       job->dst_len);

		size += n ? n : SAMPLE;
		if (memchr(at, 0, SAMPLE))
			kind = BINARY;
	}
	compressor_put(1, c);
	return size * REPETITIVE_RATIO < count * SAMPLE ? REPETITIVE : kind;
}

static int ld_deflate(struct wd_comp_job *job)
{
	/* Levels above 9 are libdeflate's own; zlib has none. */
	int level =
		job->level > 9 ? job->level : levels[kind_of(job)][job->level];
	struct libdeflate_compressor *c = compressor_get(level);
	size_t len;
	int ret = 0;

	if (!c)
		return -ENOMEM;
	len = libdeflate_deflate_compress(c, job->src, job->src_len, job->dst,
					  job->dst_len);
	compressor_put(level, c);
	if (!len)
		return -ENOSPC;
	if (job->flush != WD_COMP_FINISH)
		ret = open_end(job->dst, &len, job->dst_len);
	if (ret)
		return ret;
	job->consumed = job->src_len;
	job->produced = len;
	return 0;
}

static int ld_inflate(struct wd_comp_job *job)
{
	struct libdeflate_decompressor *d = wf_drv_shelf_take(&decompressors);
	enum libdeflate_result result;

	if (!d)
		d = libdeflate_alloc_decompressor();
	if (!d)
		return -ENOMEM;
	result = libdeflate_deflate_decompress_ex(
		d, job->src, job->src_len, job->dst, job->dst_len,
		&job->consumed, &job->produced);
	wf_drv_shelf_put(&decompressors, d, free_decompressor);
	if (result == LIBDEFLATE_SUCCESS) {
		struct wf_walk walk;

		job->ended = 1;
		/* It takes lengths that are repeated past their end. */
		if (!job->tight ||
		    !wf_deflate_walk(job->src, job->consumed, &walk))
			return 0;
		result = LIBDEFLATE_BAD_DATA;
	}
	job->consumed = 0;
	job->produced = 0;
	/* libdeflate does not distinguish a short input from an invalid one. */
	return result == LIBDEFLATE_INSUFFICIENT_SPACE ? -ENOSPC : -EBADMSG;
}

static void ld_exit(void)
{
	for (int i = 0; i < LEVELS; i++)
		wf_drv_shelf_clear(&compressors[i], free_compressor);
	wf_drv_shelf_clear(&decompressors, free_decompressor);
}

const struct wd_alg_comp wf_drv_libdeflate = {
	.name = "libdeflate",
	.priority = 200,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE | WD_COMP_CAN_REFUSE,
	.levels = 0x1ffe,
	.min_window = 15,
	.exit = ld_exit,
	.deflate = ld_deflate,
	.inflate = ld_inflate,
};
