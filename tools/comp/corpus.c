/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The corpus: headers and Python sources for one half, shared libraries for the
 * other, each in the order of their names. Machines with the same packages have
 * the same corpus.
 */
#include "tools/comp/bench.h"

#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MOST (4u << 20) /* of one file */

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n > e && !strcmp(name + n - e, end);
}

static size_t add_file(const char *path, uint8_t *data, size_t room)
{
	FILE *file = fopen(path, "rb");
	size_t n = 0;

	if (!file)
		return 0;
	n = fread(data, 1, room < FILE_MOST ? room : FILE_MOST, file);
	fclose(file);
	return n;
}

static size_t add_tree(char *root, const char *end, uint8_t *data, size_t room)
{
	char *roots[] = { root, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	FTSENT *entry;
	size_t n = 0;

	if (!tree)
		return 0;
	while (n < room && (entry = fts_read(tree))) {
		if (entry->fts_info == FTS_F && ends_with(entry->fts_name, end))
			n += add_file(entry->fts_path, data + n, room - n);
	}
	fts_close(tree);
	return n;
}

static size_t add_glob(const char *pattern, const char *end, uint8_t *data,
		       size_t room)
{
	size_t n = 0;
	glob_t found;

	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && n < room; i++) {
		struct stat st;

		if (lstat(found.gl_pathv[i], &st))
			continue;
		if (S_ISDIR(st.st_mode))
			n += add_tree(found.gl_pathv[i], end, data + n,
				      room - n);
		else if (S_ISREG(st.st_mode))
			n += add_file(found.gl_pathv[i], data + n, room - n);
	}
	globfree(&found);
	return n;
}

size_t wf_tools_comp_corpus(uint8_t *data, size_t want)
{
	size_t n = 0, half = want / 2;

	n += add_glob("/usr/include", ".h", data, half / 2);
	n += add_glob("/usr/lib/python3*", ".py", data + n, half - n);
	n += add_glob("/usr/lib/*-linux-gnu/*.so*", "", data + n, want - n);
	n += add_glob("/usr/lib64/*.so*", "", data + n, want - n);
	return n;
}
