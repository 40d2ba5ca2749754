/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of an endpoint that waits for replies of one peer and polls the
 * short way (wf_core_ep_asked()): what else happens meanwhile. The provider is
 * called without libfabric's loader, as in shared_test.c.
 */
#include "core/ep.h"

#include <string.h>
#include <time.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include "prov/ep.h"
#include "prov/unloaded_test.h"

#define TAG 7
#define LARGE 65536
#define KEY 5
#define PATIENCE_S 60

/* A domain with one endpoint. */
struct side {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t other;
	uint8_t buf[LARGE];
};

static struct side sides[3];

static void open_side(struct side *s)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	MUST(fi_domain(fabric, info, &s->domain, NULL));
	MUST(fi_av_open(s->domain, &av, &s->av, NULL));
	MUST(fi_cq_open(s->domain, &cq, &s->cq, NULL));
	MUST(fi_endpoint(s->domain, info, &s->ep, NULL));
	MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	MUST(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(s->ep));
}

static fi_addr_t name_of(struct side *s, struct side *peer)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	MUST(fi_getname(&peer->ep->fid, name, &len));
	assert_int_equal(fi_av_insert(s->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

static void close_side(struct side *s)
{
	MUST(fi_close(&s->ep->fid));
	MUST(fi_close(&s->cq->fid));
	MUST(fi_close(&s->av->fid));
	MUST(fi_close(&s->domain->fid));
}

/* Drives both until @s has a completion. */
static struct fi_cq_tagged_entry wait_for(struct side *s, struct side *peer)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(s->cq, &entry, 1)) == -FI_EAGAIN) {
		if (peer)
			fi_cq_read(peer->cq, NULL, 0);
		assert_true(time(NULL) < end);
	}
	assert_int_equal(ret, 1);
	return entry;
}

static void expect_failure(struct side *s, int err)
{
	time_t end = time(NULL) + PATIENCE_S;
	struct fi_cq_err_entry failure = { 0 };
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(s->cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(time(NULL) < end);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(s->cq, &failure, 0), 1);
	assert_int_equal(failure.err, err);
}

/* A short message, received by @to. */
static void message(struct side *from, struct side *to, uint8_t value)
{
	uint8_t got = 0;

	MUST(fi_trecv(to->ep, &got, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	while (fi_tinject(from->ep, &value, 1, from->other, TAG)) {
		fi_cq_read(from->cq, NULL, 0);
		fi_cq_read(to->cq, NULL, 0);
	}
	wait_for(to, from);
	assert_int_equal(got, value);
}

static bool is_asked(const struct side *s)
{
	return wf_prov_ep_of(s->ep)->core.common.host.asked;
}

/* A message that stays with @s until it is received. */
static void send_large(struct side *s, fi_addr_t to)
{
	MUST(fi_tsend(s->ep, s->buf, LARGE, NULL, to, TAG + 1, s));
	for (int i = 0; i < 100; i++)
		assert_int_equal(fi_cq_read(s->cq, NULL, 0), -FI_EAGAIN);
}

static void receive_large(struct side *s)
{
	MUST(fi_trecv(s->ep, s->buf, LARGE, NULL, FI_ADDR_UNSPEC, TAG + 1, 0,
		      NULL));
}

/* Two sides that have exchanged messages; the first one waits for a reply. */
static void open_waiting(struct side *a, struct side *b)
{
	open_side(a);
	open_side(b);
	a->other = name_of(a, b);
	b->other = name_of(b, a);
	/* The second message makes a ring. */
	for (uint8_t i = 0; i < 2; i++) {
		message(a, b, 1);
		message(b, a, 2);
	}
	send_large(a, a->other);
	assert_true(is_asked(a));
}

static void test_messages_arrive(void **state)
{
	struct side *a = &sides[0], *b = &sides[1];

	(void)state;
	open_waiting(a, b);
	/* Each poll looks at the ring. */
	for (int i = 0; i < 200; i++) {
		struct fi_cq_tagged_entry entry;

		MUST(fi_trecv(a->ep, a->buf, 1, NULL, FI_ADDR_UNSPEC, TAG, 0,
			      NULL));
		MUST(fi_tinject(b->ep, "y", 1, b->other, TAG));
		assert_int_equal(fi_cq_read(a->cq, &entry, 1), 1);
	}
	assert_true(is_asked(a));
	/* Without a receive, too. */
	MUST(fi_tinject(b->ep, "x", 1, b->other, TAG));
	for (int i = 0; i < 100; i++)
		fi_cq_read(a->cq, NULL, 0);
	receive_large(b);
	wait_for(b, NULL);
	assert_ptr_equal(wait_for(a, NULL).op_context, a);
	assert_false(is_asked(a));
	MUST(fi_trecv(a->ep, a->buf, 1, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	wait_for(a, NULL);
	assert_int_equal(a->buf[0], 'x');
	close_side(a);
	close_side(b);
}

/* The channel is freed, which the endpoint was asked to look at. */
static void test_peer_is_removed(void **state)
{
	struct side *a = &sides[0], *b = &sides[1];

	(void)state;
	open_waiting(a, b);
	MUST(fi_av_remove(a->av, &a->other, 1, 0));
	assert_false(is_asked(a));
	expect_failure(a, FI_ECANCELED);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(fi_cq_read(a->cq, NULL, 0), -FI_EAGAIN);
	a->other = name_of(a, b);
	message(a, b, 3);
	close_side(a);
	close_side(b);
}

static void test_peer_closes(void **state)
{
	struct side *a = &sides[0], *b = &sides[1];

	(void)state;
	open_waiting(a, b);
	close_side(b);
	expect_failure(a, FI_ECONNRESET);
	close_side(a);
}

/* The replies of two peers, the second one first. */
static void test_second_peer(void **state)
{
	struct side *a = &sides[0], *b = &sides[1], *c = &sides[2];
	fi_addr_t to_c;

	(void)state;
	open_waiting(a, b);
	open_side(c);
	to_c = name_of(a, c);
	receive_large(c);
	while (fi_tsend(a->ep, a->buf, LARGE, NULL, to_c, TAG + 1, c) ==
	       -FI_EAGAIN)
		fi_cq_read(c->cq, NULL, 0);
	wait_for(c, a);
	assert_ptr_equal(wait_for(a, c).op_context, c);
	receive_large(b);
	wait_for(b, a);
	assert_ptr_equal(wait_for(a, b).op_context, a);
	close_side(a);
	close_side(b);
	close_side(c);
}

/* Atomics by calls of the API: the short way and the others, in order. */
static void test_atomics(void **state)
{
	struct side *a = &sides[0], *b = &sides[1];
	uint64_t word = 0, old = 0, add = 1, addr = 0, key;
	struct fid_mr *mr;

	(void)state;
	open_waiting(a, b);
	receive_large(b);
	wait_for(b, a);
	wait_for(a, b);
	MUST(fi_mr_reg(b->domain, &word, sizeof(word),
		       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		addr = (uintptr_t)&word;
	for (uint64_t i = 0; i < 500; i += 3) {
		struct fi_cq_tagged_entry entry;

		MUST(fi_atomic(a->ep, &add, 1, NULL, a->other, addr, key,
			       FI_UINT64, FI_SUM, &add));
		assert_ptr_equal(wait_for(a, b).op_context, &add);
		MUST(fi_inject_atomic(a->ep, &add, 1, a->other, addr, key,
				      FI_UINT64, FI_SUM));
		MUST(fi_fetch_atomic(a->ep, &add, 1, NULL, &old, NULL, a->other,
				     addr, key, FI_UINT64, FI_SUM, &old));
		entry = wait_for(a, b);
		assert_ptr_equal(entry.op_context, &old);
		assert_int_equal(entry.flags, FI_ATOMIC | FI_READ);
		assert_int_equal(old, i + 2);
	}
	old = word;
	add = 7;
	MUST(fi_compare_atomic(a->ep, &add, 1, NULL, &old, NULL, &old, NULL,
			       a->other, addr, key, FI_UINT64, FI_CSWAP, &old));
	wait_for(a, b);
	assert_int_equal(word, 7);
	/* No such operation, and memory that is not registered any more. */
	assert_int_equal(fi_fetch_atomic(a->ep, &add, 1, NULL, &old, NULL,
					 a->other, addr, key, FI_DOUBLE,
					 FI_BXOR, NULL),
			 -FI_EOPNOTSUPP);
	MUST(fi_close(&mr->fid));
	MUST(fi_fetch_atomic(a->ep, &add, 1, NULL, &old, NULL, a->other, addr,
			     key, FI_UINT64, FI_SUM, &old));
	expect_failure(a, FI_EKEYREJECTED);
	assert_int_equal(word, 7);
	close_side(a);
	close_side(b);
}

static int set_up(void **state)
{
	(void)state;
	return unloaded_open(FI_MSG | FI_TAGGED | FI_ATOMIC, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_arrive),
		cmocka_unit_test(test_peer_is_removed),
		cmocka_unit_test(test_peer_closes),
		cmocka_unit_test(test_second_peer),
		cmocka_unit_test(test_atomics),
	};

	return cmocka_run_group_tests(tests, set_up, unloaded_close);
}
