/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loops of `weft stat`. The terminal must be left as it was, with the last
 * table on it, however the command ends.
 */
#include "tools/stat/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/stat/keys.h"
#include "tools/stat/look.h"
#include "tools/stat/screen.h"
#include "tools/stat/view.h"

/* The first table appears soon; later ones cover the whole interval. */
#define FIRST_S 0.25
#define PLAIN_WIDTH 80

/* -- signals --------------------------------------------------------------- */

/* Signals are blocked except during the wait, so that none comes between the test
 * of these variables and the wait. */
static volatile sig_atomic_t ended, stopped;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* A window that was resized, or a job that goes on: the wait ends. */
static void on_change(int sig)
{
	(void)sig;
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(sig, &action, NULL);
}

/* *@before: the mask to wait with. */
static void take_signals(sigset_t *before, bool live)
{
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	handle(SIGINT, on_end);
	handle(SIGTERM, on_end);
	handle(SIGHUP, on_end);
	if (live) {
		sigaddset(&ours, SIGTSTP);
		sigaddset(&ours, SIGWINCH);
		sigaddset(&ours, SIGCONT);
		handle(SIGTSTP, on_stop);
		handle(SIGWINCH, on_change);
		handle(SIGCONT, on_change);
	}
	sigprocmask(SIG_BLOCK, &ours, before);
}

/* Ctrl-Z: the shell gets its terminal back until the job goes on. */
static void stop(struct wf_tools_screen *screen, struct wf_tools_keys *keys)
{
	sigset_t only, before;

	stopped = 0;
	wf_tools_screen_leave(screen);
	wf_tools_keys_close(keys);
	handle(SIGTSTP, SIG_DFL);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, &before); /* stops here */
	sigprocmask(SIG_SETMASK, &before, NULL);
	handle(SIGTSTP, on_stop);
}

/* -- tables ---------------------------------------------------------------- */

/* Writes the table of endpoints, or that of devices. */
static int write_kind(const struct wf_tools_stat_options *options,
		      const struct wf_tools_rows *rows, bool devices,
		      unsigned width, FILE *out)
{
	static const struct wf_tools_paint plain;
	size_t first = devices ? rows->endpoints : 0;
	size_t count = devices ? rows->count - first : rows->endpoints;
	const struct wf_tools_row **list = calloc(count + 1, sizeof(*list));
	struct wf_tools_sheet sheet = {
		.rows = list,
		.count = count,
		.selected = SIZE_MAX,
		.sort = options->sort,
		.width = width,
		.paint = &plain,
	};

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		list[i] = &rows->all[first + i];
	if (count && devices)
		wf_tools_devices_write(&sheet, 0, count, out);
	else if (count && options->paths)
		wf_tools_paths_write(&sheet, out);
	else if (count)
		wf_tools_endpoints_write(&sheet, false, 0, count, out);
	free(list);
	return 0;
}

static int write_tables(const struct wf_tools_stat_options *options,
			struct wf_tools_rows *rows, FILE *out)
{
	struct wf_tools_screen screen = { .width = PLAIN_WIDTH };
	int ret;

	if (isatty(STDOUT_FILENO))
		wf_tools_screen_measure(&screen);
	wf_tools_rows_sort(rows, options->sort, 1);
	ret = write_kind(options, rows, false, screen.width, out);
	if (rows->endpoints && rows->endpoints < rows->count)
		fputc('\n', out);
	if (!ret)
		ret = write_kind(options, rows, true, screen.width, out);
	return ret;
}

/* The newest scan becomes the one before. */
static int look_again(const struct wf_tools_stat_options *options,
		      struct wf_tools_scan *before, struct wf_tools_scan *now)
{
	struct wf_tools_scan next;
	int ret = wf_tools_look(options, now, &next);

	if (ret)
		return ret;
	wf_tools_scan_free(before);
	*before = *now;
	*now = next;
	return 0;
}

static int watch_tables(const struct wf_tools_stat_options *options)
{
	unsigned long left = options->count ? options->count : 1;
	struct wf_tools_scan before = { 0 }, now = { 0 };
	struct wf_tools_rows rows = { 0 };
	struct wf_tools_keys keys;
	sigset_t mask;
	int ret, seen = 0;

	take_signals(&mask, false);
	wf_tools_keys_open(&keys, false);
	ret = look_again(options, &before, &now);
	if (!ret)
		ret = wf_tools_rows_update(&rows, &now);
	while (!ret && left && !ended) {
		wf_tools_keys_wait(&keys,
				   wf_base_clock_ns() +
					   (uint64_t)(options->interval * 1e9),
				   &mask);
		if (ended)
			break;
		ret = look_again(options, &before, &now);
		if (!ret)
			ret = wf_tools_rows_update(&rows, &now);
		if (ret)
			break;
		seen |= now.count > 0;
		rows.sorted = false; /* exactly, each time */
		ret = write_tables(options, &rows, stdout);
		wf_tools_look_notes(options, &now, stdout);
		if (--left)
			putchar('\n');
		if (fflush(stdout) || ferror(stdout))
			ret = -EIO;
	}
	wf_tools_rows_free(&rows);
	wf_tools_scan_free(&before);
	wf_tools_scan_free(&now);
	if (ret && ret != -EIO)
		wf_tools_look_failed(options, ret);
	return ret ? ret : seen;
}

/* -- the live view --------------------------------------------------------- */

struct live {
	const struct wf_tools_stat_options *options;
	struct wf_tools_view view;
	struct wf_tools_screen screen;
	struct wf_tools_keys keys;
	struct wf_tools_paint paint;
	struct wf_tools_scan before, now;
	char host[64];
	bool seen;
};

static int look(struct live *live)
{
	int ret = look_again(live->options, &live->before, &live->now);

	if (ret)
		return ret;
	live->seen |= live->now.count > 0;
	return wf_tools_view_update(&live->view, &live->now);
}

static char *notes_of(const struct live *live)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	/* The view itself says that there is nothing. */
	wf_tools_look_missing(live->options, &live->now, out);
	fclose(out);
	return text;
}

static int draw(struct live *live)
{
	time_t seconds;
	char clock[16] = "", *text = NULL, *notes = notes_of(live);
	struct wf_tools_view_frame frame = {
		.paint = &live->paint,
		.host = live->host,
		.clock = clock,
		.notes = notes ? notes : "",
	};
	struct tm tm;
	size_t size;
	FILE *out;

	/* Rates need two scans. */
	out = live->view.series[0].count ? open_memstream(&text, &size) : NULL;
	if (!out) {
		free(notes);
		return live->view.series[0].count ? -ENOMEM : 0;
	}
	seconds = time(NULL);
	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	wf_tools_screen_measure(&live->screen);
	frame.width = live->screen.width;
	frame.height = live->screen.height ? live->screen.height : 24;
	wf_tools_view_draw(&live->view, &frame, out);
	if (!fclose(out))
		wf_tools_screen_draw(&live->screen, text);
	free(text);
	free(notes);
	return ferror(stdout) ? -EIO : 0;
}

/* Until the next look is due. 1: the user has seen enough. */
static int attend(struct live *live, uint64_t due, const sigset_t *mask)
{
	int ret = draw(live);

	while (!ret && !ended) {
		int key = wf_tools_keys_wait(&live->keys, due, mask);

		if (key &&
		    wf_tools_view_key(&live->view, key) == WF_TOOLS_VIEW_QUIT)
			return 1;
		if (stopped)
			stop(&live->screen, &live->keys);
		if (!key && wf_base_clock_ns() >= due)
			break;
		ret = draw(live);
	}
	return ended ? 1 : ret;
}

static uint64_t due_in(double seconds)
{
	return wf_base_clock_ns() + (uint64_t)(seconds * 1e9);
}

static int watch_live(const struct wf_tools_stat_options *options)
{
	struct live *live = calloc(1, sizeof(*live));
	double interval = options->interval;
	sigset_t mask;
	int ret;

	if (!live)
		return -ENOMEM;
	live->options = options;
	live->view.interval = interval;
	live->view.sort = options->sort;
	if (options->paths)
		live->view.page = WF_TOOLS_VIEW_PATHS;
	if (gethostname(live->host, sizeof(live->host) - 1))
		live->host[0] = 0;
	wf_tools_paint_open(&live->paint, true);
	wf_tools_keys_open(&live->keys, true);
	take_signals(&mask, true);
	ret = look(live);
	if (!ret)
		ret = attend(live,
			     due_in(interval < FIRST_S ? interval : FIRST_S),
			     &mask);
	while (!ret) {
		if (!live->view.paused)
			ret = look(live);
		if (!ret)
			ret = attend(live, due_in(live->view.interval), &mask);
	}
	wf_tools_screen_leave(&live->screen);
	wf_tools_keys_close(&live->keys);
	/* The message must stay on the terminal after we have left the
	 * other screen. */
	if (ret < 0 && ret != -EIO)
		wf_tools_look_failed(options, ret);
	if (ret > 0 && !ferror(stdout)) {
		write_tables(options, &live->view.rows, stdout);
		wf_tools_look_notes(options, &live->now, stdout);
	}
	ret = ret < 0 ? ret : live->seen;
	wf_tools_view_free(&live->view);
	wf_tools_scan_free(&live->before);
	wf_tools_scan_free(&live->now);
	free(live);
	return ret;
}

int wf_tools_watch(const struct wf_tools_stat_options *options)
{
	const char *terminal = getenv("TERM");
	bool dumb = terminal && !strcmp(terminal, "dumb");

	return options->count || dumb || !isatty(STDOUT_FILENO) ?
		       watch_tables(options) :
		       watch_live(options);
}
