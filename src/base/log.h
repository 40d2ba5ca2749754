/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log lines of the lower layers. They go to a sink that the top layer installs
 * (the provider passes them to libfabric's log); without a sink, warnings go to
 * standard error. Code that runs per message must check wf_base_log_debugs()
 * first.
 */
#ifndef WF_BASE_LOG_H
#define WF_BASE_LOG_H

#include <stdbool.h>

enum wf_log_level {
	/* A warning that the user must see, even if libfabric's log is switched
	 * off. At most once per cause. */
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

/* Whether debug lines are read: check it before a line that is per message. */
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
