/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft info`: has the parts find out, and one of the reports say it.
 */
#include "tools/info/info.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/info/report.h"
#include "tools/near.h"

enum { OPT_JSON = 256 };

static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft info [--json]\n"
	"\n"
	"Shows what weft finds on this machine. Problems come first, each with\n"
	"a remedy. Then follow the provider and its folder; interfaces and\n"
	"addresses; whether processes may copy from each other (it tries) and why\n"
	"not; the path that a message of each size takes; how peers on other\n"
	"nodes are reached; every FI_WEFT_* setting with the value in use, its\n"
	"source and the reason for its default; the compression drivers, where\n"
	"each comes from, what it supports, and which is asked first; and the\n"
	"machine.\n"
	"\n"
	"      --json   print the same as JSON\n"
	"  -h, --help   print this and exit\n"
	"\n"
	"FI_PROVIDER_PATH names the provider's folder; without it the one "
	"beside\n"
	"this program's build or installation is used, or else libfabric's "
	"own.\n"
	"\n"
	"Exit status: 0 if weft can be used, 1 if not, 2 for a wrong command "
	"line.\n";

/* 0, 1 when help was printed, -1. */
static int read_options(int argc, char **argv, bool *json)
{
	int c;

	*json = false;
	optind = 1;
	while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (c) {
		case OPT_JSON:
			*json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default: /* getopt has said what is wrong */
			wf_tools_near_option("weft info", argv, long_options);
			return -1;
		}
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "weft info: '%s' is no option\n", argv[optind]);
	return -1;
}

static void check_machine(struct wf_tools_facts *facts)
{
	const struct wf_tools_param *cma = wf_tools_param_find(facts, "CMA");
	const struct wf_tools_param *shm = wf_tools_param_find(facts, "SHM");

	facts->shm_off = shm && !strcmp(shm->value, "false");
	facts->cma_on =
		!*facts->cma.why && (!cma || strcmp(cma->value, "false"));
	if (!facts->node.memfd)
		wf_tools_facts_problem(facts,
				       "memfd_create with seals does not work "
				       "here: endpoints cannot talk");
	if (*facts->cma.why)
		wf_tools_facts_problem(
			facts,
			"CMA is refused, so that large messages are copied "
			"twice: %s%s%s",
			facts->cma.why, *facts->cma.advice ? "; " : "",
			facts->cma.advice);
}

int wf_tools_info_main(int argc, char **argv)
{
	struct wf_tools_facts *facts;
	bool json, usable;
	int ret = read_options(argc, argv, &json);

	if (ret)
		return ret < 0 ? 2 : 0;
	facts = calloc(1, sizeof(*facts));
	if (!facts) {
		fputs("weft info: no memory\n", stderr);
		return 1;
	}
	/* First: it forks, and the provider does not like that. */
	wf_tools_cma_probe(&facts->cma);
	wf_tools_node_read(&facts->node);
	wf_tools_provider_read(facts);
	check_machine(facts);
	wf_tools_ways_find(facts);
	wf_tools_folder_read(facts);
	wf_tools_net_read(facts);
	wf_tools_drivers_read(facts);
	if (json)
		wf_tools_report_json(facts, stdout);
	else
		wf_tools_report_text(facts, stdout);
	usable = facts->found && facts->node.memfd;
	free(facts);
	return usable ? 0 : 1;
}
