/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wd_alg_deflate() and wd_alg_inflate(): check what the application filled in
 * and pass it to a piece (stateless) or a stream (stateful). Owns ctx->private.
 */
#include <weft/wd_comp.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "alg/defl.h"
#include "alg/infl.h"
#include "alg/piece.h"
#include "alg/whole.h"
#include "alg/wrap.h"
#include "weft/wd.h"

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

int wf_alg_ctx_check(const struct wd_comp_ctx *ctx, const void *src,
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
	if (ctx->ch && !ctx->ch->core)
		return -EINVAL;
	if (ctx->dict_len && (!ctx->dict || ctx->dict_len > DICT_MAX ||
			      ctx->alg_type != WD_COMP_RAW ||
			      ctx->stream_mode != WD_COMP_STATELESS))
		return -EINVAL;
	return 0;
}

size_t wd_alg_deflate_bound(const struct wd_comp_ctx *ctx, size_t len)
{
	int alg = ctx ? ctx->alg_type : WD_COMP_GZIP;

	return wf_alg_piece_bound(len) + wf_alg_wrap_header_size(alg) +
	       wf_alg_wrap_trailer_size(alg);
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
		.ch = ctx->ch,
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
	ctx->check = wd_comp_check_init(wf_alg_whole_check(ctx));
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
	s->defl.copied = 0;
	if (inflating)
		ret = wf_alg_infl_run(&s->infl, &io);
	else
		ret = wf_alg_defl_run(&s->defl, &io, ctx->flush_type);
	ctx->copied = s->defl.copied;
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
	int ret = wf_alg_ctx_check(ctx, src, src_len, dst, dst_len);

	if (ret)
		return ret;
	src = src ? src : nothing;
	dst = dst ? dst : nothing;
	if (ctx->stream_mode == WD_COMP_STATEFUL)
		return stream(ctx, inflating, src, src_len, dst, dst_len);
	return wf_alg_whole_run(ctx, inflating, 0, src, src_len, dst, dst_len);
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
