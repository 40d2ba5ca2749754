/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters.
 */
#include "prov/cntr.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "prov/domain.h"
#include "prov/nosys.h"
#include "prov/provider.h"

static struct wf_prov_cntr *cntr_of(struct fid_cntr *fid)
{
	return wf_container_of(fid, struct wf_prov_cntr, fid);
}

/* The value that was last read: fi_trywait() returns -FI_EAGAIN once there is
 * more. */
static void look(struct wf_prov_cntr *cntr)
{
	wf_prov_eps_progress(&cntr->eps);
	atomic_store(&cntr->seen, atomic_load(&cntr->count.value) +
					  atomic_load(&cntr->count.errors));
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct wf_prov_cntr *cntr = cntr_of(fid);

	look(cntr);
	return atomic_load(&cntr->count.value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct wf_prov_cntr *cntr = cntr_of(fid);

	look(cntr);
	return atomic_load(&cntr->count.errors);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	wf_op_cntr_add(&cntr_of(fid)->count, value);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	wf_op_cntr_fail(&cntr_of(fid)->count, value);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct wf_prov_cntr *cntr = cntr_of(fid);

	atomic_store(&cntr->count.value, value);
	wf_op_waker_ring(&cntr->count.waker);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct wf_prov_cntr *cntr = cntr_of(fid);

	atomic_store(&cntr->count.errors, value);
	wf_op_waker_ring(&cntr->count.waker);
	return 0;
}

struct threshold {
	struct wf_prov_waiting waiting;
	struct wf_prov_cntr *cntr;
	uint64_t value;
	uint64_t errors; /* that were there before: only a new one ends the
			  * wait, fi_cntr(3) */
};

static bool is_met(const struct wf_prov_waiting *waiting)
{
	const struct threshold *t =
		wf_container_of(waiting, struct threshold, waiting);

	return atomic_load(&t->cntr->count.value) >= t->value ||
	       atomic_load(&t->cntr->count.errors) != t->errors;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t value, int timeout)
{
	struct wf_prov_cntr *cntr = cntr_of(fid);
	struct threshold t = {
		.cntr = cntr,
		.value = value,
		.errors = atomic_load(&cntr->count.errors),
	};

	if (cntr->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	wf_prov_wait_start(&t.waiting, &cntr->wait, timeout);
	t.waiting.ready = is_met;
	do {
		if (cntr_read(fid) >= value)
			return 0;
		if (atomic_load(&cntr->count.errors) != t.errors)
			return -FI_EAVAIL;
	} while (wf_prov_wait_more(&t.waiting));
	return -FI_ETIMEDOUT;
}

/* Sequentially consistent: pairs with wf_op_cntr_add(). */
static bool doze(struct wf_prov_wait *wait)
{
	struct wf_prov_cntr *cntr =
		wf_container_of(wait, struct wf_prov_cntr, wait);

	wf_op_waker_doze(wait->waker);
	if (atomic_load(&cntr->seen) ==
	    atomic_load(&cntr->count.value) + atomic_load(&cntr->count.errors))
		return true;
	wf_op_waker_still(wait->waker);
	return false;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return wf_prov_wait_control(&wf_prov_cntr_of(fid)->wait, command, arg);
}

static int cntr_close(struct fid *fid)
{
	struct wf_prov_cntr *cntr = wf_prov_cntr_of(fid);

	if (atomic_load(&cntr->refs))
		return -FI_EBUSY;
	wf_prov_domain_del_cntr(cntr->domain, cntr);
	wf_base_fork_unwatch(&cntr->fork_watch);
	wf_prov_wait_close(&cntr->wait);
	atomic_fetch_sub(&cntr->domain->refs, 1);
	free(cntr);
	return 0;
}

static void in_child(struct wf_fork_watch *watch)
{
	struct wf_prov_cntr *cntr =
		wf_container_of(watch, struct wf_prov_cntr, fork_watch);

	wf_prov_eps_forked(&cntr->eps);
	wf_op_waker_forked(&cntr->count.waker);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = wf_prov_nosys_bind,
	.control = cntr_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

int wf_prov_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		      struct fid_cntr **cntr_fid, void *context)
{
	static const struct fi_cntr_attr defaults;
	struct wf_prov_domain *dom = wf_prov_domain_of(domain);
	struct wf_prov_cntr *cntr;
	int err;

	if (!attr)
		attr = (struct fi_cntr_attr *)&defaults;
	if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags) {
		WF_FI_WARN(FI_LOG_CNTR, "only completions can be counted\n");
		return -FI_EINVAL;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	wf_prov_eps_init(&cntr->eps, dom->locked);
	wf_base_list_init(&cntr->mr_link);
	cntr->wait = (struct wf_prov_wait){
		.eps = &cntr->eps,
		.waker = &cntr->count.waker,
		.doze = doze,
	};
	err = wf_prov_wait_open(&cntr->wait, attr->wait_obj);
	if (err) {
		free(cntr);
		return err;
	}
	cntr->domain = dom;
	cntr->fork_watch.in_child = in_child;
	wf_base_fork_watch(&cntr->fork_watch);
	cntr->fid = (struct fid_cntr){
		.fid = {
			.fclass = FI_CLASS_CNTR,
			.context = context,
			.ops = &cntr_fid_ops,
		},
		.ops = &cntr_ops,
	};
	atomic_fetch_add(&dom->refs, 1);
	*cntr_fid = &cntr->fid;
	return 0;
}
