/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMM: an allocator in two-level segregated fit with all bookkeeping outside
 * the blocks. Each change of the pool is one store to the tag of a block's first
 * granule, and everything else can be computed from those tags: if a process dies
 * while it changes the pool, the next one that uses the pool repairs it.
 *
 * In front of it each thread remembers a few blocks that it freed and may have
 * again without the lock. A thread remembers hints only: the tag of a block
 * says whether it is kept, and the thread that changes the tag first has the
 * block. So nothing has to be given back when a thread ends or memory is
 * unmapped, and a thread that finds the lists empty takes blocks that others
 * keep.
 */
#include "weft/smm.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "chan/smm_defs.h"

/* How many blocks of one class are looked at when no larger class has any:
 * keeps the search O(1). */
#define SEARCH_MAX 64

#define COUNT_MAX WF_SMM_TAG_SIZE

/* A thread remembers blocks of so many sizes of so many pools. Static TLS is
 * scarce in libraries that are loaded late: 208 bytes. */
#define KEEPS 2
#define SHELVES 4
#define SHELF_DEPTH 4
/* No block is kept that is a larger part of its pool. */
#define KEEP_PART 32

struct shelf {
	uint32_t size; /* in granules */
	uint32_t n;
	uint32_t blocks[SHELF_DEPTH];
};

struct keep {
	const struct wf_smm_pool *pool;
	uint64_t id;
	struct shelf shelves[SHELVES];
};

/* Not behind a call: half of the time of an allocation would go there. */
static _Thread_local struct keep keeps[KEEPS]
	__attribute__((tls_model("initial-exec")));

static uintptr_t round_up(uintptr_t value, uintptr_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static struct wf_smm_pool *pool_at(void *pt_addr)
{
	return (void *)round_up((uintptr_t)pt_addr, WF_LINE);
}

static struct wf_smm_link *link_of(struct wf_smm_pool *pool, uint32_t block)
{
	struct wf_smm_link *links = (void *)((uint8_t *)pool + pool->links_at);

	return &links[block / 2];
}

static uint32_t tag_of(struct wf_smm_pool *pool, uint32_t granule)
{
	return atomic_load_explicit(&pool->tags[granule], memory_order_relaxed);
}

/* Release: the order of stores is what repair() relies on. */
static void set_tag(struct wf_smm_pool *pool, uint32_t granule, uint32_t tag)
{
	atomic_store_explicit(&pool->tags[granule], tag, memory_order_release);
}

static bool is_free(uint32_t tag)
{
	return (tag & WF_SMM_TAG_STATE) == WF_SMM_TAG_FREE;
}

/* Without the lock. The acquire of the thread that takes a block pairs with the
 * release of the thread that freed it: both are here. */
static bool change(struct wf_smm_pool *pool, uint32_t block, uint32_t from,
		   uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(
		&pool->tags[block], &from, to, memory_order_seq_cst,
		memory_order_relaxed);
}

/* -- classes of sizes ------------------------------------------------------ */

static void class_of(uint32_t size, unsigned int *level, unsigned int *sub)
{
	unsigned int top = 31 - (unsigned int)__builtin_clz(size);

	if (size < WF_SMM_SUBS) {
		*level = 0;
		*sub = size;
		return;
	}
	*level = top - WF_SMM_SUB_LOG2 + 1;
	*sub = size >> (top - WF_SMM_SUB_LOG2) & (WF_SMM_SUBS - 1);
}

static void insert(struct wf_smm_pool *pool, uint32_t block, uint32_t size)
{
	struct wf_smm_link *link = link_of(pool, block);
	unsigned int level, sub;
	uint32_t next;

	class_of(size, &level, &sub);
	next = pool->heads[level][sub];
	link->next = next;
	link->prev = WF_SMM_NONE;
	if (next != WF_SMM_NONE)
		link_of(pool, next)->prev = block;
	pool->heads[level][sub] = block;
	pool->levels |= 1u << level;
	pool->subs[level] |= (uint8_t)(1u << sub);
	pool->free += size;
}

static void take_out(struct wf_smm_pool *pool, uint32_t block, uint32_t size)
{
	struct wf_smm_link *link = link_of(pool, block);
	unsigned int level, sub;

	class_of(size, &level, &sub);
	if (link->next != WF_SMM_NONE)
		link_of(pool, link->next)->prev = link->prev;
	if (link->prev != WF_SMM_NONE) {
		link_of(pool, link->prev)->next = link->next;
	} else {
		pool->heads[level][sub] = link->next;
		if (link->next == WF_SMM_NONE) {
			pool->subs[level] &= (uint8_t) ~(1u << sub);
			if (!pool->subs[level])
				pool->levels &= ~(1u << level);
		}
	}
	pool->free -= size;
}

static uint32_t block_size(struct wf_smm_pool *pool, uint32_t block)
{
	return tag_of(pool, block) & WF_SMM_TAG_SIZE;
}

/* The first block of the lowest class above (level, sub), or of it. */
static uint32_t first_from(struct wf_smm_pool *pool, unsigned int level,
			   unsigned int sub)
{
	uint32_t levels, subs;

	subs = sub < WF_SMM_SUBS ? pool->subs[level] & (0xffu << sub) : 0;
	if (!subs) {
		levels = pool->levels & ~((2u << level) - 1);
		if (!levels)
			return WF_SMM_NONE;
		level = (unsigned int)__builtin_ctz(levels);
		subs = pool->subs[level];
	}
	return pool->heads[level][__builtin_ctz(subs)];
}

static uint32_t find(struct wf_smm_pool *pool, uint32_t size)
{
	unsigned int level, sub, i;
	uint32_t block;

	/* Blocks of a higher class all fit. */
	class_of(size, &level, &sub);
	block = first_from(pool, level, size < WF_SMM_SUBS ? sub : sub + 1);
	if (wf_likely(block != WF_SMM_NONE))
		return block;
	/* Of the same class, some do. */
	block = pool->heads[level][sub];
	for (i = 0; i < SEARCH_MAX && block != WF_SMM_NONE; i++) {
		if (block_size(pool, block) >= size)
			return block;
		block = link_of(pool, block)->next;
	}
	return WF_SMM_NONE;
}

/* -- the lock, and what a dead holder leaves ------------------------------- */

static void forget_free(struct wf_smm_pool *pool)
{
	pool->levels = 0;
	pool->free = 0;
	memset(pool->subs, 0, sizeof(pool->subs));
	memset(pool->heads, 0xff, sizeof(pool->heads));
}

/* Only first granules define blocks: write everything else anew. */
static bool repair(struct wf_smm_pool *pool)
{
	uint32_t at, tag, size, i;

	for (at = 0; at < pool->count; at += size) {
		tag = tag_of(pool, at);
		size = tag & WF_SMM_TAG_SIZE;
		if (!size || size > pool->count - at)
			return false;
		/* Claimed by the process that died: stays allocated. */
		if (!(tag & WF_SMM_TAG_STATE))
			set_tag(pool, at, WF_SMM_TAG_USED | size);
	}
	forget_free(pool);
	for (at = 0; at < pool->count; at += size) {
		tag = tag_of(pool, at);
		size = tag & WF_SMM_TAG_SIZE;
		for (i = 1; i < size; i++)
			set_tag(pool, at + i, 0);
		if (is_free(tag)) {
			set_tag(pool, at + size - 1, tag);
			insert(pool, at, size);
		}
	}
	return true;
}

static int lock(struct wf_smm_pool *pool)
{
	int err = pthread_mutex_lock(&pool->lock);

	if (wf_likely(!err))
		return 0;
	if (err != EOWNERDEAD)
		return err;
	if (!repair(pool)) {
		/* Never made consistent: ENOTRECOVERABLE from now on. */
		pthread_mutex_unlock(&pool->lock);
		return ENOTRECOVERABLE;
	}
	pthread_mutex_consistent(&pool->lock);
	return 0;
}

static int make_lock(struct wf_smm_pool *pool)
{
	pthread_mutexattr_t attr;
	int err;

	err = pthread_mutexattr_init(&attr);
	if (err)
		return -err;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	err = pthread_mutex_init(&pool->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

/* -- the four calls -------------------------------------------------------- */

/* How many granules go into the space, each with its share of the tables. */
static int lay_out(struct wf_smm_pool *pool, uintptr_t end, size_t granule)
{
	uintptr_t start = (uintptr_t)pool, tables = start + sizeof(*pool);
	uint64_t count, links_at, data;

	if (end < tables)
		return -ENOMEM;
	/* 4 for a tag and 4 for half a link; then fit in the alignment. */
	count = (end - tables) / (granule + 8) + 1;
	do {
		if (!--count)
			return -ENOMEM;
		links_at = round_up(tables + count * 4, 8) - start;
		data = round_up(start + links_at + (count + 1) / 2 * 8,
				granule);
	} while (data > end || (end - data) / granule < count);
	if (count > COUNT_MAX)
		return -E2BIG;
	*pool = (struct wf_smm_pool){
		.granule_log2 = (uint32_t)__builtin_ctzl(granule),
		.count = (uint32_t)count,
		.links_at = links_at,
		.data_at = data - start,
	};
	return 0;
}

/* Distinguishes a pool from an earlier one at the same place, in this
 * process. */
static uint64_t new_id(void)
{
	static _Atomic uint64_t last;

	return wf_base_clock_ns() + atomic_fetch_add(&last, 1) + 1;
}

int smm_init(void *pt_addr, size_t size, int align_mask)
{
	struct wf_smm_pool *pool = pool_at(pt_addr);
	size_t granule = (size_t)align_mask + 1;
	uintptr_t end = (uintptr_t)pt_addr + size;
	uint32_t whole;
	int err;

	if (!pt_addr || !size || align_mask < 0 || granule & (granule - 1) ||
	    end < (uintptr_t)pt_addr)
		return -EINVAL;
	if (granule < 1u << WF_SMM_GRANULE_LOG2_MIN)
		granule = 1u << WF_SMM_GRANULE_LOG2_MIN;
	if (end < (uintptr_t)pool + sizeof(*pool))
		return -ENOMEM;
	err = lay_out(pool, end, granule);
	if (!err)
		err = make_lock(pool);
	if (err)
		return err;
	forget_free(pool);
	for (uint32_t i = 0; i < pool->count; i++)
		set_tag(pool, i, 0);
	whole = WF_SMM_TAG_FREE | pool->count;
	set_tag(pool, pool->count - 1, whole);
	set_tag(pool, 0, whole);
	insert(pool, 0, pool->count);
	pool->id = new_id();
	pool->magic = WF_SMM_MAGIC;
	return 0;
}

/* Of a block that was claimed. Returns where the free block ends that it is
 * part of now. */
static uint32_t give_back(struct wf_smm_pool *pool, uint32_t block)
{
	uint32_t size = block_size(pool, block), start = block;
	uint32_t after = block + size, total = size, tag;

	if (block && is_free(tag = tag_of(pool, block - 1))) {
		start = block - (tag & WF_SMM_TAG_SIZE);
		total += block - start;
		take_out(pool, start, block - start);
	}
	if (after < pool->count && is_free(tag = tag_of(pool, after))) {
		total += tag & WF_SMM_TAG_SIZE;
		take_out(pool, after, tag & WF_SMM_TAG_SIZE);
	}
	set_tag(pool, start, WF_SMM_TAG_FREE | total); /* now it is so */
	if (start != block) {
		set_tag(pool, block - 1,
			start == block - 1 ? WF_SMM_TAG_FREE | total : 0);
		set_tag(pool, block, 0);
	}
	if (start + total != after)
		set_tag(pool, after, 0);
	set_tag(pool, start + total - 1, WF_SMM_TAG_FREE | total);
	insert(pool, start, total);
	return start + total;
}

/* -- what threads keep ----------------------------------------------------- */

/* Blocks of another pool at the same place are forgotten: their memory may be
 * gone, and an allocation that needs them finds them. */
static struct shelf *shelf_of(const struct wf_smm_pool *pool, uint32_t size)
{
	struct keep *keep = &keeps[(uintptr_t)pool >> 12 & (KEEPS - 1)];

	if (wf_unlikely(keep->pool != pool || keep->id != pool->id)) {
		*keep = (struct keep){ .pool = pool, .id = pool->id };
	}
	/* Spread: sizes are often powers of two. */
	return &keep->shelves[size * 0x9e3779b9u >> 30];
}

static uint32_t take_kept(struct wf_smm_pool *pool, uint32_t size)
{
	struct shelf *shelf = shelf_of(pool, size);

	while (shelf->size == size && shelf->n) {
		uint32_t block = shelf->blocks[--shelf->n];

		if (wf_likely(change(pool, block, WF_SMM_TAG_KEPT | size,
				     WF_SMM_TAG_USED | size)))
			return block;
	}
	return WF_SMM_NONE;
}

/* False: it is not kept, because there is no room or because it is not in
 * use. */
static bool keep_it(struct wf_smm_pool *pool, uint32_t block, uint32_t size)
{
	struct shelf *shelf = shelf_of(pool, size);

	if (size > pool->count / KEEP_PART)
		return false;
	if (shelf->size != size && !shelf->n)
		shelf->size = size;
	if (shelf->size != size || shelf->n == SHELF_DEPTH)
		return false;
	if (!change(pool, block, WF_SMM_TAG_USED | size,
		    WF_SMM_TAG_KEPT | size))
		return false;
	/* After the change is visible: give_back_kept() announces first and
	 * checks then, so one of us sees the other. */
	if (!atomic_load(&pool->any_kept))
		atomic_store(&pool->any_kept, 1);
	shelf->blocks[shelf->n++] = block;
	return true;
}

/* Frees everything that any thread keeps. False: there was nothing. */
static bool give_back_kept(struct wf_smm_pool *pool)
{
	uint32_t at, size;
	bool any = false;

	if (!atomic_exchange(&pool->any_kept, 0))
		return false;
	/* First granules of blocks do not move while we have the lock. */
	for (at = 0; at < pool->count;) {
		size = block_size(pool, at);
		if (change(pool, at, WF_SMM_TAG_KEPT | size, size)) {
			at = give_back(pool, at);
			any = true;
		} else {
			at += size;
		}
	}
	return any;
}

static void *address_of(struct wf_smm_pool *pool, uint32_t block)
{
	return (uint8_t *)pool + pool->data_at +
	       ((size_t)block << pool->granule_log2);
}

static void *carve(struct wf_smm_pool *pool, uint32_t block, uint32_t size)
{
	uint32_t had = block_size(pool, block);
	uint32_t rest = block + size, left = had - size;

	take_out(pool, block, had);
	if (left) {
		set_tag(pool, rest, WF_SMM_TAG_FREE | left);
		set_tag(pool, rest + left - 1, WF_SMM_TAG_FREE | left);
		insert(pool, rest, left);
	} else if (size > 1) {
		set_tag(pool, block + size - 1, 0);
	}
	set_tag(pool, block, WF_SMM_TAG_USED | size); /* now it is so */
	return address_of(pool, block);
}

void *smm_alloc(void *pt_addr, size_t size)
{
	struct wf_smm_pool *pool = pool_at(pt_addr);
	uint32_t block = WF_SMM_NONE;
	size_t granules;
	void *ptr = NULL;
	int err;

	if (!pt_addr || !size || pool->magic != WF_SMM_MAGIC) {
		errno = EINVAL;
		return NULL;
	}
	granules = ((size - 1) >> pool->granule_log2) + 1;
	if (granules > pool->count) {
		errno = ENOMEM;
		return NULL;
	}
	block = take_kept(pool, (uint32_t)granules);
	if (wf_likely(block != WF_SMM_NONE))
		return address_of(pool, block);
	err = lock(pool);
	if (err) {
		errno = err;
		return NULL;
	}
	block = find(pool, (uint32_t)granules);
	if (wf_unlikely(block == WF_SMM_NONE) && give_back_kept(pool))
		block = find(pool, (uint32_t)granules);
	if (block != WF_SMM_NONE)
		ptr = carve(pool, block, (uint32_t)granules);
	pthread_mutex_unlock(&pool->lock);
	if (!ptr)
		errno = ENOMEM;
	return ptr;
}

int smm_free(void *pt_addr, void *ptr)
{
	struct wf_smm_pool *pool = pool_at(pt_addr);
	uintptr_t offset;
	uint32_t tag;
	size_t block;
	int err;

	if (!pt_addr || pool->magic != WF_SMM_MAGIC)
		return -EINVAL;
	if (!ptr)
		return 0;
	offset = (uintptr_t)ptr - (uintptr_t)pool - pool->data_at;
	block = offset >> pool->granule_log2;
	if (block >= pool->count || block << pool->granule_log2 != offset)
		return -EINVAL;
	tag = tag_of(pool, (uint32_t)block);
	if ((tag & WF_SMM_TAG_STATE) == WF_SMM_TAG_USED &&
	    keep_it(pool, (uint32_t)block, tag & WF_SMM_TAG_SIZE))
		return 0;
	err = lock(pool);
	if (err)
		return -err;
	tag = tag_of(pool, (uint32_t)block);
	if ((tag & WF_SMM_TAG_STATE) == WF_SMM_TAG_USED &&
	    change(pool, (uint32_t)block, tag, tag & WF_SMM_TAG_SIZE))
		give_back(pool, (uint32_t)block);
	else
		err = -EINVAL;
	pthread_mutex_unlock(&pool->lock);
	return err;
}

size_t smm_available(void *pt_addr, size_t *largest)
{
	struct wf_smm_pool *pool = pool_at(pt_addr);
	uint32_t most = 0, block, i, level;
	size_t bytes;

	if (largest)
		*largest = 0;
	if (!pt_addr || pool->magic != WF_SMM_MAGIC || lock(pool))
		return 0;
	give_back_kept(pool);
	bytes = (size_t)pool->free << pool->granule_log2;
	if (pool->levels) {
		level = 31 - (uint32_t)__builtin_clz(pool->levels);
		i = 31 - (uint32_t)__builtin_clz(pool->subs[level]);
		block = pool->heads[level][i];
		for (i = 0; i < SEARCH_MAX && block != WF_SMM_NONE; i++) {
			if (block_size(pool, block) > most)
				most = block_size(pool, block);
			block = link_of(pool, block)->next;
		}
	}
	if (largest)
		*largest = (size_t)most << pool->granule_log2;
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}
