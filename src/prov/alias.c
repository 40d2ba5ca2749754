/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aliases of endpoints.
 */
#include "prov/alias.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/atomic.h"
#include "prov/msg.h"
#include "prov/name.h"
#include "prov/nosys.h"
#include "prov/rma.h"

static struct fi_ops alias_fid_ops;
static struct fi_ops_cm alias_cm_ops;

static int alias_close(struct fid *fid)
{
	struct wf_prov_alias *alias =
		wf_container_of(fid, struct wf_prov_alias, fid.fid);

	atomic_fetch_sub(&alias->ep->refs, 1);
	free(alias);
	return 0;
}

static int alias_control(struct fid *fid, int command, void *arg)
{
	struct wf_prov_alias *alias =
		wf_container_of(fid, struct wf_prov_alias, fid.fid);

	switch (command) {
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return wf_prov_ep_flags(&alias->tx_flags, &alias->rx_flags, arg,
					command == FI_SETOPSFLAG);
	default:
		return -FI_ENOSYS;
	}
}

int wf_prov_alias_open(struct wf_prov_ep *ep, const struct fi_alias *arg)
{
	struct wf_prov_alias *alias = calloc(1, sizeof(*alias));
	uint64_t flags = arg->flags;
	int err;

	if (!alias)
		return -FI_ENOMEM;
	*alias = (struct wf_prov_alias){
		.fid = {
			.fid = {
				.fclass = FI_CLASS_EP,
				.context = ep->fid.fid.context,
				.ops = &alias_fid_ops,
			},
			.ops = &wf_prov_alias_ops,
			.cm = &alias_cm_ops,
			.msg = &wf_prov_msg_ops_alias,
			.tagged = &wf_prov_tagged_ops_alias,
			.rma = &wf_prov_rma_ops,
			.atomic = &wf_prov_atomic_ops,
			.collective = &wf_prov_nosys_collective,
		},
		.ep = ep,
		.tx_flags = ep->tx_flags,
		.rx_flags = ep->rx_flags,
	};
	/* fi_alias(3): the flags say which side they are for. */
	if (flags) {
		err = wf_prov_ep_flags(&alias->tx_flags, &alias->rx_flags,
				       &flags, true);
		if (err) {
			free(alias);
			return err;
		}
	}
	atomic_fetch_add(&ep->refs, 1);
	*arg->fid = &alias->fid.fid;
	return 0;
}

static ssize_t alias_cancel(fid_t fid, void *context)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_alias, fid.fid)->ep;

	return ep->fid.ops->cancel(&ep->fid.fid, context);
}

static int alias_getopt(fid_t fid, int level, int optname, void *optval,
			size_t *optlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_alias, fid.fid)->ep;

	return ep->fid.ops->getopt(&ep->fid.fid, level, optname, optval,
				   optlen);
}

static int alias_setopt(fid_t fid, int level, int optname, const void *optval,
			size_t optlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_alias, fid.fid)->ep;

	return ep->fid.ops->setopt(&ep->fid.fid, level, optname, optval,
				   optlen);
}

static int alias_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct wf_prov_ep *ep =
		wf_container_of(fid, struct wf_prov_alias, fid.fid)->ep;

	return ep->fid.cm->getname(&ep->fid.fid, addr, addrlen);
}

static struct fi_ops_cm alias_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = wf_prov_nosys_setname,
	.getname = alias_getname,
	.getpeer = wf_prov_nosys_getpeer,
	.connect = wf_prov_nosys_connect,
	.listen = wf_prov_nosys_listen,
	.accept = wf_prov_nosys_accept,
	.reject = wf_prov_nosys_reject,
	.shutdown = wf_prov_nosys_shutdown,
	.join = wf_prov_nosys_join,
};

static struct fi_ops alias_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = alias_close,
	.bind = wf_prov_nosys_bind,
	.control = alias_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

struct fi_ops_ep wf_prov_alias_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = alias_cancel,
	.getopt = alias_getopt,
	.setopt = alias_setopt,
	.tx_ctx = wf_prov_nosys_tx_ctx,
	.rx_ctx = wf_prov_nosys_rx_ctx,
	.rx_size_left = wf_prov_nosys_size_left,
	.tx_size_left = wf_prov_nosys_size_left,
};
