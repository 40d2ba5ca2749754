/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a thread on one piece, without the lock: it finds where the piece
 * begins, decompresses it, replaces markers by bytes, checks it, and writes it.
 */
#include "alg/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp.h>

#include "alg/wrap.h"
#include "deflate/find.h"

/* Memory for a piece whose begin is known: if not even one block fits, the work
 * was in vain. */
#define KNOWN_ROOM (6u << 20)
#define SEARCH (32u << 10)  /* bytes between two looks at the rest */
#define STRIDE (256u << 10) /* resolved, checked and written at a time */

static bool is_known(struct wf_piece *p)
{
	return atomic_load_explicit(&p->known, memory_order_acquire);
}

static bool is_unwanted(struct wf_piece *p)
{
	return atomic_load_explicit(&p->unwanted, memory_order_relaxed);
}

/* Between blocks: has the data before it been decompressed meanwhile? */
static enum wf_chunk_answer ask(void *arg, const uint8_t **window)
{
	struct wf_piece *p = arg;

	if (is_unwanted(p))
		return WF_CHUNK_LEAVE;
	if (!is_known(p))
		return WF_CHUNK_GO_ON;
	if (p->known_at.bit != p->chunk.begin.bit ||
	    p->known_at.member != p->chunk.begin.member)
		return WF_CHUNK_LEAVE;
	if (p->have < WF_CHUNK_WINDOW)
		return WF_CHUNK_GO_ON;
	*window = p->window;
	return WF_CHUNK_HAVE;
}

static void run_known(struct wf_piece *p)
{
	p->found = true;
	p->chunk.size = p->room < KNOWN_ROOM ? p->room : KNOWN_ROOM;
	wf_deflate_chunk_begin(&p->chunk, p->known_at,
			       p->window + WF_CHUNK_WINDOW - p->have, p->have);
	p->why = wf_deflate_chunk_run(&p->chunk);
}

/* The next place in the range from @bit on, as far as it is worth searching at
 * once. False: none there, *bit is behind it. */
static bool next_begin(struct wf_piece *p, uint64_t *bit,
		       struct wf_border *begin)
{
	const struct wf_chunk *c = &p->chunk;
	uint64_t to = *bit + 8ull * SEARCH < p->range.to ?
			      *bit + 8ull * SEARCH :
			      p->range.to;
	uint64_t block = wf_deflate_find_block(c->in, c->len, *bit, to);
	uint64_t until = block == WF_FIND_NONE ? (to + 7) / 8 : block / 8;
	uint64_t member = WF_FIND_NONE;

	if (c->members)
		member = wf_deflate_find_member(c->in, c->len, (*bit + 7) / 8,
						until);
	if (member != WF_FIND_NONE)
		*begin = (struct wf_border){ member * 8, true };
	else if (block != WF_FIND_NONE)
		*begin = (struct wf_border){ block, false };
	else
		*bit = to;
	return member != WF_FIND_NONE || block != WF_FIND_NONE;
}

static void search(struct wf_piece *p)
{
	uint64_t bit = p->range.from;

	p->found = false;
	while (bit < p->range.to && bit / 8 < p->chunk.len) {
		struct wf_border begin;

		if (is_unwanted(p))
			return;
		if (is_known(p)) {
			run_known(p);
			return;
		}
		if (!next_begin(p, &bit, &begin))
			continue;
		wf_deflate_chunk_begin(&p->chunk, begin, NULL, 0);
		p->why = wf_deflate_chunk_run(&p->chunk);
		if (p->why == WF_CHUNK_AWAY)
			continue;
		if (p->why != WF_CHUNK_BEGIN && p->why != WF_CHUNK_BAD &&
		    (p->why != WF_CHUNK_AFTER || wf_chunk_total(&p->chunk))) {
			p->found = true;
			return;
		}
		bit = begin.bit + (begin.member ? 8 : 1);
	}
}

void wf_alg_engine_ahead(struct wf_piece *p)
{
	struct wf_chunk *c = &p->chunk;

	c->size = p->room;
	c->stop = p->range.to;
	c->exact = p->range.exact;
	c->ask = ask;
	c->arg = p;
	if (is_known(p)) {
		run_known(p);
	} else if (p->range.exact) {
		p->found = true;
		wf_deflate_chunk_begin(c, p->range.begin,
				       p->range.hint ? p->range.hint :
						       p->window,
				       p->range.hint ? p->range.hint_have : 0);
		p->why = wf_deflate_chunk_run(c);
	} else {
		search(p);
	}
}

static int check_alg(const struct wf_engine *e)
{
	/* Raw data has no checksum of its own: a caller that asks gets a
	 * CRC-32. */
	return e->u->alg == WD_COMP_ZLIB ? WD_COMP_ZLIB : WD_COMP_GZIP;
}

/* Checks and writes @len bytes, which are at @at in the piece's output. */
static int pass(struct wf_engine *e, struct wf_piece *p, const uint8_t *data,
		size_t at, size_t len, size_t *ends)
{
	const struct wf_chunk *c = &p->chunk;
	size_t done = 0;

	while (done < len) {
		size_t until = len;

		while (*ends < c->ends_count && c->ends[*ends].at <= at + done)
			++*ends;
		if (*ends < c->ends_count && c->ends[*ends].at - at < until)
			until = c->ends[*ends].at - at;
		p->checks[*ends] = wd_comp_check(check_alg(e), p->checks[*ends],
						 data + done, until - done);
		done = until;
	}
	return e->u->put_at && len ?
		       e->u->put_at(e->u->arg, p->out + at, data, len) :
		       0;
}

int wf_alg_engine_finish(struct wf_engine *e, struct wf_piece *p,
			 uint8_t *table)
{
	struct wf_chunk *c = &p->chunk;
	size_t ends = 0, at;
	int ret = 0;

	if (c->ends_count + 1 > p->checks_room) {
		size_t room = 2 * c->ends_count + 1;
		uint32_t *checks = realloc(p->checks, room * sizeof(*checks));

		if (!checks)
			return -ENOMEM;
		p->checks = checks;
		p->checks_room = room;
	}
	for (size_t i = 0; i <= c->ends_count; i++)
		p->checks[i] = wd_comp_check_init(check_alg(e));
	if (c->wide)
		wf_deflate_chunk_table(table, p->window);
	for (at = 0; at < c->wide && !ret; at += STRIDE) {
		size_t n = c->wide - at < STRIDE ? c->wide - at : STRIDE;

		ret = pass(e, p, wf_deflate_chunk_resolve(c, at, n, table), at,
			   n, &ends);
	}
	for (at = 0; at < c->narrow && !ret; at += STRIDE) {
		size_t n = c->narrow - at < STRIDE ? c->narrow - at : STRIDE;

		ret = pass(e, p, c->narrow_at + at, c->wide + at, n, &ends);
	}
	return ret;
}

/* zlib's words for what is wrong in the trailer of a member. */
static const char *wrong_trailer(const struct wf_engine *e,
				 const uint8_t trailer[8])
{
	uint32_t check = trailer[0] | (uint32_t)trailer[1] << 8 |
			 (uint32_t)trailer[2] << 16 |
			 (uint32_t)trailer[3] << 24;

	return e->u->alg == WD_COMP_GZIP && check == e->check ?
		       "incorrect length check" :
		       "incorrect data check";
}

int wf_alg_engine_verify(struct wf_engine *e, struct wf_piece *p, size_t *good)
{
	const struct wf_chunk *c = &p->chunk;
	int alg = check_alg(e);
	size_t at = 0;

	for (size_t i = 0; i <= c->ends_count; i++) {
		bool end = i < c->ends_count;
		size_t until = end ? c->ends[i].at : wf_chunk_total(c);

		e->check = e->length ? wd_comp_check_combine(alg, e->check,
							     p->checks[i],
							     until - at) :
				       p->checks[i];
		e->length += until - at;
		at = until;
		*good = at;
		if (!end)
			break;
		e->u->check = e->check;
		if (!e->unchecked &&
		    !wf_alg_wrap_trailer_is(c->ends[i].trailer, e->u->alg,
					    e->check, e->length)) {
			e->why = wrong_trailer(e, c->ends[i].trailer);
			return -EBADMSG;
		}
		e->unchecked = false;
		if (e->u->members) {
			e->check = wd_comp_check_init(alg);
			e->length = 0;
		}
	}
	return 0;
}

int wf_alg_engine_tell(struct wf_engine *e, const struct wf_piece *p)
{
	const struct wf_chunk *c = &p->chunk;
	struct wf_unpack_point begin = { c->begin, p->out,
					 p->found ? p->window : NULL, p->have };
	uint32_t check = p->checks[0];

	for (size_t i = 1; i <= c->ends_count; i++) {
		size_t until =
			i < c->ends_count ? c->ends[i].at : wf_chunk_total(c);

		check = wd_comp_check_combine(check_alg(e), check, p->checks[i],
					      until - c->ends[i - 1].at);
	}
	return e->u->piece(e->u->arg, &begin, check, wf_chunk_total(c));
}

int wf_alg_engine_put(struct wf_engine *e, struct wf_piece *p, size_t len)
{
	const struct wf_chunk *c = &p->chunk;
	size_t wide = c->wide < len ? c->wide : len;
	int ret = 0;

	/* Bytes that took the place of markers are where those began. */
	if (wide)
		ret = e->u->put(e->u->arg, c->room + 2 * WF_CHUNK_WINDOW, wide);
	if (!ret && len > wide)
		ret = e->u->put(e->u->arg, c->narrow_at, len - wide);
	return ret;
}
