/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NUMA node of GPUs, from the folder of their kernel driver in sysfs.
 */
#include "cuda/node.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE (-1)

static int read_one(const char *folder, const char *name)
{
	char path[PATH_MAX + 300];
	int node = NONE;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/numa_node", folder, name);
	file = fopen(path, "re");
	if (!file)
		return NONE;
	if (fscanf(file, "%d", &node) != 1)
		node = NONE;
	fclose(file);
	return node;
}

int wf_cuda_node_read(void)
{
	const char *sysfs = secure_getenv("WEFT_SYSFS");
	char folder[PATH_MAX];
	struct dirent *entry;
	int node = NONE;
	bool first = true;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/bus/pci/drivers/nvidia",
		 sysfs && *sysfs ? sysfs : "/sys");
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		int other;

		/* A PCI address has colons; other entries do not. */
		if (!strchr(entry->d_name, ':'))
			continue;
		other = read_one(folder, entry->d_name);
		node = first || other == node ? other : NONE;
		first = false;
		if (node == NONE)
			break;
	}
	if (dir)
		closedir(dir);
	return node;
}
