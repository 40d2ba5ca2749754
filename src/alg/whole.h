/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stateless call in three steps: what is to be done; the work on the raw
 * piece by some driver; header, trailer and checksum around it. Different
 * threads may do the steps: this is how an asynchronous call works.
 */
#ifndef WF_ALG_WHOLE_H
#define WF_ALG_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alg/registry.h"

struct wf_alg_whole {
	struct wd_comp_ctx *ctx;
	bool inflate;
	const uint8_t *src;
	uint8_t *dst;
	size_t given; /* bytes at src */
	size_t head;  /* bytes of header */
	struct wd_comp_job job;
	struct wf_alg_want want;
};

/* 0, or -errno: there is nothing to do. The context has been checked. */
int wf_alg_whole_begin(struct wf_alg_whole *w, struct wd_comp_ctx *ctx,
		       bool inflate, const uint8_t *src, size_t src_len,
		       uint8_t *dst, size_t dst_len);
/* By the driver that is best now. */
int wf_alg_whole_work(struct wf_alg_whole *w);
/* @ret is the result of the work. Returns the value of the call; results go
 * into the context, and the bytes consumed and produced into the last two. */
int wf_alg_whole_end(struct wf_alg_whole *w, int ret, size_t *src_len,
		     size_t *dst_len);

/* All three steps in one call. @except: bits of drivers that are not asked. */
int wf_alg_whole_run(struct wd_comp_ctx *ctx, bool inflate, uint32_t except,
		     const uint8_t *src, size_t *src_len, uint8_t *dst,
		     size_t *dst_len);

/* Returns the driver flag by which ctx->check is computed. */
static inline int wf_alg_whole_check(const struct wd_comp_ctx *ctx)
{
	return ctx->alg_type == WD_COMP_RAW ? ctx->raw_check : ctx->alg_type;
}

/* The fields of a context, and arguments: 0 or -EINVAL. */
int wf_alg_ctx_check(const struct wd_comp_ctx *ctx, const void *src,
		     const size_t *src_len, const void *dst,
		     const size_t *dst_len);

#endif
