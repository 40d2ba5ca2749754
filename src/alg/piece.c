/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of one piece: choose, run, and once more elsewhere if the device is
 * gone. What does not shrink is stored, so that bounds hold for every driver.
 */
#include "alg/piece.h"

#include <errno.h>
#include <stdbool.h>

#include "alg/wrap.h"
#include "base/log.h"

/* An empty stored block that ends a piece on a byte boundary. */
#define MARKER 5

/* A whole stream of this size at most is small: ISA-L and libdeflate clear
 * tables of 130 to 190 KiB first (bench/zlib_small). */
#define SMALL 256u

size_t wf_alg_piece_bound(size_t len)
{
	return wf_alg_stored_size(len) + MARKER;
}

static int store(struct wd_comp_job *job)
{
	static const uint8_t nothing[1];
	bool last = job->flush == WD_COMP_FINISH;
	size_t need = wf_alg_stored_size(job->src_len) + (last ? 0 : MARKER);
	size_t n;

	if (need > job->dst_len)
		return -ENOSPC;
	n = wf_alg_stored_write(job->dst, job->src, job->src_len, last);
	/* Whoever asked for a flush may look for the marker at the end. */
	if (!last)
		n += wf_alg_stored_write(job->dst + n, nothing, 0, false);
	job->consumed = job->src_len;
	job->produced = n;
	return 0;
}

static int run(struct wd_comp_job *job, struct wf_alg_want *want, bool inflate,
	       const char **used)
{
	int ret = -ENOTSUP;

	for (;;) {
		struct wf_alg_slot *slot = wf_alg_registry_get(want);
		const struct wd_alg_comp *d;

		if (!slot)
			return ret;
		d = wf_alg_registry_driver(slot);
		if (used)
			*used = d->name;
		job->consumed = 0;
		job->produced = 0;
		job->ended = 0;
		job->border = 0;
		ret = inflate ? d->inflate(job) : d->deflate(job);
		want->except |= wf_alg_registry_bit(slot);
		wf_alg_registry_put(slot);
		if (ret == -ENODEV)
			wf_info("driver %s is gone, trying the next", d->name);
		else if (ret != -ENOTSUP)
			return ret;
	}
}

int wf_alg_piece_deflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used)
{
	int ret;

	if (!job->level) {
		if (used)
			*used = "stored";
		return store(job);
	}
	want.can |= WD_COMP_CAN_DEFLATE |
		    (job->dict_len ? WD_COMP_CAN_DEFLATE_DICT : 0);
	want.level = job->level;
	want.window = job->window;
	want.small = job->flush == WD_COMP_FINISH && job->src_len <= SMALL;
	ret = run(job, &want, false, used);
	if (ret == -ENOSPC ||
	    (!ret && job->produced > wf_alg_stored_size(job->src_len))) {
		int stored = store(job);

		/* What fits as it is stays, where stored blocks do not. */
		ret = stored ? ret : 0;
	}
	return ret;
}

int wf_alg_piece_inflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used)
{
	want.can |= WD_COMP_CAN_INFLATE |
		    (job->dict_len ? WD_COMP_CAN_INFLATE_DICT : 0) |
		    (job->flush ? WD_COMP_CAN_INFLATE_STREAM : 0);
	want.level = -1;
	return run(job, &want, true, used);
}
