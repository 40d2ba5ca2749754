/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass of the NIC's work: reads what has arrived, runs timers that have
 * expired, sends what may be sent. Also the thread that does nothing else, if
 * the NIC has one.
 */
#include <errno.h>

#include "base/log.h"
#include "nic/tcp/dev.h"
#include "os/poll.h"

#define EVENTS 64
/* While only a few connections talk they are read without being asked for by
 * epoll, which is a call less; others are looked at every so many passes, and
 * when so much time has passed: passes of a program that polls rarely are rare. */
#define LOOK_WITHIN (100 * WF_NS_PER_US)
#define LOOK_EVERY 16u
#define COOL_AFTER (1 * WF_NS_PER_MS)
#define RETRY_AFTER (1 * WF_NS_PER_MS)
/* Passes in a row that do no more than to bring messages. */
#define HURRIES_MOST 8u
/* Bytes of one channel in one pass. */
#define QUANTUM (1u << 20)
/* Passes that read nothing before acknowledgements leave that a peer waits for:
 * MPI looks once more after each message before it answers. */
#define HASTEN_AFTER 4u
/* A pass that is later than this: the process did not run. */
#define ABSENT_MIN (100 * WF_NS_PER_MS)
/* Passes in a row in the owner's place. */
#define ATTEND_PASSES 16

/* All of @from, which is empty then. */
static void take_over(struct wf_list *from, struct wf_list *to)
{
	wf_base_list_init(to);
	if (wf_base_list_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	wf_base_list_init(from);
}

/* -- what came --------------------------------------------------------------- */

static void has_room(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	conn->full = false;
	dev->full_count--;
	if (!(conn->deaf ? wf_tcp_sock_watch_end :
			   wf_tcp_sock_rewatch)(dev, conn->fd, conn, false))
		conn->watches = false;
	wf_tcp_out_activate(dev, conn->chan);
}

static int conn_event(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn,
		      uint32_t events)
{
	if (conn->dead)
		return 0;
	if (!conn->chan || conn->chan->state != WF_TCP_UP) {
		wf_tcp_conn_event(dev, conn, events);
		return 1;
	}
	if (events & EPOLLOUT && conn->full)
		has_room(dev, conn);
	/* The connection has ended while we did not read it. Frames that we have
	 * not read are sent again over the next one, or their sender is gone. */
	if (wf_unlikely(conn->deaf) &&
	    events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		wf_tcp_conn_broken(dev, conn, ECONNRESET);
		return 1;
	}
	if (!(events & ~(uint32_t)EPOLLOUT) || conn->carry)
		return 0;
	return wf_tcp_in_read(dev, conn);
}

static int look_at_all(struct wf_tcp_dev *dev)
{
	struct epoll_event events[EVENTS];
	int n = wf_os_epoll_wait(dev->poll_fd, events, EVENTS, 0), did = 0;

	for (int i = 0; i < n; i++) {
		void *tag = events[i].data.ptr;

		if (tag == &dev->listen_fd) {
			wf_tcp_conn_accept(dev, dev->listen_fd);
			did++;
		} else if (wf_unlikely(wf_tcp_rail_listens(dev, tag))) {
			wf_tcp_conn_accept(dev, *(int *)tag);
			did++;
		} else if (tag != &dev->soft.user_fd) {
			did += conn_event(dev, tag, events[i].events);
		}
	}
	return did;
}

/* Those that talk; of more than a few, those that epoll does not report: there are
 * never more than a few of these, at the head of the list. A copy of it: what one
 * says may close another. */
static int look_at_hot(struct wf_tcp_dev *dev, bool all)
{
	struct wf_tcp_conn *conns[WF_TCP_HOT_MOST];
	unsigned int want = all ? dev->hot_count : dev->apart_count;
	unsigned int count = 0;
	struct wf_list *pos;
	int did = 0;

	want = want < WF_TCP_HOT_MOST ? want : WF_TCP_HOT_MOST;
	for (pos = dev->hots.next; pos != &dev->hots && count < want;
	     pos = pos->next) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, hot_link);

		if (all || conn->apart)
			conns[count++] = conn;
	}
	for (unsigned int i = 0; i < count; i++) {
		struct wf_tcp_conn *conn = conns[i];

		if (conn->dead)
			continue;
		did += conn_event(dev, conn, EPOLLIN);
		if (!conn->dead && dev->now - conn->came_at > COOL_AFTER)
			wf_tcp_hot_cool(dev, conn);
	}
	return did;
}

static void cool_down(struct wf_tcp_dev *dev)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->hots) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, hot_link);

		if (dev->now - conn->came_at > COOL_AFTER)
			wf_tcp_hot_cool(dev, conn);
	}
}

/* Before a timer runs out, everything is read that may have come in time. */
static int look(struct wf_tcp_dev *dev)
{
	int did;

	if (dev->hot_count && dev->hot_count <= WF_TCP_HOT_MOST &&
	    !dev->full_count && ++dev->passes % LOOK_EVERY &&
	    dev->now - dev->looked_at < LOOK_WITHIN &&
	    !wf_nic_timers_due(&dev->timers, dev->now) &&
	    !wf_nic_timers_due(&dev->probes, dev->now))
		return look_at_hot(dev, true);
	dev->looked_at = dev->now;
	cool_down(dev);
	did = look_at_all(dev);
	if (dev->apart_count)
		did += look_at_hot(dev, false);
	return did;
}

static int carry_on(struct wf_tcp_dev *dev)
{
	struct wf_list now;
	int did = 0;

	/* Each once; those that still wait are put back. */
	take_over(&dev->carriers, &now);
	while (!wf_base_list_empty(&now)) {
		struct wf_tcp_conn *conn = wf_container_of(
			now.next, struct wf_tcp_conn, wait_link);

		wf_base_list_del(&conn->wait_link);
		did += wf_tcp_in_resume(dev, conn);
		if (!conn->dead && conn->carry)
			wf_base_list_add_tail(&dev->carriers, &conn->wait_link);
	}
	return did;
}

/* -- what is due ------------------------------------------------------------- */

static int run_timers(struct wf_tcp_dev *dev)
{
	struct wf_nic_timer *timer;
	int fired = 0;

	/* This ends: all callers set a timer to a time later than now. */
	while ((timer = wf_nic_timers_take(&dev->timers, dev->now))) {
		timer->due = WF_TCP_NEVER;
		wf_tcp_conn_tick(
			dev, wf_container_of(timer, struct wf_tcp_peer, timer));
		fired++;
	}
	fired += wf_tcp_probe_run(dev);
	if (wf_unlikely(dev->no_accept && dev->now >= dev->accept_at)) {
		dev->no_accept = wf_tcp_sock_watch(dev, dev->listen_fd,
						   &dev->listen_fd, false);
		/* All or none, as above. */
		if (!dev->no_accept && wf_tcp_rail_watch(dev)) {
			(void)!wf_tcp_sock_unwatch(dev, dev->listen_fd);
			dev->no_accept = true;
		}
		dev->accept_at = dev->now + RETRY_AFTER;
	}
	if (wf_unlikely(dev->guest_count))
		wf_tcp_conn_expire_guests(dev);
	wf_tcp_files_share(dev);
	return fired;
}

static void take_doorbells(struct wf_tcp_dev *dev)
{
	const struct wf_queue_ids *qpns = &dev->nic.qpns;
	bool waited = dev->ring_waits;

	dev->ring_waits = false;
	if (!wf_nic_worker_is_kicked(&dev->worker) && !waited)
		return;
	for (uint32_t i = 0; i < qpns->count; i++) {
		if (qpns->slots[i].next == WF_QUEUE_ID_IN_USE)
			wf_tcp_work_take(dev, dev->nic.qps[i]);
	}
}

/* -- what may leave ---------------------------------------------------------- */

void wf_tcp_pass_pump(struct wf_tcp_dev *dev, size_t quantum)
{
	struct wf_list now;

	/* Each once: a channel with more to send is served in the next pass. */
	take_over(&dev->active, &now);
	while (!wf_base_list_empty(&now)) {
		struct wf_tcp_chan *chan = wf_container_of(
			now.next, struct wf_tcp_chan, active_link);

		wf_base_list_del(&chan->active_link);
		chan->active = false;
		wf_tcp_out_pump(dev, chan, quantum);
	}
}

/* Runs timers, and ends the requests that the peer has acknowledged. A user
 * that waits for a message gets the message first. The rest follows when the
 * user calls again and there is nothing to read, or after some messages. */
static int keep_house(struct wf_tcp_dev *dev)
{
	if (dev->delivered && !dev->settle_now && !dev->attending &&
	    ++dev->hurries % HURRIES_MOST)
		return 0;
	wf_tcp_settle(dev);
	take_doorbells(dev);
	return run_timers(dev);
}

/* All that we can say of the time since then is that nobody listened. */
static void was_absent(struct wf_tcp_dev *dev)
{
	uint64_t ns = dev->now - dev->awake_at;

	wf_tcp_conn_absent(dev, ns);
	wf_tcp_target_absent(dev, ns);
}

/* Two who send to each other at once, and wait for the end of that, would both
 * wait until acknowledgements leave alone. One who answers does so sooner than
 * after some passes that read nothing. */
static bool must_hasten(struct wf_tcp_dev *dev, int did)
{
	if (wf_likely(!dev->hastens))
		return false;
	dev->idles = did ? 0 : (uint8_t)(dev->idles + 1);
	if (dev->idles < HASTEN_AFTER)
		return false;
	dev->idles = 0;
	dev->hastens = false;
	return true;
}

int wf_tcp_pass(struct wf_tcp_dev *dev)
{
	int did = 0;

	dev->now = wf_base_clock_ns();
	if (wf_unlikely((int64_t)(dev->now - dev->awake_at) >
			(int64_t)ABSENT_MIN))
		was_absent(dev);
	dev->awake_at = dev->now;
	if (wf_unlikely(!wf_base_list_empty(&dev->all_held)))
		did += wf_tcp_target_retry(dev);
	if (wf_unlikely(!wf_base_list_empty(&dev->deaf)))
		wf_tcp_in_listen(dev);
	if (wf_unlikely(!wf_base_list_empty(&dev->carriers)))
		did += carry_on(dev);
	dev->delivered = false;
	did += look(dev);
	did += keep_house(dev);
	if (!wf_base_list_empty(&dev->active))
		wf_tcp_pass_pump(dev, QUANTUM);
	if (!wf_base_list_empty(&dev->ackers))
		did += wf_tcp_ack_send(dev, must_hasten(dev, did));
	if (!wf_base_list_empty(&dev->dead))
		wf_tcp_conn_free_dead(dev);
	if (!wf_base_list_empty(&dev->soft.stuck))
		wf_nic_soft_unstick(&dev->soft);
	wf_nic_soft_tell(&dev->soft);
	return did;
}

static uint64_t rest_until(struct wf_tcp_dev *dev)
{
	uint64_t at, soon = dev->now + RETRY_AFTER;
	bool is_deaf;

	wf_tcp_settle(dev);
	wf_tcp_ack_send(dev, true);
	wf_nic_soft_tell(&dev->soft);
	is_deaf = wf_tcp_hot_attach_all(dev);
	at = wf_nic_timers_next(&dev->timers);
	if (!wf_base_list_empty(&dev->active))
		return 0;
	if (dev->probes.count) {
		uint64_t probe = wf_tcp_probe_next(dev);

		at = at < probe ? at : probe;
	}
	if (at > soon && (!wf_base_list_empty(&dev->carriers) ||
			  !wf_base_list_empty(&dev->all_held) ||
			  !wf_base_list_empty(&dev->soft.stuck) ||
			  dev->ring_waits || is_deaf))
		at = soon;
	if (dev->no_accept && at > dev->accept_at)
		at = dev->accept_at;
	if (dev->guest_count && at > dev->now + WF_NS_PER_S)
		at = dev->now + WF_NS_PER_S;
	return at;
}

uint64_t wf_tcp_pass_rest(struct wf_tcp_dev *dev)
{
	uint64_t at = rest_until(dev);

	/* Others may wake us sooner. */
	dev->awake_at = at == WF_TCP_NEVER ? INT64_MAX :
			at > dev->now	   ? at :
					     dev->now;
	return at;
}

/* Bytes that wait for a receive stay in their socket, and a wake-up stays until
 * the owner has seen it. Bug: the attendant did not sleep meanwhile. */
static bool is_blind(struct wf_tcp_dev *dev)
{
	struct pollfd user = { .fd = dev->soft.user_fd, .events = POLLIN };

	return wf_tcp_in_is_blind(dev) ||
	       (user.fd >= 0 && wf_os_poll(&user, 1, 0) > 0);
}

uint64_t wf_tcp_pass_attend(struct wf_nic_attend *attend, bool woken)
{
	struct wf_tcp_dev *dev =
		wf_container_of(attend, struct wf_tcp_dev, attend);
	uint64_t due = 0;
	int more = 1;

	(void)woken;
	for (int i = 0; i < ATTEND_PASSES && more; i++) {
		if (!wf_nic_attend_enter(attend, &dev->nic.lock))
			return UINT64_MAX;
		dev->attending = true;
		more = wf_tcp_pass(dev);
		if (!more)
			due = wf_tcp_pass_rest(dev);
		attend->blind = !more && is_blind(dev);
		wf_base_lock_drop(&dev->nic.lock);
	}
	return due;
}

/* -- the thread -------------------------------------------------------------- */

static uint64_t work(struct wf_nic_worker *worker)
{
	struct wf_tcp_dev *dev =
		wf_container_of(worker, struct wf_tcp_dev, worker);
	uint64_t at;

	dev->attending = true;
	at = wf_tcp_pass(dev) ? 0 : wf_tcp_pass_rest(dev);
	/* Data that wait for a receive keep their socket readable. */
	worker->blind = wf_tcp_in_is_blind(dev);
	return at;
}

int wf_tcp_pass_start(struct wf_tcp_dev *dev)
{
	dev->worker.lock = &dev->nic.lock;
	dev->worker.fd = dev->poll_fd;
	dev->worker.pass = work;
	return wf_nic_worker_start(&dev->worker);
}
