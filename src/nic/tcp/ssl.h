/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenSSL's functions that nic/tcp uses. The library is loaded when there is a
 * key file: a process without one neither needs nor loads it. It is not linked,
 * so that the functions of another OpenSSL, or of one of its relatives, in the
 * program are not called instead.
 */
#ifndef WF_NIC_TCP_SSL_H
#define WF_NIC_TCP_SSL_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

#define WF_TCP_SSL_CALLS(X)                                                    \
	X(BIO_clear_flags)                                                     \
	X(BIO_free)                                                            \
	X(BIO_get_data)                                                        \
	X(BIO_get_new_index)                                                   \
	X(BIO_meth_new)                                                        \
	X(BIO_meth_set_ctrl)                                                   \
	X(BIO_meth_set_read)                                                   \
	X(BIO_meth_set_write)                                                  \
	X(BIO_new)                                                             \
	X(BIO_set_data)                                                        \
	X(BIO_set_flags)                                                       \
	X(BIO_set_init)                                                        \
	X(ERR_clear_error)                                                     \
	X(ERR_peek_last_error)                                                 \
	X(ERR_reason_error_string)                                             \
	X(EVP_KDF_CTX_free)                                                    \
	X(EVP_KDF_CTX_new)                                                     \
	X(EVP_KDF_derive)                                                      \
	X(EVP_KDF_fetch)                                                       \
	X(EVP_KDF_free)                                                        \
	X(OPENSSL_cleanse)                                                     \
	X(OPENSSL_init_crypto)                                                 \
	X(OSSL_LIB_CTX_new)                                                    \
	X(OSSL_PARAM_construct_end)                                            \
	X(OSSL_PARAM_construct_octet_string)                                   \
	X(OSSL_PARAM_construct_utf8_string)                                    \
	X(OpenSSL_version)                                                     \
	X(SSL_CIPHER_find)                                                     \
	X(SSL_CIPHER_get_protocol_id)                                          \
	X(SSL_CTX_ctrl)                                                        \
	X(SSL_CTX_free)                                                        \
	X(SSL_CTX_new_ex)                                                      \
	X(SSL_CTX_set_ciphersuites)                                            \
	X(SSL_CTX_set_keylog_callback)                                         \
	X(SSL_CTX_set_num_tickets)                                             \
	X(SSL_CTX_set_options)                                                 \
	X(SSL_CTX_set_psk_find_session_callback)                               \
	X(SSL_CTX_set_psk_use_session_callback)                                \
	X(SSL_SESSION_free)                                                    \
	X(SSL_SESSION_new)                                                     \
	X(SSL_SESSION_set1_master_key)                                         \
	X(SSL_SESSION_set_cipher)                                              \
	X(SSL_SESSION_set_protocol_version)                                    \
	X(SSL_do_handshake)                                                    \
	X(SSL_free)                                                            \
	X(SSL_get_current_cipher)                                              \
	X(SSL_get_ex_data)                                                     \
	X(SSL_key_update)                                                      \
	X(SSL_new)                                                             \
	X(SSL_pending)                                                         \
	X(SSL_read_ex)                                                         \
	X(SSL_session_reused)                                                  \
	X(SSL_set_accept_state)                                                \
	X(SSL_set_bio)                                                         \
	X(SSL_set_connect_state)                                               \
	X(SSL_set_ex_data)                                                     \
	X(SSL_set_verify)                                                      \
	X(SSL_write_ex)                                                        \
	X(TLS_method)

struct wf_tcp_ssl {
#define WF_TCP_SSL_FIELD(name) __typeof__(&name) name;
	WF_TCP_SSL_CALLS(WF_TCP_SSL_FIELD)
#undef WF_TCP_SSL_FIELD
};

/* The name of the library that is loaded. */
#define WF_TCP_SSL_NAME(version) WF_TCP_SSL_TEXT(version)
#define WF_TCP_SSL_TEXT(version) "libssl.so." #version
#define WF_TCP_SSL_LIBRARY WF_TCP_SSL_NAME(OPENSSL_SHLIB_VERSION)

/* NULL: the library is not there, or has not all of them. */
const struct wf_tcp_ssl *wf_tcp_ssl_get(void);

/* Bytes that go into a derived key. They are not written to. */
struct wf_tcp_ssl_bytes {
	const void *at;
	size_t len;
};

/* HKDF with SHA-256 (RFC 5869). No @salt: only its second step, expand. @lib:
 * NULL is OpenSSL's own. 0 or -EIO. */
int wf_tcp_ssl_hkdf(OSSL_LIB_CTX *lib, const struct wf_tcp_ssl_bytes *salt,
		    struct wf_tcp_ssl_bytes secret,
		    struct wf_tcp_ssl_bytes info, uint8_t *out, size_t out_len);

#endif
