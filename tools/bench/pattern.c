/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages over libfabric: ping-pong and windows. The loops do what a
 * careful program would: receives are posted before their message can come,
 * small messages are injected, the next receive is posted after the answer is
 * on its way. It must not do more between the clock's two readings.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/fabric.h"
#include "tools/bench/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>

enum {
	BATCH = 32, /* completions read at once */
	ACK_SIZE = 8,
	TAG = 0x77656674,
};

/*
 * Reads what is there and counts it. Receives are also noted in the order they
 * came, for whoever needs their ops. Returns 0 or a negative error.
 */
static int read_cq(struct wf_tools_fabric *f)
{
	struct fi_cq_tagged_entry got[BATCH];
	ssize_t n = fi_cq_read(f->cq, got, BATCH);
	ssize_t i;

	for (i = 0; i < n; i++) {
		if (got[i].flags & FI_RECV)
			f->finished[f->received++ & f->finished_mask] =
				got[i].op_context;
		else
			f->sent_done++;
	}
	if (n > 0)
		return 0;
	if (n == -FI_EAGAIN || n == 0) {
		if (f->config.yield)
			sched_yield();
		return 0;
	}
	if (n == -FI_EAVAIL)
		return wf_tools_fabric_cq_error(f);
	return wf_tools_fabric_fail(f, "fi_cq_read", n);
}

/* Until so many were received and every send can have its buffer again. */
static int wait_for(struct wf_tools_fabric *f, uint64_t received)
{
	int ret;

	while (f->received < received || f->sent_done < f->sent) {
		ret = read_cq(f);
		if (ret)
			return ret;
	}
	return 0;
}

static ssize_t try_send(struct wf_tools_fabric *f,
			struct wf_tools_fabric_op *op, size_t size)
{
	if (size <= f->inject_size) {
		if (f->config.tagged)
			return fi_tinject(f->ep, op->buf, size, f->peer, TAG);
		return fi_inject(f->ep, op->buf, size, f->peer);
	}
	if (f->config.tagged)
		return fi_tsend(f->ep, op->buf, size, f->desc, f->peer, TAG,
				op);
	return fi_send(f->ep, op->buf, size, f->desc, f->peer, op);
}

/* -FI_EAGAIN is flow control, here and below: progress, then again. */
static int send_one(struct wf_tools_fabric *f, struct wf_tools_fabric_op *op,
		    size_t size)
{
	ssize_t ret;
	int failed;

	while ((ret = try_send(f, op, size)) == -FI_EAGAIN) {
		failed = read_cq(f);
		if (failed)
			return failed;
	}
	if (ret)
		return wf_tools_fabric_fail(f, "send", ret);
	f->sent += size > f->inject_size;
	return 0;
}

static ssize_t try_receive(struct wf_tools_fabric *f,
			   struct wf_tools_fabric_op *op, size_t size)
{
	if (f->config.tagged)
		return fi_trecv(f->ep, op->buf, size, f->desc, FI_ADDR_UNSPEC,
				TAG, 0, op);
	return fi_recv(f->ep, op->buf, size, f->desc, FI_ADDR_UNSPEC, op);
}

static int post_receive(struct wf_tools_fabric *f,
			struct wf_tools_fabric_op *op, size_t size,
			uint64_t number)
{
	ssize_t ret;
	int failed;

	op->number = number;
	while ((ret = try_receive(f, op, size)) == -FI_EAGAIN) {
		failed = read_cq(f);
		if (failed)
			return failed;
	}
	return ret ? wf_tools_fabric_fail(f, "receive", ret) : 0;
}

/*
 * What a sender writes and a receiver expects. Words that differ from each
 * other and from message to message: memset would be another program.
 */
static void fill(uint8_t *buf, size_t size, uint64_t number)
{
	uint64_t *words = (uint64_t *)(void *)buf;
	size_t i;

	for (i = 0; i < size / 8; i++)
		words[i] = number * 0x9e3779b97f4a7c15ull + i;
	for (i *= 8; i < size; i++)
		buf[i] = (uint8_t)(number + i);
}

static int check(struct wf_tools_fabric *f, const uint8_t *buf, size_t size,
		 uint64_t number)
{
	const uint64_t *words = (const uint64_t *)(const void *)buf;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		if (words[i] != number * 0x9e3779b97f4a7c15ull + i)
			goto err_differs;
	}
	for (i *= 8; i < size; i++) {
		if (buf[i] != (uint8_t)(number + i))
			goto err_differs;
	}
	return 0;

err_differs:
	snprintf(f->error, sizeof(f->error),
		 "wrong data: message %" PRIu64 " of %zu bytes, near byte %zu",
		 number, size, i < size / 8 ? i * 8 : i);
	return -EBADMSG;
}

/* Before each send of a ping-pong; the untimed warm-up is not counted. */
static void renew(struct wf_tools_fabric *f, size_t size, uint64_t number,
		  bool timed, struct wf_tools_timing *timing)
{
	uint64_t start;

	if (!f->config.rewrite) {
		if (f->config.verify)
			fill(f->sends[0].buf, size, number);
		return;
	}
	start = wf_base_clock_ns();
	fill(f->sends[0].buf, size, number);
	if (timed)
		timing->rewrite_ns += wf_base_clock_ns() - start;
}

/*
 * In both ping and pong two receives are posted, so that a message always
 * finds one and posting the next stays off the critical path. They share a
 * buffer unless bytes are checked: only one message is ever under way.
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
		ret = send_one(f, &f->sends[0], size);
		if (!ret && i && i + 1 < total)
			ret = post_receive(f, &f->receives[(i + 1) & 1], size,
					   i + 1);
		if (!ret)
			ret = wait_for(f, i + 1);
		if (!ret && f->config.verify)
			ret = check(f, f->receives[i & 1].buf, size, i);
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
		ret = wait_for(f, i + 1);
		if (!ret && f->config.verify)
			ret = check(f, f->receives[i & 1].buf, size, i);
		if (ret)
			return ret;
		renew(f, size, i, i >= phase->warm, timing);
		ret = send_one(f, &f->sends[0], size);
		if (!ret && i + 2 < total)
			ret = post_receive(f, &f->receives[i & 1], size, i + 2);
		if (ret)
			return ret;
	}
	return wait_for(f, total);
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
				fill(f->sends[i].buf, phase->size,
				     w * phase->window + i);
			ret = send_one(f, &f->sends[i], phase->size);
		}
		if (!ret && w && w + 1 < windows)
			ret = post_receive(f, &f->receives[(w + 1) & 1],
					   ACK_SIZE, w + 1);
		if (!ret)
			ret = wait_for(f, w + 1);
	}
	timing->ns = wf_base_clock_ns() - start;
	return ret;
}

/*
 * Each receive is posted again as it completes, so that a whole window stands
 * ready when its acknowledgement goes out and none comes unexpected.
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
			ret = read_cq(f);
			continue;
		}
		op = f->finished[taken++ & f->finished_mask];
		if (f->config.verify)
			ret = check(f, op->buf, phase->size, op->number);
		if (!ret && posted < total)
			ret = post_receive(f, op, phase->size, posted++);
		if (!ret && ++in_window == phase->window) {
			in_window = 0;
			ret = send_one(f, &f->sends[0], ACK_SIZE);
		}
	}
	return ret ? ret : wait_for(f, total);
}

static int fabric_open(const struct wf_tools_engine_config *config,
		       void **engine, char *error, size_t error_len)
{
	struct wf_tools_fabric *f;
	int ret;

	ret = wf_tools_fabric_open(config, &f, error, error_len);
	if (!ret)
		*engine = f;
	return ret;
}

static int fabric_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct wf_tools_fabric *f = engine;
	uint64_t total = phase->warm + phase->count;
	uint64_t n = 2, i;
	size_t size = phase->size;
	int ret;

	if (phase->test != WF_TOOLS_LATENCY && f->config.initiator) {
		size = ACK_SIZE;
		total /= phase->window;
	} else if (phase->test != WF_TOOLS_LATENCY) {
		n = phase->window;
	}
	f->sent = 0;
	f->sent_done = 0;
	f->received = 0;
	wf_tools_fabric_carve(f, phase->size > ACK_SIZE ? phase->size :
							  (size_t)ACK_SIZE);
	for (i = 0; i < n && i < total; i++) {
		ret = post_receive(f, &f->receives[i], size, i);
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

static int fabric_progress(void *engine)
{
	return read_cq(engine);
}

static const char *fabric_error(void *engine)
{
	return ((struct wf_tools_fabric *)engine)->error;
}

static const char *fabric_describe(void *engine)
{
	return ((struct wf_tools_fabric *)engine)->about;
}

static void fabric_close(void *engine)
{
	wf_tools_fabric_close(engine);
}

const struct wf_tools_engine_ops wf_tools_engine_fabric = {
	.open = fabric_open,
	.prepare = fabric_prepare,
	.play = fabric_play,
	.progress = fabric_progress,
	.error = fabric_error,
	.describe = fabric_describe,
	.close = fabric_close,
};
