/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's requests: packets into the batch of the socket, the bytes of
 * requests, the kernel's knowledge of the path to an address.
 */
#include <errno.h>
#include <string.h>

#include "nic/udp/dev.h"

/* A header, and payload up to this in all, is copied: pointing to it costs
 * more. */
#define COPY_MOST WF_UDP_TX_ROOM

static_assert(WF_UDP_HEAD_MOST <= WF_UDP_TX_ROOM, "room of a packet");

/* -- packets ---------------------------------------------------------------- */

static void unsent(void *arg, void *token)
{
	wf_udp_engine_unsent(arg, token);
}

int wf_udp_port_flush(struct wf_udp_dev *dev)
{
	int ret = wf_udp_sock_flush(&dev->sock, dev->engine.now, unsent,
				    &dev->engine);

	if (ret)
		wf_udp_engine_later(&dev->engine);
	return ret;
}

static void port_flush(struct wf_udp_engine *engine)
{
	wf_udp_port_flush(wf_udp_dev_of_engine(engine));
}

static void *make_room(struct wf_udp_dev *dev,
		       const struct wf_udp_packet *packet)
{
	size_t total = packet->head_len + packet->len;
	void *room = wf_udp_sock_packet(&dev->sock, packet->to, total,
					packet->alone, packet->slot);

	if (wf_likely(room))
		return room;
	/* Packets that nobody waits for are not sent again: they may use
	 * reserved room, even if the kernel has none. */
	if (wf_udp_port_flush(dev) && packet->slot)
		return NULL;
	return wf_udp_sock_packet(&dev->sock, packet->to, total, packet->alone,
				  packet->slot);
}

static int port_send(struct wf_udp_engine *engine,
		     const struct wf_udp_packet *packet)
{
	struct wf_udp_dev *dev = wf_udp_dev_of_engine(engine);
	uint32_t copied = packet->head_len;
	uint8_t pieces = packet->pieces;
	uint8_t *room;

	if (wf_unlikely(dev->sock.any))
		dev->sock.from = *packet->from;
	room = make_room(dev, packet);
	if (!room)
		return -EAGAIN;
	/* The usual one, inlined. */
	if (wf_likely(packet->head_len == sizeof(struct wf_udp_data)))
		memcpy(room, packet->head, sizeof(struct wf_udp_data));
	else
		memcpy(room, packet->head, packet->head_len);
	if (copied + packet->len <= COPY_MOST) {
		for (unsigned i = 0; i < pieces; i++) {
			memcpy(room + copied, packet->iov[i].iov_base,
			       packet->iov[i].iov_len);
			copied += (uint32_t)packet->iov[i].iov_len;
		}
		pieces = 0;
	}
	wf_udp_sock_piece(&dev->sock, room, copied);
	for (unsigned i = 0; i < pieces; i++)
		wf_udp_sock_piece(&dev->sock, packet->iov[i].iov_base,
				  packet->iov[i].iov_len);
	return 0;
}

/* -- the bytes of requests -------------------------------------------------- */

/* Checked each time a packet is sent: memory may have been deregistered since.
 */
static int locate(struct wf_udp_dev *dev, const struct wf_udp_request *request,
		  uint32_t off, uint32_t len, struct iovec iov[2])
{
	const struct wf_nic_request *req = &request->req;
	int n = 0;

	if (req->inlined) {
		iov[0] = (struct iovec){ (void *)(uintptr_t)(req->data + off),
					 len };
		return 1;
	}
	if (request->op.kind == WF_UDP_OP_SERVE) {
		if (!wf_nic_mr_remote(&dev->nic.mrs, req->rkey,
				      req->raddr + off, len,
				      WF_NIC_REMOTE_READ))
			return -1;
		iov[0] = (struct iovec){ (void *)(uintptr_t)(req->raddr + off),
					 len };
		return 1;
	}
	for (unsigned i = 0; i < req->sges && len; i++) {
		const struct wf_nic_local *sge = &req->sge[i];
		uint32_t take;

		if (off >= sge->len) {
			off -= sge->len;
			continue;
		}
		take = sge->len - off < len ? sge->len - off : len;
		if (!wf_nic_mr_local(&dev->nic.mrs, sge->lkey, sge->addr + off,
				     take, 0))
			return -1;
		iov[n++] = (struct iovec){ (void *)(uintptr_t)(sge->addr + off),
					   take };
		len -= take;
		off = 0;
	}
	return n;
}

static int port_fetch(struct wf_udp_engine *engine,
		      const struct wf_udp_slot *slot, uint32_t off,
		      uint32_t len, struct wf_udp_data *head,
		      struct iovec iov[2])
{
	const struct wf_udp_request *request =
		(const struct wf_udp_request *)slot->op;
	const struct wf_nic_request *req = &request->req;

	head->dst_qpn = req->dst_qpn;
	head->src_qpn = request->src_qpn;
	head->qkey = req->qkey;
	switch (slot->data_op) {
	case WF_UDP_SEND:
		head->imm = req->imm;
		if (req->has_imm)
			head->common.flags |= WF_UDP_DATA_IMM;
		break;
	case WF_UDP_WRITE:
	case WF_UDP_WRITE_IMM:
		head->addr = req->raddr + slot->off;
		head->key = req->rkey;
		head->imm = req->imm;
		head->arg = req->len;
		break;
	case WF_UDP_READ:
		head->addr = req->raddr;
		head->key = req->rkey;
		head->arg = req->len;
		head->imm = request->read_id;
		break;
	case WF_UDP_READ_DATA:
		head->addr = slot->off;
		head->key = request->read_id;
		head->arg = request->op.status;
		break;
	}
	return len ? locate(wf_udp_dev_of_engine(engine), request, off, len,
			    iov) :
		     0;
}

/* -- ways ------------------------------------------------------------------- */

static uint32_t port_mtu(struct wf_udp_engine *engine, const struct wf_addr *to)
{
	return wf_udp_sock_path(&wf_udp_dev_of_engine(engine)->sock, to);
}

static bool port_is_local(struct wf_udp_engine *engine,
			  const struct wf_addr *addr)
{
	(void)engine;
	return wf_base_addr_is_local(addr);
}

const struct wf_udp_port wf_udp_port = {
	.send = port_send,
	.flush = port_flush,
	.fetch = port_fetch,
	.place = wf_udp_target,
	.ended = wf_udp_work_ended,
	.mtu = port_mtu,
	.is_local = port_is_local,
};
