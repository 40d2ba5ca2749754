/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects events. A ring is mapped only when its size is right and sealed, so
 * that no owner can make us fault; it is turned on for half a second at a time,
 * so that it ends if we are killed.
 */
#include "tools/trace/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memfd.h"
#include "tools/grow.h"

#define LEASE (500 * WF_NS_PER_MS)
#define PAUSE (500 * WF_NS_PER_US)

/* -- finding ------------------------------------------------------------------ */

static bool is_known(const struct wf_tools_capture *capture, pid_t pid,
		     ino_t inode)
{
	for (size_t i = 0; i < capture->count; i++) {
		if (capture->all[i].process.pid == pid &&
		    capture->all[i].inode == inode)
			return true;
	}
	return false;
}

static struct wf_tools_traced *make_room(struct wf_tools_capture *capture)
{
	struct wf_tools_traced *all = wf_tools_grow(
		capture->all, capture->count, &capture->room, sizeof(*all));

	if (!all)
		return NULL;
	capture->all = all;
	return &all[capture->count];
}

static struct wf_trace_page *map(int fd)
{
	struct wf_trace_page *page;
	char path[64];
	int writable;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	writable = open(path, O_RDWR | O_CLOEXEC);
	if (writable < 0)
		return NULL;
	page = mmap(NULL, WF_TRACE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    writable, WF_TRACE_AT);
	close(writable);
	return page == MAP_FAILED ? NULL : page;
}

static int found(void *arg, const struct wf_tools_process *p, int fd)
{
	struct wf_tools_capture *capture = arg;
	struct wf_tools_traced *traced;
	struct wf_trace_page *page;
	struct stat st;

	if (fstat(fd, &st) ||
	    !wf_base_memfd_is_sound(fd, WF_WAITS_FILE_BYTES) ||
	    is_known(capture, p->pid, st.st_ino))
		return 0;
	traced = make_room(capture);
	if (!traced)
		return -ENOMEM;
	page = map(fd);
	if (!page)
		return 0;
	*traced = (struct wf_tools_traced){
		.process = *p,
		.inode = st.st_ino,
		.page = page,
		.place = page->front.place,
		.tail = atomic_load_explicit(&page->front.written,
					     memory_order_acquire),
	};
	memcpy(traced->name, page->front.name, sizeof(traced->name));
	if (page->front.magic != WF_TRACE_MAGIC ||
	    page->front.layout != WF_TRACE_LAYOUT ||
	    page->front.pid != p->own_pid ||
	    !wf_tools_proc_text(traced->name, sizeof(traced->name))) {
		munmap(page, WF_TRACE_BYTES);
		return 0;
	}
	wf_tools_job_read(&traced->job, p->pid);
	capture->count++;
	return 0;
}

int wf_tools_capture_add(struct wf_tools_capture *capture, pid_t pid)
{
	struct wf_tools_process p;

	if (!wf_tools_proc_describe(&p, pid))
		return -ESRCH;
	return wf_tools_proc_memfds(&p, WF_WAITS_FILE, found, capture);
}

/* -- collecting --------------------------------------------------------------- */

static bool grow(struct wf_tools_traced *traced, size_t more)
{
	size_t room = traced->room ? traced->room : 4096;
	struct wf_trace_event *bigger;

	while (room < traced->count + more)
		room *= 2;
	if (room == traced->room)
		return true;
	bigger = realloc(traced->events, room * sizeof(*bigger));
	if (!bigger)
		return false;
	traced->events = bigger;
	traced->room = room;
	return true;
}

/* The owner may be writing an event now, in the place of the one that is a lap
 * older. */
static void drop_overwritten(struct wf_tools_traced *traced, uint64_t first,
			     size_t at)
{
	uint64_t head = atomic_load_explicit(&traced->page->front.written,
					     memory_order_acquire);
	uint64_t gone =
		head >= WF_TRACE_EVENTS ? head - WF_TRACE_EVENTS + 1 : 0;
	size_t bad;

	if (gone <= first)
		return;
	bad = gone - first < traced->count - at ? (size_t)(gone - first) :
						  traced->count - at;
	memmove(&traced->events[at], &traced->events[at + bad],
		(traced->count - at - bad) * sizeof(*traced->events));
	traced->count -= bad;
	traced->lost += bad;
}

static int drain(struct wf_tools_traced *traced, size_t most)
{
	uint64_t head = atomic_load_explicit(&traced->page->front.written,
					     memory_order_acquire);
	size_t at = traced->count;
	uint64_t first;

	if (head - traced->tail > WF_TRACE_EVENTS) {
		traced->lost += head - traced->tail - WF_TRACE_EVENTS;
		traced->tail = head - WF_TRACE_EVENTS;
	}
	if (traced->count >= most) {
		traced->lost += head - traced->tail;
		traced->tail = head;
		return 0;
	}
	if (!grow(traced, head - traced->tail))
		return -ENOMEM;
	first = traced->tail;
	for (; traced->tail != head; traced->tail++)
		traced->events[traced->count++] =
			traced->page->events[traced->tail % WF_TRACE_EVENTS];
	drop_overwritten(traced, first, at);
	return 0;
}

static void renew(struct wf_tools_capture *capture, uint64_t until)
{
	for (size_t i = 0; i < capture->count; i++)
		atomic_store_explicit(&capture->all[i].page->front.wanted,
				      until, memory_order_relaxed);
	capture->wanted = until;
}

/* Another command may record at the same time, and continues. */
static void end_lease(struct wf_tools_capture *capture)
{
	for (size_t i = 0; i < capture->count; i++) {
		uint64_t mine = capture->wanted;

		atomic_compare_exchange_strong(
			&capture->all[i].page->front.wanted, &mine, 0);
	}
}

static void check(struct wf_tools_traced *traced)
{
	uint32_t count = atomic_load_explicit(
		&traced->page->front.channel_count, memory_order_acquire);
	size_t kept = 0;

	traced->channel_count =
		count < WF_TRACE_CHANNELS ? count : WF_TRACE_CHANNELS;
	memcpy(traced->channels, traced->page->channels,
	       sizeof(traced->channels));
	for (uint32_t i = 0; i < traced->channel_count; i++) {
		struct wf_trace_channel *channel = &traced->channels[i];

		if (!wf_tools_proc_text(channel->peer, sizeof(channel->peer)))
			channel->peer[0] = 0;
	}
	for (size_t i = 0; i < traced->count; i++) {
		const struct wf_trace_event *event = &traced->events[i];

		if (event->type > WF_TRACE_NONE &&
		    event->type < WF_TRACE_TYPES &&
		    (event->channel < traced->channel_count ||
		     event->channel == WF_TRACE_NO_CHANNEL))
			traced->events[kept++] = *event;
	}
	traced->lost += traced->count - kept;
	traced->count = kept;
}

int wf_tools_capture_run(struct wf_tools_capture *capture, uint64_t ns,
			 const volatile sig_atomic_t *interrupted)
{
	const struct timespec pause = { 0, PAUSE };
	uint64_t now = wf_base_clock_ns(), end = now + ns;
	int ret = 0;

	capture->begin_ns = now;
	capture->begin_ticks = wf_os_ticks();
	while (!ret && now < end && !*interrupted) {
		if (now + LEASE / 2 > capture->wanted)
			renew(capture, now + LEASE);
		nanosleep(&pause, NULL);
		for (size_t i = 0; i < capture->count && !ret; i++)
			ret = drain(&capture->all[i], capture->most);
		now = wf_base_clock_ns();
	}
	end_lease(capture);
	capture->end_ns = wf_base_clock_ns();
	capture->end_ticks = wf_os_ticks();
	for (size_t i = 0; i < capture->count; i++)
		check(&capture->all[i]);
	return ret;
}

void wf_tools_capture_free(struct wf_tools_capture *capture)
{
	for (size_t i = 0; i < capture->count; i++) {
		munmap(capture->all[i].page, WF_TRACE_BYTES);
		free(capture->all[i].events);
	}
	free(capture->all);
	*capture = (struct wf_tools_capture){ 0 };
}

double wf_tools_capture_ns(const struct wf_tools_capture *capture,
			   uint64_t ticks)
{
	double ticks_all = (double)(capture->end_ticks - capture->begin_ticks);
	double ns_all = (double)(capture->end_ns - capture->begin_ns);

	return (double)(int64_t)(ticks - capture->begin_ticks) * ns_all /
	       (ticks_all > 0 ? ticks_all : 1);
}
