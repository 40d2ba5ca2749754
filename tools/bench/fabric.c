/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens an endpoint of any libfabric provider and connects it to its peer. It
 * must not favour a provider: hints, sizes and flags are the same for all.
 */
#include "tools/bench/fabric.h"

#include "tools/bench/control_defs.h"
#include "tools/bench/message.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Old enough for Debian 12, new enough for every relevant provider. */
#define API FI_VERSION(1, 17)

/* The registration modes that we support if 0 is refused. */
#define MR_MODES                                                               \
	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/*
 * For remote memory: shm's fast path, in which the initiator copies by itself,
 * needs virtual addresses.
 */
#define REMOTE_MODE FI_MR_VIRT_ADDR

enum { MAX_NAME = 512, KEY = 0x77 };

int wf_tools_fabric_fail(struct wf_tools_fabric *f, const char *what, long ret)
{
	snprintf(f->error, sizeof(f->error), "%s: %s", what,
		 fi_strerror((int)-ret));
	return (int)ret;
}

int wf_tools_fabric_cq_error(struct wf_tools_fabric *f)
{
	struct fi_cq_err_entry entry = { 0 };
	const char *detail;
	ssize_t ret;

	ret = fi_cq_readerr(f->cq, &entry, 0);
	if (ret < 0)
		return wf_tools_fabric_fail(f, "fi_cq_readerr", ret);
	detail = fi_cq_strerror(f->cq, entry.prov_errno, entry.err_data, NULL,
				0);
	snprintf(f->error, sizeof(f->error), "%s failed: %s (%s)",
		 entry.flags & FI_RECV ? "receive" :
		 entry.flags & FI_RMA  ? "RMA" :
					 "send",
		 fi_strerror(entry.err), detail ? detail : "no detail");
	return entry.err ? -entry.err : -FI_EOTHER;
}

static struct fi_info *make_hints(const struct wf_tools_fabric *f, int mr_mode,
				  size_t depth)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = f->config.tagged ? FI_TAGGED : FI_MSG;
	if (f->config.remote)
		hints->caps |= FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	/* Injected messages never generate a completion; all others must,
	 * because buffers are used again after it. */
	hints->tx_attr->op_flags = FI_COMPLETION;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->tx_attr->size = depth;
	hints->rx_attr->size = depth;
	hints->fabric_attr->prov_name = strdup(f->config.name);
	if (!hints->fabric_attr->prov_name) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

/* Asks for little first: some providers refuse modes, some refuse depths. */
static int find_info(struct wf_tools_fabric *f)
{
	size_t depth = f->config.window + WF_TOOLS_SPARE_OPS;
	int least = f->config.remote ? REMOTE_MODE : 0;
	const struct {
		int mr_mode;
		size_t depth;
	} asks[] = {
		{ least, depth },
		{ MR_MODES, depth },
		{ least, 0 },
		{ MR_MODES, 0 },
	};
	struct fi_info *hints;
	int ret = -FI_ENODATA;
	size_t i;

	for (i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		hints = make_hints(f, asks[i].mr_mode, asks[i].depth);
		if (!hints)
			return wf_tools_fabric_fail(f, "hints", -FI_ENOMEM);
		ret = fi_getinfo(API, NULL, NULL, 0, hints, &f->info);
		fi_freeinfo(hints);
		if (!ret)
			break;
	}
	if (ret == -FI_ENODATA) {
		snprintf(f->error, sizeof(f->error),
			 "libfabric has no provider '%s' for %s messages%s "
			 "(`fi_info -l` lists them)",
			 f->config.name, f->config.tagged ? "tagged" : "plain",
			 f->config.remote ? ", RMA and atomics" : "");
		return ret;
	}
	if (ret)
		return wf_tools_fabric_fail(f, "fi_getinfo", ret);
	if (f->info->rx_attr->size && f->info->rx_attr->size < depth) {
		snprintf(f->error, sizeof(f->error),
			 "takes %zu receives at once; ask for less with "
			 "--window",
			 f->info->rx_attr->size);
		return -FI_ETOOSMALL;
	}
	f->inject_size = f->info->tx_attr->inject_size;
	return 0;
}

int wf_tools_fabric_open_ep(struct wf_tools_fabric *f, struct fid_ep **ep)
{
	int ret;

	ret = fi_endpoint(f->domain, f->info, ep, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_endpoint", ret);
	ret = fi_ep_bind(*ep, &f->av->fid, 0);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_ep_bind(av)", ret);
	ret = fi_ep_bind(*ep, &f->cq->fid,
			 FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_ep_bind(cq)", ret);
	ret = fi_enable(*ep);
	return ret ? wf_tools_fabric_fail(f, "fi_enable", ret) : 0;
}

static int open_objects(struct wf_tools_fabric *f)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 2 };
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = f->config.wait_obj,
		.size = 2 * (size_t)f->n_ops,
	};
	int ret;

	if (cq_attr.size < 1024)
		cq_attr.size = 1024;
	ret = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_fabric", ret);
	ret = fi_domain(f->fabric, f->info, &f->domain, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_domain", ret);
	ret = fi_av_open(f->domain, &av_attr, &f->av, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_av_open", ret);
	ret = fi_cq_open(f->domain, &cq_attr, &f->cq, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_cq_open", ret);
	return wf_tools_fabric_open_ep(f, &f->ep);
}

void wf_tools_fabric_carve(struct wf_tools_fabric *f, size_t size)
{
	size_t len = f->config.verify ? wf_tools_engine_slot(size) : 0;
	unsigned i;

	for (i = 0; i < f->n_ops; i++) {
		f->sends[i].buf = f->memory + i * len;
		f->receives[i].buf = f->memory + f->config.bytes + i * len;
	}
}

/* A memfd that cannot shrink, as peers require, or -errno. */
static int make_memfd(size_t bytes)
{
	int fd = memfd_create("weft-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static int open_memory(struct wf_tools_fabric *f)
{
	const uint64_t access = FI_SEND | FI_RECV;
	uint64_t ring = 1;
	int ret;

	f->memory_len = 2 * f->config.bytes;
	if (f->config.memfd) {
		f->memfd = make_memfd(f->memory_len);
		if (f->memfd < 0)
			return wf_tools_fabric_fail(f, "memfd_create",
						    f->memfd);
	}
	f->memory =
		mmap(NULL, f->memory_len, PROT_READ | PROT_WRITE,
		     f->memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
		     f->memfd, 0);
	if (f->memory == MAP_FAILED) {
		f->memory = NULL;
		return wf_tools_fabric_fail(f, "mmap", -errno);
	}
	/* Neither the shared zero page, nor bytes that match by accident. */
	memset(f->memory, 0xa5, f->memory_len);
	f->sends = calloc(f->n_ops, sizeof(*f->sends));
	f->receives = calloc(f->n_ops, sizeof(*f->receives));
	while (ring < f->n_ops)
		ring *= 2;
	f->finished_mask = ring - 1;
	f->finished = calloc(ring, sizeof(*f->finished));
	if (!f->sends || !f->receives || !f->finished)
		return wf_tools_fabric_fail(f, "contexts", -FI_ENOMEM);
	if (!(f->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return 0;
	ret = fi_mr_reg(f->domain, f->memory, f->memory_len, access, 0, 0, 0,
			&f->mr, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_mr_reg", ret);
	f->desc = fi_mr_desc(f->mr);
	return 0;
}

/* The other worker reports the reason. */
static int lost_other(struct wf_tools_fabric *f)
{
	snprintf(f->error, sizeof(f->error), "the other side is gone");
	return -EOWNERDEAD;
}

int wf_tools_fabric_tell_name(struct wf_tools_fabric *f, struct fid_ep *ep)
{
	uint8_t name[MAX_NAME];
	size_t len = sizeof(name);
	int ret;

	ret = fi_getname(&ep->fid, name, &len);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_getname", ret);
	if (send(WF_TOOLS_FD_SIDE, name, len, MSG_NOSIGNAL) != (ssize_t)len)
		return lost_other(f);
	return 0;
}

int wf_tools_fabric_hear_name(struct wf_tools_fabric *f, fi_addr_t *addr)
{
	uint8_t name[MAX_NAME] = { 0 };
	ssize_t got;
	int ret;

	got = recv(WF_TOOLS_FD_SIDE, name, sizeof(name), 0);
	if (got <= 0)
		return lost_other(f);
	ret = fi_av_insert(f->av, name, 1, addr, 0, NULL);
	if (ret != 1)
		return wf_tools_fabric_fail(f, "fi_av_insert",
					    ret < 0 ? ret : -FI_EINVAL);
	return 0;
}

/* Where in our memory the other side may read and write, and the key. */
static int expose_memory(struct wf_tools_fabric *f)
{
	const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	uint64_t mine[2] = { 0, 0 }, theirs[2];
	int ret;

	ret = fi_mr_reg(f->domain, f->memory, f->memory_len, access, 0, KEY, 0,
			&f->exposed, NULL);
	if (ret)
		return wf_tools_fabric_fail(f, "fi_mr_reg", ret);
	if (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		mine[0] = (uintptr_t)f->memory;
	mine[1] = fi_mr_key(f->exposed);
	if (send(WF_TOOLS_FD_SIDE, mine, sizeof(mine), MSG_NOSIGNAL) !=
	    (ssize_t)sizeof(mine))
		return lost_other(f);
	if (recv(WF_TOOLS_FD_SIDE, theirs, sizeof(theirs), 0) !=
	    (ssize_t)sizeof(theirs))
		return lost_other(f);
	f->remote_addr = theirs[0];
	f->remote_key = theirs[1];
	return 0;
}

static int meet_peer(struct wf_tools_fabric *f)
{
	int ret;

	ret = wf_tools_fabric_tell_name(f, f->ep);
	if (!ret)
		ret = wf_tools_fabric_hear_name(f, &f->peer);
	if (!ret && f->config.remote)
		ret = expose_memory(f);
	return ret;
}

int wf_tools_fabric_open(const struct wf_tools_engine_config *config,
			 struct wf_tools_fabric **fabric, char *error,
			 size_t error_len)
{
	struct wf_tools_fabric *f;
	uint32_t version = fi_version();
	int ret;

	f = calloc(1, sizeof(*f));
	if (!f) {
		snprintf(error, error_len, "no memory");
		return -ENOMEM;
	}
	f->config = *config;
	f->memfd = -1;
	f->n_ops = config->window + WF_TOOLS_SPARE_OPS;
	ret = find_info(f);
	if (!ret)
		ret = open_objects(f);
	if (!ret)
		ret = open_memory(f);
	if (!ret && !config->alone)
		ret = meet_peer(f);
	if (ret)
		goto err_close;
	snprintf(f->about, sizeof(f->about), "libfabric %u.%u, %s, inject %zu",
		 FI_MAJOR(version), FI_MINOR(version),
		 f->info->fabric_attr->prov_name, f->inject_size);
	*fabric = f;
	return 0;

err_close:
	snprintf(error, error_len, "%s", f->error);
	wf_tools_fabric_close(f);
	return ret;
}

static void close_fid(struct fid *fid)
{
	fi_close(fid);
}

void wf_tools_fabric_close(struct wf_tools_fabric *f)
{
	if (f->mr)
		close_fid(&f->mr->fid);
	if (f->exposed)
		close_fid(&f->exposed->fid);
	if (f->ep)
		close_fid(&f->ep->fid);
	if (f->cq)
		close_fid(&f->cq->fid);
	if (f->av)
		close_fid(&f->av->fid);
	if (f->domain)
		close_fid(&f->domain->fid);
	if (f->fabric)
		close_fid(&f->fabric->fid);
	if (f->info)
		fi_freeinfo(f->info);
	free(f->sends);
	free(f->receives);
	free(f->finished);
	if (f->memory)
		munmap(f->memory, f->memory_len);
	if (f->memfd >= 0)
		close(f->memfd);
	free(f);
}

int wf_tools_fabric_begin(const struct wf_tools_engine_config *config,
			  void **engine, char *error, size_t error_len)
{
	struct wf_tools_fabric *f;
	int ret;

	ret = wf_tools_fabric_open(config, &f, error, error_len);
	if (!ret)
		*engine = f;
	return ret;
}

int wf_tools_fabric_progress(void *engine)
{
	return wf_tools_message_read(engine);
}

const char *wf_tools_fabric_error(void *engine)
{
	return ((struct wf_tools_fabric *)engine)->error;
}

const char *wf_tools_fabric_describe(void *engine)
{
	return ((struct wf_tools_fabric *)engine)->about;
}

void wf_tools_fabric_end(void *engine)
{
	wf_tools_fabric_close(engine);
}
