/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the command line of `weft devd` into the configuration of a software
 * device. It must not start anything.
 */
#include "tools/wd/devd_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/amount.h"
#include "devd/alg.h"
#include "tools/near.h"
#include "tools/wd/passed.h"

enum {
	OPT_MODE = 256,
	OPT_ALLOW_UID,
	OPT_SPIN,
	OPT_CPU,
	OPT_DEPTH,
	OPT_ARENA,
	OPT_CLIENTS,
	OPT_CLIENT_CHANNELS,
	OPT_CLIENT_MEMORY,
	OPT_ALLOW_SVA,
	OPT_USER_CLIENTS,
	OPT_USER_CHANNELS,
	OPT_USER_MEMORY,
	OPT_USER_JOBS,
	OPT_USER_BYTES,
	OPT_CONFIG,
};

/* weft-devd.service names this file, whether it is there or not. */
#define SERVICE_FILE "/etc/weft/devd.conf"

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "device", required_argument, NULL, 'd' },
	{ "workers", required_argument, NULL, 'w' },
	{ "list", no_argument, NULL, 'l' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "allow-uid", required_argument, NULL, OPT_ALLOW_UID },
	{ "spin", required_argument, NULL, OPT_SPIN },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "arena", required_argument, NULL, OPT_ARENA },
	{ "clients", required_argument, NULL, OPT_CLIENTS },
	{ "client-channels", required_argument, NULL, OPT_CLIENT_CHANNELS },
	{ "client-memory", required_argument, NULL, OPT_CLIENT_MEMORY },
	{ "allow-sva", no_argument, NULL, OPT_ALLOW_SVA },
	{ "user-clients", required_argument, NULL, OPT_USER_CLIENTS },
	{ "user-channels", required_argument, NULL, OPT_USER_CHANNELS },
	{ "user-memory", required_argument, NULL, OPT_USER_MEMORY },
	{ "user-jobs", required_argument, NULL, OPT_USER_JOBS },
	{ "user-bytes", required_argument, NULL, OPT_USER_BYTES },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft devd [OPTIONS]\n"
	"\n"
	"A software device for Warpdrive: serves accelerators that work like\n"
	"real ones, with queues, doorbells and their own view of memory, to\n"
	"programs on this machine, until it gets SIGINT or SIGTERM.\n"
	"\n"
	"  -d, --device NAME[,KEY=VALUE...]\n"
	"                        a device; may be given several times:\n"
	"                          scenario=sva|share|noiommu (sva)\n"
	"                          algs=A+B...    (all)\n"
	"                          instances=N    channels at a time (256)\n"
	"                          node=N         NUMA node (none)\n"
	"                        without any: weft_sva-0, weft_share-0 and\n"
	"                        weft_noiommu-0\n"
	"  -s, --socket PATH     where to listen (root: /run/weft/devd.sock,\n"
	"                        others: weft/devd.sock in XDG_RUNTIME_DIR,\n"
	"                        or /tmp/weft-UID/devd.sock)\n"
	"      --mode OCTAL      permissions of the socket (0600, with\n"
	"                        --allow-uid 0666)\n"
	"      --allow-uid LIST  other users who may connect: any or 12,34\n"
	"      --allow-sva       they may use SVA devices, too (their memory\n"
	"                        can keep a worker waiting)\n"
	"  -w, --workers N       threads that do the jobs (CPUs, at most 8)\n"
	"      --spin US         look for jobs so long before sleeping (50)\n"
	"      --cpu N           bind the workers to CPU N, N+1, ...\n"
	"      --depth N         jobs in a queue, a power of two (256)\n"
	"      --arena SIZE      \"physical\" memory of NOIOMMU devices (256M)\n"
	"      --clients N       processes at a time (256)\n"
	"      --client-channels N\n"
	"                        channels of one process (64)\n"
	"      --client-memory SIZE\n"
	"                        reserved memory of one process (256M)\n"
	"      --user-clients N, --user-channels N, --user-memory SIZE\n"
	"                        what all processes of one other user may\n"
	"                        have together (64, 128, 128M)\n"
	"      --user-jobs N, --user-bytes SIZE\n"
	"                        jobs of one other user a second, and bytes\n"
	"                        that they take and make; more of them wait\n"
	"                        (0: no limit)\n"
	"      --config FILE     more options, one in a line, without dashes;\n"
	"                        SIGHUP reads it again: users, limits and\n"
	"                        devices change, and no client is dropped\n"
	"  -l, --list            list the devices that programs here would\n"
	"                        find, or those of --socket PATH, with their\n"
	"                        counters where they can be read, and exit\n"
	"  -v, --verbose         say what happens; a summary at the end\n"
	"  -h, --help            print this and exit\n"
	"\n"
	"A service manager can pass the socket (systemd: weft-devd.socket).\n"
	"Programs look at the sockets named in WEFT_DEVD (separated by\n"
	"colons), else at their user's and root's.\n"
	"\n"
	"  weft devd\n"
	"  weft devd -d zip-0,scenario=share,instances=4 --allow-uid any\n";

static int complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* The file whose options are being read. */
static const char *reading;

static int complain(const char *format, ...)
{
	va_list args;

	fputs("weft devd: ", stderr);
	if (reading)
		fprintf(stderr, "%s: ", reading);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -EINVAL;
}

static int read_number(const char *name, const char *text, unsigned long min,
		       unsigned long max, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || *value < min ||
	    *value > max)
		return complain("%s wants a number from %lu to %lu, not '%s'",
				name, min, max, text);
	return 0;
}

static int read_uint(const char *name, const char *text, unsigned long min,
		     unsigned long max, unsigned int *value)
{
	unsigned long number;
	int err = read_number(name, text, min, max, &number);

	if (!err)
		*value = (unsigned int)number;
	return err;
}

static int read_size(const char *name, const char *text, uint64_t *size)
{
	const char *end;

	if (wf_base_amount_bytes(text, &end, size) || *end)
		return complain("%s wants a size such as 64M, not '%s'", name,
				text);
	return 0;
}

static int read_jobs(const char *text, uint64_t *jobs)
{
	unsigned long number = 0;
	int err = read_number("--user-jobs", text, 0, 1000000000, &number);

	*jobs = number;
	return err;
}

/* -- devices --------------------------------------------------------------- */

static int read_scenario(const char *text, int *type)
{
	if (!strcmp(text, "sva"))
		*type = WD_IOMMU_SVA;
	else if (!strcmp(text, "share"))
		*type = WD_IOMMU_SHARE_DOMAIN;
	else if (!strcmp(text, "noiommu"))
		*type = WD_IOMMU_NONE;
	else
		return complain("scenario is sva, share or noiommu, not '%s'",
				text);
	return 0;
}

static int read_algs(char *text, uint32_t *algs)
{
	char all[WD_ALGS_SIZE], *word, *rest = NULL;
	uint32_t bit;

	*algs = 0;
	for (word = strtok_r(text, "+", &rest); word;
	     word = strtok_r(NULL, "+", &rest)) {
		bit = wf_devd_alg_bit(word);
		if (!bit) {
			wf_devd_alg_names(wf_devd_alg_all(), all, sizeof(all));
			for (char *c = all; (c = strchr(c, '\n')); c++)
				*c = ' ';
			return complain("no algorithm '%s'; there are: %s",
					word, all);
		}
		*algs |= bit;
	}
	return 0;
}

static int read_key(struct wf_devd_device_config *device, char *text)
{
	char *value = strchr(text, '=');
	unsigned int node = 0;
	int err;

	if (!value)
		return complain("KEY=VALUE expected, not '%s'", text);
	*value++ = '\0';
	if (!strcmp(text, "scenario"))
		return read_scenario(value, &device->iommu_type);
	if (!strcmp(text, "algs"))
		return read_algs(value, &device->algs);
	if (!strcmp(text, "instances"))
		return read_uint(text, value, 1, 65536, &device->instances);
	if (!strcmp(text, "node")) {
		err = read_uint(text, value, 0, 1023, &node);
		device->node_id = (int)node;
		return err;
	}
	return complain("a device has no '%s': its keys are scenario, algs, "
			"instances and node",
			text);
}

static int read_device(struct wf_devd_config *config, const char *text)
{
	struct wf_devd_device_config *device;
	char *copy = strdup(text), *word, *rest = NULL;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	word = strtok_r(copy, ",", &rest);
	device = word ? wf_devd_config_add(config, word, WD_IOMMU_SVA) : NULL;
	if (!device)
		err = complain("no device can be called '%s' (taken, too long, "
			       "or one of :/ in it), or there are too many",
			       text);
	while (!err && (word = strtok_r(NULL, ",", &rest)))
		err = read_key(device, word);
	free(copy);
	return err;
}

/* -- options --------------------------------------------------------------- */

static int read_cpu(const char *text, int *cpu)
{
	unsigned int number = 0;
	int err = read_uint("--cpu", text, 0, 1023, &number);

	*cpu = (int)number;
	return err;
}

static int read_mode(const char *text, mode_t *mode)
{
	char *end;
	unsigned long bits = strtoul(text, &end, 8);

	if (end == text || *end || bits > 0777)
		return complain("--mode wants octal permissions, not '%s'",
				text);
	*mode = (mode_t)bits;
	return 0;
}

static int read_users(const char *text, const char **list)
{
	*list = text;
	if (!strcmp(text, "any"))
		return 0;
	for (;;) {
		char *end;

		errno = 0;
		if (*text < '0' || *text > '9' ||
		    strtoul(text, &end, 10) >= UINT32_MAX || errno ||
		    (*end && *end != ','))
			return complain("--allow-uid wants any or numbers of "
					"users like 12,34, not '%s'",
					*list);
		if (!*end)
			return 0;
		text = end + 1;
	}
}

static int read_option(struct wf_tools_devd_options *options, int option)
{
	struct wf_devd_config *config = &options->config;

	switch (option) {
	case 's':
		config->socket = optarg;
		config->makes_folder = false;
		if (optarg[0] != '/')
			return complain("--socket wants a path from the root, "
					"not '%s'",
					optarg);
		if (strchr(optarg, ':'))
			return complain("--socket wants a path without ':', "
					"which separates those of WEFT_DEVD, "
					"not '%s'",
					optarg);
		return 0;
	case 'd':
		return read_device(config, optarg);
	case 'w':
		return read_uint("--workers", optarg, 1, WF_DEVD_WORKERS_MAX,
				 &config->workers);
	case 'l':
		options->list = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case OPT_MODE:
		return read_mode(optarg, &config->mode);
	case OPT_ALLOW_UID:
		return read_users(optarg, &config->allow_uid);
	case OPT_ALLOW_SVA:
		config->allow_sva = true;
		return 0;
	case OPT_SPIN:
		return read_uint("--spin", optarg, 0, 10000000,
				 &config->spin_us);
	case OPT_CPU:
		return read_cpu(optarg, &config->first_cpu);
	case OPT_DEPTH:
		return read_uint("--depth", optarg, WF_ACCEL_DEPTH_MIN,
				 WF_ACCEL_DEPTH_MAX, &config->depth);
	case OPT_ARENA:
		return read_size("--arena", optarg, &config->arena);
	case OPT_CLIENTS:
		return read_uint("--clients", optarg, 1, 65536,
				 &config->clients);
	case OPT_CLIENT_CHANNELS:
		return read_uint("--client-channels", optarg, 1, 65536,
				 &config->client_channels);
	case OPT_CLIENT_MEMORY:
		return read_size("--client-memory", optarg,
				 &config->client_memory);
	case OPT_USER_CLIENTS:
		return read_uint("--user-clients", optarg, 1, 65536,
				 &config->user_clients);
	case OPT_USER_CHANNELS:
		return read_uint("--user-channels", optarg, 1, 65536,
				 &config->user_channels);
	case OPT_USER_MEMORY:
		return read_size("--user-memory", optarg, &config->user_memory);
	case OPT_USER_JOBS:
		return read_jobs(optarg, &config->user_rates.jobs);
	case OPT_USER_BYTES:
		return read_size("--user-bytes", optarg,
				 &config->user_rates.bytes);
	case OPT_CONFIG:
		options->file = optarg;
		return 0;
	default:
		return -EINVAL;
	}
}

/* A socket that we were started with is the place to serve. */
static int take_passed(struct wf_tools_devd_options *options)
{
	struct wf_devd_config *config = &options->config;
	char path[WF_DEVD_SOCKET_SIZE], why[128];
	int fd = wf_tools_passed_socket(path, sizeof(path), why, sizeof(why));

	if (!fd)
		return 0;
	if (fd < 0)
		return complain("%s", why);
	if (config->socket != options->socket)
		return complain("--socket %s, but a socket that listens at %s "
				"was passed",
				config->socket, path);
	memcpy(options->socket, path, sizeof(path));
	config->makes_folder = false;
	config->passed_fd = fd;
	return 0;
}

static void start_anew(struct wf_tools_devd_options *options)
{
	memset(options, 0, sizeof(*options));
	wf_devd_config_init(&options->config);
	wf_devd_config_place(&options->config, options->socket);
}

/* 0; 1: help is asked for; -EINVAL: complained. */
static int read_args(struct wf_tools_devd_options *options, int argc,
		     char **argv)
{
	int option, err = 0;

	optind = 0; /* getopt() starts anew, whatever it read before */
	while (!err && (option = getopt_long(argc, argv, "s:d:w:lvh",
					     long_options, NULL)) != -1) {
		if (reading && (option == 'h' || option == 'l' ||
				option == 's' || option == OPT_CONFIG))
			return complain("'%s' is for the command line only",
					argv[optind - 1] + 2);
		if (option == 'h')
			return 1;
		if (option == '?')
			wf_tools_near_option("weft devd", argv, long_options);
		err = read_option(options, option);
	}
	if (!err && optind < argc)
		return complain("what is '%s'?", argv[optind]);
	return err;
}

/* A device must not be without the limits that somebody wrote because of a
 * misspelt path, or because an editor or a package moves the file away for a
 * moment. Only the service starts before its file is written, and says so. */
static int read_file(struct wf_tools_devd_options *options, const char *path,
		     bool serves)
{
	int err = wf_tools_devd_file_read(path, &options->args);

	if (err == -ENOENT && !serves && !strcmp(path, SERVICE_FILE)) {
		fprintf(stderr, "weft devd: there is no %s: no options in it\n",
			path);
		return 0;
	}
	if (err)
		return complain("cannot read %s: %s", path, strerror(-err));
	reading = path;
	err = read_args(options, options->args.argc, options->args.argv);
	reading = NULL;
	return err;
}

static int read_all(struct wf_tools_devd_options *options, int argc,
		    char **argv, bool serves)
{
	struct wf_devd_config *config = &options->config;
	const char *file;
	int err;

	start_anew(options);
	err = read_args(options, argc, argv);
	file = options->file;
	if (!err && file) {
		start_anew(options);
		err = read_file(options, file, serves);
		if (!err)
			err = read_args(options, argc, argv);
	}
	if (err == 1)
		fputs(help, stdout);
	if (err)
		return err;
	if (config->depth & (config->depth - 1))
		return complain("--depth wants a power of two");
	if (!config->n_devices) {
		wf_devd_config_add(config, "weft_sva-0", WD_IOMMU_SVA);
		wf_devd_config_add(config, "weft_share-0",
				   WD_IOMMU_SHARE_DOMAIN);
		wf_devd_config_add(config, "weft_noiommu-0", WD_IOMMU_NONE);
	}
	return 0;
}

int wf_tools_devd_options_read(struct wf_tools_devd_options *options, int argc,
			       char **argv)
{
	int err = read_all(options, argc, argv, false);

	if (!err && !options->list)
		err = take_passed(options);
	if (err)
		wf_tools_devd_options_free(options);
	return err;
}

int wf_tools_devd_options_again(struct wf_tools_devd_options *options, int argc,
				char **argv)
{
	int err = read_all(options, argc, argv, true);

	if (err)
		wf_tools_devd_options_free(options);
	return err;
}

void wf_tools_devd_options_free(struct wf_tools_devd_options *options)
{
	wf_tools_devd_file_free(&options->args);
}
