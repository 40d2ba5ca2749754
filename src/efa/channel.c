/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels: a pipe that carries the addresses of completion queues,
 * eight bytes each, as the kernel's descriptor does. libfabric reads it by
 * itself. Each armed queue writes one event; the thread that does the device's
 * work writes it. A program may wait in a read; we must not, so we read by a
 * file description of our own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "efa/efa.h"

static struct wf_efa_channel *channel_of(struct ibv_comp_channel *channel)
{
	return (struct wf_efa_channel *)channel;
}

/* The end @fd of a pipe once more, with flags of its own. */
static int reopen(int fd)
{
	char path[32];
	int again, reason;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (again < 0) {
		reason = errno;
		wf_warn("efa: no completion channel: %s: %s", path,
			strerror(reason));
		errno = reason;
	}
	return again;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct wf_efa_channel *channel = calloc(1, sizeof(*channel));
	int fds[2], saved;

	if (!channel)
		return NULL;
	if (pipe2(fds, O_CLOEXEC))
		goto err_channel;
	/* A reader may wait; a thread that does the device's work must not. */
	if (fcntl(fds[1], F_SETFL, O_NONBLOCK))
		goto err_pipe;
	channel->from = reopen(fds[0]);
	if (channel->from < 0)
		goto err_pipe;
	channel->channel.context = context;
	channel->channel.fd = fds[0];
	channel->to = fds[1];
	pthread_mutex_init(&channel->lock, NULL);
	return &channel->channel;

err_pipe:
	saved = errno;
	close(fds[0]);
	close(fds[1]);
	errno = saved;
err_channel:
	free(channel);
	return NULL;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *base)
{
	struct wf_efa_channel *channel = channel_of(base);

	if (base->refcnt)
		return EBUSY;
	close(base->fd);
	close(channel->from);
	close(channel->to);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
	return 0;
}

void wf_efa_channel_event(void *arg)
{
	struct wf_efa_cq *cq = arg;
	uint64_t event = (uintptr_t)cq;

	/* One event for each armed queue fits into any pipe, unless thousands
	 * of queues share it and nobody reads. */
	if (write(channel_of(cq->cq.channel)->to, &event, sizeof(event)) ==
	    sizeof(event))
		atomic_fetch_add(&cq->events, 1);
	else
		wf_warn("efa: a completion channel is full, an event is lost");
}

int ibv_get_cq_event(struct ibv_comp_channel *base, struct ibv_cq **cq,
		     void **context)
{
	uint64_t event;
	ssize_t got = read(base->fd, &event, sizeof(event));

	if (got != sizeof(event)) {
		if (got >= 0)
			errno = EIO;
		return -1;
	}
	*cq = (struct ibv_cq *)(uintptr_t)event;
	*context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += count;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* An event that the program will not see: a program that destroys its queue
 * must not wait until it is acknowledged. The queue lives, because its
 * destruction withdraws its events under the lock of the channel. */
static void lose(uint64_t event, const char *why)
{
	struct wf_efa_cq *cq = (struct wf_efa_cq *)(uintptr_t)event;

	wf_warn("efa: %s, an event is lost", why);
	pthread_mutex_lock(&cq->cq.mutex);
	atomic_fetch_sub(&cq->events, 1);
	pthread_cond_signal(&cq->cq.cond);
	pthread_mutex_unlock(&cq->cq.mutex);
}

/* Takes every event out and puts those of others back. The program may read at
 * the same time. Under the lock of the channel. */
static void withdraw(struct wf_efa_channel *channel, struct wf_efa_cq *cq)
{
	uint64_t event, *kept = NULL;
	size_t count = 0;

	while (read(channel->from, &event, sizeof(event)) == sizeof(event)) {
		uint64_t *more;

		if (event == (uintptr_t)cq) {
			atomic_fetch_sub(&cq->events, 1);
			continue;
		}
		more = realloc(kept, (count + 1) * sizeof(*kept));
		if (!more) {
			lose(event, "no memory");
			continue;
		}
		kept = more;
		kept[count++] = event;
	}
	for (size_t i = 0; i < count; i++) {
		if (write(channel->to, &kept[i], sizeof(*kept)) < 0)
			lose(kept[i], "a completion channel is full");
	}
	free(kept);
}

void wf_efa_channel_leave(struct wf_efa_cq *cq)
{
	struct wf_efa_channel *channel = channel_of(cq->cq.channel);

	pthread_mutex_lock(&channel->lock);
	withdraw(channel, cq);
	pthread_mutex_unlock(&channel->lock);
	pthread_mutex_lock(&cq->cq.mutex);
	while (cq->cq.comp_events_completed != atomic_load(&cq->events))
		pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
	pthread_mutex_unlock(&cq->cq.mutex);
}
