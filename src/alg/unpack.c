/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Divides the work among threads. The input is cut into ranges; a thread takes the
 * next range and decompresses it from the first block border that it finds there up
 * to the first one behind the range: a piece. Pieces are accepted in the order of
 * their ranges, which takes microseconds each: a piece must begin at the border at
 * which the one before it ended, and its last 32 KiB become the window of the next
 * one. All threads then do what takes long: resolving markers, checksums, writing.
 *
 * If a piece begins elsewhere, its range is decompressed again from the border
 * that is known by then. serial.c does the work that pieces cannot do.
 */
#include "alg/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weft/wd_comp.h>

#include "alg/crew.h"
#include "alg/engine.h"
#include "alg/wrap.h"

#define CHUNK_MOST (1u << 20)
#define CHUNK_LEAST (64u << 10)
#define CHUNK_FIRST (256u << 10) /* until the ratio is known */
#define CHUNK_ALONE (128u << 10) /* with one thread: stays in its cache */
#define PIECE_GOAL (3u << 20)	 /* output of a piece */
#define ROOM (40u << 20)	 /* memory of a piece, at most */
#define ROOM_ALONE (8u << 20)
#define ROOM_KEPT (16u << 20) /* of that, what a free piece keeps */
#define SERIAL_ROOM (512u << 10)
#define LARGE_PAGE (2u << 20)
#define READ_MOST (1u << 20)
#define MISSES 4 /* in a row, until nothing is done ahead */
#define SPARE 2	 /* pieces kept for what is next in order */

/* This says what a thread does next. */
enum job { WAIT, GO_HOME, FINISH, PUT, SERIAL, AHEAD, READ };

static struct wf_piece *piece_of(struct wf_engine *e, uint64_t number)
{
	for (unsigned int i = 0; i < e->count; i++) {
		struct wf_piece *p = &e->pieces[i];

		if ((p->state == WF_PIECE_BUSY || p->state == WF_PIECE_DONE) &&
		    p->number == number && !atomic_load(&p->unwanted))
			return p;
	}
	return NULL;
}

static void give_back(struct wf_engine *e, struct wf_piece *p)
{
	size_t used = (size_t)(p->chunk.out - p->chunk.room);

	if (used > ROOM_KEPT)
		madvise(p->chunk.room + ROOM_KEPT, p->room - ROOM_KEPT,
			MADV_DONTNEED);
	p->state = WF_PIECE_FREE;
	e->unused++;
}

static struct wf_piece *take_piece(struct wf_engine *e)
{
	struct wf_piece *p = e->pieces;

	while (p->state != WF_PIECE_FREE)
		p++;
	p->state = WF_PIECE_BUSY;
	p->number = UINT64_MAX;
	p->reads_from = UINT64_MAX;
	p->error = 0;
	p->found = false;
	p->chunk.out = p->chunk.room;
	atomic_store(&p->known, false);
	atomic_store(&p->unwanted, false);
	e->unused--;
	return p;
}

static bool same(struct wf_border a, struct wf_border b)
{
	return a.bit == b.bit && a.member == b.member;
}

/* Tells a piece where it begins, and the window before it. */
static void tell(struct wf_engine *e, struct wf_piece *p)
{
	p->known_at = e->at;
	p->have = e->have;
	memcpy(p->window, e->window, sizeof(p->window));
	atomic_store_explicit(&p->known, true, memory_order_release);
}

static void fail(struct wf_engine *e, int ret)
{
	if (ret && !e->failed)
		e->failed = ret;
}

/* Gives the output of a piece its place, and the piece its turn. */
static void queue(struct wf_engine *e, struct wf_piece *p)
{
	p->out = e->out;
	e->out += wf_chunk_total(&p->chunk);
	p->turn = e->turns++;
	p->state = WF_PIECE_TAKEN;
}

/* Adapts the size of ranges to the compression ratio, so that all pieces have
 * about the same output. */
static void adapt(struct wf_engine *e, const struct wf_chunk *c)
{
	uint64_t in = (c->border.bit - c->begin.bit) / 8 + 1;
	uint64_t goal = PIECE_GOAL * in / (wf_chunk_total(c) + 1);

	if (e->threads == 1 || e->u->chunk)
		return;
	if (goal < CHUNK_LEAST)
		goal = CHUNK_LEAST;
	if (goal > e->chunk_most)
		goal = e->chunk_most;
	e->chunk = (size_t)(e->chunk + goal) / 2;
}

/* Takes a piece over if it begins where the data before it ends. */
static bool take_over(struct wf_engine *e, struct wf_piece *p)
{
	struct wf_chunk *c = &p->chunk;

	if (!p->found || !same(c->begin, e->at) || same(c->border, e->at))
		return false;
	/* The window that came with an index must equal the real one. */
	if (p->range.exact && p->range.hint && !atomic_load(&p->known) &&
	    (p->range.hint_have > e->have ||
	     memcmp(p->range.hint,
		    e->window + WF_CHUNK_WINDOW - p->range.hint_have,
		    p->range.hint_have) != 0))
		return false;
	memcpy(p->window, e->window, sizeof(p->window));
	p->have = e->have;
	if (!wf_deflate_chunk_window(c, e->window, &e->have))
		return false;
	e->at = c->border;
	if (!e->source.memory)
		e->source.begin = e->at.bit / 8;
	/* A piece that found no border to stop at may have continued beyond the
	 * assigned ranges: a piece before ->at would be useless. */
	if (!e->bgzf && !e->u->points && e->cut < e->at.bit)
		e->cut = e->at.bit;
	adapt(e, c);
	queue(e, p);
	return true;
}

static void miss(struct wf_engine *e)
{
	e->u->missed++;
	e->misses++;
}

/* Whether a search would find this border. */
static bool is_findable(const struct wf_engine *e, struct wf_border at)
{
	uint64_t byte = at.bit / 8, last = (at.bit + 2) / 8;
	const uint8_t *in;
	unsigned int bits;

	if (at.member)
		return true;
	if (last >= e->source.end)
		return false;
	in = wf_alg_source_at(&e->source, byte);
	bits = in[byte] | (unsigned int)in[last] << 8;
	return (bits >> (at.bit & 7) & 7) == 4;
}

/* The range was decompressed in order, up to ->at. After too many misses, work
 * ahead is tried again if a piece could have found the border ->at by search.
 * Data of fixed blocks alone has no such border and is not searched again. */
static void try_again(struct wf_engine *e, const struct wf_range *range)
{
	if (e->misses >= MISSES &&
	    (range->exact ? e->at.bit == range->to : is_findable(e, e->at)))
		e->misses = MISSES - 1;
}

/* The piece of the range that ->at is in is done: takes it over, or gives it
 * back. True: look at the next one. */
static bool settle(struct wf_engine *e, struct wf_piece *p)
{
	bool ahead = !atomic_load(&p->known) || p->chunk.wide;
	bool here = p->found && same(p->chunk.begin, e->at);

	if (take_over(e, p)) {
		/* A begin that was passed to the piece proves nothing about the
		 * search. */
		if (ahead)
			e->misses = 0;
		else
			try_again(e, &p->range);
		e->u->ahead += ahead;
		if (p->why == WF_CHUNK_STOP) {
			e->head++;
			return true;
		}
		e->over = e->at.member && !e->u->members;
		e->stuck = p->why != WF_CHUNK_FULL && !e->over;
		return false;
	}
	/* The range is decompressed again from ->at; in order, if this piece
	 * had begun there already. */
	if (here && atomic_load(&p->known))
		e->stuck = true;
	else
		miss(e);
	give_back(e, p);
	return false;
}

/* Takes over the next piece if it is done. If it is in progress, it is told its
 * window. */
static void advance(struct wf_engine *e)
{
	/* Output that was made in order comes first. It gets its turn when
	 * ->serial_busy ends, though ->at may be behind it before. */
	bool more = !e->serial_busy;

	while (more && !e->over && !e->failed && !e->serial_begun &&
	       !e->stuck) {
		struct wf_piece *p = piece_of(e, e->head);

		if (e->at.member && !e->u->members) {
			e->over = true;
		} else if (e->head < e->numbers &&
			   e->at.bit >=
				   e->ranges[e->head % e->ranges_count].to) {
			/* All of the range has been decompressed already. */
			if (p && p->state == WF_PIECE_DONE) {
				miss(e);
				give_back(e, p);
			} else if (p) {
				atomic_store(&p->unwanted, true);
			}
			e->head++;
		} else if (p && p->state == WF_PIECE_DONE) {
			more = settle(e, p);
		} else {
			if (p && !atomic_load(&p->known))
				tell(e, p);
			more = false;
		}
	}
}

/* A piece for the range of this number. */
static struct wf_piece *piece_for(struct wf_engine *e, uint64_t number)
{
	struct wf_piece *p = take_piece(e);
	bool next = number == e->head && !e->serial_begun && !e->stuck;

	p->number = number;
	p->range = e->ranges[number % e->ranges_count];
	if (next)
		tell(e, p);
	p->reads_from = next ? e->at.bit / 8 : p->range.from / 8;
	p->chunk.in = wf_alg_source_at(&e->source, p->reads_from);
	p->chunk.len = (size_t)e->source.end;
	return p;
}

/* Decompression in order has come to ->serial.pos: pieces before that are not
 * wanted any more. */
static void pass_by(struct wf_engine *e)
{
	uint64_t bit = e->serial.pos > 8 ? (e->serial.pos - 8) * 8 : 0;

	for (unsigned int i = 0; i < e->count; i++) {
		struct wf_piece *p = &e->pieces[i];

		if (p->state == WF_PIECE_BUSY && p->number >= e->head &&
		    p->number != UINT64_MAX && p->range.to <= bit)
			atomic_store(&p->unwanted, true);
	}
	if (!e->bgzf && !e->u->points && e->cut < bit)
		e->cut = bit;
}

/* The range at ->at, if nobody works on it, or the next one. */
static struct wf_piece *next_ahead(struct wf_engine *e)
{
	bool wait = e->serial_begun || e->stuck;

	if (e->over || !e->unused)
		return NULL;
	if (!wait && e->head < e->numbers && !piece_of(e, e->head))
		return piece_for(e, e->head);
	if (e->numbers != e->head || wait) {
		if (e->threads == 1 || e->unused <= SPARE ||
		    e->misses >= MISSES)
			return NULL;
	}
	return wf_alg_engine_range_locked(e) ? piece_for(e, e->numbers - 1) :
					       NULL;
}

/* Whether to go on in order: where pieces do not help, or while input comes
 * slowly and nothing is under way. */
static bool wants_serial(struct wf_engine *e)
{
	if (e->over || e->serial_busy || e->starving || !e->unused)
		return false;
	if (e->serial_begun || e->stuck)
		return true;
	return e->reading && e->head == e->numbers &&
	       e->source.end > e->at.bit / 8 + 1;
}

/* Where the input begins that a thread may still read. A piece that is no
 * longer needed reads its range until it notices, although the serial part is
 * already behind it. */
static uint64_t input_in_use(const struct wf_engine *e)
{
	uint64_t from = e->source.begin;

	for (unsigned int i = 0; i < e->count; i++) {
		const struct wf_piece *p = &e->pieces[i];

		if (p->state == WF_PIECE_BUSY && p->reads_from < from)
			from = p->reads_from;
	}
	return from;
}

static bool can_read(const struct wf_engine *e)
{
	return !e->source.eof && !e->reading && !e->over &&
	       e->source.size - (e->source.end - input_in_use(e)) >=
		       e->source.size / 16;
}

static enum job choose(struct wf_engine *e, struct wf_piece **piece)
{
	struct wf_piece *first = NULL;

	/* A thread that waits for input must not keep the others from
	 * ending. */
	if ((e->failed || e->over) && e->reading && e->u->stop)
		e->u->stop(e->u->arg);
	if (e->failed || (e->over && e->put == e->turns))
		return GO_HOME;
	for (unsigned int i = 0; i < e->count; i++) {
		struct wf_piece *p = &e->pieces[i];

		if (p->state == WF_PIECE_TAKEN &&
		    (!first || p->turn < first->turn))
			first = p;
		if (p->state == WF_PIECE_FINISHED && p->turn == e->put &&
		    !e->putting) {
			*piece = p;
			return PUT;
		}
	}
	*piece = first;
	if (first)
		return FINISH;
	if (wants_serial(e)) {
		*piece = take_piece(e);
		return SERIAL;
	}
	*piece = next_ahead(e);
	if (*piece)
		return AHEAD;
	return can_read(e) ? READ : WAIT;
}

/* Whether pieces take over from what went on in order. */
static bool is_handover(struct wf_engine *e, const struct wf_range *range)
{
	const struct wf_serial *s = &e->serial;

	if (s->at.bit < range->to || e->in_order)
		return false;
	return range->exact || is_findable(e, s->at);
}

/* The first header tells how the rest is cut. */
static void begin_ranges(struct wf_engine *e)
{
	struct wf_unpack *u = e->u;
	const struct wf_serial *s = &e->serial;

	u->mtime = (uint32_t)s->head.time;
	e->at = s->at;
	e->have = 0;
	if (u->header && u->alg == WD_COMP_GZIP)
		u->header(u->arg, u, s->extra,
			  s->head.extra ? s->head.extra_len : 0, s->at.bit);
	/* A file of such members begins with one. */
	if (u->members && s->head.extra && s->head.extra_len >= 6 &&
	    !memcmp(s->extra, "BC\2", 4)) {
		e->bgzf = true;
		e->at = (struct wf_border){ 0, true };
	}
	e->cut = e->at.bit;
	/* If the first block could not be found, perhaps none can: one try. */
	if (!is_findable(e, e->at))
		e->misses = MISSES - 1;
	e->serial_begun = false;
	e->stuck = e->in_order;
}

/* Steps until pieces can go on, or @p is full. Without the lock, but where it
 * says so. */
static void go_in_order(struct wf_engine *e, struct wf_piece *p,
			struct wf_range range)
{
	struct wf_chunk *c = &p->chunk;
	struct wf_serial *s = &e->serial;

	while (c->narrow < SERIAL_ROOM) {
		enum wf_serial_ret ret;
		uint64_t end;
		size_t made;
		bool eof;

		pthread_mutex_lock(&e->lock);
		end = e->source.end;
		eof = e->source.eof;
		if (!e->source.memory && s->pos > 8)
			e->source.begin = s->pos - 8;
		pthread_mutex_unlock(&e->lock);
		ret = wf_alg_serial_step(s,
					 wf_alg_source_at(&e->source, s->pos),
					 end, eof, c->narrow_at + c->narrow,
					 SERIAL_ROOM - c->narrow, &made);
		c->narrow += made;
		c->out = c->narrow_at + c->narrow;
		if (ret == WF_SERIAL_MEMBER &&
		    !wf_deflate_chunk_end(c, s->trailer)) {
			s->error = -ENOMEM;
			ret = WF_SERIAL_FAILED;
		}
		pthread_mutex_lock(&e->lock);
		if (ret == WF_SERIAL_FAILED)
			p->error = s->error;
		pass_by(e);
		e->over = ret == WF_SERIAL_FAILED || ret == WF_SERIAL_OVER ||
			  (ret == WF_SERIAL_MEMBER && !e->u->members);
		e->starving = ret == WF_SERIAL_INPUT && end == e->source.end &&
			      eof == e->source.eof;
		if (ret == WF_SERIAL_HEADER && !e->numbers && !e->turns) {
			begin_ranges(e);
		} else if ((ret == WF_SERIAL_BORDER ||
			    ret == WF_SERIAL_MEMBER) &&
			   is_handover(e, &range)) {
			e->at = s->at;
			e->have = wf_alg_serial_window(s, e->window);
			e->serial_begun = false;
			e->stuck = false;
			try_again(e, &range);
		}
		made = !e->serial_begun || e->over || ret == WF_SERIAL_INPUT;
		pthread_mutex_unlock(&e->lock);
		if (made)
			return;
	}
}

static void run_finish_locked(struct wf_engine *e, struct wf_piece *p,
			      uint8_t *table)
{
	int ret;

	p->state = WF_PIECE_FINISHING;
	pthread_mutex_unlock(&e->lock);
	ret = wf_alg_engine_finish(e, p, table);
	pthread_mutex_lock(&e->lock);
	p->state = WF_PIECE_FINISHED;
	fail(e, ret);
}

static void run_serial_locked(struct wf_engine *e, struct wf_piece *p,
			      uint8_t *table)
{
	struct wf_chunk *c = &p->chunk;
	struct wf_range range = { .to = UINT64_MAX };

	if (!e->serial_begun) {
		const uint8_t *in = wf_alg_source_at(&e->source, e->at.bit / 8);

		wf_alg_serial_begin(&e->serial, e->at, in, e->window, e->have);
		e->serial_begun = true;
		/* Slow input: this range is for us alone. */
		if (e->head == e->numbers && e->cut != UINT64_MAX) {
			range.from = e->at.bit;
			range.to = e->at.bit + (uint64_t)e->chunk * 8;
			if (range.to < e->cut)
				range.to = e->cut;
			e->cut = range.to;
			e->ranges[e->numbers++ % e->ranges_count] = range;
		}
	}
	if (e->head < e->numbers)
		range = e->ranges[e->head % e->ranges_count];
	e->serial_busy = true;
	wf_deflate_chunk_begin(c, (struct wf_border){ 0, true }, NULL, 0);
	pthread_mutex_unlock(&e->lock);
	go_in_order(e, p, range);
	pthread_mutex_lock(&e->lock);
	if (!wf_chunk_total(c) && !c->ends_count && !p->error) {
		give_back(e, p);
	} else {
		queue(e, p);
		/* If it goes on in order, then here: output and decoder are in
		 * this processor's cache. */
		if (e->serial_begun && !e->over)
			run_finish_locked(e, p, table);
	}
	e->serial_busy = false;
}

static void run_ahead_locked(struct wf_engine *e, struct wf_piece *p)
{
	pthread_mutex_unlock(&e->lock);
	wf_alg_engine_ahead(p);
	pthread_mutex_lock(&e->lock);
	p->state = WF_PIECE_DONE;
	if (atomic_load(&p->unwanted) ||
	    (!p->found && !atomic_load(&p->known))) {
		miss(e);
		give_back(e, p);
	}
}

static void run_put_locked(struct wf_engine *e, struct wf_piece *p)
{
	size_t good = 0;
	int bad, ret = 0;

	e->putting = true;
	pthread_mutex_unlock(&e->lock);
	bad = wf_alg_engine_verify(e, p, &good);
	if (e->u->put && !e->u->put_at)
		ret = wf_alg_engine_put(e, p, good);
	if (!ret && !bad && e->u->piece)
		ret = wf_alg_engine_tell(e, p);
	pthread_mutex_lock(&e->lock);
	e->putting = false;
	e->put++;
	if (!ret)
		e->u->total_out += good;
	if (!bad && p->error) /* then nobody goes on */
		e->why = e->serial.why;
	fail(e, ret ? ret : bad ? bad : p->error);
	give_back(e, p);
}

static void run_read_locked(struct wf_engine *e)
{
	size_t room;
	uint8_t *to = wf_alg_source_room(&e->source, input_in_use(e), &room);
	ssize_t n;

	e->reading = true;
	pthread_cond_broadcast(&e->moved);
	pthread_mutex_unlock(&e->lock);
	n = e->u->read(e->u->arg, to, room < READ_MOST ? room : READ_MOST);
	pthread_mutex_lock(&e->lock);
	e->reading = false;
	e->starving = false;
	if (n < 0)
		fail(e, (int)n);
	else if (!n)
		e->source.eof = true;
	else
		e->source.end += (uint64_t)n;
}

static void work(void *arg)
{
	struct wf_engine *e = arg;
	uint8_t *table = malloc(65536);
	struct wf_piece *p = NULL;
	enum job job = WAIT;

	pthread_mutex_lock(&e->lock);
	if (!table)
		fail(e, -ENOMEM);
	while (job != GO_HOME) {
		advance(e);
		job = choose(e, &p);
		switch (job) {
		case FINISH:
			run_finish_locked(e, p, table);
			break;
		case PUT:
			run_put_locked(e, p);
			break;
		case SERIAL:
			run_serial_locked(e, p, table);
			break;
		case AHEAD:
			run_ahead_locked(e, p);
			break;
		case READ:
			run_read_locked(e);
			break;
		case WAIT:
			pthread_cond_wait(&e->moved, &e->lock);
			continue;
		default:
			break;
		}
		pthread_cond_broadcast(&e->moved);
	}
	pthread_mutex_unlock(&e->lock);
	free(table);
}

/* Memory and sizes. Pages of pieces are taken when they are used. */
static int make_pieces(struct wf_engine *e)
{
	bool alone = e->threads == 1;
	uint8_t *first;
	void *memory;
	int ret = 0;

	e->count = alone ? 1 + SPARE : 2 * e->threads + SPARE;
	e->room = alone ? ROOM_ALONE : ROOM;
	e->ranges_count = 4 * e->count;
	e->pieces = calloc(e->count, sizeof(*e->pieces));
	e->ranges = calloc(e->ranges_count, sizeof(*e->ranges));
	e->memory_size = e->count * e->room + LARGE_PAGE;
	memory = mmap(NULL, e->memory_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	e->memory = memory == MAP_FAILED ? NULL : memory;
	if (!e->pieces || !e->ranges || !e->memory)
		return -ENOMEM;
	madvise(memory, e->memory_size, MADV_HUGEPAGE);
	first = e->memory + (-(uintptr_t)memory & (LARGE_PAGE - 1));
	for (unsigned int i = 0; i < e->count && !ret; i++) {
		struct wf_chunk *c = &e->pieces[i].chunk;

		c->room = first + i * e->room;
		c->size = e->room;
		e->pieces[i].room = e->room;
		c->members = e->u->members;
		c->trailer = wf_alg_wrap_trailer_size(e->u->alg);
		ret = wf_deflate_chunk_init(c);
		e->unused++;
	}
	return ret;
}

/* One thread where there is not enough for two. */
static void choose_sizes(struct wf_engine *e)
{
	struct wf_unpack *u = e->u;
	size_t chunk = u->chunk;

	e->threads = e->threads ? e->threads : u->threads;
	if (!chunk && u->in && u->in_len < 2 * CHUNK_ALONE)
		e->threads = 1;
	if (!chunk && e->threads == 1)
		chunk = CHUNK_ALONE;
	if (!chunk && u->in) {
		chunk = u->in_len / (4 * e->threads);
		if (chunk < CHUNK_LEAST)
			chunk = CHUNK_LEAST;
	}
	e->chunk_most = chunk && chunk < CHUNK_MOST ? chunk : CHUNK_MOST;
	e->chunk = e->chunk_most;
	if (e->threads > 1 && !u->chunk && e->chunk > CHUNK_FIRST)
		e->chunk = CHUNK_FIRST;
	/* While one thread waits for input, it decompresses nothing: it must
	 * not leave work for later. */
	e->in_order = e->threads == 1 && !u->in;
}

static void end(struct wf_engine *e)
{
	for (unsigned int i = 0; e->pieces && i < e->count; i++) {
		wf_deflate_chunk_exit(&e->pieces[i].chunk);
		free(e->pieces[i].checks);
	}
	free(e->pieces);
	free(e->ranges);
	if (e->memory)
		munmap(e->memory, e->memory_size);
	wf_alg_source_end(&e->source);
	wf_alg_serial_exit(&e->serial);
	pthread_cond_destroy(&e->moved);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* With a header, or in the middle. */
static void begin(struct wf_engine *e)
{
	const struct wf_unpack_point *start = e->u->start;

	/* Before the first header there are no ranges. */
	e->cut = UINT64_MAX;
	e->serial_begun = true;
	if (!start)
		return;
	e->serial_begun = false;
	e->at = start->at;
	e->out = start->out;
	e->have = start->have;
	if (e->have)
		memcpy(e->window + WF_CHUNK_WINDOW - e->have, start->window,
		       e->have);
	e->unchecked = !start->at.member;
	e->cut = e->at.bit;
	e->serial.first = false;
}

/* @threads: 0 for those that were asked for. NULL without memory. */
static struct wf_engine *make(struct wf_unpack *u, unsigned int threads,
			      int *ret)
{
	struct wf_engine *e = calloc(1, sizeof(*e));

	*ret = -ENOMEM;
	if (!e)
		return NULL;
	e->u = u;
	e->threads = threads;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->moved, NULL);
	choose_sizes(e);
	*ret = wf_alg_serial_init(&e->serial, u->alg, u->members);
	if (!*ret)
		*ret = make_pieces(e);
	if (!*ret && u->in)
		wf_alg_source_memory(&e->source, u->in, u->in_len);
	else if (!*ret)
		*ret = wf_alg_source_ring(&e->source,
					  e->chunk_most * (e->count + 2));
	if (!*ret)
		return e;
	end(e);
	return NULL;
}

int wf_alg_unpack_run(struct wf_unpack *u)
{
	struct wf_engine *e;
	int ret;

	u->total_in = 0;
	u->total_out = 0;
	e = make(u, 0, &ret);
	/* One thread needs much less. */
	if (!e && u->threads > 1)
		e = make(u, 1, &ret);
	if (!e)
		return ret;
	begin(e);
	e->check = wd_comp_check_init(u->alg == WD_COMP_ZLIB ? WD_COMP_ZLIB :
							       WD_COMP_GZIP);
	u->check = e->check;
	wf_alg_crew_together(e->threads, work, e);
	ret = e->failed;
	u->why = ret == -EBADMSG ? e->why : NULL;
	u->garbage = e->serial.garbage;
	u->total_in = e->serial_begun ? e->serial.pos : e->at.bit / 8;
	end(e);
	return ret;
}
