/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides which rings of an endpoint are looked at. The invariant
 * (watch.h):
 *
 *	a ring with a message is watched, or its bell is set, or it is on the
 *	look-again list.
 *
 * It is kept as follows:
 *
 * - A sender publishes its message, then loads bell_wanted, then sets its bell,
 *   then the word `rung` of the board. We look at the bells if that word is set,
 *   and clear it before. We clear a bell before we look at its ring. Whatever is
 *   in the ring after the look, because the budget is used up, the completion
 *   queue is full or memory is short, we set the bell again ourselves.
 * - A ring that stops being watched gets bell_wanted = 1. Our store and the
 *   sender's store of its message may both still stand in store buffers while
 *   each side loads the old value: the sender does not ring, we see an empty
 *   ring. The look-again list is for this. A ring enters it without a time; the
 *   next tick, whose clock was read after our store, gives it one that lies
 *   AGAIN_AFTER ahead; a look after that time sees what the sender wrote.
 *
 * A bell that we keep set because the completion queue is full is not answered
 * until the queue has room: each poll finds it again. It does not keep the
 * endpoint awake, either, for nothing can be done until the application reads;
 * doze.c then looks again every millisecond. Without memory the endpoint stays
 * awake and tries at every poll.
 *
 * Every sender has mapped the board. One of another user (FI_WEFT_ALLOW_UID) may
 * clear bells of others, or the word that says that we sleep. Once such a sender
 * was let in, all rings are looked at twice a millisecond, and no sleep is longer
 * than 100 ms (doze.c): it can delay the messages of others, not hide them.
 */
#include "shm/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "os/knob.h"
#include "os/shared.h"
#include "shm/offer.h"
#include "shm/stats.h"

/* The number of rings that every poll looks at: as many as cost no more than
 * the bells. A ring that was quiet for QUIET_TURNS gives its place to another
 * one that has messages. */
#define WATCHED_MAX WF_KNOB(watched_max, 8)
#define QUIET_TURNS WF_KNOB(quiet_turns, 256)

/* A ring that was quiet for this many turns, some 100 us, is not watched any
 * more, even if no other ring needs its place: a poll without a message then
 * looks at one ring and at the bells. Its next message costs its sender a
 * bell. */
#define IDLE_TURNS WF_KNOB(idle_turns, 4096)

/* How long a store may stay in a store buffer: it leaves within a microsecond,
 * and at once if its thread is interrupted. */
#define AGAIN_AFTER (500 * WF_NS_PER_US)

/* Bells that offers may have: peers that connect to us need the others. */
#define OFFERED_MAX (WF_SHM_BELLS / 2)

void wf_shm_watch_open(struct wf_shm_watch *watch, struct wf_shm_board *board,
		       struct wf_rxq *rxq, struct wf_stats *stats)
{
	*watch = (struct wf_shm_watch){
		.board = board,
		.rxq = rxq,
		.stats = stats,
	};
	wf_base_list_init(&watch->again);
}

void wf_shm_watch_close(struct wf_shm_watch *watch)
{
	free(watch->ins);
	free(watch->bell_ins);
	free(watch->offers);
	watch->ins = NULL;
	watch->bell_ins = NULL;
	watch->offers = NULL;
}

/* Exchanges two places among the rings. */
static void swap_places(struct wf_shm_watch *watch, uint32_t a, uint32_t b)
{
	struct wf_shm_in *first = watch->ins[a];

	watch->ins[a] = watch->ins[b];
	watch->ins[a]->place = a;
	watch->ins[b] = first;
	first->place = b;
}

static void want_bell(struct wf_shm_in *in, bool wanted)
{
	wf_shared_store(&in->region.header->bell_wanted, wanted, relaxed);
}

static void set_number(struct wf_shm_watch *watch, uint32_t bell)
{
	wf_shared_store(&watch->board->bells[bell], 1, relaxed);
	wf_shm_board_again(watch->board);
}

/* Rings the bell of a ring that is not watched, in the sender's place. */
static void set_bell(struct wf_shm_watch *watch, const struct wf_shm_in *in)
{
	set_number(watch, in->bell);
}

static void start_watching(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	swap_places(watch, in->place, watch->watched++);
	in->watched = true;
	in->seen = watch->turn;
	wf_base_list_del(&in->again_link);
	want_bell(in, false);
}

static void unwatch(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	uint32_t place = in->place, last = --watch->watched;

	swap_places(watch, place, last);
	in->watched = false;
	/* The hot ring stays the same, unless it was @in. */
	if (watch->hot == place)
		watch->hot = 0;
	else if (watch->hot == last)
		watch->hot = place;
}

/* The ring is no longer watched; its sender has to ring. */
static void stop_watching(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	unwatch(watch, in);
	want_bell(in, true);
	wf_shm_in_credit(in);
	in->again_at = 0;
	wf_base_list_add_tail(&watch->again, &in->again_link);
}

/* Watches a ring whose bell was rung, if there is a place or if a watched ring
 * has been quiet for long. If all are busy, nothing changes. */
static void promote(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	struct wf_shm_in *oldest;

	if (watch->watched >= WATCHED_MAX) {
		oldest = watch->ins[0];
		for (uint32_t i = 1; i < watch->watched; i++) {
			if (watch->turn - watch->ins[i]->seen >
			    watch->turn - oldest->seen)
				oldest = watch->ins[i];
		}
		if (oldest->bell >= WF_SHM_BELLS ||
		    watch->turn - oldest->seen < QUIET_TURNS)
			return;
		stop_watching(watch, oldest);
	}
	start_watching(watch, in);
}

/* Makes room for twice as many bells, in whole lines. */
static int more_bells(struct wf_shm_watch *watch)
{
	uint32_t had = watch->bell_room;
	uint32_t room = had ? had * 2 : WF_SHM_BELLS_PER_LINE;
	struct wf_shm_out **offers;
	struct wf_shm_in **ins;

	ins = realloc(watch->bell_ins, room * sizeof(*ins));
	if (!ins)
		return -ENOMEM;
	watch->bell_ins = ins;
	offers = realloc(watch->offers, room * sizeof(*offers));
	if (!offers)
		return -ENOMEM;
	watch->offers = offers;
	memset(ins + had, 0, (room - had) * sizeof(*ins));
	memset(offers + had, 0, (room - had) * sizeof(*offers));
	watch->bell_room = room;
	return 0;
}

/* Finds a bell below @end that nobody has, @end if there is none. 0 or
 * -ENOMEM. */
static int find_bell(struct wf_shm_watch *watch, uint32_t end, uint32_t *bell)
{
	uint32_t at = 0;

	while (at < watch->bell_room && at < end &&
	       (watch->bell_ins[at] || watch->offers[at]))
		at++;
	*bell = at;
	if (at == end)
		return 0;
	if (at == watch->bell_room && more_bells(watch))
		return -ENOMEM;
	if (at / WF_SHM_BELLS_PER_LINE >= watch->bell_lines)
		watch->bell_lines = at / WF_SHM_BELLS_PER_LINE + 1;
	return 0;
}

uint32_t wf_shm_watch_reserve(struct wf_shm_watch *watch,
			      struct wf_shm_out *out)
{
	uint32_t bell;

	static_assert(WF_SHM_BELLS % WF_SHM_BELLS_PER_LINE == 0, "lines");
	if (find_bell(watch, OFFERED_MAX, &bell) || bell == OFFERED_MAX)
		return WF_SHM_BELLS;
	/* The peer that had this bell before may have left it set. */
	wf_shm_board_answer(watch->board, bell);
	watch->offers[bell] = out;
	return bell;
}

void wf_shm_watch_cancel(struct wf_shm_watch *watch, uint32_t bell)
{
	watch->offers[bell] = NULL;
}

static bool make_room(struct wf_shm_watch *watch)
{
	uint32_t room = watch->room ? watch->room * 2 : 8;
	struct wf_shm_in **ins;

	if (watch->count < watch->room)
		return true;
	ins = realloc(watch->ins, room * sizeof(*ins));
	if (!ins)
		return false;
	watch->ins = ins;
	watch->room = room;
	return true;
}

/* @bell: WF_SHM_BELLS if there is none for it. */
static void add(struct wf_shm_watch *watch, struct wf_shm_in *in, uint32_t bell)
{
	in->bell = bell;
	if (bell < WF_SHM_BELLS)
		watch->bell_ins[bell] = in;
	in->place = watch->count;
	watch->ins[watch->count++] = in;
	want_bell(in, true);
	/* Without a bell of its own it must be watched. */
	if (watch->watched < WATCHED_MAX || in->bell == WF_SHM_BELLS)
		start_watching(watch, in);
	else if (wf_shm_in_ready(in))
		set_bell(watch, in);
}

int wf_shm_watch_add(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	uint32_t bell;

	if (!make_room(watch) || find_bell(watch, WF_SHM_BELLS, &bell))
		return -ENOMEM;
	add(watch, in, bell);
	return 0;
}

int wf_shm_watch_add_reserved(struct wf_shm_watch *watch, struct wf_shm_in *in,
			      uint32_t bell)
{
	if (!make_room(watch))
		return -ENOMEM;
	wf_shm_watch_cancel(watch, bell);
	add(watch, in, bell);
	return 0;
}

void wf_shm_watch_drop(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	if (in->watched)
		unwatch(watch, in);
	wf_base_list_del(&in->again_link);
	swap_places(watch, in->place, --watch->count);
	if (in->bell < WF_SHM_BELLS)
		watch->bell_ins[in->bell] = NULL;
}

/* -- looking --------------------------------------------------------------- */

/* Looks at a ring that is not watched and whose bell was cleared. */
static void look(struct wf_shm_watch *watch, struct wf_shm_in *in)
{
	int count = wf_shm_in_poll(in, WF_SHM_IN_BUDGET);

	wf_shm_in_credit(in);
	if (in->broken)
		return; /* its endpoint drops it */
	if (count) {
		in->seen = watch->turn;
		watch->heard = true;
		promote(watch, in);
	}
	if (!in->watched && wf_shm_in_ready(in))
		set_bell(watch, in);
}

/* The ring of a bell that was set; NULL: it is for nobody, or there is no memory
 * to open the ring now. */
static struct wf_shm_in *ring_of(struct wf_shm_watch *watch, uint32_t bell)
{
	struct wf_shm_out *out = watch->offers[bell];
	int err;

	if (!out)
		return watch->bell_ins[bell];
	err = wf_shm_offer_open(out);
	if (err && err != -ENOENT && err != -EPROTO)
		set_number(watch, bell);
	return watch->bell_ins[bell];
}

static void answer_line(struct wf_shm_watch *watch, uint32_t line)
{
	for (uint32_t i = 0; i < WF_SHM_BELLS_PER_LINE; i++) {
		uint32_t bell = line * WF_SHM_BELLS_PER_LINE + i;
		struct wf_shm_in *in;

		if (!wf_shm_board_is_rung(watch->board, bell) ||
		    !wf_shm_board_answer(watch->board, bell))
			continue;
		wf_shm_stats_add(watch->stats, WF_SHM_STAT_bells, 1);
		in = ring_of(watch, bell);
		if (in && !in->watched)
			look(watch, in);
	}
}

/* Not inlined: most polls find no bell. */
static __attribute__((noinline)) void answer_bells(struct wf_shm_watch *watch)
{
	struct wf_shm_board *board = watch->board;

	if (!wf_shm_watch_has_room(watch))
		return;
	wf_shm_board_begin(board);
	for (uint32_t i = 0; i < watch->bell_lines; i++) {
		if (!wf_shm_board_line(board, i))
			continue;
		if (!wf_shm_watch_has_room(watch)) {
			wf_shm_board_again(board);
			return;
		}
		answer_line(watch, i);
	}
}

/* Polls all watched rings but the hot one. Taking messages does not change
 * which rings are watched. */
static __attribute__((noinline)) void poll_watched(struct wf_shm_watch *watch)
{
	struct wf_shm_in **ins = watch->ins;
	uint32_t count = watch->watched, hot = watch->hot;

	for (uint32_t i = 0; i < count; i++) {
		struct wf_shm_in *in = ins[i];

		if (i != hot && wf_shm_in_ready(in) &&
		    wf_shm_in_poll(in, WF_SHM_IN_BUDGET)) {
			in->seen = watch->turn;
			watch->heard = true;
			watch->hot = i;
		}
	}
}

/* Not inlined: most polls find no message. */
static __attribute__((noinline)) void poll_hot(struct wf_shm_watch *watch)
{
	struct wf_shm_in *in = watch->ins[watch->hot];

	if (wf_shm_in_poll(in, WF_SHM_IN_BUDGET))
		in->seen = watch->turn;
}

void wf_shm_watch_poll(struct wf_shm_watch *watch)
{
	watch->turn++;
	if (wf_likely(watch->watched)) {
		const struct wf_shm_in *in = watch->ins[watch->hot];

		if (wf_shm_in_ready(in))
			poll_hot(watch);
		else
			wf_shm_in_prefetch(in);
	}
	if (watch->watched > 1)
		poll_watched(watch);
	if (wf_unlikely(wf_shm_watch_has_rung(watch)))
		answer_bells(watch);
}

static struct wf_shm_in *to_in(struct wf_list *again_link)
{
	return wf_container_of(again_link, struct wf_shm_in, again_link);
}

static void look_again(struct wf_shm_watch *watch, uint64_t now)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &watch->again) {
		struct wf_shm_in *in = to_in(pos);

		if (!in->again_at)
			in->again_at = now + AGAIN_AFTER;
		if (now < in->again_at)
			continue;
		wf_base_list_del(&in->again_link);
		/* Not look(): it may put another ring on this list. */
		if (wf_shm_in_ready(in))
			set_bell(watch, in);
	}
}

/* Another party may have cleared the bells of others. */
static void sweep(struct wf_shm_watch *watch, uint64_t now)
{
	watch->sweep_at = now + AGAIN_AFTER;
	for (uint32_t i = watch->watched; i < watch->count; i++) {
		if (wf_shm_in_ready(watch->ins[i]))
			set_bell(watch, watch->ins[i]);
	}
}

/* Stops watching one that is idle, if there is one. The hot one stays. */
static void retire_idle(struct wf_shm_watch *watch)
{
	for (uint32_t i = 0; i < watch->watched; i++) {
		struct wf_shm_in *in = watch->ins[i];

		if (i == watch->hot || in->bell >= WF_SHM_BELLS ||
		    watch->turn - in->seen < IDLE_TURNS)
			continue;
		stop_watching(watch, in);
		return;
	}
}

void wf_shm_watch_tick(struct wf_shm_watch *watch, uint64_t now)
{
	for (uint32_t i = 0; i < watch->watched; i++)
		wf_shm_in_credit(watch->ins[i]);
	if (watch->watched > 1)
		retire_idle(watch);
	if (wf_unlikely(!wf_base_list_empty(&watch->again)))
		look_again(watch, now);
	if (wf_unlikely(watch->distrusted) && now >= watch->sweep_at)
		sweep(watch, now);
}

/* -- sleeping -------------------------------------------------------------- */

void wf_shm_watch_all_bells(struct wf_shm_watch *watch)
{
	for (uint32_t i = 0; i < watch->watched; i++)
		want_bell(watch->ins[i], true);
}

void wf_shm_watch_few_bells(struct wf_shm_watch *watch)
{
	uint32_t bells = watch->bell_lines * WF_SHM_BELLS_PER_LINE;

	for (uint32_t i = 0; i < watch->watched; i++)
		want_bell(watch->ins[i], false);
	for (uint32_t i = 0; i < bells; i++) {
		if (watch->offers[i])
			continue;
		if (!watch->bell_ins[i] || watch->bell_ins[i]->watched)
			wf_shm_board_answer(watch->board, i);
	}
}

void wf_shm_watch_settle(struct wf_shm_watch *watch)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &watch->again) {
		wf_base_list_del(pos);
		if (wf_shm_in_ready(to_in(pos)))
			set_bell(watch, to_in(pos));
	}
}

bool wf_shm_watch_pending(const struct wf_shm_watch *watch)
{
	const struct wf_list *pos;

	for (uint32_t i = 0; i < watch->watched; i++) {
		if (wf_shm_in_ready(watch->ins[i]))
			return true;
	}
	for (uint32_t i = 0; i < watch->bell_lines; i++) {
		if (!wf_shm_board_line(watch->board, i))
			continue;
		/* A sender that was stopped between its bell and the word would
		 * keep us awake, and its message would not be taken. */
		wf_shm_board_again(watch->board);
		return true;
	}
	for (pos = watch->again.next; pos != &watch->again; pos = pos->next) {
		if (wf_shm_in_ready(
			    wf_container_of(pos, struct wf_shm_in, again_link)))
			return true;
	}
	return false;
}

bool wf_shm_watch_has_room(const struct wf_shm_watch *watch)
{
	return wf_op_compq_room(watch->rxq->compq);
}

/* -- checking -------------------------------------------------------------- */

static bool check_ring(const struct wf_shm_watch *watch, uint32_t place)
{
	const struct wf_shm_in *in = watch->ins[place];
	bool has_bell = in->bell < WF_SHM_BELLS;
	bool again = !wf_base_list_empty(&in->again_link);
	bool rung = has_bell &&
		    wf_shared_load(&watch->board->bells[in->bell], seq_cst) &&
		    wf_shared_load(&watch->board->rung, seq_cst);

	if (in->place != place || in->watched != (place < watch->watched))
		return false;
	if (has_bell ? watch->bell_ins[in->bell] != in : !in->watched)
		return false;
	if (in->watched)
		return !again;
	if (!wf_shared_load(&in->region.header->bell_wanted, seq_cst))
		return false;
	return in->broken || !wf_shm_in_ready(in) || rung || again;
}

bool wf_shm_watch_check(const struct wf_shm_watch *watch)
{
	for (uint32_t i = 0; i < watch->count; i++) {
		if (!check_ring(watch, i))
			return false;
	}
	return watch->watched <= watch->count &&
	       watch->hot < watch->watched + !watch->watched;
}
