/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Payloads that go to a place which the user chooses (nic.h: wf_nic_place). The
 * first piece of a frame completes a receive and asks for the place. The device
 * does not read on from that connection until it has the answer; the user gives
 * it in the same progress call if there is memory for the message. The device
 * then receives the rest of the frame straight into the place. If the answer
 * takes long, or if a thread works in the owner's place so that nobody can
 * answer, the device keeps the rest in memory of its own and copies it later:
 * the frames behind it do not wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nic/tcp/dev.h"

/* In memory of ours, of messages that were announced. Others are held, and
 * their senders wait. */
#define KEPT_ALL (16u << 20)

int wf_tcp_place_open(struct wf_tcp_dev *dev)
{
	int ret = wf_queue_ids_init(&dev->place_ids, WF_TCP_PLACES_MOST, 31);

	if (ret)
		return ret;
	dev->places = calloc(WF_TCP_PLACES_MOST, sizeof(*dev->places));
	dev->placed = calloc(WF_TCP_PLACES_MOST, sizeof(*dev->placed));
	return dev->places && dev->placed ? 0 : -ENOMEM;
}

static struct wf_tcp_place *find(struct wf_tcp_dev *dev, uint32_t number)
{
	if (!wf_queue_ids_live(&dev->place_ids, number))
		return NULL;
	return &dev->places[wf_queue_ids_index(&dev->place_ids, number)];
}

static void free_held(struct wf_tcp_dev *dev, struct wf_tcp_place *place)
{
	if (!place->held)
		return;
	dev->kept_bytes -= place->len;
	free(place->held);
	place->held = NULL;
}

void wf_tcp_place_fini(struct wf_tcp_dev *dev)
{
	for (uint32_t i = 0; dev->places && i < WF_TCP_PLACES_MOST; i++)
		free(dev->places[i].held);
	free(dev->places);
	free(dev->placed);
	wf_queue_ids_fini(&dev->place_ids);
}

bool wf_tcp_place_has_room(const struct wf_tcp_dev *dev)
{
	return dev->place_ids.in_use < WF_TCP_PLACES_MOST &&
	       dev->kept_bytes < KEPT_ALL;
}

static uint32_t get(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
		    const struct wf_tcp_head *head)
{
	uint32_t number = wf_queue_ids_get(&dev->place_ids);

	*find(dev, number) = (struct wf_tcp_place){
		.qp = qp,
		.len = head->len - wf_tcp_first_len(head),
	};
	return number;
}

static void put(struct wf_tcp_dev *dev, uint32_t number)
{
	free_held(dev, find(dev, number));
	wf_queue_ids_put(&dev->place_ids, number);
}

/* All of the payload is where the user wants it. */
static void finish(struct wf_tcp_dev *dev, uint32_t number)
{
	struct wf_tcp_place *place = find(dev, number);

	place->conn = NULL;
	place->done = true;
	dev->placed[dev->placed_end++ % WF_TCP_PLACES_MOST] = number;
	atomic_fetch_add_explicit(&dev->nic.placed, 1, memory_order_relaxed);
	wf_nic_soft_wake(&dev->soft);
}

static void copy(struct wf_tcp_dev *dev, uint32_t number)
{
	struct wf_tcp_place *place = find(dev, number);

	memcpy(place->at, place->from, place->len);
	free_held(dev, place);
	finish(dev, number);
}

/* -- what comes -------------------------------------------------------------- */

void wf_tcp_place_begin(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_sink *sink = &conn->sink;

	sink->place = get(dev, sink->qp, &conn->frame.head);
	sink->has_place = true;
	find(dev, sink->place)->conn = conn;
}

void wf_tcp_place_ask(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_sink *sink = &conn->sink;

	sink->kind = WF_TCP_SINK_ASKED;
	sink->left = find(dev, sink->place)->len;
	wf_tcp_target_announce(dev, conn->chan->peer, sink->qp, &sink->desc,
			       &conn->frame.head, sink->place);
}

int wf_tcp_place_keep(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	struct wf_tcp_sink *sink = &conn->sink;
	struct wf_tcp_place *place = find(dev, sink->place);
	struct wf_tcp_held *held = malloc(sizeof(*held) + place->len);

	if (!held)
		return -ENOMEM;
	held->chan = conn->chan;
	held->frame = conn->frame;
	held->asked = true;
	held->stranger = false;
	held->from = dev->now;
	held->place = sink->place;
	place->held = held;
	place->from = held->payload;
	dev->kept_bytes += place->len;
	sink->kind = WF_TCP_SINK_HELD;
	sink->held = held;
	sink->at = held->payload;
	return 0;
}

void wf_tcp_place_end(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	conn->sink.has_place = false;
	finish(dev, conn->sink.place);
}

void wf_tcp_place_fail(struct wf_tcp_dev *dev, struct wf_tcp_conn *conn)
{
	find(dev, conn->sink.place)->failed = true;
	wf_tcp_place_end(dev, conn);
}

void wf_tcp_place_kept(struct wf_tcp_dev *dev, struct wf_tcp_held *held)
{
	struct wf_tcp_place *place = find(dev, held->place);

	place->conn->sink.has_place = false;
	place->conn = NULL;
	if (place->given)
		copy(dev, held->place);
}

uint32_t wf_tcp_place_whole(struct wf_tcp_dev *dev, struct wf_nic_qp *qp,
			    struct wf_tcp_held *held)
{
	const struct wf_tcp_head *head = &held->frame.head;
	uint32_t number = get(dev, qp, head);
	struct wf_tcp_place *place = find(dev, number);

	held->asked = true;
	place->held = held;
	place->from = held->payload + wf_tcp_first_len(head);
	dev->kept_bytes += place->len;
	return number;
}

void wf_tcp_place_lose(struct wf_tcp_dev *dev, uint32_t number)
{
	put(dev, number);
}

/* -- what the user says ------------------------------------------------------ */

/* The rest of the frame goes nowhere. */
static void into_nowhere(struct wf_tcp_place *place, enum wf_nic_status status)
{
	struct wf_tcp_sink *sink = &place->conn->sink;

	sink->kind = WF_TCP_SINK_DROP;
	sink->status = (uint8_t)status;
	sink->has_place = false;
	place->conn = NULL;
}

static void give_up(struct wf_tcp_dev *dev, uint32_t number,
		    enum wf_nic_status status)
{
	struct wf_tcp_place *place = find(dev, number);

	if (place->conn)
		into_nowhere(place, status);
	/* Its number is still in the ring. */
	if (place->done)
		place->arg = NULL;
	else
		put(dev, number);
}

void wf_tcp_place_take(struct wf_nic *nic, uint32_t number)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);

	if (find(dev, number))
		give_up(dev, number, WF_NIC_OK);
}

void wf_tcp_place_flush(struct wf_tcp_dev *dev, struct wf_nic_qp *qp)
{
	const struct wf_queue_ids *ids = &dev->place_ids;

	for (uint32_t i = 0; i < ids->count && ids->in_use; i++) {
		if (ids->slots[i].next == WF_QUEUE_ID_IN_USE &&
		    dev->places[i].qp == qp)
			give_up(dev, ids->slots[i].id, WF_NIC_BAD_QPN);
	}
}

int wf_tcp_place_give(struct wf_nic *nic, uint32_t number, void *at, void *arg)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	struct wf_tcp_place *place = find(dev, number);
	struct wf_tcp_conn *conn;

	if (!place || place->given)
		return -ESTALE;
	if (!at) {
		give_up(dev, number, WF_NIC_OK);
		return 0;
	}
	place->given = true;
	place->at = at;
	place->arg = arg;
	conn = place->conn;
	if (!conn)
		copy(dev, number);
	if (!conn || place->held)
		return 0;
	conn->sink.kind = WF_TCP_SINK_PLACED;
	conn->sink.at = at;
	dev->now = wf_base_clock_ns();
	dev->attending = false;
	wf_tcp_in_resume(dev, conn);
	if (!conn->dead && !conn->carry)
		wf_tcp_in_read(dev, conn);
	wf_nic_soft_tell(&dev->soft);
	return 0;
}

int wf_tcp_place_tell(struct wf_nic *nic, struct wf_nic_placed *out, int n)
{
	struct wf_tcp_dev *dev = wf_tcp_dev_of(nic);
	int count = 0;

	while (count < n && dev->placed_at != dev->placed_end) {
		uint32_t number =
			dev->placed[dev->placed_at++ % WF_TCP_PLACES_MOST];
		struct wf_tcp_place *place = find(dev, number);

		atomic_fetch_sub_explicit(&nic->placed, 1,
					  memory_order_relaxed);
		if (place->arg)
			out[count++] = (struct wf_nic_placed){ place->arg,
							       place->failed };
		put(dev, number);
	}
	return count;
}
