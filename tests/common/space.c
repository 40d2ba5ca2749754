/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates namespaces by system calls. They disappear with the last process in
 * them.
 */
#include "common/space.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/check.h"

static char folder[32];
static pid_t maker;
static bool pids_are_shared;

static void remove_folder(void)
{
	if (getpid() == maker)
		rmdir(folder); /* it stays if files are left in it */
}

/* Whether a child may do what space_fork() and space_enter() do. */
static bool is_allowed(void)
{
	int status;
	pid_t pid = fork();

	CHECK_SYS(pid);
	if (!pid)
		_exit(unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID) != 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

void space_begin(void)
{
	if (space_is_on())
		return;
	if (!is_allowed()) {
		printf("no namespaces here: they need root\n");
		fflush(NULL);
		_exit(77);
	}
	strcpy(folder, "/tmp/weft-spaces-XXXXXX");
	CHECK(mkdtemp(folder));
	CHECK_SYS(chmod(folder, 01777));
	CHECK_SYS(setenv("FI_WEFT_DIR", folder, 1));
	maker = getpid();
	atexit(remove_folder);
}

bool space_is_on(void)
{
	return *folder;
}

const char *space_folder(void)
{
	return folder;
}

int space_files(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		count += strcmp(entry->d_name, ".") != 0 &&
			 strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return count;
}

void space_share_pids(void)
{
	pids_are_shared = true;
}

pid_t space_fork(void)
{
	pid_t pid;
	int own;

	if (pids_are_shared)
		return fork();
	own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	CHECK_SYS(own);
	/* Only for the children; restored at once. */
	CHECK_SYS(unshare(CLONE_NEWPID));
	pid = fork();
	CHECK_SYS(pid);
	if (pid)
		CHECK_SYS(setns(own, CLONE_NEWPID));
	close(own);
	return pid;
}

void space_enter(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	CHECK_SYS(unshare(CLONE_NEWNET | CLONE_NEWIPC));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK_SYS(fd);
	CHECK_SYS(ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
}
