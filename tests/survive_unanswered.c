/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting when no answer comes. A peer is stopped before it answers: the
 * send fails at the dead time-out, and once the peer continues it is reached. A
 * peer cannot answer because its user has too many descriptors in flight
 * (ETOOMANYREFS, which root never sees): it is reached as soon as it can
 * answer.
 *
 * Bug: in both cases the sender waited for ever, without a message.
 */
#include "common/fabric.h"
#include "common/raw.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define DEAD_S 1
#define USER 61002
#define LIMIT 200
#define PARKED 300

static void receive_one(struct weft_test *t)
{
	struct fi_context context;
	uint64_t value = 0;

	CHECK_OK(weft_test_trecv(t, &value, sizeof(value), 1, 0, &context));
	weft_test_wait_ok(t->rxcq, &context);
	CHECK_EQ(value, 4711);
}

static void stopped(struct weft_test_line *line, void *arg)
{
	struct weft_test t;

	(void)arg;
	weft_test_open(&t, NULL);
	weft_test_put(line, t.name, sizeof(t.name));
	raise(SIGSTOP);
	receive_one(&t);
	weft_test_sync(line);
	weft_test_close(&t);
}

static void test_stopped_peer(void)
{
	uint64_t value = 4711, begin;
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_line line;
	struct weft_test_comp comp;
	struct fi_context context;
	struct weft_test t;
	fi_addr_t peer;
	int status;

	weft_test_fork(&line, stopped, NULL);
	CHECK(weft_test_get(&line, name, sizeof(name)));
	CHECK_EQ(waitpid(line.pid, &status, WUNTRACED), line.pid);
	CHECK(WIFSTOPPED(status));
	weft_test_open(&t, NULL);
	peer = weft_test_insert(&t, name);
	begin = weft_test_ms();
	CHECK_OK(
		fi_tsend(t.ep, &value, sizeof(value), NULL, peer, 1, &context));
	weft_test_wait_err(t.txcq, &context, FI_ETIMEDOUT);
	CHECK(weft_test_ms() - begin >= DEAD_S * 1000 - 5);
	CHECK_SYS(kill(line.pid, SIGCONT));
	/* On a busy machine this may still be too slow. */
	do {
		CHECK_OK(weft_test_tsend(&t, &value, sizeof(value), peer, 1,
					 &context));
		weft_test_wait(t.txcq, &comp);
		CHECK(comp.ret == 1 || comp.ret == -FI_ETIMEDOUT);
		CHECK(weft_test_ms() - begin < WEFT_TEST_PATIENCE_MS);
	} while (comp.ret != 1);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
}

static void become_user(void)
{
	CHECK_SYS(setgroups(0, NULL));
	CHECK_SYS(setresgid(USER, USER, USER));
	CHECK_SYS(setresuid(USER, USER, USER));
	prctl(PR_SET_PDEATHSIG, 9); /* the change of user cleared it */
}

static void sender(struct weft_test_line *line, void *arg)
{
	struct fi_context context;
	uint64_t value = 4711;
	struct weft_test t;
	fi_addr_t peer;

	(void)arg;
	become_user();
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	CHECK_OK(weft_test_tsend(&t, &value, sizeof(value), peer, 1, &context));
	weft_test_put(line, "s", 1);
	weft_test_wait_ok(t.txcq, &context);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* In a child, too, because of the change of user. */
static void receiver(struct weft_test_line *line, void *arg)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	struct weft_test_line to_sender;
	struct weft_test_comp comp;
	struct weft_test t;
	int parked[2];
	char byte;

	(void)line;
	(void)arg;
	/* The user may have no access to a clone below a home folder. */
	weft_test_load();
	weft_test_fork(&to_sender, sender, NULL);
	become_user();
	weft_test_open(&t, NULL);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, parked));
	for (int i = 0; i < PARKED; i += 100)
		weft_test_raw_send(parked[0], "", 1, parked[1], 100);
	CHECK_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	weft_test_meet(&t, &to_sender);
	CHECK(weft_test_get_driving(&to_sender, &byte, 1));
	weft_test_progress_for(150);
	CHECK(!weft_test_poll(t.rxcq, &comp));
	for (int i = 0; i < PARKED; i += 100)
		CHECK_EQ(weft_test_raw_recv(parked[1], &byte, 1, 1000), 1);
	receive_one(&t);
	weft_test_sync(&to_sender);
	weft_test_join(&to_sender);
	weft_test_close(&t);
}

int main(void)
{
	struct weft_test_line line;

	weft_test_begin(100);
	if (!geteuid()) {
		/* Long enough on any machine. */
		setenv("FI_WEFT_CONNECT_TIMEOUT", "60000", 1);
		weft_test_fork(&line, receiver, NULL);
		weft_test_join(&line);
	} else {
		printf("too many descriptors in flight: needs root\n");
	}
	setenv("FI_WEFT_CONNECT_TIMEOUT", "200", 1);
	setenv("FI_WEFT_DEAD_TIMEOUT", "1", 1);
	test_stopped_peer();
	return 0;
}
