/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations by number: a table that grows, used by a sender to number what
 * waits for a reply and by a receiver to find what such a number stands for.
 * Owns its memory, not what the entries point to.
 */
#ifndef WF_BASE_TABLE_H
#define WF_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* Numbers are below this; the upper half of a name makes it differ from the
 * last one with the same number. */
#define WF_TABLE_MAX 65536

struct wf_table {
	void **entries;
	uint32_t room;
	uint32_t count;
	uint32_t next; /* where to look for a free number */
};

void wf_base_table_fini(struct wf_table *table);

/* Finds a free number for @entry. The number, or -ENOMEM, -ENOSPC. */
int64_t wf_base_table_add(struct wf_table *table, void *entry);

/* Puts @entry at a number that the peer chose and that is free. 0, -ENOMEM. */
int wf_base_table_put(struct wf_table *table, uint32_t number, void *entry);

void wf_base_table_del(struct wf_table *table, uint32_t number);

static inline uint32_t wf_base_table_number(uint32_t name)
{
	return name % WF_TABLE_MAX;
}

static inline void *wf_base_table_get(const struct wf_table *table,
				      uint32_t number)
{
	return number < table->room ? table->entries[number] : NULL;
}

#endif
