/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench comp`: reads the command line, makes the corpus and has the
 * parts measured. All that is compared runs in turns in the same minutes.
 */
#include "tools/comp/bench.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/near.h"

#define MIB (1u << 20)
#define DEFAULT_SIZE (48u * MIB)
#define ROUNDS_MOST 101

static void print_help(void)
{
	puts("usage: weft bench comp [OPTIONS]\n"
	     "\n"
	     "Measures compression by weft, by zlib, libdeflate and ISA-L called\n"
	     "directly, and by the commands `weft gzip`, gzip, pigz, igzip and\n"
	     "libdeflate-gzip, in turns; the median of each, and ratios.\n"
	     "\n"
	     "      --calls       only calls into the library\n"
	     "      --levels      only levels beside zlib's\n"
	     "      --commands    only whole commands, and python3's zlib\n"
	     "      --device      only jobs on the software device\n"
	     "      --file PATH   instead of the corpus (from /usr/include,\n"
	     "                    /usr/lib/python3* and shared libraries)\n"
	     "      --size MIB    how much of it (default 48)\n"
	     "      --rounds N    of each (default 7)\n"
	     "  -h, --help        print this and exit");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double wf_tools_comp_median(double *times, unsigned int n)
{
	qsort(times, n, sizeof(*times), compare);
	return n & 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

static size_t read_file(const char *path, uint8_t *data, size_t want)
{
	FILE *file = fopen(path, "rb");
	size_t n = file ? fread(data, 1, want, file) : 0;

	if (!n)
		perror(path);
	if (file)
		fclose(file);
	return n;
}

/* In the build it lies in src/, installed in the folder of libraries. */
static const char *find_library(const char *self)
{
	static char path[PATH_MAX + 64];
	const char *slash = strrchr(self, '/');
	int dir = slash ? (int)(slash - self) : 0;

	snprintf(path, sizeof(path), "%.*s/../src/libweft-z.so.1", dir, self);
	if (!access(path, R_OK))
		return path;
	snprintf(path, sizeof(path), "%s/libweft-z.so.1", WEFT_LIBDIR);
	return access(path, R_OK) ? NULL : path;
}

int wf_tools_bench_comp_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "calls", no_argument, NULL, 'c' },
		{ "levels", no_argument, NULL, 'l' },
		{ "commands", no_argument, NULL, 'm' },
		{ "device", no_argument, NULL, 'd' },
		{ "file", required_argument, NULL, 'f' },
		{ "size", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static char self[PATH_MAX];
	struct wf_comp_plan plan = { .rounds = 7, .self = self };
	bool calls = false, levels = false, commands = false, device = false;
	bool all;
	size_t size = DEFAULT_SIZE;
	const char *file = NULL;
	int opt, ret = 0;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			calls = true;
			break;
		case 'l':
			levels = true;
			break;
		case 'm':
			commands = true;
			break;
		case 'd':
			device = true;
			break;
		case 'f':
			file = optarg;
			break;
		case 's':
			size = strtoul(optarg, NULL, 10) * MIB;
			break;
		case 'r':
			plan.rounds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'h':
			print_help();
			return 0;
		default:
			wf_tools_near_option("weft bench comp", argv, options);
			return 2;
		}
	}
	if (size < MIB || size > 1024u * MIB || !plan.rounds ||
	    plan.rounds > ROUNDS_MOST) {
		fputs("weft bench comp: --size from 1 to 1024, --rounds from 1 "
		      "to 101\n",
		      stderr);
		return 2;
	}
	plan.data = malloc(size);
	if (!plan.data || readlink("/proc/self/exe", self, PATH_MAX - 1) < 0)
		return 1;
	plan.library = find_library(self);
	plan.len = file ? read_file(file, plan.data, size) :
			  wf_tools_comp_corpus(plan.data, size);
	if (plan.len < MIB) {
		fputs("weft bench comp: less than 1 MiB to work on; --file\n",
		      stderr);
		return 1;
	}
	printf("%s: %zu bytes, median of %u\n", file ? file : "corpus",
	       plan.len, plan.rounds);
	all = !calls && !levels && !commands && !device;
	if (calls || all)
		wf_tools_comp_calls(&plan);
	if (levels || all)
		wf_tools_comp_levels(&plan);
	if (device || all)
		wf_tools_comp_device(&plan);
	if (commands || all)
		ret = wf_tools_comp_commands(&plan);
	free(plan.data);
	return ret ? 1 : 0;
}
