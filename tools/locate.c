/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the provider's library from the place of this program, so that a
 * build and an installation work without settings. It must not look into the
 * working directory: code would be loaded from wherever the user stands.
 */
#include "tools/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libweft-fi.so"

/* The build passes libdir; without it only neighbours are looked at. */
#ifndef WEFT_LIBDIR
#define WEFT_LIBDIR ""
#endif

static const char *const neighbours[] = {
	"../src/prov",
	"../src",
	".",
	"../lib/libfabric",
	"../lib64/libfabric",
	"../lib/x86_64-linux-gnu/libfabric",
	"../lib/aarch64-linux-gnu/libfabric",
};

static int try_dir(const char *dir, char *found, size_t len)
{
	char file[3 * PATH_MAX], real[PATH_MAX];

	snprintf(file, sizeof(file), "%s/" LIBRARY, dir);
	if (access(file, R_OK) || !realpath(dir, real))
		return -ENOENT;
	if ((size_t)snprintf(found, len, "%s", real) >= len)
		return -ENOENT;
	return 0;
}

int wf_tools_locate_provider(char *dir, size_t len)
{
	char here[PATH_MAX], candidate[2 * PATH_MAX];
	char *slash;
	ssize_t got;
	size_t i;

	got = readlink("/proc/self/exe", here, sizeof(here) - 1);
	if (got > 0) {
		here[got] = '\0';
		slash = strrchr(here, '/');
		if (slash)
			*slash = '\0';
		for (i = 0; i < sizeof(neighbours) / sizeof(neighbours[0]);
		     i++) {
			snprintf(candidate, sizeof(candidate), "%s/%s", here,
				 neighbours[i]);
			if (!try_dir(candidate, dir, len))
				return 0;
		}
	}
	if (WEFT_LIBDIR[0])
		return try_dir(WEFT_LIBDIR "/libfabric", dir, len);
	return -ENOENT;
}
