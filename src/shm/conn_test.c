/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: every state of the handshake ends, whatever fails, and a peer
 * that does not answer is told about. Time is an argument of
 * wf_core_look(), so nothing here waits for it.
 */
#include "shm/conn.h"

#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "shm/conn_defs.h"
#include "shm/joined_test.h"

#define TIMEOUT_MS 5000
#define DEAD_S 60

struct world {
	struct wf_compq cq;
	struct wf_rxq rxq_a, rxq_b;
	struct wf_regs regs;
	struct wf_core core_a, core_b;
	struct wf_shm_ep a, b; /* a connects to b */
	struct wf_addr addr_b;
	uint64_t start;
};

/* -- calls that fail ------------------------------------------------------- */

static int fail_welcomes; /* so many; by sendmsg() with two descriptors */
static int fail_hellos;	  /* with one, or three */
static size_t hello_room; /* for the descriptors of the last one */
static int fail_refusals; /* by send() of a whole message */
static int fail_watches;  /* by epoll_ctl() */
static int fail_timers;	  /* by timerfd_create() */
static int fail_accepts;  /* by accept4() */
static int connects;

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
ssize_t __real_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/* The linker has weft's calls come here (src/meson.build). */
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && fail_watches > 0) {
		fail_watches--;
		errno = ENOSPC;
		return -1;
	}
	return __real_epoll_ctl(epoll, op, fd, event);
}

int __wrap_timerfd_create(int clock, int flags)
{
	if (fail_timers > 0) {
		fail_timers--;
		errno = EMFILE;
		return -1;
	}
	return __real_timerfd_create(clock, flags);
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (fail_accepts > 0) {
		fail_accepts--;
		errno = EMFILE;
		return -1;
	}
	return __real_accept4(fd, addr, len, flags);
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	connects++;
	return __real_connect(fd, addr, len);
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	if (len >= sizeof(struct wf_shm_greeting) && fail_refusals > 0) {
		fail_refusals--;
		errno = ENOBUFS;
		return -1;
	}
	return __real_send(fd, buf, len, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	int *left = msg->msg_iov->iov_len == sizeof(struct wf_shm_welcome) ?
			    &fail_welcomes :
			    &fail_hellos;

	if (left == &fail_hellos)
		hello_room = msg->msg_controllen;
	if (*left > 0) {
		(*left)--;
		errno = ETOOMANYREFS;
		return -1;
	}
	return __real_sendmsg(fd, msg, flags);
}

/* -- the log --------------------------------------------------------------- */

static int warnings; /* about peers that do not answer */
static char warning[512];

static void take_line(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	if (level != WF_LOG_TELL || !strstr(text, "no answer from"))
		return;
	warnings++;
	strncpy(warning, text, sizeof(warning) - 1);
}

/* -- two endpoints --------------------------------------------------------- */

static int get_name(void *arg, uint64_t name, struct wf_addr *addr)
{
	const struct world *w = arg;

	(void)name;
	*addr = w->addr_b;
	return 0;
}

static void open_ep(struct world *w, struct wf_core *core, struct wf_shm_ep *ep,
		    struct wf_rxq *rxq)
{
	struct wf_host host = joined_host(&w->cq, rxq, &w->regs);
	struct wf_shm_ep_attr attr = joined_attr();

	attr.connect_timeout_ms = TIMEOUT_MS;
	attr.dead_timeout_s = DEAD_S;
	host.names.get = get_name;
	host.names.arg = w;
	joined_open_ep(core, ep, host, &attr);
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(wf_op_compq_init(&w->cq, 64, false), 0);
	wf_match_rxq_init(&w->rxq_a, &w->cq);
	wf_match_rxq_init(&w->rxq_b, &w->cq);
	assert_int_equal(wf_op_regs_open(&w->regs, false), 0);
	open_ep(w, &w->core_a, &w->a, &w->rxq_a);
	open_ep(w, &w->core_b, &w->b, &w->rxq_b);
	w->addr_b = w->b.host->addr;
	w->start = wf_base_clock_ns();
	fail_welcomes = 0;
	fail_hellos = 0;
	fail_refusals = 0;
	fail_watches = 0;
	fail_timers = 0;
	fail_accepts = 0;
	connects = 0;
	warnings = 0;
	wf_base_log_set_sink(take_line);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	wf_core_close(&w->core_a);
	wf_core_close(&w->core_b);
	wf_op_regs_close(&w->regs);
	wf_match_rxq_fini(&w->rxq_a);
	wf_match_rxq_fini(&w->rxq_b);
	wf_op_compq_fini(&w->cq);
	free(w);
	return 0;
}

static struct wf_shm_out *send_one(struct world *w)
{
	static uint64_t value;
	struct joined_buf b = joined_word(&value);
	struct wf_tx tx = joined_tx(&b, 1);
	struct wf_shm_out *out;

	assert_int_equal(wf_core_submit(&w->core_a, 0, &tx), 0);
	out = wf_container_of(w->a.all_outs.next, struct wf_shm_out, link);
	w->start = out->since;
	return out;
}

/* Sockets are looked at so many ms after the last send_one(). */
static void look(struct world *w, struct wf_shm_ep *ep, uint64_t ms)
{
	wf_core_look(joined_core(ep), w->start + ms * WF_NS_PER_MS);
}

static uint64_t counter(const struct wf_shm_ep *ep, enum wf_shm_stat item)
{
	return atomic_load(&ep->stats.page->items[item].value);
}

static void expect_failure(struct world *w, int err)
{
	struct wf_comp comp;

	for (int i = 0; i < 3; i++)
		wf_core_progress(joined_core(&w->a));
	assert_true(joined_pop(&w->cq, &comp));
	assert_int_equal(joined_err(&comp), err);
}

/* Within the connect time-out both sides find to each other. */
static void expect_open(struct world *w, const struct wf_shm_out *out)
{
	struct wf_comp comp;

	for (uint64_t ms = 1; ms < TIMEOUT_MS; ms++) {
		if (out->state == WF_SHM_OUT_OPEN)
			break;
		look(w, &w->b, ms);
		look(w, &w->a, ms);
	}
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
	assert_int_equal(w->b.watch.count, 1);
	assert_true(joined_pop(&w->cq, &comp));
	assert_int_equal(joined_err(&comp), 0);
	look(w, &w->a, TIMEOUT_MS);
	assert_int_equal(counter(&w->a, WF_SHM_STAT_unanswered), 0);
}

/* -- tests ----------------------------------------------------------------- */

static void test_connects(void **state)
{
	struct world *w = *state;

	expect_open(w, send_one(w));
	assert_int_equal(warnings, 0);
}

/* Somebody connects to the listener of @ep. */
static int call_at(const struct wf_shm_ep *ep)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr), room = sizeof(int);
	int type, fd;

	assert_int_equal(getsockname(ep->listener.fd, (void *)&addr, &len), 0);
	assert_int_equal(
		getsockopt(ep->listener.fd, SOL_SOCKET, SO_TYPE, &type, &room),
		0);
	fd = socket(AF_UNIX, type, 0);
	assert_int_equal(connect(fd, (void *)&addr, len), 0);
	return fd;
}

/* Bug: a process without descriptors for its peers went on keeping those of tables
 * that it had not needed. Before other tests without descriptors: for a while after
 * one, none is kept. */
static void test_kept_descriptors_are_given_back(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out = send_one(w);
	int fd;

	expect_open(w, out);
	assert_true(out->regs.memfd >= 0);
	fd = call_at(&w->a);
	fail_accepts = 1;
	look(w, &w->a, TIMEOUT_MS + 1);
	assert_int_equal(fail_accepts, 0);
	assert_int_equal(out->regs.memfd, -1);
	assert_non_null(out->regs.view.entries);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
	close(fd);
}

static int inject_some(struct world *w, size_t len)
{
	static uint8_t bytes[4096];
	struct joined_buf b = {
		.len = len,
		.count = 1,
		.iov[0] = { bytes, len },
	};
	struct wf_tx tx = joined_tx(&b, 1);

	tx.inject = true;
	return wf_core_submit(&w->core_a, 0, &tx);
}

static void expect_messages(struct world *w, uint32_t count)
{
	for (int i = 0; i < 3; i++)
		wf_core_progress(joined_core(&w->b));
	assert_int_equal(w->rxq_b.tagged.unexpected, count);
}

/* Bugs: an injected message was refused until the peer had answered, so a process
 * that sends one to each of many connected to one after the other. Then it waited
 * for the answer: it was never sent by a process that made no call afterwards. */
static void test_injected_goes_with_hello(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out;

	assert_int_equal(inject_some(w, 4096), 0);
	out = wf_container_of(w->a.all_outs.next, struct wf_shm_out, link);
	assert_int_equal(out->state, WF_SHM_OUT_GREETED);
	/* An endpoint that closes waits for the answer. */
	assert_true(wf_shm_out_holds_copies(out));
	assert_int_equal(inject_some(w, 8), -EAGAIN);
	/* The sender makes no progress. */
	look(w, &w->b, 1);
	expect_messages(w, 1);
	expect_open(w, out);
	assert_false(wf_shm_out_holds_copies(out));
	assert_int_equal(inject_some(w, 8), 0);
	expect_messages(w, 2);
}

/* Bug: a page of the data area was taken, which such a message does not use. */
static void test_short_one_takes_a_page(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out;

	joined_meet(&w->a);
	assert_int_equal(inject_some(w, WF_SHM_INLINE_MAX), 0);
	out = wf_container_of(w->a.all_outs.next, struct wf_shm_out, link);
	if (out->region.returns_ready)
		skip(); /* an old kernel: all of it */
	assert_int_equal(out->region.lines_ready, 0);
	assert_false(out->region.replies_ready);
	look(w, &w->b, 1);
	expect_messages(w, 1);
	expect_open(w, out);
}

/* Of this type: progress may record others. */
static const struct wf_trace_event *last_event(const struct wf_core *core,
					       uint8_t type)
{
	uint64_t i = core->trace.written;

	while (i-- > 0) {
		if (core->trace.page->events[i].type == type)
			return &core->trace.page->events[i];
	}
	fail_msg("no such event");
	return NULL;
}

/* Bug: no event said that such a message was sent. Recording may also end before
 * the peer has answered. */
static void test_injected_is_traced(void **state)
{
	struct world *w = *state;
	const struct wf_trace_event *event;
	uint64_t written;

	atomic_store(&w->core_a.trace.front->wanted, UINT64_MAX);
	look(w, &w->a, 1);
	assert_int_equal(inject_some(w, 4096), 0);
	event = last_event(&w->core_a, WF_TRACE_PUT);
	assert_int_equal(event->kind, WF_SHM_KIND_EAGER);
	assert_int_equal(event->seq, 1);
	assert_int_equal(event->len, 4096);
	atomic_store(&w->core_a.trace.front->wanted, 0);
	look(w, &w->a, 2);
	written = w->core_a.trace.written;
	atomic_store(&w->core_b.trace.front->wanted, UINT64_MAX);
	look(w, &w->b, 1);
	expect_messages(w, 1);
	event = last_event(&w->core_b, WF_TRACE_TAKE);
	assert_int_equal(event->seq, 1);
	expect_open(w, wf_container_of(w->a.all_outs.next, struct wf_shm_out,
				       link));
	assert_int_equal(inject_some(w, 8), 0);
	expect_messages(w, 2);
	assert_int_equal(w->core_a.trace.written, written);
}

/* The peer has to be greeted again: the message is in each ring, and arrives
 * once. */
static void test_injected_goes_again(void **state)
{
	struct world *w = *state;

	fail_welcomes = 5;
	assert_int_equal(inject_some(w, 100), 0);
	expect_open(w, wf_container_of(w->a.all_outs.next, struct wf_shm_out,
				       link));
	assert_int_equal(fail_welcomes, 0);
	expect_messages(w, 1);
}

/* No hello, no message: nothing of it is kept. */
static void test_injected_without_hello(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out;

	joined_meet(&w->a);
	fail_hellos = 1;
	assert_int_equal(inject_some(w, 8), -EAGAIN);
	out = wf_container_of(w->a.all_outs.next, struct wf_shm_out, link);
	assert_int_equal(out->state, WF_SHM_OUT_CONNECTING);
	assert_false(wf_shm_out_holds_copies(out));
	for (uint64_t ms = 1; ms < 20; ms++) {
		look(w, &w->b, ms);
		look(w, &w->a, ms);
	}
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
	expect_messages(w, 0);
	assert_int_equal(inject_some(w, 8), 0);
	expect_messages(w, 1);
}

/* Bug: a welcome that could not be sent, because the user had too many
 * descriptors in flight, was only logged: the sender waited for ever. */
static void test_welcome_that_cannot_be_sent(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out = send_one(w);

	fail_welcomes = 5;
	expect_open(w, out);
	assert_int_equal(fail_welcomes, 0);
}

/* The same when the refusal cannot be sent, either. */
static void test_refusal_that_cannot_be_sent(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out = send_one(w);

	fail_welcomes = 5;
	fail_refusals = 3;
	expect_open(w, out);
	assert_int_equal(fail_refusals, 0);
}

/* Bug: a hello with an offer has three descriptors, and every try had them. */
static void test_hello_that_cannot_be_sent(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out;

	fail_hellos = 5;
	out = send_one(w);
	assert_int_equal(hello_room, CMSG_SPACE(3 * sizeof(int)));
	expect_open(w, out);
	assert_int_equal(fail_hellos, 0);
	assert_int_equal(hello_room, CMSG_SPACE(sizeof(int)));
}

/* The same while a process that has many hellos of this user computes: longer
 * than the connect time-out, and with one connection. */
static void test_hello_that_waits_for_others(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out;

	fail_hellos = INT32_MAX;
	out = send_one(w);
	for (uint64_t ms = 1; ms < 3 * TIMEOUT_MS; ms += 16)
		look(w, &w->a, ms);
	assert_int_equal(out->state, WF_SHM_OUT_CONNECTING);
	assert_int_equal(connects, 1);
	fail_hellos = 0;
	look(w, &w->a, 3 * TIMEOUT_MS + 100);
	look(w, &w->b, 3 * TIMEOUT_MS + 100);
	look(w, &w->a, 3 * TIMEOUT_MS + 100);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
}

/* Bug: a peer that closed a connection without a hello ended the channel at the
 * connect time-out, although it was there and descriptors were short. */
static void test_peer_that_waits_for_no_hello(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out;
	uint64_t ms;
	int fd;

	fail_hellos = INT32_MAX;
	out = send_one(w);
	for (ms = 1; ms < TIMEOUT_MS + 1000; ms += 16)
		look(w, &w->a, ms);
	assert_int_equal(connects, 1);
	fd = accept(w->b.listener.fd, NULL, NULL);
	assert_true(fd >= 0);
	close(fd);
	/* The next hello finds the connection closed. */
	fail_hellos = 0;
	look(w, &w->a, ms + 100);
	assert_int_equal(out->state, WF_SHM_OUT_CONNECTING);
	assert_true(out->sock.fd < 0);
	for (int i = 0; i < 2; i++) {
		look(w, &w->a, ms + 200);
		look(w, &w->b, ms + 200);
	}
	assert_int_equal(connects, 2);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
}

/* Bug: the socket was watched after the hello. If that failed, the peer had an
 * injected message already, and got it again. */
static void test_hello_that_is_not_watched(void **state)
{
	struct world *w = *state;

	fail_watches = 1;
	hello_room = 0;
	assert_int_equal(inject_some(w, 8), -EAGAIN);
	assert_int_equal(fail_watches, 0);
	assert_int_equal(hello_room, 0);
}

/* Bug: a peer that was connected to and made no progress was waited for without
 * end and without a word. It may compute, so it has the dead time-out. */
static void test_peer_that_never_answers(void **state)
{
	struct world *w = *state;
	char text[WF_ADDR_STR_LEN], stopped[64];
	struct wf_shm_out *out = send_one(w);

	assert_int_equal(out->state, WF_SHM_OUT_GREETED);
	/* A sleeping thread is woken for the warning, not before. */
	assert_true(wf_shm_conn_next(&w->a) >= w->start + 1900 * WF_NS_PER_MS);
	look(w, &w->a, 1900);
	assert_int_equal(warnings, 0);
	assert_int_equal(counter(&w->a, WF_SHM_STAT_unanswered), 1);
	for (uint64_t ms = 2100; ms < DEAD_S * 1000 - 100; ms += 100)
		look(w, &w->a, ms);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(
		warning, wf_base_addr_str(&w->addr_b, text, sizeof(text))));
	assert_non_null(strstr(warning, "through shared memory for 2 s"));
	assert_non_null(strstr(warning, "in another 58 s"));
	assert_non_null(strstr(warning, "FI_WEFT_DEAD_TIMEOUT"));
	/* Bug: it said that the process is there, and to check whether it is. */
	snprintf(stopped, sizeof(stopped), "kill -CONT %d", (int)getpid());
	assert_non_null(strstr(warning, stopped));
	assert_null(strstr(warning, "Check"));
	assert_int_equal(out->state, WF_SHM_OUT_GREETED);
	assert_true(wf_shm_conn_next(&w->a) <=
		    w->start + (DEAD_S * 1000 + 100) * WF_NS_PER_MS);
	look(w, &w->a, DEAD_S * 1000 + 100);
	expect_failure(w, ETIMEDOUT);
	assert_int_equal(counter(&w->a, WF_SHM_STAT_unanswered), 0);
}

/* A peer that computes, or is one of many on its processor, is not given up
 * because it is late, nor when it has no room for us then. */
static void test_peer_that_answers_late(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out = send_one(w);

	fail_welcomes = 1;
	look(w, &w->a, 4 * TIMEOUT_MS);
	look(w, &w->b, 8 * TIMEOUT_MS);
	look(w, &w->a, 8 * TIMEOUT_MS);
	assert_int_equal(out->state, WF_SHM_OUT_CONNECTING);
	look(w, &w->a, 8 * TIMEOUT_MS + 10);
	assert_int_equal(out->state, WF_SHM_OUT_GREETED);
	look(w, &w->b, 16 * TIMEOUT_MS);
	look(w, &w->a, 16 * TIMEOUT_MS);
	assert_int_equal(out->state, WF_SHM_OUT_OPEN);
}

static void test_nobody_there(void **state)
{
	struct world *w = *state;
	struct wf_shm_out *out;

	wf_base_addr_set_port(&w->addr_b, 1);
	out = send_one(w);
	assert_int_equal(out->state, WF_SHM_OUT_CONNECTING);
	for (uint64_t ms = 1; ms < TIMEOUT_MS - 100; ms++)
		look(w, &w->a, ms);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, strerror(ECONNREFUSED)));
	assert_non_null(strstr(warning, "Check that the process is there"));
	/* Three names are tried each time: that of the address, that of all IPv4
	 * addresses, that of all. Bug: a thousand times a second. */
	assert_true(connects < 3 * (TIMEOUT_MS / 32 + 10));
	assert_true(connects > 3 * (TIMEOUT_MS / 32 - 10));
	look(w, &w->a, TIMEOUT_MS + 100);
	expect_failure(w, EHOSTUNREACH);
}

/* Bug: one thread slept and another sent to an address where no process was:
 * no thread tried again or gave up. */
static void test_connecting_wakes(void **state)
{
	struct world *w = *state;
	struct pollfd p = { .fd = w->a.host->loop.epoll_fd, .events = POLLIN };

	wf_base_addr_set_port(&w->addr_b, 1);
	assert_true(wf_core_sleep(joined_core(&w->a)));
	assert_int_equal(poll(&p, 1, 0), 0);
	send_one(w);
	assert_int_equal(poll(&p, 1, 10000), 1);
	/* And again, while that goes on. */
	for (int i = 0; i < 3; i++)
		wf_core_progress(joined_core(&w->a));
	assert_true(wf_core_sleep(joined_core(&w->a)));
	assert_int_equal(poll(&p, 1, 10000), 1);
}

/* Bug: without a descriptor for the timer, a thread that slept was not woken
 * when another one began to connect. */
static void test_connecting_wakes_without_descriptors(void **state)
{
	struct world *w = *state;
	struct pollfd p = { .fd = w->a.host->loop.epoll_fd, .events = POLLIN };

	wf_base_addr_set_port(&w->addr_b, 1);
	fail_timers = 1;
	assert_false(wf_core_sleep(joined_core(&w->a)));
	assert_true(wf_core_sleep(joined_core(&w->a)));
	fail_timers = INT32_MAX;
	send_one(w);
	assert_int_equal(poll(&p, 1, 10000), 1);
}

/* Bug: a timer that could not be watched was used all the same, and nobody was
 * woken by it. */
static void test_timer_that_is_not_watched(void **state)
{
	struct world *w = *state;
	struct pollfd p = { .fd = w->a.host->loop.epoll_fd, .events = POLLIN };

	wf_base_addr_set_port(&w->addr_b, 1);
	send_one(w);
	fail_watches = 1;
	assert_false(wf_core_sleep(joined_core(&w->a)));
	assert_true(wf_core_sleep(joined_core(&w->a)));
	assert_int_equal(poll(&p, 1, 10000), 1);
}

/* Bug: without a descriptor for whoever connected, the listener stayed readable,
 * and each sleep ended at once. */
static void test_guest_without_a_descriptor(void **state)
{
	struct world *w = *state;
	struct pollfd p = { .fd = w->b.host->loop.epoll_fd, .events = POLLIN };
	struct wf_shm_out *out;

	fail_accepts = 2;
	out = send_one(w);
	assert_int_equal(poll(&p, 1, 0), 1);
	look(w, &w->b, 1);
	assert_int_equal(fail_accepts, 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	look(w, &w->b, 2);
	assert_int_equal(fail_accepts, 1);
	/* It is tried again, also while nobody else wakes us. */
	assert_true(wf_core_sleep(joined_core(&w->b)));
	assert_int_equal(poll(&p, 1, 60000), 1);
	expect_open(w, out);
	assert_int_equal(fail_accepts, 0);
}

/* Bug: a sleeping thread was woken for the warning only, also where the dead
 * time-out was shorter. */
static void test_short_dead_timeout_wakes(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out;

	w->a.attr.dead_timeout_s = 1;
	out = send_one(w);
	assert_int_equal(out->state, WF_SHM_OUT_GREETED);
	assert_int_equal(wf_shm_conn_next(&w->a), out->greeted + WF_NS_PER_S);
}

/* Bug: the number in a refusal was taken for an error code unchecked, and one
 * that fits no completion ended the process. */
static void test_refusal_that_makes_no_sense(void **state)
{
	static const int32_t wrong[] = { 1 << 16, INT32_MAX, -1, INT32_MIN };
	struct world *w = *state;

	for (int i = 0; i < 4; i++) {
		const struct wf_shm_welcome welcome = {
			.greeting = { .magic = WF_SHM_MAGIC,
				      .layout = WF_SHM_LAYOUT,
				      .size = sizeof(welcome),
				      .status = wrong[i] },
		};
		int fd;

		send_one(w);
		fd = accept(w->b.listener.fd, NULL, NULL);
		assert_true(fd >= 0);
		assert_int_equal(send(fd, &welcome, sizeof(welcome), 0),
				 sizeof(welcome));
		look(w, &w->a, 1);
		expect_failure(w, EPROTO);
		close(fd);
	}
}

/* Every refusal passes, none for ever. */
static void test_welcome_that_can_never_be_sent(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out = send_one(w);

	fail_welcomes = INT32_MAX;
	for (uint64_t ms = 1; ms < 2 * TIMEOUT_MS + DEAD_S * 1000; ms += 16) {
		look(w, &w->b, ms);
		look(w, &w->a, ms);
	}
	assert_int_equal(out->state, WF_SHM_OUT_DEAD);
	assert_int_equal(warnings, 1);
	assert_int_equal(w->b.watch.count, 0);
	expect_failure(w, ETOOMANYREFS);
}

/* Bug: the time until a refusal was added to the connect time-out each time, so
 * that a peer which computes between refusals was asked for ever. */
static void test_refusals_that_take_long(void **state)
{
	struct world *w = *state;
	const struct wf_shm_out *out = send_one(w);
	uint64_t ms = 0;

	fail_welcomes = INT32_MAX;
	while (out->state != WF_SHM_OUT_DEAD) {
		assert_true(ms < 2 * (TIMEOUT_MS + DEAD_S * 1000));
		if (out->state == WF_SHM_OUT_GREETED) {
			ms += DEAD_S * 1000 - 1000;
			look(w, &w->b, ms);
		}
		look(w, &w->a, ++ms);
	}
	expect_failure(w, ETOOMANYREFS);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_connects),
		TEST(test_kept_descriptors_are_given_back),
		TEST(test_injected_goes_with_hello),
		TEST(test_injected_goes_again),
		TEST(test_short_one_takes_a_page),
		TEST(test_injected_is_traced),
		TEST(test_injected_without_hello),
		TEST(test_welcome_that_cannot_be_sent),
		TEST(test_refusal_that_cannot_be_sent),
		TEST(test_hello_that_cannot_be_sent),
		TEST(test_hello_that_waits_for_others),
		TEST(test_peer_that_waits_for_no_hello),
		TEST(test_hello_that_is_not_watched),
		TEST(test_peer_that_never_answers),
		TEST(test_peer_that_answers_late),
		TEST(test_nobody_there),
		TEST(test_connecting_wakes),
		TEST(test_connecting_wakes_without_descriptors),
		TEST(test_timer_that_is_not_watched),
		TEST(test_guest_without_a_descriptor),
		TEST(test_short_dead_timeout_wakes),
		TEST(test_refusal_that_makes_no_sense),
		TEST(test_welcome_that_can_never_be_sent),
		TEST(test_refusals_that_take_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
