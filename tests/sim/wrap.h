/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the C library and of libfabric that the linker redirects
 * (--wrap, see meson.build): together they are the simulated kernel as the
 * provider sees it. They do what the manual says of the functions that they
 * replace, in virtual time and with faults.
 */
#ifndef SIM_WRAP_H
#define SIM_WRAP_H

#include <dirent.h>
#include <ifaddrs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* env.c */
pid_t __wrap_getpid(void);
uid_t __wrap_geteuid(void);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
DIR *__wrap_opendir(const char *path);
char *__wrap_getenv(const char *name);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_fi_param_define(const struct fi_provider *provider,
			   const char *param, enum fi_param_type type,
			   const char *help, ...);
int __wrap_fi_param_get(struct fi_provider *provider, const char *name,
			void *value);
int __wrap_fi_log_enabled(const struct fi_provider *provider,
			  enum fi_log_level level, enum fi_log_subsys subsys);
void __wrap_fi_log(const struct fi_provider *provider, enum fi_log_level level,
		   enum fi_log_subsys subsys, const char *func, int line,
		   const char *fmt, ...);
void __wrap_fi_freeinfo(struct fi_info *info);
struct fi_info *__wrap_fi_dupinfo(const struct fi_info *from);
/* file.c */
int __wrap_close(int fd);
ssize_t __wrap_read(int fd, void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
int __wrap_eventfd(unsigned int count, int flags);
int __wrap_eventfd_read(int fd, eventfd_t *value);
int __wrap_eventfd_write(int fd, eventfd_t value);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when,
			   struct itimerspec *old);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int epfd, struct epoll_event *events, int max,
		      int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_ppoll(struct pollfd *fds, nfds_t count,
		 const struct timespec *timeout, const sigset_t *mask);
/* memory.c */
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void __wrap_free(void *p);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_memfd_create(const char *name, unsigned int flags);
int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_posix_fallocate64(int fd, off_t at, off_t bytes);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstatfs64(int fd, struct statfs *fs);
void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd,
		    off_t off);
int __wrap_munmap(void *addr, size_t len);
int __wrap_madvise(void *addr, size_t len, int advice);
int __wrap_mprotect(void *addr, size_t len, int prot);
int __wrap_mincore(void *addr, size_t len, unsigned char *pages);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local,
				unsigned long locals,
				const struct iovec *remote,
				unsigned long remotes, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local,
				 unsigned long locals,
				 const struct iovec *remote,
				 unsigned long remotes, unsigned long flags);
ssize_t __wrap_pread64(int fd, void *buf, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t at);
/* race.c */
void *__wrap_memcpy(void *to, const void *from, size_t len);
void *__wrap_memset(void *to, int byte, size_t len);
/* socket.c */
int __wrap_socket(int family, int type, int protocol);
int __wrap_bind(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *sa, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *sa, socklen_t *len, int flags);
int __wrap_getsockname(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *sa, socklen_t *len);
int __wrap_shutdown(int fd, int how);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int count,
		    int flags);
int __wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int count, int flags,
		    struct timespec *timeout);
/* thread.c */
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
			      const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutexattr_init(pthread_mutexattr_t *attr);
int __wrap_pthread_mutexattr_destroy(pthread_mutexattr_t *attr);
int __wrap_pthread_mutexattr_setpshared(pthread_mutexattr_t *attr, int shared);
int __wrap_pthread_mutexattr_setrobust(pthread_mutexattr_t *attr, int robust);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_once(pthread_once_t *once, void (*fn)(void));
int __wrap_pthread_cond_init(pthread_cond_t *cond,
			     const pthread_condattr_t *attr);
int __wrap_pthread_cond_destroy(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*entry)(void *), void *arg);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void),
			  void (*child)(void));
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
time_t __wrap_time(time_t *to);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *left);
int __wrap_sched_yield(void);
long __wrap_syscall(long number, ...);

#endif
