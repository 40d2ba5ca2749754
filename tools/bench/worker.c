/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: opens an engine and runs the phases that it is told. The parent
 * tells the initiator what to measure, and the initiator finds out how many
 * messages fill the requested time; the responder is told of phases by the
 * initiator. It must not print: the parent does so for both.
 */
#include "tools/bench/worker.h"

#include "tools/bench/engine.h"
#include "tools/bench/plan.h"
#include "tools/bench/process.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* More than any run needs; ends the search if a clock does not advance. */
#define MAX_COUNT (1ull << 32)
/* Part of a run that goes untimed first, so that caches and pages are warm. */
#define WARM_PART 8

struct worker {
	const char *name; /* of the engine that is open */
	const struct wf_tools_engine_ops *ops;
	void *engine;
	struct wf_tools_engine_config config;
	char error[256]; /* of opening one */
};

static const struct {
	const char *name;
	const struct wf_tools_engine_ops *ops;
	enum fi_wait_obj wait_obj;
} engines[] = {
	{ "fabric", &wf_tools_engine_fabric, FI_WAIT_NONE },
	{ "floor", &wf_tools_engine_floor, FI_WAIT_NONE },
	{ "remote", &wf_tools_engine_remote, FI_WAIT_NONE },
	{ "peers", &wf_tools_engine_peers, FI_WAIT_NONE },
	{ "wake", &wf_tools_engine_wake, FI_WAIT_UNSPEC },
	{ "wake-fd", &wf_tools_engine_wake, FI_WAIT_FD },
	{ "socket", &wf_tools_engine_socket, FI_WAIT_NONE },
};

#define N_ENGINES (sizeof(engines) / sizeof(engines[0]))

static int reply(int32_t status, uint64_t count, double ns, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

static int reply(int32_t status, uint64_t count, double ns, const char *format,
		 ...)
{
	struct wf_tools_reply message = {
		.status = status,
		.count = count,
		.ns = ns,
	};
	va_list args;

	va_start(args, format);
	vsnprintf(message.text, sizeof(message.text), format, args);
	va_end(args);
	if (send(WF_TOOLS_FD_CONTROL, &message, sizeof(message),
		 MSG_NOSIGNAL) != (ssize_t)sizeof(message))
		return -EPIPE;
	return status;
}

/* 0, -ENODATA if the other end closed properly, or -errno. */
static int receive(int fd, void *message, size_t len, int flags)
{
	ssize_t got;

	do {
		got = recv(fd, message, len, flags);
	} while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return -ENODATA;
	return got == (ssize_t)len ? 0 : -EPROTO;
}

static int say(const void *message, size_t len)
{
	ssize_t sent = send(WF_TOOLS_FD_SIDE, message, len, MSG_NOSIGNAL);

	return sent == (ssize_t)len ? 0 : -EPIPE;
}

/* Both sides do this at the same time. Only one engine is open at a time: an
 * open engine would have to be polled as well. */
static int open_engine(struct worker *w, const char *name)
{
	size_t i;

	for (i = 0; i < N_ENGINES && strcmp(engines[i].name, name); i++)
		;
	if (i == N_ENGINES)
		return -EINVAL;
	if (w->engine)
		w->ops->close(w->engine);
	w->engine = NULL;
	w->name = engines[i].name;
	w->ops = engines[i].ops;
	w->config.wait_obj = engines[i].wait_obj;
	return w->ops->open(&w->config, &w->engine, w->error, sizeof(w->error));
}

/* Whether the open engine runs this test; floors and sockets run all. */
static bool plays(const struct worker *w, uint32_t test)
{
	return w->ops == &wf_tools_engine_floor ||
	       w->ops == &wf_tools_engine_socket ||
	       !strcmp(w->name, wf_tools_test_get(test)->engine);
}

static const char *error_of(const struct worker *w)
{
	return w->engine ? w->ops->error(w->engine) : w->error;
}

/* The engine of a test, here and at the responder. */
static int lead_open(struct worker *w, uint32_t test)
{
	const struct wf_tools_phase phase = { .test = test };

	if (plays(w, test))
		return 0;
	if (say(&phase, sizeof(phase)))
		return -EOWNERDEAD;
	return open_engine(w, wf_tools_test_get(test)->engine);
}

/* One phase with the responder; *timing includes the rewriting of both. */
static int lead_phase(struct worker *w, const struct wf_tools_phase *phase,
		      struct wf_tools_timing *timing)
{
	struct wf_tools_done done;
	int ret;

	ret = w->ops->prepare(w->engine, phase);
	if (ret)
		return ret;
	ret = say(phase, sizeof(*phase));
	if (!ret)
		ret = receive(WF_TOOLS_FD_SIDE, &done, sizeof(done), 0);
	if (ret || done.status)
		return -EOWNERDEAD;
	memset(timing, 0, sizeof(*timing));
	ret = w->ops->play(w->engine, phase, timing);
	if (ret)
		return ret;
	while ((ret = receive(WF_TOOLS_FD_SIDE, &done, sizeof(done),
			      MSG_DONTWAIT)) == -EAGAIN) {
		ret = w->ops->progress(w->engine);
		if (ret)
			return ret;
	}
	if (ret || done.status)
		return -EOWNERDEAD;
	timing->rewrite_ns += done.rewrite_ns;
	timing->value += done.value;
	return 0;
}

/* A latency message goes there and back: two messages in the measured time. */
static double ns_each(const struct wf_tools_phase *phase,
		      const struct wf_tools_timing *timing)
{
	double ns = (double)timing->ns - (double)timing->rewrite_ns;

	if (wf_tools_test_get(phase->test)->own_value)
		return timing->value;
	if (phase->test == WF_TOOLS_LATENCY)
		ns /= 2;
	return ns / (double)phase->count;
}

static void set_count(struct wf_tools_phase *phase, double count)
{
	uint64_t unit = phase->window;
	uint64_t whole = count < 1 ? 1 : (uint64_t)count;

	if (count > (double)MAX_COUNT)
		whole = MAX_COUNT;
	phase->count = (whole + unit - 1) / unit * unit;
	phase->warm = (phase->count / WARM_PART + unit - 1) / unit * unit;
}

/* Enough messages that a single task switch cannot dominate their time, and few
 * enough that a network that loses some does not take minutes for them. */
static double first_count(uint64_t size)
{
	double count = (double)(1 << 20) / (double)size;

	return count < 2 ? 2 : count > 32 ? 32 : count;
}

/*
 * Increases the count until the timed part lasts as requested. The first phases
 * also connect the two sides and fault in pages, and a task switch may
 * interrupt any phase: a phase counts only if the one before it predicted its
 * length, not if it was long by accident.
 */
static int measure(struct worker *w, const struct wf_tools_run *run)
{
	struct wf_tools_phase phase = {
		.test = run->test,
		.window = run->window,
		.size = run->size,
	};
	double want = (double)run->run_ns, spent = 0, factor;
	struct wf_tools_timing timing;
	unsigned fixed = wf_tools_test_get(run->test)->fixed;
	bool foretold = false;
	int ret, tries;

	ret = lead_open(w, run->test);
	if (ret)
		return ret;
	set_count(&phase, fixed ? fixed : first_count(run->size));
	for (tries = 0; tries < 24; tries++) {
		ret = lead_phase(w, &phase, &timing);
		if (ret)
			return ret;
		if (fixed)
			break;
		spent += (double)timing.ns;
		if (foretold && (double)timing.ns > want / 2)
			break;
		/* On a busy machine no prediction is right: stop here. */
		if (spent > 4 * want)
			break;
		factor = want / ((double)timing.ns + 1);
		/* Small counts say little about the time of one message. */
		foretold = factor < 16;
		factor = foretold ? factor : 16;
		if ((double)phase.count * factor > (double)MAX_COUNT)
			break;
		set_count(&phase, (double)phase.count * factor);
	}
	return reply(0, phase.count, ns_each(&phase, &timing), "%s",
		     w->ops->describe(w->engine));
}

static int lead(struct worker *w)
{
	struct wf_tools_run run;
	int ret;

	for (;;) {
		ret = receive(WF_TOOLS_FD_CONTROL, &run, sizeof(run), 0);
		if (ret)
			return ret == -ENODATA ? 0 : ret;
		ret = measure(w, &run);
		if (ret == -EOWNERDEAD)
			return reply(ret, 0, 0, "lost the responder (%m)");
		if (ret)
			return reply(ret, 0, 0, "%s", error_of(w));
	}
}

static int follow(struct worker *w)
{
	struct wf_tools_timing timing;
	struct wf_tools_phase phase;
	struct wf_tools_done done;
	int ret;

	for (;;) {
		ret = receive(WF_TOOLS_FD_SIDE, &phase, sizeof(phase), 0);
		if (ret)
			return ret == -ENODATA ? 0 : ret;
		if (phase.test >= WF_TOOLS_TESTS)
			return -EPROTO;
		if (!phase.count) {
			ret = open_engine(
				w, wf_tools_test_get(phase.test)->engine);
			if (ret)
				return reply(ret, 0, 0, "%s", error_of(w));
			continue;
		}
		memset(&done, 0, sizeof(done));
		memset(&timing, 0, sizeof(timing));
		ret = w->ops->prepare(w->engine, &phase);
		if (!ret && say(&done, sizeof(done)))
			return -EPIPE;
		if (!ret)
			ret = w->ops->play(w->engine, &phase, &timing);
		if (ret)
			return reply(ret, 0, 0, "%s", error_of(w));
		done.value = timing.value;
		done.rewrite_ns = timing.rewrite_ns;
		if (say(&done, sizeof(done)))
			return -EPIPE;
	}
}

static int read_arguments(struct worker *w, int argc, char **argv)
{
	const char *flags;

	if (argc != WF_TOOLS_WORKER_ARGC)
		return -EINVAL;
	flags = argv[WF_TOOLS_WORKER_FLAGS];
	w->config = (struct wf_tools_engine_config){
		.name = argv[WF_TOOLS_WORKER_NAME],
		.initiator = !strcmp(argv[WF_TOOLS_WORKER_ROLE], "initiator"),
		.tagged = strchr(flags, 't'),
		.rewrite = strchr(flags, 'r'),
		.memfd = strchr(flags, 'f'),
		.verify = strchr(flags, 'v'),
		.yield = strchr(flags, 'y'),
		.more = strchr(flags, 'm') ?
				(unsigned)atoi(strchr(flags, 'm') + 1) :
				0,
		.window = (unsigned)atoi(argv[WF_TOOLS_WORKER_WINDOW]),
		.bytes = strtoull(argv[WF_TOOLS_WORKER_BYTES], NULL, 10),
	};
	return w->config.window && w->config.bytes ? 0 : -EINVAL;
}

int wf_tools_worker_main(int argc, char **argv)
{
	struct worker worker = { 0 };
	int ret;

	if (read_arguments(&worker, argc, argv)) {
		fputs("weft: bench-worker is started by `weft bench`\n",
		      stderr);
		return 2;
	}
	wf_tools_process_follow();
	ret = open_engine(&worker, argv[WF_TOOLS_WORKER_ENGINE]);
	if (ret) {
		reply(ret, 0, 0, "%s", worker.error);
		return 1;
	}
	ret = reply(0, 0, 0, "%s", worker.ops->describe(worker.engine));
	if (!ret)
		ret = worker.config.initiator ? lead(&worker) : follow(&worker);
	/* After an error the state of the provider is unknown: just exit. */
	if (!ret)
		worker.ops->close(worker.engine);
	return ret ? 1 : 0;
}
