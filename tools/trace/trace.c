/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft trace`: reads options, records for a while, and writes a file.
 */
#include "tools/trace/trace.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/clock.h"
#include "tools/near.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/trace/chrome.h"

#define MOST 200000
#define LONGEST_MS 3600000

static const struct option long_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "time", required_argument, NULL, 't' },
	{ "most", required_argument, NULL, 'm' },
	{ "pid", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: weft trace [OPTIONS] [PID ...]\n"
	"\n"
	"Records what the weft endpoints of these processes do (without PID, of "
	"all that\n"
	"you may look into), and writes a timeline for https://ui.perfetto.dev "
	"or\n"
	"chrome://tracing: messages with their protocol, size and tag, arrows "
	"from each\n"
	"send to its receive, operations that wait for a peer, sleep and "
	"wake-ups, and\n"
	"when each endpoint polls.\n"
	"\n"
	"Processes need no preparation. Recording costs them some nanoseconds a "
	"message,\n"
	"and nothing before and afterwards.\n"
	"\n"
	"  -o, --output FILE  where to write; the default is weft-trace.json\n"
	"  -t, --time TIME    how long to record, as 500ms or 2s (1s), or until "
	"Ctrl-C\n"
	"  -m, --most N       as many events of an endpoint, then no more "
	"(200000)\n"
	"  -p, --pid PID,...  the same as PID behind the options\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Exit status: 0 if the file was written, 1 if there is no endpoint or "
	"something\n"
	"failed, 2 for a wrong command line.\n";

struct settings {
	const char *output;
	uint64_t time_ms;
	unsigned long most;
	struct wf_tools_pids pids;
};

static volatile sig_atomic_t interrupted;

#define complain(...) wf_tools_complain("trace", __VA_ARGS__)

static int read_time(struct settings *s, const char *text)
{
	if (wf_tools_time_read(text, &s->time_ms) || !s->time_ms ||
	    s->time_ms > LONGEST_MS)
		return complain("--time wants 1ms to 1h, not '%s'", text);
	return 0;
}

static int read_most(struct settings *s, const char *text)
{
	if (wf_tools_number_read(text, &s->most))
		return complain("--most wants a number from 1 on, not '%s'",
				text);
	return 0;
}

static int read_options(struct settings *s, int argc, char **argv, bool *helped)
{
	int c;

	while ((c = getopt_long(argc, argv, "o:t:m:p:h", long_options, NULL)) !=
	       -1) {
		int err = 0;

		switch (c) {
		case 'o':
			s->output = optarg;
			break;
		case 't':
			err = read_time(s, optarg);
			break;
		case 'm':
			err = read_most(s, optarg);
			break;
		case 'p':
			err = wf_tools_pids_read(&s->pids, "trace", optarg);
			break;
		case 'h':
			fputs(help, stdout);
			*helped = true;
			return 0;
		default:
			wf_tools_near_option("weft trace", argv, long_options);
			err = -EINVAL;
			break;
		}
		if (err)
			return err;
	}
	for (; optind < argc; optind++) {
		if (wf_tools_pids_read(&s->pids, "trace", argv[optind]))
			return -EINVAL;
	}
	return 0;
}

static void interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

struct search {
	struct wf_tools_capture *capture;
	bool denied; /* there are processes that we may not look into */
};

static int visit(void *arg, pid_t pid)
{
	struct search *search = arg;
	int ret = wf_tools_capture_add(search->capture, pid);

	search->denied |= ret == -EACCES;
	return ret == -ESRCH || ret == -EACCES ? 0 : ret;
}

static int find_anyone(struct wf_tools_capture *capture)
{
	struct search search = { .capture = capture };
	int ret = wf_tools_proc_all(visit, &search);

	if (ret)
		return complain("cannot look at processes: %s", strerror(-ret));
	if (capture->count)
		return 0;
	return complain("no process here has a weft endpoint%s",
			search.denied ? ", but there are processes that you "
					"may not look into" :
					"");
}

static int find_all(const struct settings *s, struct wf_tools_capture *capture)
{
	if (!s->pids.count)
		return find_anyone(capture);
	for (size_t i = 0; i < s->pids.count; i++) {
		size_t before = capture->count;
		int ret = wf_tools_capture_add(capture, s->pids.all[i]);

		if (ret == -ESRCH)
			return complain("there is no process %d",
					(int)s->pids.all[i]);
		if (ret)
			return complain("cannot look into process %d: %s",
					(int)s->pids.all[i], strerror(-ret));
		if (capture->count == before)
			complain("process %d has no weft endpoint",
				 (int)s->pids.all[i]);
	}
	return capture->count ? 0 : -ENOENT;
}

/* An endpoint looks whether somebody records when it looks at the clock. */
static void tell_silent(const struct wf_tools_capture *capture)
{
	for (size_t i = 0; i < capture->count; i++) {
		const struct wf_tools_traced *t = &capture->all[i];

		if (!t->count && !t->lost)
			complain("%s of process %d (%s) recorded nothing: it "
				 "slept or polled fewer than 32 times",
				 t->name, (int)t->process.pid,
				 t->process.command);
	}
}

/* A job that hangs looks like this; but it may be at work, too, or a part of a
 * job. */
static void tell_why(const struct settings *s)
{
	char pid[16] = "";

	if (s->pids.count == 1)
		snprintf(pid, sizeof(pid), " %d", (int)s->pids.all[0]);
	complain("no message went from one of them to another; if it hangs: "
		 "weft why%s",
		 pid);
}

static int write_file(const struct settings *s,
		      struct wf_tools_capture *capture)
{
	struct wf_tools_arrows arrows;
	struct wf_tools_output out = { 0 };
	size_t events = 0, lost = 0;
	int ret;

	if (wf_tools_arrows_find(&arrows, capture))
		return complain("not enough memory");
	ret = wf_tools_output_open(&out, s->output);
	if (!ret) {
		wf_tools_chrome_write(capture, &arrows, out.file);
		ret = wf_tools_output_close(&out);
	}
	if (ret) {
		wf_tools_arrows_free(&arrows);
		return complain("cannot write %s: %s", s->output,
				strerror(-ret));
	}
	for (size_t i = 0; i < capture->count; i++) {
		events += capture->all[i].count;
		lost += capture->all[i].lost;
	}
	printf("%s: %zu events of %zu endpoints, %zu arrows", s->output, events,
	       capture->count, arrows.count);
	if (lost)
		printf("; %zu events were not kept", lost);
	puts("");
	tell_silent(capture);
	if (!arrows.count)
		tell_why(s);
	wf_tools_arrows_free(&arrows);
	return 0;
}

int wf_tools_trace_main(int argc, char **argv)
{
	struct settings s = {
		.output = "weft-trace.json",
		.time_ms = 1000,
		.most = MOST,
	};
	struct wf_tools_capture capture = { 0 };
	bool helped = false;
	int ret;

	if (read_options(&s, argc, argv, &helped))
		return 2;
	if (helped)
		return 0;
	capture.most = s.most;
	ret = find_all(&s, &capture);
	if (!ret) {
		signal(SIGINT, interrupt);
		signal(SIGTERM, interrupt);
		ret = wf_tools_capture_run(&capture, s.time_ms * WF_NS_PER_MS,
					   &interrupted);
		if (ret)
			complain("not enough memory");
		else
			ret = write_file(&s, &capture);
	}
	wf_tools_capture_free(&capture);
	return ret ? 1 : 0;
}
