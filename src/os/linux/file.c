/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors and files of Linux.
 */
#include "os/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "os/inline.h"

/* A memfd's name has 249 bytes at most; "/memfd:" and " (deleted)". */
#define LINK_LEN (249 + 32)

int wf_os_close(int fd)
{
	return close(fd) ? -errno : 0;
}

/* The device number of the tmpfs in which the kernel keeps all memfds of ordinary
 * pages; 0: none was made yet. It does not change while this kernel runs; in
 * a process that is restored from a checkpoint on another kernel it may be wrong, and
 * even be that of huge pages. */
WF_PER_PROCESS static _Atomic uint64_t memfd_device;

static void learn_device(int memfd)
{
	struct stat file;

	if (!atomic_load_explicit(&memfd_device, memory_order_relaxed) &&
	    !fstat(memfd, &file))
		atomic_store_explicit(&memfd_device, file.st_dev,
				      memory_order_relaxed);
}

int wf_os_memfd_create(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	learn_device(fd);
	return fd;
}

/* A memfd is a file to RLIMIT_FSIZE: the signal that comes with EFBIG would end
 * a process that has never written a file. It is sent to the calling thread, so
 * blocking it here is enough. */
static int without_signal(int (*call)(int, off_t, off_t), int fd, off_t at,
			  off_t bytes)
{
	const struct timespec at_once = { 0 };
	sigset_t limit, before;
	int err;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &limit, &before);
	err = call(fd, at, bytes);
	if (err == EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&limit, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static int set_size(int fd, off_t at, off_t bytes)
{
	return ftruncate(fd, at + bytes) ? errno : 0;
}

int wf_os_ftruncate(int fd, size_t bytes)
{
	return without_signal(set_size, fd, 0, (off_t)bytes);
}

int wf_os_fallocate(int fd, off_t at, size_t bytes)
{
	return without_signal(posix_fallocate, fd, at, (off_t)bytes);
}

static const struct {
	unsigned int ours;
	int theirs;
} seal_names[] = {
	{ WF_OS_SEAL_SHRINK, F_SEAL_SHRINK },
	{ WF_OS_SEAL_GROW, F_SEAL_GROW },
	{ WF_OS_SEAL_FUTURE_WRITE, F_SEAL_FUTURE_WRITE },
	{ WF_OS_SEAL_SEALS, F_SEAL_SEAL },
};

#define SEAL_NAMES (sizeof(seal_names) / sizeof(seal_names[0]))

int wf_os_seal(int fd, unsigned int seals)
{
	int theirs = 0;

	for (size_t i = 0; i < SEAL_NAMES; i++) {
		if (seals & seal_names[i].ours)
			theirs |= seal_names[i].theirs;
	}
	return fcntl(fd, F_ADD_SEALS, theirs) ? -errno : 0;
}

int wf_os_seals(int fd)
{
	int theirs = fcntl(fd, F_GET_SEALS);
	unsigned int seals = 0;

	if (theirs < 0)
		return -errno;
	for (size_t i = 0; i < SEAL_NAMES; i++) {
		if (theirs & seal_names[i].theirs)
			seals |= seal_names[i].ours;
	}
	return (int)seals;
}

bool wf_os_is_readable(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) &&
	       (flags & O_ACCMODE) != O_WRONLY;
}

/* Whether @file is of a tmpfs. That of a memfd is known by its device, which saves
 * a call for each memfd of a peer. */
static int is_in_memory(int fd, const struct stat *file, bool *answer)
{
	uint64_t known =
		atomic_load_explicit(&memfd_device, memory_order_relaxed);
	struct statfs fs;

	*answer = known && file->st_dev == known;
	if (*answer)
		return 0;
	if (fstatfs(fd, &fs))
		return -errno;
	*answer = fs.f_type == TMPFS_MAGIC;
	return 0;
}

int wf_os_fstat(int fd, struct wf_os_stat *st)
{
	struct stat file;
	bool in_memory;
	int err;

	if (fstat(fd, &file))
		return -errno;
	err = is_in_memory(fd, &file, &in_memory);
	if (err)
		return err;
	*st = (struct wf_os_stat){
		.bytes = (uint64_t)file.st_size,
		.inode = file.st_ino,
		.uid = file.st_uid,
		.in_memory = in_memory,
	};
	return 0;
}

/* Looks through the descriptors of one process. */
static bool find_in(int proc, const char *pid, const char *link,
		    bool (*take)(int fd, void *arg), void *arg)
{
	char path[32], target[LINK_LEN];
	struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *fds;
	int dir;

	if (fstatat(proc, pid, &st, 0) || st.st_uid != geteuid())
		return false;
	snprintf(path, sizeof(path), "%.16s/fd", pid);
	dir = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return false;
	fds = fdopendir(dir);
	if (!fds) {
		close(dir);
		return false;
	}
	while (!found && (entry = readdir(fds))) {
		ssize_t len = readlinkat(dir, entry->d_name, target,
					 sizeof(target) - 1);
		int fd;

		if (len < 0)
			continue;
		target[len] = 0;
		if (strcmp(target, link))
			continue;
		fd = openat(dir, entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		found = take(fd, arg);
		close(fd);
	}
	closedir(fds);
	return found;
}

int wf_os_memfd_find(const char *name, bool (*take)(int fd, void *arg),
		     void *arg)
{
	char link[LINK_LEN];
	struct dirent *entry;
	bool found = false;
	DIR *proc;

	snprintf(link, sizeof(link), "/memfd:%s (deleted)", name);
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while (!found && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			found = find_in(dirfd(proc), entry->d_name, link, take,
					arg);
	}
	closedir(proc);
	return found ? 0 : -ENOENT;
}

int wf_os_folder(const char *path, struct wf_os_folder *folder)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	if (fstat(fd, &st)) {
		int err = -errno;

		close(fd);
		return err;
	}
	close(fd);
	*folder = (struct wf_os_folder){
		.uid = st.st_uid,
		.is_shared = st.st_mode & (S_IWGRP | S_IWOTH),
		.is_sticky = st.st_mode & S_ISVTX,
		.is_writable =
			!faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS),
	};
	return 0;
}

int wf_os_folder_each(const char *path,
		      bool (*take)(const char *name, uint64_t age, void *arg),
		      void *arg)
{
	DIR *dir = opendir(path);
	time_t now = time(NULL);
	struct dirent *entry;
	bool over = false;

	if (!dir)
		return -errno;
	while (!over && (entry = readdir(dir))) {
		struct stat st;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW))
			continue; /* gone by now */
		over = take(entry->d_name,
			    now > st.st_mtime ? (uint64_t)(now - st.st_mtime) :
						0,
			    arg);
	}
	closedir(dir);
	return 0;
}

int wf_os_socket_file(const char *path)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (!S_ISSOCK(st.st_mode) || st.st_nlink > 1))
		err = -ENOTSOCK;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int wf_os_is_named(int fd, const char *path)
{
	struct stat file, named;

	if (fstat(fd, &file) ||
	    fstatat(AT_FDCWD, path, &named, AT_SYMLINK_NOFOLLOW))
		return -errno;
	return file.st_dev == named.st_dev && file.st_ino == named.st_ino;
}

int wf_os_unlink(const char *path)
{
	return unlink(path) ? -errno : 0;
}

int wf_os_rename(const char *from, const char *to)
{
	return rename(from, to) ? -errno : 0;
}

int wf_os_chmod(const char *path, mode_t mode)
{
	return chmod(path, mode) ? -errno : 0;
}

/* Bytes, at most @room, or -errno. */
static ssize_t read_all(int fd, void *bytes, size_t room)
{
	size_t len = 0;
	ssize_t got = 1;

	while (len < room && got > 0) {
		got = read(fd, (char *)bytes + len, room - len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			len += (size_t)got;
	}
	return got < 0 ? -errno : (ssize_t)len;
}

ssize_t wf_os_read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read_all(fd, text, room - 1);
	close(fd);
	text[len > 0 ? len : 0] = 0;
	return len;
}

ssize_t wf_os_read_owned(const char *path, void *bytes, size_t room,
			 struct wf_os_owned *of)
{
	struct stat name, file;
	ssize_t len = 0;
	int fd;

	if (fstatat(AT_FDCWD, path, &name, AT_SYMLINK_NOFOLLOW))
		return -errno;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &file)) {
		len = -errno;
		close(fd);
		return len;
	}
	*of = (struct wf_os_owned){
		.uid = file.st_uid,
		.link_uid = S_ISLNK(name.st_mode) ? name.st_uid : file.st_uid,
		.mode = file.st_mode & 07777,
		.is_file = S_ISREG(file.st_mode),
	};
	if (of->is_file)
		len = read_all(fd, bytes, room);
	close(fd);
	return len;
}

void wf_os_print_line(const char *text)
{
	fprintf(stderr, "%s\n", text);
}
