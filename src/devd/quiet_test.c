/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When one side goes quiet: a client that reads its completions late or never,
 * a device that was stopped (SIGSTOP) and goes on later. Nobody hangs, and
 * nobody else notices.
 */
#include "devd/rig_test.h"

#include <dirent.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "base/log.h"
#include "chan/session.h"
#include "devd/raw_test.h"

static struct rig rig;

#define REPLY_MS 1500
/* How long a device may be silent outside of this test. */
#define SILENT_MS 5000
#define HELD_MS (SILENT_MS + 1500)

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.workers = 1;
	rig_fork(&rig);
	wf_chan_session_reply_ms = REPLY_MS;
	return 0;
}

/* The device is not silent: it answers, however late a busy machine lets it. */
static int setup_patient(void **state)
{
	setup(state);
	wf_chan_session_reply_ms = (int)(RIG_PATIENCE / WF_NS_PER_MS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kill(rig.pid, SIGCONT);
	rig_kill(&rig);
	return 0;
}

/* One that was silent before has half a second to answer, any other a second and
 * a half: on a busy machine it may have to be asked more than once. */
static void open_device(struct wf_drv_device *device, const char *name,
			size_t reserve)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	int err;

	do
		err = rig_open(device, name, reserve);
	while (err == -ENODEV && wf_base_clock_ns() < end);
	assert_int_equal(err, 0);
}

/* -- the client ------------------------------------------------------------ */

static void expect_asleep(const struct wf_drv_device *device)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (!atomic_load(&device->mmio->device_sleeps)) {
		assert_true(wf_base_clock_ns() < end);
		usleep(1000);
	}
}

/* A bug: the device ran out of room for completions and went to sleep; the
 * credit that made room did not wake it. */
static void test_late_reader(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	struct wf_drv_device device;
	uint32_t depth;

	(void)state;
	open_device(&device, "share-0", 0);
	depth = device.mmio->depth;
	for (int round = 0; round < 3; round++) {
		/* Read, but not yet told. */
		for (uint32_t i = 0; i < depth / 4 - 1; i++)
			rig_nop(&device);
		for (uint32_t i = 0; i < depth; i++)
			assert_int_equal(
				wf_drv_device_submit(&device, &job, false), 0);
		usleep(20000); /* it has seldom looked and not slept yet */
		expect_asleep(&device);
		for (uint32_t i = 0; i < depth; i++)
			assert_int_equal(rig_result(&device, round == 1).status,
					 0);
	}
	wf_drv_device_close(&device);
}

/* Asks without end and reads no answer: dropped, nobody waits for it. */
static void test_never_reads(void **state)
{
	struct wf_drv_device other;
	int fd = raw_connect(rig.socket);
	int sent = 0;

	(void)state;
	open_device(&other, "share-0", 1u << 17);
	assert_int_equal(
		raw_ask(fd,
			(struct wf_broker_request){ .op = WF_BROKER_HELLO }),
		0);
	while (!raw_send(fd,
			 (struct wf_broker_request){ .op = WF_BROKER_DEVICE },
			 NULL, 0)) {
		assert_true(++sent < 100000);
		if (sent % 100 == 0)
			rig_nop(&other);
	}
	rig_nop(&other);
	close(fd);
	wf_drv_device_close(&other);
}

/* Two workers' worth of completions that nobody reads, in every scenario, and
 * big jobs before them: others do not notice. */
static void test_never_takes_results(void **state)
{
	struct wf_drv_device stalled[3], other;
	uint64_t start;

	(void)state;
	open_device(&other, "share-0", 1u << 17);
	for (int i = 0; i < 3; i++) {
		struct wf_drv_job job = { .alg = WF_ACCEL_CRC32,
					  .src_len = 4096 };

		assert_int_equal(rig_open(&stalled[i], rig_names[i], 1u << 17),
				 0);
		job.src = smm_alloc(stalled[i].ch.ss_va, job.src_len);
		while (!wf_drv_device_submit(&stalled[i], &job, false))
			;
		/* The device may have all of them done or not: none is read. */
	}
	for (int i = 0; i < 200; i++)
		rig_nop(&other);
	/* Each of theirs is still there. */
	for (int i = 0; i < 3; i++) {
		uint32_t n = wf_drv_device_in_flight(&stalled[i]);

		assert_int_equal(n, stalled[i].mmio->depth);
		while (n--)
			assert_int_equal(rig_result(&stalled[i], false).status,
					 0);
	}
	start = wf_base_clock_ns();
	for (int i = 0; i < 3; i++)
		wf_drv_device_close(&stalled[i]);
	wf_drv_device_close(&other);
	assert_true(wf_base_clock_ns() - start < RIG_PATIENCE);
}

/* How many of 100 large jobs of one client are done before a small one of
 * another, which came last. */
static int done_before(void)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32, .src_len = 4 << 20 };
	void *memory = calloc(1, job.src_len);
	struct wf_drv_device greedy, modest;
	struct wf_drv_result result;
	int n = 0;

	job.src = memory;
	open_device(&greedy, "sva-0", 0);
	open_device(&modest, "sva-0", 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(wf_drv_device_submit(&greedy, &job, false), 0);
	rig_nop(&modest);
	while (wf_drv_device_poll(&greedy, &result, 1) == 1)
		n++;
	wf_drv_device_close(&greedy);
	wf_drv_device_close(&modest);
	free(memory);
	return n;
}

/* A full queue is not served to its end before others have their turn. */
static void test_turns(void **state)
{
	int n = 100;

	(void)state;
	/* We may be the one who is slow. */
	for (int i = 0; i < 5 && n >= 50; i++)
		n = done_before();
	assert_true(n < 50);
}

/* -- the device ------------------------------------------------------------ */

static void halt(void)
{
	int status;

	kill(rig.pid, SIGSTOP);
	assert_int_equal(waitpid(rig.pid, &status, WUNTRACED), rig.pid);
	assert_true(WIFSTOPPED(status));
}

/* Every job ends with an error, by polling and by sleeping; and when the device
 * goes on it must not write into memory that we were told is ours again. */
static void stopped_with_jobs(const char *name, bool sleeping)
{
	static uint8_t src[1 << 20], dst[1 << 20];
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = sizeof(src),
				  .dst_len = sizeof(dst) };
	struct wf_drv_device device;
	struct wf_drv_result result;
	int lost = 0;

	rig_fill(src, sizeof(src), 1);
	open_device(&device, name, 4u << 20);
	rig_nop(&device);
	halt();
	for (int i = 0; i < 20; i++) {
		int err = wf_drv_device_submit(&device, &job, false);

		assert_true(!err || err == -EAGAIN);
	}
	while (wf_drv_device_in_flight(&device)) {
		result = rig_result(&device, sleeping);
		assert_int_equal(result.status, -ENODEV);
		lost++;
	}
	assert_true(lost >= 1);
	assert_int_equal(wf_drv_device_submit(&device, &job, false), -ENODEV);
	memset(dst, 0xee, sizeof(dst));
	kill(rig.pid, SIGCONT);
	usleep(100000);
	for (size_t i = 0; i < sizeof(dst); i++)
		assert_int_equal(dst[i], 0xee);
	wf_drv_device_close(&device);
	/* It is found again. */
	open_device(&device, name, 4u << 20);
	assert_int_equal(rig_run(&device, &job).status, 0);
	assert_memory_equal(src, dst, sizeof(dst));
	wf_drv_device_close(&device);
}

static void test_stopped_jobs(void **state)
{
	(void)state;
	stopped_with_jobs("sva-0", false);
	stopped_with_jobs("sva-0", true);
	stopped_with_jobs("share-0", true);
}

/* The device is stopped in the middle of a job that writes. */
static void test_stopped_inside(void **state)
{
	enum { BYTES = 32 << 20 };
	uint8_t *src = calloc(1, BYTES), *dst = calloc(1, BYTES);
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = BYTES,
				  .dst_len = BYTES };
	struct wf_drv_device device;
	struct wf_drv_result result;
	size_t written = 0;

	(void)state;
	memset(src, 1, BYTES);
	open_device(&device, "sva-0", 0);
	assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	while (!*(volatile uint8_t *)dst)
		sched_yield();
	halt();
	result = rig_result(&device, true);
	/* If it was too fast for us there is nothing to see. */
	if (result.status == -ENODEV) {
		memset(dst, 0xee, BYTES);
		kill(rig.pid, SIGCONT);
		usleep(100000);
		for (size_t i = 0; i < BYTES; i++)
			written += dst[i] != 0xee;
		/* The call that it was in, at most: a piece of 256 KiB. */
		assert_true(written <= 256 << 10);
	}
	kill(rig.pid, SIGCONT);
	wf_drv_device_close(&device);
	free(src);
	free(dst);
}

static uint64_t since_ms(uint64_t start)
{
	return (wf_base_clock_ns() - start) / WF_NS_PER_MS;
}

static void test_stopped_requests(void **state)
{
	struct wf_drv_device device, more;
	struct uacce_dev_info *list;
	uint64_t start;

	(void)state;
	open_device(&device, "share-0", 0);
	halt();
	start = wf_base_clock_ns();
	assert_null(wd_reserve_mem(&device.ch, 4096));
	assert_int_equal(errno, ENODEV);
	assert_true(since_ms(start) < 30000);
	assert_int_equal(rig_open(&more, "share-0", 0), -ENODEV);
	/* Known to be silent: no request waits so long again. */
	wf_chan_session_reply_ms = 30000;
	start = wf_base_clock_ns();
	for (int i = 0; i < 6; i++)
		assert_int_equal(wd_list_devices(NULL, &list), 0);
	assert_true(since_ms(start) < 5 * (uint64_t)wf_chan_session_reply_ms);
	wf_chan_session_reply_ms = REPLY_MS;
	start = wf_base_clock_ns();
	wf_drv_device_close(&device);
	assert_true(since_ms(start) < 30000);
	kill(rig.pid, SIGCONT);
	open_device(&device, "share-0", 1u << 17);
	rig_nop(&device);
	halt();
	start = wf_base_clock_ns();
	wf_drv_device_close(&device);
	assert_true(since_ms(start) < 30000);
	kill(rig.pid, SIGCONT);
	open_device(&device, "share-0", 1u << 17);
	rig_nop(&device);
	wf_drv_device_close(&device);
}

static int lent_fd, returned;

static void *lend(size_t size, uint64_t *dma)
{
	(void)dma;
	lent_fd = memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(lent_fd, (off_t)size), 0);
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, lent_fd, 0);
}

static void take_back(void *va)
{
	munmap(va, 4096);
	close(lent_fd);
	returned++;
}

static int lent(void *va, uint64_t *offset)
{
	(void)va;
	*offset = 0;
	return lent_fd;
}

/* A bug: memory of an allocator went back to it while the device that was given
 * up had only been stopped, and wrote to it when it went on. */
static void test_stopped_with_memory(void **state)
{
	static const struct wd_3rd_memory allocator = { .alloc_mem = lend,
							.free_mem = take_back,
							.get_fd = lent };
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	struct wf_drv_device device, other;

	(void)state;
	returned = 0;
	open_device(&device, "share-0", 0);
	assert_int_equal(wd_register_3rd_memory(&device.ch, &allocator), 0);
	assert_non_null(wd_reserve_mem(&device.ch, 4096));
	rig_nop(&device);
	halt();
	assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	wf_drv_device_close(&device);
	assert_int_equal(returned, 0);
	kill(rig.pid, SIGCONT);
	while (!returned) {
		assert_true(wf_base_clock_ns() < end);
		usleep(1000);
		if (!rig_open(&other, "share-0", 0))
			wf_drv_device_close(&other);
	}
	/* A device that lives or has died gives back at once. */
	for (int die = 0; die < 2; die++) {
		open_device(&device, "share-0", 0);
		assert_int_equal(wd_register_3rd_memory(&device.ch, &allocator),
				 0);
		assert_non_null(wd_reserve_mem(&device.ch, 4096));
		if (die)
			rig_kill(&rig);
		wf_drv_device_close(&device);
		assert_int_equal(returned, 2 + die);
	}
	rig_fork(&rig); /* for the teardown */
}

struct hold {
	pthread_t thread;
	pid_t tid;
	sem_t held;
};

/* One thread of the device stands still, the others do not. */
static void *hold_worker(void *arg)
{
	struct hold *hold = arg;
	bool held;

	held = !ptrace(PTRACE_SEIZE, hold->tid, NULL, NULL) &&
	       !ptrace(PTRACE_INTERRUPT, hold->tid, NULL, NULL) &&
	       waitpid(hold->tid, NULL, __WALL) == hold->tid;
	sem_post(&hold->held);
	if (!held)
		return NULL;
	usleep(HELD_MS * 1000);
	ptrace(PTRACE_DETACH, hold->tid, NULL, NULL);
	return hold;
}

/* Its only thread besides the manager. */
static pid_t find_worker(void)
{
	struct dirent *entry;
	char path[64];
	pid_t tid = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)rig.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		long number = strtol(entry->d_name, NULL, 10);

		if (number > 0 && number != rig.pid)
			tid = (pid_t)number;
	}
	closedir(dir);
	return tid;
}

/* A job takes longer than a device may be silent: its release waits for it, for
 * the device says that it is there. */
static void test_slow_job(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	struct wf_drv_device device, other;
	struct hold hold = { .tid = find_worker() };
	uint64_t start = wf_base_clock_ns();
	void *held;

	(void)state;
	/* The manager has to answer in time while the worker is held: with less
	 * than users have, a busy machine decides. */
	wf_chan_session_reply_ms = SILENT_MS;
	open_device(&device, "share-0", 0);
	open_device(&other, "share-0", 0);
	sem_init(&hold.held, 0, 0);
	pthread_create(&hold.thread, NULL, hold_worker, &hold);
	while (sem_wait(&hold.held))
		;
	assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	wf_drv_device_close(&device);
	assert_int_equal(wd_drv_alive(&other.ch), 1);
	rig_nop(&other);
	wf_drv_device_close(&other);
	pthread_join(hold.thread, &held);
	if (!held)
		skip(); /* may not trace */
	assert_true(since_ms(start) >= HELD_MS - 100);
}

struct parallel {
	pthread_t thread;
	struct wf_drv_device device;
	int err;
	atomic_bool answered;
};

static void *opens_stopped(void *arg)
{
	struct parallel *p = arg;

	p->err = rig_open(&p->device, rig.socket, 0);
	atomic_store(&p->answered, true);
	return NULL;
}

/* Another device is not held up by one that is stopped: while somebody waits for an
 * answer of that one, neither requests nor releases wait. */
static void test_stopped_neighbour(void **state)
{
	struct parallel p = { .answered = false };
	struct wf_drv_device good, stopped;
	struct rig second;
	char path[WD_PATH_SIZE];

	(void)state;
	rig_init(&second);
	rig_fork(&second);
	open_device(&good, "share-0", 0);
	snprintf(path, sizeof(path), "%s:share-0", rig.socket);
	open_device(&stopped, path, 0);
	halt();
	strcat(rig.socket, ":sva-0"); /* no name, no list: lookup alone */
	pthread_create(&p.thread, NULL, opens_stopped, &p);
	for (int i = 0; i < 20; i++) {
		wf_drv_device_close(&good);
		open_device(&good, "share-0", 1u << 16);
		rig_nop(&good);
		usleep(20000);
	}
	assert_false(atomic_load(&p.answered));
	kill(rig.pid, SIGCONT);
	pthread_join(p.thread, NULL);
	assert_int_equal(p.err, 0);
	*strchr(rig.socket, ':') = '\0';
	wf_drv_device_close(&p.device);
	wf_drv_device_close(&stopped);
	wf_drv_device_close(&good);
	rig_kill(&second);
	setenv("WEFT_DEVD", rig.socket, 1);
}

/* Stopped and let go again and again, at any point: an answer is right, and a
 * job without an answer ends with -ENODEV. */
static void test_stopped_anywhere(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	unsigned int seed = 5;
	pid_t teaser = fork();

	(void)state;
	if (!teaser) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < 150; i++) {
			usleep((useconds_t)rand_r(&seed) % 3000);
			kill(rig.pid, SIGSTOP);
			usleep((useconds_t)rand_r(&seed) % 4000);
			kill(rig.pid, SIGCONT);
		}
		_exit(0);
	}
	for (int i = 0; waitpid(teaser, NULL, WNOHANG) == 0; i++) {
		struct wf_drv_device device;

		assert_int_equal(rig_open(&device, rig_names[i % 3], 1u << 16),
				 0);
		for (int j = 0; j < 5; j++) {
			assert_int_equal(
				wf_drv_device_submit(&device, &job, false), 0);
			assert_int_equal(rig_result(&device, j % 2).status, 0);
		}
		wf_drv_device_close(&device);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PATIENT(name)                                                          \
	cmocka_unit_test_setup_teardown(name, setup_patient, teardown)
		PATIENT(test_late_reader),
		PATIENT(test_never_reads),
		PATIENT(test_never_takes_results),
		PATIENT(test_turns),
		PATIENT(test_stopped_anywhere),
		TEST(test_stopped_jobs),
		TEST(test_stopped_inside),
		TEST(test_stopped_requests),
		TEST(test_stopped_with_memory),
		PATIENT(test_stopped_neighbour),
		TEST(test_slow_job),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	rig_impatient = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
