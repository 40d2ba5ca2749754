/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An array of addresses with a chained hash over it. Both double when full;
 * neither shrinks.
 */
#include "prov/addr_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/place.h"

#define MIN_ROOM 16u
/* An application announces a guess: it is never trusted with more than 5 MiB
 * before the addresses come. */
#define MAX_FIRST_ROOM 131072u
#define MAX_ROOM (1u << 30)

static uint32_t *bucket_of(const struct wf_prov_addr_table *table,
			   const struct wf_addr *addr)
{
	uint64_t hash = wf_base_addr_hash(addr);

	/* The upper half of FNV's product is the better mixed one. */
	return &table->buckets[(hash >> 32 ^ hash) & table->mask];
}

static void link_slot(struct wf_prov_addr_table *table, uint32_t index)
{
	uint32_t *bucket = bucket_of(table, &table->slots[index].addr);

	table->slots[index].next = *bucket;
	*bucket = index;
}

/* Leaves the table as it was when memory is short. */
static int set_room(struct wf_prov_addr_table *table, uint32_t room)
{
	struct wf_prov_addr_slot *slots;
	uint32_t *buckets;

	buckets = malloc(room * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	slots = realloc(table->slots, room * sizeof(*slots));
	if (!slots) {
		free(buckets);
		return -ENOMEM;
	}
	memset(slots + table->room, 0, (room - table->room) * sizeof(*slots));
	free(table->buckets);
	memset(buckets, 0xff, room * sizeof(*buckets)); /* ADDR_NONE */
	table->slots = slots;
	table->buckets = buckets;
	table->mask = room - 1;
	for (uint32_t i = 0; i < table->room; i++) {
		if (slots[i].uses)
			link_slot(table, i);
	}
	table->room = room;
	return 0;
}

int wf_prov_addr_table_init(struct wf_prov_addr_table *table, size_t count)
{
	uint32_t room = MIN_ROOM;

	memset(table, 0, sizeof(*table));
	while (room < count && room < MAX_FIRST_ROOM)
		room *= 2;
	return set_room(table, room);
}

void wf_prov_addr_table_fini(struct wf_prov_addr_table *table)
{
	free(table->slots);
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}

/* The first of its bucket from @at on with this address, at any place. */
static uint32_t next_equal(const struct wf_prov_addr_table *table, uint32_t at,
			   const struct wf_addr *addr)
{
	while (at != WF_PROV_ADDR_NONE &&
	       !wf_base_addr_equal(&table->slots[at].addr, addr))
		at = table->slots[at].next;
	return at;
}

/* The same at @place exactly, where none is a place. */
static uint32_t find_at(const struct wf_prov_addr_table *table,
			const struct wf_addr *addr, uint64_t place)
{
	uint32_t at = next_equal(table, *bucket_of(table, addr), addr);

	while (at != WF_PROV_ADDR_NONE &&
	       wf_base_place_of(&table->slots[at].addr) != place)
		at = next_equal(table, table->slots[at].next, addr);
	return at;
}

uint32_t wf_prov_addr_table_find(const struct wf_prov_addr_table *table,
				 const struct wf_addr *addr)
{
	uint64_t place = wf_base_place_of(addr);
	uint32_t at = find_at(table, addr, place);

	if (at != WF_PROV_ADDR_NONE)
		return at;
	return place ? find_at(table, addr, 0) :
		       next_equal(table, *bucket_of(table, addr), addr);
}

int wf_prov_addr_table_insert(struct wf_prov_addr_table *table,
			      const struct wf_addr *addr, uint32_t *index,
			      bool *is_new)
{
	uint32_t at = find_at(table, addr, wf_base_place_of(addr));

	*is_new = at == WF_PROV_ADDR_NONE;
	if (!*is_new) {
		table->slots[at].uses++;
		*index = at;
		return 0;
	}
	if (table->count == table->room &&
	    (table->room >= MAX_ROOM || set_room(table, table->room * 2)))
		return -ENOMEM;
	at = table->free_at;
	while (table->slots[at].uses)
		at++;
	table->slots[at].addr = *addr;
	table->slots[at].uses = 1;
	link_slot(table, at);
	table->count++;
	table->free_at = at + 1;
	*index = at;
	return 0;
}

int wf_prov_addr_table_place(struct wf_prov_addr_table *table, uint32_t index,
			     const struct wf_addr *addr)
{
	uint32_t room = table->room;

	while (room <= index && room < MAX_ROOM)
		room *= 2;
	if (index >= room || (room > table->room && set_room(table, room)))
		return -ENOMEM;
	if (table->slots[index].uses ||
	    find_at(table, addr, wf_base_place_of(addr)) != WF_PROV_ADDR_NONE)
		return -EEXIST;
	table->slots[index].addr = *addr;
	table->slots[index].uses = 1;
	link_slot(table, index);
	table->count++;
	return 0;
}

int wf_prov_addr_table_remove(struct wf_prov_addr_table *table, uint64_t index,
			      bool *is_gone)
{
	struct wf_prov_addr_slot *slot;
	uint32_t *link;

	if (!wf_prov_addr_table_get(table, index))
		return -EINVAL;
	slot = &table->slots[index];
	*is_gone = !--slot->uses;
	if (!*is_gone)
		return 0;
	link = bucket_of(table, &slot->addr);
	while (*link != index)
		link = &table->slots[*link].next;
	*link = slot->next;
	table->count--;
	if (index < table->free_at)
		table->free_at = (uint32_t)index;
	return 0;
}

const struct wf_addr *
wf_prov_addr_table_get(const struct wf_prov_addr_table *table, uint64_t index)
{
	if (index >= table->room || !table->slots[index].uses)
		return NULL;
	return &table->slots[index].addr;
}
