/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NIC over kernel TCP, for nic/open.c alone.
 */
#ifndef WF_NIC_TCP_TCP_H
#define WF_NIC_TCP_TCP_H

#include "nic/ops.h"

extern const struct wf_nic_ops wf_nic_tcp_ops;

#endif
