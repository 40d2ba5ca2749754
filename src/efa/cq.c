/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: those of the NIC in the form of libibverbs. A poll that
 * finds nothing lets the NIC work and polls once more; while nobody polls, the
 * NIC's attendant does the work.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/rest.h"
#include "efa/efa.h"

/* In a row, and nothing found. */
#define IDLE_POLLS 64u

/* As libefa maps the status of the device. */
static const uint8_t statuses[WF_NIC_STATUSES] = {
	[WF_NIC_OK] = IBV_WC_SUCCESS,
	[WF_NIC_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
	[WF_NIC_QP_INTERNAL] = IBV_WC_LOC_QP_OP_ERR,
	[WF_NIC_UNSUPP_OP] = IBV_WC_LOC_QP_OP_ERR,
	[WF_NIC_BAD_AH] = IBV_WC_LOC_QP_OP_ERR,
	[WF_NIC_BAD_LKEY] = IBV_WC_LOC_PROT_ERR,
	[WF_NIC_LOCAL_LEN] = IBV_WC_LOC_LEN_ERR,
	[WF_NIC_REM_ADDR] = IBV_WC_REM_ACCESS_ERR,
	[WF_NIC_ABORT] = IBV_WC_REM_ABORT_ERR,
	[WF_NIC_BAD_QPN] = IBV_WC_REM_INV_RD_REQ_ERR,
	[WF_NIC_RNR] = IBV_WC_RNR_RETRY_EXC_ERR,
	[WF_NIC_REM_LEN] = IBV_WC_REM_INV_REQ_ERR,
	[WF_NIC_BAD_STATUS] = IBV_WC_BAD_RESP_ERR,
	[WF_NIC_UNRESP] = IBV_WC_RESP_TIMEOUT_ERR,
	[WF_NIC_UNKNOWN_PEER] = IBV_WC_REM_OP_ERR,
	[WF_NIC_UNREACH] = IBV_WC_RESP_TIMEOUT_ERR,
};

static struct wf_efa_cq *of_ex(struct ibv_cq_ex *ex)
{
	return (struct wf_efa_cq *)ex;
}

static struct wf_efa_cq *of_dv(struct wf_efadv_cq *dv)
{
	return wf_container_of(dv, struct wf_efa_cq, dv);
}

/* -- one completion --------------------------------------------------------- */

static bool is_lost(uint8_t status)
{
	return status == WF_NIC_ABORT || status == WF_NIC_UNRESP ||
	       status == WF_NIC_UNREACH;
}

/* The next one becomes the current one. Under poll_lock. */
static bool take(struct wf_efa_cq *cq)
{
	struct wf_nic_wc *wc = &cq->wc;
	struct wf_efa_qp *qp;
	bool got;

	wf_base_lock_take(&cq->ring_lock);
	got = wf_nic_cq_poll(cq->ring, wc, 1) == 1;
	qp = got ? wf_efa_qp_find(wc->qpn) : NULL;
	cq->grh = got && qp && wf_efa_qp_settle(qp, wc);
	wf_base_lock_drop(&cq->ring_lock);
	if (got && wf_unlikely(is_lost(wc->status)) &&
	    !(wc->flags & WF_NIC_WC_RECV))
		wf_efa_ah_renew_all();
	return got;
}

static bool take_or_work(struct wf_efa_cq *cq)
{
	if (take(cq))
		return true;
	wf_nic_progress(cq->nic);
	return take(cq);
}

/* After a poll, without a lock: a sender to us may need this processor. With
 * a hardware device it would not, so a program that polls never yields by
 * itself. */
static void rest(bool some)
{
	static _Thread_local struct wf_rest resting;
	static _Thread_local uint32_t idle;

	if (!some) {
		if (++idle > IDLE_POLLS)
			wf_base_rest(&resting);
		return;
	}
	if (idle > IDLE_POLLS)
		wf_base_rest_begin(&resting);
	idle = 0;
}

static enum ibv_wc_status status_of(const struct wf_nic_wc *wc)
{
	return wc->status < WF_NIC_STATUSES ?
		       (enum ibv_wc_status)statuses[wc->status] :
		       IBV_WC_GENERAL_ERR;
}

static enum ibv_wc_opcode opcode_of(const struct wf_nic_wc *wc)
{
	bool write = wc->op == WF_NIC_OP_WRITE;

	if (wc->flags & WF_NIC_WC_RECV)
		return write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	/* Of reads as well: libefa says no more. */
	return write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

static unsigned int flags_of(const struct wf_efa_cq *cq)
{
	return (cq->wc.flags & WF_NIC_WC_IMM ? IBV_WC_WITH_IMM : 0u) |
	       (cq->grh ? IBV_WC_GRH : 0u);
}

/* -- ibv_start_poll() and what belongs to it -------------------------------- */

static int found(struct wf_efa_cq *cq)
{
	cq->ex.wr_id = cq->wc.wr_id;
	cq->ex.status = status_of(&cq->wc);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct wf_efa_cq *cq = of_ex(ex);

	if (attr->comp_mask || !wf_efa_device_has(cq->nic))
		return EINVAL;
	wf_base_lock_take(&cq->poll_lock);
	if (take_or_work(cq)) {
		rest(true);
		return found(cq);
	}
	wf_base_lock_drop(&cq->poll_lock);
	rest(false);
	return ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct wf_efa_cq *cq = of_ex(ex);

	return take(cq) ? found(cq) : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	wf_base_lock_drop(&of_ex(ex)->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return opcode_of(&of_ex(ex)->wc);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.status;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return htobe32(of_ex(ex)->wc.imm);
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return flags_of(of_ex(ex));
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->wc.ah;
}

static uint8_t read_zero(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static int read_sgid(struct wf_efadv_cq *dv, union ibv_gid *sgid)
{
	const struct wf_nic_wc *wc = &of_dv(dv)->wc;

	/* Like libefa: a receiver that has a handle knows the GID. */
	if (wc->ah != WF_NIC_AH_UNKNOWN || !wf_efa_ah_gid(wc, sgid))
		return -ENOENT;
	return 0;
}

static bool is_unsolicited(struct wf_efadv_cq *dv)
{
	return of_dv(dv)->wc.flags & WF_NIC_WC_UNSOLICITED;
}

/* -- ibv_poll_cq() ---------------------------------------------------------- */

static void fill(const struct wf_efa_cq *cq, struct ibv_wc *out)
{
	const struct wf_nic_wc *wc = &cq->wc;

	*out = (struct ibv_wc){
		.wr_id = wc->wr_id,
		.status = status_of(wc),
		.opcode = opcode_of(wc),
		.vendor_err = wc->status,
		.qp_num = wc->qpn,
		.wc_flags = flags_of(cq),
	};
	if (!(wc->flags & WF_NIC_WC_RECV))
		return;
	out->byte_len = wc->len;
	out->imm_data = htobe32(wc->imm);
	out->src_qp = wc->src_qpn;
	out->slid = wc->ah;
}

static int poll_cq(struct ibv_cq *base, int most, struct ibv_wc *wc)
{
	struct wf_efa_cq *cq = wf_efa_cq_of(base);
	int count = 0;

	if (!wf_efa_device_has(cq->nic))
		return -EINVAL;
	wf_base_lock_take(&cq->poll_lock);
	while (count < most && (count ? take(cq) : take_or_work(cq)))
		fill(cq, &wc[count++]);
	wf_base_lock_drop(&cq->poll_lock);
	rest(count);
	return count;
}

static int req_notify_cq(struct ibv_cq *base, int solicited_only)
{
	struct wf_efa_cq *cq = wf_efa_cq_of(base);

	if (solicited_only)
		return EOPNOTSUPP;
	if (!base->channel || !wf_efa_device_has(cq->nic))
		return EINVAL;
	wf_nic_cq_arm(cq->ring);
	return 0;
}

/* -- queues ----------------------------------------------------------------- */

static void fill_calls(struct wf_efa_cq *cq)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_zero;
	ex->read_dlid_path_bits = read_zero;
	cq->dv.wc_read_sgid = read_sgid;
	cq->dv.wc_is_unsolicited = is_unsolicited;
}

static struct ibv_cq_ex *create(struct ibv_context *context,
				const struct ibv_cq_init_attr_ex *attr)
{
	struct wf_nic *nic = wf_efa_device_nic();
	struct wf_efa_cq *cq;
	int ret;

	if (!nic)
		return NULL;
	ret = -EINVAL;
	if (!attr->cqe || attr->cqe > WF_EFA_CQE_MAX ||
	    attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		goto err;
	ret = -ENOMEM;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err;
	ret = wf_nic_cq_create(nic, attr->cqe, &cq->ring);
	if (ret) {
		free(cq);
		goto err;
	}
	cq->nic = nic;
	wf_base_lock_init(&cq->poll_lock, true);
	wf_base_lock_init(&cq->ring_lock, true);
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	cq->cq.context = context;
	cq->cq.channel = attr->channel;
	cq->cq.cq_context = attr->cq_context;
	cq->cq.cqe = (int)attr->cqe;
	fill_calls(cq);
	if (attr->channel) {
		pthread_mutex_lock(&context->mutex);
		attr->channel->refcnt++;
		pthread_mutex_unlock(&context->mutex);
		wf_nic_cq_notify(cq->ring, wf_efa_channel_event, cq);
	}
	wf_efa_device_hold(1);
	return &cq->ex;

err:
	errno = -ret;
	return NULL;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context,
				      struct ibv_cq_init_attr_ex *attr)
{
	static const uint64_t known = IBV_WC_STANDARD_FLAGS;
	static bool once;

	if (attr->wc_flags & ~known ||
	    attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS |
					  IBV_CQ_INIT_ATTR_MASK_PD) ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		wf_efa_refuse(&once, "these attributes of a completion queue");
		return NULL;
	}
	return create(context, attr);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};

	return (struct ibv_cq *)create(context, &attr);
}

struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr,
				  struct wf_efadv_cq_init_attr *efa,
				  uint32_t inlen)
{
	struct wf_efadv_cq_init_attr all = { .comp_mask = 0 };
	static bool once;

	if (inlen < offsetof(struct wf_efadv_cq_init_attr, flags)) {
		errno = EINVAL;
		return NULL;
	}
	memcpy(&all, efa, inlen < sizeof(all) ? inlen : sizeof(all));
	if (all.comp_mask || all.flags ||
	    all.wc_flags &
		    ~(uint64_t)(WF_EFADV_WC_SGID | WF_EFADV_WC_UNSOLICITED)) {
		wf_efa_refuse(&once, "these attributes of an EFA completion "
				     "queue (external memory is one)");
		return NULL;
	}
	return create_cq_ex(context, attr);
}

struct wf_efadv_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *ex)
{
	return &of_ex(ex)->dv;
}

int ibv_destroy_cq(struct ibv_cq *base)
{
	struct wf_efa_cq *cq = wf_efa_cq_of(base);
	struct ibv_context *context = base->context;

	if (wf_efa_device_has(cq->nic)) {
		int ret;

		/* A queue that stays must go on to write events. */
		if (wf_nic_cq_is_used(cq->ring))
			return EBUSY;
		wf_efa_ring_forget_cq(cq);
		wf_nic_cq_notify(cq->ring, NULL, NULL);
		if (base->channel)
			wf_efa_channel_leave(cq);
		ret = wf_nic_cq_destroy(cq->ring);
		if (ret)
			return -ret;
		wf_efa_device_hold(-1);
	}
	if (base->channel) {
		pthread_mutex_lock(&context->mutex);
		base->channel->refcnt--;
		pthread_mutex_unlock(&context->mutex);
	}
	pthread_mutex_destroy(&base->mutex);
	pthread_cond_destroy(&base->cond);
	free(cq);
	return 0;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	static bool once;

	(void)cq;
	(void)cqe;
	return wf_efa_refuse(&once, "ibv_resize_cq()");
}

void wf_efa_cq_table(struct verbs_context *verbs)
{
	verbs->create_cq_ex = create_cq_ex;
	verbs->context.ops.poll_cq = poll_cq;
	verbs->context.ops.req_notify_cq = req_notify_cq;
}
