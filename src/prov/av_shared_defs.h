/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A named AV as other processes see it: a memfd that only its creator can
 * write. Two builds of weft must agree on it.
 *
 * It is called WF_AV_SHARED_FILE and the name, and is found by processes of the
 * same user in the creator's /proc/<pid>/fd: no file, and nothing that is left
 * behind. Behind the header lie the array that applications read as map_addr,
 * and the slots with the addresses. Both have a fixed size, because an
 * application keeps the pointer; their pages are taken as they are needed.
 *
 * Each slot has a sequence that is odd while the creator changes it. A reader
 * copies the slot, and then checks that the sequence has not changed.
 */
#ifndef WF_PROV_AV_SHARED_DEFS_H
#define WF_PROV_AV_SHARED_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WF_AV_SHARED_FILE "weft-av/"
#define WF_AV_SHARED_MAGIC 0x76617477u /* "wtav" */
#define WF_AV_SHARED_LAYOUT 1

#define WF_AV_SHARED_SLOTS (1u << 20)
#define WF_AV_SHARED_PAGE 4096

struct wf_av_shared_header {
	_Atomic uint32_t magic; /* written last */
	uint32_t layout;
	_Atomic uint32_t top; /* no slot from here on was ever used */
	uint32_t pad;
	_Atomic uint64_t changes; /* counted after each is whole */
};

struct wf_av_shared_slot {
	_Atomic uint32_t seq;
	uint32_t used;
	uint8_t addr[28]; /* sockaddr_in or sockaddr_in6, the rest 0 */
	uint32_t pad;
};

static_assert(offsetof(struct wf_av_shared_header, top) == 8, "fixed");
static_assert(offsetof(struct wf_av_shared_header, changes) == 16, "fixed");
static_assert(sizeof(struct wf_av_shared_header) == 24, "fixed");
static_assert(offsetof(struct wf_av_shared_slot, used) == 4, "fixed");
static_assert(offsetof(struct wf_av_shared_slot, addr) == 8, "fixed");
static_assert(sizeof(struct wf_av_shared_slot) == 40, "whole words");

/* fi_addr_t map[SLOTS]: the index itself, FI_ADDR_NOTAVAIL where free. */
#define WF_AV_SHARED_MAP_AT ((size_t)WF_AV_SHARED_PAGE)
#define WF_AV_SHARED_SLOTS_AT                                                  \
	(WF_AV_SHARED_MAP_AT + WF_AV_SHARED_SLOTS * sizeof(uint64_t))
#define WF_AV_SHARED_BYTES                                                     \
	(WF_AV_SHARED_SLOTS_AT +                                               \
	 WF_AV_SHARED_SLOTS * sizeof(struct wf_av_shared_slot))

#endif
