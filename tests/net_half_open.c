/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process on another host is killed while the network between the hosts is
 * gone: its kernel forgets the connection, and ours keeps one that nobody is
 * at. When the network is back, operations under way end with errors at once,
 * long before the dead time-out, and one line names the peer: as one that has
 * ended; or as one that another process has replaced, and then the messages of
 * that process arrive.
 */
#include <signal.h>
#include <stdio.h>

#include "common/net.h"
#include "msg_util.h"

#define LARGE ((size_t)1 << 20)
#define OPERATIONS 3
#define TAG 7

struct life {
	uint16_t port; /* 0: any */
	uint64_t word; /* what it says; 0: nothing */
};

/* Bytes for the other host leave for a host that is not there. */
static void cut(void)
{
	for (int host = 0; host < NET_HOSTS; host++)
		net_ip(host,
		       "neigh replace %s lladdr 02:00:00:00:00:77 "
		       "dev link0 nud permanent",
		       net_addr(!host));
}

static void mend(void)
{
	for (int host = 0; host < NET_HOSTS; host++)
		net_ip(host, "neigh del %s dev link0", net_addr(!host));
}

/* -- on the other host ------------------------------------------------------ */

static void live(struct weft_test_line *line, void *arg)
{
	const struct life *life = arg;
	struct weft_test_opts opts = { 0 };
	struct fi_context context;
	uint64_t word = life->word;
	struct weft_test t;
	char service[8];
	fi_addr_t peer;
	uint16_t port;

	snprintf(service, sizeof(service), "%u", life->port);
	opts.service = life->port ? service : NULL;
	weft_test_open(&t, &opts);
	port = weft_test_port(&t);
	weft_test_put(line, &port, sizeof(port));
	peer = weft_test_meet(&t, line);
	weft_test_sync(line);
	if (word) {
		CHECK_OK(weft_test_tsend(&t, &word, sizeof(word), peer, TAG,
					 &context));
		weft_test_wait_ok(t.txcq, &context);
	}
	/* Until it is killed, or has nothing more to do. */
	weft_test_sync(line);
	weft_test_close(&t);
}

/* -- on this one ------------------------------------------------------------ */

static fi_addr_t begin(struct weft_test *t, struct weft_test_line *line,
		       struct life *life)
{
	weft_test_fork(line, live, life);
	CHECK(weft_test_get(line, &life->port, sizeof(life->port)));
	return weft_test_meet(t, line);
}

static void receive(struct weft_test *t, uint64_t want)
{
	struct fi_context context;
	uint64_t word = 0;

	CHECK_OK(weft_test_trecv(t, &word, sizeof(word), TAG, 0, &context));
	weft_test_wait_ok(t->rxcq, &context);
	CHECK_EQ(word, want);
}

/* It is connected, stopped, and has bytes that it has not read: so its kernel
 * says RST when it is killed, once, and to nobody. */
static void lose(struct weft_test *t, struct weft_test_line *line,
		 fi_addr_t peer, uint8_t *large, struct fi_context *contexts)
{
	CHECK_SYS(kill(line->pid, SIGSTOP));
	CHECK_OK(weft_test_tdeliver(t, large, 8, peer, TAG, &contexts[0]));
	CHECK_OK(weft_test_tsend(t, large, LARGE, peer, TAG, &contexts[1]));
	weft_test_progress_for(50);
	cut();
	weft_test_kill(line);
	CHECK_OK(weft_test_tdeliver(t, large, 8, peer, TAG, &contexts[2]));
	msg_expect_quiet(t->txcq, 50);
}

static void expect_failures(struct weft_test *t,
			    const struct fi_context *contexts)
{
	unsigned int failed = 0;

	for (int i = 0; i < OPERATIONS; i++) {
		struct weft_test_comp comp;
		ptrdiff_t which;

		weft_test_wait(t->txcq, &comp);
		which = (struct fi_context *)comp.entry.op_context - contexts;
		CHECK(which >= 0 && which < OPERATIONS);
		CHECK(comp.ret < 0);
		failed |= 1u << which;
	}
	CHECK_EQ(failed, (1u << OPERATIONS) - 1);
}

/* Whether the log has @count lines with both texts, and says so if not. */
static void expect_lines(const char *log, const char *one, const char *other,
			 int count)
{
	FILE *from = fopen(log, "r");
	char line[1024];
	int found = 0;

	CHECK(from);
	while (fgets(line, sizeof(line), from))
		found += strstr(line, one) && strstr(line, other);
	fclose(from);
	if (found != count)
		FAIL("%d lines with '%s' and '%s', not %d", found, one, other,
		     count);
}

int main(void)
{
	char log[] = "/tmp/net_half_open.XXXXXX";
	struct life first = { .word = 1 }, next;
	struct fi_context contexts[OPERATIONS];
	struct weft_test_line line, after;
	uint8_t *large = msg_alloc(LARGE);
	struct weft_test t;
	fi_addr_t peer;
	int fd, error;

	setenv("FI_WEFT_SHM", "0", 1);
	setenv("FI_WEFT_DEAD_TIMEOUT", "900", 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_PROV", "weft", 1);
	weft_test_begin(110);
	net_begin(1500);
	fd = mkstemp(log);
	CHECK_SYS(fd);
	error = dup(STDERR_FILENO);
	weft_test_open(&t, NULL);
	for (int replaced = 0; replaced < 2; replaced++) {
		first.port = 0;
		peer = begin(&t, &line, &first);
		weft_test_sync(&line);
		receive(&t, first.word);
		CHECK_SYS(dup2(fd, STDERR_FILENO));
		lose(&t, &line, peer, large, contexts);
		if (replaced) {
			next = (struct life){ first.port, 2 };
			(void)begin(&t, &after, &next);
			CHECK_EQ(next.port, first.port);
		}
		mend();
		expect_failures(&t, contexts);
		CHECK_SYS(dup2(error, STDERR_FILENO));
		if (replaced) {
			weft_test_sync(&after);
			receive(&t, next.word);
			weft_test_sync(&after);
			weft_test_join(&after);
		}
		expect_lines(log, net_addr(1), "its process has ended", 1);
		expect_lines(log, net_addr(1), "another process is at its",
			     replaced);
		expect_lines(log, "is lost", "", 1 + replaced);
	}
	weft_test_close(&t);
	unlink(log);
	close(error);
	close(fd);
	free(large);
	return 0;
}
