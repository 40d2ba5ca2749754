/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling and reading descriptors. They are staged on the stack; nothing here
 * touches a ring.
 */
#ifndef WF_NIC_WQE_H
#define WF_NIC_WQE_H

#include <stdbool.h>
#include <string.h>

#include "nic/wqe_defs.h"

/* Staged bytes are loaded again at once, 16 or more at a time, and a load that
 * needs several stores has to wait until they are in the cache: each 16 bytes
 * are one store. At any address, and of any type. */
typedef uint64_t wf_nic_wqe_pair
	__attribute__((vector_size(16), aligned(4), may_alias));

static inline void wf_nic_wqe_put(void *at, uint64_t lo, uint64_t hi)
{
	*(wf_nic_wqe_pair *)at = (wf_nic_wqe_pair){ lo, hi };
}

static inline void wf_nic_wqe_sge(struct wf_nic_tx_sge *sge, uint64_t addr,
				  uint32_t len, uint32_t lkey)
{
	wf_nic_wqe_put(sge, len | (uint64_t)(lkey & WF_NIC_LKEY_MASK) << 32,
		       addr);
}

static inline void wf_nic_wqe_remote(struct wf_nic_tx_remote *remote,
				     uint64_t addr, uint32_t len, uint32_t rkey)
{
	wf_nic_wqe_put(remote, len | (uint64_t)rkey << 32, addr);
}

static inline uint64_t wf_nic_wqe_addr(uint32_t lo, uint32_t hi)
{
	return (uint64_t)hi << 32 | lo;
}

/* These are the contents of the first 32 bytes. */
struct wf_nic_wqe_head {
	uint16_t req_id;
	uint8_t ctrl1; /* enum wf_nic_opcode and WF_NIC_TX_INLINE, _HAS_IMM */
	uint8_t phase;
	uint16_t dest_qpn;
	uint16_t length;
	uint16_t ah;
	uint32_t imm;
	uint32_t qkey;
};

static inline void wf_nic_wqe_meta(struct wf_nic_tx_wqe *wqe,
				   const struct wf_nic_wqe_head *head)
{
	uint32_t ctrl1 = WF_NIC_TX_META | head->ctrl1;
	uint32_t ctrl2 = WF_NIC_TX_FIRST | WF_NIC_TX_LAST | WF_NIC_TX_COMP_REQ |
			 head->phase;

	wf_nic_wqe_put(wqe,
		       head->req_id | ctrl1 << 16 | ctrl2 << 24 |
			       (uint64_t)head->dest_qpn << 32 |
			       (uint64_t)head->length << 48,
		       head->imm | (uint64_t)head->ah << 32);
	wf_nic_wqe_put(&wqe->qkey, head->qkey, 0);
}

static inline void wf_nic_rx_fill(struct wf_nic_rx_desc *desc, uint16_t req_id,
				  uint64_t addr, uint16_t len, uint32_t lkey)
{
	uint32_t lkey_ctrl =
		(lkey & WF_NIC_LKEY_MASK) | WF_NIC_RX_FIRST | WF_NIC_RX_LAST;

	wf_nic_wqe_put(desc, addr,
		       req_id | (uint32_t)len << 16 |
			       (uint64_t)lkey_ctrl << 32);
}

static inline uint8_t wf_nic_cqe_flags(unsigned q_type, enum wf_nic_opcode op,
				       bool imm)
{
	return (uint8_t)(q_type << WF_NIC_CQE_QTYPE_SHIFT |
			 (unsigned)op << WF_NIC_CQE_OP_SHIFT |
			 (imm ? WF_NIC_CQE_HAS_IMM : 0));
}

static inline unsigned wf_nic_cqe_qtype(const struct wf_nic_cqe *cqe)
{
	return (cqe->flags & WF_NIC_CQE_QTYPE_MASK) >> WF_NIC_CQE_QTYPE_SHIFT;
}

static inline unsigned wf_nic_cqe_op(const struct wf_nic_cqe *cqe)
{
	return (cqe->flags & WF_NIC_CQE_OP_MASK) >> WF_NIC_CQE_OP_SHIFT;
}

#endif
