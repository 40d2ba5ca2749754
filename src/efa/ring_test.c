/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses the rings by itself, as libfabric's data path direct does:
 * it writes descriptors and doorbells and reads completions, and calls nothing.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "efa/pair_test.h"
#include "nic/wqe.h"

struct rings {
	struct wf_efadv_wq_attr sq, rq;
	struct wf_efadv_cq_attr cq;
	uint16_t posted, received, read;
};

static struct rings export(struct end *end)
{
	struct rings rings = { .posted = 0 };

	assert_int_equal(efadv_query_cq(ibv_cq_ex_to_cq(end->cq), &rings.cq,
					sizeof(rings.cq)),
			 0);
	assert_int_equal(efadv_query_qp_wqs(end->qp, &rings.sq, &rings.rq,
					    sizeof(rings.sq)),
			 0);
	assert_int_equal(rings.sq.entry_size, 64);
	assert_int_equal(rings.sq.num_entries, DEPTH);
	assert_int_equal(rings.rq.entry_size, 16);
	assert_int_equal(rings.cq.entry_size, 32);
	assert_int_equal(rings.sq.caps, 0);
	return rings;
}

static void bell(uint32_t *doorbell, uint32_t value)
{
	atomic_store_explicit((_Atomic uint32_t *)doorbell, value,
			      memory_order_release);
}

static void post(struct pair *pair, struct rings *rings, uint16_t req_id,
		 uint32_t qpn)
{
	uint16_t at = rings->posted % rings->sq.num_entries;
	struct wf_nic_tx_wqe wqe;

	wf_nic_wqe_meta(
		&wqe,
		&(struct wf_nic_wqe_head){
			.req_id = req_id,
			.ctrl1 = WF_NIC_OP_SEND | WF_NIC_TX_INLINE,
			.phase = rings->posted / rings->sq.num_entries & 1,
			.dest_qpn = (uint16_t)qpn,
			.length = 2,
			.ah = (uint16_t)pair->ah->handle,
			.qkey = QKEY });
	memset(wqe.inline_data, 0, sizeof(wqe.inline_data));
	memcpy(wqe.inline_data, &req_id, 2);
	memcpy(rings->sq.buffer + at * 64u, &wqe, 64);
	bell(rings->sq.doorbell, ++rings->posted);
}

static void offer(struct end *end, struct rings *rings, uint16_t req_id)
{
	uint16_t at = rings->received % rings->rq.num_entries;
	struct wf_nic_rx_desc desc;

	wf_nic_rx_fill(&desc, req_id, (uintptr_t)end->buf + req_id % DEPTH * 8,
		       8, end->mr->lkey);
	memcpy(rings->rq.buffer + at * 16u, &desc, 16);
	bell(rings->rq.doorbell, ++rings->received);
}

/* The next completion; waits for it by looking at its phase alone. */
static struct wf_nic_cqe next(struct rings *rings)
{
	uint16_t at = rings->read % rings->cq.num_entries;
	uint32_t phase = !(rings->read / rings->cq.num_entries & 1);
	_Atomic uint32_t *word =
		(_Atomic uint32_t *)(rings->cq.buffer + at * 32u);
	time_t until = time(NULL) + 100;
	struct wf_nic_cqe cqe;

	while ((atomic_load_explicit(word, memory_order_acquire) >> 24 & 1) !=
	       phase) {
		assert_true(time(NULL) < until);
		usleep(10);
	}
	memcpy(&cqe, rings->cq.buffer + at * 32u, sizeof(cqe));
	rings->read++;
	return cqe;
}

/* Several laps of every ring; request ids come back as they were, with whatever
 * the program keeps in their higher bits. */
static void test_laps(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = -1 });
	struct rings from = export(&pair.end[0]), to = export(&pair.end[1]);

	(void)state;
	for (uint16_t i = 0; i < 10 * DEPTH; i++) {
		uint16_t id = (uint16_t)(i << 4 & 0xfff0) | (i % DEPTH);
		struct wf_nic_cqe cqe;
		uint16_t got;

		offer(&pair.end[1], &to, id);
		post(&pair, &from, id, pair.end[1].qp->qp_num);
		cqe = next(&from);
		assert_int_equal(cqe.status, WF_NIC_OK);
		assert_int_equal(cqe.req_id, id);
		assert_int_equal(wf_nic_cqe_qtype(&cqe), WF_NIC_CQE_SQ);
		cqe = next(&to);
		assert_int_equal(cqe.status, WF_NIC_OK);
		assert_int_equal(cqe.req_id, id);
		assert_int_equal(cqe.length, 2);
		assert_int_equal(cqe.ah, pair.ah->handle);
		assert_int_equal(cqe.src_qpn, pair.end[0].qp->qp_num);
		memcpy(&got, pair.end[1].buf + id % DEPTH * 8, 2);
		assert_int_equal(got, id);
	}
	close_pair(&pair);
}

/* A receiver that has no handle finds the GID in the completion. */
static void test_source(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = -1 });
	struct rings from = export(&pair.end[0]), to = export(&pair.end[1]);
	struct wf_nic_cqe cqe;
	union ibv_gid gid;

	(void)state;
	assert_int_equal(ibv_query_gid(pair.context, 1, 0, &gid), 0);
	post(&pair, &from, 1, pair.end[1].qp->qp_num);
	/* The device takes requests in order: when it has refused a second one,
	 * for a queue pair that is not there, the first is under way. */
	post(&pair, &from, 2, pair.end[1].qp->qp_num ^ 0x200);
	cqe = next(&from);
	assert_int_equal(cqe.req_id, 2);
	assert_int_not_equal(cqe.status, WF_NIC_OK);
	assert_int_equal(ibv_destroy_ah(pair.ah), 0);
	offer(&pair.end[1], &to, 3);
	cqe = next(&to);
	assert_int_equal(cqe.status, WF_NIC_OK);
	assert_int_equal(cqe.ah, WF_NIC_AH_UNKNOWN);
	assert_memory_equal(cqe.source, gid.raw, 16);
	pair.ah = ibv_create_ah(
		pair.pd, &(struct ibv_ah_attr){ .is_global = 1,
						.port_num = 1,
						.grh = { .dgid = gid } });
	assert_non_null(pair.ah);
	close_pair(&pair);
}

/* A doorbell with the highest bit asks for an event, also for what has come
 * before it was seen. */
static void test_arm(void **state)
{
	struct pair pair =
		open_pair(&(struct kind){ .events = true, .rnr_retry = -1 });
	struct pollfd fd = { .fd = pair.channel->fd, .events = POLLIN };
	struct rings from = export(&pair.end[0]), to = export(&pair.end[1]);

	(void)state;
	for (uint16_t i = 0; i < 4; i++) {
		struct ibv_cq *cq;
		void *context;

		if (i % 2)
			bell(to.cq.doorbell, 1u << 31 | i % 4u << 29 | to.read);
		offer(&pair.end[1], &to, i);
		post(&pair, &from, i, pair.end[1].qp->qp_num);
		next(&from);
		next(&to);
		/* One that was not read when it was armed. */
		if (i % 2 == 0)
			bell(to.cq.doorbell,
			     1u << 31 | i % 4u << 29 | (to.read - 1u));
		assert_int_equal(poll(&fd, 1, 20000), 1);
		assert_int_equal(ibv_get_cq_event(pair.channel, &cq, &context),
				 0);
		assert_ptr_equal(cq, pair.end[1].cq);
		ibv_ack_cq_events(cq, 1);
	}
	close_pair(&pair);
}

/* Bytes that no program should write: an error or nothing, and no crash. */
static void test_garbage(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = 0 });
	struct rings from = export(&pair.end[0]);

	(void)state;
	srand(7);
	for (int i = 0; i < 300; i++) {
		uint16_t at = from.posted % from.sq.num_entries;

		for (int k = 0; k < 64; k++)
			from.sq.buffer[at * 64 + k] = (uint8_t)rand();
		/* Its number is one of those that there are. */
		memcpy(from.sq.buffer + at * 64, &at, 2);
		bell(from.sq.doorbell, ++from.posted);
		assert_int_not_equal(next(&from).status, WF_NIC_OK);
	}
	bell(from.sq.doorbell, 0xdeadbeef);
	bell(from.rq.doorbell, 0xdeadbeef);
	usleep(2000);
	bell(from.sq.doorbell, from.posted);
	close_pair(&pair);
}

static atomic_bool over;

static void *ask(void *arg)
{
	struct end *end = arg;
	struct wf_efadv_cq_attr attr;

	while (!over)
		assert_int_equal(efadv_query_cq(ibv_cq_ex_to_cq(end->cq), &attr,
						sizeof(attr)),
				 0);
	return NULL;
}

/* Calls that need the lock of the thread that looks at rings get it while
 * messages move, however many there are, and messages move nevertheless. */
static void test_turns(void **state)
{
	struct pair pair = open_pair(&(struct kind){ .rnr_retry = -1 });
	struct rings from = export(&pair.end[0]), to = export(&pair.end[1]);
	pthread_t threads[2];

	(void)state;
	over = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, ask, &pair.end[i]),
			0);
	for (uint16_t i = 0; i < 200; i++) {
		offer(&pair.end[1], &to, i % DEPTH);
		post(&pair, &from, i % DEPTH, pair.end[1].qp->qp_num);
		assert_int_equal(next(&from).status, WF_NIC_OK);
		assert_int_equal(next(&to).status, WF_NIC_OK);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laps),  cmocka_unit_test(test_source),
		cmocka_unit_test(test_arm),   cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
