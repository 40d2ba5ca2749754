/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint: the core with its two transports.
 */
#include "core/ep.h"

int wf_core_ep_open(struct wf_core_ep *ep, const struct wf_core_ep_attr *attr)
{
	struct wf_core *common = &ep->common;
	struct wf_way *shm, *rdm;
	int err;

	err = wf_core_open(common, &attr->host);
	if (err)
		return err;
	shm = wf_core_add(common, &wf_shm_transport, &ep->shm);
	rdm = wf_core_add(common, &wf_rdm_transport, &ep->rdm);
	/* The last to be opened takes a descriptor over (name_fd), which stays
	 * the caller's on failure. */
	err = wf_rdm_ep_open(&ep->rdm, &attr->rdm, &common->host, rdm);
	if (err)
		goto err_loop;
	err = wf_shm_ep_open(&ep->shm, &attr->shm, &common->host, shm);
	if (!err)
		return 0;
	wf_rdm_ep_close(&ep->rdm);
err_loop:
	common->way_count = 0;
	wf_core_close(common);
	return err;
}

void wf_core_ep_tick(struct wf_core_ep *ep)
{
	struct wf_shm_in *in = ep->common.host.only;

	if (wf_shm_in_ready(in) || wf_shm_watch_has_rung(&ep->shm.watch)) {
		wf_core_progress(&ep->common);
		return;
	}
	wf_shm_in_prefetch(in);
	wf_core_tick(&ep->common);
}

/* Handles replies. If they were all that we waited for, the next poll takes the
 * shortest way again. */
static void take_replies(struct wf_core_ep *ep, struct wf_shm_out *out)
{
	struct wf_host *host = &ep->common.host;
	const struct wf_shm_watch *watch = &ep->shm.watch;

	wf_shm_out_poll(out);
	if (out->sharing) {
		wf_transport_host_busy(host);
	} else if (host->asked && !out->waiting.count) {
		host->asked = NULL;
		host->only = watch->watched ? watch->ins[0] : NULL;
	}
}

void wf_core_ep_asked(struct wf_core_ep *ep)
{
	struct wf_host *host = &ep->common.host;
	const struct wf_shm_watch *watch = &ep->shm.watch;
	struct wf_shm_in *in = watch->watched ? watch->ins[0] : NULL;

	/* wf_core_progress() counts the poll that looks at the clock. */
	if (!host->asked || host->polls + 1 >= WF_HOST_POLLS_PER_CLOCK ||
	    wf_shm_watch_has_rung(watch)) {
		wf_core_progress(&ep->common);
		return;
	}
	host->polls++;
	if (wf_shm_out_has_reply(host->asked))
		take_replies(ep, host->asked);
	if (!in)
		return;
	if (wf_shm_in_ready(in))
		wf_shm_in_poll(in, WF_SHM_IN_BUDGET);
	else
		wf_shm_in_prefetch(in);
}

void wf_core_ep_close(struct wf_core_ep *ep)
{
	wf_core_close(&ep->common);
}
