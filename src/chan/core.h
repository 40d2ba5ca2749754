/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own part of a channel, and the table between channels and the
 * kinds of devices. The public calls (chan.c, memory.c) check their arguments
 * and the state; a kind of device only does its work.
 */
#ifndef WF_CHAN_CORE_H
#define WF_CHAN_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fork.h"
#include "base/list.h"
#include "weft/wd.h"

struct wf_chan_session;
struct wd_drv_dev;

/* Reserved memory. Counted by the channels that use it; the last one unmaps or
 * frees it. The rest is constant. */
struct wf_chan_region {
	atomic_uint refs;
	void *va;
	size_t size;
	uint64_t dma;
	/* The allocator that made it, or the plug-in's device that did; both
	 * NULL: we have mapped it. */
	const struct wd_3rd_memory *third;
	const struct wd_drv_dev *plugged;
	pid_t owner; /* a forked child has the struct, not the memory */
	/* Owed to the allocator until the device is done, see memory.c. */
	struct wf_list link;
	struct wf_chan_session *session;
};

struct wf_chan_ops {
	/* Opens ch->dev_info: sets ch->fd and the fields below. -errno. */
	int (*open)(struct wd_chan *ch);
	/* Returns when the device has released the channel. */
	int (*stop)(struct wd_chan *ch);
	/* Frees what open() made, but ch->fd. */
	void (*close)(struct wd_chan *ch);
	int (*start)(struct wd_chan *ch);
	int (*wait)(struct wd_chan *ch, int timeout_ms);
	int (*kick)(struct wd_chan *ch);
	bool (*alive)(struct wd_chan *ch);
	/* Maps memory that the device can address. -EOPNOTSUPP: cannot. */
	int (*reserve)(struct wd_chan *ch, size_t size, void **va,
		       uint64_t *dma);
	/* Makes memory behind a descriptor addressable. NULL: the device maps
	 * nothing, and the allocator's address is used; -EBADF: it must map
	 * it, and there is no descriptor (@fd < 0). */
	int (*attach)(struct wd_chan *ch, int fd, uint64_t offset, size_t size,
		      uint64_t *dma);
	/* Informs the device. -EINVAL: not of one domain. */
	int (*share)(struct wd_chan *owner, struct wd_chan *target);
};

extern const struct wf_chan_ops wf_chan_soft_ops;
extern const struct wf_chan_ops wf_chan_node_ops;
extern const struct wf_chan_ops wf_chan_plugged_ops;

struct wf_chan_core {
	const struct wf_chan_ops *ops;
	struct wf_fork_watch watch;
	struct wd_chan *ch;
	struct uacce_dev_info *own_info; /* freed with the channel */
	/* Held across the request to the device, so that two threads cannot
	 * reserve for one channel: only this channel waits for its device. */
	pthread_mutex_t memory_lock;
	struct wf_chan_region *_Atomic region; /* changes under memory_lock */
	const struct wd_3rd_memory *third;     /* under memory_lock */
	atomic_bool started;
	atomic_bool stopped;
	bool foreign; /* we are a forked child: nothing here is ours */
	const struct wd_drv_dev *plugged; /* the device, if a plug-in has it */
	/* Only if it is a software device: */
	struct wf_chan_session *session;
	bool released; /* the device has confirmed that it uses no memory */
	uint32_t id;
	int event_fd; /* -1: none */
	int kick_fd;
	/* What the layer above keeps for the channel: closed before it is. */
	void *_Atomic user;
	void (*user_close)(void *user);
};

/* NULL for a channel that was never requested. */
static inline struct wf_chan_core *wf_chan_core_of(struct wd_chan *ch)
{
	return ch ? ch->core : NULL;
}

/* Drops the channel's reference, before the session's. */
void wf_chan_memory_release(struct wf_chan_core *core);

/* mmap() of reserved memory, not inherited by forked children; over the mapping
 * at *va unless that is NULL. -errno. */
int wf_chan_memory_map(int fd, uint64_t offset, size_t size, void **va);

#endif
