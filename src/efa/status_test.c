/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check how a program hears of failures: statuses as the hardware
 * has them, states of a queue pair, calls that are refused.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "efa/pair_test.h"

static const struct kind srd = { .rnr_retry = -1 };

struct aim {
	uint32_t lkey_xor, rkey_xor, qkey_xor, qpn_xor;
	uint32_t len;
	bool read;
};

static struct seen try(struct pair *pair, const struct aim *aim)
{
	struct end *from = &pair->end[0], *to = &pair->end[1];

	ibv_wr_start(from->ex);
	from->ex->wr_id = 3;
	if (aim->read)
		ibv_wr_rdma_read(from->ex, to->mr->rkey ^ aim->rkey_xor,
				 (uintptr_t)to->buf);
	else
		ibv_wr_send(from->ex);
	ibv_wr_set_sge(from->ex, from->mr->lkey ^ aim->lkey_xor,
		       (uintptr_t)from->buf, aim->len);
	ibv_wr_set_ud_addr(from->ex, pair->ah, to->qp->qp_num ^ aim->qpn_xor,
			   QKEY ^ aim->qkey_xor);
	assert_int_equal(ibv_wr_complete(from->ex), 0);
	return wait_one(from);
}

static void test_statuses(void **state)
{
	static const struct {
		struct aim aim;
		uint32_t vendor;
		enum ibv_wc_status status;
	} cases[] = {
		{ { .lkey_xor = 0x10000, .len = 8 },
		  WF_NIC_BAD_LKEY,
		  IBV_WC_LOC_PROT_ERR },
		{ { .len = BYTES + 1, .read = true },
		  WF_NIC_BAD_LKEY,
		  IBV_WC_LOC_PROT_ERR },
		{ { .len = 8193 }, WF_NIC_LOCAL_LEN, IBV_WC_LOC_LEN_ERR },
		{ { .rkey_xor = 0x10000, .len = 8, .read = true },
		  WF_NIC_REM_ADDR,
		  IBV_WC_REM_ACCESS_ERR },
		{ { .qkey_xor = 1, .len = 8 },
		  WF_NIC_BAD_QPN,
		  IBV_WC_REM_INV_RD_REQ_ERR },
		{ { .qpn_xor = 0x100, .len = 8 },
		  WF_NIC_BAD_QPN,
		  IBV_WC_REM_INV_RD_REQ_ERR },
		{ { .len = 101 }, WF_NIC_REM_LEN, IBV_WC_REM_INV_REQ_ERR },
		/* After all of that it still works. */
		{ { .len = 100 }, WF_NIC_OK, IBV_WC_SUCCESS },
	};
	struct pair pair = open_pair(&srd);

	(void)state;
	assert_int_equal(receive(&pair.end[1], 1, 0, 100), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen seen = try(&pair, &cases[i].aim);

		assert_int_equal(seen.wr_id, 3);
		assert_int_equal(seen.vendor_err, cases[i].vendor);
		assert_int_equal(seen.status, cases[i].status);
	}
	close_pair(&pair);
}

static void test_rnr(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = 1 });
	struct seen seen = try(&pair, &(struct aim){ .len = 8 });

	(void)state;
	assert_int_equal(seen.status, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(seen.vendor_err, WF_NIC_RNR);
	close_pair(&pair);
}

/* A process that is gone: an error, not a wait, and a later send is tried
 * again. */
static void test_gone(void **state)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct pair pair = open_pair(&srd);

	(void)state;
	assert_int_equal(ibv_query_gid(pair.context, 1, 0, &attr.grh.dgid), 0);
	/* Nobody is there: another port. */
	attr.grh.dgid.raw[6] = 0;
	attr.grh.dgid.raw[7] = 1;
	assert_int_equal(ibv_destroy_ah(pair.ah), 0);
	pair.ah = ibv_create_ah(pair.pd, &attr);
	assert_non_null(pair.ah);
	for (int i = 0; i < 2; i++) {
		struct seen seen = try(&pair, &(struct aim){ .len = 8 });

		assert_int_equal(seen.status, IBV_WC_RESP_TIMEOUT_ERR);
		assert_int_equal(seen.vendor_err, WF_NIC_UNREACH);
	}
	close_pair(&pair);
}

static void test_flush(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0];
	struct seen seen;

	(void)state;
	assert_int_equal(receive(from, 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	assert_int_equal(ibv_modify_qp(from->qp, &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++) {
		seen = wait_one(from);
		assert_int_equal(seen.status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(seen.vendor_err, WF_NIC_FLUSHED);
	}
	assert_int_equal(receive(from, 1, 0, 100), EINVAL);
	assert_int_equal(send_to(&pair, 2, 0, 8), EINVAL);
	close_pair(&pair);
}

/* A queue pair that goes away takes its completions along, and its number is
 * not met again at once. */
static void test_destroy(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0];
	uint32_t old = from->qp->qp_num;
	struct seen seen;

	(void)state;
	assert_int_equal(receive(from, 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(from->cq)), EBUSY);
	assert_int_equal(ibv_destroy_qp(from->qp), 0);
	from->qp = NULL;
	assert_false(poll_one(from, &seen));
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(from->cq)), 0);
	assert_int_equal(ibv_dereg_mr(from->mr), 0);
	test_free(from->buf);
	open_end(&pair, from, &srd);
	assert_int_not_equal(from->qp->qp_num, old);
	close_pair(&pair);
}

static void test_states(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct pair pair = open_pair(&srd);
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = pair.end[0].qp;

	(void)state;
	/* Not backwards. */
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	attr.rnr_retry = 8;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_RNR_RETRY), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_DEST_QPN), EOPNOTSUPP);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.qkey, QKEY);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(init.cap.max_send_wr, DEPTH);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(receive(&pair.end[0], 1, 0, 100), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EOPNOTSUPP);
	close_pair(&pair);
}

/* Memory that is not there, or cannot be written: as a kernel that pins pages for
 * a device, not by a signal later. */
static void test_memory(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 4 * page;
	struct pair pair = open_pair(&srd);
	struct ibv_mr *mr;
	uint8_t *at;

	(void)state;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED);
	mr = ibv_reg_mr(pair.pd, at, len, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mprotect(at + 3 * page, page, PROT_READ), 0);
	errno = 0;
	mr = ibv_reg_mr(pair.pd, at, len, IBV_ACCESS_LOCAL_WRITE);
	if (mr) {
		/* A kernel that cannot be asked. */
		assert_int_equal(ibv_dereg_mr(mr), 0);
	} else {
		assert_int_equal(errno, EFAULT);
		assert_null(ibv_reg_mr(pair.pd, at, len,
				       IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_LOCAL_WRITE));
		/* It may be sent and read. */
		mr = ibv_reg_mr(pair.pd, at, len, IBV_ACCESS_REMOTE_READ);
		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(munmap(at, page), 0);
		errno = 0;
		assert_null(ibv_reg_mr(pair.pd, at, len, 0));
		assert_int_equal(errno, EFAULT);
	}
	munmap(at, len);
	close_pair(&pair);
}

static void test_refused(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0];

	(void)state;
	attr.send_cq = ibv_cq_ex_to_cq(from->cq);
	attr.recv_cq = attr.send_cq;
	errno = 0;
	assert_null(ibv_create_qp(pair.pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pair.pd, 0, 10, 0, 0, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(
		ibv_reg_mr(pair.pd, from->buf, 8,
			   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
	/* A GID of something else. */
	errno = 0;
	memset(ah.grh.dgid.raw, 7, 16);
	assert_null(ibv_create_ah(pair.pd, &ah));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(pair.pd), EBUSY);
	/* Too many pieces, too much inline: nothing is posted. */
	ibv_wr_start(from->ex);
	ibv_wr_send(from->ex);
	ibv_wr_set_inline_data(from->ex, from->buf, 33);
	assert_int_equal(ibv_wr_complete(from->ex), EINVAL);
	ibv_wr_start(from->ex);
	ibv_wr_rdma_read(from->ex, 0, 0);
	ibv_wr_set_sge_list(from->ex, 2, (struct ibv_sge[2]){ { .addr = 0 } });
	assert_int_equal(ibv_wr_complete(from->ex), EINVAL);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statuses), cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_gone),	 cmocka_unit_test(test_flush),
		cmocka_unit_test(test_destroy),	 cmocka_unit_test(test_states),
		cmocka_unit_test(test_memory),	 cmocka_unit_test(test_refused),
	};

	/* Nobody is waited for that long. */
	setenv("WEFT_EFA_TIMEOUT", "300ms", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
