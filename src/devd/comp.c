/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression on the device: the drivers of this process, plug-ins among them. Raw
 * deflate data, one piece a job. Compressors look at a byte more than once, so
 * they never see memory that a client can change under them: in reserved
 * memory the device works on copies.
 */
#include "devd/comp.h"

#include <errno.h>
#include <string.h>

#include "alg/piece.h"

#define DICT_MAX 32768u

static int check(const struct wf_devd_work *work)
{
	const struct wf_accel_job *job = work->job;

	if (job->format != WF_ACCEL_FORMAT_RAW)
		return EOPNOTSUPP;
	if (job->level > 9 || job->stream || job->dict_len > DICT_MAX ||
	    job->flush > WD_COMP_FULL_FLUSH || job->flush == WD_COMP_NO_FLUSH ||
	    (job->window_log2 &&
	     (job->window_log2 < 9 || job->window_log2 > 15)))
		return EINVAL;
	return 0;
}

static int run(struct wf_devd_work *work, bool inflate)
{
	/* Any driver of this process, plug-ins too, but none that would ask a
	 * device process. */
	struct wf_alg_want want = { .local = true };
	struct wd_comp_job job = {
		.src = work->in,
		.src_len = work->in_len,
		.dst = work->out,
		.dst_len = work->out_len,
		.dict = work->dict,
		.dict_len = work->dict_len,
		.level = work->job->level,
		.window = work->job->window_log2,
		.flush = work->job->flush,
	};
	int ret = inflate ? wf_alg_piece_inflate(&job, want, NULL) :
			    wf_alg_piece_deflate(&job, want, NULL);

	work->consumed = job.consumed;
	work->produced = job.produced;
	work->copied += job.copied; /* by a driver of a device */
	if (job.ended || (!inflate && job.flush == WD_COMP_FINISH))
		work->flags |= WF_ACCEL_DONE_FINAL;
	return -ret;
}

/* On copies; the result goes back in one piece. */
static int run_apart(struct wf_devd_work *work, bool inflate)
{
	struct wf_devd_scratch *scratch = work->scratch;
	struct wf_devd_work apart = *work;
	int status;

	if (!wf_devd_scratch_grow(&scratch->in, &scratch->in_size,
				  work->dict_len + work->in_len + 1) ||
	    !wf_devd_scratch_grow(&scratch->out, &scratch->out_size,
				  work->out_len + 1))
		return ENOMEM;
	if (work->dict_len)
		memcpy(scratch->in, work->dict, work->dict_len);
	if (work->in_len)
		memcpy(scratch->in + work->dict_len, work->in, work->in_len);
	apart.dict = scratch->in;
	apart.in = scratch->in + work->dict_len;
	apart.out = scratch->out;
	apart.copied += work->dict_len + work->in_len;
	status = run(&apart, inflate);
	if (!status && apart.produced) {
		memcpy(work->out, apart.out, apart.produced);
		apart.copied += apart.produced;
	}
	work->copied = apart.copied;
	work->consumed = apart.consumed;
	work->produced = apart.produced;
	work->flags = apart.flags;
	return status;
}

int wf_devd_comp_deflate(struct wf_devd_work *work)
{
	int status = check(work);

	if (status)
		return status;
	return work->shared ? run_apart(work, false) : run(work, false);
}

int wf_devd_comp_inflate(struct wf_devd_work *work)
{
	int status = check(work);

	if (status)
		return status;
	return work->shared ? run_apart(work, true) : run(work, true);
}
