/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole streams in one call: formats around raw pieces. It does not depend on
 * which driver does the work, or when.
 */
#include "alg/whole.h"

#include <errno.h>

#include "alg/defl.h"
#include "alg/piece.h"
#include "alg/wrap.h"
#include "deflate/inflate.h"

/* A piece that is left open has no place for a trailer. */
static bool is_flush_bad(const struct wd_comp_ctx *ctx, bool inflate)
{
	int flush = ctx->flush_type;

	if (flush == WD_COMP_FINISH)
		return false;
	return ctx->alg_type != WD_COMP_RAW ||
	       (!inflate && flush != WD_COMP_SYNC_FLUSH &&
		flush != WD_COMP_FULL_FLUSH);
}

static int begin_deflate(struct wf_alg_whole *w, size_t dst_len)
{
	int alg = w->ctx->alg_type;
	size_t tail = wf_alg_wrap_trailer_size(alg);

	w->head = wf_alg_wrap_header_size(alg);
	if (dst_len < w->head + tail)
		return -ENOSPC;
	w->job.src = w->src;
	w->job.src_len = w->given;
	w->job.dst = w->dst + w->head;
	w->job.dst_len = dst_len - w->head - tail;
	w->job.window = w->ctx->window_size ? w->ctx->window_size : 15;
	return 0;
}

static int begin_inflate(struct wf_alg_whole *w, size_t dst_len)
{
	struct wf_inflate header;
	int ret;

	wf_deflate_inflate_init(&header, NULL, wf_alg_std_mem,
				wf_alg_wrap_format(w->ctx->alg_type), 15);
	ret = wf_deflate_head_read(&header, w->src, w->given, &w->head);
	if (ret < 1)
		return ret ? ret : -ENODATA;
	w->job.src = w->src + w->head;
	w->job.src_len = w->given - w->head;
	w->job.dst = w->dst;
	w->job.dst_len = dst_len;
	w->job.window = w->ctx->window_size;
	return 0;
}

/* All but what the two above fill in. One by one: the compiler clears a struct of
 * this size by a string instruction, which takes longer than the rest of this. */
static void fill_job(struct wd_comp_job *job, const struct wd_comp_ctx *ctx,
		     bool inflate)
{
	job->dict = ctx->dict;
	job->dict_len = ctx->dict_len;
	job->level = ctx->comp_level;
	job->tight = inflate ? 0 : ctx->tight;
	job->flush = ctx->flush_type;
	job->consumed = 0;
	job->produced = 0;
	job->ended = 0;
	job->border = 0;
	job->inflate = inflate;
	job->result = 0;
	job->done = 0;
	job->copied = 0;
	job->data[0] = NULL;
	job->data[1] = NULL;
	job->owner = NULL;
	job->check_alg = wf_alg_whole_check(ctx);
	job->checked = 0;
	job->check = 0;
}

int wf_alg_whole_begin(struct wf_alg_whole *w, struct wd_comp_ctx *ctx,
		       bool inflate, const uint8_t *src, size_t src_len,
		       uint8_t *dst, size_t dst_len)
{
	w->ctx = ctx;
	w->inflate = inflate;
	w->src = src;
	w->given = src_len;
	w->dst = dst;
	w->want = (struct wf_alg_want){ .node = ctx->node,
					.name = ctx->driver,
					.ch = ctx->ch };
	fill_job(&w->job, ctx, inflate);
	if (is_flush_bad(ctx, inflate))
		return -EINVAL;
	return inflate ? begin_inflate(w, dst_len) : begin_deflate(w, dst_len);
}

int wf_alg_whole_work(struct wf_alg_whole *w)
{
	return w->inflate ?
		       wf_alg_piece_inflate(&w->job, w->want, &w->ctx->used) :
		       wf_alg_piece_deflate(&w->job, w->want, &w->ctx->used);
}

/* Computed by the step that had the plain data last. */
static uint32_t check_of(const struct wf_alg_whole *w, const uint8_t *data,
			 size_t len)
{
	int alg = wf_alg_whole_check(w->ctx);

	return w->job.checked ?
		       w->job.check :
		       wd_comp_check(alg, wd_comp_check_init(alg), data, len);
}

static int end_deflate(struct wf_alg_whole *w, int ret, size_t *src_len,
		       size_t *dst_len)
{
	struct wd_comp_ctx *ctx = w->ctx;
	int alg = ctx->alg_type;

	*src_len = 0;
	*dst_len = 0;
	if (ret)
		return ret;
	wf_alg_wrap_header(w->dst, alg, ctx->comp_level, w->job.window);
	ctx->check = check_of(w, w->src, w->given);
	wf_alg_wrap_trailer(w->dst + w->head + w->job.produced, alg, ctx->check,
			    w->given);
	*src_len = w->job.consumed;
	*dst_len = w->head + w->job.produced + wf_alg_wrap_trailer_size(alg);
	ctx->status = WD_COMP_END;
	return 0;
}

static int end_inflate(struct wf_alg_whole *w, int ret, size_t *src_len,
		       size_t *dst_len)
{
	struct wd_comp_ctx *ctx = w->ctx;
	bool piece = ctx->flush_type != WD_COMP_FINISH;
	int alg = ctx->alg_type;
	size_t tail = wf_alg_wrap_trailer_size(alg);

	*src_len = w->head + w->job.consumed;
	*dst_len = w->job.produced;
	if (piece && !ret)
		ret = -EBADMSG; /* ended, where more was to follow */
	else if (piece && ret == -ENODATA && w->job.border)
		ret = 0;
	if (ret)
		return ret;
	ctx->check = check_of(w, w->dst, w->job.produced);
	if (w->given - *src_len < tail)
		return -ENODATA;
	if (!wf_alg_wrap_trailer_is(w->src + *src_len, alg, ctx->check,
				    w->job.produced))
		return -EBADMSG;
	*src_len += tail;
	ctx->status = piece ? WD_COMP_MORE_IN : WD_COMP_END;
	return 0;
}

int wf_alg_whole_end(struct wf_alg_whole *w, int ret, size_t *src_len,
		     size_t *dst_len)
{
	ret = w->inflate ? end_inflate(w, ret, src_len, dst_len) :
			   end_deflate(w, ret, src_len, dst_len);
	w->ctx->copied = w->job.copied;
	w->ctx->total_in = *src_len;
	w->ctx->total_out = *dst_len;
	return ret;
}

int wf_alg_whole_run(struct wd_comp_ctx *ctx, bool inflate, uint32_t except,
		     const uint8_t *src, size_t *src_len, uint8_t *dst,
		     size_t *dst_len)
{
	struct wf_alg_whole w;
	int ret = wf_alg_whole_begin(&w, ctx, inflate, src, *src_len, dst,
				     *dst_len);

	if (!ret) {
		w.want.except = except;
		return wf_alg_whole_end(&w, wf_alg_whole_work(&w), src_len,
					dst_len);
	}
	*src_len = 0;
	*dst_len = 0;
	ctx->total_in = 0;
	ctx->total_out = 0;
	ctx->copied = 0;
	return ret;
}
