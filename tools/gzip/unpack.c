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

#include "tools/gzip/header.h"
#include "tools/gzip/index.h"

#define IN_SIZE (256u << 10)
#define OUT_SIZE (512u << 10)
#define SPAN_MOST (64u << 20) /* memory for a segment; larger: one run */

struct segment {
	struct wd_comp_ctx ctx;
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	bool busy;
	bool done;
	int result;
};

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

static void done(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct segment *s = arg;

	(void)ctx;
	s->result = result;
	s->done = true;
}

static int start(struct unpacker *u, struct segment *s, size_t i, size_t *at)
{
	bool last = i == u->index.count;
	size_t len = last ? u->in_len - *at : u->index.lengths[i];
	int ret;

	if (*at >= u->in_len || len > u->in_len - *at)
		return -EBADMSG;
	s->ctx = (struct wd_comp_ctx){
		.raw_check = WD_COMP_GZIP,
		.flush_type = last ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
		.driver = u->io->options->driver,
	};
	s->in = u->in + *at;
	s->in_len = len;
	s->done = false;
	s->busy = true;
	ret = wd_alg_async_inflate(&s->ctx, done, s, s->in, len, s->out,
				   u->index.span);
	if (ret)
		s->busy = false;
	*at += len;
	return ret;
}

/* All segments, in order. *at ends behind the final block. *wrong: it is the
 * index that failed, not the output. */
static int run_segments(struct unpacker *u, struct segment *slots,
			unsigned int count, size_t *at, uint32_t *check,
			uint64_t *total, bool *wrong)
{
	size_t first = 0, next = 0, segments = (size_t)u->index.count + 1;
	int ret = 0;

	while (!ret && first < segments) {
		struct segment *s = &slots[first % count];

		if (next < segments && next - first < count) {
			ret = start(u, &slots[next % count], next, at);
			*wrong = ret;
			next += !ret;
			continue;
		}
		if (!s->done) {
			wd_alg_wait(-1);
			wd_alg_poll(0);
			continue;
		}
		s->busy = false;
		ret = s->result;
		if (!ret && first + 1 < segments &&
		    (s->ctx.out_len != u->index.span ||
		     s->ctx.in_len != s->in_len))
			ret = -EBADMSG;
		*wrong = ret;
		if (ret)
			break;
		ret = emit(u, s->out, s->ctx.out_len);
		u->skip = 0;
		*check = wd_comp_check_combine(WD_COMP_GZIP, *check,
					       s->ctx.check, s->ctx.out_len);
		*total += s->ctx.out_len;
		if (first + 1 == segments)
			*at = (size_t)(s->in - u->in) + s->ctx.in_len;
		u->io->driver = s->ctx.used;
		first++;
	}
	for (unsigned int i = 0; i < count; i++) {
		while (slots[i].busy && !slots[i].done) {
			wd_alg_wait(-1);
			wd_alg_poll(0);
		}
	}
	return ret;
}

/* -EAGAIN: the index is of no use, u->skip says what is out already. */
static int run_indexed(struct unpacker *u, size_t head)
{
	unsigned int count = u->io->options->threads * 2 + 1;
	struct segment *slots = calloc(count, sizeof(*slots));
	uint32_t check = 0, want;
	uint64_t total = 0;
	size_t at = head;
	bool wrong = false;
	int ret = slots ? 0 : -ENOMEM;

	for (unsigned int i = 0; !ret && i < count; i++) {
		slots[i].out = malloc(u->index.span);
		if (!slots[i].out)
			ret = -ENOMEM;
	}
	wd_alg_async_threads(u->io->options->threads);
	if (!ret)
		ret = run_segments(u, slots, count, &at, &check, &total,
				   &wrong);
	for (unsigned int i = 0; slots && i < count; i++)
		free(slots[i].out);
	free(slots);
	/* What is out is right: one run would have made the same so far. */
	if (wrong) {
		u->skip = total;
		return -EAGAIN;
	}
	if (ret)
		return ret;
	if (u->in_len - at < 8)
		return -ENODATA;
	want = u->in[at] | (uint32_t)u->in[at + 1] << 8 |
	       (uint32_t)u->in[at + 2] << 16 | (uint32_t)u->in[at + 3] << 24;
	if (want != check || u->in[at + 4] != (uint8_t)total ||
	    u->in[at + 5] != (uint8_t)(total >> 8) ||
	    u->in[at + 6] != (uint8_t)(total >> 16) ||
	    u->in[at + 7] != (uint8_t)(total >> 24))
		return -EBADMSG;
	u->io->points = u->index.count + 1;
	advance(u, at + 8);
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
		u->in_len = (size_t)io->map_len;
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
