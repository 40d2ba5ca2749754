/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command `weft`: finds the subcommand and hands over. It owns the table
 * of subcommands, --help and --version, and must not do any work of its own.
 */
#include "tools/bench/bench.h"
#include "tools/bench/crowd_member.h"
#include "tools/bench/names.h"
#include "tools/bench/proxy.h"
#include "tools/bench/worker.h"
#include "tools/efa/efa.h"
#include "tools/gzip/gzip.h"
#include "tools/info/info.h"
#include "tools/near.h"
#include "tools/stat/stat.h"
#include "tools/trace/trace.h"
#include "tools/wd/devd.h"
#include "tools/why/why.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The build passes the project's version; a build by hand says so. */
#ifndef WEFT_VERSION
#define WEFT_VERSION "(unversioned)"
#endif

/* More than most commands print: the reason why it cannot be written is known
 * only to the call that tries. */
#define OUTPUT_BUFFER 65536

struct command {
	const char *name;
	const char *summary; /* NULL: not for people, left out of the help */
	int (*main)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "info", "show what weft finds on this machine, and what is wrong",
	  wf_tools_info_main },
	{ "bench", "measure messages, remote memory, waiting, memory",
	  wf_tools_bench_main },
	{ "gzip", "compress files, on all processors", wf_tools_gzip_main },
	{ "gunzip", "decompress files, on all processors",
	  wf_tools_gunzip_main },
	{ "stat", "show live counters of running endpoints and devices",
	  wf_tools_stat_main },
	{ "why", "say what endpoints wait for, and who is to blame",
	  wf_tools_why_main },
	{ "trace", "record a timeline of messages between processes",
	  wf_tools_trace_main },
	{ "devd", "serve software devices to Warpdrive programs",
	  wf_tools_devd_main },
	{ "efa", "run a program on an EFA device in software",
	  wf_tools_efa_main },
	{ WF_TOOLS_WORKER_COMMAND, NULL, wf_tools_worker_main },
	{ WF_TOOLS_PROXY_COMMAND, NULL, wf_tools_proxy_main },
	{ WF_TOOLS_NAMES_COMMAND, NULL, wf_tools_names_main },
	{ WF_TOOLS_CROWD_COMMAND, NULL, wf_tools_crowd_member_main },
};

/* The program is one of these commands when it is called by its name, as a link
 * to it. */
static const struct command called[] = {
	{ "gzip", NULL, wf_tools_gzip_main },
	{ "pigz", NULL, wf_tools_gzip_main },
	{ "igzip", NULL, wf_tools_igzip_main },
	{ "gunzip", NULL, wf_tools_gunzip_main },
	{ "unpigz", NULL, wf_tools_gunzip_main },
	{ "zcat", NULL, wf_tools_zcat_main },
};

#define N_CALLED (sizeof(called) / sizeof(called[0]))
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
	size_t i;

	fputs("usage: weft COMMAND [OPTIONS]\n"
	      "\n"
	      "The tools of weft, which moves data in user space: a libfabric "
	      "provider,\n"
	      "channels to accelerators, and compression.\n"
	      "\n"
	      "Commands:\n",
	      out);
	for (i = 0; i < N_COMMANDS; i++) {
		if (commands[i].summary)
			fprintf(out, "  %-10s %s\n", commands[i].name,
				commands[i].summary);
	}
	fputs("\n"
	      "Options:\n"
	      "  -h, --help     print this and exit\n"
	      "  -V, --version  print the version and exit\n"
	      "\n"
	      "`weft help COMMAND` describes one command, `man weft` all of "
	      "them.\n",
	      out);
}

static bool is_option(const char *arg, const char *brief, const char *name)
{
	return !strcmp(arg, brief) || !strcmp(arg, name);
}

/* The output may not have arrived: a full disk must not look like success to a
 * script. */
static int finish(int status)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "weft: cannot write standard output%s%s\n",
		errno ? ": " : "", errno ? strerror(errno) : "");
	return status ? status : 1;
}

/* weft itself does these. */
static const char *const own_words[] = { "help", "version", "--help",
					 "--version" };

#define N_OWN_WORDS (sizeof(own_words) / sizeof(own_words[0]))

static const struct command *find_command(const char *name)
{
	struct wf_tools_near near = { .word = name };
	size_t i;

	for (i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(name, commands[i].name))
			return &commands[i];
		if (commands[i].summary)
			wf_tools_near_try(&near, commands[i].name);
	}
	for (i = 0; i < N_OWN_WORDS; i++)
		wf_tools_near_try(&near, own_words[i]);
	fprintf(stderr, "weft: unknown %s '%s'%s%s\n",
		name[0] == '-' ? "option" : "command", name,
		wf_tools_near_text(&near),
		near.best ? "" : "; `weft --help` lists what there is");
	return NULL;
}

/* `weft help COMMAND` is `weft COMMAND --help`. */
static int help_with(char *name)
{
	const struct command *command;
	char option[] = "--help", called_by[32];
	char *argv[] = { called_by, option, NULL };

	for (size_t i = 0; i < N_OWN_WORDS; i++) {
		if (!strcmp(name, own_words[i])) {
			print_help(stdout);
			return 0;
		}
	}
	command = find_command(name);
	snprintf(called_by, sizeof(called_by), "weft %s", name);
	return command ? command->main(2, argv) : 2;
}

static int run(int argc, char **argv)
{
	const struct command *command;
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *own = slash ? slash + 1 : argc ? argv[0] : "";
	static char name[32];

	for (size_t i = 0; i < N_CALLED; i++) {
		if (!strcmp(own, called[i].name))
			return called[i].main(argc, argv);
	}
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "help") && argc > 2)
		return help_with(argv[2]);
	if (is_option(argv[1], "-h", "--help") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return 0;
	}
	if (is_option(argv[1], "-V", "--version") ||
	    !strcmp(argv[1], "version")) {
		puts("weft " WEFT_VERSION);
		return 0;
	}
	command = find_command(argv[1]);
	if (!command)
		return 2;
	/* How getopt begins its complaints. */
	snprintf(name, sizeof(name), "weft %s", command->name);
	argv[1] = name;
	return command->main(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	static char buffer[OUTPUT_BUFFER];

	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	return finish(run(argc, argv));
}
