/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_tagged(3): every call, as thin as possible. OPS() instantiates the calls
 * on the fast path three times: with the lock, without it, and for aliases and
 * endpoints that count their sends.
 */
#include "prov/msg.h"
#include "prov/xfer.h"

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = src,
		.tag = tag,
		.ignore = ignore,
		.flags = wf_prov_alias_rx_flags(fid),
		.context = context,
		.tagged = true,
	};

	return wf_prov_xfer_recvv(ep, &xfer);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.flags = flags,
		.context = msg->context,
		.tagged = true,
	};

	return wf_prov_xfer_recvv(wf_prov_alias_ep(fid), &xfer);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dst,
			    uint64_t tag, void *context)
{
	struct wf_prov_ep *ep = wf_prov_alias_ep(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.desc = desc,
		.iov_count = count,
		.addr = dst,
		.tag = tag,
		.flags = wf_prov_alias_tx_flags(fid),
		.context = context,
		.tagged = true,
	};

	return wf_prov_xfer_sendv(ep, &xfer);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.tag = msg->tag,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
		.tagged = true,
	};

	return wf_prov_xfer_sendv(wf_prov_alias_ep(fid), &xfer);
}

#define OPS(name, locked, counted, DESC, EP, TX_FLAGS, RX_FLAGS)               \
	static ssize_t recv_##name(struct fid_ep *fid, void *buf, size_t len,  \
				   void *desc, fi_addr_t src, uint64_t tag,    \
				   uint64_t ignore, void *context)             \
	{                                                                      \
		return wf_prov_xfer_recv(EP(fid), buf, len, src, tag, ignore,  \
					 RX_FLAGS(fid), context, DESC(desc),   \
					 true, locked);                        \
	}                                                                      \
	static ssize_t send_##name(struct fid_ep *fid, const void *buf,        \
				   size_t len, void *desc, fi_addr_t dst,      \
				   uint64_t tag, void *context)                \
	{                                                                      \
		struct wf_prov_ep *ep = EP(fid);                               \
                                                                               \
		return wf_prov_xfer_send(ep, buf, len, dst, tag, 0,            \
					 TX_FLAGS(fid), context, DESC(desc),   \
					 WF_SHM_SLOT_TAGGED, false, locked,    \
					 counted);                             \
	}                                                                      \
	static ssize_t senddata_##name(                                        \
		struct fid_ep *fid, const void *buf, size_t len, void *desc,   \
		uint64_t data, fi_addr_t dst, uint64_t tag, void *context)     \
	{                                                                      \
		struct wf_prov_ep *ep = EP(fid);                               \
                                                                               \
		return wf_prov_xfer_send(                                      \
			ep, buf, len, dst, tag, data, TX_FLAGS(fid), context,  \
			DESC(desc), WF_SHM_SLOT_TAGGED | WF_SHM_SLOT_DATA,     \
			false, locked, counted);                               \
	}                                                                      \
	static ssize_t inject_##name(struct fid_ep *fid, const void *buf,      \
				     size_t len, fi_addr_t dst, uint64_t tag)  \
	{                                                                      \
		return wf_prov_xfer_send(EP(fid), buf, len, dst, tag, 0, 0,    \
					 NULL, NULL, WF_SHM_SLOT_TAGGED, true, \
					 locked, counted);                     \
	}                                                                      \
	static ssize_t injectdata_##name(struct fid_ep *fid, const void *buf,  \
					 size_t len, uint64_t data,            \
					 fi_addr_t dst, uint64_t tag)          \
	{                                                                      \
		return wf_prov_xfer_send(                                      \
			EP(fid), buf, len, dst, tag, data, 0, NULL, NULL,      \
			WF_SHM_SLOT_TAGGED | WF_SHM_SLOT_DATA, true, locked,   \
			counted);                                              \
	}                                                                      \
	struct fi_ops_tagged wf_prov_tagged_ops_##name = {                     \
		.size = sizeof(struct fi_ops_tagged),                          \
		.recv = recv_##name,                                           \
		.recvv = tagged_recvv,                                         \
		.recvmsg = tagged_recvmsg,                                     \
		.send = send_##name,                                           \
		.sendv = tagged_sendv,                                         \
		.sendmsg = tagged_sendmsg,                                     \
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
