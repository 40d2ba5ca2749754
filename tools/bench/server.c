/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serves responders to another host: one process for each connection, which
 * starts what the client requests, from a short list, and ends it with the
 * connection. Only one client measures at a time, because a second one would
 * disturb the results of the first. The server accepts no variables, paths or
 * programs from a client.
 */
#include "tools/bench/server.h"

#include "base/clock.h"
#include "tools/bench/control_defs.h"
#include "tools/bench/host.h"
#include "tools/bench/process.h"
#include "tools/bench/ucx.h"
#include "tools/bench/worker.h"
#include "tools/locate.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BACKLOG = 64,
	MOST_CHILDREN = 64,
	GRACE_MS = 1000,
	LOOK_MS = 200, /* for children that have ended */
};

#define MOST_BYTES (4ull << 30)

/* The client that holds the server; shared by all processes of the server. */
struct turn {
	_Atomic uint64_t session; /* 0: none */
	_Atomic int holder;	  /* the process that will release it */
};

struct guest {
	const struct wf_tools_plan *plan;
	struct turn *turn;
	int fd;
	uint64_t session;
	char address[WF_TOOLS_HOST_ADDRESS];
	char text[WF_TOOLS_HOST_MOST + 1]; /* of START */
	char *words[16];
	unsigned n_words;
};

/* -- what a client asks for ------------------------------------------------ */

static int refuse(const struct guest *guest, const char *why)
{
	wf_tools_host_send(guest->fd, WF_TOOLS_HOST_REFUSED, why, strlen(why));
	return 1;
}

static int hear_start(struct guest *guest)
{
	enum wf_tools_host_channel channel;
	size_t len = WF_TOOLS_HOST_MOST, at;
	int ret;

	ret = wf_tools_host_receive(guest->fd, &channel, guest->text, &len);
	if (ret || channel != WF_TOOLS_HOST_START || !len)
		return -EPROTO;
	guest->text[len] = '\0';
	for (at = 0; at < len; at += strlen(guest->text + at) + 1) {
		if (guest->n_words == 16)
			return -EPROTO;
		guest->words[guest->n_words++] = guest->text + at;
	}
	return 0;
}

static bool is_number(const char *word, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(word, &end, 10);

	return *word >= '0' && *word <= '9' && !*end && value && value <= most;
}

/* Accepts the arguments of a worker as `weft bench` passes them, and no
 * others. */
static bool is_worker(const struct guest *guest)
{
	char *const *words = guest->words;
	const char *engine, *flags;

	if (guest->n_words != WF_TOOLS_WORKER_ARGC)
		return false;
	engine = words[WF_TOOLS_WORKER_ENGINE];
	flags = words[WF_TOOLS_WORKER_FLAGS];
	return (!strcmp(engine, "fabric") || !strcmp(engine, "remote") ||
		!strcmp(engine, "socket")) &&
	       strlen(words[WF_TOOLS_WORKER_NAME]) < 64 &&
	       !strchr(words[WF_TOOLS_WORKER_NAME], '/') &&
	       !strcmp(words[WF_TOOLS_WORKER_ROLE], "responder") &&
	       strlen(flags) < 24 &&
	       strspn(flags, WF_TOOLS_WORKER_FLAG_CHARS) == strlen(flags) &&
	       is_number(words[WF_TOOLS_WORKER_WINDOW], WF_TOOLS_MAX_WINDOW) &&
	       is_number(words[WF_TOOLS_WORKER_BYTES], MOST_BYTES);
}

/* -- what it gets ---------------------------------------------------------- */

enum { SERVER_ENV = 5 + WF_TOOLS_LINK_ENV };

static void make_env(const struct guest *guest, struct wf_tools_link *link,
		     char *path, size_t len, const char *env[SERVER_ENV])
{
	*env++ = "FI_PROVIDER";
	*env++ = NULL;
	if (!getenv("FI_PROVIDER_PATH") &&
	    !strcmp(guest->words[WF_TOOLS_WORKER_NAME], "weft") &&
	    !wf_tools_locate_provider(path, len)) {
		*env++ = "FI_PROVIDER_PATH";
		*env++ = path;
	}
	link->over = WF_TOOLS_OVER_HOSTS;
	wf_tools_host_interface(guest->fd, link->interface,
				sizeof(link->interface));
	wf_tools_link_env(link, env);
}

static int end_worker(const struct guest *guest, pid_t pid, bool tell)
{
	char how[128];
	int status = wf_tools_process_end(pid, GRACE_MS);

	wf_tools_process_describe(status, how, sizeof(how));
	if (tell)
		wf_tools_host_send(guest->fd, WF_TOOLS_HOST_ENDED, how,
				   strlen(how));
	return 0;
}

static int serve_worker(struct guest *guest)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC;
	const char *env[SERVER_ENV];
	struct wf_tools_link link = { 0 };
	char path[4096], text[WF_TOOLS_HOST_ERROR];
	char *argv[WF_TOOLS_WORKER_ARGC + 2] = { "weft",
						 WF_TOOLS_WORKER_COMMAND };
	int control[2], side[2], ret;
	struct wf_tools_process process = {
		.argv = argv,
		.cpu = guest->plan->cpus[1],
		.env = env,
	};
	pid_t pid;

	memcpy(argv + 2, guest->words + 1,
	       (WF_TOOLS_WORKER_ARGC - 1) * sizeof(*argv));
	make_env(guest, &link, path, sizeof(path), env);
	if (socketpair(AF_UNIX, type, 0, control) ||
	    socketpair(AF_UNIX, type, 0, side))
		return refuse(guest, "no sockets");
	process.fds[0] = -1;
	process.fds[1] = -1;
	process.fds[2] = STDERR_FILENO;
	process.fds[3] = control[1];
	process.fds[4] = side[1];
	process.fds[5] = -1;
	pid = wf_tools_process_spawn(&process);
	close(control[1]);
	close(side[1]);
	if (pid < 0)
		return refuse(guest, "no process");
	wf_tools_host_send(guest->fd, WF_TOOLS_HOST_STARTED, "", 0);
	ret = wf_tools_host_relay(guest->fd, control[0], side[0], text);
	close(control[0]);
	close(side[0]);
	return end_worker(guest, pid, !ret);
}

/* Commands arrive as packets of the control channel and go into a pipe. */
static int serve_ucx(struct guest *guest)
{
	char text[WF_TOOLS_HOST_ERROR], port_text[16];
	int orders = -1, port, ret;
	pid_t pid;

	pid = wf_tools_ucx_serve(guest->plan, STDERR_FILENO, &port, &orders);
	if (pid == -ENOENT)
		return refuse(guest, "ucx_perftest is " WF_TOOLS_UCX_MISSING);
	if (pid < 0)
		return refuse(guest, "ucx_perftest does not start");
	snprintf(port_text, sizeof(port_text), "%d", port);
	wf_tools_host_send(guest->fd, WF_TOOLS_HOST_STARTED, port_text,
			   strlen(port_text));
	ret = wf_tools_host_relay(guest->fd, orders, -1, text);
	close(orders);
	return end_worker(guest, pid, !ret);
}

/* Until the client closes the connection: it holds the server so long. */
static int hold(struct guest *guest)
{
	struct pollfd fd = { .fd = guest->fd, .events = POLLIN };

	atomic_store(&guest->turn->holder, getpid());
	printf("%s measures\n", guest->address);
	fflush(stdout);
	wf_tools_host_send(guest->fd, WF_TOOLS_HOST_STARTED, "", 0);
	wf_tools_process_poll(&fd, 1, UINT64_MAX / 2);
	printf("%s has ended\n", guest->address);
	fflush(stdout);
	/* In this order: the next client may come at once. */
	atomic_store(&guest->turn->holder, 0);
	atomic_store(&guest->turn->session, 0);
	return 0;
}

static int serve(struct guest *guest)
{
	uint64_t nobody = 0;
	int ret;

	ret = wf_tools_host_welcome(guest->fd, &guest->session);
	if (ret == -EPROTONOSUPPORT)
		printf("%s has another version of weft\n", guest->address);
	if (ret || hear_start(guest))
		return 1;
	if (!strcmp(guest->words[0], "hold")) {
		if (!atomic_compare_exchange_strong(&guest->turn->session,
						    &nobody, guest->session))
			return refuse(guest, "another client measures now; "
					     "try again later");
		return hold(guest);
	}
	if (atomic_load(&guest->turn->session) != guest->session)
		return refuse(guest, "it is not this client's turn");
	if (!strcmp(guest->words[0], "worker") && is_worker(guest))
		return serve_worker(guest);
	if (!strcmp(guest->words[0], "ucx") && guest->n_words == 1)
		return serve_ucx(guest);
	return refuse(guest, "the request is not understood");
}

/* -- the server itself ----------------------------------------------------- */

static int open_listener(unsigned port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	const int on = 1, off = 0;
	int fd, ret;

	/* Both families; without IPv6 only IPv4. */
	fd = socket(AF_INET6, type, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		ret = bind(fd, (struct sockaddr *)&six, sizeof(six));
		if (!ret && !listen(fd, BACKLOG))
			return fd;
		ret = -errno;
		close(fd);
		if (ret == -EADDRINUSE)
			return ret;
	}
	fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&four, sizeof(four)) &&
	    !listen(fd, BACKLOG))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static void start_guest(const struct wf_tools_plan *plan, struct turn *turn,
			int listener, unsigned *children)
{
	struct guest guest = { .plan = plan, .turn = turn };
	pid_t parent = getpid(), pid;
	int fd;

	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
		close(listener);
		guest.fd = fd;
		wf_tools_host_peer(fd, guest.address, sizeof(guest.address));
		_exit(serve(&guest));
	}
	*children += pid > 0;
	close(fd);
}

static void reap(struct turn *turn, unsigned *children)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		(*children)--;
		/* It was killed and could not release the server. */
		if (pid == atomic_load(&turn->holder)) {
			atomic_store(&turn->holder, 0);
			atomic_store(&turn->session, 0);
		}
	}
}

int wf_tools_server_run(const struct wf_tools_plan *plan)
{
	struct pollfd fd = { 0 };
	unsigned children = 0;
	struct turn *turn;
	int ret;

	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd.fd = open_listener(plan->link.host.port);
	if (turn == MAP_FAILED || fd.fd < 0) {
		fprintf(stderr,
			"weft bench: cannot listen on port %u: %s; --port "
			"chooses another\n",
			plan->link.host.port, strerror(-fd.fd));
		return 1;
	}
	printf("listening on port %u; on the other host: weft bench "
	       "THIS-HOST%s\n",
	       plan->link.host.port,
	       plan->link.host.port == WF_TOOLS_HOST_PORT ? "" : " --port ...");
	if (fflush(stdout))
		return 1;
	do {
		/* If there are too many, the next client waits until a child
		 * ends. */
		fd.events = children < MOST_CHILDREN ? POLLIN : 0;
		ret = wf_tools_process_poll(
			&fd, 1, wf_base_clock_ns() + LOOK_MS * WF_NS_PER_MS);
		reap(turn, &children);
		if (fd.revents & POLLIN)
			start_guest(plan, turn, fd.fd, &children);
	} while (ret >= 0);
	/* Sessions get SIGTERM when we end, and stop their workers. Those of a
	 * session that was killed get a signal of their own (process.c). */
	close(fd.fd);
	return 0;
}
