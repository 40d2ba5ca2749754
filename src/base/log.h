/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines from the lower layers. They go to a sink that the layer on top
 * installs (the provider hands them to libfabric's log); without one, warnings
 * go to standard error. On a path that runs per message only behind
 * wf_base_log_debugs().
 */
#ifndef WF_BASE_LOG_H
#define WF_BASE_LOG_H

#include <stdbool.h>

enum wf_log_level {
	/* A warning that the user must see: also where libfabric's log is not
	 * switched on. At most once per cause. */
	WF_LOG_TELL,
	WF_LOG_WARN,
	WF_LOG_INFO,
	WF_LOG_DEBUG,
};

typedef void (*wf_log_sink)(enum wf_log_level level, const char *func, int line,
			    const char *text);

void wf_base_log_set_sink(wf_log_sink sink);
void wf_base_log(enum wf_log_level level, const char *func, int line,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Whether anyone reads debug lines: asked before one that is per message. */
extern bool wf_base_log_debugging;
void wf_base_log_set_debug(bool on);

static inline bool wf_base_log_debugs(void)
{
	return wf_base_log_debugging;
}

#define wf_tell(...) wf_base_log(WF_LOG_TELL, __func__, __LINE__, __VA_ARGS__)
#define wf_warn(...) wf_base_log(WF_LOG_WARN, __func__, __LINE__, __VA_ARGS__)
#define wf_info(...) wf_base_log(WF_LOG_INFO, __func__, __LINE__, __VA_ARGS__)
#define wf_debug(...) wf_base_log(WF_LOG_DEBUG, __func__, __LINE__, __VA_ARGS__)

#endif
