/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory: keys to ranges and what may be done with them. A key is an
 * index and a generation (local) or an index and random bits (remote), so that
 * a stale or guessed one is refused. The NIC's lock covers the table.
 */
#ifndef WF_NIC_MR_H
#define WF_NIC_MR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_NIC_MR_MAX 65535u

struct wf_nic_mr_entry {
	uint64_t addr;
	uint64_t len;
	uint32_t lkey; /* 0: free */
	uint32_t rkey;
	uint32_t access;
	uint32_t next; /* free list */
	uint8_t generation;
};

struct wf_nic_mr_table {
	struct wf_nic_mr_entry *entries;
	uint32_t count; /* allocated; index 0 is never given out */
	uint32_t free;	/* 0: none; taken from the front, put at the end */
	uint32_t last;
	uint32_t in_use;
	uint64_t random;
};

int wf_nic_mr_table_init(struct wf_nic_mr_table *table);
void wf_nic_mr_table_fini(struct wf_nic_mr_table *table);
int wf_nic_mr_table_add(struct wf_nic_mr_table *table, uint64_t addr,
			uint64_t len, unsigned access, uint32_t *lkey,
			uint32_t *rkey);
int wf_nic_mr_table_del(struct wf_nic_mr_table *table, uint32_t lkey);

static inline bool wf_nic_mr_holds(const struct wf_nic_mr_entry *mr,
				   uint64_t addr, uint64_t len)
{
	return addr >= mr->addr && len <= mr->len &&
	       addr - mr->addr <= mr->len - len;
}

/* Whether a descriptor of ours may use these bytes. @access 0: to send. */
static inline bool wf_nic_mr_local(const struct wf_nic_mr_table *table,
				   uint32_t lkey, uint64_t addr, uint64_t len,
				   unsigned access)
{
	uint32_t at = lkey & 0xffff;

	return at < table->count && lkey && table->entries[at].lkey == lkey &&
	       (table->entries[at].access & access) == access &&
	       wf_nic_mr_holds(&table->entries[at], addr, len);
}

/* Whether a peer may. No bytes at all need no key. */
static inline bool wf_nic_mr_remote(const struct wf_nic_mr_table *table,
				    uint32_t rkey, uint64_t addr, uint64_t len,
				    unsigned access)
{
	uint32_t at = rkey & 0xffff;

	if (!len)
		return true;
	return at < table->count && table->entries[at].lkey &&
	       table->entries[at].rkey == rkey &&
	       (table->entries[at].access & access) == access &&
	       wf_nic_mr_holds(&table->entries[at], addr, len);
}

#endif
