/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 by OpenSSL, without its sockets: it gets what one call has read from
 * the socket, and what it encrypts leaves with one call. So a connection makes
 * as few system calls as without TLS, none raises SIGPIPE, and OpenSSL holds
 * back only a record of which a part has not arrived yet. If the kernel takes
 * the keys, OpenSSL makes only the handshake.
 */
#include "nic/tcp/tls.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/tcp/key.h"
#include "nic/tcp/ktls.h"
#include "nic/tcp/ssl.h"
#include "os/inline.h"
#include "os/socket.h"
#include "os/thread.h"

#define RECORD 16384u
/* The overhead of a record, at most. */
#define RECORD_MORE 512u
/* The same of a record by the kernel, exactly: head, type and tag. */
#define KERNEL_MORE 22u
/* Records that are encrypted before they leave: few enough to stay in the cache
 * until then. */
#define OUT_MOST (7u * RECORD)
#define OUT_ROOM (OUT_MOST + 10u * RECORD_MORE)
#define IN_ROOM (128u << 10)
/* One key of AES-GCM is good for 2^24.5 whole records (RFC 8446, 5.5). */
#define REKEY_AFTER (1ull << 37)

#define AES "TLS_AES_128_GCM_SHA256"
#define CHACHA "TLS_CHACHA20_POLY1305_SHA256"

/* OpenSSL's calls for bytes are answered in one of these ways. */
enum mode {
	DIRECT, /* the socket */
	OPEN,	/* tls->in; nothing may be written */
	SEAL,	/* tls->out */
};

struct wf_tcp_tls {
	const struct wf_tcp_ssl *call;
	SSL_CTX *ctx;
	struct wf_tcp_key key;
	uint64_t rekey_after;
	unsigned int by_kernel; /* directions, WF_TCP_KTLS_ */
	uint8_t *in;		/* what came */
	size_t in_at;
	size_t in_len;
	uint8_t *out; /* what leaves */
	size_t out_len;
	uint8_t *record; /* small pieces that make one record */
};

struct wf_tcp_session {
	struct wf_tcp_tls *tls;
	SSL *ssl;
	int fd;
	uint8_t mode;
	bool mine;
	bool other_key; /* the other side named a key that is not ours */
	ssize_t broken; /* how the socket ended: 0 of its end, or -errno */
	bool is_broken;
	bool is_dry;	   /* the last call for bytes found none */
	uint8_t by_kernel; /* directions */
	struct wf_tcp_ktls ktls;
	uint8_t *left; /* encrypted, and the socket had no room */
	size_t left_at;
	size_t left_len;
	uint64_t sealed; /* bytes, with the present key */
	char reason[128];
};

/* -- OpenSSL's calls for bytes ----------------------------------------------- */

static int bio_fails(BIO *bio, struct wf_tcp_session *s, ssize_t n)
{
	(void)bio;
	s->is_broken = true;
	s->broken = n;
	return n ? -1 : 0;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct wf_tcp_session *s;
	const struct wf_tcp_ssl *call;
	struct wf_tcp_tls *tls;
	size_t part;
	ssize_t n;

	/* Its functions are in the table, and the table is found by it: the
	 * data of a BIO is set before anything is read. */
	call = wf_tcp_ssl_get();
	s = call->BIO_get_data(bio);
	tls = s->tls;
	s->is_dry = false;
	call->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (s->mode == DIRECT) {
		n = wf_os_recv(s->fd, bytes, (size_t)len, 0);
		if (n > 0)
			return (int)n;
		if (n != -EAGAIN && n != -EINTR)
			return bio_fails(bio, s, n);
	} else if (tls->in_at < tls->in_len) {
		part = tls->in_len - tls->in_at;
		part = part < (size_t)len ? part : (size_t)len;
		memcpy(bytes, tls->in + tls->in_at, part);
		tls->in_at += part;
		return (int)part;
	}
	s->is_dry = true;
	call->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
	return -1;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
	const struct wf_tcp_ssl *call = wf_tcp_ssl_get();
	struct wf_tcp_session *s = call->BIO_get_data(bio);
	struct wf_tcp_tls *tls = s->tls;
	ssize_t n;

	call->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	switch (s->mode) {
	case DIRECT:
		/* An alert, which the kernel would take for data. */
		if (s->by_kernel & WF_TCP_KTLS_TX)
			return -1;
		/* Some hundred bytes, and the socket was empty. */
		n = wf_os_send(s->fd, bytes, (size_t)len, 0);
		if (n != len)
			return bio_fails(bio, s, n < 0 ? n : -ECONNRESET);
		return len;
	case SEAL:
		if ((size_t)len > OUT_ROOM - tls->out_len)
			return -1;
		memcpy(tls->out + tls->out_len, bytes, (size_t)len);
		tls->out_len += (size_t)len;
		return len;
	default:
		return -1;
	}
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *arg)
{
	(void)bio;
	(void)num;
	(void)arg;
	/* Among others it is asked whether the kernel takes the keys: never. */
	return cmd == BIO_CTRL_FLUSH;
}

/* -- who is there ------------------------------------------------------------ */

static SSL_SESSION *make_psk(const struct wf_tcp_tls *tls, SSL *ssl)
{
	static const unsigned char aes[] = { 0x13, 0x01 };
	const struct wf_tcp_ssl *call = tls->call;
	const SSL_CIPHER *cipher = call->SSL_CIPHER_find(ssl, aes);
	SSL_SESSION *psk = cipher ? call->SSL_SESSION_new() : NULL;

	/* Only the hash of the cipher matters, and all have the same. */
	if (psk &&
	    call->SSL_SESSION_set1_master_key(psk, tls->key.psk,
					      sizeof(tls->key.psk)) &&
	    call->SSL_SESSION_set_cipher(psk, cipher) &&
	    call->SSL_SESSION_set_protocol_version(psk, TLS1_3_VERSION))
		return psk;
	call->SSL_SESSION_free(psk);
	return NULL;
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **id,
		   size_t *len, SSL_SESSION **psk)
{
	struct wf_tcp_session *s = wf_tcp_ssl_get()->SSL_get_ex_data(ssl, 0);

	(void)md;
	*id = (const unsigned char *)s->tls->key.id;
	*len = strlen(s->tls->key.id);
	*psk = make_psk(s->tls, ssl);
	return *psk != NULL;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t len,
		    SSL_SESSION **psk)
{
	struct wf_tcp_session *s = wf_tcp_ssl_get()->SSL_get_ex_data(ssl, 0);
	const char *ours = s->tls->key.id;

	*psk = NULL;
	if (len != strlen(ours) || memcmp(id, ours, len) != 0) {
		s->other_key = true;
		return 1;
	}
	*psk = make_psk(s->tls, ssl);
	return *psk != NULL;
}

static void note_secret(const SSL *ssl, const char *line)
{
	struct wf_tcp_session *s = wf_tcp_ssl_get()->SSL_get_ex_data(ssl, 0);

	wf_tcp_ktls_note(&s->ktls, line);
}

/* -- of a process ------------------------------------------------------------ */

/* Shared by all devices and never freed: threads that have used OpenSSL return
 * to it when they end, whenever that is. A context separate from what the
 * program does with the same library, also when it ends. */
WF_PER_PROCESS static struct {
	struct wf_os_once once;
	OSSL_LIB_CTX *lib;
	BIO_METHOD *method;
} shared = { .once = WF_OS_ONCE_INIT };

static void make_shared(void)
{
	const struct wf_tcp_ssl *call = wf_tcp_ssl_get();

	shared.lib = call->OSSL_LIB_CTX_new();
	shared.method = call->BIO_meth_new(
		call->BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft");
	if (!shared.method)
		return;
	call->BIO_meth_set_read(shared.method, bio_read);
	call->BIO_meth_set_write(shared.method, bio_write);
	call->BIO_meth_set_ctrl(shared.method, bio_ctrl);
}

/* -- of a device ------------------------------------------------------------- */

#if defined(__x86_64__) || defined(__i386__)
static bool has_aes(void)
{
	return __builtin_cpu_supports("aes") &&
	       __builtin_cpu_supports("pclmul");
}
#else
static bool has_aes(void)
{
	return true;
}
#endif

static bool set_up(struct wf_tcp_tls *tls)
{
	const struct wf_tcp_ssl *call = tls->call;
	SSL_CTX *ctx = tls->ctx;

	call->SSL_CTX_set_options(ctx,
				  SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
	call->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE,
			   SSL_SESS_CACHE_OFF, NULL);
	/* Peers that say nothing take no buffers. */
	call->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	call->SSL_CTX_set_psk_use_session_callback(ctx, use_key);
	call->SSL_CTX_set_psk_find_session_callback(ctx, find_key);
	if (tls->by_kernel)
		call->SSL_CTX_set_keylog_callback(ctx, note_secret);
	return call->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MIN_PROTO_VERSION,
				  TLS1_3_VERSION, NULL) &&
	       call->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MAX_PROTO_VERSION,
				  TLS1_3_VERSION, NULL) &&
	       call->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_GROUPS_LIST, 0,
				  (void *)"X25519:P-256") &&
	       call->SSL_CTX_set_num_tickets(ctx, 0) &&
	       call->SSL_CTX_set_ciphersuites(ctx, has_aes() ? AES ":" CHACHA :
							       CHACHA ":" AES);
}

static int make(struct wf_tcp_tls *tls, char *why, size_t room)
{
	const struct wf_tcp_ssl *call = tls->call;

	tls->in = malloc(IN_ROOM);
	tls->out = malloc(OUT_ROOM);
	tls->record = malloc(RECORD);
	wf_os_once(&shared.once, make_shared);
	if (shared.lib)
		tls->ctx = call->SSL_CTX_new_ex(shared.lib, NULL,
						call->TLS_method());
	if (!tls->in || !tls->out || !tls->record || !shared.method ||
	    !tls->ctx) {
		snprintf(why, room, "there is no memory for TLS");
		return -ENOMEM;
	}
	tls->rekey_after = REKEY_AFTER;
	if (set_up(tls))
		return 0;
	snprintf(why, room, "this OpenSSL has no TLS 1.3 with " AES);
	return -ENOSYS;
}

int wf_tcp_tls_open(const char *key_file, bool by_kernel,
		    struct wf_tcp_tls **out, char *why, size_t room)
{
	struct wf_tcp_tls *tls = calloc(1, sizeof(*tls));
	int ret;

	if (!tls) {
		snprintf(why, room, "there is no memory for TLS");
		return -ENOMEM;
	}
	ret = wf_tcp_key_read(key_file, &tls->key, why, room);
	if (ret) {
		free(tls);
		return ret;
	}
	tls->call = wf_tcp_ssl_get();
	if (by_kernel && wf_tcp_ktls_is_there())
		tls->by_kernel = WF_TCP_KTLS_BOTH;
	ret = make(tls, why, room);
	if (ret) {
		tls->call->ERR_clear_error();
		wf_tcp_tls_close(tls);
		return ret;
	}
	*out = tls;
	return 0;
}

void wf_tcp_tls_close(struct wf_tcp_tls *tls)
{
	if (!tls)
		return;
	tls->call->SSL_CTX_free(tls->ctx);
	wf_tcp_key_wipe(&tls->key);
	free(tls->in);
	free(tls->out);
	free(tls->record);
	free(tls);
}

void wf_tcp_tls_rekey_after(struct wf_tcp_tls *tls, uint64_t bytes)
{
	tls->rekey_after = bytes;
}

void wf_tcp_tls_limit_kernel(struct wf_tcp_tls *tls, unsigned int directions)
{
	tls->by_kernel &= directions;
}

void wf_tcp_tls_about(char *text, size_t room)
{
	const struct wf_tcp_ssl *call = wf_tcp_ssl_get();

	if (!call)
		snprintf(text, room, WF_TCP_SSL_LIBRARY " cannot be loaded");
	else
		snprintf(text, room, "TLS 1.3 by OpenSSL %s%s",
			 call->OpenSSL_version(OPENSSL_VERSION_STRING),
			 wf_tcp_ktls_is_there() ?
				 " and the kernel" :
				 "; the kernel has none (CONFIG_TLS, "
				 "modprobe tls)");
}

/* -- of a connection --------------------------------------------------------- */

struct wf_tcp_session *wf_tcp_tls_begin(struct wf_tcp_tls *tls, int fd,
					bool mine)
{
	struct wf_tcp_session *s = calloc(1, sizeof(*s));
	const struct wf_tcp_ssl *call = tls->call;
	BIO *bio = NULL;

	if (!s)
		return NULL;
	s->tls = tls;
	s->fd = fd;
	s->mine = mine;
	s->ssl = call->SSL_new(tls->ctx);
	if (s->ssl)
		bio = call->BIO_new(shared.method);
	if (!bio || !call->SSL_set_ex_data(s->ssl, 0, s)) {
		call->BIO_free(bio);
		call->ERR_clear_error();
		wf_tcp_tls_end(s);
		return NULL;
	}
	call->BIO_set_data(bio, s);
	call->BIO_set_init(bio, 1);
	call->SSL_set_bio(s->ssl, bio, bio);
	if (mine) {
		/* A certificate proves nothing here, whichever authority signed
		 * it. */
		call->SSL_set_verify(s->ssl, SSL_VERIFY_PEER, NULL);
		call->SSL_set_connect_state(s->ssl);
	} else {
		call->SSL_set_accept_state(s->ssl);
	}
	return s;
}

void wf_tcp_tls_end(struct wf_tcp_session *s)
{
	if (!s)
		return;
	s->mode = OPEN; /* sends nothing */
	s->tls->call->SSL_free(s->ssl);
	wf_tcp_ktls_wipe(&s->ktls);
	free(s->left);
	free(s);
}

unsigned int wf_tcp_tls_by_kernel(const struct wf_tcp_session *s)
{
	return s->by_kernel;
}

const char *wf_tcp_tls_reason(const struct wf_tcp_session *s)
{
	return s->reason;
}

bool wf_tcp_tls_is_other(const struct wf_tcp_session *s)
{
	return s->other_key;
}

/* Keeps OpenSSL's text about the last failure. */
static void keep_reason(struct wf_tcp_session *s)
{
	const struct wf_tcp_ssl *call = s->tls->call;
	const char *text =
		call->ERR_reason_error_string(call->ERR_peek_last_error());

	if (s->other_key)
		text = "it has another key";
	else if (!text)
		text = "the handshake failed";
	snprintf(s->reason, sizeof(s->reason), "%s%s%s",
		 s->mine ? "it does not accept our key (" : "", text,
		 s->mine ? ")" : "");
	call->ERR_clear_error();
}

static bool is_waiting(const struct wf_tcp_session *s)
{
	/* SSL_want() says the same of alerts. */
	return s->is_dry && !s->is_broken;
}

/* The kernel continues where OpenSSL stands: no record has followed the
 * handshake in either direction, since there are no tickets, OpenSSL reads record
 * by record, and the device says nothing before this. */
static void give_keys(struct wf_tcp_session *s)
{
	const struct wf_tcp_ssl *call = s->tls->call;
	const SSL_CIPHER *cipher = call->SSL_get_current_cipher(s->ssl);
	unsigned int done = wf_tcp_ktls_begin(
		&s->ktls, shared.lib, s->fd, s->mine,
		call->SSL_CIPHER_get_protocol_id(cipher), s->tls->by_kernel);

	s->by_kernel = (uint8_t)done;
	if (done != WF_TCP_KTLS_BOTH)
		return;
	call->SSL_free(s->ssl);
	s->ssl = NULL;
}

static int begin_data(struct wf_tcp_session *s)
{
	const struct wf_tcp_ssl *call = s->tls->call;

	/* Without the key there is no proof of anything. */
	if (!call->SSL_session_reused(s->ssl)) {
		snprintf(s->reason, sizeof(s->reason),
			 "it did not use the key");
		return -EKEYREJECTED;
	}
	if (s->tls->by_kernel)
		give_keys(s);
	return 1;
}

int wf_tcp_tls_shake(struct wf_tcp_session *s)
{
	int ret;

	s->mode = DIRECT;
	ret = s->tls->call->SSL_do_handshake(s->ssl);
	s->mode = OPEN;
	if (ret == 1) {
		ret = begin_data(s);
		wf_tcp_ktls_wipe(&s->ktls);
		return ret;
	}
	if (is_waiting(s))
		return 0;
	keep_reason(s);
	if (s->is_broken)
		return s->broken ? (int)s->broken : -ECONNRESET;
	return -EKEYREJECTED;
}

static size_t length_of(const struct iovec *iov, unsigned int count)
{
	size_t len = 0;

	for (unsigned int i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

static bool is_busy(ssize_t n)
{
	return n == -EAGAIN || n == -EINTR || n == -ENOBUFS || n == -ENOMEM;
}

/* Neither side can go on with this connection. */
static ssize_t fail(const struct wf_tcp_session *s)
{
	const struct wf_tcp_ssl *call = s->tls->call;
	const char *text =
		call->ERR_reason_error_string(call->ERR_peek_last_error());

	wf_info("TLS: %s", text ? text : "the stream is invalid");
	call->ERR_clear_error();
	return -EPROTO;
}

/* -- what goes --------------------------------------------------------------- */

bool wf_tcp_tls_holds(const struct wf_tcp_session *s)
{
	return s->left;
}

static bool seal(struct wf_tcp_session *s, const void *bytes, size_t len)
{
	size_t done = 0;

	return s->tls->call->SSL_write_ex(s->ssl, bytes, len, &done) == 1 &&
	       done == len;
}

/* Encrypts what there is room for. Pieces of a vector that are small share a
 * record, so that a head and what follows it cost no more than a payload of the
 * same length. Returns the bytes, or -1. */
static ssize_t seal_all(struct wf_tcp_session *s, const struct iovec *iov,
			unsigned int count)
{
	uint8_t *record = s->tls->record;
	size_t taken = 0, filled = 0;

	for (unsigned int i = 0; i < count && taken < OUT_MOST; i++) {
		const uint8_t *at = iov[i].iov_base;
		size_t left = iov[i].iov_len;

		if (left > OUT_MOST - taken)
			left = OUT_MOST - taken;
		while (left) {
			size_t part = left;

			if (!filled && (left >= RECORD || i + 1 == count)) {
				/* The end of it may share one with others. */
				if (i + 1 < count)
					part -= left % RECORD;
				if (!seal(s, at, part))
					return -1;
			} else {
				if (part > RECORD - filled)
					part = RECORD - filled;
				memcpy(record + filled, at, part);
				filled += part;
				if (filled == RECORD) {
					if (!seal(s, record, filled))
						return -1;
					filled = 0;
				}
			}
			at += part;
			left -= part;
			taken += part;
		}
	}
	if (filled && !seal(s, record, filled))
		return -1;
	return (ssize_t)taken;
}

/* Data that was encrypted before is sent first. 0: all of it has left. */
static int flush(struct wf_tcp_session *s)
{
	ssize_t n = wf_os_send(s->fd, s->left + s->left_at,
			       s->left_len - s->left_at, 0);

	if (n < 0)
		return is_busy(n) ? -EAGAIN : (int)n;
	s->left_at += (size_t)n;
	if (s->left_at < s->left_len)
		return -EAGAIN;
	free(s->left);
	s->left = NULL;
	return 0;
}

static int send_out(struct wf_tcp_session *s)
{
	struct wf_tcp_tls *tls = s->tls;
	ssize_t n = wf_os_send(s->fd, tls->out, tls->out_len, 0);
	size_t left;

	if (is_busy(n))
		n = 0;
	if (n < 0)
		return (int)n;
	left = tls->out_len - (size_t)n;
	if (!left)
		return 0;
	s->left = malloc(left);
	/* The other side would miss it: the connection is of no use. */
	if (!s->left)
		return -ECANCELED;
	memcpy(s->left, tls->out + n, left);
	s->left_at = 0;
	s->left_len = left;
	return 0;
}

/* The kernel sends the bytes that it has taken without us. */
static ssize_t send_plain(struct wf_tcp_session *s, const struct iovec *iov,
			  unsigned int count, bool *full)
{
	struct msghdr head = { .msg_iov = (struct iovec *)iov,
			       .msg_iovlen = count };
	ssize_t n;

	if (!count)
		return 0;
	/* Before Linux 6.14 a key cannot be replaced: another connection has
	 * another one, and the device sends again what was not acknowledged. */
	if (s->sealed > s->tls->rekey_after) {
		wf_info("TLS by the kernel: a new connection for a new key");
		return -ECANCELED;
	}
	n = wf_os_sendmsg(s->fd, &head, 0);
	if (is_busy(n))
		n = 0;
	if (n < 0)
		return n;
	*full = (size_t)n < length_of(iov, count);
	s->sealed += (uint64_t)n + KERNEL_MORE * (1 + (uint64_t)n / RECORD);
	return n;
}

ssize_t wf_tcp_tls_send(struct wf_tcp_session *s, const struct iovec *iov,
			unsigned int count, bool *full)
{
	struct wf_tcp_tls *tls = s->tls;
	ssize_t taken;
	int ret;

	*full = false;
	if (s->by_kernel & WF_TCP_KTLS_TX)
		return send_plain(s, iov, count, full);
	if (s->left) {
		ret = flush(s);
		*full = ret == -EAGAIN;
		if (ret)
			return *full ? 0 : ret;
	}
	if (!count)
		return 0;
	tls->out_len = 0;
	if (s->sealed > tls->rekey_after) {
		if (!tls->call->SSL_key_update(s->ssl,
					       SSL_KEY_UPDATE_NOT_REQUESTED))
			return -ECANCELED;
		s->sealed = 0;
	}
	s->mode = SEAL;
	taken = seal_all(s, iov, count);
	s->mode = OPEN;
	if (taken < 0)
		return fail(s);
	s->sealed += tls->out_len;
	ret = send_out(s);
	*full = s->left;
	return ret ? ret : taken;
}

/* -- what comes -------------------------------------------------------------- */

ssize_t wf_tcp_tls_take(struct wf_tcp_session *s, void *bytes, size_t len)
{
	const struct wf_tcp_ssl *call = s->tls->call;
	size_t got = 0;
	int ok;

	if (s->by_kernel & WF_TCP_KTLS_RX)
		return wf_os_recv(s->fd, bytes, len, 0);
	s->mode = DIRECT;
	ok = call->SSL_read_ex(s->ssl, bytes, len, &got);
	s->mode = OPEN;
	/* A greeting is a record of its own. */
	if (ok)
		return call->SSL_pending(s->ssl) ? -EPROTO : (ssize_t)got;
	if (is_waiting(s))
		return -EAGAIN;
	if (s->is_broken) {
		call->ERR_clear_error();
		return s->broken;
	}
	return fail(s);
}

/* All that is in tls->in, and what OpenSSL has of the record before. Bytes, or
 * -EPROTO. */
static ssize_t open_all(struct wf_tcp_session *s, const struct iovec *iov,
			unsigned int count)
{
	const struct wf_tcp_ssl *call = s->tls->call;
	size_t total = 0, at = 0;
	unsigned int i = 0;

	while (i < count) {
		size_t got = 0;

		if (at == iov[i].iov_len) {
			at = 0;
			i++;
			continue;
		}
		if (!call->SSL_read_ex(s->ssl, (uint8_t *)iov[i].iov_base + at,
				       iov[i].iov_len - at, &got))
			break;
		at += got;
		total += got;
	}
	/* There is room for all of it: it ends because no bytes are left. */
	if (i == count || !is_waiting(s))
		return fail(s);
	return (ssize_t)total;
}

/* A record that is not data (an alert, a new key) ends it with -EIO, and one that
 * was changed with -EBADMSG: the connection is over, as by fail(). */
static ssize_t recv_plain(struct wf_tcp_session *s, const struct iovec *iov,
			  unsigned int count, bool *drained)
{
	struct msghdr head = { .msg_iov = (struct iovec *)iov,
			       .msg_iovlen = count };
	ssize_t n = wf_os_recvmsg(s->fd, &head, 0);

	*drained = n < 0 || (size_t)n < length_of(iov, count);
	return n;
}

ssize_t wf_tcp_tls_recv(struct wf_tcp_session *s, const struct iovec *iov,
			unsigned int count, bool *drained)
{
	struct wf_tcp_tls *tls = s->tls;
	size_t room = length_of(iov, count), want = IN_ROOM;
	ssize_t n;

	if (s->by_kernel & WF_TCP_KTLS_RX)
		return recv_plain(s, iov, count, drained);
	/* A record may be nearly here already. */
	assert(room > 2 * (RECORD + RECORD_MORE));
	if (want > room - RECORD - RECORD_MORE)
		want = room - RECORD - RECORD_MORE;
	do {
		n = wf_os_recv(s->fd, tls->in, want, 0);
		*drained = n < 0 || (size_t)n < want;
		if (n <= 0)
			return n;
		tls->in_at = 0;
		tls->in_len = (size_t)n;
		s->mode = OPEN;
		n = open_all(s, iov, count);
	} while (!n && !*drained);
	return n ? n : -EAGAIN;
}
