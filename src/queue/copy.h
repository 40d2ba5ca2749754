/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The copy of one staged 64-byte descriptor into a ring that may be
 * write-combined device memory. Chosen once per processor. Each copy loads
 * everything first and then stores without anything in between, in the fewest
 * stores the processor has, and never reads from the ring. Orders nothing: the
 * fence belongs to the doorbell (sub.h).
 */
#ifndef WF_QUEUE_COPY_H
#define WF_QUEUE_COPY_H

#define WF_QUEUE_DESC_SIZE 64

enum wf_queue_copy_kind {
	WF_QUEUE_COPY_PLAIN,  /* eight 64-bit stores, any processor */
	WF_QUEUE_COPY_SSE,    /* four of 128 bits */
	WF_QUEUE_COPY_AVX,    /* two of 256 bits */
	WF_QUEUE_COPY_AVX512, /* one of 512 bits */
	WF_QUEUE_COPY_NEON,   /* two pairs of 128 bits */
	WF_QUEUE_COPY_KINDS,
};

/* @dst is aligned to 64 bytes, @src to 64 as well. */
typedef void (*wf_queue_copy_fn)(void *dst, const void *src);

/* NULL where this processor (or its operating system) cannot. */
wf_queue_copy_fn wf_queue_copy_get(enum wf_queue_copy_kind kind);
const char *wf_queue_copy_name(enum wf_queue_copy_kind kind);

/* The one with the fewest stores. */
wf_queue_copy_fn wf_queue_copy_best(void);

#endif
