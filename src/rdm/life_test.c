/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of peers that go, come back, are slow or are forgotten in the
 * middle of something: everything ends, nothing is given to the wrong one, and
 * others do not notice.
 */
#include "rdm/net_test.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "rdm/control.h"
#include "rdm/pkt.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

#define BYTES (4u << 20)
#define MEDIUM 60000
#define MANY 40

static uint8_t from[BYTES], into[BYTES];

static struct wf_rdm_peer *peer_of(struct net *net, int at, int who)
{
	return wf_rdm_peer_find(&net->nodes[at].ep, &net->nodes[who].addr);
}

/* Only node @i works. */
static void alone(struct net *net, int i, int times)
{
	while (times-- > 0)
		wf_core_progress(&net->nodes[i].core);
}

/* It cannot read, and says so while most of the runt is still to be made. */
static void test_nack_early(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 1200000, 5);
	struct net *net;

	(void)state;
	attr.runt_size = 1000000; /* more packets than are made in one go */
	net = net_open(&attr);
	net_greet(net);
	net->nodes[1].ep.deny_reads = true;
	fill(from, req.len, 6);
	node_recv_buf(&net->nodes[1], 5, into, req.len);
	net_submit(net, 0, 1, &req);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_true(filled(into, req.len, 6));
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_read_nacks), 1);
	assert_int_equal(stat_of(&net->nodes[0], WF_RDM_STAT_sent_runtread), 1);
	net_idle(net);
	net_close(net);
}

/* Packets behind the NACK overtake the rest of the runt, as packets may. The
 * receiver granted nothing then, because too much was still missing, and
 * nothing afterwards: both waited for ever. */
static void test_nack_overtakes_runt(void **state)
{
	enum { TOTAL = 300000, RUNT = 200000, PIECE = 1000 };
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_wire_packet packet = {
		.type = WF_WIRE_RUNTREAD_TAGRTM,
		.tag = 5,
		.send_id = 1,
		.msg_length = TOTAL,
		.runt_length = RUNT,
		.read_iov_count = 1,
		.read_iov = { { .addr = 4096, .len = TOTAL, .key = 1 } },
		.data = from,
		.data_len = PIECE,
	};
	struct wf_wire_packet follows = {
		.type = WF_WIRE_LONGCTS_TAGRTM,
		.flags = WF_WIRE_NACKED,
		.tag = 5,
		.send_id = 1,
		.msg_length = TOTAL,
	};
	const struct wf_rdm_rx *rx;
	struct wf_rdm_peer *peer;
	struct net *net;

	(void)state;
	net = net_open(&attr);
	net_greet(net);
	net->nodes[1].ep.deny_reads = true;
	node_recv_buf(&net->nodes[1], 5, into, TOTAL);
	peer = peer_of(net, 1, 0);
	packet.msg_id = peer->order.expected;
	follows.msg_id = packet.msg_id;
	assert_int_equal(wf_rdm_protocol_runtread.receive(peer, &packet), 0);
	rx = wf_rdm_rx_find(peer, packet.msg_id);
	assert_non_null(rx);
	assert_true(rx->nacked);
	assert_int_equal(wf_rdm_protocol_longcts.receive(peer, &follows), 0);
	for (uint64_t at = PIECE; at < RUNT; at += PIECE) {
		packet.seg_offset = at;
		assert_int_equal(
			wf_rdm_protocol_runtread.receive(peer, &packet), 0);
	}
	assert_int_equal(rx->have, RUNT);
	assert_true(rx->owes & WF_RDM_OWES_CTS);
	net_close(net);
}

/* The bytes that are read are there before those that were sent: the sender's
 * buffer is not free yet. */
static void test_eor_before_runt(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 100000, 5);
	struct wf_wire_packet eor = { .type = WF_WIRE_EOR };
	struct wf_rdm_peer *peer;
	struct net *net;

	(void)state;
	attr.runt_size = 20000;
	net = net_open(&attr);
	net_greet(net);
	fill(from, req.len, 6);
	node_recv_buf(&net->nodes[1], 5, into, req.len);
	net_submit(net, 0, 1, &req);
	peer = peer_of(net, 0, 1);
	assert_false(wf_base_list_empty(&peer->flight));
	eor.send_id = wf_container_of(peer->flight.next, struct wf_rdm_tx, link)
			      ->named.id;
	assert_int_equal(wf_rdm_control_receive(peer, &eor), 0);
	assert_int_equal(wf_op_compq_count(&net->nodes[0].txq), 0);
	/* (That the rest was read is not true here: how it ends at the receiver
	 * does not matter.) */
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	await(net, &net->nodes[1].rxcq);
	net_idle(net);
	net_close(net);
}

/* -- removed from the AV ---------------------------------------------------- */

static void forget(struct net *net)
{
	net->nodes[0].known[1] = false;
	wf_rdm_ep_removed(&net->nodes[0].ep, 1);
	net->nodes[0].known[1] = true;
}

/* In the middle of messages of many packets, more than the device takes at once:
 * all end, and what is sent afterwards is not mixed with what was to be sent
 * before. */
static void test_removed_midway(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req;
	struct net *net;
	struct got got;

	(void)state;
	for (int turns = 0; turns < 6; turns++) {
		net = net_open(&attr);
		fill(from, MEDIUM, 1);
		req = req_send(from, MEDIUM, 5);
		for (int i = 0; i < MANY; i++)
			net_submit(net, 0, 1, &req);
		assert_false(wf_base_list_empty(&peer_of(net, 0, 1)->queue));
		net_turn(net, turns);
		forget(net);
		for (int i = 0; i < MANY; i++) {
			got = await(net, &net->nodes[0].txq);
			assert_true(!got.err || got.err == FI_ECANCELED);
		}
		fill(from, MEDIUM, 2);
		req = req_send(from, MEDIUM, 6);
		for (int i = 0; i < MANY; i++) {
			node_recv_buf(&net->nodes[1], 6, into + i * MEDIUM,
				      MEDIUM);
			net_submit(net, 0, 1, &req);
		}
		for (int i = 0; i < MANY; i++) {
			assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
			/* Whichever is whole first. */
			got = await(net, &net->nodes[1].rxcq);
			assert_int_equal(got.err, 0);
			assert_true(filled(got.context, MEDIUM, 2));
		}
		net_close(net);
	}
}

/* -- restarts and deaths ---------------------------------------------------- */

static void revive(struct net *net, const struct wf_rdm_ep_attr *attr, int who)
{
	node_close(&net->nodes[who]);
	node_open(&net->nodes[who], attr);
	assert_int_equal(wf_rdm_ep_wake(&net->nodes[who].ep), 0);
}

/* The peer restarts with more requests under way than are looked at in one go:
 * a packet to the new one is not taken for a request to the old one. */
static void test_restart(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net;
	int failed = 0, seen = 0;

	(void)state;
	net_tx_size = 2048;
	net = net_open(&attr);
	net_greet(net);
	for (int i = 0; i < 900; i++)
		net_submit(net, 0, 1, &req);
	revive(net, &attr, 1);
	req = req_send(from, 60000, 6);
	fill(from, 60000, 3);
	node_recv_buf(&net->nodes[1], 6, into, 60000);
	while (!failed) {
		failed = !!await(net, &net->nodes[0].txq).err;
		seen++;
	}
	req.context = &failed;
	net_submit(net, 0, 1, &req);
	for (; seen < 901; seen++) {
		struct got got = await(net, &net->nodes[0].txq);

		/* The old one goes in two steps: once more, then. */
		if (got.context == &failed && got.err) {
			net_submit(net, 0, 1, &req);
			seen--;
		}
	}
	assert_in_range(stat_of(&net->nodes[0], WF_RDM_STAT_peers_lost), 1, 3);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_true(filled(into, 60000, 3));
	net_idle(net);
	net_close(net);
}

/* Nobody is there any more: everything ends with an error, the receive that was
 * being filled as well, and close does not wait. */
static void test_death(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	static const size_t lens[] = { 8, 60000, 100000, 300000 };
	struct wf_tx req;
	struct net *net;

	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		attr.reads = reads;
		net = net_open(&attr);
		net_greet(net);
		req = req_send(from, BYTES, 9);
		net_submit(net, 1, 0, &req);
		node_recv_buf(&net->nodes[0], 9, into, BYTES);
		AWAIT(net, node_rxs(&net->nodes[0]));
		for (int i = 0; i < 12; i++) {
			req = req_send(from, lens[i % 4], 5);
			req.delivery = i & 1;
			net_submit(net, 0, 1, &req);
		}
		node_close(&net->nodes[1]);
		close(net->nodes[1].fd);
		net->nodes[1].fd = -1;
		for (int i = 0, failed = 0; i < 12; i++) {
			failed += !!await(net, &net->nodes[0].txq).err;
			assert_true(i < 11 || failed > 6);
		}
		assert_true(await(net, &net->nodes[0].rxcq).err);
		net_idle(net);
		net_close(net);
	}
}

/* -- one among others ------------------------------------------------------- */

/* A peer that does not work takes nothing from those who do. */
static void test_slow_peer(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	uint64_t end;
	struct net *net;
	struct got got;

	(void)state;
	net_tx_size = 4096;
	attr.dead_timeout_s = 60;
	net = net_open(&attr);
	net_greet(net);
	node_open(&net->nodes[2], &attr);
	assert_int_equal(wf_rdm_ep_wake(&net->nodes[2].ep), 0);
	net_submit(net, 0, 2, &req);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	for (int i = 0; i < 4000; i++)
		net_submit(net, 0, 1, &req);
	/* Until it takes no more. */
	for (int i = 0; i < 2000; i++) {
		alone(net, 0, 1);
		if (pop(&net->nodes[0].txq, &got))
			i = 0;
	}
	end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	node_recv_buf(&net->nodes[2], 6, into, 60000);
	req = req_send(from, 60000, 6);
	req.context = into;
	net_submit(net, 0, 2, &req);
	do {
		got.context = NULL;
		alone(net, 0, 1);
		alone(net, 2, 1);
		assert_true(wf_base_clock_ns() < end);
	} while (!pop(&net->nodes[0].txq, &got) || got.context != into);
	assert_int_equal(got.err, 0);
	net_close(net);
}

/* Bug: while the device had no room for another packet, an endpoint that waits
 * for completions did not sleep but spun. */
static void test_sleep_when_full(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	uint64_t deadline = UINT64_MAX, end;
	struct net *net;

	(void)state;
	net_tx_size = 4096;
	attr.dead_timeout_s = 60;
	net = net_open(&attr);
	net_greet(net);
	for (int i = 0; i < 3000; i++)
		assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				 0);
	assert_false(wf_base_list_empty(&net->nodes[0].ep.active));
	end = wf_base_clock_ns() + NET_LOST * WF_NS_PER_S;
	while (!wf_rdm_ep_doze(&net->nodes[0].ep, &deadline)) {
		alone(net, 0, 1);
		assert_true(wf_base_clock_ns() < end);
	}
	assert_false(wf_base_list_empty(&net->nodes[0].ep.active));
	for (int i = 0; i < 3000; i++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	AWAIT(net, net->nodes[1].ep.unexpected == 3000);
	net_close(net);
}

/* As many as were asked for, and room again when one is done. */
static void test_limit(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net;

	(void)state;
	net_tx_size = 7;
	net = net_open(&attr);
	for (int i = 0; i < 7; i++)
		assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req),
				 0);
	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req), -EAGAIN);
	for (int i = 0; i < 7; i++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req), 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_close(net);
}

/* With FI_MORE nothing leaves before something else does or progress comes. */
static void test_more(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net;

	(void)state;
	net_tx_size = 2048;
	net = net_open(&attr);
	req.more = true;
	for (int i = 0; i < 1500; i++)
		net_submit(net, 0, 1, &req);
	for (int i = 0; i < 1500; i++)
		assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	AWAIT(net, net->nodes[1].ep.unexpected == 1500);
	net_close(net);
}

/* -- names ------------------------------------------------------------------ */

/* A message of somebody who is not in the AV, and is before it is received. */
static void test_named_later(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net = net_open(&attr);
	struct node *b = &net->nodes[1];

	(void)state;
	b->known[0] = false;
	for (int i = 0; i < 3; i++)
		net_submit(net, 0, 1, &req);
	AWAIT(net, b->ep.unexpected == 3);
	node_recv_buf(b, 5, into, 8);
	assert_int_equal(await(net, &b->rxcq).src, WF_MATCH_ANY);
	b->known[0] = true;
	wf_core_inserted(&b->core, 0, &net->nodes[0].addr);
	node_recv_buf(b, 5, into, 8);
	assert_int_equal(await(net, &b->rxcq).src, 0);
	b->known[0] = false;
	wf_rdm_ep_removed(&b->ep, 0);
	node_recv_buf(b, 5, into, 8);
	assert_int_equal(await(net, &b->rxcq).src, WF_MATCH_ANY);
	for (int i = 0; i < 3; i++)
		await(net, &net->nodes[0].txq);
	net_idle(net);
	net_close(net);
}

/* Names that others change: progress finds out. */
static void test_names_change(void **state)
{
	_Atomic uint64_t changes = 1;
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, BYTES, 5);
	struct net *net = net_open(&attr);

	(void)state;
	net_greet(net);
	net->nodes[0].core.host.names.changes = &changes;
	net_progress(net);
	net_submit(net, 0, 1, &req);
	AWAIT(net, net->nodes[1].ep.unexpected);
	net->nodes[0].known[1] = false;
	changes++;
	assert_int_equal(await(net, &net->nodes[0].txq).err, FI_ECANCELED);
	assert_int_equal(wf_rdm_ep_submit(&net->nodes[0].ep, 1, &req), -EINVAL);
	net->nodes[0].known[1] = true;
	changes++;
	net_progress(net);
	node_recv_buf(&net->nodes[1], 6, into, 8);
	req = req_send(from, 8, 6);
	net_submit(net, 0, 1, &req);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_close(net);
}

/* A message that was half here when its sender went is an error to the receive
 * that takes it. */
static void test_half_a_message(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 100000, 5);
	struct net *net = net_open(&attr);
	struct node *b = &net->nodes[1];
	struct wf_ux *ux;

	(void)state;
	net_greet(net);
	net_submit(net, 0, 1, &req);
	net_submit(net, 0, 1, &req);
	AWAIT(net, b->ep.unexpected == 2);
	revive(net, &attr, 0);
	req = req_send(from, 8, 6);
	net_submit(net, 0, 1, &req);
	AWAIT(net, b->ep.unexpected == 3);
	node_recv_buf(b, 5, into, 100000);
	assert_int_equal(await(net, &b->rxcq).err, FI_ECONNRESET);
	ux = wf_match_find_ux(&b->rxq.tagged, 5, 0, WF_MATCH_ANY);
	wf_match_unpark(&b->rxq.tagged, ux);
	ux->ops->discard(ux);
	node_recv_buf(b, 6, into, 8);
	assert_int_equal(await(net, &b->rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_idle(net);
	net_close(net);
}

/* -- silence ---------------------------------------------------------------- */

/* We wait for its answer, nothing of ours is in flight, and it vanishes without
 * notice. */
static void test_vanished_without_notice(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, BYTES, 5);
	struct net *net = net_open(&attr);
	struct wf_addr addr;
	int fd;

	(void)state;
	net_greet(net);
	net_submit(net, 0, 1, &req);
	AWAIT(net,
	      net->nodes[1].ep.unexpected && !net->nodes[0].ep.outstanding);
	fd = net_bind(&addr, "udp");
	assert_int_equal(dup2(fd, net->nodes[1].fd), net->nodes[1].fd);
	close(fd);
	while (!wf_op_compq_count(&net->nodes[0].txq))
		alone(net, 0, 1);
	assert_true(await(net, &net->nodes[0].txq).err);
	net_close(net);
}

/* An endpoint that has nothing to do sleeps until something comes. */
static void test_sleep(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, 8, 5);
	struct net *net = net_open(&attr);
	struct node *b = &net->nodes[1];
	struct pollfd wait;
	uint64_t deadline = UINT64_MAX;

	(void)state;
	net_greet(net);
	node_recv_buf(b, 5, into, 8);
	while (!wf_rdm_ep_doze(&b->ep, &deadline))
		net_progress(net);
	net_submit(net, 0, 1, &req);
	wait = (struct pollfd){ wf_nic_wait_fd(b->ep.nic), POLLIN, 0 };
	while (poll(&wait, 1, 0) != 1)
		alone(net, 0, 1);
	assert_int_equal(await(net, &b->rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_close(net);
}

/* A child has nothing of it, and leaves the parent's alone. */
static void test_fork(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct wf_tx req = req_send(from, BYTES, 5);
	struct net *net = net_open(&attr);
	int status;
	pid_t pid;

	(void)state;
	net_greet(net);
	node_recv_buf(&net->nodes[1], 5, into, BYTES);
	net_submit(net, 0, 1, &req);
	AWAIT(net, node_rxs(&net->nodes[1]));
	pid = fork();
	if (!pid) {
		bool good = true;

		for (int i = 0; i < 2; i++) {
			struct wf_core *core = &net->nodes[i].core;

			wf_core_forked(core);
			wf_core_progress(core);
			good &= wf_core_sleep(core) &&
				wf_core_submit(core, !i, &req) == -EOPNOTSUPP;
			wf_core_close(core);
		}
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_idle(net);
	net_close(net);
}

#define PLACE 0x5a

/* Memory for large packets that children do not have, as that of some devices, and
 * a packet there that waits to be sent. */
static struct wf_rdm_pkt *keep_from_children(struct node *n,
					     struct wf_rdm_peer *peer)
{
	struct wf_rdm_ep *ep = &n->ep;
	struct wf_rdm_pkt *pkt;

	ep->pkt_memory = mmap(NULL, ep->pkt_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ep->pkt_memory, MAP_FAILED);
	assert_int_equal(madvise(ep->pkt_memory, ep->pkt_bytes, MADV_DONTFORK),
			 0);
	wf_base_pool_feed(&ep->large_pkts, ep->pkt_memory, ep->pkt_bytes);
	pkt = wf_rdm_pkt_get(ep, peer, WF_RDM_PKT_SMALL + 1);
	assert_ptr_equal(pkt, ep->pkt_memory);
	wf_base_list_add_tail(&peer->again, &pkt->link);
	return pkt;
}

/* In a child other memory has the place. Whether it is as it was after the end of
 * the endpoint. */
static bool leaves_place(struct node *n)
{
	size_t bytes = n->ep.pkt_bytes;
	uint8_t *at =
		mmap(n->ep.pkt_memory, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != n->ep.pkt_memory)
		return false;
	memset(at, PLACE, bytes);
	wf_core_forked(&n->core);
	wf_core_close(&n->core);
	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != PLACE)
			return false;
	}
	return true;
}

/* Bug: a child unmapped the place of memory that it did not get from its parent,
 * and wrote into it. */
static void test_fork_leaves_place(void **state)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct net *net = net_open(&attr);
	struct node *n = &net->nodes[0];
	struct wf_rdm_peer *peer;
	struct wf_rdm_pkt *pkt;
	int status;
	pid_t pid;

	(void)state;
	net_greet(net);
	peer = peer_of(net, 0, 1);
	assert_non_null(peer);
	pkt = keep_from_children(n, peer);
	pid = fork();
	if (!pid)
		_exit(!leaves_place(n));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	wf_base_list_unlink(&pkt->link);
	wf_rdm_pkt_put(&n->ep, pkt);
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nack_early),
		cmocka_unit_test(test_nack_overtakes_runt),
		cmocka_unit_test(test_eor_before_runt),
		cmocka_unit_test(test_removed_midway),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_slow_peer),
		cmocka_unit_test(test_sleep_when_full),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_more),
		cmocka_unit_test(test_named_later),
		cmocka_unit_test(test_names_change),
		cmocka_unit_test(test_half_a_message),
		cmocka_unit_test(test_vanished_without_notice),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_leaves_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
