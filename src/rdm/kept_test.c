/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of sends that complete before the peer has acknowledged them: their
 * buffers may be written at once, connections break at every byte of them, peers
 * end; and which sends do not complete so.
 *
 * send() and sendmsg() of this program can have a connection end in the middle of
 * a write of which the kernel has said that it took all.
 */
#include "rdm/net_test.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "nic/ops.h"
#include "nic/tcp/dev.h"
#include "rdm/pkt.h"
#include "rdm/run.h"
#include "wire/packet.h"

#define LONGEST (16u << 10)

static uint8_t from[2][LONGEST + 1], into[2][LONGEST + 1];

/* -- connections that end ---------------------------------------------------- */

/* The next write of @least bytes or more by this thread, not by the attendant, ends
 * after @at bytes. With @says the connection stays, and the kernel says so, or an
 * error. */
static _Thread_local struct {
	bool armed;
	bool says;
	int err;
	size_t least;
	size_t at;
} cut;

static ssize_t write_all(int fd, const struct msghdr *head, int flags)
{
	size_t bytes = 0, left = cut.at;
	struct msghdr some = *head;
	struct iovec iov[8];

	for (size_t i = 0; i < head->msg_iovlen; i++)
		bytes += head->msg_iov[i].iov_len;
	if (!cut.armed || bytes < cut.least || head->msg_iovlen > 8)
		return syscall(SYS_sendmsg, fd, head, flags);
	cut.armed = false;
	some.msg_iov = iov;
	for (size_t i = 0; i < head->msg_iovlen; i++) {
		iov[i] = head->msg_iov[i];
		if (iov[i].iov_len > left)
			iov[i].iov_len = left;
		left -= iov[i].iov_len;
	}
	if (cut.err) {
		errno = cut.err;
		return -1;
	}
	if (cut.at)
		assert_int_equal(syscall(SYS_sendmsg, fd, &some, flags),
				 cut.at);
	if (cut.says)
		return (ssize_t)cut.at;
	shutdown(fd, SHUT_RDWR);
	return (ssize_t)bytes;
}

ssize_t sendmsg(int fd, const struct msghdr *head, int flags)
{
	return write_all(fd, head, flags);
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = { (void *)(uintptr_t)buf, len };

	return write_all(fd,
			 &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 },
			 flags);
}

/* -- two nodes --------------------------------------------------------------- */

static struct net *begin(size_t tx_size)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net;

	net_tx_size = tx_size;
	attr.device = "tcp";
	attr.medium_advised = true;
	attr.read_advised = true;
	net = net_open(&attr);
	net_greet(net);
	AWAIT(net, !net->nodes[0].ep.outstanding);
	return net;
}

static void end(struct net *net)
{
	net_idle(net);
	net_close(net);
}

static struct wf_tx kept(void *buf, size_t len, uint64_t tag)
{
	struct wf_tx req = req_send(buf, len, tag);

	req.transmit = false;
	return req;
}

/* Its completion is there when the call returns. */
static void send_one(struct net *net, const struct wf_tx *req)
{
	struct got got;

	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, req), 0);
	assert_true(pop(&net->nodes[0].txq, &got));
	assert_int_equal(got.err, 0);
	assert_ptr_equal(got.context, req->context);
	assert_int_equal(got.flags, req->comp_flags);
}

static void take_one(struct net *net, uint8_t *buf, uint64_t tag, size_t len,
		     uint32_t seed)
{
	struct got got = await(net, &net->nodes[1].rxcq);

	assert_int_equal(got.err, 0);
	assert_ptr_equal(got.context, buf);
	assert_int_equal(got.tag, tag);
	assert_int_equal(got.len, len);
	assert_true(filled(buf, len, seed));
}

/* -- tests ------------------------------------------------------------------- */

/* The user writes to the buffer as soon as it has the completion; with a receive
 * and without, from one piece of memory and from two. */
static void test_rewritten(void **state)
{
	struct net *net = begin(200);
	struct node *to = &net->nodes[1];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		size_t len = i % 5 ? i * 67 % (LONGEST + 1) : LONGEST;
		struct wf_tx req = kept(from[0], len, i);

		if (i % 3 == 1 && len) {
			req.iov_count = 2;
			req.iov[0].iov_len = len / 3;
			req.iov[1] = (struct iovec){ from[0] + len / 3,
						     len - len / 3 };
		}
		req.inject = i % 7 == 0 && len <= WF_RDM_RUN_MAX;
		if (i % 2)
			node_recv_buf(to, i, into[0], LONGEST);
		fill(from[0], len, i);
		send_one(net, &req);
		memset(from[0], 0xdd, sizeof(from[0]));
		if (!(i % 2))
			node_recv_buf(to, i, into[0], LONGEST);
		take_one(net, into[0], i, len, i);
		AWAIT(net, !net->nodes[0].ep.outstanding);
	}
	end(net);
}

/* A message of @len bytes completes, and the connection ends after @at bytes of it.
 * Another one follows, which may have to wait. */
static void cut_one(struct net *net, size_t len, size_t at, uint32_t seed)
{
	struct node *sender = &net->nodes[0], *to = &net->nodes[1];
	struct wf_tx req[2];
	struct got got;
	bool done;

	for (uint32_t i = 0; i < 2; i++) {
		req[i] = kept(from[i], len, seed + i);
		fill(from[i], len, seed + i);
		if (seed % 2)
			node_recv_buf(to, seed + i, into[i], LONGEST);
	}
	cut.at = at;
	cut.least = len;
	cut.armed = true;
	send_one(net, &req[0]);
	memset(from[0], 0xdd, sizeof(from[0]));
	assert_false(cut.armed);
	assert_int_equal(wf_rdm_ep_submit(&sender->ep, 1, &req[1]), 0);
	done = pop(&sender->txq, &got);
	if (done)
		memset(from[1], 0xdd, sizeof(from[1]));
	for (uint32_t i = 0; i < 2; i++) {
		if (!(seed % 2))
			node_recv_buf(to, seed + i, into[i], LONGEST);
		take_one(net, into[i], seed + i, len, seed + i);
	}
	if (!done)
		got = await(net, &sender->txq);
	assert_int_equal(got.err, 0);
	assert_ptr_equal(got.context, from[1]);
	AWAIT(net, !sender->ep.outstanding);
	/* Once, and nobody was told of a failure. */
	assert_int_equal(to->ep.unexpected, 0);
	assert_int_equal(wf_op_compq_count(&sender->txq), 0);
	assert_int_equal(wf_op_compq_count(&to->rxcq), 0);
}

static void test_cut_everywhere(void **state)
{
	static const size_t lens[] = { 200, 3000, LONGEST };
	struct net *net = begin(200);
	uint32_t seed = 1000;

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t all = lens[i] + sizeof(struct wf_tcp_head) +
			     WF_WIRE_EAGER_HEADER;
		size_t step = lens[i] / 150;

		for (size_t at = 0; at <= all; at += step, seed += 3)
			cut_one(net, lens[i], at, seed);
	}
	assert_true(wf_nic_counter(&wf_nic_counters(net->nodes[0].ep.nic)
					    ->retransmits) > 0);
	end(net);
}

/* The kernel has no room for all of a message, or for nothing of it: the program
 * might end at its completion, and the rest of it is only in the program. */
static void test_not_all_written(void **state)
{
	static const size_t at[] = { 1, 40, 3000, LONGEST };
	struct net *net = begin(200);
	struct node *sender = &net->nodes[0], *to = &net->nodes[1];

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		struct wf_tx req = kept(from[0], LONGEST, i);
		struct got got;

		fill(from[0], LONGEST, i);
		node_recv_buf(to, i, into[0], LONGEST);
		/* Nothing may be before it: it would be queued. */
		AWAIT(net, !sender->ep.outstanding);
		cut.says = true;
		cut.err = i < 4 ? 0 : EAGAIN;
		cut.at = i < 4 ? at[i] : 0;
		cut.least = LONGEST;
		cut.armed = true;
		assert_int_equal(wf_rdm_ep_submit(&sender->ep, 1, &req), 0);
		assert_false(cut.armed);
		assert_false(pop(&sender->txq, &got));
		take_one(net, into[0], i, LONGEST, i);
		got = await(net, &sender->txq);
		assert_int_equal(got.err, 0);
		assert_ptr_equal(got.context, req.context);
	}
	cut.says = false;
	cut.err = 0;
	end(net);
}

/* While so many are under way that the program does not wait for one, and where
 * the copies have no room: they complete when the peer has them. */
static void fill_up(size_t len, uint32_t count, uint32_t most_done,
		    uint32_t most_runs)
{
	struct net *net = begin(count);
	struct node *sender = &net->nodes[0], *to = &net->nodes[1];
	uint32_t done = 0;
	struct got got;

	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	fill(from[0], len, 5);
	for (uint32_t i = 0; i < count; i++) {
		struct wf_tx req = kept(from[0], len, i);

		assert_int_equal(wf_rdm_ep_submit(&sender->ep, 1, &req), 0);
		while (pop(&sender->txq, &got))
			done++;
		assert_true(sender->ep.runs.in_use <= most_runs);
	}
	assert_true(done > 0);
	assert_true(done <= most_done);
	for (uint32_t i = 0; i < count; i++) {
		node_recv_buf(to, i, into[0], LONGEST);
		take_one(net, into[0], i, len, 5);
	}
	while (done < count) {
		assert_int_equal(await(net, &sender->txq).err, 0);
		done++;
	}
	end(net);
}

static void test_bounds(void **state)
{
	(void)state;
	fill_up(LONGEST, 100, WF_RDM_KEPT_MOST, WF_RDM_KEPT_MOST);
	fill_up(WF_RDM_RUN_MAX + 1, 100, WF_RDM_KEPT_MOST, WF_RDM_KEPT_MOST);
	fill_up(64, 100, WF_RDM_KEPT_MOST, WF_RDM_KEPT_MOST);
}

/* These say more than that the buffer may be used again, or cannot be taken
 * back; one that another is to follow has not been written yet. */
static void test_levels(void **state)
{
	struct net *net = begin(200);
	struct node *sender = &net->nodes[0], *to = &net->nodes[1];
	struct wf_cntr cntr;

	(void)state;
	memset(&cntr, 0, sizeof(cntr));
	for (uint32_t i = 0; i < 40; i++) {
		size_t len = i < 20 ? 100 : LONGEST;
		struct wf_tx req = kept(from[0], len, i);
		struct got got;

		req.transmit = i % 5 == 0;
		req.delivery = i % 5 == 1;
		req.cntr = i % 5 == 2 ? &cntr : NULL;
		req.fence = i % 5 == 3;
		req.more = i % 5 == 4;
		fill(from[0], len, i);
		assert_int_equal(wf_rdm_ep_submit(&sender->ep, 1, &req), 0);
		assert_false(pop(&sender->txq, &got));
		node_recv_buf(to, i, into[0], LONGEST);
		take_one(net, into[0], i, len, i);
		assert_int_equal(await(net, &sender->txq).err, 0);
		AWAIT(net, !sender->ep.outstanding);
	}
	assert_int_equal(atomic_load(&cntr.value), 8);
	end(net);
}

/* As the kernel does when a process is killed: the messages that it has not
 * read are gone. */
static void kill_sockets(struct node *n)
{
	struct wf_list *head = &wf_tcp_dev_of(n->ep.nic)->conns, *pos, *tmp;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_true(null >= 0);
	wf_list_for_each (pos, tmp, head)
		assert_true(dup2(null,
				 wf_container_of(pos, struct wf_tcp_conn, link)
					 ->fd) >= 0);
	close(null);
}

/* The peer is killed, and takes no more: each message that it has not acknowledged is
 * reported as an injected one is, without a context that its user may have freed.
 * One that has not completed has its own. */
static void test_peer_killed(void **state)
{
	enum { COUNT = 6 };
	struct net *net = begin(200);
	struct node *sender = &net->nodes[0], *to = &net->nodes[1];
	struct wf_tx last = kept(from[1], 64, COUNT);
	uint32_t failed = 0, first = 0;
	uint64_t taken;
	struct got got;

	(void)state;
	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	taken = stat_of(to, WF_RDM_STAT_received);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = kept(from[0], 64, i);

		req.has_data = true;
		req.data = 7 * i;
		send_one(net, &req);
		while (i < 3 && stat_of(to, WF_RDM_STAT_received) <= taken + i)
			wf_core_progress(&to->core);
	}
	last.more = true;
	last.has_data = true;
	last.data = 7 * COUNT;
	assert_int_equal(wf_rdm_ep_submit(&sender->ep, 1, &last), 0);
	assert_false(pop(&sender->txq, &got));
	kill_sockets(to);
	node_close(to);
	AWAIT(net, !sender->ep.outstanding);
	while (pop(&sender->txq, &got)) {
		if (!failed++)
			first = (uint32_t)got.tag;
		assert_int_not_equal(got.err, 0);
		if (got.context) {
			assert_ptr_equal(got.context, from[1]);
			continue;
		}
		assert_int_equal(got.tag, first + failed - 1);
		assert_int_equal(got.data, 7 * got.tag);
	}
	/* The messages that it took are there, or are not known to be. */
	assert_true(failed >= COUNT + 1 - 3);
	assert_int_equal(first + failed, COUNT + 1);
	assert_ptr_equal(got.context, from[1]);
	end(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_cut_everywhere),
		cmocka_unit_test(test_not_all_written),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_peer_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
