/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS by the kernel (CONFIG_TLS): OpenSSL makes the handshake, and the kernel
 * gets the keys that follow from it. From then on what is written to the socket
 * is encrypted by the kernel, and what is read from it has been decrypted. Each
 * direction may go this way or by OpenSSL; the other side sees no difference.
 */
#ifndef WF_NIC_TCP_KTLS_H
#define WF_NIC_TCP_KTLS_H

#include <stdbool.h>
#include <stdint.h>

#include "nic/tcp/ssl.h"

/* Directions. */
#define WF_TCP_KTLS_TX 1u
#define WF_TCP_KTLS_RX 2u
#define WF_TCP_KTLS_BOTH (WF_TCP_KTLS_TX | WF_TCP_KTLS_RX)

#define WF_TCP_KTLS_SECRET 32u
#define WF_TCP_KTLS_IV 12u
#define WF_TCP_KTLS_KEY_MOST 32u

/* The secrets of a connection, from the handshake until the kernel has the
 * keys. They are in no file and no log. */
struct wf_tcp_ktls {
	uint8_t client
		[WF_TCP_KTLS_SECRET]; /* of what the side sends that ... */
	uint8_t server[WF_TCP_KTLS_SECRET]; /* ... connected, and the other */
	bool has_client;
	bool has_server;
};

/* Whether the kernel has TLS. It is asked once in a process. */
bool wf_tcp_ktls_is_there(void);

/* Takes what is needed of a line of OpenSSL's callback for key logs. */
void wf_tcp_ktls_note(struct wf_tcp_ktls *ktls, const char *line);
void wf_tcp_ktls_wipe(struct wf_tcp_ktls *ktls);

/* The key and the first nonce that follow from a secret (RFC 8446, 7.3). 0 or
 * -EIO. @lib as in wf_tcp_ssl_hkdf(). */
int wf_tcp_ktls_derive(OSSL_LIB_CTX *lib,
		       const uint8_t secret[WF_TCP_KTLS_SECRET], uint8_t *key,
		       size_t key_len, uint8_t iv[WF_TCP_KTLS_IV]);

/* Gives the kernel the keys for the first record of each direction in @want,
 * after the handshake and before anything else was sent or read. @mine: this
 * side connected. @suite: the number of the cipher suite in the protocol. Returns
 * the directions that the kernel does now; the others are as they were. */
unsigned int wf_tcp_ktls_begin(const struct wf_tcp_ktls *ktls,
			       OSSL_LIB_CTX *lib, int fd, bool mine,
			       unsigned int suite, unsigned int want);

#endif
