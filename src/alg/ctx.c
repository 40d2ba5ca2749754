/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wd_alg_deflate() and wd_alg_inflate(): checks what the application filled in
 * and hands it to a piece (stateless) or a stream (stateful). Owns
 * ctx->private.
 */
#include <weft/wd_comp.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "alg/defl.h"
#include "alg/infl.h"
#include "alg/piece.h"
#include "alg/wrap.h"

#define DICT_MAX 32768u

struct session {
	bool inflating;
	struct wf_alg_defl defl;
	struct wf_alg_infl infl;
};

static bool in_range(int value, int low, int high)
{
	return value >= low && value <= high;
}

static int check_ctx(const struct wd_comp_ctx *ctx, const void *src,
		     const size_t *src_len, const void *dst,
		     const size_t *dst_len)
{
	if (!ctx || !src_len || !dst_len || (!src && *src_len) ||
	    (!dst && *dst_len))
		return -EINVAL;
	if (!in_range(ctx->alg_type, WD_COMP_RAW, WD_COMP_GZIP) ||
	    !in_range(ctx->comp_level, 0, WD_COMP_LEVEL_MOST) ||
	    !in_range(ctx->stream_mode, WD_COMP_STATELESS, WD_COMP_STATEFUL) ||
	    !in_range(ctx->flush_type, WD_COMP_FINISH, WD_COMP_BLOCK_FLUSH) ||
	    (ctx->window_size && !in_range(ctx->window_size, 9, 15)) ||
	    !in_range(ctx->raw_check, WD_COMP_RAW, WD_COMP_GZIP))
		return -EINVAL;
	if (ctx->dict_len && (!ctx->dict || ctx->dict_len > DICT_MAX ||
			      ctx->alg_type != WD_COMP_RAW ||
			      ctx->stream_mode != WD_COMP_STATELESS))
		return -EINVAL;
	return 0;
}

static struct wf_alg_want want_of(const struct wd_comp_ctx *ctx)
{
	return (struct wf_alg_want){ .node = ctx->node, .name = ctx->driver };
}

static int check_alg(const struct wd_comp_ctx *ctx)
{
	return ctx->alg_type == WD_COMP_RAW ? ctx->raw_check : ctx->alg_type;
}

size_t wd_alg_deflate_bound(const struct wd_comp_ctx *ctx, size_t len)
{
	int alg = ctx ? ctx->alg_type : WD_COMP_GZIP;

	return wf_alg_piece_bound(len) + wf_alg_wrap_header_size(alg) +
	       wf_alg_wrap_trailer_size(alg);
}

static int deflate_whole(struct wd_comp_ctx *ctx, const uint8_t *src,
			 size_t *src_len, uint8_t *dst, size_t *dst_len)
{
	int alg = ctx->alg_type;
	int window = ctx->window_size ? ctx->window_size : 15;
	size_t head = wf_alg_wrap_header_size(alg);
	size_t tail = wf_alg_wrap_trailer_size(alg);
	struct wd_comp_job job = {
		.src = src,
		.src_len = *src_len,
		.dst = dst + head,
		.dict = ctx->dict,
		.dict_len = ctx->dict_len,
		.level = ctx->comp_level,
		.window = window,
		.tight = ctx->tight,
		.flush = ctx->flush_type,
	};
	int ret;

	*src_len = 0;
	if (*dst_len < head + tail) {
		*dst_len = 0;
		return -ENOSPC;
	}
	/* A piece that is left open has no place for a trailer. */
	if (ctx->flush_type != WD_COMP_FINISH &&
	    (alg != WD_COMP_RAW || (ctx->flush_type != WD_COMP_SYNC_FLUSH &&
				    ctx->flush_type != WD_COMP_FULL_FLUSH))) {
		*dst_len = 0;
		return -EINVAL;
	}
	job.dst_len = *dst_len - head - tail;
	*dst_len = 0;
	ret = wf_alg_piece_deflate(&job, want_of(ctx), &ctx->used);
	if (ret)
		return ret;
	wf_alg_wrap_header(dst, alg, ctx->comp_level, window);
	ctx->check = wd_comp_check(check_alg(ctx),
				   wd_comp_check_init(check_alg(ctx)), src,
				   job.src_len);
	wf_alg_wrap_trailer(dst + head + job.produced, alg, ctx->check,
			    job.src_len);
	*src_len = job.consumed;
	*dst_len = head + job.produced + tail;
	ctx->status = WD_COMP_END;
	return 0;
}

static int inflate_whole(struct wd_comp_ctx *ctx, const uint8_t *src,
			 size_t *src_len, uint8_t *dst, size_t *dst_len)
{
	int alg = ctx->alg_type;
	size_t tail = wf_alg_wrap_trailer_size(alg), head, given = *src_len;
	struct wd_comp_job job = {
		.dst = dst,
		.dst_len = *dst_len,
		.dict = ctx->dict,
		.dict_len = ctx->dict_len,
		.window = ctx->window_size,
		.flush = ctx->flush_type,
	};
	bool piece = ctx->flush_type != WD_COMP_FINISH;
	struct wf_inflate header;
	int ret;

	*src_len = 0;
	*dst_len = 0;
	if (piece && alg != WD_COMP_RAW)
		return -EINVAL;
	wf_deflate_inflate_init(&header, NULL, wf_alg_std_mem,
				wf_alg_wrap_format(alg), 15);
	ret = wf_deflate_head_read(&header, src, given, &head);
	if (ret < 1)
		return ret ? ret : -ENODATA;
	job.src = src + head;
	job.src_len = given - head;
	ret = wf_alg_piece_inflate(&job, want_of(ctx), &ctx->used);
	*src_len = head + job.consumed;
	*dst_len = job.produced;
	if (piece && !ret)
		ret = -EBADMSG; /* ended, where more was to follow */
	else if (piece && ret == -ENODATA && job.border)
		ret = 0;
	if (ret)
		return ret;
	ctx->check = wd_comp_check(check_alg(ctx),
				   wd_comp_check_init(check_alg(ctx)), dst,
				   job.produced);
	if (given - *src_len < tail)
		return -ENODATA;
	if (!wf_alg_wrap_trailer_is(src + *src_len, alg, ctx->check,
				    job.produced))
		return -EBADMSG;
	*src_len += tail;
	ctx->status = piece ? WD_COMP_MORE_IN : WD_COMP_END;
	return 0;
}

void wd_alg_end(struct wd_comp_ctx *ctx)
{
	struct session *s = ctx ? ctx->private : NULL;

	if (!s)
		return;
	if (s->inflating)
		wf_alg_infl_end(&s->infl);
	else
		wf_alg_defl_end(&s->defl);
	free(s);
	ctx->private = NULL;
}

/* The session of a stateful context, begun anew if so asked. */
static int session_of(struct wd_comp_ctx *ctx, bool inflating,
		      struct session **session)
{
	struct session *s = ctx->private;

	if (s && !ctx->new_stream) {
		*session = s;
		return s->inflating == inflating ? 0 : -EINVAL;
	}
	wd_alg_end(ctx);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->inflating = inflating;
	s->defl = (struct wf_alg_defl){
		.mem = wf_alg_std_mem,
		.alg = ctx->alg_type,
		.level = ctx->comp_level,
		.window = ctx->window_size,
		.tight = ctx->tight,
		.node = ctx->node,
		.name = ctx->driver,
	};
	s->infl = (struct wf_alg_infl){
		.mem = wf_alg_std_mem,
		.alg = ctx->alg_type,
		.window = ctx->window_size,
		.node = ctx->node,
		.name = ctx->driver,
	};
	wf_alg_defl_begin(&s->defl);
	wf_alg_infl_begin(&s->infl);
	ctx->private = s;
	ctx->new_stream = 0;
	ctx->total_in = 0;
	ctx->total_out = 0;
	ctx->check = wd_comp_check_init(check_alg(ctx));
	*session = s;
	return 0;
}

static int stream(struct wd_comp_ctx *ctx, bool inflating, const uint8_t *src,
		  size_t *src_len, uint8_t *dst, size_t *dst_len)
{
	struct wf_alg_io io = { src, *src_len, dst, *dst_len };
	struct session *s;
	int ret;

	*src_len = 0;
	*dst_len = 0;
	ret = session_of(ctx, inflating, &s);
	if (ret)
		return ret;
	if (inflating)
		ret = wf_alg_infl_run(&s->infl, &io);
	else
		ret = wf_alg_defl_run(&s->defl, &io, ctx->flush_type);
	*src_len = (size_t)(io.in - src);
	*dst_len = (size_t)(io.out - dst);
	ctx->total_in += *src_len;
	ctx->total_out += *dst_len;
	if (ctx->alg_type == WD_COMP_RAW)
		ctx->check = wd_comp_check(ctx->raw_check, ctx->check,
					   inflating ? dst : src,
					   inflating ? *dst_len : *src_len);
	else
		ctx->check = inflating ? s->infl.check : s->defl.check;
	ctx->used = inflating ? s->infl.used : s->defl.used;
	if (ret < 0)
		return ret;
	ctx->status = ret;
	return 0;
}

static int work(struct wd_comp_ctx *ctx, bool inflating, const void *src,
		size_t *src_len, void *dst, size_t *dst_len)
{
	/* Pointers that are never used, but may be added to. */
	static uint8_t nothing[1];
	int ret = check_ctx(ctx, src, src_len, dst, dst_len);

	if (ret)
		return ret;
	src = src ? src : nothing;
	dst = dst ? dst : nothing;
	if (ctx->stream_mode == WD_COMP_STATEFUL)
		return stream(ctx, inflating, src, src_len, dst, dst_len);
	if (inflating)
		ret = inflate_whole(ctx, src, src_len, dst, dst_len);
	else
		ret = deflate_whole(ctx, src, src_len, dst, dst_len);
	ctx->total_in = *src_len;
	ctx->total_out = *dst_len;
	return ret;
}

int wd_alg_deflate(struct wd_comp_ctx *ctx, const void *src, size_t *src_len,
		   void *dst, size_t *dst_len)
{
	return work(ctx, false, src, src_len, dst, dst_len);
}

int wd_alg_inflate(struct wd_comp_ctx *ctx, const void *src, size_t *src_len,
		   void *dst, size_t *dst_len)
{
	return work(ctx, true, src, src_len, dst, dst_len);
}
