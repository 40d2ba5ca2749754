/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs share this that open weft and the efa provider of Debian's libfabric
 * on an EFA device, the one in software, each in a process of its own.
 */
#ifndef WEFT_TESTS_EFA_UTIL_H
#define WEFT_TESTS_EFA_UTIL_H

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

#define EFA_NAME 32
#define EFA_TEXT (2 * EFA_NAME + 1)
#define EFA_PATIENCE 60 /* s */

struct efa_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* This program, for processes that run it again. */
static char efa_self[512];

static inline void must(const char *what, long ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "[%d] %s: %s\n", (int)getpid(), what,
		fi_strerror((int)-ret));
	exit(1);
}

static inline void expect(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "[%d] %s\n", (int)getpid(), what);
	exit(1);
}

/* False: there is no such provider. */
static inline bool efa_open(struct efa_end *end, const char *provider,
			    uint64_t caps, int mr_mode)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };

	expect(hints, "no memory");
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_ADDR_EFA;
	hints->domain_attr->mr_mode = mr_mode;
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

static inline void efa_name(struct efa_end *end, char text[EFA_TEXT])
{
	uint8_t name[64];
	size_t len = sizeof(name);

	must("fi_getname", fi_getname(&end->ep->fid, name, &len));
	expect(len == EFA_NAME, "an address of another length");
	for (int i = 0; i < EFA_NAME; i++)
		snprintf(text + 2 * i, 3, "%02x", name[i]);
}

static inline fi_addr_t efa_insert(struct efa_end *end, const char *text)
{
	uint8_t name[EFA_NAME];
	fi_addr_t addr;

	for (int i = 0; i < EFA_NAME; i++) {
		unsigned int byte;

		expect(sscanf(text + 2 * i, "%2x", &byte) == 1,
		       "an address that is none");
		name[i] = (uint8_t)byte;
	}
	expect(fi_av_insert(end->av, name, 1, &addr, 0, NULL) == 1,
	       "an address is not taken");
	return addr;
}

/* The next completion. Returns whether it is a success. */
static inline bool efa_next(struct efa_end *end,
			    struct fi_cq_tagged_entry *entry)
{
	time_t until = time(NULL) + EFA_PATIENCE;
	struct fi_cq_err_entry error = { .err = 0 };
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, entry, 1)) == -FI_EAGAIN)
		expect(time(NULL) < until, "a completion does not come");
	if (ret != -FI_EAVAIL) {
		must("fi_cq_read", ret);
		return true;
	}
	must("fi_cq_readerr", fi_cq_readerr(end->cq, &error, 0));
	return false;
}

/* Runs this program again, with these words, in a process of its own. @out: its
 * standard output, or NULL. */
static inline pid_t efa_start(const char *const words[4], int *out)
{
	int fds[2] = { -1, -1 };
	pid_t pid;

	expect(!out || !pipe(fds), "no pipe");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (out) {
			dup2(fds[1], STDOUT_FILENO);
			close(fds[0]);
			close(fds[1]);
		}
		execl(efa_self, efa_self, words[0], words[1], words[2],
		      words[3], (char *)NULL);
		_exit(127);
	}
	expect(pid > 0, "no process");
	if (out) {
		close(fds[1]);
		*out = fds[0];
	}
	return pid;
}

static inline int efa_wait(pid_t pid)
{
	int status = 0;

	expect(waitpid(pid, &status, 0) == pid, "no process");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Each pair of a client and a server, in a process that is told "client" and
 * both. Starts the program again on the device first. */
static inline int efa_main(void)
{
	static const char *const pairs[][2] = {
		{ "weft", "weft" },
		{ "weft", "efa" },
		{ "efa", "weft" },
	};
	const char *build = getenv("WEFT_BUILD");
	const char *preload = getenv("LD_PRELOAD");
	char weft[512];

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
		execl(weft, weft, "efa", "--", efa_self, (char *)NULL);
		fprintf(stderr, "no %s\n", weft);
		return 1;
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *const words[4] = { "client", pairs[i][0],
					       pairs[i][1] };
		int ret = efa_wait(efa_start(words, NULL));

		printf("client %s, server %s: %d\n", pairs[i][0], pairs[i][1],
		       ret);
		if (ret)
			return ret;
	}
	return 0;
}

static inline void efa_begin(void)
{
	ssize_t len =
		readlink("/proc/self/exe", efa_self, sizeof(efa_self) - 1);

	expect(len > 0, "no name of this program");
}

#endif
