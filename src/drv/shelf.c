/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places for idle items, one for each thread where there are few threads.
 */
#include "drv/shelf.h"

static atomic_uint threads;
static atomic_size_t large_bytes; /* on shelves */

/* Where this thread begins to look. */
static unsigned int own_place(void)
{
	static __thread unsigned int mine; /* 0: none yet */

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&threads, 1,
						     memory_order_relaxed) %
				   WF_DRV_SHELF_PLACES;
	return mine - 1;
}

static _Atomic(void *) *place_of(struct wf_drv_shelf *shelf, unsigned int at)
{
	return &shelf->places[at % WF_DRV_SHELF_PLACES].item;
}

/* The load leaves the line shared where there is none. */
static void *take_from(_Atomic(void *) *place)
{
	return atomic_load_explicit(place, memory_order_relaxed) ?
		       atomic_exchange_explicit(place, NULL,
						memory_order_acquire) :
		       NULL;
}

void *wf_drv_shelf_take(struct wf_drv_shelf *shelf)
{
	unsigned int own = own_place();
	void *item = take_from(place_of(shelf, own));

	/* Another thread's: threads may come and go, and what they leave is used
	 * before there is more. */
	for (unsigned int i = 1; !item && i < WF_DRV_SHELF_PLACES; i++)
		item = take_from(place_of(shelf, own + i));
	if (item && shelf->large)
		atomic_fetch_sub(&large_bytes, shelf->large);
	return item;
}

void wf_drv_shelf_put(struct wf_drv_shelf *shelf, void *item,
		      void (*free_item)(void *item))
{
	unsigned int own = own_place();

	/* Counted before it lies there, so that it is never more. */
	if (shelf->large &&
	    atomic_fetch_add(&large_bytes, shelf->large) + shelf->large >
		    WF_DRV_SHELF_MOST)
		goto out;
	for (unsigned int i = 0; i < WF_DRV_SHELF_PLACES; i++) {
		_Atomic(void *) *place = place_of(shelf, own + i);
		void *none = NULL;

		if (!atomic_load_explicit(place, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(
			    place, &none, item, memory_order_release,
			    memory_order_relaxed))
			return;
	}
out:
	if (shelf->large)
		atomic_fetch_sub(&large_bytes, shelf->large);
	free_item(item);
}

void wf_drv_shelf_clear(struct wf_drv_shelf *shelf,
			void (*free_item)(void *item))
{
	for (unsigned int i = 0; i < WF_DRV_SHELF_PLACES; i++) {
		void *item = atomic_exchange(place_of(shelf, i), NULL);

		if (item && shelf->large)
			atomic_fetch_sub(&large_bytes, shelf->large);
		if (item)
			free_item(item);
	}
}
