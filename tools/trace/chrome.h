/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a capture as Chrome's trace JSON, which Perfetto and chrome://tracing
 * show.
 */
#ifndef WF_TOOLS_TRACE_CHROME_H
#define WF_TOOLS_TRACE_CHROME_H

#include <stdio.h>

#include "tools/trace/arrows.h"

void wf_tools_chrome_write(const struct wf_tools_capture *capture,
			   const struct wf_tools_arrows *arrows, FILE *out);

#endif
