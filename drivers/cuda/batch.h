/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs that go to the GPU together: one copy in, one kernel, copies out. A
 * batch has memory on both sides, of the same layout: inputs first, outputs
 * behind them. The engine (engine.c) calls all of this with its lock held and
 * its context current, unless it is said otherwise.
 *
 *	FREE -> OPEN (jobs are added) -> RUNNING (kernel) -> COPYING (results)
 *	-> DONE (channels take their jobs back) -> FREE
 */
#ifndef WF_CUDA_BATCH_H
#define WF_CUDA_BATCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weft/wd_comp_drv.h>

#include "cuda/piece_defs.h"
#include "cuda/program.h"

#define WF_BATCH_PIECES 4096u
#define WF_BATCH_DEFLATE 1024u /* their tokens have 64 MiB */

enum wf_batch_state {
	WF_BATCH_FREE,
	WF_BATCH_OPEN,
	WF_BATCH_RUNNING,
	WF_BATCH_COPYING,
	WF_BATCH_DONE,
};

/* Where bytes of a job are. */
enum wf_batch_place {
	WF_PLACE_PAGES,	 /* ordinary memory: it is copied */
	WF_PLACE_PINNED, /* the GPU copies it itself */
	WF_PLACE_DEVICE, /* the GPU's own */
};

struct wf_batch_job {
	struct wd_comp_job *job; /* NULL: nobody wants it any more */
	void *chan;
	enum wf_batch_place src, dst;
	uint32_t first, count; /* pieces */
	size_t in;   /* where the input is; the dictionary is before it */
	size_t out;  /* where the output is */
	size_t room; /* for it */
	bool taken;
	struct wf_batch *batch;
	struct wf_batch_job *next; /* of the same channel */
};

struct wf_batch {
	enum wf_batch_state state;
	bool inflate;
	bool closed;	       /* nothing is added any more */
	atomic_uint filling;   /* threads that copy inputs, without the lock */
	uint64_t begun, added; /* when the first and the last job came */
	size_t memory;	       /* on each side */
	uint8_t *host;	       /* pinned */
	wf_cu_ptr device;
	struct wf_piece *pieces; /* pinned */
	wf_cu_ptr device_pieces;
	wf_cu_ptr tokens; /* for deflate; 0 before the first use */
	void *stream;
	void *event;
	size_t in, out; /* bytes of both */
	unsigned int jobs_count, pieces_count;
	unsigned int left; /* jobs that are not taken back */
	struct wf_batch_job jobs[WF_BATCH_PIECES];
};

/* Memory, @memory bytes of it on each side, stream and event. 0 or -errno:
 * nothing is left then. */
int wf_cuda_batch_make(struct wf_batch *b, const struct wf_cu *cu,
		       size_t memory);
void wf_cuda_batch_free(struct wf_batch *b, const struct wf_cu *cu);

/* How many pieces, and how much memory a job needs; without the lock. */
void wf_cuda_batch_plan(struct wf_batch_job *j, const struct wd_comp_job *job);
/* False: it will not fit into any batch of that size, or not into this one. */
bool wf_cuda_batch_could(const struct wf_batch_job *j, size_t memory);
bool wf_cuda_batch_fits(const struct wf_batch *b, const struct wf_batch_job *j);
/* Adds it; the copy of what is in ordinary memory follows without the lock. */
struct wf_batch_job *wf_cuda_batch_add(struct wf_batch *b,
				       const struct wf_batch_job *j);
void wf_cuda_batch_fill(struct wf_batch *b, struct wf_batch_job *j);

/* Each begins the next state. 0, or what CUDA said. */
int wf_cuda_batch_launch(struct wf_batch *b, const struct wf_cu *cu,
			 const struct wf_cuda_program *program);
int wf_cuda_batch_copy(struct wf_batch *b, const struct wf_cu *cu);

/* Result and output of a job in a batch that is DONE; without the lock. */
void wf_cuda_batch_finish(struct wf_batch *b, struct wf_batch_job *j);

#endif
