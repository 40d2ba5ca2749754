/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Drivers that are shared objects: those in the folders of WD_DRIVER_PATH, then
 * those in <libdir>/weft/drivers, each folder in the order of names. They are
 * loaded once, at the first use of compression, and stay. One that cannot be
 * used is named in a warning, and skipped; one whose device is not here is
 * skipped without a word.
 */
#ifndef WF_ALG_PLUGIN_H
#define WF_ALG_PLUGIN_H

#include <stdbool.h>

/* By the registry, which calls it once. */
void wf_alg_plugin_load(void);

struct wf_alg_plugin_failure {
	const char *path;
	const char *why;
	/* The driver whose device is not here, which is no fault; else NULL. */
	const char *absent;
};

/* The Nth file or folder that was not used; false if there are no more. */
bool wf_alg_plugin_failed(unsigned int n,
			  struct wf_alg_plugin_failure *failure);

/* The folder of installed drivers. */
const char *wf_alg_plugin_folder(void);

#endif
