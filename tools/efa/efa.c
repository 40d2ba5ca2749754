/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft efa`: sets up the environment in which a program finds the software EFA
 * device, and becomes the program.
 */
#include "tools/efa/efa.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/locate.h"
#include "tools/near.h"

static void print_help(FILE *out)
{
	fputs("usage: weft efa [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
	      "\n"
	      "Runs COMMAND with an EFA device in software, weft0. libfabric's "
	      "efa provider,\n"
	      "perftest and other programs that use libibverbs or libefa move "
	      "data through it,\n"
	      "between processes and between hosts.\n"
	      "\n"
	      "Options:\n"
	      "  -i, --interface NAME  the network interface whose IPv4 address "
	      "is used\n"
	      "  -h, --help            print this and exit\n",
	      out);
}

/* The device's library before what is preloaded already. */
static int preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	char all[2 * PATH_MAX];
	int len = snprintf(all, sizeof(all), "%s%s%s", library,
			   old && *old ? ":" : "", old ? old : "");

	if (len < 0 || (size_t)len >= sizeof(all))
		return E2BIG;
	return setenv("LD_PRELOAD", all, 1) ? errno : 0;
}

static int become(char **argv)
{
	int reason;

	execvp(argv[0], argv);
	reason = errno;
	fprintf(stderr, "weft efa: cannot run %s: %s\n", argv[0],
		strerror(reason));
	return reason == ENOENT ? 127 : 126;
}

int wf_tools_efa_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "interface", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	char library[PATH_MAX];
	int option, ret;

	while ((option = getopt_long(argc, argv, "+hi:", options, NULL)) !=
	       -1) {
		switch (option) {
		case 'h':
			print_help(stdout);
			return 0;
		case 'i':
			setenv("WEFT_EFA_IFACE", optarg, 1);
			break;
		default:
			wf_tools_near_option("weft efa", argv, options);
			return 2;
		}
	}
	if (optind == argc) {
		fputs("weft efa: no command given; `weft efa --help` says "
		      "more\n",
		      stderr);
		return 2;
	}
	if (wf_tools_locate_efa(library, sizeof(library))) {
		fputs("weft efa: libweft-efa.so is not there: weft was built "
		      "without libibverbs' headers\n",
		      stderr);
		return 1;
	}
	ret = preload(library);
	if (ret) {
		fprintf(stderr, "weft efa: LD_PRELOAD: %s\n", strerror(ret));
		return 1;
	}
	return become(argv + optind);
}
