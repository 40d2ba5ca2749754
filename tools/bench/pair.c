/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts two workers, tells the initiator what to measure, and watches both: a
 * worker that dies, reports an error or is silent for too long ends the pair.
 * It must not call libfabric, whose state would be inherited by the children.
 */
#include "tools/bench/pair.h"

#include "base/clock.h"
#include "tools/bench/engine.h"
#include "tools/bench/floor_defs.h"
#include "tools/bench/process.h"
#include "tools/bench/proxy.h"
#include "tools/bench/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A worker whose socket was closed ends within this time. */
#define GRACE_MS 1000
#define EXPLAIN_MS 100

static const char *const roles[] = { "initiator", "responder" };

void wf_tools_pair_init(struct wf_tools_pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->controls[0] = -1;
	pair->controls[1] = -1;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The most that each direction holds, over all sizes and tests of the plan. */
static size_t most_bytes(const struct wf_tools_plan *plan)
{
	size_t most = 4096, bytes;
	unsigned t, i;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (wf_tools_test_get(t)->axis != WF_TOOLS_AXIS_SIZE)
			continue;
		for (i = 0; plan->tests[t] && i < plan->sizes[t].n; i++) {
			bytes = wf_tools_engine_slot(plan->sizes[t].v[i]);
			if (plan->verify)
				bytes *= WF_TOOLS_SPARE_OPS +
					 wf_tools_plan_window(
						 plan, t, plan->sizes[t].v[i]);
			if (bytes > most)
				most = bytes;
		}
	}
	return (most + 4095) / 4096 * 4096;
}

static unsigned most_window(const struct wf_tools_plan *plan)
{
	const struct wf_tools_sizes *sizes;
	unsigned most = 1, t;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		sizes = &plan->sizes[t];
		if (plan->tests[t] && plan->window[t] > most)
			most = plan->window[t];
		/* Each peer sends a message to the same endpoint. */
		if (plan->tests[t] &&
		    wf_tools_test_get(t)->axis == WF_TOOLS_AXIS_PEERS &&
		    sizes->v[sizes->n - 1] > most)
			most = (unsigned)sizes->v[sizes->n - 1];
	}
	return most;
}

static pid_t start_worker(const struct wf_tools_plan *plan, const char *engine,
			  const char *name, unsigned role, int control,
			  int side, int memory, const char *const *env)
{
	char flags[24], window[16], bytes[24];
	char *argv[WF_TOOLS_WORKER_ARGC + 2] = {
		[0] = "weft",
		[1] = WF_TOOLS_WORKER_COMMAND,
		[1 + WF_TOOLS_WORKER_ENGINE] = (char *)engine,
		[1 + WF_TOOLS_WORKER_NAME] = (char *)name,
		[1 + WF_TOOLS_WORKER_ROLE] = (char *)roles[role],
		[1 + WF_TOOLS_WORKER_FLAGS] = flags,
		[1 + WF_TOOLS_WORKER_WINDOW] = window,
		[1 + WF_TOOLS_WORKER_BYTES] = bytes,
	};
	struct wf_tools_process process = {
		.argv = argv,
		.cpu = plan->cpus[role],
		.netns = plan->link.over == WF_TOOLS_OVER_VETH ?
				 plan->link.namespaces[role] :
				 0,
		.fds = { -1, -1, STDERR_FILENO, control, side, memory },
		.env = env,
	};

	snprintf(flags, sizeof(flags), "-%s%s%s%s%sm%u",
		 plan->tagged ? "t" : "", plan->rewrite ? "r" : "",
		 plan->memfd ? "f" : "", plan->verify ? "v" : "",
		 plan->one_cpu ? "y" : "", plan->more);
	snprintf(window, sizeof(window), "%u", most_window(plan));
	snprintf(bytes, sizeof(bytes), "%zu", most_bytes(plan));
	if (role && plan->link.over == WF_TOOLS_OVER_HOSTS) {
		/* The server on the other host starts it, and a proxy
		 * represents it here. */
		argv[1] = "worker";
		return wf_tools_proxy_start(&plan->link.host, plan->cpus[role],
					    argv + 1, WF_TOOLS_WORKER_ARGC,
					    control, side);
	}
	return wf_tools_process_spawn(&process);
}

/* Memory without a name: nothing is left behind, whichever process dies. */
static int make_memory(void)
{
	int fd = memfd_create("weft-bench-floor", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct wf_tools_floor_memory))) {
		close(fd);
		return -errno;
	}
	return fd;
}

int wf_tools_pair_start(struct wf_tools_pair *pair,
			const struct wf_tools_plan *plan, const char *engine,
			const char *name, const char *const *env)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;
	int side[2] = { -1, -1 }, control[2] = { -1, -1 };
	int memory = -1, ret = 0;
	unsigned i;

	wf_tools_pair_init(pair);
	if (!strcmp(engine, "floor")) {
		memory = make_memory();
		if (memory < 0) {
			ret = memory;
			goto out;
		}
	}
	if (socketpair(AF_UNIX, type, 0, side)) {
		ret = -errno;
		goto out;
	}
	for (i = 0; i < 2 && !ret; i++) {
		if (socketpair(AF_UNIX, type, 0, control)) {
			ret = -errno;
			break;
		}
		pair->controls[i] = control[0];
		pair->pids[i] = start_worker(plan, engine, name, i, control[1],
					     side[i], memory, env);
		close_fd(&control[1]);
		if (pair->pids[i] < 0) {
			ret = pair->pids[i];
			pair->pids[i] = 0;
		}
	}
out:
	close_fd(&side[0]);
	close_fd(&side[1]);
	close_fd(&memory);
	if (ret) {
		wf_tools_pair_stop(pair);
		snprintf(pair->error, sizeof(pair->error),
			 "cannot start workers: %s", strerror(-ret));
	}
	return ret;
}

/* Ends both; the status of the one that ended first is the reason. */
static void end_pair(struct wf_tools_pair *pair, unsigned grace_ms,
		     int status[2])
{
	unsigned i;

	close_fd(&pair->controls[0]);
	close_fd(&pair->controls[1]);
	for (i = 0; i < 2; i++) {
		if (pair->pids[i])
			status[i] =
				wf_tools_process_end(pair->pids[i], grace_ms);
		pair->pids[i] = 0;
	}
}

static int give_up(struct wf_tools_pair *pair, int ret, const char *text)
{
	int status[2] = { 0, 0 };

	snprintf(pair->error, sizeof(pair->error), "%s", text);
	end_pair(pair, 0, status);
	return ret;
}

static int worker_died(struct wf_tools_pair *pair, unsigned which)
{
	char how[128];
	int status;

	status = wf_tools_process_end(pair->pids[which], GRACE_MS);
	pair->pids[which] = 0;
	wf_tools_process_describe(status, how, sizeof(how));
	snprintf(pair->error, sizeof(pair->error), "%s %s", roles[which], how);
	end_pair(pair, 0, (int[2]){ 0, 0 });
	return -ECHILD;
}

/* 0, a worker's own error, or -ECHILD if it ended without a report. */
static int listen_to(struct wf_tools_pair *pair, unsigned which,
		     struct wf_tools_reply *reply)
{
	ssize_t got;

	got = recv(pair->controls[which], reply, sizeof(*reply), 0);
	if (got != (ssize_t)sizeof(*reply))
		return -ECHILD;
	reply->text[sizeof(reply->text) - 1] = '\0';
	return reply->status;
}

/*
 * A worker reported an error. If the other one, @which, failed first, its
 * report or its death is the better reason: then true, with the text in *reply.
 * -EOWNERDEAD of a worker means that it only noticed.
 */
static bool is_fault_of(struct wf_tools_pair *pair, unsigned which,
			struct wf_tools_reply *reply)
{
	uint64_t deadline = wf_base_clock_ns() + EXPLAIN_MS * WF_NS_PER_MS;
	struct pollfd fd = { .fd = pair->controls[which], .events = POLLIN };
	struct wf_tools_reply other;
	char how[128];
	int ret, status;

	if (wf_tools_process_poll(&fd, 1, deadline) <= 0)
		return false;
	ret = listen_to(pair, which, &other);
	/* It may have become ready before that. */
	if (!ret && wf_tools_process_poll(&fd, 1, deadline) > 0)
		ret = listen_to(pair, which, &other);
	if (ret != -ECHILD) {
		if (ret && ret != -EOWNERDEAD)
			*reply = other;
		return ret && ret != -EOWNERDEAD;
	}
	status = wf_tools_process_end(pair->pids[which], GRACE_MS);
	pair->pids[which] = 0;
	if (!status) /* it ended only because the other one did */
		return false;
	wf_tools_process_describe(status, how, sizeof(how));
	snprintf(reply->text, sizeof(reply->text), "%s %s", roles[which], how);
	return true;
}

/* The next report of a worker; *which says whose it was. */
static int hear(struct wf_tools_pair *pair, const struct wf_tools_plan *plan,
		struct wf_tools_reply *reply, unsigned *which)
{
	/* In addition to the timed part, the worker must find the right number
	 * of messages. */
	uint64_t deadline = wf_base_clock_ns() + 8 * plan->run_ns +
			    plan->timeout_s * WF_NS_PER_S;
	struct pollfd fds[2];
	char text[128];
	unsigned i;
	int ret;

	for (i = 0; i < 2; i++) {
		fds[i].fd = pair->controls[i];
		fds[i].events = POLLIN;
		fds[i].revents = 0;
	}
	ret = wf_tools_process_poll(fds, 2, deadline);
	if (ret == -EINTR)
		return give_up(pair, ret, "stopped");
	if (ret <= 0) {
		snprintf(text, sizeof(text), "no result within %u s%s",
			 plan->timeout_s,
			 plan->link.over == WF_TOOLS_OVER_HOSTS ?
				 ": does a firewall drop other ports than that "
				 "of `weft bench --server`?" :
				 "");
		return give_up(pair, -ETIMEDOUT, text);
	}
	*which = fds[0].revents ? 0 : 1;
	ret = listen_to(pair, *which, reply);
	if (ret && (!*which || ret == -EOWNERDEAD) &&
	    is_fault_of(pair, !*which, reply))
		return give_up(pair, ret, reply->text);
	if (ret == -ECHILD)
		return worker_died(pair, *which);
	return ret ? give_up(pair, ret, reply->text) : 0;
}

int wf_tools_pair_ready(struct wf_tools_pair *pair,
			const struct wf_tools_plan *plan)
{
	struct wf_tools_reply reply;
	unsigned missing = 3, which;
	int ret;

	while (missing) {
		ret = hear(pair, plan, &reply, &which);
		if (ret)
			return ret;
		missing &= ~(1u << which);
		if (which == 0)
			memcpy(pair->about, reply.text, sizeof(pair->about));
	}
	return 0;
}

int wf_tools_pair_run(struct wf_tools_pair *pair,
		      const struct wf_tools_plan *plan, enum wf_tools_test test,
		      size_t size, double *ns)
{
	struct wf_tools_run run = {
		.test = test,
		.window = wf_tools_plan_window(plan, test, size),
		.size = size,
		.run_ns = plan->run_ns,
	};
	struct wf_tools_reply reply;
	unsigned which;
	int ret;

	if (send(pair->controls[0], &run, sizeof(run), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(run))
		return worker_died(pair, 0);
	ret = hear(pair, plan, &reply, &which);
	if (!ret)
		*ns = reply.ns;
	return ret;
}

void wf_tools_pair_stop(struct wf_tools_pair *pair)
{
	int status[2] = { 0, 0 };

	end_pair(pair, GRACE_MS, status);
}
