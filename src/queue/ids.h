/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request ids: a descriptor carries one, and its completion brings it back, in
 * any order. An id is an index in its low bits and a generation above. The
 * generation advances whenever the index is freed, so that a completion that is
 * late, repeated or forged can be recognized. Local to one side; needs its
 * owner's lock.
 */
#ifndef WF_QUEUE_IDS_H
#define WF_QUEUE_IDS_H

#include <stdbool.h>
#include <stdint.h>

struct wf_queue_id_slot {
	uint32_t id;   /* with the generation it has or will have next */
	uint32_t next; /* free: the next free index; used: IN_USE */
};

struct wf_queue_ids {
	struct wf_queue_id_slot *slots;
	uint32_t free; /* first free index */
	uint32_t last; /* last one: taken from the front, put at the end */
	uint32_t count;
	uint32_t mask; /* of the index */
	uint32_t step; /* one generation */
	uint32_t top;  /* mask of the whole id */
	uint32_t in_use;
};

#define WF_QUEUE_ID_NONE UINT32_MAX
#define WF_QUEUE_ID_IN_USE (UINT32_MAX - 1)

/* @count ids at a time, each below 2^@bits. -EINVAL, -ENOMEM. */
int wf_queue_ids_init(struct wf_queue_ids *ids, uint32_t count, unsigned bits);
void wf_queue_ids_fini(struct wf_queue_ids *ids);

/* The index is id & ids->mask: the place of the caller's own record. */
static inline uint32_t wf_queue_ids_index(const struct wf_queue_ids *ids,
					  uint32_t id)
{
	return id & ids->mask;
}

/* WF_QUEUE_ID_NONE when all are in use. Indexes go round, so that a generation
 * lasts as long as it can. */
static inline uint32_t wf_queue_ids_get(struct wf_queue_ids *ids)
{
	uint32_t at = ids->free;

	if (at == WF_QUEUE_ID_NONE)
		return WF_QUEUE_ID_NONE;
	ids->free = ids->slots[at].next;
	ids->slots[at].next = WF_QUEUE_ID_IN_USE;
	ids->in_use++;
	return ids->slots[at].id;
}

/* Whether @id, which may come from outside, is in use. */
static inline bool wf_queue_ids_live(const struct wf_queue_ids *ids,
				     uint32_t id)
{
	uint32_t at = id & ids->mask;

	return at < ids->count && ids->slots[at].id == id &&
	       ids->slots[at].next == WF_QUEUE_ID_IN_USE;
}

/* Frees a live id. */
static inline void wf_queue_ids_put(struct wf_queue_ids *ids, uint32_t id)
{
	uint32_t at = id & ids->mask;
	struct wf_queue_id_slot *slot = &ids->slots[at];

	slot->id = (slot->id + ids->step) & ids->top;
	slot->next = WF_QUEUE_ID_NONE;
	if (ids->free == WF_QUEUE_ID_NONE)
		ids->free = at;
	else
		ids->slots[ids->last].next = at;
	ids->last = at;
	ids->in_use--;
}

#endif
