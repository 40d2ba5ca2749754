/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of a kernel that does not always do what it is asked: sends that
 * fail for every reason it has, segments it will not make, sequence numbers at
 * their end. Every message arrives once all the same.
 */
#include "nic/pair_test.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"

/* The calls below answer this, in turn with doing what they should. */
static int fail_with;
static unsigned fail_every; /* 0: never */
static bool fail_segments;  /* only those, and always */
static unsigned calls;
static unsigned failed;

static bool fails(const struct msghdr *msg)
{
	bool now = fail_segments ? msg->msg_controllen > 0 :
				   fail_every && ++calls % fail_every == 0;

	failed += now;
	if (now)
		errno = fail_with;
	return now;
}

/* In the place of the C library's. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fails(msg) ? -1 : syscall(SYS_sendmsg, fd, msg, flags);
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
	return fails(&msgs[0].msg_hdr) ?
		       -1 :
		       (int)syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

static void expect_nothing_more(struct pair *p)
{
	struct wf_nic_wc wc;

	for (int i = 0; i < 200; i++)
		pair_progress(p);
	assert_int_equal(wf_nic_cq_poll(p->a.cq, &wc, 1), 0);
	assert_int_equal(wf_nic_cq_poll(p->b.cq, &wc, 1), 0);
}

/* @count messages, each with its number in it. */
static void exchange(struct pair *p, unsigned count, uint32_t len)
{
	uint8_t seen[512] = { 0 };
	unsigned sent = 0, done = 0, got = 0;
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	assert_true(count <= sizeof(seen));
	for (unsigned i = 0; i < 64; i++)
		pair_recv(&p->b, i, i * 8192, 8192);
	while (done < count || got < count) {
		struct wf_nic_wc wc;

		if (sent < count && sent - done < 64) {
			struct wf_nic_wr wr = pair_wr(&p->a, &p->b, sent);
			size_t off = (size_t)sent * 8192;
			struct wf_nic_sge sge = pair_sge(&p->a, off, len);

			memcpy(p->a.memory + off, &sent, sizeof(sent));
			wr.flags = sent % 8 == 7 || sent + 1 == count ?
					   0 :
					   WF_NIC_WR_MORE;
			assert_int_equal(
				wf_nic_post_send(p->a.qp, &wr, &sge, 1), 0);
			sent++;
		}
		pair_progress(p);
		if (wf_nic_cq_poll(p->a.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			done++;
		}
		if (wf_nic_cq_poll(p->b.cq, &wc, 1)) {
			unsigned number;

			assert_int_equal(wc.status, WF_NIC_OK);
			assert_int_equal(wc.len, len);
			memcpy(&number, p->b.memory + wc.wr_id * 8192,
			       sizeof(number));
			assert_true(number < count);
			assert_int_equal(seen[number]++, 0);
			got++;
			if (got + 64 <= count)
				pair_recv(&p->b, wc.wr_id, wc.wr_id * 8192,
					  8192);
		}
		assert_true(wf_base_clock_ns() < end);
	}
}

static void test_send_fails(void **state)
{
	const int reasons[] = { EAGAIN, ENOBUFS,     ENOMEM,	  EINTR,
				EPERM,	ENETUNREACH, ECONNREFUSED };
	struct pair p;

	(void)state;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		pair_open(&p);
		fail_with = reasons[i];
		fail_every = 3;
		failed = 0;
		exchange(&p, 200, 3000);
		fail_every = 0;
		assert_true(failed > 5);
		expect_nothing_more(&p);
		assert_int_equal(
			wf_udp_dev_of(p.a.nic)->engine.peers[0]->refused, 0);
		pair_close(&p);
	}
}

/* Not for a while: nothing is sent, nothing is lost, and a sleeper does not
 * sleep for ever. */
static void test_send_fails_for_long(void **state)
{
	struct wf_nic_wr wr;
	uint64_t until;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	fail_with = ENOBUFS;
	fail_every = 1;
	wr = pair_wr(&p.a, &p.b, 1);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
	for (int i = 0; i < 1000; i++)
		pair_progress(&p);
	if (!wf_nic_wait_begin(p.a.nic, p.a.cq, &until))
		assert_true(until < wf_base_clock_ns() + WF_NS_PER_S);
	fail_every = 0;
	pair_recv(&p.b, 1, 0, 64);
	assert_int_equal(pair_wait(&p, &p.b).len, 1);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	expect_nothing_more(&p);
	pair_close(&p);
}

/* No segmentation after all (EIO: no checksums), or segments that the path has
 * become too narrow for: one by one from then on. */
static void test_no_segments(void **state)
{
	const int reasons[] = { EIO, EINVAL };
	struct pair p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pair_open(&p);
		hello(&p);
		if (!wf_udp_dev_of(p.a.nic)->sock.gso)
			skip();
		fail_with = reasons[i];
		fail_segments = true;
		failed = 0;
		exchange(&p, 100, 3000);
		assert_true(failed > 0 && failed < 5);
		assert_true(
			wf_udp_dev_of(p.a.nic)->engine.peers[0]->out.no_gso);
		fail_segments = false;
		pair_close(&p);
	}
}

/* Review: one EINVAL for somebody unknown ended segmentation for all. It ends
 * for nobody but the peer that it was about. */
static void test_segments_elsewhere(void **state)
{
	struct wf_udp_dev *dev;
	struct pair p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pair_open(&p);
		hello(&p);
		dev = wf_udp_dev_of(p.a.nic);
		if (!dev->sock.gso)
			skip();
		dev->sock.failed = true;
		dev->sock.failure.too_large = i == 0;
		dev->sock.failure.no_segments = i == 1;
		dev->sock.failure.to = *wf_nic_socket(p.b.nic);
		wf_base_addr_set_port(&dev->sock.failure.to, 9);
		wf_nic_progress(p.a.nic);
		assert_true(dev->sock.gso && !dev->sock.failed);
		assert_false(dev->engine.peers[0]->out.no_gso);
		pair_close(&p);
	}
}

/* The path shrinks: segments are made smaller, and segmentation stays. */
static void test_path_shrinks(void **state)
{
	struct wf_nic_remote there;
	struct wf_nic_sge sge;
	struct wf_nic_path path;
	struct wf_udp_dev *dev;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	dev = wf_udp_dev_of(p.a.nic);
	if (!dev->sock.gso)
		skip();
	/* As if the kernel had learned of it. */
	dev->sock.mtu_most = 1500;
	fail_with = EINVAL;
	fail_segments = true;
	fill(p.a.memory, 1u << 20, 5);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					.rkey = p.b.mr.rkey };
	sge = pair_sge(&p.a, 0, 1u << 20);
	wr = pair_wr(&p.a, &p.b, 1);
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge), 0);
	while (dev->engine.peers[0]->out.seg > 1500)
		pair_progress(&p);
	/* A search for larger packets, after a second, would find them. */
	dev->engine.peers[0]->out.size_at = WF_UDP_NEVER;
	fail_segments = false;
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	assert_true(filled(p.b.memory, 1u << 20, 5));
	assert_true(dev->sock.gso);
	assert_int_equal(wf_nic_ah_query(p.a.nic, p.a.ah, &path), 0);
	assert_int_equal(path.max_msg, 1500 - 28 - 64);
	pair_close(&p);
}

/* Sequence numbers go on after their end as if there were none. */
static void test_sequence_wraps(void **state)
{
	struct wf_udp_peer *a, *b;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	a = wf_udp_dev_of(p.a.nic)->engine.peers[0];
	b = wf_udp_dev_of(p.b.nic)->engine.peers[0];
	for (int i = 0; i < 100; i++)
		pair_progress(&p);
	assert_int_equal(a->out.una, a->out.next);
	a->out.una = a->out.next = UINT32_MAX - 100;
	b->in.base = UINT32_MAX - 100;
	b->in.highest = b->in.base - 1;
	memset(b->in.here, 0, sizeof(b->in.here));
	/* With some of them lost on the way across. */
	fail_with = EPERM;
	fail_every = 7;
	exchange(&p, 300, 100);
	fail_every = 0;
	expect_nothing_more(&p);
	assert_true(b->in.base > 100 && b->in.base < 1000);
	pair_close(&p);
}

/* Immediate data never comes before the bytes that it belongs to, whichever of
 * them were lost. */
static void test_imm_is_last(void **state)
{
	const uint32_t len = 1u << 20;
	struct wf_nic_remote there;
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					.rkey = p.b.mr.rkey };
	sge = pair_sge(&p.a, 0, len);
	fail_with = EPERM;
	for (unsigned i = 0; i < 10; i++) {
		pair_recv(&p.b, 1, PAIR_MEMORY - 64, 64);
		fill(p.a.memory, len, i);
		wr = pair_wr(&p.a, &p.b, 1);
		wr.flags = WF_NIC_WR_IMM;
		fail_every = 3 + i % 3;
		assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge),
				 0);
		assert_int_equal(pair_wait(&p, &p.b).len, len);
		assert_true(filled(p.b.memory, len, i));
		assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	}
	fail_every = 0;
	pair_close(&p);
}

/* Review: a path that was seen to reorder once was taken for one for ever, and
 * every loss waited for a quarter of a round trip longer. */
static void test_reordering_forgotten(void **state)
{
	struct wf_udp_out *out;
	struct pair p;

	(void)state;
	pair_open(&p);
	hello(&p);
	out = &wf_udp_dev_of(p.a.nic)->engine.peers[0]->out;
	out->reorders = true;
	out->reo_mult = 8;
	fail_with = EPERM;
	fail_every = 5;
	for (int i = 0; i < 40 && out->reorders; i++)
		exchange(&p, 200, 3000);
	fail_every = 0;
	assert_false(out->reorders);
	assert_true(out->reo_mult < 8);
	pair_close(&p);
}

/* However wide the path seems, no more packets are under way than either side
 * keeps book of. */
static void test_window(void **state)
{
	enum { COUNT = 4096 };
	struct wf_nic_qp_attr attr = { .sq_entries = COUNT,
				       .rq_entries = COUNT,
				       .qkey = PAIR_QKEY,
				       .rnr_retry = WF_NIC_RNR_FOREVER };
	struct wf_nic_cq *cq[2];
	struct wf_nic_qp *qp[2];
	struct wf_udp_out *out;
	struct wf_nic_wc wc;
	struct wf_nic_wr wr;
	struct pair p;
	int sent = 0, got = 0;

	(void)state;
	pair_open(&p);
	hello(&p);
	out = &wf_udp_dev_of(p.a.nic)->engine.peers[0]->out;
	for (int i = 0; i < 2; i++) {
		struct side *s = i ? &p.b : &p.a;

		assert_int_equal(wf_nic_cq_create(s->nic, 2 * COUNT, &cq[i]),
				 0);
		attr.send_cq = attr.recv_cq = cq[i];
		assert_int_equal(wf_nic_qp_create(s->nic, &attr, &qp[i]), 0);
	}
	out->cc.cwnd = out->rwnd = 64u << 20;
	wr = pair_wr(&p.a, &p.b, 1);
	wr.qpn = wf_nic_qp_num(qp[1]);
	for (int i = 0; i < COUNT; i++) {
		struct wf_nic_sge sge = pair_sge(&p.b, 0, 64);

		assert_int_equal(wf_nic_post_recv(qp[1], 1, &sge, false), 0);
		assert_int_equal(wf_nic_post_inline(qp[0], &wr, "x", 1), 0);
		assert_true(out->next - out->una <= WF_UDP_WINDOW);
	}
	for (int i = 0; i < 200; i++) {
		wf_nic_progress(p.a.nic);
		assert_true(out->next - out->una <= WF_UDP_WINDOW);
	}
	assert_int_equal(out->next - out->una, WF_UDP_WINDOW);
	while (sent < COUNT || got < COUNT) {
		pair_progress(&p);
		sent += wf_nic_cq_poll(cq[0], &wc, 1);
		got += wf_nic_cq_poll(cq[1], &wc, 1);
	}
	for (int i = 0; i < 2; i++) {
		wf_nic_qp_destroy(qp[i]);
		assert_int_equal(wf_nic_cq_destroy(cq[i]), 0);
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_fails),
		cmocka_unit_test(test_send_fails_for_long),
		cmocka_unit_test(test_no_segments),
		cmocka_unit_test(test_segments_elsewhere),
		cmocka_unit_test(test_path_shrinks),
		cmocka_unit_test(test_sequence_wraps),
		cmocka_unit_test(test_imm_is_last),
		cmocka_unit_test(test_reordering_forgotten),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
