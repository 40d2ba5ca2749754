/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host with several addresses, and an endpoint that is bound to all of them.
 * It has one name, and peers reach it by any of its addresses, whatever address
 * the client is bound to; the client sees it under the address that it used.
 * (Bug: it answered from another address than the client had used. The client
 * dropped the answer and asked again, for ever: fabtests' av_xfer, multi_ep,
 * unexpected_msg and multi_recv hung that way.)
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/net.h"
#include "msg_util.h"

#define LARGE 200000

static const char *const addrs[] = { "127.0.0.1", "127.0.0.2", "10.99.0.1",
				     "10.99.1.1" };
static const char *const sources[] = { "127.0.0.1", "10.99.0.1", "10.99.1.1",
				       "0.0.0.0" };

static struct weft_test_opts opts_of(const char *node)
{
	return (struct weft_test_opts){
		.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV,
		.node = node,
	};
}

static fi_addr_t insert(struct weft_test *t, const char *addr, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(port) };
	uint8_t name[WEFT_TEST_NAME_MAX] = { 0 };

	CHECK_EQ(inet_pton(AF_INET, addr, &sin.sin_addr), 1);
	memcpy(name, &sin, sizeof(sin));
	return weft_test_insert(t, name);
}

/* Sends from @a to @b, small and large. @src: the name by which @b knows @a. */
static void carry(struct weft_test *a, fi_addr_t to, struct weft_test *b,
		  fi_addr_t src)
{
	static const size_t lens[] = { 8, LARGE, 20000 };
	uint8_t *out = msg_alloc(LARGE), *in = msg_alloc(LARGE);

	weft_test_fill(out, LARGE, 7);
	for (int i = 0; i < 3; i++) {
		struct weft_test_comp comp;
		struct fi_context tx, rx;

		POST(fi_trecv(b->ep, in, LARGE, NULL, src, 5, 0, &rx));
		CHECK_OK(weft_test_tsend(a, out, lens[i], to, 5, &tx));
		weft_test_wait(b->rxcq, &comp);
		CHECK_EQ(comp.ret, 1);
		if (src != FI_ADDR_UNSPEC)
			CHECK_EQ(comp.src, src);
		CHECK(weft_test_holds(in, lens[i], 7));
		weft_test_wait_ok(a->txcq, &tx);
	}
	free(out);
	free(in);
}

/* The client sends first; the server answers the source of the message. */
static void client_first(const char *source, const char *addr)
{
	struct weft_test_opts any = opts_of("0.0.0.0"), at = opts_of(source);
	struct weft_test server, client;
	fi_addr_t to, back;

	weft_test_open(&server, &any);
	weft_test_open(&client, &at);
	to = insert(&client, addr, weft_test_port(&server));
	carry(&client, to, &server, FI_ADDR_UNSPEC);
	/* Now the server knows the client by name. A client that is bound to a
	 * wildcard sends from whatever address the kernel chose. */
	back = weft_test_know(&server, &client);
	carry(&server, back, &client, to);
	carry(&client, to, &server, back);
	weft_test_close(&client);
	weft_test_close(&server);
}

/* Both know the other's name, and the endpoint that is bound to any address
 * sends first. */
static void server_first(const char *source)
{
	struct weft_test_opts any = opts_of("0.0.0.0"), at = opts_of(source);
	struct weft_test server, client;
	fi_addr_t to, back;

	weft_test_open(&server, &any);
	weft_test_open(&client, &at);
	to = weft_test_know(&client, &server);
	back = weft_test_know(&server, &client);
	carry(&server, back, &client, to);
	carry(&client, to, &server, back);
	weft_test_close(&client);
	weft_test_close(&server);
}

/* A client on the other host uses an address of a link that its packets do not
 * leave by. */
static void far_client(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts at = opts_of(net_addr(1));
	struct weft_test_comp comp;
	struct weft_test client;
	struct fi_context tx, rx;
	uint64_t word = 1, got = 0;
	fi_addr_t to;

	net_enter(1);
	weft_test_open(&client, &at);
	to = insert(&client, net_other_addr(0), *(uint16_t *)arg);
	CHECK_OK(weft_test_trecv(&client, &got, 8, 5, 0, &rx));
	weft_test_meet(&client, line);
	CHECK_OK(weft_test_tsend(&client, &word, 8, to, 5, &tx));
	weft_test_wait_ok(client.txcq, &tx);
	weft_test_wait(client.rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(comp.src, to);
	CHECK_EQ(got, 2);
	weft_test_sync(line);
	weft_test_close(&client);
}

static void from_afar(void)
{
	struct weft_test_opts any = opts_of("0.0.0.0");
	struct weft_test_line line;
	struct weft_test server;
	struct fi_context tx, rx;
	uint64_t got = 0, word = 2;
	uint16_t port;
	fi_addr_t back;

	weft_test_open(&server, &any);
	port = weft_test_port(&server);
	weft_test_fork(&line, far_client, &port);
	CHECK_OK(weft_test_trecv(&server, &got, 8, 5, 0, &rx));
	back = weft_test_meet(&server, &line);
	weft_test_wait_ok(server.rxcq, &rx);
	CHECK_EQ(got, 1);
	CHECK_OK(weft_test_tsend(&server, &word, 8, back, 5, &tx));
	weft_test_wait_ok(server.txcq, &tx);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&server);
}

/* The other host receives a message and answers to the name that it was
 * told. */
static void far_server(struct weft_test_line *line, void *arg)
{
	struct weft_test_opts at = opts_of(arg);
	struct weft_test_comp comp;
	struct weft_test t;
	struct fi_context tx, rx;
	uint64_t word = 2, got = 0;
	fi_addr_t to;

	net_enter(1);
	weft_test_open(&t, &at);
	CHECK_OK(weft_test_trecv(&t, &got, 8, 5, 0, &rx));
	to = weft_test_meet(&t, line);
	weft_test_wait(t.rxcq, &comp);
	CHECK_EQ(comp.ret, 1);
	CHECK_EQ(got, 1);
	CHECK_EQ(comp.src, to);
	CHECK_OK(weft_test_tsend(&t, &word, 8, to, 5, &tx));
	weft_test_wait_ok(t.txcq, &tx);
	weft_test_sync(line);
	weft_test_close(&t);
}

/* An endpoint that is bound to every address sends first, also over a link that
 * its name does not belong to. Bug: its packets then had the address of that
 * link, its peer did not know it by that address, and the answer to its name
 * failed with EHOSTUNREACH. */
static void to_afar(const char *source)
{
	struct weft_test_opts any = opts_of("0.0.0.0");
	struct weft_test_line line;
	struct fi_context tx, rx;
	uint64_t got = 0, word = 1;
	struct weft_test t;
	fi_addr_t to;

	printf("to the other host, which is bound to %s\n", source);
	fflush(stdout);
	weft_test_open(&t, &any);
	weft_test_fork(&line, far_server, (void *)(uintptr_t)source);
	CHECK_OK(weft_test_trecv(&t, &got, 8, 5, 0, &rx));
	to = weft_test_meet(&t, &line);
	CHECK_OK(weft_test_tsend(&t, &word, 8, to, 5, &tx));
	weft_test_wait_ok(t.txcq, &tx);
	weft_test_wait_ok(t.rxcq, &rx);
	CHECK_EQ(got, 2);
	weft_test_sync(&line);
	weft_test_join(&line);
	weft_test_close(&t);
}

int main(void)
{
	setenv("FI_WEFT_SHM", "0", 1);
	weft_test_begin(100);
	net_begin(1500);
	for (size_t i = 0; i < COUNT_OF(sources); i++) {
		printf("server first, client at %s\n", sources[i]);
		server_first(sources[i]);
		for (size_t j = 0; j < COUNT_OF(addrs); j++) {
			printf("client at %s to %s\n", sources[i], addrs[j]);
			fflush(stdout);
			client_first(sources[i], addrs[j]);
		}
	}
	from_afar();
	to_afar(net_addr(1));
	to_afar("0.0.0.0");
	to_afar(net_other_addr(1));
	return 0;
}
