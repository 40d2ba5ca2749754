/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of the machine, to compare a provider with: the hand-over of one
 * cache line, and a bare ring of slots through which each side copies its
 * payload. It must stay the least work that moves the bytes: no tags, no
 * matching, no completions.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "tools/bench/floor_defs.h"
#include "tools/bench/plan.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* One side's view of one ring: what it need not ask the other side for. */
struct ring_end {
	uint8_t *slots;
	size_t stride;
	size_t offset; /* of the payload in a slot */
	uint64_t count;
	uint64_t at;	 /* slots filled or emptied so far */
	uint64_t known;	 /* producer: last tail seen; consumer: told */
	uint64_t spread; /* the consumer publishes its tail after so many */
	_Atomic uint64_t *tail;
};

struct floor {
	struct wf_tools_engine_config config;
	struct wf_tools_floor_memory *memory;
	struct ring_end out, in;
	bool hand_off; /* else the ring */
	uint8_t *user; /* what is sent, then what is received */
};

static inline void idle(const struct floor *f)
{
	if (wf_unlikely(f->config.yield))
		sched_yield();
}

static void aim(struct ring_end *end, struct wf_tools_floor_ring *ring,
		const struct wf_tools_phase *phase)
{
	bool ping = phase->test == WF_TOOLS_LATENCY;
	size_t bytes = ping ? WF_TOOLS_FLOOR_PING_BYTES : sizeof(ring->slots);
	uint64_t most = ping ? WF_TOOLS_FLOOR_PING_SLOTS : WF_TOOLS_FLOOR_SLOTS;

	memset(end, 0, sizeof(*end));
	end->slots = ring->slots;
	/* A small payload is next to the sequence, otherwise after its line,
	 * aligned. */
	end->offset = phase->size <= WF_LINE - 8 ? 8 : WF_LINE;
	end->stride = wf_tools_engine_slot(end->offset + phase->size);
	end->count = 2;
	while (end->count < most && end->count * 2 * end->stride <= bytes)
		end->count *= 2;
	end->spread = end->count > 4 ? end->count / 4 : 1;
	end->tail = &ring->tail;
}

static inline void put(const struct floor *f, struct ring_end *end,
		       const uint8_t *from, size_t size)
{
	uint8_t *slot = end->slots + (end->at & (end->count - 1)) * end->stride;

	while (wf_unlikely(end->at - end->known == end->count)) {
		end->known =
			atomic_load_explicit(end->tail, memory_order_acquire);
		if (end->at - end->known == end->count)
			idle(f);
	}
	memcpy(slot + end->offset, from, size);
	/* Pairs with the acquire in take(): payload before its sequence. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)slot, ++end->at,
			      memory_order_release);
}

static inline void take(const struct floor *f, struct ring_end *end,
			uint8_t *to, size_t size)
{
	uint8_t *slot = end->slots + (end->at & (end->count - 1)) * end->stride;
	_Atomic uint64_t *sequence = (_Atomic uint64_t *)(void *)slot;

	while (atomic_load_explicit(sequence, memory_order_acquire) !=
	       end->at + 1)
		idle(f);
	memcpy(to, slot + end->offset, size);
	end->at++;
	if (end->at - end->known >= end->spread) {
		end->known = end->at;
		/* Pairs with the acquire in put(): emptied before reused. */
		atomic_store_explicit(end->tail, end->at, memory_order_release);
	}
}

static void play_hand_off(struct floor *f, uint64_t from, uint64_t n)
{
	struct wf_tools_floor_memory *m = f->memory;
	_Atomic uint64_t *mine = &m->line[f->config.initiator ? 0 : 1].value;
	_Atomic uint64_t *theirs = &m->line[f->config.initiator ? 1 : 0].value;
	uint64_t i;

	for (i = from + 1; i <= from + n; i++) {
		if (f->config.initiator)
			atomic_store_explicit(mine, i, memory_order_release);
		while (atomic_load_explicit(theirs, memory_order_acquire) != i)
			idle(f);
		if (!f->config.initiator)
			atomic_store_explicit(mine, i, memory_order_release);
	}
}

static void play_ping_pong(struct floor *f, size_t size, uint64_t n)
{
	uint8_t *sent = f->user, *got = f->user + f->config.bytes;
	uint64_t i;

	for (i = 0; i < n; i++) {
		if (f->config.initiator)
			put(f, &f->out, sent, size);
		take(f, &f->in, got, size);
		if (!f->config.initiator)
			put(f, &f->out, sent, size);
	}
}

/* One direction as fast as the ring permits, and one answer at the very end. */
static void play_stream(struct floor *f, size_t size, uint64_t n)
{
	uint8_t *sent = f->user, *got = f->user + f->config.bytes;
	uint64_t i;

	if (f->config.initiator) {
		for (i = 0; i < n; i++)
			put(f, &f->out, sent, size);
		take(f, &f->in, got, 1);
	} else {
		for (i = 0; i < n; i++)
			take(f, &f->in, got, size);
		put(f, &f->out, sent, 1);
	}
}

static void play_part(struct floor *f, const struct wf_tools_phase *phase,
		      uint64_t from, uint64_t n)
{
	if (!n)
		return;
	if (f->hand_off)
		play_hand_off(f, from, n);
	else if (phase->test == WF_TOOLS_LATENCY)
		play_ping_pong(f, phase->size, n);
	else
		play_stream(f, phase->size, n);
}

static int floor_play(void *engine, const struct wf_tools_phase *phase,
		      struct wf_tools_timing *timing)
{
	struct floor *f = engine;
	uint64_t start;

	play_part(f, phase, 0, phase->warm);
	start = wf_base_clock_ns();
	play_part(f, phase, phase->warm, phase->count);
	timing->ns = wf_base_clock_ns() - start;
	return 0;
}

static void clear(struct wf_tools_floor_ring *ring, const struct ring_end *end)
{
	uint64_t i;

	atomic_store(&ring->tail, 0);
	for (i = 0; i < end->count; i++)
		memset(end->slots + i * end->stride, 0, 8);
}

/* The initiator clears the memory before it contacts the responder, which only
 * looks at it. */
static int floor_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct floor *f = engine;
	struct wf_tools_floor_memory *m = f->memory;
	bool first = f->config.initiator;

	if (first) {
		atomic_store(&m->line[0].value, 0);
		atomic_store(&m->line[1].value, 0);
	}
	if (f->hand_off) /* of any size: it moves no payload */
		return 0;
	if (phase->size > WF_TOOLS_FLOOR_MAX_SIZE)
		return -EMSGSIZE;
	aim(&f->out, &m->ring[first ? 0 : 1], phase);
	aim(&f->in, &m->ring[first ? 1 : 0], phase);
	if (first) {
		clear(&m->ring[0], &f->out);
		clear(&m->ring[1], &f->in);
	}
	return 0;
}

static int floor_open(const struct wf_tools_engine_config *config,
		      void **engine, char *error, size_t error_len)
{
	struct floor *f = calloc(1, sizeof(*f));

	if (!f)
		goto err_memory;
	f->config = *config;
	f->hand_off = !strcmp(config->name, "handoff");
	f->memory = mmap(NULL, sizeof(*f->memory), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_POPULATE, WF_TOOLS_FD_MEMORY, 0);
	if (f->memory == MAP_FAILED)
		goto err_free;
	if (posix_memalign((void **)&f->user, 4096, 2 * config->bytes))
		goto err_unmap;
	memset(f->user, 0xa5, 2 * config->bytes);
	*engine = f;
	return 0;

err_unmap:
	munmap(f->memory, sizeof(*f->memory));
err_free:
	free(f);
err_memory:
	snprintf(error, error_len, "no memory");
	return -ENOMEM;
}

static int floor_progress(void *engine)
{
	idle(engine);
	return 0;
}

static const char *floor_error(void *engine)
{
	(void)engine;
	return "the bare ring takes no such size";
}

static const char *floor_describe(void *engine)
{
	return ((struct floor *)engine)->config.name;
}

static void floor_close(void *engine)
{
	struct floor *f = engine;

	munmap(f->memory, sizeof(*f->memory));
	free(f->user);
	free(f);
}

const struct wf_tools_engine_ops wf_tools_engine_floor = {
	.open = floor_open,
	.prepare = floor_prepare,
	.play = floor_play,
	.progress = floor_progress,
	.error = floor_error,
	.describe = floor_describe,
	.close = floor_close,
};
