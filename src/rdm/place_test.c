/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of messages that the device receives where they belong: all lengths
 * and kinds of receives, and what happens to the memory when a message does not
 * come to its end.
 */
#include "rdm/net_test.h"

#include <sys/mman.h>

#include "nic/tcp/dev.h"
#include "rdm/place.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"

#define LONGEST (512u << 10) /* that is not read by the receiver */

static uint8_t from[LONGEST + 64], into[LONGEST + 64];

static struct wf_rdm_ep_attr attr_of(void)
{
	struct wf_rdm_ep_attr attr = net_attr();

	attr.device = "tcp";
	attr.medium_advised = true;
	attr.read_advised = true;
	return attr;
}

static struct net *begin(void)
{
	const struct wf_rdm_ep_attr attr = attr_of();
	struct net *net = net_open(&attr);

	net_greet(net);
	return net;
}

static void end(struct net *net)
{
	net_idle(net);
	net_close(net);
}

/* Receives a message of @len bytes in @pieces pieces. */
static void receive(struct node *n, size_t len, uint32_t pieces, bool tagged)
{
	struct iovec iov[3] = { { into, len } };

	if (pieces == 3) {
		iov[0].iov_len = len / 3;
		iov[1] = (struct iovec){ into + len / 3, 0 };
		iov[2] = (struct iovec){ into + len / 3, len - len / 3 };
	}
	node_recv(n, tagged, tagged ? 77 : 0, iov, pieces, into);
}

static void carry(struct net *net, size_t len, unsigned int how)
{
	bool posted = how & 1, tagged = how & 2, delivery = how & 4;
	struct wf_tx req = req_send(from, len, tagged ? 77 : 0);
	struct node *to = &net->nodes[1];
	struct got got;

	req.tagged = tagged;
	req.delivery = delivery;
	req.has_data = true;
	req.data = how;
	fill(from, len, (uint32_t)len);
	memset(into, 0xee, len + 1);
	if (posted)
		receive(to, len, how & 8 ? 3 : 1, tagged);
	net_submit(net, 0, 1, &req);
	if (!posted) {
		AWAIT(net, to->ep.unexpected);
		receive(to, len, how & 8 ? 3 : 1, tagged);
	}
	got = await(net, &to->rxcq);
	assert_int_equal(got.err, 0);
	assert_int_equal(got.len, len);
	assert_int_equal(got.data, how);
	assert_int_equal(got.src, 0);
	assert_true(filled(into, len, (uint32_t)len));
	assert_int_equal(into[len], 0xee);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
}

static void test_lengths(void **state)
{
	static const size_t lens[] = { 16384, 16940,  17000,  65536,
				       65537, 100001, LONGEST };
	struct net *net = begin();
	uint64_t before = stat_of(&net->nodes[0], WF_RDM_STAT_sent_eager);
	unsigned int count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (unsigned int how = 0; how < 16; how++, count++)
			carry(net, lens[i], how);
	}
	/* One packet each. */
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_sent_eager) -
				 before,
			 count);
	carry(net, LONGEST + 1, 1);
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_sent_longread), 1);
	end(net);
}

/* Several under way at once, of all lengths, arrive in their order. */
static void test_order(void **state)
{
	enum { COUNT = 64 };
	struct net *net = begin();
	struct node *to = &net->nodes[1];

	(void)state;
	fill(from, sizeof(from), 9);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = req_send(from, 1 + i * 4000, 5);

		net_submit(net, 0, 1, &req);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		struct got got;

		memset(into, 0xee, sizeof(into));
		node_recv_buf(to, 5, into, LONGEST);
		got = await(net, &to->rxcq);
		assert_int_equal(got.err, 0);
		assert_int_equal(got.len, 1 + i * 4000);
		assert_true(filled(into, got.len, 9));
		assert_int_equal(into[got.len], 0xee);
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	}
	end(net);
}

static void test_truncated(void **state)
{
	struct net *net = begin();
	struct wf_tx req = req_send(from, 100000, 77);
	struct got got;

	(void)state;
	fill(from, 100000, 3);
	for (int posted = 0; posted < 2; posted++) {
		memset(into, 0xee, 50000);
		if (posted)
			receive(&net->nodes[1], 40000, 1, true);
		net_submit(net, 0, 1, &req);
		if (!posted) {
			AWAIT(net, net->nodes[1].ep.unexpected);
			receive(&net->nodes[1], 40000, 1, true);
		}
		got = await(net, &net->nodes[1].rxcq);
		assert_int_equal(got.err, FI_ETRUNC);
		assert_int_equal(got.olen, 60000);
		assert_true(filled(into, 40000, 3));
		assert_int_equal(into[40000], 0xee);
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	}
	end(net);
}

/* The socket of node 0 takes little at a time. Nobody works in the place of the
 * nodes: else a message could be over before node 1 has looked, or would be told
 * to node 1 when all of it is here. */
static void slow_down(struct net *net)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(net->nodes[0].ep.nic);
	struct wf_tcp_peer *peer =
		wf_tcp_peer_find(dev, wf_nic_socket(net->nodes[1].ep.nic));
	int room = 4096;

	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	assert_int_equal(setsockopt(peer->chans[WF_TCP_SMALL].conn->fd,
				    SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)),
			 0);
}

static struct wf_rdm_rx *first_rx(struct node *n)
{
	const struct wf_list *rxs =
		&wf_rdm_peer_find(&n->ep, &n->names[0])->rxs;

	return wf_base_list_empty(rxs) ?
		       NULL :
		       wf_container_of(rxs->next, struct wf_rdm_rx, link);
}

/* Begins a message the rest of which node 0 has not sent. */
static void begin_slow(struct net *net)
{
	struct wf_tx req = req_send(from, LONGEST, 77);
	struct node *to = &net->nodes[1];
	uint64_t limit = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;

	fill(from, LONGEST, 4);
	memset(into, 0xee, LONGEST);
	slow_down(net);
	net_submit(net, 0, 1, &req);
	while (!first_rx(to) || !first_rx(to)->placing) {
		wf_core_progress(&to->core);
		assert_true(wf_base_clock_ns() < limit);
	}
}

/* It finds its receive while the device fills memory of ours. */
static void test_meanwhile(void **state)
{
	struct net *net = begin();
	struct got got;

	(void)state;
	begin_slow(net);
	receive(&net->nodes[1], LONGEST, 1, true);
	got = await(net, &net->nodes[1].rxcq);
	assert_int_equal(got.err, 0);
	assert_int_equal(got.len, LONGEST);
	assert_true(filled(into, LONGEST, 4));
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	end(net);
}

/* The connection breaks: it comes again, to the same receive. */
static void test_again(void **state)
{
	struct net *net = begin();
	struct wf_tcp_peer *peer;
	struct got got;

	(void)state;
	receive(&net->nodes[1], LONGEST, 1, true);
	begin_slow(net);
	peer = wf_tcp_peer_find(wf_tcp_dev_of(net->nodes[0].ep.nic),
				wf_nic_socket(net->nodes[1].ep.nic));
	shutdown(peer->chans[WF_TCP_SMALL].conn->fd, SHUT_RDWR);
	got = await(net, &net->nodes[1].rxcq);
	assert_int_equal(got.err, 0);
	assert_true(filled(into, LONGEST, 4));
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	end(net);
}

/* The sender ends in the middle: the receive fails, and its memory is the
 * application's. */
static void test_lost(void **state)
{
	struct net *net = begin();
	struct node *to = &net->nodes[1];

	(void)state;
	receive(to, LONGEST, 1, true);
	begin_slow(net);
	node_close(&net->nodes[0]);
	close(net->nodes[0].fd);
	net->nodes[0].fd = -1;
	/* To whom it is of interest finds out when he sends. */
	if (wf_op_compq_count(&to->rxcq) == 0) {
		struct wf_tx req = req_send(from, 1, 1);

		net_submit(net, 1, 0, &req);
		assert_int_not_equal(await(net, &to->txq).err, 0);
	}
	assert_int_not_equal(await(net, &to->rxcq).err, 0);
	memset(into, 0xdd, LONGEST);
	net_turn(net, 1000);
	for (size_t i = 0; i < LONGEST; i++)
		assert_int_equal(into[i], 0xdd);
	net_close(net);
}

/* The receive fails while the sender goes on: its memory is not touched any
 * more, and what follows arrives. */
static void test_failed(void **state)
{
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	struct wf_tx req = req_send(from, 9, 78);
	uint8_t next[9];

	(void)state;
	receive(to, LONGEST, 1, true);
	begin_slow(net);
	wf_rdm_rx_fail(first_rx(to), FI_EIO, false);
	assert_int_equal(await(net, &to->rxcq).err, FI_EIO);
	memset(into, 0xdd, LONGEST);
	node_recv_buf(to, 78, next, sizeof(next));
	net_submit(net, 0, 1, &req);
	assert_int_equal(await(net, &to->rxcq).err, 0);
	assert_true(filled(next, sizeof(next), 4));
	for (size_t i = 0; i < LONGEST; i++)
		assert_int_equal(into[i], 0xdd);
	for (int i = 0; i < 2; i++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	end(net);
}

/* The receiver ends in the middle, with a receive and without. */
static void test_closed(void **state)
{
	(void)state;
	for (int posted = 0; posted < 2; posted++) {
		struct net *net = begin();

		if (posted)
			receive(&net->nodes[1], LONGEST, 1, true);
		begin_slow(net);
		node_close(&net->nodes[1]);
		memset(into, 0xdd, LONGEST);
		net_turn(net, 100);
		for (size_t i = 0; i < LONGEST; i++)
			assert_int_equal(into[i], 0xdd);
		net_close(net);
	}
}

/* A receiver that computes: its device takes the messages, and the sender hears
 * of it. */
static void test_computes(void **state)
{
	enum { COUNT = 8, LEN = WF_RDM_PUSHED_MOST / COUNT };
	struct net *net = begin();
	uint64_t limit = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct node *to = &net->nodes[1];
	unsigned int count = 0;
	struct got got;

	(void)state;
	fill(from, LEN, 6);
	for (int i = 0; i < COUNT; i++) {
		struct wf_tx req = req_send(from, LEN, 77);

		assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				 0);
	}
	while (count < COUNT) {
		wf_core_progress(&net->nodes[0].core);
		count += pop(&net->nodes[0].txq, &got);
		assert_true(wf_base_clock_ns() < limit);
	}
	wf_nic_sync(to->ep.nic);
	for (int i = 0; i < COUNT; i++) {
		memset(into, 0xee, LEN);
		receive(to, LEN, 1, true);
		assert_int_equal(await(net, &to->rxcq).err, 0);
		assert_true(filled(into, LEN, 6));
	}
	end(net);
}

/* Node 0 sends, and hears that it is there, while node 1 computes. */
static void send_alone(struct net *net, size_t len, uint64_t tag)
{
	uint64_t limit = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct wf_tx req = req_send(from, len, tag);
	struct got got;

	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req), 0);
	while (!pop(&net->nodes[0].txq, &got)) {
		wf_core_progress(&net->nodes[0].core);
		assert_true(wf_base_clock_ns() < limit);
	}
	assert_int_equal(got.err, 0);
}

/* Bug: a message that was here failed if the process behind its sender's was
 * heard of in the same progress. */
static void test_replaced(void **state)
{
	const struct wf_rdm_ep_attr attr = attr_of();
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	uint8_t next[9];

	(void)state;
	fill(from, LONGEST, 7);
	receive(to, LONGEST, 1, true);
	node_recv_buf(to, 78, next, sizeof(next));
	send_alone(net, LONGEST, 77);
	node_close(&net->nodes[0]);
	node_open(&net->nodes[0], &attr);
	assert_int_equal(wf_rdm_ep_wake(&net->nodes[0].ep), 0);
	send_alone(net, sizeof(next), 78);
	wf_nic_sync(to->ep.nic);
	for (int i = 0; i < 2; i++)
		assert_int_equal(await(net, &to->rxcq).err, 0);
	assert_true(filled(into, LONGEST, 7));
	assert_true(filled(next, sizeof(next), 7));
	end(net);
}

/* Bug: a message was dropped, and its sender knew it to be here, if one before it
 * had come out of turn and then found no memory. */
static void test_behind(void **state)
{
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	struct wf_rdm_peer *peer = wf_rdm_peer_find(&to->ep, &to->names[0]);
	struct wf_rdm_buf buf = { .more = 100000, .place = 1 };
	struct wf_wire_packet packet = {
		.type = WF_WIRE_EAGER_TAGRTM,
		.msg_id = peer->order.expected + 1,
	};

	(void)state;
	peer->behind = true;
	assert_int_equal(wf_rdm_place_receive(peer, &packet, &buf), -EAGAIN);
	packet.msg_id = peer->order.expected - 1;
	assert_int_equal(wf_rdm_place_receive(peer, &packet, &buf), -EPROTO);
	peer->behind = false;
	packet.msg_id = peer->order.expected + 1;
	assert_int_equal(wf_rdm_place_receive(peer, &packet, &buf), -EPROTO);
	end(net);
}

static struct wf_rdm_peer *peer_of(struct net *net, int of, int at)
{
	return wf_rdm_peer_find(&net->nodes[at].ep, &net->nodes[of].addr);
}

/* Bug: messages that nobody receives were all kept by their receiver. From some
 * megabytes on they stay with their sender, until they are received. */
static void test_unclaimed(void **state)
{
	enum { COUNT = 200, ALONE = 40, LEN = 256u << 10, MOST = 20u << 20 };
	struct net *net = begin();
	uint64_t limit = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	struct node *to = &net->nodes[1];
	struct wf_rdm_peer *sender = peer_of(net, 1, 0);
	struct wf_rdm_peer *peer = peer_of(net, 0, 1);
	uint32_t sent = 0;
	struct got got;

	(void)state;
	fill(from, sizeof(from), 3);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct wf_tx req = req_send(from + i, LEN, 5);

		/* The receiver computes at first. */
		if (i < COUNT / 2)
			assert_int_equal(
				wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				0);
		else
			net_submit(net, 0, 1, &req);
		do {
			wf_core_progress(&net->nodes[0].core);
			assert_true(sender->pushed <= WF_RDM_PUSHED_MOST);
			assert_true(wf_base_clock_ns() < limit);
		} while (i < ALONE && sender->pushed);
		sent += pop(&net->nodes[0].txq, &got);
	}
	AWAIT(net, to->ep.unexpected == COUNT);
	assert_true(peer->unclaimed > 4u << 20);
	assert_true(peer->unclaimed < MOST);
	assert_true(peer->asks_first);
	for (uint32_t i = 0; i < COUNT; i++) {
		node_recv_buf(to, 5, into, LONGEST);
		got = await(net, &to->rxcq);
		assert_int_equal(got.err, 0);
		assert_int_equal(got.len, LEN);
		assert_memory_equal(into, from + i, LEN);
		while (pop(&net->nodes[0].txq, &got)) {
			assert_int_equal(got.err, 0);
			sent++;
		}
	}
	for (; sent < COUNT; sent++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_int_equal(peer->unclaimed, 0);
	assert_int_equal(to->ep.unclaimed, 0);
	assert_int_equal(sender->pushed, 0);
	AWAIT(net, !(sender->features & WF_WIRE_FEATURE_ASK_FIRST));
	/* Those of other peers are counted as well. */
	to->ep.unclaimed = 65u << 20;
	AWAIT(net, !node_rxs(&net->nodes[1]));
	carry(net, 100000, 0);
	assert_int_equal(to->ep.unclaimed, 65u << 20);
	assert_false(peer->asks_first);
	AWAIT(net, stat_of(&net->nodes[0], WF_RDM_STAT_handshakes) == 5);
	end(net);
}

static uint64_t cost_of(const struct wf_list *ops)
{
	const struct wf_list *pos;
	uint64_t bytes = 0;

	for (pos = ops->next; pos != ops; pos = pos->next)
		bytes += wf_tcp_op_cost(
			wf_container_of(pos, struct wf_tcp_op, link));
	return bytes;
}

/* Bytes that a message of node 0 follows over the connection for short ones: those
 * that wait, and those that node 1 has not acknowledged. */
static uint64_t bytes_in_front(struct net *net)
{
	struct wf_tcp_peer *peer =
		wf_tcp_peer_find(wf_tcp_dev_of(net->nodes[0].ep.nic),
				 wf_nic_socket(net->nodes[1].ep.nic));
	const struct wf_tcp_chan *chan = &peer->chans[WF_TCP_SMALL];

	return cost_of(&chan->todo) + cost_of(&chan->flight);
}

/* Bug: a short message was behind all long ones that were posted before it, up to
 * 512 KiB each. */
static void test_in_front(void **state)
{
	enum { COUNT = 64, HEADS = COUNT * 256 };
	static const uint32_t lens[] = { 17000, 65536, 65537, LONGEST };
	struct net *net = begin();
	struct node *to = &net->nodes[1];
	struct wf_tx short_one = req_send(from, 8, 6);
	struct got got;

	(void)state;
	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	fill(from, sizeof(from), 9);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		for (uint32_t j = 0; j < COUNT; j++) {
			struct wf_tx req = req_send(from + j, lens[i], 5);

			assert_int_equal(
				wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				0);
			wf_core_progress(&net->nodes[0].core);
		}
		assert_in_range(bytes_in_front(net), lens[i],
				WF_RDM_PUSHED_MOST + HEADS);
		net_submit(net, 0, 1, &short_one);
		/* It overtakes none of them. */
		for (uint32_t j = 0; j <= COUNT; j++) {
			memset(into, 0xee, sizeof(into));
			node_recv(to, true, j < COUNT ? 5 : 6,
				  &(struct iovec){ into, LONGEST }, 1, into);
			got = await(net, &to->rxcq);
			assert_int_equal(got.err, 0);
			assert_int_equal(got.len, j < COUNT ? lens[i] : 8);
			assert_memory_equal(into, from + (j < COUNT ? j : 0),
					    got.len);
			assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
		}
	}
	end(net);
}

/* A receive whose memory cannot be written fails, and nothing else does. */
static void test_unwritable(void **state)
{
	enum { LEN = 256u << 10, SAFE = 192u << 10 };
	struct net *net = begin();
	struct wf_tx req = req_send(from, LEN, 77);
	uint8_t *at = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	/* A message that an attendant took is copied, which ends the
	 * process. */
	for (int i = 0; i < 2; i++)
		wf_nic_attend_end(&wf_tcp_dev_of(net->nodes[i].ep.nic)->attend);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + SAFE, LEN - SAFE, PROT_READ), 0);
	for (int i = 0; i < 2; i++) {
		req.delivery = i;
		node_recv_buf(&net->nodes[1], 77, at, LEN);
		net_submit(net, 0, 1, &req);
		assert_int_equal(await(net, &net->nodes[1].rxcq).err,
				 FI_EFAULT);
		assert_int_equal(await(net, &net->nodes[0].txq).err,
				 i ? FI_EFAULT : 0);
		carry(net, 100001, 1);
	}
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_bad_packets), 0);
	end(net);
	munmap(at, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_meanwhile),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_computes),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_behind),
		cmocka_unit_test(test_unclaimed),
		cmocka_unit_test(test_in_front),
		cmocka_unit_test(test_unwritable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
