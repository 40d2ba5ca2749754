/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check the behaviour of the kernel on which the layers above rely.
 * The file uses nothing but src/os, so that a simulated kernel can be held to
 * the same tests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/file.h"
#include "os/inline.h"
#include "os/memory.h"
#include "os/net.h"
#include "os/poll.h"
#include "os/process.h"
#include "os/shared.h"
#include "os/socket.h"
#include "os/thread.h"

#define MS 1000000u
#define LONG (10000u * MS) /* no test waits as long */
#define BYTES 16384

/* The same program may run beside us in another build. */
static const char *own_name(void)
{
	WF_PER_PROCESS static char name[64];

	snprintf(name, sizeof(name), "weft-contract/%d", (int)wf_os_getpid());
	return name;
}

/* -- files and memory -------------------------------------------------------- */

static void test_memfd_is_shared_and_sealed(void **state)
{
	struct wf_os_stat st;
	void *a = NULL, *b = NULL;
	int fd = wf_os_memfd_create("weft-contract");

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(wf_os_fallocate(fd, 0, BYTES), 0);
	assert_int_equal(wf_os_seal(fd, WF_OS_SEAL_SHRINK | WF_OS_SEAL_GROW),
			 0);
	assert_int_equal(wf_os_seals(fd), WF_OS_SEAL_SHRINK | WF_OS_SEAL_GROW);
	assert_int_equal(wf_os_ftruncate(fd, 4096), -EPERM);
	assert_int_equal(wf_os_ftruncate(fd, 2 * BYTES), -EPERM);
	assert_int_equal(wf_os_fstat(fd, &st), 0);
	assert_int_equal(st.bytes, BYTES);
	assert_true(st.in_memory);
	assert_int_equal(st.uid, wf_os_geteuid());

	assert_int_equal(
		wf_os_mmap(&a, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd),
		0);
	assert_int_equal(wf_os_mmap(&b, BYTES, PROT_READ, MAP_SHARED, fd), 0);
	assert_ptr_not_equal(a, b);
	strcpy(a, "seen by both");
	assert_string_equal(b, "seen by both");
	/* The mapping outlives the descriptor. */
	assert_int_equal(wf_os_close(fd), 0);
	strcpy(a, "still");
	assert_string_equal(b, "still");
	assert_int_equal(wf_os_munmap(a, BYTES), 0);
	assert_int_equal(wf_os_munmap(b, BYTES), 0);
}

/* Pages are there when the call says so, in the file as well. */
static void test_pages_are_taken(void **state)
{
	void *a = NULL;
	int fd = wf_os_memfd_create("weft-contract"), err;

	(void)state;
	assert_int_equal(wf_os_ftruncate(fd, BYTES), 0);
	assert_int_equal(
		wf_os_mmap(&a, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd),
		0);
	err = wf_os_populate(a, BYTES);
	assert_true(!err || err == -EINVAL);
	/* Not a mapping. */
	assert_int_equal(wf_os_munmap(a, BYTES), 0);
	err = wf_os_populate(a, BYTES);
	assert_true(err == -ENOMEM || err == -EINVAL);
	wf_os_close(fd);
}

static void test_sealed_against_new_writers(void **state)
{
	void *writer = NULL, *other = NULL;
	int fd = wf_os_memfd_create("weft-contract");

	(void)state;
	assert_int_equal(wf_os_ftruncate(fd, BYTES), 0);
	assert_int_equal(wf_os_mmap(&writer, BYTES, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd),
			 0);
	assert_int_equal(wf_os_seal(fd, WF_OS_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(wf_os_mmap(&other, BYTES, PROT_READ | PROT_WRITE,
				    MAP_SHARED, fd),
			 -EPERM);
	assert_null(other);
	assert_int_equal(wf_os_mmap(&other, BYTES, PROT_READ, MAP_SHARED, fd),
			 0);
	*(char *)writer = 'x';
	assert_int_equal(*(char *)other, 'x');
	wf_os_munmap(writer, BYTES);
	wf_os_munmap(other, BYTES);
	wf_os_close(fd);
}

static void test_mappings_come_and_go(void **state)
{
	size_t page = wf_os_page_bytes();
	void *at = NULL, *again;

	(void)state;
	assert_int_equal(wf_os_mmap(&at, page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1),
			 0);
	assert_true(wf_os_is_mapped(at, page));
	*(int *)at = 7;
	/* At the same place: the old mapping is gone. */
	again = at;
	assert_int_equal(wf_os_mmap(&again, page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				    -1),
			 0);
	assert_ptr_equal(again, at);
	assert_int_equal(*(int *)at, 0);
	assert_int_equal(wf_os_munmap(at, page), 0);
	assert_false(wf_os_is_mapped(at, page));
}

static bool take_sound(int fd, void *arg)
{
	struct wf_os_stat st;

	(*(int *)arg)++;
	return !wf_os_fstat(fd, &st) && st.bytes == BYTES;
}

static void test_memfd_is_found_by_name(void **state)
{
	const char *name = own_name();
	int fd, looks = 0;

	(void)state;
	assert_int_equal(wf_os_memfd_find(name, take_sound, &looks), -ENOENT);
	assert_int_equal(looks, 0);
	fd = wf_os_memfd_create(name);
	/* Offered, and not taken. */
	assert_int_equal(wf_os_memfd_find(name, take_sound, &looks), -ENOENT);
	assert_int_equal(looks, 1);
	assert_int_equal(wf_os_ftruncate(fd, BYTES), 0);
	assert_int_equal(wf_os_memfd_find(name, take_sound, &looks), 0);
	wf_os_close(fd);
	assert_int_equal(wf_os_memfd_find(name, take_sound, &looks), -ENOENT);
}

static void test_errors_are_returned(void **state)
{
	void *at = NULL;
	int fd = wf_os_eventfd();
	uint64_t count;

	(void)state;
	assert_int_equal(wf_os_close(-1), -EBADF);
	assert_int_equal(wf_os_seals(fd), -EINVAL);
	assert_true(wf_os_is_readable(fd));
	assert_false(wf_os_is_readable(-1));
	assert_int_equal(wf_os_mmap(&at, BYTES, PROT_READ, MAP_SHARED, -1),
			 -EBADF);
	assert_int_equal(wf_os_bind(fd, NULL, 0), -ENOTSOCK);
	assert_int_equal(wf_os_close(fd), 0);
	assert_int_equal(wf_os_eventfd_read(fd, &count), -EBADF);
}

/* -- sockets ----------------------------------------------------------------- */

static socklen_t unix_name(struct sockaddr_un *un, const char *name)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(un->sun_path + 1, name); /* abstract */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(name));
}

static int unix_socket(int (*call)(int, const struct sockaddr *, socklen_t),
		       const char *name, int *ret)
{
	struct sockaddr_un un;
	socklen_t len = unix_name(&un, name);
	int fd = wf_os_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	*ret = call(fd, (struct sockaddr *)&un, len);
	return fd;
}

/* Two ends of a connection. */
static void connect_pair(int fds[2], const char *name)
{
	int ret, listener = unix_socket(wf_os_bind, name, &ret);

	assert_int_equal(ret, 0);
	assert_int_equal(wf_os_listen(listener, 4), 0);
	assert_int_equal(wf_os_accept(listener, NULL, NULL), -EAGAIN);
	fds[0] = unix_socket(wf_os_connect, name, &ret);
	assert_int_equal(ret, 0);
	fds[1] = wf_os_accept(listener, NULL, NULL);
	assert_true(fds[1] >= 0);
	wf_os_close(listener);
}

static void test_unix_names(void **state)
{
	int ret, first, second;

	(void)state;
	first = unix_socket(wf_os_connect, own_name(), &ret);
	assert_int_equal(ret, -ECONNREFUSED);
	wf_os_close(first);
	first = unix_socket(wf_os_bind, own_name(), &ret);
	assert_int_equal(ret, 0);
	second = unix_socket(wf_os_bind, own_name(), &ret);
	assert_int_equal(ret, -EADDRINUSE);
	wf_os_close(second);
	wf_os_close(first);
	/* The name went with its socket. */
	first = unix_socket(wf_os_bind, own_name(), &ret);
	assert_int_equal(ret, 0);
	wf_os_close(first);
}

static void test_unix_messages(void **state)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	char text[8] = "";
	int fds[2];

	(void)state;
	connect_pair(fds, own_name());
	assert_int_equal(
		wf_os_getsockopt(fds[1], SOL_SOCKET, SO_PEERCRED, &cred, &len),
		0);
	assert_int_equal(cred.pid, wf_os_getpid());
	assert_int_equal(wf_os_recv(fds[1], text, sizeof(text), MSG_DONTWAIT),
			 -EAGAIN);
	/* Messages keep their ends. */
	assert_int_equal(wf_os_send(fds[0], "abc", 3, 0), 3);
	assert_int_equal(wf_os_send(fds[0], "de", 2, 0), 2);
	assert_int_equal(wf_os_recv(fds[1], text, sizeof(text), 0), 3);
	assert_memory_equal(text, "abc", 3);
	/* Bytes that were sent before the end are there before the end. */
	wf_os_close(fds[0]);
	assert_int_equal(wf_os_send(fds[1], "x", 1, 0), -EPIPE);
	assert_int_equal(wf_os_recv(fds[1], text, sizeof(text), 0), 2);
	assert_int_equal(wf_os_recv(fds[1], text, sizeof(text), 0), 0);
	wf_os_close(fds[1]);
	/* The same before our own end, after which the peer cannot send. */
	connect_pair(fds, own_name());
	assert_int_equal(wf_os_send(fds[1], "abc", 3, 0), 3);
	assert_int_equal(wf_os_shutdown(fds[0], SHUT_RDWR), 0);
	assert_int_equal(wf_os_send(fds[1], "x", 1, 0), -EPIPE);
	assert_int_equal(wf_os_recv(fds[0], text, sizeof(text), 0), 3);
	assert_int_equal(wf_os_recv(fds[0], text, sizeof(text), 0), 0);
	wf_os_close(fds[0]);
	wf_os_close(fds[1]);
}

static void test_descriptors_are_passed(void **state)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr head = { .msg_iov = &iov,
			       .msg_iovlen = 1,
			       .msg_control = control.room,
			       .msg_controllen = sizeof(control.room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&head);
	int fds[2], event = wf_os_eventfd(), got;
	uint64_t count;

	(void)state;
	connect_pair(fds, own_name());
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &event, sizeof(int));
	assert_int_equal(wf_os_sendmsg(fds[0], &head, 0), 1);
	/* On its way it lives without its sender's descriptor. */
	wf_os_eventfd_write(event, 5);
	wf_os_close(event);
	memset(&control, 0, sizeof(control));
	head.msg_controllen = sizeof(control.room);
	assert_int_equal(wf_os_recvmsg(fds[1], &head, MSG_DONTWAIT), 1);
	c = CMSG_FIRSTHDR(&head);
	assert_non_null(c);
	assert_int_equal(c->cmsg_type, SCM_RIGHTS);
	memcpy(&got, CMSG_DATA(c), sizeof(int));
	assert_int_equal(wf_os_eventfd_read(got, &count), 0);
	assert_int_equal(count, 5);
	wf_os_close(got);
	wf_os_close(fds[0]);
	wf_os_close(fds[1]);
}

static void test_streams(void **state)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = wf_os_socket(AF_INET, SOCK_STREAM, 0);
	int near = wf_os_socket(AF_INET, SOCK_STREAM, 0), far;
	struct pollfd ready = { .fd = listener, .events = POLLIN };
	socklen_t len = sizeof(name);
	char byte;

	(void)state;
	assert_int_equal(
		wf_os_bind(listener, (struct sockaddr *)&name, sizeof(name)),
		0);
	assert_int_equal(wf_os_listen(listener, 1), 0);
	assert_int_equal(
		wf_os_getsockname(listener, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(
		wf_os_connect(near, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(wf_os_poll(&ready, 1, LONG), 1);
	far = wf_os_accept(listener, NULL, NULL);
	assert_true(far >= 0);
	assert_int_equal(wf_os_send(near, "ab", 2, 0), 2);
	assert_int_equal(wf_os_shutdown(near, SHUT_WR), 0);
	/* No signal. */
	assert_int_equal(wf_os_send(near, "c", 1, 0), -EPIPE);
	ready.fd = far;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wf_os_poll(&ready, 1, LONG), 1);
		assert_int_equal(wf_os_recv(far, &byte, 1, 0), 1);
		assert_int_equal(byte, "ab"[i]);
	}
	assert_int_equal(wf_os_poll(&ready, 1, LONG), 1);
	assert_int_equal(wf_os_recv(far, &byte, 1, 0), 0);
	wf_os_close(near);
	wf_os_close(far);
	wf_os_close(listener);
}

static int udp_socket(struct sockaddr_in *name)
{
	socklen_t len = sizeof(*name);
	int fd = wf_os_socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	*name = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	assert_true(fd >= 0);
	assert_int_equal(wf_os_bind(fd, (struct sockaddr *)name, sizeof(*name)),
			 0);
	assert_int_equal(wf_os_getsockname(fd, (struct sockaddr *)name, &len),
			 0);
	assert_int_not_equal(name->sin_port, 0);
	return fd;
}

static void test_udp(void **state)
{
	struct sockaddr_in a_name, b_name, from[4];
	int a = udp_socket(&a_name), b = udp_socket(&b_name);
	char out[2][4] = { "one", "two" }, in[4][8];
	struct pollfd ready = { .fd = b, .events = POLLIN };
	struct mmsghdr heads[4] = { 0 };
	struct iovec iov[4];
	int got = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		iov[i] = (struct iovec){ out[i], 4 };
		heads[i].msg_hdr = (struct msghdr){
			.msg_name = &b_name,
			.msg_namelen = sizeof(b_name),
			.msg_iov = &iov[i],
			.msg_iovlen = 1,
		};
	}
	assert_int_equal(wf_os_sendmmsg(a, heads, 2, MSG_DONTWAIT), 2);
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){ in[i], sizeof(in[i]) };
		heads[i].msg_hdr = (struct msghdr){
			.msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1,
		};
	}
	while (got < 2) {
		int ret;

		assert_int_equal(wf_os_poll(&ready, 1, LONG), 1);
		ret = wf_os_recvmmsg(b, heads + got, 4 - (unsigned)got,
				     MSG_DONTWAIT);
		assert_true(ret > 0);
		got += ret;
	}
	assert_int_equal(got, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(heads[i].msg_len, 4);
		assert_int_equal(from[i].sin_port, a_name.sin_port);
	}
	assert_int_equal(wf_os_recvmmsg(b, heads, 4, MSG_DONTWAIT), -EAGAIN);
	wf_os_close(a);
	wf_os_close(b);
}

/* -- waiting ----------------------------------------------------------------- */

static void watch(int epoll_fd, int fd, uint64_t number)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP,
				     .data.u64 = number };

	assert_int_equal(wf_os_epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event),
			 0);
}

static void test_epoll(void **state)
{
	int outer = wf_os_epoll_create(), inner = wf_os_epoll_create();
	int event = wf_os_eventfd(), fds[2];
	struct epoll_event events[4];
	uint64_t count;

	(void)state;
	connect_pair(fds, own_name());
	watch(inner, event, 1);
	watch(inner, fds[1], 2);
	watch(outer, inner, 3);
	assert_int_equal(wf_os_epoll_wait(outer, events, 4, 0), 0);
	assert_int_equal(wf_os_eventfd_write(event, 1), 0);
	/* As long as nobody reads it, and through a set in a set. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wf_os_epoll_wait(outer, events, 4, -1), 1);
		assert_int_equal(events[0].data.u64, 3);
		assert_int_equal(wf_os_epoll_wait(inner, events, 4, 0), 1);
		assert_int_equal(events[0].data.u64, 1);
		assert_int_equal(events[0].events, EPOLLIN);
	}
	assert_int_equal(wf_os_eventfd_read(event, &count), 0);
	assert_int_equal(wf_os_epoll_wait(outer, events, 4, 0), 0);
	wf_os_close(fds[0]);
	assert_int_equal(wf_os_epoll_wait(inner, events, 4, 0), 1);
	assert_int_equal(events[0].data.u64, 2);
	assert_true(events[0].events & EPOLLRDHUP);
	assert_int_equal(wf_os_epoll_ctl(inner, EPOLL_CTL_DEL, fds[1], NULL),
			 0);
	assert_int_equal(wf_os_epoll_ctl(inner, EPOLL_CTL_DEL, fds[1], NULL),
			 -ENOENT);
	assert_int_equal(wf_os_epoll_wait(inner, events, 4, 0), 0);
	/* A closed descriptor is not watched any more. */
	wf_os_eventfd_write(event, 1);
	wf_os_close(event);
	assert_int_equal(wf_os_epoll_wait(inner, events, 4, 0), 0);
	wf_os_close(fds[1]);
	wf_os_close(inner);
	wf_os_close(outer);
}

static void test_eventfd_counts(void **state)
{
	int fd = wf_os_eventfd();
	uint64_t count;

	(void)state;
	assert_int_equal(wf_os_eventfd_read(fd, &count), -EAGAIN);
	wf_os_eventfd_write(fd, 2);
	wf_os_eventfd_write(fd, 3);
	assert_int_equal(wf_os_eventfd_read(fd, &count), 0);
	assert_int_equal(count, 5);
	assert_int_equal(wf_os_eventfd_read(fd, &count), -EAGAIN);
	wf_os_close(fd);
}

static void test_timer(void **state)
{
	struct pollfd fd = { .fd = wf_os_timerfd_create(), .events = POLLIN };
	uint64_t begin = wf_os_clock_ns();

	(void)state;
	assert_int_equal(wf_os_poll(&fd, 1, 0), 0);
	assert_int_equal(wf_os_timerfd_set(fd.fd, 2 * MS), 0);
	assert_int_equal(wf_os_poll(&fd, 1, LONG), 1);
	assert_true(wf_os_clock_ns() - begin >= 2 * MS);
	assert_int_equal(wf_os_poll(&fd, 1, 0), 1);
	assert_int_equal(wf_os_timerfd_set(fd.fd, LONG), 0);
	assert_int_equal(wf_os_poll(&fd, 1, 0), 0);
	assert_int_equal(wf_os_timerfd_set(fd.fd, 1), 0);
	assert_int_equal(wf_os_poll(&fd, 1, LONG), 1);
	assert_int_equal(wf_os_timerfd_set(fd.fd, 0), 0);
	begin = wf_os_clock_ns();
	assert_int_equal(wf_os_poll(&fd, 1, 2 * MS), 0);
	assert_true(wf_os_clock_ns() - begin >= 2 * MS);
	wf_os_close(fd.fd);
}

static void test_time_passes(void **state)
{
	uint64_t begin = wf_os_clock_ns();

	(void)state;
	wf_os_sleep(2 * MS);
	assert_true(wf_os_clock_ns() - begin >= 2 * MS);
	wf_os_yield();
	wf_os_relax();
	assert_true(wf_os_time() > 0);
}

/* -- threads ----------------------------------------------------------------- */

struct gate {
	struct wf_os_mutex lock;
	struct wf_os_cond changed;
	int state;
	_Atomic uint32_t word;
	int event;
};

static void *go_through(void *arg)
{
	struct gate *gate = arg;

	wf_os_mutex_lock(&gate->lock);
	while (gate->state != 1)
		wf_os_cond_wait(&gate->changed, &gate->lock);
	gate->state = 2;
	wf_os_cond_broadcast(&gate->changed);
	wf_os_mutex_unlock(&gate->lock);

	while (!wf_shared_load(&gate->word, acquire))
		wf_os_futex_wait(&gate->word, 0, LONG);
	wf_os_eventfd_write(gate->event, 1);
	return NULL;
}

static void test_threads(void **state)
{
	struct gate gate = { .event = wf_os_eventfd() };
	struct pollfd ready = { .fd = gate.event, .events = POLLIN };
	struct wf_os_thread thread;

	(void)state;
	wf_os_mutex_init(&gate.lock);
	wf_os_cond_init(&gate.changed);
	assert_int_equal(wf_os_thread_start(&thread, go_through, &gate), 0);
	wf_os_mutex_lock(&gate.lock);
	gate.state = 1;
	wf_os_cond_broadcast(&gate.changed);
	while (gate.state != 2)
		wf_os_cond_wait(&gate.changed, &gate.lock);
	wf_os_mutex_unlock(&gate.lock);
	assert_int_equal(wf_os_poll(&ready, 1, 0), 0);
	wf_shared_store(&gate.word, 1, release);
	wf_os_futex_wake(&gate.word, 1);
	assert_int_equal(wf_os_poll(&ready, 1, WF_OS_FOREVER), 1);
	wf_os_thread_join(thread);
	wf_os_cond_destroy(&gate.changed);
	wf_os_mutex_destroy(&gate.lock);
	wf_os_close(gate.event);
}

static void test_waits_that_end(void **state)
{
	struct wf_os_mutex lock = WF_OS_MUTEX_INIT;
	struct wf_os_cond never = WF_OS_COND_INIT;
	uint64_t begin = wf_os_clock_ns();
	uint32_t word = 1;

	(void)state;
	wf_os_cond_init(&never);
	wf_os_mutex_lock(&lock);
	while (wf_os_cond_wait_until(&never, &lock, begin + 2 * MS))
		assert_true(wf_os_clock_ns() < begin + LONG);
	assert_true(wf_os_clock_ns() >= begin + 2 * MS);
	wf_os_mutex_unlock(&lock);
	wf_os_cond_destroy(&never);
	/* Neither waits for ever: nobody comes, and another value is there. */
	wf_os_futex_wait(&word, 1, MS);
	wf_os_futex_wait(&word, 0, LONG);
	assert_true(wf_os_clock_ns() < begin + LONG);
}

WF_PER_PROCESS static int runs;

static void count_run(void)
{
	runs++;
}

static void test_once(void **state)
{
	struct wf_os_once once = WF_OS_ONCE_INIT;

	(void)state;
	runs = 0;
	wf_os_once(&once, count_run);
	wf_os_once(&once, count_run);
	assert_int_equal(runs, 1);
}

/* -- processes and networks -------------------------------------------------- */

static void test_memory_of_processes(void **state)
{
	char from[2][4] = { "abc", "def" }, to[8];
	struct iovec remote[2] = { { from[0], 4 }, { from[1], 4 } };
	const struct iovec local = { to, 8 };
	size_t page = wf_os_page_bytes();
	void *gone = NULL;

	(void)state;
	assert_int_equal(wf_os_vm_read(wf_os_getpid(), &local, 1, remote, 2),
			 8);
	assert_memory_equal(to, "abc\0def", 8);
	memcpy(to, "ghi\0jkl", 8);
	assert_int_equal(wf_os_vm_write(wf_os_getpid(), &local, 1, remote, 2),
			 8);
	assert_string_equal(from[1], "jkl");
	/* Whole elements up to the first that is not there. */
	wf_os_mmap(&gone, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	wf_os_munmap(gone, page);
	remote[1].iov_base = gone;
	assert_int_equal(wf_os_vm_read(wf_os_getpid(), &local, 1, remote, 2),
			 4);
	remote[0].iov_base = gone;
	assert_int_equal(wf_os_vm_read(wf_os_getpid(), &local, 1, remote, 2),
			 -EFAULT);
	/* Beyond the largest number of a process. */
	assert_int_equal(wf_os_vm_read(1 << 30, &local, 1, remote, 2), -ESRCH);
}

static void test_random(void **state)
{
	uint64_t a = 0, b = 0;

	(void)state;
	assert_int_equal(wf_os_random(&a, sizeof(a), true), 0);
	assert_int_equal(wf_os_random(&b, sizeof(b), false), 0);
	assert_int_not_equal(a, b);
}

static void test_limit_of_descriptors(void **state)
{
	struct wf_os_fd_limit first, less, again;
	int fd = wf_os_eventfd();

	(void)state;
	assert_int_equal(wf_os_fd_limit(&first), 0);
	assert_true(first.now > (uint64_t)fd && first.most >= first.now);
	assert_int_equal(wf_os_fd_limit_set((uint64_t)fd + 1), 0);
	assert_int_equal(wf_os_fd_limit(&less), 0);
	assert_int_equal(less.now, fd + 1);
	assert_int_equal(less.most, first.most);
	assert_int_equal(wf_os_eventfd(), -EMFILE);
	assert_int_equal(wf_os_fd_limit_set(first.now), 0);
	assert_int_equal(wf_os_fd_limit(&again), 0);
	assert_int_equal(again.now, first.now);
	wf_os_close(fd);
}

static void test_interfaces(void **state)
{
	struct wf_os_iface *list;
	int count = wf_os_ifaces(&list), loopbacks = 0;

	(void)state;
	assert_true(count > 0);
	for (int i = 0; i < count; i++) {
		assert_true(wf_os_iface_exists(list[i].name));
		assert_true(wf_os_iface_mtu(list[i].name) > 0);
		assert_true(list[i].addr.sa.sa_family == AF_INET ||
			    list[i].addr.sa.sa_family == AF_INET6);
		loopbacks += (list[i].flags & IFF_LOOPBACK) != 0;
	}
	assert_true(loopbacks > 0);
	assert_false(wf_os_iface_exists("weft-none"));
	assert_int_equal(wf_os_iface_mtu("weft-none"), -ENODEV);
	free(list);
}

static void test_names(void **state)
{
	struct wf_os_query query = { .node = "127.0.0.1",
				     .service = "7",
				     .numeric = true };
	struct wf_os_name *list;

	(void)state;
	assert_int_equal(wf_os_resolve(&query, &list), 1);
	assert_int_equal(list->addr.in.sin_family, AF_INET);
	assert_int_equal(ntohl(list->addr.in.sin_addr.s_addr), INADDR_LOOPBACK);
	assert_int_equal(ntohs(list->addr.in.sin_port), 7);
	free(list);
	query.node = "no-number";
	assert_int_equal(wf_os_resolve(&query, &list), -ENOENT);
}

/* -- folders and namespaces -------------------------------------------------- */

static bool count_entry(const char *name, uint64_t age, void *arg)
{
	(void)age;
	assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
	return ++*(unsigned int *)arg == 2;
}

static void test_folders(void **state)
{
	struct wf_os_folder folder;
	unsigned int entries = 0;

	(void)state;
	assert_int_equal(wf_os_folder("/tmp", &folder), 0);
	assert_true(folder.is_shared && folder.is_sticky && folder.is_writable);
	assert_int_equal(folder.uid, 0);
	assert_int_equal(wf_os_folder("/proc/self", &folder), -ENOTDIR);
	assert_int_equal(wf_os_folder("/proc/version", &folder), -ENOTDIR);
	assert_int_equal(wf_os_folder("/no-such-folder", &folder), -ENOENT);
	assert_int_equal(wf_os_folder_each("/", count_entry, &entries), 0);
	assert_int_equal(entries, 2);
	assert_int_equal(
		wf_os_folder_each("/no-such-folder", count_entry, &entries),
		-ENOENT);
	assert_int_equal(wf_os_unlink("/no-such-folder/file"), -ENOENT);
	assert_int_equal(wf_os_socket_file("/no-such-folder/file"), -ENOENT);
	assert_int_equal(wf_os_socket_file("/tmp"), -ENOTSOCK);
	assert_int_equal(wf_os_socket_file("/proc/self"), -ENOTSOCK);
}

static void test_namespace(void **state)
{
	uint64_t one = 0, two = 1;

	(void)state;
	assert_int_equal(wf_os_netns(&one), 0);
	assert_int_equal(wf_os_netns(&two), 0);
	assert_int_equal(one, two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memfd_is_shared_and_sealed),
		cmocka_unit_test(test_pages_are_taken),
		cmocka_unit_test(test_sealed_against_new_writers),
		cmocka_unit_test(test_mappings_come_and_go),
		cmocka_unit_test(test_memfd_is_found_by_name),
		cmocka_unit_test(test_errors_are_returned),
		cmocka_unit_test(test_unix_names),
		cmocka_unit_test(test_unix_messages),
		cmocka_unit_test(test_descriptors_are_passed),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_eventfd_counts),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_time_passes),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_waits_that_end),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_memory_of_processes),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_limit_of_descriptors),
		cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_folders),
		cmocka_unit_test(test_namespace),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
