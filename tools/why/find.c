/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects pages of waits. A page is mapped, for reading, only when its size is
 * right and sealed, so that no owner can make us fault.
 */
#include "tools/why/find.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/memfd.h"
#include "base/trace_defs.h"
#include "tools/grow.h"

static ino_t net_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

static bool is_known(const struct wf_tools_waiters *waiters, pid_t pid,
		     ino_t inode)
{
	for (size_t i = 0; i < waiters->count; i++) {
		if (waiters->all[i].process.pid == pid &&
		    waiters->all[i].inode == inode)
			return true;
	}
	return false;
}

static struct wf_tools_waiter *make_room(struct wf_tools_waiters *waiters)
{
	struct wf_tools_waiter *all = wf_tools_grow(
		waiters->all, waiters->count, &waiters->room, sizeof(*all));

	if (!all)
		return NULL;
	waiters->all = all;
	return &all[waiters->count];
}

static int read_page(void *arg, const struct wf_tools_process *p, int fd)
{
	struct wf_tools_waiters *waiters = arg;
	struct wf_tools_waiter *waiter;
	const char *why = NULL;
	struct stat st;
	void *raw;
	int ret;

	if (fstat(fd, &st) ||
	    !wf_base_memfd_is_sound(fd, WF_WAITS_FILE_BYTES)) {
		waiters->unsound++;
		waiters->unsound_why = "its size is wrong or may change";
		return 0;
	}
	/* The same page through another descriptor? */
	if (is_known(waiters, p->pid, st.st_ino))
		return 0;
	waiter = make_room(waiters);
	if (!waiter)
		return -ENOMEM;
	raw = mmap(NULL, WF_WAITS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (raw == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : 0;
	ret = wf_tools_waits_read(&waiter->waits, raw, &why);
	munmap(raw, WF_WAITS_BYTES);
	if (ret) {
		waiters->unsound++;
		waiters->unsound_why = why;
		return 0;
	}
	/* A forked child holds its parent's page for a moment. */
	if (waiter->waits.pid != p->own_pid)
		return 0;
	waiter->process = *p;
	waiter->inode = st.st_ino;
	waiter->net = net_of(p->pid);
	wf_tools_job_read(&waiter->job, p->pid);
	waiters->count++;
	return 0;
}

static int visit(void *arg, pid_t pid)
{
	struct wf_tools_waiters *waiters = arg;
	struct wf_tools_process p;
	int ret;

	if (!wf_tools_proc_describe(&p, pid))
		return 0;
	ret = wf_tools_proc_memfds(&p, WF_WAITS_FILE, read_page, waiters);
	if (ret != -EACCES)
		return ret;
	waiters->denied++;
	return 0;
}

/* -- channels ---------------------------------------------------------------- */

/* The memory of a channel (shm/region.c), as the kernel shows a mapping of it:
 * both ends map the same. */
#define CHANNEL "/memfd:weft-ring (deleted)\n"

static int add_channel(struct wf_tools_waiters *waiters, const char *line)
{
	unsigned long long inode;
	ino_t *all;
	int name = 0;

	if (sscanf(line, "%*s %*s %*s %*s %llu %n", &inode, &name) != 1 ||
	    !name || strcmp(line + name, CHANNEL))
		return 0;
	all = wf_tools_grow(waiters->channels, waiters->channel_count,
			    &waiters->channel_room, sizeof(*all));
	if (!all)
		return -ENOMEM;
	waiters->channels = all;
	all[waiters->channel_count++] = (ino_t)inode;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const ino_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Without an answer, because the process is gone or is another user's, it has no
 * channel that we know of. */
static int read_channels(struct wf_tools_waiters *waiters,
			 struct wf_tools_waiter *w)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *maps;
	int ret = 0;

	w->channels = waiters->channel_count;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)w->process.pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (!ret && getline(&line, &room, maps) > 0)
		ret = add_channel(waiters, line);
	free(line);
	fclose(maps);
	w->channel_count = waiters->channel_count - w->channels;
	if (w->channel_count)
		qsort(waiters->channels + w->channels, w->channel_count,
		      sizeof(*waiters->channels), by_number);
	return ret;
}

static bool waits_for_anyone(const struct wf_tools_waiter *w)
{
	for (uint32_t i = 0; i < w->waits.bank.count; i++) {
		if (w->waits.bank.waits[i].flags & WF_WAIT_ANYONE)
			return true;
	}
	return false;
}

static int find_channels(struct wf_tools_waiters *waiters)
{
	bool needed = false;
	int ret = 0;

	for (size_t i = 0; i < waiters->count; i++)
		needed |= waits_for_anyone(&waiters->all[i]);
	for (size_t i = 0; needed && !ret && i < waiters->count; i++) {
		struct wf_tools_waiter *w = &waiters->all[i];

		if (i && w[-1].process.pid == w->process.pid) {
			w->channels = w[-1].channels;
			w->channel_count = w[-1].channel_count;
		} else {
			ret = read_channels(waiters, w);
		}
	}
	return ret;
}

bool wf_tools_waiters_share(const struct wf_tools_waiters *waiters,
			    const struct wf_tools_waiter *a,
			    const struct wf_tools_waiter *b)
{
	size_t i = 0, j = 0;

	while (i < a->channel_count && j < b->channel_count) {
		ino_t x = waiters->channels[a->channels + i];
		ino_t y = waiters->channels[b->channels + j];

		if (x == y)
			return true;
		if (x < y)
			i++;
		else
			j++;
	}
	return false;
}

/* -- all of it ---------------------------------------------------------------- */

int wf_tools_waiters_find(struct wf_tools_waiters *waiters)
{
	int ret;

	*waiters = (struct wf_tools_waiters){ 0 };
	ret = wf_tools_proc_all(visit, waiters);
	/* After all pages were read: nothing in them is of the future. */
	waiters->now = wf_base_clock_ns();
	if (!ret)
		ret = find_channels(waiters);
	if (ret)
		wf_tools_waiters_free(waiters);
	return ret;
}

void wf_tools_waiters_free(struct wf_tools_waiters *waiters)
{
	free(waiters->all);
	free(waiters->channels);
	*waiters = (struct wf_tools_waiters){ 0 };
}

/* -- addresses --------------------------------------------------------------- */

/* One that is reached by every address of its host. */
static bool is_wildcard(const char *name)
{
	return !strncmp(name, "0.0.0.0:", 8) || !strncmp(name, "[::]:", 5);
}

static bool has_address(const struct wf_tools_waiter *w, const char *address,
			uint64_t place)
{
	const char *port = strrchr(address, ':');
	const char *own = strrchr(w->waits.name, ':');

	if (place && w->waits.place && place != w->waits.place)
		return false;
	return !strcmp(w->waits.name, address) ||
	       (is_wildcard(w->waits.name) && port && own &&
		!strcmp(port, own));
}

/* Addresses are unique in a network namespace only. */
const struct wf_tools_waiter *
wf_tools_waiters_peer(const struct wf_tools_waiters *waiters,
		      const struct wf_tools_waiter *from,
		      const struct wf_wait *wait)
{
	const struct wf_tools_waiter *found = NULL;

	if (!wait->peer[0])
		return NULL;
	for (size_t i = 0; i < waiters->count; i++) {
		const struct wf_tools_waiter *w = &waiters->all[i];

		if (!has_address(w, wait->peer, wait->place))
			continue;
		if (!found || w->net == from->net)
			found = w;
		if (found->net == from->net)
			break;
	}
	return found;
}

bool wf_tools_waiters_is_local(const char *address)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	char text[64];
	struct wf_addr addr;
	char *end;

	snprintf(text, sizeof(text), "%s", address);
	end = strrchr(text, ':');
	if (!end)
		return false;
	*end = 0;
	if (text[0] == '[') {
		text[strcspn(text, "%]")] = 0;
		return inet_pton(AF_INET6, text + 1, &in6.sin6_addr) == 1 &&
		       !wf_base_addr_set(&addr, &in6, sizeof(in6)) &&
		       wf_base_addr_is_local(&addr);
	}
	return inet_pton(AF_INET, text, &in.sin_addr) == 1 &&
	       !wf_base_addr_set(&addr, &in, sizeof(in)) &&
	       wf_base_addr_is_local(&addr);
}
