/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of rings between two sides that run at once: a device in a thread,
 * and one in another process with everything in a sealed memfd that each side
 * maps at an address of its own. Jobs come back out of order; both sides sleep.
 */
#include "queue/cq.h"
#include "queue/ids.h"
#include "queue/sub.h"
#include "queue/wake.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SUB_ENTRIES 64u
#define CQ_ENTRIES 16u /* smaller: the device has to wait for credit */
#define JOBS 60000u
#define MAX_BATCH 16u
#define HELD 8u

struct job {
	uint32_t id;
	uint32_t value;
	uint8_t pad[56];
};

struct entry {
	uint32_t word; /* phase in bit 31, id below */
	uint32_t value;
	uint8_t pad[24];
};

struct shared {
	_Alignas(64) struct job sub[SUB_ENTRIES];
	_Alignas(64) struct entry cq[CQ_ENTRIES];
	_Alignas(64) _Atomic uint32_t doorbell;
	_Atomic uint32_t user_sleeps;
	_Alignas(64) _Atomic uint32_t credit;
	_Atomic uint32_t device_sleeps;
};

static int to_device = -1, to_user = -1;

static struct wf_queue_sub_attr sub_attr(struct shared *mem)
{
	return (struct wf_queue_sub_attr){
		.ring = mem->sub,
		.doorbell = &mem->doorbell,
		.entries = SUB_ENTRIES,
		.stride = 64,
		.max_batch = MAX_BATCH,
	};
}

static struct wf_queue_cq_attr cq_attr(struct shared *mem)
{
	return (struct wf_queue_cq_attr){
		.ring = mem->cq,
		.credit = &mem->credit,
		.entries = CQ_ENTRIES,
		.stride = sizeof(struct entry),
		.phase_word = 0,
		.phase_bit = 1u << 31,
	};
}

static void wake(_Atomic uint32_t *asleep, int fd)
{
	if (wf_queue_wake_needed(asleep))
		eventfd_write(fd, 1);
}

static void rest(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	eventfd_t value;

	/* A lost wake-up would show as a test that takes an hour. */
	if (poll(&wait, 1, 10000) == 1)
		eventfd_read(fd, &value);
}

static void complete(struct wf_queue_cqw *cqw, struct shared *mem,
		     const struct job *job)
{
	const struct entry entry = { .word = job->id, .value = ~job->value };

	while (wf_queue_cqw_push(cqw, &entry) == -EAGAIN)
		usleep(10);
	wake(&mem->user_sleeps, to_user);
}

/* Holds some jobs back and completes them in the opposite order. */
static int device(struct shared *mem)
{
	struct wf_queue_sub_attr sa = sub_attr(mem);
	struct wf_queue_cq_attr ca = cq_attr(mem);
	struct job held[HELD];
	struct wf_queue_work work;
	struct wf_queue_cqw cqw;
	unsigned n = 0;

	if (wf_queue_work_init(&work, &sa) || wf_queue_cqw_init(&cqw, &ca))
		return 1;
	for (unsigned done = 0; done < JOBS;) {
		int ready = wf_queue_work_poll(&work);

		if (ready < 0)
			return 1;
		for (; ready && n < HELD; ready--)
			wf_queue_work_take(&work, &held[n++]);
		if (!n) {
			wf_queue_wake_arm(&mem->device_sleeps);
			if (!wf_queue_work_poll(&work))
				rest(to_device);
			wf_queue_wake_disarm(&mem->device_sleeps);
			continue;
		}
		while (n) {
			complete(&cqw, mem, &held[--n]);
			done++;
		}
	}
	return 0;
}

static void reap(struct wf_queue_cq *cq, struct wf_queue_sub *sub,
		 struct wf_queue_ids *ids, const uint32_t *values,
		 unsigned *done)
{
	struct entry entry;

	while (wf_queue_cq_take(cq, &entry)) {
		uint32_t id = entry.word & ~(1u << 31);

		assert_true(wf_queue_ids_live(ids, id));
		assert_int_equal(entry.value, ~values[id & ids->mask]);
		wf_queue_ids_put(ids, id);
		wf_queue_sub_done(sub, 1);
		(*done)++;
	}
}

static void user(struct shared *mem)
{
	struct wf_queue_sub_attr sa = sub_attr(mem);
	struct wf_queue_cq_attr ca = cq_attr(mem);
	uint32_t values[SUB_ENTRIES];
	unsigned posted = 0, done = 0;
	struct wf_queue_ids ids;
	struct wf_queue_sub sub;
	struct wf_queue_cq cq;

	assert_int_equal(wf_queue_sub_init(&sub, &sa), 0);
	assert_int_equal(wf_queue_cq_init(&cq, &ca), 0);
	assert_int_equal(wf_queue_ids_init(&ids, SUB_ENTRIES, 16), 0);
	while (done < JOBS) {
		while (posted < JOBS) {
			_Alignas(64) struct job job = { .value = posted * 3 };

			job.id = wf_queue_ids_get(&ids);
			if (job.id == WF_QUEUE_ID_NONE)
				break;
			values[job.id & ids.mask] = job.value;
			assert_int_equal(wf_queue_sub_post64(&sub, &job, true),
					 0);
			posted++;
		}
		wf_queue_sub_ring(&sub);
		wake(&mem->device_sleeps, to_device);
		reap(&cq, &sub, &ids, values, &done);
		if (done < JOBS && ids.in_use == SUB_ENTRIES) {
			wf_queue_wake_arm(&mem->user_sleeps);
			if (!wf_queue_cq_ready(&cq))
				rest(to_user);
			wf_queue_wake_disarm(&mem->user_sleeps);
		}
	}
	assert_int_equal(ids.in_use, 0);
	assert_true(sub.rings >= JOBS / SUB_ENTRIES);
	wf_queue_ids_fini(&ids);
}

static void open_fds(void)
{
	to_device = eventfd(0, EFD_NONBLOCK);
	to_user = eventfd(0, EFD_NONBLOCK);
	assert_true(to_device >= 0 && to_user >= 0);
}

static void close_fds(void)
{
	close(to_device);
	close(to_user);
}

static void *device_thread(void *arg)
{
	return device(arg) ? arg : NULL;
}

static void test_thread(void **state)
{
	struct shared *mem = aligned_alloc(64, sizeof(*mem));
	pthread_t thread;
	void *failed;

	(void)state;
	assert_non_null(mem);
	memset(mem, 0, sizeof(*mem));
	open_fds();
	assert_int_equal(pthread_create(&thread, NULL, device_thread, mem), 0);
	user(mem);
	pthread_join(thread, &failed);
	assert_null(failed);
	close_fds();
	free(mem);
}

static struct shared *map(int fd)
{
	void *mem = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

static void test_process(void **state)
{
	int fd = memfd_create("rings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct shared *mem;
	int status;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(*mem)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 0);
	open_fds();
	mem = map(fd);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		_exit(device(map(fd)));
	}
	user(mem);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(mem, sizeof(*mem));
	close(fd);
	close_fds();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
