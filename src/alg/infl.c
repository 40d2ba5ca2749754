/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decompressor around a driver's stream. Sizes and checksums are checked
 * here, whichever driver did the work.
 */
#include "alg/infl.h"

#include <errno.h>
#include <string.h>

#include "alg/wrap.h"

void wf_alg_infl_begin(struct wf_alg_infl *s)
{
	s->slot = NULL;
	s->stream = NULL;
	s->used = NULL;
	wf_deflate_inflate_init(&s->header, NULL, s->mem,
				wf_alg_wrap_format(s->alg),
				s->window ? (unsigned int)s->window : 15);
	s->headed = false;
	s->finished = false;
	s->ended = false;
	s->failed = 0;
	s->trailer_len = 0;
	s->check = wd_comp_check_init(s->alg);
	s->total_out = 0;
}

void wf_alg_infl_end(struct wf_alg_infl *s)
{
	if (s->slot) {
		wf_alg_registry_driver(s->slot)->close(s->stream);
		wf_alg_registry_put(s->slot);
	}
	s->slot = NULL;
}

static int open_stream(struct wf_alg_infl *s)
{
	struct wf_alg_want want = {
		.can = WD_COMP_CAN_INFLATE_STREAM,
		.level = -1,
		.node = s->node,
		.name = s->name,
	};
	struct wd_comp_job job = { .window = s->window ? s->window : 15 };
	struct wf_alg_slot *slot = wf_alg_registry_get(&want);
	int ret;

	if (!slot)
		return -ENOTSUP;
	ret = wf_alg_registry_driver(slot)->open(&s->stream, 1, &job, &s->mem);
	if (ret) {
		wf_alg_registry_put(slot);
		return ret;
	}
	s->slot = slot;
	s->used = wf_alg_registry_driver(slot)->name;
	wf_alg_stats_add(wf_alg_registry_stats(slot), WF_ALG_STAT_jobs, 1);
	return 0;
}

static int read_header(struct wf_alg_infl *s, struct wf_alg_io *io)
{
	size_t used;
	int ret = wf_deflate_head_read(&s->header, io->in, io->in_len, &used);

	io->in += used;
	io->in_len -= used;
	s->headed = ret == 1;
	return ret;
}

static int read_data(struct wf_alg_infl *s, struct wf_alg_io *io)
{
	struct wd_comp_job job = {
		.src = io->in,
		.src_len = io->in_len,
		.dst = io->out,
		.dst_len = io->out_len,
	};
	int ret = wf_alg_registry_driver(s->slot)->step(s->stream, &job);

	wf_alg_stats_bytes(wf_alg_registry_stats(s->slot), job.consumed,
			   job.produced);
	s->check = wd_comp_check(s->alg, s->check, io->out, job.produced);
	s->total_out += job.produced;
	io->in += job.consumed;
	io->in_len -= job.consumed;
	io->out += job.produced;
	io->out_len -= job.produced;
	s->finished = job.ended;
	return ret;
}

/* 1 when it is whole. */
static int read_trailer(struct wf_alg_infl *s, struct wf_alg_io *io)
{
	size_t want = wf_alg_wrap_trailer_size(s->alg) - s->trailer_len;
	size_t n = want < io->in_len ? want : io->in_len;

	if (n)
		memcpy(s->trailer + s->trailer_len, io->in, n);
	s->trailer_len += n;
	io->in += n;
	io->in_len -= n;
	if (n < want)
		return 0;
	return wf_alg_wrap_trailer_is(s->trailer, s->alg, s->check,
				      s->total_out) ?
		       1 :
		       -EBADMSG;
}

static int run(struct wf_alg_infl *s, struct wf_alg_io *io)
{
	int ret;

	if (!s->headed) {
		ret = read_header(s, io);
		if (ret < 0)
			return ret;
		if (!ret)
			return WD_COMP_MORE_IN;
	}
	if (!s->finished) {
		if (!s->slot && (ret = open_stream(s)))
			return ret;
		ret = read_data(s, io);
		if (ret)
			return ret;
		if (!s->finished)
			return io->out_len ? WD_COMP_MORE_IN : WD_COMP_MORE_OUT;
	}
	if (!s->ended) {
		ret = read_trailer(s, io);
		if (ret < 0)
			return ret;
		if (!ret)
			return WD_COMP_MORE_IN;
		s->ended = true;
	}
	return WD_COMP_END;
}

int wf_alg_infl_run(struct wf_alg_infl *s, struct wf_alg_io *io)
{
	int ret;

	if (s->failed)
		return s->failed;
	ret = run(s, io);
	/* A lack of memory may pass; a driver that is gone stays gone. */
	if (ret < 0 && ret != -ENOMEM)
		s->failed = ret;
	return ret;
}
