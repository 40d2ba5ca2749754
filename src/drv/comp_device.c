/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression on a software device: the driver "device". Jobs go over
 * channels of drv/device, one job at a time on each; threads take an idle
 * channel or open one. Whatever a device cannot do or does not live to do is
 * -ENODEV, so that the next driver does it. It must not be asked by default:
 * another process is slower than this one, unless this one has other work.
 */
#include "alg/drivers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "drv/device.h"

#define POOL (8u << 20) /* for memory the device cannot reach */
#define KEPT 16
#define SPIN (20 * WF_NS_PER_US) /* before sleeping on the interrupt */

struct line {
	struct wf_drv_device dev;
	struct line *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line *idle;
static unsigned int kept;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Channels are the parent's; base/fork has closed what they hold open. */
static void in_child(void)
{
	idle = NULL;
	kept = 0;
	pthread_mutex_unlock(&lock);
}

static void setup(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static struct line *line_open_on(const struct uacce_dev_info *dev)
{
	size_t reserve = dev->iommu_type == WD_IOMMU_SVA ? 0 : POOL;
	struct line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL;
	strcpy(line->dev.ch.dev_path, dev->dev_path);
	if (!wf_drv_device_open(&line->dev, reserve))
		return line;
	free(line);
	return NULL;
}

/* The best device may be of another kind, full, or closed to this user: then
 * the next one. */
static struct line *line_open(const char *alg)
{
	struct uacce_dev_info *list;
	struct line *line = NULL;
	int count = wd_list_devices(alg, &list);

	if (count <= 0)
		return NULL;
	for (int i = 0; i < count && !line; i++)
		line = line_open_on(&list[i]);
	wd_free_devices(list);
	return line;
}

static void line_close(struct line *line)
{
	wf_drv_device_close(&line->dev);
	free(line);
}

/* One whose device does this: another may have been kept last. */
static struct line *line_kept(const char *alg)
{
	struct line **at = &idle, *line;

	pthread_mutex_lock(&lock);
	while (*at && !wd_has_alg((*at)->dev.ch.dev_info, alg))
		at = &(*at)->next;
	line = *at;
	if (line) {
		*at = line->next;
		kept--;
	}
	pthread_mutex_unlock(&lock);
	return line;
}

static struct line *line_get(const char *alg)
{
	struct line *line;

	pthread_once(&once, setup);
	while ((line = line_kept(alg))) {
		if (wd_drv_alive(&line->dev.ch))
			return line;
		line_close(line); /* its device has died meanwhile */
	}
	return line_open(alg);
}

static void line_put(struct line *line, bool good)
{
	if (good) {
		pthread_mutex_lock(&lock);
		good = kept < KEPT;
		if (good) {
			line->next = idle;
			idle = line;
			kept++;
		}
		pthread_mutex_unlock(&lock);
	}
	if (!good)
		line_close(line);
}

/* The result of the one job; false when the device is gone without one. */
static bool line_wait(struct line *line, struct wf_drv_result *result)
{
	uint64_t until = wf_base_clock_ns() + SPIN;

	for (;;) {
		int n = wf_drv_device_poll(&line->dev, result, 1);

		if (n)
			return n > 0;
		if (wf_base_clock_ns() > until)
			wf_drv_device_wait(&line->dev, 1000);
	}
}

static int run(struct wd_comp_job *job, enum wf_device_alg alg)
{
	struct wf_drv_job to = {
		.alg = alg,
		.src = job->src,
		.src_len = (uint32_t)job->src_len,
		.dst = job->dst,
		.dst_len = (uint32_t)job->dst_len,
		.dict = job->dict,
		.dict_len = (uint32_t)job->dict_len,
		.format = WF_DEVICE_FORMAT_RAW,
		.level = (uint8_t)job->level,
		.window_log2 = (uint8_t)job->window,
		.flush = (uint8_t)job->flush,
	};
	struct wf_drv_result result = { 0 };
	struct line *line;
	bool there;

	if (job->src_len > WF_DEVICE_LEN_MAX)
		return -ENODEV;
	if (job->dst_len > WF_DEVICE_LEN_MAX)
		to.dst_len = WF_DEVICE_LEN_MAX;
	line = line_get(alg == WF_DEVICE_DEFLATE ? "deflate" : "inflate");
	if (!line)
		return -ENODEV;
	if (wf_drv_device_submit(&line->dev, &to, false)) {
		/* Dead, or too much for its pool. */
		line_put(line, false);
		return -ENODEV;
	}
	there = line_wait(line, &result) && result.status != -ENODEV &&
		result.status != -EIO && result.status != -ECANCELED;
	line_put(line, there);
	if (!there)
		return -ENODEV;
	job->consumed = result.consumed;
	job->produced = result.produced;
	job->ended = result.flags & WF_DEVICE_DONE_FINAL;
	switch (result.status) {
	case 0:
	case -ENOSPC:
	case -EBADMSG:
	case -ENODATA:
		return result.status;
	default:
		return -ENODEV; /* not for this device: for another driver */
	}
}

static int dev_deflate(struct wd_comp_job *job)
{
	return run(job, WF_DEVICE_DEFLATE);
}

static int dev_inflate(struct wd_comp_job *job)
{
	return run(job, WF_DEVICE_INFLATE);
}

static void dev_exit(void)
{
	for (;;) {
		struct line *line;

		pthread_mutex_lock(&lock);
		line = idle;
		if (line)
			idle = line->next;
		kept = 0;
		pthread_mutex_unlock(&lock);
		if (!line)
			return;
		line_close(line);
	}
}

const struct wd_alg_comp wf_drv_comp_device = {
	.name = "device",
	.priority = 50,
	.node = 0,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
	       WD_COMP_CAN_DEFLATE_DICT | WD_COMP_CAN_INFLATE_DICT,
	.levels = 0x3fe,
	.min_window = 15,
	.exit = dev_exit,
	.deflate = dev_deflate,
	.inflate = dev_inflate,
};
