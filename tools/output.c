/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream that keeps the reason why a write has failed: stdio only keeps that one
 * has.
 */
#include "tools/output.h"

#include <errno.h>
#include <fcntl.h>
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
	close(out->fd);
	return -ENOMEM;
}

int wf_tools_output_close(struct wf_tools_output *out)
{
	struct stat st;

	if (!out->file)
		return 0;
	if (fclose(out->file) && !out->err)
		out->err = -EIO;
	out->file = NULL;
	if (close(out->fd) && !out->err)
		out->err = -errno;
	/* A device, or what a link leads to, is not ours to remove. */
	if ((out->err || !out->any) && !lstat(out->path, &st) &&
	    S_ISREG(st.st_mode))
		unlink(out->path);
	return out->err;
}
