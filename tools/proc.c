/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks /proc. It must not believe a file's name: code that reads a memfd
 * checks its size and its seals first (wf_base_memfd_is_sound()).
 */
#include "tools/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the kernel shows a memfd. */
#define LINK "/memfd:%s (deleted)"
#define LINK_MAX_LEN 64

bool wf_tools_proc_line(const char *path, char *buf, size_t len)
{
	FILE *in = fopen(path, "re");
	bool ok;

	if (!in)
		return false;
	ok = fgets(buf, (int)len, in);
	fclose(in);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok && *buf;
}

/* A program started through /proc/self/exe is called "exe": the file's name
 * says more. */
static void name_by_file(struct wf_tools_process *p)
{
	char path[64], file[PATH_MAX];
	const char *slash;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)p->pid);
	len = readlink(path, file, sizeof(file) - 1);
	if (len <= 0)
		return;
	file[len] = 0;
	slash = strrchr(file, '/');
	snprintf(p->command, sizeof(p->command), "%.*s",
		 WF_TOOLS_COMMAND_LEN - 1, slash ? slash + 1 : file);
}

static void take_line(struct wf_tools_process *p, char *line)
{
	const char *last;

	if (!strncmp(line, "Name:\t", 6)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(p->command, sizeof(p->command), "%.*s",
			 WF_TOOLS_COMMAND_LEN - 1, line + 6);
	}
	if (!strncmp(line, "State:\t", 7))
		p->state = line[7];
	if (!strncmp(line, "Uid:\t", 5))
		p->uid = (uid_t)strtoul(line + 5, NULL, 10);
	/* The innermost namespace comes last. */
	last = strrchr(line, '\t');
	if (!strncmp(line, "NSpid:\t", 7) && last)
		p->own_pid = (uint32_t)strtoul(last, NULL, 10);
}

bool wf_tools_proc_describe(struct wf_tools_process *p, pid_t pid)
{
	char path[64], line[256];
	FILE *status;

	*p = (struct wf_tools_process){
		.pid = pid,
		.own_pid = (uint32_t)pid,
		.state = '?',
	};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status))
		take_line(p, line);
	fclose(status);
	if (!strcmp(p->command, "exe"))
		name_by_file(p);
	return wf_tools_proc_text(p->command, sizeof(p->command));
}

bool wf_tools_proc_text(char *text, size_t len)
{
	if (!memchr(text, 0, len))
		return false;
	for (; *text; text++)
		*text = isprint((unsigned char)*text) ? *text : '?';
	return true;
}

static int try_file(const struct wf_tools_process *p, int dir, const char *file,
		    const char *link, wf_tools_proc_found found, void *arg)
{
	char target[LINK_MAX_LEN];
	ssize_t len = readlinkat(dir, file, target, sizeof(target));
	int fd, ret;

	if (len != (ssize_t)strlen(link) || memcmp(target, link, strlen(link)))
		return 0;
	/* Another file may have this number by now. With these flags opening it
	 * neither waits nor has an effect. */
	fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	ret = found(arg, p, fd);
	close(fd);
	return ret;
}

int wf_tools_proc_memfds(const struct wf_tools_process *p, const char *name,
			 wf_tools_proc_found found, void *arg)
{
	char path[64], link[LINK_MAX_LEN];
	struct dirent *entry;
	int ret = 0;
	DIR *dir;

	snprintf(link, sizeof(link), LINK, name);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
	dir = opendir(path);
	if (!dir)
		return errno == EACCES || errno == EPERM ? -EACCES :
		       errno == ENOMEM			 ? -ENOMEM :
							   0;
	while (!ret && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = try_file(p, dirfd(dir), entry->d_name, link,
				       found, arg);
	}
	closedir(dir);
	return ret;
}

int wf_tools_proc_all(int (*visit)(void *arg, pid_t pid), void *arg)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int ret = 0;

	if (!proc)
		return -errno;
	while (!ret && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = visit(arg, (pid_t)atoi(entry->d_name));
	}
	closedir(proc);
	return ret;
}
