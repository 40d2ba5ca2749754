/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two links between the same hosts: FI_WEFT_IFACE selects whose address
 * endpoints use, and their packets go over that link. Without it the first link
 * is used.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/net.h"
#include "msg_util.h"

#define BYTES ((size_t)1 << 20)

static const struct weft_test_opts opts = { .any_node = true };

static void check_name(const struct weft_test *t, const char *want)
{
	char text[INET_ADDRSTRLEN];
	struct sockaddr_in sin;

	memcpy(&sin, t->name, sizeof(sin));
	CHECK(inet_ntop(AF_INET, &sin.sin_addr, text, sizeof(text)));
	if (strcmp(text, want))
		FAIL("%s instead of %s", text, want);
}

static void side(struct weft_test_line *line, void *arg)
{
	const char *link = arg;
	bool first = !strcmp(link, "link0");
	const char *other = first ? "link1" : "link0";
	unsigned long long sent, strayed;
	uint8_t *out = msg_alloc(BYTES), *in = msg_alloc(BYTES);
	struct fi_context tx, rx;
	struct weft_test t;
	fi_addr_t peer;

	sent = net_sent(link);
	strayed = net_sent(other);
	weft_test_open(&t, &opts);
	check_name(&t,
		   first ? net_addr(net_here()) : net_other_addr(net_here()));
	peer = weft_test_meet(&t, line);
	weft_test_fill(out, BYTES, 1);
	CHECK_OK(weft_test_trecv(&t, in, BYTES, 1, 0, &rx));
	CHECK_OK(weft_test_tsend(&t, out, BYTES, peer, 1, &tx));
	weft_test_wait_ok(t.txcq, &tx);
	weft_test_wait_ok(t.rxcq, &rx);
	CHECK(weft_test_holds(in, BYTES, 1));
	weft_test_sync(line);
	CHECK(net_sent(link) - sent > BYTES);
	CHECK(net_sent(other) - strayed < BYTES / 16);
	weft_test_close(&t);
	free(out);
	free(in);
}

static void run(struct weft_test_line *unused, void *arg)
{
	struct weft_test_line line;

	(void)unused;
	weft_test_fork(&line, side, arg);
	side(&line, arg);
	weft_test_join(&line);
}

int main(void)
{
	static char first[] = "link0", second[] = "link1";

	weft_test_begin(60);
	net_begin(1500);
	unsetenv("FI_WEFT_IFACE");
	msg_run_apart(run, first);
	setenv("FI_WEFT_IFACE", second, 1);
	msg_run_apart(run, second);
	setenv("FI_WEFT_IFACE", first, 1);
	msg_run_apart(run, first);
	return 0;
}
