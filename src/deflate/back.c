/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inflateBack(): the parts of inflate on a window that is its output as well.
 * Ahead of the output lies older output, so nothing may be written there.
 */
#include "deflate/back.h"

#include <stdbool.h>

#include "deflate/cursor.h"

/* Whether it was room that there was none of. */
static bool wants_room(const struct wf_inflate *s, const struct wf_cursor *c)
{
	return s->mode == WF_INFLATE_LITERAL || s->mode == WF_INFLATE_MATCH ||
	       (s->mode == WF_INFLATE_COPY && c->in < c->in_end);
}

static bool get_input(struct wf_cursor *c, const struct wf_back *back)
{
	unsigned int len;

	c->in = NULL;
	len = back->in(back->in_arg, &c->in);
	if (!len)
		c->in = NULL;
	c->in_end = wf_cursor_end(c->in, len);
	return len;
}

static bool get_room(struct wf_inflate *s, struct wf_cursor *c,
		     const struct wf_back *back)
{
	c->out = s->window;
	c->checked = s->window;
	s->whave = s->wsize;
	/* From now on there is older output ahead. */
	c->in_place = true;
	return !back->out(back->out_arg, s->window, s->wsize);
}

enum wf_inflate_ret wf_deflate_back_run(struct wf_inflate *s,
					struct wf_inflate_io *io,
					const struct wf_back *back)
{
	enum wf_inflate_ret ret = WF_INFLATE_OK;
	struct wf_cursor c = {
		.in = io->in,
		.in_end = wf_cursor_end(io->in, io->in_len),
		.out = s->window,
		.out_end = s->window + (1u << s->wbits),
		.begin = s->window,
		.checked = s->window,
		.reach = 1u << s->wbits,
		.flush = WF_INFLATE_GO,
	};

	s->msg = NULL;
	s->wsize = 1u << s->wbits;
	s->whave = 0;
	s->wnext = 0;
	s->wrap = WF_INFLATE_RAW;
	s->last = false;
	s->mode = WF_INFLATE_TYPE;
	while (ret == WF_INFLATE_OK) {
		wf_deflate_inflate_modes(s, &c);
		if (s->mode == WF_INFLATE_DONE)
			ret = WF_INFLATE_END;
		else if (s->mode == WF_INFLATE_BAD)
			ret = WF_INFLATE_BAD_DATA;
		else if (!(wants_room(s, &c) ? get_room(s, &c, back) :
					       get_input(&c, back)))
			ret = WF_INFLATE_NO_PROGRESS;
	}
	if (c.out != s->window &&
	    back->out(back->out_arg, s->window,
		      (unsigned int)(c.out - s->window)) &&
	    ret == WF_INFLATE_END)
		ret = WF_INFLATE_NO_PROGRESS;
	io->in = c.in;
	io->in_len = (size_t)(c.in_end - c.in);
	return ret;
}
