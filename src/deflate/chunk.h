/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decompresses a piece of a stream from one block border to another, into
 * memory that it has for itself. Of what came before the piece it needs
 * nothing: where that is not known, output is 16 bits wide and a copy from
 * before the piece is a marker, 0x8000 + its place in the unknown window. As
 * soon as nothing within reach is a marker, or the window is handed in, output
 * goes on in bytes. wf_deflate_chunk_resolve() puts bytes in place of markers.
 *
 * A piece that meets anything unusual ends at the last border before it: what
 * it says is then still true, and the thread that decompresses in order goes on
 * there.
 */
#ifndef WF_DEFLATE_CHUNK_H
#define WF_DEFLATE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_CHUNK_WINDOW 32768u

/* A place between two blocks, or between two members of a gzip file. */
struct wf_border {
	uint64_t bit;
	bool member; /* the header of a member comes here */
};

/* The end of a member within a chunk. */
struct wf_chunk_end {
	size_t at;	    /* in the output of the chunk */
	uint8_t trailer[8]; /* as many of these as the format has */
};

enum wf_chunk_why {
	WF_CHUNK_STOP,	/* at the border that was asked for */
	WF_CHUNK_BEGIN, /* there is no block at the begin */
	WF_CHUNK_FULL,	/* no room for the next block */
	WF_CHUNK_SHORT, /* no input for the next block */
	WF_CHUNK_BAD,	/* the next block is not deflate data */
	WF_CHUNK_AFTER, /* behind a member: its header is for someone else */
	WF_CHUNK_AWAY,	/* ask() said so */
};

enum wf_chunk_answer {
	WF_CHUNK_GO_ON,
	WF_CHUNK_HAVE, /* the window before the chunk is in *window */
	WF_CHUNK_LEAVE,
};

struct wf_chunk {
	/* The caller's, before wf_deflate_chunk_begin(). */
	uint8_t *room; /* aligned as malloc() does it */
	size_t size;   /* WF_CHUNK_ROOM_LEAST or more */
	const uint8_t *in;
	size_t len;	/* all that may be read */
	uint64_t stop;	/* ends at the first border from this bit on, if ... */
	bool exact;	/* any border will do, else one that can be found */
	bool members;	/* gzip: members may follow each other */
	size_t trailer; /* bytes behind the last block */
	/* Asked between blocks while markers are made. */
	enum wf_chunk_answer (*ask)(void *arg, const uint8_t **window);
	void *arg;

	/* Results. */
	struct wf_border begin;
	struct wf_border border; /* where it ended */
	size_t wide;		 /* elements of 16 bits */
	size_t narrow;		 /* bytes behind them */
	uint8_t *narrow_at;
	struct wf_chunk_end *ends; /* free() it */
	size_t ends_count;

	/* For the functions of chunk.c alone. */
	size_t ends_room;
	uint8_t *out;
	uint8_t *low; /* the window begins here */
	bool is_wide;
	uint8_t pad[96]; /* the end of the input, with something behind it */
	struct wf_chunk_tables *tables;
};

#define WF_CHUNK_ROOM_LEAST (512u << 10)

/* Without them nothing can be decoded. -ENOMEM. */
int wf_deflate_chunk_init(struct wf_chunk *chunk);
void wf_deflate_chunk_exit(struct wf_chunk *chunk);

/* Begins at @begin. @window: the @have bytes before it, NULL: not known. */
void wf_deflate_chunk_begin(struct wf_chunk *chunk, struct wf_border begin,
			    const uint8_t *window, size_t have);
enum wf_chunk_why wf_deflate_chunk_run(struct wf_chunk *chunk);

/* A member ends where the output is. False without memory. */
bool wf_deflate_chunk_end(struct wf_chunk *chunk, const uint8_t *trailer);

/* The output's size. */
static inline size_t wf_chunk_total(const struct wf_chunk *chunk)
{
	return chunk->wide + chunk->narrow;
}

/* The @have bytes at the end of @window come before the chunk; they become the
 * end of chunk and window together. False if a marker is before them. */
bool wf_deflate_chunk_window(const struct wf_chunk *chunk,
			     uint8_t window[WF_CHUNK_WINDOW], size_t *have);

/*
 * Puts bytes in place of @count 16-bit elements from @from on, where they are:
 * @from, and all before it, must have been resolved. @table has 65536 places:
 * wf_deflate_chunk_table() fills in those that are used.
 */
const uint8_t *wf_deflate_chunk_resolve(struct wf_chunk *chunk, size_t from,
					size_t count, const uint8_t *table);
void wf_deflate_chunk_table(uint8_t *table,
			    const uint8_t window[WF_CHUNK_WINDOW]);

#endif
