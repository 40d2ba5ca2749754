/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hostile clients leave in a device of a process of its own, and whether it
 * still serves others.
 */
#ifndef WF_DEVD_HARM_TEST_H
#define WF_DEVD_HARM_TEST_H

#include <dirent.h>

#include "base/stats_defs.h"
#include "devd/raw_test.h"
#include "devd/rig_test.h"

/* Of the device, but for pages of counters: a user's stays when it goes. */
static inline int raw_count_fds(const struct rig *rig)
{
	char path[64], target[64];
	struct dirent *entry;
	ssize_t len;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)rig->pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target,
				 sizeof(target) - 1);
		target[len < 0 ? 0 : len] = '\0';
		n += !strstr(target, WF_STATS_FILE);
	}
	closedir(dir);
	return n;
}

/* The device has that many descriptors again, soon. */
static inline void raw_expect_fds(const struct rig *rig, int count)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (raw_count_fds(rig) != count) {
		assert_true(wf_base_clock_ns() < end);
		usleep(1000);
	}
}

/* A connection that has said hello, or -1. */
static inline int raw_greet(const char *socket)
{
	int fd = raw_connect(socket);

	if (fd >= 0 &&
	    raw_ask(fd, (struct wf_broker_request){ .op = WF_BROKER_HELLO })) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline void raw_expect_served(void)
{
	struct wf_drv_device other;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig_open(&other, rig_names[i], 1u << 16), 0);
		rig_nop(&other);
		wf_drv_device_close(&other);
	}
}

#endif
