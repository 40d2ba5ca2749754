/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of other hosts that cannot be reached over TCP, each in its own way:
 * the port is closed, a firewall drops everything, something listens there that
 * does not answer, there is no route. Each operation ends with an error
 * completion once the connect time-out is over, injected ones as well; one line
 * names each of these peers; and another peer is served meanwhile. Of many peers
 * at once, as on a host that is down, four are named. (Bug: four every 250 ms.)
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include "common/net.h"
#include "msg_util.h"

#define TIMEOUT_MS 4000 /* FI_WEFT_CONNECT_TIMEOUT; the line comes after 2 s */
#define LARGE 100000
#define OPERATIONS 3
#define MANY 12
#define NAMED 4
#define PAUSE_MS 300

enum kind { CLOSED, DROPPED, MUTE, NO_ROUTE, KINDS };

static const char *const what[KINDS] = { "closed", "dropped", "mute",
					 "no route" };
/* Of the other host, and of nobody. */
static const char *const addrs[KINDS] = { "10.99.0.2", "10.99.0.77",
					  "10.99.1.2", "10.88.0.1" };

/* A port of @addr on the other host: bound, and perhaps listening. The kernel
 * connects those who come, and nobody reads what they say. */
static uint16_t take_port(const char *addr, bool listens)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int fd;

	net_enter(1);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_SYS(fd);
	CHECK_EQ(inet_pton(AF_INET, addr, &sin.sin_addr), 1);
	CHECK_SYS(bind(fd, (struct sockaddr *)&sin, sizeof(sin)));
	if (listens)
		CHECK_SYS(listen(fd, 100));
	CHECK_SYS(getsockname(fd, (struct sockaddr *)&sin, &len));
	net_enter(0);
	return ntohs(sin.sin_port);
}

static void make_addrs(uint16_t ports[KINDS])
{
	ports[CLOSED] = take_port(addrs[CLOSED], false);
	ports[DROPPED] = 7777;
	ports[MUTE] = take_port(addrs[MUTE], true);
	ports[NO_ROUTE] = 7777;
	net_ip(0, "neigh replace %s lladdr 02:00:00:00:00:77 dev link0",
	       addrs[DROPPED]);
	net_ip(0, "route add unreachable 10.88.0.0/16");
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

/* One more host that a firewall hides. */
static fi_addr_t hide(struct weft_test *t, int i)
{
	char addr[INET_ADDRSTRLEN];

	snprintf(addr, sizeof(addr), "10.99.0.%d", 100 + i);
	net_ip(0, "neigh replace %s lladdr 02:00:00:00:00:77 dev link0", addr);
	return insert(t, addr, 7777);
}

/* Of the log: lines with both texts. */
static int count_lines(const char *log, const char *one, const char *other)
{
	FILE *from = fopen(log, "r");
	char line[1024];
	int count = 0;

	CHECK(from);
	while (fgets(line, sizeof(line), from))
		count += strstr(line, one) && strstr(line, other);
	fclose(from);
	return count;
}

static void echo(struct weft_test_line *line, void *arg)
{
	struct weft_test t;
	fi_addr_t peer;
	char mark;

	(void)arg;
	weft_test_open(&t, NULL);
	peer = weft_test_meet(&t, line);
	while (weft_test_get_driving(line, &mark, 1) && mark == 'm') {
		struct fi_context context;
		uint64_t word;

		CHECK_OK(weft_test_recv(&t, &word, sizeof(word), &context));
		weft_test_wait_ok(t.rxcq, &context);
		CHECK_OK(weft_test_send(&t, &word, sizeof(word), peer,
					&context));
		weft_test_wait_ok(t.txcq, &context);
	}
	weft_test_close(&t);
}

struct world {
	struct weft_test t;
	struct weft_test_line line;
	fi_addr_t good, bad[KINDS];
	struct fi_context tx[KINDS][OPERATIONS];
	int failed[KINDS];
	int unnamed; /* injected: the completion does not say which */
	uint8_t *large;
};

static void take(struct world *w, const struct weft_test_comp *comp)
{
	const struct fi_context *context = comp->entry.op_context;

	CHECK_EQ(comp->ret, -FI_EHOSTUNREACH);
	if (!context) {
		w->unnamed++;
		return;
	}
	for (int kind = 0; kind < KINDS; kind++)
		for (int i = 0; i < OPERATIONS; i++)
			w->failed[kind] += context == &w->tx[kind][i];
}

/* A message to the peer that is there, and its answer. */
static void ask_good(struct world *w, uint64_t word)
{
	struct fi_context tx, rx;
	struct weft_test_comp comp;
	uint64_t got = 0;

	weft_test_put(&w->line, "m", 1);
	CHECK_OK(weft_test_recv(&w->t, &got, sizeof(got), &rx));
	CHECK_OK(weft_test_send(&w->t, &word, sizeof(word), w->good, &tx));
	for (;;) {
		weft_test_wait(w->t.txcq, &comp);
		if (comp.entry.op_context == &tx)
			break;
		take(w, &comp);
	}
	CHECK_EQ(comp.ret, 1);
	weft_test_wait_ok(w->t.rxcq, &rx);
	CHECK_EQ(got, word);
}

static void begin(struct world *w)
{
	uint64_t word = 1;

	for (int kind = 0; kind < KINDS; kind++) {
		struct fi_context *tx = w->tx[kind];

		CHECK_OK(weft_test_send(&w->t, &word, sizeof(word),
					w->bad[kind], &tx[0]));
		CHECK_OK(weft_test_tsend(&w->t, w->large, LARGE, w->bad[kind],
					 1, &tx[1]));
		CHECK_OK(weft_test_tdeliver(&w->t, w->large, 8, w->bad[kind], 2,
					    &tx[2]));
		CHECK_OK(weft_test_inject(&w->t, &word, sizeof(word),
					  w->bad[kind]));
	}
}

static bool is_over(const struct world *w)
{
	bool over = w->unnamed == KINDS;

	for (int kind = 0; kind < KINDS; kind++)
		over &= w->failed[kind] == OPERATIONS;
	return over;
}

/* Many at once, half of them a little later. Whether the later ones were begun
 * while the first ones were waited for, as they are if no other program takes the
 * processors for a second. */
static bool begin_many(struct world *w)
{
	fi_addr_t hidden[MANY];
	uint64_t began, word = 1;

	for (int i = 0; i < MANY; i++)
		hidden[i] = hide(&w->t, i);
	w->unnamed = 0;
	began = weft_test_ms();
	for (int i = 0; i < MANY; i++) {
		if (i == MANY / 2)
			weft_test_progress_for(PAUSE_MS);
		CHECK_OK(weft_test_inject(&w->t, &word, sizeof(word),
					  hidden[i]));
	}
	return weft_test_ms() - began < PAUSE_MS + 1000;
}

int main(void)
{
	char log[] = "/tmp/net_errors.XXXXXX";
	struct world w = { .large = msg_alloc(LARGE) };
	struct weft_test_comp comp;
	uint16_t ports[KINDS];
	uint64_t began, word = 0;
	int saved, fd, named;
	bool together;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "4000", 1);
	weft_test_begin(110);
	net_begin(1500);
	make_addrs(ports);
	fd = mkstemp(log);
	CHECK_SYS(fd);
	saved = dup(STDERR_FILENO);
	weft_test_fork(&w.line, echo, NULL);
	CHECK_SYS(dup2(fd, STDERR_FILENO));
	weft_test_open(&w.t, NULL);
	w.good = weft_test_meet(&w.t, &w.line);
	for (int kind = 0; kind < KINDS; kind++)
		w.bad[kind] = insert(&w.t, addrs[kind], ports[kind]);
	ask_good(&w, word);
	began = weft_test_ms();
	begin(&w);
	while (!is_over(&w)) {
		ask_good(&w, ++word);
		while (weft_test_wait_for(w.t.txcq, &comp, 50))
			take(&w, &comp);
		CHECK(weft_test_ms() - began < WEFT_TEST_PATIENCE_MS);
	}
	printf("all failed after %llu ms, %llu answers of another peer\n",
	       (unsigned long long)(weft_test_ms() - began),
	       (unsigned long long)word);
	together = begin_many(&w);
	while (w.unnamed < MANY) {
		weft_test_wait(w.t.txcq, &comp);
		take(&w, &comp);
	}
	CHECK_SYS(dup2(saved, STDERR_FILENO));
	for (int kind = 0; kind < KINDS; kind++) {
		int lines = count_lines(log, "no answer from", addrs[kind]);

		if (lines != 1)
			FAIL("%s: %d lines", what[kind], lines);
	}
	named = count_lines(log, "no answer from 10.99.0.1", ":7777");
	printf("%d of %d named%s\n", named, MANY,
	       together ? "" : ", which were not waited for together");
	if (together) {
		CHECK_EQ(named, NAMED);
		CHECK_EQ(count_lines(log, "from more peers", "weft why"), 1);
		CHECK_EQ(count_lines(log, "", ""), KINDS + NAMED + 1);
	}
	unlink(log);
	CHECK(word > 1);
	weft_test_put(&w.line, "e", 1);
	weft_test_close(&w.t);
	weft_test_join(&w.line);
	free(w.large);
	return 0;
}
