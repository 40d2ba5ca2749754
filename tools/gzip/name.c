/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of files: the name of the output, and which file is meant.
 */
#include "tools/gzip/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alg/defl.h"
#include "deflate/inflate.h"

/* These bytes may stand before a stored name: an extra field, and the rest. */
#define HEADER_MOST (10 + 2 + 65535 + 256)

/* Suffixes that gunzip knows, and what takes their place. */
static const char *const ends[][2] = {
	{ ".gz", "" }, { "-gz", "" },	   { ".z", "" },
	{ "-z", "" },  { ".tgz", ".tar" }, { ".taz", ".tar" },
};

#define ENDS (sizeof(ends) / sizeof(ends[0]))

bool wf_tools_gzip_name_ends(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return n > s && !strcmp(name + n - s, suffix);
}

/* @name without @suffix and with @more. */
static bool replace(const char *name, const char *suffix, const char *more,
		    char *out, size_t room)
{
	return (size_t)snprintf(out, room, "%.*s%s",
				(int)(strlen(name) - strlen(suffix)), name,
				more) < room;
}

bool wf_tools_gzip_name_output(const struct wf_gzip_options *o,
			       const char *name, char *out, size_t room)
{
	if (!o->decompress) {
		if (!wf_tools_gzip_name_ends(name, o->suffix) || o->force)
			return (size_t)snprintf(out, room, "%s%s", name,
						o->suffix) < room;
		if (!o->quiet)
			fprintf(stderr,
				"%s: %s already has %s suffix -- unchanged\n",
				wf_tools_gzip_program(), name, o->suffix);
		return false;
	}
	if (wf_tools_gzip_name_ends(name, o->suffix))
		return replace(name, o->suffix, "", out, room);
	for (size_t i = 0; i < ENDS; i++) {
		if (wf_tools_gzip_name_ends(name, ends[i][0]))
			return replace(name, ends[i][0], ends[i][1], out, room);
	}
	if (!o->quiet)
		fprintf(stderr, "%s: %s: unknown suffix -- ignored\n",
			wf_tools_gzip_program(), name);
	return false;
}

/* The name in a header; false if there is none. */
static bool read_name(const uint8_t *bytes, size_t len, char *name, size_t room)
{
	struct wf_inflate s;
	struct wf_inflate_head head = { .name = (uint8_t *)name,
					.name_max = (unsigned int)room - 1 };
	size_t used;

	memset(name, 0, room);
	wf_deflate_inflate_init(&s, NULL, wf_alg_std_mem,
				WF_INFLATE_GZIP | WF_INFLATE_CHECK, 15);
	s.head = &head;
	wf_deflate_head_read(&s, bytes, len, &used);
	return head.done == 1 && head.name;
}

void wf_tools_gzip_name_stored(int fd, const char *input, char *path,
			       size_t room)
{
	uint8_t *bytes = malloc(HEADER_MOST);
	const char *slash = strrchr(input, '/'), *base;
	size_t folder = slash ? (size_t)(slash - input) + 1 : 0;
	ssize_t n = bytes ? pread(fd, bytes, HEADER_MOST, 0) : -1;
	char name[256];

	if (n > 0 && read_name(bytes, (size_t)n, name, sizeof(name))) {
		/* Into the folder of the input, wherever it says. */
		base = strrchr(name, '/');
		base = base ? base + 1 : name;
		if (*base && strcmp(base, ".") != 0 &&
		    strcmp(base, "..") != 0 && folder + strlen(base) < room)
			snprintf(path, room, "%.*s%s", (int)folder, input,
				 base);
	}
	free(bytes);
}

const char *wf_tools_gzip_name_find(const struct wf_gzip_options *o,
				    const char *name, char *out, size_t room)
{
	const char *const tries[] = { o->suffix, ".gz", ".z", "-z" };
	struct stat st;

	if (!(o->decompress || o->list) || !lstat(name, &st) ||
	    errno != ENOENT || wf_tools_gzip_name_ends(name, o->suffix))
		return name;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		if ((size_t)snprintf(out, room, "%s%s", name, tries[i]) <
			    room &&
		    !lstat(out, &st))
			return out;
	}
	/* As gzip, the one that was looked for first is reported. */
	return (size_t)snprintf(out, room, "%s%s", name, o->suffix) < room ?
		       out :
		       name;
}
