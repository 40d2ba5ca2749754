/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds libibverbs and libefa. Functions that the program has by itself come
 * first: they may be those of a device that was preloaded (docs/efa-device.md).
 */
#include "nic/efa/verbs.h"

#include <stddef.h>
#include <string.h>

#include "os/file.h"
#include "os/inline.h"
#include "os/library.h"
#include "os/thread.h"

/* Where the kernel lists devices; the names of a preloaded one come without. */
#define DEVICES "/sys/class/infiniband_verbs"

static const struct {
	const char *library;
	const char *name;
	size_t at;
	bool needed;
} calls[] = {
#define WF_SRD_ROW(result, library, name, arguments)                           \
	{ #library, #library "_" #name,                                        \
	  offsetof(struct wf_srd_verbs, library##_##name), true },
#define WF_SRD_NEW_ROW(result, library, name, arguments)                       \
	{ #library, #library "_" #name,                                        \
	  offsetof(struct wf_srd_verbs, library##_##name), false },
	WF_SRD_CALLS(WF_SRD_ROW) WF_SRD_NEW_CALLS(WF_SRD_NEW_ROW)
#undef WF_SRD_ROW
#undef WF_SRD_NEW_ROW
};

/* Written once. */
WF_PER_PROCESS static struct wf_srd_verbs verbs;
WF_PER_PROCESS static bool have_verbs;
WF_PER_PROCESS static struct wf_os_once once = WF_OS_ONCE_INIT;

/* Loading libibverbs takes milliseconds: only where a device can be. */
static void *open_library(const char *name)
{
	struct wf_os_folder folder;

	if (wf_os_folder(DEVICES, &folder))
		return NULL;
	return wf_os_library_open(!strcmp(name, "efadv") ? "libefa.so.1" :
							   "libibverbs.so.1");
}

static void load(void)
{
	void *ibv = NULL, *efadv = NULL;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool is_efadv = !strcmp(calls[i].library, "efadv");
		void **library = is_efadv ? &efadv : &ibv;
		void *found = wf_os_library_own(calls[i].name);

		if (!found && !*library)
			*library = open_library(calls[i].library);
		if (!found && *library)
			found = wf_os_library_find(*library, calls[i].name);
		if (!found && calls[i].needed)
			return;
		memcpy((char *)&verbs + calls[i].at, &found, sizeof(found));
	}
	have_verbs = true;
}

const struct wf_srd_verbs *wf_srd_verbs_get(void)
{
	wf_os_once(&once, load);
	return have_verbs ? &verbs : NULL;
}
