/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory over libfabric: writes, reads and atomics of the initiator on
 * the responder's memory. Every operation generates a completion; a window of
 * them is in flight, and the next begins when all have completed, as in
 * fabtests' fi_rma_bw. The responder only makes progress, for providers that
 * need it. It must not do more between the two readings of the clock.
 */
#include "tools/bench/engine.h"

#include "base/clock.h"
#include "tools/bench/message.h"
#include "tools/bench/payload.h"
#include "tools/bench/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One kind of operation: posts number i of a window. */
struct kind {
	ssize_t (*post)(struct wf_tools_fabric *f,
			const struct wf_tools_phase *phase, unsigned i);
};

/* Data to send is in the first half of the memory, received data in the
 * other. */
static uint64_t far_half(const struct wf_tools_fabric *f)
{
	return f->remote_addr + f->config.bytes;
}

static ssize_t post_write(struct wf_tools_fabric *f,
			  const struct wf_tools_phase *phase, unsigned i)
{
	struct wf_tools_fabric_op *op = &f->sends[i];

	return fi_write(f->ep, op->buf, phase->size, f->desc, f->peer,
			far_half(f) + (uint64_t)(op->buf - f->memory),
			f->remote_key, op);
}

/* Reads memory of the peer from @from on into the place of receive @i. */
static ssize_t post_read_at(struct wf_tools_fabric *f, size_t size,
			    uint64_t from, unsigned i)
{
	struct wf_tools_fabric_op *op = &f->receives[i];

	return fi_read(f->ep, op->buf, size, f->desc, f->peer,
		       from + (uint64_t)(f->sends[i].buf - f->memory),
		       f->remote_key, &f->sends[i]);
}

static ssize_t post_read(struct wf_tools_fabric *f,
			 const struct wf_tools_phase *phase, unsigned i)
{
	return post_read_at(f, phase->size, f->remote_addr, i);
}

/* The word that all atomics use, the operand, and the fetched value. */
static uint64_t *operands(struct wf_tools_fabric *f)
{
	return (uint64_t *)(void *)f->memory;
}

static ssize_t post_fetch_add(struct wf_tools_fabric *f,
			      const struct wf_tools_phase *phase, unsigned i)
{
	uint64_t *words = operands(f);

	(void)phase;
	words[0] = 1;
	return fi_fetch_atomic(f->ep, &words[0], 1, f->desc, &words[1], f->desc,
			       f->peer, far_half(f), f->remote_key, FI_UINT64,
			       FI_SUM, &f->sends[i]);
}

/* Each expects the value that the previous one stored. */
static ssize_t post_compare_swap(struct wf_tools_fabric *f,
				 const struct wf_tools_phase *phase, unsigned i)
{
	uint64_t *words = operands(f);

	(void)phase;
	words[0] = f->sent + 1;
	words[2] = f->sent;
	return fi_compare_atomic(f->ep, &words[0], 1, f->desc, &words[2],
				 f->desc, &words[1], f->desc, f->peer,
				 far_half(f), f->remote_key, FI_UINT64,
				 FI_CSWAP, &f->sends[i]);
}

static ssize_t post_add(struct wf_tools_fabric *f,
			const struct wf_tools_phase *phase, unsigned i)
{
	uint64_t *words = operands(f);

	(void)phase;
	words[0] = 1;
	return fi_atomic(f->ep, &words[0], 1, f->desc, f->peer, far_half(f),
			 f->remote_key, FI_UINT64, FI_SUM, &f->sends[i]);
}

static inline int post(struct wf_tools_fabric *f, struct kind kind,
		       const struct wf_tools_phase *phase, unsigned i)
{
	ssize_t ret;
	int failed;

	while ((ret = kind.post(f, phase, i)) == -FI_EAGAIN) {
		failed = wf_tools_message_read(f);
		if (failed)
			return failed;
	}
	if (ret)
		return wf_tools_fabric_fail(f, "remote operation", ret);
	f->sent++;
	return 0;
}

/* Before a window, if bytes are checked: nothing may match by accident. */
static void renew(struct wf_tools_fabric *f, const struct wf_tools_phase *phase,
		  uint64_t first)
{
	unsigned i;

	for (i = 0; i < phase->window; i++) {
		if (phase->test == WF_TOOLS_WRITE_LATENCY ||
		    phase->test == WF_TOOLS_WRITE_BANDWIDTH)
			wf_tools_payload_fill(f->sends[i].buf, phase->size,
					      first + i);
		memset(f->receives[i].buf, 0, phase->size);
	}
}

/* After the window: the bytes that were read must be those that the responder
 * wrote, and what was written is read back. */
static int inspect(struct wf_tools_fabric *f,
		   const struct wf_tools_phase *phase, uint64_t first)
{
	bool write = phase->test == WF_TOOLS_WRITE_LATENCY ||
		     phase->test == WF_TOOLS_WRITE_BANDWIDTH;
	ssize_t ret = 0;
	unsigned i;

	for (i = 0; write && i < phase->window && !ret; i++) {
		do {
			ret = wf_tools_message_read(f);
			if (!ret)
				ret = post_read_at(f, phase->size, far_half(f),
						   i);
		} while (ret == -FI_EAGAIN);
		if (ret)
			return wf_tools_fabric_fail(f, "reading back", ret);
		f->sent++;
	}
	if (wf_tools_message_wait(f, 0))
		return -EIO;
	for (i = 0; i < phase->window && !ret; i++)
		ret = wf_tools_payload_check(f->receives[i].buf, phase->size,
					     write ? first + i : i, f->error,
					     sizeof(f->error));
	return (int)ret;
}

static bool has_bytes(const struct wf_tools_phase *phase)
{
	return phase->test <= WF_TOOLS_READ_BANDWIDTH;
}

/* Inlined for each kind: no indirect call while the clock runs. */
static inline __attribute__((always_inline)) int
run(struct wf_tools_fabric *f, struct kind kind,
    const struct wf_tools_phase *phase, struct wf_tools_timing *timing)
{
	uint64_t windows = (phase->warm + phase->count) / phase->window;
	uint64_t warm = phase->warm / phase->window;
	bool verify = f->config.verify && has_bytes(phase);
	uint64_t start = 0, w;
	unsigned i;
	int ret = 0;

	for (w = 0; w < windows && !ret; w++) {
		if (w == warm)
			start = wf_base_clock_ns();
		if (verify)
			renew(f, phase, w * phase->window);
		for (i = 0; i < phase->window && !ret; i++)
			ret = post(f, kind, phase, i);
		if (!ret)
			ret = wf_tools_message_wait(f, 0);
		if (!ret && verify)
			ret = inspect(f, phase, w * phase->window);
	}
	timing->ns = wf_base_clock_ns() - start;
	return ret;
}

/* The responder set the word to 0: each operation must have been done once. */
static int check_count(struct wf_tools_fabric *f,
		       const struct wf_tools_phase *phase)
{
	uint64_t want = phase->warm + phase->count - 1;
	uint64_t got = operands(f)[1];

	if (got == want)
		return 0;
	snprintf(f->error, sizeof(f->error),
		 "wrong result: the last operation found %" PRIu64
		 " instead of %" PRIu64,
		 got, want);
	return -EBADMSG;
}

static int lead(struct wf_tools_fabric *f, const struct wf_tools_phase *phase,
		struct wf_tools_timing *timing)
{
	int ret;

	switch (phase->test) {
	case WF_TOOLS_WRITE_LATENCY:
	case WF_TOOLS_WRITE_BANDWIDTH:
		return run(f, (struct kind){ post_write }, phase, timing);
	case WF_TOOLS_READ_LATENCY:
	case WF_TOOLS_READ_BANDWIDTH:
		return run(f, (struct kind){ post_read }, phase, timing);
	case WF_TOOLS_FETCH_ADD:
		ret = run(f, (struct kind){ post_fetch_add }, phase, timing);
		return ret ? ret : check_count(f, phase);
	case WF_TOOLS_COMPARE_SWAP:
		ret = run(f, (struct kind){ post_compare_swap }, phase, timing);
		return ret ? ret : check_count(f, phase);
	default:
		return run(f, (struct kind){ post_add }, phase, timing);
	}
}

static int remote_prepare(void *engine, const struct wf_tools_phase *phase)
{
	struct wf_tools_fabric *f = engine;
	size_t size = phase->size;
	unsigned i;

	f->sent = 0;
	f->sent_done = 0;
	f->received = 0;
	wf_tools_fabric_carve(f, size > WF_TOOLS_MESSAGE_ACK ?
					 size :
					 (size_t)WF_TOOLS_MESSAGE_ACK);
	if (f->config.initiator)
		return 0;
	memset(f->memory + f->config.bytes, 0, sizeof(uint64_t));
	for (i = 0; f->config.verify && i < phase->window; i++)
		wf_tools_payload_fill(f->sends[i].buf, size, i);
	/* The initiator's message that the phase is over, behind all memory
	 * that may be written. */
	f->receives[f->n_ops - 1].buf = f->goodbye;
	return wf_tools_message_post(f, &f->receives[f->n_ops - 1],
				     WF_TOOLS_MESSAGE_ACK, 0);
}

static int remote_play(void *engine, const struct wf_tools_phase *phase,
		       struct wf_tools_timing *timing)
{
	struct wf_tools_fabric *f = engine;
	int ret;

	if (!f->config.initiator)
		return wf_tools_message_wait(f, 1);
	ret = lead(f, phase, timing);
	if (ret)
		return ret;
	ret = wf_tools_message_send(f, &f->sends[0], WF_TOOLS_MESSAGE_ACK);
	return ret ? ret : wf_tools_message_wait(f, 0);
}

static int remote_open(const struct wf_tools_engine_config *config,
		       void **engine, char *error, size_t error_len)
{
	struct wf_tools_engine_config wanted = *config;

	wanted.remote = true;
	return wf_tools_fabric_begin(&wanted, engine, error, error_len);
}

const struct wf_tools_engine_ops wf_tools_engine_remote = {
	.open = remote_open,
	.prepare = remote_prepare,
	.play = remote_play,
	.progress = wf_tools_fabric_progress,
	.error = wf_tools_fabric_error,
	.describe = wf_tools_fabric_describe,
	.close = wf_tools_fabric_end,
};
