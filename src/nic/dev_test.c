/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of each device as its user sees it: every operation, every status
 * that can be had, and what happens at the end of things.
 */
#include "nic/pair_test.h"

static void test_inline_send(void **state)
{
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	pair_recv(&p.b, 77, 0, 64);
	wr = pair_wr(&p.a, &p.b, 5);
	wr.flags = WF_NIC_WR_IMM;
	wr.imm = 0xdeadbeef;
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "hello", 5), 0);
	wc = pair_wait(&p, &p.b);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.status, WF_NIC_OK);
	assert_int_equal(wc.len, 5);
	assert_int_equal(wc.imm, 0xdeadbeef);
	assert_int_equal(wc.flags, WF_NIC_WC_RECV | WF_NIC_WC_IMM);
	assert_int_equal(wc.src_qpn, wf_nic_qp_num(p.a.qp));
	assert_int_equal(wc.ah, p.b.ah);
	assert_memory_equal(p.b.memory, "hello", 5);
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, WF_NIC_OK);
	assert_int_equal(wc.flags, 0);
	pair_close(&p);
}

static void send_sizes(struct pair *p)
{
	uint32_t most = wf_nic_caps(p->a.nic)->max_msg;
	const uint32_t sizes[] = { 0, 1, 31, 64, 256, 257, 1000, most };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t len = sizes[i], cut = len / 3;
		struct wf_nic_wr wr = pair_wr(&p->a, &p->b, i);
		struct wf_nic_sge sge[2] = { pair_sge(&p->a, 0, cut),
					     pair_sge(&p->a, cut, len - cut) };

		fill(p->a.memory, len, i);
		pair_recv(&p->b, 100 + i, 0, most);
		assert_int_equal(wf_nic_post_send(p->a.qp, &wr, sge, 2), 0);
		assert_int_equal(pair_wait(p, &p->b).len, len);
		assert_true(filled(p->b.memory, len, i));
		assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	}
}

static void test_send_sizes(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;

	(void)state;
	pair_open(&p);
	send_sizes(&p);
	pair_close(&p);
	if (strcmp(pair_device, "udp") != 0)
		return;
	/* An Ethernet, and the kernel without segmentation. */
	attr.mtu = 1500;
	attr.no_offload = true;
	attr.payload_crc = true;
	pair_open_attr(&p, &attr, &attr);
	assert_int_equal(wf_nic_caps(p.a.nic)->max_msg, 1500 - 28 - 64);
	send_sizes(&p);
	pair_close(&p);
}

/* One end has jumbo packets, the other not: each is told what fits the way, and
 * a larger message arrives all the same, be it alone or among others. */
static void test_unequal_links(void **state)
{
	struct wf_nic_attr wide = pair_attr(AF_INET), narrow = wide;
	struct wf_nic_path path;
	struct pair p;

	(void)state;
	if (strcmp(pair_device, "udp") != 0)
		skip();
	narrow.mtu = 1500;
	pair_open_attr(&p, &wide, &narrow);
	assert_int_equal(wf_nic_caps(p.b.nic)->max_recv,
			 wf_nic_caps(p.a.nic)->max_msg);
	send_sizes(&p);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_true(path.up);
	assert_int_equal(path.max_msg, 1500 - 28 - 64);
	for (int i = 0; i < 20; i++) {
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, 1);
		struct wf_nic_sge sge = pair_sge(&p.a, 0, 4000);

		wr.flags = i < 19 ? WF_NIC_WR_MORE : 0;
		pair_recv(&p.b, 1, (size_t)i * 8192, 8192);
		assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &sge, 1), 0);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
		assert_int_equal(pair_wait(&p, &p.b).len, 4000);
	}
	assert_int_equal(wf_nic_counter(&wf_nic_counters(p.a.nic)->tx_errors),
			 0);
	pair_close(&p);
}

static void test_ipv6(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET6);
	struct wf_nic *nic;
	struct pair p;

	(void)state;
	if (wf_nic_open(pair_device, &attr, &nic)) {
		print_message("no IPv6 here\n");
		skip();
	}
	wf_nic_close(nic);
	pair_open_attr(&p, &attr, &attr);
	send_sizes(&p);
	pair_close(&p);
}

static void test_rdma(void **state)
{
	const uint32_t sizes[] = {
		0, 1, 4096, 40000, 1u << 20, (2u << 20) - 3
	};
	struct pair p;

	(void)state;
	pair_open(&p);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);
		struct wf_nic_sge sge = pair_sge(&p.a, 0, sizes[i]);
		struct wf_nic_remote there = { .addr = (uintptr_t)p.b.memory,
					       .rkey = p.b.mr.rkey };
		struct wf_nic_wc wc;

		fill(p.a.memory, sizes[i], i);
		memset(p.b.memory, 0, sizes[i] + 1);
		assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge),
				 0);
		wc = pair_wait(&p, &p.a);
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.op, WF_NIC_OP_WRITE);
		assert_true(filled(p.b.memory, sizes[i], i));
		assert_int_equal(p.b.memory[sizes[i]], 0);
		fill(p.b.memory, sizes[i], i + 50);
		assert_int_equal(wf_nic_post_read(p.a.qp, &wr, &there, &sge),
				 0);
		wc = pair_wait(&p, &p.a);
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.op, WF_NIC_OP_READ);
		assert_true(filled(p.a.memory, sizes[i], i + 50));
	}
	pair_close(&p);
}

/* The immediate data of a write comes after all of the write. */
static void test_write_with_imm(void **state)
{
	const uint32_t sizes[] = { 0, 100, 1u << 20 };
	struct pair p;

	(void)state;
	pair_open(&p);
	for (unsigned i = 0; i < 3; i++) {
		struct wf_nic_wr wr = pair_wr(&p.a, &p.b, i);
		struct wf_nic_sge sge = pair_sge(&p.a, 0, sizes[i]);
		struct wf_nic_remote there = { .addr = (uintptr_t)p.b.memory,
					       .rkey = p.b.mr.rkey };
		struct wf_nic_wc wc;

		fill(p.a.memory, sizes[i], i);
		pair_recv(&p.b, 9, PAIR_MEMORY - 64, 64);
		wr.flags = WF_NIC_WR_IMM;
		wr.imm = 42 + i;
		assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge),
				 0);
		wc = pair_wait(&p, &p.b);
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.wr_id, 9);
		assert_int_equal(wc.op, WF_NIC_OP_WRITE);
		assert_int_equal(wc.imm, 42 + i);
		assert_int_equal(wc.len, sizes[i]);
		assert_true(filled(p.b.memory, sizes[i], i));
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	}
	pair_close(&p);
}

static enum wf_nic_status try_send(struct pair *p, const struct wf_nic_wr *wr,
				   const struct wf_nic_sge *sge)
{
	assert_int_equal(wf_nic_post_send(p->a.qp, wr, sge, 1), 0);
	return pair_wait(p, &p->a).status;
}

static void test_send_errors(void **state)
{
	struct wf_nic_sge good, bad;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	good = pair_sge(&p.a, 0, 100);
	wr = pair_wr(&p.a, &p.b, 1);
	wr.ah = 999;
	assert_int_equal(try_send(&p, &wr, &good), WF_NIC_BAD_AH);
	wr = pair_wr(&p.a, &p.b, 1);
	wr.qpn ^= 0x400; /* another generation */
	assert_int_equal(try_send(&p, &wr, &good), WF_NIC_BAD_QPN);
	wr = pair_wr(&p.a, &p.b, 1);
	wr.qkey++;
	assert_int_equal(try_send(&p, &wr, &good), WF_NIC_BAD_QPN);
	wr = pair_wr(&p.a, &p.b, 1);
	bad = good;
	bad.lkey ^= 0x10000;
	assert_int_equal(try_send(&p, &wr, &bad), WF_NIC_BAD_LKEY);
	bad = good;
	bad.addr = p.a.memory + PAIR_MEMORY - 99;
	assert_int_equal(try_send(&p, &wr, &bad), WF_NIC_BAD_LKEY);
	bad = good;
	bad.len = wf_nic_caps(p.a.nic)->max_msg + 1;
	assert_int_equal(try_send(&p, &wr, &bad), WF_NIC_LOCAL_LEN);
	pair_recv(&p.b, 2, 0, 99);
	assert_int_equal(try_send(&p, &wr, &good), WF_NIC_REM_LEN);
	/* The receive is still there, and the connection too. */
	good.len = 99;
	assert_int_equal(try_send(&p, &wr, &good), WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.b).wr_id, 2);
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr, &good, 3), -EINVAL);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "", 33), -EINVAL);
	pair_close(&p);
}

static enum wf_nic_status try_rdma(struct pair *p, bool read, uint64_t addr,
				   uint32_t rkey, const struct wf_nic_sge *sge)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, 1);
	struct wf_nic_remote there = { .addr = addr, .rkey = rkey };
	int ret = read ? wf_nic_post_read(p->a.qp, &wr, &there, sge) :
			 wf_nic_post_write(p->a.qp, &wr, &there, sge);

	assert_int_equal(ret, 0);
	return pair_wait(p, &p->a).status;
}

static void test_rdma_errors(void **state)
{
	uint64_t start, end;
	struct wf_nic_mr ro;
	struct wf_nic_sge sge;
	struct pair p;

	(void)state;
	pair_open(&p);
	start = (uintptr_t)p.b.memory;
	end = start + PAIR_MEMORY;
	sge = pair_sge(&p.a, 0, 100000);
	assert_int_equal(wf_nic_mr_reg(p.b.nic, p.b.memory, 200000,
				       WF_NIC_REMOTE_READ, &ro),
			 0);
	for (int read = 0; read < 2; read++) {
		uint32_t rkey = p.b.mr.rkey;

		assert_int_equal(try_rdma(&p, read, end - 99999, rkey, &sge),
				 WF_NIC_REM_ADDR);
		assert_int_equal(try_rdma(&p, read, start - 1, rkey, &sge),
				 WF_NIC_REM_ADDR);
		assert_int_equal(try_rdma(&p, read, UINT64_MAX - 5, rkey, &sge),
				 WF_NIC_REM_ADDR);
		assert_int_equal(
			try_rdma(&p, read, start, rkey ^ 0x70000, &sge),
			WF_NIC_REM_ADDR);
		assert_int_equal(try_rdma(&p, read, start, rkey + 40, &sge),
				 WF_NIC_REM_ADDR);
		assert_int_equal(try_rdma(&p, read, start, ro.rkey, &sge),
				 read ? WF_NIC_OK : WF_NIC_REM_ADDR);
		assert_int_equal(try_rdma(&p, read, start, rkey, &sge),
				 WF_NIC_OK);
	}
	/* A key that was given back. */
	assert_int_equal(wf_nic_mr_dereg(p.b.nic, ro.lkey), 0);
	assert_int_equal(wf_nic_mr_dereg(p.b.nic, ro.lkey), -EINVAL);
	assert_int_equal(try_rdma(&p, true, start, ro.rkey, &sge),
			 WF_NIC_REM_ADDR);
	/* Memory that a read may not land in. */
	assert_int_equal(wf_nic_mr_reg(p.a.nic, p.a.memory, 100000, 0, &ro), 0);
	sge.lkey = ro.lkey;
	assert_int_equal(try_rdma(&p, true, start, p.b.mr.rkey, &sge),
			 WF_NIC_BAD_LKEY);
	assert_int_equal(try_rdma(&p, false, start, p.b.mr.rkey, &sge),
			 WF_NIC_OK);
	pair_close(&p);
}

/* The peer's receive comes late: the message waits, and is delivered once. */
static void test_rnr_waits(void **state)
{
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct pair p;
	uint64_t end;

	(void)state;
	pair_open(&p);
	wr = pair_wr(&p.a, &p.b, 1);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "late", 4), 0);
	for (int i = 0;
	     i < 2000 ||
	     /* Over TCP the receiver keeps it instead of refusing it. */
	     (!strcmp(pair_device, "udp") &&
	      !wf_nic_counter(&wf_nic_counters(p.a.nic)->rnr_received));
	     i++)
		pair_progress(&p);
	/* With more and more patience: for 50 ms a handful of times. */
	end = wf_base_clock_ns() + 50 * WF_NS_PER_MS;
	while (wf_base_clock_ns() < end)
		pair_progress(&p);
	assert_true(wf_nic_counter(&wf_nic_counters(p.a.nic)->rnr_received) <
		    100);
	assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 0);
	pair_recv(&p.b, 3, 0, 64);
	assert_int_equal(pair_wait(&p, &p.b).wr_id, 3);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	pair_close(&p);
}

static void test_rnr_gives_up(void **state)
{
	struct wf_nic_qp_attr attr = { .sq_entries = 4, .rnr_retry = 3 };
	struct wf_nic_qp *qp;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	attr.send_cq = p.a.cq;
	attr.recv_cq = p.a.cq;
	assert_int_equal(wf_nic_qp_create(p.a.nic, &attr, &qp), 0);
	wr = pair_wr(&p.a, &p.b, 1);
	assert_int_equal(wf_nic_post_inline(qp, &wr, "no", 2), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_RNR);
	if (!strcmp(pair_device, "udp"))
		assert_int_equal(
			wf_nic_counter(&wf_nic_counters(p.b.nic)->rnr_sent), 4);
	/* Its place in the sequence is filled: others go on. */
	pair_recv(&p.b, 3, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "yes", 3), 0);
	assert_int_equal(pair_wait(&p, &p.b).len, 3);
	wf_nic_qp_destroy(qp);
	pair_close(&p);
}

static void test_flush(void **state)
{
	struct wf_nic_wc wc[40];
	struct wf_nic_wr wr;
	int sends = 0, recvs = 0, n;
	struct pair p;

	(void)state;
	pair_open(&p);
	wr = pair_wr(&p.a, &p.b, 1);
	for (int i = 0; i < 10; i++) {
		pair_recv(&p.a, 100, 0, 64);
		/* Nobody receives. */
		wr.flags = i == 9 ? WF_NIC_WR_MORE : 0;
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		pair_progress(&p);
	}
	wf_nic_qp_flush(p.a.qp);
	n = wf_nic_cq_poll(p.a.cq, wc, 40);
	for (int i = 0; i < n; i++) {
		assert_int_equal(wc[i].status, WF_NIC_FLUSHED);
		sends += wc[i].wr_id == 1;
		recvs += wc[i].wr_id == 100;
	}
	assert_int_equal(sends, 10);
	assert_int_equal(recvs, 10);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), -ESHUTDOWN);
	/* Packets on their way may arrive; nothing is sent again. */
	for (int i = 0; i < 100; i++)
		pair_progress(&p);
	pair_recv(&p.b, 3, 0, 64);
	for (int i = 0; i < 5000; i++)
		pair_progress(&p);
	if (!strcmp(pair_device, "udp"))
		assert_int_equal(wf_nic_cq_poll(p.b.cq, wc, 40), 0);
	pair_close(&p);
}

/* A bug the EFA provider had: completions of a queue pair that was destroyed
 * were taken for those of the next one with its number. */
static void test_qpn_reuse(void **state)
{
	struct wf_nic_qp_attr attr = { .sq_entries = 16,
				       .rq_entries = 16,
				       .qkey = PAIR_QKEY,
				       .rnr_retry = WF_NIC_RNR_FOREVER };
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct pair p;
	uint16_t old;

	(void)state;
	pair_open(&p);
	attr.send_cq = p.b.cq;
	attr.recv_cq = p.b.cq;
	wr = pair_wr(&p.a, &p.b, 1);
	old = wr.qpn;
	pair_recv(&p.b, 1, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "old", 3), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	/* Received, and not polled. */
	wf_nic_qp_destroy(p.b.qp);
	for (int i = 0; i < 1024; i++) {
		assert_int_equal(wf_nic_qp_create(p.b.nic, &attr, &p.b.qp), 0);
		if ((wf_nic_qp_num(p.b.qp) & 0x3ff) == (old & 0x3ff))
			break;
		wf_nic_qp_destroy(p.b.qp);
	}
	assert_int_equal(wf_nic_qp_num(p.b.qp) & 0x3ff, old & 0x3ff);
	assert_int_not_equal(wf_nic_qp_num(p.b.qp), old);
	pair_recv(&p.b, 2, 0, 64);
	assert_int_equal(wf_nic_cq_poll(p.b.cq, &wc, 1), 0);
	assert_int_equal(
		wf_nic_counter(&wf_nic_counters(p.b.nic)->stale_completions),
		1);
	/* A sender to the old number hears that it is nobody. */
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "old", 3), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_BAD_QPN);
	wr.qpn = wf_nic_qp_num(p.b.qp);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "new", 3), 0);
	assert_int_equal(pair_wait(&p, &p.b).wr_id, 2);
	pair_close(&p);
}

/* MORE holds the doorbell; a full queue, or ringing, does not forget it. */
static void test_more(void **state)
{
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	int posted = 0, done = 0, ret;
	struct pair p;

	(void)state;
	pair_open(&p);
	wr = pair_wr(&p.a, &p.b, 1);
	wr.flags = WF_NIC_WR_MORE;
	for (unsigned i = 0; i < PAIR_QUEUE; i++)
		pair_recv(&p.b, i, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
	for (int i = 0; i < 1000; i++)
		pair_progress(&p);
	assert_int_equal(wf_nic_counter(&wf_nic_counters(p.a.nic)->tx_msgs), 0);
	wf_nic_qp_ring(p.a.qp);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	while ((ret = wf_nic_post_inline(p.a.qp, &wr, "x", 1)) == 0)
		posted++;
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(posted, PAIR_QUEUE);
	while (done < (int)PAIR_QUEUE - 1) {
		pair_progress(&p);
		if (wf_nic_cq_poll(p.a.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			done++;
		}
	}
	pair_close(&p);
}

/* Nobody polls: completions wait, receives are refused, nothing is lost. */
static void test_full_cq(void **state)
{
	enum { COUNT = 200 };
	struct wf_nic_qp_attr attr = { .sq_entries = 256,
				       .rq_entries = 256,
				       .qkey = PAIR_QKEY,
				       .rnr_retry = WF_NIC_RNR_FOREVER };
	int sent = 0, received = 0;
	struct wf_nic_cq *small;
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(wf_nic_cq_create(p.b.nic, 4, &small), 0);
	attr.send_cq = small;
	attr.recv_cq = small;
	wf_nic_qp_destroy(p.b.qp);
	assert_int_equal(wf_nic_qp_create(p.b.nic, &attr, &p.b.qp), 0);
	for (int i = 0; i < COUNT; i++) {
		pair_recv(&p.b, (uint64_t)i, 0, 64);
		wr = pair_wr(&p.a, &p.b, (uint64_t)i);
		assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
		wr = pair_wr(&p.b, &p.a, 1000);
		wr.ah = 999; /* fails at once */
		assert_int_equal(wf_nic_post_inline(p.b.qp, &wr, "x", 1), 0);
	}
	for (int i = 0; i < 3000; i++)
		pair_progress(&p);
	while (sent < COUNT || received < 2 * COUNT) {
		pair_progress(&p);
		sent += wf_nic_cq_poll(p.a.cq, &wc, 1);
		received += wf_nic_cq_poll(small, &wc, 1);
	}
	wf_nic_qp_destroy(p.b.qp);
	p.b.qp = NULL;
	assert_int_equal(wf_nic_cq_destroy(small), 0);
	pair_close(&p);
}

/* An engine above begins with an address, and nothing else. The first queue
 * pair has a number that everybody knows; the receiver, who has no handle for
 * the sender, is told who it was, and answers. */
static void test_first_contact(void **state)
{
	struct wf_nic_qp_attr big = { .sq_entries = UINT32_MAX };
	struct wf_nic_qp *qp;
	struct wf_nic_wc wc;
	struct wf_nic_wr wr = { .wr_id = 1,
				.qkey = PAIR_QKEY,
				.qpn = WF_NIC_QPN_FIRST };
	struct wf_addr from;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(wf_nic_qp_num(p.a.qp), WF_NIC_QPN_FIRST);
	assert_int_equal(wf_nic_qp_num(p.b.qp), WF_NIC_QPN_FIRST);
	assert_int_equal(wf_nic_ah_destroy(p.b.nic, p.b.ah), 0);
	wr.ah = p.a.ah;
	pair_recv(&p.b, 1, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "who?", 4), 0);
	wc = pair_wait(&p, &p.b);
	assert_int_equal(wc.ah, WF_NIC_AH_UNKNOWN);
	assert_true(wf_nic_addr_equal(&wc.from, wf_nic_addr(p.a.nic)));
	assert_int_equal(wf_nic_addr_to_socket(&wc.from, &from), 0);
	assert_true(wf_base_addr_equal(&from, wf_nic_socket(p.a.nic)));
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(wf_nic_ah_create(p.b.nic, &wc.from, &wr.ah), 0);
	wr.qpn = wc.src_qpn;
	pair_recv(&p.a, 1, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.b.qp, &wr, "you", 3), 0);
	assert_int_equal(pair_wait(&p, &p.a).ah, p.a.ah);
	/* Once there is a handle, it is told instead. */
	assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_OK);
	p.b.ah = wr.ah;
	pair_recv(&p.b, 1, 0, 64);
	wr = pair_wr(&p.a, &p.b, 1);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "me", 2), 0);
	assert_int_equal(pair_wait(&p, &p.b).ah, p.b.ah);
	/* A size that no power of two of 32 bits reaches: it once hung. */
	big.send_cq = p.a.cq;
	big.recv_cq = p.a.cq;
	assert_int_equal(wf_nic_qp_create(p.a.nic, &big, &qp), -EINVAL);
	pair_close(&p);
}

/* A NIC may send to itself. */
static void test_self(void **state)
{
	struct wf_nic_wr wr;
	uint16_t ah;
	struct pair p;

	(void)state;
	pair_open(&p);
	assert_int_equal(
		wf_nic_ah_create_socket(p.a.nic, wf_nic_socket(p.a.nic), &ah),
		0);
	wr = pair_wr(&p.a, &p.a, 1);
	wr.ah = ah;
	pair_recv(&p.a, 2, 0, 64);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "me", 2), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	pair_close(&p);
}

static void test_handles(void **state)
{
	struct wf_nic_path path;
	struct wf_addr bad;
	struct pair p;
	uint16_t again;

	(void)state;
	pair_open(&p);
	assert_int_equal(wf_nic_ah_create_socket(
				 p.a.nic, wf_nic_socket(p.b.nic), &again),
			 0);
	assert_int_equal(again, p.a.ah);
	bad = *wf_nic_socket(p.b.nic);
	wf_base_addr_set_port(&bad, 0);
	assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &bad, &again),
			 -EINVAL);
	bad = pair_attr(AF_INET6).addr;
	wf_base_addr_set_port(&bad, 5);
	assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &bad, &again),
			 -EINVAL);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_false(path.up);
	assert_int_equal(path.max_msg, wf_nic_caps(p.a.nic)->max_msg);
	assert_int_equal(wf_nic_ah_destroy(p.a.nic, p.a.ah), 0);
	assert_int_equal(wf_nic_ah_destroy(p.a.nic, p.a.ah), 0);
	assert_int_equal(wf_nic_ah_destroy(p.a.nic, p.a.ah), -EINVAL);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), -EINVAL);
	/* A number is not met again while completions may still tell it. */
	bad = *wf_nic_socket(p.b.nic);
	for (int i = 0; i < 60; i++) {
		assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &bad, &again),
				 0);
		assert_int_not_equal(again, p.a.ah);
		assert_int_equal(wf_nic_ah_destroy(p.a.nic, again), 0);
	}
	for (unsigned i = 0; i < 1000; i++) {
		wf_base_addr_set_port(&bad, (uint16_t)(1 + i));
		assert_int_equal(wf_nic_ah_create_socket(p.a.nic, &bad, &again),
				 0);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline_send),
		cmocka_unit_test(test_send_sizes),
		cmocka_unit_test(test_unequal_links),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_rdma),
		cmocka_unit_test(test_write_with_imm),
		cmocka_unit_test(test_send_errors),
		cmocka_unit_test(test_rdma_errors),
		cmocka_unit_test(test_rnr_waits),
		cmocka_unit_test(test_rnr_gives_up),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_qpn_reuse),
		cmocka_unit_test(test_more),
		cmocka_unit_test(test_full_cq),
		cmocka_unit_test(test_first_contact),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_handles),
	};

	int failed = 0;

	for (unsigned int i = 0; wf_nic_device_name(i); i++) {
		pair_device = wf_nic_device_name(i);
		/* One without sockets has tests of its own: efa/nic_test.c. */
		if (!wf_nic_device_socket(pair_device))
			continue;
		print_message("device %s\n", pair_device);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
