/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that clients keep, in a list: limits of channels and bytes keep it short.
 */
#include "devd/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devd/server.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The descriptor of memfd_create() does not count as one for leases, so that
 * neither side gets it. */
static int open_again(int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static int open_both(int fd, int *ours, int *theirs)
{
	*ours = open_again(fd);
	if (*ours < 0)
		return *ours;
	*theirs = open_again(fd);
	if (*theirs >= 0)
		return 0;
	close(*ours);
	return *theirs;
}

static int make(const char *name, uint64_t size, int *ours, int *theirs)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	/* Now: no memory later would be a signal in the middle of a job. */
	err = -posix_fallocate(fd, 0, (off_t)size);
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (!err)
		err = open_both(fd, ours, theirs);
	close(fd);
	return err == -ENOSPC || err == -EFBIG ? -ENOMEM : err;
}

int wf_devd_kept_make(const char *name, uint64_t size,
		      struct wf_devd_kept **ours, int *theirs)
{
	struct wf_devd_kept *kept = calloc(1, sizeof(*kept));
	int err;

	if (!kept)
		return -ENOMEM;
	err = make(name, size, &kept->fd, theirs);
	if (err) {
		free(kept);
		return err;
	}
	*ours = kept;
	return 0;
}

void wf_devd_kept_drop(struct wf_devd_kept *kept)
{
	close(kept->fd);
	free(kept);
}

/* Leases do not count a descriptor that only names the file (O_PATH), and it
 * could open the file again: so nothing is left in it. */
static void empty(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && st.st_size)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			  st.st_size);
}

/* If somebody opens the file in this moment, the kernel sends a signal: SIGURG,
 * which is ignored, not SIGIO, which ends a process. Where the kernel has no leases
 * we cannot know, and count nothing. */
static bool is_ours_alone(int fd)
{
	fcntl(fd, F_SETSIG, SIGURG);
	if (fcntl(fd, F_SETLEASE, F_WRLCK))
		return errno != EAGAIN && errno != EBUSY;
	empty(fd);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

static void discharge(const struct wf_devd_kept *kept)
{
	if (kept->client) {
		kept->client->memory -= kept->size;
		kept->client->n_kept--;
	}
	kept->user->memory -= kept->size;
	kept->user->n_kept--;
	if (kept->counter)
		*kept->counter -= kept->size;
}

static void release(struct wf_devd *devd, struct wf_devd_kept *kept)
{
	struct wf_devd_user *user = kept->user;

	discharge(kept);
	wf_base_list_del(&kept->link);
	wf_devd_kept_drop(kept);
	devd->n_kept--;
	wf_devd_user_left(devd, user);
}

void wf_devd_kept_add(struct wf_devd_client *client, struct wf_devd_kept *kept,
		      uint64_t size, uint64_t *counter)
{
	kept->size = size;
	kept->counter = counter;
	kept->client = client;
	kept->user = client->user;
	client->n_kept++;
	client->user->n_kept++;
	if (is_ours_alone(kept->fd)) {
		discharge(kept);
		wf_devd_kept_drop(kept);
		return;
	}
	wf_base_list_add_tail(&client->devd->kept, &kept->link);
	client->devd->n_kept++;
}

/* NULL: of all. */
static void sweep(struct wf_devd *devd, const struct wf_devd_user *user)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->kept) {
		struct wf_devd_kept *kept =
			wf_container_of(pos, struct wf_devd_kept, link);

		if ((!user || kept->user == user) && is_ours_alone(kept->fd))
			release(devd, kept);
	}
}

void wf_devd_kept_sweep(struct wf_devd *devd)
{
	sweep(devd, NULL);
}

void wf_devd_kept_sweep_user(struct wf_devd *devd,
			     const struct wf_devd_user *user)
{
	sweep(devd, user);
}

void wf_devd_kept_leave(struct wf_devd_client *client)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &client->devd->kept) {
		struct wf_devd_kept *kept =
			wf_container_of(pos, struct wf_devd_kept, link);

		if (kept->client == client)
			kept->client = NULL;
	}
}

void wf_devd_kept_free_all(struct wf_devd *devd)
{
	struct wf_list *pos, *tmp;

	wf_list_for_each (pos, tmp, &devd->kept)
		release(devd, wf_container_of(pos, struct wf_devd_kept, link));
}
