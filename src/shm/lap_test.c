/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of laps with a model: a writer that follows the rules of out.c, a
 * reader that is late and tells of its progress later still, and for every
 * place a note that says who needs it. Counts start shortly before they wrap.
 */
#include "shm/lap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SIZE_MOST 1024
#define UNITS_MOST 128 /* a record of WF_SHM_RECORD_MAX */
#define ROUNDS 200000
#define START (UINT32_MAX - 5000)

/* As in out.c. */
#define SLOT_WINDOW 28
#define SLOT_STEP 32
#define LINE_WINDOW 128

struct record {
	uint32_t pos;
	uint32_t units;
};

struct model {
	struct wf_shm_lap lap;
	uint32_t done;	/* what the writer knows of the reader */
	uint32_t read;	/* what the reader has really read */
	uint32_t told;	/* what it has said */
	uint32_t free;	/* may be taken without another look */
	bool turn;	/* slots: the next one ends the lap */
	bool bursts;	/* lines: some records belong to bursts */
	uint32_t turns; /* early ones and all of them */
	uint32_t ends;
	bool used[SIZE_MOST];
	struct record queue[SIZE_MOST]; /* written, not read */
	uint32_t queue_head;
	uint32_t queue_tail;
	uint64_t random;
};

static struct model *model_make(uint32_t size, uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	wf_shm_lap_init(&m->lap, size);
	m->lap.head = m->lap.start = m->lap.before = START;
	m->done = m->read = m->told = START;
	m->random = seed;
	return m;
}

static uint32_t draw(struct model *m, uint32_t below)
{
	m->random = m->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m->random >> 33) % below;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
	return value < limit ? value : limit;
}

static void turn(struct model *m)
{
	if (m->lap.pos < m->lap.size)
		m->turns++;
	m->ends++;
	wf_shm_lap_turn(&m->lap);
}

/* -- the writer ------------------------------------------------------------ */

/* Everything that is written comes by here: nobody may still need it. */
static void take(struct model *m, uint32_t units)
{
	uint32_t pos = m->lap.pos;

	assert_true(pos + units <= m->lap.size);
	for (uint32_t i = 0; i < units; i++) {
		assert_false(m->used[pos + i]);
		m->used[pos + i] = true;
	}
	m->queue[m->queue_head++ % SIZE_MOST] = (struct record){ pos, units };
	wf_shm_lap_take(&m->lap, units);
	m->free -= units;
}

static void plan_slots(struct model *m)
{
	struct wf_shm_lap *lap = &m->lap;
	uint32_t window = at_most(SLOT_WINDOW, lap->size);
	uint32_t room = wf_shm_lap_free(lap, m->done);

	m->turn = false;
	if (lap->pos + 1 < window) {
		m->free = at_most(room, window - 1 - lap->pos);
	} else if (wf_shm_lap_may_turn(lap, m->done, 1)) {
		m->free = at_most(room, 1);
		m->turn = true;
	} else {
		m->free = at_most(at_most(room, SLOT_STEP),
				  lap->size - 1 - lap->pos);
	}
}

static bool write_slot(struct model *m, uint32_t units)
{
	(void)units;
	if (!m->free) {
		m->done = m->told;
		plan_slots(m);
	}
	if (!m->free)
		return false;
	take(m, 1);
	if (!m->free && m->turn) {
		turn(m);
		plan_slots(m);
	}
	return true;
}

static bool plan_lines(struct model *m, uint32_t lines)
{
	struct wf_shm_lap *lap = &m->lap;
	uint32_t window = m->bursts && draw(m, 2) ?
				  lap->size :
				  at_most(LINE_WINDOW, lap->size);
	uint32_t room;

	if (lap->pos + lines > window &&
	    wf_shm_lap_may_turn(lap, m->done, lines))
		turn(m);
	room = wf_shm_lap_free(lap, m->done);
	if (room < lines)
		return false;
	m->free = lines;
	if (lap->pos + lines < window)
		m->free = at_most(room, window - lap->pos);
	return true;
}

static bool write_lines(struct model *m, uint32_t lines)
{
	if (lines > m->free) {
		m->done = m->told;
		if (!plan_lines(m, lines))
			return false;
	}
	take(m, lines);
	return true;
}

/* -- the reader ------------------------------------------------------------ */

static void read_some(struct model *m, uint32_t records)
{
	while (records-- && m->queue_tail != m->queue_head) {
		struct record *r = &m->queue[m->queue_tail++ % SIZE_MOST];

		for (uint32_t i = 0; i < r->units; i++) {
			assert_true(m->used[r->pos + i]);
			m->used[r->pos + i] = false;
		}
		m->read += r->units;
	}
}

static void tell(struct model *m)
{
	m->told = m->read;
}

static void check(const struct model *m)
{
	const struct wf_shm_lap *lap = &m->lap;

	assert_int_equal(lap->head - lap->start, lap->pos);
	assert_true(lap->pos <= lap->size);
	assert_true(lap->start - lap->before <= lap->size);
	/* Only the lap before can still be in use. */
	assert_true(m->done - lap->before <= lap->head - lap->before);
	assert_true(wf_shm_lap_free(lap, m->done) <= lap->size - lap->pos);
}

/* -- tests ----------------------------------------------------------------- */

/* Random steps, with a reader that is quick at times and slow at others; now
 * and then it catches up: then there is room for anything. */
static void walk(uint32_t size, uint32_t most, bool bursts,
		 bool (*write)(struct model *m, uint32_t units))
{
	struct model *m = model_make(size, size * 31 + most);
	uint32_t refused = 0;

	m->bursts = bursts;
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t units = 1 + draw(m, most);

		switch (draw(m, 8)) {
		case 0:
			read_some(m, draw(m, round & 4096 ? 2 : 40));
			break;
		case 1:
			tell(m);
			break;
		case 2:
			if (draw(m, 400))
				break;
			read_some(m, UINT32_MAX);
			tell(m);
			assert_true(write(m, units));
			break;
		default:
			refused += !write(m, units);
		}
		check(m);
	}
	assert_true(m->lap.head < START); /* the counts went round */
	assert_true(refused > 0);
	assert_true(m->ends > 100);
	free(m);
}

static void test_slots(void **state)
{
	(void)state;
	for (uint32_t size = 16; size <= SIZE_MOST; size *= 2)
		walk(size, 1, false, write_slot);
}

static void test_lines(void **state)
{
	static const uint32_t most[] = { 1, 2, 7, 33, 64, UNITS_MOST };

	(void)state;
	for (uint32_t size = 256; size <= SIZE_MOST; size *= 2) {
		for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
			walk(size, most[i], false, write_lines);
			walk(size, most[i], true, write_lines);
		}
	}
}

/* A reader that keeps up: the window is all that is ever used. */
static void test_stays_in_window(void **state)
{
	struct model *slots = model_make(512, 1), *lines = model_make(1024, 2);

	(void)state;
	for (int round = 0; round < 20000; round++) {
		assert_true(slots->lap.pos < SLOT_WINDOW);
		assert_true(write_slot(slots, 1));
		read_some(slots, 1);
		tell(slots);
		assert_true(write_lines(lines, 1 + draw(lines, 64)));
		assert_true(lines->lap.pos <= LINE_WINDOW);
		read_some(lines, 1);
		tell(lines);
	}
	assert_int_equal(slots->turns, 20000 / SLOT_WINDOW);
	assert_true(lines->turns > 1000);
	free(slots);
	free(lines);
}

/* A reader that reads nothing: all but what marks the end can be filled, and
 * all of it again when it was read. */
static void test_burst(void **state)
{
	struct model *slots = model_make(512, 1), *lines = model_make(1024, 2);

	(void)state;
	for (int round = 0; round < 50; round++) {
		uint32_t count = 0, filled = 0;

		while (write_slot(slots, 1))
			count++;
		/* A lap that had begun leaves less of this one. */
		assert_in_range(count, 511 - SLOT_WINDOW, 512 + SLOT_WINDOW);
		read_some(slots, UINT32_MAX);
		tell(slots);
		while (write_lines(lines, 16))
			filled += 16;
		assert_in_range(filled, 1024 - LINE_WINDOW, 1024 + LINE_WINDOW);
		read_some(lines, UINT32_MAX);
		tell(lines);
	}
	free(slots);
	free(lines);
}

/* Computes by hand which units are free. */
static void test_free_units(void **state)
{
	struct wf_shm_lap lap;

	(void)state;
	wf_shm_lap_init(&lap, 64);
	assert_int_equal(wf_shm_lap_free(&lap, 0), 64);
	assert_false(wf_shm_lap_may_turn(&lap, 0, 1));
	wf_shm_lap_take(&lap, 40);
	assert_int_equal(wf_shm_lap_free(&lap, 0), 24);
	assert_false(wf_shm_lap_may_turn(&lap, 9, 10));
	assert_true(wf_shm_lap_may_turn(&lap, 10, 10));
	wf_shm_lap_turn(&lap);
	assert_int_equal(wf_shm_lap_free(&lap, 10), 10);
	wf_shm_lap_take(&lap, 10);
	assert_int_equal(wf_shm_lap_free(&lap, 10), 0);
	assert_int_equal(wf_shm_lap_free(&lap, 39), 29);
	assert_false(wf_shm_lap_may_turn(&lap, 40, 1)); /* all of it unread */
	/* All of the lap before was read: up to the end. */
	assert_int_equal(wf_shm_lap_free(&lap, 40), 54);
	assert_true(wf_shm_lap_may_turn(&lap, 41, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_stays_in_window),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_free_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
