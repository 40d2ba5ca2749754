/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One message over libfabric: sent, received, waited for. Inlined, because this
 * is what the clock measures.
 */
#ifndef WF_TOOLS_BENCH_MESSAGE_H
#define WF_TOOLS_BENCH_MESSAGE_H

#include "tools/bench/fabric.h"

#include <rdma/fi_errno.h>
#include <sched.h>

enum {
	WF_TOOLS_MESSAGE_BATCH = 32, /* completions read at once */
	WF_TOOLS_MESSAGE_ACK = 8,    /* bytes */
	WF_TOOLS_MESSAGE_TAG = 0x77656674,
};

/*
 * Reads and counts the completions that are there. Receives are also recorded
 * in their order, for callers that need their ops. Returns 0 or a negative
 * error.
 */
static inline int wf_tools_message_read(struct wf_tools_fabric *f)
{
	struct fi_cq_tagged_entry got[WF_TOOLS_MESSAGE_BATCH];
	ssize_t n = fi_cq_read(f->cq, got, WF_TOOLS_MESSAGE_BATCH);
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

/* Waits until so many messages were received and every send can use its buffer
 * again. */
static inline int wf_tools_message_wait(struct wf_tools_fabric *f,
					uint64_t received)
{
	int ret;

	while (f->received < received || f->sent_done < f->sent) {
		ret = wf_tools_message_read(f);
		if (ret)
			return ret;
	}
	return 0;
}

static inline ssize_t wf_tools_message_try_send(struct wf_tools_fabric *f,
						struct wf_tools_fabric_op *op,
						size_t size)
{
	if (size <= f->inject_size) {
		if (f->config.tagged)
			return fi_tinject(f->ep, op->buf, size, f->peer,
					  WF_TOOLS_MESSAGE_TAG);
		return fi_inject(f->ep, op->buf, size, f->peer);
	}
	if (f->config.tagged)
		return fi_tsend(f->ep, op->buf, size, f->desc, f->peer,
				WF_TOOLS_MESSAGE_TAG, op);
	return fi_send(f->ep, op->buf, size, f->desc, f->peer, op);
}

/* As above, with the calls that accept FI_MORE. */
static inline ssize_t wf_tools_message_try_batch(struct wf_tools_fabric *f,
						 struct wf_tools_fabric_op *op,
						 size_t size, bool more)
{
	struct iovec iov = { op->buf, size };
	uint64_t flags = (size <= f->inject_size ? FI_INJECT : FI_COMPLETION) |
			 (more ? FI_MORE : 0);
	const struct fi_msg_tagged tagged = {
		.msg_iov = &iov,
		.desc = &f->desc,
		.iov_count = 1,
		.addr = f->peer,
		.tag = WF_TOOLS_MESSAGE_TAG,
		.context = op,
	};
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.desc = &f->desc,
		.iov_count = 1,
		.addr = f->peer,
		.context = op,
	};

	return f->config.tagged ? fi_tsendmsg(f->ep, &tagged, flags) :
				  fi_sendmsg(f->ep, &msg, flags);
}

/* -FI_EAGAIN is flow control, here and below: make progress, then try again. */
static inline int wf_tools_message_send(struct wf_tools_fabric *f,
					struct wf_tools_fabric_op *op,
					size_t size)
{
	ssize_t ret;
	int failed;

	while ((ret = wf_tools_message_try_send(f, op, size)) == -FI_EAGAIN) {
		failed = wf_tools_message_read(f);
		if (failed)
			return failed;
	}
	if (ret)
		return wf_tools_fabric_fail(f, "send", ret);
	f->sent += size > f->inject_size;
	return 0;
}

/* The @i-th of a window of messages. */
static inline int wf_tools_message_send_of(struct wf_tools_fabric *f,
					   unsigned i, unsigned window,
					   size_t size)
{
	struct wf_tools_fabric_op *op = &f->sends[i];
	bool more = i + 1 < window && (i + 1) % f->config.more;
	ssize_t ret;
	int failed;

	while ((ret = wf_tools_message_try_batch(f, op, size, more)) ==
	       -FI_EAGAIN) {
		failed = wf_tools_message_read(f);
		if (failed)
			return failed;
	}
	if (ret)
		return wf_tools_fabric_fail(f, "send", ret);
	f->sent += size > f->inject_size;
	return 0;
}

static inline ssize_t
wf_tools_message_try_receive(struct wf_tools_fabric *f,
			     struct wf_tools_fabric_op *op, size_t size)
{
	if (f->config.tagged)
		return fi_trecv(f->ep, op->buf, size, f->desc, FI_ADDR_UNSPEC,
				WF_TOOLS_MESSAGE_TAG, 0, op);
	return fi_recv(f->ep, op->buf, size, f->desc, FI_ADDR_UNSPEC, op);
}

static inline int wf_tools_message_post(struct wf_tools_fabric *f,
					struct wf_tools_fabric_op *op,
					size_t size, uint64_t number)
{
	ssize_t ret;
	int failed;

	op->number = number;
	while ((ret = wf_tools_message_try_receive(f, op, size)) ==
	       -FI_EAGAIN) {
		failed = wf_tools_message_read(f);
		if (failed)
			return failed;
	}
	return ret ? wf_tools_fabric_fail(f, "receive", ret) : 0;
}

#endif
