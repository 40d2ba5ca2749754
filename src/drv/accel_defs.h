/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts of the software device: what its regions hold, and what a job and
 * its completion look like. Driver (drv/device) and device (devd) agree on these
 * layouts and on nothing else. A change here changes WF_ACCEL_API.
 *
 *   MMIO   one page: registers that the device fills in, then lines that each
 *          have one writer: the doorbell, the user's credit and sleep flag, the
 *          device's state
 *   DUS    the ring of jobs, 64 bytes each, then the ring of completions, 32
 *          each, then (SVA) the stage: memory for the bytes of small jobs
 *
 * Addresses are virtual (SVA), IOVAs, or physical, depending on the scenario, or
 * offsets in the stage.
 */
#ifndef WF_DRV_ACCEL_DEFS_H
#define WF_DRV_ACCEL_DEFS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define WF_ACCEL_API "weft_dev_v1"
#define WF_ACCEL_MAGIC 0x6d6d6477u /* "wdmm" */
#define WF_ACCEL_MMIO_SIZE 4096

#define WF_ACCEL_DEPTH_MIN 2u
#define WF_ACCEL_DEPTH_MAX 4096u

/* Bytes of one side of a job at most: this bounds the time that one client can
 * hold a worker, and a worker's memory. */
#define WF_ACCEL_LEN_MAX (64u << 20)

/* The operation. The numbers are part of the layout; a device lists the
 * algorithms that it offers by name. */
enum wf_accel_alg {
	WF_ACCEL_NOP,	  /* "nop": nothing, and says so */
	WF_ACCEL_COPY,	  /* "copy": src to dst, at most dst_len */
	WF_ACCEL_CRC32,	  /* "crc32": of src, as zlib's, from ->seed on */
	WF_ACCEL_DEFLATE, /* "deflate" in ->format */
	WF_ACCEL_INFLATE, /* "inflate" */
	WF_ACCEL_ALGS,
};

/* The format of a deflate or inflate job; 0 in other jobs. */
enum wf_accel_format {
	WF_ACCEL_FORMAT_NONE,
	WF_ACCEL_FORMAT_RAW,
	WF_ACCEL_FORMAT_ZLIB,
	WF_ACCEL_FORMAT_GZIP,
	WF_ACCEL_FORMATS,
};

/* flags of a job: addresses are offsets in the stage, also in SVA. A copy between
 * two processes by the kernel costs several times what it costs to copy 4 KiB
 * twice. A device without a stage refuses it. */
#define WF_ACCEL_JOB_STAGED 0x1u

/* How drivers divide the stage: 4 KiB on the way in, more than that on the way
 * out, an odd number of lines, so that jobs are in different sets of a cache. */
#define WF_ACCEL_STAGE_SLOT (145u * WF_LINE)
#define WF_ACCEL_STAGE_SLOTS 64u

struct wf_accel_job {
	uint32_t id; /* brought back by the completion; below 2^31 */
	uint8_t alg;
	uint8_t flags; /* WF_ACCEL_JOB_* */
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

#define WF_ACCEL_PHASE 0x80000000u

/* flags of a completion */
#define WF_ACCEL_DONE_FINAL 0x1u /* the stream has ended */

struct wf_accel_done {
	uint32_t word;	 /* phase and id; written last */
	uint16_t status; /* 0 or a positive errno */
	uint16_t flags;
	uint32_t consumed; /* of src */
	uint32_t produced; /* in dst */
	uint32_t checksum;
	uint32_t copied; /* bytes moved besides the work itself, saturating */
	uint64_t spare;
};

enum wf_accel_state {
	WF_ACCEL_STOPPED, /* not started yet */
	WF_ACCEL_RUNNING,
	WF_ACCEL_FAULT, /* the doorbell was invalid: no job is taken any more */
};

struct wf_accel_mmio {
	/* Constant once the channel is open. */
	uint32_t magic;
	uint32_t depth; /* jobs, and completions: a power of two */
	uint32_t algs;	/* bits of enum wf_accel_alg */
	uint32_t len_max;
	uint32_t stage; /* bytes behind the rings; 0: there is none */
	uint32_t spare0[11];

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

#define WF_ACCEL_DUS_SIZE(depth)                                               \
	((size_t)(depth) *                                                     \
	 (sizeof(struct wf_accel_job) + sizeof(struct wf_accel_done)))

static_assert(sizeof(struct wf_accel_job) == 64, "one line");
static_assert(offsetof(struct wf_accel_job, alg) == 4, "layout");
static_assert(offsetof(struct wf_accel_job, src) == 8, "layout");
static_assert(offsetof(struct wf_accel_job, dst) == 16, "layout");
static_assert(offsetof(struct wf_accel_job, src_len) == 24, "layout");
static_assert(offsetof(struct wf_accel_job, dst_len) == 28, "layout");
static_assert(offsetof(struct wf_accel_job, dict) == 32, "layout");
static_assert(offsetof(struct wf_accel_job, dict_len) == 40, "layout");
static_assert(offsetof(struct wf_accel_job, seed) == 44, "layout");
static_assert(offsetof(struct wf_accel_job, window_log2) == 48, "layout");
static_assert(offsetof(struct wf_accel_job, stream) == 52, "layout");
static_assert(offsetof(struct wf_accel_job, spare2) == 56, "layout");
static_assert(sizeof(struct wf_accel_done) == 32, "half a line");
static_assert(offsetof(struct wf_accel_done, status) == 4, "layout");
static_assert(offsetof(struct wf_accel_done, consumed) == 8, "layout");
static_assert(offsetof(struct wf_accel_done, produced) == 12, "layout");
static_assert(offsetof(struct wf_accel_done, checksum) == 16, "layout");
static_assert(offsetof(struct wf_accel_done, copied) == 20, "layout");
static_assert(offsetof(struct wf_accel_mmio, stage) == 16, "layout");
static_assert(offsetof(struct wf_accel_mmio, doorbell) == WF_LINE, "layout");
static_assert(offsetof(struct wf_accel_mmio, credit) == 2 * WF_LINE, "layout");
static_assert(offsetof(struct wf_accel_mmio, device_sleeps) == 3 * WF_LINE,
	      "layout");
static_assert(sizeof(struct wf_accel_mmio) == 4 * WF_LINE, "layout");

#endif
