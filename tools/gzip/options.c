/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip's command line, and what weft adds to it.
 */
#include "tools/gzip/options.h"

#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp_drv.h>

#include "tools/near.h"

enum {
	OPT_DRIVER = 256,
	OPT_STATS,
	OPT_RSYNCABLE,
	OPT_REPRODUCIBLE,
	OPT_INDEX,
	OPT_RANGE,
	OPT_REMOVE,
};

#define LEVEL_BEST 12 /* libdeflate's; -11 */
#define ELEVEN '@'    /* -11, which getopt() would take for -1 -1 */

#define OPTIONS "0123456789@cdfhklnNp:qrRS:tT:vV"

static const struct option long_options[] = {
	{ "stdout", no_argument, NULL, 'c' },
	{ "to-stdout", no_argument, NULL, 'c' },
	{ "decompress", no_argument, NULL, 'd' },
	{ "uncompress", no_argument, NULL, 'd' },
	{ "force", no_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ "keep", no_argument, NULL, 'k' },
	{ "list", no_argument, NULL, 'l' },
	{ "no-name", no_argument, NULL, 'n' },
	{ "name", no_argument, NULL, 'N' },
	{ "processes", required_argument, NULL, 'p' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "recursive", no_argument, NULL, 'r' },
	{ "suffix", required_argument, NULL, 'S' },
	{ "test", no_argument, NULL, 't' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, 'V' },
	{ "fast", no_argument, NULL, '1' },
	{ "best", no_argument, NULL, '9' },
	{ "driver", required_argument, NULL, OPT_DRIVER },
	{ "stats", no_argument, NULL, OPT_STATS },
	{ "rsyncable", no_argument, NULL, OPT_RSYNCABLE },
	{ "reproducible", no_argument, NULL, OPT_REPRODUCIBLE },
	{ "index", no_argument, NULL, OPT_INDEX },
	{ "range", required_argument, NULL, OPT_RANGE },
	{ "rm", no_argument, NULL, OPT_REMOVE },
	{ "threads", required_argument, NULL, 'p' },
	{ NULL, 0, NULL, 0 },
};

static void print_help(FILE *out, bool decompress)
{
	fprintf(out,
		"usage: %s [OPTIONS] [FILE]...\n"
		"\n"
		"%s each FILE in place; without FILE, or if FILE is -, "
		"standard\ninput to standard output. The format is that of "
		"gzip.\n"
		"\n"
		"  -0 ... -9        stored, faster ... smaller (default -6)\n"
		"  -11              smallest and slowest\n"
		"  -c, --stdout     write to standard output, keep the files\n"
		"  -d, --decompress decompress\n"
		"  -f, --force      replace files, follow links, use terminals\n"
		"  -h, --help       print this and exit\n"
		"  -k, --keep       keep the input files\n"
		"  -l, --list       list the contents of the files\n"
		"  -n, --no-name    store neither name nor time\n"
		"  -N, --name       restore name and time when decompressing\n"
		"  -p N             work with N threads (default: the number of "
		"processors)\n"
		"  -q, --quiet      no warnings, no progress bar\n"
		"  -r, --recursive  process all files below folders\n"
		"  -S SUF           use SUF in place of .gz\n"
		"  -t, --test       check the files and write nothing\n"
		"  -v, --verbose    print name and ratio of each file\n"
		"  -V, --version    print the version and exit\n"
		"      --driver NAME   use this driver and no other\n"
		"      --stats         print bytes, seconds, driver, restart points\n"
		"      --rsyncable     small changes of the input change little output\n"
		"      --reproducible  write the same bytes on every machine\n"
		"      --index         write FILE.wfi, an index of the gzip FILE\n"
		"      --range A-B     write bytes A to B of the decompressed data;\n"
		"                      fast with an index\n"
		"\n"
		"Exits 0, 1 after an error, 2 after a warning. "
		"`man weft-gzip` has more.\n",
		wf_tools_gzip_program(),
		decompress ? "Decompresses" : "Compresses");
}

#define THREADS_MOST 1024

static unsigned int processors(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 1;
	return (unsigned int)CPU_COUNT(&cpus);
}

static bool parse_threads(const char *text, unsigned int *threads)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*threads = (unsigned int)n;
	return *text >= '0' && *text <= '9' && !*end && n >= 1 &&
	       n <= THREADS_MOST;
}

/* A-B, both included, or A-. False: said why. */
static bool parse_range(struct wf_gzip_options *o, const char *text)
{
	const char *wrong = "wants A-B or A-, not";
	char *end;

	o->range = true;
	o->decompress = true;
	o->to_stdout = true;
	o->keep = true;
	if (*text < '0' || *text > '9')
		goto err;
	o->range_from = strtoull(text, &end, 10);
	if (*end++ != '-')
		goto err;
	o->range_to = UINT64_MAX;
	if (!*end)
		return true;
	if (*end < '0' || *end > '9')
		goto err;
	o->range_to = strtoull(end, &end, 10);
	if (*end)
		goto err;
	wrong = "ends before it begins:";
	if (o->range_to < o->range_from)
		goto err;
	o->range_to += o->range_to < UINT64_MAX;
	return true;
err:
	fprintf(stderr, "%s: --range %s '%s'\n", wf_tools_gzip_program(), wrong,
		text);
	return false;
}

/* Reads the options that only weft has. */
static int one_more(struct wf_gzip_options *o, int opt)
{
	switch (opt) {
	case OPT_RSYNCABLE:
		o->rsyncable = true;
		break;
	case OPT_REPRODUCIBLE:
		o->reproducible = true;
		o->no_name = true;
		break;
	case OPT_INDEX:
		o->make_index = true;
		o->decompress = true;
		o->test = true;
		break;
	case OPT_RANGE:
		if (!parse_range(o, optarg))
			return 1;
		break;
	case OPT_REMOVE:
		o->keep = false;
		break;
	case ELEVEN:
		o->level = LEVEL_BEST;
		break;
	default:
		if (opt < '0' || opt > '9')
			return 1;
		/* igzip's levels are all about as fast as our first. */
		o->level = o->igzip ? 1 : opt - '0';
		break;
	}
	return -1;
}

/* -1 to go on, or an exit code. */
static int one(struct wf_gzip_options *o, int opt)
{
	switch (opt) {
	case 'c':
		o->to_stdout = true;
		o->keep = true;
		break;
	case 'd':
		o->decompress = true;
		break;
	case 'f':
		o->force = true;
		break;
	case 'h':
		print_help(stdout, o->decompress);
		return 0;
	case 'k':
		o->keep = true;
		break;
	case 'l':
		o->list = true;
		break;
	case 'n':
		o->no_name = true;
		break;
	case 'N':
		o->no_name = false;
		o->restore_name = true;
		break;
	case 'p':
	case 'T':
		if (!parse_threads(optarg, &o->threads)) {
			fprintf(stderr,
				"%s: -p wants a number from 1 to %d, "
				"not '%s'\n",
				wf_tools_gzip_program(), THREADS_MOST, optarg);
			return 1;
		}
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'r':
		o->recursive = true;
		break;
	case 'R':
		o->rsyncable = true;
		break;
	case 'S':
		if (!*optarg || strchr(optarg, '/') || strlen(optarg) > 30) {
			fprintf(stderr, "%s: '%s' is no suffix\n",
				wf_tools_gzip_program(), optarg);
			return 1;
		}
		o->suffix = optarg;
		break;
	case 't':
		o->test = true;
		o->decompress = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'V':
		printf("weft %s\n", WEFT_VERSION);
		return 0;
	case OPT_DRIVER:
		o->driver = optarg;
		break;
	case OPT_STATS:
		o->stats = true;
		break;
	default:
		return one_more(o, opt);
	}
	return -1;
}

/* -11 in a group of short options becomes one option of its own. Of other digits
 * that follow each other the last one counts, as in gzip, which refuses 0. False:
 * said that there is no such level. */
static bool mark_eleven(char *arg)
{
	size_t digits;

	if (arg[0] != '-' || arg[1] == '-')
		return true;
	/* Those that have a value end the group. */
	for (char *p = arg + 1; *p && *p != 'p' && *p != 'S' && *p != 'T';
	     p++) {
		digits = strspn(p, "0123456789");
		if (digits < 2)
			continue;
		if (memchr(p, '0', digits)) {
			fprintf(stderr,
				"%s: -%.*s is no level: levels are 0 to 9, "
				"and 11\n",
				wf_tools_gzip_program(), (int)digits, p);
			return false;
		}
		if (digits == 2 && p[0] == '1' && p[1] == '1') {
			p[0] = ELEVEN;
			memmove(p + 1, p + 2, strlen(p + 1));
		} else {
			p += digits - 1;
		}
	}
	return true;
}

/* The fastest driver whose output does not depend on the processor. */
static const char *reproducible_driver(void)
{
	for (unsigned int i = 0;; i++) {
		const struct wd_alg_comp *d = wd_alg_comp_list(i);

		if (!d || !strcmp(d->name, "libdeflate"))
			return d ? d->name : "zlib";
	}
}

int wf_tools_gzip_options(struct wf_gzip_options *o, int argc, char **argv)
{
	int opt, ret;

	o->level = o->igzip ? 1 : 6;
	o->threads = processors();
	o->suffix = ".gz";
	optind = 1;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!mark_eleven(argv[i]))
			return 1;
	}
	while ((opt = getopt_long(argc, argv, OPTIONS, long_options, NULL)) !=
	       -1) {
		if (opt == '?')
			wf_tools_near_option(wf_tools_gzip_program(), argv,
					     long_options);
		ret = one(o, opt);
		if (ret >= 0)
			return ret;
	}
	if (o->reproducible && !o->driver && !o->decompress)
		o->driver = reproducible_driver();
	return -1;
}
