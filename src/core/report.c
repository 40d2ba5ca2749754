/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes down what an endpoint waits for: receives, unexpected messages and
 * completion queues here, operations by each transport.
 */
#include "core/report.h"

#include "base/clock.h"
#include "core/core.h"
#include "match/oldest.h"
#include "match/rxq.h"

/* Between two reports of an endpoint that makes progress. */
#define REPORT_EVERY (100 * WF_NS_PER_MS)

/* How many waits of each kind there are at most, so that many of one leave room
 * for the others. Full queues come first, then operations. */
#define QUEUES 2
#define OPERATIONS 24
#define RECEIVES 16
#define MESSAGES 8
#define PLAIN_RECEIVES 8
#define PLAIN_MESSAGES 4

static_assert(QUEUES + OPERATIONS + RECEIVES + MESSAGES + PLAIN_RECEIVES +
			      PLAIN_MESSAGES ==
		      WF_WAITS_MAX,
	      "all of them fit");

void wf_core_report_open(struct wf_core *core)
{
	core->report = (struct wf_report){ .waits.fd = -1 };
	wf_base_waits_open(&core->report.waits, &core->host.addr,
			   core->host.now);
}

void wf_core_report_close(struct wf_core *core)
{
	wf_base_waits_close(&core->report.waits);
}

void wf_core_report_forked(struct wf_core *core)
{
	wf_base_waits_forked(&core->report.waits);
}

/* -- receives --------------------------------------------------------------- */

/* When @what was first seen waiting. A place in the table is only reused by
 * something else with the same number if memory and number are the same. */
static uint64_t since(const struct wf_report_seen *before,
		      struct wf_report_seen *after, const void *what,
		      uint64_t seq, uint64_t now)
{
	*after = (struct wf_report_seen){ what, seq, now };
	for (uint32_t i = 0; i < WF_REPORT_MOST; i++) {
		if (before[i].what == what && before[i].seq == seq)
			after->since = before[i].since;
	}
	return after->since;
}

static void set_source(struct wf_core *core, struct wf_wait *wait, uint64_t src)
{
	const struct wf_names *names = &core->host.names;
	struct wf_addr addr;

	if (src == WF_MATCH_ANY) {
		wait->flags |= WF_WAIT_ANYONE;
		return;
	}
	if (names->get && !names->get(names->arg, src, &addr))
		wf_base_waits_peer(wait, &addr);
}

static bool is_alike(const struct wf_rx *a, const struct wf_rx *b)
{
	return a->tag == b->tag && a->ignore == b->ignore && a->src == b->src;
}

static void add_receives(struct wf_core *core, const struct wf_match *m,
			 uint32_t most, struct wf_report_seen *seen,
			 uint64_t now)
{
	const struct wf_rx *oldest[WF_REPORT_MOST];
	uint32_t count = wf_match_oldest(m, oldest, most);
	struct wf_report_seen after[WF_REPORT_MOST] = { 0 };
	struct wf_wait *last = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct wf_rx *rx = oldest[i];
		uint64_t when = since(seen, &after[i], rx, rx->seq, now);
		struct wf_wait *wait;

		/* Receives in a row that take the same messages. */
		if (i && is_alike(rx, oldest[i - 1]) && last) {
			last->count++;
			continue;
		}
		wait = wf_base_waits_add(&core->report.waits, WF_WAIT_RECEIVE,
					 WF_WAIT_FOR_MESSAGE, when);
		last = wait;
		if (!wait)
			break;
		wait->flags = rx->tagged ? WF_WAIT_TAGGED : 0;
		wait->tag = rx->tag;
		wait->ignore = rx->ignore;
		wait->len = rx->len;
		set_source(core, wait, rx->src);
	}
	for (uint32_t i = 0; i < WF_REPORT_MOST; i++)
		seen[i] = after[i];
}

static void add_messages(struct wf_core *core, const struct wf_match *m,
			 uint32_t most, bool tagged,
			 struct wf_report_seen *seen, uint64_t now)
{
	struct wf_report_seen after[WF_REPORT_MOST] = { 0 };
	const struct wf_list *pos = m->ux_order.next;

	for (uint32_t i = 0; i < most && pos != &m->ux_order;
	     i++, pos = pos->next) {
		const struct wf_ux *ux =
			wf_container_of(pos, struct wf_ux, order);
		struct wf_wait *wait = wf_base_waits_add(
			&core->report.waits, WF_WAIT_MESSAGE,
			WF_WAIT_FOR_RECEIVE,
			since(seen, &after[i], ux, ux->tag, now));

		if (!wait)
			break;
		wait->flags = tagged ? WF_WAIT_TAGGED : 0;
		wait->tag = ux->tag;
		wait->len = ux->len;
		set_source(core, wait, ux->src);
		/* The message has a sender, even if the AV does not have it. */
		wait->flags &= (uint8_t)~WF_WAIT_ANYONE;
	}
	for (uint32_t i = 0; i < WF_REPORT_MOST; i++)
		seen[i] = after[i];
}

/* -- completion queues ------------------------------------------------------ */

static void add_queue(struct wf_report *report, struct wf_compq *q, int which,
		      uint64_t now)
{
	uint64_t *full = &report->full_since[which];
	uint32_t count;
	struct wf_wait *wait;

	if (q->discards || wf_op_compq_room(q)) {
		*full = 0;
		return;
	}
	count = wf_op_compq_count(q);
	if (!*full)
		*full = now;
	wait = wf_base_waits_add(&report->waits, WF_WAIT_CQ, WF_WAIT_FOR_READER,
				 *full);
	if (!wait)
		return;
	wait->len = q->high;
	wait->done = count;
}

/* -- all of it -------------------------------------------------------------- */

static void add_operations(struct wf_core *core, uint64_t now)
{
	for (uint32_t i = 0; i < core->way_count; i++) {
		const struct wf_way *way = &core->ways[i];

		if (way->on)
			way->ops->waits(way->self, &core->report.waits, now);
	}
}

void wf_core_report_write(struct wf_core *core, uint64_t now)
{
	struct wf_report *report = &core->report;
	struct wf_rxq *rxq = core->host.rxq;
	struct wf_waits_bank *bank;

	report->due = now + REPORT_EVERY;
	/* Unit tests of the core have no queues, and nothing to tell. */
	if (!rxq ||
	    !wf_base_waits_begin(&report->waits, QUEUES + OPERATIONS, now))
		return;
	bank = report->waits.bank;
	add_queue(report, core->host.txq, 0, now);
	if (rxq->compq != core->host.txq)
		add_queue(report, rxq->compq, 1, now);
	add_operations(core, now);
	report->waits.limit = WF_WAITS_MAX;
	add_receives(core, &rxq->tagged, RECEIVES, report->seen[0], now);
	add_receives(core, &rxq->msg, PLAIN_RECEIVES, report->seen[1], now);
	add_messages(core, &rxq->tagged, MESSAGES, true, report->seen[2], now);
	add_messages(core, &rxq->msg, PLAIN_MESSAGES, false, report->seen[3],
		     now);
	bank->posted = rxq->tagged.exact_any + rxq->tagged.special +
		       rxq->msg.exact_any + rxq->msg.special;
	bank->unexpected = rxq->tagged.unexpected + rxq->msg.unexpected;
	wf_base_waits_publish(&report->waits);
}

void wf_core_report_sleep(struct wf_core *core)
{
	uint64_t now = wf_base_clock_ns();

	wf_core_report_write(core, now);
	wf_base_waits_polled(&core->report.waits, now);
	wf_base_waits_asleep(&core->report.waits, now);
}
