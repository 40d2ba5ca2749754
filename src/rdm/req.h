/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One operation as the provider asks for it: what to move, where, and whom to
 * tell. On the caller's stack; the engine copies what it keeps.
 */
#ifndef WF_RDM_REQ_H
#define WF_RDM_REQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/cntr.h"
#include "op/rx.h"
#include "os/types.h"
#include "wire/packet_defs.h"

enum wf_rdm_kind {
	WF_RDM_SEND,
	WF_RDM_WRITE,
	WF_RDM_READ,
	WF_RDM_ATOMIC,
};

struct wf_rdm_req {
	enum wf_rdm_kind kind;
	uint8_t amo_kind; /* enum wf_op_amo_kind */
	uint8_t amo_op;
	uint8_t amo_type;
	bool tagged;
	bool has_data; /* FI_REMOTE_CQ_DATA */
	bool wants_comp;
	bool inject; /* the buffers are the caller's again on return */
	bool fence;
	bool delivery; /* FI_DELIVERY_COMPLETE */
	bool more;     /* FI_MORE: another one follows at once */
	uint64_t tag;
	uint64_t data;
	uint64_t comp_flags;
	void *context;
	struct wf_cntr *cntr; /* counts it, or NULL */
	size_t len;
	uint32_t iov_count; /* local: source, or where a read goes */
	uint32_t seg_count; /* remote memory */
	uint32_t result_count;
	uint32_t compare_count;
	struct iovec iov[WF_OP_IOV_MAX];
	struct wf_wire_iov segs[WF_WIRE_IOV_MAX];
	struct iovec result[WF_OP_IOV_MAX];
	struct iovec compare[WF_OP_IOV_MAX];
};

#endif
