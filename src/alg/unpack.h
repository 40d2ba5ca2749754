/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decompresses a stream, or a file of gzip members, on several threads. Pieces
 * are decompressed ahead of their turn (deflate/chunk.h) and taken over in
 * order if they begin exactly where the data before them ends; whatever does
 * not fit is decompressed in order. So the output, and the error with the
 * output before it, are those of one thread.
 */
#ifndef WF_ALG_UNPACK_H
#define WF_ALG_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "deflate/chunk.h"

/* A place from which decompression may begin. */
struct wf_unpack_point {
	struct wf_border at;
	uint64_t out;	       /* output before it */
	const uint8_t *window; /* the last @have bytes of that output */
	size_t have;
};

struct wf_unpack {
	/* The caller's. */
	int alg;      /* enum wd_comp_alg */
	bool members; /* gzip: all members of a file, else one stream */
	unsigned int threads;
	size_t chunk; /* bytes of input in a piece; 0: as it fits */
	/* The input: @in_len bytes at @in, or, if that is NULL, what read()
	 * says: bytes, 0 at the end, -errno. One thread at a time. */
	const uint8_t *in;
	size_t in_len;
	ssize_t (*read)(void *arg, uint8_t *buf, size_t len);
	/* May be NULL. No more input is wanted: a read() that waits for some
	 * should return. Any thread. */
	void (*stop)(void *arg);
	/* The output. If put_at is set, any thread at any time, every byte
	 * once; else put, in order and one thread at a time. 0 or -errno. */
	int (*put_at)(void *arg, uint64_t at, const uint8_t *data, size_t len);
	int (*put)(void *arg, const uint8_t *data, size_t len);
	/* May be NULL. In order, when a piece of output is settled: where it
	 * begins (->window is NULL if nobody could begin there), its CRC-32 (of
	 * zlib's format: Adler-32) and length. 0 or -errno. */
	int (*piece)(void *arg, const struct wf_unpack_point *begin,
		     uint32_t check, size_t len);
	void *arg;
	/* May be NULL: the begins of pieces, in order; a wrong one costs time
	 * only. The windows are compared. Becomes NULL where two are too far
	 * from each other for what is kept of input that is read. */
	const struct wf_unpack_point *points;
	size_t points_count;
	/* May be NULL: begin here, not with a header. The check of the member
	 * that this is in is then not compared. */
	const struct wf_unpack_point *start;
	/* May be NULL: the extra field of the first header. Called before
	 * anything else; may set the points. */
	void (*header)(void *arg, struct wf_unpack *u, const uint8_t *extra,
		       size_t len, uint64_t end);

	/* Results. */
	uint64_t total_in;
	uint64_t total_out;  /* what was put, and is right */
	uint32_t check;	     /* of the last member */
	uint32_t mtime;	     /* of the first header */
	const char *why;     /* after -EBADMSG: what is wrong, as zlib says */
	bool garbage;	     /* something that is no member came after */
	unsigned int ahead;  /* pieces that were decompressed ahead */
	unsigned int missed; /* ... and had to be thrown away */
};

/*
 * 0, -EBADMSG (the data is damaged), -ENODATA (it ends too early), -EINVAL
 * (its begin is no such format), -ENOMEM, or what a callback returned.
 */
int wf_alg_unpack_run(struct wf_unpack *u);

#endif
