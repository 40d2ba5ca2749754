/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects pages of counters. A page is mapped, for reading, only when its size
 * is right and sealed, so that no owner can make us fault.
 */
#include "tools/stat/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memfd.h"
#include "tools/grow.h"

/* Listeners of endpoints stand there as "@weft/ADDRESS"; 00010000 is a socket
 * that accepts. */
#define SOCKETS "/proc/net/unix"
#define ACCEPTS 0x10000u

static int add(struct wf_tools_scan *scan,
	       const struct wf_tools_endpoint *endpoint)
{
	struct wf_tools_endpoint *all = wf_tools_grow(
		scan->endpoints, scan->count, &scan->room, sizeof(*all));

	if (!all)
		return -ENOMEM;
	scan->endpoints = all;
	all[scan->count++] = *endpoint;
	return 0;
}

static void is_unsound(struct wf_tools_scan *scan,
		       const struct wf_tools_process *p, const char *why)
{
	scan->unsound++;
	scan->unsound_pid = p->pid;
	scan->unsound_why = why;
}

static int read_page(void *arg, const struct wf_tools_process *p, int fd)
{
	struct wf_tools_scan *scan = arg;
	struct wf_tools_endpoint endpoint = {
		.pid = p->pid,
		.uid = p->uid,
		.job.rank = -1,
	};
	const char *why = NULL;
	struct stat st;
	void *raw;
	int ret;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    !wf_base_memfd_is_sound(fd, WF_STATS_BYTES)) {
		is_unsound(scan, p, "its size is wrong or may change");
		return 0;
	}
	raw = mmap(NULL, WF_STATS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (raw == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : 0;
	ret = wf_tools_page_read(&endpoint.page, raw, &why);
	munmap(raw, WF_STATS_BYTES);
	if (ret) {
		is_unsound(scan, p, why);
		return 0;
	}
	/* A forked child holds its parent's page for a moment. */
	if (endpoint.page.pid != p->own_pid)
		return 0;
	endpoint.inode = st.st_ino;
	endpoint.at_ns = wf_base_clock_ns();
	memcpy(endpoint.command, p->command, sizeof(endpoint.command));
	if (wf_tools_scan_find(scan, &endpoint))
		return 0; /* the same page through another descriptor */
	return add(scan, &endpoint);
}

static int visit(struct wf_tools_scan *scan, pid_t pid, bool *exists)
{
	struct wf_tools_process p;
	int ret;

	*exists = wf_tools_proc_describe(&p, pid);
	if (!*exists)
		return 0;
	ret = wf_tools_proc_memfds(&p, WF_STATS_FILE, read_page, scan);
	if (ret != -EACCES)
		return ret;
	scan->denied++;
	return 0;
}

/* -- all of them ----------------------------------------------------------- */

static int visit_any(void *arg, pid_t pid)
{
	bool exists;

	return visit(arg, pid, &exists);
}

/* One that is reached by every address of the node listens as "*4:PORT". */
static bool is_seen(const struct wf_tools_scan *scan, const char *listener)
{
	const char *port = strrchr(listener, ':');

	for (size_t i = 0; i < scan->count; i++) {
		const char *name = scan->endpoints[i].page.name;
		const char *its_port = strrchr(name, ':');

		if (!strcmp(name, listener) ||
		    (listener[0] == '*' && port && its_port &&
		     !strcmp(port, its_port)))
			return true;
	}
	return false;
}

/* Sockets that listen here without having been seen belong to others. */
static unsigned count_elsewhere(const struct wf_tools_scan *scan)
{
	FILE *sockets = fopen(SOCKETS, "re");
	unsigned count = 0;
	char line[512];

	if (!sockets)
		return 0;
	while (fgets(line, sizeof(line), sockets)) {
		char *name = strstr(line, " @weft/");
		unsigned flags;

		if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 ||
		    !(flags & ACCEPTS))
			continue;
		name += strlen(" @weft/");
		name[strcspn(name, "\n")] = 0;
		count += !is_seen(scan, name);
	}
	fclose(sockets);
	return count;
}

/* -- packets --------------------------------------------------------------- */

static bool is_packets(const struct wf_tools_endpoint *endpoint)
{
	return !strcmp(endpoint->page.kind, "packets");
}

static struct wf_tools_endpoint *
owner_of(struct wf_tools_scan *scan, const struct wf_tools_endpoint *packets)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct wf_tools_endpoint *other = &scan->endpoints[i];

		if (!is_packets(other) && other->pid == packets->pid &&
		    !strcmp(other->page.name, packets->page.name))
			return other;
	}
	return NULL;
}

/* An endpoint that uses packets has two pages and one row. A page whose owner is
 * not there (it is closing, or of another build) stands for itself. */
static void join_packets(struct wf_tools_scan *scan)
{
	size_t kept = 0;

	for (size_t i = 0; i < scan->count; i++) {
		struct wf_tools_endpoint *ep = &scan->endpoints[i];

		if (is_packets(ep)) {
			struct wf_tools_endpoint *owner = owner_of(scan, ep);

			ep->packets = ep->page;
			if (owner)
				owner->packets = ep->page;
		}
	}
	for (size_t i = 0; i < scan->count; i++) {
		struct wf_tools_endpoint *ep = &scan->endpoints[i];

		if (is_packets(ep) && owner_of(scan, ep))
			continue;
		if (kept != i)
			scan->endpoints[kept] = *ep;
		kept++;
	}
	scan->count = kept;
}

const uint64_t *wf_tools_scan_counter(const struct wf_tools_endpoint *endpoint,
				      const char *name)
{
	size_t len = strlen(WF_TOOLS_PACKETS);

	if (!strncmp(name, WF_TOOLS_PACKETS, len))
		return wf_tools_page_find(&endpoint->packets, name + len);
	/* Its names mean something else there. */
	return is_packets(endpoint) ? NULL :
				      wf_tools_page_find(&endpoint->page, name);
}

uint64_t wf_tools_scan_get(const struct wf_tools_endpoint *endpoint,
			   const char *name)
{
	const uint64_t *value = wf_tools_scan_counter(endpoint, name);

	return value ? *value : 0;
}

int wf_tools_scan_all(struct wf_tools_scan *scan, const pid_t *pids,
		      size_t n_pids, pid_t *missing)
{
	bool exists;
	int ret = 0;

	memset(scan, 0, sizeof(*scan));
	*missing = 0;
	if (!n_pids) {
		ret = wf_tools_proc_all(visit_any, scan);
		if (!ret)
			scan->elsewhere = count_elsewhere(scan);
	}
	for (size_t i = 0; i < n_pids && !ret; i++) {
		ret = visit(scan, pids[i], &exists);
		if (!exists)
			*missing = pids[i];
	}
	if (ret)
		wf_tools_scan_free(scan);
	else
		join_packets(scan);
	return ret;
}

enum wf_tools_kind wf_tools_scan_kind(const struct wf_tools_endpoint *endpoint)
{
	static const char *const names[WF_TOOLS_KINDS] = {
		[WF_TOOLS_DEVICE] = "device",
		[WF_TOOLS_USER] = "user",
		[WF_TOOLS_DRIVER] = "driver",
	};

	for (int i = WF_TOOLS_DEVICE; i < WF_TOOLS_KINDS; i++) {
		if (!strcmp(endpoint->page.kind, names[i]))
			return (enum wf_tools_kind)i;
	}
	return WF_TOOLS_ENDPOINT;
}

bool wf_tools_scan_is_device(const struct wf_tools_endpoint *endpoint)
{
	return wf_tools_scan_kind(endpoint) != WF_TOOLS_ENDPOINT;
}

void wf_tools_scan_free(struct wf_tools_scan *scan)
{
	free(scan->endpoints);
	memset(scan, 0, sizeof(*scan));
}

bool wf_tools_scan_is_same(const struct wf_tools_endpoint *one,
			   const struct wf_tools_endpoint *other)
{
	return other->pid == one->pid && other->inode == one->inode &&
	       other->page.started == one->page.started;
}

const struct wf_tools_endpoint *
wf_tools_scan_find(const struct wf_tools_scan *scan,
		   const struct wf_tools_endpoint *endpoint)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (wf_tools_scan_is_same(&scan->endpoints[i], endpoint))
			return &scan->endpoints[i];
	}
	return NULL;
}

/* A process keeps the job that it was started in. Its endpoints follow each
 * other in a scan. */
void wf_tools_scan_jobs(struct wf_tools_scan *scan,
			const struct wf_tools_scan *before)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct wf_tools_endpoint *ep = &scan->endpoints[i];
		const struct wf_tools_endpoint *old =
			before ? wf_tools_scan_find(before, ep) : NULL;

		if (old)
			ep->job = old->job;
		else if (i && ep[-1].pid == ep->pid)
			ep->job = ep[-1].job;
		else if (!wf_tools_scan_is_device(ep))
			wf_tools_job_read(&ep->job, ep->pid);
	}
}
