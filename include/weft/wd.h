/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Warpdrive: channels to accelerators, and the memory they may address.
 *
 * A device lives in one of three scenarios, and says which:
 *
 *   SVA           it follows the process's own page tables: any memory works,
 *                 and an address in a descriptor is the virtual address
 *   Share Domain  one IOMMU domain for the process: only memory reserved
 *                 through a channel works, under addresses of its own (IOVA)
 *   NOIOMMU       physical addresses: as Share Domain, but contiguous, from a
 *                 pool that all share and that may be too broken up
 *
 * Every function may be called from any thread; calls on one channel must not
 * run at the same time as its wd_release_channel(). int functions return 0 or
 * a negative errno, pointer functions NULL with errno set. -ENODEV, once
 * given, is final: the device is gone, or the channel belongs to the parent of
 * this process. man 3 wd has the rest.
 */
#ifndef WEFT_WD_H
#define WEFT_WD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define WD_NAME_SIZE 64
#define WD_PATH_SIZE 256
#define WD_ALGS_SIZE 384

/* Regions of a channel. A driver maps MMIO and DUS with plain mmap() on
 * wd_chan.fd at dev_info->qfrs_offset[]; SS is what wd_reserve_mem() maps. */
enum uacce_qfrt {
	UACCE_QFRT_MMIO, /* doorbells */
	UACCE_QFRT_DUS,	 /* queues, shared by device and user */
	UACCE_QFRT_SS,	 /* reserved memory */
	UACCE_QFRT_MAX,
};

enum wd_iommu_type {
	WD_IOMMU_SVA,
	WD_IOMMU_SHARE_DOMAIN,
	WD_IOMMU_NONE,
};

/* How a device is reached. */
enum wd_dev_kind {
	WD_DEV_UACCE,	   /* /dev node, mainline kernel */
	WD_DEV_UACCE_SEED, /* /dev node, with the attrs/ folder of old */
	WD_DEV_SOFT,	   /* a process that runs `weft devd` */
	WD_DEV_PLUGGED,	   /* a plug-in, such as that of a GPU */
};

struct uacce_dev_info {
	int node_id;  /* NUMA node, -1 if it has none */
	int numa_dis; /* from the node of the thread that asked; 10 is local */
	int iommu_type;
	int flags; /* as the device states them */
	int kind;
	int available_instances; /* channels left when this was read */
	unsigned long qfrs_offset[UACCE_QFRT_MAX];
	unsigned long qfrs_size[UACCE_QFRT_MAX]; /* 0: no such region */
	char name[WD_NAME_SIZE];		 /* "hisi_zip-0" */
	char dev_path[WD_PATH_SIZE]; /* node, or "socket:name" if soft */
	char api[WD_NAME_SIZE];	     /* which driver understands it */
	char algs[WD_ALGS_SIZE];     /* one a line */
};

/* wd_chan.flags */
#define WD_CHAN_3RD_MEMORY 0x1u /* an allocator is registered */

struct wf_chan_core;

/*
 * A channel. The caller allocates it, or a vendor driver does as the first
 * member of its own struct, zeroed. Before wd_request_channel() one may set
 * dev_info or dev_path (that device) or alg (the best that has it; NULL: the
 * best of all). Everything else belongs to the library.
 */
struct wd_chan {
	/* Given by the caller: must live until release. Else the channel's. */
	struct uacce_dev_info *dev_info;
	int fd;
	char dev_path[WD_PATH_SIZE];
	void *ss_va;  /* start of the reserved memory, NULL: none */
	void *ss_dma; /* where the device sees it */
	const char *alg;
	unsigned int flags;
	struct wf_chan_core *core; /* the library's own part */
};

/*
 * Every device there is, best first: those that know @alg (NULL: all), sorted
 * by free instances or none, hardware before software before devices of plug-ins,
 * NUMA distance, scenario
 * (SVA first), then the number of free instances. *@list is an array for wd_free_devices().
 * Returns how many, 0 with *@list NULL if there are none, or
 * -EINVAL (no @list), -ENOMEM.
 */
int wd_list_devices(const char *alg, struct uacce_dev_info **list);
void wd_free_devices(struct uacce_dev_info *list);

/* 1 if the device knows the algorithm, 0 if not. */
int wd_has_alg(const struct uacce_dev_info *dev, const char *alg);

/*
 * Opens a channel. -EINVAL: no channel, or already requested; -ENODEV: no such
 * device, or none that knows the algorithm; -EBUSY: every instance is taken, or
 * as many as this process or user may have; -EACCES: the device refuses this
 * user, or a stranger runs it; -EPERM: an SVA device may not reach into this
 * process; -EPROTO: it speaks another version; -EMFILE, -ENOMEM. dev_path then
 * names the device, also after the release: empty it to choose again.
 */
int wd_request_channel(struct wd_chan *ch);

/* Closes it: when this returns the device touches none of its memory. Its
 * reference to reserved memory is dropped; the last one frees. NULL or a
 * channel not requested: nothing happens. */
void wd_release_channel(struct wd_chan *ch);

/*
 * Memory the device can address, page aligned and zeroed, once per channel.
 * With third-party memory registered it comes from there. SVA: ordinary
 * memory of the process, for programs that want one way for all scenarios; a
 * software device maps it, within its limits, and needs no copy.
 * EINVAL: bad or stopped channel, or size 0; EEXIST: it has some; ENOMEM: none
 * left, over the limit, no room in this process, or (NOIOMMU) not in one piece,
 * and nothing is lost; EOPNOTSUPP: the device has no such region, or cannot use
 * third-party memory without a descriptor; EMFILE; ENODEV.
 */
void *wd_reserve_mem(struct wd_chan *ch, size_t size);

/*
 * Lets @target use the memory reserved through @ch, under the same addresses.
 * Counted: it lives until the last of them is released. Both SVA: nothing to
 * do, 0. -EINVAL: only one of them is SVA, @ch has no region, @target has one,
 * they are the same, or not of one scenario and one domain; -ENODEV.
 */
int wd_share_reserved_memory(struct wd_chan *ch, struct wd_chan *target);

/* The same for applications, destination first. */
int wd_share_dma_addr(struct wd_chan *dst, struct wd_chan *src);

/* 1 if any address can be shared without a call (SVA), 0 if not, -EINVAL for
 * a bad channel. @dma_addr may be anything. */
int wd_is_sharing(struct wd_chan *ch, void *dma_addr);

/* Returns the address that a descriptor must carry for @va: @va itself (SVA),
 * or where the device sees it. 0: not reserved memory of this channel, or no
 * channel. */
uint64_t wd_get_dma_from_va(struct wd_chan *ch, void *va);

/* The physical address (NOIOMMU). 0: not NOIOMMU, or not reserved memory. */
uint64_t wd_get_pa_from_va(struct wd_chan *ch, void *va);

/*
 * Memory of somebody else's allocator that the device can use.
 *
 * alloc_mem returns @size bytes, page aligned, and in *@dma where the device
 * sees them (0: it does not know); NULL if it cannot. free_mem gives them
 * back; if the device was given up because it did not answer, that is later, by
 * a call for another channel, when the device is done with them. get_fd, which
 * may be NULL, returns a descriptor (memfd, sealed against shrinking) that
 * holds @va at *@offset, for devices that must map the memory themselves: then
 * the device says what *@dma is. The library does not close it. Called by
 * wd_reserve_mem() and wd_release_channel() only; they must not call functions
 * of this header on the same channel.
 */
struct wd_3rd_memory {
	void *(*alloc_mem)(size_t size, uint64_t *dma);
	void (*free_mem)(void *va);
	int (*get_fd)(void *va, uint64_t *offset);
};

/* After the request, before memory is reserved. @mem must live until it is
 * unregistered or the last channel that shares its memory is released. -EINVAL:
 * bad channel, or a function is missing; -EEXIST: one is registered; -EBUSY:
 * memory is already reserved; -ENODEV: the channel is the parent's. */
int wd_register_3rd_memory(struct wd_chan *ch, const struct wd_3rd_memory *mem);

/* -EINVAL: bad channel; -ENOENT: none registered; -EBUSY: its memory is in
 * use by this channel; -ENODEV: the channel is the parent's. */
int wd_unregister_3rd_memory(struct wd_chan *ch);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
