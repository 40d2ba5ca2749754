/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NIC on an EFA device: memory, handles, opening and closing. Peers get the
 * keys of the hardware. Our own descriptors use keys of the NIC's table, which
 * work.c translates, so every descriptor is checked before the hardware sees
 * it.
 *
 * There are no connections. A peer is a queue pair with a key that its process
 * drew at random. Another process is another peer, and no packet meant for one
 * can reach the other. Therefore a handle is never lost or renewed; requests to
 * a peer that has ended complete with an error.
 */
#include "nic/efa/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/efa.h"
#include "nic/open.h"
#include "os/memory.h"
#include "os/poll.h"

/* Of peers without a handle. One that is forgotten after that and sends again
 * is not understood: its messages have numbers that are not expected. */
#define MEMOS_MOST 65536u
/* Messages up to this go in packets: registering the memory of a message, so
 * that the peer can read it, costs as much as copying it. */
#define PUSH_MAX (64u << 10)
/* Less is copied into packets, and not registered. */
#define COPY_MAX (16u << 10)

/* -- memory ----------------------------------------------------------------- */

static int mr_reg(struct wf_nic *nic, void *addr, size_t len, unsigned access,
		  struct wf_nic_mr *mr)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	const struct wf_srd_verbs *verbs = dev->port->verbs;
	bool everything = !addr && len == SIZE_MAX;
	struct ibv_mr *hard = NULL;
	uint32_t unused;
	int err;

	/* No user needs remote writes, and some devices refuse them. */
	if (access & WF_NIC_REMOTE_WRITE)
		return -EOPNOTSUPP;
	if (!everything) {
		hard = (verbs->ibv_reg_mr)(
			dev->port->hard->pd, addr, len,
			wf_srd_hard_flags(dev->port->hard, access));
		if (!hard)
			return errno ? -errno : -ENOMEM;
	}
	err = wf_nic_mr_table_add(&nic->mrs, (uintptr_t)addr, len, access,
				  &mr->lkey, &unused);
	if (err) {
		if (hard)
			verbs->ibv_dereg_mr(hard);
		return err;
	}
	dev->mrs[mr->lkey & WF_NIC_MR_MAX] = (struct wf_srd_mr){
		.own = hard,
		.lkey = hard ? hard->lkey : 0,
		.known = hard,
	};
	mr->rkey = hard ? hard->rkey : 0;
	return 0;
}

/* The key stays the hardware's after the application has closed its
 * registration: the hardware refuses it then, and it compares the addresses if it
 * has given the key to another one. */
static int mr_use(struct wf_nic *nic, const void *desc, void *addr, size_t len,
		  unsigned access, struct wf_nic_mr *mr)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_nic_mr hard;
	uint32_t unused;
	int err = wf_srd_hard_use(dev->port->hard, desc, addr, len, access,
				  &hard);

	if (!err)
		err = wf_nic_mr_table_add(&nic->mrs, (uintptr_t)addr, len,
					  access, &mr->lkey, &unused);
	if (err)
		return err;
	dev->mrs[mr->lkey & WF_NIC_MR_MAX] = (struct wf_srd_mr){
		.lkey = hard.lkey,
		.known = true,
	};
	mr->rkey = hard.rkey;
	return 0;
}

static int mr_dereg(struct wf_nic *nic, uint32_t lkey)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_srd_mr *mr = &dev->mrs[lkey & WF_NIC_MR_MAX];
	struct ibv_mr *own = mr->own;
	int err = wf_nic_mr_table_del(&nic->mrs, lkey);

	if (err)
		return err;
	*mr = (struct wf_srd_mr){ .own = NULL };
	if (!own)
		return 0;
	err = dev->port->verbs->ibv_dereg_mr(own);
	if (err)
		wf_warn("efa: memory cannot be unregistered: %s",
			strerror(err));
	return 0;
}

static void free_mrs(struct wf_srd_dev *dev)
{
	for (uint32_t i = 0; dev->mrs && i <= WF_NIC_MR_MAX; i++) {
		if (dev->mrs[i].own)
			dev->port->verbs->ibv_dereg_mr(dev->mrs[i].own);
	}
	free(dev->mrs);
}

/* -- handles ---------------------------------------------------------------- */

static struct wf_list *peers_of(struct wf_srd_dev *dev, uint16_t ahn,
				uint16_t qpn)
{
	uint32_t key = (uint32_t)ahn << 16 | qpn;

	return &dev->peers[(key * 2654435761u >> 16) % WF_SRD_BUCKETS];
}

struct wf_srd_peer *wf_srd_dev_peer(struct wf_srd_dev *dev, uint16_t ahn,
				    uint16_t qpn)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, peers_of(dev, ahn, qpn)) {
		struct wf_srd_peer *peer =
			wf_container_of(pos, struct wf_srd_peer, link);

		if (peer->host->ahn == ahn && peer->qpn == qpn)
			return peer;
	}
	return NULL;
}

static void free_peer(struct wf_srd_peer *peer)
{
	free(peer->memo);
	free(peer);
}

static int ah_create(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_srd_peer *peer;
	struct wf_addr addr;
	int err;

	if (wf_nic_addr_to_socket(&ah->addr, &addr) ||
	    !wf_base_addr_is_efa(&addr))
		return -EINVAL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	/* The memo must not be lost for lack of memory. */
	peer->memo = malloc(sizeof(*peer->memo));
	err = peer->memo ? wf_srd_hard_host(dev->port->hard, addr.efa.gid,
					    &peer->host) :
			   -ENOMEM;
	if (err) {
		free_peer(peer);
		return err;
	}
	peer->qpn = addr.efa.qpn;
	peer->qkey = addr.efa.qkey;
	peer->num = ah->num;
	/* The last one is found first: an earlier one with the same number and
	 * another key has ended. */
	wf_base_list_add_head(peers_of(dev, peer->host->ahn, peer->qpn),
			      &peer->link);
	ah->dev = peer;
	return 0;
}

static struct wf_list *memos_of(struct wf_srd_dev *dev,
				const struct wf_nic_addr *addr)
{
	return &dev->memos[wf_nic_addr_hash(addr) % WF_SRD_BUCKETS];
}

static void drop_memo(struct wf_srd_dev *dev, struct wf_srd_memo *memo)
{
	wf_base_list_unlink(&memo->link);
	wf_base_list_unlink(&memo->age);
	dev->memo_count--;
	free(memo);
}

static void keep_memo(struct wf_srd_dev *dev, struct wf_srd_memo *memo,
		      const struct wf_nic_addr *addr,
		      const struct wf_nic_memo *words)
{
	if (dev->memo_count >= MEMOS_MOST)
		drop_memo(dev, wf_container_of(dev->memo_ages.next,
					       struct wf_srd_memo, age));
	memo->addr = *addr;
	memo->memo = *words;
	wf_base_list_add_tail(memos_of(dev, addr), &memo->link);
	wf_base_list_add_tail(&dev->memo_ages, &memo->age);
	dev->memo_count++;
}

static void ah_destroy(struct wf_nic *nic, struct wf_nic_ah *ah,
		       const struct wf_nic_memo *memo)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_srd_peer *peer = ah->dev;

	if (memo) {
		keep_memo(dev, peer->memo, &ah->addr, memo);
		peer->memo = NULL;
	}
	wf_base_list_unlink(&peer->link);
	free_peer(peer);
	ah->dev = NULL;
}

static bool ah_recall(struct wf_nic *nic, struct wf_nic_ah *ah,
		      struct wf_nic_memo *words)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, memos_of(dev, &ah->addr)) {
		struct wf_srd_memo *memo =
			wf_container_of(pos, struct wf_srd_memo, link);

		if (!wf_nic_addr_equal(&memo->addr, &ah->addr))
			continue;
		*words = memo->memo;
		drop_memo(dev, memo);
		return true;
	}
	return false;
}

/* The hardware gives requests back when it is done with them. */
static void ah_ignore(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	(void)nic;
	(void)ah;
}

static void ah_query(struct wf_nic *nic, const struct wf_nic_ah *ah,
		     struct wf_nic_path *path)
{
	(void)ah;
	path->up = true;
	path->hears = true;
	path->max_msg = nic->caps.max_msg;
}

/* -- queue pairs ------------------------------------------------------------ */

static int qp_create(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);

	if (dev->qp || !dev->port->qp)
		return -ENOSPC;
	if (qp->rq_ids.count > WF_SRD_RECVS)
		return -EINVAL;
	dev->stuck = wf_nic_soft_places(qp);
	if (!dev->stuck)
		return -ENOMEM;
	dev->qp = qp;
	return 0;
}

static void qp_flush(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	(void)qp;
	wf_srd_work_flush(wf_srd_dev_of(nic));
}

static void qp_destroy(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);

	wf_nic_soft_drop(&dev->soft, qp);
	free(dev->stuck);
	dev->stuck = NULL;
	dev->qp = NULL;
}

/* -- progress and sleep ----------------------------------------------------- */

static int work(struct wf_srd_dev *dev)
{
	int did;

	if (!dev->qp)
		return 0;
	wf_nic_soft_unstick(&dev->soft);
	did = wf_srd_work_post(dev);
	return did + wf_srd_work_poll(dev);
}

static void kick(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	(void)qp;
	wf_base_lock_take(&nic->lock);
	wf_srd_work_post(wf_srd_dev_of(nic));
	wf_base_lock_drop(&nic->lock);
}

static int progress(struct wf_nic *nic)
{
	int did;

	wf_base_lock_take(&nic->lock);
	did = work(wf_srd_dev_of(nic));
	wf_base_lock_drop(&nic->lock);
	return did;
}

static int wait_fd(struct wf_nic *nic)
{
	return wf_srd_dev_of(nic)->port->channel->fd;
}

/* Events that have come: the descriptor is readable until they are read. */
static void take_events(struct wf_srd_port *port)
{
	struct pollfd fd = { .fd = port->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	while (wf_os_poll(&fd, 1, 0) > 0 &&
	       !port->verbs->ibv_get_cq_event(port->channel, &cq, &context)) {
		port->verbs->ibv_ack_cq_events(cq, 1);
		port->events++;
	}
}

static int wait_begin(struct wf_nic *nic, struct wf_nic_cq *cq,
		      uint64_t *deadline_ns)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);
	int did = 0;

	(void)cq;
	*deadline_ns = UINT64_MAX;
	wf_base_lock_take(&nic->lock);
	take_events(dev->port);
	if (dev->port->way->arm(dev->port))
		did = 1;
	/* The hardware reports no event for completions that came before the
	 * request. */
	did += work(dev);
	wf_base_lock_drop(&nic->lock);
	return did ? -EAGAIN : 0;
}

static void wait_end(struct wf_nic *nic)
{
	wf_base_lock_take(&nic->lock);
	take_events(wf_srd_dev_of(nic)->port);
	wf_base_lock_drop(&nic->lock);
}

/* -- life ------------------------------------------------------------------- */

static int make_copies(struct wf_srd_dev *dev)
{
	void *memory = NULL;

	dev->copy_stride = (dev->port->hard->max_msg + 63) & ~63u;
	dev->copies_bytes = (size_t)dev->copy_stride * WF_SRD_SENDS;
	if (wf_os_mmap(&memory, dev->copies_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1))
		return -ENOMEM;
	dev->copies = memory;
	dev->copies_mr = (dev->port->verbs->ibv_reg_mr)(
		dev->port->hard->pd, memory, dev->copies_bytes, 0);
	return dev->copies_mr ? 0 : (errno ? -errno : -ENOMEM);
}

static void set_caps(struct wf_srd_dev *dev)
{
	const struct wf_srd_port *port = dev->port;

	dev->soft.nic.caps = (struct wf_nic_caps){
		.max_msg = port->hard->max_msg,
		.max_recv = port->hard->max_msg,
		.max_rdma = wf_srd_hard_reads(port->hard) ?
				    port->hard->attr.max_rdma_size :
				    0,
		.hard_reads = wf_srd_hard_reads(port->hard),
		.hard_writes = wf_srd_hard_writes(port->hard),
		.inline_max =
			port->hard->attr.inline_buf_size < WF_NIC_INLINE_MAX ?
				port->hard->attr.inline_buf_size :
				WF_NIC_INLINE_MAX,
		.max_qp = 1,
		.max_queue = WF_SRD_SENDS,
		.max_batch = 32,
		.max_ah = WF_NIC_AH_MAX,
		.max_mr = WF_NIC_MR_MAX,
		.takes_sends = port->rings,
		.push_max = PUSH_MAX,
		.copy_max = COPY_MAX,
		.copies_all = true,
		.recvs = WF_SRD_RECVS,
	};
}

static void init_lists(struct wf_srd_dev *dev)
{
	for (uint32_t i = 0; i < WF_SRD_BUCKETS; i++) {
		wf_base_list_init(&dev->peers[i]);
		wf_base_list_init(&dev->memos[i]);
	}
	wf_base_list_init(&dev->memo_ages);
	wf_base_list_init(&dev->soft.stuck);
	memset(dev->sends, 0xff, sizeof(dev->sends));
	memset(dev->recvs, 0xff, sizeof(dev->recvs));
}

static void free_handles(struct wf_srd_dev *dev)
{
	for (uint32_t i = 0; i < WF_SRD_BUCKETS; i++) {
		while (!wf_base_list_empty(&dev->peers[i])) {
			struct wf_srd_peer *peer = wf_container_of(
				dev->peers[i].next, struct wf_srd_peer, link);

			wf_base_list_unlink(&peer->link);
			free_peer(peer);
		}
	}
	while (!wf_base_list_empty(&dev->memo_ages))
		drop_memo(dev, wf_container_of(dev->memo_ages.next,
					       struct wf_srd_memo, age));
}

static void srd_close(struct wf_nic *nic)
{
	struct wf_srd_dev *dev = wf_srd_dev_of(nic);

	free_handles(dev);
	free_mrs(dev);
	if (dev->copies_mr)
		dev->port->verbs->ibv_dereg_mr(dev->copies_mr);
	if (dev->copies)
		wf_os_munmap(dev->copies, dev->copies_bytes);
	dev->port->used = false;
	wf_nic_fini(nic);
	free(dev);
}

static int srd_open(const struct wf_nic_attr *attr, struct wf_nic **nic)
{
	struct wf_srd_port *port = (struct wf_srd_port *)attr->port;
	struct wf_srd_dev *dev;
	int err;

	if (!port || port->used)
		return -EINVAL;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	err = wf_nic_init(&dev->soft.nic, &wf_nic_efa_ops, attr->locked,
			  attr->counters);
	if (err) {
		free(dev);
		return err;
	}
	dev->port = port;
	dev->soft.user_fd = -1;
	init_lists(dev);
	port->used = true;
	dev->mrs = calloc(WF_NIC_MR_MAX + 1u, sizeof(*dev->mrs));
	err = dev->mrs ? make_copies(dev) : -ENOMEM;
	if (err) {
		srd_close(&dev->soft.nic);
		return err;
	}
	set_caps(dev);
	wf_nic_addr_of_socket(&dev->soft.nic.addr, &port->addr);
	*nic = &dev->soft.nic;
	return 0;
}

const struct wf_nic_ops wf_nic_efa_ops = {
	.name = "efa",
	.about = "EFA, by libibverbs",
	.copy = WF_QUEUE_COPY_MEMORY,
	.find = wf_srd_hard_find,
	.key_open = wf_srd_hard_key_open,
	.key_close = wf_srd_hard_key_close,
	.port_open = wf_srd_port_open,
	.port_close = wf_srd_port_close,
	.port_forked = wf_srd_port_forked,
	.open = srd_open,
	.close = srd_close,
	.mr_reg = mr_reg,
	.mr_use = mr_use,
	.mr_dereg = mr_dereg,
	.qp_create = qp_create,
	.qp_flush = qp_flush,
	.qp_destroy = qp_destroy,
	.ah_create = ah_create,
	.ah_destroy = ah_destroy,
	.ah_recall = ah_recall,
	.ah_abandon = ah_ignore,
	.ah_renew = ah_ignore,
	.ah_query = ah_query,
	.send = wf_srd_ring_send,
	.kick = kick,
	.progress = progress,
	.wait_fd = wait_fd,
	.wait_begin = wait_begin,
	.wait_end = wait_end,
	.way = wf_srd_port_way,
};
