/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of one peer in the order of their numbers.
 */
#include "rdm/order.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* How often what overflowed is looked through: before any of it is due. */
#define RESCAN_EVERY (WF_RDM_WINDOW / 2)

void wf_rdm_order_init(struct wf_rdm_order *order)
{
	*order = (struct wf_rdm_order){ .expected = 0 };
	wf_base_list_init(&order->overflow);
}

static void drop_all(struct wf_rdm_order *order, struct wf_list *head)
{
	while (!wf_base_list_empty(head))
		wf_rdm_order_drop(
			order,
			wf_container_of(head->next, struct wf_rdm_saved, link));
}

void wf_rdm_order_fini(struct wf_rdm_order *order)
{
	for (uint32_t i = 0; order->slots && i < WF_RDM_WINDOW; i++)
		drop_all(order, &order->slots[i]);
	drop_all(order, &order->overflow);
	free(order->slots);
	order->slots = NULL;
}

static struct wf_list *slot_of(const struct wf_rdm_order *order,
			       uint32_t msg_id)
{
	return &order->slots[msg_id % WF_RDM_WINDOW];
}

static bool make_slots(struct wf_rdm_order *order)
{
	if (order->slots)
		return true;
	order->slots = malloc(WF_RDM_WINDOW * sizeof(*order->slots));
	for (uint32_t i = 0; order->slots && i < WF_RDM_WINDOW; i++)
		wf_base_list_init(&order->slots[i]);
	return order->slots;
}

/* One slot more than the window holds the packets of the message before. */
static bool in_window(const struct wf_rdm_order *order, uint32_t msg_id)
{
	return msg_id - order->expected < WF_RDM_WINDOW - 1;
}

static int save(struct wf_rdm_order *order, uint32_t msg_id, const void *bytes,
		uint32_t len)
{
	struct wf_rdm_saved *saved;

	if (order->held >= WF_RDM_HELD_MAX)
		return -EPROTO;
	saved = make_slots(order) ? malloc(sizeof(*saved) + len) : NULL;
	if (!saved)
		return -ENOMEM;
	saved->msg_id = msg_id;
	saved->len = len;
	memcpy(saved->bytes, bytes, len);
	wf_base_list_add_tail(in_window(order, msg_id) ?
				      slot_of(order, msg_id) :
				      &order->overflow,
			      &saved->link);
	if (++order->held > order->held_max)
		order->held_max = order->held;
	return WF_RDM_TURN_HELD;
}

int wf_rdm_order_arrive(struct wf_rdm_order *order, uint32_t msg_id,
			const void *bytes, uint32_t len)
{
	uint32_t ahead = msg_id - order->expected;

	if (!ahead)
		return WF_RDM_TURN_NOW;
	if ((int32_t)ahead < 0)
		return WF_RDM_TURN_PAST;
	if (ahead > WF_RDM_HELD_MAX)
		return -EPROTO;
	return save(order, msg_id, bytes, len);
}

static void rescan(struct wf_rdm_order *order)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &order->overflow) {
		struct wf_rdm_saved *saved =
			wf_container_of(pos, struct wf_rdm_saved, link);

		if (!in_window(order, saved->msg_id))
			continue;
		wf_base_list_unlink(&saved->link);
		wf_base_list_add_tail(slot_of(order, saved->msg_id),
				      &saved->link);
	}
}

void wf_rdm_order_advance(struct wf_rdm_order *order)
{
	order->expected++;
	if (!wf_base_list_empty(&order->overflow) &&
	    !(order->expected % RESCAN_EVERY))
		rescan(order);
}

/* The lowest number in @list, counted from the one that is expected. */
static uint32_t lowest(const struct wf_rdm_order *order,
		       const struct wf_list *list, uint32_t ahead)
{
	const struct wf_list *pos;

	for (pos = list->next; pos != list; pos = pos->next) {
		const struct wf_rdm_saved *saved =
			wf_container_of(pos, struct wf_rdm_saved, link);

		if (saved->msg_id - order->expected < ahead)
			ahead = saved->msg_id - order->expected;
	}
	return ahead;
}

void wf_rdm_order_skip(struct wf_rdm_order *order)
{
	uint32_t ahead = lowest(order, &order->overflow, UINT32_MAX);

	for (uint32_t i = 0; i < WF_RDM_WINDOW; i++)
		ahead = lowest(order, &order->slots[i], ahead);
	order->expected += ahead;
	rescan(order);
}

static struct wf_rdm_saved *first_of(const struct wf_rdm_order *order,
				     uint32_t msg_id)
{
	struct wf_list *slot;

	if (!order->held)
		return NULL;
	slot = slot_of(order, msg_id);
	if (wf_base_list_empty(slot))
		return NULL;
	return wf_container_of(slot->next, struct wf_rdm_saved, link);
}

struct wf_rdm_saved *wf_rdm_order_first(const struct wf_rdm_order *order)
{
	return first_of(order, order->expected);
}

struct wf_rdm_saved *wf_rdm_order_past(const struct wf_rdm_order *order)
{
	return first_of(order, order->expected - 1);
}

void wf_rdm_order_drop(struct wf_rdm_order *order, struct wf_rdm_saved *saved)
{
	wf_base_list_unlink(&saved->link);
	order->held--;
	free(saved);
}
