/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header declares where the rings of an EFA device are, as libefa says it
 * since rdma-core 59 (efadv_query_qp_wqs(), efadv_query_cq()), and the doorbell
 * of a completion queue. Our own names: the header of the system may be older.
 * The descriptors themselves are in wqe_defs.h. Only layout.
 */
#ifndef WF_NIC_EFA_RING_DEFS_H
#define WF_NIC_EFA_RING_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct wf_efadv_wq_attr {
	uint64_t comp_mask;
	uint8_t *buffer;
	uint32_t entry_size;
	uint32_t num_entries;
	uint32_t *doorbell;
	uint32_t max_batch;
	uint16_t caps; /* request ids of 64 bits: not used */
	uint8_t reserved[2];
};

static_assert(sizeof(struct wf_efadv_wq_attr) == 40, "efadv_wq_attr");
static_assert(offsetof(struct wf_efadv_wq_attr, doorbell) == 24, "wq");
static_assert(offsetof(struct wf_efadv_wq_attr, caps) == 36, "wq");

struct wf_efadv_cq_attr {
	uint64_t comp_mask;
	uint8_t *buffer;
	uint32_t entry_size;
	uint32_t num_entries;
	uint32_t *doorbell; /* since rdma-core 60 */
};

static_assert(sizeof(struct wf_efadv_cq_attr) == 32, "efadv_cq_attr");
static_assert(offsetof(struct wf_efadv_cq_attr, doorbell) == 24, "cq");

/* The doorbell of a completion queue: how many completions were read, modulo
 * 2^16; how many events, modulo 4; and whether the next completion is to be
 * an event. */
#define WF_EFADV_CQ_READ 0x0000ffffu
#define WF_EFADV_CQ_EVENTS_SHIFT 29
#define WF_EFADV_CQ_EVENTS 3u
#define WF_EFADV_CQ_ARM (1u << 31)

#endif
