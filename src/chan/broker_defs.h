/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between a process and the broker of software devices (`weft
 * devd`), over the broker's Unix socket (SOCK_SEQPACKET). It stands for what
 * open(), ioctl() and sysfs are to a device of the kernel. Each request has one
 * reply, and each of the two has a fixed size. Descriptors travel with them.
 * The contents of the mapped regions are not defined here but in
 * drv/accel_defs.h, on which the driver and the device agree.
 */
#ifndef WF_CHAN_BROKER_DEFS_H
#define WF_CHAN_BROKER_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WF_BROKER_MAGIC 0x64766477u /* "wdvd" */
#define WF_BROKER_VERSION 2

/* Sockets to look at in place of those of chan/place.h. */
#define WF_BROKER_SOCKETS_ENV "WEFT_DEVD"

enum wf_broker_op {
	WF_BROKER_HELLO = 1, /* first */
	WF_BROKER_DEVICE,    /* index -> record, -ENOENT past the last */
	WF_BROKER_OPEN,	     /* name -> chan; fds: regions, kick, interrupt. An
			   * SVA device wants the caller's /proc/self/mem,
			   * opened for reading and writing */
	WF_BROKER_START,     /* chan */
	WF_BROKER_CLOSE,     /* chan; answered when the device is done, with
			   * -EINPROGRESS every second until then */
	WF_BROKER_RESERVE, /* chan, size -> dma; fd: the memory. SVA: offset is
			   * where the caller maps it, and the dma; devices of
			   * older builds refuse that with -EOPNOTSUPP */
	WF_BROKER_ATTACH,  /* chan, size, offset, fd -> dma */
	WF_BROKER_SHARE,   /* chan (owner), target -> dma, size */
	WF_BROKER_OPS,
};

#define WF_BROKER_FDS_MAX 3
#define WF_BROKER_DEVICES_MAX 256 /* of one process */

/* Order of the descriptors that come with OPEN. */
enum { WF_BROKER_FD_REGIONS, WF_BROKER_FD_KICK, WF_BROKER_FD_EVENT };

struct wf_broker_request {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	uint32_t chan;
	uint32_t target;
	uint64_t size;
	uint64_t offset;
	uint32_t index;
	uint32_t spare[7];
	char name[64];
};

/* A device as discovery shows it. */
struct wf_broker_record {
	int32_t node_id;
	int32_t iommu_type; /* enum wd_iommu_type */
	int32_t flags;
	int32_t available_instances;
	uint64_t offset[3]; /* by enum uacce_qfrt */
	uint64_t size[3];
	char name[64];
	char api[64];
	char algs[384];
};

struct wf_broker_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	int32_t status; /* 0 or a negative errno */
	uint32_t chan;
	uint64_t dma;
	uint64_t size;
	uint64_t spare[4];
	struct wf_broker_record record; /* DEVICE and OPEN */
};

static_assert(offsetof(struct wf_broker_request, size) == 16, "wire layout");
static_assert(offsetof(struct wf_broker_request, index) == 32, "wire layout");
static_assert(offsetof(struct wf_broker_request, name) == 64, "wire layout");
static_assert(sizeof(struct wf_broker_request) == 128, "wire layout");
static_assert(offsetof(struct wf_broker_record, offset) == 16, "wire layout");
static_assert(offsetof(struct wf_broker_record, name) == 64, "wire layout");
static_assert(sizeof(struct wf_broker_record) == 576, "wire layout");
static_assert(offsetof(struct wf_broker_reply, dma) == 16, "wire layout");
static_assert(offsetof(struct wf_broker_reply, record) == 64, "wire layout");
static_assert(sizeof(struct wf_broker_reply) == 640, "wire layout");

#endif
