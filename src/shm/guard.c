/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guard page of this process.
 */
#include "shm/guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "os/inline.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/shared.h"
#include "shm/conn_defs.h"
#include "shm/life.h"

/* No kernel and no C library places anything here by itself: 20 TiB, so that a
 * page of another process lies at the same address with a probability of less
 * than one in a thousand million for each page that it has mapped here. */
#define WIDE_BEGIN 0x400000000000u
#define WIDE_BYTES 0x140000000000u

/* Where sanitizers or small address spaces forbid the above: near the place
 * that mmap() chooses. */
#define NEAR_BYTES ((uint64_t)1 << 33)

#define TRIES 8

WF_PER_PROCESS static struct wf_shm_guard own;
WF_PER_PROCESS static pid_t owner; /* the process that made it; 0: none */
WF_PER_PROCESS static size_t page_bytes;
WF_PER_PROCESS static uint32_t users; /* of the life page */

static uint64_t random_word(void)
{
	uint64_t word;

	/* Without the kernel's random numbers, time and pid still distinguish
	 * the processes of a node. */
	if (wf_os_random(&word, sizeof(word), false))
		word = (wf_base_clock_ns() ^ (uint64_t)wf_os_getpid() << 40) *
		       0x9e3779b97f4a7c15u;
	return word;
}

/* A page at @addr exactly, or NULL. 0: anywhere. The address is a hint, which
 * the kernel follows where nothing is mapped. MAP_FIXED_NOREPLACE would be wrong:
 * ThreadSanitizer changes addresses that it does not like to 0, and root may map
 * something there. */
static void *map_at(uint64_t addr)
{
	void *page = (void *)(uintptr_t)addr;

	if (wf_os_mmap(&page, page_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1))
		return NULL;
	if (!addr || (uint64_t)(uintptr_t)page == addr)
		return page;
	wf_os_munmap(page, page_bytes);
	return NULL;
}

static void *map_in(uint64_t begin, uint64_t bytes)
{
	uint64_t pages = bytes / page_bytes;
	void *page = NULL;

	for (int i = 0; i < TRIES && !page; i++)
		page = map_at(begin + random_word() % pages * page_bytes);
	return page;
}

static void *map_page(void)
{
	void *page = map_in(WIDE_BEGIN, WIDE_BYTES);
	uint64_t usual;

	if (page)
		return page;
	page = map_at(0);
	if (!page)
		return NULL;
	/* Mappings grow down from here: the addresses below are mostly free. */
	usual = (uint64_t)(uintptr_t)page;
	if (usual > NEAR_BYTES) {
		void *better = map_in(usual - NEAR_BYTES, NEAR_BYTES);

		if (better) {
			wf_os_munmap(page, page_bytes);
			page = better;
		}
	}
	return page;
}

/* Makes the page. A child must not inherit it: peers would take the child for
 * its parent. */
static void make(void)
{
	void *page;
	int err;

	page_bytes = wf_os_page_bytes();
	owner = wf_os_getpid();
	own = (struct wf_shm_guard){ .process = random_word() };
	users = 0;
	wf_shm_life_forked();
	page = map_page();
	err = page ? wf_os_madvise(page, page_bytes, MADV_DONTFORK) : -ENOMEM;
	if (err) {
		wf_warn("no guard page (%s): peers copy through the ring",
			strerror(-err));
		if (page)
			wf_os_munmap(page, page_bytes);
		return;
	}
	memcpy(page, &own.process, sizeof(own.process));
	own.addr = (uint64_t)(uintptr_t)page;
}

static void in_child(struct wf_fork_watch *watch);

WF_PER_PROCESS static atomic_bool watched;
WF_PER_PROCESS static struct wf_fork_watch watch = { .in_child = in_child };

/* The pid alone does not tell, because a grandchild may have the pid of its
 * grandparent. */
static void in_child(struct wf_fork_watch *unused)
{
	(void)unused;
	wf_shared_store(&watched, false, relaxed);
	owner = 0;
}

/* Whether `own` describes a page that this process has: a child does not have
 * it. */
static bool is_ours(void)
{
	return owner == wf_os_getpid();
}

/* No child may be made between mmap() and madvise(). */
static void hold(void)
{
	if (!wf_shared_load(&watched, acquire))
		wf_base_fork_watch_once(&watch, &watched);
	wf_base_fork_hold();
}

struct wf_shm_guard wf_shm_guard_own(void)
{
	struct wf_shm_guard guard;

	static_assert(WF_SHM_GUARD_BYTES <= 4096, "fits the smallest page");
	hold();
	if (!is_ours())
		make();
	guard = own;
	wf_base_fork_release();
	return guard;
}

/* A peer that reads the line while it is written finds no page of that name. */
static void name_life(const struct wf_shm_life_name *name)
{
	struct wf_shm_guard_line *line = (void *)(uintptr_t)own.addr;

	if (line)
		line->life = *name;
}

void wf_shm_guard_hold(void)
{
	struct wf_shm_life_name name = { 0 };

	hold();
	if (!is_ours())
		make();
	if (!users++ && !wf_shm_life_make(&name))
		name_life(&name);
	wf_base_fork_release();
}

void wf_shm_guard_drop(void)
{
	const struct wf_shm_life_name none = { 0 };

	hold();
	/* A child closes what it has inherited. */
	if (is_ours() && users && !--users) {
		name_life(&none);
		wf_shm_life_end();
	}
	wf_base_fork_release();
}
