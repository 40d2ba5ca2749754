/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of registered memory. Grows by doubling; entries are found by index
 * and never by pointer, so that it may move.
 */
#include "nic/mr.h"

#include <errno.h>
#include <stdlib.h>

#include "os/process.h"

#define FIRST_COUNT 64u

/* Enough that a peer who saw some keys cannot derive the next. Not a secret
 * against an attacker who may try as often as he likes, so refused keys are
 * counted. */
static uint32_t next_random(struct wf_nic_mr_table *table)
{
	uint64_t z = table->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)(z >> 32);
}

/* At the end: a generation has eight bits, and lasts the longer the more others
 * come first. */
static void put_free(struct wf_nic_mr_table *table, uint32_t at)
{
	table->entries[at].next = 0;
	if (table->free)
		table->entries[table->last].next = at;
	else
		table->free = at;
	table->last = at;
}

static int grow(struct wf_nic_mr_table *table)
{
	uint32_t count = table->count ? table->count * 2 : FIRST_COUNT;
	struct wf_nic_mr_entry *entries;

	if (count > WF_NIC_MR_MAX + 1)
		return -ENOSPC;
	entries = realloc(table->entries, count * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	for (uint32_t i = table->count; i < count; i++) {
		entries[i] = (struct wf_nic_mr_entry){ .lkey = 0 };
		if (i)
			put_free(table, i);
	}
	table->count = count;
	return 0;
}

int wf_nic_mr_table_init(struct wf_nic_mr_table *table)
{
	*table = (struct wf_nic_mr_table){ .count = 0 };
	if (wf_os_random(&table->random, sizeof(table->random), true))
		return -EIO;
	return grow(table);
}

void wf_nic_mr_table_fini(struct wf_nic_mr_table *table)
{
	free(table->entries);
	table->entries = NULL;
	table->count = 0;
}

int wf_nic_mr_table_add(struct wf_nic_mr_table *table, uint64_t addr,
			uint64_t len, unsigned access, uint32_t *lkey,
			uint32_t *rkey)
{
	struct wf_nic_mr_entry *mr;
	uint32_t at, random;
	int ret;

	if (!len || addr + len < addr)
		return -EINVAL;
	if (!table->free) {
		ret = grow(table);
		if (ret)
			return ret;
	}
	at = table->free;
	mr = &table->entries[at];
	table->free = mr->next;
	mr->addr = addr;
	mr->len = len;
	mr->access = access;
	mr->generation++;
	mr->lkey = (uint32_t)mr->generation << 16 | at;
	/* Never the one that was there before. */
	do {
		random = next_random(table) << 16 | at;
	} while (random == mr->rkey);
	mr->rkey = random;
	table->in_use++;
	*lkey = mr->lkey;
	*rkey = mr->rkey;
	return 0;
}

int wf_nic_mr_table_del(struct wf_nic_mr_table *table, uint32_t lkey)
{
	uint32_t at = lkey & 0xffff;

	if (!lkey || at >= table->count || table->entries[at].lkey != lkey)
		return -EINVAL;
	table->entries[at].lkey = 0;
	put_free(table, at);
	table->in_use--;
	return 0;
}
