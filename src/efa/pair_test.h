/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of one process that reach each other through the device, for
 * the tests of this folder. They call what a program calls.
 */
#ifndef WF_EFA_PAIR_TEST_H
#define WF_EFA_PAIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "efa/efa.h"

#define BYTES (256u << 10)
#define DEPTH 16u
#define QKEY 0x1234567u

struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct pair {
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_ah *ah; /* to ourselves */
	struct ibv_comp_channel *channel;
	struct end end[2];
};

/* A completion, as the calls of ibv_cq_ex tell it. */
struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t vendor_err, len, src_qp, slid;
	__be32 imm;
	bool unsolicited;
};

static inline bool poll_one(struct end *end, struct seen *seen)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct ibv_cq_ex *cq = end->cq;
	struct wf_efadv_cq *dv = efadv_cq_from_ibv_cq_ex(cq);
	int ret = ibv_start_poll(cq, &attr);

	if (ret) {
		assert_int_equal(ret, ENOENT);
		return false;
	}
	*seen = (struct seen){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.vendor_err = ibv_wc_read_vendor_err(cq),
		.len = ibv_wc_read_byte_len(cq),
		.src_qp = ibv_wc_read_src_qp(cq),
		.slid = ibv_wc_read_slid(cq),
		.imm = ibv_wc_read_imm_data(cq),
		.unsolicited = dv->wc_is_unsolicited(dv),
	};
	ibv_end_poll(cq);
	return true;
}

/* Waits for a completion, and lets the other end work meanwhile. */
static inline struct seen wait_one(struct end *end)
{
	time_t until = time(NULL) + 30;
	struct seen seen;

	while (!poll_one(end, &seen)) {
		assert_true(time(NULL) < until);
		usleep(10);
	}
	return seen;
}

static inline void to_rts(struct ibv_qp *qp, int rnr_retry)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = QKEY };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.rnr_retry = (uint8_t)rnr_retry;
	if (rnr_retry >= 0)
		mask |= IBV_QP_RNR_RETRY;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

struct kind {
	bool ud;
	bool unsolicited;
	bool events;
	int rnr_retry; /* -1: as it is */
	uint32_t cqe;  /* 0: 4 * DEPTH */
};

static inline void open_end(struct pair *pair, struct end *end,
			    const struct kind *kind)
{
	struct ibv_cq_init_attr_ex cq = {
		.cqe = kind->cqe ? kind->cqe : 4 * DEPTH,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.channel = kind->events ? pair->channel : NULL,
		.cq_context = pair->pd,
	};
	struct wf_efadv_cq_init_attr cq_efa = {
		.wc_flags = WF_EFADV_WC_SGID | WF_EFADV_WC_UNSOLICITED,
	};
	struct ibv_qp_init_attr_ex qp = {
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 1,
			 .max_inline_data = 32 },
		.qp_type = kind->ud ? IBV_QPT_UD : IBV_QPT_DRIVER,
		.sq_sig_all = 1,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pair->pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct wf_efadv_qp_init_attr qp_efa = {
		.driver_qp_type = kind->ud ? UINT32_MAX : WF_EFADV_SRD,
		.flags = kind->unsolicited ? WF_EFADV_QP_UNSOLICITED : 0,
	};

	if (!kind->ud)
		qp.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
				     IBV_QP_EX_WITH_RDMA_WRITE |
				     IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	end->cq = efadv_create_cq(pair->context, &cq, &cq_efa, sizeof(cq_efa));
	assert_non_null(end->cq);
	qp.send_cq = ibv_cq_ex_to_cq(end->cq);
	qp.recv_cq = qp.send_cq;
	end->qp =
		efadv_create_qp_ex(pair->context, &qp, &qp_efa, sizeof(qp_efa));
	assert_non_null(end->qp);
	end->ex = ibv_qp_to_qp_ex(end->qp);
	end->buf = test_malloc(BYTES);
	memset(end->buf, 0, BYTES);
	end->mr = ibv_reg_mr(pair->pd, end->buf, BYTES,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				     IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(end->mr);
	to_rts(end->qp, kind->rnr_retry);
}

static inline struct pair open_pair(const struct kind *kind)
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct pair pair;

	pair.list = ibv_get_device_list(NULL);
	assert_non_null(pair.list);
	pair.context = ibv_open_device(pair.list[0]);
	assert_non_null(pair.context);
	pair.pd = ibv_alloc_pd(pair.context);
	assert_non_null(pair.pd);
	pair.channel = ibv_create_comp_channel(pair.context);
	assert_non_null(pair.channel);
	assert_int_equal(ibv_query_gid(pair.context, 1, 0, &ah.grh.dgid), 0);
	pair.ah = ibv_create_ah(pair.pd, &ah);
	assert_non_null(pair.ah);
	for (int i = 0; i < 2; i++)
		open_end(&pair, &pair.end[i], kind);
	return pair;
}

static inline void close_pair(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		struct end *end = &pair->end[i];

		if (end->qp)
			assert_int_equal(ibv_destroy_qp(end->qp), 0);
		assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)), 0);
		assert_int_equal(ibv_dereg_mr(end->mr), 0);
		test_free(end->buf);
	}
	assert_int_equal(ibv_destroy_ah(pair->ah), 0);
	assert_int_equal(ibv_destroy_comp_channel(pair->channel), 0);
	assert_int_equal(ibv_dealloc_pd(pair->pd), 0);
	assert_int_equal(ibv_close_device(pair->context), 0);
	ibv_free_device_list(pair->list);
}

static inline int receive(struct end *end, uint64_t wr_id, size_t at,
			  uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)end->buf + at,
			       .length = len,
			       .lkey = end->mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(end->qp, &wr, &bad);
}

/* Sends @len bytes from @at of the first end's buffer to the second. */
static inline int send_to(struct pair *pair, uint64_t wr_id, size_t at,
			  uint32_t len)
{
	struct end *from = &pair->end[0];

	ibv_wr_start(from->ex);
	from->ex->wr_id = wr_id;
	from->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(from->ex);
	ibv_wr_set_sge(from->ex, from->mr->lkey, (uintptr_t)from->buf + at,
		       len);
	ibv_wr_set_ud_addr(from->ex, pair->ah, pair->end[1].qp->qp_num, QKEY);
	return ibv_wr_complete(from->ex);
}

#endif
