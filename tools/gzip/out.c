/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output files. One is made without a name where the file system can do that,
 * and gets its name when it is whole: whatever happens before, nothing is left.
 * Elsewhere it has a name from the start, and signal handlers remove it.
 */
#include "tools/gzip/gzip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The file that a signal handler removes. The name is written first, then the flag. */
static char unfinished[4096 + 16];
static volatile sig_atomic_t has_unfinished;

static void die(int sig)
{
	if (has_unfinished)
		unlink(unfinished);
	/* SA_RESETHAND: the second time it ends us as it should. */
	raise(sig);
}

static const int signals[] = { SIGINT,	SIGTERM, SIGHUP, SIGPIPE,
			       SIGXFSZ, SIGXCPU, SIGBUS };

void wf_tools_gzip_out_catch_signals(void)
{
	struct sigaction action = { .sa_handler = die,
				    .sa_flags = SA_RESETHAND };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction old;

		/* A signal that the shell ignores (nohup) stays ignored. */
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

/* The file and the handlers' knowledge of it appear together: a signal between
 * the two would leave the file. Threads of libwd block all signals. */
static int open_named(struct wf_gzip_out *out, bool force)
{
	sigset_t caught, old;
	int fd, err;

	sigemptyset(&caught);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&caught, signals[i]);
	pthread_sigmask(SIG_BLOCK, &caught, &old);
	fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST && force && !unlink(out->path))
		fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			  0600);
	err = fd < 0 ? -errno : 0;
	if (!err) {
		strcpy(unfinished, out->path);
		has_unfinished = 1;
		out->named = true;
		out->fd = fd;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int wf_tools_gzip_out_open(struct wf_gzip_out *out, const char *path,
			   bool force)
{
	char dir[4096];
	char *slash;

	if (strlen(path) >= sizeof(out->path) - 16)
		return -ENAMETOOLONG;
	strcpy(out->path, path);
	out->named = false;
	out->force = force;
	if (!force && !access(path, F_OK))
		return -EEXIST;
	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	else
		strcpy(dir, ".");
	/* It gets its name by way of /proc. */
	if (!access("/proc/self/fd", X_OK))
		out->fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (out->fd >= 0)
		return 0;
	return open_named(out, force);
}

/* The nameless file appears under its name, in place of another if forced. */
static int give_name(struct wf_gzip_out *out)
{
	char self[64], spare[4096 + 16];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", out->fd);
	if (!linkat(AT_FDCWD, self, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW))
		return 0;
	if (errno != EEXIST || !out->force)
		return -errno;
	snprintf(spare, sizeof(spare), "%s.%ld", out->path, (long)getpid());
	strcpy(unfinished, spare);
	has_unfinished = 1;
	if (linkat(AT_FDCWD, self, AT_FDCWD, spare, AT_SYMLINK_FOLLOW))
		return -errno;
	if (rename(spare, out->path)) {
		int err = errno;

		unlink(spare);
		return -err;
	}
	return 0;
}

int wf_tools_gzip_out_finish(struct wf_gzip_out *out, const struct stat *like)
{
	int ret = 0;

	if (like) {
		struct timespec times[2] = { like->st_atim, like->st_mtim };

		/* Owner first: it may take away set-user-ID. */
		if (fchown(out->fd, like->st_uid, like->st_gid))
			ret = 0; /* not root: the file is ours, as with gzip */
		fchmod(out->fd, like->st_mode & 07777);
		futimens(out->fd, times);
	}
	if (!out->named)
		ret = give_name(out);
	/* A full disk may only be heard of here. */
	if (close(out->fd) && !ret)
		ret = -errno;
	if (ret && (out->named || ret == -EIO || ret == -ENOSPC))
		unlink(out->path);
	out->fd = -1;
	has_unfinished = 0;
	return ret;
}

void wf_tools_gzip_out_drop(struct wf_gzip_out *out)
{
	close(out->fd);
	if (out->named)
		unlink(out->path);
	out->fd = -1;
	has_unfinished = 0;
}
