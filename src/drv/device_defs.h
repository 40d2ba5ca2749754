/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware of the software device: what its regions hold, what a job and
 * its completion look like. Driver (drv/device) and device (devd) agree on
 * this and on nothing else; a change here changes WF_DEVICE_API.
 *
 *   MMIO   one page: registers the device fills in, then lines that each have
 *          one writer: doorbell, the user's credit and sleep, the device's
 *   DUS    the ring of jobs, 64 bytes each, then that of completions, 32 each
 *
 * Addresses are what the scenario says: virtual (SVA), IOVA, or physical.
 */
#ifndef WF_DRV_DEVICE_DEFS_H
#define WF_DRV_DEVICE_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define WF_DEVICE_API "weft_dev_v1"
#define WF_DEVICE_MAGIC 0x6d6d6477u /* "wdmm" */
#define WF_DEVICE_MMIO_SIZE 4096

#define WF_DEVICE_DEPTH_MIN 2u
#define WF_DEVICE_DEPTH_MAX 4096u

/* Bytes of one side of a job at most: what bounds the time that one client can
 * hold a worker, and a worker's memory. */
#define WF_DEVICE_LEN_MAX (64u << 20)

/* What is done. The numbers are part of the layout; which of them a device
 * offers is in its list of algorithms, by name. */
enum wf_device_alg {
	WF_DEVICE_NOP,	   /* "nop": nothing, and says so */
	WF_DEVICE_COPY,	   /* "copy": src to dst, at most dst_len */
	WF_DEVICE_CRC32,   /* "crc32": of src, as zlib's, from ->seed on */
	WF_DEVICE_DEFLATE, /* "deflate" in ->format */
	WF_DEVICE_INFLATE, /* "inflate" */
	WF_DEVICE_ALGS,
};

/* Of deflate and inflate; 0 elsewhere. */
enum wf_device_format {
	WF_DEVICE_FORMAT_NONE,
	WF_DEVICE_FORMAT_RAW,
	WF_DEVICE_FORMAT_ZLIB,
	WF_DEVICE_FORMAT_GZIP,
	WF_DEVICE_FORMATS,
};

struct wf_device_job {
	uint32_t id; /* brought back by the completion; below 2^31 */
	uint8_t alg;
	uint8_t flags; /* none defined: 0 */
	uint8_t format;
	uint8_t level;
	uint64_t src;
	uint64_t dst;
	uint32_t src_len;
	uint32_t dst_len;
	uint64_t dict; /* what went before, or a preset dictionary */
	uint32_t dict_len;
	uint32_t seed; /* checksum to go on from */
	uint8_t window_log2;
	uint8_t flush; /* enum wd_comp_flush of weft/wd_comp.h, stateless ones */
	uint16_t spare; /* 0, as everything below */
	uint32_t stream;
	uint64_t spare2;
};

#define WF_DEVICE_PHASE 0x80000000u

/* flags of a completion */
#define WF_DEVICE_DONE_FINAL 0x1u /* the stream has ended */

struct wf_device_done {
	uint32_t word;	 /* phase and id; written last */
	uint16_t status; /* 0 or a positive errno */
	uint16_t flags;
	uint32_t consumed; /* of src */
	uint32_t produced; /* in dst */
	uint32_t checksum;
	uint32_t copied; /* bytes moved besides the work itself, saturating */
	uint64_t spare;
};

enum wf_device_state {
	WF_DEVICE_STOPPED, /* not started yet */
	WF_DEVICE_RUNNING,
	WF_DEVICE_FAULT, /* rung nonsense: nothing is taken any more */
};

struct wf_device_mmio {
	/* Constant once the channel is open. */
	uint32_t magic;
	uint32_t depth; /* jobs, and completions: a power of two */
	uint32_t algs;	/* bits of enum wf_device_alg */
	uint32_t len_max;
	uint32_t spare0[12];

	/* The user's. */
	_Atomic uint32_t doorbell;
	uint32_t spare1[15];
	_Atomic uint32_t credit; /* completions read */
	_Atomic uint32_t user_sleeps;
	uint32_t spare2[14];

	/* The device's. */
	_Atomic uint32_t device_sleeps;
	_Atomic uint32_t state;
	uint32_t spare3[14];
};

#define WF_DEVICE_DUS_SIZE(depth)                                              \
	((size_t)(depth) *                                                     \
	 (sizeof(struct wf_device_job) + sizeof(struct wf_device_done)))

static_assert(sizeof(struct wf_device_job) == 64, "one line");
static_assert(offsetof(struct wf_device_job, alg) == 4, "layout");
static_assert(offsetof(struct wf_device_job, src) == 8, "layout");
static_assert(offsetof(struct wf_device_job, dst) == 16, "layout");
static_assert(offsetof(struct wf_device_job, src_len) == 24, "layout");
static_assert(offsetof(struct wf_device_job, dst_len) == 28, "layout");
static_assert(offsetof(struct wf_device_job, dict) == 32, "layout");
static_assert(offsetof(struct wf_device_job, dict_len) == 40, "layout");
static_assert(offsetof(struct wf_device_job, seed) == 44, "layout");
static_assert(offsetof(struct wf_device_job, window_log2) == 48, "layout");
static_assert(offsetof(struct wf_device_job, stream) == 52, "layout");
static_assert(offsetof(struct wf_device_job, spare2) == 56, "layout");
static_assert(sizeof(struct wf_device_done) == 32, "half a line");
static_assert(offsetof(struct wf_device_done, status) == 4, "layout");
static_assert(offsetof(struct wf_device_done, consumed) == 8, "layout");
static_assert(offsetof(struct wf_device_done, produced) == 12, "layout");
static_assert(offsetof(struct wf_device_done, checksum) == 16, "layout");
static_assert(offsetof(struct wf_device_done, copied) == 20, "layout");
static_assert(offsetof(struct wf_device_mmio, doorbell) == WF_LINE, "layout");
static_assert(offsetof(struct wf_device_mmio, credit) == 2 * WF_LINE, "layout");
static_assert(offsetof(struct wf_device_mmio, device_sleeps) == 3 * WF_LINE,
	      "layout");
static_assert(sizeof(struct wf_device_mmio) == 4 * WF_LINE, "layout");

#endif
