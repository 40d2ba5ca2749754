/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives the keys of a TLS connection to the kernel. That is all: the handshake
 * is in tls.c, and so is what follows when the kernel does not take them.
 */
#include "nic/tcp/ktls.h"

#include <errno.h>
#include <string.h>

#include "nic/tcp/ktls_defs.h"
#include "os/file.h"
#include "os/inline.h"
#include "os/socket.h"
#include "os/thread.h"

#define AES_SUITE 0x1301u
#define CHACHA_SUITE 0x1303u

/* -- whether the kernel can -------------------------------------------------- */

WF_PER_PROCESS static bool is_there;

static int attach(int fd)
{
	return wf_os_setsockopt(fd, IPPROTO_TCP, WF_TCP_KTLS_ULP,
				WF_TCP_KTLS_ULP_NAME,
				sizeof(WF_TCP_KTLS_ULP_NAME) - 1);
}

/* A socket without a connection is refused, with another error where there is
 * TLS. For a privileged process the kernel loads its module now. */
static void look(void)
{
	int fd = wf_os_socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return;
	is_there = attach(fd) == -ENOTCONN;
	wf_os_close(fd);
}

bool wf_tcp_ktls_is_there(void)
{
	WF_PER_PROCESS static struct wf_os_once once = WF_OS_ONCE_INIT;

	wf_os_once(&once, look);
	return is_there;
}

/* -- secrets ----------------------------------------------------------------- */

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_secret(const char *hex, uint8_t secret[WF_TCP_KTLS_SECRET])
{
	for (size_t i = 0; i < WF_TCP_KTLS_SECRET; i++) {
		int high = digit(hex[2 * i]);
		int low = high < 0 ? -1 : digit(hex[2 * i + 1]);

		if (low < 0)
			return false;
		secret[i] = (uint8_t)(high << 4 | low);
	}
	/* Of another hash, it would be longer. */
	return !hex[2 * (size_t)WF_TCP_KTLS_SECRET];
}

/* Returns the text that follows @label and the number of the client, or
 * NULL. */
static const char *after(const char *line, const char *label)
{
	size_t len = strlen(label);

	if (strncmp(line, label, len) != 0 || line[len] != ' ')
		return NULL;
	line = strchr(line + len + 1, ' ');
	return line ? line + 1 : NULL;
}

void wf_tcp_ktls_note(struct wf_tcp_ktls *ktls, const char *line)
{
	const char *client = after(line, "CLIENT_TRAFFIC_SECRET_0");
	const char *server = after(line, "SERVER_TRAFFIC_SECRET_0");

	if (client)
		ktls->has_client = read_secret(client, ktls->client);
	if (server)
		ktls->has_server = read_secret(server, ktls->server);
}

void wf_tcp_ktls_wipe(struct wf_tcp_ktls *ktls)
{
	wf_tcp_ssl_get()->OPENSSL_cleanse(ktls, sizeof(*ktls));
}

/* HKDF-Expand-Label (RFC 8446, 7.1) without a context. */
static int expand(OSSL_LIB_CTX *lib, const uint8_t *secret, const char *label,
		  uint8_t *out, size_t out_len)
{
	size_t len = strlen(label);
	uint8_t info[32] = { (uint8_t)(out_len >> 8), (uint8_t)out_len,
			     (uint8_t)len };

	memcpy(info + 3, label, len);
	return wf_tcp_ssl_hkdf(
		lib, NULL,
		(struct wf_tcp_ssl_bytes){ secret, WF_TCP_KTLS_SECRET },
		(struct wf_tcp_ssl_bytes){ info, 3 + len + 1 }, out, out_len);
}

int wf_tcp_ktls_derive(OSSL_LIB_CTX *lib,
		       const uint8_t secret[WF_TCP_KTLS_SECRET], uint8_t *key,
		       size_t key_len, uint8_t iv[WF_TCP_KTLS_IV])
{
	int ret = expand(lib, secret, "tls13 key", key, key_len);

	return ret ? ret : expand(lib, secret, "tls13 iv", iv, WF_TCP_KTLS_IV);
}

/* -- of a connection --------------------------------------------------------- */

static int set_aes(OSSL_LIB_CTX *lib, int fd, int option, const uint8_t *secret)
{
	struct wf_tcp_ktls_aes info = { .version = WF_TCP_KTLS_VERSION,
					.cipher = WF_TCP_KTLS_AES };
	uint8_t iv[WF_TCP_KTLS_IV];
	int ret =
		wf_tcp_ktls_derive(lib, secret, info.key, sizeof(info.key), iv);

	memcpy(info.salt, iv, sizeof(info.salt));
	memcpy(info.iv, iv + sizeof(info.salt), sizeof(info.iv));
	if (!ret)
		ret = wf_os_setsockopt(fd, WF_TCP_KTLS_LEVEL, option, &info,
				       sizeof(info));
	wf_tcp_ssl_get()->OPENSSL_cleanse(&info, sizeof(info));
	wf_tcp_ssl_get()->OPENSSL_cleanse(iv, sizeof(iv));
	return ret;
}

static int set_chacha(OSSL_LIB_CTX *lib, int fd, int option,
		      const uint8_t *secret)
{
	struct wf_tcp_ktls_chacha info = { .version = WF_TCP_KTLS_VERSION,
					   .cipher = WF_TCP_KTLS_CHACHA };
	int ret = wf_tcp_ktls_derive(lib, secret, info.key, sizeof(info.key),
				     info.iv);

	if (!ret)
		ret = wf_os_setsockopt(fd, WF_TCP_KTLS_LEVEL, option, &info,
				       sizeof(info));
	wf_tcp_ssl_get()->OPENSSL_cleanse(&info, sizeof(info));
	return ret;
}

static bool set(OSSL_LIB_CTX *lib, int fd, int option, const uint8_t *secret,
		unsigned int suite)
{
	switch (suite) {
	case AES_SUITE:
		return !set_aes(lib, fd, option, secret);
	case CHACHA_SUITE:
		return !set_chacha(lib, fd, option, secret);
	default:
		return false;
	}
}

unsigned int wf_tcp_ktls_begin(const struct wf_tcp_ktls *ktls,
			       OSSL_LIB_CTX *lib, int fd, bool mine,
			       unsigned int suite, unsigned int want)
{
	unsigned int done = 0;

	if (!want || !ktls->has_client || !ktls->has_server || attach(fd))
		return 0;
	if (want & WF_TCP_KTLS_TX &&
	    set(lib, fd, WF_TCP_KTLS_OPTION_TX,
		mine ? ktls->client : ktls->server, suite))
		done |= WF_TCP_KTLS_TX;
	if (want & WF_TCP_KTLS_RX &&
	    set(lib, fd, WF_TCP_KTLS_OPTION_RX,
		mine ? ktls->server : ktls->client, suite))
		done |= WF_TCP_KTLS_RX;
	return done;
}
