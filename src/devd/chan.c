/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queues of a client on a device: one sealed memfd with the MMIO page and,
 * behind it, the rings. The client can write anything into it at any time, so
 * nothing in it is trusted (queue/sub.h, queue/cq.h, job.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "devd/alg.h"
#include "devd/errand.h"
#include "devd/kept.h"
#include "devd/server.h"

/* Reserved memory needs no stage. */
static uint32_t stage_size(const struct wf_devd_device *device)
{
	return device->config.iommu_type == WD_IOMMU_SVA ?
		       WF_ACCEL_STAGE_SLOT * WF_ACCEL_STAGE_SLOTS :
		       0;
}

static size_t dus_size(const struct wf_devd *devd,
		       const struct wf_devd_device *device)
{
	size_t size =
		WF_ACCEL_DUS_SIZE(devd->config.depth) + stage_size(device);

	return (size + WF_DEVD_PAGE - 1) & ~(size_t)(WF_DEVD_PAGE - 1);
}

void wf_devd_chan_record(const struct wf_devd *devd,
			 const struct wf_devd_device *device,
			 struct wf_broker_record *record)
{
	const struct wf_devd_device_config *config = &device->config;

	*record = (struct wf_broker_record){
		.node_id = config->node_id,
		.iommu_type = config->iommu_type,
		.flags = config->iommu_type == WD_IOMMU_SVA,
		/* Fewer may be allowed now than are in use. */
		.available_instances =
			config->instances > device->in_use ?
				(int32_t)(config->instances - device->in_use) :
				0,
		.offset = { 0, WF_ACCEL_MMIO_SIZE, 0 },
		.size = { WF_ACCEL_MMIO_SIZE, dus_size(devd, device), 0 },
	};
	snprintf(record->name, sizeof(record->name), "%s", config->name);
	snprintf(record->api, sizeof(record->api), "%s", WF_ACCEL_API);
	wf_devd_alg_names(config->algs, record->algs, sizeof(record->algs));
}

static int map_regions(struct wf_devd_chan *chan, int *memfd)
{
	int err = wf_devd_kept_make("weft-queue", chan->bytes, &chan->queues,
				    memfd);

	if (err) {
		*memfd = -1;
		return err;
	}
	chan->base = mmap(NULL, chan->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  chan->queues->fd, 0);
	if (chan->base != MAP_FAILED)
		return 0;
	err = -errno;
	wf_devd_kept_drop(chan->queues);
	close(*memfd);
	*memfd = -1;
	return err;
}

static void init_queues(struct wf_devd_chan *chan, uint32_t depth)
{
	struct wf_accel_job *jobs =
		(void *)((uint8_t *)chan->base + WF_ACCEL_MMIO_SIZE);
	struct wf_queue_sub_attr sub = {
		.ring = jobs,
		.doorbell = &chan->mmio->doorbell,
		.entries = depth,
		.stride = sizeof(struct wf_accel_job),
	};
	struct wf_queue_cq_attr cq = {
		.ring = jobs + depth,
		.credit = &chan->mmio->credit,
		.entries = depth,
		.stride = sizeof(struct wf_accel_done),
		.phase_word = offsetof(struct wf_accel_done, word),
		.phase_bit = WF_ACCEL_PHASE,
	};
	int err;

	/* Sizes were checked when the device was configured. */
	err = wf_queue_work_init(&chan->work, &sub);
	assert(!err);
	err = wf_queue_cqw_init(&chan->cqw, &cq);
	assert(!err);
	(void)err;
}

int wf_devd_chan_make(struct wf_devd_client *client,
		      struct wf_devd_device *device, struct wf_devd_chan **made,
		      int *memfd)
{
	struct wf_devd *devd = client->devd;
	struct wf_devd_chan *chan = calloc(1, sizeof(*chan));
	int err;

	if (!chan)
		return -ENOMEM;
	chan->memory = -1;
	chan->client = client;
	chan->device = device;
	chan->algs = device->config.algs;
	chan->sva = device->config.iommu_type == WD_IOMMU_SVA;
	chan->bytes = WF_ACCEL_MMIO_SIZE + dus_size(devd, device);
	err = map_regions(chan, memfd);
	if (err)
		goto err_free;
	chan->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (chan->kick_fd < 0) {
		err = -errno;
		goto err_unmap;
	}
	chan->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (chan->event_fd < 0) {
		err = -errno;
		goto err_kick;
	}
	chan->mmio = chan->base;
	chan->mmio->magic = WF_ACCEL_MAGIC;
	chan->mmio->depth = devd->config.depth;
	chan->mmio->algs = chan->algs;
	chan->mmio->len_max = WF_ACCEL_LEN_MAX;
	chan->stage_size = stage_size(device);
	chan->stage = (uint8_t *)chan->base + WF_ACCEL_MMIO_SIZE +
		      WF_ACCEL_DUS_SIZE(devd->config.depth);
	chan->mmio->stage = chan->stage_size;
	init_queues(chan, devd->config.depth);
	chan->id = ++client->next_chan;
	wf_base_list_add_tail(&client->chans, &chan->in_client);
	client->n_chans++;
	client->user->chans++;
	client->user->opened++;
	wf_devd_stats_open_user(devd, client->user);
	device->in_use++;
	device->opened++;
	devd->n_chans++;
	devd->chans_seen++;
	*made = chan;
	return 0;

err_kick:
	close(chan->kick_fd);
err_unmap:
	munmap(chan->base, chan->bytes);
	wf_devd_kept_drop(chan->queues);
	close(*memfd);
	*memfd = -1;
err_free:
	free(chan);
	return err;
}

void wf_devd_chan_charge(struct wf_devd_chan *chan,
			 struct wf_devd_region *region)
{
	chan->client->memory += region->size;
	chan->client->user->memory += region->size;
	/* A channel of another device may be the last to use it. */
	region->counter = &chan->device->memory;
	*region->counter += region->size;
}

/* The client's own memory. */
static void discharge(struct wf_devd_chan *chan, struct wf_devd_region *region)
{
	chan->client->memory -= region->size;
	chan->client->user->memory -= region->size;
	*region->counter -= region->size;
}

void wf_devd_chan_put_region(struct wf_devd *devd,
			     struct wf_devd_region *region)
{
	struct wf_devd_errand unmap = {
		.kind = WF_DEVD_ERRAND_UNMAP,
		.fd = -1,
		.gift = { .memory = -1, .region = region },
	};
	struct wf_devd_errand *sent;

	if (!wf_devd_region_put(region))
		return;
	/* Without memory for an errand we wait, but do not lose it. */
	if (!region->foreign ||
	    wf_devd_errand_send(devd->errands, &unmap, &sent))
		wf_devd_region_unmap(region);
}

void wf_devd_chan_free(struct wf_devd_chan *chan)
{
	struct wf_devd_region *region = atomic_load(&chan->region);

	if (region) {
		/* Our own mapping does not matter to its end. */
		if (region->refs == 1 && region->made) {
			wf_devd_kept_add(chan->client, region->made,
					 region->size, region->counter);
			region->made = NULL;
		} else if (region->refs == 1) {
			discharge(chan, region);
		}
		wf_devd_chan_put_region(chan->client->devd, region);
	}
	wf_devd_kept_add(chan->client, chan->queues, 0, NULL);
	if (chan->memory >= 0)
		close(chan->memory);
	wf_devd_stats_keep(chan);
	chan->device->in_use--;
	chan->client->user->chans--;
	chan->client->n_chans--;
	chan->client->devd->n_chans--;
	wf_base_list_del(&chan->in_client);
	close(chan->event_fd);
	close(chan->kick_fd);
	munmap(chan->base, chan->bytes);
	free(chan);
}
