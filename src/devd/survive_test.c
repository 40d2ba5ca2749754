/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software device and its clients when things break: either side killed,
 * many clients, forks, a client that stalls, lies, or spoils what it shares
 * with the device. The device is a process of its own.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/log.h"
#include "chan/core.h"
#include "devd/raw_test.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.workers = 1; /* all meet at one */
	rig_fork(&rig);
	return 0;
}

/* It must have lived through the test. */
static int teardown(void **state)
{
	struct wf_drv_device device;

	(void)state;
	if (rig_open(&device, "sva-0", 0))
		return -1;
	rig_nop(&device);
	wf_drv_device_close(&device);
	rig_kill(&rig);
	return 0;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Jobs of all kinds in a scenario, checked. */
static void work(struct wf_drv_device *device, uint64_t seed, int rounds)
{
	uint8_t src[3000], dst[3000];

	while (rounds--) {
		uint32_t len = (uint32_t)(next_random(&seed) % sizeof(src));
		struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
					  .src = src,
					  .dst = dst,
					  .src_len = len,
					  .dst_len = len };
		struct wf_drv_result result;

		rig_fill(src, len, (uint32_t)seed);
		memset(dst, 0, len);
		result = rig_run(device, &job);
		assert_int_equal(result.status, 0);
		assert_memory_equal(src, dst, len);
		job = (struct wf_drv_job){ .alg = WF_ACCEL_CRC32,
					   .src = src,
					   .src_len = len };
		result = rig_run(device, &job);
		assert_int_equal(result.status, 0);
		if (rounds % 16 == 0)
			assert_int_equal(result.checksum, rig_crc32(src, len));
	}
}

static int instances(const char *name)
{
	struct uacce_dev_info *list;
	int n = wd_list_devices(NULL, &list), left = -1;

	for (int i = 0; i < n; i++) {
		if (!strcmp(list[i].name, name))
			left = list[i].available_instances;
	}
	wd_free_devices(list);
	return left;
}

static void wait_all_free(void)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	for (int i = 0; i < 3; i++) {
		while (instances(rig_names[i]) != 256) {
			assert_true(wf_base_clock_ns() < end);
			usleep(1000);
		}
	}
}

/* -- clients --------------------------------------------------------------- */

static void victim(uint64_t seed)
{
	struct wf_drv_device devices[3];

	rig_only_sleep = seed % 2;
	for (int i = 0; i < 3; i++) {
		if (rig_open(&devices[i], rig_names[i],
			     i ? 1u << 20 : 1u << 16))
			_exit(1);
	}
	for (;;)
		work(&devices[next_random(&seed) % 3], seed, 1);
}

static void test_clients_killed(void **state)
{
	struct wf_drv_device own;
	uint64_t random = 42;
	pid_t pids[4];
	int status;

	(void)state;
	assert_int_equal(rig_open(&own, "share-0", 1u << 20), 0);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 4; i++)
			pids[i] = rig_spawn(victim, random + (uint64_t)i);
		for (int i = 0; i < 4; i++) {
			usleep((useconds_t)(next_random(&random) % 8000));
			work(&own, random, 20);
			kill(pids[i], SIGKILL);
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_true(WIFSIGNALED(status));
		}
		work(&own, random, 20);
	}
	wf_drv_device_close(&own);
	wait_all_free();
	/* All of the arena came back. */
	assert_int_equal(rig_open(&own, "noiommu-0", 0), 0);
	assert_non_null(wd_reserve_mem(&own.ch, 12u << 20));
	wf_drv_device_close(&own);
}

static int holding[2]; /* a pipe: it has them */

/* Jobs that run, that wait and whose results it has not read. */
static void holds_jobs(uint64_t type)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	struct wf_drv_device device;

	if (rig_open(&device, rig_names[type], 1u << 20) ||
	    wf_drv_device_submit(&device, &job, false))
		_exit(1);
	while (!wf_queue_cq_ready(&device.cq))
		sched_yield();
	job = (struct wf_drv_job){ .alg = WF_ACCEL_CRC32,
				   .src = smm_alloc(device.ch.ss_va, 512 << 10),
				   .src_len = 512 << 10 };
	for (int i = 0; i < 100; i++) {
		if (!job.src || wf_drv_device_submit(&device, &job, false))
			_exit(1);
	}
	if (write(holding[1], "h", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* The device lets go of all that the client had, and others go on. */
static void test_killed_holding_jobs(void **state)
{
	struct wf_drv_device own;
	char byte;
	int status;
	pid_t pid;

	(void)state;
	for (uint64_t type = 0; type < 3; type++) {
		assert_int_equal(rig_open(&own, rig_names[type], 1u << 17), 0);
		assert_int_equal(pipe(holding), 0);
		pid = rig_spawn(holds_jobs, type);
		assert_int_equal(read(holding[0], &byte, 1), 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		work(&own, type, 20);
		wf_drv_device_close(&own);
		wait_all_free();
		close(holding[0]);
		close(holding[1]);
	}
	/* All of the arena came back. */
	assert_int_equal(rig_open(&own, "noiommu-0", 0), 0);
	assert_non_null(wd_reserve_mem(&own.ch, 12u << 20));
	wf_drv_device_close(&own);
}

static void one_of_64(uint64_t number)
{
	struct wf_drv_device device;

	rig_only_sleep = true;
	if (rig_open(&device, rig_names[number % 3], 1u << 17))
		_exit(1);
	work(&device, number, 40);
	wf_drv_device_close(&device);
}

static void test_64_clients(void **state)
{
	pid_t pids[64];

	(void)state;
	for (uint64_t i = 0; i < 64; i++)
		pids[i] = rig_spawn(one_of_64, i);
	for (int i = 0; i < 64; i++)
		rig_expect_exit(pids[i]);
	wait_all_free();
}

static void other_process(uint64_t dma)
{
	struct wf_drv_device device;
	struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
				    .src = dma,
				    .src_len = 64 };

	/* Addresses of another process mean nothing here, or something else:
	 * NOIOMMU refuses what is not ours. */
	if (rig_open(&device, "noiommu-0", 1u << 16) ||
	    rig_raw(&device, &job).status != -EFAULT)
		_exit(1);
	work(&device, 3, 10);
	wf_drv_device_close(&device);
}

static void test_two_processes(void **state)
{
	struct wf_drv_device device;

	(void)state;
	assert_int_equal(rig_open(&device, "noiommu-0", 1u << 16), 0);
	rig_expect_exit(rig_spawn(other_process, (uintptr_t)device.ch.ss_dma));
	work(&device, 4, 10);
	wf_drv_device_close(&device);
}

static struct wf_drv_device *forked;

static void child_of_client(uint64_t in_flight)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	struct wf_drv_result result;
	struct wf_drv_device own;
	int n = 0;

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "child: %s\n", #cond);                 \
			_exit(1);                                              \
		}                                                              \
	} while (0)
	MUST(wf_drv_device_submit(forked, &job, false) == -ENODEV);
	while (wf_drv_device_poll(forked, &result, 1) == 1) {
		MUST(result.status == -ENODEV);
		n++;
	}
	MUST(n == (int)in_flight);
	MUST(wd_drv_alive(&forked->ch) == 0);
	MUST(wd_drv_start(&forked->ch) < 0);
	MUST(wd_drv_wait(&forked->ch, 0) == -ENODEV);
	MUST(wd_drv_kick(&forked->ch) == -ENODEV);
	MUST(wd_get_dma_from_va(&forked->ch, forked->ch.ss_va) == 0);
	MUST(!wd_reserve_mem(&forked->ch, 4096) && errno == ENODEV);
	wf_drv_device_close(forked);
	MUST(!rig_open(&own, "share-0", 1u << 16));
	work(&own, 9, 20);
	wf_drv_device_close(&own);
#undef MUST
}

static void test_fork(void **state)
{
	static struct wf_drv_device device;
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32 };
	uint8_t *memory;
	pid_t pid;

	(void)state;
	forked = &device;
	for (int type = 0; type < 3; type++) {
		assert_int_equal(rig_open(&device, rig_names[type], 1u << 20),
				 0);
		memory = smm_alloc(device.ch.ss_va, 512 << 10);
		job.src = memory;
		job.src_len = 512 << 10;
		for (int i = 0; i < 5; i++)
			assert_int_equal(
				wf_drv_device_submit(&device, &job, false), 0);
		pid = rig_spawn(child_of_client, 5);
		for (int i = 0; i < 5; i++)
			assert_int_equal(rig_result(&device, i % 2).status, 0);
		rig_expect_exit(pid);
		work(&device, 5, 10);
		wf_drv_device_close(&device);
	}
	wait_all_free();
}

static int outlive[2]; /* the child lives until the writing end is closed */

static void dying_parent(uint64_t arg)
{
	struct wf_drv_device device;
	char byte;

	(void)arg;
	if (rig_open(&device, "sva-0", 0))
		_exit(1);
	rig_nop(&device);
	/* Not rig_spawn(): this one is to live on. */
	if (!fork()) {
		close(outlive[1]);
		while (read(outlive[0], &byte, 1) < 0 && errno == EINTR)
			;
	}
	_exit(0);
}

/* A child outlives the client: the device must not wait for it. */
static void test_parent_dies_first(void **state)
{
	(void)state;
	assert_int_equal(pipe(outlive), 0);
	rig_expect_exit(rig_spawn(dying_parent, 0));
	wait_all_free();
	close(outlive[1]);
	close(outlive[0]);
}

static void becomes_another(uint64_t fd)
{
	struct wf_drv_device device;
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32,
				  .src = rig.socket,
				  .src_len = sizeof(rig.socket) };

	if (rig_open(&device, "sva-0", 0) ||
	    wf_drv_device_submit(&device, &job, false) ||
	    write((int)fd, "o", 1) != 1)
		_exit(1);
	execlp("sleep", "sleep", "60", NULL);
}

/* The process goes on as another program: that is not our client. */
static void test_exec(void **state)
{
	int fds[2], status;
	char opened;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = rig_spawn(becomes_another, (uint64_t)fds[1]);
	assert_int_equal(read(fds[0], &opened, 1), 1);
	close(fds[0]);
	close(fds[1]);
	wait_all_free();
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* -- the device ------------------------------------------------------------ */

static void device_killed(bool sleeping, bool restart)
{
	enum { JOBS = 100 };
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32, .src_len = 512 << 10 };
	struct wf_drv_device device, second, again;
	struct wf_drv_result result;
	uint8_t *memory = calloc(1, job.src_len);
	int good = 0, lost = 0;

	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	assert_int_equal(rig_open(&second, "share-0", 1u << 20), 0);
	job.src = memory;
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	usleep(3000);
	rig_kill(&rig);
	for (int i = 0; i < JOBS; i++) {
		result = rig_result(&device, sleeping);
		good += !result.status;
		lost += result.status == -ENODEV;
	}
	assert_int_equal(good + lost, JOBS);
	assert_true(lost > 0);
	assert_int_equal(wf_drv_device_poll(&device, &result, 1), -ENODEV);
	assert_int_equal(wf_drv_device_submit(&device, &job, false), -ENODEV);
	assert_int_equal(wd_drv_alive(&second.ch), 0);
	if (restart)
		rig_fork(&rig);
	else
		assert_int_equal(rig_open(&again, "sva-0", 0), -ENODEV);
	/* The old channel stays dead; reserved memory is still there. */
	memset(second.ch.ss_va, 1, 4096);
	if (restart) {
		assert_int_equal(rig_open(&again, "share-0", 1u << 20), 0);
		work(&again, 1, 20);
		assert_int_equal(
			wd_share_reserved_memory(&second.ch, &again.ch),
			-EINVAL);
		assert_int_equal(wd_drv_alive(&second.ch), 0);
		wf_drv_device_close(&again);
	}
	while (wf_drv_device_poll(&second, &result, 1) >= 0)
		;
	wf_drv_device_close(&second);
	wf_drv_device_close(&device);
	free(memory);
}

static void test_device_killed(void **state)
{
	(void)state;
	device_killed(false, true);
	device_killed(true, true);
	device_killed(true, false);
	rig_fork(&rig);
	wait_all_free();
}

/* Killed at random points while it opens, reserves, runs, closes. */
static void test_device_killed_anywhere(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < 18; i++) {
		struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
		struct wf_drv_result result;
		struct wf_drv_device device;
		pid_t killer = fork();

		if (!killer) {
			usleep((useconds_t)(next_random(&random) % 3000));
			kill(rig.pid, SIGKILL);
			_exit(0);
		}
		next_random(&random);
		for (;;) {
			int err = rig_open(&device, rig_names[i % 3], 1u << 16);

			if (err) {
				assert_int_equal(err, -ENODEV);
				break;
			}
			err = wf_drv_device_submit(&device, &job, false);
			while (!err)
				err = wf_drv_device_poll(&device, &result, 1);
			wf_drv_device_close(&device);
			assert_true(err == 1 || err == -ENODEV);
		}
		rig_expect_exit(killer);
		rig_kill(&rig);
		rig_fork(&rig);
	}
}

/* -- hostile clients ------------------------------------------------------- */

static void post_raw(struct wf_drv_device *device, unsigned int count)
{
	struct wf_accel_job *ring = device->dus;
	uint32_t bell = atomic_load(&device->mmio->doorbell);

	while (count--) {
		ring[bell & (device->mmio->depth - 1)] =
			(struct wf_accel_job){ .alg = WF_ACCEL_NOP };
		bell++;
	}
	atomic_store(&device->mmio->doorbell, bell);
	wd_drv_kick(&device->ch);
}

/* Completions that nobody reads: the ring of this client is full, the others
 * do not notice. */
static void test_stalled_client(void **state)
{
	struct wf_drv_device stalled, other;
	uint32_t depth;

	(void)state;
	assert_int_equal(rig_open(&stalled, "sva-0", 0), 0);
	assert_int_equal(rig_open(&other, "sva-0", 0), 0);
	depth = stalled.mmio->depth;
	post_raw(&stalled, depth);
	work(&other, 1, 50);
	post_raw(&stalled, depth);
	work(&other, 2, 50);
	/* Its own credit lets it go on. */
	assert_int_equal(atomic_load(&stalled.mmio->state), WF_ACCEL_RUNNING);
	atomic_store(&stalled.mmio->credit, depth);
	wd_drv_kick(&stalled.ch);
	work(&other, 3, 50);
	wf_drv_device_close(&stalled);
	wf_drv_device_close(&other);
}

static void ring_nonsense(uint32_t doorbell, uint32_t credit)
{
	struct wf_drv_device liar, other;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	assert_int_equal(rig_open(&liar, "share-0", 0), 0);
	assert_int_equal(rig_open(&other, "share-0", 1u << 17), 0);
	assert_int_equal(wf_drv_device_submit(&liar, &job, true), 0);
	atomic_store(&liar.mmio->credit, credit);
	atomic_store(&liar.mmio->doorbell, doorbell);
	wd_drv_kick(&liar.ch);
	while (atomic_load(&liar.mmio->state) != WF_ACCEL_FAULT)
		assert_true(wf_base_clock_ns() < end);
	assert_int_equal(rig_result(&liar, true).status, -EIO);
	assert_int_equal(wf_drv_device_submit(&liar, &job, false), -EIO);
	work(&other, 1, 20);
	wf_drv_device_close(&liar);
	wf_drv_device_close(&other);
}

static void test_lying_doorbell(void **state)
{
	(void)state;
	ring_nonsense(1000, 0);
	ring_nonsense(UINT32_MAX, 0);
	ring_nonsense(0x10001, 0);
	ring_nonsense(1, 5);
	ring_nonsense(1, UINT32_MAX);
}

/* The eventfd is shared with the device: made to block, and full. */
static void test_blocking_interrupt(void **state)
{
	struct wf_drv_device spoiler, other;
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	uint64_t full = UINT64_MAX - 1, end;
	int fd;

	(void)state;
	assert_int_equal(rig_open(&spoiler, "sva-0", 0), 0);
	assert_int_equal(rig_open(&other, "sva-0", 0), 0);
	fd = wd_drv_event_fd(&spoiler.ch);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	atomic_store(&spoiler.mmio->user_sleeps, 1);
	assert_int_equal(wf_drv_device_submit(&spoiler, &job, false), 0);
	end = wf_base_clock_ns() + RIG_PATIENCE;
	while (atomic_load(&spoiler.mmio->state) != WF_ACCEL_FAULT)
		assert_true(wf_base_clock_ns() < end);
	work(&other, 1, 50);
	/* The kick of the spoiler, full: its own loss. */
	fd = spoiler.ch.core->kick_fd;
	if (read(fd, &end, sizeof(end)) < 0)
		assert_int_equal(errno, EAGAIN);
	assert_int_equal(write(fd, &full, sizeof(full)), sizeof(full));
	work(&other, 2, 50);
	wf_drv_device_close(&spoiler);
	wf_drv_device_close(&other);
}

/* Requests that make no sense, in every order and size. */
static void test_hostile_requests(void **state)
{
	uint64_t random = 11;
	uint8_t junk[300];
	int fd;

	(void)state;
	fd = raw_connect(rig.socket);
	assert_int_equal(
		raw_ask(fd,
			(struct wf_broker_request){ .op = WF_BROKER_DEVICE }),
		-EPROTO);
	assert_int_equal(
		raw_ask(fd,
			(struct wf_broker_request){ .op = WF_BROKER_HELLO }),
		0);
	/* Its memory was not given: no SVA. */
	assert_int_equal(
		raw_ask(fd, (struct wf_broker_request){ .op = WF_BROKER_OPEN,
							.name = "sva-0" }),
		-EPERM);
	for (uint32_t i = 0; i < 400; i++) {
		struct wf_broker_request request = {
			.op = (uint16_t)(next_random(&random) % 12),
			.chan = (uint32_t)(next_random(&random) % 4),
			.target = (uint32_t)(next_random(&random) % 4),
			.index = (uint32_t)(next_random(&random) % 5),
			.size = next_random(&random) % 4 ?
					next_random(&random) % 5 * 4096 :
					UINT64_MAX,
			.offset = next_random(&random) % 3 - 1,
			.name = "share-0",
		};

		assert_true(raw_ask(fd, request) <= 0);
	}
	close(fd);
	for (int i = 0; i < 100; i++) {
		size_t len = next_random(&random) % sizeof(junk);

		fd = raw_connect(rig.socket);
		rig_fill(junk, sizeof(junk), (uint32_t)i);
		assert_true(send(fd, junk, len, MSG_NOSIGNAL) >= 0);
		close(fd);
	}
	wait_all_free();
}

/* -- other users ----------------------------------------------------------- */

static void as_nobody(uint64_t expected)
{
	struct wf_drv_device device;

	if (setgid(65534) || setuid(65534))
		_exit(1);
	/* A change of user takes it away. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rig_open(&device, "share-0", 1u << 16) != -(int)expected)
		_exit(1);
	if (!expected) {
		work(&device, 1, 10);
		wf_drv_device_close(&device);
	}
}

static void test_other_users(void **state)
{
	struct rig open_rig;

	(void)state;
	if (geteuid())
		skip();
	rig_expect_exit(rig_spawn(as_nobody, EACCES));
	rig_init(&open_rig);
	open_rig.config.allow_uid = "12,65534";
	rig_fork(&open_rig);
	rig_expect_exit(rig_spawn(as_nobody, 0));
	rig_kill(&open_rig);
	setenv("WEFT_DEVD", rig.socket, 1);
}

/* -- threads --------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	struct wf_drv_device device, second;

	for (int i = 0; i < 12; i++) {
		const char *name = rig_names[next_random(&seed) % 3];

		assert_int_equal(rig_open(&device, name, 1u << 17), 0);
		assert_int_equal(rig_open(&second, name, 0), 0);
		assert_int_equal(
			wd_share_reserved_memory(&device.ch, &second.ch), 0);
		work(&second, seed, 5);
		wf_drv_device_close(&device);
		work(&second, seed, 5);
		wf_drv_device_close(&second);
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main,
						(void *)(i + 1)),
				 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	wait_all_free();
}

int main(void)
{
	/* Threads last: whatever forks comes before. */
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_clients_killed),
		TEST(test_killed_holding_jobs),
		TEST(test_64_clients),
		TEST(test_two_processes),
		TEST(test_fork),
		TEST(test_parent_dies_first),
		TEST(test_exec),
		TEST(test_device_killed),
		TEST(test_device_killed_anywhere),
		TEST(test_stalled_client),
		TEST(test_lying_doorbell),
		TEST(test_blocking_interrupt),
		TEST(test_hostile_requests),
		TEST(test_other_users),
		TEST(test_threads),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
