/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream that keeps the reason why a write has failed: stdio only keeps that one
 * has.
 */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t put(void *cookie, const char *data, size_t len)
{
	struct wf_tools_output *out = cookie;
	size_t at = 0;

	while (at < len && !out->err) {
		ssize_t n = write(out->fd, data + at, len - at);

		if (n < 0 && errno != EINTR)
			out->err = -errno;
		at += n > 0 ? (size_t)n : 0;
		out->any = out->any || n > 0;
	}
	return out->err ? 0 : (ssize_t)len;
}

/* Not a device, or what a link leads to, nor a file that somebody has put there
 * since. The open descriptor keeps the number of our file from being used again. */
static bool is_ours(const struct wf_tools_output *out)
{
	struct stat opened, there;

	return !fstat(out->fd, &opened) && !lstat(out->path, &there) &&
	       S_ISREG(there.st_mode) && there.st_dev == opened.st_dev &&
	       there.st_ino == opened.st_ino;
}

int wf_tools_output_open(struct wf_tools_output *out, const char *path)
{
	static const cookie_io_functions_t functions = { .write = put };

	out->path = path;
	out->err = 0;
	out->any = false;
	out->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out->fd < 0)
		return -errno;
	out->file = fopencookie(out, "w", functions);
	if (out->file)
		return 0;
	if (is_ours(out))
		unlink(path);
	close(out->fd);
	return -ENOMEM;
}

int wf_tools_output_close(struct wf_tools_output *out)
{
	bool ours;

	if (!out->file)
		return 0;
	if (fclose(out->file) && !out->err)
		out->err = -EIO;
	out->file = NULL;
	ours = is_ours(out);
	if (close(out->fd) && !out->err)
		out->err = -errno;
	if ((out->err || !out->any) && ours)
		unlink(out->path);
	return out->err;
}

static const struct wf_tools_output *guarded;

static void on_signal(int number)
{
	if (guarded->file && is_ours(guarded))
		unlink(guarded->path);
	/* It is blocked until we return, and then ends the program. */
	raise(number);
}

void wf_tools_output_guard(const struct wf_tools_output *out)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;

	guarded = out;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		/* nohup and shells have them ignored. */
		if (!sigaction(ends[i], NULL, &before) &&
		    before.sa_handler == SIG_DFL)
			sigaction(ends[i], &action, NULL);
	}
}
