/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw deflate data from a function into a window and from there to another
 * function, as zlib's inflateBack(). The window is the caller's: output is
 * made in it and goes out when it is full, and is what matches refer to.
 */
#ifndef WF_DEFLATE_BACK_H
#define WF_DEFLATE_BACK_H

#include <stddef.h>
#include <stdint.h>

#include "deflate/inflate.h"

struct wf_back {
	/* More input, from where *from points on afterwards; 0: there is
	 * none. */
	unsigned int (*in)(void *in_arg, const uint8_t **from);
	void *in_arg;
	/* Takes output; not 0: it cannot. */
	int (*out)(void *out_arg, uint8_t *data, unsigned int len);
	void *out_arg;
};

/*
 * One stream; @s->window and @s->wbits define the window, which begins empty.
 * @io->in is used first; afterwards it is the unused input, or NULL if there
 * was too little. WF_INFLATE_END, WF_INFLATE_BAD_DATA or, if a function failed,
 * WF_INFLATE_NO_PROGRESS.
 */
enum wf_inflate_ret wf_deflate_back_run(struct wf_inflate *s,
					struct wf_inflate_io *io,
					const struct wf_back *back);

#endif
