/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The real zlib: the slowest driver, but it can do everything, so the others fall
 * back to it. Its functions must be called through zreal: under libweft-z.so, calls by
 * name would reach our own.
 */
#include "alg/drivers.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "zreal/real.h"

struct zstream {
	z_stream z;
	struct wd_comp_mem mem;
	bool inflating;
};

static void *std_alloc(void *opaque, size_t size)
{
	(void)opaque;
	return malloc(size);
}

static void std_free(void *opaque, void *ptr)
{
	(void)opaque;
	free(ptr);
}

static const struct wd_comp_mem std_mem = { std_alloc, std_free, NULL };

static void *z_alloc(void *opaque, unsigned int items, unsigned int size)
{
	const struct wd_comp_mem *mem = opaque;

	return mem->alloc(mem->opaque, (size_t)items * size);
}

static void z_free(void *opaque, void *ptr)
{
	const struct wd_comp_mem *mem = opaque;

	mem->free(mem->opaque, ptr);
}

static int zl_init(void)
{
	return wf_zreal_get() ? 0 : -ENOSYS;
}

static int errno_of(int z)
{
	switch (z) {
	case Z_OK:
	case Z_STREAM_END:
	case Z_BUF_ERROR:
		return 0;
	case Z_MEM_ERROR:
		return -ENOMEM;
	case Z_DATA_ERROR:
	case Z_NEED_DICT:
		return -EBADMSG;
	default:
		return -EINVAL;
	}
}

static void stop(struct zstream *s)
{
	const struct wf_zreal *real = wf_zreal_get();

	if (s->inflating)
		real->inflateEnd(&s->z);
	else
		real->deflateEnd(&s->z);
}

/*
 * zlib clears a table of 2^(memLevel + 8) bytes for each stream. A small input
 * that is given whole does not need more than this: the window holds all of it
 * (zlib looks back 262 bytes less than its size), and one block all symbols.
 */
#define SMALL 512u
#define SMALL_WINDOW 10
#define SMALL_MEM_LEVEL 4

static int start(struct zstream *s, const struct wd_comp_job *job, bool small)
{
	const struct wf_zreal *real = wf_zreal_get();
	int window = job->window ? job->window : 15;
	int ret;

	if (small && window > SMALL_WINDOW)
		window = SMALL_WINDOW;

	s->z = (z_stream){ .zalloc = z_alloc,
			   .zfree = z_free,
			   .opaque = &s->mem };
	/* The smallest window of a raw stream is 9: zlib cannot do 8. */
	if (s->inflating)
		ret = real->inflateInit2_(&s->z, -window, ZLIB_VERSION,
					  (int)sizeof(z_stream));
	else
		ret = real->deflateInit2_(&s->z, job->level, Z_DEFLATED,
					  -window, small ? SMALL_MEM_LEVEL : 8,
					  Z_DEFAULT_STRATEGY, ZLIB_VERSION,
					  (int)sizeof(z_stream));
	if (ret == Z_OK && job->dict_len) {
		if (s->inflating)
			ret = real->inflateSetDictionary(&s->z, job->dict,
							 (uInt)job->dict_len);
		else
			ret = real->deflateSetDictionary(&s->z, job->dict,
							 (uInt)job->dict_len);
		if (ret != Z_OK)
			stop(s);
	}
	return errno_of(ret);
}

static int flush_of(int flush)
{
	switch (flush) {
	case WD_COMP_FINISH:
		return Z_FINISH;
	case WD_COMP_SYNC_FLUSH:
		return Z_SYNC_FLUSH;
	case WD_COMP_FULL_FLUSH:
		return Z_FULL_FLUSH;
	case WD_COMP_PARTIAL_FLUSH:
		return Z_PARTIAL_FLUSH;
	case WD_COMP_BLOCK_FLUSH:
		return Z_BLOCK;
	default:
		return Z_NO_FLUSH;
	}
}

static int zl_step(void *stream, struct wd_comp_job *job)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct zstream *s = stream;
	int z;

	job->consumed = 0;
	job->produced = 0;
	job->ended = 0;
	do {
		size_t in = job->src_len - job->consumed;
		size_t out = job->dst_len - job->produced;
		uInt in_now = in < UINT_MAX ? (uInt)in : UINT_MAX;
		uInt out_now = out < UINT_MAX ? (uInt)out : UINT_MAX;

		s->z.next_in = (Bytef *)(uintptr_t)(job->src + job->consumed);
		s->z.avail_in = in_now;
		s->z.next_out = job->dst + job->produced;
		s->z.avail_out = out_now;
		if (s->inflating)
			z = real->inflate(&s->z, Z_SYNC_FLUSH);
		else
			z = real->deflate(&s->z, in_now < in ?
							 Z_NO_FLUSH :
							 flush_of(job->flush));
		job->consumed += in_now - s->z.avail_in;
		job->produced += out_now - s->z.avail_out;
		job->ended = z == Z_STREAM_END;
		/* zlib.h: 128 after a block; the rest are bits not used. */
		job->border = s->inflating && s->z.data_type == 128;
	} while (z == Z_OK && job->consumed < job->src_len &&
		 job->produced < job->dst_len);
	return errno_of(z);
}

static int one_shot(struct wd_comp_job *job, bool inflating)
{
	struct zstream s = { .mem = std_mem, .inflating = inflating };
	bool small = !inflating && job->src_len <= SMALL && !job->dict_len;
	bool flushed;
	int ret = start(&s, job, small);

	if (ret)
		return ret;
	ret = zl_step(&s, job);
	flushed = inflating || job->flush == WD_COMP_FINISH ?
			  job->ended :
			  job->consumed == job->src_len &&
				  job->produced < job->dst_len;
	if (!ret && !flushed)
		ret = job->produced == job->dst_len && !job->border ? -ENOSPC :
								      -ENODATA;
	stop(&s);
	return ret;
}

static int zl_deflate(struct wd_comp_job *job)
{
	return one_shot(job, false);
}

static int zl_inflate(struct wd_comp_job *job)
{
	return one_shot(job, true);
}

static int zl_open(void **stream, int inflate, const struct wd_comp_job *job,
		   const struct wd_comp_mem *mem)
{
	struct zstream *s = mem->alloc(mem->opaque, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->mem = *mem;
	s->inflating = inflate;
	ret = start(s, job, false);
	if (ret) {
		mem->free(mem->opaque, s);
		return ret;
	}
	*stream = s;
	return 0;
}

static int zl_copy(void **to, void *stream, const struct wd_comp_mem *mem)
{
	const struct wf_zreal *real = wf_zreal_get();
	struct zstream *s = stream;
	struct zstream *copy = mem->alloc(mem->opaque, sizeof(*copy));
	int z;

	if (!copy)
		return -ENOMEM;
	copy->inflating = s->inflating;
	/* zlib copies the stream with its allocator; then each has its own. */
	if (s->inflating)
		z = real->inflateCopy(&copy->z, &s->z);
	else
		z = real->deflateCopy(&copy->z, &s->z);
	if (z != Z_OK) {
		mem->free(mem->opaque, copy);
		return errno_of(z);
	}
	copy->mem = *mem;
	copy->z.opaque = &copy->mem;
	*to = copy;
	return 0;
}

static void zl_close(void *stream)
{
	struct zstream *s = stream;
	struct wd_comp_mem mem = s->mem;

	stop(s);
	mem.free(mem.opaque, s);
}

const struct wd_alg_comp wf_drv_zlib = {
	.name = "zlib",
	.priority = 100,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
	       WD_COMP_CAN_DEFLATE_DICT | WD_COMP_CAN_INFLATE_DICT |
	       WD_COMP_CAN_DEFLATE_STREAM | WD_COMP_CAN_INFLATE_STREAM |
	       WD_COMP_CAN_REFUSE,
	.levels = 0x3ff,
	.min_window = 9,
	.init = zl_init,
	.deflate = zl_deflate,
	.inflate = zl_inflate,
	.open = zl_open,
	.step = zl_step,
	.copy = zl_copy,
	.close = zl_close,
};
