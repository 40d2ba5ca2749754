/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors. Two locks: `changing` is held during a whole insertion or
 * removal, including the calls to users, so that users learn of changes in the
 * order in which they happened; `lock` is held only while the table is
 * accessed, so that users may look up addresses inside their own lock. Order:
 * changing, the endpoint's lock, lock.
 */
#include "prov/av.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/lock.h"
#include "os/thread.h"
#include "prov/addr_table.h"
#include "prov/av_names.h"
#include "prov/av_shared.h"
#include "prov/domain.h"
#include "prov/eq.h"
#include "prov/format.h"
#include "prov/nosys.h"
#include "prov/provider.h"

struct wf_prov_av {
	struct fid_av fid;
	struct wf_prov_domain *domain;
	bool async; /* opened with FI_EVENT */
	struct wf_prov_eq *eq;
	struct wf_os_mutex
		changing; /* covers users, and one change at a time */
	struct wf_list users;
	struct wf_lock lock; /* covers table */
	struct wf_prov_addr_table table;
	bool read_only;			  /* opened with FI_READ ... */
	struct wf_prov_av_shared *shared; /* ... or made with a name, or NULL */
};

/* One call that inserts. */
struct batch {
	struct wf_prov_av *av;
	fi_addr_t *fi_addr; /* may be NULL */
	int *sync_err;	    /* may be NULL */
	void *context;
	size_t at; /* addresses seen */
	int good;  /* of these, inserted */
};

static struct wf_prov_av *av_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_av, fid.fid);
}

struct wf_prov_av *wf_prov_av_of(struct fid_av *fid)
{
	return av_of(&fid->fid);
}

/* A reader's table follows the creator's. */
static void catch_up_locked(struct wf_prov_av *av)
{
	if (av->read_only)
		wf_prov_av_shared_sync(av->shared, &av->table);
}

const _Atomic uint64_t *wf_prov_av_changes(const struct wf_prov_av *av)
{
	return av->read_only ? wf_prov_av_shared_changes(av->shared) : NULL;
}

int wf_prov_av_get(struct wf_prov_av *av, fi_addr_t fi_addr,
		   struct wf_addr *addr)
{
	const struct wf_addr *found;

	wf_base_lock_take(&av->lock);
	catch_up_locked(av);
	found = wf_prov_addr_table_get(&av->table, fi_addr);
	if (found)
		*addr = *found;
	wf_base_lock_drop(&av->lock);
	return found ? 0 : -FI_EINVAL;
}

fi_addr_t wf_prov_av_find(struct wf_prov_av *av, const struct wf_addr *addr)
{
	uint32_t index;

	wf_base_lock_take(&av->lock);
	catch_up_locked(av);
	index = wf_prov_addr_table_find(&av->table, addr);
	wf_base_lock_drop(&av->lock);
	return index == WF_PROV_ADDR_NONE ? FI_ADDR_NOTAVAIL : index;
}

void wf_prov_av_attach(struct wf_prov_av *av, struct wf_prov_av_user *user)
{
	wf_os_mutex_lock(&av->changing);
	wf_base_list_add_tail(&av->users, &user->link);
	wf_os_mutex_unlock(&av->changing);
}

void wf_prov_av_detach(struct wf_prov_av *av, struct wf_prov_av_user *user)
{
	wf_os_mutex_lock(&av->changing);
	wf_base_list_del(&user->link);
	wf_os_mutex_unlock(&av->changing);
}

static struct wf_prov_av_user *user_of(struct wf_list *link)
{
	return wf_container_of(link, struct wf_prov_av_user, link);
}

/* `changing` is held. */
static int insert_one(struct wf_prov_av *av, const struct wf_addr *addr,
		      fi_addr_t *fi_addr)
{
	struct wf_list *pos, *tmp;
	bool is_new, is_gone;
	uint32_t index;
	int ret;

	/* Names of listeners, but nothing that can be sent to. */
	if (!wf_base_addr_is_whole(addr))
		return -FI_EINVAL;
	wf_base_lock_take(&av->lock);
	ret = wf_prov_addr_table_insert(&av->table, addr, &index, &is_new);
	if (!ret && is_new && av->shared) {
		ret = wf_prov_av_shared_set(av->shared, index, addr);
		if (ret)
			wf_prov_addr_table_remove(&av->table, index, &is_gone);
	}
	wf_base_lock_drop(&av->lock);
	if (ret)
		return ret;
	if (is_new) {
		wf_list_for_each (pos, tmp, &av->users)
			user_of(pos)->inserted(user_of(pos), index, addr);
	}
	*fi_addr = index;
	return 0;
}

static void report_error(struct batch *batch, int err)
{
	struct fi_eq_err_entry entry = {
		.fid = &batch->av->fid.fid,
		.context = batch->context,
		.data = batch->at,
		.err = err,
		.prov_errno = err,
	};

	if (batch->sync_err)
		batch->sync_err[batch->at] = err;
	if (batch->av->eq && wf_prov_eq_post_err(batch->av->eq, &entry))
		WF_FI_WARN(FI_LOG_AV, "no memory for an event\n");
}

/* Adds the next address of the call; @err says why there is none. */
static void batch_add(struct batch *batch, const struct wf_addr *addr, int err)
{
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;

	if (!err)
		err = -insert_one(batch->av, addr, &fi_addr);
	if (batch->fi_addr)
		batch->fi_addr[batch->at] = fi_addr;
	if (err) {
		WF_FI_WARN(FI_LOG_AV, "address %zu not inserted: %s\n",
			   batch->at, fi_strerror(err));
		report_error(batch, err);
	} else {
		if (batch->sync_err)
			batch->sync_err[batch->at] = 0;
		batch->good++;
	}
	batch->at++;
}

static int batch_begin(struct batch *batch, struct fid_av *fid,
		       fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct wf_prov_av *av = wf_prov_av_of(fid);

	if (av->read_only) {
		WF_FI_WARN(FI_LOG_AV, "insert: the AV was opened with FI_READ; "
				      "only its creator inserts\n");
		return -FI_EACCES;
	}
	if (av->async && !av->eq) {
		WF_FI_WARN(FI_LOG_AV, "insert: no event queue is bound\n");
		return -FI_ENOEQ;
	}
	if (flags & ~(FI_MORE | FI_SYNC_ERR) ||
	    (flags & FI_SYNC_ERR && av->async)) {
		WF_FI_WARN(FI_LOG_AV, "insert: flags 0x%llx are not valid\n",
			   (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (flags & FI_SYNC_ERR && !context) {
		WF_FI_WARN(FI_LOG_AV, "insert: FI_SYNC_ERR without context\n");
		return -FI_EINVAL;
	}
	memset(batch, 0, sizeof(*batch));
	batch->av = av;
	batch->fi_addr = fi_addr;
	batch->sync_err = flags & FI_SYNC_ERR ? context : NULL;
	batch->context = context;
	wf_os_mutex_lock(&av->changing);
	return 0;
}

static int batch_end(struct batch *batch)
{
	struct wf_prov_av *av = batch->av;
	struct fi_eq_entry entry = {
		.fid = &av->fid.fid,
		.context = batch->context,
		.data = (uint64_t)batch->good,
	};

	wf_os_mutex_unlock(&av->changing);
	if (!av->async)
		return batch->good;
	return wf_prov_eq_post(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry),
			       0);
}

/* The distance between the elements of a user's array: determined by its first
 * element, or by the domain's format if that is no address. */
static size_t stride_of(const struct wf_prov_av *av, const void *addr)
{
	bool in6 = av->domain->addr_format == FI_SOCKADDR_IN6;
	sa_family_t family;

	if (av->domain->addr_format == FI_ADDR_EFA)
		return WF_ADDR_EFA_RAW;
	memcpy(&family, addr, sizeof(family)); /* may not be aligned */
	if (family == AF_INET || family == AF_INET6)
		in6 = family == AF_INET6;
	return in6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct batch batch;
	size_t stride;
	int ret;

	if (count && !addr) {
		WF_FI_WARN(FI_LOG_AV, "insert: no addresses\n");
		return -FI_EINVAL;
	}
	ret = batch_begin(&batch, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	stride = count ? stride_of(batch.av, addr) : 0;
	for (size_t i = 0; i < count; i++) {
		struct wf_addr one;

		ret = wf_prov_format_get(batch.av->domain->addr_format,
					 (const char *)addr + i * stride,
					 stride, &one);
		batch_add(&batch, &one, -ret);
	}
	return batch_end(&batch);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
			const char *service, size_t svccnt, fi_addr_t *fi_addr,
			uint64_t flags, void *context)
{
	struct wf_prov_av_names names;
	struct batch batch;
	int ret;

	/* Asking the network may take long: not under the lock. */
	ret = wf_prov_av_names_init(&names, node, nodecnt, service, svccnt,
				    wf_prov_av_of(fid)->domain->addr_format);
	if (ret)
		return ret;
	ret = batch_begin(&batch, fid, fi_addr, flags, context);
	if (ret)
		goto out;
	for (size_t i = 0; i < nodecnt; i++) {
		for (size_t j = 0; j < svccnt; j++) {
			struct wf_addr one;

			ret = wf_prov_av_names_get(&names, i, j, &one);
			batch_add(&batch, &one, -ret);
		}
	}
	ret = batch_end(&batch);
out:
	wf_prov_av_names_fini(&names);
	return ret;
}

static int av_insertsvc(struct fid_av *fid, const char *node,
			const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	return av_insertsym(fid, node, 1, service, 1, fi_addr, flags, context);
}

static int remove_one(struct wf_prov_av *av, fi_addr_t fi_addr)
{
	struct wf_list *pos, *tmp;
	bool is_gone;
	int ret;

	wf_base_lock_take(&av->lock);
	ret = wf_prov_addr_table_remove(&av->table, fi_addr, &is_gone);
	if (!ret && is_gone && av->shared)
		wf_prov_av_shared_clear(av->shared, (uint32_t)fi_addr);
	wf_base_lock_drop(&av->lock);
	if (ret)
		return ret;
	if (is_gone) {
		wf_list_for_each (pos, tmp, &av->users)
			user_of(pos)->removed(user_of(pos), fi_addr);
	}
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct wf_prov_av *av = wf_prov_av_of(fid);
	int ret = 0;

	if (av->read_only) {
		WF_FI_WARN(FI_LOG_AV, "remove: the AV was opened with FI_READ; "
				      "only its creator removes\n");
		return -FI_EACCES;
	}
	if (flags) {
		WF_FI_WARN(FI_LOG_AV, "remove: flags must be 0\n");
		return -FI_EINVAL;
	}
	wf_os_mutex_lock(&av->changing);
	for (size_t i = 0; i < count; i++) {
		if (!remove_one(av, fi_addr[i]))
			continue;
		WF_FI_WARN(FI_LOG_AV, "remove: %llu is not in the AV\n",
			   (unsigned long long)fi_addr[i]);
		ret = -FI_EINVAL;
	}
	wf_os_mutex_unlock(&av->changing);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct wf_addr found;
	int ret;

	ret = wf_prov_av_get(wf_prov_av_of(fid), fi_addr, &found);
	if (ret)
		return ret;
	*addrlen = wf_prov_format_put(&found, addr, *addrlen);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	return wf_prov_format_str(wf_prov_av_of(fid)->domain->addr_format, addr,
				  buf, len);
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wf_prov_av *av = av_of(fid);
	const char *why = NULL;

	if (flags)
		why = "flags must be 0";
	else if (bfid->fclass != FI_CLASS_EQ)
		why = "only an event queue can be bound";
	else if (!av->async)
		why = "the AV was opened without FI_EVENT";
	else if (av->eq)
		why = "an event queue is bound already";
	if (why) {
		WF_FI_WARN(FI_LOG_AV, "bind: %s\n", why);
		return -FI_EINVAL;
	}
	av->eq = wf_prov_eq_of(wf_container_of(bfid, struct fid_eq, fid));
	wf_prov_eq_ref(av->eq);
	return 0;
}

static int av_close(struct fid *fid)
{
	struct wf_prov_av *av = av_of(fid);
	bool used;

	wf_os_mutex_lock(&av->changing);
	used = !wf_base_list_empty(&av->users);
	wf_os_mutex_unlock(&av->changing);
	if (used) {
		WF_FI_WARN(FI_LOG_AV, "AV is in use\n");
		return -FI_EBUSY;
	}
	if (av->eq)
		wf_prov_eq_unref(av->eq);
	if (av->shared)
		wf_prov_av_shared_close(av->shared);
	free(av->shared);
	wf_prov_addr_table_fini(&av->table);
	wf_os_mutex_destroy(&av->changing);
	atomic_fetch_sub(&av->domain->refs, 1);
	free(av);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = wf_prov_nosys_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

/* libfabric 2.x has more members and sees by .size that these end here. */
static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = wf_prov_nosys_av_set,
};

static int check_attr(const struct fi_av_attr *attr)
{
	if (attr->flags & FI_READ && !attr->name) {
		WF_FI_WARN(FI_LOG_AV, "FI_READ needs the name of an AV\n");
		return -FI_EINVAL;
	}
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
	    attr->type != FI_AV_TABLE) {
		WF_FI_WARN(FI_LOG_AV, "AV type %d is unknown\n",
			   (int)attr->type);
		return -FI_EINVAL;
	}
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_READ)) {
		WF_FI_WARN(FI_LOG_AV, "flags 0x%llx are not valid\n",
			   (unsigned long long)attr->flags);
		return -FI_EINVAL;
	}
	return 0;
}

/* Makes or finds the AV that other processes know by @attr's name. */
static int share(struct wf_prov_av *av, const struct fi_av_attr *attr)
{
	int ret;

	av->shared = calloc(1, sizeof(*av->shared));
	if (!av->shared)
		return -FI_ENOMEM;
	av->read_only = attr->flags & FI_READ;
	if (av->read_only)
		ret = wf_prov_av_shared_open(av->shared, attr->name);
	else
		ret = wf_prov_av_shared_create(av->shared, attr->name,
					       attr->count);
	if (!ret)
		return 0;
	if (ret == -FI_ENOENT) /* some applications just try */
		WF_FI_INFO(FI_LOG_AV,
			   "no process of this user has an AV "
			   "named %s\n",
			   attr->name);
	else if (ret == -FI_EADDRINUSE)
		WF_FI_WARN(FI_LOG_AV,
			   "the AV %s is there already: open it with FI_READ\n",
			   attr->name);
	else
		WF_FI_WARN(FI_LOG_AV, "AV named %s: %s\n", attr->name,
			   fi_strerror(-ret));
	free(av->shared);
	return ret;
}

int wf_prov_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		    struct fid_av **av, void *context)
{
	struct wf_prov_domain *dom = wf_prov_domain_of(domain);
	struct wf_prov_av *vec;
	int ret;

	if (!attr)
		return -FI_EINVAL;
	ret = check_attr(attr);
	if (ret)
		return ret;
	vec = calloc(1, sizeof(*vec));
	if (!vec)
		return -FI_ENOMEM;
	ret = wf_prov_addr_table_init(&vec->table, attr->count);
	if (ret)
		goto err_free;
	if (attr->name) {
		ret = share(vec, attr);
		if (ret)
			goto err_table;
		attr->map_addr = wf_prov_av_shared_map(vec->shared);
	}
	vec->fid.fid.fclass = FI_CLASS_AV;
	vec->fid.fid.context = context;
	vec->fid.fid.ops = &fid_ops;
	vec->fid.ops = &av_ops;
	vec->domain = dom;
	vec->async = attr->flags & FI_EVENT;
	wf_os_mutex_init(&vec->changing);
	wf_base_list_init(&vec->users);
	/* Under FI_THREAD_COMPLETION endpoints of two threads may share it. */
	wf_base_lock_init(&vec->lock, dom->locked);
	atomic_fetch_add(&dom->refs, 1);
	/* The two types differ only in what is promised. */
	if (attr->type == FI_AV_UNSPEC)
		attr->type = dom->av_type;
	*av = &vec->fid;
	return 0;

err_table:
	wf_prov_addr_table_fini(&vec->table);
err_free:
	free(vec);
	return ret;
}
