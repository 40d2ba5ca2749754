/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations: from the owner's request to the one end that it has.
 */
#include "nic/udp/engine/inner.h"

void wf_udp_engine_submit(struct wf_udp_engine *engine, uint64_t now,
			  struct wf_udp_op *op)
{
	engine->now = now;
	op->in_list = true;
	wf_base_list_add_tail(&op->peer->out.ops, &op->link);
	wf_udp_hello_start(engine, op->peer);
	wf_udp_peer_activate(engine, op->peer);
}

void wf_udp_op_end(struct wf_udp_engine *engine, struct wf_udp_op *op,
		   enum wf_nic_status status)
{
	if (op->slots)
		wf_udp_out_forget(op);
	if (op->in_list)
		wf_base_list_unlink(&op->link);
	wf_base_list_unlink(&op->owner_link);
	engine->port->ended(engine, op, status);
}

void wf_udp_op_check(struct wf_udp_engine *engine, struct wf_udp_op *op)
{
	if (op->slots || op->kind == WF_UDP_OP_READ)
		return;
	if (op->made) {
		wf_udp_op_end(engine, op, WF_NIC_OK);
	} else if (!op->in_list) {
		/* Its immediate data may go now. */
		op->in_list = true;
		wf_base_list_add_tail(&op->peer->out.ops, &op->link);
		wf_udp_peer_activate(engine, op->peer);
	}
}
