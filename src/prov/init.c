/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry point for libfabric: the provider object, its start and its end.
 * Only this file is known by name outside.
 */
#include "os/file.h"
#include "os/inline.h"
#include "os/process.h"
#include "prov/provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "prov/fabric.h"
#include "prov/info.h"
#include "prov/param.h"

#define TELL_LEN 640 /* more than a line of base/log.c */

/* libfabric logs nothing unless FI_LOG_LEVEL is set, not even warnings:
 * messages that the user must see then go to standard error. If FI_LOG_PROV is
 * set, the user, or `weft info`, which reports everything itself, has decided
 * what to see. */
static void tell(const char *text)
{
	char line[TELL_LEN];

	if (wf_os_getenv("FI_LOG_LEVEL") || wf_os_getenv("FI_LOG_PROV"))
		return;
	snprintf(line, sizeof(line), "weft: %s", text);
	wf_os_print_line(line);
}

static void log_to_libfabric(enum wf_log_level level, const char *func,
			     int line, const char *text)
{
	static const enum fi_log_level levels[] = {
		[WF_LOG_TELL] = FI_LOG_WARN,
		[WF_LOG_WARN] = FI_LOG_WARN,
		[WF_LOG_INFO] = FI_LOG_INFO,
		[WF_LOG_DEBUG] = FI_LOG_DEBUG,
	};

	if (fi_log_enabled(&wf_prov_provider, levels[level], FI_LOG_EP_CTRL))
		fi_log(&wf_prov_provider, levels[level], FI_LOG_EP_CTRL, func,
		       line, "%s\n", text);
	else if (level == WF_LOG_TELL)
		tell(text);
}

static void cleanup(void)
{
	wf_base_log_set_sink(NULL);
	wf_prov_param_fini();
}

/* Not const: libfabric keeps state of its own in .context. */
WF_PER_PROCESS struct fi_provider wf_prov_provider = {
	.version = WF_PROV_VERSION,
	.name = WF_PROV_NAME,
	.getinfo = wf_prov_info_get,
	.fabric = wf_prov_fabric_open,
	.cleanup = cleanup,
};

/* libfabric's macro defines it and no header declares it. */
FI_EXT_INI;

FI_EXT_INI
{
	/* libfabric hides a provider from applications that ask for a newer
	 * API than it states; the newest we can meet is the library's own. */
	wf_prov_provider.fi_version = fi_version();
	wf_base_log_set_sink(log_to_libfabric);
	wf_prov_param_init(&wf_prov_provider);
	wf_base_log_set_debug(fi_log_enabled(&wf_prov_provider, FI_LOG_DEBUG,
					     FI_LOG_EP_DATA));
	return &wf_prov_provider;
}
