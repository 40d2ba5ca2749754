/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the options of `weft stat`.
 */
#include "tools/stat/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/near.h"

#define LONGEST_S 86400

enum { OPT_JSON = 256, OPT_OPENMETRICS };

static const struct option long_options[] = {
	{ "count", required_argument, NULL, 'n' },
	{ "interval", required_argument, NULL, 'i' },
	{ "pid", required_argument, NULL, 'p' },
	{ "sort", required_argument, NULL, 's' },
	{ "paths", no_argument, NULL, 'P' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "openmetrics", optional_argument, NULL, OPT_OPENMETRICS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft stat [OPTIONS] [PID ...]\n"
	"\n"
	"Shows what the weft endpoints of this machine do: a live view on a "
	"terminal,\n"
	"where ? lists the keys and q quits; one table elsewhere. weft reads the\n"
	"counters from memory of the processes and does not disturb them. With "
	"PID, only\n"
	"the endpoints of these processes.\n"
	"\n"
	"  -n, --count N       print N tables, one below the other, and exit\n"
	"  -i, --interval S    measure over S seconds (1), 0.1 or more\n"
	"  -p, --pid PID,...   the same as PID behind the options\n"
	"  -s, --sort KEY      bytes (the default), messages, unexpected, "
	"sleeps,\n"
	"                      peers, rank or pid\n"
	"  -P, --paths         show the messages and bytes of each endpoint by "
	"path\n"
	"      --json          print every counter once, as JSON, without "
	"waiting\n"
	"      --openmetrics   print every counter once for Prometheus;\n"
	"                      --openmetrics=[ADDRESS:]PORT serves them by "
	"HTTP at\n"
	"                      /metrics, on 127.0.0.1 if ADDRESS is not given\n"
	"  -h, --help          print this help and exit\n"
	"\n"
	"Columns, as many as the terminal has room for:\n"
	"  RANK, JOB   of MPI processes             PEERS    connected peers\n"
	"  OUT/s, IN/s messages a second            UNANS    peers that do not "
	"answer\n"
	"  OUT-B, IN-B their bytes a second         UNEXP    messages without a "
	"receive\n"
	"  PEND        operations that wait         SLEEP/s  times it went to "
	"sleep\n"
	"  RMA/s       writes and reads, RMA-B/s    NO-CMA   channels without "
	"CMA\n"
	"  ATOM/s      atomic operations            LOST     peers that went "
	"away\n"
	"  RING-B/s    bytes through rings          CMA-B/s  bytes copied by "
	"CMA\n"
	"  NET-B/s     bytes by packets             RETX/s   packets sent again\n"
	"  RTT         round trip of the last peer heard by packets\n"
	"\n"
	"Devices of `weft devd` and their users, and drivers of programs that "
	"compress,\n"
	"have a table of their own: JOBS/s, WAIT jobs not done yet, CHANS open\n"
	"channels, IN-B and OUT-B bytes taken and made a second, FAILED jobs with "
	"an\n"
	"error, COPY-B bytes copied, NEXT jobs handed to the next driver, INTR/s,\n"
	"MEMORY reserved bytes, REFUSED channels, FAULTS channels given up, QUOTA\n"
	"times that jobs waited for the quota of their user.\n"
	"\n"
	"Exit status: 0 if an endpoint or device was seen, 1 if there was none "
	"or\n"
	"something failed, 2 for a wrong command line.\n";

static int read_count(struct wf_tools_stat_options *s, const char *text)
{
	if (wf_tools_number_read(text, &s->count))
		return wf_tools_stat_complain(
			"--count wants a number from 1 on, not '%s'", text);
	return 0;
}

static int read_interval(struct wf_tools_stat_options *s, const char *text)
{
	char *end;

	s->interval = strtod(text, &end);
	if (end == text || *end ||
	    !(s->interval >= 0.1 && s->interval <= LONGEST_S))
		return wf_tools_stat_complain(
			"--interval wants seconds from 0.1 to %d, not "
			"'%s'",
			LONGEST_S, text);
	return 0;
}

static int read_sort(struct wf_tools_stat_options *s, const char *text)
{
	for (int i = 0; i < WF_TOOLS_SORTS; i++) {
		if (!strcmp(text, wf_tools_sort_name((enum wf_tools_sort)i))) {
			s->sort = (enum wf_tools_sort)i;
			return 0;
		}
	}
	return wf_tools_stat_complain("--sort is bytes, messages, unexpected, "
				      "sleeps, peers, rank or pid, not '%s'",
				      text);
}

int wf_tools_stat_options_read(struct wf_tools_stat_options *s, int argc,
			       char **argv)
{
	int c, ret = 0;

	*s = (struct wf_tools_stat_options){ .interval = 1 };
	optind = 1;
	while (!ret && (c = getopt_long(argc, argv, "n:i:p:s:Ph", long_options,
					NULL)) != -1) {
		switch (c) {
		case 'n':
			ret = read_count(s, optarg);
			break;
		case 'i':
			ret = read_interval(s, optarg);
			break;
		case 'p':
			ret = wf_tools_pids_read(&s->pids, "stat", optarg);
			break;
		case 's':
			ret = read_sort(s, optarg);
			break;
		case 'P':
			s->paths = true;
			break;
		case OPT_JSON:
			s->json = true;
			break;
		case OPT_OPENMETRICS:
			s->openmetrics = true;
			s->listen = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default: /* getopt has said what is wrong */
			wf_tools_near_option("weft stat", argv, long_options);
			return -EINVAL;
		}
	}
	for (; !ret && optind < argc; optind++)
		ret = wf_tools_pids_read(&s->pids, "stat", argv[optind]);
	return ret;
}
