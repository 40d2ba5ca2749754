/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, memory regions and address handles. A memory region is
 * one of the NIC's, with its keys; an address handle is one of the NIC's, with
 * its number. The NIC has one table of each: it does not separate keys by
 * protection domain.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "efa/efa.h"

/* Not in the headers of older C libraries. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Flags that libibverbs allows every device to ignore. */
#define OPTIONAL_ACCESS 0x3ff00000

struct mr {
	struct ibv_mr mr; /* first */
	struct wf_nic *nic;
};

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, void *attr);

static pthread_mutex_t ah_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wf_efa_ah *ahs;
static struct wf_addr addrs[WF_EFA_AH_MAX]; /* by number; stay behind */

/* -- protection domains ----------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct wf_efa_pd *pd = calloc(1, sizeof(*pd));

	if (!pd) {
		errno = ENOMEM;
		return NULL;
	}
	pd->pd.context = context;
	return &pd->pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (wf_efa_pd_of(pd)->users)
		return EBUSY;
	free(pd);
	return 0;
}

/* -- memory ----------------------------------------------------------------- */

static bool populate(uintptr_t at, int advice)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	return !madvise((void *)(at & ~(page - 1)), 1, advice);
}

/* A kernel that pins the pages for a device finds out whether they are there
 * and whether they may be written; we would find out by a signal. The first and
 * the last page speak for all. Kernels before 5.14 cannot be asked. */
static bool is_usable(const void *addr, size_t len, bool write)
{
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	uintptr_t first = (uintptr_t)addr, last = first + len - 1;
	uint8_t ours = 0;

	if (!len || last < first)
		return true; /* the NIC says what is wrong with it */
	return (populate(first, advice) && populate(last, advice)) ||
	       !populate((uintptr_t)&ours, advice);
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t len,
			  uint64_t iova, int access)
{
	static const int known = IBV_ACCESS_LOCAL_WRITE |
				 IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_WRITE;
	static bool once;
	struct wf_nic *nic = wf_efa_device_nic();
	struct wf_nic_mr keys;
	struct mr *mr;
	int ret;

	if (!nic)
		return NULL;
	if (iova != (uintptr_t)addr || access & ~(known | OPTIONAL_ACCESS)) {
		wf_efa_refuse(&once,
			      "memory with an iova of its own, or access "
			      "other than local write, remote read and "
			      "remote write");
		return NULL;
	}
	if (!is_usable(addr, len,
		       access & (IBV_ACCESS_LOCAL_WRITE |
				 IBV_ACCESS_REMOTE_WRITE))) {
		errno = EFAULT;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		errno = ENOMEM;
		return NULL;
	}
	ret = wf_nic_mr_reg(
		nic, addr, len,
		(access & IBV_ACCESS_LOCAL_WRITE ? WF_NIC_LOCAL_WRITE : 0) |
			(access & IBV_ACCESS_REMOTE_READ ? WF_NIC_REMOTE_READ :
							   0) |
			(access & IBV_ACCESS_REMOTE_WRITE ?
				 WF_NIC_REMOTE_WRITE :
				 0),
		&keys);
	if (ret) {
		free(mr);
		errno = ret == -ENOSPC ? ENOMEM : -ret;
		return NULL;
	}
	mr->nic = nic;
	mr->mr = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = len,
		.handle = keys.lkey,
		.lkey = keys.lkey,
		.rkey = keys.rkey,
	};
	wf_efa_pd_of(pd)->users++;
	return &mr->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return reg(pd, addr, len, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len,
			       uint64_t iova, int access)
{
	return reg(pd, addr, len, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
				uint64_t iova, unsigned int access)
{
	return reg(pd, addr, len, iova, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
	struct mr *mr = (struct mr *)base;

	if (wf_efa_device_has(mr->nic))
		wf_nic_mr_dereg(mr->nic, base->lkey);
	wf_efa_pd_of(base->pd)->users--;
	free(mr);
	return 0;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
				 uint64_t iova, int fd, int access)
{
	static bool once;

	(void)pd;
	(void)offset;
	(void)len;
	(void)iova;
	(void)fd;
	(void)access;
	wf_efa_refuse(&once, "dma-buf memory");
	return NULL;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, void *attr)
{
	static bool once;

	(void)pd;
	(void)attr;
	wf_efa_refuse(&once, "ibv_reg_mr_ex()");
	return NULL;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t len, int access)
{
	static bool once;

	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)len;
	(void)access;
	wf_efa_refuse(&once, "ibv_rereg_mr()");
	return IBV_REREG_MR_ERR_INPUT;
}

int efadv_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen)
{
	(void)mr;
	if (inlen < sizeof(uint64_t))
		return EINVAL;
	/* No interconnect has a number here. */
	memset(attr, 0, inlen);
	return 0;
}

/* -- address handles -------------------------------------------------------- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct wf_nic *nic = wf_efa_device_nic();
	struct wf_efa_ah *ah;
	struct wf_addr addr;
	int ret;

	if (!nic)
		return NULL;
	ret = -EINVAL;
	if (!attr->is_global || attr->port_num != WF_EFA_PORT ||
	    wf_efa_gid_addr(&attr->grh.dgid, &addr))
		goto err;
	ret = -ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		goto err;
	ret = wf_nic_ah_create_socket(nic, &addr, &ah->num);
	if (!ret && ah->num >= WF_EFA_AH_MAX) {
		wf_nic_ah_destroy(nic, ah->num);
		ret = -ENOSPC;
	}
	if (ret) {
		free(ah);
		goto err;
	}
	wf_nic_ah_renew(nic, ah->num);
	ah->nic = nic;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->ah.handle = ah->num;
	wf_efa_pd_of(pd)->users++;
	wf_efa_pd_of(pd)->ahs[ah->num]++;
	pthread_mutex_lock(&ah_lock);
	addrs[ah->num] = addr;
	ah->next = ahs;
	ah->prev = &ahs;
	if (ahs)
		ahs->prev = &ah->next;
	ahs = ah;
	pthread_mutex_unlock(&ah_lock);
	return &ah->ah;

err:
	errno = ret == -ENOSPC ? ENOMEM : -ret;
	return NULL;
}

int ibv_destroy_ah(struct ibv_ah *base)
{
	struct wf_efa_ah *ah = wf_efa_ah_of(base);

	/* A parent's is in no list of its child. */
	if (wf_efa_device_has(ah->nic)) {
		pthread_mutex_lock(&ah_lock);
		*ah->prev = ah->next;
		if (ah->next)
			ah->next->prev = ah->prev;
		pthread_mutex_unlock(&ah_lock);
		wf_nic_ah_destroy(ah->nic, ah->num);
	}
	wf_efa_pd_of(base->pd)->ahs[ah->num]--;
	wf_efa_pd_of(base->pd)->users--;
	free(ah);
	return 0;
}

void wf_efa_ah_name(struct ibv_pd *pd, struct wf_nic_wc *wc)
{
	if (wc->ah >= WF_EFA_AH_MAX || wf_efa_pd_of(pd)->ahs[wc->ah])
		return;
	pthread_mutex_lock(&ah_lock);
	wf_nic_addr_of_socket(&wc->from, &addrs[wc->ah]);
	pthread_mutex_unlock(&ah_lock);
	wc->ah = WF_NIC_AH_UNKNOWN;
}

bool wf_efa_ah_gid(const struct wf_nic_wc *wc, union ibv_gid *gid)
{
	struct wf_addr from;

	if (wc->ah < WF_EFA_AH_MAX) {
		pthread_mutex_lock(&ah_lock);
		from = addrs[wc->ah];
		pthread_mutex_unlock(&ah_lock);
	} else if (wf_nic_addr_to_socket(&wc->from, &from)) {
		return false;
	}
	if (from.sa.sa_family != AF_INET)
		return false;
	wf_efa_gid_of(&from, gid);
	return true;
}

void wf_efa_ah_renew_all(void)
{
	pthread_mutex_lock(&ah_lock);
	for (struct wf_efa_ah *ah = ahs; ah; ah = ah->next) {
		if (wf_efa_device_has(ah->nic))
			wf_nic_ah_renew(ah->nic, ah->num);
	}
	pthread_mutex_unlock(&ah_lock);
}

void wf_efa_ah_forked(void)
{
	pthread_mutex_init(&ah_lock, NULL);
	ahs = NULL;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	(void)context;
	if (!(wc->wc_flags & IBV_WC_GRH)) {
		errno = EINVAL;
		return -1;
	}
	*attr = (struct ibv_ah_attr){
		.grh = { .dgid = grh->sgid },
		.is_global = 1,
		.port_num = port,
	};
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

int efadv_query_ah(struct ibv_ah *ah, struct wf_efadv_ah_attr *attr,
		   uint32_t inlen)
{
	const struct wf_efadv_ah_attr all = { .ahn = wf_efa_ah_of(ah)->num };

	if (inlen < offsetof(struct wf_efadv_ah_attr, reserved))
		return EINVAL;
	memset(attr, 0, inlen);
	memcpy(attr, &all, inlen < sizeof(all) ? inlen : sizeof(all));
	return 0;
}
