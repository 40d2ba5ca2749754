/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unpacks one file, member after member. A member that weft packed has an
 * index: its segments are unpacked at the same time, each checked to end
 * exactly where the next begins. Everything else, and whatever an index got
 * wrong, is unpacked in one run.
 */
#include "tools/gzip/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#include "tools/gzip/gang.h"
#include "tools/gzip/header.h"
#include "tools/gzip/index.h"

#define IN_SIZE (256u << 10)
#define OUT_SIZE (512u << 10)
#define SPAN_MOST (64u << 20) /* memory for a segment; larger: one run */

struct unpacker;

struct segment {
	struct wd_comp_ctx ctx;
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	bool last;
};

/* A member whose segments are unpacked at the same time. */
struct segments {
	struct unpacker *u;
	struct segment *slots;
	/* Of whoever takes: */
	size_t taken; /* segments */
	size_t at;    /* in the input: the next one */
	/* Of whoever writes: */
	size_t end; /* in the input: behind the final block */
	uint32_t check;
	uint64_t total;
};

/* The index is wrong, which says nothing about the data. */
#define WRONG 1

struct unpacker {
	struct wf_gzip_io *io;
	/* Input: the mapped file, or a buffer that is filled again. */
	const uint8_t *in;
	size_t in_len;
	uint8_t *buf;
	bool eof;
	uint64_t taken; /* input before `in` */
	uint8_t *out;
	uint64_t skip; /* output that is out already */
	struct wf_gzip_index index;
};

/* At least @want bytes at u->in, or all there are. */
static int need(struct unpacker *u, size_t want)
{
	while (u->in_len < want && !u->eof) {
		ssize_t n;

		memmove(u->buf, u->in, u->in_len);
		u->in = u->buf;
		n = read(u->io->in, u->buf + u->in_len, IN_SIZE - u->in_len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		u->eof = !n;
		u->in_len += (size_t)n;
	}
	return 0;
}

static void advance(struct unpacker *u, size_t n)
{
	u->in += n;
	u->in_len -= n;
	u->taken += n;
}

static int emit(struct unpacker *u, const uint8_t *data, size_t len)
{
	size_t skip = u->skip < len ? (size_t)u->skip : len;

	u->skip -= skip;
	wf_tools_gzip_progress(u->io, u->taken);
	return wf_tools_gzip_write(u->io, data + skip, len - skip);
}

/* One member from beginning to end. */
static int run_member(struct unpacker *u)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
				   .stream_mode = WD_COMP_STATEFUL,
				   .new_stream = 1,
				   .driver = u->io->options->driver };
	int ret;

	do {
		size_t in, out = OUT_SIZE;

		ret = need(u, 1);
		if (ret)
			break;
		in = u->in_len;
		ret = wd_alg_inflate(&ctx, u->in, &in, u->out, &out);
		advance(u, in);
		if (out && !ret)
			ret = emit(u, u->out, out);
		else if (out)
			emit(u, u->out, out);
		if (!ret && ctx.status == WD_COMP_MORE_IN && !in && !out &&
		    u->eof && !u->in_len)
			ret = -ENODATA;
	} while (!ret && ctx.status != WD_COMP_END);
	u->io->driver = ctx.used;
	wd_alg_end(&ctx);
	return ret;
}

static int take_segment(void *arg, unsigned int n, int *none)
{
	struct segments *all = arg;
	struct unpacker *u = all->u;
	struct segment *s = &all->slots[n];
	size_t left = u->in_len - all->at;

	if (all->taken > u->index.count) {
		*none = 1;
		return 0;
	}
	s->last = all->taken == u->index.count;
	s->in_len = s->last ? left : u->index.lengths[all->taken];
	if (!left || s->in_len > left)
		return WRONG;
	s->ctx = (struct wd_comp_ctx){
		.raw_check = WD_COMP_GZIP,
		.flush_type = s->last ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
		.driver = u->io->options->driver,
	};
	s->in = u->in + all->at;
	all->at += s->in_len;
	all->taken++;
	return 0;
}

/* It must end exactly where the next begins. */
static int unpack_segment(void *arg, unsigned int n)
{
	struct segments *all = arg;
	struct segment *s = &all->slots[n];
	uint32_t span = all->u->index.span;

	s->ctx.in_len = s->in_len;
	s->ctx.out_len = span;
	if (wd_alg_inflate(&s->ctx, s->in, &s->ctx.in_len, s->out,
			   &s->ctx.out_len))
		return WRONG;
	return s->last || (s->ctx.out_len == span &&
			   s->ctx.in_len == s->in_len) ?
		       0 :
		       WRONG;
}

static int write_segment(void *arg, unsigned int n)
{
	struct segments *all = arg;
	struct segment *s = &all->slots[n];
	struct unpacker *u = all->u;

	all->check = wd_comp_check_combine(WD_COMP_GZIP, all->check,
					   s->ctx.check, s->ctx.out_len);
	all->total += s->ctx.out_len;
	u->io->driver = s->ctx.used;
	if (s->last)
		all->end = (size_t)(s->in - u->in) + s->ctx.in_len;
	wf_tools_gzip_progress(u->io, u->taken + (uint64_t)(s->in - u->in));
	return wf_tools_gzip_write(u->io, s->out, s->ctx.out_len);
}

/* All segments. WRONG: what is out is right, but the rest is for one run. */
static int run_segments(struct segments *all, unsigned int threads)
{
	struct wf_gzip_gang gang = {
		.threads = threads,
		.slots = threads * 2 + 1,
		.arg = all,
		.take = take_segment,
		.work = unpack_segment,
		.put = write_segment,
	};
	size_t span = all->u->index.span, size = gang.slots * span;
	uint8_t *room = wf_tools_gzip_gang_room(size);
	int ret = WRONG; /* without memory for it, as if there were none */

	all->slots = calloc(gang.slots, sizeof(*all->slots));
	if (room && all->slots) {
		for (unsigned int i = 0; i < gang.slots; i++)
			all->slots[i].out = room + i * span;
		ret = wf_tools_gzip_gang_run(&gang);
	}
	free(all->slots);
	free(room);
	return ret;
}

/* -EAGAIN: the index is of no use, u->skip says what is out already. */
static int run_indexed(struct unpacker *u, size_t head)
{
	struct segments all = { .u = u, .at = head };
	int ret = run_segments(&all, u->io->options->threads);
	const uint8_t *tail = u->in + all.end;
	uint64_t want;

	/* One run would have made the same so far. */
	if (ret == WRONG) {
		u->skip = all.total;
		return -EAGAIN;
	}
	if (ret)
		return ret;
	if (u->in_len - all.end < 8)
		return -ENODATA;
	want = all.check | (all.total & UINT32_MAX) << 32;
	for (int i = 0; i < 8; i++) {
		if (tail[i] != (uint8_t)(want >> (8 * i)))
			return -EBADMSG;
	}
	u->io->points = u->index.count + 1;
	advance(u, all.end + 8);
	return 0;
}

static int next_member(struct unpacker *u, bool first)
{
	struct wf_gzip_header header;
	size_t head = wf_tools_gzip_header_parse(u->in, u->in_len, &header);
	int ret;

	if (head && first)
		u->io->mtime = header.mtime;
	/* What weft writes has no checksum of its header and no unknown flags:
	 * leave others to the one run, which looks at both. */
	if (u->io->map && head && header.extra &&
	    !(header.flags & (WF_GZIP_FLAG_HCRC | WF_GZIP_FLAG_RESERVED)) &&
	    wf_tools_gzip_index_read(&u->index, header.extra,
				     header.extra_len) &&
	    u->index.span <= SPAN_MOST) {
		ret = run_indexed(u, head);
		if (ret != -EAGAIN)
			return ret;
	}
	return run_member(u);
}

/* Less than the two bytes that tell, and nothing that contradicts them. */
static bool is_beginning(const struct unpacker *u)
{
	return !u->in_len || (u->in_len == 1 && u->in[0] == 0x1f);
}

/* As it is, like cat. */
static int copy(struct unpacker *u)
{
	int ret;

	do {
		ret = emit(u, u->in, u->in_len);
		advance(u, u->in_len);
		if (!ret)
			ret = need(u, 1);
	} while (!ret && u->in_len);
	return ret;
}

static int run(struct unpacker *u)
{
	bool first = true;
	int ret;

	for (;;) {
		ret = need(u, 2);
		if (ret)
			return ret;
		if (!first && !u->in_len)
			return 0;
		/* As gzip does: zeros after the end are padding. */
		if (!first && !u->in[0]) {
			advance(u, 1);
			continue;
		}
		if (u->in_len < 2 || u->in[0] != 0x1f || u->in[1] != 0x8b) {
			if (first && u->io->as_is)
				return copy(u);
			if (first)
				return is_beginning(u) ? -ENODATA : -EINVAL;
			u->io->garbage = true;
			return 0;
		}
		ret = next_member(u, first);
		if (ret)
			return ret;
		first = false;
	}
}

int wf_tools_gzip_unpack(struct wf_gzip_io *io)
{
	struct unpacker *u = calloc(1, sizeof(*u));
	int ret = -ENOMEM;

	if (!u)
		return -ENOMEM;
	u->io = io;
	u->out = malloc(OUT_SIZE);
	u->buf = io->map ? NULL : malloc(IN_SIZE);
	if (u->out && (io->map || u->buf)) {
		u->in = io->map ? io->map : u->buf;
		u->in_len = io->map ? (size_t)io->size : 0;
		u->eof = io->map;
		ret = run(u);
	}
	wf_tools_gzip_progress_end();
	io->total_in = u->taken;
	free(u->out);
	free(u->buf);
	free(u);
	if (ret)
		wf_tools_gzip_say(io,
				  ret == -EINVAL  ? "not in gzip format" :
				  ret == -EBADMSG ? "the data is damaged" :
				  ret == -ENODATA ? "unexpected end of file" :
				  ret == -ENOTSUP ? "no such driver here" :
						    strerror(-ret));
	return ret;
}
