/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression on a software device: the driver "device". A channel is one of
 * drv/device, on a device with the requested algorithm; the library above keeps
 * channels and chooses among drivers. If a device cannot do a job, or dies
 * during it, the result is -ENODEV, so that the next driver does it. It is not
 * used by default: another process is slower than this one, unless this one has
 * other work.
 */
#include "alg/drivers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drv/device.h"

#define POOL (8u << 20) /* for memory the device cannot reach */
#define BATCH 16
#define IN_FLIGHT 256
/* The largest job at the highest level takes this long on a slow machine that
 * has other work; that the device lives is seen by other means. */
#define TIMEOUT_MS 120000

static int open_on(struct wf_drv_device *device,
		   const struct uacce_dev_info *dev)
{
	size_t reserve = dev->iommu_type == WD_IOMMU_SVA ? 0 : POOL;

	*device = (struct wf_drv_device){ 0 };
	strcpy(device->ch.dev_path, dev->dev_path);
	return wf_drv_device_open(device, reserve);
}

/* The best device may be of another kind, full, or closed to this user: then
 * the next one. */
static int open_any(struct wf_drv_device *device, unsigned int can)
{
	const char *alg = can & WD_COMP_CAN_INFLATE ? "inflate" : "deflate";
	struct uacce_dev_info *list;
	int count = wd_list_devices(alg, &list), err = -ENODEV;

	if (count <= 0)
		return -ENODEV;
	for (int i = 0; i < count && err; i++) {
		if (!strcmp(list[i].api, WF_ACCEL_API))
			err = open_on(device, &list[i]);
	}
	wd_free_devices(list);
	return err;
}

static int dev_open(void **chan, struct wd_chan *ch, unsigned int can)
{
	struct wf_drv_device *device = calloc(1, sizeof(*device));
	int err;

	if (!device)
		return -ENOMEM;
	err = ch ? wf_drv_device_attach(device, ch) : open_any(device, can);
	if (err) {
		free(device);
		return err;
	}
	*chan = device;
	return 0;
}

static void dev_close(void *chan)
{
	struct wf_drv_device *device = chan;

	wf_drv_device_close(device);
	free(device);
}

/* 0, -EAGAIN, or why the device is over. A job that it will never take is done,
 * for another driver. */
static int submit_one(struct wf_drv_device *device, struct wd_comp_job *job,
		      bool more)
{
	enum wf_accel_alg alg =
		job->inflate ? WF_ACCEL_INFLATE : WF_ACCEL_DEFLATE;
	struct wf_drv_job to = {
		.alg = alg,
		.src = job->src,
		.src_len = (uint32_t)job->src_len,
		.dst = job->dst,
		.dst_len = job->dst_len < WF_ACCEL_LEN_MAX ?
				   (uint32_t)job->dst_len :
				   WF_ACCEL_LEN_MAX,
		.dict = job->dict,
		.dict_len = (uint32_t)job->dict_len,
		.format = WF_ACCEL_FORMAT_RAW,
		.level = (uint8_t)job->level,
		.window_log2 = (uint8_t)job->window,
		.flush = (uint8_t)job->flush,
		.cookie = job,
	};
	uint64_t bounced = device->bounced;
	int err;

	/* Another device may have the algorithm; this one does not. */
	if (!wd_has_alg(device->ch.dev_info,
			job->inflate ? "inflate" : "deflate"))
		err = -ENOTSUP;
	else
		err = wf_drv_device_submit(device, &to, more);
	job->copied = device->bounced - bounced;
	switch (err) {
	case -EFAULT: /* memory that it cannot reach */
	case -ENOMEM: /* more than there is to go through */
	case -ENOTSUP:
		job->result = -ENOTSUP;
		job->done = 1;
		return 0;
	default:
		return err;
	}
}

static int dev_submit(void *chan, struct wd_comp_job *const *jobs,
		      unsigned int n)
{
	struct wf_drv_device *device = chan;
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = submit_one(device, jobs[i], i + 1 < n);
	if (!err)
		return (int)i;
	/* Jobs that were taken before are in flight. */
	wf_drv_device_ring(device);
	return i > 1 || err == -EAGAIN ? (int)i - 1 : err;
}

static void take(struct wd_comp_job *job, const struct wf_drv_result *result)
{
	job->consumed = result->consumed;
	job->produced = result->produced;
	job->ended = result->flags & WF_ACCEL_DONE_FINAL;
	job->result = result->status;
	/* It knew only a part of the room: another driver has all of it. */
	if (job->result == -ENOSPC && job->dst_len > WF_ACCEL_LEN_MAX)
		job->result = -ENOTSUP;
	job->copied += (uint64_t)result->copied + result->bounced;
}

static int dev_poll(void *chan, struct wd_comp_job **done, unsigned int n)
{
	struct wf_drv_device *device = chan;
	struct wf_drv_result results[BATCH];
	int count = wf_drv_device_poll(device, results,
				       (int)(n < BATCH ? n : BATCH));

	for (int i = 0; i < count; i++) {
		done[i] = results[i].cookie;
		take(done[i], &results[i]);
	}
	return count;
}

static int dev_wait(void *chan, int timeout_ms)
{
	return wf_drv_device_wait(chan, timeout_ms);
}

const struct wd_alg_comp wf_drv_comp_device = {
	.name = "device",
	.priority = 50,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
	       WD_COMP_CAN_DEFLATE_DICT | WD_COMP_CAN_INFLATE_DICT |
	       WD_COMP_BY_DEVD | WD_COMP_SIZED,
	.levels = 0x3fe,
	.min_window = 15,
	.version = WD_COMP_DRV_VERSION,
	.size = sizeof(struct wd_alg_comp),
	.about = "devices of `weft devd`",
	.api = WF_ACCEL_API,
	.limits = {
		.in_flight = IN_FLIGHT,
		.src_max = WF_ACCEL_LEN_MAX,
		.timeout_ms = TIMEOUT_MS,
		.memory = WD_COMP_MEM_RESERVED,
	},
	.open_chan = dev_open,
	.close_chan = dev_close,
	.submit = dev_submit,
	.poll = dev_poll,
	.wait = dev_wait,
};
