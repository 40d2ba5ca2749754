/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft stat`: reads options, looks again and again, and shows. It must leave
 * the terminal as it was, with the last table on it.
 */
#include "tools/stat/stat.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/stat/dump.h"
#include "tools/stat/keys.h"
#include "tools/stat/live.h"

#define MAX_PIDS 256
#define PLAIN_WIDTH 80
#define MIN_WIDTH 60
#define LONGEST_S 86400

enum { OPT_JSON = 256 };

static const struct option long_options[] = {
	{ "count", required_argument, NULL, 'n' },
	{ "interval", required_argument, NULL, 'i' },
	{ "pid", required_argument, NULL, 'p' },
	{ "sort", required_argument, NULL, 's' },
	{ "paths", no_argument, NULL, 'P' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft stat [OPTIONS]\n"
	"\n"
	"Shows what the weft endpoints of this machine are doing: a line for "
	"each,\n"
	"busiest first, until q or Ctrl-C; one table if output is no terminal.\n"
	"Nothing is asked of the processes: counters are read from their "
	"memory.\n"
	"\n"
	"  -n, --count N       as many tables, then exit\n"
	"  -i, --interval S    seconds over which is counted (1), 0.1 or more\n"
	"  -p, --pid PID,...   only endpoints of these processes\n"
	"  -s, --sort KEY      bytes (the default), messages, unexpected, "
	"sleeps,\n"
	"                      peers or pid\n"
	"  -P, --paths         for each endpoint a table of messages and bytes "
	"by path\n"
	"      --json          every counter once, as JSON, without waiting\n"
	"  -h, --help          print this and exit\n"
	"\n"
	"Columns, the later ones on wide terminals only:\n"
	"  PEERS     connected to or from       OUT/s, IN/s  messages a second\n"
	"  UNEXP     messages without receive   OUT-B, IN-B  their bytes a "
	"second\n"
	"  SLEEP/s   went to sleep              NO-CMA       channels where CMA "
	"was\n"
	"  RMA/s     writes and reads                        refused\n"
	"  ATOM/s    atomics                    RING-B/s, CMA-B/s  bytes by "
	"path\n"
	"  PEND      waiting for room or peer   LOST         peers that went "
	"away\n"
	"  NET-B/s   bytes by packets           RETX/s       packets sent "
	"again\n"
	"  RTT-ns    round trip of the last peer heard by packets\n"
	"\n"
	"Devices of `weft devd` have a table of their own: CHANS open channels,\n"
	"WAIT jobs not done yet, JOBS/s, IN-B and OUT-B bytes taken and made a\n"
	"second, FAILED jobs with an error, COPY-B bytes copied (SVA), INTR/s,\n"
	"MEMORY reserved bytes, REFUSED channels, FAULTS channels given up.\n"
	"\n"
	"Exit status: 0 if an endpoint or device was seen, 1 if there was none or "
	"something\n"
	"failed, 2 for a wrong command line.\n";

struct settings {
	unsigned long count; /* 0: until interrupted */
	double interval;
	pid_t pids[MAX_PIDS];
	size_t n_pids;
	enum wf_tools_quantity sort;
	bool paths;
	bool json;
};

static volatile sig_atomic_t interrupted;

/* -- options --------------------------------------------------------------- */

static int complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
	va_list args;

	fputs("weft stat: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -EINVAL;
}

static int read_count(struct settings *s, const char *text)
{
	char *end;

	errno = 0;
	s->count = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !s->count)
		return complain("--count wants a number from 1 on, not '%s'",
				text);
	return 0;
}

static int read_interval(struct settings *s, const char *text)
{
	char *end;

	s->interval = strtod(text, &end);
	if (end == text || *end ||
	    !(s->interval >= 0.1 && s->interval <= LONGEST_S))
		return complain("--interval wants seconds from 0.1 to %d, not "
				"'%s'",
				LONGEST_S, text);
	return 0;
}

static int read_pids(struct settings *s, const char *text)
{
	for (;;) {
		char *end;
		long pid = strtol(text, &end, 10);

		if (end == text || pid < 1 || pid > INT32_MAX ||
		    (*end && *end != ','))
			return complain("--pid wants numbers of processes like "
					"123,456, not '%s'",
					text);
		if (s->n_pids == MAX_PIDS)
			return complain("--pid takes at most %d", MAX_PIDS);
		s->pids[s->n_pids++] = (pid_t)pid;
		if (!*end)
			return 0;
		text = end + 1;
	}
}

static int read_sort(struct settings *s, const char *text)
{
	static const struct {
		const char *word;
		enum wf_tools_quantity key;
	} keys[] = {
		{ "bytes", WF_TOOLS_OUT_BYTES },
		{ "messages", WF_TOOLS_OUT },
		{ "unexpected", WF_TOOLS_UNEXPECTED },
		{ "sleeps", WF_TOOLS_SLEEPS },
		{ "peers", WF_TOOLS_PEERS },
		{ "pid", WF_TOOLS_QUANTITIES },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(text, keys[i].word)) {
			s->sort = keys[i].key;
			return 0;
		}
	}
	return complain("--sort is bytes, messages, unexpected, sleeps, peers "
			"or pid, not '%s'",
			text);
}

/* 0, 1 when help was printed, -EINVAL. */
static int read_options(struct settings *s, int argc, char **argv)
{
	int c, ret = 0;

	*s = (struct settings){ .interval = 1, .sort = WF_TOOLS_OUT_BYTES };
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
			ret = read_pids(s, optarg);
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
		case 'h':
			fputs(help, stdout);
			return 1;
		default: /* getopt has said what is wrong */
			return complain("`weft stat --help` lists the options");
		}
	}
	if (!ret && optind < argc)
		ret = complain("'%s' is no option; processes are named with "
			       "--pid",
			       argv[optind]);
	return ret;
}

/* -- looking --------------------------------------------------------------- */

static void interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

static int look(const struct settings *s, struct wf_tools_scan *scan)
{
	pid_t missing;
	int ret = wf_tools_scan_all(scan, s->pids, s->n_pids, &missing);

	if (ret) {
		complain("cannot look for endpoints: %s", strerror(-ret));
		return ret;
	}
	if (missing && s->n_pids == 1) {
		complain("there is no process %d", (int)missing);
		wf_tools_scan_free(scan);
		return -ESRCH;
	}
	return 0;
}

/* What a reader must know to judge what was shown. */
static void write_notes(const struct settings *s,
			const struct wf_tools_scan *scan, FILE *out)
{
	if (!scan->count)
		fprintf(out, "no endpoint or device of weft is open%s\n",
			s->n_pids ? " in that process" : " here");
	if (scan->elsewhere)
		fprintf(out,
			"%u endpoint%s of other users or containers %s not "
			"shown: look as their user or as root\n",
			scan->elsewhere, scan->elsewhere == 1 ? "" : "s",
			scan->elsewhere == 1 ? "is" : "are");
	if (scan->denied && s->n_pids)
		fprintf(out,
			"%u process%s may not be looked into: look as %s user "
			"or as root\n",
			scan->denied, scan->denied == 1 ? "" : "es",
			scan->denied == 1 ? "its" : "their");
	if (scan->unsound)
		fprintf(out, "%u page%s of counters left out; process %d: %s\n",
			scan->unsound, scan->unsound == 1 ? "" : "s",
			(int)scan->unsound_pid, scan->unsound_why);
}

/* -- showing --------------------------------------------------------------- */

struct screen {
	bool terminal;
	unsigned width;
	unsigned height; /* 0: no limit */
	unsigned lines;	 /* of the last table, to be written over */
	bool asked;	 /* for a number of tables: one below the other */
};

static void measure(struct screen *screen)
{
	struct winsize size = { 0 };

	screen->width = PLAIN_WIDTH;
	screen->height = 0;
	if (!screen->terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	if (size.ws_col)
		screen->width =
			size.ws_col < MIN_WIDTH ? MIN_WIDTH : size.ws_col;
	screen->height = size.ws_row;
}

/* In one piece, over the last one if this is a terminal. Lines that are too
 * long wrapped would spoil the count, so they are cut. */
static void put(struct screen *screen, const char *text)
{
	bool over = screen->terminal && !screen->asked;

	if (over && screen->lines)
		printf("\033[%uA\r", screen->lines);
	screen->lines = 0;
	while (*text) {
		size_t len = strcspn(text, "\n");
		size_t most = over && len > screen->width ? screen->width : len;

		printf("%.*s%s\n", (int)most, text, over ? "\033[K" : "");
		text += len + (text[len] == '\n');
		screen->lines++;
		if (over && screen->height &&
		    screen->lines + 1 >= screen->height)
			break;
	}
	if (over)
		fputs("\033[J", stdout);
	fflush(stdout);
}

static int show(const struct settings *s, struct screen *screen,
		const struct wf_tools_scan *before, struct wf_tools_scan *now)
{
	struct wf_tools_live live = {
		.before = before,
		.now = now,
		.sort = s->sort,
	};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	measure(screen);
	live.width = screen->width;
	/* Notes take a line or two, and the cursor one. */
	if (screen->height > 6 && !screen->asked)
		live.height = screen->height - 4;
	wf_tools_live_sort(&live);
	if (wf_tools_live_endpoints(&live) && s->paths)
		wf_tools_paths_write(&live, out);
	else if (wf_tools_live_endpoints(&live))
		wf_tools_live_write(&live, out);
	if (wf_tools_live_endpoints(&live) &&
	    wf_tools_live_endpoints(&live) < now->count)
		fputc('\n', out);
	wf_tools_devices_write(&live, out);
	write_notes(s, now, out);
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	put(screen, text);
	free(text);
	return 0;
}

/* 1 when an endpoint was seen, 0 when not, -errno. */
static int watch(const struct settings *s)
{
	struct screen screen = {
		.terminal = isatty(STDOUT_FILENO),
		.asked = s->count,
	};
	unsigned long left = s->count;
	struct wf_tools_scan before, now;
	struct wf_tools_keys keys;
	bool seen = false;
	int ret;

	if (!left && !screen.terminal)
		left = 1;
	ret = look(s, &before);
	if (ret)
		return ret;
	wf_tools_keys_open(&keys, screen.terminal && !screen.asked);
	while (!ret && wf_tools_keys_wait(&keys, s->interval, &interrupted)) {
		ret = look(s, &now);
		if (ret)
			break;
		seen |= now.count;
		ret = show(s, &screen, &before, &now);
		wf_tools_scan_free(&before);
		before = now;
		if (ferror(stdout))
			ret = -EIO;
		if (left && !--left)
			break;
		if (!ret && screen.asked)
			putchar('\n');
	}
	wf_tools_keys_close(&keys);
	wf_tools_scan_free(&before);
	return ret ? ret : seen;
}

static int dump(const struct settings *s)
{
	struct wf_tools_scan scan;
	int ret = look(s, &scan);

	if (ret)
		return ret;
	wf_tools_dump_json(&scan, stdout);
	if (!scan.count)
		write_notes(s, &scan, stderr);
	ret = scan.count > 0;
	wf_tools_scan_free(&scan);
	return ret;
}

int wf_tools_stat_main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = interrupt };
	struct settings settings;
	int ret = read_options(&settings, argc, argv);

	if (ret)
		return ret < 0 ? 2 : 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	ret = settings.json ? dump(&settings) : watch(&settings);
	return ret > 0 ? 0 : 1;
}
