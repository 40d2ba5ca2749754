/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP server with one resource, /metrics, which is read afresh for each
 * request. Clients are not trusted: their number, the length of a request and
 * the time that a connection may take are bounded, and nobody waits for a slow
 * one.
 */
#include "tools/stat/serve.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/stat/look.h"
#include "tools/stat/metrics.h"

#define CLIENTS 16
#define REQUEST_MAX 8192
#define SEND_BUFFER 65536
#define CLIENT_S 10 /* from its connection to its last byte */
#define DRAIN_S 1   /* then, until the client closes */
#define REST_MS 200 /* when there are no descriptors */

struct client {
	int fd; /* -1: free */
	uint64_t until;
	size_t got; /* bytes of the request */
	char request[REQUEST_MAX];
	char *answer; /* NULL: the request is not complete */
	size_t length, sent;
};

struct server {
	const struct wf_tools_stat_options *options;
	int listener;
	struct client clients[CLIENTS];
	bool rests; /* accept() failed for want of descriptors */
};

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

/* -- answers --------------------------------------------------------------- */

static int begin_answer(FILE *out, const char *status, const char *type)
{
	return fprintf(out,
		       "HTTP/1.1 %s\r\nContent-Type: %s\r\n"
		       "Cache-Control: no-store\r\nConnection: close\r\n",
		       status, type) < 0 ?
		       -ENOMEM :
		       0;
}

static void end_answer(FILE *out, const char *body, size_t length, bool head)
{
	fprintf(out, "Content-Length: %zu\r\n\r\n", length);
	if (!head)
		fwrite(body, 1, length, out);
}

static int write_metrics(const struct server *server, bool head, FILE *out)
{
	struct wf_tools_scan scan;
	char *body = NULL;
	size_t length;
	FILE *text;
	int ret = wf_tools_look(server->options, NULL, &scan);

	if (ret)
		return wf_tools_look_failed(server->options, ret);
	text = open_memstream(&body, &length);
	ret = text ? wf_tools_metrics_write(&scan, text) : -ENOMEM;
	wf_tools_scan_free(&scan);
	if (text && fclose(text))
		ret = -ENOMEM;
	if (!ret)
		ret = begin_answer(out, "200 OK", WF_TOOLS_METRICS_TYPE);
	if (!ret)
		end_answer(out, body, length, head);
	free(body);
	return ret;
}

static void write_page(const char *status, const char *text, bool head,
		       FILE *out)
{
	begin_answer(out, status, "text/plain; charset=utf-8");
	end_answer(out, text, strlen(text), head);
}

static bool asks_for(const char *target, const char *path)
{
	size_t len = strlen(path);

	return !strncmp(target, path, len) &&
	       (target[len] == ' ' || target[len] == '?');
}

static void write_answer(const struct server *server, const char *request,
			 FILE *out)
{
	bool head = !strncmp(request, "HEAD ", 5);
	const char *target = request + (head ? 5 : 4);

	if (!head && strncmp(request, "GET ", 4))
		write_page("405 Method Not Allowed", "Only GET is served.\n",
			   false, out);
	else if (asks_for(target, "/"))
		write_page("200 OK", "weft stat --openmetrics: see /metrics\n",
			   head, out);
	else if (!asks_for(target, "/metrics"))
		write_page("404 Not Found", "There is only /metrics.\n", head,
			   out);
	else if (write_metrics(server, head, out))
		write_page("503 Service Unavailable",
			   "The counters cannot be read now.\n", head, out);
}

/* -- clients --------------------------------------------------------------- */

static void drop(struct client *client)
{
	close(client->fd);
	free(client->answer);
	client->fd = -1;
	client->answer = NULL;
}

/* False: the answer could not be made. */
static bool answer(const struct server *server, struct client *client,
		   bool too_long)
{
	FILE *out = open_memstream(&client->answer, &client->length);

	if (!out)
		return false;
	if (too_long)
		write_page("431 Request Header Fields Too Large",
			   "The request is too long.\n", false, out);
	else
		write_answer(server, client->request, out);
	client->sent = 0;
	return !fclose(out) && client->answer;
}

/* False: close the connection. */
static bool receive(const struct server *server, struct client *client)
{
	ssize_t got = recv(client->fd, client->request + client->got,
			   REQUEST_MAX - 1 - client->got, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!got)
		return false;
	client->got += (size_t)got;
	client->request[client->got] = 0;
	if (memmem(client->request, client->got, "\r\n\r\n", 4) ||
	    memmem(client->request, client->got, "\n\n", 2))
		return answer(server, client, false);
	return client->got < REQUEST_MAX - 1 || answer(server, client, true);
}

static bool send_more(struct client *client)
{
	ssize_t sent = send(client->fd, client->answer + client->sent,
			    client->length - client->sent,
			    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR;
	client->sent += (size_t)sent;
	if (client->sent == client->length) {
		shutdown(client->fd, SHUT_WR);
		client->until = wf_base_clock_ns() + DRAIN_S * WF_NS_PER_S;
	}
	return true;
}

static bool is_sending(const struct client *client)
{
	return client->answer && client->sent < client->length;
}

/* Takes what the client has sent besides, until it closes: the kernel would
 * reset a connection with unread bytes, and the answer could be lost. */
static bool drain(struct client *client)
{
	ssize_t got =
		recv(client->fd, client->request, REQUEST_MAX, MSG_DONTWAIT);

	return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The client is ready. False: close the connection. */
static bool go_on(const struct server *server, struct client *client)
{
	if (!client->answer)
		return receive(server, client);
	return is_sending(client) ? send_more(client) : drain(client);
}

static void accept_one(struct server *server)
{
	int bytes = SEND_BUFFER;
	int fd = accept4(server->listener, NULL, NULL,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	server->rests = fd < 0 && errno != EAGAIN && errno != ECONNABORTED &&
			errno != EINTR;
	/* A client that does not read must not hold much of the kernel's
	 * memory either. */
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	for (int i = 0; fd >= 0 && i < CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd >= 0)
			continue;
		*client = (struct client){
			.fd = fd,
			.until = wf_base_clock_ns() + CLIENT_S * WF_NS_PER_S,
		};
		return;
	}
}

/* -- the loop -------------------------------------------------------------- */

static bool has_room(const struct server *server)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd < 0)
			return true;
	}
	return false;
}

/* Until the first client's time is up. NULL: no client. */
static const struct timespec *wait_time(const struct server *server,
					struct timespec *time)
{
	uint64_t now = wf_base_clock_ns(), until = UINT64_MAX;

	if (server->rests)
		until = now + REST_MS * WF_NS_PER_MS;
	for (int i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd >= 0 &&
		    server->clients[i].until < until)
			until = server->clients[i].until;
	}
	if (until == UINT64_MAX)
		return NULL;
	until = until > now ? until - now : 0;
	time->tv_sec = (time_t)(until / WF_NS_PER_S);
	time->tv_nsec = (long)(until % WF_NS_PER_S);
	return time;
}

static void serve_once(struct server *server, const sigset_t *mask)
{
	struct pollfd fds[CLIENTS + 1];
	struct timespec time;

	for (int i = 0; i < CLIENTS; i++)
		fds[i] = (struct pollfd){
			.fd = server->clients[i].fd,
			.events = is_sending(&server->clients[i]) ? POLLOUT :
								    POLLIN,
		};
	fds[CLIENTS] = (struct pollfd){
		.fd = has_room(server) && !server->rests ? server->listener :
							   -1,
		.events = POLLIN,
	};
	if (ppoll(fds, CLIENTS + 1, wait_time(server, &time), mask) < 0)
		return;
	server->rests = false;
	for (int i = 0; i < CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (client->fd < 0)
			continue;
		if (wf_base_clock_ns() >= client->until ||
		    (fds[i].revents && !go_on(server, client)))
			drop(client);
	}
	if (fds[CLIENTS].revents)
		accept_one(server);
}

/* -- where ----------------------------------------------------------------- */

/* Splits [ADDRESS:]PORT; IPv6 addresses stand in brackets. */
static int split(const char *text, char host[256], const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	char *end;

	*port = colon ? colon + 1 : text;
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return -EINVAL;
	}
	if (len >= 256 || !**port || strtoul(*port, &end, 10) > 65535 || *end ||
	    **port < '0' || **port > '9' || (colon && !len))
		return -EINVAL;
	snprintf(host, 256, "%.*s", (int)len, text);
	if (!colon)
		strcpy(host, "127.0.0.1");
	return 0;
}

static int open_listener(const struct addrinfo *info)
{
	int fd, one = 1, error;

	fd = socket(info->ai_family,
		    info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    info->ai_protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, info->ai_addr, info->ai_addrlen) && !listen(fd, CLIENTS))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* Prints the address: if the port was 0, the kernel has chosen one. */
static void announce(int listener)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char host[64], port[16];

	if (getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    getnameinfo((struct sockaddr *)&addr, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	fprintf(stderr, "weft stat: metrics at http://%s%s%s:%s/metrics\n",
		addr.ss_family == AF_INET6 ? "[" : "", host,
		addr.ss_family == AF_INET6 ? "]" : "", port);
}

static int listen_at(const char *where)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *info;
	const char *port;
	char host[256];
	int ret = split(where, host, &port);

	if (ret)
		return wf_tools_stat_complain(
			"--openmetrics wants a port or ADDRESS:PORT, like 9464 "
			"or [::1]:9464, not '%s'",
			where);
	ret = getaddrinfo(host, port, &hints, &info);
	if (ret)
		return wf_tools_stat_complain("cannot listen at %s: %s", where,
					      gai_strerror(ret));
	ret = open_listener(info);
	freeaddrinfo(info);
	if (ret < 0)
		wf_tools_stat_complain("cannot listen at %s: %s", where,
				       strerror(-ret));
	else
		announce(ret);
	return ret;
}

int wf_tools_serve(const struct wf_tools_stat_options *options)
{
	struct sigaction action = { .sa_handler = on_end };
	struct server *server = calloc(1, sizeof(*server));
	sigset_t ours, mask;

	if (!server)
		return -ENOMEM;
	server->options = options;
	for (int i = 0; i < CLIENTS; i++)
		server->clients[i].fd = -1;
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigprocmask(SIG_BLOCK, &ours, &mask);
	server->listener = listen_at(options->listen);
	if (server->listener < 0) {
		int ret = server->listener;

		free(server);
		return ret;
	}
	while (!ended)
		serve_once(server, &mask);
	for (int i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			drop(&server->clients[i]);
	}
	close(server->listener);
	free(server);
	return 0;
}
