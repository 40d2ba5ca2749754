/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file divides the input into ranges: at the points of an index, by
 * members that contain their length (BGZF), or at fixed distances.
 */
#include "alg/engine.h"

#define BEHIND (64u << 10)    /* input behind a range that a piece may need */
#define POINT_GOAL (1u << 20) /* output between two points, at least */

static bool has_input(const struct wf_engine *e, uint64_t bit)
{
	return e->source.eof || e->source.end >= bit / 8 + BEHIND;
}

/* BGZF (the SAM specification, 4.1): the first extra field, BC, tells how long
 * the member is. Its length, or 0. */
static size_t bgzf_length(const uint8_t *in, uint64_t at, uint64_t end)
{
	size_t extra, n;

	if (end - at < 18 || in[at] != 0x1f || in[at + 1] != 0x8b ||
	    in[at + 2] != 8 || !(in[at + 3] & 4))
		return 0;
	extra = in[at + 10] | (size_t)in[at + 11] << 8;
	if (extra < 6 || in[at + 12] != 'B' || in[at + 13] != 'C' ||
	    in[at + 14] != 2 || in[at + 15])
		return 0;
	n = (in[at + 16] | (size_t)in[at + 17] << 8) + 1;
	return n > extra + 20 ? n : 0;
}

/* Members up to the size of a chunk. False: wait for input, or it is none. */
static bool bgzf_range(struct wf_engine *e, struct wf_range *r)
{
	uint64_t from = e->cut / 8, at = from, end = e->source.end;
	const uint8_t *in = wf_alg_source_at(&e->source, from);

	while (at - from < e->chunk && at < end) {
		size_t n = bgzf_length(in, at, end);

		if (!n && (e->source.eof || end - at >= 18)) {
			e->bgzf = false; /* from here on as any other */
			break;
		}
		if (!n || n > end - at)
			break;
		at += n;
	}
	if (at == from || (at - from < e->chunk && !e->source.eof && e->bgzf))
		return false;
	r->to = at * 8;
	r->exact = true;
	r->begin = (struct wf_border){ e->cut, true };
	return true;
}

/* The point at which a range that begins at ->point ends. */
static size_t next_point(const struct wf_engine *e)
{
	const struct wf_unpack_point *points = e->u->points;
	size_t n = e->point + 1;

	while (n < e->u->points_count &&
	       points[n].out - points[e->point].out < POINT_GOAL)
		n++;
	return n;
}

/* Whether the range up to the next point fits into the ring, with what is
 * needed behind it. If not, it would wait for input for ever. */
static bool point_fits(const struct wf_engine *e)
{
	size_t n = next_point(e);

	return e->source.memory || n >= e->u->points_count ||
	       (e->u->points[n].at.bit - e->cut) / 8 + 2 * BEHIND <
		       e->source.size - e->source.size / 8;
}

static bool point_range(struct wf_engine *e, struct wf_range *r)
{
	const struct wf_unpack_point *points = e->u->points;
	size_t i = e->point, n = next_point(e);

	r->to = n < e->u->points_count ? points[n].at.bit : UINT64_MAX;
	if (r->to != UINT64_MAX && !has_input(e, r->to))
		return false;
	r->exact = true;
	r->begin = points[i].at;
	r->hint = points[i].window;
	r->hint_have = points[i].have;
	e->point = n;
	return true;
}

/* The serial part may have passed the next point or member, whose input is gone
 * then. From here on, ranges are cut at fixed distances. */
static void skip_what_is_gone(struct wf_engine *e)
{
	if (e->source.memory || e->cut / 8 >= e->source.begin)
		return;
	e->u->points = NULL;
	e->bgzf = false;
	e->cut = e->source.begin * 8;
}

bool wf_alg_engine_range_locked(struct wf_engine *e)
{
	struct wf_range r = { 0 };
	bool bgzf;

	if (e->cut == UINT64_MAX || e->numbers - e->head >= e->ranges_count)
		return false;
	skip_what_is_gone(e);
	bgzf = e->bgzf;
	r.from = e->cut;
	if (e->u->points && e->point < e->u->points_count && !point_fits(e))
		e->u->points = NULL; /* from here on as any other */
	if (e->u->points && e->point < e->u->points_count) {
		if (!point_range(e, &r))
			return false;
	} else if (!bgzf || !bgzf_range(e, &r)) {
		if (e->bgzf && !e->source.eof)
			return false;
		r.to = e->cut + (uint64_t)e->chunk * 8;
		if (!has_input(e, r.to))
			return false;
		if (e->source.eof && r.to / 8 + BEHIND >= e->source.end)
			r.to = UINT64_MAX;
	}
	e->cut = r.to;
	e->ranges[e->numbers++ % e->ranges_count] = r;
	return true;
}
