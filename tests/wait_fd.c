/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_WAIT_FD: an application sleeps on the descriptor of its CQ and is woken by
 * everything that generates a completion: a message, a message from a process
 * that connects meanwhile, the completion of its own send, data of a remote
 * write, the death of a peer. While it sleeps, peers can read and write its
 * memory.
 */
#include "wait_util.h"

#define LARGE 1000000

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS,
	.wait_obj = FI_WAIT_FD,
	.one_cq = true,
};

/* -- what the calls say ---------------------------------------------------- */

static void test_calls(void)
{
	struct weft_test t;
	struct fid *fids[2];
	enum fi_wait_obj obj = FI_WAIT_UNSPEC;
	struct pollfd pfd = { .events = POLLIN };
	struct weft_test_comp comp;
	fi_addr_t self;
	char buf[8];

	weft_test_open(&t, &opts);
	self = weft_test_know(&t, &t);
	fids[0] = fids[1] = &t.txcq->fid;
	CHECK_OK(fi_control(&t.txcq->fid, FI_GETWAITOBJ, &obj));
	CHECK_EQ(obj, FI_WAIT_FD);
	pfd.fd = wait_fd_of(&t.txcq->fid);
	CHECK_EQ(wait_fd_of(&t.txcq->fid), pfd.fd);
	/* The queue is empty: the application may sleep, and nothing wakes
	 * it. */
	CHECK_OK(fi_trywait(t.fabric, fids, 1));
	CHECK_EQ(poll(&pfd, 1, 20), 0);
	CHECK_OK(fi_trywait(t.fabric, fids, 2));
	/* A completion is unread: the application must not sleep. */
	CHECK_OK(weft_test_recv(&t, buf, 8, NULL));
	CHECK_OK(weft_test_send(&t, "weft", 5, self, NULL));
	while (fi_trywait(t.fabric, fids, 1) != -FI_EAGAIN)
		weft_test_progress();
	/* After one of two completions is read, it still must not sleep. The
	 * second may come later. */
	weft_test_wait(t.txcq, &comp);
	while (fi_trywait(t.fabric, fids, 1) != -FI_EAGAIN)
		weft_test_progress();
	weft_test_wait(t.txcq, &comp);
	/* The end of the last messages may wake it, but not again and again. */
	for (int i = 0; i < 20; i++) {
		while (fi_trywait(t.fabric, fids, 1) == -FI_EAGAIN)
			CHECK(!weft_test_poll(t.txcq, &comp));
		if (!poll(&pfd, 1, 20))
			break;
		CHECK(i < 19);
	}
	weft_test_close(&t);
}

/* The same call accepts event queues, also together with CQs. */
static void test_eq(void)
{
	struct fi_eq_attr attr = { .size = 16,
				   .flags = FI_WRITE,
				   .wait_obj = FI_WAIT_FD };
	struct fi_eq_entry event = { 0 };
	struct weft_test t;
	struct fid *fids[2];
	struct fid_eq *eq;
	struct pollfd pfd = { .events = POLLIN };
	uint32_t type;

	weft_test_open(&t, &opts);
	CHECK_OK(fi_eq_open(t.fabric, &attr, &eq, NULL));
	fids[0] = &eq->fid;
	fids[1] = &t.txcq->fid;
	CHECK_OK(fi_trywait(t.fabric, fids, 2));
	pfd.fd = wait_fd_of(&eq->fid);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &event, sizeof(event), 0),
		 sizeof(event));
	CHECK_EQ(fi_trywait(t.fabric, fids, 2), -FI_EAGAIN);
	CHECK_EQ(poll(&pfd, 1, 1000), 1);
	CHECK_EQ(fi_eq_read(eq, &type, &event, sizeof(event), 0),
		 sizeof(event));
	CHECK_OK(fi_trywait(t.fabric, fids, 2));
	CHECK_OK(fi_close(&eq->fid));
	weft_test_close(&t);
}

/* -- woken by a peer ------------------------------------------------------- */

/* In each step the parent tells that it will sleep; the child waits briefly,
 * then acts. */
enum step {
	SMALL,	   /* sends a message */
	LARGE_ONE, /* sends a large message: both sides must copy */
	TAKE,	   /* receives a large message from us */
	DATA,	   /* writes our memory with CQ data */
	MEMORY,	   /* writes and reads our memory, then sends a message */
	STEPS,
};

#define ROUNDS 3

static void act(struct weft_test *t, fi_addr_t peer,
		const struct rma_target *target, enum step step, uint8_t *buf)
{
	struct fi_context context;

	weft_test_fill(buf, LARGE, step);
	switch (step) {
	case SMALL:
		CHECK_OK(weft_test_tsend(t, buf, 100, peer, step, &context));
		weft_test_wait_ok(t->txcq, &context);
		break;
	case LARGE_ONE:
		CHECK_OK(weft_test_tsend(t, buf, LARGE, peer, step, &context));
		weft_test_wait_ok(t->txcq, &context);
		break;
	case TAKE:
		memset(buf, 0, LARGE);
		CHECK_OK(weft_test_trecv(t, buf, LARGE, step, 0, &context));
		weft_test_wait_ok(t->rxcq, &context);
		CHECK(weft_test_holds(buf, LARGE, step));
		break;
	case DATA:
		POST(fi_writedata(t->ep, buf, 3000, NULL, 77, peer,
				  target->base, target->key, &context));
		weft_test_wait_ok(t->txcq, &context);
		break;
	default:
		rma_put(t, peer, target, 0, buf, LARGE);
		memset(buf, 0, LARGE);
		rma_get(t, peer, target, 0, buf, LARGE);
		CHECK(weft_test_holds(buf, LARGE, step));
		CHECK_OK(weft_test_tsend(t, buf, 100, peer, step, &context));
		weft_test_wait_ok(t->txcq, &context);
	}
}

static void waker(struct weft_test *t, fi_addr_t peer,
		  struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LARGE);
	char mark;

	(void)arg;
	for (int i = 0; i < ROUNDS * STEPS; i++) {
		CHECK(weft_test_get_driving(line, &mark, 1));
		/* The first one also connects while the parent sleeps. */
		wait_nap(20);
		act(t, peer, &target, i % STEPS, buf);
	}
	weft_test_sync(line);
	free(buf);
}

static void sleeper(struct weft_test *t, fi_addr_t peer,
		    struct weft_test_line *line, void *arg)
{
	uint8_t *buf = msg_alloc(LARGE), *region = msg_alloc(LARGE);
	struct weft_test_comp comp;
	struct fi_context context;
	struct fid_mr *mr;

	(void)arg;
	rma_offer(t, line, region, LARGE, &mr);
	for (int i = 0; i < ROUNDS * STEPS; i++) {
		enum step step = i % STEPS;

		if (step == TAKE) {
			weft_test_fill(buf, LARGE, step);
			CHECK_OK(weft_test_tsend(t, buf, LARGE, peer, step,
						 &context));
		} else if (step != DATA) {
			CHECK_OK(weft_test_trecv(t, buf, LARGE, step, 0,
						 &context));
		}
		weft_test_put(line, "s", 1);
		if (step == DATA) {
			CHECK(wait_on_fd(t, t->rxcq, &comp,
					 WEFT_TEST_PATIENCE_MS));
			CHECK_EQ(comp.entry.data, 77);
			CHECK(weft_test_holds(region, 3000, step));
			continue;
		}
		wait_on_fd_ok(t, step == TAKE ? t->txcq : t->rxcq, &context);
		if (step == SMALL || step == LARGE_ONE)
			CHECK(weft_test_holds(buf, step == SMALL ? 100 : LARGE,
					      step));
	}
	weft_test_sync(line);
	CHECK(weft_test_holds(region, LARGE, MEMORY));
	CHECK_OK(fi_close(&mr->fid));
	free(buf);
	free(region);
}

/* -- strangers and deaths -------------------------------------------------- */

static void stranger(struct weft_test_line *line, void *arg)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct fi_context context;
	struct weft_test t;
	uint64_t number = 5;

	(void)arg;
	CHECK(weft_test_get(line, name, sizeof(name)));
	wait_nap(30);
	weft_test_open(&t, &opts);
	CHECK_OK(weft_test_tdeliver(&t, &number, 8, weft_test_insert(&t, name),
				    1, &context));
	wait_on_fd_ok(&t, t.txcq, &context);
	weft_test_close(&t);
}

/* Waits, and ends without closing anything. */
static void mortal(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	char mark;

	(void)arg;
	weft_test_open(&t, &opts);
	weft_test_meet(&t, line);
	while (!weft_test_get_driving(line, &mark, 1))
		;
	wait_nap(30);
	_exit(0);
}

static void test_strangers(void)
{
	struct weft_test_line line;
	struct weft_test_comp comp;
	struct fi_context context;
	uint8_t *large = msg_alloc(LARGE);
	uint64_t number = 0;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_open(&t, &opts);
	for (int i = 0; i < 3; i++) {
		weft_test_fork(&line, stranger, NULL);
		CHECK_OK(weft_test_trecv(&t, &number, 8, 1, 0, &context));
		weft_test_put(&line, t.name, sizeof(t.name));
		wait_on_fd_ok(&t, t.rxcq, &context);
		CHECK_EQ(number, 5);
		weft_test_join(&line);
	}
	/* A send that nobody will ever receive fails when its receiver dies. */
	for (int i = 0; i < 3; i++) {
		weft_test_fork(&line, mortal, NULL);
		peer = weft_test_meet(&t, &line);
		CHECK_OK(weft_test_tsend(&t, large, LARGE, peer, 1, &context));
		weft_test_progress_for(20);
		weft_test_put(&line, "s", 1);
		CHECK(wait_on_fd(&t, t.txcq, &comp, WEFT_TEST_PATIENCE_MS));
		CHECK(comp.ret < 0);
		CHECK(comp.entry.op_context == &context);
		weft_test_join(&line);
	}
	weft_test_close(&t);
	free(large);
}

/* -- several in one epoll -------------------------------------------------- */

static void test_epoll(void)
{
	struct weft_test_opts two = opts;
	struct weft_test a, b;
	struct epoll_event event = { .events = EPOLLIN }, got[4];
	int poller = epoll_create1(EPOLL_CLOEXEC);
	struct fi_context context;
	struct fid *fids[4];
	uint64_t word;

	two.one_cq = false;
	weft_test_open(&a, &two);
	weft_test_open(&b, &two);
	CHECK_SYS(poller);
	fids[0] = &a.txcq->fid;
	fids[1] = &a.rxcq->fid;
	fids[2] = &b.txcq->fid;
	fids[3] = &b.rxcq->fid;
	for (int i = 0; i < 4; i++) {
		event.data.fd = i;
		CHECK_SYS(epoll_ctl(poller, EPOLL_CTL_ADD, wait_fd_of(fids[i]),
				    &event));
	}
	CHECK_OK(weft_test_trecv(&b, &word, 8, 1, 0, &context));
	POST(fi_tinject(a.ep, "seven b", 8, weft_test_know(&a, &b), 1));
	/* A CQ of each domain must be tried with its own fabric. */
	for (uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;;) {
		struct weft_test_comp comp;

		CHECK(weft_test_ms() < end);
		weft_test_poll(a.txcq, &comp);
		if (weft_test_poll(b.rxcq, &comp)) {
			CHECK(comp.entry.op_context == &context);
			break;
		}
		if (!fi_trywait(a.fabric, fids, 2) &&
		    !fi_trywait(b.fabric, fids + 2, 2))
			CHECK_SYS(epoll_wait(poller, got, 4, 1000));
	}
	close(poller);
	weft_test_close(&a);
	weft_test_close(&b);
}

static void run(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts safe = opts;

	(void)line;
	(void)arg;
	weft_test_load();
	weft_test_pair(&opts, waker, sleeper, NULL);
	safe.threading = FI_THREAD_SAFE;
	safe.one_cq = false;
	weft_test_pair(&safe, waker, sleeper, NULL);
}

int main(void)
{
	/* The machine may be busy. */
	setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 0);
	weft_test_begin(60);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "0", 1);
	msg_run_apart(run, NULL);
	setenv("FI_WEFT_CMA", "1", 1);
	test_calls();
	test_eq();
	test_strangers();
	test_epoll();
	return 0;
}
