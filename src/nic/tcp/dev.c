/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NIC over kernel TCP: opening and closing it, and the table through which
 * queue pairs reach it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/open.h"
#include "nic/tcp/dev.h"
#include "nic/tcp/tcp.h"
#include "nic/tcp/tls.h"
#include "os/file.h"
#include "os/knob.h"
#include "os/inline.h"
#include "os/poll.h"
#include "os/process.h"
#include "os/socket.h"

/* Requests that wait for each other, and for how long after the last left. */
#define BURST_MOST 128u
#define BURST_BYTES (512u << 10)
#define BURST_NS (WF_KNOB(burst_us, 50u) * WF_NS_PER_US)
/* A user who posts so many while others are under way, without a pause, will post
 * more. One who posts two and computes must not find the second waiting. */
#define BURST_MIN WF_KNOB(burst_min, 8u)
#define PAUSE_NS (1 * WF_NS_PER_MS)
/* A look at the clock takes a quarter of the time that a message of a run takes.
 * So many that came without a pause are followed by others as soon: the clock is
 * looked at for every fourth. */
#define PACED 16u
#define CLOCK_EVERY 4u
/* Inside a post: that one should not take long. */
#define KICK_QUANTUM (256u << 10)

#define MAX_RDMA (1u << 30)
#define MAX_QUEUE 16384u
#define MAX_BATCH 64u
/* A message of 16 KiB and its header are one packet. Larger ones would not stay
 * in the cache between the kernel's copy and ours. An odd number of lines: the
 * first lines of receives that follow each other have different places in a
 * cache. */
#define MAX_MSG (16384u + 576u)
/* As many small messages as one read brings. */
#define RECVS 512u
#define DEFAULT_PEERS WF_KNOB(max_peers, 4096u)
#define DEFAULT_DEAD (900 * WF_NS_PER_S)
#define DEFAULT_CONNECT (20 * WF_NS_PER_S)
#define IDLE (300 * WF_NS_PER_S)

/* -- the table -------------------------------------------------------------- */

static void note_post(struct wf_tcp_dev *dev)
{
	if (dev->now - dev->posted_at > PAUSE_NS)
		dev->streak = 0;
	dev->posted_at = dev->now;
	dev->posts++;
}

/* In a burst, that is while others are under way and the last left just now, a
 * request waits for more of its kind, which leave in one call. The next pass
 * takes it along: the owner's, or the attendant's if he does not call. */
static bool may_wait(struct wf_tcp_dev *dev)
{
	note_post(dev);
	if (!dev->attend.on || !dev->flying)
		return false;
	return ++dev->streak > BURST_MIN &&
	       dev->now - dev->kicked_at < BURST_NS &&
	       dev->held_back < BURST_BYTES && ++dev->kicks_held < BURST_MOST;
}

/* Frames that were taken leave. */
static void leave(struct wf_tcp_dev *dev)
{
	wf_tcp_pass_pump(dev, KICK_QUANTUM);
	dev->kicked_at = dev->now;
	dev->kicks_held = 0;
	dev->held_back = 0;
}

static void tcp_kick(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	if (dev->worker.on) {
		wf_nic_worker_kick(&dev->worker);
		return;
	}
	wf_nic_attend_called(&dev->attend);
	wf_base_lock_take(&nic->lock);
	dev->now = wf_base_clock_ns();
	wf_tcp_work_take(dev, qp);
	if (!may_wait(dev))
		leave(dev);
	wf_base_lock_drop(&nic->lock);
	/* A thread that sleeps does not know of timers set here. */
	wf_nic_soft_wake(&dev->soft);
}

/* With the lock. -ENOMEM, or enum wf_nic_run. */
static int send_locked(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
		       uint16_t req_id, const struct wf_nic_wr *wr,
		       const struct wf_nic_sge *sge, int count)
{
	bool more = wr->flags & WF_NIC_WR_MORE, waits = more;
	/* Then it need not wait, and leaves before the clock is looked at. */
	bool idle = !dev->flying;
	enum wf_nic_run run;
	struct wf_tcp_op *op;
	int err;

	/* Requests that wait in the ring, for memory or a read to end, go
	 * first. */
	if (wf_unlikely(wf_queue_work_poll(&qp->sq_work)))
		return -ENOMEM;
	if (!more && !idle) {
		dev->now = wf_base_clock_ns();
		waits = may_wait(dev);
	}
	if (!waits && wr->flags & WF_NIC_WR_RUN &&
	    wf_base_list_empty(&dev->active)) {
		run = wf_tcp_work_first(dev, qp, req_id, wr, sge);
		if (run != WF_NIC_RUN_OPEN) {
			note_post(dev);
			leave(dev);
			return (int)run;
		}
	}
	/* The kick that follows MORE looks at the clock. */
	if (!more && idle) {
		dev->now = wf_base_clock_ns();
		note_post(dev);
	}
	op = wf_tcp_work_send(dev, qp, req_id, wr, sge, count, &err);
	if (more && op && wf_unlikely(op->chan->state != WF_TCP_UP))
		dev->now = wf_base_clock_ns(); /* it may begin to connect */
	if (op && (waits || !wf_base_list_empty(&dev->active) ||
		   !wf_tcp_out_now(dev, op)))
		wf_tcp_work_queue(dev, op, op->chan);
	if (!waits)
		leave(dev);
	return err;
}

static int tcp_send(struct wf_nic *nic, struct wf_nic_qp *qp, uint16_t req_id,
		    const struct wf_nic_wr *wr, const struct wf_nic_sge *sge,
		    int count)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	int ret;

	wf_base_lock_take(&nic->lock);
	ret = send_locked(dev, qp, req_id, wr, sge, count);
	wf_base_lock_drop(&nic->lock);
	if (wf_likely(ret >= 0) && !(wr->flags & WF_NIC_WR_MORE)) {
		/* Off the way of the message. The first has a fence, which
		 * is what the second needs, if there is an attendant. */
		wf_nic_attend_called(&dev->attend);
		if (!dev->attend.on ||
		    atomic_load_explicit(&dev->soft.user_asleep,
					 memory_order_relaxed))
			wf_nic_soft_wake(&dev->soft);
	}
	return ret;
}

static bool tcp_extend(struct wf_nic *nic, struct wf_nic_qp *qp,
		       uint16_t req_id, const struct wf_nic_wr *wr,
		       uint32_t len)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	struct wf_tcp_op *op;
	bool leaves = false;

	wf_base_lock_take(&nic->lock);
	op = wf_tcp_run_open(dev, qp, req_id, wr->ah);
	if (op) {
		wf_tcp_run_add(dev, op, len);
		if (!(wr->flags & WF_NIC_WR_MORE)) {
			if (op->run < PACED || !(op->run % CLOCK_EVERY))
				dev->now = wf_base_clock_ns();
			leaves = !may_wait(dev);
		}
		if (leaves)
			leave(dev);
	}
	wf_base_lock_drop(&nic->lock);
	if (wf_likely(!leaves)) {
		/* A thread that sleeps has known of the run since it began. */
		wf_nic_attend_noted(&dev->attend);
		return op;
	}
	wf_nic_attend_called(&dev->attend);
	wf_nic_soft_wake(&dev->soft);
	return true;
}

static int tcp_progress(struct wf_nic *nic)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	int did;

	if (dev->worker.on)
		return 0;
	wf_nic_attend_called(&dev->attend);
	wf_base_lock_take(&nic->lock);
	/* One who posts one and looks for its end posts no burst. */
	if (dev->posts == 1)
		dev->streak = 0;
	dev->posts = 0;
	dev->attending = false;
	dev->owned = true;
	did = wf_tcp_pass(dev);
	dev->owned = false;
	wf_base_lock_drop(&nic->lock);
	return did;
}

static int tcp_wait_fd(struct wf_nic *nic)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	return dev->worker.on ? dev->soft.user_fd : dev->poll_fd;
}

/* Before a sleep. */
static uint64_t next_work(struct wf_nic *nic)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	uint64_t at;

	dev->now = wf_base_clock_ns();
	at = wf_tcp_pass_rest(dev);
	return at > dev->now ? at : 0;
}

static int tcp_wait_begin(struct wf_nic *nic, struct wf_nic_cq *cq,
			  uint64_t *deadline_ns)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	return wf_nic_soft_wait_begin(
		&dev->soft, cq, dev->worker.on ? NULL : next_work, deadline_ns);
}

static void tcp_wait_end(struct wf_nic *nic)
{
	wf_nic_soft_wait_end(&wf_tcp_dev_of(nic)->soft);
}

static int tcp_qp_create(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_tcp_qp *mine = calloc(1, sizeof(*mine));

	(void)nic;
	if (!mine)
		return -ENOMEM;
	wf_base_list_init(&mine->ops);
	mine->stuck = wf_nic_soft_places(qp);
	mine->spare = calloc(qp->rq_ids.count + 1, sizeof(*mine->spare));
	if (!mine->stuck || !mine->spare) {
		free(mine->stuck);
		free(mine->spare);
		free(mine);
		return -ENOMEM;
	}
	qp->dev = mine;
	return 0;
}

static void tcp_qp_flush(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	dev->now = wf_base_clock_ns();
	wf_tcp_work_flush(dev, qp);
	wf_nic_soft_tell(&dev->soft);
}

static void tcp_qp_destroy(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_tcp_qp *mine = qp->dev;

	wf_nic_soft_drop(&wf_tcp_dev_of(nic)->soft, qp);
	free(mine->stuck);
	free(mine->spare);
	free(mine);
}

static int tcp_ah_create(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	struct wf_tcp_peer *peer;
	struct wf_addr addr;

	if (wf_nic_ah_socket(nic, ah, &addr))
		return -EINVAL;
	dev->now = wf_base_clock_ns();
	peer = wf_tcp_peer_get(dev, &addr, false);
	if (!peer)
		return -ENOSPC;
	peer->ah = ah->num;
	if (!peer->handles++) {
		dev->strangers--;
		peer->lost = false;
	}
	if (wf_tcp_peer_is_self(dev, peer))
		dev->mirror->ah = ah->num;
	ah->dev = peer;
	return 0;
}

/* The peer stays for a while: it may still send to us, and what was posted goes
 * on. */
static void tcp_ah_destroy(struct wf_nic *nic, struct wf_nic_ah *ah,
			   const struct wf_nic_memo *memo)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	struct wf_tcp_peer *peer = ah->dev;

	if (--peer->handles)
		return;
	peer->ah = WF_NIC_AH_UNKNOWN;
	if (wf_tcp_peer_is_self(dev, peer))
		dev->mirror->ah = WF_NIC_AH_UNKNOWN;
	/* One that nobody has taken back yet is kept. */
	if (memo) {
		peer->has_memo = true;
		peer->memo = *memo;
	}
	dev->strangers++;
	dev->now = wf_base_clock_ns();
	wf_tcp_peer_release(dev, peer);
	wf_nic_soft_tell(&dev->soft);
}

static bool tcp_ah_recall(struct wf_nic *nic, struct wf_nic_ah *ah,
			  struct wf_nic_memo *memo)
{
	struct wf_tcp_peer *peer = ah->dev;
	bool found = peer->has_memo;

	(void)nic;
	if (found)
		*memo = peer->memo;
	peer->has_memo = false;
	return found;
}

/* Bytes of a frame on the channel for payloads are on their way, and could
 * arrive after what is posted later, on the other channel: such a request ends
 * when the peer has it, or is gone. On the channel for messages the stream keeps
 * the order; only a frame that has begun to leave has to be finished. */
static bool must_arrive(const struct wf_tcp_chan *chan,
			const struct wf_tcp_op *op)
{
	if (op->where == WF_TCP_FLIGHT)
		return chan->index != WF_TCP_SMALL;
	return op->where == WF_TCP_TODO && chan->conn && chan->conn->part &&
	       chan->todo.next == &op->link;
}

static void abandon(struct wf_tcp_dev *dev, struct wf_list *head)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_tcp_op *op =
			wf_container_of(pos, struct wf_tcp_op, link);

		if (!op->qp)
			continue;
		if (must_arrive(op->chan, op))
			op->status = op->status ? op->status : WF_NIC_ABORT;
		else
			wf_tcp_work_end(dev, op, WF_NIC_ABORT);
	}
}

/* A connection leads to one life of a peer, and ends with it: whatever is under
 * way is the user's to give up, and the connection stays. */
static void tcp_ah_abandon(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	struct wf_tcp_peer *peer = ah->dev;

	peer->lost = true;
	dev->now = wf_base_clock_ns();
	wf_tcp_settle(dev);
	for (unsigned i = 0; i < WF_TCP_CHANNELS; i++) {
		abandon(dev, &peer->chans[i].todo);
		abandon(dev, &peer->chans[i].flight);
	}
	abandon(dev, &peer->reads);
	wf_nic_soft_tell(&dev->soft);
}

static void tcp_ah_renew(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_tcp_peer *peer = ah->dev;

	(void)nic;
	peer->lost = false;
}

static void tcp_ah_query(struct wf_nic *nic, const struct wf_nic_ah *ah,
			 struct wf_nic_path *path)
{
	const struct wf_tcp_peer *peer = ah->dev;
	const struct wf_tcp_chan *chan = &peer->chans[WF_TCP_SMALL];

	path->up = chan->state == WF_TCP_UP;
	path->lost = peer->lost;
	path->hears = peer->life;
	path->replaced =
		peer->lost && peer->life && peer->life != peer->lost_life;
	path->refused = peer->is_refused;
	path->asking_ns = chan->asked_from && !path->up ?
				  wf_base_clock_ns() - chan->asked_from :
				  0;
	path->in_flight = chan->flying;
	path->queued = chan->sent - chan->known;
	path->resets = peer->fails;
	path->max_msg = nic->caps.max_msg;
}

/* -- opening and closing ---------------------------------------------------- */

/* Frames that are here are acknowledged, so that nobody waits for them; then
 * goodbye follows. */
static void say_goodbye(struct wf_tcp_dev *dev)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &dev->conns) {
		struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, link);

		if (conn->chan->state != WF_TCP_UP)
			continue;
		/* Unread bytes would make the kernel forget the last bytes that
		 * we have sent. */
		for (int i = 0; i < 64; i++) {
			if (wf_os_recv(conn->fd, dev->stage, WF_TCP_STAGE, 0) <=
			    0)
				break;
		}
		wf_tcp_ack_say(dev, conn, WF_TCP_BYE);
		wf_os_shutdown(conn->fd, SHUT_WR);
	}
}

static void close_fd(int fd)
{
	if (fd >= 0)
		wf_os_close(fd);
}

static void free_dev(struct wf_tcp_dev *dev)
{
	while (!wf_base_list_empty(&dev->guests))
		wf_tcp_conn_close(dev,
				  wf_container_of(dev->guests.next,
						  struct wf_tcp_conn, link));
	while (!wf_base_list_empty(&dev->peers))
		wf_tcp_peer_free(dev,
				 wf_container_of(dev->peers.next,
						 struct wf_tcp_peer, link));
	wf_tcp_conn_free_dead(dev);
	wf_tcp_tls_close(dev->tls);
	wf_nic_timers_fini(&dev->timers);
	wf_nic_timers_fini(&dev->probes);
	free(dev->reads);
	free(dev->stage);
	free(dev->out);
	wf_queue_ids_fini(&dev->read_ids);
	wf_tcp_place_fini(dev);
	wf_base_pool_fini(&dev->ops);
	if (dev->own_listen)
		close_fd(dev->listen_fd);
	wf_tcp_rail_close(dev);
	close_fd(dev->poll_fd);
	wf_nic_worker_close(&dev->worker);
	close_fd(dev->soft.user_fd);
	wf_nic_fini(&dev->nic);
	free(dev);
}

static void tcp_close(struct wf_nic *nic)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	bool is_copy = dev->pid != wf_os_getpid();

	/* A forked child has a copy of all of this, but no thread. Its parent
	 * goes on, so the child sends nothing. */
	if (!is_copy) {
		if (dev->attend.on)
			wf_nic_attend_end(&dev->attend);
		wf_nic_worker_stop(&dev->worker);
		say_goodbye(dev);
	}
	/* The attendant looked at it until now. */
	dev->is_copy = is_copy;
	free_dev(dev);
}

static void close_conns(struct wf_list *head)
{
	struct wf_list *pos;

	for (pos = head->next; pos != head; pos = pos->next)
		close_fd(wf_container_of(pos, struct wf_tcp_conn, link)->fd);
}

/* As long as a child has a connection, the peer does not see that the parent is
 * gone. */
static void tcp_forked(struct wf_nic *nic)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	close_conns(&dev->conns);
	close_conns(&dev->guests);
	if (dev->own_listen)
		close_fd(dev->listen_fd);
	wf_tcp_rail_close(dev);
	close_fd(dev->poll_fd);
	wf_nic_worker_close(&dev->worker);
	close_fd(dev->soft.user_fd);
}

static void set_caps(struct wf_tcp_dev *dev, const struct wf_nic_attr *attr)
{
	dev->nic.caps = (struct wf_nic_caps){
		.max_msg = MAX_MSG,
		.max_rdma = MAX_RDMA,
		.inline_max = WF_NIC_INLINE_MAX,
		.max_qp = WF_NIC_QP_MAX,
		.max_queue = MAX_QUEUE,
		.max_batch = MAX_BATCH,
		.max_ah = dev->max_peers < WF_NIC_AH_MAX ? dev->max_peers :
							   WF_NIC_AH_MAX,
		.max_mr = WF_NIC_MR_MAX,
		.push_max = 65536,
		.user_keys = dev->find,
		.takes_sends = !attr->thread,
		.recvs = RECVS,
		.max_recv = MAX_MSG,
		.max_placed = attr->places ? WF_TCP_PLACED_MAX : 0,
		.run_head = attr->runs && !attr->thread ?
				    sizeof(struct wf_tcp_head) :
				    0,
	};
}

static void init(struct wf_tcp_dev *dev, const struct wf_nic_attr *attr)
{
	dev->listen_fd = -1;
	dev->poll_fd = -1;
	wf_nic_worker_init(&dev->worker);
	dev->soft.user_fd = -1;
	dev->soft.tells = true;
	dev->pid = wf_os_getpid();
	dev->now = wf_base_clock_ns();
	dev->awake_at = dev->now;
	dev->find = attr->find;
	dev->find_arg = attr->find_arg;
	dev->idle_ns = IDLE;
	dev->dead_ns = attr->dead_ns ? attr->dead_ns : DEFAULT_DEAD;
	dev->connect_ns = attr->connect_ns ? attr->connect_ns : DEFAULT_CONNECT;
	dev->max_peers = attr->max_peers ? attr->max_peers : DEFAULT_PEERS;
	for (unsigned i = 0; i < 256; i++)
		wf_base_list_init(&dev->buckets[i]);
	wf_base_list_init(&dev->soft.stuck);
	wf_base_list_init(&dev->peers);
	wf_base_list_init(&dev->active);
	wf_base_list_init(&dev->ackers);
	wf_base_list_init(&dev->settles);
	wf_base_list_init(&dev->conns);
	wf_base_list_init(&dev->guests);
	wf_base_list_init(&dev->dead);
	wf_base_list_init(&dev->sinks);
	wf_base_list_init(&dev->carriers);
	wf_base_list_init(&dev->deaf);
	wf_base_list_init(&dev->hots);
	wf_base_list_init(&dev->all_held);
	wf_base_pool_init(&dev->ops, sizeof(struct wf_tcp_op), 64, 0);
}

static int open_listener(struct wf_tcp_dev *dev, const struct wf_nic_attr *attr)
{
	struct wf_addr bound = attr->addr, addr = attr->addr;
	socklen_t len = sizeof(bound.in6);
	int err;

	if (attr->fd < 0) {
		dev->own_listen = true;
		dev->listen_fd = wf_tcp_sock_listen(&bound);
		err = dev->listen_fd < 0 ? dev->listen_fd : 0;
	} else {
		dev->listen_fd = attr->fd;
		err = wf_os_getsockname(attr->fd, &bound.sa, &len);
	}
	if (err)
		return err;
	dev->nic.dual = wf_base_addr_is_dual(&bound);
	dev->port = wf_base_addr_port(&bound);
	wf_base_addr_set_port(&addr, dev->port);
	wf_nic_set_socket(&dev->nic, &addr);
	wf_tcp_sock_begin(dev, dev->listen_fd);
	dev->poll_fd = wf_os_epoll_create();
	if (dev->poll_fd < 0)
		return dev->poll_fd;
	err = wf_tcp_sock_watch(dev, dev->listen_fd, &dev->listen_fd, false);
	return err ? err : wf_tcp_rail_open(dev, attr->more, attr->more_count);
}

static int open_memory(struct wf_tcp_dev *dev)
{
	int ret = wf_queue_ids_init(&dev->read_ids, WF_TCP_READS_MOST, 31);

	if (!ret && dev->nic.caps.max_placed)
		ret = wf_tcp_place_open(dev);
	if (ret)
		return ret;
	dev->reads = calloc(WF_TCP_READS_MOST, sizeof(*dev->reads));
	dev->stage = malloc(WF_TCP_STAGE);
	/* Also holds what one call reads, put together. */
	dev->out = malloc(3 * WF_TCP_STAGE);
	return dev->reads && dev->stage && dev->out ? 0 : -ENOMEM;
}

/* Others may do something that a sleeper has to know of. If there is a thread,
 * the user sleeps on this descriptor alone, and the thread must not be woken by
 * what the user has not seen yet. */
static int open_waker(struct wf_tcp_dev *dev, bool thread)
{
	dev->soft.user_fd = wf_os_eventfd();
	if (dev->soft.user_fd < 0)
		return dev->soft.user_fd;
	if (thread)
		return 0;
	return wf_tcp_sock_watch(dev, dev->soft.user_fd, &dev->soft.user_fd,
				 false);
}

static int begin_attend(struct wf_tcp_dev *dev)
{
	dev->attend.fd = dev->poll_fd;
	dev->attend.owner_asleep = &dev->soft.user_asleep;
	dev->attend.step_in = wf_tcp_pass_attend;
	return wf_nic_attend_begin(&dev->attend);
}

static int open_tls(struct wf_tcp_dev *dev, const struct wf_nic_attr *attr)
{
	char why[WF_NIC_WHY];
	int ret;

	if (!attr->key_file)
		return 0;
	ret = wf_tcp_tls_open(attr->key_file, !attr->no_ktls, &dev->tls, why,
			      sizeof(why));
	if (ret)
		wf_tell("FI_WEFT_KEY_FILE=%s: %s", attr->key_file, why);
	return ret;
}

static int tcp_secure(const char *key_file, char *why, size_t room)
{
	struct wf_tcp_tls *tls;
	int ret = wf_tcp_tls_open(key_file, false, &tls, why, room);

	if (ret)
		return ret;
	wf_tcp_tls_close(tls);
	wf_tcp_tls_about(why, room);
	return 0;
}

static int tcp_open(const struct wf_nic_attr *attr, struct wf_nic **nic)
{
	struct wf_tcp_dev *dev = calloc(1, sizeof(*dev));
	bool locked = attr->locked || attr->thread || attr->attend;
	WF_PER_PROCESS static atomic_bool warned;
	int ret;

	if (!dev)
		return -ENOMEM;
	init(dev, attr);
	ret = wf_nic_init(&dev->nic, &wf_nic_tcp_ops, locked, attr->counters);
	if (ret) {
		free(dev);
		return ret;
	}
	set_caps(dev, attr);
	wf_tcp_sock_raise_limit();
	ret = open_memory(dev);
	if (!ret)
		ret = open_tls(dev, attr);
	if (!ret)
		ret = open_listener(dev, attr);
	if (!ret && locked)
		ret = open_waker(dev, attr->thread);
	if (!ret && attr->thread)
		ret = wf_tcp_pass_start(dev);
	else if (!ret && attr->attend)
		ret = begin_attend(dev);
	if (ret) {
		free_dev(dev);
		return ret;
	}
	if (attr->fault && !atomic_exchange(&warned, true))
		wf_tell("FI_WEFT_FAULT does nothing here: the kernel sends "
			"the packets of this device");
	*nic = &dev->nic;
	return 0;
}

const struct wf_nic_ops wf_nic_tcp_ops = {
	.name = "tcp",
	.about = "the kernel's TCP, with connections of their own for "
		 "small messages and for bulk",
	.socket = SOCK_STREAM,
	.addrs = WF_TCP_RAILS_MOST,
	.copy = WF_QUEUE_COPY_MEMORY,
	.open = tcp_open,
	.secure = tcp_secure,
	.close = tcp_close,
	.forked = tcp_forked,
	.mr_reg = wf_nic_mr_soft_reg,
	.mr_dereg = wf_nic_mr_soft_dereg,
	.qp_create = tcp_qp_create,
	.qp_flush = tcp_qp_flush,
	.qp_destroy = tcp_qp_destroy,
	.ah_create = tcp_ah_create,
	.ah_destroy = tcp_ah_destroy,
	.ah_recall = tcp_ah_recall,
	.ah_abandon = tcp_ah_abandon,
	.ah_renew = tcp_ah_renew,
	.ah_query = tcp_ah_query,
	.place = wf_tcp_place_give,
	.unplace = wf_tcp_place_take,
	.placed = wf_tcp_place_tell,
	.send = tcp_send,
	.extend = tcp_extend,
	.kick = tcp_kick,
	.progress = tcp_progress,
	.wait_fd = tcp_wait_fd,
	.wait_begin = tcp_wait_begin,
	.wait_end = tcp_wait_end,
};
