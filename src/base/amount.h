/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes and times as people write them: "8192", "8K", "64KiB", "500ms", "2s".
 * The one parser of the provider's settings and of the tools' options.
 */
#ifndef WF_BASE_AMOUNT_H
#define WF_BASE_AMOUNT_H

#include <stdint.h>

/*
 * Reads a number with an optional unit: K, M or G, each with or without B or
 * iB, in any case, all powers of 1024; a plain B means bytes. A number that
 * begins with 0x is hexadecimal and has no unit. @end points behind what was
 * read. Returns 0, -EINVAL if there is no number (a sign is not part of one),
 * or -ERANGE with UINT64_MAX in @value if it does not fit.
 */
int wf_base_amount_bytes(const char *text, const char **end, uint64_t *value);

/*
 * The same for a time, in units of @unit_ms milliseconds: ms, s, min or h may
 * follow; without a unit the number counts in @unit_ms. A time that is no
 * whole number of units is rounded up.
 */
int wf_base_amount_time(const char *text, const char **end, uint64_t unit_ms,
			uint64_t *value);

#endif
