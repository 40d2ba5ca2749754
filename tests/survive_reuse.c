/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer is killed while data is copied between its memory and ours, and its
 * pid goes at once to an unrelated process that has other data at the same
 * addresses. Bug: process_vm_writev() continued into the memory of that
 * process, and process_vm_readv() delivered what it found there as the peer's
 * message. Now the memory of the other process is not touched, and every
 * operation ends with an error.
 */
#include "common/fabric.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Several times as much as one call of progress copies. */
#define SIZE ((size_t)40 << 20)
#define RMA_SIZE 100000
#define TAG 5
#define KEY 77
#define OF_SENDER 0xa5
#define OF_STRANGER 0x3c

struct scene {
	const char *name;
	bool peer_sends;
	uint64_t rma; /* FI_REMOTE_WRITE or FI_REMOTE_READ; 0: a message */
};

static const struct scene scenes[] = {
	{ "we write while the receiver reads", false, 0 },
	{ "we read what the sender offered", true, 0 },
	{ "fi_write", false, FI_REMOTE_WRITE },
	{ "fi_read", false, FI_REMOTE_READ },
};

/* Of the peer and of the unrelated process, at the same address. */
static uint8_t *arena;
static uint8_t *ours;

static uint8_t *make_memory(void)
{
	uint8_t *mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(mem != MAP_FAILED);
	return mem;
}

static bool is_filled(const uint8_t *mem, uint8_t byte)
{
	return mem[0] == byte && !memcmp(mem, mem + 1, SIZE - 1);
}

static struct weft_test_opts options(const struct scene *scene)
{
	return (struct weft_test_opts){
		.caps = scene->rma ? FI_MSG | FI_TAGGED | FI_RMA : 0,
	};
}

static void introduce(struct weft_test *t, fi_addr_t peer, bool first)
{
	struct fi_context tx, rx;
	char byte = 0;

	CHECK_OK(weft_test_trecv(t, &byte, 1, 1, 0, &rx));
	if (first)
		CHECK_OK(weft_test_tsend(t, &byte, 1, peer, 1, &tx));
	weft_test_wait_ok(t->rxcq, &rx);
	if (!first)
		CHECK_OK(weft_test_tsend(t, &byte, 1, peer, 1, &tx));
	weft_test_wait_ok(t->txcq, &tx);
}

/* The peer: tells when to kill it, and makes no further call. */
static void peer(struct weft_test_line *line, void *arg)
{
	const struct scene *scene = arg;
	struct weft_test_opts opts = options(scene);
	struct fi_context context;
	struct fid_mr *mr;
	struct weft_test t;
	fi_addr_t addr;
	char byte = 0;

	weft_test_open(&t, &opts);
	addr = weft_test_meet(&t, line);
	introduce(&t, addr, false);
	memset(arena, scene->peer_sends ? OF_SENDER : 0, SIZE);
	if (scene->rma) {
		CHECK_OK(fi_mr_reg(t.domain, arena, SIZE,
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
				   &mr, NULL));
	} else if (scene->peer_sends) {
		CHECK_OK(weft_test_tsend(&t, arena, SIZE, addr, TAG, &context));
	} else {
		CHECK_OK(weft_test_trecv(&t, arena, SIZE, TAG, 0, &context));
		while (!arena[0])
			CHECK_EQ(fi_cq_read(t.rxcq, NULL, 0), -FI_EAGAIN);
	}
	weft_test_put(line, &byte, 1);
	for (;;)
		pause();
}

/* The unrelated process: reports whether its memory is unchanged. */
static void stranger(struct weft_test_line *line)
{
	char byte = 0;

	memset(arena, OF_STRANGER, SIZE);
	weft_test_put(line, &byte, 1);
	CHECK(weft_test_get(line, &byte, 1));
	byte = is_filled(arena, OF_STRANGER);
	weft_test_put(line, &byte, 1);
}

static void start_stranger(struct weft_test_line *line, pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1,
	};
	long ret;
	int ends[2];
	char byte;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	fflush(NULL);
	ret = syscall(SYS_clone3, &args, sizeof(args));
	if (ret < 0) {
		printf("cannot choose a pid: %s\n", strerror(errno));
		_exit(77);
	}
	if (!ret) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		weft_test_forget_all();
		*line = (struct weft_test_line){ .fd = ends[1] };
		stranger(line);
		_exit(0);
	}
	CHECK_EQ(ret, pid);
	close(ends[1]);
	*line = (struct weft_test_line){ .fd = ends[0], .pid = pid };
	CHECK(weft_test_get(line, &byte, 1));
}

/* The next completion of either queue is a failure of @context. */
static void wait_failure(struct weft_test *t, const struct fi_context *context)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_comp comp;

	while (!weft_test_poll(t->txcq, &comp) &&
	       !weft_test_poll(t->rxcq, &comp))
		CHECK(weft_test_ms() < end);
	CHECK(comp.entry.op_context == context);
	CHECK(comp.ret < 0);
}

static void play(const struct scene *scene)
{
	struct weft_test_opts opts = options(scene);
	struct weft_test_line line, other;
	struct fi_context context;
	struct weft_test t;
	fi_addr_t addr;
	char byte;

	printf("%s\n", scene->name);
	weft_test_fork(&line, peer, (void *)(uintptr_t)scene);
	weft_test_open(&t, &opts);
	addr = weft_test_meet(&t, &line);
	introduce(&t, addr, true);
	memset(ours, scene->peer_sends ? 0 : OF_SENDER, SIZE);
	if (scene->peer_sends) {
		CHECK_OK(weft_test_trecv(&t, ours, SIZE, TAG, 0, &context));
		while (!ours[0])
			CHECK_EQ(fi_cq_read(t.rxcq, NULL, 0), -FI_EAGAIN);
	} else if (!scene->rma) {
		CHECK_OK(weft_test_tsend(&t, ours, SIZE, addr, TAG, &context));
	}
	CHECK(weft_test_get(&line, &byte, 1));
	weft_test_kill(&line);
	start_stranger(&other, line.pid);
	if (scene->rma & FI_REMOTE_WRITE)
		CHECK_OK(fi_write(t.ep, ours, RMA_SIZE, NULL, addr, 0, KEY,
				  &context));
	else if (scene->rma)
		CHECK_OK(fi_read(t.ep, ours, RMA_SIZE, NULL, addr, 0, KEY,
				 &context));
	wait_failure(&t, &context);
	weft_test_put(&other, &byte, 1);
	CHECK(weft_test_get(&other, &byte, 1));
	CHECK(byte);
	weft_test_join(&other);
	weft_test_close(&t);
}

int main(void)
{
	weft_test_begin(100);
	weft_test_load();
	arena = make_memory();
	ours = make_memory();
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		play(&scenes[i]);
	return 0;
}
