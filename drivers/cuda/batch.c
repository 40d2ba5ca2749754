/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file decides what a batch holds and what it has the GPU do. A job to
 * decompress is one piece; one to compress is cut into pieces of 64 KiB, which
 * are independent of each other, end on a byte, and are put one after the other
 * on their way back.
 */
#include "cuda/batch.h"

#include <errno.h>
#include <string.h>

#include "cuda/check.h"

#define ALIGN 64u
#define INFLATE_WARPS 2u /* as kernels.cu has it */
/* Bytes between two inputs or outputs that are copied along, because a copy
 * of its own takes longer. Less than a page: both neighbours are pinned, so
 * it is, too. */
#define GAP 4096u
/* Room for one output: whoever has more gets this much. */
#define ROOM_MOST (64u << 20)

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

int wf_cuda_batch_make(struct wf_batch *b, const struct wf_cu *cu,
		       size_t memory)
{
	void *host = NULL, *pieces = NULL;

	b->memory = memory;
	if (!cu->cuMemHostAlloc(&host, memory, WF_CU_HOST_PORTABLE))
		b->host = host;
	if (!cu->cuMemHostAlloc(&pieces, WF_BATCH_PIECES * sizeof(*b->pieces),
				WF_CU_HOST_PORTABLE))
		b->pieces = pieces;
	if (b->host && b->pieces && !cu->cuMemAlloc_v2(&b->device, memory) &&
	    !cu->cuMemAlloc_v2(&b->device_pieces,
			       WF_BATCH_PIECES * sizeof(*b->pieces)) &&
	    !cu->cuStreamCreate(&b->stream, WF_CU_STREAM_APART) &&
	    !cu->cuEventCreate(&b->event, WF_CU_EVENT_NO_TIME))
		return 0;
	wf_cuda_batch_free(b, cu);
	return -ENOMEM;
}

void wf_cuda_batch_free(struct wf_batch *b, const struct wf_cu *cu)
{
	if (b->event)
		cu->cuEventDestroy_v2(b->event);
	if (b->stream)
		cu->cuStreamDestroy_v2(b->stream);
	if (b->tokens)
		cu->cuMemFree_v2(b->tokens);
	if (b->device_pieces)
		cu->cuMemFree_v2(b->device_pieces);
	if (b->device)
		cu->cuMemFree_v2(b->device);
	if (b->pieces)
		cu->cuMemFreeHost(b->pieces);
	if (b->host)
		cu->cuMemFreeHost(b->host);
	b->event = NULL;
	b->stream = NULL;
	b->tokens = 0;
	b->device_pieces = 0;
	b->device = 0;
	b->pieces = NULL;
	b->host = NULL;
}

/* -- jobs ------------------------------------------------------------------ */

/* Returns how much of the batch's memory the job takes, at most. */
static size_t input_of(const struct wf_batch_job *j)
{
	size_t dict = j->job->dict_len ? aligned(j->job->dict_len) : 0;

	return j->src == WF_PLACE_DEVICE ?
		       dict :
	       j->src == WF_PLACE_PINNED ?
		       dict + aligned(j->job->src_len + GAP) :
		       dict + aligned(j->job->src_len);
}

void wf_cuda_batch_plan(struct wf_batch_job *j, const struct wd_comp_job *job)
{
	if (job->inflate) {
		j->count = 1;
		j->room = job->dst_len < ROOM_MOST ? job->dst_len : ROOM_MOST;
	} else {
		j->count =
			job->src_len ?
				(uint32_t)((job->src_len - 1) / WF_PIECE_MOST +
					   1) :
				1;
		j->room = j->count * aligned(WF_PIECE_BOUND(WF_PIECE_MOST));
	}
}

static size_t output_of(const struct wf_batch_job *j)
{
	return j->job->inflate && j->dst == WF_PLACE_DEVICE ? 0 :
							      aligned(j->room);
}

static unsigned int pieces_most(const struct wf_batch_job *j)
{
	return j->job->inflate ? WF_BATCH_PIECES : WF_BATCH_DEFLATE;
}

bool wf_cuda_batch_could(const struct wf_batch_job *j, size_t memory)
{
	return input_of(j) + output_of(j) <= memory &&
	       j->count <= pieces_most(j);
}

bool wf_cuda_batch_fits(const struct wf_batch *b, const struct wf_batch_job *j)
{
	return !b->closed && b->inflate == !!j->job->inflate &&
	       b->in + b->out + input_of(j) + output_of(j) <= b->memory &&
	       b->pieces_count + j->count <= pieces_most(j) &&
	       b->jobs_count < WF_BATCH_PIECES;
}

/* Whether a pinned input lies right behind that of the job before it: then
 * it does so in the batch, and one copy takes both. */
static bool is_behind(const struct wf_batch *b, const struct wf_batch_job *j)
{
	const struct wf_batch_job *last;
	uintptr_t end;

	if (!b->jobs_count || j->src != WF_PLACE_PINNED || j->job->dict_len)
		return false;
	last = &b->jobs[b->jobs_count - 1];
	if (!last->job || last->src != WF_PLACE_PINNED)
		return false;
	end = (uintptr_t)last->job->src + last->job->src_len;
	return (uintptr_t)j->job->src >= end &&
	       (uintptr_t)j->job->src - end < GAP;
}

struct wf_batch_job *wf_cuda_batch_add(struct wf_batch *b,
				       const struct wf_batch_job *job)
{
	struct wf_batch_job *j = &b->jobs[b->jobs_count];

	*j = *job;
	j->batch = b;
	j->in = b->in + (j->job->dict_len ? aligned(j->job->dict_len) : 0);
	b->in += input_of(j);
	if (is_behind(b, j)) {
		j->in = j[-1].in + (size_t)(j->job->src - j[-1].job->src);
		b->in = aligned(j->in + j->job->src_len);
	}
	b->jobs_count++;
	j->first = b->pieces_count;
	b->out += output_of(j);
	b->pieces_count += j->count;
	b->left++;
	return j;
}

void wf_cuda_batch_fill(struct wf_batch *b, struct wf_batch_job *j)
{
	struct wd_comp_job *job = j->job;

	if (job->dict_len) {
		memcpy(b->host + j->in - aligned(job->dict_len), job->dict,
		       job->dict_len);
		job->copied += job->dict_len;
	}
	if (j->src == WF_PLACE_PAGES) {
		memcpy(b->host + j->in, job->src, job->src_len);
		job->copied += job->src_len;
	}
}

/* -- there ----------------------------------------------------------------- */

static uint32_t flags_of(const struct wd_comp_job *job)
{
	return job->check_alg == WD_COMP_GZIP ? WF_PIECE_CRC32 :
	       job->check_alg == WD_COMP_ZLIB ? WF_PIECE_ADLER32 :
						0;
}

/* Pieces of a job, whose memory has its place now. */
static void describe(struct wf_batch *b, struct wf_batch_job *j)
{
	const struct wd_comp_job *job = j->job;
	wf_cu_ptr src = j->src == WF_PLACE_DEVICE ? (uintptr_t)job->src :
						    b->device + j->in;
	size_t slot = aligned(WF_PIECE_BOUND(WF_PIECE_MOST));

	for (uint32_t i = 0; i < j->count; i++) {
		struct wf_piece *p = &b->pieces[j->first + i];
		size_t left = job->src_len - (size_t)i * WF_PIECE_MOST;

		*p = (struct wf_piece){ .src = src,
					.status = WF_PIECE_NONE,
					.flags = flags_of(job) };
		if (job->inflate) {
			p->src_len = (uint32_t)job->src_len;
			p->dst = j->dst == WF_PLACE_DEVICE ?
					 (uintptr_t)job->dst :
					 b->device + j->out;
			p->dst_len = (uint32_t)j->room;
			p->dict_len = (uint32_t)job->dict_len;
			p->dict = b->device + j->in - aligned(job->dict_len);
			continue;
		}
		p->src += (wf_cu_ptr)i * WF_PIECE_MOST;
		p->src_len =
			(uint32_t)(left < WF_PIECE_MOST ? left : WF_PIECE_MOST);
		p->dst = b->device + j->out + i * slot;
		p->dst_len = (uint32_t)slot;
		if (i + 1 == j->count && job->flush == WD_COMP_FINISH)
			p->flags |= WF_PIECE_FINAL;
	}
}

/* A job that nobody wants any more: nothing of it is touched. */
static void describe_nothing(struct wf_batch *b, const struct wf_batch_job *j)
{
	for (uint32_t i = 0; i < j->count; i++)
		b->pieces[j->first + i] = (struct wf_piece){
			.src = b->device, .dst = b->device, .dict = b->device
		};
}

static int copy_pinned(struct wf_batch *b, const struct wf_cu *cu)
{
	const struct wf_batch_job *first = NULL;
	size_t len = 0;
	int err = 0;

	for (unsigned int i = 0; i < b->jobs_count && !err; i++) {
		const struct wf_batch_job *j = &b->jobs[i];

		if (!j->job || j->src != WF_PLACE_PINNED || !j->job->src_len)
			continue;
		if (first && i && j[-1].job &&
		    j->job->src - first->job->src ==
			    (ptrdiff_t)(j->in - first->in)) {
			len = j->in + j->job->src_len - first->in;
			continue;
		}
		if (first)
			err = cu->cuMemcpyHtoDAsync_v2(b->device + first->in,
						       first->job->src, len,
						       b->stream);
		first = j;
		len = j->job->src_len;
	}
	if (first && !err)
		err = cu->cuMemcpyHtoDAsync_v2(b->device + first->in,
					       first->job->src, len, b->stream);
	return err;
}

/* One copy for what lies in the batch's memory, unless there is none. */
static int copy_in(struct wf_batch *b, const struct wf_cu *cu)
{
	bool pages = false;
	int err = 0;

	for (unsigned int i = 0; i < b->jobs_count && !pages; i++)
		pages = b->jobs[i].job && (b->jobs[i].src == WF_PLACE_PAGES ||
					   b->jobs[i].job->dict_len);
	if (pages && b->in)
		err = cu->cuMemcpyHtoDAsync_v2(b->device, b->host, b->in,
					       b->stream);
	return err ? err : copy_pinned(b, cu);
}

static int start_kernel(struct wf_batch *b, const struct wf_cu *cu,
			const struct wf_cuda_program *program)
{
	uint32_t count = b->pieces_count;
	void *args[] = { &b->device_pieces, &count, &b->tokens };

	if (b->inflate)
		return cu->cuLaunchKernel(
			program->inflate,
			(count + INFLATE_WARPS - 1) / INFLATE_WARPS, 1, 1,
			32 * INFLATE_WARPS, 1, 1, 0, b->stream, args, NULL);
	return cu->cuLaunchKernel(program->deflate, count, 1, 1, 32, 1, 1, 0,
				  b->stream, args, NULL);
}

int wf_cuda_batch_launch(struct wf_batch *b, const struct wf_cu *cu,
			 const struct wf_cuda_program *program)
{
	size_t bytes = b->pieces_count * sizeof(*b->pieces), at = b->in;
	int err = 0;

	for (unsigned int i = 0; i < b->jobs_count; i++) {
		struct wf_batch_job *j = &b->jobs[i];

		if (!j->job) {
			describe_nothing(b, j);
			continue;
		}
		j->out = at;
		at += output_of(j);
		describe(b, j);
	}
	if (!b->inflate && !b->tokens)
		err = cu->cuMemAlloc_v2(&b->tokens, (size_t)WF_BATCH_DEFLATE *
							    WF_PIECE_TOKENS *
							    4);
	if (!err)
		err = copy_in(b, cu);
	if (!err)
		err = cu->cuMemcpyHtoDAsync_v2(b->device_pieces, b->pieces,
					       bytes, b->stream);
	if (!err)
		err = start_kernel(b, cu, program);
	if (!err)
		err = cu->cuMemcpyDtoHAsync_v2(b->pieces, b->device_pieces,
					       bytes, b->stream);
	if (!err)
		err = cu->cuEventRecord(b->event, b->stream);
	b->closed = true;
	b->state = WF_BATCH_RUNNING;
	return err;
}

/* -- and back -------------------------------------------------------------- */

static int result_of(uint32_t status)
{
	switch (status) {
	case WF_PIECE_OK:
		return 0;
	case WF_PIECE_FULL:
		return -ENOSPC;
	case WF_PIECE_SHORT:
		return -ENODATA;
	case WF_PIECE_BAD:
		return -EBADMSG;
	default:
		return -EIO;
	}
}

/* The check of two pieces, of which the second has @len bytes. */
static uint32_t join(int alg, uint32_t first, uint32_t second, uint32_t len)
{
	uint32_t a, b;

	if (alg == WD_COMP_GZIP)
		return wf_crc_shift(first, len) ^ second;
	/* The second began with a sum of 1 of its own. */
	a = ((first & 0xffff) + (second & 0xffff) + WF_ADLER_BASE - 1) %
	    WF_ADLER_BASE;
	b = (uint32_t)(((first >> 16) + (second >> 16) +
			(wf_u64)len * ((first & 0xffff) + WF_ADLER_BASE - 1)) %
		       WF_ADLER_BASE);
	return b << 16 | a;
}

/* Sums up the results of the pieces of a job. */
static void sum_up(const struct wf_batch *b, const struct wf_batch_job *j,
		   struct wd_comp_job *job)
{
	const struct wf_piece *p = &b->pieces[j->first];

	job->result = 0;
	job->consumed = 0;
	job->produced = 0;
	for (uint32_t i = 0; i < j->count && !job->result; i++) {
		job->result = result_of(p[i].status);
		job->consumed += p[i].consumed;
		job->produced += p[i].produced;
	}
	if (job->consumed > job->src_len || job->produced > j->room) {
		job->result = -EIO; /* no kernel of ours says so */
		job->produced = 0;
		return;
	}
	if (job->inflate) {
		job->ended = !job->result;
		job->border = (int)p->border;
		/* It was told of a part of the room only. */
		if (job->result == -ENOSPC && job->dst_len > j->room)
			job->result = -ENOTSUP;
	} else if (!job->result && job->produced > job->dst_len) {
		job->result = -ENOSPC;
		job->produced = 0;
	}
	job->checked =
		job->check_alg && (!job->result || job->result == -ENODATA);
	job->check = p->check;
	for (uint32_t i = 1; i < j->count && job->checked; i++)
		job->check = join(job->check_alg, job->check, p[i].check,
				  p[i].consumed);
}

static int copy_deflated(const struct wf_batch *b, const struct wf_batch_job *j,
			 const struct wf_cu *cu)
{
	size_t slot = aligned(WF_PIECE_BOUND(WF_PIECE_MOST)), at = 0;
	int err = 0;

	for (uint32_t i = 0; i < j->count && !err; i++) {
		size_t n = b->pieces[j->first + i].produced;
		wf_cu_ptr from = b->device + j->out + i * slot;

		if (j->dst == WF_PLACE_DEVICE)
			err = cu->cuMemcpyDtoDAsync_v2((uintptr_t)j->job->dst +
							       at,
						       from, n, b->stream);
		else
			err = cu->cuMemcpyDtoHAsync_v2(
				j->dst == WF_PLACE_PINNED ?
					j->job->dst + at :
					b->host + j->out + at,
				from, n, b->stream);
		at += n;
	}
	return err;
}

/* Bytes from @from to @to of the batch's memory on their way to @host, which
 * may wait for more. */
struct stretch {
	size_t from, to;
	uint8_t *host;
};

static int copy_stretch(const struct wf_batch *b, const struct wf_cu *cu,
			const struct stretch *s)
{
	return s->to > s->from ?
		       cu->cuMemcpyDtoHAsync_v2(s->host, b->device + s->from,
						s->to - s->from, b->stream) :
		       0;
}

static int copy_inflated(const struct wf_batch *b, const struct wf_batch_job *j,
			 const struct wf_cu *cu, struct stretch *s)
{
	struct wd_comp_job *job = j->job;
	bool pinned = j->dst == WF_PLACE_PINNED;
	uint8_t *host = pinned ? job->dst : b->host + j->out;
	/* What is between two outputs may be copied along in our memory
	 * only. */
	size_t gap = pinned ? 0 : GAP;
	int err = 0;

	if (j->dst == WF_PLACE_DEVICE)
		return 0;
	if (s->to == s->from || j->out - s->to > gap ||
	    host - s->host != (ptrdiff_t)(j->out - s->from)) {
		err = copy_stretch(b, cu, s);
		s->from = j->out;
		s->host = host;
	}
	s->to = j->out + job->produced;
	return err;
}

int wf_cuda_batch_copy(struct wf_batch *b, const struct wf_cu *cu)
{
	struct stretch s = { 0, 0, NULL };
	int err = 0;

	for (unsigned int i = 0; i < b->jobs_count && !err; i++) {
		struct wf_batch_job *j = &b->jobs[i];

		if (!j->job)
			continue;
		sum_up(b, j, j->job);
		if (!j->job->produced || (j->job->result && !j->job->inflate))
			continue;
		err = b->inflate ? copy_inflated(b, j, cu, &s) :
				   copy_deflated(b, j, cu);
	}
	if (!err)
		err = copy_stretch(b, cu, &s);
	if (!err)
		err = cu->cuEventRecord(b->event, b->stream);
	b->state = WF_BATCH_COPYING;
	return err;
}

void wf_cuda_batch_finish(struct wf_batch *b, struct wf_batch_job *j)
{
	struct wd_comp_job *job = j->job;

	if (j->dst != WF_PLACE_PAGES || !job->produced ||
	    (job->result && !job->inflate))
		return;
	memcpy(job->dst, b->host + j->out, job->produced);
	job->copied += job->produced;
}
