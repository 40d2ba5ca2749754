/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first message of a pair, which goes without a ring: it arrives once and
 * before the second one, whoever writes first, and whatever fails.
 */
#include "shm/letter.h"

#include <sys/socket.h>

#include "shm/conn.h"
#include "shm/conn_defs.h"
#include "shm/channels.h"
#include "shm/sides_test.h"

static int connects;
static int malloc_fails;	       /* in so many calls; 0: none does */
static int sends_fail;		       /* so many calls */
static struct wf_compq *read_by_other; /* after letters found no room in it */

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

/* The linker has weft's calls come here (src/meson.build). */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	connects++;
	return __real_connect(fd, addr, len);
}

void *__wrap_malloc(size_t size)
{
	return malloc_fails && !--malloc_fails ? NULL : __real_malloc(size);
}

ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
void __real_wf_shm_letter_deliver(struct wf_shm_ep *ep);
void __wrap_wf_shm_letter_deliver(struct wf_shm_ep *ep);

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
	if (!sends_fail)
		return __real_send(fd, bytes, len, flags);
	sends_fail--;
	errno = ENOBUFS;
	return -1;
}

void __wrap_wf_shm_letter_deliver(struct wf_shm_ep *ep)
{
	struct wf_comp comp;

	__real_wf_shm_letter_deliver(ep);
	while (read_by_other && joined_pop(read_by_other, &comp))
		;
}

static int open_counted(void **state)
{
	sends_fail = 0;
	read_by_other = NULL;
	connects = 0;
	malloc_fails = 0;
	return open_world(state);
}

static int inject(struct world *w, int i, uint64_t tag, size_t len)
{
	static uint8_t bytes[256];
	struct joined_buf b = {
		.len = len,
		.count = 1,
		.iov[0] = { bytes, len },
	};
	struct wf_tx tx = joined_tx(&b, tag);

	tx.inject = true;
	tx.wants_comp = false;
	return wf_core_submit(&w->s[i].core, 0, &tx);
}

static uint64_t counter(const struct world *w, int i, enum wf_shm_stat item)
{
	return atomic_load(&w->s[i].ep.stats.page->items[item].value);
}

/* Messages that wait for a receive at @i: tags 1 to @count, in order. */
static void expect_in_order(struct world *w, int i, uint32_t count)
{
	const struct wf_match *m = &w->s[i].rxq.tagged;
	uint64_t tag = 0;

	assert_int_equal(m->unexpected, count);
	for (const struct wf_list *pos = m->ux_order.next; pos != &m->ux_order;
	     pos = pos->next) {
		const struct wf_ux *ux =
			wf_container_of(pos, struct wf_ux, order);

		assert_int_equal(ux->tag, ++tag);
		assert_int_equal(ux->data, ~tag);
		assert_int_equal(ux->flags, FI_REMOTE_CQ_DATA);
		assert_int_equal(ux->src, 0);
	}
}

static void expect_nothing_left(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sockets(w, i), 0);
		assert_null(out_of(w, i));
		assert_int_equal(w->s[i].ep.watch.count, 0);
		assert_int_equal(w->s[i].ep.connecting, 0);
		assert_int_equal(w->s[i].ep.letter_count, 0);
		assert_true(wf_base_list_empty(&w->s[i].ep.guests));
	}
}

static void fill(struct side *s)
{
	struct wf_comp filler = { .data = 1 };

	while (wf_op_compq_room(&s->cq))
		wf_op_compq_push(&s->cq, &filler);
}

/* Without reading the queue, which look() of sides_test.h does. */
static void turn(struct world *w, int i)
{
	wf_core_look(&w->s[i].core, wf_base_clock_ns());
	wf_core_progress(&w->s[i].core);
}

/* -- tests ------------------------------------------------------------------ */

static void test_one_message_needs_no_ring(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, WF_SHM_LETTER_MAX), 0);
	settle(w);
	expect_in_order(w, 1, 1);
	expect_nothing_left(w);
	assert_int_equal(counter(w, 0, WF_SHM_STAT_letters_out), 1);
	assert_int_equal(counter(w, 0, WF_SHM_STAT_sent_inline), 1);
	assert_int_equal(counter(w, 1, WF_SHM_STAT_letters_in), 1);
	assert_int_equal(counter(w, 1, WF_SHM_STAT_received_inline), 1);
	assert_int_equal(connects, 1);
}

static void test_longer_one_takes_a_ring(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, WF_SHM_LETTER_MAX + 1), 0);
	settle(w);
	expect_in_order(w, 1, 1);
	assert_int_equal(counter(w, 0, WF_SHM_STAT_letters_out), 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
}

/* The second one takes a ring, and waits until the letter was read. */
static void test_second_makes_the_ring(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 0, 2, 8), -EAGAIN);
	settle(w);
	assert_int_equal(inject(w, 0, 2, 8), 0);
	settle(w);
	assert_int_equal(inject(w, 0, 3, 8), 0);
	settle(w);
	expect_in_order(w, 1, 3);
	assert_int_equal(counter(w, 0, WF_SHM_STAT_letters_out), 1);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
}

/* An operation that may wait does so behind the letter. */
static void test_queued_behind_the_letter(void **state)
{
	struct world *w = *state;
	static uint64_t value;
	struct joined_buf b = joined_word(&value);
	struct wf_tx tx = joined_tx(&b, 2);

	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(wf_core_submit(&w->s[0].core, 0, &tx), 0);
	settle(w);
	expect_in_order(w, 1, 2);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_OPEN);
}

/* Two letters need one connection, if the second side writes before it has
 * delivered the first letter. */
static void test_answer_on_the_same_socket(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 1, 1, 8), 0);
	assert_int_equal(connects, 1);
	settle(w);
	expect_in_order(w, 0, 1);
	expect_in_order(w, 1, 1);
	expect_nothing_left(w);
	/* Both talk on: one handshake for two rings, as ever. */
	assert_int_equal(inject(w, 0, 2, 8), 0);
	settle(w);
	assert_int_equal(inject(w, 1, 2, 8), 0);
	settle(w);
	expect_in_order(w, 0, 2);
	expect_in_order(w, 1, 2);
	assert_int_equal(connects, 2);
}

/* The offer of a peer is kept though our letter to it was answered just now. */
static void test_offer_after_a_letter(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 1, 1, 8), 0);
	turn(w, 0);
	turn(w, 0);
	assert_int_equal(inject(w, 0, 1, WF_SHM_LETTER_MAX + 1), 0);
	settle(w);
	assert_int_equal(inject(w, 1, 2, 8), 0);
	settle(w);
	expect_in_order(w, 0, 2);
	expect_in_order(w, 1, 1);
	assert_int_equal(connects, 2);
}

static void test_both_at_the_same_time(void **state)
{
	struct world *w = *state;

	w->s[0].ep.deaf_until = UINT64_MAX;
	w->s[1].ep.deaf_until = UINT64_MAX;
	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 1, 1, 8), 0);
	w->s[0].ep.deaf_until = 0;
	w->s[1].ep.deaf_until = 0;
	assert_int_equal(connects, 2);
	settle(w);
	expect_nothing_left(w);
	for (uint64_t tag = 2; tag < 5; tag++) {
		for (int i = 0; i < 2; i++) {
			while (inject(w, i, tag, 8) == -EAGAIN)
				settle(w);
		}
	}
	settle(w);
	expect_in_order(w, 0, 4);
	expect_in_order(w, 1, 4);
}

/* A letter that finds no room in the completion queue is not overtaken by the
 * ring that the sender makes after it, though the sender knows by the answer on
 * its socket that it was read. */
static void test_full_queue_keeps_the_order(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;

	fill(&w->s[1]);
	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 1, 1, 8), 0);
	for (int i = 0; i < 20; i++)
		turn(w, i & 1);
	assert_int_equal(w->s[0].rxq.tagged.unexpected, 1);
	while (inject(w, 0, 2, 8) == -EAGAIN) {
		turn(w, 0);
		turn(w, 1);
	}
	for (int i = 0; i < 20; i++)
		turn(w, i & 1);
	assert_int_equal(w->s[1].ep.watch.count, 1);
	expect_in_order(w, 1, 0);
	while (joined_pop(&w->s[1].cq, &comp))
		;
	for (int i = 0; i < 20; i++)
		turn(w, i & 1);
	expect_in_order(w, 1, 2);
}

/* The same when another thread makes room between the letter and the ring. */
static void test_room_that_comes_late(void **state)
{
	struct world *w = *state;

	fill(&w->s[1]);
	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 1, 1, 8), 0);
	for (int i = 0; i < 20; i++)
		turn(w, i & 1);
	while (inject(w, 0, 2, 8) == -EAGAIN) {
		turn(w, 0);
		turn(w, 1);
	}
	for (int i = 0; i < 20; i++)
		turn(w, i & 1);
	assert_int_equal(w->s[1].ep.watch.count, 1);
	assert_int_equal(w->s[1].ep.letter_count, 1);
	read_by_other = &w->s[1].cq;
	turn(w, 1);
	turn(w, 1);
	expect_in_order(w, 1, 2);
}

/* An endpoint that closes does not claim the letters that it has not delivered:
 * their senders send them again. */
static void test_closed_before_delivery(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;

	fill(&w->s[1]);
	assert_int_equal(inject(w, 0, 1, 8), 0);
	turn(w, 1);
	assert_int_equal(w->s[1].ep.letter_count, 1);
	wf_shm_letter_close(&w->s[1].ep);
	/* Not turn(): progress may look at the clock, and try again after 1 ms. */
	wf_core_look(&w->s[0].core, wf_base_clock_ns());
	assert_non_null(out_of(w, 0));
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_CONNECTING);
	/* Another endpoint would have the address now. */
	while (joined_pop(&w->s[1].cq, &comp))
		;
	while (out_of(w, 0)->state != WF_SHM_OUT_OPEN)
		settle(w);
	settle(w);
	expect_in_order(w, 1, 1);
}

/* While its queue is full, an endpoint keeps some letters and accepts no more: it
 * may sleep. */
static void test_full_queue_accepts_no_more(void **state)
{
	struct world *w = *state;
	struct wf_shm_ep *ep = &w->s[1].ep;
	struct wf_comp comp;

	fill(&w->s[1]);
	ep->letter_count = 64;
	assert_int_equal(inject(w, 0, 1, 8), 0);
	turn(w, 1);
	assert_true(ep->deaf_until);
	assert_true(wf_base_list_empty(&ep->letters));
	ep->letter_count = 0;
	while (joined_pop(&w->s[1].cq, &comp))
		;
	wf_core_look(&w->s[1].core, ep->deaf_until);
	settle(w);
	expect_in_order(w, 1, 1);
	expect_nothing_left(w);
}

/* The receiver has no memory: the sender sends it again, through a ring. */
static void test_no_memory(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	malloc_fails =
		2; /* the first is for the connection, this for a letter */
	turn(w, 1);
	assert_int_equal(malloc_fails, 0);
	expect_in_order(w, 1, 0);
	while (out_of(w, 0)->state != WF_SHM_OUT_OPEN)
		settle(w);
	settle(w);
	expect_in_order(w, 1, 1);
}

/* A sender of a letter has the memory for the answer already. */
static void test_no_memory_for_the_answer(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	assert_int_equal(inject(w, 1, 1, 8), 0);
	malloc_fails = 1;
	turn(w, 0);
	assert_int_equal(malloc_fails, 1);
	malloc_fails = 0;
	expect_in_order(w, 0, 1);
	settle(w);
	expect_in_order(w, 1, 1);
	expect_nothing_left(w);
}

/* Nobody reads it: the operation fails at the same time as one with a hello. */
static void test_peer_that_never_reads(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;
	uint64_t start = wf_base_clock_ns();

	assert_int_equal(inject(w, 0, 7, 8), 0);
	for (uint64_t ms = 0; ms < 900; ms += 100) {
		wf_core_look(&w->s[0].core, start + ms * WF_NS_PER_MS);
		wf_core_progress(&w->s[0].core);
		assert_false(joined_pop(&w->s[0].cq, &comp));
	}
	wf_core_look(&w->s[0].core, start + 4000 * WF_NS_PER_MS);
	wf_core_progress(&w->s[0].core);
	assert_true(joined_pop(&w->s[0].cq, &comp));
	assert_int_equal(joined_err(&comp), ETIMEDOUT);
	assert_int_equal(comp.tag, 7);
}

/* The peer ends without having read it, and nobody follows. */
static void test_peer_that_ends(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;
	uint64_t start = wf_base_clock_ns();

	assert_int_equal(inject(w, 0, 7, 8), 0);
	wf_shm_conn_drop(&w->s[1].ep, &w->s[1].ep.listener);
	for (uint64_t ms = 0; ms < 900; ms += 100) {
		wf_core_look(&w->s[0].core, start + ms * WF_NS_PER_MS);
		wf_core_progress(&w->s[0].core);
		assert_false(joined_pop(&w->s[0].cq, &comp));
	}
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_CONNECTING);
	wf_core_look(&w->s[0].core, start + 9000 * WF_NS_PER_MS);
	wf_core_progress(&w->s[0].core);
	assert_true(joined_pop(&w->s[0].cq, &comp));
	assert_int_equal(joined_err(&comp), EHOSTUNREACH);
}

/* Connected to the listener of @ep. */
static int call_at(const struct wf_shm_ep *ep)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	assert_int_equal(getsockname(ep->listener.fd, (void *)&addr, &len), 0);
	assert_int_equal(connect(fd, (void *)&addr, len), 0);
	return fd;
}

static struct wf_shm_letter_head head_of(const struct world *w)
{
	struct wf_shm_letter_head head = {
		.greeting = { .magic = WF_SHM_MAGIC,
			      .layout = WF_SHM_LAYOUT,
			      .size = sizeof(head),
			      .features = WF_SHM_GREETING_LETTER },
		.tag = 1,
		.data = ~(uint64_t)1,
		.len = 8,
		.flags = WF_SHM_SLOT_TAGGED | WF_SHM_SLOT_DATA,
	};

	memcpy(head.addr, &w->s[1].peer, wf_base_addr_len(&w->s[1].peer));
	return head;
}

/* The process that writes is told that its letter is not one. */
static void expect_refused(struct world *w, const void *bytes, size_t len)
{
	struct wf_shm_welcome welcome = { 0 };
	int fd = call_at(&w->s[1].ep);

	assert_int_equal(send(fd, bytes, len, 0), len);
	settle(w);
	assert_int_equal(recv(fd, &welcome, sizeof(welcome), 0),
			 sizeof(welcome));
	assert_int_equal(welcome.greeting.status, EPROTO);
	assert_int_equal(recv(fd, &welcome, sizeof(welcome), 0), 0);
	close(fd);
	assert_int_equal(w->s[1].rxq.tagged.unexpected, 0);
	expect_nothing_left(w);
}

/* A letter that is cut at any place, or too long, and one with a field that makes
 * no sense. */
static void test_letters_that_are_none(void **state)
{
	struct world *w = *state;
	struct {
		struct wf_shm_letter_head head;
		uint8_t payload[WF_SHM_LETTER_MAX + 1];
	} letter = { .head = head_of(w) };
	const struct wf_shm_letter_head good = letter.head;

	for (size_t len = 1; len <= sizeof(letter); len++) {
		if (len != sizeof(good) + 8)
			expect_refused(w, &letter, len);
	}
	letter.head.len = WF_SHM_LETTER_MAX + 1;
	expect_refused(w, &letter, sizeof(good) + WF_SHM_LETTER_MAX + 1);
	letter.head.len = UINT32_MAX;
	expect_refused(w, &letter, sizeof(good) + 8);
	letter.head = good;
	letter.head.flags |= WF_SHM_SLOT_ACK;
	expect_refused(w, &letter, sizeof(good) + 8);
	letter.head = good;
	memset(letter.head.addr, 0xff, sizeof(letter.head.addr));
	expect_refused(w, &letter, sizeof(good) + 8);
	letter.head = good;
	letter.head.greeting.layout++;
	expect_refused(w, &letter, sizeof(good) + 8);
}

/* A refusal that cannot be sent is sent later. Until then the socket stays open:
 * its end would say that the letter was read. */
static void test_refusal_that_fails(void **state)
{
	struct world *w = *state;
	struct {
		struct wf_shm_letter_head head;
		uint8_t payload[8];
	} letter = { .head = head_of(w) };
	struct wf_shm_welcome welcome = { 0 };
	int fd = call_at(&w->s[1].ep);

	letter.head.flags |= WF_SHM_SLOT_ACK;
	assert_int_equal(send(fd, &letter, sizeof(letter), 0), sizeof(letter));
	sends_fail = 1000;
	settle(w);
	wf_core_look(&w->s[1].core, wf_base_clock_ns() + 3 * WF_NS_PER_S);
	assert_true(sends_fail < 1000);
	assert_int_equal(recv(fd, &welcome, sizeof(welcome), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	sends_fail = 0;
	settle(w);
	assert_int_equal(recv(fd, &welcome, sizeof(welcome), 0),
			 sizeof(welcome));
	assert_int_equal(welcome.greeting.status, EPROTO);
	assert_int_equal(recv(fd, &welcome, sizeof(welcome), 0), 0);
	close(fd);
	expect_nothing_left(w);
	/* The sender may end first. */
	fd = call_at(&w->s[1].ep);
	assert_int_equal(send(fd, &letter, sizeof(letter), 0), sizeof(letter));
	sends_fail = 1;
	look(w, 1);
	close(fd);
	sends_fail = 0;
	settle(w);
	expect_nothing_left(w);
}

/* Any bytes at all: nothing ends but that connection. */
static void test_random_letters(void **state)
{
	struct world *w = *state;
	struct wf_shm_letter_head good = head_of(w);
	uint8_t bytes[sizeof(good) + WF_SHM_LETTER_MAX + 8];

	srand(1);
	for (int i = 0; i < 2000; i++) {
		size_t len = 1 + (size_t)rand() % sizeof(bytes);
		int fd = call_at(&w->s[1].ep);

		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)rand();
		memcpy(bytes, &good, (size_t)rand() % (sizeof(good) + 1));
		assert_int_equal(send(fd, bytes, len, 0), len);
		look(w, 1);
		look(w, 1);
		close(fd);
	}
	wf_match_rxq_forget(&w->s[1].rxq, &w->s[1].ep);
	assert_int_equal(inject(w, 0, 1, 8), 0);
	settle(w);
	assert_int_equal(w->s[1].rxq.tagged.unexpected, 1);
}

/* A peer that answers a letter with what answers a hello, or with bytes. */
static void test_wrong_answers(void **state)
{
	struct world *w = *state;
	uint8_t bytes[sizeof(struct wf_shm_letter_head) + WF_SHM_LETTER_MAX +
		      8];

	for (size_t len = 1; len <= sizeof(bytes); len++) {
		const struct wf_shm_letter_head letter = head_of(w);
		const struct wf_shm_welcome welcome = {
			.greeting = { .magic = WF_SHM_MAGIC,
				      .layout = WF_SHM_LAYOUT,
				      .size = sizeof(welcome) },
		};
		struct wf_comp comp;
		int fd;

		if (len == sizeof(letter) + 8)
			continue; /* a good one */
		memset(bytes, 0, sizeof(bytes));
		if (len == sizeof(welcome))
			memcpy(bytes, &welcome, sizeof(welcome));
		else
			memcpy(bytes, &letter, sizeof(letter));
		assert_int_equal(inject(w, 0, 1, 8), 0);
		fd = accept(w->s[1].ep.listener.fd, NULL, NULL);
		assert_true(fd >= 0);
		assert_int_equal(send(fd, bytes, len, 0), len);
		turn(w, 0);
		turn(w, 0);
		assert_true(joined_pop(&w->s[0].cq, &comp));
		assert_int_equal(joined_err(&comp), EPROTO);
		close(fd);
		wf_shm_channels_removed(&w->s[0].ep, 0);
		assert_int_equal(w->s[0].rxq.tagged.unexpected, 0);
	}
}

/* The source of a letter that waits for its receive follows the AV. */
static void test_source_follows_the_av(void **state)
{
	struct world *w = *state;
	const struct wf_list *parked = &w->s[1].ep.letters_parked;
	const struct wf_ux *ux;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	settle(w);
	assert_false(wf_base_list_empty(parked));
	ux = wf_container_of(w->s[1].rxq.tagged.ux_order.next, struct wf_ux,
			     order);
	assert_int_equal(ux->src, 0);
	wf_shm_channels_removed(&w->s[1].ep, 0);
	assert_int_equal(ux->src, WF_MATCH_ANY);
	wf_shm_channels_inserted(&w->s[1].ep, 0, &w->s[1].peer);
	assert_int_equal(ux->src, 0);
	wf_shm_channels_removed(&w->s[1].ep, 0);
	wf_shm_channels_renamed(&w->s[1].ep);
	assert_int_equal(ux->src, 0);
	wf_match_rxq_forget(&w->s[1].rxq, &w->s[1].ep);
	assert_true(wf_base_list_empty(parked));
}

/* Whoever gets the fi_addr_t of another peer is met for the first time. */
static void test_new_peer_gets_a_letter(void **state)
{
	struct world *w = *state;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	settle(w);
	leave(w, 0);
	assert_int_equal(inject(w, 0, 2, 8), 0);
	settle(w);
	expect_in_order(w, 1, 2);
	assert_int_equal(counter(w, 0, WF_SHM_STAT_letters_out), 2);
	expect_nothing_left(w);
}

/* The sender removes the peer before it has seen that the letter was read: it was
 * sent all the same, whether the peer has read it or is yet to do so. */
static void test_removed_before_the_answer(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;

	for (uint32_t reads = 0; reads < 2; reads++) {
		assert_int_equal(inject(w, 0, reads + 1, 8), 0);
		if (reads)
			turn(w, 1);
		wf_shm_channels_removed(&w->s[0].ep, 0);
		assert_false(joined_pop(&w->s[0].cq, &comp));
		settle(w);
		assert_false(joined_pop(&w->s[0].cq, &comp));
		expect_in_order(w, 1, reads + 1);
		expect_nothing_left(w);
	}
}

/* The same with a ring, whose first message goes with the hello. */
static void test_removed_before_the_welcome(void **state)
{
	struct world *w = *state;
	struct wf_comp comp;

	assert_int_equal(inject(w, 0, 1, 8), 0);
	settle(w);
	assert_int_equal(inject(w, 0, 2, 8), 0);
	assert_int_equal(out_of(w, 0)->state, WF_SHM_OUT_GREETED);
	for (int i = 0; i < 4; i++)
		turn(w, 1);
	expect_in_order(w, 1, 2);
	wf_shm_channels_removed(&w->s[0].ep, 0);
	assert_false(joined_pop(&w->s[0].cq, &comp));
}

/* An endpoint that sleeps is woken by a letter. */
static void test_letter_wakes(void **state)
{
	struct world *w = *state;
	struct wf_core *core = &w->s[1].core;

	look(w, 1);
	while (!wf_core_sleep(core))
		;
	assert_int_equal(inject(w, 0, 1, 8), 0);
	wf_core_look(core, wf_base_clock_ns());
	wf_core_progress(core);
	expect_in_order(w, 1, 1);
}

#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_counted, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_message_needs_no_ring),
		TEST(test_longer_one_takes_a_ring),
		TEST(test_second_makes_the_ring),
		TEST(test_queued_behind_the_letter),
		TEST(test_answer_on_the_same_socket),
		TEST(test_offer_after_a_letter),
		TEST(test_both_at_the_same_time),
		TEST(test_full_queue_keeps_the_order),
		TEST(test_room_that_comes_late),
		TEST(test_closed_before_delivery),
		TEST(test_full_queue_accepts_no_more),
		TEST(test_no_memory),
		TEST(test_no_memory_for_the_answer),
		TEST(test_peer_that_never_reads),
		TEST(test_peer_that_ends),
		TEST(test_letters_that_are_none),
		TEST(test_refusal_that_fails),
		TEST(test_random_letters),
		TEST(test_wrong_answers),
		TEST(test_source_follows_the_av),
		TEST(test_new_peer_gets_a_letter),
		TEST(test_removed_before_the_answer),
		TEST(test_removed_before_the_welcome),
		TEST(test_letter_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
