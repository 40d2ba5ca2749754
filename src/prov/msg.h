/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The op tables of fi_msg(3) and fi_tagged(3), with and without the
 * lock, and for aliases.
 */
#ifndef WF_PROV_MSG_H
#define WF_PROV_MSG_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_msg wf_prov_msg_ops_locked;
extern struct fi_ops_msg wf_prov_msg_ops_unlocked;
extern struct fi_ops_msg wf_prov_msg_ops_described;
extern struct fi_ops_msg wf_prov_msg_ops_alias;
extern struct fi_ops_tagged wf_prov_tagged_ops_locked;
extern struct fi_ops_tagged wf_prov_tagged_ops_unlocked;
extern struct fi_ops_tagged wf_prov_tagged_ops_described;
extern struct fi_ops_tagged wf_prov_tagged_ops_alias;

#endif
