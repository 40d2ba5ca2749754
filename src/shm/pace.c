/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice between the ways: trials, and what is decided by them.
 */
#include "shm/pace.h"

/* A trial has RUNS runs of each way, by turns, beginning with the way in use. The
 * fastest run of each way counts, because other work of the processors can only
 * make a run longer. A run is RUN messages: two full batches of those that one
 * call reads (pull.c). */
#define RUNS 3
#define RUN 16

/* Messages at the start of a run that are not counted. If the way changes
 * during a burst, messages have piled up, and the receiver takes them faster
 * than the sender can send. If messages come one at a time, only the first ones
 * by a way differ from the others. */
#define SETTLING 16
#define SETTLING_ALONE 2

/* Of messages that come one at a time, a trial ends early if one way is the fastest:
 * the others are slower by one CLEARth, and their fastest message is slower than
 * its messages are on average. No interruption explains that. */
#define CLEAR 4

/* Messages before the first trial of a kind, and between two trials. The wait
 * doubles after a trial that changes nothing. It is also at least
 * WAIT_FOR_SPENT times as long as the trial was: in a burst a trial takes
 * longer, because messages still come by the old way after the receiver has
 * asked for another one. */
#define FIRST_WAIT 32
#define WAIT_MIN 1024
#define WAIT_MAX 8192
#define WAIT_FOR_SPENT 32

/* A trial ends without a result after so many messages. The sender may not be
 * able to use another way, or may send no more messages of this kind. */
#define SPENT_MAX 2048

/* Longer times, in ns, are cut to this: one of the processes was not running.
 * */
#define TOOK_MAX 1000000

/* Another way must be faster by one MARGINth to be chosen. */
#define MARGIN 32

static bool is_stamping(const struct wf_shm_pace *pace)
{
	return pace->told & WF_SHM_WAYS_STAMP;
}

static bool is_large(uint32_t kind)
{
	return kind < WF_SHM_PACE_LARGE;
}

static bool can_go(const struct wf_shm_pace *pace, uint32_t kind,
		   enum wf_shm_pace_way way)
{
	switch (way) {
	case WF_SHM_PACE_CMA:
		return is_large(kind) && !pace->has_no_cma;
	case WF_SHM_PACE_AROUND:
		return pace->may_go_around;
	default:
		return true;
	}
}

static uint32_t count_ways(const struct wf_shm_pace *pace, uint32_t kind)
{
	uint32_t count = 0;

	for (int way = 0; way < WF_SHM_PACE_WAYS; way++)
		count += can_go(pace, kind, (enum wf_shm_pace_way)way);
	return count;
}

static void tell(struct wf_shm_pace *pace, enum wf_shm_pace_way way)
{
	uint32_t told = pace->told & ~WF_SHM_WAYS_AROUND(pace->kind);

	if (way == WF_SHM_PACE_AROUND)
		told |= WF_SHM_WAYS_AROUND(pace->kind);
	if (is_large(pace->kind)) {
		told &= ~WF_SHM_WAYS_RING(pace->kind);
		if (way != WF_SHM_PACE_CMA)
			told |= WF_SHM_WAYS_RING(pace->kind);
		told |= WF_SHM_WAYS_KNOWN(pace->kind);
	}
	pace->told = told;
}

/* Begins with the way that is in use. */
static void start_trial(struct wf_shm_pace *pace, uint32_t kind,
			enum wf_shm_pace_way way)
{
	pace->kind = (uint8_t)kind;
	pace->way = (uint8_t)way;
	pace->used = (uint8_t)way;
	pace->runs = 0;
	pace->has_last = false;
	pace->overlaps = false;
	pace->count = 0;
	pace->sum = 0;
	pace->spent = 0;
	for (int i = 0; i < WF_SHM_PACE_WAYS; i++) {
		pace->best[i] = UINT32_MAX;
		pace->fastest[i] = UINT32_MAX;
	}
	tell(pace, way);
	pace->told |= WF_SHM_WAYS_STAMP;
}

/* @way is used until the next trial. */
static void end_trial(struct wf_shm_pace *pace, enum wf_shm_pace_way way,
		      bool changed)
{
	uint32_t *wait = &pace->kinds[pace->kind].wait;
	uint32_t least = pace->spent * WAIT_FOR_SPENT;

	*wait = changed || !*wait ? WAIT_MIN : *wait * 2;
	if (*wait > WAIT_MAX)
		*wait = WAIT_MAX;
	pace->kinds[pace->kind].until = *wait > least ? *wait : least;
	tell(pace, way);
	pace->told &= ~WF_SHM_WAYS_STAMP;
}

static enum wf_shm_pace_way fastest(const struct wf_shm_pace *pace)
{
	int fast = 0;

	for (int way = 1; way < WF_SHM_PACE_WAYS; way++) {
		if (pace->best[way] < pace->best[fast])
			fast = way;
	}
	return (enum wf_shm_pace_way)fast;
}

/* All runs are over. */
static void decide(struct wf_shm_pace *pace)
{
	enum wf_shm_pace_way used = pace->used, fast = fastest(pace);
	uint32_t limit = pace->best[used] - pace->best[used] / MARGIN;
	bool changes = pace->best[fast] < limit;

	end_trial(pace, changes ? fast : used, changes);
}

/* Whether further runs can change nothing. All ways had as many of them. */
static bool is_clear(const struct wf_shm_pace *pace)
{
	enum wf_shm_pace_way fast = fastest(pace);
	uint32_t best = pace->best[fast];

	for (int i = 0; i < WF_SHM_PACE_WAYS; i++) {
		enum wf_shm_pace_way way = (enum wf_shm_pace_way)i;

		if (way == fast || !can_go(pace, pace->kind, way))
			continue;
		if (pace->best[way] - best < best / CLEAR ||
		    pace->fastest[way] < best / RUN)
			return false;
	}
	return true;
}

static bool is_over(const struct wf_shm_pace *pace)
{
	uint32_t ways = count_ways(pace, pace->kind);

	return pace->runs >= RUNS * ways ||
	       (!pace->overlaps && pace->runs % ways == 0 && is_clear(pace));
}

static void take_next_way(struct wf_shm_pace *pace)
{
	do {
		pace->way = (uint8_t)((pace->way + 1) % WF_SHM_PACE_WAYS);
	} while (!can_go(pace, pace->kind, pace->way));
}

static void end_run(struct wf_shm_pace *pace, uint32_t now)
{
	if (pace->sum < pace->best[pace->way])
		pace->best[pace->way] = pace->sum;
	pace->count = 0;
	pace->sum = 0;
	pace->runs++;
	if (is_over(pace)) {
		decide(pace);
		return;
	}
	take_next_way(pace);
	pace->settled = now;
	tell(pace, pace->way);
}

/* Stamps are the low half of a clock, which wraps around, so only differences
 * are used. 0 if @to is before @from. */
static uint32_t since(uint32_t from, uint32_t to)
{
	return (int32_t)(to - from) > 0 ? to - from : 0;
}

/* For how long the message was under way, without the time during which the one
 * before it was under way, too. */
static uint32_t took(struct wf_shm_pace *pace, uint32_t begin, uint32_t end)
{
	uint32_t from =
		pace->has_last && since(begin, pace->last) ? pace->last : begin;
	uint32_t ns = since(from, end);

	pace->last = end;
	pace->has_last = true;
	return ns < TOOK_MAX ? ns : TOOK_MAX;
}

/* Counts a stamped message of the kind that is tried. */
static void clock_message(struct wf_shm_pace *pace, enum wf_shm_pace_way way,
			  uint32_t begin, uint32_t end, uint32_t ns)
{
	uint32_t settling = pace->overlaps ? SETTLING : SETTLING_ALONE;

	if (way != pace->way) {
		/* It was sent before we asked for another way, and delays
		 * those that follow it. */
		pace->settled = end;
		return;
	}
	if (pace->runs && since(begin, pace->settled))
		return;
	pace->count++;
	if (pace->count <= settling)
		return;
	pace->sum += ns;
	if (ns < pace->fastest[way])
		pace->fastest[way] = ns;
	if (pace->count == settling + RUN)
		end_run(pace, end);
}

/* Messages do not come one at a time any more: the counts so far follow other
 * rules. */
static void start_over(struct wf_shm_pace *pace)
{
	uint32_t spent = pace->spent, last = pace->last;

	start_trial(pace, pace->kind, pace->used);
	pace->spent = spent;
	pace->last = last;
	pace->has_last = true;
	pace->overlaps = true;
}

/* A message between two trials: starts the next trial when it is time. */
static void count_down(struct wf_shm_pace *pace, uint32_t kind,
		       enum wf_shm_pace_way way)
{
	uint32_t *until = &pace->kinds[kind].until;

	if (!*until)
		*until = FIRST_WAIT;
	if (--*until)
		return;
	if (count_ways(pace, kind) > 1 && can_go(pace, kind, way))
		start_trial(pace, kind, way);
	else
		*until = WAIT_MAX;
}

bool wf_shm_pace_note(struct wf_shm_pace *pace, size_t len,
		      enum wf_shm_pace_way way, uint32_t begin, uint32_t end)
{
	uint32_t kind = wf_shm_pace_kind(len);
	uint32_t told = pace->told;
	uint32_t ns;

	if (!is_stamping(pace)) {
		count_down(pace, kind, way);
		return pace->told != told;
	}
	pace->spent++;
	if (begin) {
		bool is_first = !pace->has_last;
		bool overlaps = !is_first && since(begin, pace->last);

		ns = took(pace, begin, end);
		if (overlaps && !pace->overlaps)
			start_over(pace);
		if (kind == pace->kind && !is_first)
			clock_message(pace, way, begin, end, ns);
	}
	if (is_stamping(pace) && pace->spent >= SPENT_MAX)
		end_trial(pace, pace->used, false);
	return pace->told != told;
}

bool wf_shm_pace_is_ring(uint32_t told, size_t len, bool otherwise)
{
	uint32_t kind = wf_shm_pace_kind(len);

	if (!(told & WF_SHM_WAYS_KNOWN(kind)))
		return otherwise;
	return told & WF_SHM_WAYS_RING(kind);
}
