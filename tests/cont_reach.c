/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes in namespaces of their own, as containers have them, that share a
 * folder: they reach each other through shared memory, whatever their addresses
 * are, and never somebody else who has the same address. What a killed process
 * leaves in the folder is neither believed nor kept. A folder that cannot be
 * trusted is not used, and without one packets do.
 */
#include "common/fabric.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/net.h"
#include "common/space.h"

#define LARGE 3000000
#define SAME "47600"
#define OTHER "47601"
#define STRANGER 61003

static const struct weft_test_opts sourced = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
};

static struct weft_test_opts at_port(const char *service)
{
	struct weft_test_opts o = sourced;

	o.service = service;
	return o;
}

/* -- what all of them do ---------------------------------------------------- */

/* A message of every way (inline, one record, chunks, large) each way round,
 * with its source. */
static void talk(struct weft_test *t, fi_addr_t peer, bool first)
{
	static const size_t sizes[] = { 8, 2000, 12000, 100000, LARGE };
	uint8_t *buf = malloc(LARGE);

	CHECK(buf);
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i / 2];
		struct weft_test_comp comp;
		struct fi_context context;

		if ((i % 2 == 0) == first) {
			weft_test_fill(buf, len, i);
			CHECK_OK(weft_test_tsend(t, buf, len, peer, i,
						 &context));
			weft_test_wait_ok(t->txcq, &context);
			continue;
		}
		memset(buf, 0, len);
		CHECK_OK(weft_test_trecv(t, buf, len, i, 0, &context));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.entry.len, len);
		CHECK_EQ(comp.src, peer);
		CHECK(weft_test_holds(buf, len, i));
	}
	free(buf);
}

static bool states_place(const struct weft_test *t)
{
	static const char none[8];
	struct sockaddr_in in;

	memcpy(&in, t->name, sizeof(in));
	CHECK_EQ(in.sin_family, AF_INET);
	return memcmp(in.sin_zero, none, sizeof(none)) != 0;
}

static void talk_child(struct weft_test_line *line, void *arg)
{
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, &sourced);
	talk(&t, weft_test_meet(&t, line), false);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* -- the cases --------------------------------------------------------------- */

/* One page of memory is all that their /dev/shm has. */
static void small_shm(void)
{
	CHECK_SYS(unshare(CLONE_NEWNS));
	CHECK_SYS(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK_SYS(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64k"));
}

static void case_apart(void)
{
	struct weft_test_line line;
	struct weft_test t;

	small_shm();
	weft_test_fork(&line, talk_child, NULL);
	weft_test_open(&t, &sourced);
	CHECK(states_place(&t));
	talk(&t, weft_test_meet(&t, &line), true);
	CHECK_EQ(space_files(), 2);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
	CHECK_EQ(space_files(), 0);
}

static void expect(struct weft_test *t, uint64_t tag)
{
	struct weft_test_comp comp;
	struct fi_context context;
	uint64_t got = 0;

	CHECK_OK(weft_test_trecv(t, &got, sizeof(got), 0, ~0ull, &context));
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(comp.entry.tag, tag);
}

static void say(struct weft_test *t, fi_addr_t to, uint64_t tag)
{
	struct fi_context context;

	CHECK_OK(weft_test_tsend(t, &tag, sizeof(tag), to, tag, &context));
	weft_test_wait_ok(t->txcq, &context);
}

static void same_child(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts first = at_port(SAME), second = at_port(OTHER);
	struct weft_test t, other;
	fi_addr_t parent;

	(void)arg;
	weft_test_open(&t, &first);
	weft_test_open(&other, &second);
	parent = weft_test_meet(&t, line);
	weft_test_put(line, other.name, sizeof(other.name));
	talk(&t, parent, false);
	expect(&other, 2);
	weft_test_sync(line);
	weft_test_close(&other);
	weft_test_close(&t);
}

/* Both have 127.0.0.1:47600 and 127.0.0.1:47601: the name of an endpoint says
 * which is meant, a bare address the one of the own namespace. */
static void case_same_address(void)
{
	struct weft_test_opts first = at_port(SAME), second = at_port(OTHER);
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	fi_addr_t near, far, bare;
	struct weft_test t, other;

	weft_test_fork(&line, same_child, NULL);
	weft_test_open(&t, &first);
	weft_test_open(&other, &second);
	far = weft_test_meet(&t, &line);
	talk(&t, far, true);
	CHECK(weft_test_get(&line, name, sizeof(name)));
	near = weft_test_know(&t, &other);
	far = weft_test_insert(&t, name);
	weft_test_name_of_port(name, (uint16_t)atoi(OTHER));
	bare = weft_test_insert(&t, name);
	CHECK(near != far && bare != far);
	say(&t, near, 1);
	say(&t, far, 2);
	expect(&other, 1);
	say(&t, bare, 3);
	expect(&other, 3);
	weft_test_sync(&line);
	weft_test_close(&other);
	weft_test_close(&t);
	weft_test_join(&line);
}

/* One life of a server; the file stays when it is killed. */
static void live(struct weft_test_line *line, uint64_t tag)
{
	struct weft_test_opts o = at_port(SAME);
	struct weft_test t;

	weft_test_open(&t, &o);
	weft_test_meet(&t, line);
	expect(&t, tag);
	weft_test_put(line, &tag, sizeof(tag));
	pause();
}

/* Two lives in one network namespace. */
static void lives_child(struct weft_test_line *line, void *arg)
{
	struct weft_test_line *end = arg; /* says when a life is over */

	for (uint64_t tag = 1; tag <= 2; tag++) {
		pid_t pid = fork();
		char mark;

		CHECK_SYS(pid);
		if (!pid)
			live(line, tag);
		CHECK(weft_test_get(end, &mark, 1));
		CHECK_SYS(kill(pid, SIGKILL));
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		weft_test_put(line, &mark, 1);
	}
}

static void case_killed(void)
{
	struct weft_test_line line, end, end_there;
	struct weft_test_comp comp;
	struct fi_context context;
	fi_addr_t server = 0;
	struct weft_test t;
	uint64_t got;
	int ends[2];
	char mark = 'k';

	CHECK_SYS(setenv("FI_WEFT_CONNECT_TIMEOUT", "500ms", 1));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	end.fd = ends[0];
	end_there.fd = ends[1];
	weft_test_fork(&line, lives_child, &end_there);
	weft_test_open(&t, &sourced);
	for (uint64_t tag = 1; tag <= 2; tag++) {
		fi_addr_t now = weft_test_meet(&t, &line);

		/* Its name is the same: so is what the first life was called. */
		CHECK(tag == 1 || now == server);
		server = now;
		/* What goes to the first life before its death is seen fails. */
		do {
			CHECK_OK(weft_test_tdeliver(&t, &tag, sizeof(tag),
						    server, tag, &context));
			weft_test_wait(t.txcq, &comp);
			CHECK(comp.ret == 1 || tag == 2);
		} while (comp.ret != 1);
		CHECK(weft_test_get_driving(&line, &got, sizeof(got)));
		CHECK_EQ(got, tag);
		weft_test_put(&end, &mark, 1);
		CHECK(weft_test_get_driving(&line, &mark, 1));
		CHECK_EQ(space_files(), 2); /* ours, and what it left */
	}
	/* Nobody is there any more, and whoever finds that out tidies up. Twice:
	 * the first may still belong to the connection that ended. */
	for (int i = 0; i < 2; i++) {
		CHECK_OK(weft_test_tdeliver(&t, &mark, 1, server, 9, &context));
		weft_test_wait(t.txcq, &comp);
		CHECK(comp.ret < 0);
	}
	CHECK_EQ(space_files(), 1);
	weft_test_close(&t);
	weft_test_join(&line);
	CHECK_EQ(space_files(), 0);
}

/* What the provider says on standard error while @run runs. */
static void hear(void (*run)(void), const char *word)
{
	int keep = dup(2),
	    file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char text[4096] = "";

	CHECK_SYS(keep);
	CHECK_SYS(file);
	CHECK_SYS(dup2(file, 2));
	run();
	CHECK_SYS(dup2(keep, 2));
	CHECK_SYS(pread(file, text, sizeof(text) - 1, 0));
	close(keep);
	close(file);
	if (!strstr(text, word))
		FAIL("no '%s' in: %s", word, text);
}

static void open_without(void)
{
	struct weft_test t;

	weft_test_open(&t, &sourced);
	CHECK(!states_place(&t));
	CHECK_EQ(space_files(), 0);
	weft_test_close(&t);
}

static void case_stranger(void)
{
	CHECK_SYS(chown(space_folder(), STRANGER, STRANGER));
	hear(open_without, "belongs to user 61003");
	CHECK_SYS(chown(space_folder(), 0, 0));
}

static void case_open_to_all(void)
{
	CHECK_SYS(chmod(space_folder(), 0777));
	hear(open_without, "chmod +t");
	CHECK_SYS(chmod(space_folder(), 01777));
}

static void case_read_only(void)
{
	const char *folder = space_folder();

	CHECK_SYS(unshare(CLONE_NEWNS));
	CHECK_SYS(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK_SYS(mount(folder, folder, NULL, MS_BIND, NULL));
	CHECK_SYS(mount(NULL, folder, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY,
			NULL));
	hear(open_without, "cannot write to it");
}

static void removed_child(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	fi_addr_t parent;

	(void)arg;
	weft_test_open(&t, &sourced);
	parent = weft_test_meet(&t, line);
	talk(&t, parent, false);
	weft_test_sync(line);
	weft_test_sync(line);
	talk(&t, parent, false);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* Those who have met go on. */
static void case_removed(void)
{
	char command[64];
	struct weft_test_line line;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_fork(&line, removed_child, NULL);
	weft_test_open(&t, &sourced);
	peer = weft_test_meet(&t, &line);
	talk(&t, peer, true);
	weft_test_sync(&line);
	snprintf(command, sizeof(command), "rm -r %s", space_folder());
	CHECK_EQ(system(command), 0);
	weft_test_sync(&line);
	talk(&t, peer, true);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
	CHECK_SYS(mkdir(space_folder(), 0755));
	CHECK_SYS(chmod(space_folder(), 01777));
}

/* -- with a network between them --------------------------------------------- */

static unsigned long long talk_across(bool bare)
{
	unsigned long long before = net_sent("link0");
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_fork(&line, talk_child, NULL);
	weft_test_open(&t, &sourced);
	weft_test_put(&line, t.name, sizeof(t.name));
	CHECK(weft_test_get(&line, name, sizeof(name)));
	if (bare)
		memset(name + offsetof(struct sockaddr_in, sin_zero), 0, 8);
	peer = weft_test_insert(&t, name);
	talk(&t, peer, true);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
	return net_sent("link0") - before;
}

static void case_linked(void)
{
	net_begin(1500);
	CHECK(talk_across(false) < LARGE / 10);
}

/* As fi_getinfo() makes it of an IP address and a port. */
static void case_linked_bare(void)
{
	net_begin(1500);
	CHECK(talk_across(true) < LARGE / 10);
}

static void case_packets(void)
{
	net_begin(1500);
	CHECK_SYS(setenv("FI_WEFT_DIR", "none", 1));
	CHECK(talk_across(false) > LARGE);
	CHECK_EQ(space_files(), 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "namespaces of their own", case_apart },
	{ "the same address", case_same_address },
	{ "killed", case_killed },
	{ "a stranger's folder", case_stranger },
	{ "a folder that all can write", case_open_to_all },
	{ "a folder that cannot be written", case_read_only },
	{ "the folder is removed", case_removed },
	{ "a network between them", case_linked },
	{ "an address without a place", case_linked_bare },
	{ "no folder", case_packets },
};

/* An argument is a part of the name of the cases that are run. */
int main(int argc, char **argv)
{
	setenv("WEFT_TEST_SPACES", "1", 1);
	unsetenv("FI_LOG_LEVEL");
	weft_test_begin(110);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		pid_t pid;

		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		fflush(NULL);
		/* Settings are read once in a process. */
		pid = fork();
		CHECK_SYS(pid);
		if (!pid) {
			cases[i].run();
			fflush(NULL);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) ||
		    (WEXITSTATUS(status) && WEXITSTATUS(status) != 77))
			FAIL("%s: status %x", cases[i].name, status);
		printf("%s: %s\n", cases[i].name,
		       WEXITSTATUS(status) ? "cannot be tried" : "good");
	}
	return 0;
}
