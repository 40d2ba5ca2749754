/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other users of a device that root runs: what they may have, what happens to
 * one who holds the device up, and one who would have the device look into
 * somebody else. Needs root.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "devd/raw_test.h"

/* -- limits ---------------------------------------------------------------- */

static int hold[2]; /* a pipe that ends the children */

static void wait_for_end(int ready)
{
	char byte = 'r';

	close(hold[1]);
	if (write(ready, &byte, 1) != 1)
		_exit(3);
	while (read(hold[0], &byte, 1) < 0 && errno == EINTR)
		;
}

static int nobody_ready;

/* Takes channels and memory, and keeps them. */
static void greedy(uint64_t channels)
{
	struct wf_drv_device devices[16];

	rig_become_nobody();
	for (uint64_t i = 0; i < channels; i++) {
		if (rig_open(&devices[i], "share-0", 1u << 20))
			_exit(1);
	}
	wait_for_end(nobody_ready);
}

static void refused_more(uint64_t arg)
{
	struct wf_drv_device device;

	(void)arg;
	rig_become_nobody();
	RIG_MUST(!rig_open(&device, "share-0", 0));
	/* 5 MiB of 6 are taken. */
	RIG_MUST(!wd_reserve_mem(&device.ch, 2u << 20) && errno == ENOMEM);
	RIG_MUST(wd_reserve_mem(&device.ch, 1u << 20));
	/* The sixth channel was the last. */
	{
		struct wf_drv_device more;

		RIG_MUST(rig_open(&more, "share-0", 0) == -EBUSY);
	}
	wf_drv_device_close(&device);
}

static void one_too_many(uint64_t arg)
{
	struct wf_drv_device device;

	(void)arg;
	rig_become_nobody();
	RIG_MUST(rig_open(&device, "share-0", 0) == -EBUSY);
}

static pid_t spawn_ready(void (*run)(uint64_t), uint64_t arg)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	nobody_ready = ready[1];
	pid = rig_spawn(run, arg);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void start_open_rig(struct rig *open_rig)
{
	rig_init(open_rig);
	open_rig->config.workers = 1;
	open_rig->config.allow_uid = "12,65534";
	open_rig->config.user_clients = 3;
	open_rig->config.user_channels = 6;
	open_rig->config.user_memory = 6u << 20;
}

/* All processes of a user together have a limit; others have their own. */
static void test_user_limits(void **state)
{
	struct wf_drv_device own;
	struct rig open_rig;
	pid_t pids[3];

	(void)state;
	if (geteuid())
		skip();
	start_open_rig(&open_rig);
	rig_fork(&open_rig);
	assert_int_equal(pipe(hold), 0);
	pids[0] = spawn_ready(greedy, 3);
	pids[1] = spawn_ready(greedy, 2);
	rig_expect_exit(rig_spawn(refused_more, 0));
	pids[2] = spawn_ready(greedy, 0);
	/* Its connection says nothing: it has none. */
	rig_expect_exit(rig_spawn(refused_more, 0));
	assert_int_equal(rig_open(&own, "share-0", 8u << 20), 0);
	rig_nop(&own);
	close(hold[1]);
	for (int i = 0; i < 3; i++)
		rig_expect_exit(pids[i]);
	close(hold[0]);
	wf_drv_device_close(&own);
	/* Three processes are as many as a user has. */
	assert_int_equal(pipe(hold), 0);
	for (int i = 0; i < 3; i++)
		pids[i] = spawn_ready(greedy, 1);
	rig_expect_exit(rig_spawn(one_too_many, 0));
	close(hold[1]);
	for (int i = 0; i < 3; i++)
		rig_expect_exit(pids[i]);
	close(hold[0]);
	rig_kill(&open_rig);
}

static void spoiler(uint64_t arg)
{
	struct wf_drv_device device;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	uint64_t full = UINT64_MAX - 1, end;
	struct wf_drv_result result;
	int fd;

	(void)arg;
	rig_become_nobody();
	RIG_MUST(!rig_open(&device, "share-0", 0));
	fd = wd_drv_event_fd(&device.ch);
	RIG_MUST(write(fd, &full, sizeof(full)) == sizeof(full));
	RIG_MUST(!fcntl(fd, F_SETFL, 0));
	atomic_store(&device.mmio->user_sleeps, 1);
	RIG_MUST(!wf_drv_device_submit(&device, &job, false));
	end = wf_base_clock_ns() + RIG_PATIENCE;
	while (wd_drv_alive(&device.ch)) {
		RIG_MUST(wf_base_clock_ns() < end);
		usleep(1000);
	}
	while (wf_drv_device_poll(&device, &result, 1) >= 0)
		;
	wf_drv_device_close(&device);
	RIG_MUST(rig_open(&device, "share-0", 0) == -EACCES);
}

/* Held up once, the device does not let that user try again. */
static void test_spoiler_is_barred(void **state)
{
	struct wf_drv_device own;
	struct rig open_rig;

	(void)state;
	if (geteuid())
		skip();
	start_open_rig(&open_rig);
	rig_fork(&open_rig);
	assert_int_equal(rig_open(&own, "share-0", 1u << 16), 0);
	rig_expect_exit(rig_spawn(spoiler, 0));
	rig_nop(&own);
	wf_drv_device_close(&own);
	rig_kill(&open_rig);
}

/* Sits where a device was, and wants to be told something. */
static void stranger_listens(uint64_t hears)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), client;
	char byte;

	rig_become_nobody();
	strcpy(un.sun_path, getenv("WEFT_DEVD"));
	RIG_MUST(!bind(sock, (struct sockaddr *)&un, sizeof(un)));
	RIG_MUST(!listen(sock, 128));
	RIG_MUST(write(nobody_ready, "r", 1) == 1);
	for (;;) {
		client = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (recv(client, &byte, 1, 0) > 0)
			RIG_MUST(write((int)hears, "h", 1) == 1);
		close(client);
	}
}

static unsigned int warnings;

static void count_warnings(enum wf_log_level level, const char *func, int line,
			   const char *text)
{
	(void)func;
	(void)line;
	warnings += level == WF_LOG_WARN && strstr(text, "user 65534");
}

/* A bug: a client whose device died connected to the process that took its
 * place, was warned, and went on. A stranger is not told a byte, however often
 * the connection is made anew, and whether or not a variable names it. */
static void test_stranger_serves(void **state)
{
	struct uacce_dev_info *list;
	struct wf_drv_device device, again;
	int hears[2];
	struct rig own;
	char byte, path[96];
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	rig_init(&own);
	rig_fork(&own);
	assert_int_equal(rig_open(&device, "share-0", 0), 0);
	rig_kill(&own);
	assert_int_equal(pipe2(hears, O_NONBLOCK), 0);
	pid = spawn_ready(stranger_listens, (uint64_t)hears[1]);
	warnings = 0;
	wf_base_log_set_sink(count_warnings);
	snprintf(path, sizeof(path), "%s:share-0", own.socket);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_open(&again, "share-0", 0), -EACCES);
		assert_int_equal(rig_open(&again, path, 0), -EACCES);
		assert_int_equal(wd_list_devices(NULL, &list), 0);
	}
	wf_base_log_set_sink(rig_keep_quiet);
	assert_int_equal(warnings, 1);
	wf_drv_device_close(&device);
	usleep(20000);
	assert_int_equal(read(hears[0], &byte, 1), -1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rig_clean(&own);
	close(hears[0]);
	close(hears[1]);
}

/* -- reaching into others -------------------------------------------------- */

static void uses_sva(uint64_t expected)
{
	struct wf_drv_device device;
	/* Not through the stage. */
	uint8_t byte[WF_ACCEL_STAGE_SLOT + 100] = { 1 };

	rig_become_nobody();
	RIG_MUST(rig_open(&device, "sva-0", 0) == -(int)expected);
	if (expected) {
		/* Another scenario serves. */
		memset(&device, 0, sizeof(device));
		device.ch.alg = "crc32";
		RIG_MUST(!wf_drv_device_open(&device, 1u << 16));
		RIG_MUST(!device.sva);
	} else {
		rig_check_crc(&device, byte, sizeof(byte));
	}
	rig_nop(&device);
	wf_drv_device_close(&device);
}

static void test_sva_of_others(void **state)
{
	struct rig open_rig;

	(void)state;
	if (geteuid())
		skip();
	start_open_rig(&open_rig);
	rig_fork(&open_rig);
	rig_expect_exit(rig_spawn(uses_sva, EPERM));
	rig_kill(&open_rig);
	start_open_rig(&open_rig);
	open_rig.config.allow_sva = true;
	rig_fork(&open_rig);
	rig_expect_exit(rig_spawn(uses_sva, 0));
	rig_kill(&open_rig);
}

/* The queue of a nobody, mapped by everybody of the family. */
static struct wf_drv_device *stolen;
static char setuid_path[128];

static void becomes_root(uint64_t go)
{
	char byte;

	rig_become_nobody();
	memset(stolen, 0, sizeof(*stolen));
	strcpy(stolen->ch.dev_path, "sva-0");
	RIG_MUST(!wf_drv_device_open(stolen, 0));
	rig_nop(stolen);
	/* The parent plays the accomplice: it has what it needs by
	 * /proc/<pid>/fd, as if it had been sent. */
	RIG_MUST(write(nobody_ready, "o", 1) == 1);
	RIG_MUST(read((int)go, &byte, 1) == 1);
	execl(setuid_path, "sleep", "60", NULL);
	_exit(4);
}

static bool copy_setuid(void)
{
	char command[512];

	snprintf(setuid_path, sizeof(setuid_path), "%s/wd-test-%d-sleep",
		 P_tmpdir, (int)getpid());
	snprintf(command, sizeof(command),
		 "cp /bin/sleep %s && chown 0:0 %s && chmod 4755 %s",
		 setuid_path, setuid_path, setuid_path);
	return !system(command);
}

static uint64_t first_address(pid_t pid)
{
	unsigned long start = 0;
	char path[64];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	assert_non_null(maps);
	assert_int_equal(fscanf(maps, "%lx-", &start), 1);
	fclose(maps);
	return start;
}

static bool is_root_now(pid_t pid)
{
	char path[64], line[128];
	unsigned int real, effective = 1;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "r");
	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
			break;
	}
	if (status)
		fclose(status);
	return !effective;
}

/* Fetches a descriptor of another process. */
static int steal_fd(pid_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	close(pidfd);
	return got;
}

/* Its connection, which alone keeps the device from dropping it. */
static int steal_connection(pid_t pid, const char *name)
{
	for (int i = 3; i < 64; i++) {
		struct sockaddr_un un = { 0 };
		socklen_t len = sizeof(un);
		int sock = steal_fd(pid, i);

		if (sock < 0)
			continue;
		if (!getpeername(sock, (struct sockaddr *)&un, &len) &&
		    un.sun_family == AF_UNIX && !strcmp(un.sun_path, name))
			return sock;
		close(sock);
	}
	return -1;
}

static void wait_until_root(pid_t pid)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (!is_root_now(pid)) {
		assert_true(wf_base_clock_ns() < end);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	usleep(20000);
}

/* Posts into the queue of @pid, which is another program by now. Returns the
 * completion. */
static struct wf_accel_done post_stolen(pid_t pid, struct wf_accel_mmio *mmio)
{
	struct wf_accel_job *ring =
		(void *)((uint8_t *)mmio + WF_ACCEL_MMIO_SIZE);
	volatile struct wf_accel_done *done = (void *)(ring + mmio->depth);
	uint32_t at = atomic_load(&mmio->doorbell);
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	struct wf_drv_device waker;

	ring[at] = (struct wf_accel_job){ .alg = WF_ACCEL_CRC32,
					  .src = first_address(pid),
					  .src_len = 64 };
	atomic_store(&mmio->doorbell, at + 1);
	/* Its worker sleeps: another client wakes it. */
	assert_int_equal(rig_open(&waker, "share-0", 0), 0);
	while (!(done[at].word & WF_ACCEL_PHASE)) {
		assert_true(wf_base_clock_ns() < end);
		rig_nop(&waker);
	}
	wf_drv_device_close(&waker);
	return done[at];
}

/* A bug: the device, run by root, reached into its client with root's rights.
 * The client becomes a setuid program, its queue stays in other hands. */
static void test_setuid_client(void **state)
{
	struct wf_accel_mmio *mmio;
	struct wf_accel_done done;
	int go[2], ready[2], sock, memfd;
	struct rig open_rig;
	size_t size;
	char byte;
	pid_t pid;

	(void)state;
	if (geteuid() || !copy_setuid())
		skip();
	start_open_rig(&open_rig);
	open_rig.config.allow_sva = true;
	rig_fork(&open_rig);
	stolen = mmap(NULL, sizeof(*stolen), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	nobody_ready = ready[1];
	pid = rig_spawn(becomes_root, (uint64_t)go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	size = WF_ACCEL_MMIO_SIZE + stolen->dus_size;
	memfd = steal_fd(pid, stolen->ch.fd);
	mmio = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	assert_ptr_not_equal(mmio, MAP_FAILED);
	sock = steal_connection(pid, open_rig.socket);
	assert_true(sock >= 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	wait_until_root(pid);
	unlink(setuid_path);
	/* Refused, and nothing about the memory told. */
	done = post_stolen(pid, mmio);
	assert_int_equal(done.status, ESRCH);
	assert_int_equal(done.checksum, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(sock);
	close(memfd);
	munmap(mmio, size);
	munmap(stolen, sizeof(*stolen));
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(ready[i]);
	}
	rig_kill(&open_rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user_limits),
		cmocka_unit_test(test_spoiler_is_barred),
		cmocka_unit_test(test_stranger_serves),
		cmocka_unit_test(test_sva_of_others),
		cmocka_unit_test(test_setuid_client),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
