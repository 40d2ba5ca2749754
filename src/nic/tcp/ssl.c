/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads OpenSSL once and keeps its functions.
 */
#include "nic/tcp/ssl.h"

#include <stdbool.h>
#include <stddef.h>

#include "os/inline.h"
#include "os/library.h"
#include "os/thread.h"

#define ENTRY(name) { #name, offsetof(struct wf_tcp_ssl, name) },

static const struct {
	const char *name;
	size_t at;
} entries[] = { WF_TCP_SSL_CALLS(ENTRY) };

#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

WF_PER_PROCESS static struct wf_tcp_ssl calls;
WF_PER_PROCESS static bool usable;

static void load(void)
{
	void *library = wf_os_library_open(WF_TCP_SSL_LIBRARY);

	if (!library)
		return;
	for (size_t i = 0; i < ENTRIES; i++) {
		void *found = wf_os_library_find(library, entries[i].name);

		if (!found)
			return;
		*(void **)((char *)&calls + entries[i].at) = found;
	}
	/* Without an exit handler: it would free memory that a thread of ours
	 * still uses. This has no effect only if the program has used the same
	 * library before. */
	usable = calls.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

const struct wf_tcp_ssl *wf_tcp_ssl_get(void)
{
	WF_PER_PROCESS static struct wf_os_once once = WF_OS_ONCE_INIT;

	wf_os_once(&once, load);
	return usable ? &calls : NULL;
}
