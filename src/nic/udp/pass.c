/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass of the software NIC's work: what came, what is due, what may leave;
 * and the thread that does nothing else, if there is one.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "nic/udp/dev.h"
#include "nic/udp/sum.h"
#include "os/poll.h"
#include "os/thread.h"
#include "queue/wake.h"

#define RETRY_AFTER (50 * WF_NS_PER_US)
#define LOOK_EVERY (5 * WF_NS_PER_MS)
#define RX_ROUNDS 4
/* Passes in a row in the owner's place. */
#define ATTEND_PASSES 16
#define SEGS_PER_BUFFER 64
/* Beyond this between two looks at the socket, what is found says nothing about
 * the path. */
#define LATE_AFTER (5 * WF_NS_PER_MS)
/* Packets of one peer in one pass; of one that has the pass for itself: five
 * buffers of segments at the size of an Ethernet, 18 % cheaper than one and a
 * half. */
#define QUANTUM 64u
#define QUANTUM_ALONE 220u

/* -- sending ---------------------------------------------------------------- */

static void unsent(void *arg, void *token)
{
	struct wf_udp_slot *slot = token;

	wf_udp_out_unsent(arg, slot->peer, slot);
}

int wf_udp_dev_flush(struct wf_udp_dev *dev)
{
	int ret = wf_udp_sock_flush(&dev->sock, dev->now, unsent, dev);

	if (ret)
		wf_udp_dev_later(dev);
	return ret;
}

void wf_udp_dev_later(struct wf_udp_dev *dev)
{
	dev->retry_at = dev->now + RETRY_AFTER;
}

void wf_udp_dev_control(struct wf_udp_dev *dev, const struct wf_addr *to,
			struct wf_udp_common *packet, size_t len)
{
	static const struct wf_addr unknown;
	const struct wf_udp_peer *peer =
		dev->sock.any ? wf_udp_peer_find(dev, to) : NULL;

	wf_udp_dev_answer(dev, to, peer ? &peer->local : &unknown, packet, len);
}

static void seal(struct wf_udp_common *packet, size_t len)
{
	const uint8_t *bytes = (const uint8_t *)packet;

	packet->magic = WF_UDP_MAGIC;
	packet->crc = wf_udp_sum_crc(0, bytes, 4);
	packet->crc = wf_udp_sum_crc(packet->crc, bytes + 8, len - 8);
}

void wf_udp_dev_answer(struct wf_udp_dev *dev, const struct wf_addr *to,
		       const struct wf_addr *from, struct wf_udp_common *packet,
		       size_t len)
{
	void *room;

	if (dev->sock.any)
		dev->sock.from = *from;
	seal(packet, len);
	room = wf_udp_sock_packet(&dev->sock, to, len, false, NULL);
	if (!room) {
		wf_udp_dev_flush(dev);
		room = wf_udp_sock_packet(&dev->sock, to, len, false, NULL);
	}
	memcpy(room, packet, len);
	wf_udp_sock_piece(&dev->sock, room, len);
}

void wf_udp_dev_padded(struct wf_udp_dev *dev, const struct wf_udp_peer *peer,
		       struct wf_udp_note *note, size_t len)
{
	static const uint8_t
		zeros[WF_UDP_PART_TOTAL + sizeof(struct wf_udp_data)];
	void *room;

	if (dev->sock.any)
		dev->sock.from = peer->local;
	seal(&note->common, sizeof(*note));
	room = wf_udp_sock_packet(&dev->sock, &peer->addr, len, true, NULL);
	if (!room)
		return; /* there will be another */
	memcpy(room, note, sizeof(*note));
	wf_udp_sock_piece(&dev->sock, room, sizeof(*note));
	wf_udp_sock_piece(&dev->sock, zeros, len - sizeof(*note));
}

/* -- one pass --------------------------------------------------------------- */

static void told(void *arg, const struct wf_udp_word *word)
{
	struct wf_udp_dev *dev = arg;
	struct wf_udp_peer *peer = wf_udp_peer_find(dev, &word->to);

	if (!peer)
		return;
	if (!wf_udp_peer_quoted(peer, word->quote, word->quoted))
		wf_udp_peer_doubt(dev, peer);
	else if (word->too_large)
		wf_udp_path_narrow(
			dev, peer,
			wf_udp_sock_payload(peer->addr.sa.sa_family,
					    word->mtu) -
				(uint32_t)sizeof(struct wf_udp_data));
	else
		wf_udp_peer_against(dev, peer, word->refused);
}

/* The kernel would not send a packet: the path has become narrower, it makes no
 * segments there, or there is no route. This holds for that peer only, and is
 * ignored if the address is of no peer. */
static void not_sent(struct wf_udp_dev *dev)
{
	const struct wf_udp_sock *sock = &dev->sock;
	struct wf_udp_peer *peer = wf_udp_peer_find(dev, &sock->failed_to);
	/* Asked for only then: system calls. */
	uint32_t seg = peer && sock->too_large ?
			       wf_udp_hello_seg(dev, &sock->failed_to) :
			       0;

	if (peer && seg && seg < peer->out.seg) {
		wf_udp_path_narrow(dev, peer, seg);
	} else if (peer && ((seg && sock->segments) || sock->no_segments)) {
		wf_info("no segmentation on the way to a peer");
		peer->out.no_gso = true;
	} else if (peer && !seg) {
		wf_udp_peer_against(dev, peer, false);
	}
	dev->sock.failed = false;
	dev->sock.too_large = false;
	dev->sock.no_segments = false;
}

/* Buffers of segments to ask for: what finds no receive is refused and has to be
 * sent again, what stays in the socket waits for the next pass. One at least,
 * because acknowledgements come the same way. */
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
	/* Who comes back after long has more waiting than one look finds. */
	bool greedy = dev->now - dev->received_at > WF_NS_PER_MS;
	int total = 0;

	dev->received_at = dev->now;
	for (int i = 0; i < RX_ROUNDS; i++) {
		unsigned most = appetite(dev);
		int got = wf_udp_sock_receive(&dev->sock, most,
					      wf_udp_in_packet, dev);

		total += got;
		if (!got || (!greedy && (got < (int)most || most == 1)))
			break;
	}
	if (dev->sock.errors || (!total && dev->now >= dev->look_at)) {
		wf_udp_sock_errors(&dev->sock, told, dev);
		dev->look_at = dev->now + LOOK_EVERY;
	}
	if (wf_unlikely(dev->sock.failed))
		not_sent(dev);
	return total;
}

static int run_timers(struct wf_udp_dev *dev)
{
	struct wf_nic_timer *timer;
	struct wf_list ripe;
	int fired = 0;

	/* Each once: one that is due again at once has to wait for the next
	 * pass. */
	wf_base_list_init(&ripe);
	while ((timer = wf_nic_timers_take(&dev->timers, dev->now)))
		wf_base_list_add_tail(
			&ripe,
			&wf_container_of(timer, struct wf_udp_peer, timer)
				 ->ripe);
	while (!wf_base_list_empty(&ripe)) {
		struct wf_udp_peer *peer =
			wf_container_of(ripe.next, struct wf_udp_peer, ripe);

		wf_base_list_del(&peer->ripe);
		wf_udp_peer_tick(dev, peer);
		fired++;
	}
	return fired;
}

static int pump_all(struct wf_udp_dev *dev, unsigned alone)
{
	struct wf_list *pos, *tmp, now;
	unsigned quantum;
	int pumped = 0;

	if (dev->now < dev->retry_at)
		return 0;
	/* Each once: who has more to send comes again in the next pass. */
	wf_base_list_init(&now);
	if (!wf_base_list_empty(&dev->active)) {
		now = dev->active;
		now.next->prev = &now;
		now.prev->next = &now;
		wf_base_list_init(&dev->active);
	}
	quantum = now.next == now.prev ? alone : QUANTUM;
	wf_list_for_each (pos, tmp, &now) {
		wf_udp_pump(dev,
			    wf_container_of(pos, struct wf_udp_peer, active),
			    quantum);
		pumped++;
	}
	return pumped;
}

/* Inside a post: that one should not take long. */
void wf_udp_pass_pump(struct wf_udp_dev *dev)
{
	pump_all(dev, QUANTUM);
}

static void send_acks(struct wf_udp_dev *dev)
{
	while (!wf_base_list_empty(&dev->ackers))
		wf_udp_in_send_ack(dev,
				   wf_container_of(dev->ackers.next,
						   struct wf_udp_peer, acker));
}

static void take_doorbells(struct wf_udp_dev *dev)
{
	const struct wf_queue_ids *qpns = &dev->nic.qpns;
	bool waited = dev->ring_waits;

	dev->ring_waits = false;
	if (!atomic_exchange_explicit(&dev->dirty, 0, memory_order_acquire) &&
	    !waited)
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
	dev->late = !dev->threaded &&
		    dev->now - atomic_load_explicit(&dev->looked_at,
						    memory_order_relaxed) >
			    LATE_AFTER;
	if (dev->sock.fault)
		wf_udp_fault_run(dev->sock.fault, dev->now);
	did = receive(dev);
	atomic_store_explicit(&dev->looked_at, dev->now, memory_order_relaxed);
	take_doorbells(dev);
	did += run_timers(dev);
	did += pump_all(dev, QUANTUM_ALONE);
	send_acks(dev);
	wf_udp_dev_flush(dev);
	if (!wf_base_list_empty(&dev->soft.stuck))
		wf_nic_soft_unstick(&dev->soft);
	return did;
}

/* When there is something to do even if nobody calls. */
uint64_t wf_udp_pass_next(struct wf_udp_dev *dev)
{
	uint64_t at = wf_nic_timers_next(&dev->timers);

	if (!wf_base_list_empty(&dev->active))
		at = dev->retry_at > dev->now ? dev->retry_at : 0;
	/* For reads of ours to end, which packets will tell; or for memory. */
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
		wf_base_lock_take(&dev->nic.lock);
		more = wf_udp_pass(dev);
		if (!more)
			due = wf_udp_pass_next(dev);
		wf_base_lock_drop(&dev->nic.lock);
	}
	return due;
}

/* -- the thread ------------------------------------------------------------- */

static void sleep_until(struct wf_udp_dev *dev, uint64_t at)
{
	struct pollfd fds[2] = {
		{ .fd = dev->sock.fd, .events = POLLIN },
		{ .fd = dev->wake_fd, .events = POLLIN },
	};
	uint64_t now = wf_base_clock_ns(), wait = at > now ? at - now : 0;
	uint64_t value;

	if (!wait)
		return;
	wf_os_poll(fds, 2, at == WF_UDP_NEVER ? WF_OS_FOREVER : wait);
	if (fds[1].revents)
		wf_os_eventfd_read(dev->wake_fd, &value);
}

static void *thread_main(void *arg)
{
	struct wf_udp_dev *dev = arg;

	for (;;) {
		uint64_t at;
		bool stop;
		int did;

		wf_base_lock_take(&dev->nic.lock);
		did = wf_udp_pass(dev);
		at = wf_udp_pass_next(dev);
		stop = dev->stop;
		wf_base_lock_drop(&dev->nic.lock);
		if (stop)
			return NULL;
		if (did)
			continue;
		/* Pairs with wf_queue_wake_needed() in kick(). */
		wf_queue_wake_arm(&dev->asleep);
		if (!atomic_load_explicit(&dev->dirty, memory_order_relaxed))
			sleep_until(dev, at);
		wf_queue_wake_disarm(&dev->asleep);
	}
}

/* What a sleeper needs beside the socket, if others may do something that it
 * has to know of. */
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

int wf_udp_pass_start(struct wf_udp_dev *dev)
{
	int ret;

	dev->wake_fd = wf_os_eventfd();
	if (dev->wake_fd < 0)
		return dev->wake_fd;
	dev->threaded = true; /* before it looks */
	ret = wf_os_thread_start(&dev->thread, thread_main, dev);
	if (ret)
		dev->threaded = false;
	return ret;
}

void wf_udp_pass_stop(struct wf_udp_dev *dev)
{
	if (dev->threaded) {
		wf_base_lock_take(&dev->nic.lock);
		dev->stop = true;
		wf_base_lock_drop(&dev->nic.lock);
		wf_os_eventfd_write(dev->wake_fd, 1);
		wf_os_thread_join(dev->thread);
	}
}
