/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that channels of a device may touch, and where the device sees it.
 * Reserved memory is made here, third-party memory comes with a descriptor;
 * both are mapped for the workers. Share Domain counts IOVAs up in the client's
 * domain; NOIOMMU takes pages from the one arena of "physical" addresses that
 * all clients share, in one piece or not at all.
 * Only the manager thread calls this, but for _attach() and _unmap(), which any
 * may; workers read a region that their channel points to, which holds a
 * reference.
 */
#ifndef WF_DEVD_REGION_H
#define WF_DEVD_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_DEVD_PAGE 4096u

/* Physical addresses: far above what a process maps, so that a virtual address
 * in a descriptor is never mistaken for one. */
#define WF_DEVD_ARENA_BASE 0x800000000000ull
#define WF_DEVD_IOVA_BASE 0x100000000ull

struct wf_devd_arena {
	uint8_t *taken; /* a byte per page */
	uint32_t pages;
};

/* -ENOMEM. */
int wf_devd_arena_init(struct wf_devd_arena *arena, uint64_t bytes);
void wf_devd_arena_fini(struct wf_devd_arena *arena);
/* First fit, in one piece. 0: there is none. */
uint64_t wf_devd_arena_take(struct wf_devd_arena *arena, uint64_t bytes);
void wf_devd_arena_give(struct wf_devd_arena *arena, uint64_t at,
			uint64_t bytes);

struct wf_devd_kept;

struct wf_devd_region {
	unsigned int refs;	   /* channels */
	bool foreign;		   /* not made here */
	struct wf_devd_kept *made; /* here; else NULL */
	uint64_t dma;
	uint64_t size;
	uint8_t *base;
	size_t mapped;		     /* >= size: whole huge pages */
	struct wf_devd_arena *arena; /* the pages of dma are its; or NULL */
	uint64_t *counter;	     /* of the device it was reserved for */
};

/* Zeroed memory of its own; *@fd for the client, to be closed. -ENOMEM. */
int wf_devd_region_make(struct wf_devd_region **region, uint64_t size, int *fd);

/* The client's memory behind @fd. -EINVAL: not a file that can be mapped, or
 * too short; -EPERM: it could be shrunk. */
int wf_devd_region_attach(struct wf_devd_region **region, int fd,
			  uint64_t offset, uint64_t size);

/* True: that was the last reference, the addresses are free again, and
 * wf_devd_region_unmap() is next. */
bool wf_devd_region_put(struct wf_devd_region *region);

/* From any thread: frees memory of the client, which may take its time if
 * @region->foreign. */
void wf_devd_region_unmap(struct wf_devd_region *region);

#endif
