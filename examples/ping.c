/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes send a message back and forth through libfabric and print how
 * long one way takes. Nothing in here is special to weft: the provider is the
 * first argument ("weft"), the number of round trips the second (20000).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define TAG 7

struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
};

static void check(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "ping: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static void open_side(struct side *s, const char *provider)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		check("fi_allocinfo", -FI_ENOMEM);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider);
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info);
	if (ret == -FI_ENODATA) {
		fprintf(stderr,
			"ping: libfabric finds no provider %s: `fi_info -l` "
			"lists them, FI_PROVIDER_PATH adds a folder\n",
			provider);
		exit(1);
	}
	check("fi_getinfo", ret);
	fi_freeinfo(hints);
	check("fi_fabric", fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	check("fi_domain", fi_domain(s->fabric, s->info, &s->domain, NULL));
	check("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	check("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	check("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	check("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	check("fi_ep_bind",
	      fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_enable", fi_enable(s->ep));
}

static void close_side(struct side *s)
{
	fi_close(&s->ep->fid);
	fi_close(&s->cq->fid);
	fi_close(&s->av->fid);
	fi_close(&s->domain->fid);
	fi_close(&s->fabric->fid);
	fi_freeinfo(s->info);
}

/* The processes tell each other their addresses through a socket. */
static void exchange_names(struct side *s, int fd)
{
	char name[256], other[256];
	size_t len = sizeof(name);
	ssize_t got;

	check("fi_getname", fi_getname(&s->ep->fid, name, &len));
	if (send(fd, name, len, 0) != (ssize_t)len)
		check("send", -errno);
	got = recv(fd, other, sizeof(other), 0);
	if (got <= 0)
		check("recv", got ? -errno : -FI_ECONNRESET);
	if (fi_av_insert(s->av, other, 1, &s->peer, 0, NULL) != 1)
		check("fi_av_insert", -FI_EINVAL);
}

/* Waits for one completion. */
static void complete(struct side *s)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { .err = FI_EOTHER };
	ssize_t got;

	do {
		got = fi_cq_read(s->cq, &entry, 1);
	} while (got == -FI_EAGAIN);
	if (got == -FI_EAVAIL) {
		fi_cq_readerr(s->cq, &err, 0);
		got = -err.err;
	}
	check("fi_cq_read", got);
}

static void send_one(struct side *s, const void *buf, size_t len)
{
	ssize_t ret;

	do {
		ret = fi_tinject(s->ep, buf, len, s->peer, TAG);
		if (ret == -FI_EAGAIN) /* progress makes room */
			fi_cq_read(s->cq, NULL, 0);
	} while (ret == -FI_EAGAIN);
	check("fi_tinject", ret);
}

static void receive_one(struct side *s, void *buf, size_t len)
{
	check("fi_trecv",
	      fi_trecv(s->ep, buf, len, NULL, s->peer, TAG, 0, NULL));
	complete(s);
}

static void play(struct side *s, int first, int rounds)
{
	char buf[8] = "ping";
	struct timespec begin, end;
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < rounds; i++) {
		if (first)
			send_one(s, buf, sizeof(buf));
		receive_one(s, buf, sizeof(buf));
		if (!first)
			send_one(s, buf, sizeof(buf));
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 +
	     (double)(end.tv_nsec - begin.tv_nsec);
	if (first)
		printf("%s: %d round trips of %zu bytes, %.0f ns one way\n",
		       s->info->fabric_attr->prov_name, rounds, sizeof(buf),
		       ns / rounds / 2);
}

int main(int argc, char **argv)
{
	const char *provider = argc > 1 ? argv[1] : "weft";
	int rounds = argc > 2 ? atoi(argv[2]) : 20000;
	struct side side;
	int fds[2], status = 0;
	pid_t child;
	char bye = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		check("socketpair", -errno);
	/* Before libfabric is used: rings are not inherited. */
	child = fork();
	if (child < 0)
		check("fork", -errno);
	close(fds[child ? 0 : 1]);
	open_side(&side, provider);
	exchange_names(&side, fds[child ? 1 : 0]);
	play(&side, child != 0, rounds);
	/* Whoever has sent last must make progress until it has arrived. */
	if (child)
		(void)!send(fds[1], &bye, 1, 0);
	else
		while (recv(fds[0], &bye, 1, MSG_DONTWAIT) < 0 &&
		       errno == EAGAIN)
			fi_cq_read(side.cq, NULL, 0);
	close_side(&side);
	if (!child)
		return 0;
	waitpid(child, &status, 0);
	return status ? 1 : 0;
}
