/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling and reading descriptors. Staging writes whole fields of a struct on
 * the stack or in the queue pair; nothing here touches a ring.
 */
#ifndef WF_NIC_WQE_H
#define WF_NIC_WQE_H

#include <stdbool.h>
#include <string.h>

#include "nic/wqe_defs.h"

static inline void wf_nic_wqe_sge(struct wf_nic_tx_sge *sge, uint64_t addr,
				  uint32_t len, uint32_t lkey)
{
	sge->length = len;
	sge->lkey = lkey & WF_NIC_LKEY_MASK;
	sge->addr_lo = (uint32_t)addr;
	sge->addr_hi = (uint32_t)(addr >> 32);
}

static inline void wf_nic_wqe_remote(struct wf_nic_tx_remote *remote,
				     uint64_t addr, uint32_t len, uint32_t rkey)
{
	remote->length = len;
	remote->rkey = rkey;
	remote->addr_lo = (uint32_t)addr;
	remote->addr_hi = (uint32_t)(addr >> 32);
}

static inline uint64_t wf_nic_wqe_addr(uint32_t lo, uint32_t hi)
{
	return (uint64_t)hi << 32 | lo;
}

/* Everything but what follows the first 32 bytes, length and imm. */
static inline void wf_nic_wqe_meta(struct wf_nic_tx_wqe *wqe, uint16_t req_id,
				   enum wf_nic_opcode op, unsigned phase,
				   uint16_t dest_qpn, uint16_t ah,
				   uint32_t qkey)
{
	memset(wqe, 0, 32);
	wqe->req_id = req_id;
	wqe->ctrl1 = (uint8_t)(WF_NIC_TX_META | op);
	wqe->ctrl2 = (uint8_t)(WF_NIC_TX_FIRST | WF_NIC_TX_LAST |
			       WF_NIC_TX_COMP_REQ | phase);
	wqe->dest_qpn = dest_qpn;
	wqe->ah = ah;
	wqe->qkey = qkey;
}

static inline void wf_nic_wqe_imm(struct wf_nic_tx_wqe *wqe, uint32_t imm)
{
	wqe->ctrl1 |= WF_NIC_TX_HAS_IMM;
	wqe->imm = imm;
}

static inline void wf_nic_rx_fill(struct wf_nic_rx_desc *desc, uint16_t req_id,
				  uint64_t addr, uint16_t len, uint32_t lkey)
{
	desc->addr_lo = (uint32_t)addr;
	desc->addr_hi = (uint32_t)(addr >> 32);
	desc->req_id = req_id;
	desc->length = len;
	desc->lkey_ctrl =
		(lkey & WF_NIC_LKEY_MASK) | WF_NIC_RX_FIRST | WF_NIC_RX_LAST;
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
