/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_tagged(3): every call, as thin as can be. OPS() writes the calls that are
 * on the fast path twice, once with the lock and once without.
 */
#include "prov/msg.h"
#include "prov/xfer.h"

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	struct wf_prov_ep *ep = wf_prov_ep_of(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.iov_count = count,
		.addr = src,
		.tag = tag,
		.ignore = ignore,
		.flags = ep->rx_flags,
		.context = context,
		.tagged = true,
	};

	(void)desc;
	return wf_prov_xfer_recvv(ep, &xfer);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.flags = flags,
		.context = msg->context,
		.tagged = true,
	};

	return wf_prov_xfer_recvv(wf_prov_ep_of(fid), &xfer);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dst,
			    uint64_t tag, void *context)
{
	struct wf_prov_ep *ep = wf_prov_ep_of(fid);
	struct wf_prov_xfer xfer = {
		.iov = iov,
		.iov_count = count,
		.addr = dst,
		.tag = tag,
		.flags = ep->tx_flags,
		.context = context,
		.tagged = true,
	};

	(void)desc;
	return wf_prov_xfer_sendv(ep, &xfer);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct wf_prov_xfer xfer = {
		.iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.tag = msg->tag,
		.data = msg->data,
		.flags = flags,
		.context = msg->context,
		.tagged = true,
	};

	return wf_prov_xfer_sendv(wf_prov_ep_of(fid), &xfer);
}

#define OPS(name, locked)                                                      \
	static ssize_t recv_##name(struct fid_ep *fid, void *buf, size_t len,  \
				   void *desc, fi_addr_t src, uint64_t tag,    \
				   uint64_t ignore, void *context)             \
	{                                                                      \
		(void)desc;                                                    \
		return wf_prov_xfer_recv(wf_prov_ep_of(fid), buf, len, src,    \
					 tag, ignore, context, true, locked);  \
	}                                                                      \
	static ssize_t send_##name(struct fid_ep *fid, const void *buf,        \
				   size_t len, void *desc, fi_addr_t dst,      \
				   uint64_t tag, void *context)                \
	{                                                                      \
		struct wf_prov_ep *ep = wf_prov_ep_of(fid);                    \
                                                                               \
		(void)desc;                                                    \
		return wf_prov_xfer_send(ep, buf, len, dst, tag, 0,            \
					 ep->tx_flags, context, true, false,   \
					 locked);                              \
	}                                                                      \
	static ssize_t senddata_##name(                                        \
		struct fid_ep *fid, const void *buf, size_t len, void *desc,   \
		uint64_t data, fi_addr_t dst, uint64_t tag, void *context)     \
	{                                                                      \
		struct wf_prov_ep *ep = wf_prov_ep_of(fid);                    \
                                                                               \
		(void)desc;                                                    \
		return wf_prov_xfer_send(ep, buf, len, dst, tag, data,         \
					 ep->tx_flags | FI_REMOTE_CQ_DATA,     \
					 context, true, false, locked);        \
	}                                                                      \
	static ssize_t inject_##name(struct fid_ep *fid, const void *buf,      \
				     size_t len, fi_addr_t dst, uint64_t tag)  \
	{                                                                      \
		return wf_prov_xfer_send(wf_prov_ep_of(fid), buf, len, dst,    \
					 tag, 0, 0, NULL, true, true, locked); \
	}                                                                      \
	static ssize_t injectdata_##name(struct fid_ep *fid, const void *buf,  \
					 size_t len, uint64_t data,            \
					 fi_addr_t dst, uint64_t tag)          \
	{                                                                      \
		return wf_prov_xfer_send(wf_prov_ep_of(fid), buf, len, dst,    \
					 tag, data, FI_REMOTE_CQ_DATA, NULL,   \
					 true, true, locked);                  \
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

OPS(locked, true);
OPS(unlocked, false);
