/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header lists the algorithms of the software device: one table, one entry
 * per algorithm. An algorithm sees plain memory of the device; where it comes
 * from, and whether the job may touch it, is decided before (job.c). The memory
 * belongs to a client, who may write to it at any time: read a byte once where
 * it matters.
 */
#ifndef WF_DEVD_ALG_H
#define WF_DEVD_ALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drv/accel_defs.h"

/* A worker's memory for what it fetches from clients, and for what it makes.
 * Grows, and lives as long as the worker: an algorithm that is left by a jump
 * leaves nothing behind. */
struct wf_devd_scratch {
	uint8_t *in, *out;
	size_t in_size, out_size;
};

/* False: no memory. The content is not kept. */
bool wf_devd_scratch_grow(uint8_t **buffer, size_t *size, size_t want);

struct wf_devd_work {
	const struct wf_accel_job *job; /* checked as far as it is general */
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
	const uint8_t *dict;
	size_t dict_len;
	bool shared; /* a client can write to all of these at any time; then
		      * the scratch is the algorithm's to use */
	struct wf_devd_scratch *scratch;
	/* Results. At the start consumed and produced are 0 and checksum is
	 * job->seed; a later piece of one job finds in checksum the value of
	 * the piece before. */
	size_t consumed;
	size_t produced;
	uint32_t checksum;
	size_t copied;	/* by the algorithm, besides the work */
	uint16_t flags; /* WF_ACCEL_DONE_* */
};

/* Reads from src, writes to dst. */
#define WF_DEVD_ALG_IN 0x1u
#define WF_DEVD_ALG_OUT 0x2u
/* May be given its input in pieces, and the output in place of the input: then
 * a job of any length needs little memory and one copy less. */
#define WF_DEVD_ALG_PIECES 0x4u
/* Understands format, level, dict, window_log2, flush, stream; elsewhere they
 * must be 0. */
#define WF_DEVD_ALG_STREAM 0x8u

struct wf_devd_alg {
	const char *name;
	unsigned int flags;
	/* 0 or a positive errno for the completion. Worker threads, several at
	 * once. May be left by siglongjmp() when memory under it vanishes, so
	 * it keeps no lock, and allocates in the scratch. */
	int (*run)(struct wf_devd_work *work);
};

/* NULL: no such number, or not in this build. */
const struct wf_devd_alg *wf_devd_alg_get(unsigned int alg);

/* The bit of a name, 0 if there is none. */
uint32_t wf_devd_alg_bit(const char *name);

/* The bits of all algorithms. */
uint32_t wf_devd_alg_all(void);

/* Names of the bits, one a line. */
void wf_devd_alg_names(uint32_t algs, char *text, size_t size);

#endif
