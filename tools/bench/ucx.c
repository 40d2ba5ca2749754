/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drives ucx_perftest. Client and server read their tests from a pipe instead
 * of a batch file (-b), so that one pair of processes serves a whole repetition
 * and sleeps between its runs. It must not tune UCX beyond keeping it on the
 * node, or off it between hosts, and uses UCX_TLS if the user has set it.
 */
#include "tools/bench/ucx.h"

#include "base/clock.h"
#include "tools/bench/control_defs.h"
#include "tools/bench/count.h"
#include "tools/bench/process.h"
#include "tools/bench/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAM "ucx_perftest"
#define DIGITS "0123456789"
#define VERSION 24	 /* bytes of " 1.20.1" */
#define ROW "weft-bench" /* the test's name, first in its line of results */

enum { CLIENT, SERVER };

void wf_tools_ucx_init(struct wf_tools_ucx *ucx)
{
	memset(ucx, 0, sizeof(*ucx));
	ucx->orders[CLIENT] = -1;
	ucx->orders[SERVER] = -1;
	ucx->output = -1;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool is_installed(void)
{
	const char *path = getenv("PATH");
	char *dirs, *dir, *rest, file[4096];
	bool found = false;

	dirs = strdup(path ? path : "/usr/bin:/bin");
	rest = dirs;
	while (dirs && !found && (dir = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/" PROGRAM, *dir ? dir : ".");
		found = !access(file, X_OK);
	}
	free(dirs);
	return found;
}

/* The kernel chooses one; it is free for the server a moment later. */
static int free_port(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(addr);
	int fd, ret;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (!ret)
		ret = getsockname(fd, (struct sockaddr *)&addr, &len);
	ret = ret ? -errno : ntohs(addr.sin_port);
	close(fd);
	return ret;
}

/* Looks for a listener without connecting, because the server accepts only
 * once. */
static bool is_listening(const char *table, int port)
{
	unsigned local, state;
	char line[512];
	bool found = false;
	FILE *in;

	in = fopen(table, "re");
	if (!in)
		return false;
	while (!found && fgets(line, sizeof(line), in))
		found = sscanf(line,
			       " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x",
			       &local, &state) == 2 &&
			state == 0x0a && (int)local == port;
	fclose(in);
	return found;
}

static int wait_listening(int port)
{
	unsigned ms;
	int ret;

	for (ms = 0; ms < 3000; ms++) {
		if (is_listening("/proc/net/tcp", port) ||
		    is_listening("/proc/net/tcp6", port))
			return 0;
		ret = wf_tools_process_poll(NULL, 0,
					    wf_base_clock_ns() + WF_NS_PER_MS);
		if (ret < 0)
			return ret;
	}
	return -ETIMEDOUT;
}

/* Not by shared memory between hosts: two of them may be on one machine. */
static const char *transports(const struct wf_tools_plan *plan)
{
	const char *tls = getenv("UCX_TLS");

	if (tls)
		return tls;
	return plan->server || plan->link.over == WF_TOOLS_OVER_HOSTS ?
		       "^sm" :
		       "sm,self";
}

/* The server is number 1 and gets the second CPU, as a responder does. Returns
 * the pid, with the pipe for its commands in *orders, or -errno. */
static pid_t start_one(const struct wf_tools_plan *plan, int which, int port,
		       const char *host, int output, int *orders)
{
	const char *const env[] = { "UCX_TLS", transports(plan), NULL };
	char number[16];
	char *argv[] = { PROGRAM, "-b",		"/dev/fd/3", "-p",
			 number,  "-t",		"tag_lat",   "-f",
			 "-v",	  (char *)host, NULL };
	struct wf_tools_process process = {
		.path = PROGRAM,
		.argv = argv,
		.cpu = plan->cpus[which],
		.fds = { -1, which == CLIENT ? output : -1, output, -1, -1,
			 -1 },
		.env = env,
	};
	int ends[2];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", port);
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	process.fds[3] = ends[0];
	pid = wf_tools_process_spawn(&process);
	close(ends[0]);
	if (pid < 0)
		close(ends[1]);
	else
		*orders = ends[1];
	return pid;
}

pid_t wf_tools_ucx_serve(const struct wf_tools_plan *plan, int output,
			 int *port, int *orders)
{
	pid_t pid;
	int ret;

	if (!is_installed())
		return -ENOENT;
	*port = free_port();
	if (*port < 0)
		return *port;
	pid = start_one(plan, SERVER, *port, NULL, output, orders);
	if (pid < 0)
		return pid;
	ret = wait_listening(*port);
	if (!ret)
		return pid;
	close_fd(orders);
	wf_tools_process_end(pid, 0);
	return ret;
}

static int give_up(struct wf_tools_ucx *ucx, int ret, const char *text)
{
	/* UCX's own message says more than we can. */
	if (!ucx->error[0])
		snprintf(ucx->error, sizeof(ucx->error), "%s", text);
	wf_tools_ucx_stop(ucx);
	return ret;
}

/* The server on the other host: a proxy forwards its commands. */
static pid_t serve_there(struct wf_tools_ucx *ucx,
			 const struct wf_tools_plan *plan)
{
	uint64_t deadline = wf_base_clock_ns() + plan->timeout_s * WF_NS_PER_S;
	struct wf_tools_reply reply;
	struct pollfd fd = { .events = POLLIN };
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = wf_tools_proxy_start(&plan->link.host, plan->cpus[SERVER],
				   (char *const[]){ "ucx" }, 1, ends[1], -1);
	close(ends[1]);
	fd.fd = ends[0];
	if (pid < 0 || wf_tools_process_poll(&fd, 1, deadline) <= 0 ||
	    recv(ends[0], &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply) ||
	    reply.status) {
		if (pid > 0 && fd.revents)
			snprintf(ucx->error, sizeof(ucx->error), "%.255s",
				 reply.text);
		if (pid > 0)
			wf_tools_process_end(pid, 0);
		close(ends[0]);
		return -EREMOTEIO;
	}
	reply.text[sizeof(reply.text) - 1] = '\0';
	ucx->port = atoi(reply.text);
	ucx->orders[SERVER] = ends[0];
	return pid;
}

/* "1.20.1" of "# Library version: 1.20.1" or "# Version 1.13.1"; empty if UCX
 * does not say it. */
static void find_version(char version[VERSION])
{
	FILE *info = popen("ucx_info -v 2>/dev/null", "re");
	char line[256], *at = NULL;

	version[0] = '\0';
	while (info && !at && fgets(line, sizeof(line), info)) {
		at = strstr(line, "ersion");
		if (at)
			snprintf(version, VERSION, " %.*s",
				 (int)strspn(at + strcspn(at, DIGITS),
					     DIGITS "."),
				 at + strcspn(at, DIGITS));
	}
	if (info)
		pclose(info);
}

int wf_tools_ucx_start(struct wf_tools_ucx *ucx,
		       const struct wf_tools_plan *plan)
{
	char version[VERSION];
	bool hosts = plan->link.over == WF_TOOLS_OVER_HOSTS;
	int output[2];
	pid_t pid;

	ucx->error[0] = '\0';
	ucx->text_len = 0;
	ucx->column = -1;
	if (!ucx->about[0]) {
		find_version(version);
		snprintf(ucx->about, sizeof(ucx->about),
			 "UCX%s, " PROGRAM ", UCX_TLS=%s", version,
			 transports(plan));
	}
	if (!is_installed())
		return give_up(ucx, -ENOENT, WF_TOOLS_UCX_MISSING);
	if (pipe2(output, O_CLOEXEC))
		return give_up(ucx, -errno, "no pipe");
	ucx->output = output[0];
	pid = hosts ? serve_there(ucx, plan) :
		      wf_tools_ucx_serve(plan, output[1], &ucx->port,
					 &ucx->orders[SERVER]);
	if (pid > 0) {
		ucx->pids[SERVER] = pid;
		pid = start_one(plan, CLIENT, ucx->port,
				hosts ? plan->link.host.address : "127.0.0.1",
				output[1], &ucx->orders[CLIENT]);
	}
	close(output[1]);
	if (pid < 0)
		return give_up(ucx, pid, "ucx_perftest does not start");
	ucx->pids[CLIENT] = pid;
	return 0;
}

int wf_tools_ucx_ready(struct wf_tools_ucx *ucx,
		       const struct wf_tools_plan *plan)
{
	(void)ucx;
	(void)plan;
	return 0;
}

/* Field n of a comma-separated line as a number, or NAN. */
static double field(const char *line, int n)
{
	char *end;
	double value;

	for (; n > 0 && line; n--) {
		line = strchr(line, ',');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return NAN;
	value = strtod(line, &end);
	return end == line ? NAN : value;
}

/*
 * The header names the columns, whose number has changed between versions. The
 * time has three decimals of a microsecond; for small messages the rate, four
 * columns later, has more digits.
 */
static bool read_line(struct wf_tools_ucx *ucx, const char *line, double *ns)
{
	const char *name = strstr(line, "overall_lat");
	const char *error = strstr(line, "ERROR");
	double us, rate;

	if (name) {
		for (ucx->column = 0; line < name; line++)
			ucx->column += *line == ',';
		return false;
	}
	if (error && !ucx->error[0])
		snprintf(ucx->error, sizeof(ucx->error), "ucx_perftest: %s",
			 error + strlen("ERROR "));
	if (strncmp(line, ROW ",", sizeof(ROW)) || ucx->column < 0)
		return false;
	us = field(line, ucx->column);
	rate = field(line, ucx->column + 4);
	if (isnan(us))
		return false;
	*ns = us * 1e3;
	if (rate > 0 && fabs(1e9 / rate - *ns) <= 1)
		*ns = 1e9 / rate;
	return *ns > 0;
}

/* Removes whole lines from the text; true if one was a result. */
static bool read_text(struct wf_tools_ucx *ucx, double *ns)
{
	bool found = false;
	size_t used;
	char *end;

	while (!found && (end = memchr(ucx->text, '\n', ucx->text_len))) {
		*end = '\0';
		found = read_line(ucx, ucx->text, ns);
		used = (size_t)(end + 1 - ucx->text);
		ucx->text_len -= used;
		memmove(ucx->text, end + 1, ucx->text_len);
	}
	if (ucx->text_len == sizeof(ucx->text)) /* not a line of ours */
		ucx->text_len = 0;
	return found;
}

static int wait_result(struct wf_tools_ucx *ucx,
		       const struct wf_tools_plan *plan, double *ns)
{
	uint64_t deadline = wf_base_clock_ns() + plan->timeout_s * WF_NS_PER_S;
	struct pollfd fd = { .fd = ucx->output, .events = POLLIN };
	char text[64];
	ssize_t got;
	int ret;

	while (!read_text(ucx, ns)) {
		ret = wf_tools_process_poll(&fd, 1, deadline);
		if (ret == -EINTR)
			return give_up(ucx, ret, "stopped");
		if (ret <= 0) {
			snprintf(text, sizeof(text), "no result within %u s",
				 plan->timeout_s);
			return give_up(ucx, -ETIMEDOUT, text);
		}
		got = read(ucx->output, ucx->text + ucx->text_len,
			   sizeof(ucx->text) - ucx->text_len);
		if (got <= 0)
			return give_up(ucx, -ECHILD, "ucx_perftest ended");
		ucx->text_len += (size_t)got;
	}
	return 0;
}

static int play(void *arg, const struct wf_tools_plan *plan,
		enum wf_tools_test test, size_t size, double count, double *ns)
{
	struct wf_tools_ucx *ucx = arg;
	unsigned window = wf_tools_plan_window(plan, test, size);
	char order[256];
	int len, i;

	len = snprintf(order, sizeof(order),
		       ROW " -t %s -s %zu -n %.0f -w %.0f",
		       test == WF_TOOLS_LATENCY ? "tag_lat" : "tag_bw", size,
		       count, ceil(count / 8));
	if (test != WF_TOOLS_LATENCY)
		len += snprintf(order + len, sizeof(order) - (size_t)len,
				" -O %u", window);
	order[len++] = '\n';
	for (i = SERVER; i >= CLIENT; i--) {
		if (write(ucx->orders[i], order, (size_t)len) != len)
			return give_up(ucx, -EPIPE, "ucx_perftest ended");
	}
	return wait_result(ucx, plan, ns);
}

int wf_tools_ucx_run(struct wf_tools_ucx *ucx, const struct wf_tools_plan *plan,
		     enum wf_tools_test test, unsigned index, double *ns)
{
	double guess = 100 + (double)plan->sizes[test].v[index] / 8;

	return wf_tools_count_run(plan, test, index, &ucx->seen[test][index],
				  guess, play, ucx, ns);
}

void wf_tools_ucx_stop(struct wf_tools_ucx *ucx)
{
	int i;

	close_fd(&ucx->orders[CLIENT]);
	close_fd(&ucx->orders[SERVER]);
	close_fd(&ucx->output);
	for (i = CLIENT; i <= SERVER; i++) {
		if (ucx->pids[i])
			wf_tools_process_end(ucx->pids[i],
					     ucx->error[0] ? 0 : 1000);
		ucx->pids[i] = 0;
	}
}
