/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libraries themselves, called as their own documentation says.
 */
#ifndef WF_TOOLS_COMP_DIRECT_H
#define WF_TOOLS_COMP_DIRECT_H

#include <stddef.h>
#include <stdint.h>

struct wf_comp_direct {
	const char *name; /* weft's driver on the same library */
	int level;	  /* weft's, for the same level of the library */
	/* gzip format; bytes written, 0 on failure. */
	size_t (*deflate)(const uint8_t *in, size_t len, uint8_t *out,
			  size_t room);
	size_t (*inflate)(const uint8_t *in, size_t len, uint8_t *out,
			  size_t room);
};

/* The Nth there is in this build, or NULL. */
const struct wf_comp_direct *wf_tools_comp_direct(unsigned int n);

#endif
