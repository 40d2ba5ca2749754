/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data through the device as a program sees it: sends in pieces and inline,
 * immediate data, reads, writes, UD with its header, the older calls, queues
 * that are full, another process.
 */
#include <endian.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "efa/pair_test.h"

static const struct kind srd = { .rnr_retry = -1 };

static void fill(uint8_t *at, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 7 + i / 256 + seed);
}

static void test_device(void **state)
{
	struct wf_efadv_device_attr efa = { .comp_mask = 0 };
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct pair pair = open_pair(&srd);
	uint8_t older[sizeof(efa)];

	(void)state;
	assert_int_equal(ibv_query_device(pair.context, &attr), 0);
	assert_int_equal(attr.vendor_id, 0x1d0f);
	assert_int_equal(attr.vendor_part_id, 0xefa1);
	assert_int_equal(___ibv_query_port(pair.context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.max_msg_sz, 8192);
	assert_int_equal(port.gid_tbl_len, 1);
	assert_int_equal(___ibv_query_port(pair.context, 2, &port), EINVAL);
	assert_int_equal(efadv_query_device(pair.context, &efa, sizeof(efa)),
			 0);
	assert_int_equal(efa.inline_buf_size, 32);
	assert_int_equal(efa.max_rq_wr, 1024);
	assert_int_equal(efa.device_caps, 0x1f);
	/* A caller of an older header has less room. */
	memset(older, 0xaa, sizeof(older));
	assert_int_equal(efadv_query_device(pair.context, (void *)older, 24),
			 0);
	assert_int_equal(older[24], 0xaa);
	close_pair(&pair);
}

static void test_send(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 33, 4096, 8192 };
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0], *to = &pair.end[1];

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct wf_efadv_ah_attr ah;
		struct seen seen;

		fill(from->buf, sizes[i], i);
		memset(to->buf, 0, 8193);
		assert_int_equal(receive(to, 70 + i, 0, 8192), 0);
		assert_int_equal(send_to(&pair, 50 + i, 0, sizes[i]), 0);
		seen = wait_one(from);
		assert_int_equal(seen.wr_id, 50 + i);
		assert_int_equal(seen.status, IBV_WC_SUCCESS);
		assert_int_equal(seen.opcode, IBV_WC_SEND);
		seen = wait_one(to);
		assert_int_equal(seen.wr_id, 70 + i);
		assert_int_equal(seen.status, IBV_WC_SUCCESS);
		assert_int_equal(seen.opcode, IBV_WC_RECV);
		assert_int_equal(seen.len, sizes[i]);
		assert_int_equal(seen.src_qp, from->qp->qp_num);
		assert_int_equal(seen.flags, 0);
		assert_int_equal(efadv_query_ah(pair.ah, &ah, sizeof(ah)), 0);
		assert_int_equal(seen.slid, ah.ahn);
		assert_memory_equal(from->buf, to->buf, sizes[i]);
		assert_int_equal(to->buf[sizes[i]], 0);
	}
	close_pair(&pair);
}

/* Several requests between start and complete, of both kinds. */
static void test_batch(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0], *to = &pair.end[1];
	struct ibv_data_buf bufs[2] = { { (void *)"inl", 3 },
					{ (void *)"ine", 3 } };
	struct ibv_sge sges[2];
	bool first = false, second = false;

	(void)state;
	fill(from->buf, 200, 3);
	for (int i = 0; i < 2; i++)
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)from->buf + 100 * (unsigned)i,
			.length = 50,
			.lkey = from->mr->lkey,
		};
	assert_int_equal(receive(to, 0, 0, 1000), 0);
	assert_int_equal(receive(to, 1, 1000, 1000), 0);
	ibv_wr_start(from->ex);
	from->ex->wr_id = 1;
	ibv_wr_send_imm(from->ex, htobe32(0x01020304));
	ibv_wr_set_inline_data_list(from->ex, 2, bufs);
	ibv_wr_set_ud_addr(from->ex, pair.ah, to->qp->qp_num, QKEY);
	from->ex->wr_id = 2;
	ibv_wr_send(from->ex);
	ibv_wr_set_sge_list(from->ex, 2, sges);
	ibv_wr_set_ud_addr(from->ex, pair.ah, to->qp->qp_num, QKEY);
	assert_int_equal(ibv_wr_complete(from->ex), 0);
	for (int i = 0; i < 2; i++) {
		struct seen seen = wait_one(to);
		uint8_t *at = to->buf + 1000 * seen.wr_id;

		if (seen.flags & IBV_WC_WITH_IMM) {
			first = true;
			assert_int_equal(seen.imm, htobe32(0x01020304));
			assert_int_equal(seen.len, 6);
			assert_memory_equal(at, "inline", 6);
		} else {
			second = true;
			assert_int_equal(seen.len, 100);
			assert_memory_equal(at, from->buf, 50);
			assert_memory_equal(at + 50, from->buf + 100, 50);
		}
		wait_one(from);
	}
	assert_true(first && second);
	close_pair(&pair);
}

/* An aborted request was never posted. */
static void test_abort(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0];
	struct seen seen;

	(void)state;
	assert_int_equal(receive(&pair.end[1], 0, 0, 100), 0);
	ibv_wr_start(from->ex);
	from->ex->wr_id = 1;
	ibv_wr_send(from->ex);
	ibv_wr_set_inline_data(from->ex, (void *)"no", 2);
	ibv_wr_set_ud_addr(from->ex, pair.ah, pair.end[1].qp->qp_num, QKEY);
	ibv_wr_abort(from->ex);
	assert_int_equal(send_to(&pair, 2, 0, 5), 0);
	seen = wait_one(&pair.end[1]);
	assert_int_equal(seen.len, 5);
	assert_int_equal(wait_one(from).wr_id, 2);
	close_pair(&pair);
}

enum rdma { READ, WRITE, WRITE_IMM };

static int rdma(struct pair *pair, enum rdma what, uint32_t len)
{
	struct end *from = &pair->end[0], *to = &pair->end[1];
	uint64_t addr = (uintptr_t)to->buf;

	ibv_wr_start(from->ex);
	from->ex->wr_id = 9;
	if (what == READ)
		ibv_wr_rdma_read(from->ex, to->mr->rkey, addr);
	else if (what == WRITE)
		ibv_wr_rdma_write(from->ex, to->mr->rkey, addr);
	else
		ibv_wr_rdma_write_imm(from->ex, to->mr->rkey, addr,
				      htobe32(77));
	ibv_wr_set_sge(from->ex, from->mr->lkey, (uintptr_t)from->buf, len);
	ibv_wr_set_ud_addr(from->ex, pair->ah, to->qp->qp_num, QKEY);
	return ibv_wr_complete(from->ex);
}

static void test_rdma(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0], *to = &pair.end[1];
	struct seen seen;

	(void)state;
	fill(to->buf, BYTES, 1);
	assert_int_equal(rdma(&pair, READ, BYTES), 0);
	seen = wait_one(from);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	assert_int_equal(seen.opcode, IBV_WC_SEND); /* as libefa has it */
	assert_memory_equal(from->buf, to->buf, BYTES);

	fill(from->buf, BYTES, 2);
	assert_int_equal(rdma(&pair, WRITE, BYTES), 0);
	seen = wait_one(from);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	assert_int_equal(seen.opcode, IBV_WC_RDMA_WRITE);
	assert_memory_equal(from->buf, to->buf, BYTES);

	fill(from->buf, BYTES, 3);
	assert_int_equal(receive(to, 4, 0, 0), 0);
	assert_int_equal(rdma(&pair, WRITE_IMM, BYTES), 0);
	assert_int_equal(wait_one(from).status, IBV_WC_SUCCESS);
	seen = wait_one(to);
	assert_int_equal(seen.wr_id, 4);
	assert_int_equal(seen.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(seen.flags, IBV_WC_WITH_IMM);
	assert_int_equal(seen.imm, htobe32(77));
	assert_int_equal(seen.len, BYTES);
	assert_false(seen.unsolicited);
	assert_memory_equal(from->buf, to->buf, BYTES);
	close_pair(&pair);
}

static void test_unsolicited(void **state)
{
	struct pair pair = open_pair(
		&(struct kind){ .unsolicited = true, .rnr_retry = -1 });
	struct end *to = &pair.end[1];
	struct seen seen;

	(void)state;
	assert_int_equal(receive(to, 4, BYTES / 2, 100), 0);
	fill(pair.end[0].buf, BYTES / 2, 3);
	assert_int_equal(rdma(&pair, WRITE_IMM, BYTES / 2), 0);
	assert_int_equal(wait_one(&pair.end[0]).status, IBV_WC_SUCCESS);
	seen = wait_one(to);
	assert_true(seen.unsolicited);
	assert_int_equal(seen.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(seen.imm, htobe32(77));
	assert_int_equal(seen.len, BYTES / 2);
	assert_memory_equal(pair.end[0].buf, to->buf, BYTES / 2);
	/* The receive is still there. */
	assert_int_equal(send_to(&pair, 1, 0, 10), 0);
	seen = wait_one(to);
	assert_false(seen.unsolicited);
	assert_int_equal(seen.wr_id, 4);
	close_pair(&pair);
}

static void test_ud(void **state)
{
	struct pair pair =
		open_pair(&(struct kind){ .ud = true, .rnr_retry = -1 });
	struct end *from = &pair.end[0], *to = &pair.end[1];
	struct ibv_grh *grh = (struct ibv_grh *)to->buf;
	union ibv_gid gid;
	struct seen seen;

	(void)state;
	fill(from->buf, 8192, 1);
	assert_int_equal(receive(to, 5, 0, 39), EINVAL); /* no room for it */
	assert_int_equal(receive(to, 5, 0, 8192 + 40), 0);
	assert_int_equal(send_to(&pair, 1, 0, 8192), 0);
	assert_int_equal(wait_one(from).status, IBV_WC_SUCCESS);
	seen = wait_one(to);
	assert_int_equal(seen.wr_id, 5);
	assert_int_equal(seen.len, 8192 + 40);
	assert_int_equal(seen.flags, IBV_WC_GRH);
	assert_memory_equal(to->buf + 40, from->buf, 8192);
	assert_int_equal(ibv_query_gid(pair.context, 1, 0, &gid), 0);
	assert_memory_equal(grh->dgid.raw, gid.raw, 16);
	/* Without a receive it is lost, and its sender is not told. */
	assert_int_equal(send_to(&pair, 2, 0, 100), 0);
	seen = wait_one(from);
	assert_int_equal(seen.wr_id, 2);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	close_pair(&pair);
}

/* ibv_post_send() and ibv_poll_cq(), as older programs use them. */
static void test_older(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0], *to = &pair.end[1];
	struct ibv_sge sge = { .addr = (uintptr_t) "old", .length = 3 };
	struct ibv_send_wr *bad = NULL, wr[2] = {
		{ .wr_id = 1,
		  .next = &wr[1],
		  .sg_list = &sge,
		  .num_sge = 1,
		  .opcode = IBV_WR_SEND_WITH_IMM,
		  .send_flags = IBV_SEND_INLINE,
		  .imm_data = htobe32(5),
		  .wr.ud = { .ah = pair.ah,
			     .remote_qpn = to->qp->qp_num,
			     .remote_qkey = QKEY } },
		{ .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE },
	};
	struct ibv_wc wc;
	int got = 0;

	(void)state;
	assert_int_equal(receive(to, 3, 0, 100), 0);
	/* The first is posted, the second refused. */
	assert_int_equal(ibv_post_send(from->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	while (!got)
		got = ibv_poll_cq(ibv_cq_ex_to_cq(to->cq), 1, &wc);
	assert_int_equal(got, 1);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.byte_len, 3);
	assert_int_equal(wc.imm_data, htobe32(5));
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.qp_num, to->qp->qp_num);
	assert_memory_equal(to->buf, "old", 3);
	assert_int_equal(wait_one(from).wr_id, 1);
	close_pair(&pair);
}

static void test_full(void **state)
{
	struct pair pair = open_pair(&srd);
	unsigned int posted = 0;

	(void)state;
	/* Nothing is received, so nothing completes. */
	while (posted < 2 * DEPTH && !send_to(&pair, posted, 0, 8))
		posted++;
	assert_int_equal(posted, DEPTH);
	assert_int_equal(send_to(&pair, posted, 0, 8), ENOMEM);
	for (unsigned int i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&pair.end[1], i, i * 8, 8), 0);
	assert_int_equal(receive(&pair.end[1], 99, 0, 8), ENOMEM);
	for (unsigned int i = 0; i < DEPTH; i++)
		assert_int_equal(wait_one(&pair.end[0]).status, IBV_WC_SUCCESS);
	assert_int_equal(send_to(&pair, 1, 0, 8), 0);
	close_pair(&pair);
}

static void hear_child(struct pair *pair, int generations);

/* The objects that the child got from its parent do not work any more. */
static void child(const struct pair *old, const union ibv_gid *gid,
		  uint32_t qpn, int generations)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = *gid } };
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };
	struct pair mine;
	union ibv_gid own;

	assert_int_equal(ibv_post_recv(old->end[0].qp, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_ah(old->ah), 0);
	mine = open_pair(&srd);
	assert_int_equal(ibv_query_gid(mine.context, 1, 0, &own), 0);
	assert_memory_not_equal(own.raw, gid->raw, 16);
	if (generations > 1)
		hear_child(&mine, generations - 1);
	memcpy(mine.end[0].buf, own.raw, 16);
	assert_int_equal(ibv_destroy_ah(mine.ah), 0);
	mine.ah = ibv_create_ah(mine.pd, &attr);
	assert_non_null(mine.ah);
	mine.end[1].qp->qp_num = qpn; /* where send_to() sends */
	assert_int_equal(send_to(&mine, 1, 0, 16), 0);
	_exit(wait_one(&mine.end[0]).status == IBV_WC_SUCCESS ? 0 : 1);
}

/* Another process, which we have no handle for: its GID comes with the
 * message. */
static void hear_child(struct pair *pair, int generations)
{
	struct end *to = &pair->end[1];
	struct wf_efadv_cq *dv = efadv_cq_from_ibv_cq_ex(to->cq);
	union ibv_gid gid, from;
	struct seen seen;
	int status;
	pid_t pid;

	assert_int_equal(ibv_query_gid(pair->context, 1, 0, &gid), 0);
	assert_int_equal(receive(to, 3, 0, 100), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(pair, &gid, to->qp->qp_num, generations);
	seen = wait_one(to);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	assert_int_equal(seen.slid, 0xffff);
	assert_int_equal(dv->wc_read_sgid(dv, &from), 0);
	assert_memory_equal(to->buf, from.raw, 16);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A child of a child has a device of its own, too. */
static void test_process(void **state)
{
	struct pair pair = open_pair(&srd);

	(void)state;
	hear_child(&pair, 2);
	close_pair(&pair);
}

/* A user who wants encryption does not get a device that sends in the clear. */
static void test_key(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		setenv("FI_WEFT_KEY_FILE", "", 1);
		if (wf_efa_device_nic() || errno != EOPNOTSUPP)
			_exit(1);
		unsetenv("FI_WEFT_KEY_FILE");
		_exit(wf_efa_device_nic() ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A protection domain knows senders by its own handles alone. */
static void test_domains(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *to = &pair.end[1];
	struct ibv_pd *first = pair.pd, *second;
	union ibv_gid gid, from;
	struct wf_efadv_cq *dv;
	struct end old = *to;
	struct seen seen;

	(void)state;
	second = ibv_alloc_pd(pair.context);
	assert_non_null(second);
	pair.pd = second;
	open_end(&pair, to, &srd);
	dv = efadv_cq_from_ibv_cq_ex(to->cq);
	assert_int_equal(receive(to, 1, 0, 100), 0);
	assert_int_equal(send_to(&pair, 2, 0, 8), 0);
	seen = wait_one(to);
	assert_int_equal(seen.slid, 0xffff);
	assert_int_equal(ibv_query_gid(pair.context, 1, 0, &gid), 0);
	assert_int_equal(dv->wc_read_sgid(dv, &from), 0);
	assert_memory_equal(gid.raw, from.raw, 16);
	wait_one(&pair.end[0]);
	assert_int_equal(ibv_destroy_qp(to->qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(to->cq)), 0);
	assert_int_equal(ibv_dereg_mr(to->mr), 0);
	test_free(to->buf);
	assert_int_equal(ibv_dealloc_pd(second), 0);
	*to = old;
	pair.pd = first;
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_send),
		cmocka_unit_test(test_batch),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_rdma),
		cmocka_unit_test(test_unsolicited),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
