/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_msg(3): every call, as thin as can be. OPS() writes the calls that are on
 * the fast path twice, once with the lock and once without.
 */
#include "prov/msg.h"

#include "prov/xfer.h"

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	struct wf_prov_ep *ep = wf_prov_ep_of(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.iov_count = count,
		.addr = src,
		.flags = ep->rx_flags,
		.context = context,
	};

	(void)desc;
	return wf_prov_xfer_recvv(ep, &xfer);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.flags = flags,
		.context = msg->context,
	};

	return wf_prov_xfer_recvv(wf_prov_ep_of(fid), &xfer);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dst,
			 void *context)
{
	struct wf_prov_ep *ep = wf_prov_ep_of(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.iov_count = count,
		.addr = dst,
		.flags = ep->tx_flags,
		.context = context,
	};

	(void)desc;
	return wf_prov_xfer_sendv(ep, &xfer);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
	};

	return wf_prov_xfer_sendv(wf_prov_ep_of(fid), &xfer);
}

#define OPS(name, locked)                                                      \
	static ssize_t recv_##name(struct fid_ep *fid, void *buf, size_t len,  \
				   void *desc, fi_addr_t src, void *context)   \
	{                                                                      \
		(void)desc;                                                    \
		return wf_prov_xfer_recv(wf_prov_ep_of(fid), buf, len, src, 0, \
					 0, context, false, locked);           \
	}                                                                      \
	static ssize_t send_##name(struct fid_ep *fid, const void *buf,        \
				   size_t len, void *desc, fi_addr_t dst,      \
				   void *context)                              \
	{                                                                      \
		struct wf_prov_ep *ep = wf_prov_ep_of(fid);                    \
                                                                               \
		(void)desc;                                                    \
		return wf_prov_xfer_send(ep, buf, len, dst, 0, 0,              \
					 ep->tx_flags, context, false, false,  \
					 locked);                              \
	}                                                                      \
	static ssize_t senddata_##name(struct fid_ep *fid, const void *buf,    \
				       size_t len, void *desc, uint64_t data,  \
				       fi_addr_t dst, void *context)           \
	{                                                                      \
		struct wf_prov_ep *ep = wf_prov_ep_of(fid);                    \
                                                                               \
		(void)desc;                                                    \
		return wf_prov_xfer_send(ep, buf, len, dst, 0, data,           \
					 ep->tx_flags | FI_REMOTE_CQ_DATA,     \
					 context, false, false, locked);       \
	}                                                                      \
	static ssize_t inject_##name(struct fid_ep *fid, const void *buf,      \
				     size_t len, fi_addr_t dst)                \
	{                                                                      \
		return wf_prov_xfer_send(wf_prov_ep_of(fid), buf, len, dst, 0, \
					 0, 0, NULL, false, true, locked);     \
	}                                                                      \
	static ssize_t injectdata_##name(struct fid_ep *fid, const void *buf,  \
					 size_t len, uint64_t data,            \
					 fi_addr_t dst)                        \
	{                                                                      \
		return wf_prov_xfer_send(wf_prov_ep_of(fid), buf, len, dst, 0, \
					 data, FI_REMOTE_CQ_DATA, NULL, false, \
					 true, locked);                        \
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

OPS(locked, true);
OPS(unlocked, false);
