/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of the simulated kernel share this: open files, memory of
 * processes.
 */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "sim.h"

/* -- open files ------------------------------------------------------------- */

struct sim_file_ops {
	const char *name;
	/* The EPOLL* events that are true now. */
	uint32_t (*events)(struct sim_file *file);
	/* The last reference is gone. */
	void (*release)(struct sim_file *file);
	ssize_t (*read)(struct sim_file *file, void *buf, size_t len);
	ssize_t (*write)(struct sim_file *file, const void *buf, size_t len);
	ssize_t (*sendmsg)(struct sim_file *file, const struct msghdr *msg,
			   int flags);
	ssize_t (*recvmsg)(struct sim_file *file, struct msghdr *msg,
			   int flags);
	int (*bind)(struct sim_file *file, const struct sockaddr *sa,
		    socklen_t len);
	int (*connect)(struct sim_file *file, const struct sockaddr *sa,
		       socklen_t len);
	int (*listen)(struct sim_file *file, int backlog);
	/* A new file with one reference, or NULL and *@err. */
	struct sim_file *(*accept)(struct sim_file *file, int *err);
	int (*shutdown)(struct sim_file *file, int how);
	int (*getname)(struct sim_file *file, struct sockaddr *sa,
		       socklen_t *len);
	int (*peername)(struct sim_file *file, struct sockaddr *sa,
			socklen_t *len);
	int (*getopt)(struct sim_file *file, int level, int name, void *value,
		      socklen_t *len);
	int (*setopt)(struct sim_file *file, int level, int name,
		      const void *value, socklen_t len);
};

/* First in every kind of file. Members return a value or -errno. */
struct sim_file {
	const struct sim_file_ops *ops;
	unsigned int refs;
	bool nonblocking;
	struct sim_watch *watchers; /* epoll sets that watch it */
};

struct sim_file *sim_file_get(int fd);
void sim_file_put(struct sim_file *file);
/* Makes a descriptor of the current process for @file, and takes over its
 * reference. */
int sim_file_install(struct sim_file *file);
/* Finds a free descriptor or returns -EMFILE; uses it. */
int sim_file_room(void);
void sim_file_use(int fd, struct sim_file *file);
void sim_file_close_all(struct sim_proc *proc);
/* Removes a closed file from all epoll sets. */
void sim_epoll_forget(struct sim_file *file);

struct sim_file *sim_unix_socket(bool nonblocking);
struct sim_file *sim_inet_socket(bool nonblocking);
struct sim_file *sim_stream_socket(bool nonblocking);
struct sim_file *sim_memfd(const char *name);
/* /proc/PID/mem of @proc. */
struct sim_file *sim_memory_file(struct sim_proc *proc);

/* -- memory ----------------------------------------------------------------- */

/* Memory that several processes can map. All mappings of it are at the same
 * address, which keeps race.c simple; nothing else depends on it. */
struct sim_shared {
	char *base;
	size_t bytes;
	unsigned int refs;
	unsigned int maps[SIM_PROCS];
	char name[32];
};

/* NULL: it is not shared memory. */
struct sim_shared *sim_memory_shared(uintptr_t addr);
void sim_memory_end(struct sim_proc *proc);
void sim_memory_check_end(const struct sim_proc *proc);
/* How many bytes starting at @addr are memory of @proc. */
size_t sim_memory_valid(const struct sim_proc *proc, uintptr_t addr,
			size_t len);
bool sim_memory_in_pool(uintptr_t addr);

/* Memory of applications, apart from the provider's heap. */
void *sim_memory_app_alloc(struct sim_proc *proc, size_t bytes);

/* Sets errno of a wrapped call. */
#define SIM_RET(value)                                                         \
	({                                                                     \
		__typeof__(value) ret_ = (value);                              \
                                                                               \
		if (ret_ < 0) {                                                \
			errno = (int)-ret_;                                    \
			ret_ = -1;                                             \
		}                                                              \
		ret_;                                                          \
	})

#endif
