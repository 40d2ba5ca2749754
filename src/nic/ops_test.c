/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the table: a device that has its own keys, rings, doorbells and
 * completions, as hardware has, finds everything that a post says where it put
 * the rings, and its user hears what it says.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/nic.h"
#include "nic/ops.h"
#include "nic/wqe.h"

#define ENTRIES 16u

/* These are the contents of the device. */
static struct {
	_Alignas(64) uint8_t sq[ENTRIES * sizeof(struct wf_nic_tx_wqe)];
	_Alignas(64) uint8_t rq[ENTRIES * sizeof(struct wf_nic_rx_desc)];
	_Alignas(64) _Atomic uint32_t sq_bell;
	_Atomic uint32_t rq_bell;
	bool flushed;
	unsigned int rings;
	unsigned int rings_freed;
	unsigned int polls;
} hard;

static int hard_mr_reg(struct wf_nic *nic, void *addr, size_t len,
		       unsigned access, struct wf_nic_mr *mr)
{
	(void)nic;
	(void)addr;
	(void)len;
	(void)access;
	*mr = (struct wf_nic_mr){ .lkey = 0xabc, .rkey = 0xdef };
	return 0;
}

static int hard_mr_dereg(struct wf_nic *nic, uint32_t lkey)
{
	(void)nic;
	return lkey == 0xabc ? 0 : -EINVAL;
}

static int hard_rings(struct wf_nic *nic, struct wf_nic_qp *qp, uint32_t sq,
		      uint32_t rq, struct wf_nic_rings *rings)
{
	(void)nic;
	(void)qp;
	if (sq > ENTRIES || rq > ENTRIES)
		return -ENOSPC;
	*rings = (struct wf_nic_rings){ hard.sq, hard.rq, &hard.sq_bell,
					&hard.rq_bell };
	return 0;
}

static int hard_cq_ring(struct wf_nic *nic, uint32_t entries, void **ring)
{
	(void)nic;
	*ring = aligned_alloc(64, entries * sizeof(struct wf_nic_cqe));
	assert_non_null(*ring);
	memset(*ring, 0, entries * sizeof(struct wf_nic_cqe));
	hard.rings++;
	return 0;
}

static void hard_cq_free(struct wf_nic *nic, void *ring)
{
	(void)nic;
	hard.rings_freed++;
	free(ring);
}

static int hard_poll(struct wf_nic_cq *cq, struct wf_nic_wc *wc, int n)
{
	(void)cq;
	hard.polls++;
	if (n < 1)
		return 0;
	*wc = (struct wf_nic_wc){ .wr_id = 42, .status = WF_NIC_OK };
	return 1;
}

static int hard_qp_create(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	(void)nic;
	(void)qp;
	return 0;
}

static void hard_qp_flush(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	(void)nic;
	(void)qp;
	hard.flushed = true;
}

static void hard_qp_destroy(struct wf_nic *nic, struct wf_nic_qp *qp)
{
	(void)nic;
	(void)qp;
}

static int hard_ah_create(struct wf_nic *nic, struct wf_nic_ah *ah)
{
	(void)nic;
	/* It alone knows which addresses it reaches: all bytes of one come
	 * here. */
	return ah->addr.len == WF_NIC_ADDR_MAX && ah->addr.bytes[63] == 7 ?
		       0 :
		       -EINVAL;
}

static const struct wf_nic_ops hard_ops = {
	.name = "hard",
	.copy = WF_QUEUE_COPY_MEMORY,
	.mr_reg = hard_mr_reg,
	.mr_dereg = hard_mr_dereg,
	.qp_rings = hard_rings,
	.cq_ring = hard_cq_ring,
	.cq_free = hard_cq_free,
	.cq_poll = hard_poll,
	.qp_create = hard_qp_create,
	.qp_flush = hard_qp_flush,
	.qp_destroy = hard_qp_destroy,
	.ah_create = hard_ah_create,
};

static void test_hooks(void **state)
{
	struct wf_nic_qp_attr attr = { .sq_entries = ENTRIES,
				       .rq_entries = ENTRIES };
	struct wf_nic_wr wr = { .wr_id = 1, .qpn = 9, .flags = WF_NIC_WR_MORE };
	struct wf_nic_addr addr = { .len = WF_NIC_ADDR_MAX,
				    .bytes = { [63] = 7 } };
	struct wf_nic_tx_wqe wqe;
	struct wf_nic_rx_desc desc;
	struct wf_nic_sge sge;
	struct wf_nic nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr mr;
	struct wf_nic_wc wc;
	uint16_t ah, again;

	(void)state;
	memset(&nic, 0, sizeof(nic));
	assert_int_equal(wf_nic_init(&nic, &hard_ops, false, NULL), 0);
	nic.caps = (struct wf_nic_caps){ .max_queue = ENTRIES,
					 .max_batch = ENTRIES };
	assert_int_equal(wf_nic_mr_reg(&nic, &sge, sizeof(sge), 0, &mr), 0);
	assert_int_equal(mr.lkey, 0xabc);
	assert_int_equal(mr.rkey, 0xdef);
	assert_int_equal(wf_nic_cq_create(&nic, 32, &cq), 0);
	assert_int_equal(hard.rings, 1);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	assert_int_equal(wf_nic_qp_create(&nic, &attr, &qp), 0);
	assert_int_equal(wf_nic_post_inline(qp, &wr, "seven", 6), 0);
	assert_int_equal(hard.sq_bell, 0);
	wf_nic_qp_ring(qp);
	assert_int_equal(hard.sq_bell, 1);
	memcpy(&wqe, hard.sq, sizeof(wqe));
	assert_int_equal(wqe.dest_qpn, 9);
	assert_string_equal((const char *)wqe.inline_data, "seven");
	sge = (struct wf_nic_sge){ &sge, sizeof(sge), mr.lkey };
	assert_int_equal(wf_nic_post_recv(qp, 2, &sge, false), 0);
	assert_int_equal(hard.rq_bell, 1);
	memcpy(&desc, hard.rq, sizeof(desc));
	assert_int_equal(desc.lkey_ctrl & WF_NIC_LKEY_MASK, 0xabc);
	assert_int_equal(wf_nic_cq_poll(cq, &wc, 1), 1);
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(hard.polls, 1);
	assert_null(wf_nic_socket(&nic));
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &ah), 0);
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &again), 0);
	assert_int_equal(again, ah);
	/* An address of the same length that ends otherwise is another. */
	addr.bytes[62] = 1;
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &again), 0);
	assert_int_not_equal(again, ah);
	addr.bytes[63] = 8;
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &ah), -EINVAL);
	addr.len = WF_NIC_ADDR_MAX + 1;
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &ah), -EINVAL);
	addr.len = 0;
	assert_int_equal(wf_nic_ah_create(&nic, &addr, &ah), -EINVAL);
	wf_nic_qp_destroy(qp);
	assert_true(hard.flushed);
	assert_int_equal(wf_nic_cq_destroy(cq), 0);
	assert_int_equal(hard.rings_freed, 1);
	assert_int_equal(wf_nic_mr_dereg(&nic, mr.lkey), 0);
	assert_int_equal(wf_nic_mr_dereg(&nic, 1), -EINVAL);
	wf_nic_fini(&nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hooks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
