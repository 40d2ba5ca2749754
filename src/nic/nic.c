/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file has the part that all NICs have in common: memory keys, address
 * handles, and the calls that go directly to the device.
 */
#include "nic/nic.h"

#include <errno.h>
#include <stdlib.h>

#include "nic/ops.h"

int wf_nic_init(struct wf_nic *nic, const struct wf_nic_ops *ops, bool locked,
		struct wf_nic_counters *counters)
{
	int ret;

	nic->ops = ops;
	wf_base_lock_init(&nic->lock, locked);
	for (unsigned i = 0; i < WF_NIC_AH_BUCKETS; i++)
		wf_base_list_init(&nic->ah_buckets[i]);
	wf_base_list_init(&nic->ah_free);
	nic->counters = counters;
	if (!counters) {
		nic->own_counters = calloc(1, sizeof(*nic->own_counters));
		nic->counters = nic->own_counters;
	}
	nic->qps = calloc(WF_NIC_QP_MAX, sizeof(*nic->qps));
	ret = -ENOMEM;
	if (!nic->counters || !nic->qps)
		goto err_alloc;
	ret = wf_queue_ids_init(&nic->qpns, WF_NIC_QP_MAX, 16);
	if (ret)
		goto err_alloc;
	ret = wf_nic_mr_table_init(&nic->mrs);
	if (ret)
		goto err_ids;
	return 0;

err_ids:
	wf_queue_ids_fini(&nic->qpns);
err_alloc:
	free(nic->qps);
	free(nic->own_counters);
	return ret;
}

void wf_nic_fini(struct wf_nic *nic)
{
	for (uint32_t i = 0; i < nic->ah_count; i++)
		free(nic->ahs[i]);
	free(nic->ahs);
	wf_nic_mr_table_fini(&nic->mrs);
	wf_queue_ids_fini(&nic->qpns);
	free(nic->qps);
	free(nic->own_counters);
}

const struct wf_nic_caps *wf_nic_caps(const struct wf_nic *nic)
{
	return &nic->caps;
}

const struct wf_nic_counters *wf_nic_counters(const struct wf_nic *nic)
{
	return nic->counters;
}

const char *wf_nic_name(const struct wf_nic *nic)
{
	return nic->ops->name;
}

const struct wf_nic_addr *wf_nic_addr(const struct wf_nic *nic)
{
	return &nic->addr;
}

const struct wf_addr *wf_nic_socket(const struct wf_nic *nic)
{
	return nic->socket.sa.sa_family ? &nic->socket : NULL;
}

void wf_nic_set_socket(struct wf_nic *nic, const struct wf_addr *addr)
{
	nic->socket = *addr;
	wf_nic_addr_of_socket(&nic->addr, addr);
}

void wf_nic_close(struct wf_nic *nic)
{
	nic->ops->close(nic);
}

void wf_nic_forked(struct wf_nic *nic)
{
	if (nic->ops->forked)
		nic->ops->forked(nic);
}

int wf_nic_progress(struct wf_nic *nic)
{
	return nic->ops->progress(nic);
}

int wf_nic_wait_fd(struct wf_nic *nic)
{
	return nic->ops->wait_fd(nic);
}

int wf_nic_wait_begin(struct wf_nic *nic, struct wf_nic_cq *cq,
		      uint64_t *deadline_ns)
{
	int ret;

	if (cq && wf_queue_cq_ready(&cq->ring))
		return -EAGAIN;
	ret = nic->ops->wait_begin(nic, cq, deadline_ns);
	/* Another thread may have posted something before it knew that we
	 * sleep. */
	if (!ret && cq && wf_queue_cq_ready(&cq->ring)) {
		nic->ops->wait_end(nic);
		return -EAGAIN;
	}
	return ret;
}

void wf_nic_wait_end(struct wf_nic *nic)
{
	nic->ops->wait_end(nic);
}

/* -- memory ----------------------------------------------------------------- */

int wf_nic_mr_reg(struct wf_nic *nic, void *addr, size_t len, unsigned access,
		  struct wf_nic_mr *mr)
{
	const unsigned known =
		WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ | WF_NIC_REMOTE_WRITE;
	int ret;

	if (access & ~known)
		return -EINVAL;
	wf_base_lock_take(&nic->lock);
	ret = nic->ops->mr_reg(nic, addr, len, access, mr);
	wf_base_lock_drop(&nic->lock);
	mr->lent = false;
	return ret;
}

int wf_nic_mr_use(struct wf_nic *nic, const void *desc, void *addr, size_t len,
		  unsigned access, struct wf_nic_mr *mr)
{
	int ret = -ENOENT;

	if (desc && nic->ops->mr_use) {
		wf_base_lock_take(&nic->lock);
		ret = nic->ops->mr_use(nic, desc, addr, len, access, mr);
		wf_base_lock_drop(&nic->lock);
		mr->lent = !ret;
	}
	return ret == -ENOENT ? wf_nic_mr_reg(nic, addr, len, access, mr) : ret;
}

int wf_nic_mr_dereg(struct wf_nic *nic, uint32_t lkey)
{
	int ret;

	wf_base_lock_take(&nic->lock);
	ret = nic->ops->mr_dereg(nic, lkey);
	wf_base_lock_drop(&nic->lock);
	return ret;
}

void wf_nic_sync(struct wf_nic *nic)
{
	wf_base_lock_take(&nic->lock);
	wf_base_lock_drop(&nic->lock);
}

int wf_nic_mr_soft_reg(struct wf_nic *nic, void *addr, size_t len,
		       unsigned access, struct wf_nic_mr *mr)
{
	return wf_nic_mr_table_add(&nic->mrs, (uintptr_t)addr, len, access,
				   &mr->lkey, &mr->rkey);
}

int wf_nic_mr_soft_dereg(struct wf_nic *nic, uint32_t lkey)
{
	return wf_nic_mr_table_del(&nic->mrs, lkey);
}

/* -- places ----------------------------------------------------------------- */

int wf_nic_place(struct wf_nic *nic, uint32_t number, void *at, void *arg)
{
	int ret;

	wf_base_lock_take(&nic->lock);
	ret = nic->ops->place(nic, number, at, arg);
	wf_base_lock_drop(&nic->lock);
	return ret;
}

void wf_nic_unplace(struct wf_nic *nic, uint32_t number)
{
	wf_base_lock_take(&nic->lock);
	nic->ops->unplace(nic, number);
	wf_base_lock_drop(&nic->lock);
}

bool wf_nic_has_placed(const struct wf_nic *nic)
{
	return atomic_load_explicit(&nic->placed, memory_order_relaxed);
}

int wf_nic_placed(struct wf_nic *nic, struct wf_nic_placed *out, int n)
{
	int count;

	wf_base_lock_take(&nic->lock);
	count = nic->ops->placed(nic, out, n);
	wf_base_lock_drop(&nic->lock);
	return count;
}

/* -- address handles -------------------------------------------------------- */

static struct wf_list *bucket_of(struct wf_nic *nic,
				 const struct wf_nic_addr *addr)
{
	return &nic->ah_buckets[wf_nic_addr_hash(addr) % WF_NIC_AH_BUCKETS];
}

static struct wf_nic_ah *find_addr(struct wf_nic *nic,
				   const struct wf_nic_addr *addr)
{
	struct wf_list *head = bucket_of(nic, addr), *pos, *tmp;

	wf_list_for_each (pos, tmp, head) {
		struct wf_nic_ah *ah =
			wf_container_of(pos, struct wf_nic_ah, link);

		if (wf_nic_addr_equal(&ah->addr, addr))
			return ah;
	}
	return NULL;
}

static void put_place(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	wf_base_list_add_tail(&nic->ah_free, &ah->link);
	nic->ah_frees++;
}

/* A new number, in the list of free ones. */
static int new_place(struct wf_nic *nic)
{
	uint32_t room = nic->ah_room ? nic->ah_room * 2 : 16;
	struct wf_nic_ah *ah, **ahs;

	if (nic->ah_count >= WF_NIC_AH_MAX)
		return -ENOSPC;
	if (nic->ah_count == nic->ah_room) {
		ahs = realloc(nic->ahs, room * sizeof(*ahs));
		if (!ahs)
			return -ENOMEM;
		nic->ahs = ahs;
		nic->ah_room = room;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->num = (uint16_t)nic->ah_count;
	nic->ahs[nic->ah_count++] = ah;
	put_place(nic, ah);
	return 0;
}

/* Uses the number that has been free for longest, and new ones before any
 * number is used again soon: a completion that was not polled yet may still
 * contain the number of a destroyed handle, and must not be taken for another
 * peer's. */
static struct wf_nic_ah *take_place(struct wf_nic *nic)
{
	bool fresh = nic->ah_frees < WF_NIC_AH_REST && !new_place(nic);
	struct wf_nic_ah *ah;

	if (wf_base_list_empty(&nic->ah_free))
		return NULL;
	ah = wf_container_of(fresh ? nic->ah_free.prev : nic->ah_free.next,
			     struct wf_nic_ah, link);
	wf_base_list_unlink(&ah->link);
	nic->ah_frees--;
	return ah;
}

static int create_locked(struct wf_nic *nic, const struct wf_nic_addr *addr,
			 uint16_t *num)
{
	struct wf_nic_ah *ah = find_addr(nic, addr);
	int ret;

	if (ah) {
		ah->refs++;
		*num = ah->num;
		return 0;
	}
	ah = take_place(nic);
	if (!ah)
		return -ENOSPC;
	ah->addr = *addr;
	ret = nic->ops->ah_create(nic, ah);
	if (ret) {
		put_place(nic, ah);
		return ret;
	}
	ah->refs = 1;
	wf_base_list_add_tail(bucket_of(nic, addr), &ah->link);
	*num = ah->num;
	return 0;
}

int wf_nic_ah_socket(const struct wf_nic *nic, const struct wf_nic_ah *ah,
		     struct wf_addr *to)
{
	if (wf_nic_addr_to_socket(&ah->addr, to) ||
	    (to->sa.sa_family != nic->socket.sa.sa_family &&
	     !(nic->dual && to->sa.sa_family == AF_INET)) ||
	    !wf_base_addr_is_whole(to))
		return -EINVAL;
	return 0;
}

int wf_nic_ah_create_socket(struct wf_nic *nic, const struct wf_addr *from,
			    uint16_t *ah)
{
	struct wf_nic_addr addr;

	wf_nic_addr_of_socket(&addr, from);
	return wf_nic_ah_create(nic, &addr, ah);
}

int wf_nic_ah_create(struct wf_nic *nic, const struct wf_nic_addr *addr,
		     uint16_t *ah)
{
	int ret;

	if (!addr->len || addr->len > WF_NIC_ADDR_MAX)
		return -EINVAL;
	wf_base_lock_take(&nic->lock);
	ret = create_locked(nic, addr, ah);
	wf_base_lock_drop(&nic->lock);
	return ret;
}

struct wf_nic_ah *wf_nic_ah_find(struct wf_nic *nic, uint16_t num)
{
	if (num >= nic->ah_count || !nic->ahs[num]->refs)
		return NULL;
	return nic->ahs[num];
}

int wf_nic_ah_destroy(struct wf_nic *nic, uint16_t num)
{
	return wf_nic_ah_leave(nic, num, NULL);
}

int wf_nic_ah_leave(struct wf_nic *nic, uint16_t num,
		    const struct wf_nic_memo *memo)
{
	struct wf_nic_ah *ah;

	wf_base_lock_take(&nic->lock);
	ah = wf_nic_ah_find(nic, num);
	if (ah && !--ah->refs) {
		wf_base_list_unlink(&ah->link);
		nic->ops->ah_destroy(nic, ah, memo);
		put_place(nic, ah);
	}
	wf_base_lock_drop(&nic->lock);
	return ah ? 0 : -EINVAL;
}

bool wf_nic_ah_recall(struct wf_nic *nic, uint16_t num,
		      struct wf_nic_memo *memo)
{
	struct wf_nic_ah *ah;
	bool found;

	wf_base_lock_take(&nic->lock);
	ah = wf_nic_ah_find(nic, num);
	found = ah && nic->ops->ah_recall(nic, ah, memo);
	wf_base_lock_drop(&nic->lock);
	return found;
}

int wf_nic_ah_abandon(struct wf_nic *nic, uint16_t num)
{
	struct wf_nic_ah *ah;

	wf_base_lock_take(&nic->lock);
	ah = wf_nic_ah_find(nic, num);
	if (ah)
		nic->ops->ah_abandon(nic, ah);
	wf_base_lock_drop(&nic->lock);
	return ah ? 0 : -EINVAL;
}

int wf_nic_ah_renew(struct wf_nic *nic, uint16_t num)
{
	struct wf_nic_ah *ah;

	wf_base_lock_take(&nic->lock);
	ah = wf_nic_ah_find(nic, num);
	if (ah)
		nic->ops->ah_renew(nic, ah);
	wf_base_lock_drop(&nic->lock);
	return ah ? 0 : -EINVAL;
}

int wf_nic_ah_query(struct wf_nic *nic, uint16_t num, struct wf_nic_path *path)
{
	struct wf_nic_ah *ah;

	*path = (struct wf_nic_path){ .up = false };
	wf_base_lock_take(&nic->lock);
	ah = wf_nic_ah_find(nic, num);
	if (ah)
		nic->ops->ah_query(nic, ah, path);
	wf_base_lock_drop(&nic->lock);
	return ah ? 0 : -EINVAL;
}
