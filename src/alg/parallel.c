/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One buffer over several threads. Compressing cuts it into pieces that carry
 * the 32 KiB before them as a dictionary, where the driver can use one, and
 * begins without at every restart point, from which inflating may start. The
 * result is one plain stream that anybody can read.
 */
#include <weft/wd_comp_drv.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "alg/crew.h"
#include "alg/piece.h"
#include "alg/wrap.h"

#define DICT 32768u
/* A piece with a dictionary loses little; one without makes up by its size. */
#define PIECE (512u << 10)
#define PIECE_ALONE (1u << 20)
#define RESTART 4 /* pieces with a dictionary between two restart points */

struct part {
	uint8_t *buf;
	size_t len;
	uint32_t check;
	const char *used;
	int ret;
};

struct packing {
	struct wd_comp_ctx *ctx;
	const uint8_t *src;
	size_t len;
	size_t piece;
	bool dict;
	size_t count;
	struct part *parts;
	atomic_size_t next;
	atomic_int failed;
};

static struct wf_alg_want want_of(const struct wd_comp_ctx *ctx)
{
	return (struct wf_alg_want){ .node = ctx->node, .name = ctx->driver };
}

static int check_alg(const struct wd_comp_ctx *ctx)
{
	return ctx->alg_type == WD_COMP_RAW ? ctx->raw_check : ctx->alg_type;
}

/* Whether whoever gets the pieces can use a dictionary. */
static bool uses_dict(const struct wd_comp_ctx *ctx)
{
	struct wf_alg_want want = want_of(ctx);
	struct wf_alg_slot *slot;
	bool can;

	want.can = WD_COMP_CAN_DEFLATE;
	want.level = ctx->comp_level;
	want.window = ctx->window_size;
	slot = wf_alg_registry_get(&want);
	can = slot &&
	      wf_alg_registry_driver(slot)->can & WD_COMP_CAN_DEFLATE_DICT;
	wf_alg_registry_put(slot);
	return can;
}

static bool is_restart(const struct packing *p, size_t i)
{
	return !p->dict || !(i % RESTART);
}

static void pack_one(struct packing *p, size_t i)
{
	struct part *part = &p->parts[i];
	size_t at = i * p->piece;
	size_t len = p->len - at < p->piece ? p->len - at : p->piece;
	struct wd_comp_job job = {
		.src = p->src + at,
		.src_len = len,
		.dst_len = wf_alg_piece_bound(len),
		.level = p->ctx->comp_level,
		.window = p->ctx->window_size,
		.tight = p->ctx->tight,
		.flush =
			i + 1 == p->count ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
	};
	int alg = check_alg(p->ctx);

	if (!is_restart(p, i)) {
		job.dict = job.src - DICT;
		job.dict_len = DICT;
	}
	part->buf = malloc(job.dst_len);
	job.dst = part->buf;
	part->ret = part->buf ? wf_alg_piece_deflate(&job, want_of(p->ctx),
						     &part->used) :
				-ENOMEM;
	part->len = job.produced;
	part->check = wd_comp_check(alg, wd_comp_check_init(alg), job.src, len);
	if (part->ret)
		atomic_store(&p->failed, part->ret);
}

static void pack_some(void *arg)
{
	struct packing *p = arg;
	size_t i;

	while (!atomic_load(&p->failed) &&
	       (i = atomic_fetch_add(&p->next, 1)) < p->count)
		pack_one(p, i);
}

/* Header, pieces, trailer; -ENOSPC. */
static int join(struct packing *p, uint8_t *dst, size_t *dst_len,
		struct wd_comp_index *index)
{
	int alg = p->ctx->alg_type;
	size_t tail = wf_alg_wrap_trailer_size(alg);
	uint32_t check = wd_comp_check_init(check_alg(p->ctx));
	size_t at = wf_alg_wrap_header_size(alg);
	size_t need = at + tail;

	for (size_t i = 0; i < p->count; i++)
		need += p->parts[i].len;
	if (need > *dst_len)
		return -ENOSPC;
	wf_alg_wrap_header(dst, alg, p->ctx->comp_level,
			   p->ctx->window_size ? p->ctx->window_size : 15);
	for (size_t i = 0; i < p->count; i++) {
		size_t from = i * p->piece;
		size_t len =
			p->len - from < p->piece ? p->len - from : p->piece;

		if (index && is_restart(p, i))
			index->points[index->count++] =
				(struct wd_comp_point){ at, from };
		memcpy(dst + at, p->parts[i].buf, p->parts[i].len);
		at += p->parts[i].len;
		check = wd_comp_check_combine(check_alg(p->ctx), check,
					      p->parts[i].check, len);
	}
	wf_alg_wrap_trailer(dst + at, alg, check, p->len);
	p->ctx->check = check;
	p->ctx->used = p->parts[0].used;
	*dst_len = at + tail;
	return 0;
}

static bool is_bad(const struct wd_comp_ctx *ctx, const void *src,
		   const size_t *src_len, const void *dst,
		   const size_t *dst_len)
{
	return !ctx || !src_len || !dst_len || (!src && *src_len) || !dst ||
	       ctx->alg_type < WD_COMP_RAW || ctx->alg_type > WD_COMP_GZIP ||
	       ctx->comp_level < 0 || ctx->comp_level > 9 || ctx->dict_len ||
	       (ctx->window_size &&
		(ctx->window_size < 9 || ctx->window_size > 15));
}

int wd_alg_deflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, struct wd_comp_index *index)
{
	struct packing p = { .ctx = ctx, .src = src };
	size_t room;
	int ret = -ENOMEM;

	if (is_bad(ctx, src, src_len, dst, dst_len) || !threads)
		return -EINVAL;
	p.len = *src_len;
	room = *dst_len;
	*src_len = 0;
	*dst_len = 0;
	p.dict = uses_dict(ctx);
	p.piece = p.dict ? PIECE : PIECE_ALONE;
	p.count = p.len ? (p.len + p.piece - 1) / p.piece : 1;
	p.parts = calloc(p.count, sizeof(*p.parts));
	if (index)
		*index = (struct wd_comp_index){
			.points = calloc(p.count, sizeof(*index->points)),
		};
	if (!p.parts || (index && !index->points))
		goto out;
	wf_alg_crew_together(threads < p.count ? threads :
						 (unsigned int)p.count,
			     pack_some, &p);
	ret = atomic_load(&p.failed);
	if (!ret)
		ret = join(&p, dst, &room, index);
	if (!ret) {
		*src_len = p.len;
		*dst_len = room;
		ctx->total_in = p.len;
		ctx->total_out = room;
		ctx->status = WD_COMP_END;
	}
out:
	for (size_t i = 0; p.parts && i < p.count; i++)
		free(p.parts[i].buf);
	free(p.parts);
	if (ret && index)
		wd_comp_index_free(index);
	return ret;
}

void wd_comp_index_free(struct wd_comp_index *index)
{
	if (!index)
		return;
	free(index->points);
	index->points = NULL;
	index->count = 0;
}

struct unpacking {
	struct wd_comp_ctx *ctx;
	const uint8_t *src;
	size_t src_len;
	uint8_t *dst;
	size_t dst_len;
	const struct wd_comp_index *index;
	uint32_t *checks;
	const char *used;
	size_t end_in; /* after the final block */
	size_t end_out;
	atomic_size_t next;
	atomic_int failed;
};

/*
 * From one point to the next. That it stops there exactly, between two blocks
 * and on a byte, is what makes it the same as one long run.
 */
static int unpack_one(struct unpacking *u, size_t i)
{
	const struct wd_comp_point *from = &u->index->points[i];
	bool last = i + 1 == u->index->count;
	uint64_t in_end = last ? u->src_len : from[1].in;
	uint64_t out_end = last ? u->dst_len : from[1].out;
	struct wd_comp_job job = {
		.src = u->src + from->in,
		.dst = u->dst + from->out,
		.flush = last ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
	};
	int alg = check_alg(u->ctx), ret;
	const char *used = NULL;

	job.src_len = (size_t)(in_end - from->in);
	job.dst_len = (size_t)(out_end - from->out);
	ret = wf_alg_piece_inflate(&job, want_of(u->ctx), &used);
	u->checks[i] = wd_comp_check(alg, wd_comp_check_init(alg), job.dst,
				     job.produced);
	if (last) {
		u->used = used;
		u->end_in = (size_t)(from->in + job.consumed);
		u->end_out = (size_t)(from->out + job.produced);
		return ret;
	}
	return ret == -ENODATA && job.border && job.consumed == job.src_len &&
			       job.produced == job.dst_len ?
		       0 :
		       -EBADMSG;
}

static void unpack_some(void *arg)
{
	struct unpacking *u = arg;
	size_t i;

	while (!atomic_load(&u->failed) &&
	       (i = atomic_fetch_add(&u->next, 1)) < u->index->count) {
		int ret = unpack_one(u, i);

		if (ret)
			atomic_store(&u->failed, ret);
	}
}

/* Points in order and inside, the first right behind the header. */
static bool is_usable(const struct wd_comp_index *index, size_t head,
		      size_t src_len, size_t dst_len)
{
	if (!index || index->count < 2 || index->points[0].in != head ||
	    index->points[0].out)
		return false;
	for (size_t i = 1; i < index->count; i++) {
		const struct wd_comp_point *p = &index->points[i];

		if (p->in <= p[-1].in || p->out < p[-1].out ||
		    p->in > src_len || p->out > dst_len)
			return false;
	}
	return true;
}

static int unpack_all(struct unpacking *u, unsigned int threads)
{
	int alg = u->ctx->alg_type, ret;
	size_t tail = wf_alg_wrap_trailer_size(alg);
	uint32_t check = wd_comp_check_init(check_alg(u->ctx));

	wf_alg_crew_together(threads, unpack_some, u);
	ret = atomic_load(&u->failed);
	if (ret)
		return ret;
	for (size_t i = 0; i < u->index->count; i++) {
		uint64_t end = i + 1 < u->index->count ?
				       u->index->points[i + 1].out :
				       u->end_out;

		check = wd_comp_check_combine(check_alg(u->ctx), check,
					      u->checks[i],
					      end - u->index->points[i].out);
	}
	u->ctx->check = check;
	u->ctx->used = u->used;
	if (u->src_len - u->end_in < tail ||
	    !wf_alg_wrap_trailer_is(u->src + u->end_in, alg, check, u->end_out))
		return -EBADMSG;
	u->end_in += tail;
	return 0;
}

int wd_alg_inflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, const struct wd_comp_index *index)
{
	struct unpacking u = {
		.ctx = ctx, .src = src, .dst = dst, .index = index
	};
	struct wf_wrap wrap;
	int mode, flush, ret = -EBADMSG;
	size_t head;

	if (is_bad(ctx, src, src_len, dst, dst_len) || !threads)
		return -EINVAL;
	u.src_len = *src_len;
	u.dst_len = *dst_len;
	wf_alg_wrap_begin(&wrap, ctx->alg_type);
	if (wf_alg_wrap_read(&wrap, src, u.src_len, &head) == 1 &&
	    is_usable(index, head, u.src_len, u.dst_len)) {
		u.checks = calloc(index->count, sizeof(*u.checks));
		ret = u.checks ? unpack_all(&u, threads) : -ENOMEM;
		free(u.checks);
	}
	if (!ret) {
		*src_len = u.end_in;
		*dst_len = u.end_out;
		ctx->total_in = *src_len;
		ctx->total_out = *dst_len;
		ctx->status = WD_COMP_END;
		return 0;
	}
	/* No index, or one that is wrong: from the beginning, in one run. */
	mode = ctx->stream_mode;
	flush = ctx->flush_type;
	ctx->stream_mode = WD_COMP_STATELESS;
	ctx->flush_type = WD_COMP_FINISH;
	ret = wd_alg_inflate(ctx, src, src_len, dst, dst_len);
	ctx->stream_mode = mode;
	ctx->flush_type = flush;
	return ret;
}
