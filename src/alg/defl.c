/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chunking compressor. Order of output: edge (header), pend, then new
 * output, which is made only when both are empty. Checksums cover the input as
 * it is taken, like zlib's.
 */
#include "alg/defl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alg/piece.h"

#define HISTORY 32768u /* what deflate can look back */
/*
 * Gathered before it is compressed. With the pending output and the history
 * the small one stays below what zlib takes for a stream with memLevel 9:
 * programs that set memory aside for zlib (nginx) have enough. The large one
 * halves what is lost where a piece begins without history.
 */
#define CHUNK_SMALL (128u << 10)
#define CHUNK_LARGE (256u << 10)
#define DIRECT (1u << 20) /* a piece from the caller's memory at most */
#define FLUSH_ROOM 4096u
#define LARGE (512u << 10) /* loses less than a percent by itself */

static size_t chunk_of(const struct wf_alg_defl *d)
{
	return d->sparing ? CHUNK_SMALL : CHUNK_LARGE;
}

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

const struct wd_comp_mem wf_alg_std_mem = { std_alloc, std_free, NULL };

void wf_alg_defl_begin(struct wf_alg_defl *d)
{
	d->slot = NULL;
	d->stream = NULL;
	d->buf = NULL;
	d->pend = NULL;
	d->pend_room = 0;
	wf_alg_defl_reset(d);
}

static void close_stream(struct wf_alg_defl *d)
{
	if (d->slot) {
		wf_alg_registry_driver(d->slot)->close(d->stream);
		wf_alg_registry_put(d->slot);
	}
	d->slot = NULL;
	d->stream = NULL;
}

void wf_alg_defl_reset(struct wf_alg_defl *d)
{
	close_stream(d);
	d->decided = false;
	d->history = 0;
	d->fill = 0;
	d->pend_at = 0;
	d->pend_len = 0;
	d->edge_at = 0;
	d->edge_len = 0;
	d->begun = false;
	d->flushed = false;
	d->dirty = true; /* a flush before any data says so, as zlib's does */
	d->finished = false;
	d->ended = false;
	d->check = wd_comp_check_init(d->alg);
	d->total_in = 0;
}

void wf_alg_defl_end(struct wf_alg_defl *d)
{
	close_stream(d);
	if (d->buf)
		d->mem.free(d->mem.opaque, d->buf);
	if (d->pend)
		d->mem.free(d->mem.opaque, d->pend);
	d->buf = NULL;
	d->pend = NULL;
}

int wf_alg_defl_copy(struct wf_alg_defl *to, const struct wf_alg_defl *d,
		     const struct wd_comp_mem *mem)
{
	int ret = -ENOMEM;

	*to = *d;
	to->mem = *mem;
	to->slot = NULL;
	to->buf = NULL;
	to->pend = NULL;
	if (d->buf) {
		to->buf = mem->alloc(mem->opaque, HISTORY + chunk_of(d));
		if (!to->buf)
			goto err;
		memcpy(to->buf + HISTORY - d->history,
		       d->buf + HISTORY - d->history, d->history + d->fill);
	}
	if (d->pend) {
		to->pend = mem->alloc(mem->opaque, d->pend_room);
		if (!to->pend)
			goto err;
		memcpy(to->pend, d->pend, d->pend_len);
	}
	if (d->slot) {
		const struct wd_alg_comp *drv = wf_alg_registry_driver(d->slot);

		ret = drv->copy ? drv->copy(&to->stream, d->stream, mem) :
				  -ENOTSUP;
		if (ret)
			goto err;
		to->slot = wf_alg_registry_dup(d->slot);
	}
	return 0;
err:
	wf_alg_defl_end(to);
	return ret;
}

size_t wf_alg_defl_pending(const struct wf_alg_defl *d)
{
	return d->edge_len - d->edge_at + d->pend_len - d->pend_at;
}

size_t wf_alg_defl_history(const struct wf_alg_defl *d, uint8_t *out)
{
	size_t len = d->history + d->fill;
	size_t skip = len > HISTORY ? len - HISTORY : 0;

	if (!d->buf)
		return 0;
	if (out)
		memcpy(out, d->buf + HISTORY - d->history + skip, len - skip);
	return len - skip;
}

static bool need_buf(struct wf_alg_defl *d)
{
	if (!d->buf)
		d->buf = d->mem.alloc(d->mem.opaque, HISTORY + chunk_of(d));
	return d->buf;
}

static bool need_pend(struct wf_alg_defl *d, size_t size)
{
	if (d->pend_room >= size)
		return true;
	if (d->pend)
		d->mem.free(d->mem.opaque, d->pend);
	d->pend = d->mem.alloc(d->mem.opaque, size);
	d->pend_room = d->pend ? size : 0;
	return d->pend;
}

/* Keeps the end of a piece as history of the next. */
static void remember(struct wf_alg_defl *d, const uint8_t *piece, size_t len)
{
	size_t keep = len < HISTORY ? len : HISTORY;
	size_t old = d->history < HISTORY - keep ? d->history : HISTORY - keep;

	memmove(d->buf + HISTORY - keep - old, d->buf + HISTORY - old, old);
	memmove(d->buf + HISTORY - keep, piece + len - keep, keep);
	d->history = keep + old;
}

static void drain(struct wf_alg_io *io, const uint8_t *from, size_t *at,
		  size_t len)
{
	size_t n = len - *at < io->out_len ? len - *at : io->out_len;

	if (!n)
		return;
	memcpy(io->out, from + *at, n);
	io->out += n;
	io->out_len -= n;
	*at += n;
}

/* Everything that waits; true when nothing does any more. */
static bool drained(struct wf_alg_defl *d, struct wf_alg_io *io)
{
	size_t at = d->pend_at;

	drain(io, d->edge, &d->edge_at, d->edge_len);
	if (d->edge_at == d->edge_len)
		drain(io, d->pend, &d->pend_at, d->pend_len);
	d->copied += d->pend_at - at;
	return !wf_alg_defl_pending(d);
}

static void set_edge(struct wf_alg_defl *d, const uint8_t *bytes, size_t len)
{
	memcpy(d->edge, bytes, len);
	d->edge_at = 0;
	d->edge_len = len;
}

/* Input that is consumed. */
static void take(struct wf_alg_defl *d, struct wf_alg_io *io, size_t n)
{
	d->check = wd_comp_check(d->alg, d->check, io->in, n);
	d->total_in += n;
	io->in += n;
	io->in_len -= n;
}

static void gather(struct wf_alg_defl *d, struct wf_alg_io *io)
{
	size_t room = chunk_of(d) - d->fill;
	size_t n = room < io->in_len ? room : io->in_len;

	if (!n)
		return;
	memcpy(d->buf + HISTORY + d->fill, io->in, n);
	d->copied += n;
	d->fill += n;
	take(d, io, n);
}

static struct wf_alg_want wanted(const struct wf_alg_defl *d, unsigned int can)
{
	return (struct wf_alg_want){
		.can = can,
		.level = d->level,
		.window = d->window,
		.node = d->node,
		.name = d->name,
		.ch = can & WD_COMP_CAN_DEFLATE_STREAM ? NULL : d->ch,
	};
}

/* Changes over to a driver that streams. */
static int go_streaming(struct wf_alg_defl *d)
{
	struct wf_alg_want want = wanted(d, WD_COMP_CAN_DEFLATE_STREAM);
	struct wd_comp_job job = {
		.level = d->level,
		.window = d->window,
		.dict = d->buf ? d->buf + HISTORY - d->history : NULL,
		.dict_len = d->history,
	};
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);
	int ret;

	if (!slot)
		return -ENOTSUP;
	ret = wf_alg_registry_driver(slot)->open(&d->stream, 0, &job, &d->mem);
	if (ret) {
		wf_alg_registry_put(slot);
		return ret;
	}
	d->slot = slot;
	d->used = wf_alg_registry_driver(slot)->name;
	wf_alg_stats_add(wf_alg_registry_stats(slot), WF_ALG_STAT_jobs, 1);
	return 0;
}

/* The driver that streams writes its last bits, which wait for room as other
 * output does; the next driver begins on a byte. */
static int leave_stream(struct wf_alg_defl *d)
{
	static const uint8_t nothing[1];
	struct wd_comp_job job = {
		.src = nothing,
		.dst_len = FLUSH_ROOM,
		.flush = WD_COMP_SYNC_FLUSH,
	};
	int ret;

	if (!need_pend(d, FLUSH_ROOM))
		return -ENOMEM;
	job.dst = d->pend;
	ret = wf_alg_registry_driver(d->slot)->step(d->stream, &job);
	if (ret)
		return ret;
	d->pend_at = 0;
	d->pend_len = job.produced;
	close_stream(d);
	return 0;
}

int wf_alg_defl_set_history(struct wf_alg_defl *d, const uint8_t *dict,
			    size_t len)
{
	int ret = 0;

	if (d->fill || (d->slot && !d->flushed))
		return -EBUSY;
	if (!need_buf(d))
		return -ENOMEM;
	if (d->slot)
		ret = leave_stream(d);
	if (ret)
		return ret;
	remember(d, dict, len);
	/* Drivers that stream can use it; not all that take pieces can. */
	d->decided = true;
	ret = go_streaming(d);
	if (ret)
		d->history = 0; /* refused: nobody may look back at it */
	return ret;
}

/* At the first data: whole pieces, or a driver that streams by itself. */
static int decide(struct wf_alg_defl *d)
{
	struct wf_alg_want want = wanted(d, WD_COMP_CAN_DEFLATE);
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);
	bool streams;

	d->decided = true;
	if (!slot && d->ch) {
		if (!wf_alg_registry_drives(d->ch))
			return -ENOTSUP;
		d->ch = NULL; /* its device cannot: who can? */
		return decide(d);
	}
	if (!slot)
		return go_streaming(d);
	streams =
		wf_alg_registry_driver(slot)->can & WD_COMP_CAN_DEFLATE_STREAM;
	wf_alg_registry_put(slot);
	return streams ? go_streaming(d) : 0;
}

/*
 * One step of the driver that streams, on what was gathered first. A flush is
 * over when room is left after it; in a few bytes of room it would begin again
 * and again, so it gets some of ours.
 */
static int stream_step(struct wf_alg_defl *d, struct wf_alg_io *io, int flush)
{
	bool old = d->fill;
	bool direct = flush == WD_COMP_NO_FLUSH || flush == WD_COMP_FINISH ||
		      io->out_len >= FLUSH_ROOM;
	struct wd_comp_job job = {
		.src = old ? d->buf + HISTORY : io->in,
		.src_len = old ? d->fill : io->in_len,
		.dst = io->out,
		.dst_len = io->out_len,
		.flush = old && io->in_len ? WD_COMP_NO_FLUSH : flush,
	};
	int ret;

	if (!direct) {
		if (!need_pend(d, FLUSH_ROOM))
			return -ENOMEM;
		job.dst = d->pend;
		job.dst_len = d->pend_room;
	}
	d->flushed = false;
	ret = wf_alg_registry_driver(d->slot)->step(d->stream, &job);
	wf_alg_stats_bytes(wf_alg_registry_stats(d->slot), job.consumed,
			   job.produced);
	d->full = job.produced == job.dst_len;
	if (direct) {
		io->out += job.produced;
		io->out_len -= job.produced;
	} else {
		d->pend_at = 0;
		d->pend_len = job.produced;
	}
	if (old) {
		remember(d, d->buf + HISTORY, job.consumed);
		d->fill -= job.consumed;
		memmove(d->buf + HISTORY, d->buf + HISTORY + job.consumed,
			d->fill);
	} else {
		if (d->buf)
			remember(d, io->in, job.consumed);
		take(d, io, job.consumed);
	}
	d->finished = job.ended;
	return ret;
}

/* Small pieces lose what they could have looked back at, so they use a higher
 * level. */
static bool is_small(const struct wf_alg_defl *d, size_t len, int flush)
{
	bool alone =
		flush == WD_COMP_FINISH && !d->history && d->total_in <= len;

	return len < LARGE && !alone;
}

/* Compresses one piece, into the caller's memory if it is sure to fit. */
static int make_piece(struct wf_alg_defl *d, struct wf_alg_io *io,
		      const uint8_t *src, size_t len, int flush)
{
	size_t room = wf_alg_piece_bound(len);
	bool direct = io->out_len >= room;
	struct wd_comp_job job = {
		.src = src,
		.src_len = len,
		.level = d->level,
		.window = d->window,
		.tight = d->tight || is_small(d, len, flush),
		.flush = flush,
	};
	struct wf_alg_want want = wanted(d, 0);
	struct wf_alg_want dict = wanted(d, WD_COMP_CAN_DEFLATE);
	struct wf_alg_slot *slot = wf_alg_registry_get(&dict);
	int ret;

	if (slot && d->history &&
	    wf_alg_registry_driver(slot)->can & WD_COMP_CAN_DEFLATE_DICT) {
		job.dict = d->buf + HISTORY - d->history;
		job.dict_len = d->history;
	}
	wf_alg_registry_put(slot);
	if (!direct && !need_pend(d, room))
		return -ENOMEM;
	job.dst = direct ? io->out : d->pend;
	job.dst_len = direct ? io->out_len : room;
	ret = wf_alg_piece_deflate(&job, want, &d->used);
	d->copied += job.copied;
	if (ret)
		return ret;
	if (direct) {
		io->out += job.produced;
		io->out_len -= job.produced;
	} else {
		d->pend_at = 0;
		d->pend_len = job.produced;
	}
	d->dirty = true;
	return 0;
}

/* How much of the caller's input makes a piece without a copy; 0: gather. */
static size_t direct_size(const struct wf_alg_defl *d,
			  const struct wf_alg_io *io, int flush)
{
	if (d->fill)
		return 0;
	if (flush == WD_COMP_FINISH &&
	    io->out_len >= wf_alg_piece_bound(io->in_len))
		return io->in_len;
	if (io->in_len > DIRECT)
		return DIRECT;
	return io->in_len >= chunk_of(d) || flush != WD_COMP_NO_FLUSH ?
		       io->in_len :
		       0;
}

static int next_piece(struct wf_alg_defl *d, struct wf_alg_io *io, int flush)
{
	size_t n = direct_size(d, io, flush);
	bool full = flush == WD_COMP_FULL_FLUSH;
	const uint8_t *src = io->in;
	bool all, last;
	int ret;

	/* Memory first: no input is taken that could not be processed. */
	if (!n || n < io->in_len || flush != WD_COMP_FINISH) {
		if (!need_buf(d))
			return -ENOMEM;
	}
	if (!n) {
		gather(d, io);
		src = d->buf + HISTORY;
		n = d->fill;
		all = !io->in_len;
	} else {
		all = n == io->in_len;
	}
	last = all && flush == WD_COMP_FINISH;
	ret = make_piece(d, io, src, n,
			 last	     ? WD_COMP_FINISH :
			 all && full ? WD_COMP_FULL_FLUSH :
				       WD_COMP_SYNC_FLUSH);
	if (ret)
		return ret;
	if (last)
		d->finished = true;
	else
		remember(d, src, n);
	if (all && full)
		d->history = 0;
	if (d->fill)
		d->fill = 0;
	else
		take(d, io, n);
	return 0;
}

/* Nothing to compress, but a header or marker to write. */
static void say_nothing(struct wf_alg_defl *d, int flush)
{
	static const uint8_t empty_last[] = { 0x03, 0x00 };
	static const uint8_t marker[] = { 0x00, 0x00, 0x00, 0xff, 0xff };

	if (flush == WD_COMP_FINISH) {
		set_edge(d, empty_last, sizeof(empty_last));
		d->finished = true;
	} else {
		set_edge(d, marker, sizeof(marker));
	}
	if (flush == WD_COMP_FULL_FLUSH)
		d->history = 0;
	d->dirty = false;
}

/* Header, trailer and END. True while there is nothing else to do. */
static bool at_an_edge(struct wf_alg_defl *d)
{
	uint8_t bytes[WF_WRAP_MAX] = { 0 };

	if (!d->begun) {
		d->begun = true;
		set_edge(d, bytes,
			 wf_alg_wrap_header(bytes, d->alg, d->level,
					    d->window ? d->window : 15));
		return true;
	}
	if (d->finished && !d->ended) {
		d->ended = true;
		set_edge(d, bytes,
			 wf_alg_wrap_trailer(bytes, d->alg, d->check,
					     d->total_in));
		return true;
	}
	return false;
}

/* Chunking. 1 when this call has no more to do, 0 to go round again. */
static int chunk_step(struct wf_alg_defl *d, struct wf_alg_io *io, int flush)
{
	size_t have = d->fill + io->in_len;
	bool sync =
		flush == WD_COMP_SYNC_FLUSH || flush == WD_COMP_PARTIAL_FLUSH;
	bool cut = flush != WD_COMP_NO_FLUSH && flush != WD_COMP_FINISH;
	int ret;

	if (flush == WD_COMP_NO_FLUSH && have < chunk_of(d)) {
		if (!need_buf(d))
			return -ENOMEM;
		gather(d, io);
		return 1;
	}
	if (!have) {
		if (flush == WD_COMP_BLOCK_FLUSH)
			return 1;
		/* A flush with nothing since the last one; but what comes after
		 * a full one must not look back, whatever came before it. */
		if (flush != WD_COMP_FINISH && !d->dirty &&
		    (flush != WD_COMP_FULL_FLUSH || !d->history))
			return 1;
		say_nothing(d, flush);
		return flush != WD_COMP_FINISH;
	}
	if (cut &&
	    have < (sync ? WF_ALG_DEFL_FLUSH_WORTH : WF_ALG_DEFL_FLUSH_SMALL) &&
	    !go_streaming(d))
		return 0;

	ret = next_piece(d, io, flush);
	if (ret)
		return ret;
	if (!io->in_len && !d->fill && flush != WD_COMP_FINISH) {
		if (flush != WD_COMP_NO_FLUSH && flush != WD_COMP_BLOCK_FLUSH)
			d->dirty = false;
		return 1;
	}
	return 0;
}

int wf_alg_defl_run(struct wf_alg_defl *d, struct wf_alg_io *io, int flush)
{
	int ret = 0;

	if (!d->decided && (ret = decide(d)))
		return ret;
	for (;;) {
		if (!drained(d, io))
			return WD_COMP_MORE_OUT;
		if (ret) {
			d->flushed = flush != WD_COMP_NO_FLUSH;
			return WD_COMP_MORE_IN;
		}
		if (at_an_edge(d))
			continue;
		if (d->ended)
			return WD_COMP_END;
		if (!d->slot) {
			/* 1: only to be drained. */
			ret = chunk_step(d, io, flush);
			if (ret < 0)
				return ret;
			continue;
		}
		if (!io->out_len)
			return WD_COMP_MORE_OUT;
		ret = stream_step(d, io, flush);
		if (ret)
			return ret;
		/* Done with this call, once it is drained? */
		ret = !d->finished && !d->full && !d->fill && !io->in_len;
	}
}

void wf_alg_defl_set_level(struct wf_alg_defl *d, int level)
{
	if (level == d->level)
		return;
	d->level = level;
	/* A driver that streams has the old level: leave it here. */
	if (d->slot) {
		close_stream(d);
		d->decided = false;
	}
}
