/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds an operation by its number.
 */
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 16

void wf_base_table_fini(struct wf_table *table)
{
	free(table->entries);
	*table = (struct wf_table){ 0 };
}

static int grow(struct wf_table *table, uint32_t number)
{
	uint32_t room = table->room ? table->room : ROOM_MIN;
	void **entries;

	while (room <= number)
		room *= 2;
	entries = realloc(table->entries, room * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	memset(entries + table->room, 0,
	       (room - table->room) * sizeof(*entries));
	table->entries = entries;
	table->room = room;
	return 0;
}

int64_t wf_base_table_add(struct wf_table *table, void *entry)
{
	uint32_t number;
	int err;

	if (table->count == table->room) {
		if (table->room == WF_TABLE_MAX)
			return -ENOSPC;
		number = table->room;
		err = grow(table, number);
		if (err)
			return err;
		table->next = number;
	}
	/* At least one is free, and mostly the first that is looked at. */
	number = table->next;
	while (table->entries[number])
		number = (number + 1) % table->room;
	table->entries[number] = entry;
	table->next = (number + 1) % table->room;
	table->count++;
	return number;
}

int wf_base_table_put(struct wf_table *table, uint32_t number, void *entry)
{
	int err;

	assert(number < WF_TABLE_MAX && !wf_base_table_get(table, number));
	if (number >= table->room) {
		err = grow(table, number);
		if (err)
			return err;
	}
	table->entries[number] = entry;
	table->count++;
	return 0;
}

void wf_base_table_del(struct wf_table *table, uint32_t number)
{
	assert(wf_base_table_get(table, number));
	table->entries[number] = NULL;
	table->next = number; /* its line is warm */
	table->count--;
}
