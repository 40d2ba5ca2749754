/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels to devices of `weft devd`. ch->fd is the memfd with the MMIO and DUS
 * regions at the offsets that dev_info states, so that a driver maps them as
 * it would map a device node.
 */
#include "chan/soft.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/core.h"
#include "chan/place.h"
#include "chan/session.h"

#define SLICE_MS 500

/* -- discovery ------------------------------------------------------------- */

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

static int take_record(const char *socket, const char *sysfs,
		       const struct wf_broker_record *record,
		       struct uacce_dev_info *dev)
{
	static_assert(sizeof(record->name) == WD_NAME_SIZE &&
			      sizeof(record->api) == WD_NAME_SIZE &&
			      sizeof(record->algs) == WD_ALGS_SIZE,
		      "the same texts");
	if (!ends(record->name, sizeof(record->name)) ||
	    !ends(record->api, sizeof(record->api)) ||
	    !ends(record->algs, sizeof(record->algs)) ||
	    record->iommu_type < WD_IOMMU_SVA ||
	    record->iommu_type > WD_IOMMU_NONE)
		return -EPROTO;
	*dev = (struct uacce_dev_info){
		.kind = WD_DEV_SOFT,
		.node_id = record->node_id,
		.numa_dis = wf_chan_uacce_distance(sysfs, wf_chan_uacce_here(),
						   record->node_id),
		.iommu_type = record->iommu_type,
		.flags = record->flags,
		.available_instances = record->available_instances,
	};
	for (int i = 0; i < UACCE_QFRT_MAX; i++) {
		dev->qfrs_offset[i] = record->offset[i];
		dev->qfrs_size[i] = record->size[i];
	}
	strcpy(dev->name, record->name);
	strcpy(dev->api, record->api);
	strcpy(dev->algs, record->algs);
	return snprintf(dev->dev_path, sizeof(dev->dev_path), "%s:%s", socket,
			record->name) < (int)sizeof(dev->dev_path) ?
		       0 :
		       -ENAMETOOLONG;
}

/* Every device of one session, or the one of that name. */
static int scan_session(struct wf_chan_session *session, const char *socket,
			const char *sysfs, const char *name,
			struct wf_chan_devices *devices)
{
	struct wf_broker_request request = { .op = WF_BROKER_DEVICE };
	struct wf_broker_reply reply;
	struct uacce_dev_info dev;
	int err;

	for (; request.index < WF_BROKER_DEVICES_MAX; request.index++) {
		err = wf_chan_session_call(session, &request, -1, &reply, NULL);
		if (err) /* past the last, or gone */
			return 0;
		if (take_record(socket, sysfs, &reply.record, &dev))
			continue;
		if (name && strcmp(name, dev.name))
			continue;
		err = wf_chan_devices_add(devices, &dev);
		if (err)
			return err;
	}
	return 0;
}

static int scan_socket(const char *socket, const char *sysfs, const char *name,
		       struct wf_chan_devices *devices)
{
	struct wf_chan_session *session;
	int err;

	err = wf_chan_session_get(socket, &session);
	if (err && err != -ENODEV)
		devices->refused = err;
	if (err)
		return err == -ENOMEM ? err : 0;
	err = scan_session(session, socket, sysfs, name, devices);
	wf_chan_session_put(session);
	return err;
}

static int scan_places(const char *sysfs, struct wf_chan_devices *devices)
{
	char sockets[WF_CHAN_PLACES][WF_CHAN_PLACE_SIZE];
	int n = wf_chan_place_list(sockets), err = 0;

	for (int i = 0; i < n && !err; i++)
		err = scan_socket(sockets[i], sysfs, NULL, devices);
	return err;
}

int wf_chan_soft_scan(const char *sysfs, struct wf_chan_devices *devices)
{
	const char *list = secure_getenv(WF_BROKER_SOCKETS_ENV);
	char *copy, *word, *rest = NULL;
	int err = 0;

	if (!list)
		return scan_places(sysfs, devices);
	copy = strdup(list);
	if (!copy)
		return -ENOMEM;
	for (word = strtok_r(copy, ":", &rest); word && !err;
	     word = strtok_r(NULL, ":", &rest))
		err = scan_socket(word, sysfs, NULL, devices);
	free(copy);
	return err;
}

static int split_path(const char *path, char *socket, size_t size,
		      const char **name)
{
	const char *colon = strrchr(path, ':');

	if (!colon || colon == path || (size_t)(colon - path) >= size)
		return -ENODEV;
	memcpy(socket, path, (size_t)(colon - path));
	socket[colon - path] = '\0';
	*name = colon + 1;
	return 0;
}

int wf_chan_soft_lookup(const char *sysfs, const char *path,
			struct uacce_dev_info *dev)
{
	struct wf_chan_devices devices = { 0 };
	char socket[WD_PATH_SIZE];
	const char *name;
	int err;

	err = split_path(path, socket, sizeof(socket), &name);
	if (err)
		return err;
	err = scan_socket(socket, sysfs, name, &devices);
	if (!err && !devices.count)
		err = devices.refused ? devices.refused : -ENODEV;
	if (!err)
		*dev = devices.all[0];
	free(devices.all);
	return err;
}

/* -- channels -------------------------------------------------------------- */

/* Large enough, and sealed against shrinking. */
static bool holds(int fd, uint64_t offset, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return !fstat(fd, &st) && seals >= 0 && seals & F_SEAL_SHRINK &&
	       offset <= (uint64_t)st.st_size &&
	       size <= (uint64_t)st.st_size - offset;
}

static void close_all(const int fds[WF_BROKER_FDS_MAX])
{
	for (int i = 0; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* Takes the regions that came with an OPEN. */
static int take_regions(struct wd_chan *ch, const int fds[WF_BROKER_FDS_MAX])
{
	const struct uacce_dev_info *dev = ch->dev_info;
	int regions = fds[WF_BROKER_FD_REGIONS];

	for (int i = 0; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] < 0)
			return -EPROTO;
	}
	for (int i = UACCE_QFRT_MMIO; i <= UACCE_QFRT_DUS; i++) {
		if (!holds(regions, dev->qfrs_offset[i], dev->qfrs_size[i]))
			return -EPROTO;
	}
	ch->fd = regions;
	ch->core->kick_fd = fds[WF_BROKER_FD_KICK];
	ch->core->event_fd = fds[WF_BROKER_FD_EVENT];
	return 0;
}

static int request_of(struct wd_chan *ch, enum wf_broker_op op)
{
	struct wf_broker_request request = { .op = (uint16_t)op,
					     .chan = ch->core->id };
	struct wf_broker_reply reply;

	return wf_chan_session_call(ch->core->session, &request, -1, &reply,
				    NULL);
}

static int soft_open(struct wd_chan *ch)
{
	struct wf_broker_request request = { .op = WF_BROKER_OPEN };
	struct uacce_dev_info *dev = ch->dev_info;
	struct wf_chan_core *core = ch->core;
	struct wf_broker_reply reply = { 0 };
	char socket[WD_PATH_SIZE];
	const char *name;
	int fds[WF_BROKER_FDS_MAX], memory = -1;
	int err;

	err = split_path(dev->dev_path, socket, sizeof(socket), &name);
	if (err)
		return err;
	snprintf(request.name, sizeof(request.name), "%s", name);
	err = wf_chan_session_get(socket, &core->session);
	if (err)
		return err;
	/* Only now, and only to a device that needs it: a program that lists
	 * devices gives nobody access to its memory. */
	if (dev->iommu_type == WD_IOMMU_SVA)
		memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	err = wf_chan_session_call(core->session, &request, memory, &reply,
				   fds);
	if (memory >= 0)
		close(memory);
	core->id = reply.chan;
	if (!err) {
		err = take_regions(ch, fds);
		if (!err)
			return 0;
		wf_warn("%s: the regions are not what the device stated",
			dev->name);
		close_all(fds);
	}
	/* The device has opened the channel, but it cannot be used here. */
	if (core->id)
		request_of(ch, WF_BROKER_CLOSE);
	wf_chan_session_put(core->session);
	core->session = NULL;
	return err;
}

static int soft_stop(struct wd_chan *ch)
{
	int err = request_of(ch, WF_BROKER_CLOSE);

	ch->core->released = !err;
	return err;
}

static void soft_close(struct wd_chan *ch)
{
	struct wf_chan_core *core = ch->core;

	if (!core->foreign) {
		close(core->event_fd);
		close(core->kick_fd);
	}
	wf_chan_session_put(core->session);
}

static int soft_start(struct wd_chan *ch)
{
	return request_of(ch, WF_BROKER_START);
}

static bool soft_alive(struct wd_chan *ch)
{
	return wf_chan_session_alive(ch->core->session);
}

/* An interrupt, or the end of the device. 0, -ETIMEDOUT, -EINTR, -ENODEV. */
static int wait_slice(struct wf_chan_core *core, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = core->event_fd, .events = POLLIN },
		{ .fd = wf_chan_session_fd(core->session),
		  .events = POLLRDHUP },
	};
	uint64_t value;
	int n;

	n = poll(fds, 2, timeout_ms);
	if (n < 0)
		return -errno;
	/* Results that were completed before the end can still be taken. */
	if (fds[0].revents & POLLIN) {
		/* Not blocking: another thread may have been faster. */
		return read(core->event_fd, &value, sizeof(value)) < 0 &&
				       errno != EAGAIN ?
			       -errno :
			       0;
	}
	if (n)
		wf_chan_session_end(core->session);
	return wf_chan_session_alive(core->session) ? -ETIMEDOUT : -ENODEV;
}

/* In slices: if a device is stopped, poll() does not see an end. */
static int soft_wait(struct wd_chan *ch, int timeout_ms)
{
	uint64_t now = wf_base_clock_ns(), end;
	int err;

	end = timeout_ms < 0 ? UINT64_MAX :
			       now + (uint64_t)timeout_ms * WF_NS_PER_MS;
	do {
		uint64_t left = end > now ? end - now : 0;

		err = wait_slice(ch->core,
				 left > SLICE_MS * WF_NS_PER_MS ?
					 SLICE_MS :
					 (int)((left + WF_NS_PER_MS - 1) /
					       WF_NS_PER_MS));
		now = wf_base_clock_ns();
	} while (err == -ETIMEDOUT && now < end);
	return err;
}

static int soft_kick(struct wd_chan *ch)
{
	const uint64_t one = 1;

	if (!soft_alive(ch))
		return -ENODEV;
	/* EAGAIN: as many kicks as possible are pending already. */
	if (write(ch->core->kick_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

/* Whether we could accept a descriptor and map this much: memory that the
 * device has reserved cannot be freed before the channel is. *@va: the
 * place. */
static int make_room(const struct wf_chan_session *session, size_t size,
		     void **va)
{
	int spare = fcntl(wf_chan_session_fd(session), F_DUPFD_CLOEXEC, 0);

	if (spare < 0)
		return errno == EMFILE ? -EMFILE : -ENODEV;
	close(spare);
	*va = mmap(NULL, size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return *va == MAP_FAILED ? -ENOMEM : 0;
}

static int soft_reserve(struct wd_chan *ch, size_t size, void **va,
			uint64_t *dma)
{
	struct wf_broker_request request = {
		.op = WF_BROKER_RESERVE,
		.chan = ch->core->id,
		.size = size,
	};
	struct wf_broker_reply reply;
	int fds[WF_BROKER_FDS_MAX];
	bool sva = ch->dev_info->iommu_type == WD_IOMMU_SVA;
	int err;

	err = make_room(ch->core->session, size, va);
	if (err)
		return err;
	/* SVA: the address in jobs. */
	request.offset = sva ? (uint64_t)(uintptr_t)*va : 0;
	err = wf_chan_session_call(ch->core->session, &request, -1, &reply,
				   fds);
	/* With these three errors the device may have mapped the memory, or may
	 * do so later. With any other it has refused. */
	if (err && err != -EMFILE && err != -ETIMEDOUT && err != -EPROTO)
		sva = false;
	if (err)
		goto err_room;
	/* 0 would be no address, and none may be beyond the last. */
	if (!reply.dma || reply.dma + size < reply.dma ||
	    !holds(fds[0], 0, size) || (sva && reply.dma != request.offset))
		err = -EPROTO;
	if (!err)
		err = wf_chan_memory_map(fds[0], 0, size, va);
	close_all(fds);
	if (err)
		goto err_room;
	*dma = reply.dma;
	return 0;

err_room:
	/* Nothing else may get an address that means other memory to a device. */
	if (!sva)
		munmap(*va, size);
	return err;
}

static int soft_attach(struct wd_chan *ch, int fd, uint64_t offset, size_t size,
		       uint64_t *dma)
{
	struct wf_broker_request request = {
		.op = WF_BROKER_ATTACH,
		.chan = ch->core->id,
		.offset = offset,
		.size = size,
	};
	struct wf_broker_reply reply;
	int err;

	if (fd < 0)
		return -EBADF;
	/* The device refuses memory that could be shrunk. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	err = wf_chan_session_call(ch->core->session, &request, fd, &reply,
				   NULL);
	if (!err)
		*dma = reply.dma;
	return err;
}

static int soft_share(struct wd_chan *owner, struct wd_chan *target)
{
	struct wf_broker_request request = {
		.op = WF_BROKER_SHARE,
		.chan = owner->core->id,
		.target = target->core->id,
	};
	struct wf_broker_reply reply;

	/* Another device process does not know our domain. */
	if (owner->core->session != target->core->session)
		return -EINVAL;
	return wf_chan_session_call(owner->core->session, &request, -1, &reply,
				    NULL);
}

const struct wf_chan_ops wf_chan_soft_ops = {
	.open = soft_open,
	.stop = soft_stop,
	.close = soft_close,
	.start = soft_start,
	.wait = soft_wait,
	.kick = soft_kick,
	.alive = soft_alive,
	.reserve = soft_reserve,
	.attach = soft_attach,
	.share = soft_share,
};
