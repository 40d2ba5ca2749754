/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that was cloned without running the fork handlers holds our sockets
 * open. Peers come and go nevertheless; the sockets of peers that are gone
 * cause no more events, and a waiting thread sleeps. Bug: the sockets were
 * closed without being removed from the epoll set, which then referred to freed
 * memory.
 */
#include "wait_util.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PEERS 4
#define IDLE_MS 200
/* In that time; an endless loop wakes far more often. */
#define WAKES_MAX 50

static const struct weft_test_opts opts = {
	.caps = RMA_CAPS,
	.wait_obj = FI_WAIT_FD,
	.one_cq = true,
};

static pid_t clone_quietly(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	CHECK_SYS(pid);
	if (pid)
		return (pid_t)pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void peer(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	uint64_t word = 1;
	fi_addr_t parent;

	(void)arg;
	weft_test_open(&t, &opts);
	parent = weft_test_meet(&t, line);
	CHECK_OK(weft_test_trecv(&t, &word, 8, 1, 0, &word));
	CHECK_OK(weft_test_tsend(&t, &word, 8, parent, 1, NULL));
	for (;;)
		weft_test_progress();
}

/* How often the descriptor wakes a thread that has nothing to do. */
static int count_wakes(struct weft_test *t)
{
	struct pollfd pfd = { .fd = wait_fd_of(&t->txcq->fid),
			      .events = POLLIN };
	uint64_t now, end = weft_test_ms() + IDLE_MS;
	struct fid *fids[1] = { &t->txcq->fid };
	struct weft_test_comp comp;
	int wakes = 0;

	while ((now = weft_test_ms()) < end) {
		CHECK(!weft_test_poll(t->txcq, &comp));
		if (!fi_trywait(t->fabric, fids, 1))
			wakes += poll(&pfd, 1, (int)(end - now)) > 0;
	}
	return wakes;
}

/* A message each way; then the peer is killed while the clone holds both
 * sockets. */
static void one_peer(struct weft_test *t)
{
	struct weft_test_line line;
	struct fi_context tx, rx;
	uint64_t word = 0;
	fi_addr_t to;
	pid_t clone;
	int wakes;

	weft_test_fork(&line, peer, NULL);
	to = weft_test_meet(t, &line);
	CHECK_OK(weft_test_trecv(t, &word, 8, 1, 0, &rx));
	CHECK_OK(weft_test_tsend(t, &word, 8, to, 1, &tx));
	weft_test_wait_ok(t->txcq, NULL);
	weft_test_wait_ok(t->txcq, NULL);
	clone = clone_quietly();
	weft_test_kill(&line);
	weft_test_progress_for(20);
	wakes = count_wakes(t);
	printf("woken %d times in %d ms\n", wakes, IDLE_MS);
	CHECK(wakes <= WAKES_MAX);
	CHECK_SYS(kill(clone, SIGKILL));
	CHECK_EQ(waitpid(clone, NULL, 0), clone);
}

int main(void)
{
	struct weft_test t;

	weft_test_begin(30);
	weft_test_open(&t, &opts);
	for (int i = 0; i < PEERS; i++)
		one_peer(&t);
	weft_test_close(&t);
	return 0;
}
