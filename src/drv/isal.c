/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ISA-L: by far the fastest at low levels and at inflating. Working states are
 * large (hundreds of kilobytes), so idle ones are kept (drv/shelf). It must not
 * keep a byte that comes after the end of a stream.
 */
#include "alg/drivers.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "drv/shelf.h"

#define PIECE (1u << 30) /* ISA-L counts in 32 bits */

/*
 * zlib's level 1 is ISA-L's level 1, measured (docs/compression.md). A block is
 * as long as this buffer has room for; in longer ones, files of several kinds
 * (text beside what is compressed already) get up to 5 % larger.
 */
#define LEVEL 1
#define LEVEL_SIZE ISAL_DEF_LVL1_MEDIUM

struct deflater {
	struct isal_zstream stream;
	uint8_t level_buf[LEVEL_SIZE];
};

struct inflater {
	struct inflate_state state;
	struct wd_comp_mem mem;
};

static struct wf_drv_shelf deflaters, inflaters;

static void *take_or_make(struct wf_drv_shelf *shelf, size_t size)
{
	void *item = wf_drv_shelf_take(shelf);

	return item ? item : aligned_alloc(64, (size + 63) & ~(size_t)63);
}

/*
 * isal_deflate() needs 18 KiB of stack, and zlib, in whose place we may be, much
 * less than that: some programs have threads with 16 KiB.
 */
#define STACK_NEEDED (32u << 10)

#define FIRST_STACK (8u << 20) /* of the first thread, no more is counted on */

/* Below this address there is too little; 0: not known yet. */
static _Thread_local uintptr_t stack_low, stack_high;

/* The first thread's stack lies below what the kernel put there when the
 * program began; pthread_getattr_np() would read a file to find it. A child
 * that another thread has forked has that thread's stack, which is not here. */
static void find_first_stack(void)
{
	uintptr_t top = (uintptr_t)getauxval(AT_RANDOM);
	struct rlimit limit;
	uintptr_t size = FIRST_STACK;

	if (!top)
		return;
	if (!getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < FIRST_STACK)
		size = limit.rlim_cur;
	stack_low = top - size + STACK_NEEDED;
	stack_high = top;
}

static void find_stack(void)
{
	pthread_attr_t attr;
	void *at = NULL;
	size_t size = 0;

	stack_low = 1;
	stack_high = UINTPTR_MAX;
	if (gettid() == getpid()) {
		find_first_stack();
		return;
	}
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &at, &size)) {
		stack_low = (uintptr_t)at + STACK_NEEDED;
		stack_high = (uintptr_t)at + size;
	}
	pthread_attr_destroy(&attr);
}

/* False on a stack that is not the thread's (a coroutine) too. */
static bool has_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!stack_low)
		find_stack();
	return here >= stack_low && here < stack_high;
}

static int deflate_pieces(struct isal_zstream *s, struct wd_comp_job *job)
{
	do {
		size_t in = job->src_len - job->consumed;
		size_t out = job->dst_len - job->produced;
		uint32_t in_now = in < PIECE ? (uint32_t)in : PIECE;
		uint32_t out_now = out < PIECE ? (uint32_t)out : PIECE;

		s->next_in = (uint8_t *)(uintptr_t)(job->src + job->consumed);
		s->avail_in = in_now;
		s->next_out = job->dst + job->produced;
		s->avail_out = out_now;
		s->flush = NO_FLUSH;
		s->end_of_stream = 0;
		if (in_now == in && job->flush == WD_COMP_FINISH)
			s->end_of_stream = 1;
		else if (in_now == in)
			s->flush = job->flush == WD_COMP_FULL_FLUSH ?
					   FULL_FLUSH :
					   SYNC_FLUSH;
		if (isal_deflate(s) != COMP_OK)
			return -EIO;
		job->consumed += in_now - s->avail_in;
		job->produced += out_now - s->avail_out;
		/* Room is left only when all of this piece is out. */
		if (s->avail_out && in_now == in && !s->avail_in)
			return 0;
	} while (job->produced < job->dst_len);
	return s->internal_state.state == ZSTATE_END ? 0 : -ENOSPC;
}

static int is_deflate(struct wd_comp_job *job)
{
	struct deflater *d;
	int ret = 0;

	if (!has_stack())
		return -ENOTSUP;
	d = take_or_make(&deflaters, sizeof(*d));
	if (!d)
		return -ENOMEM;
	job->consumed = 0;
	job->produced = 0;
	isal_deflate_init(&d->stream);
	d->stream.level = LEVEL;
	d->stream.level_buf = d->level_buf;
	d->stream.level_buf_size = LEVEL_SIZE;
	if (job->dict_len &&
	    isal_deflate_set_dict(&d->stream, (uint8_t *)(uintptr_t)job->dict,
				  (uint32_t)job->dict_len))
		ret = -EINVAL;
	if (!ret)
		ret = deflate_pieces(&d->stream, job);
	wf_drv_shelf_put(&deflaters, d, free);
	return ret;
}

/* Between two blocks, with nothing left: a header that was tried for want of
 * anything else has no byte yet. */
static int at_border(const struct inflate_state *s)
{
	return (s->block_state == ISAL_BLOCK_NEW_HDR ||
		s->block_state == ISAL_BLOCK_HDR) &&
	       !s->read_in_length && !s->tmp_in_size;
}

static int result_of(int isal)
{
	return isal < 0 ? -EBADMSG : 0;
}

/* One call of ISA-L and what it moved. */
static int inflate_piece(struct inflate_state *s, struct wd_comp_job *job)
{
	size_t in = job->src_len - job->consumed;
	size_t out = job->dst_len - job->produced;
	uint32_t in_now = in < PIECE ? (uint32_t)in : PIECE;
	uint32_t out_now = out < PIECE ? (uint32_t)out : PIECE;
	int ret;

	s->next_in = (uint8_t *)(uintptr_t)(job->src + job->consumed);
	s->avail_in = in_now;
	s->next_out = job->dst + job->produced;
	s->avail_out = out_now;
	ret = isal_inflate(s);
	/*
	 * At the end whole bytes go back (newer versions see to that), and so
	 * they do when there is no more room: the stream may have ended with
	 * output waiting, and what follows it is not ours. When
	 * input is short they stay: the next symbol needs more than them, so
	 * none will be left over. A header that is cut in two keeps them in
	 * front of tmp_in_buffer.
	 */
	if ((!s->avail_out || s->block_state == ISAL_BLOCK_FINISH) &&
	    s->read_in_length >= 8 && !s->tmp_in_size) {
		uint32_t back = (uint32_t)s->read_in_length / 8;

		if (back > in_now - s->avail_in)
			back = in_now - s->avail_in;
		s->avail_in += back;
		s->read_in_length -= (int32_t)(back * 8);
		s->read_in &= (1ull << s->read_in_length) - 1;
	}
	job->consumed += in_now - s->avail_in;
	job->produced += out_now - s->avail_out;
	job->ended = s->block_state == ISAL_BLOCK_FINISH;
	job->border = at_border(s);
	return result_of(ret);
}

/* As far as it goes; also past a full dst, where only an end may follow. */
static int inflate_all(struct inflate_state *s, struct wd_comp_job *job)
{
	for (;;) {
		size_t consumed = job->consumed, produced = job->produced;
		int ret = inflate_piece(s, job);

		if (ret || job->ended)
			return ret;
		if (job->consumed == consumed && job->produced == produced)
			return 0;
	}
}

static int is_inflate(struct wd_comp_job *job)
{
	struct inflate_state *s = take_or_make(&inflaters, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	job->consumed = 0;
	job->produced = 0;
	job->ended = 0;
	isal_inflate_init(s);
	s->crc_flag = ISAL_DEFLATE;
	/* The stateless call forgets the bits that are left at the end. */
	if (!job->dict_len && job->src_len < PIECE && job->dst_len < PIECE &&
	    job->flush == WD_COMP_FINISH) {
		s->next_in = (uint8_t *)(uintptr_t)job->src;
		s->avail_in = (uint32_t)job->src_len;
		s->next_out = job->dst;
		s->avail_out = (uint32_t)job->dst_len;
		ret = isal_inflate_stateless(s);
		job->consumed = job->src_len - s->avail_in;
		job->produced = job->dst_len - s->avail_out;
		/* In bad data it may count back beyond the beginning. */
		if (ret != ISAL_DECOMP_OK && job->consumed > job->src_len)
			job->consumed = 0;
		job->ended = ret == ISAL_DECOMP_OK;
		if (ret == ISAL_OUT_OVERFLOW)
			ret = -ENOSPC;
		else if (ret == ISAL_END_INPUT)
			ret = -ENODATA;
		else
			ret = result_of(ret);
	} else {
		if (job->dict_len)
			isal_inflate_set_dict(s,
					      (uint8_t *)(uintptr_t)job->dict,
					      (uint32_t)job->dict_len);
		ret = inflate_all(s, job);
		if (!ret && !job->ended)
			ret = s->tmp_out_valid > s->tmp_out_processed ?
				      -ENOSPC :
				      -ENODATA;
	}
	wf_drv_shelf_put(&inflaters, s, free);
	return ret;
}

static int is_open(void **stream, int inflate, const struct wd_comp_job *job,
		   const struct wd_comp_mem *mem)
{
	struct inflater *s;

	if (!inflate)
		return -ENOTSUP;
	s = mem->alloc(mem->opaque, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->mem = *mem;
	isal_inflate_init(&s->state);
	s->state.crc_flag = ISAL_DEFLATE;
	if (job->dict_len)
		isal_inflate_set_dict(&s->state,
				      (uint8_t *)(uintptr_t)job->dict,
				      (uint32_t)job->dict_len);
	*stream = s;
	return 0;
}

static int is_step(void *stream, struct wd_comp_job *job)
{
	struct inflater *s = stream;

	job->consumed = 0;
	job->produced = 0;
	job->ended = 0;
	return inflate_all(&s->state, job);
}

static int is_copy(void **to, void *stream, const struct wd_comp_mem *mem)
{
	struct inflater *copy = mem->alloc(mem->opaque, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, stream, sizeof(*copy));
	copy->mem = *mem;
	*to = copy;
	return 0;
}

static void is_close(void *stream)
{
	struct inflater *s = stream;
	struct wd_comp_mem mem = s->mem;

	mem.free(mem.opaque, s);
}

static void is_exit(void)
{
	wf_drv_shelf_clear(&deflaters, free);
	wf_drv_shelf_clear(&inflaters, free);
}

const struct wd_alg_comp wf_drv_isal = {
	.name = "isal",
	.priority = 300,
	.node = -1,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE |
	       WD_COMP_CAN_DEFLATE_DICT | WD_COMP_CAN_INFLATE_DICT |
	       WD_COMP_CAN_INFLATE_STREAM,
	.levels = 1u << 1,
	.min_window = 15,
	.exit = is_exit,
	.deflate = is_deflate,
	.inflate = is_inflate,
	.open = is_open,
	.step = is_step,
	.copy = is_copy,
	.close = is_close,
};
