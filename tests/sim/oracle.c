/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of all messages of a run, and the checks on it.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "real.h"

#define NEIGHBOURS 64

struct pair {
	struct oracle_msg *msgs;
	uint32_t count, room;
};

static struct pair pairs[SIM_PROCS][SIM_PROCS];
uint64_t oracle_messages;

static struct pair *pair_of(uint64_t id)
{
	return &pairs[id >> 56][id >> 48 & 0xff];
}

static struct oracle_msg *find(uint64_t id)
{
	struct pair *pair;
	uint32_t seq = (uint32_t)id;

	if (id >> 56 >= SIM_PROCS || (id >> 48 & 0xff) >= SIM_PROCS)
		return NULL;
	pair = pair_of(id);
	return seq < pair->count ? &pair->msgs[seq] : NULL;
}

const char *oracle_name(uint64_t id)
{
	static char text[40];

	snprintf(text, sizeof(text), "p%u-p%u#%u", oracle_sender(id),
		 oracle_receiver(id), (uint32_t)id);
	return text;
}

unsigned int oracle_receiver(uint64_t id)
{
	return (unsigned int)(id >> 48 & 0xff);
}

unsigned int oracle_sender(uint64_t id)
{
	return (unsigned int)(id >> 56);
}

uint64_t oracle_sent(struct sim_proc *from, struct sim_proc *to,
		     enum oracle_kind kind, unsigned int lane, uint32_t len)
{
	struct pair *pair = &pairs[from->number][to->number];

	if (pair->count == pair->room) {
		struct oracle_msg *more;

		pair->room = pair->room ? pair->room * 2 : 64;
		more = real_calloc(pair->room, sizeof(*more));
		if (pair->msgs)
			memcpy(more, pair->msgs, pair->count * sizeof(*more));
		real_free(pair->msgs);
		pair->msgs = more;
	}
	pair->msgs[pair->count] = (struct oracle_msg){
		.fate = ORACLE_UNDER_WAY,
		.kind = kind,
		.lane = lane,
		.len = len,
		.from_life = from->life,
		.to_life = to->alive ? to->life : to->life + 1,
		.sent_at = sim.now,
	};
	return (uint64_t)from->number << 56 | (uint64_t)to->number << 48 |
	       pair->count++;
}

void oracle_unsent(uint64_t id)
{
	struct pair *pair = pair_of(id);
	struct oracle_msg *msg = find(id);

	if (msg->got)
		sim_fail("message %s arrived although its call failed",
			 oracle_name(id));
	if ((uint32_t)id == pair->count - 1)
		pair->count--;
	else
		msg->fate = ORACLE_UNSENT;
}

/* Permanently, between two living processes. */
static bool connects_may_fail(void)
{
	return sim.s.blocked ||
	       sim.s.faults &
		       (1u << SIM_FAULT_MEMORY | 1u << SIM_FAULT_DESCRIPTORS |
			1u << SIM_FAULT_REFS | 1u << SIM_FAULT_COPY |
			1u << SIM_FAULT_PARTITION);
}

bool oracle_errors_allowed(void)
{
	return sim.s.churns || sim.s.faults & 1u << SIM_FAULT_KILL ||
	       connects_may_fail();
}

bool oracle_may_fail(unsigned int peer)
{
	return connects_may_fail() || sim.proc[peer].died_at;
}

void oracle_fate(uint64_t id, enum oracle_fate fate, int err)
{
	struct oracle_msg *msg = find(id);

	if (!msg)
		sim_fail("a completion of a send that never was");
	if (msg->fate != ORACLE_UNDER_WAY)
		sim_fail("message %s completes twice", oracle_name(id));
	msg->fate = fate;
	sim_trace("message %s: %s %d", oracle_name(id),
		  fate == ORACLE_FAILED ? "failed" : "sent", err);
	if (fate == ORACLE_FAILED && !oracle_may_fail(oracle_receiver(id)))
		sim_fail("message %s fails with %d, and no fault explains it",
			 oracle_name(id), err);
	sim_busy();
}

void oracle_injected_failed(struct sim_proc *from, uint64_t id,
			    enum oracle_kind kind, int err)
{
	struct oracle_msg *msg = find(id);

	if (!msg || oracle_sender(id) != from->number ||
	    msg->from_life != from->life || msg->kind != kind)
		sim_fail("an error %d without a context names message %s, "
			 "which this process has not sent",
			 err, oracle_name(id));
	if (msg->fate != ORACLE_INJECTED && msg->fate != ORACLE_KEPT)
		sim_fail("message %s fails with %d without a context, and was "
			 "not injected or has failed before",
			 oracle_name(id), err);
	msg->fate = ORACLE_UNDER_WAY;
	oracle_fate(id, ORACLE_FAILED, err);
}

/* -- contents --------------------------------------------------------------- */

static uint64_t word_of(uint64_t id, size_t at)
{
	uint64_t x = (id + at) * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

void oracle_fill(uint64_t id, void *buf, size_t len)
{
	uint8_t *to = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = word_of(id, i);

		memcpy(to + i, &word, len - i < 8 ? len - i : 8);
	}
}

static bool holds(uint64_t id, const void *buf, size_t len, size_t *bad)
{
	const uint8_t *from = buf;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = word_of(id, i);

		*bad = i;
		if (memcmp(from + i, &word, len - i < 8 ? len - i : 8))
			return false;
	}
	return true;
}

uint32_t oracle_len(uint64_t id)
{
	const struct oracle_msg *msg = find(id);

	return msg ? msg->len : 0;
}

/* -- receiving -------------------------------------------------------------- */

/* A message of the same kind, lane and incarnations with a lower number must
 * have been matched by an earlier receive, one with a higher number by a later
 * receive. */
static void check_order(uint64_t id, int step)
{
	const struct pair *pair = pair_of(id);
	const struct oracle_msg *msg = find(id);
	int64_t at = (uint32_t)id;

	for (int i = 0; i < NEIGHBOURS; i++) {
		const struct oracle_msg *other;

		at += step;
		if (at < 0 || at >= pair->count)
			return;
		other = &pair->msgs[at];
		if (other->from_life != msg->from_life)
			return;
		if (other->kind != msg->kind || other->lane != msg->lane ||
		    !other->got || other->got_life != msg->got_life)
			continue;
		if (step < 0 ? other->post > msg->post :
			       other->post < msg->post)
			sim_fail("messages %u and %u from process %u overtook "
				 "each other: taken by receives %llu and %llu",
				 (uint32_t)id, (uint32_t)at, oracle_sender(id),
				 (unsigned long long)msg->post,
				 (unsigned long long)other->post);
		return;
	}
}

void oracle_received(struct sim_proc *at, uint64_t id, enum oracle_kind kind,
		     const void *buf, size_t len, uint64_t post)
{
	struct oracle_msg *msg = find(id);
	size_t bad = 0;

	if (!buf && !oracle_errors_allowed())
		sim_fail("a receive fails, and no fault explains it");
	if (!msg || (id >> 48 & 0xff) != at->number || !msg->fate ||
	    msg->kind != kind) {
		if (!buf)
			return; /* the failed message is unknown */
		sim_fail("message %s was never sent to this process",
			 oracle_name(id));
	}
	sim_trace("message %s: %s, %zu bytes, receive %llu", oracle_name(id),
		  buf ? "received" : "receive failed", len,
		  (unsigned long long)post);
	sim_busy();
	if (!buf) {
		msg->got_error = true;
		return;
	}
	if (len != msg->len)
		sim_fail("message %s has %zu bytes, not %u", oracle_name(id),
			 len, msg->len);
	if (!holds(id, buf, len, &bad))
		sim_fail("message %s, %zu bytes: not what was sent, at %zu",
			 oracle_name(id), len, bad);
	if (msg->got++ || msg->got_error)
		sim_fail("message %s comes twice", oracle_name(id));
	msg->got_life = at->life;
	msg->post = post;
	oracle_messages++;
	check_order(id, -1);
	check_order(id, 1);
}

/* -- the end ---------------------------------------------------------------- */

/* A message that its sender believes sent may be lost with the receiver's
 * previous incarnation: until the first message arrives in the new one,
 * messages may have gone to the memory that the previous one left. The
 * endpoints of a process notice a death independently, so only messages of the
 * same lane count. By packets a dead process acknowledges nothing: messages
 * that were sent after its death arrive. */
static bool may_be_lost(const struct pair *pair, uint32_t seq,
			const struct sim_proc *from, const struct sim_proc *to)
{
	const struct oracle_msg *msg = &pair->msgs[seq];

	if (msg->fate < ORACLE_INJECTED || msg->fate == ORACLE_FAILED)
		return true;
	if (msg->got || msg->got_error)
		return true;
	if (!to->alive || msg->to_life != to->life)
		return true;
	if (msg->fate == ORACLE_DELIVERED && to->life == 1)
		return false;
	if (!from->alive || msg->from_life != from->life)
		return true;
	if (to->life == 1 || !sim.s.shm || from->node != to->node)
		return false;
	for (uint32_t i = 0; i < seq; i++) {
		if (pair->msgs[i].got && pair->msgs[i].lane == msg->lane &&
		    pair->msgs[i].from_life == msg->from_life &&
		    pair->msgs[i].got_life == to->life)
			return false;
	}
	return true;
}

static bool find_missing(unsigned int *a, unsigned int *b, uint32_t *seq)
{
	for (*a = 0; *a < sim.s.procs; ++*a) {
		for (*b = 0; *b < sim.s.procs; ++*b) {
			const struct pair *pair = &pairs[*a][*b];

			for (*seq = 0; *seq < pair->count; ++*seq) {
				if (!may_be_lost(pair, *seq, &sim.proc[*a],
						 &sim.proc[*b]))
					return true;
			}
		}
	}
	return false;
}

bool oracle_all_received(void)
{
	unsigned int a, b;
	uint32_t seq;

	return !find_missing(&a, &b, &seq);
}

uint64_t oracle_waiting(const struct sim_proc *proc, uint64_t age)
{
	for (unsigned int a = 0; a < sim.s.procs; a++) {
		const struct pair *pair = &pairs[a][proc->number];

		for (uint32_t seq = 0; seq < pair->count; seq++) {
			/* It may still fail. */
			if ((pair->msgs[seq].fate == ORACLE_INJECTED ||
			     pair->msgs[seq].fate == ORACLE_KEPT) &&
			    connects_may_fail())
				continue;
			if (pair->msgs[seq].sent_at + age < sim.now &&
			    !may_be_lost(pair, seq, &sim.proc[a], proc))
				return (uint64_t)a << 56 |
				       (uint64_t)proc->number << 48 | seq;
		}
	}
	return 0;
}

void oracle_check_end(void)
{
	unsigned int a, b;
	uint32_t seq;

	if (find_missing(&a, &b, &seq))
		sim_fail("message %u from process %u to %u was sent and never "
			 "came",
			 seq, a, b);
}

void oracle_print(FILE *to)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		const struct sim_proc *proc = &sim.proc[i];

		fprintf(to, "process %u life %u pid %d %s", i, proc->life,
			proc->pid, proc->alive ? "alive" : "dead");
		if (proc->stopped_until > sim.now)
			fprintf(to, ", stopped");
		for (unsigned int t = 0; t < sim.task_count; t++) {
			const struct sim_task *task = &sim.task[t];

			if (task->proc == proc && task->waits &&
			    task->state == SIM_BLOCKED)
				fprintf(to, ", task %u waits in %s", t,
					task->waits);
		}
		if (proc->alive && proc->app)
			app_print(proc->app, to);
		fprintf(to, "\n");
	}
	for (unsigned int a = 0; a < sim.s.procs; a++) {
		for (unsigned int b = 0; b < sim.s.procs; b++) {
			const struct pair *pair = &pairs[a][b];
			unsigned int waits = 0, first = 0;

			for (uint32_t i = 0; i < pair->count; i++) {
				if (may_be_lost(pair, i, &sim.proc[a],
						&sim.proc[b]))
					continue;
				if (!waits++)
					first = i;
			}
			if (waits)
				fprintf(to,
					"%u messages from process %u to %u are "
					"missing, the first is %u\n",
					waits, a, b, first);
		}
	}
}

/* -- memory ----------------------------------------------------------------- */

void oracle_written(struct sim_proc *proc, const char *addr, size_t len)
{
	if (proc->app && !app_may_touch(proc->app, addr, len, true))
		sim_fail("%zu bytes are written to memory of process %u that "
			 "is neither posted nor registered",
			 len, proc->number);
}

void oracle_read(struct sim_proc *proc, const char *addr, size_t len)
{
	if (proc->app && !app_may_touch(proc->app, addr, len, false))
		sim_fail("%zu bytes are read from memory of process %u that is "
			 "neither posted nor registered",
			 len, proc->number);
}
