/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream being decompressed: header, data, trailer, cut anywhere. It reads
 * nothing beyond the end of its stream.
 */
#ifndef WF_ALG_INFL_H
#define WF_ALG_INFL_H

#include <stdbool.h>

#include "alg/defl.h"
#include "alg/registry.h"
#include "deflate/inflate.h"

struct wf_alg_infl {
	struct wd_comp_mem mem;
	int alg;
	int window;
	int node;
	const char *name;

	struct wf_alg_slot *slot;
	void *stream;
	const char *used;
	struct wf_inflate header; /* reads it */
	bool headed;		  /* the header is over */
	bool finished;		  /* the final block is over */
	bool ended;		  /* and so is the trailer */
	int failed;		  /* an error is for good */
	uint8_t trailer[8];
	size_t trailer_len;
	uint32_t check;
	uint64_t total_out;
};

/* The fields up to name are the caller's to set before. Allocates nothing. */
void wf_alg_infl_begin(struct wf_alg_infl *s);
/* Advances io. An enum wd_comp_status, or -errno. */
int wf_alg_infl_run(struct wf_alg_infl *s, struct wf_alg_io *io);
void wf_alg_infl_end(struct wf_alg_infl *s);

#endif
