/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input of a parallel decompression: all of it in memory, or a window onto
 * data that is read piece by piece. The window is a ring that is mapped twice,
 * one behind the other, so that any part of it is contiguous. It has no lock:
 * one thread reads, and the owner guards the bounds that others use.
 */
#ifndef WF_ALG_SOURCE_H
#define WF_ALG_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_source {
	const uint8_t *memory; /* all of it, or NULL */
	uint8_t *ring;
	size_t size;	/* of the ring */
	uint64_t begin; /* bytes before this are gone */
	uint64_t end;	/* bytes before this are there */
	bool eof;	/* and there are no more */
};

/* An input that is in memory as a whole. */
void wf_alg_source_memory(struct wf_source *s, const uint8_t *in, size_t len);
/* An input that is read piece by piece into a ring of at least @size bytes. 0 or
 * -errno. */
int wf_alg_source_ring(struct wf_source *s, size_t size);
void wf_alg_source_end(struct wf_source *s);

/* Where byte 0 would be, if the bytes from @from on, up to s->end, are all
 * that is looked at. */
const uint8_t *wf_alg_source_at(const struct wf_source *s, uint64_t from);
/* Where to read to, and how much at most. Bytes from @from on are kept. */
uint8_t *wf_alg_source_room(const struct wf_source *s, uint64_t from,
			    size_t *room);

#endif
