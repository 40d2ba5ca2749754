/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header holds where a call of inflate is in its input and output, and the
 * bits that it has taken and not used. The parts of inflate pass it on to each
 * other; at most the bits outlive the call.
 */
#ifndef WF_DEFLATE_CURSOR_H
#define WF_DEFLATE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deflate/inflate.h"

struct wf_cursor {
	const uint8_t *in;
	const uint8_t *in_end;
	uint8_t *out;
	uint8_t *out_end;
	uint8_t *begin;	  /* of this call's output: what is before, is not ours
			   * to read; it may be in the window */
	uint8_t *checked; /* the checksum has all output before */
	uint64_t hold;
	unsigned int bits;  /* in hold; those above are 0 */
	unsigned int reach; /* no distance into the window may be larger */
	bool in_place;	    /* output may overwrite input */
	enum wf_inflate_flush flush;
};

/* The end of @len bytes; there may be none, at NULL. */
static inline const uint8_t *wf_cursor_end(const uint8_t *begin, size_t len)
{
	return len ? begin + len : begin;
}

/* The result of a step for the loop that calls it. */
enum wf_step {
	WF_STEP_ON,    /* mode says what comes next */
	WF_STEP_LEAVE, /* no input, no room, or told to stop here */
};

/* Takes bytes one at a time until there are @count bits (at most 32); false
 * where the input ends: the bits that there were are taken then, as zlib
 * does. */
static inline bool wf_cursor_need(struct wf_cursor *c, unsigned int count)
{
	while (c->bits < count) {
		if (c->in == c->in_end)
			return false;
		c->hold |= (uint64_t)*c->in++ << c->bits;
		c->bits += 8;
	}
	return true;
}

static inline unsigned int wf_cursor_peek(const struct wf_cursor *c,
					  unsigned int count)
{
	return (unsigned int)(c->hold & ((1u << count) - 1));
}

static inline void wf_cursor_drop(struct wf_cursor *c, unsigned int count)
{
	c->hold >>= count;
	c->bits -= count;
}

static inline void wf_cursor_clear(struct wf_cursor *c)
{
	c->hold = 0;
	c->bits = 0;
}

/* To the next byte of the input. */
static inline void wf_cursor_align(struct wf_cursor *c)
{
	wf_cursor_drop(c, c->bits & 7);
}

static inline enum wf_step wf_inflate_fail(struct wf_inflate *s,
					   const char *msg)
{
	s->msg = msg;
	s->mode = WF_INFLATE_BAD;
	return WF_STEP_ON;
}

/* Goes through the modes until a part has to leave, or the stream is over or
 * bad. */
void wf_deflate_inflate_modes(struct wf_inflate *s, struct wf_cursor *c);

/* The parts of inflate, each for some modes. */
enum wf_step wf_deflate_head_step(struct wf_inflate *s, struct wf_cursor *c);
enum wf_step wf_deflate_trailer_step(struct wf_inflate *s, struct wf_cursor *c);
enum wf_step wf_deflate_lens_step(struct wf_inflate *s, struct wf_cursor *c);
enum wf_step wf_deflate_symbol_step(struct wf_inflate *s, struct wf_cursor *c);

/* Whole symbols while there are input and room, with no regard to what zlib
 * would do at their end: stops before the first one that is not all there, has
 * no room or is bad, or behind the end of the block. The bits must be less
 * than 8, and are so afterwards. */
void wf_deflate_fast_run(struct wf_inflate *s, struct wf_cursor *c);

/* Takes all output of the call that it has not yet into the checksum. */
void wf_deflate_inflate_check(struct wf_inflate *s, struct wf_cursor *c);
/* The same, and reports it to the caller, as zlib does at the end of a call or
 * stream. */
void wf_deflate_inflate_show_check(struct wf_inflate *s, struct wf_cursor *c);

/* The window: 0 or -ENOMEM. */
int wf_deflate_window_add(struct wf_inflate *s, const uint8_t *end, size_t len);
/* Whether so far back there is output, or something in the window. */
static inline bool wf_deflate_window_has(const struct wf_inflate *s,
					 const struct wf_cursor *c,
					 unsigned int distance)
{
	size_t made = (size_t)(c->out - c->begin);

	return distance <= made ||
	       (distance <= made + s->whave && distance <= c->reach);
}

/* Writes @len bytes from @distance bytes before c->out; the caller has checked
 * that they exist and that there is room. */
void wf_deflate_window_match(const struct wf_inflate *s, struct wf_cursor *c,
			     unsigned int distance, unsigned int len);

/* Bytes that may be read behind the window. */
#define WF_WINDOW_PAD 32

#endif
