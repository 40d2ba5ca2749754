/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the parallel decompression: the pieces in progress,
 * and the place up to which everything is settled. One lock guards all of it
 * except what belongs to the thread that works on a piece.
 */
#ifndef WF_ALG_ENGINE_H
#define WF_ALG_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "alg/serial.h"
#include "alg/source.h"
#include "alg/unpack.h"

enum wf_piece_state {
	WF_PIECE_FREE,
	WF_PIECE_BUSY,	    /* a thread decompresses it */
	WF_PIECE_DONE,	    /* waits for its turn to be taken over */
	WF_PIECE_TAKEN,	    /* its window and place are known */
	WF_PIECE_FINISHING, /* a thread resolves, checks, writes it */
	WF_PIECE_FINISHED,  /* waits for its turn to be put, or counted */
};

/* A part of the input. */
struct wf_range {
	uint64_t from, to; /* bits; to: where the next one begins */
	bool exact;	   /* an index or a member says: it begins at ->begin */
	struct wf_border begin;
	const uint8_t *hint; /* the window that came with it; may be NULL */
	size_t hint_have;
};

struct wf_piece {
	struct wf_chunk chunk;
	size_t room; /* memory of the chunk */
	enum wf_piece_state state;
	uint64_t number; /* of the range */
	struct wf_range range;
	uint64_t reads_from; /* byte of input, until it is done */
	enum wf_chunk_why why;
	bool found; /* a place to begin was found */
	/* What precedes it. Set when it is known, perhaps while a thread
	 * decompresses the piece; ->known after the other three (release). */
	atomic_bool known;
	struct wf_border known_at;
	size_t have;
	uint8_t window[WF_CHUNK_WINDOW];
	atomic_bool unwanted;
	/* Set when it is taken over: */
	uint64_t turn;
	uint64_t out;	  /* where its output goes */
	uint32_t *checks; /* of each member that ends in it, and of the rest */
	size_t checks_room;
	int error; /* that follows its output */
};

struct wf_engine {
	struct wf_unpack *u;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct wf_source source;
	bool reading;
	size_t chunk; /* bytes of input in a range */
	size_t chunk_most;
	unsigned int threads;
	struct wf_piece *pieces;
	unsigned int count;
	unsigned int unused;
	uint8_t *memory; /* of all pieces */
	size_t memory_size;
	size_t room; /* bytes of it for each piece */

	/* Ranges of input: those from ->head on that threads have taken. */
	struct wf_range *ranges; /* range n is at n % ranges_count */
	unsigned int ranges_count;
	uint64_t cut;	     /* the next one begins here */
	uint64_t numbers;    /* of ranges so far */
	uint64_t head;	     /* the one that ->at is in */
	size_t point;	     /* the next one of u->points */
	bool bgzf;	     /* members contain their length */
	unsigned int misses; /* pieces in a row that were of no use */

	/* The place up to which everything is decompressed: */
	struct wf_border at;
	uint8_t window[WF_CHUNK_WINDOW];
	size_t have;
	uint64_t out;
	uint64_t turns;	   /* of pieces that were taken over */
	bool over;	   /* nothing follows */
	bool in_order;	   /* never by pieces */
	bool stuck;	   /* no piece can go on from here: in order */
	bool serial_begun; /* ->serial says where we are, ->at does not */
	bool serial_busy;
	bool starving; /* ->serial waits for input */
	struct wf_serial serial;

	/* This is what was given to the caller: */
	uint64_t put; /* turns */
	bool putting;
	uint32_t check; /* of the member so far */
	uint64_t length;
	bool unchecked; /* the begin of the member was not seen */
	int failed;
	const char *why; /* -EBADMSG: what is wrong */
};

/* Adds the next range of input; false if that has not been read yet. */
bool wf_alg_engine_range_locked(struct wf_engine *e);
/* Decompresses a piece, before its turn or from where it is known to begin. */
void wf_alg_engine_ahead(struct wf_piece *p);
/* Resolves and checks what is taken over; puts it where u->put_at is set. */
int wf_alg_engine_finish(struct wf_engine *e, struct wf_piece *p,
			 uint8_t *table);
/* Checks the members that end in a piece; called in order. *@good gets how many
 * bytes are right. 0 or -EBADMSG. */
int wf_alg_engine_verify(struct wf_engine *e, struct wf_piece *p, size_t *good);
/* Calls u->piece; called in order. */
int wf_alg_engine_tell(struct wf_engine *e, const struct wf_piece *p);
/* Gives all of a piece, or @len bytes, to the caller; called in order. */
int wf_alg_engine_put(struct wf_engine *e, struct wf_piece *p, size_t len);

#endif
