/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds the file of memory that lies behind a range of addresses of
 * this process.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/memory.h"

/* PROCMAP_QUERY of linux/fs.h, Linux 6.11: the mapping at an address. */
struct query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_SHARED 0x8
#define NAME_LEN 4096

/* An older kernel has the list as text: a kilobyte or so for ten mappings, which
 * is not read for small ranges. */
#define TEXT_MIN 65536

#define MAPS "/proc/self/maps"
#define MEMFD "/memfd:"

struct mapping {
	uint64_t begin;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	bool is_memfd; /* mapped to be shared */
};

static bool ask(int maps, uint64_t addr, struct mapping *found)
{
	char name[NAME_LEN] = "";
	struct query query = {
		.size = sizeof(query),
		.query_addr = addr,
		.vma_name_size = sizeof(name),
		.vma_name_addr = (uint64_t)(uintptr_t)name,
	};

	if (ioctl(maps, QUERY, &query))
		return false;
	*found = (struct mapping){
		.begin = query.vma_start,
		.end = query.vma_end,
		.offset = query.vma_offset,
		.inode = query.inode,
		.is_memfd = (query.vma_flags & QUERY_SHARED) &&
			    !strncmp(name, MEMFD, strlen(MEMFD)),
	};
	return true;
}

static bool read_text(uint64_t addr, struct mapping *found)
{
	FILE *text = fopen(MAPS, "re");
	char *line = NULL;
	size_t room = 0;
	bool done = false;

	if (!text)
		return false;
	while (!done && getline(&line, &room, text) > 0) {
		unsigned long long begin, end, offset, inode;
		char share;
		int name = 0;

		if (sscanf(line, "%llx-%llx %*c%*c%*c%c %llx %*s %llu %n",
			   &begin, &end, &share, &offset, &inode, &name) < 5 ||
		    addr >= end)
			continue;
		*found = (struct mapping){
			.begin = begin,
			.end = end,
			.offset = offset,
			.inode = inode,
			.is_memfd = share == 's' && name &&
				    !strncmp(line + name, MEMFD, strlen(MEMFD)),
		};
		done = true;
	}
	free(line);
	fclose(text);
	return done && addr >= found->begin;
}

static bool find(const void *base, size_t bytes, struct mapping *found)
{
	int maps = open(MAPS, O_RDONLY | O_CLOEXEC);
	uint64_t addr = (uint64_t)(uintptr_t)base;
	bool done;

	if (maps < 0)
		return false;
	done = ask(maps, addr, found);
	/* ENOENT: nothing is mapped there. */
	if (!done && errno != ENOENT && bytes >= TEXT_MIN)
		done = read_text(addr, found);
	close(maps);
	return done && found->is_memfd && bytes <= found->end - addr;
}

/* A copy of a descriptor of this process that has the file open. */
static int find_fd(uint64_t inode)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -ENOENT;

	if (!dir)
		return -errno;
	while (fd < 0 && (entry = readdir(dir))) {
		struct stat st;
		int at = atoi(entry->d_name);

		/* Only a memfd has seals. */
		if (entry->d_name[0] == '.' || fcntl(at, F_GET_SEALS) < 0 ||
		    fstat(at, &st) || st.st_ino != inode)
			continue;
		fd = fcntl(at, F_DUPFD_CLOEXEC, 0);
	}
	closedir(dir);
	return fd;
}

int wf_os_memfd_behind(const void *base, size_t bytes,
		       struct wf_os_mapping *mapping)
{
	struct mapping found;
	int fd;

	if (!bytes || !find(base, bytes, &found))
		return -ENOENT;
	fd = find_fd(found.inode);
	if (fd < 0)
		return fd;
	*mapping = (struct wf_os_mapping){
		.fd = fd,
		.offset = found.offset +
			  ((uint64_t)(uintptr_t)base - found.begin),
		.inode = found.inode,
	};
	return 0;
}
