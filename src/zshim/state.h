/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of ours is distinguished from one of the real zlib by its state.
 * Both have a pointer to the z_stream first; then ours has a magic number that
 * no state of zlib can contain, where zlib's has a small number. A deflate
 * stream that was passed to the real zlib has zlib's own state and nothing of
 * ours: from then on calls pass through. Inflate streams are always ours.
 */
#ifndef WF_ZSHIM_STATE_H
#define WF_ZSHIM_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include <weft/wd_comp_drv.h>

#include "zreal/real.h"

/* In the low half: above any status of zlib (at most 16211). */
#define WF_ZSHIM_DEFLATE 0x7477656674646566ull
#define WF_ZSHIM_INFLATE 0x7477656674696e66ull
#define WF_ZSHIM_BACK 0x7477656674626163ull

#define WF_ZSHIM_API __attribute__((visibility("default")))

struct wf_zshim_head {
	z_streamp strm;
	uint64_t magic;
};

static inline bool wf_zshim_is(z_streamp strm, uint64_t magic)
{
	const struct wf_zshim_head *head;

	if (!strm || !strm->state)
		return false;
	head = (const struct wf_zshim_head *)strm->state;
	return head->magic == magic && head->strm == strm;
}

/* Memory as the stream's owner wants it; sets zlib's defaults if there are
 * none. The opaque pointer is the stream: it must not move, as with zlib. */
struct wd_comp_mem wf_zshim_mem(z_streamp strm);

/* Whether this may be memory that was set aside for zlib: a program that keeps
 * an account for the stream (nginx) has it in opaque. */
bool wf_zshim_mem_is_counted(z_streamp strm);

/* zlib's texts for its errors. */
const char *wf_zshim_text(int err);

/* Z_VERSION_ERROR unless the caller was built for a zlib like ours. */
int wf_zshim_check_version(const char *version, int stream_size);

/* Formats of a windowBits; false if it is none of those we do ourselves. */
bool wf_zshim_format(int window_bits, int *alg);

/* Makes a stream before its first data the real zlib's, whose output does not
 * depend on how calls are cut. Z_STREAM_ERROR after its first data. */
int wf_zshim_deflate_reproducible(z_streamp strm);

#endif
