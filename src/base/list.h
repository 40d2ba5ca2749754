/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked lists. A list is a circle through its head, so
 * insertion and removal have no branches. Owns no memory and takes no lock.
 */
#ifndef WF_BASE_LIST_H
#define WF_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct wf_list {
	struct wf_list *next;
	struct wf_list *prev;
};

#define wf_container_of(ptr, type, member)                                     \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* Safe against removal of @pos inside the body. */
#define wf_list_for_each(pos, tmp, head)                                       \
	for (pos = (head)->next, tmp = pos->next; pos != (head);               \
	     pos = tmp, tmp = pos->next)

static inline void wf_base_list_init(struct wf_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool wf_base_list_empty(const struct wf_list *head)
{
	return head->next == head;
}

static inline void wf_base_list_add_tail(struct wf_list *head,
					 struct wf_list *item)
{
	struct wf_list *last = head->prev;

	item->next = head;
	item->prev = last;
	last->next = item;
	head->prev = item;
}

static inline void wf_base_list_add_head(struct wf_list *head,
					 struct wf_list *item)
{
	wf_base_list_add_tail(head->next, item);
}

/* For an item that is reused at once: its links keep their old values. */
static inline void wf_base_list_unlink(struct wf_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
}

/* Leaves @item a list of itself, so that a second removal does no harm. */
static inline void wf_base_list_del(struct wf_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->next = item;
	item->prev = item;
}

#endif
