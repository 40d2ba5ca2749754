/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC: opening and closing it, and the table through which queue
 * pairs reach it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/udp/dev.h"
#include "nic/open.h"
#include "nic/udp/udp.h"
#include "os/file.h"
#include "os/knob.h"
#include "os/poll.h"
#include "os/process.h"

/* Requests that wait for each other, and for how long after the last left. */
#define BURST_MOST 32u
#define BURST_NS (20 * WF_NS_PER_US)

#define MAX_RDMA (1u << 30)
#define MAX_QUEUE 16384u
#define MAX_BATCH 64u
#define MAX_MSG 8192u /* EFA's packets are of 8 KiB and some */
#define DEFAULT_PEERS WF_KNOB(max_peers, 4096u)
#define DEFAULT_DEAD (900 * WF_NS_PER_S)
#define DEFAULT_CONNECT (20 * WF_NS_PER_S)

/* -- the table -------------------------------------------------------------- */

/* In a burst, that is while others are in flight and the last left just now, a
 * request waits for more, which leave in one system call: a send costs the
 * kernel ten times what it costs us. The next pass sends it: the owner's, or
 * the attendant's if the owner does not call. */
static bool may_wait(struct wf_udp_dev *dev)
{
	return dev->attend.on && dev->engine.slots.in_use &&
	       dev->now - dev->kicked_at < BURST_NS &&
	       ++dev->kicks_held < BURST_MOST;
}

static void udp_kick(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	if (dev->worker.on) {
		wf_nic_worker_kick(&dev->worker);
		return;
	}
	wf_nic_attend_called(&dev->attend);
	wf_base_lock_take(&nic->lock);
	dev->now = wf_base_clock_ns();
	wf_udp_work_take(dev, qp);
	if (!may_wait(dev)) {
		wf_udp_pass_pump(dev);
		wf_udp_port_flush(dev);
		dev->kicked_at = dev->now;
		dev->kicks_held = 0;
	}
	wf_base_lock_drop(&nic->lock);
	/* A sleeper does not know of the timers that this has set. */
	wf_nic_soft_wake(&dev->soft);
}

static int udp_progress(struct wf_nic *nic)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);
	int did;

	if (dev->worker.on)
		return 0;
	wf_nic_attend_called(&dev->attend);
	wf_base_lock_take(&nic->lock);
	did = wf_udp_pass(dev);
	wf_base_lock_drop(&nic->lock);
	return did;
}

static int udp_wait_fd(struct wf_nic *nic)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	if (dev->poll_fd >= 0)
		return dev->poll_fd;
	return dev->worker.on ? dev->soft.user_fd : dev->sock.fd;
}

/* Before a sleep. */
static uint64_t next_work(struct wf_nic *nic)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);
	uint64_t at;

	dev->now = wf_base_clock_ns();
	at = wf_udp_pass_next(dev);
	return at > dev->now ? at : 0;
}

static int udp_wait_begin(struct wf_nic *nic, struct wf_nic_cq *cq,
			  uint64_t *deadline_ns)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	return wf_nic_soft_wait_begin(
		&dev->soft, cq, dev->worker.on ? NULL : next_work, deadline_ns);
}

static void udp_wait_end(struct wf_nic *nic)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	/* A thread that slept at the socket was woken by what arrived. */
	atomic_store_explicit(&dev->looked_at, wf_base_clock_ns(),
			      memory_order_relaxed);
	wf_nic_soft_wait_end(&dev->soft);
}

static int udp_qp_create(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_udp_qp *mine = malloc(sizeof(*mine));

	if (!mine)
		return -ENOMEM;
	mine->stuck = wf_nic_soft_places(qp);
	if (!mine->stuck) {
		free(mine);
		return -ENOMEM;
	}
	wf_base_list_init(&mine->ops);
	qp->dev = mine;
	wf_udp_dev_of(nic)->engine.ready = true;
	return 0;
}

static void udp_qp_flush(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	wf_udp_work_flush(wf_udp_dev_of(nic), qp);
}

static void udp_qp_destroy(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	wf_nic_soft_drop(&wf_udp_dev_of(nic)->soft, qp);
	free(((struct wf_udp_qp *)qp->dev)->stuck);
	free(qp->dev);
}

static int udp_ah_create(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);
	struct wf_udp_peer *peer;
	struct wf_addr addr;

	if (wf_nic_ah_socket(nic, ah, &addr))
		return -EINVAL;
	peer = wf_udp_engine_hold(&dev->engine, wf_base_clock_ns(), &addr);
	if (!peer)
		return -ENOSPC;
	peer->ah = ah->num;
	ah->dev = peer;
	return 0;
}

/* The peer is kept for a while: it may still send to us, and posted requests
 * continue. */
static void udp_ah_destroy(struct wf_nic *nic, struct wf_nic_ah *ah,
			   const struct wf_nic_memo *memo)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);
	struct wf_udp_peer *peer = ah->dev;

	if (!wf_udp_engine_release(&dev->engine, wf_base_clock_ns(), peer))
		return;
	peer->ah = WF_NIC_AH_UNKNOWN;
	/* A peer that its user has not released yet is kept. */
	if (memo) {
		peer->has_memo = true;
		peer->memo = *memo;
	}
}

static bool udp_ah_recall(struct wf_nic *nic, struct wf_nic_ah *ah,
			  struct wf_nic_memo *memo)
{
	struct wf_udp_peer *peer = ah->dev;
	bool found = peer->has_memo;

	(void)nic;
	if (found)
		*memo = peer->memo;
	peer->has_memo = false;
	return found;
}

static void udp_ah_abandon(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	wf_udp_engine_abandon(&dev->engine, wf_base_clock_ns(), ah->dev);
}

static void udp_ah_renew(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_udp_peer *peer = ah->dev;

	(void)nic;
	peer->lost = false;
}

static void udp_ah_query(struct wf_nic *nic, const struct wf_nic_ah *ah,
			 struct wf_nic_path *path)
{
	struct wf_udp_peer *peer = ah->dev;
	const struct wf_udp_out *out = &peer->out;

	path->up = out->state == WF_UDP_OUT_UP;
	path->asking_ns =
		out->state == WF_UDP_OUT_INIT || out->state == WF_UDP_OUT_OPEN ?
			wf_base_clock_ns() - out->opened_at :
			0;
	path->srtt_ns = out->cc.srtt;
	path->min_rtt_ns = out->cc.min_rtt == UINT64_MAX ? 0 : out->cc.min_rtt;
	path->cwnd = out->cc.cwnd;
	path->in_flight = out->in_flight;
	path->queued = out->next - out->una;
	path->resets = peer->fails;
	path->lost = peer->lost;
	path->hears = peer->in.open;
	path->replaced = peer->lost && peer->in.instance &&
			 peer->in.instance != out->instance;
	/* System calls: once for each peer. */
	if (!path->up && !peer->guess)
		peer->guess = wf_udp_hello_seg(&wf_udp_dev_of(nic)->engine,
					       &peer->addr);
	path->max_msg = path->up ? out->seg : peer->guess;
	if (path->max_msg > nic->caps.max_msg)
		path->max_msg = nic->caps.max_msg;
}

/* -- opening and closing ---------------------------------------------------- */

static void free_dev(struct wf_udp_dev *dev)
{
	if (dev->engine.port)
		wf_udp_engine_fini(&dev->engine);
	free(dev->reads);
	wf_queue_ids_fini(&dev->read_ids);
	wf_base_pool_fini(&dev->requests);
	wf_udp_sock_close(&dev->sock);
	wf_nic_worker_close(&dev->worker);
	if (dev->poll_fd >= 0)
		wf_os_close(dev->poll_fd);
	if (dev->soft.user_fd >= 0)
		wf_os_close(dev->soft.user_fd);
	wf_nic_fini(&dev->nic);
	free(dev);
}

static void udp_close(struct wf_nic *nic)
{
	struct wf_udp_dev *dev = wf_udp_dev_of(nic);

	/* A forked child has a copy of all of this, but no thread, and its
	 * parent continues: nothing may be sent in the parent's name. */
	if (dev->pid == wf_os_getpid()) {
		if (dev->attend.on)
			wf_nic_attend_end(&dev->attend);
		wf_nic_worker_stop(&dev->worker);
		/* Twice: nobody is left to retransmit it. */
		wf_udp_engine_goodbye(&dev->engine, wf_base_clock_ns());
		wf_udp_engine_goodbye(&dev->engine, wf_base_clock_ns());
		/* Packets that a test's bad wire holds back are late, not
		 * lost. */
		if (dev->sock.fault)
			wf_udp_fault_run(dev->sock.fault, UINT64_MAX);
	}
	free_dev(dev);
}

static int start_engine(struct wf_udp_dev *dev, const struct wf_nic_attr *attr)
{
	struct wf_udp_setup set = {
		.port = &wf_udp_port,
		.counters = dev->nic.counters,
		.dead_ns = attr->dead_ns ? attr->dead_ns : DEFAULT_DEAD,
		.connect_ns =
			attr->connect_ns ? attr->connect_ns : DEFAULT_CONNECT,
		.max_peers = attr->max_peers ? attr->max_peers : DEFAULT_PEERS,
		.rcvbuf = dev->sock.rcvbuf,
		.payload_crc = attr->payload_crc ||
			       (attr->fault && attr->fault->corrupt),
		.any = dev->sock.any,
		.name = dev->sock.name,
	};

	/* As many again may come by themselves; an index has 16 bits. */
	if (set.max_peers > UINT16_MAX / 2)
		set.max_peers = UINT16_MAX / 2;
	if (wf_os_random(set.secret, sizeof(set.secret), true))
		return -EIO;
	dev->now = wf_base_clock_ns();
	wf_udp_engine_init(&dev->engine, dev->now, &set);
	return 0;
}

static void set_caps(struct wf_udp_dev *dev, const struct wf_nic_attr *attr)
{
	uint32_t packet = wf_udp_path_payload(dev->nic.socket.sa.sa_family,
					      dev->sock.link_mtu);
	uint32_t max_msg = packet - (uint32_t)sizeof(struct wf_udp_data);
	uint32_t max_peers = dev->engine.set.max_peers;

	dev->nic.caps = (struct wf_nic_caps){
		.max_msg =
			max_msg < MAX_MSG && !attr->whole ? max_msg : MAX_MSG,
		.max_rdma = MAX_RDMA,
		.inline_max = WF_NIC_INLINE_MAX,
		.max_qp = WF_NIC_QP_MAX,
		.max_queue = MAX_QUEUE,
		.max_batch = MAX_BATCH,
		.max_ah = max_peers < WF_NIC_AH_MAX ? max_peers : WF_NIC_AH_MAX,
		.max_mr = WF_NIC_MR_MAX,
		.push_max = 16384,
		.max_recv = MAX_MSG,
	};
}

static int begin_attend(struct wf_udp_dev *dev)
{
	dev->attend.fd = dev->sock.fd;
	dev->attend.owner_asleep = &dev->soft.user_asleep;
	dev->attend.step_in = wf_udp_pass_attend;
	return wf_nic_attend_begin(&dev->attend);
}

static int udp_open(const struct wf_nic_attr *attr, struct wf_nic **nic)
{
	struct wf_udp_dev *dev = calloc(1, sizeof(*dev));
	struct wf_addr addr;
	bool locked;
	int ret;

	if (!dev)
		return -ENOMEM;
	wf_nic_worker_init(&dev->worker);
	dev->soft.user_fd = -1;
	dev->poll_fd = -1;
	dev->pid = wf_os_getpid();
	dev->sock.fd = -1;
	wf_base_list_init(&dev->soft.stuck);
	wf_base_pool_init(&dev->requests, sizeof(struct wf_udp_request), 64, 0);
	locked = attr->locked || attr->thread || attr->attend;
	ret = wf_nic_init(&dev->nic, &wf_nic_udp_ops, locked, attr->counters);
	if (ret) {
		free(dev);
		return ret;
	}
	ret = wf_queue_ids_init(&dev->read_ids, WF_UDP_READS_MOST, 31);
	if (ret)
		goto err;
	ret = -ENOMEM;
	dev->reads = calloc(WF_UDP_READS_MOST, sizeof(*dev->reads));
	if (!dev->reads)
		goto err;
	ret = wf_udp_sock_open(&dev->sock, attr, &addr, dev->nic.counters);
	if (ret)
		goto err;
	wf_nic_set_socket(&dev->nic, &addr);
	dev->nic.dual = dev->sock.dual;
	ret = start_engine(dev, attr);
	if (ret)
		goto err;
	set_caps(dev, attr);
	dev->nic.source = attr->source;
	if (locked)
		ret = wf_udp_pass_fds(dev, attr->thread);
	if (!ret && attr->thread)
		ret = wf_udp_pass_start(dev);
	else if (!ret && attr->attend)
		ret = begin_attend(dev);
	if (ret)
		goto err;
	*nic = &dev->nic;
	return 0;

err:
	free_dev(dev);
	return ret;
}

const struct wf_nic_ops wf_nic_udp_ops = {
	.name = "udp",
	.about = "our own transport in UDP packets",
	.socket = SOCK_DGRAM,
	.copy = WF_QUEUE_COPY_MEMORY,
	.open = udp_open,
	.close = udp_close,
	.mr_reg = wf_nic_mr_soft_reg,
	.mr_dereg = wf_nic_mr_soft_dereg,
	.qp_create = udp_qp_create,
	.qp_flush = udp_qp_flush,
	.qp_destroy = udp_qp_destroy,
	.ah_create = udp_ah_create,
	.ah_destroy = udp_ah_destroy,
	.ah_recall = udp_ah_recall,
	.ah_abandon = udp_ah_abandon,
	.ah_renew = udp_ah_renew,
	.ah_query = udp_ah_query,
	.kick = udp_kick,
	.progress = udp_progress,
	.wait_fd = udp_wait_fd,
	.wait_begin = udp_wait_begin,
	.wait_end = udp_wait_end,
};
