/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job for the driver, its result in portions, and the way back to weft's own
 * decoder. The state of that decoder stays at the beginning of the raw data until
 * all of it is given out, but for checksum and total; header and trailer are
 * always read by it.
 */
#include "zshim/ahead.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alg/piece.h"
#include "alg/registry.h"
#include "deflate/check.h"
#include "deflate/cursor.h"

/* Less input is not worth a job. */
#define LEAST 1024u
/* Where a stream ends is not known before it is decompressed. All input is tried,
 * unless the last stream was one of many (members of a gzip file): then a few
 * times what that one took, because a device may copy what it is given; and if
 * this was not enough, MORE times as much. */
#define FEW 4u
#define MORE 8u
#define FIRST_LEAST (64u << 10)
/* Room for the plain data: so many times the input, then as many times that. */
#define RATIO 8u
#define ROOM_LEAST (1u << 20)
#define ROOM_MOST (64u << 20)

/* Output of all streams that is kept for later calls, and the input that it came
 * from: beyond that, streams are weft's own work. */
#define KEPT_MOST ((size_t)256 << 20)
/* After so many streams in a row of which not all was there, the driver is asked
 * for one stream of SELDOM: it has no use for streams that come in parts. */
#define MISSES 8u
#define SELDOM 16u

static _Atomic size_t kept;

/* These say what this thread's streams were like lately. */
static __thread size_t usual;	     /* input to try first, 0: all */
static __thread unsigned int missed; /* MISSES, then streams since */

/* A driver that uses zlib in its own work must not be asked to do that. */
static __thread bool asking;

bool wf_zshim_ahead_is_wanted(void)
{
	static atomic_int known;
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (!is) {
		const char *name = secure_getenv("WD_COMP_DRIVER");

		is = name && *name ? 2 : 1;
		atomic_store_explicit(&known, is, memory_order_relaxed);
	}
	return is == 2;
}

static bool may_keep(size_t len)
{
	if (atomic_fetch_add(&kept, len) + len <= KEPT_MOST)
		return true;
	atomic_fetch_sub(&kept, len);
	return false;
}

static void free_plain(struct wf_zshim_ahead *a)
{
	if (a->plain)
		atomic_fetch_sub(&kept, a->len);
	free(a->plain);
	a->plain = NULL;
}

static void free_raw(struct wf_zshim_ahead *a)
{
	if (a->raw)
		atomic_fetch_sub(&kept, a->raw_len);
	free(a->raw);
	a->raw = NULL;
}

void wf_zshim_ahead_reset(struct wf_zshim_ahead *a)
{
	free_plain(a);
	free_raw(a);
	*a = (struct wf_zshim_ahead){ 0 };
}

/* -- the job --------------------------------------------------------------- */

struct attempt {
	struct wd_comp_job job;
	struct wf_alg_want want;
	uint8_t *room; /* what was allocated last, or NULL */
};

/* As the driver says. */
static int ask(struct attempt *t, uint8_t *dst, size_t len)
{
	t->job.dst = dst;
	t->job.dst_len = len;
	return wf_alg_piece_inflate(&t->job, t->want, NULL);
}

/* Into memory of ours, which is larger each time it was too small. */
static int ask_roomy(struct attempt *t, size_t room)
{
	for (;;) {
		bool most = room >= ROOM_MOST;
		int ret;

		room = most ? ROOM_MOST : room;
		free(t->room);
		t->room = malloc(room);
		ret = t->room ? ask(t, t->room, room) : -ENOMEM;
		if (ret != -ENOSPC || most)
			return ret;
		room *= RATIO;
	}
}

static int ask_for(struct attempt *t, const struct wf_inflate_io *io,
		   size_t src_len)
{
	size_t room = RATIO * src_len;
	int ret = -ENOSPC;

	room = room > ROOM_LEAST ? room : ROOM_LEAST;
	t->job.src_len = src_len;
	/* The output of a caller that knows its size has place for all. */
	if (io->out_len >= src_len)
		ret = ask(t, io->out, io->out_len);
	if (ret == -ENOSPC && io->out_len < ROOM_MOST)
		ret = ask_roomy(t, room > io->out_len ? room :
							RATIO * io->out_len);
	return ret;
}

static bool overlap(const struct wf_inflate_io *io)
{
	uintptr_t in = (uintptr_t)io->in, out = (uintptr_t)io->out;

	return in < out + io->out_len && out < in + io->in_len;
}

/* The result is @a's: output that is already where the caller wants it, or
 * ->plain, with ->raw if it cannot all be given now. */
static bool keep(struct wf_zshim_ahead *a, struct attempt *t,
		 const struct wf_inflate_io *io)
{
	const struct wd_comp_job *job = &t->job;
	uint8_t *smaller;

	a->len = job->produced;
	a->raw_len = job->consumed;
	if (job->dst == t->room && !may_keep(a->len))
		return false;
	if (job->dst == t->room) {
		smaller = realloc(t->room, a->len ? a->len : 1);
		a->plain = smaller ? smaller : t->room;
		t->room = NULL;
	}
	if (a->len <= io->out_len)
		return true;
	if (may_keep(a->raw_len)) {
		a->raw = malloc(a->raw_len);
		if (a->raw) {
			memcpy(a->raw, io->in, a->raw_len);
			return true;
		}
		atomic_fetch_sub(&kept, a->raw_len);
	}
	free_plain(a);
	return false;
}

/* A stream took @used of @in_len. */
static void learn(size_t used, size_t in_len)
{
	size_t len = FEW * used > FIRST_LEAST ? FEW * used : FIRST_LEAST;

	usual = in_len > len ? len : 0;
}

/* The end of the stream is not there. Some drivers take that for damage. */
static bool is_cut(int ret)
{
	return ret == -ENODATA || ret == -EBADMSG;
}

/* With as much of the input as streams lately needed, then with more of it, up
 * to what the driver takes at once. */
static int ask_enough(struct attempt *t, const struct wf_inflate_io *io,
		      const struct wd_comp_limits *limits)
{
	size_t most = io->in_len, len;
	int ret;

	if (limits->src_max && limits->src_max < most)
		most = limits->src_max;
	len = usual && usual < most ? usual : most;
	while (is_cut(ret = ask_for(t, io, len)) && len < most)
		len = most / MORE < len ? most : len * MORE;
	return ret;
}

static uint32_t check_of(const struct wf_inflate *s, const uint8_t *data,
			 size_t len)
{
	return s->flags ? wf_deflate_crc32(s->check, data, len) :
			  wf_deflate_adler32(s->check, data, len);
}

/* As the stream's own checksum says. If not, either the stream or the driver is
 * at fault: the decoder finds out. A stream without one relies on a driver that
 * refuses what zlib refuses. */
static bool is_right(const struct wf_inflate *s, const struct wd_comp_job *job,
		     const struct wf_inflate_io *io)
{
	uint32_t sum;

	if (!(s->wrap & WF_INFLATE_CHECK))
		return true;
	if (io->in_len - job->consumed < sizeof(sum))
		return false;
	memcpy(&sum, io->in + job->consumed, sizeof(sum));
	sum = s->flags ? le32toh(sum) : be32toh(sum);
	return check_of(s, job->dst, job->produced) == sum;
}

static bool try(struct wf_zshim_ahead *a, struct wf_inflate *s,
		const struct wf_inflate_io *io, const struct wf_alg_slot *slot)
{
	const struct wd_alg_comp *driver = wf_alg_registry_driver(slot);
	uint8_t *dict = s->whave ? malloc(s->whave) : NULL;
	struct attempt t = {
		.job = { .src = io->in,
			 .dict = dict,
			 .dict_len = s->whave,
			 .window = 15,
			 .tight = 1 },
		.want = { .name = driver->name },
	};
	bool done;
	int ret;

	if (s->whave && !dict)
		return false;
	wf_deflate_inflate_get_dict(s, dict);
	ret = ask_enough(&t, io, &driver->limits);
	done = !ret && t.job.ended && is_right(s, &t.job, io) &&
	       keep(a, &t, io);
	if (!ret)
		learn(t.job.consumed, io->in_len);
	if (done)
		missed = 0;
	else if ((is_cut(ret) || ret == -ENOSPC) && missed < MISSES)
		missed++;
	/* Bytes that this file copies count as copied for the driver. */
	if (done && a->plain)
		wf_alg_stats_add(wf_alg_registry_stats(slot),
				 WF_ALG_STAT_copied_bytes,
				 a->len + (a->raw ? a->raw_len : 0));
	free(t.room);
	free(dict);
	return done;
}

/* Whether the driver has done the stream. */
static bool begin(struct wf_zshim_ahead *a, struct wf_inflate *s,
		  const struct wf_inflate_io *io)
{
	struct wf_alg_want want = { .can = WD_COMP_CAN_INFLATE, .level = -1 };
	struct wf_alg_slot *slot;

	if (asking || io->in_len < LEAST || !io->out_len || s->wbits != 15 ||
	    overlap(io) || (missed >= MISSES && ++missed % SELDOM))
		return false;
	asking = true;
	if (!(s->wrap & WF_INFLATE_CHECK))
		want.can |= WD_COMP_CAN_REFUSE;
	want.name = wf_alg_registry_preferred();
	slot = want.name ? wf_alg_registry_get(&want) : NULL;
	if (slot && try(a, s, io, slot)) {
		a->served = true;
		a->giving = true;
		a->check = s->check;
		/* The caller is in the middle of blocks from now on. */
		if (s->mode == WF_INFLATE_TYPE)
			s->mode = WF_INFLATE_TYPE_DO;
	}
	wf_alg_registry_put(slot);
	asking = false;
	return a->served;
}

/* -- its result ------------------------------------------------------------ */

/* One of several steps of a call: the checksum that an earlier one has made is
 * new for the caller, too. */
static enum wf_inflate_ret decode(struct wf_inflate *s,
				  struct wf_inflate_io *io,
				  enum wf_inflate_flush flush)
{
	bool was = s->adler_new;
	enum wf_inflate_ret ret = wf_deflate_inflate_run(s, io, flush);

	s->adler_new = s->adler_new || was;
	return ret;
}

/* Input is taken as output is given, so that the ratio of the two, which
 * programs look at, is that of the stream. */
static size_t take_of(const struct wf_zshim_ahead *a, size_t in_len)
{
	size_t want = a->raw_len - a->taken;

	if (a->given < a->len)
		want = (size_t)((double)a->raw_len * (double)a->given /
				(double)a->len) -
		       a->taken;
	return want < in_len ? want : in_len;
}

static void give(struct wf_zshim_ahead *a, struct wf_inflate *s,
		 struct wf_inflate_io *io)
{
	size_t n = a->len - a->given, take;

	n = n < io->out_len ? n : io->out_len;
	if (a->plain && n)
		memcpy(io->out, a->plain + a->given, n);
	a->given += n;
	if (n && s->wrap & WF_INFLATE_CHECK) {
		s->check = check_of(s, io->out, n);
		s->adler = s->check;
		s->adler_new = true;
	}
	s->total += n;
	io->out += n;
	io->out_len -= n;
	take = take_of(a, io->in_len);
	a->taken += take;
	io->in += take;
	io->in_len -= take;
	s->counted = true;
}

/* As zlib: the output of earlier calls is in the window, and what this one gave
 * if more may follow; but not if this call has read the checksum. */
static bool keep_window(struct wf_inflate *s, const uint8_t *end, size_t len,
			enum wf_inflate_flush flush)
{
	if (s->wrap && s->mode != WF_INFLATE_SUM)
		return true;
	if (!s->wsize && (!len || flush == WF_INFLATE_FINISH))
		return true;
	return !wf_deflate_window_add(s, end, len);
}

/* All is given: the decoder goes on behind the last block. @prior bytes were given
 * by earlier calls, the rest before io->out. */
static enum wf_inflate_ret settle(struct wf_zshim_ahead *a,
				  struct wf_inflate *s,
				  struct wf_inflate_io *io,
				  enum wf_inflate_flush flush, size_t prior)
{
	const uint8_t *end = io->out;
	enum wf_inflate_ret ret = WF_INFLATE_NO_MEMORY;
	bool good =
		!prior || !wf_deflate_window_add(s, a->plain + prior, prior);

	s->last = true;
	s->mode = WF_INFLATE_SUM;
	if (good) {
		ret = decode(s, io, flush);
		good = keep_window(s, end, a->len - prior, flush);
	}
	if (!good) {
		s->mode = WF_INFLATE_LOST;
		ret = WF_INFLATE_NO_MEMORY;
	}
	free_plain(a);
	free_raw(a);
	a->giving = false;
	return ret;
}

static enum wf_inflate_ret portion(struct wf_zshim_ahead *a,
				   struct wf_inflate *s,
				   struct wf_inflate_io *io,
				   enum wf_inflate_flush flush)
{
	size_t prior = a->given;

	give(a, s, io);
	if (a->given < a->len || a->taken < a->raw_len)
		return WF_INFLATE_OK;
	return settle(a, s, io, flush, prior);
}

/* -- back to the decoder --------------------------------------------------- */

static bool has_held(const struct wf_zshim_ahead *a)
{
	return a->held < a->held_end;
}

void wf_zshim_ahead_retreat(struct wf_zshim_ahead *a, struct wf_inflate *s)
{
	struct wf_inflate_io io = { a->raw, a->raw_len, a->plain, a->given };
	size_t used;

	if (!a->giving)
		return;
	s->check = a->check;
	s->total = 0;
	if (a->given)
		wf_deflate_inflate_run(s, &io, WF_INFLATE_GO);
	used = a->raw_len - io.in_len;
	a->debt = used > a->taken ? used - a->taken : 0;
	a->held = used;
	a->held_end = a->taken;
	free_plain(a);
	if (!has_held(a))
		free_raw(a);
	a->giving = false;
}

/* The input that was kept from earlier calls; it comes before that of this call. */
static struct wf_inflate_io held_of(const struct wf_zshim_ahead *a,
				    const struct wf_inflate_io *io)
{
	return (struct wf_inflate_io){ a->raw + a->held, a->held_end - a->held,
				       io->out, io->out_len };
}

/* Whether it stopped at a border because it was told to. */
static bool is_at_border(const struct wf_inflate *s,
			 enum wf_inflate_flush flush)
{
	return (flush == WF_INFLATE_BLOCK || flush == WF_INFLATE_TREES) &&
	       wf_deflate_inflate_data_type(s) & (128 | 256);
}

/* Skips input that the decoder has read already. */
static void pay(struct wf_zshim_ahead *a, struct wf_inflate_io *io)
{
	size_t skip = a->debt < io->in_len ? a->debt : io->in_len;

	a->debt -= skip;
	io->in += skip;
	io->in_len -= skip;
}

static enum wf_inflate_ret by_decoder(struct wf_zshim_ahead *a,
				      struct wf_inflate *s,
				      struct wf_inflate_io *io,
				      enum wf_inflate_flush flush)
{
	enum wf_inflate_ret ret;

	pay(a, io);
	/* The decoder may be at the end of the stream; the caller has not given
	 * all of it yet. */
	if (a->debt) {
		s->counted = true;
		return WF_INFLATE_OK;
	}
	if (has_held(a)) {
		struct wf_inflate_io held = held_of(a, io);

		ret = decode(s, &held, flush);
		a->held = a->held_end - held.in_len;
		io->out = held.out;
		io->out_len = held.out_len;
		if ((ret != WF_INFLATE_OK && ret != WF_INFLATE_NO_PROGRESS) ||
		    has_held(a) || is_at_border(s, flush))
			return ret;
	}
	return decode(s, io, flush);
}

enum wf_inflate_ret wf_zshim_ahead_sync(struct wf_zshim_ahead *a,
					struct wf_inflate *s,
					struct wf_inflate_io *io)
{
	pay(a, io);
	if (has_held(a)) {
		struct wf_inflate_io held = held_of(a, io);
		enum wf_inflate_ret ret = wf_deflate_inflate_sync(s, &held);

		a->held = a->held_end - held.in_len;
		if (ret == WF_INFLATE_OK)
			return ret;
	}
	return wf_deflate_inflate_sync(s, io);
}

bool wf_zshim_ahead_copy(struct wf_zshim_ahead *to,
			 const struct wf_zshim_ahead *from)
{
	*to = *from;
	to->raw = NULL;
	if (!has_held(from))
		return true;
	to->raw = malloc(from->raw_len);
	if (!to->raw)
		return false;
	atomic_fetch_add(&kept, from->raw_len);
	memcpy(to->raw, from->raw, from->raw_len);
	return true;
}

/* -- a call ---------------------------------------------------------------- */

/* Between header and first block, with nothing read of that. */
static bool is_at_data(const struct wf_inflate *s)
{
	return !s->bits && (s->mode == WF_INFLATE_TYPE ||
			    (s->mode == WF_INFLATE_HEAD && !s->wrap));
}

/* The first data, which has a header in front of it, or the rest of one. */
static enum wf_inflate_ret first(struct wf_zshim_ahead *a, struct wf_inflate *s,
				 struct wf_inflate_io *io,
				 enum wf_inflate_flush flush)
{
	if (s->wrap && s->mode < WF_INFLATE_TYPE) {
		/* It stops before the first block. */
		enum wf_inflate_ret ret = decode(s, io, WF_INFLATE_BLOCK);

		if (s->mode != WF_INFLATE_TYPE || !io->in_len)
			return ret;
	}
	a->asked = true;
	return is_at_data(s) && begin(a, s, io) ? portion(a, s, io, flush) :
						  decode(s, io, flush);
}

static enum wf_inflate_ret run(struct wf_zshim_ahead *a, struct wf_inflate *s,
			       struct wf_inflate_io *io,
			       enum wf_inflate_flush flush)
{
	bool by_block = flush == WF_INFLATE_BLOCK || flush == WF_INFLATE_TREES;

	if (by_block) {
		wf_zshim_ahead_retreat(a, s);
		a->asked = true;
	}
	if (a->giving)
		return portion(a, s, io, flush);
	return a->asked ? by_decoder(a, s, io, flush) : first(a, s, io, flush);
}

enum wf_inflate_ret wf_zshim_ahead_run(struct wf_zshim_ahead *a,
				       struct wf_inflate *s,
				       struct wf_inflate_io *io,
				       enum wf_inflate_flush flush)
{
	struct wf_inflate_io was = *io;
	enum wf_inflate_ret ret;
	bool moved;

	s->msg = NULL;
	s->adler_new = false;
	s->counted = false;
	ret = run(a, s, io, flush);
	moved = io->in_len != was.in_len || io->out_len != was.out_len;
	/* The last of several steps may have had nothing to do. */
	if (ret == WF_INFLATE_OK || ret == WF_INFLATE_NO_PROGRESS)
		return moved && flush != WF_INFLATE_FINISH ?
			       WF_INFLATE_OK :
			       WF_INFLATE_NO_PROGRESS;
	return ret;
}
