/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo() as applications see it: what is listed, which addresses are
 * returned for which names, and what the environment changes. Hints have a test
 * of their own (prov_hints).
 */
#include "prov_info_check.h"

#include <sys/wait.h>
#include <unistd.h>

static void check_info(const struct fi_info *info, uint32_t version)
{
	const struct sockaddr_in *in = info->src_addr;

	CHECK(!strcmp(info->fabric_attr->prov_name, "weft"), "%s",
	      info->fabric_attr->prov_name);
	CHECK(!strcmp(info->fabric_attr->name, "weft"), "%s",
	      info->fabric_attr->name);
	CHECK(info->domain_attr->name && *info->domain_attr->name, "no name");
	CHECK_INT(info->fabric_attr->api_version, version);
	CHECK_INT(info->ep_attr->type, FI_EP_RDM);
	CHECK_INT(info->mode, 0);
	CHECK(info->caps & FI_MSG && info->caps & FI_TAGGED &&
		      info->caps & FI_SEND && info->caps & FI_RECV,
	      "caps 0x%llx", (unsigned long long)info->caps);
	CHECK(!(info->tx_attr->caps & ~info->caps), "tx");
	CHECK(!(info->rx_attr->caps & ~info->caps), "rx");
	/* The order that costs nothing; stricter orders must be requested. */
	CHECK_INT(info->tx_attr->msg_order & FI_ORDER_STRICT, FI_ORDER_SAS);
	CHECK_INT(info->rx_attr->msg_order, info->tx_attr->msg_order);
	CHECK(info->caps & FI_RMA && info->caps & FI_ATOMIC &&
		      info->caps & FI_REMOTE_READ && info->caps & FI_WRITE,
	      "caps 0x%llx", (unsigned long long)info->caps);
	CHECK_INT(info->tx_attr->rma_iov_limit, 4);
	CHECK_INT(info->tx_attr->inject_size, 4096);
	CHECK_INT(info->tx_attr->size, 1024);
	CHECK_INT(info->rx_attr->size, 1024);
	CHECK_INT(info->tx_attr->iov_limit, 4);
	CHECK(info->ep_attr->mem_tag_format >> 63,
	      "Open MPI needs the top bit");
	CHECK_INT(info->ep_attr->max_msg_size, 1ll << 40);
	CHECK_INT(info->domain_attr->threading, FI_THREAD_SAFE);
	CHECK_INT(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	CHECK_INT(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	CHECK_INT(info->domain_attr->cq_data_size, 8);
	CHECK_INT(info->domain_attr->mr_mode,
		  version < FI_VERSION(1, 5) ? FI_MR_SCALABLE : 0);
	CHECK_INT(info->domain_attr->max_ep_tx_ctx, 1);
	CHECK(in, "no source");
	CHECK_INT(in->sin_port, 0);
	CHECK_INT(info->src_addrlen, in->sin_family == AF_INET ?
					     sizeof(struct sockaddr_in) :
					     sizeof(struct sockaddr_in6));
	CHECK_INT(info->addr_format,
		  in->sin_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6);
	CHECK(!info->dest_addr, "a destination out of nothing");
}

/* MPICH starts with no hints and version 0. */
static void test_listing(uint32_t version)
{
	struct fi_info *list = get_info(version, NULL, NULL, 0, NULL, 0);
	bool loopback = false;

	CHECK(list, "nothing is listed");
	for (struct fi_info *info = list; info; info = info->next) {
		check_info(info, version);
		CHECK(!loopback || is_loopback(info), "%s comes after loopback",
		      info->domain_attr->name);
		loopback = is_loopback(info);
	}
	fi_freeinfo(list);
}

static void test_addresses(void)
{
	struct fi_info *hints = check_hints(), *info;

	/* A server that names its port is reachable by any local address. */
	info = get_info(API, NULL, "7476", FI_SOURCE, hints, 0);
	CHECK(info && is_addr(info->src_addr, "0.0.0.0", 7476) &&
		      !info->dest_addr && !info->next,
	      "server");
	fi_freeinfo(info);
	info = get_info(API, "127.0.0.1", "7476", FI_SOURCE | FI_NUMERICHOST,
			hints, 0);
	CHECK(info && is_addr(info->src_addr, "127.0.0.1", 7476) &&
		      !strcmp(info->domain_attr->name, "lo"),
	      "bound server");
	fi_freeinfo(info);
	/* A client: "localhost" must mean the address that 0.0.0.0 listens
	 * on. */
	info = get_info(API, "localhost", "7476", 0, hints, 0);
	CHECK(info && is_addr(info->dest_addr, "127.0.0.1", 7476) &&
		      is_addr(info->src_addr, "127.0.0.1", 0),
	      "client");
	fi_freeinfo(info);
	info = get_info(API, NULL, "7476", 0, hints, 0);
	CHECK(info && is_addr(info->dest_addr, "127.0.0.1", 7476),
	      "client without node");
	fi_freeinfo(info);
	/* An explicit source address is kept with its port; node overrides
	 * dest_addr. */
	put_src(hints, "127.0.0.2", 7478);
	hints->dest_addr = hints->src_addr;
	hints->dest_addrlen = hints->src_addrlen;
	put_src(hints, "127.0.0.2", 7479);
	info = get_info(API, "127.0.0.1", "7476", 0, hints, 0);
	CHECK(info && is_addr(info->dest_addr, "127.0.0.1", 7476) &&
		      is_addr(info->src_addr, "127.0.0.2", 7479),
	      "source kept");
	fi_freeinfo(info);
	info = get_info(API, NULL, NULL, 0, hints, 0);
	CHECK(info && is_addr(info->dest_addr, "127.0.0.2", 7478) &&
		      is_addr(info->src_addr, "127.0.0.2", 7479),
	      "hinted destination");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_bad_addresses(void)
{
	struct fi_info *hints = check_hints(), *info;

	get_info(API, "g00n13s", "1", FI_NUMERICHOST, hints, -FI_ENODATA);
	get_info(API, "127.0.0.1", "no-such-service", 0, hints, -FI_ENODATA);
	get_info(API, NODE_ONLY_DOCUMENTED, "1", FI_SOURCE, hints, -FI_ENODATA);
	fi_freeinfo(get_info(API, "::1", "1", 0, hints, 0));
	hints->addr_format = FI_SOCKADDR_IN;
	get_info(API, "::1", "1", 0, hints, -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR_IN6;
	info = get_info(API, "::1", "9", 0, hints, 0);
	CHECK(info && info->addr_format == FI_SOCKADDR_IN6 &&
		      info->dest_addrlen == sizeof(struct sockaddr_in6),
	      "IPv6");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Utility providers probe with this private flag of libfabric. */
static void test_utility_probe(void)
{
	struct fi_info *hints = check_hints(), *info;

	hints->ep_attr->type = FI_EP_MSG;
	get_info(API, NULL, NULL, 1ULL << 59, hints, -FI_ENODATA);
	hints->ep_attr->type = FI_EP_RDM;
	info = get_info(API, NULL, NULL, FI_PROV_ATTR_ONLY | FI_NUMERICHOST,
			hints, 0);
	CHECK(info && !info->src_addr && !info->next, "attributes only");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void test_opened_objects(void)
{
	struct fi_info *hints = check_hints(), *info, *again;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_ops ops = { .size = sizeof(ops) };
	struct fid_fabric foreign = { .fid = { FI_CLASS_FABRIC, NULL, &ops } };

	info = get_info(API, NULL, NULL, 0, hints, 0);
	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(fi_domain(fabric, info, &domain, NULL));
	CHECK_INT(fi_close(&fabric->fid), -FI_EBUSY);
	hints->fabric_attr->fabric = fabric;
	hints->domain_attr->domain = domain;
	again = get_info(API, NULL, NULL, 0, hints, 0);
	CHECK(again && again->fabric_attr->fabric == fabric &&
		      again->domain_attr->domain == domain,
	      "objects echoed");
	fi_freeinfo(again);
	hints->fabric_attr->fabric = &foreign;
	get_info(API, NULL, NULL, 0, hints, -FI_ENODATA);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = NULL;
	CHECK_INT(fi_close(&domain->fid), 0);
	/* fi_domain() refuses attributes that fi_getinfo() could not have
	 * returned. */
	info->domain_attr->data_progress = (enum fi_progress)99;
	CHECK_INT(fi_domain(fabric, info, &domain, NULL), -FI_EINVAL);
	CHECK_INT(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* The environment is read once, so each of these runs in its own process. */
static void in_child(const char *name, void (*body)(void))
{
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		body();
		fflush(stdout);
		_exit(check_failed ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      !WEXITSTATUS(status),
	      "%s", name);
}

static void with_iface(void)
{
	struct fi_info *list;

	setenv("FI_WEFT_IFACE", "lo", 1);
	list = get_info(API, NULL, NULL, 0, NULL, 0);
	for (struct fi_info *info = list; info; info = info->next)
		CHECK(domain_lo_ok(info), "%s", info->domain_attr->name);
	fi_freeinfo(list);
	list = get_info(API, NULL, "7476", FI_SOURCE, NULL, 0);
	CHECK(list && is_addr(list->src_addr, "127.0.0.1", 7476), "server");
	fi_freeinfo(list);
}

static void with_wrong_iface(void)
{
	setenv("FI_WEFT_IFACE", "no-such-if", 1);
	get_info(API, NULL, NULL, 0, NULL, -FI_ENODATA);
}

static void with_sizes(void)
{
	struct fi_info *info;

	setenv("FI_WEFT_TX_SIZE", "100", 1);
	setenv("FI_WEFT_RX_SIZE", "-1", 1);
	setenv("FI_WEFT_INJECT_SIZE", "100000", 1);
	info = get_info(API, NULL, NULL, 0, NULL, 0);
	CHECK_INT(info->tx_attr->size, 128);
	CHECK_INT(info->rx_attr->size, 1024); /* no number: the default */
	CHECK_INT(info->tx_attr->inject_size, 4096);
	fi_freeinfo(info);
}

/* A user who gets FI_ENODATA must find the name of the attribute in the log. */
static void with_log(void)
{
	struct fi_info *hints;
	char text[65536];
	FILE *file = tmpfile();
	size_t len;

	setenv("FI_LOG_LEVEL", "info", 1);
	if (!file || dup2(fileno(file), 2) < 0)
		exit(1);
	hints = check_hints();
	hints->tx_attr->inject_size = 1 << 20;
	get_info(API, NULL, NULL, 0, hints, -FI_ENODATA);
	fi_freeinfo(hints);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	CHECK(strstr(text, "tx_attr->inject_size"), "%s", text);
	fclose(file);
}

int main(void)
{
	check_only_weft();
	in_child("FI_WEFT_IFACE", with_iface);
	in_child("FI_WEFT_IFACE wrong", with_wrong_iface);
	in_child("FI_WEFT sizes", with_sizes);
	in_child("log", with_log);
	test_listing(API);
	test_listing(FI_VERSION(1, 5));
	test_listing(0);
	test_addresses();
	test_bad_addresses();
	test_utility_probe();
	test_opened_objects();
	return check_result();
}
