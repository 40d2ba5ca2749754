/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory: in the window of each process, every other process has a slot
 * that only it writes, and a counter that all add to. A read of the own slot
 * must return what was written last; fetched values must be those of a counter
 * that only increases; at the end the counters hold the sum.
 */
#include <string.h>

#include "app.h"

/* Counts what was added to counter @b of this incarnation of process @a. */
static struct counter {
	unsigned int life;
	uint64_t sure, maybe; /* certainly added, possibly added */
	uint64_t highest;     /* last value fetched */
} counters[SIM_PROCS][SIM_PROCS];

static uint8_t byte_at(uint64_t version, size_t i)
{
	return (uint8_t)(version * 37 + i * 11 + (version >> 8));
}

static uint64_t slot_at(unsigned int who)
{
	return (uint64_t)who * APP_SLOT;
}

static uint64_t counter_at(unsigned int who)
{
	return (uint64_t)sim.s.procs * APP_SLOT + (uint64_t)who * 8;
}

static ssize_t start_write(struct sim_app *app, struct app_op *op)
{
	struct iovec iov = { op->buf.addr, op->bytes };
	const struct fi_rma_iov rma = { slot_at(app->proc->number), op->bytes,
					APP_KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = app->addr[op->peer],
		.rma_iov = &rma,
		.rma_iov_count = 1,
		.context = op,
	};

	for (size_t i = 0; i < op->bytes; i++)
		op->buf.addr[i] = byte_at(op->version, i);
	return fi_writemsg(app->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t start_add(struct sim_app *app, struct app_op *op)
{
	op->operand = 1;
	return fi_fetch_atomic(app->ep, &op->operand, 1, NULL, op->buf.addr,
			       NULL, app->addr[op->peer],
			       counter_at(op->version % sim.s.procs), APP_KEY,
			       FI_UINT64, FI_SUM, op);
}

/* Two counters of the peer at once, injected. */
static ssize_t start_add_two(struct sim_app *app, struct app_op *op)
{
	uint64_t ones[2] = { 1, 1 };
	const struct fi_ioc ioc[2] = { { &ones[0], 1 }, { &ones[1], 1 } };
	const struct fi_rma_ioc rma[2] = {
		{ counter_at(op->version % sim.s.procs), 1, APP_KEY },
		{ counter_at((op->version + 1) % sim.s.procs), 1, APP_KEY },
	};
	const struct fi_msg_atomic msg = {
		.msg_iov = ioc,
		.iov_count = 2,
		.addr = app->addr[op->peer],
		.rma_iov = rma,
		.rma_iov_count = 2,
		.datatype = FI_UINT64,
		.op = FI_SUM,
		.context = op,
	};

	return fi_atomicmsg(app->ep, &msg,
			    FI_INJECT | FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static ssize_t start(struct sim_app *app, struct app_op *op)
{
	struct app_slot *slot = &app->slots[op->peer];

	switch (op->remote) {
	case APP_WRITE:
		return start_write(app, op);
	case APP_READ:
		op->bytes = slot->bytes;
		op->version = slot->version;
		return fi_read(app->ep, op->buf.addr, op->bytes, NULL,
			       app->addr[op->peer], slot_at(app->proc->number),
			       APP_KEY, op);
	case APP_ADD:
		return start_add(app, op);
	default:
		return start_add_two(app, op);
	}
}

static struct counter *counter_of(const struct app_op *op, unsigned int next)
{
	struct counter *c =
		&counters[op->peer][(op->version + next) % sim.s.procs];

	/* An operation meant for the previous incarnation may reach this
	 * one. */
	if (c->life != op->peer_life)
		*c = (struct counter){ .life = op->peer_life,
				       .maybe = sim.s.kills ?
							SIM_PROCS * APP_OPS :
							0 };
	return c;
}

static void count_maybe(const struct app_op *op, int n)
{
	if (op->remote < APP_ADD)
		return;
	counter_of(op, 0)->maybe += (uint64_t)n;
	if (op->remote == APP_ADD_TWO)
		counter_of(op, 1)->maybe += (uint64_t)n;
}

bool app_remote_start(struct sim_app *app, struct app_op *op, unsigned int peer)
{
	struct app_slot *slot = &app->slots[peer];
	uint32_t most = sim.s.largest < APP_SLOT ? sim.s.largest : APP_SLOT;
	ssize_t err;

	if (!sim.proc[peer].alive)
		return false;
	op->peer = peer;
	op->peer_life = sim.proc[peer].life;
	op->version = ++app->versions;
	op->bytes = 1 + (uint32_t)sim_rng_below(&app->draws, most);
	op->remote = (enum app_remote)sim_rng_below(&app->draws, APP_REMOTES);
	if (op->remote == APP_READ &&
	    (!slot->known || slot->life != op->peer_life))
		op->remote = APP_WRITE;
	if (op->remote < APP_ADD && slot->busy)
		return false;
	op->buf.what = APP_REMOTE;
	op->buf.posted = true;
	op->buf.send = op->remote == APP_WRITE;
	app->doing = "remote operation";
	/* Before the call, because others may see the sum before the call
	 * returns. */
	count_maybe(op, 1);
	err = start(app, op);
	app->doing = NULL;
	if (err) {
		op->buf.posted = false;
		count_maybe(op, -1);
		if (err != -FI_EAGAIN && !oracle_may_fail(peer))
			sim_fail("a remote operation is refused with %zd", err);
		return false;
	}
	if (op->remote < APP_ADD)
		slot->busy = true;
	if (op->remote == APP_WRITE)
		slot->known = false;
	op->begun = sim.now;
	app->under_way++;
	sim_trace("remote operation %d on p%u, %u bytes", op->remote, peer,
		  op->bytes);
	sim_busy();
	return true;
}

static void check_read(const struct app_op *op)
{
	for (size_t i = 0; i < op->bytes; i++) {
		if (op->buf.addr[i] != byte_at(op->version, i))
			sim_fail("a read of %u bytes from process %u gives "
				 "something else than was written, at %zu",
				 op->bytes, op->peer, i);
	}
}

static void check_add(const struct app_op *op)
{
	struct counter *c = counter_of(op, 0);
	uint64_t value;

	memcpy(&value, op->buf.addr, sizeof(value));
	if (sim.proc[op->peer].life != op->peer_life)
		return;
	c->sure++;
	if (value >= c->maybe)
		sim_fail("fetch-add returns %llu after %llu additions at most",
			 (unsigned long long)value,
			 (unsigned long long)c->maybe);
	if (value + 1 > c->highest)
		c->highest = value + 1;
}

void app_remote_ended(struct sim_app *app, struct app_op *op, int err)
{
	struct app_slot *slot = &app->slots[op->peer];
	bool same = sim.proc[op->peer].life == op->peer_life;

	sim_trace("remote operation %d on p%u ends: %d", op->remote, op->peer,
		  err);
	sim_busy();
	op->buf.send = true;
	if (op->remote < APP_ADD)
		slot->busy = false;
	if (err) {
		if (!oracle_may_fail(op->peer))
			sim_fail("a remote operation on process %u fails with "
				 "%d, and no fault explains it",
				 op->peer, err);
		return;
	}
	if (!same)
		return;
	if (op->remote == APP_READ) {
		check_read(op);
	} else if (op->remote == APP_ADD) {
		check_add(op);
	} else if (op->remote == APP_ADD_TWO) {
		counter_of(op, 0)->sure++;
		counter_of(op, 1)->sure++;
	} else {
		slot->known = true;
		slot->life = op->peer_life;
		slot->version = op->version;
		slot->bytes = op->bytes;
	}
}

/* All processes still have their windows. */
void app_remote_check_end(void)
{
	for (unsigned int a = 0; a < sim.s.procs; a++) {
		const struct sim_proc *proc = &sim.proc[a];

		if (!proc->alive || !proc->app)
			continue;
		for (unsigned int b = 0; b < sim.s.procs; b++) {
			const struct counter *c = &counters[a][b];
			uint64_t value;

			if (c->life != proc->life)
				continue;
			memcpy(&value, proc->app->window + counter_at(b),
			       sizeof(value));
			if (value < c->sure || value > c->maybe)
				sim_fail("counter %u of process %u holds %llu, "
					 "and %llu to %llu were added",
					 b, a, (unsigned long long)value,
					 (unsigned long long)c->sure,
					 (unsigned long long)c->maybe);
		}
	}
}
