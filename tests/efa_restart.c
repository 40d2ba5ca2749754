/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers on an EFA device, the one in software, that are killed and started
 * again while their client lives on: messages of the new one arrive, short and
 * long, nothing of the old one is taken for them, and sends of weft to the old
 * one fail. weft is the client and the efa provider of Debian's libfabric the
 * server, the reverse, and weft both.
 */
#include "efa_util.h"

#include <poll.h>
#include <signal.h>

#define ROUNDS 3
#define SHORT 40
#define LONG 200000 /* read by the receiver, or sent when it asks */
#define TAG 100	    /* of a round, with 1 for the long message */

struct end {
	struct efa_end efa;
	struct fi_context2 contexts[2];
	uint8_t out[LONG], in[2][LONG];
};

struct server {
	pid_t pid;
	int in; /* its output */
};

/* @count completions. Returns how many of them failed. */
static int await(struct end *end, int count)
{
	struct fi_cq_tagged_entry entry;
	int failed = 0;

	for (; count; count--)
		failed += !efa_next(&end->efa, &entry);
	return failed;
}

static void post_recv(struct end *end, int which, uint64_t tag)
{
	memset(end->in[which], 0, LONG);
	must("fi_trecv",
	     fi_trecv(end->efa.ep, end->in[which], LONG, NULL, FI_ADDR_UNSPEC,
		      tag, 0, &end->contexts[which]));
}

static void send_one(struct end *end, fi_addr_t to, size_t len, uint64_t tag,
		     uint8_t byte)
{
	ssize_t ret;

	memset(end->out, byte, len);
	do {
		ret = fi_tsend(end->efa.ep, end->out, len, NULL, to, tag,
			       &end->contexts[0]);
		fi_cq_read(end->efa.cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	must("fi_tsend", ret);
}

static void check(const struct end *end, int which, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++)
		expect(end->in[which][i] == byte, "bytes of another message");
}

/* -- the server ------------------------------------------------------------- */

/* Answers a short and a long message, then sends and drives until it is killed. */
static int serve(const char *provider, const char *client, int round)
{
	uint64_t tag = (uint64_t)round * TAG;
	char name[EFA_TEXT];
	struct end *end = calloc(1, sizeof(*end));
	fi_addr_t to;

	if (!end || !efa_open(&end->efa, provider, FI_TAGGED, 0))
		return 77;
	to = efa_insert(&end->efa, client);
	post_recv(end, 0, tag);
	post_recv(end, 1, tag + 1);
	efa_name(&end->efa, name);
	puts(name);
	fflush(stdout);
	await(end, 2);
	check(end, 0, SHORT, (uint8_t)round);
	check(end, 1, LONG, (uint8_t)(round + 1));
	send_one(end, to, SHORT, tag, (uint8_t)(round + 2));
	expect(!await(end, 1), "an answer fails");
	send_one(end, to, LONG, tag + 1, (uint8_t)(round + 3));
	for (;;)
		fi_cq_read(end->efa.cq, NULL, 0);
}

static struct server start(const char *provider, const char *client, int round)
{
	struct server server;
	char number[16];
	const char *const words[4] = { "server", provider, client, number };

	snprintf(number, sizeof(number), "%d", round);
	server.pid = efa_start(words, &server.in);
	return server;
}

/* -- the client ------------------------------------------------------------- */

/* A client of libfabric 1.17 must be driven until its server is there. */
static void read_name(struct end *end, struct server *server,
		      char text[EFA_TEXT])
{
	struct pollfd fd = { .fd = server->in, .events = POLLIN };
	size_t got = 0;

	while (got < EFA_TEXT - 1) {
		ssize_t more;

		fi_cq_read(end->efa.cq, NULL, 0);
		if (poll(&fd, 1, 1) <= 0)
			continue;
		more = read(server->in, text + got, EFA_TEXT - 1 - got);
		expect(more > 0, "the server has ended");
		got += (size_t)more;
	}
	text[got] = '\0';
}

static void talk(struct end *end, fi_addr_t to, int round)
{
	uint64_t tag = (uint64_t)round * TAG;

	post_recv(end, 0, tag);
	post_recv(end, 1, tag + 1);
	send_one(end, to, SHORT, tag, (uint8_t)round);
	expect(!await(end, 1), "a short message fails");
	send_one(end, to, LONG, tag + 1, (uint8_t)(round + 1));
	expect(!await(end, 3), "a message or an answer fails");
	check(end, 0, SHORT, (uint8_t)(round + 2));
	check(end, 1, LONG, (uint8_t)(round + 3));
}

static int run(const char *client, const char *server)
{
	bool own = !strcmp(client, "weft");
	char name[EFA_TEXT], text[EFA_TEXT];
	struct end *end = calloc(1, sizeof(*end));

	if (!end || !efa_open(&end->efa, client, FI_TAGGED, 0))
		return 77;
	efa_name(&end->efa, name);
	for (int round = 1; round <= ROUNDS; round++) {
		struct server process = start(server, name, round);
		fi_addr_t to;

		read_name(end, &process, text);
		to = efa_insert(&end->efa, text);
		talk(end, to, round);
		kill(process.pid, SIGKILL);
		waitpid(process.pid, NULL, 0);
		close(process.in);
		/* libfabric 1.17 reports it, or calls abort(). */
		if (own) {
			send_one(end, to, LONG, 7, 7);
			expect(await(end, 1) == 1, "nobody has this message");
		}
		/* The old one stays known in one round, and goes in another. */
		if (round % 2)
			must("fi_av_remove",
			     fi_av_remove(end->efa.av, &to, 1, 0));
	}
	return 0;
}

int main(int argc, char **argv)
{
	efa_begin();
	if (argc == 5 && !strcmp(argv[1], "server"))
		return serve(argv[2], argv[3], atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "client"))
		return run(argv[2], argv[3]);
	return efa_main();
}
