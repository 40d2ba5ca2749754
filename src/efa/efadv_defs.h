/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares the arguments and results of libefa's functions, as
 * rdma-core's newest header has them; older ones have the first fields only, so
 * a caller's structure is as long as it says. Our own names: the header of the
 * system may be of any age, and is not included. Only layout and declarations.
 */
#ifndef WF_EFA_EFADV_DEFS_H
#define WF_EFA_EFADV_DEFS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "nic/efa/ring_defs.h"

#define WF_EFADV_SRD 0

#define WF_EFADV_CAP_READ 0x01u
#define WF_EFADV_CAP_RNR_RETRY 0x02u
#define WF_EFADV_CAP_CQ_SGID 0x04u
#define WF_EFADV_CAP_WRITE 0x08u
#define WF_EFADV_CAP_UNSOLICITED 0x10u

struct wf_efadv_device_attr {
	uint64_t comp_mask;
	uint32_t max_sq_wr;
	uint32_t max_rq_wr;
	uint16_t max_sq_sge;
	uint16_t max_rq_sge;
	uint16_t inline_buf_size;
	uint16_t inline_buf_size_ex;
	uint32_t device_caps;
	uint32_t max_rdma_size;
};

static_assert(sizeof(struct wf_efadv_device_attr) == 32, "efadv_device_attr");

struct wf_efadv_ah_attr {
	uint64_t comp_mask;
	uint16_t ahn;
	uint8_t reserved[6];
};

static_assert(sizeof(struct wf_efadv_ah_attr) == 16, "efadv_ah_attr");

struct wf_efadv_sq_depth_attr {
	uint64_t comp_mask;
	uint32_t flags;
	uint32_t max_send_sge;
	uint32_t max_rdma_sge;
	uint32_t max_inline_data;
};

struct wf_efadv_rq_depth_attr {
	uint64_t comp_mask;
	uint32_t max_recv_sge;
};

#define WF_EFADV_QP_UNSOLICITED 0x1u

struct wf_efadv_qp_init_attr {
	uint64_t comp_mask;
	uint32_t driver_qp_type;
	uint16_t flags;
	uint8_t sl;
	uint8_t reserved;
	uint64_t wr_flags;
};

static_assert(offsetof(struct wf_efadv_qp_init_attr, flags) == 12, "qp");
static_assert(offsetof(struct wf_efadv_qp_init_attr, sl) == 14, "qp");
static_assert(sizeof(struct wf_efadv_qp_init_attr) == 24, "qp");

struct wf_efadv_qp {
	uint64_t comp_mask;
	void (*wr_set_processing_hints)(struct wf_efadv_qp *qp, uint32_t hints);
};

#define WF_EFADV_WC_SGID 0x1u
#define WF_EFADV_WC_UNSOLICITED 0x2u

struct wf_efadv_cq_init_attr {
	uint64_t comp_mask;
	uint64_t wc_flags;
	uint64_t flags; /* external memory: not here */
	uint8_t ext_mem_dmabuf[32];
};

static_assert(sizeof(struct wf_efadv_cq_init_attr) == 56, "cq");

struct wf_efadv_cq {
	uint64_t comp_mask;
	int (*wc_read_sgid)(struct wf_efadv_cq *cq, union ibv_gid *sgid);
	bool (*wc_is_unsolicited)(struct wf_efadv_cq *cq);
};

struct ibv_comp_cntr;

int efadv_query_device(struct ibv_context *context,
		       struct wf_efadv_device_attr *attr, uint32_t inlen);
int efadv_query_ah(struct ibv_ah *ah, struct wf_efadv_ah_attr *attr,
		   uint32_t inlen);
int efadv_query_mr(struct ibv_mr *mr, void *attr, uint32_t inlen);
int efadv_get_max_sq_depth(struct ibv_context *context,
			   struct wf_efadv_sq_depth_attr *attr, uint32_t inlen);
int efadv_get_max_rq_depth(struct ibv_context *context,
			   struct wf_efadv_rq_depth_attr *attr, uint32_t inlen);
struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd,
				      struct ibv_qp_init_attr *attr,
				      uint32_t driver_qp_type);
struct ibv_qp *efadv_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr,
				  struct wf_efadv_qp_init_attr *efa,
				  uint32_t inlen);
struct wf_efadv_qp *efadv_qp_from_ibv_qp_ex(struct ibv_qp_ex *qp);
int efadv_query_qp_wqs(struct ibv_qp *qp, struct wf_efadv_wq_attr *sq_attr,
		       struct wf_efadv_wq_attr *rq_attr, uint32_t inlen);
struct ibv_cq_ex *efadv_create_cq(struct ibv_context *context,
				  struct ibv_cq_init_attr_ex *attr,
				  struct wf_efadv_cq_init_attr *efa,
				  uint32_t inlen);
int efadv_query_cq(struct ibv_cq *cq, struct wf_efadv_cq_attr *attr,
		   uint32_t inlen);
struct wf_efadv_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq);
struct ibv_comp_cntr *efadv_create_comp_cntr(struct ibv_context *context,
					     void *attr, void *efa,
					     uint32_t inlen);

#endif
