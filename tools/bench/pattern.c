/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages over libfabric: ping-pong and windows. The loops do what a
 * careful program would do: they post a receive before its message can arrive,
 * inject small messages, and post the next receive after the answer has been
 * sent. They must not do more between the two readings of the clock.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/message.h"
#include "tools/bench/payload.h"
#include "tools/bench/plan.h"

/* Before each send of a ping-pong; the untimed warm-up does not count. */
static void renew(struct wf_tools_fabric *f, size_t size, uint64_t number,
		  bool timed, struct wf_tools_timing *timing)
{
	uint64_t start;

	if (!f->config.rewrite) {
		if (f->config.verify)
			wf_tools_payload_fill(f->sends[0].buf, size, number);
		return;
	}
	start = wf_base_clock_ns();
	wf_tools_payload_fill(f->sends[0].buf, size, number);
	if (timed)
		timing->rewrite_ns += wf_base_clock_ns() - start;
}

/*
 * Two receives are posted on both sides of the ping-pong, so that a message
 * always finds one and posting the next is not on the critical path. They share
 * a buffer unless bytes are checked, because only one message is in flight.
 */
static int ping(struct wf_tools_fabric *f, const struct wf_tools_phase *phase,
		struct wf_tools_timing *timing)
{
	uint64_t total = phase->warm + phase->count, i;
	size_t size = phase->size;
	uint64_t start = 0;
	int ret;

	for (i = 0; i < total; i++) {
		if (i == phase->warm)
			start = wf_base_clock_ns();
		renew(f, size, i, i >= phase->warm, timing);
		ret = wf_tools_message_send(f, &f->sends[0], size);
		if (!ret && i && i + 1 < total)
			ret = wf_tools_message_post(
				f, &f->receives[(i + 1) & 1], size, i + 1);
		if (!ret)
			ret = wf_tools_message_wait(f, i + 1);
		if (!ret && f->config.verify)
			ret = wf_tools_payload_check(f->receives[i & 1].buf,
						     size, i, f->error,
						     sizeof(f->error));
		if (ret)
			return ret;
	}
	timing->ns = wf_base_clock_ns() - start;
	return 0;
}

static int pong(struct wf_tools_fabric *f, const struct wf_tools_phase *phase,
		struct wf_tools_timing *timing)
{
	uint64_t total = phase->warm + phase->count, i;
	size_t size = phase->size;
	int ret;

	for (i = 0; i < total; i++) {
		ret = wf_tools_message_wait(f, i + 1);
		if (!ret && f->config.verify)
			ret = wf_tools_payload_check(f->receives[i & 1].buf,
						     size, i, f->error,
						     sizeof(f->error));
		if (ret)
			return ret;
		renew(f, size, i, i >= phase->warm, timing);
		ret = wf_tools_message_send(f, &f->sends[0], size);
		if (!ret && i + 2 < total)
			ret = wf_tools_message_post(f, &f->receives[i & 1],
						    size, i + 2);
		if (ret)
			return ret;
	}
	return wf_tools_message_wait(f, total);
}

static int stream(struct wf_tools_fabric *f, const struct wf_tools_phase *phase,
		  struct wf_tools_timing *timing)
{
	uint64_t windows = (phase->warm + phase->count) / phase->window;
	uint64_t warm = phase->warm / phase->window;
	uint64_t start = 0, w;
	unsigned i;
	int ret = 0;

	for (w = 0; w < windows && !ret; w++) {
		if (w == warm)
			start = wf_base_clock_ns();
		for (i = 0; i < phase->window && !ret; i++) {
			if (f->config.verify)
				wf_tools_payload_fill(f->sends[i].buf,
						      phase->size,
						      w * phase->window + i);
			if (f->config.more)
				ret = wf_tools_message_send_of(
					f, i, phase->window, phase->size);
			else
				ret = wf_tools_message_send(f, &f->sends[i],
							    phase->size);
		}
		if (!ret && w && w + 1 < windows)
			ret = wf_tools_message_post(
				f, &f->receives[(w + 1) & 1],
				WF_TOOLS_MESSAGE_ACK, w + 1);
		if (!ret)
			ret = wf_tools_message_wait(f, w + 1);
	}
	timing->ns = wf_base_clock_ns() - start;
	return ret;
}

/*
 * Each receive is posted again when it completes, so that a whole window is
 * posted when its acknowledgement is sent, and no message is unexpected.
 */
static int drain(struct wf_tools_fabric *f, const struct wf_tools_phase *phase)
{
	uint64_t total = phase->warm + phase->count;
	uint64_t posted = phase->window, taken = 0;
	unsigned in_window = 0;
	struct wf_tools_fabric_op *op;
	int ret = 0;

	while (taken < total && !ret) {
		if (taken == f->received) {
			ret = wf_tools_message_read(f);
			continue;
		}
		op = f->finished[taken++ & f->finished_mask];
		if (f->config.verify)
			ret = wf_tools_payload_check(op->buf, phase->size,
						     op->number, f->error,
						     sizeof(f->error));
		if (!ret && posted < total)
			ret = wf_tools_message_post(f, op, phase->size,
						    posted++);
		if (!ret && ++in_window == phase->window) {
			in_window = 0;
			ret = wf_tools_message_send(f, &f->sends[0],
						    WF_TOOLS_MESSAGE_ACK);
		}
	}
	return ret ? ret : wf_tools_message_wait(f, total);
}

static int fabric_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct wf_tools_fabric *f = engine;
	uint64_t total = phase->warm + phase->count;
	uint64_t n = 2, i;
	size_t size = phase->size;
	int ret;

	if (phase->test != WF_TOOLS_LATENCY && f->config.initiator) {
		size = WF_TOOLS_MESSAGE_ACK;
		total /= phase->window;
	} else if (phase->test != WF_TOOLS_LATENCY) {
		n = phase->window;
	}
	f->sent = 0;
	f->sent_done = 0;
	f->received = 0;
	wf_tools_fabric_carve(f, phase->size > WF_TOOLS_MESSAGE_ACK ?
					 phase->size :
					 (size_t)WF_TOOLS_MESSAGE_ACK);
	for (i = 0; i < n && i < total; i++) {
		ret = wf_tools_message_post(f, &f->receives[i], size, i);
		if (ret)
			return ret;
	}
	return 0;
}

static int fabric_play(void *engine, const struct wf_tools_phase *phase,
		       struct wf_tools_timing *timing)
{
	struct wf_tools_fabric *f = engine;

	if (phase->test == WF_TOOLS_LATENCY)
		return f->config.initiator ? ping(f, phase, timing) :
					     pong(f, phase, timing);
	return f->config.initiator ? stream(f, phase, timing) : drain(f, phase);
}

const struct wf_tools_engine_ops wf_tools_engine_fabric = {
	.open = wf_tools_fabric_begin,
	.prepare = fabric_prepare,
	.play = fabric_play,
	.progress = wf_tools_fabric_progress,
	.error = wf_tools_fabric_error,
	.describe = wf_tools_fabric_describe,
	.close = wf_tools_fabric_end,
};
