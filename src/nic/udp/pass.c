/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass of the software NIC's work: received packets, timers, packets to
 * send; and the thread that does nothing else, if there is one.
 */
#include <errno.h>

#include "nic/udp/dev.h"
#include "os/poll.h"

#define RETRY_AFTER (50 * WF_NS_PER_US)
#define LOOK_EVERY (5 * WF_NS_PER_MS)
#define RX_ROUNDS 4
/* Passes in a row in the owner's place. */
#define ATTEND_PASSES 16
#define SEGS_PER_BUFFER 64
/* If the socket was not read for longer than this, the packets found say
 * nothing about the path. */
#define LATE_AFTER (5 * WF_NS_PER_MS)
/* Packets of one peer in one pass; of one that has the pass for itself: five
 * buffers of segments at the size of an Ethernet, 18 % cheaper than one and a
 * half. */
#define QUANTUM 64u
#define QUANTUM_ALONE 220u

/* -- one pass --------------------------------------------------------------- */

static void packet(void *arg, const struct wf_addr *from, const uint8_t *bytes,
		   size_t len)
{
	struct wf_udp_dev *dev = arg;

	wf_udp_engine_receive(&dev->engine, dev->now, from, &dev->sock.here,
			      bytes, len);
}

static void on_icmp(void *arg, const struct wf_udp_icmp *icmp)
{
	struct wf_udp_dev *dev = arg;

	wf_udp_engine_icmp(&dev->engine, dev->now, icmp);
}

/* Buffers of segments to ask for: a packet that finds no receive is refused and
 * has to be sent again; one that stays in the socket waits for the next pass.
 * One at least, because acknowledgements come the same way. */
static unsigned appetite(struct wf_udp_dev *dev)
{
	struct wf_nic_qp *qp = wf_nic_qp_find(&dev->nic, dev->rx_qpn);
	int left;

	if (!qp || !qp->rq.ring)
		return WF_UDP_RX_MSGS;
	left = wf_queue_work_poll(&qp->rq_work) / SEGS_PER_BUFFER;
	if (left < 1)
		return 1;
	return left < (int)WF_UDP_RX_MSGS ? (unsigned)left : WF_UDP_RX_MSGS;
}

static int receive(struct wf_udp_dev *dev)
{
	/* After a long absence more packets wait than one look finds. */
	bool greedy = dev->now - dev->received_at > WF_NS_PER_MS;
	int total = 0;

	dev->received_at = dev->now;
	for (int i = 0; i < RX_ROUNDS; i++) {
		unsigned most = appetite(dev);
		int got = wf_udp_sock_receive(&dev->sock, most, packet, dev);

		total += got;
		if (!got || (!greedy && (got < (int)most || most == 1)))
			break;
	}
	if (dev->sock.errors || (!total && dev->now >= dev->look_at)) {
		wf_udp_sock_errors(&dev->sock, on_icmp, dev);
		dev->look_at = dev->now + LOOK_EVERY;
	}
	if (wf_unlikely(dev->sock.failed)) {
		dev->sock.failed = false;
		wf_udp_engine_not_sent(&dev->engine, dev->now,
				       &dev->sock.failure);
	}
	return total;
}

/* Inside a post: that one should not take long. */
void wf_udp_pass_pump(struct wf_udp_dev *dev)
{
	wf_udp_engine_pump(&dev->engine, dev->now, QUANTUM, QUANTUM);
}

static void take_doorbells(struct wf_udp_dev *dev)
{
	const struct wf_queue_ids *qpns = &dev->nic.qpns;
	bool waited = dev->ring_waits;

	dev->ring_waits = false;
	if (!wf_nic_worker_is_kicked(&dev->worker) && !waited)
		return;
	for (uint32_t i = 0; i < qpns->count; i++) {
		if (qpns->slots[i].next == WF_QUEUE_ID_IN_USE)
			wf_udp_work_take(dev, dev->nic.qps[i]);
	}
}

int wf_udp_pass(struct wf_udp_dev *dev)
{
	int did;

	dev->now = wf_base_clock_ns();
	/* A thread of our own is woken by what comes. */
	dev->engine.late =
		!dev->worker.on &&
		dev->now - atomic_load_explicit(&dev->looked_at,
						memory_order_relaxed) >
			LATE_AFTER;
	if (dev->sock.fault)
		wf_udp_fault_run(dev->sock.fault, dev->now);
	did = receive(dev);
	atomic_store_explicit(&dev->looked_at, dev->now, memory_order_relaxed);
	take_doorbells(dev);
	did += wf_udp_engine_turn(&dev->engine, dev->now, QUANTUM,
				  QUANTUM_ALONE);
	if (dev->sock.tx.msgs)
		wf_udp_port_flush(dev);
	if (!wf_base_list_empty(&dev->soft.stuck))
		wf_nic_soft_unstick(&dev->soft);
	return did;
}

/* The time at which there is work even if nobody calls. */
uint64_t wf_udp_pass_next(struct wf_udp_dev *dev)
{
	uint64_t at = wf_udp_engine_next(&dev->engine, dev->now);

	/* For reads of ours to end, which packets will report; or for
	 * memory. */
	if (dev->ring_waits && dev->read_ids.in_use < WF_UDP_READS_MOST &&
	    at > dev->now + RETRY_AFTER)
		at = dev->now + RETRY_AFTER;
	if (!wf_base_list_empty(&dev->soft.stuck) && at > dev->now + LOOK_EVERY)
		at = dev->now + LOOK_EVERY;
	if (dev->sock.fault) {
		uint64_t late = wf_udp_fault_run(dev->sock.fault, dev->now);

		at = late < at ? late : at;
	}
	return at;
}

uint64_t wf_udp_pass_attend(struct wf_nic_attend *attend, bool woken)
{
	struct wf_udp_dev *dev =
		wf_container_of(attend, struct wf_udp_dev, attend);
	uint64_t due = 0;
	int more = 1;

	/* The attendant slept at the socket and was woken by the first packet:
	 * the time at which it came is known. */
	if (woken)
		atomic_store_explicit(&dev->looked_at, wf_base_clock_ns(),
				      memory_order_relaxed);
	for (int i = 0; i < ATTEND_PASSES && more; i++) {
		if (!wf_nic_attend_enter(attend, &dev->nic.lock))
			return UINT64_MAX;
		more = wf_udp_pass(dev);
		if (!more)
			due = wf_udp_pass_next(dev);
		wf_base_lock_drop(&dev->nic.lock);
	}
	return due;
}

/* -- the thread ------------------------------------------------------------- */

static uint64_t work(struct wf_nic_worker *worker)
{
	struct wf_udp_dev *dev =
		wf_container_of(worker, struct wf_udp_dev, worker);

	return wf_udp_pass(dev) ? 0 : wf_udp_pass_next(dev);
}

int wf_udp_pass_start(struct wf_udp_dev *dev)
{
	dev->worker.lock = &dev->nic.lock;
	dev->worker.fd = dev->sock.fd;
	dev->worker.pass = work;
	return wf_nic_worker_start(&dev->worker);
}

/* Opens what a sleeper needs in addition to the socket, if others may do
 * something that it must know. */
int wf_udp_pass_fds(struct wf_udp_dev *dev, bool thread)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ret;

	dev->soft.user_fd = wf_os_eventfd();
	if (dev->soft.user_fd < 0)
		return dev->soft.user_fd;
	if (thread)
		return 0;
	dev->poll_fd = wf_os_epoll_create();
	if (dev->poll_fd < 0)
		return dev->poll_fd;
	ret = wf_os_epoll_ctl(dev->poll_fd, EPOLL_CTL_ADD, dev->soft.user_fd,
			      &event);
	if (!ret)
		ret = wf_os_epoll_ctl(dev->poll_fd, EPOLL_CTL_ADD, dev->sock.fd,
				      &event);
	return ret;
}
