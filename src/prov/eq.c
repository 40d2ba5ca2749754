/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues: a list under a mutex. Control events are rare, so every
 * threading model takes the mutex.
 */
#include "prov/eq.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/list.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/thread.h"
#include "prov/fabric.h"
#include "prov/nosys.h"
#include "prov/provider.h"

#define DEFAULT_SIZE 256

struct event {
	struct wf_list link;
	bool is_error;
	uint32_t type;
	size_t len;
	unsigned char data[]; /* the entry; after an error's, its err_data */
};

struct wf_prov_eq {
	struct fid_eq fid;
	struct wf_prov_fabric *fabric;
	atomic_int refs; /* objects bound to this queue */
	enum fi_wait_obj wait_obj;
	int fd; /* readable while there are events; -1 = none */
	bool writable;
	size_t size; /* what fi_eq_write() may fill */
	struct wf_os_mutex lock;
	struct wf_os_cond more;
	struct wf_list events;
	size_t count;
	/* The error that was read last: its err_data belongs to the user
	 * until the next read. */
	struct event *last_error;
};

static struct wf_prov_eq *eq_of(struct fid *fid)
{
	return wf_container_of(fid, struct wf_prov_eq, fid.fid);
}

struct wf_prov_eq *wf_prov_eq_of(struct fid_eq *fid)
{
	return eq_of(&fid->fid);
}

void wf_prov_eq_ref(struct wf_prov_eq *eq)
{
	atomic_fetch_add(&eq->refs, 1);
}

void wf_prov_eq_unref(struct wf_prov_eq *eq)
{
	atomic_fetch_sub(&eq->refs, 1);
}

bool wf_prov_eq_empty(struct wf_prov_eq *eq)
{
	bool empty;

	wf_os_mutex_lock(&eq->lock);
	empty = wf_base_list_empty(&eq->events);
	wf_os_mutex_unlock(&eq->lock);
	return empty;
}

static struct event *new_event(uint32_t type, size_t len)
{
	struct event *event = malloc(sizeof(*event) + len);

	if (!event)
		return NULL;
	event->is_error = false;
	event->type = type;
	event->len = len;
	return event;
}

static void add_locked(struct wf_prov_eq *eq, struct event *event)
{
	int err = 0;

	wf_base_list_add_tail(&eq->events, &event->link);
	if (!eq->count++ && eq->fd >= 0)
		err = wf_os_eventfd_write(eq->fd, 1);
	if (err)
		WF_FI_WARN(FI_LOG_EQ, "wait descriptor not signaled: %s\n",
			   fi_strerror(-err));
	wf_os_cond_broadcast(&eq->more);
}

static void remove_locked(struct wf_prov_eq *eq, struct event *event)
{
	uint64_t sum;
	int err = 0;

	wf_base_list_del(&event->link);
	if (!--eq->count && eq->fd >= 0)
		err = wf_os_eventfd_read(eq->fd, &sum);
	if (err)
		WF_FI_WARN(FI_LOG_EQ, "wait descriptor not reset: %s\n",
			   fi_strerror(-err));
}

static struct event *first_locked(struct wf_prov_eq *eq)
{
	if (wf_base_list_empty(&eq->events))
		return NULL;
	return wf_container_of(eq->events.next, struct event, link);
}

static void drop_last_error_locked(struct wf_prov_eq *eq)
{
	free(eq->last_error);
	eq->last_error = NULL;
}

int wf_prov_eq_post(struct wf_prov_eq *eq, uint32_t event, const void *buf,
		    size_t len, uint64_t flags)
{
	struct event *item = new_event(event, len);

	(void)flags;
	if (!item)
		return -FI_ENOMEM;
	if (len)
		memcpy(item->data, buf, len);
	wf_os_mutex_lock(&eq->lock);
	add_locked(eq, item);
	wf_os_mutex_unlock(&eq->lock);
	return 0;
}

int wf_prov_eq_post_err(struct wf_prov_eq *eq,
			const struct fi_eq_err_entry *err)
{
	size_t extra = err->err_data ? err->err_data_size : 0;
	struct event *item = new_event(0, sizeof(*err) + extra);

	if (!item)
		return -FI_ENOMEM;
	item->is_error = true;
	memcpy(item->data, err, sizeof(*err));
	if (extra)
		memcpy(item->data + sizeof(*err), err->err_data, extra);
	wf_os_mutex_lock(&eq->lock);
	add_locked(eq, item);
	wf_os_mutex_unlock(&eq->lock);
	return 0;
}

static ssize_t read_locked(struct wf_prov_eq *eq, uint32_t *type, void *buf,
			   size_t len, uint64_t flags)
{
	struct event *event = first_locked(eq);
	size_t copied;

	if (!event)
		return -FI_EAGAIN;
	if (event->is_error)
		return -FI_EAVAIL;
	drop_last_error_locked(eq);
	copied = buf ? event->len : 0;
	if (copied > len)
		copied = len;
	if (copied)
		memcpy(buf, event->data, copied);
	if (type)
		*type = event->type;
	if (!(flags & FI_PEEK)) {
		remove_locked(eq, event);
		free(event);
	}
	return (ssize_t)copied;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf,
		       size_t len, uint64_t flags)
{
	struct wf_prov_eq *eq = wf_prov_eq_of(fid);
	ssize_t ret;

	wf_os_mutex_lock(&eq->lock);
	ret = read_locked(eq, type, buf, len, flags);
	wf_os_mutex_unlock(&eq->lock);
	return ret;
}

/* Hands out the error's own data: into the user's buffer where one is given
 * (API 1.5 on), else by a pointer that lives until the next read. */
static void copy_error(struct wf_prov_eq *eq, const struct event *event,
		       struct fi_eq_err_entry *to)
{
	size_t extra = event->len - sizeof(*to);
	void *buf = NULL;
	size_t room = 0;

	if (FI_VERSION_GE(eq->fabric->api_version, FI_VERSION(1, 5))) {
		buf = to->err_data;
		room = to->err_data_size;
	}
	memcpy(to, event->data, sizeof(*to));
	to->err_data = extra ? (void *)(event->data + sizeof(*to)) : NULL;
	to->err_data_size = extra;
	if (!buf || !room)
		return;
	to->err_data_size = extra < room ? extra : room;
	if (extra)
		memcpy(buf, to->err_data, to->err_data_size);
	to->err_data = buf;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			  uint64_t flags)
{
	struct wf_prov_eq *eq = wf_prov_eq_of(fid);
	ssize_t ret = -FI_EAGAIN;
	struct event *event;

	wf_os_mutex_lock(&eq->lock);
	event = first_locked(eq);
	if (!event || !event->is_error)
		goto out;
	copy_error(eq, event, buf);
	ret = sizeof(*buf);
	if (!(flags & FI_PEEK)) {
		remove_locked(eq, event);
		drop_last_error_locked(eq);
		eq->last_error = event;
	}
out:
	wf_os_mutex_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf,
			size_t len, uint64_t flags)
{
	struct wf_prov_eq *eq = wf_prov_eq_of(fid);
	struct event *event;
	bool full;

	if (!eq->writable || flags || (len && !buf)) {
		WF_FI_WARN(FI_LOG_EQ, "write: %s\n",
			   eq->writable ? "flags or buffer are not valid" :
					  "queue was opened without FI_WRITE");
		return -FI_EINVAL;
	}
	event = new_event(type, len);
	if (!event)
		return -FI_ENOMEM;
	if (len)
		memcpy(event->data, buf, len);
	wf_os_mutex_lock(&eq->lock);
	full = eq->count >= eq->size;
	if (!full)
		add_locked(eq, event);
	wf_os_mutex_unlock(&eq->lock);
	if (!full)
		return (ssize_t)len;
	free(event);
	return -FI_EAGAIN;
}

/* Waits until there is an event. 0, or -FI_EAGAIN when the time is up. */
static int wait_locked(struct wf_prov_eq *eq, const uint64_t *deadline)
{
	while (wf_base_list_empty(&eq->events)) {
		bool in_time = true;

		if (deadline)
			in_time = wf_os_cond_wait_until(&eq->more, &eq->lock,
							*deadline);
		else
			wf_os_cond_wait(&eq->more, &eq->lock);
		if (!in_time && wf_base_list_empty(&eq->events))
			return -FI_EAGAIN;
	}
	return 0;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	struct wf_prov_eq *eq = wf_prov_eq_of(fid);
	uint64_t deadline = 0;
	ssize_t ret;

	if (eq->wait_obj == FI_WAIT_NONE) {
		WF_FI_WARN(FI_LOG_EQ,
			   "sread: queue was opened with FI_WAIT_NONE\n");
		return -FI_ENOSYS;
	}
	if (timeout >= 0)
		deadline =
			wf_base_clock_ns() + (uint64_t)timeout * WF_NS_PER_MS;
	wf_os_mutex_lock(&eq->lock);
	ret = wait_locked(eq, timeout >= 0 ? &deadline : NULL);
	if (!ret)
		ret = read_locked(eq, type, buf, len, flags);
	wf_os_mutex_unlock(&eq->lock);
	return ret;
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	const char *text = fi_strerror(abs(prov_errno));

	(void)fid;
	(void)err_data;
	if (!buf || !len)
		return text;
	strncpy(buf, text, len - 1);
	buf[len - 1] = '\0';
	return buf;
}

static int get_wait(struct wf_prov_eq *eq, void *arg)
{
	struct fi_mutex_cond *pair = arg;

	switch (eq->wait_obj) {
	case FI_WAIT_FD:
		*(int *)arg = eq->fd;
		return 0;
	case FI_WAIT_MUTEX_COND:
		pair->mutex = &eq->lock.native;
		pair->cond = &eq->more.native;
		return 0;
	default:
		return -FI_ENODATA;
	}
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct wf_prov_eq *eq = eq_of(fid);

	switch (command) {
	case FI_GETWAIT:
		return get_wait(eq, arg);
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int eq_close(struct fid *fid)
{
	struct wf_prov_eq *eq = eq_of(fid);
	struct wf_list *pos, *tmp;

	if (atomic_load(&eq->refs)) {
		WF_FI_WARN(FI_LOG_EQ, "event queue is in use\n");
		return -FI_EBUSY;
	}
	wf_list_for_each (pos, tmp, &eq->events)
		free(wf_container_of(pos, struct event, link));
	free(eq->last_error);
	if (eq->fd >= 0)
		wf_os_close(eq->fd);
	wf_os_cond_destroy(&eq->more);
	wf_os_mutex_destroy(&eq->lock);
	atomic_fetch_sub(&eq->fabric->refs, 1);
	free(eq);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = wf_prov_nosys_bind,
	.control = eq_control,
	.ops_open = wf_prov_nosys_ops_open,
	.tostr = wf_prov_nosys_tostr,
	.ops_set = wf_prov_nosys_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int check_attr(const struct fi_eq_attr *attr)
{
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_YIELD:
		break;
	default:
		WF_FI_WARN(FI_LOG_EQ, "wait object %d is not supported\n",
			   (int)attr->wait_obj);
		return -FI_ENOSYS;
	}
	/* FI_AFFINITY is a wish about interrupts, of which there are none. */
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY)) {
		WF_FI_WARN(FI_LOG_EQ, "flags 0x%llx are not valid\n",
			   (unsigned long long)attr->flags);
		return -FI_EINVAL;
	}
	return 0;
}

int wf_prov_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		    struct fid_eq **eq, void *context)
{
	static const struct fi_eq_attr plain; /* FI_WAIT_NONE */
	struct wf_prov_eq *queue;
	int ret;

	if (!attr)
		attr = (struct fi_eq_attr *)&plain;
	ret = check_attr(attr);
	if (ret)
		return ret;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -FI_ENOMEM;
	queue->fd = -1;
	if (attr->wait_obj == FI_WAIT_FD) {
		queue->fd = wf_os_eventfd();
		if (queue->fd < 0) {
			ret = queue->fd;
			WF_FI_WARN(FI_LOG_EQ, "no wait descriptor: %s\n",
				   fi_strerror(-ret));
			free(queue);
			return ret;
		}
	}
	queue->fid.fid.fclass = FI_CLASS_EQ;
	queue->fid.fid.context = context;
	queue->fid.fid.ops = &fid_ops;
	queue->fid.ops = &eq_ops;
	queue->fabric = wf_prov_fabric_of(fabric);
	atomic_init(&queue->refs, 0);
	queue->wait_obj = attr->wait_obj;
	queue->writable = attr->flags & FI_WRITE;
	queue->size = attr->size ? attr->size : DEFAULT_SIZE;
	wf_base_list_init(&queue->events);
	wf_os_mutex_init(&queue->lock);
	wf_os_cond_init(&queue->more);
	atomic_fetch_add(&queue->fabric->refs, 1);
	*eq = &queue->fid;
	return 0;
}
