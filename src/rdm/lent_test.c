/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of memory inside a registration of the application (desc), on a
 * device that goes on after it was deregistered, as the hardware of EFA does.
 * Bug: an operation that failed was reported while the device still wrote to its
 * memory; and peers knew the key after the operation that they were given it for.
 */
#include "rdm/net_test.h"

#include "nic/ops.h"
#include "rdm/protocol.h"
#include "rdm/rx.h"
#include "rdm/tx.h"

#define LEN (4u << 20) /* in several reads */
#define MEDIUM 60000u  /* in packets */
#define KEY 7u
#define LENT_MOST 16u

static uint8_t from[LEN], into[LEN];
static char name; /* what desc says */

static struct wf_nic_ops lending;
static int (*dereg)(struct wf_nic *nic, uint32_t lkey);
static uint32_t lent[LENT_MOST];
static unsigned int lent_count;

static int lend(struct wf_nic *nic, const void *desc, void *addr, size_t len,
		unsigned access, struct wf_nic_mr *mr)
{
	int err;

	if (desc != &name)
		return -ENOENT;
	err = wf_nic_mr_soft_reg(nic, addr, len, access, mr);
	assert_true(lent_count < LENT_MOST);
	if (!err)
		lent[lent_count++] = mr->lkey;
	return err;
}

static int keep_lent(struct wf_nic *nic, uint32_t lkey)
{
	for (unsigned int i = 0; i < lent_count; i++) {
		if (lent[i] == lkey)
			return 0;
	}
	return dereg(nic, lkey);
}

/* From now on the device of @n knows memory of the application. */
static void make_lend(struct node *n)
{
	struct wf_nic *nic = n->ep.nic;

	wf_base_lock_take(&nic->lock);
	lending = *nic->ops;
	dereg = lending.mr_dereg;
	lending.mr_use = lend;
	lending.mr_dereg = keep_lent;
	lent_count = 0;
	nic->ops = &lending;
	wf_base_lock_drop(&nic->lock);
}

static struct net *begin(const char *device, int lends)
{
	struct wf_rdm_ep_attr attr = net_attr();
	struct iovec iov = { into, LEN };
	struct net *net;

	attr.device = device;
	net = net_open(&attr);
	assert_int_equal(wf_op_regs_add(&net->nodes[1].regs, KEY,
					FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
					&iov, 1),
			 0);
	net_greet(net);
	make_lend(&net->nodes[lends]);
	return net;
}

static struct wf_rdm_peer *peer_of(struct net *net, int node)
{
	return wf_rdm_peer_find(&net->nodes[node].ep, &net->nodes[!node].addr);
}

static struct wf_rdm_tx *tx_of(struct net *net)
{
	struct wf_rdm_peer *peer = peer_of(net, 0);
	struct wf_list *list = wf_base_list_empty(&peer->flight) ?
				       &peer->queue :
				       &peer->flight;

	assert_false(wf_base_list_empty(list));
	return wf_container_of(list->next, struct wf_rdm_tx, link);
}

/* A message that node 1 begins to read. */
static struct wf_rdm_rx *begin_pull(struct net *net, bool described)
{
	struct wf_tx req = req_send(from, LEN, 5);
	struct node *n = &net->nodes[1];
	struct wf_rx *to = wf_base_pool_get(&n->rxq.pool);
	struct wf_rdm_rx *rx;

	assert_non_null(to);
	*to = (struct wf_rx){
		.tag = 5,
		.src = WF_MATCH_ANY,
		.context = into,
		.flags = FI_RECV | FI_TAGGED,
		.iov_count = 1,
		.iov = { { into, LEN } },
		.len = LEN,
		.plain = true,
		.wants_comp = true,
		.tagged = true,
		.described = described,
		.desc = { &name },
	};
	wf_match_rxq_post(&n->rxq, to);
	net_submit(net, 0, 1, &req);
	AWAIT(net, n->ep.reading > 1);
	rx = wf_container_of(peer_of(net, 1)->rxs.next, struct wf_rdm_rx, link);
	assert_int_equal(rx->outstanding, n->ep.reading);
	return rx;
}

/* The receive ends after the last read, once. */
static void test_receive(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct net *net = begin("udp", 1);
		struct node *n = &net->nodes[1];
		struct wf_rdm_rx *rx = begin_pull(net, true);

		assert_int_equal(lent_count, 1);
		if (how == 1)
			wf_rdm_peer_fail(peer_of(net, 1), FI_EIO);
		else
			wf_rdm_rx_fail(rx, FI_EIO, true);
		wf_rdm_peer_rename(peer_of(net, 1), WF_MATCH_ANY);
		assert_true(n->ep.reading > 1);
		assert_int_equal(wf_op_compq_count(&n->rxcq), 0);
		/* The endpoint may also be closed. */
		if (how == 2) {
			net_close(net);
			continue;
		}
		while (n->ep.reading) {
			assert_int_equal(wf_op_compq_count(&n->rxcq), 0);
			net_progress(net);
		}
		assert_int_equal(await(net, &n->rxcq).err, FI_EIO);
		assert_true(await(net, &net->nodes[0].txq).err);
		net_idle(net);
		net_close(net);
	}
}

/* Memory that can be taken from the device is the application's at once. */
static void test_receive_at_once(void **state)
{
	struct net *net = begin("udp", 1);
	struct node *n = &net->nodes[1];
	struct wf_rdm_rx *rx = begin_pull(net, false);
	struct got got;

	(void)state;
	assert_int_equal(lent_count, 0);
	wf_rdm_rx_fail(rx, FI_EIO, true);
	assert_true(n->ep.reading > 1);
	assert_true(pop(&n->rxcq, &got));
	assert_int_equal(got.err, FI_EIO);
	assert_true(await(net, &net->nodes[0].txq).err);
	net_idle(net);
	net_close(net);
}

static struct wf_tx described(enum wf_tx_kind kind, size_t len)
{
	struct wf_tx req = req_of(kind, from, len);

	if (kind != WF_TX_SEND) {
		req.remote->seg_count = 1;
		req.remote->segs[0] =
			(struct wf_remote_seg){ (uintptr_t)into, len, KEY };
	}
	req.described = true;
	req.desc[0] = &name;
	return req;
}

/* The same for a read of ours. Requests that the device does not have yet are not
 * made any more. */
static void test_read(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct net *net = begin("tcp", 0);
		struct wf_tx req = described(WF_TX_READ, LEN);
		struct wf_compq *txq = &net->nodes[0].txq;
		struct wf_rdm_tx *tx;

		net_submit(net, 0, 1, &req);
		tx = tx_of(net);
		assert_int_equal(lent_count, 1);
		assert_ptr_equal(tx->protocol, &wf_rdm_protocol_direct_read);
		assert_true(tx->outstanding > 1);
		if (how == 1)
			wf_rdm_peer_fail(peer_of(net, 0), FI_EIO);
		else
			wf_rdm_tx_abort(&net->nodes[0].ep, tx, FI_EIO);
		assert_int_equal(wf_op_compq_count(txq), 0);
		assert_true(tx->outstanding > 1);
		if (how == 2) {
			net_close(net);
			continue;
		}
		while (net->nodes[0].ep.outstanding) {
			assert_int_equal(wf_op_compq_count(txq), 0);
			net_progress(net);
		}
		assert_int_equal(await(net, txq).err, FI_EIO);
		net_idle(net);
		net_close(net);
	}
}

/* Memory that the receiver reads is registered for the message alone. */
static void test_key(void **state)
{
	struct net *net = begin("udp", 0);
	struct wf_tx long_one = described(WF_TX_SEND, LEN);
	struct wf_tx short_one = described(WF_TX_SEND, MEDIUM);
	struct wf_tx write = described(WF_TX_WRITE, LEN);

	(void)state;
	fill(from, LEN, 3);
	node_recv_buf(&net->nodes[1], 0, into, LEN);
	net_submit(net, 0, 1, &long_one);
	assert_ptr_equal(tx_of(net)->protocol, &wf_rdm_protocol_longread);
	assert_false(tx_of(net)->lent);
	assert_int_equal(lent_count, 0);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_true(filled(into, LEN, 3));
	net_submit(net, 0, 1, &write);
	assert_ptr_equal(tx_of(net)->protocol, &wf_rdm_protocol_longread_write);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_int_equal(lent_count, 0);
	/* In packets our device alone needs it. */
	node_recv_buf(&net->nodes[1], 0, into, MEDIUM);
	net_submit(net, 0, 1, &short_one);
	assert_int_equal(lent_count, 1);
	assert_int_equal(await(net, &net->nodes[1].rxcq).err, 0);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	net_idle(net);
	net_close(net);
}

/* A write that the target refuses to the device goes by packets, and does not give
 * the key away either. */
static void test_key_refused(void **state)
{
	struct net *net = begin("tcp", 0);
	struct wf_tx write = described(WF_TX_WRITE, LEN);
	struct wf_cntr writes;
	const struct wf_reg_watch watch = { .writes = &writes };

	(void)state;
	memset(&writes, 0, sizeof(writes));
	assert_int_equal(wf_op_regs_watch(&net->nodes[1].regs, KEY, &watch), 0);
	fill(from, LEN, 4);
	memset(into, 0, LEN);
	net_submit(net, 0, 1, &write);
	assert_ptr_equal(tx_of(net)->protocol, &wf_rdm_protocol_direct_write);
	assert_int_equal(lent_count, 1);
	AWAIT(net, tx_of(net)->protocol != &wf_rdm_protocol_direct_write);
	assert_ptr_equal(tx_of(net)->protocol, &wf_rdm_protocol_longcts_write);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_true(filled(into, LEN, 4));
	/* The next one is known not to be the device's. */
	net_submit(net, 0, 1, &write);
	assert_ptr_equal(tx_of(net)->protocol, &wf_rdm_protocol_longread_write);
	assert_int_equal(await(net, &net->nodes[0].txq).err, 0);
	assert_int_equal(lent_count, 1);
	assert_int_equal(atomic_load(&writes.value), 2);
	net_idle(net);
	net_close(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_receive_at_once),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_key_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
