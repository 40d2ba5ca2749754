/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream that the driver of WD_COMP_DRIVER decompresses ahead of its caller.
 * The driver needs the whole stream, so it is asked at the first data, if that
 * contains the end of the stream. The plain data that the caller has no room for
 * is kept, and so is the raw data it came from: if the caller asks for what only
 * a decoder knows (a position in bits, borders of blocks), the raw data is
 * decoded again up to where the caller is, and the stream goes on as one that
 * weft decompresses itself. Everything that a driver does not do, streams that
 * are damaged or that arrive in parts included, is weft's own work.
 */
#ifndef WF_ZSHIM_AHEAD_H
#define WF_ZSHIM_AHEAD_H

#include <stdbool.h>

#include "deflate/inflate.h"

struct wf_zshim_ahead {
	bool asked;	/* the driver, for this stream */
	bool served;	/* and it has done the stream */
	bool giving;	/* its result is not all given */
	uint8_t *plain; /* NULL: it is the caller's output */
	size_t len, given;
	uint8_t *raw;
	size_t raw_len, taken;
	uint32_t check; /* before the first byte of output */
	/* After wf_zshim_ahead_retreat(): bytes of ->raw that the caller has
	 * given and the decoder has not read; or bytes that the decoder has read
	 * and the caller has not given. */
	size_t held, held_end;
	size_t debt;
};

/* Whether a driver is named. Loads no driver. */
bool wf_zshim_ahead_is_wanted(void);

/* As wf_deflate_inflate_run(). */
enum wf_inflate_ret wf_zshim_ahead_run(struct wf_zshim_ahead *a,
				       struct wf_inflate *s,
				       struct wf_inflate_io *io,
				       enum wf_inflate_flush flush);

/* Makes @s a stream whose state is that of its decoder. */
void wf_zshim_ahead_retreat(struct wf_zshim_ahead *a, struct wf_inflate *s);

/* As wf_deflate_inflate_sync(). */
enum wf_inflate_ret wf_zshim_ahead_sync(struct wf_zshim_ahead *a,
					struct wf_inflate *s,
					struct wf_inflate_io *io);

/* Before a new stream. Frees all but @a itself. */
void wf_zshim_ahead_reset(struct wf_zshim_ahead *a);

/* After a retreat of @from; @to is reset. False without memory. */
bool wf_zshim_ahead_copy(struct wf_zshim_ahead *to,
			 const struct wf_zshim_ahead *from);

#endif
