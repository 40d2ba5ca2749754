/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software NIC over UDP, for nic/open.c alone.
 */
#ifndef WF_NIC_UDP_UDP_H
#define WF_NIC_UDP_UDP_H

#include "nic/ops.h"

extern const struct wf_nic_ops wf_nic_udp_ops;

#endif
