/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls at the wrong time or with the wrong objects return a clear error and
 * never crash; and endpoints are closed with all kinds of operations in flight.
 */
#include "msg_util.h"

/* -- before the endpoint is enabled ---------------------------------------- */

static void check_no_transfers(struct fid_ep *ep)
{
	char buf[8] = { 0 };
	struct iovec iov = { buf, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1 };
	struct fi_msg_tagged tagged = { .msg_iov = &iov, .iov_count = 1 };
	ssize_t rets[] = {
		fi_send(ep, buf, 8, NULL, 0, NULL),
		fi_sendv(ep, &iov, NULL, 1, 0, NULL),
		fi_sendmsg(ep, &msg, 0),
		fi_senddata(ep, buf, 8, NULL, 1, 0, NULL),
		fi_inject(ep, buf, 8, 0),
		fi_injectdata(ep, buf, 8, 1, 0),
		fi_tsend(ep, buf, 8, NULL, 0, 1, NULL),
		fi_tsendv(ep, &iov, NULL, 1, 0, 1, NULL),
		fi_tsendmsg(ep, &tagged, 0),
		fi_tsenddata(ep, buf, 8, NULL, 1, 0, 1, NULL),
		fi_tinject(ep, buf, 8, 0, 1),
		fi_tinjectdata(ep, buf, 8, 1, 0, 1),
		fi_recv(ep, buf, 8, NULL, 0, NULL),
		fi_recvv(ep, &iov, NULL, 1, 0, NULL),
		fi_recvmsg(ep, &msg, 0),
		fi_trecv(ep, buf, 8, NULL, 0, 1, 0, NULL),
		fi_trecvv(ep, &iov, NULL, 1, 0, 1, 0, NULL),
		fi_trecvmsg(ep, &tagged, 0),
		fi_trecvmsg(ep, &tagged, FI_PEEK),
		fi_cancel(&ep->fid, buf),
	};

	for (size_t i = 0; i < COUNT_OF(rets); i++)
		CHECK_EQ(rets[i], -FI_EOPBADSTATE);
}

/* Bug of libfabric's shm: setopt or cq_read before enable was a segfault. */
static void test_before_enable(enum fi_threading threading)
{
	struct weft_test_opts opts = {
		.threading = threading,
		.not_enabled = true,
	};
	size_t min = 1000, got = 0, size = sizeof(got);
	struct weft_test_comp comp;
	struct weft_test t;

	weft_test_open(&t, &opts);
	check_no_transfers(t.ep);
	CHECK(!weft_test_poll(t.rxcq, &comp));
	CHECK(!weft_test_poll(t.txcq, &comp));
	CHECK_OK(fi_setopt(&t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &min, sizeof(min)));
	CHECK_OK(fi_getopt(&t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &got, &size));
	CHECK_EQ(got, 1000);
	/* An endpoint has its name from the start, and keeps it. */
	weft_test_name(&t);
	CHECK(weft_test_port(&t));
	got = weft_test_port(&t);
	CHECK_OK(fi_enable(t.ep));
	weft_test_name(&t);
	CHECK_EQ(weft_test_port(&t), got);
	/* Enabling twice does no harm; the options are still set. */
	CHECK_OK(fi_enable(t.ep));
	CHECK_OK(fi_getopt(&t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &got, &size));
	CHECK_EQ(got, 1000);
	weft_test_exchange(&t, weft_test_know(&t, &t), &t, 100, 1);
	weft_test_close(&t);
}

static void test_options(void)
{
	struct weft_test t;
	size_t value = 1, size;

	weft_test_open(&t, NULL);
	CHECK(fi_setopt(&t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&value, 4) < 0);
	CHECK(fi_setopt(&t.ep->fid, 77, FI_OPT_MIN_MULTI_RECV, &value,
			sizeof(value)) < 0);
	CHECK_EQ(fi_setopt(&t.ep->fid, FI_OPT_ENDPOINT, 7777, &value,
			   sizeof(value)),
		 -FI_ENOPROTOOPT);
	size = 1;
	CHECK_EQ(fi_getopt(&t.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &value, &size),
		 -FI_ETOOSMALL);
	CHECK_EQ(size, sizeof(value));
	weft_test_close(&t);
}

/* -- binding --------------------------------------------------------------- */

/* Bug: closing an AV that was bound only to an endpoint not yet enabled left
 * the endpoint with a pointer to freed memory. */
static void check_av_stays(struct weft_test *t)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;
	struct fid_ep *ep;

	CHECK_OK(fi_av_open(t->domain, &attr, &av, NULL));
	CHECK_OK(fi_endpoint(t->domain, t->info, &ep, NULL));
	CHECK_OK(fi_ep_bind(ep, &av->fid, 0));
	CHECK_EQ(fi_close(&av->fid), -FI_EBUSY);
	CHECK_EQ(fi_av_insert(av, t->name, 1, NULL, 0, NULL), 1);
	CHECK_OK(fi_close(&ep->fid));
	CHECK_OK(fi_close(&av->fid));
}

static void test_bind(void)
{
	struct fi_cq_attr cq_attr = { 0 };
	struct weft_test t;
	struct fid_ep *ep;
	struct fid_cq *cq;

	weft_test_open(&t, NULL);
	CHECK_OK(fi_cq_open(t.domain, &cq_attr, &cq, NULL));
	/* Already enabled: too late to bind. */
	CHECK_EQ(fi_ep_bind(t.ep, &cq->fid, FI_RECV), -FI_EOPBADSTATE);
	CHECK_OK(fi_endpoint(t.domain, t.info, &ep, NULL));
	CHECK_EQ(fi_enable(ep), -FI_ENOAV);
	CHECK_OK(fi_ep_bind(ep, &t.av->fid, 0));
	CHECK(fi_ep_bind(ep, &t.av->fid, 0) < 0);
	check_av_stays(&t);
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	CHECK(fi_ep_bind(ep, &cq->fid, 0) < 0);
	CHECK(fi_ep_bind(ep, &cq->fid, FI_RECV | FI_MULTI_RECV) < 0);
	CHECK(fi_ep_bind(ep, &t.domain->fid, 0) < 0);
	CHECK_OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT) < 0);
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	CHECK_OK(fi_ep_bind(ep, &cq->fid, FI_RECV));
	CHECK_OK(fi_enable(ep));
	/* Objects in use cannot be closed. */
	CHECK_EQ(fi_close(&cq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&t.txcq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&t.domain->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&t.fabric->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&t.av->fid), -FI_EBUSY);
	CHECK_OK(fi_close(&ep->fid));
	CHECK_OK(fi_close(&cq->fid));
	weft_test_close(&t);
}

/* -- arguments ------------------------------------------------------------- */

static void test_arguments(void)
{
	char buf[8] = { 0 };
	struct iovec iov[5] = {
		{ buf, 1 }, { buf, 1 }, { buf, 1 }, { buf, 1 }, { buf, 1 }
	};
	struct weft_test_comp comp;
	struct weft_test t;
	fi_addr_t self;
	size_t inject;
	void *large;

	weft_test_open(&t, NULL);
	self = weft_test_know(&t, &t);
	inject = t.info->tx_attr->inject_size;
	large = msg_alloc(inject + 1);
	CHECK_EQ(t.info->tx_attr->iov_limit, 4);
	CHECK_EQ(fi_sendv(t.ep, iov, NULL, 5, self, NULL), -FI_EINVAL);
	CHECK_EQ(fi_recvv(t.ep, iov, NULL, 5, self, NULL), -FI_EINVAL);
	CHECK_EQ(fi_inject(t.ep, large, inject + 1, self), -FI_EMSGSIZE);
	CHECK_EQ(fi_tinject(t.ep, large, inject + 1, self, 1), -FI_EMSGSIZE);
	/* Addresses that are not in the AV. */
	CHECK(fi_send(t.ep, buf, 1, NULL, self + 1, NULL) < 0);
	CHECK(fi_send(t.ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL) < 0);
	CHECK(fi_inject(t.ep, buf, 1, 1ull << 40) < 0);
	CHECK(fi_send(t.ep, large, inject + 1, NULL, 12345, NULL) != 0);
	msg_expect_quiet(t.txcq, 5);
	/* The endpoint still works. A NULL buffer of length 0 is allowed. */
	CHECK_OK(weft_test_recv(&t, NULL, 0, NULL));
	CHECK_OK(weft_test_send(&t, NULL, 0, self, NULL));
	weft_test_wait(t.rxcq, &comp);
	CHECK_EQ(comp.entry.len, 0);
	POST(fi_recvv(t.ep, NULL, NULL, 0, FI_ADDR_UNSPEC, NULL));
	POST(fi_sendv(t.ep, NULL, NULL, 0, self, NULL));
	weft_test_wait(t.rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	weft_test_close(&t);
	free(large);
}

/* -- closing --------------------------------------------------------------- */

/* Everything that can be in flight: posted receives; messages that nobody
 * received (whole, partial, parked); sends that wait for room, for a match, for
 * a connection. */
static void test_close_in_flight(bool receiver_first)
{
	static const size_t sizes[] = { 8, 1000, 16384, 100000, 1 << 20 };
	struct weft_test_traces before;
	uint8_t *buf = msg_alloc(1 << 20), name[WEFT_TEST_NAME_MAX];
	struct weft_test a, b;
	fi_addr_t peer, nobody;

	weft_test_look(&before);
	weft_test_open(&a, NULL);
	weft_test_open(&b, NULL);
	peer = weft_test_know(&a, &b);
	weft_test_know(&b, &a);
	weft_test_name_of_port(name, 1);
	nobody = weft_test_insert(&a, name);
	weft_test_exchange(&a, peer, &b, 100, 1);
	for (uint64_t i = 0; i < 100; i++) {
		CHECK_OK(weft_test_trecv(&b, buf, 100, 1000 + i, 0, NULL));
		if (fi_tsend(a.ep, buf, sizes[i % 5], NULL, peer, i, NULL))
			break;
		if (i % 10 == 0)
			weft_test_progress();
	}
	CHECK_OK(weft_test_tsend(&a, buf, 100, nobody, 1, NULL));
	weft_test_progress();
	if (receiver_first) {
		weft_test_close(&b);
		/* The other end notices, and continues. */
		weft_test_progress_for(20);
		weft_test_close(&a);
	} else {
		weft_test_close(&a);
		weft_test_progress_for(20);
		weft_test_close(&b);
	}
	free(buf);
	weft_test_check_clean(&before);
}

/* The messages that the closed sender had delivered are received; the others
 * fail or stay unmatched, and nothing hangs. */
static void test_close_sender(void)
{
	uint8_t from[100], to[100];
	struct weft_test a, b;
	fi_addr_t peer;

	weft_test_open(&a, NULL);
	weft_test_open(&b, NULL);
	peer = weft_test_know(&a, &b);
	for (uint64_t i = 0; i < 50; i++) {
		weft_test_fill(from, 100, i);
		CHECK_OK(weft_test_tsend(&a, from, 100, peer, i, NULL));
		weft_test_wait_ok(a.txcq, NULL);
	}
	weft_test_close(&a);
	weft_test_progress_for(5);
	for (uint64_t i = 0; i < 50; i++) {
		CHECK_OK(weft_test_trecv(&b, to, 100, i, 0, NULL));
		weft_test_wait_ok(b.rxcq, NULL);
		CHECK(weft_test_holds(to, 100, i));
	}
	weft_test_close(&b);
}

int main(void)
{
	weft_test_begin(60);
	test_before_enable(FI_THREAD_DOMAIN);
	test_before_enable(FI_THREAD_SAFE);
	test_options();
	test_bind();
	test_arguments();
	test_close_in_flight(true);
	test_close_in_flight(false);
	test_close_sender();
	return 0;
}
