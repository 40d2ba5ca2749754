/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair of an endpoint on an EFA device. Its number and key are the
 * address that peers need, so it is created before the NIC is opened. It
 * receives nothing until the NIC posts receives; the hardware of senders waits
 * for them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/efa/dev.h"
#include "os/file.h"
#include "os/process.h"

/* Completions that may wait: every request, and receives of writes. */
#define ENTRIES (2 * (WF_SRD_SENDS + WF_SRD_RECVS))
#define QKEY_MASK 0x7fffffffu /* as libfabric draws them */

static struct wf_srd_port *port_of(struct wf_nic_port *base)
{
	return (struct wf_srd_port *)base;
}

static int make_cq(struct wf_srd_port *port)
{
	const struct wf_srd_verbs *verbs = port->verbs;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = ENTRIES,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			    IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
			    IBV_WC_EX_WITH_SLID,
	};
	struct efadv_cq_init_attr efa = { .wc_flags = EFADV_WC_EX_WITH_SGID };

	port->channel = verbs->ibv_create_comp_channel(port->hard->context);
	if (!port->channel)
		return wf_srd_hard_failed();
	attr.channel = port->channel;
	port->cq = verbs->efadv_create_cq(port->hard->context, &attr, &efa,
					  sizeof(efa));
	if (!port->cq)
		return wf_srd_hard_failed();
	port->source = verbs->efadv_cq_from_ibv_cq_ex(port->cq);
	return port->source ? 0 : wf_srd_hard_failed();
}

static int make_qp(struct wf_srd_port *port)
{
	const struct wf_srd_verbs *verbs = port->verbs;
	struct efadv_qp_init_attr efa = {
		.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD,
	};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(port->cq),
		.recv_cq = ibv_cq_ex_to_cq(port->cq),
		.cap = {
			.max_send_wr = WF_SRD_SENDS,
			.max_recv_wr = WF_SRD_RECVS,
			.max_send_sge = WF_NIC_SGE_MAX,
			.max_recv_sge = 1,
			.max_inline_data = port->hard->attr.inline_buf_size <
							   WF_NIC_INLINE_MAX ?
						   port->hard->attr.inline_buf_size :
						   WF_NIC_INLINE_MAX,
		},
		.qp_type = IBV_QPT_DRIVER,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = port->hard->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	if (wf_srd_hard_reads(port->hard))
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
	if (wf_srd_hard_writes(port->hard))
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
	port->qp = verbs->efadv_create_qp_ex(port->hard->context, &attr, &efa,
					     sizeof(efa));
	if (!port->qp)
		return wf_srd_hard_failed();
	port->wr = verbs->ibv_qp_to_qp_ex(port->qp);
	return port->wr ? 0 : wf_srd_hard_failed();
}

/* To the state in which it sends and receives. Without RNR_RETRY the device
 * has a limit of its own. */
static int start_qp(struct wf_srd_port *port, uint32_t qkey)
{
	const struct wf_srd_verbs *verbs = port->verbs;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = WF_SRD_PORT,
		.qkey = qkey,
		.rnr_retry = WF_NIC_RNR_FOREVER,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	int err;

	err = verbs->ibv_modify_qp(port->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					   IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = verbs->ibv_modify_qp(port->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (port->hard->attr.device_caps & EFADV_DEVICE_ATTR_CAPS_RNR_RETRY)
		mask |= IBV_QP_RNR_RETRY;
	if (!err)
		err = verbs->ibv_modify_qp(port->qp, &attr, mask);
	return err > 0 ? -err : err;
}

static int fill(struct wf_srd_port *port)
{
	uint32_t qkey;
	int err = wf_srd_hard_gid(port->hard, &port->addr);

	if (!err)
		err = wf_os_random(&qkey, sizeof(qkey), true);
	if (err)
		return err;
	qkey &= QKEY_MASK;
	qkey += !qkey; /* 0 stands for none */
	err = make_cq(port);
	if (!err)
		err = make_qp(port);
	if (!err)
		err = start_qp(port, qkey);
	if (err)
		return err;
	port->addr.efa.qpn = (uint16_t)port->qp->qp_num;
	port->addr.efa.qkey = qkey;
	return 0;
}

/* Nothing was posted yet: both sides of the rings are at their beginning. */
static void choose_way(struct wf_srd_port *port, bool rings)
{
	port->why = rings ? wf_srd_ring_open(port) : "FI_WEFT_EFA_RINGS is 0";
	port->way = port->rings ? &wf_srd_by_rings : &wf_srd_by_calls;
	if (port->why)
		wf_info("efa: requests go %s: %s", port->way->about, port->why);
}

static int open_port(bool rings, struct wf_srd_port **out)
{
	struct wf_srd_port *port = calloc(1, sizeof(*port));
	int err = -ENOMEM;

	if (!port)
		return err;
	port->hard = wf_srd_hard_get(&err);
	if (!port->hard) {
		free(port);
		return err;
	}
	port->verbs = port->hard->verbs;
	err = fill(port);
	if (err) {
		wf_srd_port_close(&port->base);
		return err;
	}
	choose_way(port, rings);
	*out = port;
	return 0;
}

int wf_srd_port_way(bool rings, char *text, size_t room)
{
	struct wf_srd_port *port;
	int err = open_port(rings, &port);

	if (err)
		return err;
	snprintf(text, room, "%s%s%s", port->way->about, port->why ? ": " : "",
		 port->why ? port->why : "");
	wf_srd_port_close(&port->base);
	return 0;
}

int wf_srd_port_open(bool rings, struct wf_nic_port **out, struct wf_addr *addr,
		     int *fd)
{
	struct wf_srd_port *port;
	int err = open_port(rings, &port);

	if (err)
		return err;
	*addr = port->addr;
	*fd = port->channel->fd;
	*out = &port->base;
	return 0;
}

void wf_srd_port_close(struct wf_nic_port *base)
{
	struct wf_srd_port *port = port_of(base);
	const struct wf_srd_verbs *verbs = port->verbs;

	if (port->qp)
		verbs->ibv_destroy_qp(port->qp);
	wf_srd_ring_close(port);
	if (port->cq)
		verbs->ibv_destroy_cq(ibv_cq_ex_to_cq(port->cq));
	if (port->channel)
		verbs->ibv_destroy_comp_channel(port->channel);
	wf_srd_hard_put(port->hard);
	free(port);
}

void wf_srd_port_forked(struct wf_nic_port *base)
{
	wf_os_close(port_of(base)->channel->fd);
}
