/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads OpenSSL once and keeps its functions, and derives keys with them.
 */
#include "nic/tcp/ssl.h"

#include <errno.h>
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

static OSSL_PARAM bytes_param(const char *name, struct wf_tcp_ssl_bytes bytes)
{
	return calls.OSSL_PARAM_construct_octet_string(name, (void *)bytes.at,
						       bytes.len);
}

int wf_tcp_ssl_hkdf(OSSL_LIB_CTX *lib, const struct wf_tcp_ssl_bytes *salt,
		    struct wf_tcp_ssl_bytes secret,
		    struct wf_tcp_ssl_bytes info, uint8_t *out, size_t out_len)
{
	EVP_KDF *kdf = calls.EVP_KDF_fetch(lib, "HKDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? calls.EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[5];
	int ok = 0;

	if (ctx) {
		params[0] = calls.OSSL_PARAM_construct_utf8_string(
			OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0);
		params[1] = bytes_param(OSSL_KDF_PARAM_KEY, secret);
		params[2] = bytes_param(OSSL_KDF_PARAM_INFO, info);
		params[3] = salt ? bytes_param(OSSL_KDF_PARAM_SALT, *salt) :
				   calls.OSSL_PARAM_construct_utf8_string(
					   OSSL_KDF_PARAM_MODE,
					   (char *)"EXPAND_ONLY", 0);
		params[4] = calls.OSSL_PARAM_construct_end();
		ok = calls.EVP_KDF_derive(ctx, out, out_len, params) > 0;
	}
	calls.EVP_KDF_CTX_free(ctx);
	calls.EVP_KDF_free(kdf);
	if (!ok)
		calls.ERR_clear_error();
	return ok ? 0 : -EIO;
}
