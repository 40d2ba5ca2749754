/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decompresses in order what cannot be decompressed ahead: headers and trailers
 * of members, blocks too large for a piece, the end of the input and every
 * error. It works step by step, so that its caller can change over to pieces at
 * any border.
 */
#ifndef WF_ALG_SERIAL_H
#define WF_ALG_SERIAL_H

#include "deflate/chunk.h"
#include "deflate/inflate.h"

enum wf_serial_ret {
	WF_SERIAL_HEADER, /* read a header; s->at is behind it */
	WF_SERIAL_BORDER, /* s->at is the border between two blocks */
	WF_SERIAL_MEMBER, /* s->at is behind a trailer, which is s->trailer */
	WF_SERIAL_ROOM,	  /* no more room for output */
	WF_SERIAL_INPUT,  /* no more input now */
	WF_SERIAL_OVER,	  /* the input is over, or what follows is not ours */
	WF_SERIAL_FAILED, /* s->error says why */
};

struct wf_serial {
	int alg;
	bool members;
	enum { WF_SERIAL_IN_HEAD, WF_SERIAL_IN_DATA, WF_SERIAL_IN_TAIL } phase;
	bool begun; /* has its stream */
	bool first; /* no member has been read */
	uint64_t pos;
	struct wf_border at;
	uint8_t trailer[8];
	int error;
	const char *why; /* -EBADMSG: zlib's words for it */
	bool garbage;
	struct wf_inflate_head head;
	uint8_t *extra; /* of the first header; 65535 bytes */
	struct wf_inflate stream;
	struct wf_inflate_codes codes;
};

/* At the very begin. -ENOMEM. */
int wf_alg_serial_init(struct wf_serial *s, int alg, bool members);
void wf_alg_serial_exit(struct wf_serial *s);
/* Goes on at a border, behind the last @have bytes of @window. */
void wf_alg_serial_begin(struct wf_serial *s, struct wf_border at,
			 const uint8_t *in, const uint8_t *window, size_t have);
/* Returns what a piece that begins at s->at needs. */
size_t wf_alg_serial_window(const struct wf_serial *s,
			    uint8_t window[WF_CHUNK_WINDOW]);

/*
 * One step. @in: where byte 0 of the input would be; the bytes that are there
 * go from s->pos to @end, and @eof if no more will come. *made bytes are at
 * @out.
 */
enum wf_serial_ret wf_alg_serial_step(struct wf_serial *s, const uint8_t *in,
				      uint64_t end, bool eof, uint8_t *out,
				      size_t room, size_t *made);

#endif
