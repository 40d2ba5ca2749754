/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints in a folder: found by place and address, and by an address alone
 * where only one has it. Leftovers refuse and go away; sockets that listen
 * stay.
 */
#include "shm/folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <utime.h>

#include <cmocka.h>

#include "base/place.h"

#define HOST 0xabcdefull
#define PLACE (HOST << 24 | 0x11)
#define ELSEWHERE (HOST << 24 | 0x22)
#define ABROAD (0x123457ull << 24 | 0x11) /* another boot */

static char folder[32];
static const struct wf_shm_home home = { .folder = folder, .place = PLACE };

/* Another process does this at the worst moment: after a socket has refused, or
 * just before its name is moved. */
static void (*after_refusal)(void), (*before_rename)(void);

static void run_once(void (**hook)(void))
{
	void (*call)(void) = *hook;

	*hook = NULL;
	if (call)
		call();
}

/* In place of the C library's. */
int connect(int fd, const struct sockaddr *name, socklen_t len)
{
	int ret = (int)syscall(SYS_connect, fd, name, len);

	if (ret && errno == ECONNREFUSED) {
		run_once(&after_refusal);
		errno = ECONNREFUSED;
	}
	return ret;
}

int rename(const char *from, const char *to)
{
	run_once(&before_rename);
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/weft-folder-XXXXXX");
	return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder); /* nothing is left */
}

static struct wf_addr addr_of(const char *ip, uint16_t port, uint64_t place)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	struct wf_addr addr;

	if (inet_pton(AF_INET, ip, &in.sin_addr) == 1) {
		assert_int_equal(wf_base_addr_set(&addr, &in, sizeof(in)), 0);
	} else {
		assert_int_equal(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
		assert_int_equal(wf_base_addr_set(&addr, &in6, sizeof(in6)), 0);
	}
	wf_base_place_put(&addr, place);
	return addr;
}

static int listen_at(uint64_t place, const struct wf_addr *addr)
{
	struct wf_shm_home there = { .folder = folder, .place = place };

	return wf_shm_folder_listen(&there, addr, false);
}

static void leave(uint64_t place, const struct wf_addr *addr, int fd)
{
	struct wf_shm_home there = { .folder = folder, .place = place };

	wf_shm_folder_leave(&there, addr);
	close(fd);
}

static void path_of(char path[128], const char *hidden, uint64_t place,
		    const char *addr)
{
	snprintf(path, 128, "%s/%sep-%06x-%06x-%s", folder, hidden,
		 wf_base_place_host(place), wf_base_place_space(place), addr);
}

/* A socket as a process leaves it that is killed. */
static void leave_behind(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(un.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
}

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

static void check_met(const struct wf_addr *addr)
{
	int fd = wf_shm_folder_connect(&home, addr);

	assert_true(fd >= 0);
	close(fd);
}

static void test_meet(void **state)
{
	struct wf_addr v4 = addr_of("127.0.0.1", 5000, ELSEWHERE);
	struct wf_addr v6 = addr_of("fd00:1111:2222:3333:4444:5555:6666:7777",
				    65535, ELSEWHERE);
	struct wf_addr here = addr_of("127.0.0.1", 5000, PLACE);
	int fd4 = listen_at(ELSEWHERE, &v4), fd6 = listen_at(ELSEWHERE, &v6);

	(void)state;
	assert_true(fd4 >= 0 && fd6 >= 0);
	check_met(&v4);
	check_met(&v6);
	assert_int_equal(wf_shm_folder_connect(&home, &here), -ECONNREFUSED);
	leave(ELSEWHERE, &v4, fd4);
	leave(ELSEWHERE, &v6, fd6);
	assert_int_equal(wf_shm_folder_connect(&home, &v4), -ECONNREFUSED);
}

/* Two namespaces have the address: a guess could be the wrong one. */
static void test_bare(void **state)
{
	struct wf_addr bare = addr_of("10.0.0.1", 5000, 0);
	struct wf_addr one = addr_of("10.0.0.1", 5000, PLACE);
	struct wf_addr two = addr_of("10.0.0.1", 5000, ELSEWHERE);
	struct wf_addr abroad = addr_of("10.0.0.1", 5000, ABROAD);
	int fd1, fd2, fd3;

	(void)state;
	assert_int_equal(wf_shm_folder_connect(&home, &bare), -ECONNREFUSED);
	fd3 = listen_at(ABROAD, &abroad);
	assert_int_equal(wf_shm_folder_connect(&home, &bare), -ECONNREFUSED);
	fd1 = listen_at(PLACE, &one);
	check_met(&bare);
	fd2 = listen_at(ELSEWHERE, &two);
	assert_true(fd1 >= 0 && fd2 >= 0 && fd3 >= 0);
	assert_int_equal(wf_shm_folder_connect(&home, &bare), -ENOTUNIQ);
	check_met(&two);
	leave(PLACE, &one, fd1);
	check_met(&bare);
	leave(ELSEWHERE, &two, fd2);
	leave(ABROAD, &abroad, fd3);
}

static void test_leftover(void **state)
{
	struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
	struct wf_addr bare = addr_of("10.0.0.1", 5000, 0);
	char path[128];
	int fd;

	(void)state;
	path_of(path, "", ELSEWHERE, "10.0.0.1:5000");
	leave_behind(path);
	assert_int_equal(wf_shm_folder_connect(&home, &addr), -ECONNREFUSED);
	assert_false(is_there(path));
	leave_behind(path);
	assert_int_equal(wf_shm_folder_connect(&home, &bare), -ECONNREFUSED);
	assert_false(is_there(path));
	/* The next process takes over. */
	leave_behind(path);
	fd = listen_at(ELSEWHERE, &addr);
	assert_true(fd >= 0);
	check_met(&addr);
	/* Nobody takes over from one that lives. */
	assert_int_equal(listen_at(ELSEWHERE, &addr), -EADDRINUSE);
	check_met(&addr);
	leave(ELSEWHERE, &addr, fd);
}

static int successor = -1;

/* Takes over from a leftover, as wf_shm_folder_listen() does it in another
 * process. */
static void succeed(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char path[128];

	path_of(path, "", ELSEWHERE, "10.0.0.1:5000");
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/new", folder);
	successor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(successor >= 0);
	assert_int_equal(bind(successor, (struct sockaddr *)&un, sizeof(un)),
			 0);
	assert_int_equal(listen(successor, 8), 0);
	assert_int_equal(rename(un.sun_path, path), 0);
}

/* The bug was that who met the leftover removed the name of the process that
 * had come meanwhile, and nobody met that any more. */
static void test_successor(void **state)
{
	struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
	void (**const moments[])(void) = { &after_refusal, &before_rename };
	char path[128];

	(void)state;
	path_of(path, "", ELSEWHERE, "10.0.0.1:5000");
	for (size_t i = 0; i < 2; i++) {
		leave_behind(path);
		*moments[i] = succeed;
		assert_int_equal(wf_shm_folder_connect(&home, &addr),
				 -ECONNREFUSED);
		assert_null(*moments[i]);
		check_met(&addr);
		leave(ELSEWHERE, &addr, successor);
	}
}

/* Another user of the folder could lead those who mean one endpoint to another
 * one of the same user. */
static void test_links(void **state)
{
	struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
	struct wf_addr meant = addr_of("10.0.0.1", 6000, ELSEWHERE);
	struct wf_addr bare = addr_of("10.0.0.1", 6000, 0);
	char path[128], name[128];
	int fd = listen_at(ELSEWHERE, &addr);

	(void)state;
	assert_true(fd >= 0);
	path_of(path, "", ELSEWHERE, "10.0.0.1:5000");
	path_of(name, "", ELSEWHERE, "10.0.0.1:6000");
	assert_int_equal(symlink(path, name), 0);
	assert_int_equal(wf_shm_folder_connect(&home, &meant), -ECONNREFUSED);
	assert_int_equal(wf_shm_folder_connect(&home, &bare), -ECONNREFUSED);
	assert_int_equal(unlink(name), 0); /* was left alone */
	assert_int_equal(link(path, name), 0);
	assert_int_equal(wf_shm_folder_connect(&home, &meant), -ECONNREFUSED);
	assert_int_equal(unlink(name), 0);
	check_met(&addr);
	leave(ELSEWHERE, &addr, fd);
}

/* A name that can be guessed could be taken before. */
static void test_hidden(void **state)
{
	struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
	char hidden[128];
	int fd;

	(void)state;
	path_of(hidden, ".", ELSEWHERE, "10.0.0.1:5000");
	assert_int_equal(mkdir(hidden, 0700), 0);
	fd = listen_at(ELSEWHERE, &addr);
	assert_true(fd >= 0);
	check_met(&addr);
	leave(ELSEWHERE, &addr, fd);
	assert_int_equal(rmdir(hidden), 0);
}

/* A bug: a new endpoint looked whether its own name was a leftover, and so woke
 * whoever slept on it. Which names it looks at is drawn at random. */
static void test_not_woken(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
		int fd = listen_at(ELSEWHERE, &addr);
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

		assert_true(fd >= 0);
		assert_int_equal(poll(&poll_fd, 1, 0), 0);
		leave(ELSEWHERE, &addr, fd);
	}
}

/* In a sticky folder nobody replaces what another user left, dead or not. */
static void test_held(void **state)
{
	struct wf_addr addr = addr_of("10.0.0.1", 5000, ELSEWHERE);
	char path[128];

	(void)state;
	if (geteuid())
		skip();
	path_of(path, "", ELSEWHERE, "10.0.0.1:5000");
	leave_behind(path);
	assert_int_equal(chmod(folder, 01777), 0);
	assert_int_equal(seteuid(61003), 0);
	assert_int_equal(listen_at(ELSEWHERE, &addr), -EADDRINUSE);
	assert_int_equal(seteuid(0), 0);
	assert_true(is_there(path));
	assert_int_equal(unlink(path), 0); /* rmdir() sees all others */
}

/* New endpoints look for what others left, some each: soon it is gone. */
static void test_sweep(void **state)
{
	struct wf_addr living = addr_of("10.0.0.1", 1, ELSEWHERE);
	struct wf_addr addr = addr_of("10.0.0.2", 2, PLACE);
	char left[128], fresh[128], old[128], abroad[128];
	struct utimbuf past = { 0 };
	int fd = listen_at(ELSEWHERE, &living), tries = 0;

	(void)state;
	assert_true(fd >= 0);
	path_of(left, "", ELSEWHERE, "10.0.0.1:5000");
	path_of(fresh, ".", ELSEWHERE, "10.0.0.1:5001");
	path_of(old, ".", ELSEWHERE, "10.0.0.1:5002");
	path_of(abroad, "", ABROAD, "10.0.0.1:5000");
	leave_behind(left);
	leave_behind(fresh); /* may be about to listen */
	leave_behind(old);
	assert_int_equal(utime(old, &past), 0);
	leave_behind(abroad); /* may be a folder of several hosts */
	while (is_there(left) || is_there(old)) {
		int other = listen_at(PLACE, &addr);

		assert_true(other >= 0);
		leave(PLACE, &addr, other);
		assert_true(++tries < 1000);
	}
	assert_true(is_there(fresh));
	assert_true(is_there(abroad));
	check_met(&living);
	unlink(fresh);
	unlink(abroad);
	leave(ELSEWHERE, &living, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meet),
		cmocka_unit_test(test_bare),
		cmocka_unit_test(test_leftover),
		cmocka_unit_test(test_successor),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_not_woken),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
