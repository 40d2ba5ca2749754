/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of inflate: calls the part that the mode asks for until one has to
 * leave, then keeps what the next call needs. Blocks begin and stored ones are
 * copied here.
 */
#include "deflate/inflate.h"

#include <string.h>

#include "deflate/check.h"
#include "deflate/cursor.h"

#define REACH 32768u /* the largest distance that can be said */

void wf_deflate_inflate_reset_keep(struct wf_inflate *s)
{
	s->mode = WF_INFLATE_HEAD;
	s->last = false;
	s->has_dict = false;
	s->flags = -1;
	s->total = 0;
	s->hold = 0;
	s->bits = 0;
	s->back = -1;
	s->head = NULL;
	s->tables = WF_INFLATE_TABLES_NONE;
}

void wf_deflate_inflate_reset(struct wf_inflate *s)
{
	s->wsize = 0;
	s->whave = 0;
	s->wnext = 0;
	wf_deflate_inflate_reset_keep(s);
}

void wf_deflate_inflate_end(struct wf_inflate *s)
{
	if (s->window)
		s->mem.free(s->mem.opaque, s->window);
	s->window = NULL;
}

void wf_deflate_inflate_reset2(struct wf_inflate *s, int wrap,
			       unsigned int wbits)
{
	if (s->window && s->wbits != wbits)
		wf_deflate_inflate_end(s);
	s->wrap = (uint8_t)wrap;
	s->wbits = wbits;
	wf_deflate_inflate_reset(s);
}

void wf_deflate_inflate_init(struct wf_inflate *s,
			     struct wf_inflate_codes *codes,
			     struct wd_comp_mem mem, int wrap,
			     unsigned int wbits)
{
	/* Nothing is cleared that is set before it is used: in a small stream
	 * that would be seen. */
	s->mem = mem;
	s->codes = codes;
	s->window = NULL;
	s->fixed = false;
	s->check = 0;
	s->length = 0;
	s->was = 0;
	s->wrap = (uint8_t)wrap;
	s->wbits = wbits;
	wf_deflate_inflate_reset(s);
}

enum wf_inflate_ret wf_deflate_inflate_copy(struct wf_inflate *to,
					    struct wf_inflate_codes *codes,
					    const struct wf_inflate *from,
					    struct wd_comp_mem mem)
{
	size_t size = (1u << from->wbits) + WF_WINDOW_PAD;
	uint8_t *window = NULL;

	if (from->window) {
		window = mem.alloc(mem.opaque, size);
		if (!window)
			return WF_INFLATE_NO_MEMORY;
		memcpy(window, from->window, size - WF_WINDOW_PAD);
	}
	*to = *from;
	*codes = *from->codes;
	to->codes = codes;
	to->mem = mem;
	to->window = window;
	return WF_INFLATE_OK;
}

void wf_deflate_inflate_check(struct wf_inflate *s, struct wf_cursor *c)
{
	size_t len = (size_t)(c->out - c->checked);

	if (len && s->wrap & WF_INFLATE_CHECK)
		s->check =
			s->flags ?
				wf_deflate_crc32(s->check, c->checked, len) :
				wf_deflate_adler32(s->check, c->checked, len);
	c->checked = c->out;
}

void wf_deflate_inflate_show_check(struct wf_inflate *s, struct wf_cursor *c)
{
	wf_deflate_inflate_check(s, c);
	if (s->wrap & WF_INFLATE_CHECK && c->out != c->begin) {
		s->adler = s->check;
		s->adler_new = true;
	}
}

static enum wf_step begin_block(struct wf_inflate *s, struct wf_cursor *c)
{
	unsigned int type;

	if (s->last) {
		wf_cursor_align(c);
		s->mode = WF_INFLATE_SUM;
		return WF_STEP_ON;
	}
	if (!wf_cursor_need(c, 3))
		return WF_STEP_LEAVE;
	s->last = wf_cursor_peek(c, 1);
	type = wf_cursor_peek(c, 3) >> 1;
	wf_cursor_drop(c, 3);
	switch (type) {
	case 0:
		s->mode = WF_INFLATE_STORED;
		return WF_STEP_ON;
	case 1:
		s->fixed = true;
		s->mode = WF_INFLATE_CODE_NEW;
		return c->flush == WF_INFLATE_TREES ? WF_STEP_LEAVE :
						      WF_STEP_ON;
	case 2:
		s->fixed = false;
		s->mode = WF_INFLATE_TABLE;
		return WF_STEP_ON;
	default:
		return wf_inflate_fail(s, "invalid block type");
	}
}

static enum wf_step begin_stored(struct wf_inflate *s, struct wf_cursor *c)
{
	wf_cursor_align(c);
	if (!wf_cursor_need(c, 32))
		return WF_STEP_LEAVE;
	if ((c->hold & 0xffff) != (c->hold >> 16 ^ 0xffff))
		return wf_inflate_fail(s, "invalid stored block lengths");
	s->length = (unsigned int)(c->hold & 0xffff);
	wf_cursor_clear(c);
	s->mode = WF_INFLATE_COPY_NEW;
	return c->flush == WF_INFLATE_TREES ? WF_STEP_LEAVE : WF_STEP_ON;
}

static enum wf_step copy_stored(struct wf_inflate *s, struct wf_cursor *c)
{
	size_t in = (size_t)(c->in_end - c->in);
	size_t out = (size_t)(c->out_end - c->out);
	size_t len = s->length;

	s->mode = WF_INFLATE_COPY;
	if (!len) {
		s->mode = WF_INFLATE_TYPE;
		return WF_STEP_ON;
	}
	len = len < in ? len : in;
	len = len < out ? len : out;
	if (!len)
		return WF_STEP_LEAVE;
	memmove(c->out, c->in, len);
	c->in += len;
	c->out += len;
	s->length -= (unsigned int)len;
	return WF_STEP_ON;
}

static enum wf_step decode(struct wf_inflate *s, struct wf_cursor *c)
{
	s->mode = WF_INFLATE_CODE;
	if (c->bits < 8)
		wf_deflate_fast_run(s, c);
	return s->mode == WF_INFLATE_CODE ? wf_deflate_symbol_step(s, c) :
					    WF_STEP_ON;
}

void wf_deflate_inflate_modes(struct wf_inflate *s, struct wf_cursor *c)
{
	enum wf_step step = WF_STEP_ON;

	while (step == WF_STEP_ON) {
		switch (s->mode) {
		case WF_INFLATE_DICT:
			if (!s->has_dict)
				return;
			step = wf_deflate_head_step(s, c);
			break;
		case WF_INFLATE_TYPE:
			if (c->flush == WF_INFLATE_BLOCK ||
			    c->flush == WF_INFLATE_TREES)
				return;
			step = begin_block(s, c);
			break;
		case WF_INFLATE_TYPE_DO:
			step = begin_block(s, c);
			break;
		case WF_INFLATE_STORED:
			step = begin_stored(s, c);
			break;
		case WF_INFLATE_COPY_NEW:
		case WF_INFLATE_COPY:
			step = copy_stored(s, c);
			break;
		case WF_INFLATE_TABLE:
		case WF_INFLATE_PRE_LENS:
		case WF_INFLATE_LENS:
			step = wf_deflate_lens_step(s, c);
			break;
		case WF_INFLATE_CODE_NEW:
		case WF_INFLATE_CODE:
			step = decode(s, c);
			break;
		case WF_INFLATE_LENGTH_EXTRA:
		case WF_INFLATE_DISTANCE:
		case WF_INFLATE_DISTANCE_EXTRA:
		case WF_INFLATE_MATCH:
		case WF_INFLATE_LITERAL:
			step = wf_deflate_symbol_step(s, c);
			break;
		case WF_INFLATE_SUM:
		case WF_INFLATE_SIZE:
			step = wf_deflate_trailer_step(s, c);
			break;
		case WF_INFLATE_DONE:
		case WF_INFLATE_BAD:
			return;
		default:
			step = wf_deflate_head_step(s, c);
			break;
		}
	}
}

/* Whether zlib would bring its window up to date. */
static bool wants_window(const struct wf_inflate *s, const struct wf_cursor *c)
{
	if (s->wsize)
		return true;
	return c->out != c->begin && s->mode < WF_INFLATE_BAD &&
	       (s->mode < WF_INFLATE_SUM || c->flush != WF_INFLATE_FINISH);
}

static enum wf_inflate_ret finish(struct wf_inflate *s, struct wf_cursor *c,
				  bool read)
{
	bool progress = read || c->out != c->begin;

	if (s->mode == WF_INFLATE_DICT)
		return WF_INFLATE_NEED_DICT;
	if (wants_window(s, c) &&
	    wf_deflate_window_add(s, c->out, (size_t)(c->out - c->begin))) {
		s->mode = WF_INFLATE_LOST;
		return WF_INFLATE_NO_MEMORY;
	}
	wf_deflate_inflate_show_check(s, c);
	s->total += (uint64_t)(c->out - c->begin);
	s->counted = true;
	if (s->mode == WF_INFLATE_DONE)
		return WF_INFLATE_END;
	if (s->mode == WF_INFLATE_BAD)
		return WF_INFLATE_BAD_DATA;
	return progress && c->flush != WF_INFLATE_FINISH ?
		       WF_INFLATE_OK :
		       WF_INFLATE_NO_PROGRESS;
}

enum wf_inflate_ret wf_deflate_inflate_run(struct wf_inflate *s,
					   struct wf_inflate_io *io,
					   enum wf_inflate_flush flush)
{
	struct wf_cursor c = {
		.in = io->in,
		.in_end = wf_cursor_end(io->in, io->in_len),
		.out = io->out,
		.out_end = io->out + io->out_len,
		.begin = io->out,
		.checked = io->out,
		.hold = s->hold,
		.bits = s->bits,
		.reach = REACH,
		.flush = flush,
	};
	bool read;

	s->msg = NULL;
	s->adler_new = false;
	s->counted = false;
	if (s->mode == WF_INFLATE_LOST)
		return WF_INFLATE_NO_MEMORY;
	if (s->mode == WF_INFLATE_SYNC)
		return WF_INFLATE_BAD_CALL;
	c.in_place = (uintptr_t)c.in < (uintptr_t)c.out_end &&
		     (uintptr_t)c.out < (uintptr_t)c.in_end;
	if (s->mode == WF_INFLATE_TYPE)
		s->mode = WF_INFLATE_TYPE_DO;
	wf_deflate_inflate_modes(s, &c);
	s->hold = c.hold;
	s->bits = c.bits;
	read = c.in != io->in;
	io->in_len -= (size_t)(c.in - io->in);
	io->in = c.in;
	io->out_len -= (size_t)(c.out - io->out);
	io->out = c.out;
	return finish(s, &c, read);
}

int wf_deflate_inflate_data_type(const struct wf_inflate *s)
{
	return (int)s->bits + (s->last ? 64 : 0) +
	       (s->mode == WF_INFLATE_TYPE ? 128 : 0) +
	       (s->mode == WF_INFLATE_CODE_NEW ||
				s->mode == WF_INFLATE_COPY_NEW ?
			256 :
			0);
}
