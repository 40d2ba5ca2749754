/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors and files.
 *
 * Rules of all of src/os: a function is named after the call that os/linux makes,
 * and promises what the manual page of that call says, with one difference: a
 * failure is returned as -errno, and errno means nothing afterwards. Functions
 * of other names state what they do.
 * Nothing is logged here. Every function may be called by several threads at
 * once.
 */
#ifndef WF_OS_FILE_H
#define WF_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int wf_os_close(int fd);

/* A new memfd that is closed by exec and can be sealed. Its size is 0. */
int wf_os_memfd_create(const char *name);

/* Set the size; reserve memory or blocks for a range, and grow the file to its
 * end. The process gets no SIGXFSZ where its limit for files is smaller: that
 * is -EFBIG. */
int wf_os_ftruncate(int fd, size_t bytes);
int wf_os_fallocate(int fd, off_t at, size_t bytes);

enum wf_os_seal {
	WF_OS_SEAL_SHRINK = 1, /* as F_SEAL_SHRINK and so on, fcntl(2) */
	WF_OS_SEAL_GROW = 2,
	WF_OS_SEAL_FUTURE_WRITE = 4,
	WF_OS_SEAL_SEALS = 8,
};

/* Adds seals, a set of enum wf_os_seal, to a memfd. -EINVAL: the kernel does
 * not know one of them. */
int wf_os_seal(int fd, unsigned int seals);
/* The seals of @fd, a set, or -EINVAL where it can have none, as anything that
 * does not lie in memory. Never blocks, whoever made @fd. */
int wf_os_seals(int fd);

/* Whether @fd was opened for reading, so that it can be mapped. Never blocks. */
bool wf_os_is_readable(int fd);

struct wf_os_stat {
	uint64_t bytes;
	uint64_t inode;
	uid_t uid;	/* of the owner */
	bool in_memory; /* on a tmpfs, so of ordinary pages */
};

/* Asks the file system of @fd, which may block for a descriptor of a stranger:
 * ask for its seals before. */
int wf_os_fstat(int fd, struct wf_os_stat *st);

/* Looks for memfds named @name that processes of our effective user have open,
 * and calls @take with a descriptor of each, opened for reading, which is
 * closed after the call. Ends when @take returns true. 0, -ENOENT when it never
 * did, or why processes could not be listed. */
int wf_os_memfd_find(const char *name, bool (*take)(int fd, void *arg),
		     void *arg);

/* A folder in which processes of several users may meet. */
struct wf_os_folder {
	uid_t uid;	  /* of the owner */
	bool is_shared;	  /* others than the owner may write to it ... */
	bool is_sticky;	  /* ... and remove nothing but their own entries */
	bool is_writable; /* our effective user can make entries */
};

/* Asks for the folder @path. -ENOTDIR where that is something else, also a
 * symbolic link to a folder. */
int wf_os_folder(const char *path, struct wf_os_folder *folder);

/* Calls @take with the name of each entry but "." and "..", and with the seconds
 * since it was last changed. Ends when @take returns true. 0 or -errno. */
int wf_os_folder_each(const char *path,
		      bool (*take)(const char *name, uint64_t age, void *arg),
		      void *arg);

/* A descriptor of the Unix socket that @path names, which keeps the file
 * without opening it. -ENOTSOCK where that is something else, also a symbolic
 * link, and for a socket that has a second name. */
int wf_os_socket_file(const char *path);

/* Whether @path names the file that @fd is a descriptor of; links are not
 * followed. 1, 0 or -errno. */
int wf_os_is_named(int fd, const char *path);

int wf_os_unlink(const char *path);
int wf_os_rename(const char *from, const char *to);
int wf_os_chmod(const char *path, mode_t mode);

/* Reads a small file as text, at most @room - 1 bytes, and ends it with 0. The
 * number of bytes, or -errno. */
ssize_t wf_os_read_text(const char *path, char *text, size_t room);

/* This says who may read and change a file, and what its name refers to. */
struct wf_os_owned {
	uid_t uid;	   /* of the owner */
	uid_t link_uid;	   /* of the last name, if that is a symbolic link; else
			   the same */
	unsigned int mode; /* permissions, as of chmod(2) */
	bool is_file;	   /* a regular one: of no other is anything read */
};

/* Reads at most @room bytes of a file and returns its owner: of the file that
 * was read, whatever its name refers to by then. Never waits for a writer. The
 * number of bytes, or -errno. */
ssize_t wf_os_read_owned(const char *path, void *bytes, size_t room,
			 struct wf_os_owned *of);

/* Writes a line to standard error; adds the end of the line. */
void wf_os_print_line(const char *text);

#endif
