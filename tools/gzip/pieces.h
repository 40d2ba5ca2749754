/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unpacks a file in pieces by a driver that takes many at once: the members of
 * a BGZF file, or what lies between the restart points that `weft gzip` leaves
 * in the header.
 */
#ifndef WF_TOOLS_GZIP_PIECES_H
#define WF_TOOLS_GZIP_PIECES_H

#include <stdbool.h>

#include "tools/gzip/gzip.h"

struct wf_gzip_pieces;

/* Without the name of a driver: whether the file has pieces and a device is to be
 * considered, so that cost decides. */
bool wf_tools_gzip_pieces_are_considered(const struct wf_gzip_io *io);

/* The pieces of io->map; NULL if it has none, or without memory. Without the name
 * of a driver only members of BGZF files are pieces. */
struct wf_gzip_pieces *wf_tools_gzip_pieces_find(const struct wf_gzip_io *io);
void wf_tools_gzip_pieces_free(struct wf_gzip_pieces *pieces);

/* Whether io->options->driver, or without a name the first, takes them. */
bool wf_tools_gzip_pieces_can(const struct wf_gzip_pieces *pieces,
			      const struct wf_gzip_io *io);

/* Unpacks all of them. @put: in order, one thread at a time. 0, -EBADMSG (a
 * piece is damaged, or the index is wrong), -ENODEV, -ENOMEM, or what @put
 * returned. */
int wf_tools_gzip_pieces_run(
	struct wf_gzip_pieces *pieces, struct wf_gzip_io *io,
	int (*put)(void *arg, const uint8_t *data, size_t len), void *arg);

#endif
