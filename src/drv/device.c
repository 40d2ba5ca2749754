/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the software device. It does not trust the device's
 * writes: a completion must name a job that is in flight, and say nothing that
 * could not be.
 */
#include "drv/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "chan/core.h"
#include "drv/guard.h"
#include "queue/wake.h"
#include "weft/smm.h"

/* Polls without a result between two looks at the device. */
#define LOOK_EVERY 256
#define ID_BITS 31

/* In no stage and no region: the device ends the job with EFAULT. */
#define NOWHERE UINT64_MAX

enum { SRC, DST, DICT };

/* -- opening --------------------------------------------------------------- */

static void in_child(struct wf_fork_watch *watch)
{
	struct wf_drv_device *device =
		wf_container_of(watch, struct wf_drv_device, watch);

	device->foreign = true;
	device->broken = -ENODEV;
}

static void *map_region(struct wd_chan *ch, enum uacce_qfrt type)
{
	size_t size = ch->dev_info->qfrs_size[type];
	void *start;

	start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ch->fd,
		     (off_t)ch->dev_info->qfrs_offset[type]);
	if (start == MAP_FAILED)
		return NULL;
	madvise(start, size, MADV_DONTFORK);
	return start;
}

/* A device of an older build has none. */
static int init_stage(struct wf_drv_device *device, uint32_t depth)
{
	uint32_t size = device->mmio->stage;
	uint32_t slots = size / WF_ACCEL_STAGE_SLOT;

	if (size > device->dus_size - WF_ACCEL_DUS_SIZE(depth))
		return -EPROTO;
	if (slots > WF_ACCEL_STAGE_SLOTS)
		slots = WF_ACCEL_STAGE_SLOTS;
	device->stage = (uint8_t *)device->dus + WF_ACCEL_DUS_SIZE(depth);
	for (uint32_t i = 0; i < slots; i++)
		device->free_stages[i] = (uint8_t)(slots - 1 - i);
	device->n_free_stages = (uint8_t)slots;
	return 0;
}

static int init_queues(struct wf_drv_device *device)
{
	uint32_t depth = device->mmio->depth;
	struct wf_accel_job *jobs = device->dus;
	struct wf_queue_sub_attr sub = {
		.ring = jobs,
		.doorbell = &device->mmio->doorbell,
		.entries = depth,
		.stride = sizeof(struct wf_accel_job),
	};
	struct wf_queue_cq_attr cq = {
		.credit = &device->mmio->credit,
		.entries = depth,
		.stride = sizeof(struct wf_accel_done),
		.phase_word = offsetof(struct wf_accel_done, word),
		.phase_bit = WF_ACCEL_PHASE,
	};
	int err;

	if (device->mmio->magic != WF_ACCEL_MAGIC ||
	    depth < WF_ACCEL_DEPTH_MIN || depth > WF_ACCEL_DEPTH_MAX ||
	    WF_ACCEL_DUS_SIZE(depth) > device->dus_size)
		return -EPROTO;
	err = init_stage(device, depth);
	if (err)
		return err;
	cq.ring = jobs + depth;
	err = wf_queue_sub_init(&device->sub, &sub);
	if (!err)
		err = wf_queue_cq_init(&device->cq, &cq);
	if (err)
		return -EPROTO;
	err = wf_queue_ids_init(&device->ids, depth, ID_BITS);
	if (err)
		return err;
	device->slots = calloc(depth, sizeof(*device->slots));
	if (device->slots)
		return 0;
	wf_queue_ids_fini(&device->ids);
	return -ENOMEM;
}

static int map_queues(struct wf_drv_device *device)
{
	struct uacce_dev_info *dev = device->ch.dev_info;
	int err;

	if (strcmp(dev->api, WF_ACCEL_API) ||
	    dev->qfrs_size[UACCE_QFRT_MMIO] < sizeof(struct wf_accel_mmio))
		return -EPROTO;
	device->mmio = map_region(&device->ch, UACCE_QFRT_MMIO);
	if (!device->mmio)
		return -ENOMEM;
	device->dus_size = dev->qfrs_size[UACCE_QFRT_DUS];
	device->dus = map_region(&device->ch, UACCE_QFRT_DUS);
	if (!device->dus) {
		err = -ENOMEM;
		goto err_mmio;
	}
	err = init_queues(device);
	if (!err)
		return 0;
	munmap(device->dus, device->dus_size);
err_mmio:
	munmap(device->mmio, dev->qfrs_size[UACCE_QFRT_MMIO]);
	return err;
}

static void unmap_queues(struct wf_drv_device *device)
{
	free(device->slots);
	wf_queue_ids_fini(&device->ids);
	/* A child never had them: memory that lies there now is not ours. */
	if (device->foreign)
		return;
	munmap(device->dus, device->dus_size);
	munmap(device->mmio, device->ch.dev_info->qfrs_size[UACCE_QFRT_MMIO]);
}

static int make_pool(struct wf_drv_device *device, size_t size)
{
	void *memory;

	if (!size)
		return 0;
	memory = wd_reserve_mem(&device->ch, size);
	return memory ? smm_init(memory, size, WF_LINE - 1) : -errno;
}

static int start(struct wf_drv_device *device, size_t reserve)
{
	int err;

	device->sva = device->ch.dev_info->iommu_type == WD_IOMMU_SVA;
	err = map_queues(device);
	if (err)
		return err;
	err = make_pool(device, reserve);
	if (!err)
		err = wd_drv_start(&device->ch);
	if (err) {
		unmap_queues(device);
		return err;
	}
	device->watch.in_child = in_child;
	wf_base_fork_watch(&device->watch);
	wf_drv_guard_on();
	return 0;
}

int wf_drv_device_open(struct wf_drv_device *device, size_t reserve)
{
	int err;

	err = wd_request_channel(&device->ch);
	if (err)
		return err;
	err = start(device, reserve);
	if (err)
		wd_release_channel(&device->ch);
	return err;
}

int wf_drv_device_attach(struct wf_drv_device *device, struct wd_chan *ch)
{
	int err;

	device->ch = *ch;
	/* The memory reserved there belongs to the application; it is not a
	 * pool of ours. */
	device->ch.ss_va = NULL;
	device->borrowed = true;
	err = start(device, 0);
	if (err)
		device->ch.core = NULL;
	return err;
}

/* -- memory ---------------------------------------------------------------- */

static void free_bounce(struct wf_drv_device *device, struct wf_drv_slot *slot)
{
	if (slot->stage)
		device->free_stages[device->n_free_stages++] =
			slot->stage & ~WF_DRV_STAGED;
	slot->stage = 0;
	for (int i = SRC; i <= DICT; i++) {
		if (slot->bounce[i])
			smm_free(device->ch.ss_va, slot->bounce[i]);
		slot->bounce[i] = NULL;
	}
}

static int no_room(const struct wf_drv_device *device)
{
	if (errno != ENOMEM)
		return -EFAULT; /* no pool */
	return device->ids.in_use > 1 ? -EAGAIN : -ENOMEM;
}

static inline const struct wf_chan_region *
region_of(const struct wf_drv_device *device)
{
	return atomic_load_explicit(&device->ch.core->region,
				    memory_order_acquire);
}

static inline bool is_inside(const struct wf_chan_region *region,
			     const void *va, uint32_t len, uint64_t *offset)
{
	*offset = (uint64_t)(uintptr_t)va - (uint64_t)(uintptr_t)region->va;
	return *offset < region->size && len <= region->size - *offset;
}

/* Whether the device reaches it where it is: wd_get_dma_from_va() for both
 * ends at once, without the calls. */
static inline bool is_direct(const struct wf_drv_device *device, const void *va,
			     uint32_t len, uint64_t *dma)
{
	const struct wf_chan_region *region = region_of(device);
	uint64_t offset;
	bool inside;

	*dma = len ? (uint64_t)(uintptr_t)va : 0;
	if (device->sva || !len)
		return true;
	if (wf_unlikely(!region))
		return false;
	inside = is_inside(region, va, len, &offset);
	*dma = region->dma + offset;
	return inside;
}

/* SVA: whether the device has mapped all of it. */
static bool is_mapped(const struct wf_drv_device *device,
		      const struct wf_drv_job *job)
{
	const struct wf_chan_region *region = region_of(device);
	uint64_t offset;

	return region && region->mapped &&
	       (!job->src_len ||
		is_inside(region, job->src, job->src_len, &offset)) &&
	       (!job->dst_len ||
		is_inside(region, job->dst, job->dst_len, &offset)) &&
	       (!job->dict_len ||
		is_inside(region, job->dict, job->dict_len, &offset));
}

/* Where the device sees @len bytes at @va: in another place. */
static int make_bounce(struct wf_drv_device *device, const void *va,
		       uint32_t len, bool fill, uint8_t **bounce, uint64_t *dma)
{
	if (!device->ch.ss_va)
		return -EFAULT;
	*bounce = smm_alloc(device->ch.ss_va, len);
	if (!*bounce)
		return no_room(device);
	*dma = wd_get_dma_from_va(&device->ch, *bounce);
	if (fill && !wf_drv_guard_copy(*bounce, va, len))
		*dma = NOWHERE;
	else if (fill)
		device->bounced += len;
	return 0;
}

static inline int address(struct wf_drv_device *device, const void *va,
			  uint32_t len, bool fill, uint8_t **bounce,
			  uint64_t *dma)
{
	if (wf_likely(is_direct(device, va, len, dma)))
		return 0;
	return make_bounce(device, va, len, fill, bounce, dma);
}

static inline uint64_t lines(uint32_t len)
{
	return ((uint64_t)len + WF_LINE - 1) & ~(uint64_t)(WF_LINE - 1);
}

/* The address of bytes that were copied to the offset @at of the stage. */
static uint64_t stage_in(struct wf_drv_device *device, uint64_t at,
			 const void *from, uint32_t len)
{
	if (!len)
		return 0;
	if (!wf_drv_guard_copy(device->stage + at, from, len))
		return NOWHERE;
	device->bounced += len;
	return at;
}

/* SVA: the bytes of a small job that are not in reserved memory go through the
 * stage, which costs no system call. False: too many bytes, or too many jobs in
 * flight. Input and output change places from job to job: where the device wrote, we
 * have read and write next, so that those lines are in our cache, and where we
 * wrote, it has read and writes next. */
static bool stage_all(struct wf_drv_device *device, struct wf_drv_slot *slot,
		      const struct wf_drv_job *job, struct wf_accel_job *staged)
{
	uint64_t in = lines(job->src_len) + lines(job->dict_len);
	uint64_t size = in + lines(job->dst_len);
	uint64_t at, src, dict, dst;

	if (size > WF_ACCEL_STAGE_SLOT || !size || !device->n_free_stages)
		return false;
	slot->stage = device->free_stages[--device->n_free_stages];
	at = (uint64_t)slot->stage * WF_ACCEL_STAGE_SLOT;
	device->stages_turned ^= 1ull << slot->stage;
	if (device->stages_turned >> slot->stage & 1) {
		src = at;
		dst = at + in;
	} else {
		src = at + lines(job->dst_len);
		dst = at;
	}
	dict = src + lines(job->src_len);
	slot->stage |= WF_DRV_STAGED;
	slot->out = device->stage + dst;
	staged->flags = WF_ACCEL_JOB_STAGED;
	staged->src = stage_in(device, src, job->src, job->src_len);
	staged->dict = stage_in(device, dict, job->dict, job->dict_len);
	staged->dst = job->dst_len ? dst : 0;
	return true;
}

static int address_all(struct wf_drv_device *device, struct wf_drv_slot *slot,
		       const struct wf_drv_job *job,
		       struct wf_accel_job *staged)
{
	int err;

	if (device->sva && !is_mapped(device, job) &&
	    stage_all(device, slot, job, staged))
		return 0;
	err = address(device, job->src, job->src_len, true, &slot->bounce[SRC],
		      &staged->src);
	if (!err)
		err = address(device, job->dst, job->dst_len, false,
			      &slot->bounce[DST], &staged->dst);
	if (!err)
		err = address(device, job->dict, job->dict_len, true,
			      &slot->bounce[DICT], &staged->dict);
	slot->out = slot->bounce[DST];
	return err;
}

/* -- jobs in --------------------------------------------------------------- */

static void wake_device(struct wf_drv_device *device)
{
	if (wf_queue_wake_needed(&device->mmio->device_sleeps))
		wd_drv_kick(&device->ch);
}

void wf_drv_device_ring(struct wf_drv_device *device)
{
	if (device->broken)
		return;
	wf_queue_sub_ring(&device->sub);
	wake_device(device);
}

int wf_drv_device_submit(struct wf_drv_device *device,
			 const struct wf_drv_job *job, bool more)
{
	_Alignas(WF_LINE) struct wf_accel_job staged;
	struct wf_drv_slot *slot;
	uint32_t id;
	int err;

	if (wf_unlikely(device->broken))
		return device->broken;
	id = wf_queue_ids_get(&device->ids);
	if (wf_unlikely(id == WF_QUEUE_ID_NONE)) {
		wf_drv_device_ring(device);
		return -EAGAIN;
	}
	slot = &device->slots[wf_queue_ids_index(&device->ids, id)];
	*slot = (struct wf_drv_slot){
		.cookie = job->cookie,
		.dst = job->dst,
		.src_len = job->src_len,
		.dst_len = job->dst_len,
		.id = id,
		.used = true,
	};
	staged = (struct wf_accel_job){
		.id = id,
		.alg = (uint8_t)job->alg,
		.format = job->format,
		.level = job->level,
		.src_len = job->src_len,
		.dst_len = job->dst_len,
		.dict_len = job->dict_len,
		.seed = job->seed,
		.window_log2 = job->window_log2,
		.flush = job->flush,
		.stream = job->stream,
	};
	err = address_all(device, slot, job, &staged);
	/* There are as many ids as places: the ring is not full. */
	if (!err)
		err = wf_queue_sub_post64(&device->sub, &staged, more);
	if (err) {
		free_bounce(device, slot);
		slot->used = false;
		wf_queue_ids_put(&device->ids, id);
		wf_drv_device_ring(device);
		return err;
	}
	if (!wf_queue_sub_pending(&device->sub))
		wake_device(device);
	return 0;
}

/* -- results out ----------------------------------------------------------- */

static void finish(struct wf_drv_device *device, struct wf_drv_slot *slot)
{
	free_bounce(device, slot);
	slot->used = false;
	wf_queue_ids_put(&device->ids, slot->id);
}

static void take(struct wf_drv_device *device, struct wf_drv_slot *slot,
		 const struct wf_accel_done *done, struct wf_drv_result *result)
{
	*result = (struct wf_drv_result){
		.cookie = slot->cookie,
		.status = -(int)done->status,
		.consumed = done->consumed,
		.produced = done->produced,
		.checksum = done->checksum,
		.flags = done->flags,
		.copied = done->copied,
	};
	if (wf_unlikely(done->produced > slot->dst_len ||
			done->consumed > slot->src_len)) {
		result->status = -EPROTO;
		result->consumed = result->produced = 0;
	}
	if (slot->out && result->produced &&
	    wf_unlikely(!wf_drv_guard_copy(slot->dst, slot->out,
					   result->produced))) {
		result->status = -EFAULT;
		result->consumed = result->produced = 0;
	}
	if (slot->out && result->produced) {
		device->bounced += result->produced;
		result->bounced = result->produced;
	}
	wf_queue_sub_done(&device->sub, 1);
	finish(device, slot);
}

static int take_ready(struct wf_drv_device *device,
		      struct wf_drv_result *results, int max)
{
	struct wf_accel_done done;
	uint16_t told = device->cq.told;
	uint32_t id;
	int n = 0;

	while (n < max && wf_queue_cq_take(&device->cq, &done)) {
		id = done.word & ~WF_ACCEL_PHASE;
		if (wf_unlikely(!wf_queue_ids_live(&device->ids, id))) {
			device->strays++;
			continue;
		}
		take(device,
		     &device->slots[wf_queue_ids_index(&device->ids, id)],
		     &done, &results[n++]);
	}
	/* A device that found no room for completions may have gone to sleep
	 * with jobs submitted: credit is a doorbell, too. */
	if (device->cq.told != told && device->ids.in_use)
		wake_device(device);
	return n;
}

static int give_up(struct wf_drv_device *device, struct wf_drv_result *results,
		   int max)
{
	int n = 0;

	for (; n < max && device->fail_at < device->ids.count;
	     device->fail_at++) {
		struct wf_drv_slot *slot = &device->slots[device->fail_at];

		if (!slot->used)
			continue;
		results[n++] = (struct wf_drv_result){
			.cookie = slot->cookie,
			.status = device->broken,
		};
		/* A child's parent has the pool. */
		if (device->foreign)
			memset(slot->bounce, 0, sizeof(slot->bounce));
		finish(device, slot);
	}
	return n ? n : device->broken;
}

static void look(struct wf_drv_device *device)
{
	if (!wd_drv_alive(&device->ch)) {
		device->broken = -ENODEV;
		wf_info("%s is gone, %u jobs with it",
			device->ch.dev_info->name, device->ids.in_use);
	} else if (atomic_load_explicit(&device->mmio->state,
					memory_order_acquire) ==
		   WF_ACCEL_FAULT) {
		device->broken = -EIO;
		wf_warn("%s refuses to serve this channel any longer",
			device->ch.dev_info->name);
	}
}

int wf_drv_device_poll(struct wf_drv_device *device,
		       struct wf_drv_result *results, int max)
{
	int n;

	if (wf_unlikely(device->foreign))
		return give_up(device, results, max);
	n = take_ready(device, results, max);
	if (n)
		return n;
	if (wf_unlikely(device->broken))
		return give_up(device, results, max);
	if (++device->empty % LOOK_EVERY)
		return 0;
	look(device);
	/* Completions that came before the device ended are returned first. */
	return device->broken ? wf_drv_device_poll(device, results, max) : 0;
}

int wf_drv_device_wait(struct wf_drv_device *device, int timeout_ms)
{
	int err = 0;

	if (device->broken || wf_queue_cq_ready(&device->cq))
		return 0;
	wf_queue_wake_arm(&device->mmio->user_sleeps);
	/* A completion that the device wrote before it could see the flag comes
	 * without an interrupt. It is visible now. */
	if (!wf_queue_cq_ready(&device->cq)) {
		look(device);
		if (!device->broken)
			err = wd_drv_wait(&device->ch, timeout_ms);
	}
	wf_queue_wake_disarm(&device->mmio->user_sleeps);
	if (err && err != -EINTR && !wf_queue_cq_ready(&device->cq))
		look(device);
	if (device->broken || err == -ENODEV)
		return 0;
	return err;
}

/* -- closing --------------------------------------------------------------- */

void wf_drv_device_stop(struct wf_drv_device *device)
{
	if (device->broken)
		return;
	wd_drv_stop(&device->ch);
	device->broken = -ECANCELED;
}

void wf_drv_device_close(struct wf_drv_device *device)
{
	if (!device->ch.core)
		return;
	/* Before blocks go back to a pool that others may use too. */
	wf_drv_device_stop(device);
	for (uint32_t i = 0; i < device->ids.count && !device->foreign; i++) {
		if (device->slots[i].used)
			free_bounce(device, &device->slots[i]);
	}
	wf_base_fork_unwatch(&device->watch);
	wf_drv_guard_off();
	unmap_queues(device);
	if (device->borrowed)
		device->ch.core = NULL;
	else
		wd_release_channel(&device->ch);
}
