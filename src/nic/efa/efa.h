/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EFA devices, for nic/open.c alone.
 */
#ifndef WF_NIC_EFA_EFA_H
#define WF_NIC_EFA_EFA_H

#include "nic/ops.h"

extern const struct wf_nic_ops wf_nic_efa_ops;

#endif
