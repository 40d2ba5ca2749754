/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Strangers on another host, of which none is a weft process: SYNs from addresses
 * that never answer, more than the kernel keeps for a port, and then connections
 * that say nothing, or a byte each. The descriptors of the endpoint stay bounded, a
 * peer that is connected is served, and one that comes now is let in.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/net.h"
#include "msg_util.h"

#define SYNS 8192	/* the kernel keeps 4096 */
#define CONNECTIONS 600 /* weft keeps 256 */
#define KEPT 270	/* those, and the peers that are let in */
#define ROUNDS 20
#define LARGE 100000
/* Of them comes what is forged: nobody answers there. */
#define NOWHERE "10.77.0.0"
#define GATEWAY "10.99.0.77"

/* Turns on SYN cookies, with which a kernel answers more SYNs than it keeps.
 * False: it cannot. */
static bool use_cookies(void)
{
	int fd = open("/proc/sys/net/ipv4/tcp_syncookies", O_WRONLY);
	bool done = fd >= 0 && write(fd, "1", 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

/* -- strangers, on the other host -------------------------------------------- */

struct packet {
	struct iphdr ip;
	struct tcphdr tcp;
};

static uint32_t add_up(uint32_t sum, const void *bytes, size_t len)
{
	for (size_t at = 0; at < len; at += 2) {
		uint16_t word;

		memcpy(&word, (const char *)bytes + at, sizeof(word));
		sum += word;
	}
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* A SYN from the @i-th address and port of nowhere. */
static struct packet make_syn(uint32_t i, const struct sockaddr_in *to)
{
	uint32_t from = ntohl(inet_addr(NOWHERE)) + 1 + i % 65000;
	const uint16_t pseudo[2] = { htons(IPPROTO_TCP),
				     htons(sizeof(struct tcphdr)) };
	struct packet p = {
		.ip = { .version = 4,
			.ihl = 5,
			.tot_len = htons(sizeof(p)),
			.ttl = 64,
			.protocol = IPPROTO_TCP,
			.saddr = htonl(from),
			.daddr = to->sin_addr.s_addr },
		.tcp = { .source = htons((uint16_t)(1024 + i % 60000)),
			 .dest = to->sin_port,
			 .seq = htonl(i * 2654435761u),
			 .doff = 5,
			 .syn = 1,
			 .window = htons(64000) },
	};
	uint32_t sum = add_up(0, &p.tcp, sizeof(p.tcp));

	sum = add_up(sum, &p.ip.saddr, 2 * sizeof(p.ip.saddr));
	p.tcp.check = fold(add_up(sum, pseudo, sizeof(pseudo)));
	return p;
}

static void send_syns(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);

	CHECK_SYS(fd);
	for (uint32_t i = 0; i < SYNS; i++) {
		struct packet syn = make_syn(i, to);

		CHECK_EQ(sendto(fd, &syn, sizeof(syn), 0,
				(const struct sockaddr *)to, sizeof(*to)),
			 sizeof(syn));
	}
	close(fd);
}

static void strangers(struct weft_test_line *line, void *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	static int fds[CONNECTIONS];

	(void)arg;
	CHECK_EQ(inet_pton(AF_INET, net_addr(0), &to.sin_addr), 1);
	CHECK(weft_test_get(line, &to.sin_port, sizeof(to.sin_port)));
	send_syns(&to);
	weft_test_sync(line);
	weft_test_sync(line);
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
		CHECK_SYS(fds[i]);
		CHECK_SYS(connect(fds[i], (struct sockaddr *)&to, sizeof(to)));
		if (i % 2)
			(void)!send(fds[i], "w", 1, MSG_NOSIGNAL);
	}
	weft_test_sync(line);
	weft_test_sync(line); /* they stay until then */
}

/* -- peers ------------------------------------------------------------------- */

static void echo(struct weft_test_line *line, void *arg)
{
	uint8_t *bytes = msg_alloc(LARGE);
	struct weft_test t;
	fi_addr_t peer;
	uint64_t len;

	(void)arg;
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	while (weft_test_get_driving(line, &len, sizeof(len)) && len) {
		struct fi_context context;

		CHECK_OK(weft_test_recv(&t, bytes, LARGE, &context));
		weft_test_wait_ok(t.rxcq, &context);
		CHECK_OK(weft_test_send(&t, bytes, len, peer, &context));
		weft_test_wait_ok(t.txcq, &context);
	}
	weft_test_close(&t);
	free(bytes);
}

/* Sends bytes to the peer, and expects them back. */
static void ask(struct weft_test *t, struct weft_test_line *line,
		fi_addr_t peer, uint64_t len, uint64_t seed)
{
	static uint8_t out[LARGE], in[LARGE];
	struct fi_context tx, rx;

	weft_test_fill(out, len, seed);
	memset(in, 0, sizeof(in));
	weft_test_put(line, &len, sizeof(len));
	CHECK_OK(weft_test_recv(t, in, sizeof(in), &rx));
	CHECK_OK(weft_test_send(t, out, len, peer, &tx));
	weft_test_wait_ok(t->txcq, &tx);
	weft_test_wait_ok(t->rxcq, &rx);
	CHECK(weft_test_holds(in, len, seed));
}

static void finish(struct weft_test_line *line)
{
	const uint64_t over = 0;

	weft_test_put(line, &over, sizeof(over));
	weft_test_join(line);
}

/* A peer that the endpoint has not seen before. */
static void let_in(struct weft_test *t)
{
	struct weft_test_line line;
	fi_addr_t peer;

	weft_test_fork(&line, echo, NULL);
	peer = weft_test_meet(t, &line);
	ask(t, &line, peer, 8, 1);
	ask(t, &line, peer, LARGE, 2);
	finish(&line);
}

static int descriptors(void)
{
	struct weft_test_traces now;

	weft_test_look(&now);
	return now.descriptors;
}

int main(void)
{
	struct weft_test_line line, flood;
	struct weft_test t;
	fi_addr_t peer;
	unsigned long long cookies;
	in_port_t port;
	int before;

	setenv("FI_WEFT_SHM", "0", 1);
	weft_test_begin(110);
	net_begin(1500);
	if (!use_cookies()) {
		printf("no SYN cookies here\n");
		return 77;
	}
	net_ip(0, "neigh replace " GATEWAY " lladdr 02:00:00:00:00:77 "
		  "dev link0");
	net_ip(0, "route add " NOWHERE "/16 via " GATEWAY);
	weft_test_open(&t, NULL);
	weft_test_fork(&line, echo, NULL);
	peer = weft_test_meet(&t, &line);
	ask(&t, &line, peer, LARGE, 3);
	weft_test_fork(&flood, strangers, NULL);
	port = htons(weft_test_port(&t));
	before = descriptors();
	weft_test_put(&flood, &port, sizeof(port));
	weft_test_sync(&flood);
	/* A SYN takes nothing of the process. */
	CHECK(descriptors() <= before + 2);
	let_in(&t);
	cookies = net_tcp_count("SyncookiesSent");
	printf("%llu of %d SYNs were answered by cookies\n", cookies, SYNS);
	CHECK(cookies);
	weft_test_sync(&flood);
	weft_test_sync(&flood);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		ask(&t, &line, peer, i % 2 ? LARGE : 8, i);
		CHECK(descriptors() <= before + KEPT);
	}
	let_in(&t);
	printf("%d descriptors, with %d connections of strangers %d\n", before,
	       CONNECTIONS, descriptors());
	weft_test_sync(&flood);
	weft_test_join(&flood);
	finish(&line);
	weft_test_close(&t);
	return 0;
}
