/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that share everything: two post to one queue pair, two poll each of
 * both completion queues. Every message arrives once.
 */
#include "efa/pair_test.h"

#define MESSAGES 1000u
#define THREADS 2

struct shared {
	struct pair pair;
	_Atomic uint32_t sent, received;
	_Atomic uint8_t seen[THREADS * MESSAGES];
	_Atomic uint32_t wrong;
	_Atomic uint32_t senders;
};

static void *sender(void *arg)
{
	struct shared *shared = arg;
	struct end *from = &shared->pair.end[0];
	uint32_t first = MESSAGES * shared->senders++;

	for (uint32_t i = first; i < first + MESSAGES; i++) {
		int ret;

		do {
			ibv_wr_start(from->ex);
			from->ex->wr_id = i;
			ibv_wr_send(from->ex);
			ibv_wr_set_inline_data(from->ex, &i, sizeof(i));
			ibv_wr_set_ud_addr(from->ex, shared->pair.ah,
					   shared->pair.end[1].qp->qp_num,
					   QKEY);
			ret = ibv_wr_complete(from->ex);
			if (ret)
				usleep(50);
		} while (ret == ENOMEM);
		shared->wrong += ret != 0;
	}
	return NULL;
}

static void one(struct shared *shared, const struct ibv_wc *wc)
{
	struct end *to = &shared->pair.end[1];
	uint32_t number;

	if (wc->status != IBV_WC_SUCCESS) {
		shared->wrong++;
	} else if (wc->opcode == IBV_WC_SEND) {
		shared->sent++;
	} else {
		memcpy(&number, to->buf + wc->wr_id * 8, sizeof(number));
		if (number >= THREADS * MESSAGES || shared->seen[number]++)
			shared->wrong++;
		shared->received++;
		shared->wrong += receive(to, wc->wr_id, wc->wr_id * 8, 8) != 0;
	}
}

static void *poller(void *arg)
{
	struct shared *shared = arg;
	time_t until = time(NULL) + 60;

	while ((shared->sent < THREADS * MESSAGES ||
		shared->received < THREADS * MESSAGES) &&
	       time(NULL) < until) {
		for (int i = 0; i < 2; i++) {
			struct ibv_cq_ex *cq = shared->pair.end[i].cq;
			struct ibv_wc wc[4];
			int n = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 4, wc);

			for (int k = 0; k < n; k++)
				one(shared, &wc[k]);
		}
	}
	return NULL;
}

static void test_shared(void **state)
{
	static struct shared shared;
	pthread_t threads[2 * THREADS];

	(void)state;
	shared.pair = open_pair(&(struct kind){ .rnr_retry = -1 });
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&shared.pair.end[1], i, i * 8, 8), 0);
	for (int i = 0; i < 2 * THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < THREADS ? sender : poller,
						&shared),
				 0);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.wrong, 0);
	assert_int_equal(shared.sent, THREADS * MESSAGES);
	assert_int_equal(shared.received, THREADS * MESSAGES);
	close_pair(&shared.pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
