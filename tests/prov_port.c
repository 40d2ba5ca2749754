/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port in an endpoint's address is the endpoint's for TCP and for UDP: no
 * other program can take it for either, so that peers never talk to a stranger
 * at that address, whichever device they use. An endpoint does not get a port of
 * which somebody has one of the two.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "msg_util.h"

/* A socket at 127.0.0.1 and this port (0: any), or -1 if it is taken. */
static int take(int type, uint16_t *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(*port),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, type, 0);

	CHECK_SYS(fd);
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin))) {
		CHECK_EQ(errno, EADDRINUSE);
		close(fd);
		return -1;
	}
	CHECK_SYS(getsockname(fd, (struct sockaddr *)&sin, &len));
	*port = ntohs(sin.sin_port);
	return fd;
}

static void is_held(void)
{
	struct weft_test t;
	uint16_t port;
	int fd;

	weft_test_open(&t, NULL);
	port = weft_test_port(&t);
	CHECK_EQ(take(SOCK_STREAM, &port), -1);
	CHECK_EQ(take(SOCK_DGRAM, &port), -1);
	weft_test_close(&t);
	/* Then both are free again. */
	fd = take(SOCK_STREAM, &port);
	CHECK(fd >= 0);
	close(fd);
	fd = take(SOCK_DGRAM, &port);
	CHECK(fd >= 0);
	close(fd);
}

/* Somebody has the port that is asked for, for @type. */
static void is_refused(int type)
{
	struct weft_test_opts opts = { 0 };
	char service[8];
	uint16_t port = 0;
	struct weft_test t;
	int fd = take(type, &port);

	CHECK(fd >= 0);
	if (type == SOCK_STREAM)
		CHECK_SYS(listen(fd, 1));
	snprintf(service, sizeof(service), "%u", port);
	opts.service = service;
	CHECK_EQ(weft_test_try_open(&t, &opts), -FI_EADDRINUSE);
	close(fd);
	weft_test_open(&t, &opts);
	CHECK_EQ(weft_test_port(&t), port);
	weft_test_close(&t);
}

static void run(struct weft_test_line *line, void *nic)
{
	(void)line;
	CHECK_SYS(setenv("FI_WEFT_NIC", nic, 1));
	is_held();
	is_refused(SOCK_STREAM);
	is_refused(SOCK_DGRAM);
	printf("%s: good\n", (const char *)nic);
}

int main(void)
{
	static char tcp[] = "tcp", udp[] = "udp";

	weft_test_begin(110);
	msg_run_apart(run, tcp);
	msg_run_apart(run, udp);
	return 0;
}
