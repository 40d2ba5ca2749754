/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This test checks what other users can do with names if FI_WEFT_ALLOW_UID
 * admits them.
 *
 * Bugs: the endpoint believed the address in a peer's hello, so a process of
 * another user could claim to be any fi_addr_t; and a process that already held
 * the abstract name of a port made fi_enable() fail, although another port was
 * free.
 */
#include "common/fabric.h"
#include "common/raw.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define OTHER_USER 61001

struct ports {
	uint16_t victim;
	uint16_t friend;
};

static void become_other(void)
{
	CHECK_SYS(setgroups(0, NULL));
	CHECK_SYS(setresgid(OTHER_USER, OTHER_USER, OTHER_USER));
	CHECK_SYS(setresuid(OTHER_USER, OTHER_USER, OTHER_USER));
	prctl(PR_SET_PDEATHSIG, 9); /* the change of user cleared it */
}

/* Claims to be the friend, and sends a message. */
static void pose(struct weft_test_line *line, const struct ports *ports)
{
	struct wf_shm_hello hello = weft_test_raw_hello(ports->friend);
	struct wf_shm_welcome welcome;
	struct wf_shm_slot *slot;
	struct weft_test_raw raw;

	CHECK(weft_test_raw_open(&raw, ports->victim, &hello, &welcome));
	slot = weft_test_raw_slot(&raw, 0);
	slot->tag = 1;
	weft_test_raw_publish(slot, 0, 8, WF_SHM_KIND_INLINE,
			      WF_SHM_SLOT_TAGGED);
	weft_test_put(line, "s", 1);
	CHECK(weft_test_get(line, &(char){ 0 }, 1));
	weft_test_raw_close(&raw);
}

static void other_user(struct weft_test_line *line, void *arg)
{
	struct ports ports;
	struct fi_context context;
	struct weft_test t;
	uint64_t value = 5;
	fi_addr_t victim;

	(void)arg;
	CHECK(weft_test_get(line, &ports, sizeof(ports)));
	become_other();
	pose(line, &ports);
	/* The same process under its own address. */
	weft_test_open(&t, NULL);
	victim = weft_test_meet(&t, line);
	CHECK_OK(weft_test_tsend(&t, &value, sizeof(value), victim, 1,
				 &context));
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(line);
	weft_test_close(&t);
}

static void same_user(struct weft_test_line *line, void *arg)
{
	struct ports ports;

	(void)arg;
	CHECK(weft_test_get(line, &ports, sizeof(ports)));
	pose(line, &ports);
}

static fi_addr_t source_of_next(struct weft_test *t)
{
	struct weft_test_comp comp;
	struct fi_context context;
	uint64_t value;

	CHECK_OK(weft_test_trecv(t, &value, sizeof(value), 1, 0, &context));
	weft_test_wait(t->rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	return comp.src;
}

static void test_posing(void)
{
	struct weft_test_opts opts = { .caps = FI_MSG | FI_TAGGED | FI_SOURCE };
	struct weft_test_line other, same;
	struct weft_test victim, friend;
	fi_addr_t to_friend, to_other;
	struct ports ports;
	char byte;

	weft_test_load();
	weft_test_fork(&other, other_user, NULL);
	weft_test_fork(&same, same_user, NULL);
	weft_test_open(&victim, &opts);
	weft_test_open(&friend, NULL);
	to_friend = weft_test_know(&victim, &friend);
	ports.victim = weft_test_port(&victim);
	ports.friend = weft_test_port(&friend);

	weft_test_put(&other, &ports, sizeof(ports));
	CHECK(weft_test_get_driving(&other, &byte, 1));
	CHECK_EQ(source_of_next(&victim), FI_ADDR_NOTAVAIL);
	/* It does not get the name later, either. */
	CHECK_OK(fi_av_remove(victim.av, &to_friend, 1, 0));
	to_friend = weft_test_know(&victim, &friend);
	weft_test_put(&other, "g", 1);
	to_other = weft_test_meet(&victim, &other);
	CHECK_EQ(source_of_next(&victim), to_other);
	weft_test_sync(&other);
	weft_test_join(&other);

	/* A process of our own user could write our memory anyway. */
	weft_test_put(&same, &ports, sizeof(ports));
	CHECK(weft_test_get_driving(&same, &byte, 1));
	CHECK_EQ(source_of_next(&victim), to_friend);
	weft_test_put(&same, "g", 1);
	weft_test_join(&same);
	weft_test_close(&friend);
	weft_test_close(&victim);
}

/* A node with four ports, where another process holds the names of three. */
static void test_squatting(struct weft_test_line *line, void *arg)
{
	static const char range[] = "45000 45003";
	struct weft_test_opts opts = { .service = "45001" };
	struct weft_test t;
	int fd;

	(void)line;
	(void)arg;
	CHECK_SYS(unshare(CLONE_NEWNET));
	CHECK_EQ(system("ip link set lo up"), 0);
	fd = open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY);
	CHECK_SYS(fd);
	CHECK_EQ(write(fd, range, sizeof(range) - 1), sizeof(range) - 1);
	close(fd);
	for (uint16_t port = 45000; port < 45003; port++)
		weft_test_raw_listen(port);
	for (int i = 0; i < 8; i++) {
		CHECK_OK(weft_test_try_open(&t, NULL));
		CHECK_EQ(weft_test_port(&t), 45003);
		weft_test_close(&t);
	}
	CHECK_EQ(weft_test_try_open(&t, &opts), -FI_EADDRINUSE);
}

int main(void)
{
	struct weft_test_line line;

	if (geteuid()) {
		printf("only root can be two users\n");
		return 77;
	}
	setenv("FI_WEFT_ALLOW_UID", "any", 1);
	weft_test_begin(100);
	test_posing();
	weft_test_fork(&line, test_squatting, NULL);
	weft_test_join(&line);
	return 0;
}
