/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of clients, one function each. A request is data from outside:
 * its numbers are checked here, its limits come from the configuration.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "devd/kept.h"
#include "devd/worker.h"

struct answer {
	struct wf_broker_reply *reply;
	int *fds;
};

typedef int (*handler)(struct wf_devd_client *client,
		       const struct wf_broker_request *request,
		       struct wf_devd_gift *gift, struct answer *answer);

static struct wf_devd_chan *find_chan(struct wf_devd_client *client,
				      uint32_t id)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &client->chans) {
		struct wf_devd_chan *chan =
			wf_container_of(pos, struct wf_devd_chan, in_client);

		if (chan->id == id && !chan->closing)
			return chan;
	}
	return NULL;
}

/* -- hello, device --------------------------------------------------------- */

static int do_hello(struct wf_devd_client *client,
		    const struct wf_broker_request *request,
		    struct wf_devd_gift *gift, struct answer *answer)
{
	(void)request;
	(void)gift;
	(void)answer;
	client->greeted = true;
	return 0;
}

static int do_device(struct wf_devd_client *client,
		     const struct wf_broker_request *request,
		     struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd *devd = client->devd;

	(void)gift;
	if (request->index >= devd->config.n_devices)
		return -ENOENT;
	wf_devd_chan_record(devd, &devd->devices[request->index],
			    &answer->reply->record);
	return 0;
}

/* -- channels -------------------------------------------------------------- */

static struct wf_devd_device *find_device(struct wf_devd *devd,
					  const char *name)
{
	for (unsigned int i = 0; i < devd->config.n_devices; i++) {
		if (!strncmp(devd->devices[i].config.name, name, WD_NAME_SIZE))
			return &devd->devices[i];
	}
	return NULL;
}

/* Memory that is never available (a file system of the client has to provide it)
 * blocks a worker, so that of other users is accessed only if that is allowed. */
static bool may_reach(const struct wf_devd_client *client,
		      const struct wf_devd_gift *gift)
{
	return gift->memory >= 0 &&
	       (client->user->own || client->devd->config.allow_sva);
}

/* Memory that a client keeps of channels that it has closed counts as they
 * did. */
static bool may_open(const struct wf_devd_client *client)
{
	const struct wf_devd *devd = client->devd;

	return client->n_chans + client->n_kept <
		       devd->config.client_channels &&
	       wf_devd_user_may_open(devd, client->user);
}

static int open_on(struct wf_devd_client *client, struct wf_devd_device *device,
		   struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd *devd = client->devd;
	struct wf_devd_chan *chan;
	int err;

	if (device->in_use >= device->config.instances)
		return -EBUSY;
	if (!may_open(client))
		wf_devd_kept_sweep_user(devd, client->user);
	if (!may_open(client)) {
		wf_info("process %d has %u channels, its user %u, and memory of %u that are "
			"closed: the limit is reached",
			(int)client->pid, client->n_chans, client->user->chans,
			client->user->n_kept);
		return -EBUSY;
	}
	if (device->config.iommu_type == WD_IOMMU_SVA &&
	    !may_reach(client, gift)) {
		wf_info("process %d gets no channel of %s: %s",
			(int)client->pid, device->config.name,
			gift->memory < 0 ?
				"it has not passed its memory, or is in "
				"another PID namespace" :
				"users besides the owner need --allow-sva");
		return -EPERM;
	}
	err = wf_devd_chan_make(client, device, &chan,
				&answer->fds[WF_BROKER_FD_REGIONS]);
	if (err)
		return err;
	answer->fds[WF_BROKER_FD_KICK] = dup(chan->kick_fd);
	answer->fds[WF_BROKER_FD_EVENT] = dup(chan->event_fd);
	if (answer->fds[WF_BROKER_FD_KICK] < 0 ||
	    answer->fds[WF_BROKER_FD_EVENT] < 0) {
		err = -errno;
		wf_devd_chan_free(chan);
		return err;
	}
	if (chan->sva) {
		chan->memory = gift->memory;
		gift->memory = -1;
	}
	answer->reply->chan = chan->id;
	wf_devd_chan_record(devd, device, &answer->reply->record);
	return 0;
}

static int do_open(struct wf_devd_client *client,
		   const struct wf_broker_request *request,
		   struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd_device *device =
		find_device(client->devd, request->name);
	int err;

	(void)gift;
	if (!device)
		return -ENODEV;
	err = open_on(client, device, gift, answer);
	device->turned_away += err != 0;
	client->user->turned_away += err != 0;
	return err;
}

static int do_start(struct wf_devd_client *client,
		    const struct wf_broker_request *request,
		    struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd_chan *chan = find_chan(client, request->chan);
	struct wf_devd_worker *workers = client->devd->workers;
	struct wf_devd_worker *least = workers;

	(void)gift;
	(void)answer;
	if (!chan || chan->worker)
		return -EINVAL;
	for (unsigned int i = 1; i < client->devd->config.workers; i++) {
		if (workers[i].load < least->load)
			least = &workers[i];
	}
	wf_devd_worker_give(least, chan);
	return 0;
}

void wf_devd_request_close(struct wf_devd_chan *chan)
{
	if (chan->closing)
		return;
	chan->closing = true;
	if (chan->worker)
		wf_devd_worker_recall(chan);
	else
		wf_devd_client_reap(chan);
}

/* -- memory ---------------------------------------------------------------- */

static bool may_reserve(const struct wf_devd_client *client, uint64_t size)
{
	uint64_t limit = client->devd->config.client_memory;

	return size <= limit && client->memory <= limit - size &&
	       wf_devd_user_may_reserve(client->devd, client->user, size);
}

static int check_memory(struct wf_devd_client *client,
			const struct wf_devd_chan *chan, uint64_t size)
{
	if (!chan || !size || size % WF_DEVD_PAGE)
		return -EINVAL;
	if (atomic_load(&chan->region))
		return -EEXIST;
	if (!may_reserve(client, size))
		wf_devd_kept_sweep_user(client->devd, client->user);
	if (may_reserve(client, size))
		return 0;
	wf_info("process %d asks for %llu bytes and has %llu of %llu",
		(int)client->pid, (unsigned long long)size,
		(unsigned long long)client->memory,
		(unsigned long long)client->devd->config.client_memory);
	return -ENOMEM;
}

/* Finds the addresses; the region becomes the channel's. @va: where the client
 * has it, which is its address in SVA. It is checked no further: it is only what
 * is subtracted from addresses in jobs, which must then be in the region. */
static int place(struct wf_devd_chan *chan, struct wf_devd_region *region,
		 uint64_t va, struct answer *answer)
{
	struct wf_devd_client *client = chan->client;

	if (chan->sva) {
		region->dma = va;
	} else if (chan->device->config.iommu_type == WD_IOMMU_NONE) {
		region->dma =
			wf_devd_arena_take(&client->devd->arena, region->size);
		if (!region->dma) {
			wf_devd_chan_put_region(client->devd, region);
			return -ENOMEM;
		}
		region->arena = &client->devd->arena;
	} else {
		/* An unused page between two regions. */
		region->dma = client->next_iova;
		client->next_iova += region->size + WF_DEVD_PAGE;
	}
	wf_devd_chan_charge(chan, region);
	answer->reply->dma = region->dma;
	answer->reply->size = region->size;
	/* Pairs with the acquire in job.c. */
	atomic_store_explicit(&chan->region, region, memory_order_release);
	return 0;
}

static int do_reserve(struct wf_devd_client *client,
		      const struct wf_broker_request *request,
		      struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd_chan *chan = find_chan(client, request->chan);
	struct wf_devd_region *region;
	int err;

	(void)gift;
	err = check_memory(client, chan, request->size);
	if (!err && chan->sva && !request->offset)
		err = -EINVAL;
	if (!err)
		err = wf_devd_region_make(&region, request->size,
					  &answer->fds[0]);
	return err ? err : place(chan, region, request->offset, answer);
}

static int do_attach(struct wf_devd_client *client,
		     const struct wf_broker_request *request,
		     struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd_chan *chan = find_chan(client, request->chan);
	struct wf_devd_region *region = gift->region;
	int err;

	err = check_memory(client, chan, request->size);
	if (!err && chan->sva)
		err = -EOPNOTSUPP;
	if (!err)
		err = gift->status;
	if (err || !region)
		return err ? err : -EINVAL;
	gift->region = NULL;
	return place(chan, region, 0, answer);
}

static int do_share(struct wf_devd_client *client,
		    const struct wf_broker_request *request,
		    struct wf_devd_gift *gift, struct answer *answer)
{
	struct wf_devd_chan *chan = find_chan(client, request->chan);
	struct wf_devd_chan *target = find_chan(client, request->target);
	struct wf_devd_region *region;

	(void)gift;
	if (!chan || !target || chan == target || chan->sva ||
	    chan->device->config.iommu_type !=
		    target->device->config.iommu_type)
		return -EINVAL;
	region = atomic_load(&chan->region);
	if (!region || atomic_load(&target->region))
		return -EINVAL;
	region->refs++;
	answer->reply->dma = region->dma;
	answer->reply->size = region->size;
	atomic_store_explicit(&target->region, region, memory_order_release);
	return 0;
}

/* -- which one ------------------------------------------------------------- */

static const handler handlers[WF_BROKER_OPS] = {
	[WF_BROKER_HELLO] = do_hello,	  [WF_BROKER_DEVICE] = do_device,
	[WF_BROKER_OPEN] = do_open,	  [WF_BROKER_START] = do_start,
	[WF_BROKER_RESERVE] = do_reserve, [WF_BROKER_ATTACH] = do_attach,
	[WF_BROKER_SHARE] = do_share,
};

bool wf_devd_request_handle(struct wf_devd_client *client,
			    const struct wf_broker_request *request,
			    struct wf_devd_gift *gift,
			    struct wf_broker_reply *reply, int *fds)
{
	struct answer answer = { reply, fds };
	struct wf_devd_chan *chan;

	*reply = (struct wf_broker_reply){
		.magic = WF_BROKER_MAGIC,
		.version = WF_BROKER_VERSION,
		.op = request->op,
	};
	if (request->magic != WF_BROKER_MAGIC ||
	    request->version != WF_BROKER_VERSION ||
	    (!client->greeted && request->op != WF_BROKER_HELLO)) {
		reply->status = -EPROTO;
		return true;
	}
	if (request->op == WF_BROKER_CLOSE) {
		chan = find_chan(client, request->chan);
		if (chan) {
			chan->answer = true;
			wf_devd_request_close(chan);
			return false;
		}
		reply->status = -EINVAL;
		return true;
	}
	if (request->op >= WF_BROKER_OPS || !handlers[request->op]) {
		reply->status = -EOPNOTSUPP;
		return true;
	}
	reply->status = handlers[request->op](client, request, gift, &answer);
	return true;
}
