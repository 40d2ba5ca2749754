/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of requests: takes the peer's acknowledgements and completes the
 * requests that they cover. A completion may wait until messages that came with
 * the acknowledgement are delivered.
 */
#include "nic/tcp/dev.h"

bool wf_tcp_settle_heard(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			 uint32_t count)
{
	/* One that came late over another channel. */
	if ((int32_t)(count - chan->known) < 0)
		return true;
	if (count - chan->known > chan->sent - chan->known)
		return false;
	dev->flying -= count - chan->known;
	chan->known = count;
	/* The window may have been what stopped us, and somebody may wait for
	 * the end of a request. */
	if (dev->loud || !wf_base_list_empty(&chan->todo))
		dev->settle_now = true;
	if (wf_base_list_empty(&chan->settle_link))
		wf_base_list_add_tail(&dev->settles, &chan->settle_link);
	return true;
}

void wf_tcp_settle_refused(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan,
			   uint32_t seq, uint8_t status)
{
	uint32_t at = seq - chan->acked;
	struct wf_tcp_op *op;

	wf_tcp_count(dev, nacks_received, 1);
	if (!status || status >= WF_NIC_STATUSES)
		status = WF_NIC_BAD_STATUS;
	op = wf_tcp_run_find(chan, &at);
	if (!op)
		wf_tcp_count(dev, bad_field, 1);
	else if (op->run)
		wf_tcp_run_refused(op, at, status);
	else
		op->status = status;
}

/* The op of the first frame that is counted: in flight; or a run that is being
 * written. */
static struct wf_tcp_op *first_sent(const struct wf_tcp_chan *chan)
{
	const struct wf_list *head =
		wf_base_list_empty(&chan->flight) ? &chan->todo : &chan->flight;

	return wf_container_of(head->next, struct wf_tcp_op, link);
}

/* False: it has not ended. */
static bool settle_run(struct wf_tcp_chan *chan, struct wf_tcp_op *op)
{
	uint32_t left = wf_tcp_op_flying(op);
	uint32_t told = chan->known - chan->acked;

	if (told > left)
		told = left;
	op->done = (uint16_t)(op->done + told);
	chan->acked += told;
	return op->where == WF_TCP_FLIGHT && told == left;
}

static void settle_chan(struct wf_tcp_dev *dev, struct wf_tcp_chan *chan)
{
	while (chan->acked != chan->known) {
		struct wf_tcp_op *op = first_sent(chan);
		uint32_t bytes = wf_tcp_op_cost(op);

		if (op->run && !settle_run(chan, op))
			break;
		if (!op->run)
			chan->acked++;
		chan->flying -= chan->flying < bytes ? chan->flying : bytes;
		wf_base_list_del(&op->link);
		op->where = WF_TCP_NOWHERE;
		/* Now BULK may acknowledge the refused frame, too. */
		if (wf_unlikely(op->kind == WF_TCP_OP_NACK))
			wf_tcp_ack_owe(dev, chan->peer, 0);
		if (op->kind == WF_TCP_OP_READ && !op->over && !op->status)
			wf_base_list_add_tail(&chan->peer->reads, &op->link);
		else if (op->over)
			wf_tcp_work_free(dev, op);
		else
			wf_tcp_work_end(dev, op,
					(enum wf_nic_status)op->status);
	}
	if (!wf_base_list_empty(&chan->todo))
		wf_tcp_out_activate(dev, chan);
}

void wf_tcp_settle(struct wf_tcp_dev *dev)
{
	dev->settle_now = false;
	while (!wf_base_list_empty(&dev->settles)) {
		struct wf_tcp_chan *chan = wf_container_of(
			dev->settles.next, struct wf_tcp_chan, settle_link);

		wf_base_list_del(&chan->settle_link);
		settle_chan(dev, chan);
	}
}
