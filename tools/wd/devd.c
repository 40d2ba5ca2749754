/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft devd`: runs a software device in the foreground until a signal, and
 * leaves nothing behind; or lists what programs would find.
 */
#include "tools/wd/devd.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "tools/stat/scan.h"
#include "tools/wd/devd_options.h"

static struct wf_devd *serving;

static void on_hangup(int number)
{
	(void)number;
	wf_devd_interrupt(serving);
}

static void on_signal(int number)
{
	(void)number;
	wf_devd_stop(serving);
}

static void print_all(enum wf_log_level level, const char *func, int line,
		      const char *text)
{
	(void)func;
	(void)line;
	if (level <= WF_LOG_INFO)
		fprintf(stderr, "weft devd: %s\n", text);
}

static void print_warnings(enum wf_log_level level, const char *func, int line,
			   const char *text)
{
	if (level <= WF_LOG_WARN)
		print_all(level, func, line, text);
}

static const char *scenario_of(const struct uacce_dev_info *dev)
{
	switch (dev->iommu_type) {
	case WD_IOMMU_SVA:
		return "SVA";
	case WD_IOMMU_SHARE_DOMAIN:
		return "Share Domain";
	default:
		return "NOIOMMU";
	}
}

/* Prints what `weft stat` shows of a device, if we may look into its process:
 * pages have names that may be cut short. */
static void print_counters(const struct wf_tools_scan *scan, const char *path)
{
	const struct wf_tools_page *page = NULL;

	for (size_t i = 0; i < scan->count && !page; i++) {
		const struct wf_tools_endpoint *ep = &scan->endpoints[i];

		if (wf_tools_scan_kind(ep) == WF_TOOLS_DEVICE &&
		    !strcmp(ep->page.name, path))
			page = &ep->page;
	}
	if (!page)
		return;
	printf("  in use     %llu channels, %llu bytes reserved\n",
	       (unsigned long long)wf_tools_page_get(page, "channels"),
	       (unsigned long long)wf_tools_page_get(page, "memory"));
	printf("  jobs       %llu done, %llu failed, %llu wait\n",
	       (unsigned long long)wf_tools_page_get(page, "jobs"),
	       (unsigned long long)wf_tools_page_get(page, "failed"),
	       (unsigned long long)wf_tools_page_get(page, "waiting"));
	printf("  bytes      %llu in, %llu out, %llu copied\n",
	       (unsigned long long)wf_tools_page_get(page, "bytes_in"),
	       (unsigned long long)wf_tools_page_get(page, "bytes_out"),
	       (unsigned long long)wf_tools_page_get(page, "copied_bytes"));
}

/* Keeps those that are served at @socket: nodes and devices of drivers are listed
 * wherever we look. How many there are. */
static int keep_served(struct uacce_dev_info *list, int count,
		       const char *socket)
{
	size_t len = strlen(socket);
	int kept = 0;

	for (int i = 0; i < count; i++) {
		if (!strncmp(list[i].dev_path, socket, len) &&
		    list[i].dev_path[len] == ':')
			list[kept++] = list[i];
	}
	return kept;
}

/* A socket of the command line is looked at instead of those of programs. */
static int list_devices(const struct wf_tools_devd_options *options)
{
	bool asked = options->config.socket != options->socket;
	const char *sockets =
		asked ? options->config.socket : getenv("WEFT_DEVD");
	struct wf_tools_scan scan = { 0 };
	struct uacce_dev_info *list;
	pid_t missing;
	int count;

	if (asked && setenv("WEFT_DEVD", sockets, 1)) {
		fprintf(stderr, "weft devd: %s\n", strerror(errno));
		return 1;
	}
	count = wd_list_devices(NULL, &list);
	if (count < 0) {
		fprintf(stderr, "weft devd: %s\n", strerror(-count));
		return 1;
	}
	if (asked)
		count = keep_served(list, count, sockets);
	if (!count)
		fprintf(stderr,
			"weft devd: no devices: %sno `weft devd` that this "
			"user may use%s%s\n",
			asked ? "" : "no UACCE node, and ",
			sockets ? " at " : "", sockets ? sockets : "");
	if (count && wf_tools_scan_all(&scan, NULL, 0, &missing))
		scan.count = 0; /* without /proc: no counters */
	for (int i = 0; i < count; i++) {
		struct uacce_dev_info *dev = &list[i];

		for (char *c = dev->algs; (c = strchr(c, '\n')); c++)
			*c = ' ';
		printf("%s\n", dev->name);
		printf("  path       %s\n", dev->dev_path);
		printf("  api        %s\n", dev->api);
		printf("  scenario   %s\n", scenario_of(dev));
		printf("  algorithms %s\n", dev->algs);
		printf("  channels   %d free\n", dev->available_instances);
		if (dev->node_id >= 0)
			printf("  NUMA       node %d, distance %d\n",
			       dev->node_id, dev->numa_dis);
		print_counters(&scan, dev->dev_path);
	}
	wf_tools_scan_free(&scan);
	wd_free_devices(list);
	return count ? 0 : 1;
}

/* A channel is two descriptors, three with SVA, a client two more. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void catch_signals(bool reloads)
{
	/* A second one ends it at once: a job may be taking long. */
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Without a file there is nothing to read again: SIGHUP then comes from
	 * a terminal that is closed. */
	if (reloads)
		action = (struct sigaction){ .sa_handler = on_hangup };
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Memory of clients is a file to RLIMIT_FSIZE: an error is enough. */
	signal(SIGXFSZ, SIG_IGN);
}

/* A mistake in the file changes nothing. */
static void reload(struct wf_tools_devd_options *options, int argc, char **argv)
{
	struct wf_tools_devd_options fresh;

	if (wf_tools_devd_options_again(&fresh, argc, argv)) {
		fputs("weft devd: the options stay as they were\n", stderr);
		return;
	}
	wf_devd_reload(serving, &fresh.config);
	fprintf(stderr, "weft devd: read %s again\n", fresh.file);
	/* Where it listens stays; the strings of before are not used now. */
	memcpy(fresh.socket, options->socket, sizeof(fresh.socket));
	fresh.config.socket = options->config.socket;
	wf_tools_devd_options_free(options);
	*options = fresh;
}

int wf_tools_devd_main(int argc, char **argv)
{
	struct wf_tools_devd_options options;
	struct wf_devd_stats stats;
	int err;

	err = wf_tools_devd_options_read(&options, argc, argv);
	if (err)
		return err < 0 ? 2 : 0;
	wf_base_log_set_sink(options.verbose ? print_all : print_warnings);
	if (options.list)
		return list_devices(&options);
	allow_many_files();
	err = wf_devd_open(&options.config, &serving);
	if (err == -EADDRINUSE) {
		fprintf(stderr,
			"weft devd: another one listens at %s; --socket "
			"chooses a different place\n",
			options.config.socket);
		return 1;
	}
	if (err == -EEXIST) {
		fprintf(stderr,
			"weft devd: %s is there and is no socket; --socket "
			"chooses a different place\n",
			options.config.socket);
		return 1;
	}
	if (err) {
		fprintf(stderr, "weft devd: cannot serve at %s: %s\n",
			options.config.socket, strerror(-err));
		return 1;
	}
	catch_signals(options.file);
	printf("serving %u device%s at %s\n", options.config.n_devices,
	       options.config.n_devices == 1 ? "" : "s", options.config.socket);
	/* A script may wait for this line. */
	if (fflush(stdout)) {
		fprintf(stderr, "weft devd: cannot write standard output: %s\n",
			strerror(errno));
		wf_devd_close(serving);
		return 1;
	}
	while ((err = wf_devd_run(serving)) == 1)
		reload(&options, argc, argv);
	wf_devd_stats(serving, &stats);
	wf_devd_close(serving);
	wf_tools_devd_options_free(&options);
	if (options.verbose)
		fprintf(stderr,
			"weft devd: %llu clients, %llu channels, %llu jobs, "
			"%llu refused, %llu channels given up\n",
			(unsigned long long)stats.clients,
			(unsigned long long)stats.channels,
			(unsigned long long)stats.jobs,
			(unsigned long long)stats.refused,
			(unsigned long long)stats.faults);
	return err ? 1 : 0;
}
