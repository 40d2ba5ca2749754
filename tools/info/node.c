/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds the facts of the machine that matter to weft besides CMA. It
 * must not change any setting of the machine or of this process.
 */
#include "tools/info/facts.h"

#include <dirent.h>
#include <linux/membarrier.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memfd.h"
#include "tools/proc.h"

#define CPUS "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"
#define MAX_CACHES 256

/* "0-3,8" */
static void write_list(const cpu_set_t *set, char *buf, size_t len)
{
	size_t used = 0;

	*buf = 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && used < len; cpu++) {
		int last = cpu;

		if (!CPU_ISSET(cpu, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		used += (size_t)snprintf(buf + used, len - used,
					 last > cpu ? "%s%d-%d" : "%s%d",
					 used ? "," : "", cpu, last);
		cpu = last;
	}
}

/* The largest cache index is the last level. */
static bool last_cache(int cpu, char *shared, size_t len)
{
	for (int index = 4; index > 0; index--) {
		char path[128];

		snprintf(path, sizeof(path),
			 CPUS "/cpu%d/cache/index%d/shared_cpu_list", cpu,
			 index);
		if (wf_tools_proc_line(path, shared, len))
			return true;
	}
	return false;
}

/* Among the CPUs that may be used; 0: unknown. */
static unsigned count_caches(const cpu_set_t *set)
{
	static char seen[MAX_CACHES][64];
	unsigned count = 0, i;
	char shared[64];

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		if (!last_cache(cpu, shared, sizeof(shared)))
			return 0;
		for (i = 0; i < count && strcmp(seen[i], shared); i++)
			;
		if (i == count && count < MAX_CACHES)
			memcpy(seen[count++], shared, sizeof(shared));
	}
	return count;
}

static unsigned count_numa(void)
{
	DIR *dir = opendir(NODES);
	struct dirent *entry;
	unsigned count = 0;
	int number;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += sscanf(entry->d_name, "node%d", &number) == 1;
	closedir(dir);
	return count;
}

/* base/barrier.c asks for the same. */
static bool has_membarrier(void)
{
	const int needed = MEMBARRIER_CMD_GLOBAL_EXPEDITED |
			   MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	long can = syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	return can >= 0 && (can & needed) == needed;
}

static bool has_memfd(void)
{
	int fd = wf_base_memfd_create("weft-info", WF_TOOLS_PROBLEM_LEN);
	bool sound =
		fd >= 0 && wf_base_memfd_is_sound(fd, WF_TOOLS_PROBLEM_LEN);

	if (fd >= 0)
		close(fd);
	return sound;
}

void wf_tools_node_read(struct wf_tools_node *node)
{
	static const struct wf_tools_plan nobody = { .one_cpu = true };
	const struct passwd *user;
	struct rlimit files;
	cpu_set_t set;

	memset(node, 0, sizeof(*node));
	wf_tools_machine_read(&node->machine, &nobody);
	node->uid = getuid();
	user = getpwuid(node->uid);
	if (user)
		snprintf(node->user, sizeof(node->user), "%s", user->pw_name);
	if (!sched_getaffinity(0, sizeof(set), &set)) {
		node->cpus_allowed = (unsigned)CPU_COUNT(&set);
		write_list(&set, node->cpus, sizeof(node->cpus));
		node->caches = count_caches(&set);
	}
	node->numa_nodes = count_numa();
	node->membarrier = has_membarrier();
	node->memfd = has_memfd();
	if (!getrlimit(RLIMIT_NOFILE, &files))
		node->files = files.rlim_cur;
}
