/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 between two hosts: link-local addresses, which are valid together with the
 * interface that each host knows under a number of its own, and an endpoint that
 * is bound to all addresses of its host. Peers reach that endpoint by each of its
 * addresses, those of IPv4 as well, and it answers them under the address that
 * they used. The port is its own for both.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>

#include "common/net.h"
#include "msg_util.h"

#define LARGE 3000000 /* is read by the receiver, over the second connection */
#define NODE 64

static const size_t sizes[] = { 8, 3000, 40000, LARGE };

/* The link-local address of @link on this host. It is there once the link is up
 * and the kernel has found that nobody else has the address. */
static void link_local(const char *link, char node[NODE])
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct ifaddrs *all, *at;
	char ip[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;

	for (node[0] = 0; !node[0];) {
		CHECK_SYS(getifaddrs(&all));
		for (at = all; at; at = at->ifa_next) {
			if (strcmp(at->ifa_name, link) || !at->ifa_addr ||
			    at->ifa_addr->sa_family != AF_INET6)
				continue;
			memcpy(&in6, at->ifa_addr, sizeof(in6));
			if (!IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
				continue;
			inet_ntop(AF_INET6, &in6.sin6_addr, ip, sizeof(ip));
			snprintf(node, NODE, "%s%%%s", ip, link);
		}
		freeifaddrs(all);
		CHECK(weft_test_ms() < end);
	}
}

static struct weft_test_opts opts_of(const char *node)
{
	return (struct weft_test_opts){
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
		.node = node,
	};
}

/* A new address can be used after some time: until then bind() fails. */
static void open_at(struct weft_test *t, const char *node)
{
	uint64_t end = weft_test_ms() + WEFT_TEST_PATIENCE_MS;
	struct weft_test_opts opts = opts_of(node);

	while (weft_test_try_open(t, &opts))
		CHECK(weft_test_ms() < end);
}

/* Sends every size to the peer and gets it back. */
static void ask(struct weft_test *t, fi_addr_t peer)
{
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct weft_test_comp comp;
		struct fi_context tx, rx;

		weft_test_fill(out, sizes[i], i);
		POST(fi_trecv(t->ep, in, LARGE, NULL, peer, i, 0, &rx));
		CHECK_OK(weft_test_tsend(t, out, sizes[i], peer, i, &tx));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.src, peer);
		CHECK_EQ(comp.entry.len, sizes[i]);
		CHECK(weft_test_holds(in, sizes[i], i));
		weft_test_wait_ok(t->txcq, &tx);
	}
	free(out);
	free(in);
}

static void answer(struct weft_test *t, fi_addr_t peer)
{
	uint8_t *buf = msg_alloc(LARGE);

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct weft_test_comp comp;
		struct fi_context tx, rx;

		POST(fi_trecv(t->ep, buf, LARGE, NULL, FI_ADDR_UNSPEC, i, 0,
			      &rx));
		weft_test_wait(t->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		CHECK_EQ(comp.src, peer);
		CHECK_OK(weft_test_tsend(t, buf, comp.entry.len, peer, i, &tx));
		weft_test_wait_ok(t->txcq, &tx);
	}
	free(buf);
}

/* How a client on the other host, or on the server's, reaches the server. */
struct way {
	bool far;
	const char *source; /* of the client */
	const char *to;	    /* an address of the server; NULL: its name */
	const char *link;   /* link-local: both have their addresses of it */
	bool back;	    /* the server begins */
};

/* @name, with @ip in the place of its address, as this host knows it. */
static fi_addr_t insert(struct weft_test *t, const uint8_t *name,
			const struct way *way)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in = { .sin_family = AF_INET };
	uint8_t addr[WEFT_TEST_NAME_MAX] = { 0 };

	memcpy(&in6, name, sizeof(in6));
	if (in6.sin6_family == AF_INET)
		return weft_test_insert(t, name);
	if (way->link)
		in6.sin6_scope_id = if_nametoindex(way->link);
	if (way->to && !strchr(way->to, ':')) {
		in.sin_port = in6.sin6_port;
		CHECK_EQ(inet_pton(AF_INET, way->to, &in.sin_addr), 1);
		memcpy(addr, &in, sizeof(in));
		return weft_test_insert(t, addr);
	}
	if (way->to)
		CHECK_EQ(inet_pton(AF_INET6, way->to, &in6.sin6_addr), 1);
	memcpy(addr, &in6, sizeof(in6));
	return weft_test_insert(t, addr);
}

static void client(struct weft_test_line *line, void *arg)
{
	const struct way *way = arg;
	uint8_t name[WEFT_TEST_NAME_MAX];
	char node[NODE];
	struct weft_test t;
	fi_addr_t peer;

	net_enter(way->far);
	snprintf(node, sizeof(node), "%s", way->source ? way->source : "");
	if (way->link)
		link_local(way->link, node);
	open_at(&t, node);
	weft_test_put(line, t.name, sizeof(t.name));
	CHECK(weft_test_get_driving(line, name, sizeof(name)));
	peer = insert(&t, name, way);
	for (int i = 0; i < 2; i++) {
		if (way->back == i)
			ask(&t, peer);
		else
			answer(&t, peer);
	}
	weft_test_sync(line);
	weft_test_close(&t);
}

static void serve(const struct way *way)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct way back = { .link = way->link };
	struct weft_test_line line;
	char node[NODE] = "::";
	struct weft_test t;
	fi_addr_t peer;

	printf("to %s from %s%s\n",
	       way->link ? way->link :
	       way->to	 ? way->to :
			   "its name",
	       way->link ? way->link : way->source,
	       way->back ? ", which answers" : "");
	fflush(stdout);
	if (way->link && !way->to)
		link_local(way->link, node);
	open_at(&t, node);
	weft_test_fork(&line, client, (void *)(uintptr_t)way);
	CHECK(weft_test_get_driving(&line, name, sizeof(name)));
	peer = insert(&t, name, &back);
	weft_test_put(&line, t.name, sizeof(t.name));
	for (int i = 0; i < 2; i++) {
		if (way->back == i)
			answer(&t, peer);
		else
			ask(&t, peer);
	}
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
}

/* Whether 127.0.0.1 can be bound to the port of @t. */
static bool is_free(struct weft_test *t, int type)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(weft_test_port(t)),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type, 0);
	bool bound;

	CHECK_SYS(fd);
	bound = !bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	CHECK(bound || errno == EADDRINUSE);
	close(fd);
	return bound;
}

static void port_is_held(void)
{
	struct weft_test all, one;

	open_at(&all, "::");
	CHECK(!is_free(&all, SOCK_STREAM));
	CHECK(!is_free(&all, SOCK_DGRAM));
	open_at(&one, "::1");
	CHECK(is_free(&one, SOCK_STREAM));
	CHECK(is_free(&one, SOCK_DGRAM));
	weft_test_close(&all);
	weft_test_close(&one);
}

/* An IPv4 client and an endpoint that is bound to all addresses, through shared
 * memory. */
static void by_memory(struct weft_test_line *line, void *arg)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t name[WEFT_TEST_NAME_MAX] = { 0 };
	struct weft_test_opts opts = opts_of("::"), at = opts_of("127.0.0.1");
	uint64_t word = 1, got = 0, back = 2, answer = 0;
	struct weft_test server, client;
	struct weft_test_comp comp;
	struct fi_context tx, rx;
	fi_addr_t to, from;

	(void)line;
	(void)arg;
	CHECK_SYS(setenv("FI_WEFT_SHM", "1", 1));
	weft_test_open(&server, &opts);
	weft_test_open(&client, &at);
	sin.sin_port = htons(weft_test_port(&server));
	memcpy(name, &sin, sizeof(sin));
	to = weft_test_insert(&client, name);
	from = weft_test_know(&server, &client);
	CHECK_OK(weft_test_trecv(&server, &got, 8, 5, 0, &rx));
	CHECK_OK(weft_test_tsend(&client, &word, 8, to, 5, &tx));
	weft_test_wait(server.rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(comp.src, from);
	CHECK_EQ(got, 1);
	weft_test_wait_ok(client.txcq, &tx);
	CHECK_OK(weft_test_trecv(&client, &answer, 8, 5, 0, &rx));
	CHECK_OK(weft_test_tsend(&server, &back, 8, from, 5, &tx));
	weft_test_wait_ok(client.rxcq, &rx);
	CHECK_EQ(answer, 2);
	weft_test_wait_ok(server.txcq, &tx);
	weft_test_close(&client);
	weft_test_close(&server);
}

int main(void)
{
	static const struct way ways[] = {
		{ .far = true, .link = "link0" },
		{ .far = true, .link = "link1" },
		{ .far = true, .source = "fd99:0::2" },
		{ .far = true, .source = "fd99:0::2", .to = "fd99:0::1" },
		{ .far = true, .source = "fd99:1::2", .to = "fd99:1::1" },
		{ .far = true, .source = "::", .to = "fd99:1::1" },
		{ .source = "::1", .to = "::1" },
		{ .far = true, .source = "10.99.0.2", .to = "10.99.0.1" },
		{ .far = true, .source = "10.99.1.2", .to = "10.99.1.1" },
		{ .far = true,
		  .source = "10.99.0.2",
		  .to = "10.99.0.1",
		  .back = true },
		{ .source = "127.0.0.1", .to = "127.0.0.1" },
		{ .source = "127.0.0.1", .to = "10.99.0.1" },
		{ .source = "127.0.0.1", .to = "127.0.0.1", .back = true },
	};
	struct way bound;
	char node[NODE], *end;

	weft_test_begin(110);
	net_begin(1500);
	msg_run_apart(by_memory, NULL);
	/* All else by packets: whether hosts share memory depends on folders that
	 * they may both have. */
	CHECK_SYS(setenv("FI_WEFT_SHM", "0", 1));
	port_is_held();
	for (size_t i = 0; i < COUNT_OF(ways); i++)
		serve(&ways[i]);
	/* A link-local address of an endpoint that is bound to all. */
	link_local("link1", node);
	end = strchr(node, '%');
	CHECK(end);
	*end = 0;
	bound = (struct way){ .far = true, .link = "link1", .to = node };
	serve(&bound);
	return 0;
}
