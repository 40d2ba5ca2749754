/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of copying between processes. The other process is a forked child
 * that sleeps: its memory is a copy of ours at the same addresses.
 */
#include "shm/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shm/guard.h"

#define SIZE ((size_t)64 << 10)

static uint8_t here[SIZE];
static uint8_t there[SIZE]; /* meant as the child's */

/* A child with a guard page of its own, and the way there: NONE where a kernel
 * or a container forbids it; then there is nothing to test. */
static struct wf_shm_mover start_child(void)
{
	struct wf_shm_mover mover;
	struct wf_shm_guard guard;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		wf_shm_guard_hold();
		guard = wf_shm_guard_own();
		if (write(ends[1], &guard, sizeof(guard)) != sizeof(guard))
			_exit(1);
		for (;;)
			pause();
	}
	/* A child that dies ends the read. */
	close(ends[1]);
	assert_int_equal(read(ends[0], &guard, sizeof(guard)), sizeof(guard));
	close(ends[0]);
	wf_shm_mover_open(&mover, pid, guard.process, guard.addr, guard.process,
			  true);
	wf_shm_mover_way(&mover);
	return mover;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void fill(uint8_t *buf, uint8_t seed)
{
	for (size_t i = 0; i < SIZE; i++)
		buf[i] = (uint8_t)(i * 7 + i / 251 + seed);
}

static void test_probe(void **state)
{
	struct wf_shm_mover mover, child;
	uint64_t addr, value;

	(void)state;
	wf_shm_mover_own_probe(&addr, &value);
	assert_int_equal(value, wf_shm_mover_process());
	assert_int_equal(*(uint64_t *)(uintptr_t)addr, value);
	wf_shm_mover_open(&mover, getpid(), value, addr, value, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_SELF);
	/* Even where CMA is not wanted: it is not needed. */
	wf_shm_mover_open(&mover, getpid(), value, addr, value, false);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_SELF);

	/* Without a guard page child is no CMA, nor with half a page. */
	child = start_child();
	wf_shm_mover_open(&mover, child.pid, ~value, 0, 0, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	wf_shm_mover_open(&mover, child.pid, ~value, child.guard + 8, 0, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	/* The pid is someone else's: the value tells. */
	wf_shm_mover_open(&mover, child.pid, ~value, child.guard,
			  ~child.process, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	/* The child has no copy of our page. */
	wf_shm_mover_open(&mover, child.pid, ~value, addr, value, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	wf_shm_mover_open(&mover, child.pid, ~value, child.guard, child.process,
			  false);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	/* Bug: each handshake took the time of a copy, which small messages
	 * do not need. */
	wf_shm_mover_open(&mover, child.pid, ~value, child.guard, child.process,
			  true);
	assert_int_equal(mover.way, WF_SHM_WAY_UNTRIED);
	assert_int_equal(wf_shm_mover_way(&mover), child.way);
	/* As seen from another pid namespace. */
	wf_shm_mover_open(&mover, 0, ~value, child.guard, child.process, true);
	assert_int_equal(wf_shm_mover_way(&mover), WF_SHM_WAY_NONE);
	end_child(child.pid);
}

static void test_child_is_another_process(void **state)
{
	uint64_t mine = wf_shm_mover_process(), theirs;
	int ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(wf_shm_mover_process(), mine);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		theirs = wf_shm_mover_process();
		_exit(write(ends[1], &theirs, sizeof(theirs)) !=
		      sizeof(theirs));
	}
	assert_int_equal(read(ends[0], &theirs, sizeof(theirs)),
			 sizeof(theirs));
	assert_true(theirs != mine);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

/* Parts of different sizes on both sides, and less than they hold. */
static void check_parts(struct wf_shm_mover *mover, bool self)
{
	struct iovec local[] = { { here, 100 },
				 { here + 200, 0 },
				 { here + 300, 5000 },
				 { here + 6000, 50000 } };
	struct iovec remote[] = { { there + 10, 1 },
				  { there + 20, 4999 },
				  { there + 9000, 50000 } };
	const size_t len = 54000;
	uint8_t *want = malloc(len);
	size_t at = 0;

	assert_non_null(want);
	fill(there, 3);
	for (int i = 0; i < 3 && at < len; i++) {
		size_t part = remote[i].iov_len < len - at ? remote[i].iov_len :
							     len - at;

		memcpy(want + at, remote[i].iov_base, part);
		at += part;
	}
	/* The child's state is from before the fork. */
	if (!self)
		memset(there, 0, SIZE);
	memset(here, 0xee, SIZE);
	assert_int_equal(wf_shm_mover_read(mover, local, 4, remote, 3, len), 0);
	assert_memory_equal(here, want, 100);
	assert_int_equal(here[100], 0xee);
	assert_memory_equal(here + 300, want + 100, 5000);
	assert_int_equal(here[5300], 0xee);
	assert_memory_equal(here + 6000, want + 5100, len - 5100);
	assert_int_equal(here[6000 + len - 5100], 0xee);
	free(want);
}

static void test_read_parts(void **state)
{
	struct wf_shm_mover mover = { .way = WF_SHM_WAY_SELF };

	(void)state;
	check_parts(&mover, true);
	fill(there, 3);
	mover = start_child();
	if (mover.way == WF_SHM_WAY_CMA)
		check_parts(&mover, false);
	end_child(mover.pid);
}

/* Written bytes are read back. */
static void check_write(struct wf_shm_mover *mover)
{
	struct iovec local[] = { { here, 30000 }, { here + 40000, 11 } };
	struct iovec remote[] = { { there, 7 }, { there + 100, 30004 } };
	struct iovec back = { here + 30000, 8 };
	struct iovec last = { there + 100 + 29996, 8 };

	fill(here, 9);
	assert_int_equal(wf_shm_mover_write(mover, local, 2, remote, 2, 30011),
			 0);
	memset(here + 30000, 0, 8);
	assert_int_equal(wf_shm_mover_read(mover, &back, 1, &last, 1, 8), 0);
	assert_memory_equal(here + 30000, here + 40003, 8);
	last.iov_base = there;
	assert_int_equal(wf_shm_mover_read(mover, &back, 1, &last, 1, 7), 0);
	assert_memory_equal(here + 30000, here, 7);
}

static void test_write_parts(void **state)
{
	struct wf_shm_mover mover = { .way = WF_SHM_WAY_SELF };

	(void)state;
	check_write(&mover);
	memset(there, 0, SIZE);
	mover = start_child();
	if (mover.way == WF_SHM_WAY_CMA)
		check_write(&mover);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(there[i], 0);
	end_child(mover.pid);
}

/* The second of two pages is not there: a short count, then EFAULT. */
static void test_fault(void **state)
{
	uint8_t *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec local = { here, 6000 }, remote = { pages + 1000, 6000 };
	struct wf_shm_mover mover;

	(void)state;
	assert_true(pages != MAP_FAILED);
	/* Not unmapped: what the child maps could be put there. */
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	mover = start_child();
	if (mover.way == WF_SHM_WAY_CMA) {
		assert_int_equal(
			wf_shm_mover_read(&mover, &local, 1, &remote, 1, 6000),
			-EFAULT);
		assert_int_equal(
			wf_shm_mover_write(&mover, &local, 1, &remote, 1, 6000),
			-EFAULT);
		assert_int_equal(
			wf_shm_mover_read(&mover, &local, 1, &remote, 1, 3096),
			0);
		/* Nothing at all is there; the guard still is. */
		remote.iov_base = pages + 4096;
		assert_int_equal(
			wf_shm_mover_read(&mover, &local, 1, &remote, 1, 10),
			-EFAULT);
	}
	end_child(mover.pid);
	munmap(pages, 2 * 4096);
}

static void test_gone_and_forbidden(void **state)
{
	struct iovec local = { here, 100 }, remote = { there, 100 };
	struct wf_shm_mover mover = start_child();

	(void)state;
	end_child(mover.pid);
	mover.way = WF_SHM_WAY_CMA;
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, 100),
			 -ESRCH);
	assert_int_equal(wf_shm_mover_write(&mover, &local, 1, &remote, 1, 100),
			 -ESRCH);
	mover.way = WF_SHM_WAY_NONE;
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, 100),
			 -EPERM);
	assert_int_equal(wf_shm_mover_write(&mover, &local, 1, &remote, 1, 100),
			 -EPERM);
}

/* A child without endpoints, with all memory as it is here, as process @pid;
 * false where we may not choose. */
static bool start_stranger(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&pid,
		.set_tid_size = 1,
	};
	long ret = syscall(SYS_clone3, &args, sizeof(args));

	if (ret)
		return ret == pid;
	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* Bug: a process that got the pid of a dead peer was read and written. */
static void test_pid_used_again(void **state)
{
	struct wf_shm_mover dead = start_child();
	struct iovec local = { here, 5000 }, remote = { there, 5000 };
	static uint8_t seen[5000];
	struct iovec plain = { seen, sizeof(seen) };

	(void)state;
	if (dead.way != WF_SHM_WAY_CMA) {
		end_child(dead.pid);
		skip();
	}
	memset(here, 0x11, SIZE);
	assert_int_equal(wf_shm_mover_write(&dead, &local, 1, &remote, 1, 5000),
			 0);
	end_child(dead.pid);
	memset(there, 0x22, SIZE);
	if (!start_stranger(dead.pid))
		skip();
	assert_int_equal(wf_shm_mover_write(&dead, &local, 1, &remote, 1, 5000),
			 -ESRCH);
	assert_int_equal(wf_shm_mover_read(&dead, &local, 1, &remote, 1, 5000),
			 -ESRCH);
	assert_int_equal(process_vm_readv(dead.pid, &plain, 1, &remote, 1, 0),
			 5000);
	assert_memory_equal(seen, there, 5000);
	end_child(dead.pid);
}

/* Exchanges so many small pieces that the peer's memory is opened as a file.
 * False where that is not allowed, or there is no CMA either. */
static bool open_file(struct wf_shm_mover *mover)
{
	struct iovec local = { here, 8 }, remote = { there, 8 };

	for (int i = 0; i < 64 && mover->way == WF_SHM_WAY_CMA; i++)
		assert_int_equal(
			wf_shm_mover_read(mover, &local, 1, &remote, 1, 8), 0);
	return mover->memory >= 0;
}

static void end_file(struct wf_shm_mover *mover)
{
	int fd = mover->memory;

	end_child(mover->pid);
	wf_shm_mover_close(mover);
	assert_int_equal(mover->way, WF_SHM_WAY_NONE);
	if (fd >= 0)
		assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* Pieces of all sizes, before and after the limit of the file. */
static void test_file(void **state)
{
	static const size_t sizes[] = { 1, 8, 4095, 4096, 4097, 8192, 8193 };
	struct iovec local = { here, SIZE }, remote = { there + 3, SIZE - 3 };
	struct wf_shm_mover mover;

	(void)state;
	mover = start_child();
	if (!open_file(&mover)) {
		end_file(&mover);
		skip();
	}
	memset(there, 0, SIZE);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i];
		uint8_t *want = malloc(len);

		assert_non_null(want);
		fill(here, (uint8_t)(40 + i));
		memcpy(want, here, len);
		assert_int_equal(
			wf_shm_mover_write(&mover, &local, 1, &remote, 1, len),
			0);
		memset(here, 0xee, SIZE);
		assert_int_equal(
			wf_shm_mover_read(&mover, &local, 1, &remote, 1, len),
			0);
		assert_memory_equal(here, want, len);
		assert_int_equal(here[len], 0xee);
		free(want);
	}
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(there[i], 0);
	/* Memory that is not there, at once and in the middle. */
	remote.iov_base = (void *)4096;
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, 8),
			 -EFAULT);
	assert_int_equal(wf_shm_mover_write(&mover, &local, 1, &remote, 1, 8),
			 -EFAULT);
	remote.iov_base = (void *)(uintptr_t)(mover.guard + 4096 - 8);
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, 16),
			 -EFAULT);
	end_file(&mover);
}

/* The file stays with the memory of the process that is gone, whoever has its
 * pid now. */
static void test_file_of_a_pid_used_again(void **state)
{
	struct iovec local = { here, 5000 }, remote = { there, 5000 };
	static uint8_t seen[5000];
	struct iovec plain = { seen, sizeof(seen) };
	struct wf_shm_mover dead = start_child();

	(void)state;
	if (!open_file(&dead)) {
		end_file(&dead);
		skip();
	}
	end_child(dead.pid);
	memset(here, 0x11, SIZE);
	memset(there, 0x22, SIZE);
	if (!start_stranger(dead.pid))
		skip();
	assert_int_equal(wf_shm_mover_write(&dead, &local, 1, &remote, 1, 5000),
			 -ESRCH);
	assert_int_equal(wf_shm_mover_read(&dead, &local, 1, &remote, 1, 5000),
			 -ESRCH);
	assert_int_equal(process_vm_readv(dead.pid, &plain, 1, &remote, 1, 0),
			 5000);
	assert_memory_equal(seen, there, 5000);
	end_file(&dead);
}

/* A file that is opened after the pid has gone to another process is not used:
 * here the pid changes hands while small pieces are counted. */
static void test_file_is_proved(void **state)
{
	struct iovec local = { here, 8 }, remote = { there, 8 };
	struct wf_shm_mover dead = start_child();

	(void)state;
	if (dead.way != WF_SHM_WAY_CMA) {
		end_file(&dead);
		skip();
	}
	end_child(dead.pid);
	if (!start_stranger(dead.pid))
		skip();
	for (int i = 0; i < 64; i++)
		assert_int_equal(
			wf_shm_mover_write(&dead, &local, 1, &remote, 1, 8),
			-ESRCH);
	assert_int_equal(dead.memory, -1);
	end_file(&dead);
}

/* Descriptors are for the application: a process takes so many and no more. */
static void test_files_are_few(void **state)
{
	enum { MANY = 80 };
	static struct wf_shm_mover movers[MANY];
	struct wf_shm_mover child = start_child();
	int files = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		wf_shm_mover_open(&movers[i], child.pid, child.process,
				  child.guard, child.process, true);
		files += open_file(&movers[i]);
	}
	assert_true(files <= 64);
	for (int i = 0; i < MANY; i++)
		wf_shm_mover_close(&movers[i]);
	/* And gives them back. */
	if (files)
		assert_true(open_file(&child));
	end_file(&child);
}

/* Reads so often that the life page is mapped. False where that is not allowed. */
static bool open_life(struct wf_shm_mover *mover)
{
	struct iovec local = { here, SIZE }, remote = { there, SIZE };

	for (int i = 0; i < 40 && mover->way == WF_SHM_WAY_CMA; i++)
		assert_int_equal(
			wf_shm_mover_read(mover, &local, 1, &remote, 1, SIZE),
			0);
	return mover->life.page;
}

/* Large pieces, and small ones by whichever way was faster. */
static int read_both(struct wf_shm_mover *mover)
{
	struct iovec local = { here, SIZE }, remote = { there, SIZE };
	int ret = wf_shm_mover_read(mover, &local, 1, &remote, 1, SIZE);

	if (ret)
		return ret;
	assert_memory_equal(here, there, SIZE);
	memset(here, 0x33, 100);
	ret = wf_shm_mover_read(mover, &local, 1, &remote, 1, 100);
	if (!ret)
		assert_memory_equal(here, there, 100);
	return ret;
}

/* The file is for pieces up to a page, even if it is the faster one. A file that
 * is empty tells when it is used. */
static void check_limit_of_reads(struct wf_shm_mover *mover)
{
	struct iovec local = { here, SIZE }, remote = { there, SIZE };
	int kept = dup(mover->memory), empty = open("/dev/null", O_RDONLY);

	mover->reads_file = true;
	assert_int_equal(dup2(empty, mover->memory), mover->memory);
	assert_int_equal(wf_shm_mover_read(mover, &local, 1, &remote, 1, 4096),
			 -ESRCH);
	assert_int_equal(wf_shm_mover_read(mover, &local, 1, &remote, 1, 4097),
			 0);
	assert_int_equal(dup2(kept, mover->memory), mover->memory);
	close(kept);
	close(empty);
}

static void test_life(void **state)
{
	struct wf_shm_mover mover;
	struct iovec local = { here, 10 }, remote = { NULL, 10 };

	(void)state;
	fill(there, 9);
	mover = start_child();
	if (!open_life(&mover)) {
		end_child(mover.pid);
		skip();
	}
	for (int i = 0; i < 40; i++)
		assert_int_equal(read_both(&mover), 0);
	assert_true(mover.memory >= 0);
	assert_non_null(mover.life.page);
	/* Memory that is not there is told from a process that is not. */
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, 10),
			 -EFAULT);
	assert_non_null(mover.life.page);
	check_limit_of_reads(&mover);
	end_child(mover.pid);
	assert_int_equal(read_both(&mover), -ESRCH);
	assert_null(mover.life.page);
	wf_shm_mover_close(&mover);
}

/* Memory of a process with the pid of the peer, at the same address, is not
 * taken for the peer's, and reading it is all that happens to it. */
static void test_life_of_a_pid_used_again(void **state)
{
	struct wf_shm_mover mover = start_child();
	struct iovec local = { here, SIZE }, remote = { there, SIZE };

	(void)state;
	if (!open_life(&mover)) {
		end_child(mover.pid);
		skip();
	}
	end_child(mover.pid);
	if (!start_stranger(mover.pid))
		skip();
	assert_int_equal(wf_shm_mover_read(&mover, &local, 1, &remote, 1, SIZE),
			 -ESRCH);
	end_child(mover.pid);
	wf_shm_mover_close(&mover);
}

static void *own_guard(void *guard)
{
	wf_shm_guard_hold();
	*(struct wf_shm_guard *)guard = wf_shm_guard_own();
	return NULL;
}

struct runner {
	struct wf_shm_guard *guard;
	int done;
	int go;
};

static void *own_guard_and_run(void *arg)
{
	const struct runner *r = arg;
	char byte;

	own_guard(r->guard);
	if (write(r->done, "", 1) != 1 || read(r->go, &byte, 1) != 1)
		_exit(1);
	execl("/bin/sleep", "sleep", "100", NULL);
	_exit(1);
}

/* A bug: a thread that is not the first of its process and runs another program kept
 * its mark. Such a thread has none: its peers use the guard page. */
static void test_exec_of_a_thread(void **state)
{
	struct runner r = { .guard = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	struct iovec local = { here, SIZE }, remote = { there, SIZE };
	struct wf_shm_mover mover;
	int go[2], done[2], ret = 0;
	pthread_t thread;
	char byte;
	pid_t pid;

	(void)state;
	fill(there, 11);
	assert_true(r.guard != MAP_FAILED && !pipe(go) && !pipe(done));
	r.go = go[0];
	r.done = done[1];
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&thread, NULL, own_guard_and_run, &r))
			_exit(1);
		for (;;)
			pause();
	}
	close(done[1]);
	assert_int_equal(read(done[0], &byte, 1), 1);
	wf_shm_mover_open(&mover, pid, r.guard->process, r.guard->addr,
			  r.guard->process, true);
	assert_false(open_life(&mover));
	if (mover.way == WF_SHM_WAY_CMA) {
		assert_int_equal(write(go[1], "", 1), 1);
		while (!ret) {
			memset(here, 0x44, SIZE);
			ret = wf_shm_mover_read(&mover, &local, 1, &remote, 1,
						SIZE);
			if (!ret)
				assert_memory_equal(here, there, SIZE);
		}
		assert_int_equal(ret, -ESRCH);
	}
	end_child(pid);
	wf_shm_mover_close(&mover);
	munmap(r.guard, 4096);
	close(done[0]);
	close(go[0]);
	close(go[1]);
}

/* The thread whose mark it is ends, or its process runs another program. */
static void check_mark_gone(bool runs)
{
	struct wf_shm_guard *guard = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct iovec local = { here, SIZE }, remote = { there, SIZE };
	struct wf_shm_mover mover;
	int go[2], done[2];
	pthread_t thread;
	bool is_open;
	char byte;
	pid_t pid;

	assert_true(guard != MAP_FAILED && !pipe(go) && !pipe(done));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (runs)
			own_guard(guard);
		else if (pthread_create(&thread, NULL, own_guard, guard) ||
			 pthread_join(thread, NULL))
			_exit(1);
		if (write(done[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(1);
		if (runs)
			execl("/bin/sleep", "sleep", "100", NULL);
		for (;;)
			pause();
	}
	assert_int_equal(read(done[0], &byte, 1), 1);
	wf_shm_mover_open(&mover, pid, guard->process, guard->addr,
			  guard->process, true);
	is_open = open_life(&mover);
	if (runs && is_open) {
		assert_int_equal(write(go[1], "", 1), 1);
		/* Its memory changes at some moment: right or refused. */
		for (int ret = 0; !ret;) {
			memset(here, 0x44, SIZE);
			ret = wf_shm_mover_read(&mover, &local, 1, &remote, 1,
						SIZE);
			if (!ret)
				assert_memory_equal(here, there, SIZE);
			else
				assert_int_equal(ret, -ESRCH);
		}
	} else if (!runs && mover.way == WF_SHM_WAY_CMA) {
		/* Read by the guard page as before. */
		assert_false(is_open);
		assert_int_equal(read_both(&mover), 0);
	}
	end_child(pid);
	wf_shm_mover_close(&mover);
	munmap(guard, 4096);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
}

static void test_life_of_a_thread(void **state)
{
	(void)state;
	check_mark_gone(false);
}

static void test_life_and_exec(void **state)
{
	(void)state;
	check_mark_gone(true);
}

/* A child has neither the page nor the number in it. */
static void test_no_copy_of_the_guard(void **state)
{
	struct wf_shm_guard mine = wf_shm_guard_own(), theirs;
	pid_t pid = 0;
	int ends[2];

	(void)state;
	assert_true(mine.addr);
	assert_int_equal(mine.addr, wf_shm_guard_own().addr);
	assert_int_equal(mine.process, wf_shm_guard_own().process);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		unsigned char resident;

		if (!mincore((void *)(uintptr_t)mine.addr, 4096, &resident))
			_exit(1);
		theirs = wf_shm_guard_own();
		_exit(write(ends[1], &theirs, sizeof(theirs)) !=
		      sizeof(theirs));
	}
	assert_int_equal(read(ends[0], &theirs, sizeof(theirs)),
			 sizeof(theirs));
	assert_true(theirs.addr && theirs.addr != mine.addr);
	assert_true(theirs.process != mine.process);
	waitpid(pid, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(mine.addr, wf_shm_guard_own().addr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_child_is_another_process),
		cmocka_unit_test(test_read_parts),
		cmocka_unit_test(test_write_parts),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_gone_and_forbidden),
		cmocka_unit_test(test_pid_used_again),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_of_a_pid_used_again),
		cmocka_unit_test(test_file_is_proved),
		cmocka_unit_test(test_files_are_few),
		cmocka_unit_test(test_no_copy_of_the_guard),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_life_of_a_pid_used_again),
		cmocka_unit_test(test_life_of_a_thread),
		cmocka_unit_test(test_life_and_exec),
		cmocka_unit_test(test_exec_of_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
