/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of libibverbs and libefa that this device calls. They are found
 * when the first device is looked for: weft is not linked with either library,
 * and a machine without them has no EFA device. The calls that libibverbs makes
 * by pointers (posts, polls) go through its own inline functions.
 */
#ifndef WF_NIC_EFA_VERBS_H
#define WF_NIC_EFA_VERBS_H

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>

#include "nic/efa/ring_defs.h"

/* Result, library, name, arguments. */
#define WF_SRD_CALLS(CALL)                                                     \
	CALL(struct ibv_device **, ibv, get_device_list, (int *count))         \
	CALL(void, ibv, free_device_list, (struct ibv_device * *list))         \
	CALL(const char *, ibv, get_device_name, (struct ibv_device * device)) \
	CALL(struct ibv_context *, ibv, open_device,                           \
	     (struct ibv_device * device))                                     \
	CALL(int, ibv, fork_init, (void))                                      \
	CALL(int, ibv, close_device, (struct ibv_context * context))           \
	CALL(int, ibv, query_device,                                           \
	     (struct ibv_context * context, struct ibv_device_attr * attr))    \
	CALL(int, ibv, query_gid,                                              \
	     (struct ibv_context * context, uint8_t port, int index,           \
	      union ibv_gid *gid))                                             \
	CALL(struct ibv_pd *, ibv, alloc_pd, (struct ibv_context * context))   \
	CALL(int, ibv, dealloc_pd, (struct ibv_pd * pd))                       \
	CALL(struct ibv_mr *, ibv, reg_mr,                                     \
	     (struct ibv_pd * pd, void *addr, size_t bytes, int access))       \
	CALL(int, ibv, dereg_mr, (struct ibv_mr * mr))                         \
	CALL(struct ibv_ah *, ibv, create_ah,                                  \
	     (struct ibv_pd * pd, struct ibv_ah_attr * attr))                  \
	CALL(int, ibv, destroy_ah, (struct ibv_ah * ah))                       \
	CALL(struct ibv_comp_channel *, ibv, create_comp_channel,              \
	     (struct ibv_context * context))                                   \
	CALL(int, ibv, destroy_comp_channel,                                   \
	     (struct ibv_comp_channel * channel))                              \
	CALL(int, ibv, get_cq_event,                                           \
	     (struct ibv_comp_channel * channel, struct ibv_cq * *cq,          \
	      void **context))                                                 \
	CALL(void, ibv, ack_cq_events,                                         \
	     (struct ibv_cq * cq, unsigned int count))                         \
	CALL(int, ibv, destroy_cq, (struct ibv_cq * cq))                       \
	CALL(int, ibv, modify_qp,                                              \
	     (struct ibv_qp * qp, struct ibv_qp_attr * attr, int mask))        \
	CALL(int, ibv, destroy_qp, (struct ibv_qp * qp))                       \
	CALL(struct ibv_qp_ex *, ibv, qp_to_qp_ex, (struct ibv_qp * qp))       \
	CALL(int, efadv, query_device,                                         \
	     (struct ibv_context * context, struct efadv_device_attr * attr,   \
	      uint32_t bytes))                                                 \
	CALL(int, efadv, query_ah,                                             \
	     (struct ibv_ah * ah, struct efadv_ah_attr * attr,                 \
	      uint32_t bytes))                                                 \
	CALL(struct ibv_qp *, efadv, create_qp_ex,                             \
	     (struct ibv_context * context, struct ibv_qp_init_attr_ex * attr, \
	      struct efadv_qp_init_attr * efa, uint32_t bytes))                \
	CALL(struct ibv_cq_ex *, efadv, create_cq,                             \
	     (struct ibv_context * context, struct ibv_cq_init_attr_ex * attr, \
	      struct efadv_cq_init_attr * efa, uint32_t bytes))                \
	CALL(struct efadv_cq *, efadv, cq_from_ibv_cq_ex,                      \
	     (struct ibv_cq_ex * cq))

/* The same for those that only newer libraries have: NULL if they do not. */
#define WF_SRD_NEW_CALLS(CALL)                                                 \
	CALL(int, efadv, query_qp_wqs,                                         \
	     (struct ibv_qp * qp, struct wf_efadv_wq_attr * sq,                \
	      struct wf_efadv_wq_attr * rq, uint32_t bytes))                   \
	CALL(int, efadv, query_cq,                                             \
	     (struct ibv_cq * cq, struct wf_efadv_cq_attr * attr,              \
	      uint32_t bytes))

struct wf_srd_verbs {
#define WF_SRD_MEMBER(result, library, name, arguments)                        \
	result(*library##_##name) arguments;
	WF_SRD_CALLS(WF_SRD_MEMBER)
	WF_SRD_NEW_CALLS(WF_SRD_MEMBER)
#undef WF_SRD_MEMBER
};

/* NULL: there is no libibverbs, no libefa, or they are too old. */
const struct wf_srd_verbs *wf_srd_verbs_get(void);

#endif
