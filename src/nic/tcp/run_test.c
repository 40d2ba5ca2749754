/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of runs: each message is there once and in order, whatever becomes of
 * the connection, and the completion of a run says how many of its messages are.
 */
#include "nic/pair_test.h"

#include <sys/socket.h>

#include "nic/tcp/dev.h"

#define HEAD ((uint32_t)sizeof(struct wf_tcp_head))
#define RECV 17000u /* bytes of a receive */
#define RECVS 64u
#define OURS 0u		  /* where A's runs are */
#define THEIRS (1u << 20) /* where B's receives are */
#define RUN_BYTES (64u << 10)

/* A run, as its user has it. */
struct run {
	struct wf_nic_wr wr;
	uint8_t *at;
	uint32_t len;
	uint32_t id;
};

static uint32_t heard; /* messages that B has, all in order */

static struct wf_tcp_chan *chan_of(struct side *s, struct side *other)
{
	return &wf_tcp_peer_find(wf_tcp_dev_of(s->nic),
				 wf_nic_socket(other->nic))
			->chans[WF_TCP_SMALL];
}

static uint32_t len_of(uint32_t number)
{
	return 4 + number * 7 % 200;
}

/* The next message of a run: its number, and more of it. Its bytes with the head. */
static uint32_t put(struct run *run, uint32_t number)
{
	uint8_t *to = run->at + run->len + HEAD;

	memset(to - HEAD, 0xee, HEAD);
	memset(to, (int)number, len_of(number));
	memcpy(to, &number, sizeof(number));
	return HEAD + len_of(number);
}

/* A run of the messages from @from to @to, which stays open. */
static void begin(struct pair *p, struct run *run, uint32_t from, uint32_t to)
{
	struct wf_nic_sge sge;

	run->at = p->a.memory + OURS + from % 8 * RUN_BYTES;
	run->len = 0;
	run->wr = pair_wr(&p->a, &p->b, 1000 + from);
	run->wr.flags = WF_NIC_WR_QUIET | WF_NIC_WR_MORE;
	sge = (struct wf_nic_sge){ run->at, put(run, from), p->a.mr.lkey };
	assert_int_equal(wf_nic_post_run(p->a.qp, &run->wr, &sge, &run->id), 0);
	run->len = sge.len;
	while (++from < to) {
		uint32_t len = put(run, from);

		assert_true(wf_nic_extend_run(p->a.qp, &run->wr, run->id, len));
		run->len += len;
	}
}

static void recv_one(struct side *s, uint32_t i)
{
	pair_recv(s, i, THEIRS + i * RECV, RECV);
}

static void recv_all(struct side *s)
{
	for (uint32_t i = 0; i < RECVS; i++)
		recv_one(s, i);
}

static void open_pair(struct pair *p)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	attr.runs = true;
	attr.places = true;
	pair_open_attr(p, &attr, &attr);
	hello(p);
	for (int i = 0; i < 200; i++)
		pair_progress(p);
	heard = 0;
}

static void hear(const uint8_t *bytes, uint32_t len)
{
	uint32_t number;

	memcpy(&number, bytes, sizeof(number));
	assert_int_equal(number, heard);
	assert_int_equal(len, len_of(number));
	for (uint32_t i = sizeof(number); i < len; i++)
		assert_int_equal(bytes[i], (uint8_t)number);
	heard++;
}

/* Takes the messages that B has by now. */
static void take(struct side *b, bool again)
{
	struct wf_nic_wc wc;

	while (wf_nic_cq_poll(b->cq, &wc, 1)) {
		const uint8_t *at = b->memory + THEIRS + wc.wr_id * RECV;
		uint32_t left = wc.len;

		assert_int_equal(wc.status, WF_NIC_OK);
		assert_true(wc.flags & WF_NIC_WC_RECV);
		if (!(wc.flags & WF_NIC_WC_RUN))
			hear(at, wc.len);
		while (wc.flags & WF_NIC_WC_RUN && left) {
			uint32_t len = wf_nic_run_len(at);

			hear(at + HEAD, len);
			at += HEAD + len;
			left -= HEAD + len;
		}
		if (again)
			recv_one(b, (uint32_t)wc.wr_id);
	}
}

static void hear_all(struct pair *p, uint32_t count)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	while (heard < count) {
		pair_progress(p);
		take(&p->b, true);
		assert_true(wf_base_clock_ns() < end);
	}
	assert_int_equal(heard, count);
}

static void expect(struct pair *p, uint32_t from, uint32_t good,
		   enum wf_nic_status status)
{
	struct wf_nic_wc wc = pair_wait(p, &p->a);

	assert_int_equal(wc.wr_id, 1000 + from);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.len, good);
}

/* Many messages are one request and few receives. A post after a run closes
 * it. */
static void test_order(void **state)
{
	struct wf_nic_wr wr;
	uint32_t number = 60;
	struct run run;
	struct pair p;

	(void)state;
	open_pair(&p);
	recv_all(&p.b);
	begin(&p, &run, 0, 60);
	assert_int_equal(wf_nic_qp_send_room(p.a.qp), PAIR_QUEUE - 1);
	wr = pair_wr(&p.a, &p.b, 7);
	/* The next number, in a message of its own. */
	memset(p.a.memory + (900u << 10), (int)number, len_of(number));
	memcpy(p.a.memory + (900u << 10), &number, sizeof(number));
	assert_int_equal(wf_nic_post_send(p.a.qp, &wr,
					  &(struct wf_nic_sge){
						  p.a.memory + (900u << 10),
						  len_of(number), p.a.mr.lkey },
					  1),
			 0);
	assert_false(wf_nic_extend_run(p.a.qp, &run.wr, run.id, put(&run, 61)));
	begin(&p, &run, 61, 100);
	wf_nic_qp_ring(p.a.qp);
	hear_all(&p, 100);
	expect(&p, 0, 60, WF_NIC_OK);
	assert_int_equal(pair_wait(&p, &p.a).wr_id, 7);
	expect(&p, 61, 39, WF_NIC_OK);
	assert_int_equal(COUNTED(&p.a, tx_msgs), 101);
	assert_int_equal(COUNTED(&p.a, tx_done), 101);
	assert_int_equal(COUNTED(&p.b, rx_msgs), 101);
	/* It has left: nothing can be added. */
	assert_false(
		wf_nic_extend_run(p.a.qp, &run.wr, run.id, put(&run, 100)));
	assert_int_equal(wf_nic_qp_send_room(p.a.qp), PAIR_QUEUE);
	pair_close(&p);
}

/* As if the kernel had taken @bytes of the run that is first in A's queue. */
static void take_part(struct pair *p, struct run *run, uint32_t bytes)
{
	struct wf_tcp_chan *chan = chan_of(&p->a, &p->b);
	struct wf_tcp_op *op =
		wf_container_of(chan->todo.next, struct wf_tcp_op, link);
	uint32_t acks[2] = { chan->ack_sent, 0 };

	wf_tcp_run_stamp(op, acks);
	assert_int_equal(send(chan->conn->fd, run->at + chan->conn->part, bytes,
			      MSG_NOSIGNAL),
			 bytes);
	chan->conn->part += bytes;
	wf_tcp_run_sent(wf_tcp_dev_of(p->a.nic), op, chan->conn->part);
}

static void turn_b(struct pair *p, uint32_t count)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;

	while (heard < count) {
		wf_nic_progress(p->b.nic);
		take(&p->b, true);
		assert_true(wf_base_clock_ns() < end);
	}
}

/* As if the kernel had the rest of the run that is first in A's queue, too: @count
 * messages, which are lost with the connection. */
static void take_rest(struct pair *p, uint16_t count)
{
	struct wf_tcp_chan *chan = chan_of(&p->a, &p->b);
	struct wf_tcp_op *op =
		wf_container_of(chan->todo.next, struct wf_tcp_op, link);

	wf_base_list_unlink(&op->link);
	wf_base_list_add_tail(&chan->flight, &op->link);
	op->where = WF_TCP_FLIGHT;
	chan->sent += count;
	wf_tcp_dev_of(p->a.nic)->flying += count;
	op->sent = 0;
	chan->conn->part = 0;
}

/* A hears what B has acknowledged, all of what B has. */
static void hear_acks(struct pair *p, uint32_t count)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_tcp_dev *dev = wf_tcp_dev_of(p->a.nic);
	struct wf_tcp_chan *chan = chan_of(&p->a, &p->b);
	uint32_t from = chan->acked;

	while (chan->acked - from < count) {
		wf_nic_progress(p->b.nic);
		wf_tcp_in_read(dev, chan->conn);
		wf_tcp_settle(dev);
		assert_true(wf_base_clock_ns() < end);
	}
}

/* A part of a run is written, and acknowledged, before the rest is; then the
 * connection breaks, or not. */
static void part(bool breaks, bool acknowledged)
{
	struct wf_tcp_chan *chan;
	struct run run, next;
	struct pair p;
	uint32_t there = 0, bytes = 0;

	open_pair(&p);
	recv_all(&p.b);
	chan = chan_of(&p.a, &p.b);
	begin(&p, &run, 0, 50);
	begin(&p, &next, 50, 60);
	while (there < 20)
		bytes += HEAD + len_of(there++);
	take_part(&p, &run, bytes + 10);
	assert_int_equal(chan->sent - chan->acked, 20);
	turn_b(&p, 20);
	/* It has begun to leave. */
	assert_false(wf_nic_extend_run(p.a.qp, &run.wr, run.id, put(&run, 50)));
	if (acknowledged)
		hear_acks(&p, 20);
	if (breaks)
		shutdown(chan->conn->fd, SHUT_RDWR);
	hear_all(&p, 60);
	expect(&p, 0, 50, WF_NIC_OK);
	expect(&p, 50, 10, WF_NIC_OK);
	assert_int_equal(wf_tcp_dev_of(p.a.nic)->flying, 0);
	assert_int_equal(wf_tcp_dev_of(p.a.nic)->ops.in_use, 0);
	pair_close(&p);
}

static void test_part(void **state)
{
	(void)state;
	part(false, false);
	part(false, true);
}

static void test_part_breaks(void **state)
{
	(void)state;
	part(true, false);
	part(true, true);
}

/* All of it was written, and the peer has taken some when the connection
 * breaks: the messages that it has are not sent again. */
static void test_breaks(void **state)
{
	struct wf_tcp_chan *chan;
	struct wf_tcp_dev *dev;
	struct run run;
	struct pair p;

	(void)state;
	open_pair(&p);
	recv_all(&p.b);
	chan = chan_of(&p.a, &p.b);
	dev = wf_tcp_dev_of(p.a.nic);
	begin(&p, &run, 0, 50);
	take_part(&p, &run, HEAD + len_of(0) + HEAD + len_of(1) + 3);
	/* It has begun to leave. */
	assert_false(wf_nic_extend_run(p.a.qp, &run.wr, run.id, put(&run, 50)));
	take_rest(&p, 48);
	turn_b(&p, 2);
	shutdown(chan->conn->fd, SHUT_RDWR);
	hear_all(&p, 50);
	expect(&p, 0, 50, WF_NIC_OK);
	assert_int_equal(dev->flying, 0);
	assert_int_equal(dev->ops.in_use, 0);
	pair_close(&p);
}

/* The peer is gone in the middle: those that it has acknowledged are told. */
static void test_lost(void **state)
{
	struct run run, next;
	uint32_t bytes = 0, there = 0;
	struct wf_nic_wc wc;
	struct pair p;

	(void)state;
	open_pair(&p);
	recv_all(&p.b);
	begin(&p, &run, 0, 50);
	begin(&p, &next, 50, 60);
	while (there < 17)
		bytes += HEAD + len_of(there++);
	take_part(&p, &run, bytes + 40);
	turn_b(&p, 17);
	side_close(&p.b);
	p.b = p.a;
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 1000);
	assert_int_not_equal(wc.status, WF_NIC_OK);
	assert_int_equal(wc.len, 17);
	wc = pair_wait(&p, &p.a);
	assert_int_equal(wc.wr_id, 1050);
	assert_int_not_equal(wc.status, WF_NIC_OK);
	assert_int_equal(wc.len, 0);
	assert_int_equal(COUNTED(&p.a, tx_failed), 43);
	side_close(&p.a);
}

/* Bug: the end of the run that waited came before that of the run in flight. The
 * user learned from it that the peer is lost, and took the messages that the peer
 * had acknowledged for lost, too. */
static void test_lost_behind(void **state)
{
	uint32_t bytes = 0, there = 0;
	struct run run, next;
	struct pair p;

	(void)state;
	open_pair(&p);
	recv_all(&p.b);
	begin(&p, &run, 0, 50);
	while (there < 17)
		bytes += HEAD + len_of(there++);
	take_part(&p, &run, bytes);
	take_rest(&p, 50 - 17);
	turn_b(&p, 17);
	hear_acks(&p, 17);
	begin(&p, &next, 50, 60);
	wf_tcp_peer_end_life(wf_tcp_dev_of(p.a.nic), chan_of(&p.a, &p.b)->peer,
			     WF_NIC_UNREACH, true);
	expect(&p, 0, 17, WF_NIC_UNREACH);
	expect(&p, 50, 0, WF_NIC_UNREACH);
	pair_close(&p);
}

/* One message in the middle is refused: its receive is too short. */
static void test_refused(void **state)
{
	struct run run;
	struct pair p;

	(void)state;
	open_pair(&p);
	/* The first that is longer than 100 bytes. */
	for (uint32_t i = 0; i < RECVS; i++)
		pair_recv(&p.b, i, THEIRS + i * RECV, 100);
	begin(&p, &run, 0, 20);
	wf_nic_qp_ring(p.a.qp);
	expect(&p, 0, 14, WF_NIC_REM_LEN);
	take(&p.b, false);
	pair_close(&p);
}

/* Given up by the user in the middle of a frame: the part that the peer has is
 * counted, and what follows arrives. */
static void test_flushed(void **state)
{
	struct wf_nic_wc wc;
	struct run run;
	struct pair p;
	uint64_t end;

	(void)state;
	open_pair(&p);
	recv_all(&p.b);
	begin(&p, &run, 0, 50);
	take_part(&p, &run, HEAD + len_of(0) + HEAD + len_of(1) + 3);
	/* As if the kernel had no room for more. */
	chan_of(&p.a, &p.b)->conn->full = true;
	wf_tcp_dev_of(p.a.nic)->full_count++;
	wf_nic_qp_flush(p.a.qp);
	assert_int_equal(wf_nic_cq_poll(p.a.cq, &wc, 1), 1);
	assert_int_equal(wc.status, WF_NIC_FLUSHED);
	memset(run.at, 0, run.len);
	turn_b(&p, 2);
	for (int i = 0; i < 2000; i++) {
		pair_progress(&p);
		take(&p.b, true);
	}
	assert_int_equal(heard, 2);
	/* And the channel works. */
	{
		struct wf_nic_wr wr = pair_wr(&p.b, &p.a, 5);

		assert_int_equal(wf_nic_post_inline(p.b.qp, &wr, "x", 1), 0);
		assert_int_equal(pair_wait(&p, &p.b).status, WF_NIC_BAD_QPN);
	}
	/* The refusal is acknowledged, too. */
	end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	while (wf_tcp_dev_of(p.a.nic)->flying) {
		pair_progress(&p);
		assert_true(wf_base_clock_ns() < end);
	}
	assert_int_equal(wf_tcp_dev_of(p.a.nic)->ops.in_use, 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_part_breaks),
		cmocka_unit_test(test_breaks),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_lost_behind),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_flushed),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
