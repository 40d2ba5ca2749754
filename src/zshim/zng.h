/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zlib-ng's native interface, as far as its binary form goes: its stream and
 * parameters. Programs include zlib-ng.h; this is how we see what they pass.
 * gzip headers, gzFile and the callbacks of inflateBack() are laid out as
 * zlib's are.
 */
#ifndef WF_ZSHIM_ZNG_H
#define WF_ZSHIM_ZNG_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct wf_zng_stream {
	const uint8_t *next_in;
	uint32_t avail_in;
	size_t total_in;
	uint8_t *next_out;
	uint32_t avail_out;
	size_t total_out;
	const char *msg;
	void *state;
	alloc_func zalloc;
	free_func zfree;
	void *opaque;
	int data_type;
	uint32_t adler;
	unsigned long reserved;
};

/* LP64. */
static_assert(offsetof(struct wf_zng_stream, next_out) == 24, "next_out");
static_assert(offsetof(struct wf_zng_stream, total_out) == 40, "total_out");
static_assert(offsetof(struct wf_zng_stream, state) == 56, "state");
static_assert(offsetof(struct wf_zng_stream, data_type) == 88, "data_type");
static_assert(offsetof(struct wf_zng_stream, adler) == 92, "adler");
static_assert(sizeof(struct wf_zng_stream) == 104, "size");

enum wf_zng_param {
	WF_ZNG_LEVEL,
	WF_ZNG_STRATEGY,
	WF_ZNG_REPRODUCIBLE,
};

struct wf_zng_value {
	int param; /* enum wf_zng_param */
	void *buf;
	size_t size;
	int32_t status;
};

static_assert(sizeof(struct wf_zng_value) == 32, "value");

#endif
