/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks what clients send.
 */
#include "devd/gift.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "devd/region.h"

/* Whether the path behind @fd ends as @path does, which begins with "/proc". */
static bool is_named(int fd, const char *path)
{
	const char *tail = path + strlen("/proc");
	char link[64], name[256];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, sizeof(name) - 1);
	if (len < (ssize_t)strlen(tail))
		return false;
	name[len] = '\0';
	return !strcmp(name + len - strlen(tail), tail);
}

/* Whether process @pid has only this number, and so is in our pid namespace. */
static bool is_in_our_namespace(pid_t pid)
{
	char path[32], *line = NULL;
	int first = 0, second, n = 0;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!n && getline(&line, &size, file) > 0) {
		if (!strncmp(line, "NSpid:", 6))
			n = sscanf(line + 6, "%d %d", &first, &second);
	}
	free(line);
	fclose(file);
	return n == 1 && first == pid;
}

/* A container that shares our pid namespace has mounted its own /proc: the file
 * is another one there, of the same name. In another pid namespace the number
 * would be of another process. Whatever @fd names, its sender could open it, so
 * a client that deceives us reaches nothing by it that it did not have. */
static bool is_memory_of(int fd, pid_t pid)
{
	struct statfs fs;
	char path[32];

	if (pid <= 0 || (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC &&
	       is_named(fd, path) && is_in_our_namespace(pid);
}

struct wf_devd_gift wf_devd_gift_take(const struct wf_broker_request *request,
				      int fd, pid_t pid, uint64_t limit)
{
	struct wf_devd_gift gift = WF_DEVD_NO_GIFT;

	if (fd < 0)
		return gift;
	if (request->op == WF_BROKER_OPEN && is_memory_of(fd, pid)) {
		gift.memory = fd;
		return gift;
	}
	/* The request itself refuses impossible sizes. */
	if (request->op == WF_BROKER_ATTACH && request->size &&
	    request->size <= limit && !(request->size % WF_DEVD_PAGE))
		gift.status = wf_devd_region_attach(
			&gift.region, fd, request->offset, request->size);
	close(fd);
	return gift;
}
