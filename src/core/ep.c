/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint: the core with its two transports.
 */
#include "core/ep.h"

int wf_core_ep_open(struct wf_core_ep *ep, const struct wf_core_ep_attr *attr)
{
	struct wf_core *common = &ep->common;
	struct wf_way *way;
	int err;

	err = wf_core_open(common, &attr->host);
	if (err)
		return err;
	way = wf_core_add(common, &wf_shm_transport, &ep->shm);
	err = wf_shm_ep_open(&ep->shm, &attr->shm, &common->host, way);
	if (err)
		goto err_loop;
	way = wf_core_add(common, &wf_rdm_transport, &ep->rdm);
	err = wf_rdm_ep_open(&ep->rdm, &attr->rdm, &common->host, way);
	if (!err)
		return 0;
	wf_shm_transport.close(&ep->shm);
err_loop:
	common->way_count = 0;
	wf_core_close(common);
	return err;
}

void wf_core_ep_close(struct wf_core_ep *ep)
{
	wf_core_close(&ep->common);
}
