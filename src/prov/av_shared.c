/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named AVs in memfds: creates, finds, writes and reads them. The contents were
 * written by another process and are checked like anything from outside.
 */
#include "prov/av_shared.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fabric.h>

#include "base/cpu.h"
#include "base/memfd.h"
#include "base/hash.h"
#include "base/place.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/shared.h"
#include "os/socket.h"
#include "prov/provider.h"

#define NAME_MAX_LEN 200 /* a memfd's is 249 */
#define FILE_LEN (sizeof(WF_AV_SHARED_FILE) + NAME_MAX_LEN)

/* Slots whose pages are taken together: a page of the map. */
#define SLOTS_PER_STEP (WF_AV_SHARED_PAGE / sizeof(uint64_t))

/* An application announces a guess: it gets 6 MiB at most before the addresses
 * come. */
#define MAX_FIRST_ROOM 131072u

/* A creator that was put off the processor in the middle of a change is not
 * waited for: it counts the change when it is whole, and we come back. */
#define READ_TRIES 64

static struct wf_av_shared_header *
header_of(const struct wf_prov_av_shared *shared)
{
	return (struct wf_av_shared_header *)(void *)shared->base;
}

static uint64_t *map_of(const struct wf_prov_av_shared *shared)
{
	return (uint64_t *)(void *)(shared->base + WF_AV_SHARED_MAP_AT);
}

static struct wf_av_shared_slot *slot_of(const struct wf_prov_av_shared *shared,
					 uint32_t index)
{
	return (struct wf_av_shared_slot *)(void *)(shared->base +
						    WF_AV_SHARED_SLOTS_AT) +
	       index;
}

void *wf_prov_av_shared_map(const struct wf_prov_av_shared *shared)
{
	return map_of(shared);
}

const _Atomic uint64_t *
wf_prov_av_shared_changes(const struct wf_prov_av_shared *shared)
{
	return &header_of(shared)->changes;
}

static bool is_name(const char *name)
{
	size_t len = strnlen(name, NAME_MAX_LEN + 1);

	return len && len <= NAME_MAX_LEN;
}

/* -- the creator ----------------------------------------------------------- */

/* A name in the abstract namespace goes to one process, and goes back when that
 * ends. It is hashed because a socket's is shorter than an AV's. */
static int claim_name(const char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	uint64_t hash = wf_base_hash(name, strlen(name));
	int fd, len, err;

	len = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
		       WF_AV_SHARED_FILE "%u/%016llx", wf_os_geteuid(),
		       (unsigned long long)hash);
	fd = wf_os_socket(AF_UNIX, SOCK_DGRAM, 0);
	if (fd < 0)
		return fd;
	err = wf_os_bind(fd, (struct sockaddr *)&sun,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				     1 + (size_t)len));
	if (!err)
		return fd;
	wf_os_close(fd);
	return err;
}

/* A child must not keep the AV alive, and must not write what its parent
 * writes. */
static void in_child(struct wf_fork_watch *watch)
{
	struct wf_prov_av_shared *shared =
		wf_container_of(watch, struct wf_prov_av_shared, fork_watch);

	wf_os_close(shared->memfd);
	wf_os_close(shared->claim);
	shared->memfd = -1;
	shared->claim = -1;
	wf_os_mprotect(shared->base, WF_AV_SHARED_BYTES, PROT_READ);
}

/* Allocates pages until @index has some. Unused slots are marked in the map. */
static int make_room_for(struct wf_prov_av_shared *shared, uint32_t index)
{
	while (index >= shared->room) {
		uint64_t *map = map_of(shared) + shared->room;
		size_t at = shared->room * sizeof(struct wf_av_shared_slot);
		int err;

		if (shared->room >= WF_AV_SHARED_SLOTS)
			return -ENOSPC;
		err = wf_base_memfd_reserve(
			shared->memfd,
			(off_t)(WF_AV_SHARED_MAP_AT +
				shared->room * sizeof(uint64_t)),
			WF_AV_SHARED_PAGE);
		if (!err)
			err = wf_base_memfd_reserve(
				shared->memfd,
				(off_t)(WF_AV_SHARED_SLOTS_AT + at),
				SLOTS_PER_STEP *
					sizeof(struct wf_av_shared_slot));
		if (err)
			return -ENOMEM;
		for (size_t i = 0; i < SLOTS_PER_STEP; i++)
			wf_shared_store_plain(&map[i], FI_ADDR_NOTAVAIL,
					      relaxed);
		shared->room += SLOTS_PER_STEP;
	}
	return 0;
}

static int make_memory(struct wf_prov_av_shared *shared, const char *name)
{
	char file[FILE_LEN];
	void *base = NULL;
	int err;

	snprintf(file, sizeof(file), WF_AV_SHARED_FILE "%s", name);
	shared->memfd = wf_base_memfd_create_sparse(file, WF_AV_SHARED_BYTES);
	if (shared->memfd < 0)
		return shared->memfd;
	err = wf_base_memfd_reserve(shared->memfd, 0, WF_AV_SHARED_PAGE);
	if (err)
		goto err_close;
	err = wf_os_mmap(&base, WF_AV_SHARED_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, shared->memfd);
	if (err)
		goto err_close;
	shared->base = base;
	err = wf_base_memfd_seal_writing(shared->memfd);
	if (!err)
		return 0;
	wf_os_munmap(shared->base, WF_AV_SHARED_BYTES);
err_close:
	shared->base = NULL;
	wf_os_close(shared->memfd);
	return err;
}

int wf_prov_av_shared_create(struct wf_prov_av_shared *shared, const char *name,
			     size_t count)
{
	struct wf_av_shared_header *header;
	int err;

	*shared = (struct wf_prov_av_shared){ .owner = true };
	if (!is_name(name))
		return -EINVAL;
	shared->claim = claim_name(name);
	if (shared->claim < 0)
		return shared->claim;
	err = make_memory(shared, name);
	if (err)
		goto err_claim;
	if (count > MAX_FIRST_ROOM)
		count = MAX_FIRST_ROOM;
	err = make_room_for(shared, count ? (uint32_t)count - 1 : 0);
	if (err)
		goto err_memory;
	header = header_of(shared);
	header->layout = WF_AV_SHARED_LAYOUT;
	/* Pairs with is_sound(): a reader that sees it sees the header. */
	wf_shared_store(&header->magic, WF_AV_SHARED_MAGIC, release);
	shared->fork_watch.in_child = in_child;
	wf_base_fork_watch(&shared->fork_watch);
	return 0;

err_memory:
	wf_os_munmap(shared->base, WF_AV_SHARED_BYTES);
	shared->base = NULL;
	wf_os_close(shared->memfd);
err_claim:
	wf_os_close(shared->claim);
	return err;
}

void wf_prov_av_shared_close(struct wf_prov_av_shared *shared)
{
	if (shared->owner)
		wf_base_fork_unwatch(&shared->fork_watch);
	/* First the fields by which it is found, then the name. */
	if (shared->memfd >= 0)
		wf_os_close(shared->memfd);
	if (shared->claim >= 0)
		wf_os_close(shared->claim);
	wf_os_munmap(shared->base, WF_AV_SHARED_BYTES);
	shared->base = NULL;
}

/* @addr NULL: nothing. The release on both ends pairs with the fences of
 * read_slot(). */
static void change(struct wf_prov_av_shared *shared, uint32_t index,
		   const struct wf_addr *addr)
{
	struct wf_av_shared_slot *slot = slot_of(shared, index);
	struct wf_av_shared_header *header = header_of(shared);
	uint32_t seq = wf_shared_load(&slot->seq, relaxed);

	wf_shared_store(&slot->seq, seq + 1, relaxed);
	wf_shared_fence(release);
	slot->used = addr != NULL;
	memset(slot->addr, 0, sizeof(slot->addr));
	if (addr)
		memcpy(slot->addr, addr, wf_base_addr_len(addr));
	wf_shared_store(&slot->seq, seq + 2, release);
	wf_shared_store_plain(&map_of(shared)[index],
			      addr ? index : FI_ADDR_NOTAVAIL, release);
	if (index >= wf_shared_load(&header->top, relaxed))
		wf_shared_store(&header->top, index + 1, relaxed);
	wf_shared_add(&header->changes, 1, release);
}

int wf_prov_av_shared_set(struct wf_prov_av_shared *shared, uint32_t index,
			  const struct wf_addr *addr)
{
	int err;

	if (shared->memfd < 0)
		return -EOPNOTSUPP;
	err = make_room_for(shared, index);
	if (!err)
		change(shared, index, addr);
	return err;
}

void wf_prov_av_shared_clear(struct wf_prov_av_shared *shared, uint32_t index)
{
	if (shared->memfd >= 0 && index < shared->room)
		change(shared, index, NULL);
}

/* -- finding --------------------------------------------------------------- */

/* Maps what may be the AV. False: it is none, or not of our build. */
static bool is_sound(int fd, void *arg)
{
	struct wf_prov_av_shared *shared = arg;
	struct wf_av_shared_header *header;
	struct wf_os_stat st;
	void *base = NULL;

	/* The link was found in a process of ours; the memory is ours, too. */
	if (wf_os_fstat(fd, &st) || st.uid != wf_os_geteuid() ||
	    !wf_base_memfd_is_sound(fd, WF_AV_SHARED_BYTES))
		return false;
	if (wf_os_mmap(&base, WF_AV_SHARED_BYTES, PROT_READ,
		       MAP_SHARED | MAP_NORESERVE, fd))
		return false;
	shared->base = base;
	header = header_of(shared);
	if (wf_shared_load(&header->magic, acquire) == WF_AV_SHARED_MAGIC &&
	    header->layout == WF_AV_SHARED_LAYOUT)
		return true;
	wf_os_munmap(shared->base, WF_AV_SHARED_BYTES);
	shared->base = NULL;
	return false;
}

int wf_prov_av_shared_open(struct wf_prov_av_shared *shared, const char *name)
{
	char file[FILE_LEN];

	*shared = (struct wf_prov_av_shared){ .memfd = -1, .claim = -1 };
	if (!is_name(name))
		return -EINVAL;
	snprintf(file, sizeof(file), WF_AV_SHARED_FILE "%s", name);
	return wf_os_memfd_find(file, is_sound, shared);
}

/* -- the reader ------------------------------------------------------------ */

/* A part of a slot, whatever its members are. */
typedef uint64_t __attribute__((may_alias)) slot_word;

/* Copies a slot that may change at any time, by words, so that the race is one
 * of atomics. False: it is free, changing, or holds no address. */
static bool read_slot(const struct wf_prov_av_shared *shared, uint32_t index,
		      struct wf_addr *addr)
{
	const struct wf_av_shared_slot *slot = slot_of(shared, index);
	const slot_word *from = (const void *)slot;
	union {
		struct wf_av_shared_slot slot;
		uint64_t words[sizeof(*slot) / 8];
	} copy;

	for (int tries = 0; tries < READ_TRIES; tries++) {
		uint32_t seq = wf_shared_load(&slot->seq, acquire);

		for (size_t i = 0; i < sizeof(copy.words) / 8; i++)
			copy.words[i] = wf_shared_load_plain(&from[i], relaxed);
		wf_shared_fence(acquire);
		if (!(seq & 1) && wf_shared_load(&slot->seq, relaxed) == seq)
			return copy.slot.used == 1 &&
			       !wf_base_addr_set(addr, copy.slot.addr,
						 sizeof(copy.slot.addr)) &&
			       wf_base_addr_is_whole(addr);
		wf_base_cpu_relax();
	}
	return false;
}

/* First everything that is gone, because an address may have moved. */
static void drop_gone(struct wf_prov_av_shared *shared, uint32_t top,
		      struct wf_prov_addr_table *table)
{
	for (uint32_t i = 0; i < table->room; i++) {
		const struct wf_addr *have = wf_prov_addr_table_get(table, i);
		struct wf_addr now;
		bool is_gone;

		if (have && (i >= top || !read_slot(shared, i, &now) ||
			     !wf_base_addr_equal(have, &now) ||
			     wf_base_place_of(have) != wf_base_place_of(&now)))
			wf_prov_addr_table_remove(table, i, &is_gone);
	}
}

void wf_prov_av_shared_sync(struct wf_prov_av_shared *shared,
			    struct wf_prov_addr_table *table)
{
	struct wf_av_shared_header *header = header_of(shared);
	uint64_t changes = wf_shared_load(&header->changes, acquire);
	struct wf_addr now;
	uint32_t top;

	if (changes == shared->seen)
		return;
	top = wf_shared_load(&header->top, relaxed);
	if (top > WF_AV_SHARED_SLOTS)
		top = WF_AV_SHARED_SLOTS;
	drop_gone(shared, top, table);
	for (uint32_t i = 0; i < top; i++) {
		if (wf_prov_addr_table_get(table, i) ||
		    !read_slot(shared, i, &now))
			continue;
		if (wf_prov_addr_table_place(table, i, &now) == -ENOMEM) {
			WF_FI_WARN(FI_LOG_AV, "no memory for shared addresses; "
					      "trying again later\n");
			return;
		}
	}
	shared->seen = changes;
}
