/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests connections of a device to itself: one of the two ends, the mirror, cannot
 * connect.
 */
#include "nic/pair_test.h"

#include <sys/socket.h>

#include "nic/tcp/dev.h"

static struct wf_nic_wc side_wait(struct side *s)
{
	struct pair alone = { .a = *s, .b = *s };

	return pair_wait(&alone, s);
}

static void cut_bulk_of_mirror(struct side *s)
{
	struct wf_tcp_peer *mirror = wf_tcp_dev_of(s->nic)->mirror;
	struct wf_tcp_conn *conn = mirror->chans[WF_TCP_BULK].conn;

	if (conn)
		shutdown(conn->fd, SHUT_RDWR);
}

/* Our own connections are cut while the end that cannot connect has data for the
 * other one: the other one connects again. The reads waited for ever. */
static void test_cut_reads_of_self(void **state)
{
	const uint32_t len = 1u << 20;
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct wf_nic_remote there = { 0 };
	struct side s = { 0 };

	(void)state;
	side_open(&s, &attr);
	assert_int_equal(
		wf_nic_ah_create_socket(s.nic, wf_nic_socket(s.nic), &s.ah), 0);
	there.addr = (uintptr_t)s.memory;
	there.rkey = s.mr.rkey;
	for (uint32_t i = 0; i < 40; i++) {
		struct wf_nic_sge sge = pair_sge(&s, len, len);
		struct wf_nic_wr wr = pair_wr(&s, &s, i);

		fill(s.memory, len, i);
		/* The end that can connect opens the connection for bulk. */
		assert_int_equal(wf_nic_post_write(s.qp, &wr, &there, &sge), 0);
		assert_int_equal(side_wait(&s).status, WF_NIC_OK);
		fill(s.memory, len, i);
		for (int reads = 0; reads < 4; reads++)
			assert_int_equal(
				wf_nic_post_read(s.qp, &wr, &there, &sge), 0);
		for (uint32_t j = 0; j < i; j++)
			wf_nic_progress(s.nic);
		cut_bulk_of_mirror(&s);
		for (int reads = 0; reads < 4; reads++)
			assert_int_equal(side_wait(&s).status, WF_NIC_OK);
		assert_true(filled(s.memory + len, len, i));
	}
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_reads_of_self),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
