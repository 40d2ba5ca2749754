/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The EFA device of the process: found, opened once for all endpoints, and the
 * memory that applications register with it. One lock covers what is static;
 * libibverbs has its own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/hash.h"
#include "base/log.h"
#include "nic/efa/dev.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/thread.h"

struct key {
	struct wf_nic_key base; /* first */
	struct wf_srd_hard *hard;
	struct ibv_mr *mr;
};

WF_PER_PROCESS static struct wf_os_mutex lock = WF_OS_MUTEX_INIT;
WF_PER_PROCESS static struct wf_srd_hard *shared; /* NULL: not open */
WF_PER_PROCESS static atomic_bool watched;

int wf_srd_hard_failed(void)
{
	return errno ? -errno : -EIO;
}

/* The kernel keeps queue pairs for as long as anybody has a descriptor of the
 * device. A child opens it anew; objects of the parent stay where they are. */
static void in_child(struct wf_fork_watch *this)
{
	(void)this;
	atomic_store(&watched, false);
	wf_os_mutex_init(&lock);
	if (!shared)
		return;
	if (shared->context->cmd_fd >= 0)
		wf_os_close(shared->context->cmd_fd);
	if (shared->context->async_fd >= 0)
		wf_os_close(shared->context->async_fd);
	shared = NULL;
}

WF_PER_PROCESS static struct wf_fork_watch watch = { .in_child = in_child };

/* Whether it is an EFA device, and one whose completions name the sender. */
static bool is_usable(struct wf_srd_hard *hard)
{
	struct efadv_device_attr *attr = &hard->attr;

	memset(attr, 0, sizeof(*attr));
	return !hard->verbs->efadv_query_device(hard->context, attr,
						sizeof(*attr)) &&
	       (attr->device_caps & EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID) &&
	       attr->max_sq_wr >= WF_SRD_SENDS &&
	       attr->max_rq_wr >= WF_SRD_RECVS &&
	       attr->max_sq_sge >= WF_NIC_SGE_MAX;
}

/* The first device that is one. */
static int open_first(struct wf_srd_hard *hard)
{
	const struct wf_srd_verbs *verbs = hard->verbs;
	struct ibv_device **list = verbs->ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !hard->context; i++) {
		hard->context = verbs->ibv_open_device(list[i]);
		if (hard->context && !is_usable(hard)) {
			verbs->ibv_close_device(hard->context);
			hard->context = NULL;
		}
	}
	if (list)
		verbs->ibv_free_device_list(list);
	return hard->context ? 0 : -ENODEV;
}

/* The largest message is a property of the port; its query needs the size of
 * the structure. */
static int get_limits(struct wf_srd_hard *hard)
{
	struct verbs_context *context =
		verbs_get_ctx_op(hard->context, query_port);
	struct ibv_port_attr attr = { .state = IBV_PORT_NOP };

	if (!context || context->query_port(hard->context, WF_SRD_PORT, &attr,
					    sizeof(attr)))
		return -ENODEV;
	if (attr.max_msg_sz > UINT16_MAX)
		attr.max_msg_sz = UINT16_MAX; /* of a receive descriptor */
	hard->max_msg = attr.max_msg_sz;
	return 0;
}

static void close_hard(struct wf_srd_hard *hard)
{
	for (uint32_t i = 0; i < WF_SRD_BUCKETS; i++) {
		while (!wf_base_list_empty(&hard->by_ahn[i])) {
			struct wf_srd_host *host =
				wf_container_of(hard->by_ahn[i].next,
						struct wf_srd_host, by_ahn);

			wf_base_list_unlink(&host->by_ahn);
			hard->verbs->ibv_destroy_ah(host->ah);
			free(host);
		}
	}
	wf_nic_mr_table_fini(&hard->lent);
	free(hard->lent_keys);
	if (hard->pd)
		hard->verbs->ibv_dealloc_pd(hard->pd);
	if (hard->context)
		hard->verbs->ibv_close_device(hard->context);
	free(hard);
}

static int open_hard(struct wf_srd_hard **out)
{
	const struct wf_srd_verbs *verbs = wf_srd_verbs_get();
	struct wf_srd_hard *hard;
	int err;

	if (!verbs)
		return -ENODEV;
	hard = calloc(1, sizeof(*hard));
	if (!hard)
		return -ENOMEM;
	hard->verbs = verbs;
	for (uint32_t i = 0; i < WF_SRD_BUCKETS; i++) {
		wf_base_list_init(&hard->by_ahn[i]);
		wf_base_list_init(&hard->by_gid[i]);
	}
	err = wf_nic_mr_table_init(&hard->lent);
	if (!err)
		err = open_first(hard);
	/* Kernels before 5.12 do not copy memory that the device uses for a
	 * child: libibverbs keeps it from the child then. On others this does
	 * nothing. It fails if somebody has registered memory before us. */
	if (!err && verbs->ibv_fork_init())
		wf_info("efa: libibverbs cannot prepare for fork()");
	if (!err)
		err = get_limits(hard);
	if (!err) {
		hard->pd = verbs->ibv_alloc_pd(hard->context);
		err = hard->pd ? 0 : wf_srd_hard_failed();
	}
	if (err)
		close_hard(hard);
	else
		*out = hard;
	return err;
}

struct wf_srd_hard *wf_srd_hard_get(int *err)
{
	struct wf_srd_hard *hard;

	*err = 0;
	/* Before the lock is first taken: a child of another thread must not
	 * find it taken. */
	if (!atomic_load(&watched))
		wf_base_fork_watch_once(&watch, &watched);
	wf_os_mutex_lock(&lock);
	if (!shared)
		*err = open_hard(&shared);
	if (!*err)
		shared->refs++;
	hard = *err ? NULL : shared;
	wf_os_mutex_unlock(&lock);
	return hard;
}

void wf_srd_hard_put(struct wf_srd_hard *hard)
{
	wf_os_mutex_lock(&lock);
	/* Of a parent: it stays. */
	if (hard == shared && !--hard->refs) {
		close_hard(hard);
		shared = NULL;
	}
	wf_os_mutex_unlock(&lock);
}

int wf_srd_hard_gid(const struct wf_srd_hard *hard, struct wf_addr *addr)
{
	uint8_t raw[WF_ADDR_EFA_RAW] = { 0 };
	union ibv_gid gid;

	if (hard->verbs->ibv_query_gid(hard->context, WF_SRD_PORT, 0, &gid))
		return wf_srd_hard_failed();
	memcpy(raw, gid.raw, sizeof(gid.raw));
	return wf_base_addr_set_raw(addr, raw, sizeof(raw));
}

int wf_srd_hard_find(char *name, size_t room, struct wf_addr *addr)
{
	struct wf_srd_hard *hard;
	int err;

	hard = wf_srd_hard_get(&err);
	if (!hard)
		return err;
	snprintf(name, room, "%s",
		 hard->verbs->ibv_get_device_name(hard->context->device));
	err = wf_srd_hard_gid(hard, addr);
	wf_srd_hard_put(hard);
	return err;
}

/* -- hosts ------------------------------------------------------------------ */

static struct wf_list *gids_of(struct wf_srd_hard *hard, const uint8_t gid[16])
{
	return &hard->by_gid[wf_base_hash(gid, 16) % WF_SRD_BUCKETS];
}

static const struct wf_srd_host *find_gid(struct wf_srd_hard *hard,
					  const uint8_t gid[16])
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, gids_of(hard, gid)) {
		struct wf_srd_host *host =
			wf_container_of(pos, struct wf_srd_host, by_gid);

		if (!memcmp(host->gid, gid, sizeof(host->gid)))
			return host;
	}
	return NULL;
}

static int add_host(struct wf_srd_hard *hard, const uint8_t gid[16],
		    const struct wf_srd_host **out)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = WF_SRD_PORT };
	struct efadv_ah_attr efa = { .comp_mask = 0 };
	struct wf_srd_host *host = calloc(1, sizeof(*host));
	int err;

	if (!host)
		return -ENOMEM;
	memcpy(attr.grh.dgid.raw, gid, sizeof(attr.grh.dgid.raw));
	memcpy(host->gid, gid, sizeof(host->gid));
	host->ah = hard->verbs->ibv_create_ah(hard->pd, &attr);
	if (!host->ah) {
		err = wf_srd_hard_failed();
		free(host);
		return err;
	}
	if (hard->verbs->efadv_query_ah(host->ah, &efa, sizeof(efa))) {
		hard->verbs->ibv_destroy_ah(host->ah);
		free(host);
		return -EINVAL;
	}
	host->ahn = efa.ahn;
	wf_base_list_add_tail(&hard->by_ahn[host->ahn % WF_SRD_BUCKETS],
			      &host->by_ahn);
	wf_base_list_add_tail(gids_of(hard, gid), &host->by_gid);
	*out = host;
	return 0;
}

int wf_srd_hard_host(struct wf_srd_hard *hard, const uint8_t gid[16],
		     const struct wf_srd_host **host)
{
	int err = 0;

	wf_os_mutex_lock(&lock);
	*host = find_gid(hard, gid);
	if (!*host)
		err = add_host(hard, gid, host);
	wf_os_mutex_unlock(&lock);
	return err;
}

const struct wf_srd_host *wf_srd_hard_ahn(struct wf_srd_hard *hard,
					  uint16_t ahn)
{
	const struct wf_srd_host *found = NULL;
	struct wf_list *pos, *tmp;

	wf_os_mutex_lock(&lock);
	wf_list_for_each (pos, tmp, &hard->by_ahn[ahn % WF_SRD_BUCKETS]) {
		struct wf_srd_host *host =
			wf_container_of(pos, struct wf_srd_host, by_ahn);

		if (host->ahn == ahn)
			found = host;
	}
	wf_os_mutex_unlock(&lock);
	return found;
}

/* -- memory of no NIC ------------------------------------------------------- */

/* Gives it a descriptor, if there is one left. */
static void lend_locked(struct key *key, unsigned access)
{
	struct wf_srd_hard *hard = key->hard;
	struct wf_nic_mr *keys;
	uint32_t desc, unused;

	if (wf_nic_mr_table_add(&hard->lent, (uintptr_t)key->mr->addr,
				key->mr->length, access, &desc, &unused))
		return;
	if (hard->lent_count < hard->lent.count) {
		keys = realloc(hard->lent_keys,
			       hard->lent.count * sizeof(*keys));
		if (!keys) {
			wf_nic_mr_table_del(&hard->lent, desc);
			return;
		}
		hard->lent_keys = keys;
		hard->lent_count = hard->lent.count;
	}
	hard->lent_keys[desc & WF_NIC_MR_MAX] = (struct wf_nic_mr){
		.lkey = key->mr->lkey,
		.rkey = key->mr->rkey,
	};
	key->base.desc = (void *)(uintptr_t)desc;
}

int wf_srd_hard_use(struct wf_srd_hard *hard, const void *desc, void *addr,
		    size_t len, unsigned access, struct wf_nic_mr *mr)
{
	uintptr_t number = (uintptr_t)desc;
	bool is_inside;

	wf_os_mutex_lock(&lock);
	is_inside = number <= UINT32_MAX &&
		    wf_nic_mr_local(&hard->lent, (uint32_t)number,
				    (uintptr_t)addr, len, access);
	if (is_inside)
		*mr = hard->lent_keys[number & WF_NIC_MR_MAX];
	wf_os_mutex_unlock(&lock);
	return is_inside ? 0 : -ENOENT;
}

int wf_srd_hard_key_open(void *addr, size_t len, unsigned access,
			 struct wf_nic_key **out, uint32_t *rkey)
{
	struct key *key;
	int flags, err;

	key = calloc(1, sizeof(*key));
	if (!key)
		return -ENOMEM;
	key->hard = wf_srd_hard_get(&err);
	if (!key->hard) {
		free(key);
		return err;
	}
	flags = wf_srd_hard_flags(key->hard, access);
	if (access & WF_NIC_REMOTE_WRITE && wf_srd_hard_writes(key->hard))
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	err = flags ? 0 : -EOPNOTSUPP;
	if (!err) {
		key->mr = (key->hard->verbs->ibv_reg_mr)(key->hard->pd, addr,
							 len, flags);
		err = key->mr ? 0 : wf_srd_hard_failed();
	}
	if (err) {
		wf_srd_hard_put(key->hard);
		free(key);
		return err;
	}
	wf_os_mutex_lock(&lock);
	lend_locked(key, access);
	wf_os_mutex_unlock(&lock);
	*rkey = key->mr->rkey;
	*out = &key->base;
	return 0;
}

void wf_srd_hard_key_close(struct wf_nic_key *base)
{
	struct key *key = (struct key *)base;

	/* Of a parent: it stays registered. */
	if (key->hard == shared) {
		wf_os_mutex_lock(&lock);
		wf_nic_mr_table_del(&key->hard->lent,
				    (uint32_t)(uintptr_t)key->base.desc);
		wf_os_mutex_unlock(&lock);
		key->hard->verbs->ibv_dereg_mr(key->mr);
	}
	wf_srd_hard_put(key->hard);
	free(key);
}
