/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window: the last output of the calls before this one, which is all that
 * is known about it. A circular buffer, made when it is first needed.
 */
#include "deflate/cursor.h"

#include <errno.h>
#include <string.h>

int wf_deflate_window_add(struct wf_inflate *s, const uint8_t *end, size_t len)
{
	unsigned int first;

	if (!s->window) {
		s->window = s->mem.alloc(s->mem.opaque,
					 (1u << s->wbits) + WF_WINDOW_PAD);
		if (!s->window)
			return -ENOMEM;
	}
	if (!s->wsize) {
		s->wsize = 1u << s->wbits;
		s->wnext = 0;
		s->whave = 0;
	}
	if (len >= s->wsize) {
		memcpy(s->window, end - s->wsize, s->wsize);
		s->wnext = 0;
		s->whave = s->wsize;
		return 0;
	}
	if (!len)
		return 0;
	first = s->wsize - s->wnext;
	if (first > len)
		first = (unsigned int)len;
	memcpy(s->window + s->wnext, end - len, first);
	s->wnext += first;
	len -= first;
	if (len) {
		memcpy(s->window, end - len, len);
		s->wnext = (unsigned int)len;
		s->whave = s->wsize;
		return 0;
	}
	if (s->wnext == s->wsize)
		s->wnext = 0;
	if (s->whave < s->wsize)
		s->whave += first;
	return 0;
}

static void copy_back(struct wf_cursor *c, unsigned int distance,
		      unsigned int len)
{
	const uint8_t *from = c->out - distance;
	uint8_t *to = c->out, *end = c->out + len;

	c->out = end;
	if (distance >= 8) {
		while (end - to >= 8) {
			memcpy(to, from, 8);
			to += 8;
			from += 8;
		}
	}
	while (to < end)
		*to++ = *from++;
}

void wf_deflate_window_match(const struct wf_inflate *s, struct wf_cursor *c,
			     unsigned int distance, unsigned int len)
{
	size_t made = (size_t)(c->out - c->begin);

	while (distance > made && len) {
		unsigned int back = distance - (unsigned int)made, at, n;

		/* From the window, up to its end or to where we began. */
		if (back > s->wnext) {
			at = s->wsize - (back - s->wnext);
			n = back - s->wnext;
		} else {
			at = s->wnext - back;
			n = back;
		}
		n = n < len ? n : len;
		/* In inflateBack() the window is what we write to. */
		memmove(c->out, s->window + at, n);
		c->out += n;
		made += n;
		len -= n;
	}
	if (len)
		copy_back(c, distance, len);
}
