/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the software device (`weft devd`): jobs in, results out, over
 * a channel. Polls for latency, sleeps on the interrupt when asked to.
 *
 * One thread at a time may use a device; another needs the owner's lock. Only
 * wf_drv_device_wait() may run while another thread submits. Each
 * job that was taken gives exactly one result, also when the device dies
 * (-ENODEV), is stopped (-ECANCELED) or refuses to go on (-EIO).
 */
#ifndef WF_DRV_DEVICE_H
#define WF_DRV_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fork.h"
#include "drv/accel_defs.h"
#include "queue/cq.h"
#include "queue/ids.h"
#include "queue/sub.h"
#include "weft/wd_drv.h"

/* A job as its user sees it: plain addresses of this process. Memory that the
 * device cannot reach (Share Domain, NOIOMMU) goes through reserved memory, and
 * that of small jobs with SVA through the channel's stage: one copy per byte,
 * counted in ->bounced. Then src and dict are read by submit, and dst is written
 * by poll. A bad address is the result's -EFAULT. */
struct wf_drv_job {
	enum wf_accel_alg alg;
	const void *src;
	void *dst;
	const void *dict;
	uint32_t src_len;
	uint32_t dst_len;
	uint32_t dict_len;
	uint32_t seed;
	uint32_t stream;
	uint8_t format;
	uint8_t level;
	uint8_t window_log2;
	uint8_t flush;
	void *cookie; /* comes back in the result */
};

struct wf_drv_result {
	void *cookie;
	int status; /* 0 or -errno */
	uint32_t consumed;
	uint32_t produced;
	uint32_t checksum;
	uint32_t flags;	  /* WF_ACCEL_DONE_* */
	uint32_t copied;  /* by the device, besides the work */
	uint32_t bounced; /* by the driver, on their way back */
};

/* This struct holds what the driver keeps for a job in flight. */
struct wf_drv_slot {
	void *cookie;
	void *dst;
	uint8_t *bounce[3]; /* src, dst, dict; NULL: not in the pool */
	const uint8_t *out; /* where the result is; NULL: at dst */
	uint32_t src_len;
	uint32_t dst_len;
	uint32_t id;
	uint8_t stage; /* STAGED and its place in the stage */
	bool used;
};

#define WF_DRV_STAGED 0x80u
static_assert(WF_ACCEL_STAGE_SLOTS <= WF_DRV_STAGED, "place and flag: a byte");
static_assert(WF_ACCEL_STAGE_SLOTS <= 64, "a bit each");

struct wf_drv_device {
	struct wd_chan ch; /* first: this is a vendor's channel */
	struct wf_accel_mmio *mmio;
	void *dus;
	size_t dus_size;
	struct wf_queue_sub sub;
	struct wf_queue_cq cq;
	struct wf_queue_ids ids;
	struct wf_drv_slot *slots;
	struct wf_fork_watch watch;
	bool sva;
	bool borrowed;	   /* ch is a view of a channel of the application's */
	bool foreign;	   /* in a forked child: the rings are not here */
	atomic_int broken; /* 0, or why there is nothing to come: -errno */
	uint32_t fail_at;  /* next slot to give up */
	uint32_t empty;	   /* polls that found nothing */
	uint8_t *stage;	   /* in the DUS; NULL: none */
	/* Places in it that are free, the last one first: it is in the caches. */
	uint8_t free_stages[WF_ACCEL_STAGE_SLOTS];
	/* A bit each: input came first last time. */
	uint64_t stages_turned;
	uint8_t n_free_stages;
	uint64_t bounced; /* bytes copied to and from memory of the device's */
	uint64_t strays;  /* completions that belong to no job */
};

/*
 * Opens a channel of @device, which the caller has zeroed; ch.dev_info,
 * ch.dev_path or ch.alg as for wd_request_channel(). @reserve: so many bytes
 * of reserved memory with an SMM pool at ch.ss_va; 0: none (the caller
 * reserves, shares or registers on ch). -EPROTO: not our kind of device.
 */
int wf_drv_device_open(struct wf_drv_device *device, size_t reserve);

/* The same on the application's channel @ch, which it must have requested and not
 * started. Memory reserved on it, now or later, is reached where it is; nothing
 * else is, unless the device is SVA. */
int wf_drv_device_attach(struct wf_drv_device *device, struct wd_chan *ch);

/* Stops the device, and drops results that were not polled. Frees reserved
 * memory, except on a channel of the application's, which stays. */
void wf_drv_device_close(struct wf_drv_device *device);

/* Submits a job. With @more the doorbell may wait for the next job or for
 * wf_drv_device_ring(). -EAGAIN: poll first; -EFAULT: memory that the device
 * cannot reach, and no pool to go through; -ENOMEM: larger than the pool;
 * -EINVAL; -ENODEV and others when it is over. */
int wf_drv_device_submit(struct wf_drv_device *device,
			 const struct wf_drv_job *job, bool more);
void wf_drv_device_ring(struct wf_drv_device *device);

/* Up to @max results. 0: none now. -ENODEV and others: it is over, and every
 * job has had its result. */
int wf_drv_device_poll(struct wf_drv_device *device,
		       struct wf_drv_result *results, int max);

/* Sleeps until there may be something to poll. 0; -ETIMEDOUT; -EINTR. */
int wf_drv_device_wait(struct wf_drv_device *device, int timeout_ms);

/* The device stops; available results come first, then -ECANCELED for the
 * rest. */
void wf_drv_device_stop(struct wf_drv_device *device);

static inline unsigned int
wf_drv_device_in_flight(const struct wf_drv_device *device)
{
	return device->ids.in_use;
}

#endif
