/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header has the structures by which Linux learns of a TLS connection (its
 * linux/tls.h, which headers of older systems have in part).
 */
#ifndef WF_NIC_TCP_KTLS_DEFS_H
#define WF_NIC_TCP_KTLS_DEFS_H

#include <assert.h>
#include <stdint.h>

/* Options of a socket: of IPPROTO_TCP, and of WF_TCP_KTLS_LEVEL. */
#define WF_TCP_KTLS_ULP 31
#define WF_TCP_KTLS_ULP_NAME "tls"
#define WF_TCP_KTLS_LEVEL 282
#define WF_TCP_KTLS_OPTION_TX 1
#define WF_TCP_KTLS_OPTION_RX 2

#define WF_TCP_KTLS_VERSION 0x0304u
#define WF_TCP_KTLS_AES 51u
#define WF_TCP_KTLS_CHACHA 54u

/* The nonce of the first record, in the order of the bytes on the wire: with
 * AES its first 4 bytes are in salt and the others in iv. */
struct wf_tcp_ktls_aes {
	uint16_t version;
	uint16_t cipher;
	uint8_t iv[8];
	uint8_t key[16];
	uint8_t salt[4];
	uint8_t record[8]; /* its number, big-endian */
};
static_assert(sizeof(struct wf_tcp_ktls_aes) == 40, "layout of Linux");

struct wf_tcp_ktls_chacha {
	uint16_t version;
	uint16_t cipher;
	uint8_t iv[12];
	uint8_t key[32];
	uint8_t record[8];
};
static_assert(sizeof(struct wf_tcp_ktls_chacha) == 56, "layout of Linux");

#endif
