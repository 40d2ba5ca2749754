/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the provider's library and the MPI program from the place of this
 * program, so that a build and an installation work without settings. It must
 * not look into the working directory: code would be loaded from wherever the
 * user stands.
 */
#include "tools/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libweft-fi.so"
#define EFA_LIBRARY "libweft-efa.so"
#define MPI_PROGRAM "weft-bench-mpi"

/* The build passes libdir; without it only neighbours are looked at. */
#ifndef WEFT_LIBDIR
#define WEFT_LIBDIR ""
#endif

#ifndef WEFT_LIBEXECDIR
#define WEFT_LIBEXECDIR ""
#endif

static const char *const mpi_places[] = { "../bench", "../libexec/weft" };

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

/* Folder of this program, or -errno. */
static int find_here(char *here, size_t len)
{
	ssize_t got = readlink("/proc/self/exe", here, len - 1);
	char *slash;

	if (got <= 0)
		return -ENOENT;
	here[got] = '\0';
	slash = strrchr(here, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

int wf_tools_locate_provider(char *dir, size_t len)
{
	char here[PATH_MAX], candidate[2 * PATH_MAX];
	size_t i;

	if (!find_here(here, sizeof(here))) {
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

static const char *const efa_places[] = {
	"../src",
	"../lib/weft",
	"../lib64/weft",
	"../lib/x86_64-linux-gnu/weft",
	"../lib/aarch64-linux-gnu/weft",
};

static int try_file(const char *dir, const char *name, int mode, char *file,
		    size_t len)
{
	char path[3 * PATH_MAX], real[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (access(path, mode) || !realpath(path, real) ||
	    (size_t)snprintf(file, len, "%s", real) >= len)
		return -ENOENT;
	return 0;
}

/* In one of @count places beside this program, or in @installed. */
static int find_file(const char *const *places, size_t count,
		     const char *installed, const char *name, int mode,
		     char *file, size_t len)
{
	char here[PATH_MAX], candidate[2 * PATH_MAX];

	if (!find_here(here, sizeof(here))) {
		for (size_t i = 0; i < count; i++) {
			snprintf(candidate, sizeof(candidate), "%s/%s", here,
				 places[i]);
			if (!try_file(candidate, name, mode, file, len))
				return 0;
		}
	}
	return installed[0] ? try_file(installed, name, mode, file, len) :
			      -ENOENT;
}

int wf_tools_locate_efa(char *file, size_t len)
{
	return find_file(efa_places, sizeof(efa_places) / sizeof(efa_places[0]),
			 WEFT_LIBDIR[0] ? WEFT_LIBDIR "/weft" : "", EFA_LIBRARY,
			 R_OK, file, len);
}

int wf_tools_locate_mpi(char *file, size_t len)
{
	return find_file(mpi_places, sizeof(mpi_places) / sizeof(mpi_places[0]),
			 WEFT_LIBEXECDIR, MPI_PROGRAM, X_OK, file, len);
}
