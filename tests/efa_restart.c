/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Servers on an EFA device, the one in software, that are killed and started
 * again while their client lives on: messages of the new one arrive, short and
 * long, nothing of the old one is taken for them, and sends of weft to the old
 * one fail. weft is the client and the efa provider of Debian's libfabric the
 * server, the reverse, and weft both.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define ROUNDS 3
#define SHORT 40
#define LONG 200000 /* read by the receiver, or sent when it asks */
#define NAME 32
#define PATIENCE 60 /* s */
#define TAG 100	    /* of a round, with 1 for the long message */

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_context2 contexts[2];
	uint8_t out[LONG], in[2][LONG];
};

struct server {
	pid_t pid;
	int in; /* its output */
};

static char self[512];

static void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "efa_restart: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void expect(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "efa_restart: %s\n", what);
	exit(1);
}

/* False: there is no such provider. */
static bool open_end(struct end *end, const char *provider)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	expect(hints, "no memory");
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_ADDR_EFA;
	hints->fabric_attr->prov_name = strdup(provider);
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &end->info))
		return false;
	fi_freeinfo(hints);
	must("fi_fabric",
	     fi_fabric(end->info->fabric_attr, &end->fabric, NULL));
	must("fi_domain",
	     fi_domain(end->fabric, end->info, &end->domain, NULL));
	must("fi_av_open", fi_av_open(end->domain, &av, &end->av, NULL));
	must("fi_cq_open", fi_cq_open(end->domain, &cq, &end->cq, NULL));
	must("fi_endpoint",
	     fi_endpoint(end->domain, end->info, &end->ep, NULL));
	must("bind", fi_ep_bind(end->ep, &end->av->fid, 0));
	must("bind", fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(end->ep));
	return true;
}

static void name_of(struct end *end, char text[2 * NAME + 1])
{
	uint8_t name[64];
	size_t len = sizeof(name);

	must("fi_getname", fi_getname(&end->ep->fid, name, &len));
	expect(len == NAME, "an address of another length");
	for (int i = 0; i < NAME; i++)
		snprintf(text + 2 * i, 3, "%02x", name[i]);
}

static fi_addr_t insert(struct end *end, const char *text)
{
	uint8_t name[NAME];
	fi_addr_t addr;

	for (int i = 0; i < NAME; i++) {
		unsigned int byte;

		expect(sscanf(text + 2 * i, "%2x", &byte) == 1,
		       "an address that is none");
		name[i] = (uint8_t)byte;
	}
	expect(fi_av_insert(end->av, name, 1, &addr, 0, NULL) == 1,
	       "an address is not taken");
	return addr;
}

/* @count completions. Returns how many of them failed. */
static int await(struct end *end, int count)
{
	time_t until = time(NULL) + PATIENCE;
	int failed = 0;

	while (count) {
		struct fi_cq_err_entry error = { .err = 0 };
		struct fi_cq_tagged_entry entry;
		ssize_t ret = fi_cq_read(end->cq, &entry, 1);

		expect(time(NULL) < until, "a completion does not come");
		if (ret == -FI_EAGAIN)
			continue;
		if (ret == -FI_EAVAIL) {
			must("fi_cq_readerr",
			     fi_cq_readerr(end->cq, &error, 0));
			failed++;
		} else {
			must("fi_cq_read", ret);
		}
		count--;
	}
	return failed;
}

static void post_recv(struct end *end, int which, uint64_t tag)
{
	memset(end->in[which], 0, LONG);
	must("fi_trecv",
	     fi_trecv(end->ep, end->in[which], LONG, NULL, FI_ADDR_UNSPEC, tag,
		      0, &end->contexts[which]));
}

static void send_one(struct end *end, fi_addr_t to, size_t len, uint64_t tag,
		     uint8_t byte)
{
	ssize_t ret;

	memset(end->out, byte, len);
	do {
		ret = fi_tsend(end->ep, end->out, len, NULL, to, tag,
			       &end->contexts[0]);
		fi_cq_read(end->cq, NULL, 0);
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
	char name[2 * NAME + 1];
	struct end *end = calloc(1, sizeof(*end));
	fi_addr_t to;

	if (!end || !open_end(end, provider))
		return 77;
	to = insert(end, client);
	post_recv(end, 0, tag);
	post_recv(end, 1, tag + 1);
	name_of(end, name);
	puts(name);
	fflush(stdout);
	await(end, 2);
	check(end, 0, SHORT, (uint8_t)round);
	check(end, 1, LONG, (uint8_t)(round + 1));
	send_one(end, to, SHORT, tag, (uint8_t)(round + 2));
	expect(!await(end, 1), "an answer fails");
	send_one(end, to, LONG, tag + 1, (uint8_t)(round + 3));
	for (;;)
		fi_cq_read(end->cq, NULL, 0);
}

static struct server start(const char *provider, const char *client, int round)
{
	struct server server;
	char number[16];
	int fds[2];

	snprintf(number, sizeof(number), "%d", round);
	expect(!pipe(fds), "no pipe");
	server.in = fds[0];
	server.pid = fork();
	if (!server.pid) {
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(self, self, "server", provider, client, number,
		      (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	expect(server.pid > 0, "no process");
	return server;
}

/* -- the client ------------------------------------------------------------- */

/* A client of libfabric 1.17 must be driven until its server is there. */
static void read_name(struct end *end, struct server *server,
		      char text[2 * NAME + 1])
{
	struct pollfd fd = { .fd = server->in, .events = POLLIN };
	size_t got = 0;

	while (got < 2 * NAME) {
		ssize_t more;

		fi_cq_read(end->cq, NULL, 0);
		if (poll(&fd, 1, 1) <= 0)
			continue;
		more = read(server->in, text + got, 2 * NAME - got);
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
	char name[2 * NAME + 1], text[2 * NAME + 1];
	struct end *end = calloc(1, sizeof(*end));

	if (!end || !open_end(end, client))
		return 77;
	name_of(end, name);
	for (int round = 1; round <= ROUNDS; round++) {
		struct server process = start(server, name, round);
		fi_addr_t to;

		read_name(end, &process, text);
		to = insert(end, text);
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
			must("fi_av_remove", fi_av_remove(end->av, &to, 1, 0));
	}
	return 0;
}

/* Each pair in a process of its own. */
static int run_apart(const char *client, const char *server)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		execl(self, self, "client", client, server, (char *)NULL);
		_exit(127);
	}
	expect(pid > 0 && waitpid(pid, &status, 0) == pid, "no process");
	printf("client %s, server %s: %d\n", client, server, status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	static const char *const pairs[][2] = {
		{ "weft", "weft" },
		{ "weft", "efa" },
		{ "efa", "weft" },
	};
	const char *build = getenv("WEFT_BUILD");
	const char *preload = getenv("LD_PRELOAD");
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char weft[512];

	expect(len > 0, "no name of this program");
	if (argc == 5 && !strcmp(argv[1], "server"))
		return serve(argv[2], argv[3], atoi(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "client"))
		return run(argv[2], argv[3]);
	setenv("FI_WEFT_NIC", "efa", 1);
	setenv("FI_WEFT_SHM", "0", 1);
	if (!preload || !strstr(preload, "libweft-efa.so")) {
		snprintf(weft, sizeof(weft), "%s/src/libweft-efa.so",
			 build ? build : "build");
		if (access(weft, F_OK)) {
			puts("libweft-efa.so is not built");
			return 77;
		}
		snprintf(weft, sizeof(weft), "%s/tools/weft",
			 build ? build : "build");
		execl(weft, weft, "efa", "--", self, (char *)NULL);
		fprintf(stderr, "efa_restart: no %s\n", weft);
		return 1;
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		int ret = run_apart(pairs[i][0], pairs[i][1]);

		if (ret)
			return ret;
	}
	return 0;
}
