/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few files of /sys that programs read about an EFA device, in a folder of
 * the user's own. It says the same for every process, so it is made once: under
 * another name, which is then renamed, so that nobody sees half of it. It is
 * used only if it belongs to this user and nobody else can write to it.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "efa/efa.h"

#define DEVICE "devices/pci0000:00/" WF_EFA_PCI
#define IBDEV DEVICE "/infiniband/" WF_EFA_NAME
#define UVERBS DEVICE "/infiniband_verbs/uverbs0"

struct entry {
	const char *path;
	const char *text; /* of a file; NULL: a folder */
	const char *link; /* where a link leads */
};

/* In the order in which they are made. */
static const struct entry tree[] = {
	{ .path = "class" },
	{ .path = "class/infiniband" },
	{ .path = "class/infiniband_verbs" },
	{ .path = "class/infiniband_verbs/abi_version", .text = "6\n" },
	{ .path = "bus" },
	{ .path = "bus/pci" },
	{ .path = "bus/pci/drivers" },
	{ .path = "bus/pci/drivers/efa" },
	{ .path = "devices" },
	{ .path = "devices/pci0000:00" },
	{ .path = DEVICE },
	{ .path = DEVICE "/vendor", .text = "0x1d0f\n" },
	{ .path = DEVICE "/device", .text = "0xefa1\n" },
	{ .path = DEVICE "/class", .text = "0x020000\n" },
	{ .path = DEVICE "/numa_node", .text = "-1\n" },
	{ .path = DEVICE "/driver", .link = "../../../bus/pci/drivers/efa" },
	{ .path = DEVICE "/infiniband" },
	{ .path = IBDEV },
	{ .path = IBDEV "/device", .link = "../../../" WF_EFA_PCI },
	{ .path = IBDEV "/fw_ver", .text = "0.1.0.0\n" },
	{ .path = IBDEV "/hw_rev", .text = "0xefa1\n" },
	{ .path = IBDEV "/node_type", .text = "7: <unknown>\n" },
	{ .path = IBDEV "/node_guid", .text = "7765:6674:0000:efa1\n" },
	{ .path = IBDEV "/ports" },
	{ .path = IBDEV "/ports/1" },
	{ .path = IBDEV "/ports/1/state", .text = "4: ACTIVE\n" },
	{ .path = IBDEV "/ports/1/link_layer", .text = "Unspecified\n" },
	{ .path = IBDEV "/ports/1/hw_counters" },
	{ .path = DEVICE "/infiniband_verbs" },
	{ .path = UVERBS },
	{ .path = UVERBS "/ibdev", .text = WF_EFA_NAME "\n" },
	{ .path = UVERBS "/abi_version", .text = "1\n" },
	{ .path = UVERBS "/device", .link = "../../../" WF_EFA_PCI },
	{ .path = "class/infiniband/" WF_EFA_NAME, .link = "../../" IBDEV },
	{ .path = "class/infiniband_verbs/uverbs0", .link = "../../" UVERBS },
	/* The last: a folder with it is whole. */
	{ .path = "weft-efa", .text = "1\n" },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define ENTRIES (sizeof(tree) / sizeof(tree[0]))

static int make_file(int at, const char *path, const char *text)
{
	int fd =
		openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	ssize_t put = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0 && close(fd))
		return -1;
	return put == (ssize_t)strlen(text) ? 0 : -1;
}

static int make_entry(int at, const struct entry *entry)
{
	if (entry->text)
		return make_file(at, entry->path, entry->text);
	if (entry->link)
		return symlinkat(entry->link, at, entry->path);
	return mkdirat(at, entry->path, 0755);
}

static void take_down(const char *dir)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	for (size_t i = ENTRIES; at >= 0 && i-- > 0;) {
		bool folder = !tree[i].text && !tree[i].link;

		unlinkat(at, tree[i].path, folder ? AT_REMOVEDIR : 0);
	}
	if (at >= 0)
		close(at);
	rmdir(dir);
}

/* Returns why a folder cannot be used, in words for the user. NULL: it can be.
 * Another user may have made it first in /tmp, or may be able to change what is
 * in it. */
static const char *fault_of(const char *dir)
{
	char file[PATH_MAX + 16];
	struct stat st;

	if (lstat(dir, &st))
		return "it is not there";
	if (!S_ISDIR(st.st_mode))
		return "it is not a folder";
	if (st.st_uid != geteuid())
		return "it belongs to another user";
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return "others can write to it";
	snprintf(file, sizeof(file), "%s/weft-efa", dir);
	return access(file, R_OK) ? "it is not complete" : NULL;
}

static int make(const char *dir)
{
	char fresh[PATH_MAX];
	int at, ret = 0, saved;

	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", dir);
	if (!mkdtemp(fresh))
		return -1;
	at = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		ret = -1;
	for (size_t i = 0; i < ENTRIES && !ret; i++)
		ret = make_entry(at, &tree[i]);
	if (at >= 0)
		close(at);
	if (!ret)
		ret = chmod(fresh, 0755) || rename(fresh, dir) ? -1 : 0;
	saved = errno;
	/* Another process of the same user may have been first. */
	if (ret) {
		take_down(fresh);
		if (!fault_of(dir))
			return 0;
	}
	errno = saved;
	return ret;
}

static void complain(const char *dir, int reason)
{
	struct stat st;

	if (lstat(dir, &st))
		wf_warn("efa: cannot make %s: %s", dir, strerror(reason));
	else
		wf_warn("efa: %s is not used: %s. Remove it, or let "
			"XDG_RUNTIME_DIR name a folder of your own",
			dir, fault_of(dir));
}

const char *wf_efa_sysfs(void)
{
	static char dir[PATH_MAX / 2];
	const char *run = getenv("XDG_RUNTIME_DIR");
	const char *found = dir;
	int reason = 0;

	wf_efa_device_watch();
	pthread_mutex_lock(&lock);
	if (!dir[0] || fault_of(dir)) {
		snprintf(dir, sizeof(dir), "%s/weft-efa-%u",
			 run && run[0] == '/' && !access(run, W_OK) ? run :
								      "/tmp",
			 (unsigned)geteuid());
		if (fault_of(dir) && make(dir)) {
			reason = errno;
			complain(dir, reason);
			dir[0] = '\0';
			found = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!found)
		errno = reason;
	return found;
}

void wf_efa_sysfs_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}
