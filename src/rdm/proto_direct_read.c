/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct read: the device does it by itself, there are no packets (direct.h).
 */
#include "rdm/direct.h"
#include "rdm/protocol.h"

const struct wf_rdm_protocol wf_rdm_protocol_direct_read = {
	.name = "direct_read",
	.kind = WF_TX_READ,
	.no_packets = true,
	.can_use_for_send = wf_rdm_direct_can_use,
	.construct_tx_packets = wf_rdm_direct_construct,
	.request_completed = wf_rdm_direct_completed,
	.answered = wf_rdm_direct_answered,
};
