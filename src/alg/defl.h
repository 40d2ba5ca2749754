/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream that is compressed, with input and output divided anywhere. If the
 * best driver only takes whole pieces, input is gathered into chunks. If small
 * flushes make chunks inefficient, the stream changes to a driver that streams,
 * at the end of a piece, with the last 32 KiB as its dictionary.
 */
#ifndef WF_ALG_DEFL_H
#define WF_ALG_DEFL_H

#include <stdbool.h>

#include "alg/registry.h"
#include "alg/wrap.h"

/* With less than this since the last flush (SYNC or PARTIAL; FULL or BLOCK,
 * after which there is less to look back at) streaming beats pieces. */
#define WF_ALG_DEFL_FLUSH_WORTH (64u << 10)
#define WF_ALG_DEFL_FLUSH_SMALL 4096u

struct wf_alg_defl {
	struct wd_comp_mem mem;
	int alg;
	int level;
	int window;
	int tight;
	bool sparing; /* as little memory as zlib */
	int node;
	const char *name;
	struct wd_chan *ch; /* of the application, for pieces; or NULL */

	struct wf_alg_slot *slot; /* the driver that streams; NULL: we chunk */
	void *stream;
	const char *used;
	bool decided;
	bool full; /* its last step filled all the room it had */

	uint8_t *buf; /* history, then the chunk being gathered */
	size_t history;
	size_t fill;
	uint8_t *pend; /* output that did not fit */
	size_t pend_room;
	size_t pend_at;
	size_t pend_len;
	uint8_t edge[WF_WRAP_MAX + 6]; /* header, trailer, marker */
	size_t edge_at;
	size_t edge_len;

	bool begun;    /* the header is written */
	bool dirty;    /* there is output since the last flush asked for */
	bool flushed;  /* the driver has taken and flushed all input */
	bool finished; /* the final block is written */
	bool ended;    /* and so is the trailer */
	uint32_t check;
	uint64_t total_in;
	uint64_t
		copied; /* bytes of input and output, since somebody cleared it */
};

struct wf_alg_io {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
};

/* Default visibility: programs have a copy of such data. */
extern const struct wd_comp_mem wf_alg_std_mem
	__attribute__((visibility("default")));

/* The fields up to ch are the caller's to set before. Allocates nothing. */
void wf_alg_defl_begin(struct wf_alg_defl *d);
/* Advances io. An enum wd_comp_status, or -errno. */
int wf_alg_defl_run(struct wf_alg_defl *d, struct wf_alg_io *io, int flush);
/* From the next input on. Run with SYNC_FLUSH before, until MORE_IN. */
void wf_alg_defl_set_level(struct wf_alg_defl *d, int level);
/* Back to the beginning, with the memory it has. */
void wf_alg_defl_reset(struct wf_alg_defl *d);
/* @to is overwritten and gets memory of its own, from @mem. */
int wf_alg_defl_copy(struct wf_alg_defl *to, const struct wf_alg_defl *d,
		     const struct wd_comp_mem *mem);
void wf_alg_defl_end(struct wf_alg_defl *d);
/* The last bytes of input, 32 KiB at most; returns how many. @out may be NULL. */
size_t wf_alg_defl_history(const struct wf_alg_defl *d, uint8_t *out);
/* As if these had been the last bytes of input; after a flush, or while
 * chunking. -EBUSY otherwise. */
int wf_alg_defl_set_history(struct wf_alg_defl *d, const uint8_t *dict,
			    size_t len);
/* Bytes of output that wait for room. */
size_t wf_alg_defl_pending(const struct wf_alg_defl *d);

#endif
