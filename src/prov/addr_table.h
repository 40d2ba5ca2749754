/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses by index and indexes by address: the contents of an AV. An address
 * is in the table once and is counted; a new one takes the lowest free index,
 * as FI_AV_TABLE requires. One address at two places (base/place.h) is two
 * addresses. Takes no lock.
 */
#ifndef WF_PROV_ADDR_TABLE_H
#define WF_PROV_ADDR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define WF_PROV_ADDR_NONE UINT32_MAX

struct wf_prov_addr_slot {
	struct wf_addr addr;
	uint32_t uses; /* insertions not yet removed; 0 = free */
	uint32_t next; /* in the same bucket */
};

struct wf_prov_addr_table {
	struct wf_prov_addr_slot *slots;
	uint32_t *buckets;
	uint32_t room;	  /* slots */
	uint32_t mask;	  /* buckets - 1, a power of two minus one */
	uint32_t count;	  /* slots in use */
	uint32_t free_at; /* no slot below this one is free */
};

/* Room for @count addresses to begin with; any number is possible. 0 or
 * -ENOMEM. */
int wf_prov_addr_table_init(struct wf_prov_addr_table *table, size_t count);
void wf_prov_addr_table_fini(struct wf_prov_addr_table *table);

/* Stores the index in @index and in @is_new whether the address is now there
 * for the first time. 0 or -ENOMEM. */
int wf_prov_addr_table_insert(struct wf_prov_addr_table *table,
			      const struct wf_addr *addr, uint32_t *index,
			      bool *is_new);

/* Puts @addr where another table has it. -EEXIST when the index or the address
 * is there already, -ENOMEM. */
int wf_prov_addr_table_place(struct wf_prov_addr_table *table, uint32_t index,
			     const struct wf_addr *addr);

/* Reverses one insertion. -EINVAL if there is none; @is_gone says whether it
 * was the last. */
int wf_prov_addr_table_remove(struct wf_prov_addr_table *table, uint64_t index,
			      bool *is_gone);

/* NULL if the index is free. Valid until the next insertion. */
const struct wf_addr *
wf_prov_addr_table_get(const struct wf_prov_addr_table *table, uint64_t index);

/* WF_PROV_ADDR_NONE if the address is not there. One that states a place is
 * found without it, too; one without it, as packets have it, at any place. */
uint32_t wf_prov_addr_table_find(const struct wf_prov_addr_table *table,
				 const struct wf_addr *addr);

#endif
