/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes in namespaces of their own, as in containers, that share a folder:
 * they reach each other through shared memory, whatever their addresses are,
 * and never another process with the same address. The kernel copies large
 * messages once if they share a PID namespace, otherwise they go through the ring.
 * A socket that a killed process left in the folder is not trusted, and is removed.
 * A folder that cannot be trusted is not used; without a folder, packets are used.
 */
#include "common/fabric.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/net.h"
#include "common/space.h"

#define LARGE 3000000
#define SAME "47600"
#define OTHER "47601"
#define STRANGER 61003
#define OTHER_STRANGER 61004

static const struct weft_test_opts sourced = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
};

static struct weft_test_opts at_port(const char *service)
{
	struct weft_test_opts o = sourced;

	o.service = service;
	return o;
}

/* -- CMA: this program has these functions in the place of the C library's ---- */

/* Bytes that processes have copied from or to each other; all of them share it. */
static _Atomic uint64_t *copied;

static ssize_t counted(pid_t pid, long got)
{
	if (got > 0 && pid != getpid())
		*copied += (uint64_t)got;
	return got;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local,
			 unsigned long liovcnt, const struct iovec *remote,
			 unsigned long riovcnt, unsigned long flags)
{
	return counted(pid, syscall(SYS_process_vm_readv, pid, local, liovcnt,
				    remote, riovcnt, flags));
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local,
			  unsigned long liovcnt, const struct iovec *remote,
			  unsigned long riovcnt, unsigned long flags)
{
	return counted(pid, syscall(SYS_process_vm_writev, pid, local, liovcnt,
				    remote, riovcnt, flags));
}

/* Whether this machine lets a child copy from its parent. */
static bool may_copy(void)
{
	char here = 0, there = 'c';
	const struct iovec local = { &here, 1 }, remote = { &there, 1 };
	pid_t pid = fork();
	int status;

	CHECK_SYS(pid);
	if (!pid)
		_exit(syscall(SYS_process_vm_readv, getppid(), &local, 1,
			      &remote, 1, 0) != 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* -- what all of them do ---------------------------------------------------- */

/* Exchanges a message by every protocol (inline, one record, chunks, large) in
 * each direction, and checks its source. */
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

struct way {
	const char *folder; /* of the child; NULL: the same */
	bool bare;	    /* its address does not state a place */
	bool by6;	    /* IPv6 */
};

static struct weft_test_opts opts_of(const struct way *way)
{
	struct weft_test_opts o = sourced;

	if (way && way->by6)
		o.node = net_addr6(net_here());
	return o;
}

static void talk_child(struct weft_test_line *line, void *arg)
{
	const struct way *way = arg;
	struct weft_test_opts o = opts_of(way);
	struct weft_test t;

	if (way && way->folder)
		CHECK_SYS(setenv("FI_WEFT_DIR", way->folder, 1));
	weft_test_open(&t, &o);
	talk(&t, weft_test_meet(&t, line), false);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* -- the cases --------------------------------------------------------------- */

/* Their /dev/shm has only one page of memory. */
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

static void same_host_child(struct weft_test_line *line, void *first)
{
	struct weft_test t;

	weft_test_open(&t, &sourced);
	talk(&t, weft_test_meet(&t, line), first);
	weft_test_sync(line);
	weft_test_close(&t);
}

static void pass_on(struct weft_test_line *from, struct weft_test_line *to,
		    size_t len)
{
	uint8_t bytes[WEFT_TEST_NAME_MAX];

	CHECK(weft_test_get(from, bytes, len));
	weft_test_put(to, bytes, len);
}

/* Above, this process sees those of its child. Here neither sees the other's. */
static void case_same_host(void)
{
	struct weft_test_line one, two;
	char first;

	weft_test_fork(&one, same_host_child, &first);
	weft_test_fork(&two, same_host_child, NULL);
	pass_on(&one, &two, WEFT_TEST_NAME_MAX);
	pass_on(&two, &one, WEFT_TEST_NAME_MAX);
	/* When both have talked. */
	pass_on(&one, &two, 1);
	pass_on(&two, &one, 1);
	weft_test_join(&one);
	weft_test_join(&two);
	CHECK_EQ(*copied, 0);
	CHECK_EQ(space_files(), 0);
}

/* Only network and IPC are namespaces of their own. */
static void case_shared_pids(void)
{
	struct weft_test_line line;
	struct weft_test t;

	if (!may_copy())
		_exit(77);
	space_share_pids();
	weft_test_fork(&line, talk_child, NULL);
	weft_test_open(&t, &sourced);
	talk(&t, weft_test_meet(&t, &line), true);
	CHECK_EQ(space_files(), 2);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
	CHECK(*copied >= 2 * LARGE);
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

/* Both namespaces have 127.0.0.1:47600 and 127.0.0.1:47601. The name of an
 * endpoint tells which one is meant; a bare address means the one in our own
 * namespace. */
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

/* One run of a server; its file stays in the folder when it is killed. */
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

/* Runs the server twice in one network namespace. */
static void lives_child(struct weft_test_line *line, void *arg)
{
	struct weft_test_line *turn =
		arg; /* the parent says when a run begins and when it ends */

	for (uint64_t tag = 1; tag <= 2; tag++) {
		pid_t pid;
		char mark;

		/* A server that begins has a second file for a moment. */
		CHECK(weft_test_get(turn, &mark, 1));
		pid = fork();
		CHECK_SYS(pid);
		if (!pid)
			live(line, tag);
		CHECK(weft_test_get(turn, &mark, 1));
		CHECK_SYS(kill(pid, SIGKILL));
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		weft_test_put(line, &mark, 1);
	}
}

static void case_killed(void)
{
	struct weft_test_line line, turn, turn_there;
	struct weft_test_comp comp;
	struct fi_context context;
	fi_addr_t server = 0;
	struct weft_test t;
	uint64_t got;
	int ends[2];
	char mark = 'k';

	CHECK_SYS(setenv("FI_WEFT_CONNECT_TIMEOUT", "500ms", 1));
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	turn.fd = ends[0];
	turn_there.fd = ends[1];
	weft_test_fork(&line, lives_child, &turn_there);
	weft_test_open(&t, &sourced);
	for (uint64_t tag = 1; tag <= 2; tag++) {
		fi_addr_t now;

		weft_test_put(&turn, &mark, 1);
		now = weft_test_meet(&t, &line);
		/* The second run has the same name as the first. */
		CHECK(tag == 1 || now == server);
		server = now;
		/* Messages to the first run fail until its death is noticed. */
		do {
			CHECK_OK(weft_test_tdeliver(&t, &tag, sizeof(tag),
						    server, tag, &context));
			weft_test_wait(t.txcq, &comp);
			CHECK(comp.ret == 1 || tag == 2);
		} while (comp.ret != 1);
		CHECK(weft_test_get_driving(&line, &got, sizeof(got)));
		CHECK_EQ(got, tag);
		weft_test_put(&turn, &mark, 1);
		CHECK(weft_test_get_driving(&line, &mark, 1));
		CHECK_EQ(space_files(), 2); /* ours, and the one that it left */
	}
	/* Nobody is there any more, and the process that notices this removes
	 * the file. It takes two tries: the first may still use the connection
	 * that has ended. */
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

/* Checks that the provider writes @word to standard error while @run runs. */
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

/* The file of the only endpoint. */
static void find_file(char path[128])
{
	DIR *dir = opendir(space_folder());
	struct dirent *entry;

	CHECK(dir);
	do {
		entry = readdir(dir);
		CHECK(entry);
	} while (entry->d_name[0] == '.');
	snprintf(path, 128, "%s/%.80s", space_folder(), entry->d_name);
	closedir(dir);
}

static int hold(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK_SYS(fd);
	memcpy(un.sun_path, path, strlen(path));
	CHECK_SYS(bind(fd, (struct sockaddr *)&un, sizeof(un)));
	CHECK_SYS(listen(fd, 1));
	return fd;
}

/* Another process already has the name of an endpoint in the folder. If other
 * users are allowed, peers could take it for the endpoint, so the endpoint does
 * not open; otherwise peers refuse that process. */
static void held(bool others_are_allowed)
{
	struct weft_test_opts o = at_port(SAME);
	struct weft_test t;
	char path[128];
	int fd;

	if (others_are_allowed)
		CHECK_SYS(setenv("FI_WEFT_ALLOW_UID", "any", 1));
	weft_test_open(&t, &o);
	find_file(path);
	weft_test_close(&t);
	fd = hold(path);
	CHECK_EQ(weft_test_try_open(&t, &o),
		 others_are_allowed ? -FI_EADDRINUSE : 0);
	if (!others_are_allowed)
		weft_test_close(&t);
	CHECK_EQ(space_files(), 1);
	close(fd);
	CHECK_SYS(unlink(path));
}

static void case_held(void)
{
	held(true);
}

static void hold_alone(void)
{
	held(false);
}

static void case_held_alone(void)
{
	hear(hold_alone, "no socket in");
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

/* Processes that are already connected continue. */
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

/* As in rootless containers: the user is root of a user namespace. */
static void become_rootless(uid_t user)
{
	char map[32];
	int fd;

	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)user);
	CHECK_SYS(setgid(user));
	CHECK_SYS(setuid(user));
	CHECK_SYS(prctl(PR_SET_DUMPABLE,
			1)); /* otherwise the map belongs to root */
	if (unshare(CLONE_NEWUSER))
		_exit(77);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	CHECK_SYS(fd);
	CHECK_EQ(write(fd, map, strlen(map)), (ssize_t)strlen(map));
	close(fd);
	CHECK_EQ(geteuid(), 0);
}

static void rootless_child(struct weft_test_line *line, void *arg)
{
	become_rootless(STRANGER);
	talk_child(line, arg);
}

/* Two user namespaces: the kernel tells each which of its users the peer is. */
static void case_rootless(void)
{
	struct weft_test_line line;
	struct weft_test t;

	weft_test_load(); /* from folders that the user may not see */
	weft_test_fork(&line, rootless_child, NULL);
	become_rootless(STRANGER);
	weft_test_open(&t, &sourced);
	talk(&t, weft_test_meet(&t, &line), true);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
}

/* A child inherits the endpoint of its parent, and its exit changes nothing. */
static void case_forked(void)
{
	struct weft_test_line line;
	struct weft_test t;
	pid_t pid;

	weft_test_open(&t, &sourced);
	pid = fork();
	CHECK_SYS(pid);
	if (!pid) {
		weft_test_close(&t);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(space_files(), 1);
	weft_test_fork(&line, talk_child, NULL);
	talk(&t, weft_test_meet(&t, &line), true);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
}

/* -- with a network between them --------------------------------------------- */

static void other_child(struct weft_test_line *line, void *arg)
{
	become_rootless(OTHER_STRANGER);
	talk_child(line, arg);
}

/* As with `podman --userns auto`: both are root of a user namespace, but another
 * user of the host, who has no number in the namespace of the peer. */
static void case_other_users(void)
{
	unsigned long long before;
	struct weft_test_line line;
	struct weft_test t;

	net_begin(1500);
	before = net_sent("link0");
	weft_test_load();
	weft_test_fork(&line, other_child, NULL);
	become_rootless(STRANGER);
	weft_test_open(&t, &sourced);
	talk(&t, weft_test_meet(&t, &line), true);
	CHECK(net_sent("link0") - before > LARGE);
	weft_test_sync(&line);
	weft_test_close(&t);
	weft_test_join(&line);
	CHECK_EQ(space_files(), 0);
}

/* Returns the number of bytes sent over the link. */
static unsigned long long talk_across(struct way *way)
{
	struct weft_test_opts o = opts_of(way);
	unsigned long long before = net_sent("link0");
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	struct weft_test t;
	fi_addr_t peer;

	weft_test_fork(&line, talk_child, way);
	weft_test_open(&t, &o);
	weft_test_put(&line, t.name, sizeof(t.name));
	CHECK(weft_test_get(&line, name, sizeof(name)));
	if (way->bare)
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
	CHECK(talk_across(&(struct way){ 0 }) < LARGE / 10);
	CHECK(talk_across(&(struct way){ .by6 = true }) < LARGE / 10);
}

/* As fi_getinfo() makes it from an IP address and a port. */
static void case_linked_bare(void)
{
	net_begin(1500);
	CHECK(talk_across(&(struct way){ .bare = true }) < LARGE / 10);
}

static void case_packets(void)
{
	net_begin(1500);
	CHECK_SYS(setenv("FI_WEFT_DIR", "none", 1));
	CHECK(talk_across(&(struct way){ 0 }) > LARGE);
	CHECK_EQ(space_files(), 0);
}

/* Both addresses state a place, which packets do not carry; a peer is
 * recognized nevertheless. */
static void talk_apart(bool by6)
{
	char folder[] = "/tmp/weft-other-XXXXXX";

	net_begin(1500);
	CHECK(mkdtemp(folder));
	CHECK(talk_across(&(struct way){ .folder = folder, .by6 = by6 }) >
	      LARGE);
	CHECK_SYS(rmdir(folder)); /* nothing is left */
}

static void case_two_folders(void)
{
	talk_apart(false);
}

static void case_two_folders6(void)
{
	talk_apart(true);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "namespaces of their own", case_apart },
	{ "beside each other", case_same_host },
	{ "a PID namespace in common", case_shared_pids },
	{ "the same address", case_same_address },
	{ "killed", case_killed },
	{ "a stranger's folder", case_stranger },
	{ "a folder that all can write", case_open_to_all },
	{ "a folder that cannot be written", case_read_only },
	{ "the name is held", case_held },
	{ "the name is held, and others are refused", case_held_alone },
	{ "the folder is removed", case_removed },
	{ "rootless", case_rootless },
	{ "forked", case_forked },
	{ "a network between them", case_linked },
	{ "an address without a place", case_linked_bare },
	{ "users of their own", case_other_users },
	{ "no folder", case_packets },
	{ "a folder each", case_two_folders },
	{ "a folder each, IPv6", case_two_folders6 },
};

/* An argument selects the cases whose names contain it. */
int main(int argc, char **argv)
{
	setenv("WEFT_TEST_SPACES", "1", 1);
	unsetenv("FI_LOG_LEVEL");
	weft_test_begin(110);
	copied = mmap(NULL, sizeof(*copied), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(copied != MAP_FAILED);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		pid_t pid;

		if (argc > 1 && !strstr(cases[i].name, argv[1]))
			continue;
		*copied = 0;
		fflush(NULL);
		/* A process reads the settings only once. */
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
