/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and checks the file with a job's secret, and derives the key of the
 * protocol from it (HKDF with SHA-256, RFC 5869).
 */
#include "nic/tcp/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nic/tcp/ssl.h"
#include "os/file.h"
#include "os/process.h"

/* The purpose of the derived keys: another version of the protocol derives
 * others. */
#define SALT "weft"
#define FOR_PSK "weft nic/tcp 1 TLS 1.3 PSK"
#define FOR_ID "weft nic/tcp 1 key id"
#define ID_BYTES 8u

static int check_file(const struct wf_os_owned *of, size_t len, char *why,
		      size_t room)
{
	uid_t us = wf_os_geteuid();

	if (!of->is_file) {
		snprintf(why, room, "it is not a regular file");
		return -EINVAL;
	}
	if ((of->uid != us && of->uid != 0) ||
	    (of->link_uid != us && of->link_uid != 0)) {
		snprintf(why, room,
			 "it belongs to user %u, not to user %u or root: use a "
			 "file of your own",
			 (unsigned)(of->uid != us && of->uid != 0 ?
					    of->uid :
					    of->link_uid),
			 (unsigned)us);
		return -EACCES;
	}
	if (of->mode & 077) {
		snprintf(why, room,
			 "others may read or change it (mode %04o): chmod 600 "
			 "it, and make a new key if it was in use",
			 of->mode);
		return -EACCES;
	}
	if (len < WF_TCP_KEY_MIN || len > WF_TCP_KEY_MAX) {
		snprintf(why, room,
			 "it has %zu bytes%s: a key has %u to %u, as `openssl "
			 "rand -hex 32` makes",
			 len, len > WF_TCP_KEY_MAX ? " or more" : "",
			 WF_TCP_KEY_MIN, WF_TCP_KEY_MAX);
		return -EINVAL;
	}
	return 0;
}

/* The end of the last line does not count: some tools add it, others do not. */
static size_t without_newline(const uint8_t *bytes, size_t len)
{
	if (len && bytes[len - 1] == '\n')
		len--;
	if (len && bytes[len - 1] == '\r')
		len--;
	return len;
}

static int derive(const uint8_t *secret, size_t len, const char *purpose,
		  uint8_t *out, size_t out_len)
{
	static const struct wf_tcp_ssl_bytes salt = { SALT, sizeof(SALT) - 1 };

	return wf_tcp_ssl_hkdf(
		NULL, &salt, (struct wf_tcp_ssl_bytes){ secret, len },
		(struct wf_tcp_ssl_bytes){ purpose, strlen(purpose) }, out,
		out_len);
}

static int fill(const uint8_t *secret, size_t len, struct wf_tcp_key *key)
{
	uint8_t id[ID_BYTES];
	int at, ret;

	ret = derive(secret, len, FOR_PSK, key->psk, sizeof(key->psk));
	if (!ret)
		ret = derive(secret, len, FOR_ID, id, sizeof(id));
	if (ret)
		return ret;
	at = snprintf(key->id, sizeof(key->id), "weft-tcp-1-");
	for (unsigned i = 0; i < ID_BYTES; i++)
		at += snprintf(key->id + at, sizeof(key->id) - (size_t)at,
			       "%02x", id[i]);
	return 0;
}

int wf_tcp_key_read(const char *path, struct wf_tcp_key *key, char *why,
		    size_t room)
{
	const struct wf_tcp_ssl *ssl = wf_tcp_ssl_get();
	/* One more: to see that there is more. */
	uint8_t secret[WF_TCP_KEY_MAX + 1];
	struct wf_os_owned of;
	ssize_t got;
	int ret;

	if (!ssl) {
		snprintf(why, room,
			 "OpenSSL (" WF_TCP_SSL_LIBRARY
			 ") cannot be loaded: install it");
		return -ENOSYS;
	}
	if (!*path) {
		snprintf(why, room,
			 "it names no file; unset it if nothing is to be "
			 "encrypted");
		return -EINVAL;
	}
	got = wf_os_read_owned(path, secret, sizeof(secret), &of);
	if (got < 0) {
		snprintf(why, room, "it cannot be read: %s",
			 strerror((int)-got));
		return (int)got;
	}
	if (got <= (ssize_t)WF_TCP_KEY_MAX)
		got = (ssize_t)without_newline(secret, (size_t)got);
	ret = check_file(&of, (size_t)got, why, room);
	if (!ret) {
		ret = fill(secret, (size_t)got, key);
		if (ret)
			snprintf(why, room,
				 "OpenSSL cannot derive a key from it");
	}
	ssl->OPENSSL_cleanse(secret, sizeof(secret));
	return ret;
}

void wf_tcp_key_wipe(struct wf_tcp_key *key)
{
	const struct wf_tcp_ssl *ssl = wf_tcp_ssl_get();

	if (ssl)
		ssl->OPENSSL_cleanse(key, sizeof(*key));
}
