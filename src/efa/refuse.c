/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file refuses the calls of libibverbs and libefa that an EFA device of
 * ours does not have. The real functions would take our objects for theirs, so
 * each is answered here: by errno, and one line in the log where a program asks
 * for something to be made.
 */
#include "efa/efa.h"

#define REFUSE(what)                                                           \
	static bool once;                                                      \
	int ret = wf_efa_refuse(&once, what)

/* Newer than the oldest header that we build with. */
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   void *attr);
int _ibv_query_comp_cntr_caps(struct ibv_context *context, void *caps,
			      size_t size);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
			    void *attr);
void *ibv_alloc_dmah(struct ibv_context *context, void *attr);
int ibv_dealloc_dmah(void *dmah);
void *ibv_alloc_buf(struct ibv_context *context, void *attr);

/* -- completion counters ---------------------------------------------------- */

/* libfabric asks, and counts by itself when there are none. */
int _ibv_query_comp_cntr_caps(struct ibv_context *context, void *caps,
			      size_t size)
{
	(void)context;
	(void)caps;
	(void)size;
	return EOPNOTSUPP;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   void *attr)
{
	REFUSE("completion counters");

	(void)context;
	(void)attr;
	(void)ret;
	return NULL;
}

struct ibv_comp_cntr *efadv_create_comp_cntr(struct ibv_context *context,
					     void *attr, void *efa,
					     uint32_t inlen)
{
	(void)efa;
	(void)inlen;
	return ibv_create_comp_cntr(context, attr);
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr)
{
	(void)cntr;
	return EOPNOTSUPP;
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	(void)cntr;
	(void)value;
	return EOPNOTSUPP;
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	return ibv_set_comp_cntr(cntr, value);
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return ibv_set_comp_cntr(cntr, amount);
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return ibv_set_comp_cntr(cntr, amount);
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	(void)cntr;
	(void)value;
	return EOPNOTSUPP;
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return ibv_read_comp_cntr(cntr, value);
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
			    void *attr)
{
	(void)qp;
	(void)cntr;
	(void)attr;
	return EOPNOTSUPP;
}

/* -- shared receive queues -------------------------------------------------- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	REFUSE("shared receive queues");

	(void)pd;
	(void)attr;
	(void)ret;
	return NULL;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	(void)srq;
	(void)attr;
	(void)mask;
	return EOPNOTSUPP;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	(void)srq;
	(void)attr;
	return EOPNOTSUPP;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	return EOPNOTSUPP;
}

/* -- others ----------------------------------------------------------------- */

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	REFUSE("multicast");

	(void)qp;
	(void)gid;
	(void)lid;
	return ret;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return EOPNOTSUPP;
}

struct ibv_context *ibv_import_device(int fd)
{
	REFUSE("import of a device");

	(void)fd;
	(void)ret;
	return NULL;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	(void)context;
	(void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd;
	(void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

void *ibv_alloc_dmah(struct ibv_context *context, void *attr)
{
	(void)context;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_dealloc_dmah(void *dmah)
{
	(void)dmah;
	return EOPNOTSUPP;
}

void *ibv_alloc_buf(struct ibv_context *context, void *attr)
{
	(void)context;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
				struct ibv_ah_attr *attr,
				uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context;
	(void)attr;
	(void)mac;
	(void)vid;
	return EOPNOTSUPP;
}
