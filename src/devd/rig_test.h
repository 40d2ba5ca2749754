/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the software device share this: a device that runs in a thread or in
 * a process of its own, and jobs that are waited for.
 */
#ifndef WF_DEVD_RIG_TEST_H
#define WF_DEVD_RIG_TEST_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "chan/core.h"
#include "chan/session.h"
#include "devd/devd.h"
#include "drv/device.h"
#include "weft/smm.h"

#define RIG_PATIENCE (60 * WF_NS_PER_S)

struct rig {
	struct wf_devd_config config;
	struct wf_devd *devd;
	pthread_t thread;
	pid_t pid;
	char socket[64];
};

static const char *const rig_names[] = {
	[WD_IOMMU_SVA] = "sva-0",
	[WD_IOMMU_SHARE_DOMAIN] = "share-0",
	[WD_IOMMU_NONE] = "noiommu-0",
};

/* For wf_base_log_set_sink(): warnings are what these tests cause. */
static inline void rig_keep_quiet(enum wf_log_level level, const char *func,
				  int line, const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	(void)text;
}

/* For tests of devices that do not answer. */
static bool rig_impatient;

static inline void rig_init(struct rig *rig)
{
	static int number;

	memset(rig, 0, sizeof(*rig));
	wf_devd_config_init(&rig->config);
	/* Short enough to be shown whole by devd/stats. */
	snprintf(rig->socket, sizeof(rig->socket), P_tmpdir "/wt-%d-%d",
		 (int)getpid(), number++);
	rig->config.socket = rig->socket;
	rig->config.workers = 2;
	rig->config.arena = 16u << 20;
	rig->config.client_memory = 12u << 20;
	for (int i = WD_IOMMU_SVA; i <= WD_IOMMU_NONE; i++)
		assert_non_null(
			wf_devd_config_add(&rig->config, rig_names[i], i));
	/* A neighbour in the same domain. */
	assert_non_null(wf_devd_config_add(&rig->config, "share-1",
					   WD_IOMMU_SHARE_DOMAIN));
	setenv("WEFT_DEVD", rig->socket, 1);
	setenv("WEFT_SYSFS", "/nonexistent", 1);
	/* A device that gets no CPU for a while is not gone. */
	if (!rig_impatient)
		wf_chan_session_reply_ms = (int)(RIG_PATIENCE / WF_NS_PER_MS);
}

static inline void *rig_thread(void *arg)
{
	struct rig *rig = arg;

	return (void *)(intptr_t)wf_devd_run(rig->devd);
}

static inline void rig_start(struct rig *rig)
{
	assert_int_equal(wf_devd_open(&rig->config, &rig->devd), 0);
	assert_int_equal(pthread_create(&rig->thread, NULL, rig_thread, rig),
			 0);
}

/* Nothing of any client may be left. */
static inline void rig_await_quiet(struct rig *rig)
{
	struct wf_devd_stats stats;
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	do {
		wf_devd_stats(rig->devd, &stats);
		usleep(500);
	} while ((stats.now_clients || stats.now_channels) &&
		 wf_base_clock_ns() < end);
	assert_int_equal(stats.now_clients, 0);
	assert_int_equal(stats.now_channels, 0);
}

static inline void rig_stop(struct rig *rig)
{
	void *result;

	rig_await_quiet(rig);
	wf_devd_stop(rig->devd);
	pthread_join(rig->thread, &result);
	assert_null(result);
	wf_devd_close(rig->devd);
}

/* The same in another process. Only before the test has threads. */
static inline void rig_fork(struct rig *rig)
{
	char ready;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	rig->pid = fork();
	assert_true(rig->pid >= 0);
	if (!rig->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (wf_devd_open(&rig->config, &rig->devd))
			_exit(1);
		if (write(fds[1], "r", 1) != 1)
			_exit(1);
		_exit(wf_devd_run(rig->devd) ? 1 : 0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &ready, 1), 1);
	close(fds[0]);
}

/* Removes the files that a killed device leaves. */
static inline void rig_clean(struct rig *rig)
{
	char path[80];

	unlink(rig->socket);
	snprintf(path, sizeof(path), "%s.lock", rig->socket);
	unlink(path);
}

static inline void rig_kill(struct rig *rig)
{
	int status;

	kill(rig->pid, SIGKILL);
	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	rig_clean(rig);
}

static inline int rig_open(struct wf_drv_device *device, const char *name,
			   size_t reserve)
{
	memset(device, 0, sizeof(*device));
	strcpy(device->ch.dev_path, name);
	return wf_drv_device_open(device, reserve);
}

/* For many clients on few CPUs. */
static bool rig_only_sleep;

/* One result, by polling or by sleeping. */
static inline struct wf_drv_result rig_result(struct wf_drv_device *device,
					      bool sleep)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	struct wf_drv_result result;
	unsigned int polls = 0;
	int n;

	for (;;) {
		n = wf_drv_device_poll(device, &result, 1);
		assert_true(n >= 0);
		if (n)
			return result;
		if (sleep || rig_only_sleep)
			wf_drv_device_wait(device, 1000);
		else if (++polls % 100 == 0)
			sched_yield(); /* the device may need this CPU */
		assert_true(wf_base_clock_ns() < end);
	}
}

static inline struct wf_drv_result rig_run(struct wf_drv_device *device,
					   const struct wf_drv_job *job)
{
	static _Thread_local bool sleep;

	assert_int_equal(wf_drv_device_submit(device, job, false), 0);
	sleep = !sleep;
	return rig_result(device, sleep);
}

static inline void rig_nop(struct wf_drv_device *device)
{
	const struct wf_drv_job job = { .alg = WF_ACCEL_NOP, .cookie = device };
	struct wf_drv_result result = rig_run(device, &job);

	assert_int_equal(result.status, 0);
	assert_ptr_equal(result.cookie, device);
}

/* A descriptor as it is, past the driver's checks. */
static inline struct wf_drv_result rig_raw(struct wf_drv_device *device,
					   const struct wf_accel_job *raw)
{
	_Alignas(64) struct wf_accel_job staged = *raw;
	struct wf_drv_slot *slot;

	staged.id = wf_queue_ids_get(&device->ids);
	slot = &device->slots[wf_queue_ids_index(&device->ids, staged.id)];
	*slot = (struct wf_drv_slot){ .id = staged.id,
				      .src_len = UINT32_MAX,
				      .dst_len = UINT32_MAX,
				      .used = true };
	assert_int_equal(wf_queue_sub_post64(&device->sub, &staged, true), 0);
	wf_drv_device_ring(device);
	return rig_result(device, false);
}

/* The slow way, bit by bit, from scratch. */
static inline uint32_t rig_crc32(const void *data, size_t len)
{
	const uint8_t *bytes = data;
	uint32_t crc = ~0u;

	while (len--) {
		crc ^= *bytes++;
		for (int i = 0; i < 8; i++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return ~crc;
}

static inline void rig_fill(void *data, size_t len, uint32_t seed)
{
	uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

/* Whether the driver takes a job of these lengths through the stage, if it has
 * room there. */
static inline bool rig_is_staged(const struct wf_drv_device *device,
				 uint32_t src_len, uint32_t dst_len)
{
	uint64_t src_lines = ((uint64_t)src_len + 63) / 64;
	uint64_t dst_lines = ((uint64_t)dst_len + 63) / 64;

	return device->sva && device->mmio->stage &&
	       (src_lines + dst_lines) * 64 <= WF_ACCEL_STAGE_SLOT;
}

/* In SVA, whether the device has mapped it. */
static inline bool rig_is_mapped(const struct wf_drv_device *device,
				 const void *memory)
{
	const struct wf_chan_region *region =
		atomic_load(&device->ch.core->region);

	return region && region->mapped &&
	       (uintptr_t)memory - (uintptr_t)region->va < region->size;
}

/* A checksum of memory that the device reaches without the driver's help. */
static inline void rig_check_crc(struct wf_drv_device *device, void *memory,
				 uint32_t len)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32,
				  .src = memory,
				  .src_len = len };
	uint64_t bounced = device->bounced;
	struct wf_drv_result result;

	rig_fill(memory, len, 77);
	result = rig_run(device, &job);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.checksum, rig_crc32(memory, len));
	assert_int_equal(device->bounced - bounced,
			 rig_is_staged(device, len, 0) &&
					 !rig_is_mapped(device, memory) ?
				 len :
				 0);
}

/* A child that fails an assertion says so and ends: cmocka would go on with the
 * teardown there, which kills the device of all others, and with the rest of
 * the tests. */
static inline pid_t rig_spawn(void (*run)(uint64_t), uint64_t arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	alarm(100);
	run(arg);
	_exit(0);
}

static inline void rig_expect_exit(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* -- as another user ------------------------------------------------------- */

#define RIG_NOBODY 65534

/* For use in a child. */
#define RIG_MUST(cond)                                                         \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "child: %s, line %d\n", #cond,         \
				__LINE__);                                     \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static inline void rig_become_nobody(void)
{
	RIG_MUST(!setgid(RIG_NOBODY) && !setuid(RIG_NOBODY));
	/* A change of user takes it away. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* As a login would: a process that was root cannot be looked into. */
	prctl(PR_SET_DUMPABLE, 1);
}

#endif
