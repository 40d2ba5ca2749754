/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file makes the socket at which the software device listens.
 */
#include "devd/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "chan/place.h"
#include "devd/errand.h"
#include "devd/server.h"

/* As many as the kernel allows to wait (net.core.somaxconn): a program that
 * finds no room gets an error at once. */
#define BACKLOG 4096
/* How often another device may remove its folder or its lock before we have
 * ours. */
#define TRIES 100

static void name_lock(const struct wf_devd *devd, char *path, size_t size)
{
	snprintf(path, size, "%s.lock", devd->config.socket);
}

/* -- the folder ------------------------------------------------------------ */

static int make_folder(const struct wf_devd *devd)
{
	mode_t mode = geteuid() ? 0700 : 0755, mask;
	char folder[WF_CHAN_PLACE_SIZE];
	int err = 0;

	if (!devd->config.makes_folder)
		return 0;
	wf_chan_place_folder(devd->config.socket, folder);
	mask = umask(0777 & ~mode);
	if (mkdir(folder, mode) && errno != EEXIST)
		err = -errno;
	umask(mask);
	if (err)
		return err;
	err = wf_chan_place_check(devd->config.socket);
	/* -ENOENT: another device has removed it meanwhile. */
	if (err != -EPERM)
		return err;
	wf_warn("%s must be a folder that root or user %u owns and nobody else "
		"can write to",
		folder, (unsigned int)geteuid());
	return -EPERM;
}

/* Stays if another process has put something else there. */
static void remove_folder(const struct wf_devd *devd)
{
	char folder[WF_CHAN_PLACE_SIZE];

	if (!devd->config.makes_folder)
		return;
	wf_chan_place_folder(devd->config.socket, folder);
	rmdir(folder);
}

/* -- the lock -------------------------------------------------------------- */

static int lock(struct wf_devd *devd)
{
	char path[WF_CHAN_PLACE_SIZE + 8];
	struct stat ours, there;
	int err;

	name_lock(devd, path, sizeof(path));
	devd->lock_fd =
		open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (devd->lock_fd < 0)
		return -errno;
	if (flock(devd->lock_fd, LOCK_EX | LOCK_NB)) {
		err = -EADDRINUSE;
		goto err_close;
	}
	/* Not the file of that name any more: its owner was just leaving. */
	if (fstat(devd->lock_fd, &ours) || stat(path, &there) ||
	    ours.st_ino != there.st_ino) {
		err = -ENOENT;
		goto err_close;
	}
	return 0;

err_close:
	close(devd->lock_fd);
	devd->lock_fd = -1;
	return err;
}

/* The holder of the lock may replace what a dead process left. */
static int claim(struct wf_devd *devd)
{
	struct stat there;
	int err;

	for (int i = 0; i < TRIES; i++) {
		err = make_folder(devd);
		if (!err)
			err = lock(devd);
		if (err != -ENOENT)
			break;
	}
	if (err)
		return err;
	/* Nothing but a socket is ours to remove. */
	if (!lstat(devd->config.socket, &there) && !S_ISSOCK(there.st_mode))
		return -EEXIST;
	unlink(devd->config.socket);
	return 0;
}

static void unclaim(struct wf_devd *devd)
{
	char path[WF_CHAN_PLACE_SIZE + 8];

	if (devd->lock_fd < 0)
		return;
	name_lock(devd, path, sizeof(path));
	unlink(path);
	close(devd->lock_fd);
	devd->lock_fd = -1;
	remove_folder(devd);
}

/* -- the socket ------------------------------------------------------------ */

static mode_t mode_of(const struct wf_devd_config *config)
{
	if (config->mode)
		return config->mode;
	/* The list of users decides, not the file: it knows more of them than
	 * an owner and a group. */
	return config->allow_uid ? 0666 : 0600;
}

static int bind_to(const struct wf_devd *devd)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	mode_t mask;
	int err = 0;

	strcpy(un.sun_path, devd->config.socket);
	/* Never open to more than it will be, not even for a moment. */
	mask = umask(0777 & ~mode_of(&devd->config));
	if (bind(devd->listen_fd, (struct sockaddr *)&un, sizeof(un)))
		err = -errno;
	umask(mask);
	return err;
}

void wf_devd_listen_mode(struct wf_devd *devd)
{
	if (!devd->config.passed_fd &&
	    chmod(devd->config.socket, mode_of(&devd->config)))
		wf_warn("%s keeps its permissions: %s", devd->config.socket,
			strerror(errno));
}

/* Our own descriptor of a socket that was passed. Its listen() decides which
 * user clients see: they connect to root's socket although we are not root. */
static int take_passed(struct wf_devd *devd)
{
	int flags;

	devd->listen_fd = fcntl(devd->config.passed_fd, F_DUPFD_CLOEXEC, 3);
	if (devd->listen_fd < 0)
		return -errno;
	flags = fcntl(devd->listen_fd, F_GETFL);
	if (flags >= 0 && !fcntl(devd->listen_fd, F_SETFL, flags | O_NONBLOCK))
		return 0;
	close(devd->listen_fd);
	return -EBADF;
}

int wf_devd_listen_open(struct wf_devd *devd)
{
	int err;

	if (devd->config.passed_fd)
		return take_passed(devd);
	if (strlen(devd->config.socket) >= WF_CHAN_PLACE_SIZE)
		return -ENAMETOOLONG;
	err = claim(devd);
	if (err)
		goto err_claim;
	devd->listen_fd = socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (devd->listen_fd < 0) {
		err = -errno;
		goto err_claim;
	}
	err = bind_to(devd);
	if (err)
		goto err_close;
	if (!listen(devd->listen_fd, BACKLOG))
		return 0;
	err = -errno;
	unlink(devd->config.socket);
err_close:
	close(devd->listen_fd);
err_claim:
	unclaim(devd);
	return err;
}

void wf_devd_listen_close(struct wf_devd *devd)
{
	struct wf_devd_errand errand = {
		.kind = WF_DEVD_ERRAND_CLOSE,
		.fd = devd->listen_fd,
		.gift = WF_DEVD_NO_GIFT,
	};
	struct wf_devd_errand *sent;

	/* The next device serves the clients that wait. */
	if (devd->config.passed_fd) {
		close(devd->listen_fd);
		return;
	}
	unlink(devd->config.socket);
	unclaim(devd);
	/* Clients that were not accepted may have sent descriptors already. */
	shutdown(devd->listen_fd, SHUT_RDWR);
	if (wf_devd_errand_send(devd->errands, &errand, &sent))
		close(devd->listen_fd);
	else
		devd->refusing++;
}
