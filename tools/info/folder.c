/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds out whether containers of this host can be reached through
 * shared memory: the folder in which they find each other, or why there is
 * none. Checked as the provider does, for the user of the command.
 */
#include "tools/info/facts.h"

#include <stdio.h>
#include <string.h>

#include "base/folder.h"

void wf_tools_folder_read(struct wf_tools_facts *facts)
{
	const struct wf_tools_param *dir = wf_tools_param_find(facts, "DIR");
	struct wf_tools_folder *folder = &facts->folder;
	bool given = dir && *dir->given && !*dir->note;
	char why[WF_SETTING_NOTE];

	if (facts->shm_off) {
		snprintf(folder->why, sizeof(folder->why),
			 "FI_WEFT_SHM is false");
		return;
	}
	if (given && !strcmp(dir->given, "none")) {
		snprintf(folder->why, sizeof(folder->why),
			 "FI_WEFT_DIR is none");
		return;
	}
	if (given) {
		snprintf(folder->path, sizeof(folder->path), "%s", dir->given);
		return;
	}
	if (wf_base_folder_check(WF_BASE_FOLDER_DEFAULT, why, sizeof(why))) {
		strcpy(folder->path, WF_BASE_FOLDER_DEFAULT);
		return;
	}
	snprintf(folder->why, sizeof(folder->why), "%s: %s",
		 WF_BASE_FOLDER_DEFAULT, why);
	snprintf(folder->advice, sizeof(folder->advice),
		 "share a folder between the containers: `mkdir -m 1777 "
		 "/run/weft-containers` on the host, `-v "
		 "/run/weft-containers:%s` for each container; elsewhere "
		 "FI_WEFT_DIR names it",
		 WF_BASE_FOLDER_DEFAULT);
}
