/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that weft does not support. libfabric's inline wrappers call
 * through the tables unchecked, so every slot must hold a function; these
 * return -FI_ENOSYS.
 */
#ifndef WF_PROV_NOSYS_H
#define WF_PROV_NOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

/* struct fi_ops */
int wf_prov_nosys_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int wf_prov_nosys_control(struct fid *fid, int command, void *arg);
int wf_prov_nosys_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context);
int wf_prov_nosys_tostr(const struct fid *fid, char *buf, size_t len);
int wf_prov_nosys_ops_set(struct fid *fid, const char *name, uint64_t flags,
			  void *ops, void *context);

/* struct fi_ops_fabric */
int wf_prov_nosys_passive_ep(struct fid_fabric *fabric, struct fi_info *info,
			     struct fid_pep **pep, void *context);
int wf_prov_nosys_wait_open(struct fid_fabric *fabric,
			    struct fi_wait_attr *attr, struct fid_wait **wait);

/* struct fi_ops_domain */
int wf_prov_nosys_scalable_ep(struct fid_domain *domain, struct fi_info *info,
			      struct fid_ep **sep, void *context);
int wf_prov_nosys_cntr_open(struct fid_domain *domain,
			    struct fi_cntr_attr *attr, struct fid_cntr **cntr,
			    void *context);
int wf_prov_nosys_poll_open(struct fid_domain *domain,
			    struct fi_poll_attr *attr, struct fid_poll **poll);
int wf_prov_nosys_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
			  struct fid_stx **stx, void *context);
int wf_prov_nosys_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
			  struct fid_ep **rx_ep, void *context);
int wf_prov_nosys_query_atomic(struct fid_domain *domain,
			       enum fi_datatype datatype, enum fi_op op,
			       struct fi_atomic_attr *attr, uint64_t flags);
int wf_prov_nosys_query_collective(struct fid_domain *domain,
				   enum fi_collective_op coll,
				   struct fi_collective_attr *attr,
				   uint64_t flags);

/* struct fi_ops_av */
int wf_prov_nosys_av_set(struct fid_av *av, struct fi_av_set_attr *attr,
			 struct fid_av_set **av_set, void *context);

/* struct fi_ops_ep */
int wf_prov_nosys_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
			 struct fid_ep **tx_ep, void *context);
int wf_prov_nosys_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
			 struct fid_ep **rx_ep, void *context);
ssize_t wf_prov_nosys_size_left(struct fid_ep *ep);

/* struct fi_ops_cm: for the members that a connectionless endpoint lacks. */
int wf_prov_nosys_setname(fid_t fid, void *addr, size_t addrlen);
int wf_prov_nosys_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);
int wf_prov_nosys_connect(struct fid_ep *ep, const void *addr,
			  const void *param, size_t paramlen);
int wf_prov_nosys_listen(struct fid_pep *pep);
int wf_prov_nosys_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int wf_prov_nosys_reject(struct fid_pep *pep, fid_t handle, const void *param,
			 size_t paramlen);
int wf_prov_nosys_shutdown(struct fid_ep *ep, uint64_t flags);
int wf_prov_nosys_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		       struct fid_mc **mc, void *context);

/* Whole tables of unsupported operations. Not const, because libfabric's
 * pointers to tables are not. */
extern struct fi_ops_rma wf_prov_nosys_rma;
extern struct fi_ops_atomic wf_prov_nosys_atomic;
extern struct fi_ops_collective wf_prov_nosys_collective;

#endif
