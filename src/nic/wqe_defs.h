/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors and completions as the EFA device has them: 64-byte transmit
 * WQEs, 16-byte receive descriptors, completion entries at a stride of 32
 * bytes. Little-endian. Only layout; how to fill them is in wqe.h.
 */
#ifndef WF_NIC_WQE_DEFS_H
#define WF_NIC_WQE_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "descriptors are written in place");

#define WF_NIC_INLINE_MAX 32
#define WF_NIC_SGE_MAX 2
#define WF_NIC_LKEY_MASK 0xffffffu

enum wf_nic_opcode {
	WF_NIC_OP_SEND = 0,
	WF_NIC_OP_READ = 1,
	WF_NIC_OP_WRITE = 2,
	WF_NIC_OP_ASK = 3, /* of our own, in completions: wf_nic_place() */
	WF_NIC_OP_RUN = 4, /* the same: wf_nic_post_run() */
};

enum wf_nic_status {
	WF_NIC_OK = 0,
	WF_NIC_FLUSHED = 1,	/* the queue pair was taken down */
	WF_NIC_QP_INTERNAL = 2, /* the device is confused */
	WF_NIC_UNSUPP_OP = 3,	/* a descriptor it does not know */
	WF_NIC_BAD_AH = 4,	/* no such address handle */
	WF_NIC_BAD_LKEY = 5,	/* memory that is not registered for this */
	WF_NIC_LOCAL_LEN = 6,	/* longer than the device can */
	WF_NIC_REM_ADDR = 7,	/* the target's key, bounds or access */
	WF_NIC_ABORT = 8,	/* the target gave the connection up */
	WF_NIC_BAD_QPN = 9,	/* no such queue pair, or another key */
	WF_NIC_RNR = 10,	/* no receive was posted for too long */
	WF_NIC_REM_LEN = 11,	/* the posted receive is too short */
	WF_NIC_BAD_STATUS = 12, /* the target's answer makes no sense */
	WF_NIC_UNRESP = 13,	/* the target does not answer */
	WF_NIC_UNKNOWN_PEER = 14,
	WF_NIC_UNREACH = 15, /* no way there */
	WF_NIC_STATUSES,
};

/* ctrl1 */
#define WF_NIC_TX_OP_MASK 0x0f
#define WF_NIC_TX_HAS_IMM 0x10
#define WF_NIC_TX_INLINE 0x20
#define WF_NIC_TX_META 0x80
/* ctrl2 */
#define WF_NIC_TX_PHASE 0x01
#define WF_NIC_TX_FIRST 0x04
#define WF_NIC_TX_LAST 0x08
#define WF_NIC_TX_COMP_REQ 0x10

/* soft: the key of RDMA has 64 bits, the higher ones in imm. */
#define WF_NIC_TX_USER_KEY 0x01

struct wf_nic_tx_sge {
	uint32_t length;
	uint32_t lkey; /* 24 bits */
	uint32_t addr_lo;
	uint32_t addr_hi;
};

struct wf_nic_tx_remote {
	uint32_t length;
	uint32_t rkey;
	uint32_t addr_lo;
	uint32_t addr_hi;
};

struct wf_nic_tx_wqe {
	uint16_t req_id;
	uint8_t ctrl1;
	uint8_t ctrl2;
	uint16_t dest_qpn;
	uint16_t length; /* SGEs, or bytes inline */
	uint32_t imm;
	uint16_t ah;
	uint8_t ctrl3;
	uint8_t soft; /* reserved in hardware; see WF_NIC_TX_USER_KEY */
	uint32_t qkey;
	uint8_t reserved20[6];
	uint16_t req_id_ex[3];
	union {
		struct wf_nic_tx_sge sgl[WF_NIC_SGE_MAX];
		uint8_t inline_data[WF_NIC_INLINE_MAX];
		struct {
			struct wf_nic_tx_remote remote;
			struct wf_nic_tx_sge local;
		} rdma;
	};
};

static_assert(sizeof(struct wf_nic_tx_wqe) == 64, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, req_id) == 0, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, ctrl1) == 2, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, ctrl2) == 3, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, dest_qpn) == 4, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, length) == 6, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, imm) == 8, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, ah) == 12, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, ctrl3) == 14, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, soft) == 15, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, qkey) == 16, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, req_id_ex) == 26, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, sgl) == 32, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, inline_data) == 32, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, rdma.remote) == 32, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_wqe, rdma.local) == 48, "TX WQE");
static_assert(offsetof(struct wf_nic_tx_sge, lkey) == 4, "TX SGE");
static_assert(offsetof(struct wf_nic_tx_sge, addr_lo) == 8, "TX SGE");
static_assert(offsetof(struct wf_nic_tx_sge, addr_hi) == 12, "TX SGE");
static_assert(offsetof(struct wf_nic_tx_remote, rkey) == 4, "TX remote");
static_assert(offsetof(struct wf_nic_tx_remote, addr_lo) == 8, "TX remote");
static_assert(offsetof(struct wf_nic_tx_remote, addr_hi) == 12, "TX remote");

#define WF_NIC_RX_FIRST (1u << 30)
#define WF_NIC_RX_LAST (1u << 31)

struct wf_nic_rx_desc {
	uint32_t addr_lo;
	uint32_t addr_hi;
	uint16_t req_id;
	uint16_t length;
	uint32_t lkey_ctrl; /* lkey in 23:0 */
};

static_assert(sizeof(struct wf_nic_rx_desc) == 16, "RX descriptor");
static_assert(offsetof(struct wf_nic_rx_desc, addr_hi) == 4, "RX descriptor");
static_assert(offsetof(struct wf_nic_rx_desc, req_id) == 8, "RX descriptor");
static_assert(offsetof(struct wf_nic_rx_desc, length) == 10, "RX descriptor");
static_assert(offsetof(struct wf_nic_rx_desc, lkey_ctrl) == 12, "RX desc.");

#define WF_NIC_CQE_PHASE 0x01
#define WF_NIC_CQE_QTYPE_SHIFT 1
#define WF_NIC_CQE_QTYPE_MASK 0x06
#define WF_NIC_CQE_SQ 1
#define WF_NIC_CQE_RQ 2
#define WF_NIC_CQE_HAS_IMM 0x08
#define WF_NIC_CQE_OP_SHIFT 4
#define WF_NIC_CQE_OP_MASK 0x70
#define WF_NIC_CQE_UNSOLICITED 0x80

/* The phase in the first 32-bit word. */
#define WF_NIC_CQE_PHASE_BIT ((uint32_t)WF_NIC_CQE_PHASE << 24)

#define WF_NIC_AH_UNKNOWN 0xffffu

struct wf_nic_cqe {
	uint16_t req_id;
	uint8_t status;
	uint8_t flags;
	uint16_t qpn;
	/* Bytes received; for a run, the messages that have arrived. */
	uint16_t length;
	uint16_t ah;
	uint16_t src_qpn;
	uint32_t imm;
	union {
		uint16_t length_hi; /* of an RDMA write */
		uint32_t more;	    /* WF_NIC_OP_ASK: bytes that follow */
		uint8_t source[16]; /* of a send: its sender, without handle */
	};
};

static_assert(sizeof(struct wf_nic_cqe) == 32, "CQE stride");
static_assert(offsetof(struct wf_nic_cqe, req_id) == 0, "CQE");
static_assert(offsetof(struct wf_nic_cqe, status) == 2, "CQE");
static_assert(offsetof(struct wf_nic_cqe, flags) == 3, "CQE");
static_assert(offsetof(struct wf_nic_cqe, qpn) == 4, "CQE");
static_assert(offsetof(struct wf_nic_cqe, length) == 6, "CQE");
static_assert(offsetof(struct wf_nic_cqe, ah) == 8, "CQE");
static_assert(offsetof(struct wf_nic_cqe, src_qpn) == 10, "CQE");
static_assert(offsetof(struct wf_nic_cqe, imm) == 12, "CQE");
static_assert(offsetof(struct wf_nic_cqe, length_hi) == 16, "CQE");
static_assert(offsetof(struct wf_nic_cqe, source) == 16, "CQE");

#endif
