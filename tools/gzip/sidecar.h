/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An index beside a gzip file, FILE.wfi: places from which it can be
 * decompressed, each with the 32 KiB before it, packed, and the checksum of the
 * plain data up to the next. It is a hint: windows and checksums are compared.
 * Little endian:
 *
 *	 0	"WFINDEX1"
 *	 8	size of the gzip file
 *	16	the last 8 bytes of it
 *	24	size of the plain data
 *	32	how many places (32 bits)
 *	36	CRC-32 of all that follows
 *	40	places: bit in the gzip file, | 1 << 63 at a member's header;
 *		plain data before it (64 bits each); CRC-32 of the plain data
 *		up to the next; size of the window; size of that when packed
 *		(32 bits each); the packed window
 */
#ifndef WF_TOOLS_GZIP_SIDECAR_H
#define WF_TOOLS_GZIP_SIDECAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alg/unpack.h"

#define WF_GZIP_SIDECAR_SUFFIX ".wfi"

struct wf_gzip_sidecar;

/* To make one: NULL without memory. */
struct wf_gzip_sidecar *wf_tools_gzip_sidecar_new(void);
/* The next piece of output, as alg/unpack.h reports it. 0 or -ENOMEM. */
int wf_tools_gzip_sidecar_add(struct wf_gzip_sidecar *b,
			      const struct wf_unpack_point *begin,
			      uint32_t check, size_t len);
/* Writes it next to @name, whose content is @map. -errno; *count places. */
int wf_tools_gzip_sidecar_write(const struct wf_gzip_sidecar *b,
				const char *name, const uint8_t *map,
				size_t size, unsigned int *count);

/* Reads the index next to @name; NULL if there is none, or (*wrong is not NULL
 * then) if it cannot be used. */
struct wf_gzip_sidecar *wf_tools_gzip_sidecar_read(const char *name,
						   const uint8_t *map,
						   size_t size,
						   const char **wrong);
/* All places. */
const struct wf_unpack_point *
wf_tools_gzip_sidecar_points(const struct wf_gzip_sidecar *b, size_t *count);
/* The last place before @from and those after it; false if there is none. */
bool wf_tools_gzip_sidecar_find(const struct wf_gzip_sidecar *b, uint64_t from,
				struct wf_unpack_point *start,
				const struct wf_unpack_point **points,
				size_t *count);
/* A piece of output: -EBADMSG if the data between two places has changed since
 * the index was made. @b may be NULL. */
int wf_tools_gzip_sidecar_check(struct wf_gzip_sidecar *b, uint64_t out,
				uint32_t check, size_t len);
/* The data has ended: -EBADMSG if it had gone on when the index was made. */
int wf_tools_gzip_sidecar_check_end(const struct wf_gzip_sidecar *b);
void wf_tools_gzip_sidecar_free(struct wf_gzip_sidecar *b);

#endif
