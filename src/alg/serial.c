/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Around the strict decoder (deflate/inflate.h): its stream reads a header with
 * the format's own rules, then starts anew as a raw one, because only that can
 * start in the middle. The caller with all the output computes checksums.
 */
#include "alg/serial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alg/defl.h"
#include "alg/wrap.h"

#define EXTRA_MOST 65535
#define BETWEEN 128 /* in data_type: between two blocks */
#define LAST 64	    /* ... of which the one before was the last */

int wf_alg_serial_init(struct wf_serial *s, int alg, bool members)
{
	memset(s, 0, sizeof(*s));
	s->alg = alg;
	s->members = members;
	s->phase = WF_SERIAL_IN_HEAD;
	s->first = true;
	s->at.member = true;
	s->extra = alg == WD_COMP_GZIP ? malloc(EXTRA_MOST) : NULL;
	return s->extra || alg != WD_COMP_GZIP ? 0 : -ENOMEM;
}

static void end_stream(struct wf_serial *s)
{
	if (s->begun)
		wf_deflate_inflate_end(&s->stream);
	s->begun = false;
}

void wf_alg_serial_exit(struct wf_serial *s)
{
	end_stream(s);
	free(s->extra);
}

static void begin_stream(struct wf_serial *s, int wrap)
{
	end_stream(s);
	wf_deflate_inflate_init(&s->stream, &s->codes, wf_alg_std_mem, wrap,
				15);
	s->begun = true;
}

void wf_alg_serial_begin(struct wf_serial *s, struct wf_border at,
			 const uint8_t *in, const uint8_t *window, size_t have)
{
	unsigned int used = at.bit & 7;

	s->at = at;
	s->pos = at.bit / 8;
	s->first = false;
	end_stream(s);
	if (at.member) {
		s->phase = WF_SERIAL_IN_HEAD;
		return;
	}
	s->phase = WF_SERIAL_IN_DATA;
	begin_stream(s, WF_INFLATE_RAW);
	if (have)
		wf_deflate_inflate_set_dict(
			&s->stream, window + WF_CHUNK_WINDOW - have, have);
	if (used)
		wf_deflate_inflate_prime(&s->stream, (int)(8 - used),
					 in[s->pos++] >> used);
}

size_t wf_alg_serial_window(const struct wf_serial *s,
			    uint8_t window[WF_CHUNK_WINDOW])
{
	uint8_t bytes[WF_CHUNK_WINDOW];
	size_t have;

	if (s->phase != WF_SERIAL_IN_DATA || !s->begun)
		return 0;
	have = wf_deflate_inflate_get_dict(&s->stream, bytes);
	memcpy(window + WF_CHUNK_WINDOW - have, bytes, have);
	return have;
}

static enum wf_serial_ret fail(struct wf_serial *s, int error)
{
	s->error = error;
	s->why = error == -EBADMSG ? s->stream.msg : NULL;
	return WF_SERIAL_FAILED;
}

/* Whether a member begins here: its first two bytes. As in gzip, zeros between
 * members are padding, and data after the first member that is no member is
 * ignored. */
static bool begins_member(struct wf_serial *s, const uint8_t *in, uint64_t end,
			  bool eof, enum wf_serial_ret *ret)
{
	while (!s->first && s->pos < end && !in[s->pos])
		s->pos++;
	if (end - s->pos >= 2 && in[s->pos] == 0x1f && in[s->pos + 1] == 0x8b)
		return true;
	if (end - s->pos < 2 && !eof) {
		*ret = WF_SERIAL_INPUT;
	} else if (s->first) {
		bool begin = s->pos == end ||
			     (end - s->pos == 1 && in[s->pos] == 0x1f);

		*ret = fail(s, begin ? -ENODATA : -EINVAL);
	} else {
		s->garbage = s->pos < end;
		*ret = WF_SERIAL_OVER;
	}
	return false;
}

static enum wf_inflate_ret run(struct wf_serial *s, const uint8_t *in,
			       uint64_t end, uint8_t *out, size_t room,
			       size_t *made)
{
	struct wf_inflate_io io = { in + s->pos, (size_t)(end - s->pos), out,
				    room };
	enum wf_inflate_ret ret =
		wf_deflate_inflate_run(&s->stream, &io, WF_INFLATE_BLOCK);

	s->pos = end - io.in_len;
	*made = room - io.out_len;
	return ret;
}

static enum wf_serial_ret read_header(struct wf_serial *s, const uint8_t *in,
				      uint64_t end, bool eof)
{
	enum wf_serial_ret ret;
	size_t used;
	int over;

	if (s->alg == WD_COMP_RAW) {
		s->at = (struct wf_border){ s->pos * 8, false };
		s->phase = WF_SERIAL_IN_DATA;
		begin_stream(s, WF_INFLATE_RAW);
		s->first = false;
		return WF_SERIAL_HEADER;
	}
	if (!s->begun) {
		if (s->alg == WD_COMP_GZIP && s->members &&
		    !begins_member(s, in, end, eof, &ret))
			return ret;
		begin_stream(s, wf_alg_wrap_format(s->alg));
		s->head = (struct wf_inflate_head){
			.extra = s->first ? s->extra : NULL,
			.extra_max = EXTRA_MOST,
		};
		if (s->alg == WD_COMP_GZIP)
			s->stream.head = &s->head;
	}
	over = wf_deflate_head_read(&s->stream, in + s->pos,
				    (size_t)(end - s->pos), &used);
	s->pos += used;
	if (over < 0)
		return fail(s, over);
	if (over) {
		s->at = (struct wf_border){ s->pos * 8, false };
		s->phase = WF_SERIAL_IN_DATA;
		begin_stream(s, WF_INFLATE_RAW);
		return WF_SERIAL_HEADER;
	}
	return eof ? fail(s, -ENODATA) : WF_SERIAL_INPUT;
}

static enum wf_serial_ret read_data(struct wf_serial *s, const uint8_t *in,
				    uint64_t end, bool eof, uint8_t *out,
				    size_t room, size_t *made)
{
	uint64_t before = s->pos;
	enum wf_inflate_ret ret = run(s, in, end, out, room, made);
	int type;

	switch (ret) {
	case WF_INFLATE_END:
		s->phase = WF_SERIAL_IN_TAIL;
		end_stream(s);
		return WF_SERIAL_ROOM; /* comes again */
	case WF_INFLATE_OK:
	case WF_INFLATE_NO_PROGRESS:
		break;
	case WF_INFLATE_NO_MEMORY:
		return fail(s, -ENOMEM);
	default:
		return fail(s, -EBADMSG);
	}
	type = wf_deflate_inflate_data_type(&s->stream);
	if (type & BETWEEN && type & LAST && ret == WF_INFLATE_OK)
		return WF_SERIAL_ROOM; /* comes again, for the end */
	if (type & BETWEEN && ret == WF_INFLATE_OK) {
		s->at = (struct wf_border){ s->pos * 8 - (type & 63), false };
		return WF_SERIAL_BORDER;
	}
	if (*made == room)
		return WF_SERIAL_ROOM;
	if (s->pos == end && !eof)
		return WF_SERIAL_INPUT;
	if (s->pos == before && !*made)
		return fail(s, -ENODATA);
	return WF_SERIAL_ROOM;
}

static enum wf_serial_ret read_trailer(struct wf_serial *s, const uint8_t *in,
				       uint64_t end, bool eof)
{
	size_t size = wf_alg_wrap_trailer_size(s->alg);

	if (end - s->pos < size)
		return eof ? fail(s, -ENODATA) : WF_SERIAL_INPUT;
	memcpy(s->trailer, in + s->pos, size);
	s->pos += size;
	s->at = (struct wf_border){ s->pos * 8, true };
	s->phase = WF_SERIAL_IN_HEAD;
	s->first = false;
	return WF_SERIAL_MEMBER;
}

enum wf_serial_ret wf_alg_serial_step(struct wf_serial *s, const uint8_t *in,
				      uint64_t end, bool eof, uint8_t *out,
				      size_t room, size_t *made)
{
	*made = 0;
	switch (s->phase) {
	case WF_SERIAL_IN_HEAD:
		return read_header(s, in, end, eof);
	case WF_SERIAL_IN_DATA:
		return read_data(s, in, end, eof, out, room, made);
	default:
		return read_trailer(s, in, end, eof);
	}
}
