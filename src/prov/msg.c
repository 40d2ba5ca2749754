/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_msg(3): every call, as thin as possible. OPS() instantiates the calls on
 * the fast path four times: with the lock, without it, for devices that have a
 * use for descriptors of memory, and for aliases and endpoints that count their
 * sends.
 */
#include "prov/msg.h"

#include "prov/xfer.h"

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = src,
		.flags = wf_prov_alias_rx_flags(fid),
		.context = context,
	};

	return wf_prov_xfer_recvv(ep, &xfer);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.flags = flags,
		.context = msg->context,
	};

	return wf_prov_xfer_recvv(wf_prov_alias_ep(fid), &xfer);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dst,
			 void *context)
{
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = dst,
		.flags = wf_prov_alias_tx_flags(fid),
		.context = context,
	};

	return wf_prov_xfer_sendv(ep, &xfer);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
	};

	return wf_prov_xfer_sendv(wf_prov_alias_ep(fid), &xfer);
}

#define OPS(name, locked, counted, DESC, EP, TX_FLAGS, RX_FLAGS)               \
	static ssize_t recv_##name(struct fid_ep *fid, void *buf, size_t len,  \
				   void *desc, fi_addr_t src, void *context)   \
	{                                                                      \
		return wf_prov_xfer_recv(EP(fid), buf, len, src, 0, 0,         \
					 RX_FLAGS(fid), context, DESC(desc),   \
					 false, locked);                       \
	}                                                                      \
	static ssize_t send_##name(struct fid_ep *fid, const void *buf,        \
				   size_t len, void *desc, fi_addr_t dst,      \
				   void *context)                              \
	{                                                                      \
		struct wf_prov_ep *ep = EP(fid);                               \
                                                                               \
		return wf_prov_xfer_send(ep, buf, len, dst, 0, 0,              \
					 TX_FLAGS(fid), context, DESC(desc),   \
					 0, false, locked, counted);           \
	}                                                                      \
	static ssize_t senddata_##name(struct fid_ep *fid, const void *buf,    \
				       size_t len, void *desc, uint64_t data,  \
				       fi_addr_t dst, void *context)           \
	{                                                                      \
		struct wf_prov_ep *ep = EP(fid);                               \
                                                                               \
		return wf_prov_xfer_send(                                      \
			ep, buf, len, dst, 0, data, TX_FLAGS(fid), context,    \
			DESC(desc), WF_SHM_SLOT_DATA, false, locked, counted); \
	}                                                                      \
	static ssize_t inject_##name(struct fid_ep *fid, const void *buf,      \
				     size_t len, fi_addr_t dst)                \
	{                                                                      \
		return wf_prov_xfer_send(EP(fid), buf, len, dst, 0, 0, 0,      \
					 NULL, NULL, 0, true, locked,          \
					 counted);                             \
	}                                                                      \
	static ssize_t injectdata_##name(struct fid_ep *fid, const void *buf,  \
					 size_t len, uint64_t data,            \
					 fi_addr_t dst)                        \
	{                                                                      \
		return wf_prov_xfer_send(EP(fid), buf, len, dst, 0, data, 0,   \
					 NULL, NULL, WF_SHM_SLOT_DATA, true,   \
					 locked, counted);                     \
	}                                                                      \
	struct fi_ops_msg wf_prov_msg_ops_##name = {                           \
		.size = sizeof(struct fi_ops_msg),                             \
		.recv = recv_##name,                                           \
		.recvv = msg_recvv,                                            \
		.recvmsg = msg_recvmsg,                                        \
		.send = send_##name,                                           \
		.sendv = msg_sendv,                                            \
		.sendmsg = msg_sendmsg,                                        \
		.inject = inject_##name,                                       \
		.senddata = senddata_##name,                                   \
		.injectdata = injectdata_##name,                               \
	}

/* The table of an endpoint's plain handle. */
#define EP_OF(fid) wf_prov_ep_of(fid)
#define EP_TX(fid) (EP_OF(fid)->tx_flags)
#define EP_RX(fid) (EP_OF(fid)->rx_flags)
#define NO_DESC(desc) ((void)(desc), NULL)
#define USE_DESC(desc) (desc)

OPS(locked, true, false, NO_DESC, EP_OF, EP_TX, EP_RX);
OPS(unlocked, false, false, NO_DESC, EP_OF, EP_TX, EP_RX);
OPS(described, true, false, USE_DESC, EP_OF, EP_TX, EP_RX);
OPS(alias, true, true, USE_DESC, wf_prov_alias_ep, wf_prov_alias_tx_flags,
    wf_prov_alias_rx_flags);
