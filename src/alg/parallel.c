/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One buffer over several threads. Compression divides it into pieces that have
 * the 32 KiB before them as a dictionary, if the driver can use one, and starts
 * without a dictionary at every restart point, from which decompression may
 * start. The result is one plain stream that any program can read;
 * decompression accepts streams of any program. gang.c and unpack.c do the
 * work.
 */
#include <weft/wd_comp_drv.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "alg/gang.h"
#include "alg/piece.h"
#include "alg/unpack.h"
#include "alg/wrap.h"

#define DICT 32768u
/* A piece with a dictionary loses little; a piece without one is larger to
 * compensate. */
#define PIECE (512u << 10)
#define PIECE_ALONE (1u << 20)
#define RESTART 4 /* pieces with a dictionary between two restart points */

struct part {
	size_t number;
	uint8_t *buf;
	size_t len;
	size_t at; /* in the output */
	uint32_t check;
	const char *used;
	uint64_t copied;
};

struct packing {
	struct wd_comp_ctx *ctx;
	const uint8_t *src;
	size_t len;
	uint8_t *dst;
	size_t room; /* without the trailer */
	size_t piece;
	bool dict;
	size_t count;
	size_t taken;
	struct part *parts; /* one for each slot */
	struct wd_comp_index *index;
	/* In order: */
	size_t at;
	uint32_t check;
};

static struct wf_alg_want want_of(const struct wd_comp_ctx *ctx)
{
	return (struct wf_alg_want){ .node = ctx->node,
				     .name = ctx->driver,
				     .ch = ctx->ch };
}

static int check_alg(const struct wd_comp_ctx *ctx)
{
	return ctx->alg_type == WD_COMP_RAW ? ctx->raw_check : ctx->alg_type;
}

/* Whether the driver that gets the pieces can use a dictionary. */
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

static size_t length_of(const struct packing *p, size_t i)
{
	size_t left = p->len - i * p->piece;

	return left < p->piece ? left : p->piece;
}

static int take_part(void *arg, unsigned int slot, int *none)
{
	struct packing *p = arg;

	*none = p->taken == p->count;
	p->parts[slot].number = p->taken;
	p->taken += !*none;
	return 0;
}

static int pack_part(void *arg, unsigned int slot)
{
	struct packing *p = arg;
	struct part *part = &p->parts[slot];
	size_t i = part->number;
	struct wd_comp_job job = {
		.src = p->src + i * p->piece,
		.src_len = length_of(p, i),
		.dst_len = wf_alg_piece_bound(p->piece),
		.level = p->ctx->comp_level,
		.window = p->ctx->window_size,
		.tight = p->ctx->tight,
		.check_alg = check_alg(p->ctx),
		.flush =
			i + 1 == p->count ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
	};
	int alg = check_alg(p->ctx), ret;

	if (!is_restart(p, i)) {
		job.dict = job.src - DICT;
		job.dict_len = DICT;
	}
	if (!part->buf)
		part->buf = malloc(job.dst_len);
	job.dst = part->buf;
	ret = part->buf ?
		      wf_alg_piece_deflate(&job, want_of(p->ctx), &part->used) :
		      -ENOMEM;
	part->len = job.produced;
	part->copied = job.copied + job.produced; /* once more, to its place */
	part->check = job.checked ? job.check :
				    wd_comp_check(alg, wd_comp_check_init(alg),
						  job.src, job.src_len);
	return ret;
}

static int place_part(void *arg, unsigned int slot)
{
	struct packing *p = arg;
	struct part *part = &p->parts[slot];

	if (part->len > p->room - p->at)
		return -ENOSPC;
	if (p->index && is_restart(p, part->number))
		p->index->points[p->index->count++] =
			(struct wd_comp_point){ p->at,
						part->number * p->piece };
	part->at = p->at;
	p->at += part->len;
	p->check =
		wd_comp_check_combine(check_alg(p->ctx), p->check, part->check,
				      length_of(p, part->number));
	p->ctx->used = part->used;
	p->ctx->copied += part->copied;
	return 0;
}

static int put_part(void *arg, unsigned int slot)
{
	struct packing *p = arg;
	const struct part *part = &p->parts[slot];

	memcpy(p->dst + part->at, part->buf, part->len);
	return 0;
}

static bool is_bad(const struct wd_comp_ctx *ctx, const void *src,
		   const size_t *src_len, const void *dst,
		   const size_t *dst_len)
{
	return !ctx || !src_len || !dst_len || (!src && *src_len) || !dst ||
	       ctx->alg_type < WD_COMP_RAW || ctx->alg_type > WD_COMP_GZIP ||
	       ctx->comp_level < 0 || ctx->comp_level > WD_COMP_LEVEL_MOST ||
	       ctx->dict_len ||
	       (ctx->window_size &&
		(ctx->window_size < 9 || ctx->window_size > 15));
}

/* Header, pieces, trailer. */
static int pack(struct packing *p, unsigned int threads, size_t *dst_len)
{
	int alg = p->ctx->alg_type;
	size_t tail = wf_alg_wrap_trailer_size(alg);
	struct wf_gang gang = {
		.threads =
			threads < p->count ? threads : (unsigned int)p->count,
		.arg = p,
		.take = take_part,
		.work = pack_part,
		.place = place_part,
		.put = put_part,
	};
	int ret = -ENOMEM;

	p->at = wf_alg_wrap_header_size(alg);
	if (p->at + tail > *dst_len)
		return -ENOSPC;
	p->room = *dst_len - tail;
	p->check = wd_comp_check_init(check_alg(p->ctx));
	wf_alg_wrap_header(p->dst, alg, p->ctx->comp_level,
			   p->ctx->window_size ? p->ctx->window_size : 15);
	gang.slots = gang.threads * 2 + 1;
	p->parts = calloc(gang.slots, sizeof(*p->parts));
	if (p->parts)
		ret = wf_alg_gang_run(&gang);
	for (unsigned int i = 0; p->parts && i < gang.slots; i++)
		free(p->parts[i].buf);
	free(p->parts);
	if (ret)
		return ret;
	wf_alg_wrap_trailer(p->dst + p->at, alg, p->check, p->len);
	p->ctx->check = p->check;
	*dst_len = p->at + tail;
	return 0;
}

int wd_alg_deflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, struct wd_comp_index *index)
{
	struct packing p = {
		.ctx = ctx, .src = src, .dst = dst, .index = index
	};
	size_t room;
	int ret = -ENOMEM;

	if (is_bad(ctx, src, src_len, dst, dst_len) || !threads)
		return -EINVAL;
	p.len = *src_len;
	room = *dst_len;
	*src_len = 0;
	*dst_len = 0;
	ctx->copied = 0;
	p.dict = uses_dict(ctx);
	p.piece = p.dict ? PIECE : PIECE_ALONE;
	p.count = p.len ? (p.len + p.piece - 1) / p.piece : 1;
	if (index)
		*index = (struct wd_comp_index){
			.points = calloc(p.count, sizeof(*index->points)),
		};
	if (!index || index->points)
		ret = pack(&p, threads, &room);
	if (ret && index)
		wd_comp_index_free(index);
	if (ret)
		return ret;
	*src_len = p.len;
	*dst_len = room;
	ctx->total_in = p.len;
	ctx->total_out = room;
	ctx->status = WD_COMP_END;
	return 0;
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
	uint8_t *dst;
	size_t len;
};

static int put_at(void *arg, uint64_t at, const uint8_t *data, size_t len)
{
	struct unpacking *u = arg;

	if (at > u->len || len > u->len - at)
		return -ENOSPC;
	memcpy(u->dst + at, data, len);
	return 0;
}

/* Points in order and inside. */
static bool is_usable(const struct wd_comp_index *index, size_t src_len)
{
	if (!index || index->count < 2)
		return false;
	for (size_t i = 0; i < index->count; i++) {
		const struct wd_comp_point *p = &index->points[i];

		if (p->in > src_len ||
		    (i && (p->in <= p[-1].in || p->out < p[-1].out)))
			return false;
	}
	return true;
}

/* No data after a restart point refers to data before it. */
static struct wf_unpack_point *points_of(const struct wd_comp_index *index)
{
	static const uint8_t nothing[1];
	struct wf_unpack_point *points = calloc(index->count, sizeof(*points));

	for (size_t i = 0; points && i < index->count; i++)
		points[i] = (struct wf_unpack_point){
			.at.bit = index->points[i].in * 8,
			.out = index->points[i].out,
			.window = nothing,
		};
	return points;
}

static int by_driver(struct wd_comp_ctx *ctx, const void *src, size_t *src_len,
		     void *dst, size_t *dst_len)
{
	int mode = ctx->stream_mode, flush = ctx->flush_type, ret;

	ctx->stream_mode = WD_COMP_STATELESS;
	ctx->flush_type = WD_COMP_FINISH;
	ret = wd_alg_inflate(ctx, src, src_len, dst, dst_len);
	ctx->stream_mode = mode;
	ctx->flush_type = flush;
	return ret;
}

int wd_alg_inflate_parallel(struct wd_comp_ctx *ctx, unsigned int threads,
			    const void *src, size_t *src_len, void *dst,
			    size_t *dst_len, const struct wd_comp_index *index)
{
	static const uint8_t nothing[1];
	struct unpacking u = { .dst = dst };
	struct wf_unpack_point *points = NULL;
	struct wf_unpack engine = { .threads = threads,
				    .put_at = put_at,
				    .arg = &u };
	int ret;

	if (is_bad(ctx, src, src_len, dst, dst_len) || !threads)
		return -EINVAL;
	/* A driver or channel that was requested does it alone. */
	if (ctx->driver || ctx->ch)
		return by_driver(ctx, src, src_len, dst, dst_len);
	u.len = *dst_len;
	engine.alg = ctx->alg_type;
	engine.in = src ? src : nothing;
	engine.in_len = *src_len;
	if (is_usable(index, *src_len)) {
		points = points_of(index);
		engine.points = points;
		engine.points_count = points ? index->count : 0;
	}
	ret = wf_alg_unpack_run(&engine);
	free(points);
	*src_len = (size_t)engine.total_in;
	*dst_len = (size_t)engine.total_out;
	ctx->total_in = *src_len;
	ctx->total_out = *dst_len;
	ctx->check =
		ctx->alg_type == WD_COMP_RAW && ctx->raw_check != WD_COMP_GZIP ?
			wd_comp_check(ctx->raw_check,
				      wd_comp_check_init(ctx->raw_check), dst,
				      *dst_len) :
			engine.check;
	ctx->used = "weft";
	ctx->copied = *dst_len; /* by put_at() */
	if (!ret)
		ctx->status = WD_COMP_END;
	return ret == -EINVAL ? -EBADMSG : ret;
}
