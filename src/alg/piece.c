/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of one piece: choose a driver, run it, and run another one if the
 * device is gone. Data that does not shrink is stored, so that bounds hold for
 * every driver.
 */
#include "alg/piece.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "alg/choice.h"
#include "alg/cost.h"
#include "alg/queue.h"
#include "alg/wrap.h"
#include "base/clock.h"
#include "base/cpu.h"
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
	/* A caller that asked for a flush may look for the marker at the
	 * end. */
	if (!last)
		n += wf_alg_stored_write(job->dst + n, nothing, 0, false);
	job->consumed = job->src_len;
	job->produced = n;
	return 0;
}

bool wf_alg_piece_is_final(int result)
{
	switch (result) {
	case 0:
	case -ENOSPC:
	case -EBADMSG:
	case -ENODATA:
	case -ENOMEM:
	case -EFAULT: /* the next driver would meet the address itself */
		return true;
	default:
		return false;
	}
}

/* A channel that was kept may have died meanwhile: then open a new one. */
static int run_queued(struct wf_alg_slot *slot, const struct wf_alg_want *want,
		      struct wd_comp_job *job)
{
	unsigned int can =
		job->inflate ? WD_COMP_CAN_INFLATE : WD_COMP_CAN_DEFLATE;
	struct wf_alg_queue *q;
	bool fresh;
	int ret;

	if (want->ch) {
		q = wf_alg_queue_of(slot, want->ch, can);
		return q ? wf_alg_queue_run(q, job) : -ENODEV;
	}
	do {
		q = wf_alg_queue_get(slot, can, &fresh);
		if (!q)
			return -ENODEV;
		ret = wf_alg_queue_run(q, job);
		wf_alg_queue_put(q);
	} while (ret == -ENODEV && !fresh);
	return ret;
}

/* A library does the job in the call. */
static int run_here(struct wf_alg_slot *slot, const struct wd_alg_comp *d,
		    struct wd_comp_job *job)
{
	int ret = job->inflate ? d->inflate(job) : d->deflate(job);

	if (wf_unlikely(job->consumed > job->src_len ||
			job->produced > job->dst_len)) {
		wf_alg_registry_distrust(slot,
					 "returned lengths that cannot be");
		ret = -EIO;
	}
	wf_alg_stats_job(wf_alg_registry_stats(slot), job, ret);
	return ret;
}

static int run(struct wd_comp_job *job, struct wf_alg_want *want,
	       const char **used)
{
	bool measured = false;
	uint64_t start = 0;
	int ret = -ENOTSUP;

	for (;;) {
		struct wf_alg_slot *slot = wf_alg_registry_get(want);
		const struct wd_alg_comp *d;

		if (!slot && want->ch && wf_alg_registry_drives(want->ch)) {
			want->ch = NULL; /* its device cannot: who can? */
			continue;
		}
		if (!slot)
			return ret;
		d = wf_alg_registry_driver(slot);
		if (wf_unlikely(wf_alg_choice_is_open(d, want))) {
			slot = wf_alg_choice_now(slot, want, job, &measured);
			d = wf_alg_registry_driver(slot);
			start = measured ? wf_base_clock_ns() : 0;
		}
		if (used)
			*used = d->name;
		job->consumed = 0;
		job->produced = 0;
		job->ended = 0;
		job->border = 0;
		job->copied = 0;
		job->checked = 0;
		if (!d->submit)
			ret = run_here(slot, d, job);
		else
			ret = wf_alg_queue_fits(d, job) ?
				      run_queued(slot, want, job) :
				      -ENOTSUP;
		want->except |= wf_alg_registry_bit(slot);
		if (start && !ret)
			wf_alg_cost_note(wf_alg_registry_cost(slot), job,
					 wf_base_clock_ns() - start);
		start = 0;
		wf_alg_registry_put(slot);
		if (wf_alg_piece_is_final(ret))
			return ret;
		if (ret != -ENOTSUP) {
			wf_info("driver %s failed with a job (%s): trying the "
				"next",
				d->name, strerror(-ret));
			ret = -ENODEV;
		}
	}
}

void wf_alg_piece_want(struct wd_comp_job *job, struct wf_alg_want *want,
		       bool inflate)
{
	job->inflate = inflate;
	if (inflate) {
		want->can |= WD_COMP_CAN_INFLATE |
			     (job->dict_len ? WD_COMP_CAN_INFLATE_DICT : 0) |
			     (job->flush ? WD_COMP_CAN_INFLATE_PIECE : 0);
		want->level = -1;
		return;
	}
	want->can |= WD_COMP_CAN_DEFLATE |
		     (job->dict_len ? WD_COMP_CAN_DEFLATE_DICT : 0);
	want->level = job->level;
	want->window = job->window;
	want->small = job->flush == WD_COMP_FINISH && job->src_len <= SMALL;
}

int wf_alg_piece_settle(struct wd_comp_job *job, int result)
{
	if (!job->inflate &&
	    (result == -ENOSPC ||
	     (!result && job->produced > wf_alg_stored_size(job->src_len)))) {
		int stored = store(job);

		/* If storing is not possible, data that fits stays as it is. */
		result = stored ? result : 0;
	}
	return result;
}

int wf_alg_piece_deflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used)
{
	if (!job->level) {
		if (used)
			*used = "stored";
		return store(job);
	}
	wf_alg_piece_want(job, &want, false);
	return wf_alg_piece_settle(job, run(job, &want, used));
}

int wf_alg_piece_inflate(struct wd_comp_job *job, struct wf_alg_want want,
			 const char **used)
{
	wf_alg_piece_want(job, &want, true);
	return run(job, &want, used);
}
