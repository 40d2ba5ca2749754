/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process and the software device say to each other over its Unix
 * socket (SOCK_SEQPACKET): what open(), ioctl() and sysfs are to a real one.
 * Each request has one reply; both have one size. Descriptors travel beside
 * them. What lies in the regions is not said here: that is between the driver
 * and the device (drv/device_defs.h).
 */
#ifndef WF_CHAN_DEV_DEFS_H
#define WF_CHAN_DEV_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WF_DEV_MAGIC 0x64766477u /* "wdvd" */
#define WF_DEV_VERSION 2

/* Sockets to look at in place of those of chan/place.h. */
#define WF_DEV_SOCKETS_ENV "WEFT_DEVD"

enum wf_dev_op {
	WF_DEV_HELLO = 1, /* first */
	WF_DEV_DEVICE,	  /* index -> record, -ENOENT past the last */
	WF_DEV_OPEN,	  /* name -> chan; fds: regions, kick, interrupt. An
			   * SVA device wants the caller's /proc/self/mem,
			   * opened for reading and writing */
	WF_DEV_START,	  /* chan */
	WF_DEV_CLOSE,	  /* chan; answered when the device has let go, with
			   * -EINPROGRESS every second until then */
	WF_DEV_RESERVE,	  /* chan, size -> dma; fd: the memory */
	WF_DEV_ATTACH,	  /* chan, size, offset, fd -> dma */
	WF_DEV_SHARE,	  /* chan (owner), target -> dma, size */
	WF_DEV_OPS,
};

#define WF_DEV_FDS_MAX 3
#define WF_DEV_DEVICES_MAX 256 /* of one process */

/* Order of the descriptors that come with OPEN. */
enum { WF_DEV_FD_REGIONS, WF_DEV_FD_KICK, WF_DEV_FD_EVENT };

struct wf_dev_request {
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
struct wf_dev_record {
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

struct wf_dev_reply {
	uint32_t magic;
	uint16_t version;
	uint16_t op;
	int32_t status; /* 0 or a negative errno */
	uint32_t chan;
	uint64_t dma;
	uint64_t size;
	uint64_t spare[4];
	struct wf_dev_record record; /* DEVICE and OPEN */
};

static_assert(offsetof(struct wf_dev_request, size) == 16, "wire layout");
static_assert(offsetof(struct wf_dev_request, index) == 32, "wire layout");
static_assert(offsetof(struct wf_dev_request, name) == 64, "wire layout");
static_assert(sizeof(struct wf_dev_request) == 128, "wire layout");
static_assert(offsetof(struct wf_dev_record, offset) == 16, "wire layout");
static_assert(offsetof(struct wf_dev_record, name) == 64, "wire layout");
static_assert(sizeof(struct wf_dev_record) == 576, "wire layout");
static_assert(offsetof(struct wf_dev_reply, dma) == 16, "wire layout");
static_assert(offsetof(struct wf_dev_reply, record) == 64, "wire layout");
static_assert(sizeof(struct wf_dev_reply) == 640, "wire layout");

#endif
