/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: SRD as the NIC has them, and UD, which is the same without the
 * failures that a datagram does not report, and with a header in front of
 * received data.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "efa/efa.h"

#define SEND_OPS                                                               \
	((uint64_t)(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM))
#define RDMA_OPS                                                               \
	((uint64_t)(IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |     \
		    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM))
#define GRH_UDP 17

/* By the low bits of the number; written under the ring_locks of its CQs. */
static struct wf_efa_qp *qps[WF_EFA_QUEUE_MAX];

static struct wf_efa_qp **place_of(uint16_t num)
{
	return &qps[num % WF_EFA_QUEUE_MAX];
}

struct wf_efa_qp *wf_efa_qp_find(uint16_t num)
{
	struct wf_efa_qp *qp = *place_of(num);

	return qp && qp->qp.qp_num == num ? qp : NULL;
}

/* Both CQs of @qp, the one at the lower address first. */
static void lock_cqs(struct wf_efa_qp *qp, bool lock)
{
	struct wf_efa_cq *a = wf_efa_cq_of(qp->qp.send_cq);
	struct wf_efa_cq *b = wf_efa_cq_of(qp->qp.recv_cq);
	struct wf_efa_cq *first = a < b ? a : b, *second = a < b ? b : a;

	if (lock) {
		wf_base_lock_take(&first->ring_lock);
		if (second != first)
			wf_base_lock_take(&second->ring_lock);
		return;
	}
	if (second != first)
		wf_base_lock_drop(&second->ring_lock);
	wf_base_lock_drop(&first->ring_lock);
}

/* -- UD --------------------------------------------------------------------- */

static int receives_init(struct wf_efa_qp *qp, uint32_t count)
{
	qp->receives = calloc(count ? count : 1, sizeof(*qp->receives));
	if (!qp->receives)
		return -ENOMEM;
	qp->receive_free = count ? 0 : WF_EFA_QUEUE_MAX;
	for (uint32_t i = 0; i < count; i++)
		qp->receives[i].next = i + 1 < count ? i + 1 : WF_EFA_QUEUE_MAX;
	return 0;
}

static void put_grh(struct wf_efa_qp *qp, const struct wf_nic_wc *wc,
		    uint8_t *at)
{
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6u << 28),
		.paylen = htons((uint16_t)wc->len),
		.next_hdr = GRH_UDP,
		.hop_limit = 64,
	};

	wf_efa_gid_of(wf_nic_socket(qp->nic), &grh.dgid);
	wf_efa_ah_gid(wc, &grh.sgid);
	memcpy(at, &grh, WF_EFA_GRH);
}

bool wf_efa_qp_settle(struct wf_efa_qp *qp, struct wf_nic_wc *wc)
{
	struct wf_efa_receive *receive;
	uint32_t at;

	if (wc->flags & WF_NIC_WC_RECV && wc->status == WF_NIC_OK)
		wf_efa_ah_name(qp->qp.pd, wc);
	if (wf_likely(!qp->ud))
		return false;
	if (!(wc->flags & WF_NIC_WC_RECV)) {
		/* A datagram that nobody takes is lost, and its sender is not
		 * notified. */
		if (wc->status >= WF_NIC_REM_ADDR)
			wc->status = WF_NIC_OK;
		return false;
	}
	at = (uint32_t)wc->wr_id;
	receive = &qp->receives[at];
	wc->wr_id = receive->wr_id;
	receive->next = qp->receive_free;
	qp->receive_free = at;
	if (wc->status != WF_NIC_OK)
		return false;
	put_grh(qp, wc, receive->at);
	wc->len += WF_EFA_GRH;
	return true;
}

/* -- creation --------------------------------------------------------------- */

/* Returns the number of entries that the NIC makes of a number. */
static uint32_t round_up(uint32_t entries)
{
	uint32_t size = 4;

	while (size < entries)
		size *= 2;
	return size;
}

/* Refuses what a program may not ask for. Returns 0 or an errno. */
static int check(const struct ibv_qp_init_attr_ex *attr,
		 const struct wf_efadv_qp_init_attr *efa)
{
	bool ud = attr->qp_type == IBV_QPT_UD;
	uint64_t ops = ud ? SEND_OPS : SEND_OPS | RDMA_OPS;
	static bool type, mask, flags, shared;

	if (!ud && (attr->qp_type != IBV_QPT_DRIVER ||
		    efa->driver_qp_type != WF_EFADV_SRD))
		return wf_efa_refuse(&type,
				     "queue pairs other than SRD and UD");
	if (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD |
					  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	     attr->send_ops_flags & ~ops))
		return wf_efa_refuse(&mask, "these attributes of a queue pair");
	if (efa->comp_mask || efa->flags & ~(ud ? 0u : WF_EFADV_QP_UNSOLICITED))
		return wf_efa_refuse(&flags, "these EFA flags of a queue pair "
					     "(inline writes are one)");
	if (attr->srq)
		return wf_efa_refuse(&shared, "shared receive queues");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->send_cq ||
	    !attr->recv_cq || attr->cap.max_send_wr > WF_EFA_QUEUE_MAX ||
	    attr->cap.max_recv_wr > WF_EFA_QUEUE_MAX ||
	    attr->cap.max_send_sge > WF_NIC_SGE_MAX ||
	    attr->cap.max_recv_sge > 1 ||
	    attr->cap.max_inline_data > WF_NIC_INLINE_MAX)
		return EINVAL;
	return 0;
}

static void hint(struct wf_efadv_qp *qp, uint32_t hints)
{
	(void)qp;
	(void)hints;
}

/* Both rings of the NIC, and our own notes. */
static int make_ring(struct wf_efa_qp *qp, const struct ibv_qp_cap *cap,
		     bool unsolicited)
{
	const struct wf_nic_qp_attr attr = {
		.send_cq = wf_efa_cq_of(qp->qp.send_cq)->ring,
		.recv_cq = wf_efa_cq_of(qp->qp.recv_cq)->ring,
		.sq_entries = cap->max_send_wr,
		.rq_entries = cap->max_recv_wr,
		.rnr_retry = qp->rnr_retry,
		.unsolicited = unsolicited,
	};
	int ret = qp->ud ? receives_init(qp, cap->max_recv_wr) : 0;

	if (ret)
		return ret;
	qp->staged = calloc(attr.sq_entries, sizeof(*qp->staged));
	if (!qp->staged)
		return -ENOMEM;
	lock_cqs(qp, true);
	ret = wf_nic_qp_create(qp->nic, &attr, &qp->ring);
	if (!ret) {
		qp->qp.qp_num = wf_nic_qp_num(qp->ring);
		*place_of((uint16_t)qp->qp.qp_num) = qp;
	}
	lock_cqs(qp, false);
	return ret;
}

static void free_qp(struct wf_efa_qp *qp)
{
	pthread_mutex_destroy(&qp->qp.mutex);
	pthread_cond_destroy(&qp->qp.cond);
	free(qp->receives);
	free(qp->staged);
	free(qp);
}

static struct wf_efa_qp *create(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr,
				const struct wf_efadv_qp_init_attr *efa)
{
	struct wf_nic *nic = wf_efa_device_nic();
	struct wf_efa_qp *qp;
	int ret;

	if (!nic)
		return NULL;
	ret = -check(attr, efa);
	if (!ret && (wf_efa_cq_of(attr->send_cq)->nic != nic ||
		     wf_efa_cq_of(attr->recv_cq)->nic != nic))
		ret = -EINVAL;
	if (ret)
		goto err;
	ret = -ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		goto err;
	qp->nic = nic;
	qp->ud = attr->qp_type == IBV_QPT_UD;
	qp->sig_all = attr->sq_sig_all;
	attr->cap.max_send_wr = round_up(attr->cap.max_send_wr);
	if (attr->cap.max_recv_wr)
		attr->cap.max_recv_wr = round_up(attr->cap.max_recv_wr);
	qp->cap = attr->cap;
	/* A datagram is not tried again. */
	qp->rnr_retry = qp->ud ? 0 : WF_NIC_RNR_FOREVER;
	wf_base_lock_init(&qp->sq_lock, true);
	pthread_mutex_init(&qp->qp.mutex, NULL);
	pthread_cond_init(&qp->qp.cond, NULL);
	qp->qp.context = context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = attr->pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = IBV_QPS_RESET;
	qp->dv.wr_set_processing_hints = hint;
	ret = make_ring(qp, &attr->cap, efa->flags & WF_EFADV_QP_UNSOLICITED);
	if (ret) {
		free_qp(qp);
		goto err;
	}
	wf_efa_pd_of(attr->pd)->users++;
	wf_efa_device_hold(1);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		wf_efa_post_fill(&qp->ex, attr->send_ops_flags);
	return qp;

err:
	errno = ret == -ENOSPC ? ENOMEM : -ret;
	return NULL;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr)
{
	/* SRD is asked for by efadv_create_qp_ex() alone. */
	const struct wf_efadv_qp_init_attr none = { .driver_qp_type =
							    UINT32_MAX };

	return (struct ibv_qp *)create(context, attr, &none);
}

static struct ibv_qp *create_plain(struct ibv_pd *pd,
				   struct ibv_qp_init_attr *attr,
				   uint32_t driver_type)
{
	const struct wf_efadv_qp_init_attr efa = { .driver_qp_type =
							   driver_type };
	struct ibv_qp_init_attr_ex all = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct wf_efa_qp *qp = create(pd->context, &all, &efa);

	if (qp)
		attr->cap = all.cap;
	return (struct ibv_qp *)qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create_plain(pd, attr, UINT32_MAX);
}

struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd,
				      struct ibv_qp_init_attr *attr,
				      uint32_t driver_qp_type)
{
	return create_plain(pd, attr, driver_qp_type);
}

struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr,
				  struct wf_efadv_qp_init_attr *efa,
				  uint32_t inlen)
{
	struct wf_efadv_qp_init_attr all = { .comp_mask = 0 };

	if (inlen < offsetof(struct wf_efadv_qp_init_attr, flags)) {
		errno = EINVAL;
		return NULL;
	}
	memcpy(&all, efa, inlen < sizeof(all) ? inlen : sizeof(all));
	return (struct ibv_qp *)create(context, attr, &all);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = &wf_efa_qp_of(qp)->ex;

	return ex->wr_start ? ex : NULL;
}

struct wf_efadv_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *ex)
{
	return &wf_efa_qp_of(&ex->qp_base)->dv;
}

/* -- states ----------------------------------------------------------------- */

static bool may_become(enum ibv_qp_state from, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
	case IBV_QPS_RTR:
		return from == IBV_QPS_INIT;
	case IBV_QPS_RTS:
		return from == IBV_QPS_RTR || from == IBV_QPS_RTS ||
		       from == IBV_QPS_SQD;
	case IBV_QPS_SQD:
		return from == IBV_QPS_RTS || from == IBV_QPS_SQD;
	case IBV_QPS_RESET:
	case IBV_QPS_ERR:
		return true;
	default:
		return false;
	}
}

static void flush(struct wf_efa_qp *qp)
{
	qp->ended = true;
	lock_cqs(qp, true);
	wf_nic_qp_flush(qp->ring);
	lock_cqs(qp, false);
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	static const int known = IBV_QP_STATE | IBV_QP_CUR_STATE |
				 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY |
				 IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY |
				 IBV_QP_EN_SQD_ASYNC_NOTIFY;
	struct wf_efa_qp *qp = wf_efa_qp_of(base);
	static bool once, again;

	if (!wf_efa_device_has(qp->nic))
		return EINVAL;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_INIT && qp->ended)
		return wf_efa_refuse(&again, "a queue pair that was reset");
	if (mask & ~known)
		return wf_efa_refuse(&once, "these attributes of a queue pair "
					    "in ibv_modify_qp()");
	if ((mask & IBV_QP_CUR_STATE && attr->cur_qp_state != base->state) ||
	    (mask & IBV_QP_PORT && attr->port_num != WF_EFA_PORT) ||
	    (mask & IBV_QP_PKEY_INDEX && attr->pkey_index) ||
	    (mask & IBV_QP_RNR_RETRY &&
	     (attr->rnr_retry > WF_NIC_RNR_FOREVER || qp->ud)) ||
	    (mask & IBV_QP_STATE && !may_become(base->state, attr->qp_state)))
		return EINVAL;
	if (mask & IBV_QP_PORT)
		qp->port = attr->port_num;
	if (mask & IBV_QP_SQ_PSN)
		qp->sq_psn = attr->sq_psn;
	if (mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	wf_nic_qp_modify(qp->ring, qp->qkey, qp->rnr_retry);
	if (mask & IBV_QP_STATE) {
		enum ibv_qp_state before = base->state;

		base->state = attr->qp_state;
		if (base->state == IBV_QPS_ERR ||
		    (base->state == IBV_QPS_RESET && before != IBV_QPS_RESET))
			flush(qp);
	}
	return 0;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct wf_efa_qp *qp = wf_efa_qp_of(base);

	(void)mask;
	*attr = (struct ibv_qp_attr){
		.qp_state = base->state,
		.cur_qp_state = base->state,
		.qkey = qp->qkey,
		.sq_psn = qp->sq_psn,
		.port_num = qp->port,
		.rnr_retry = qp->rnr_retry,
		.cap = qp->cap,
	};
	*init = (struct ibv_qp_init_attr){
		.qp_context = base->qp_context,
		.send_cq = base->send_cq,
		.recv_cq = base->recv_cq,
		.cap = qp->cap,
		.qp_type = base->qp_type,
		.sq_sig_all = qp->sig_all,
	};
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	(void)qp;
	(void)op;
	(void)flags;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct wf_efa_qp *qp = wf_efa_qp_of(base);

	if (wf_efa_device_has(qp->nic)) {
		wf_efa_ring_forget_qp(qp);
		lock_cqs(qp, true);
		*place_of((uint16_t)base->qp_num) = NULL;
		wf_nic_qp_destroy(qp->ring);
		lock_cqs(qp, false);
		wf_efa_device_hold(-1);
	}
	wf_efa_pd_of(base->pd)->users--;
	free_qp(qp);
	return 0;
}

void wf_efa_qp_table(struct verbs_context *verbs)
{
	verbs->create_qp_ex = create_qp_ex;
}
