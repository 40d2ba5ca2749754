/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a page of waits (base/waits_defs.h), which may be of another build and
 * may be written meanwhile.
 */
#ifndef WF_TOOLS_WHY_PAGE_H
#define WF_TOOLS_WHY_PAGE_H

#include "base/waits_defs.h"

/* The contents of a page, checked: numbers are in range, texts end and can be
 * printed. */
struct wf_tools_waits {
	uint32_t pid; /* as its owner calls itself */
	uint64_t opened;
	uint64_t place;
	uint64_t polled;
	uint64_t asleep;
	char name[56];
	struct wf_waits_bank bank;
};

/* Reads @raw, WF_WAITS_BYTES. 0, or -EPROTO and in *@why what is wrong with it. */
int wf_tools_waits_read(struct wf_tools_waits *waits,
			const struct wf_waits_page *raw, const char **why);

#endif
