/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the real zlib once and keeps its functions. It must never hand out
 * functions of libweft-z.so itself, which may stand in for libz.so.1.
 */
#include "zreal/real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"

#define DEFAULT_NAME "libz.so.1"

struct entry {
	const char *name;
	size_t at;
};

#define ENTRY(func, type, params) { #func, offsetof(struct wf_zreal, func) },

static const struct entry entries[] = { WF_ZREAL_CORE(ENTRY)
						WF_ZREAL_GZ(ENTRY) };

static struct wf_zreal real;
static _Atomic(const struct wf_zreal *) usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* libweft-z.so has zlib's names and zlib-ng's own; no other library has both. */
static bool is_weft(void *handle)
{
	return dlsym(handle, "deflate") && dlsym(handle, "zng_deflate");
}

static void load(void)
{
	/* secure_: the user of a set-user-ID program must not choose its
	 * code. */
	const char *name = secure_getenv("WEFT_LIBZ");
	void *handle;

	if (!name || !*name)
		name = DEFAULT_NAME;
	/* Without RTLD_DEEPBIND: calls that zlib makes to itself through its
	 * import table may reach us; the state shows whose stream it is. */
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		wf_warn("no zlib: %s; set WEFT_LIBZ to its file", dlerror());
		return;
	}
	if (is_weft(handle)) {
		wf_warn("%s is weft itself; set WEFT_LIBZ to the file of the "
			"real zlib",
			name);
		return;
	}
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *found = dlsym(handle, entries[i].name);

		if (!found) {
			wf_warn("%s has no %s: a zlib of 1.2.9 or later is "
				"needed; set WEFT_LIBZ to one",
				name, entries[i].name);
			return;
		}
		*(void **)((char *)&real + entries[i].at) = found;
	}
	atomic_store_explicit(&usable, &real, memory_order_release);
}

const struct wf_zreal *wf_zreal_get(void)
{
	const struct wf_zreal *z =
		atomic_load_explicit(&usable, memory_order_acquire);

	if (__builtin_expect(z != NULL, 1))
		return z;
	pthread_once(&once, load);
	return atomic_load_explicit(&usable, memory_order_acquire);
}
