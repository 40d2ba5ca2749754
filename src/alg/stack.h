/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack that any thread adds to without a lock, and that one thread at a time
 * empties into a list, oldest first. An item is in one of the two.
 */
#ifndef WF_ALG_STACK_H
#define WF_ALG_STACK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"

struct wf_stack_item {
	struct wf_stack_item *below;
	struct wf_list link;
};

struct wf_stack {
	_Atomic(struct wf_stack_item *) top;
};

static inline bool wf_alg_stack_empty(struct wf_stack *stack)
{
	return !atomic_load(&stack->top);
}

/* True: it is the only one. The item may be gone when this returns. */
static inline bool wf_alg_stack_push(struct wf_stack *stack,
				     struct wf_stack_item *item)
{
	struct wf_stack_item *top = atomic_load(&stack->top);

	do
		item->below = top;
	while (!atomic_compare_exchange_weak(&stack->top, &top, item));
	return !top;
}

/* To the end of @list. Returns how many. */
static inline unsigned int wf_alg_stack_empty_into(struct wf_stack *stack,
						   struct wf_list *list)
{
	struct wf_stack_item *item;
	unsigned int n = 0;

	if (wf_alg_stack_empty(stack))
		return 0;
	item = atomic_exchange(&stack->top, NULL);
	for (; item; item = item->below) {
		/* Before the one that was added after it. */
		wf_base_list_add_tail(list, &item->link);
		list = &item->link;
		n++;
	}
	return n;
}

#endif
