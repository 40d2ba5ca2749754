/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll sets.
 */
#include "prov/poll.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "os/thread.h"
#include "prov/cntr.h"
#include "prov/cq.h"
#include "prov/domain.h"
#include "prov/nosys.h"

struct poll {
	struct fid_poll fid;
	struct wf_prov_domain *domain;
	struct wf_os_mutex lock;
	struct wf_list members;
};

struct member {
	struct wf_list link;
	struct fid *fid;
	atomic_int *refs;
	uint64_t seen; /* a counter's value when it was last reported */
};

static struct poll *poll_of(struct fid *fid)
{
	return wf_container_of(fid, struct poll, fid.fid);
}

static struct member *member_of(struct wf_list *link)
{
	return wf_container_of(link, struct member, link);
}

static uint64_t cntr_sum(const struct wf_prov_cntr *cntr)
{
	return atomic_load(&cntr->count.value) +
	       atomic_load(&cntr->count.errors);
}

/* Makes progress, and says whether there is something to read: entries of a
 * queue, a counter that has changed since it was reported. */
static bool is_ready(struct member *member)
{
	struct wf_prov_cntr *cntr;
	struct wf_prov_cq *cq;
	uint64_t sum;

	if (member->fid->fclass == FI_CLASS_CQ) {
		cq = wf_container_of(member->fid, struct wf_prov_cq, fid.fid);
		wf_prov_eps_progress(&cq->eps);
		return wf_op_compq_count(&cq->q);
	}
	cntr = wf_prov_cntr_of(member->fid);
	wf_prov_eps_progress(&cntr->eps);
	sum = cntr_sum(cntr);
	if (sum == member->seen)
		return false;
	member->seen = sum;
	return true;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct poll *poll = poll_of(&fid->fid);
	struct wf_list *pos, *tmp;
	int found = 0;

	wf_os_mutex_lock(&poll->lock);
	wf_list_for_each (pos, tmp, &poll->members) {
		struct member *member = member_of(pos);

		if (found == count)
			break;
		if (is_ready(member))
			context[found++] = member->fid->context;
	}
	wf_os_mutex_unlock(&poll->lock);
	return found;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll *poll = poll_of(&fid->fid);
	struct member *member;

	if (flags || (event_fid->fclass != FI_CLASS_CQ &&
		      event_fid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = event_fid;
	member->refs =
		event_fid->fclass == FI_CLASS_CQ ?
			&wf_container_of(event_fid, struct wf_prov_cq, fid.fid)
				 ->refs :
			&wf_prov_cntr_of(event_fid)->refs;
	atomic_fetch_add(member->refs, 1);
	wf_os_mutex_lock(&poll->lock);
	wf_base_list_add_tail(&poll->members, &member->link);
	wf_os_mutex_unlock(&poll->lock);
	return 0;
}

static void drop(struct member *member)
{
	wf_base_list_del(&member->link);
	atomic_fetch_sub(member->refs, 1);
	free(member);
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll *poll = poll_of(&fid->fid);
	struct wf_list *pos, *tmp;
	int ret = -FI_EINVAL;

	(void)flags;
	wf_os_mutex_lock(&poll->lock);
	wf_list_for_each (pos, tmp, &poll->members) {
		if (member_of(pos)->fid != event_fid)
			continue;
		drop(member_of(pos));
		ret = 0;
		break;
	}
	wf_os_mutex_unlock(&poll->lock);
	return ret;
}

static int poll_close(struct fid *fid)
{
	struct poll *poll = poll_of(fid);
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &poll->members)
		drop(member_of(pos));
	wf_os_mutex_destroy(&poll->lock);
	atomic_fetch_sub(&poll->domain->refs, 1);
	free(poll);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = wf_prov_nosys_bind,
	.control = wf_prov_nosys_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int wf_prov_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		      struct fid_poll **poll_fid)
{
	struct poll *poll;

	if (attr && attr->flags)
		return -FI_EINVAL;
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	wf_os_mutex_init(&poll->lock);
	wf_base_list_init(&poll->members);
	poll->domain = wf_prov_domain_of(domain);
	poll->fid.fid.fclass = FI_CLASS_POLL;
	poll->fid.fid.ops = &poll_fid_ops;
	poll->fid.ops = &poll_ops;
	atomic_fetch_add(&poll->domain->refs, 1);
	*poll_fid = &poll->fid;
	return 0;
}
