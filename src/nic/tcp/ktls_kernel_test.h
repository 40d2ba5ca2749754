/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS of the kernel for a unit test on a kernel without it: records are made and
 * opened in this process, with the keys that setsockopt() got, between the calls
 * of the device and its sockets. It follows Linux in what the device depends on:
 * a record that was taken leaves by itself, recvmsg() returns data up to a record
 * that is not data, which ends it with -EIO, and memory that cannot be accessed
 * ends a call and not the stream. A kernel that has TLS is used instead.
 */
#ifndef WF_NIC_TCP_KTLS_KERNEL_TEST_H
#define WF_NIC_TCP_KTLS_KERNEL_TEST_H

#include <endian.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "nic/pair_test.h"
#include "nic/tcp/ktls_defs.h"
#include "os/file.h"
#include "os/socket.h"

#define KERNEL_FDS 1024
#define KERNEL_DATA 16384u
#define KERNEL_HEAD 5u
#define KERNEL_TAG 16u
#define KERNEL_RECORD (KERNEL_HEAD + KERNEL_DATA + 256u)
#define KERNEL_APP_DATA 23

/* The keys of a direction, and the number of its next record. */
struct kernel_keys {
	const EVP_CIPHER *cipher; /* NULL: not ours */
	uint8_t key[32];
	uint8_t iv[12];
	uint64_t number;
};

struct kernel_socket {
	bool attached;
	struct kernel_keys tx, rx;
	uint8_t out[KERNEL_RECORD]; /* a record that has not left */
	size_t out_at, out_len;
	uint8_t in[KERNEL_RECORD]; /* a record that has not come */
	size_t in_len;
	uint8_t plain[KERNEL_RECORD]; /* of one that has */
	size_t plain_at, plain_len;
	int error;
};

static struct kernel_socket *kernel_sockets[KERNEL_FDS];
/* Options of WF_TCP_KTLS_LEVEL that are refused, as bits. */
static unsigned int kernel_refuses;

int __real_wf_os_setsockopt(int fd, int level, int name, const void *value,
			    socklen_t len);
ssize_t __real_wf_os_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_wf_os_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __real_wf_os_sendmsg(int fd, const struct msghdr *head, int flags);
ssize_t __real_wf_os_recvmsg(int fd, struct msghdr *head, int flags);
int __real_wf_os_shutdown(int fd, int how);
int __real_wf_os_close(int fd);
int __real_wf_os_epoll_wait(int fd, struct epoll_event *events, int most,
			    int timeout_ms);
int __wrap_wf_os_setsockopt(int fd, int level, int name, const void *value,
			    socklen_t len);
ssize_t __wrap_wf_os_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_wf_os_recv(int fd, void *bytes, size_t len, int flags);
ssize_t __wrap_wf_os_sendmsg(int fd, const struct msghdr *head, int flags);
ssize_t __wrap_wf_os_recvmsg(int fd, struct msghdr *head, int flags);
int __wrap_wf_os_shutdown(int fd, int how);
int __wrap_wf_os_close(int fd);
int __wrap_wf_os_epoll_wait(int fd, struct epoll_event *events, int most,
			    int timeout_ms);

static struct kernel_socket *kernel_find(int fd)
{
	return fd >= 0 && fd < KERNEL_FDS ? kernel_sockets[fd] : NULL;
}

/* -- keys -------------------------------------------------------------------- */

static int kernel_attach(int fd)
{
	struct tcp_info info = { .tcpi_state = 0 };
	socklen_t len = sizeof(info);

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	if (info.tcpi_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	assert_in_range(fd, 0, KERNEL_FDS - 1);
	if (kernel_sockets[fd])
		return -EEXIST;
	kernel_sockets[fd] = calloc(1, sizeof(**kernel_sockets));
	assert_non_null(kernel_sockets[fd]);
	kernel_sockets[fd]->attached = true;
	return 0;
}

static int kernel_set(struct kernel_socket *s, int option, const void *value,
		      socklen_t len)
{
	struct kernel_keys *k =
		option == WF_TCP_KTLS_OPTION_TX ? &s->tx : &s->rx;
	const struct wf_tcp_ktls_aes *aes = value;
	const struct wf_tcp_ktls_chacha *chacha = value;

	if (k->cipher)
		return -EBUSY;
	assert_int_equal(aes->version, WF_TCP_KTLS_VERSION);
	if (aes->cipher == WF_TCP_KTLS_AES && len == sizeof(*aes)) {
		memcpy(k->key, aes->key, sizeof(aes->key));
		memcpy(k->iv, aes->salt, sizeof(aes->salt));
		memcpy(k->iv + sizeof(aes->salt), aes->iv, sizeof(aes->iv));
		memcpy(&k->number, aes->record, sizeof(aes->record));
		k->cipher = EVP_aes_128_gcm();
	} else if (aes->cipher == WF_TCP_KTLS_CHACHA &&
		   len == sizeof(*chacha)) {
		memcpy(k->key, chacha->key, sizeof(chacha->key));
		memcpy(k->iv, chacha->iv, sizeof(chacha->iv));
		memcpy(&k->number, chacha->record, sizeof(chacha->record));
		k->cipher = EVP_chacha20_poly1305();
	} else {
		return -EINVAL;
	}
	k->number = be64toh(k->number);
	return 0;
}

int __wrap_wf_os_setsockopt(int fd, int level, int name, const void *value,
			    socklen_t len)
{
	int ret;

	if (level == WF_TCP_KTLS_LEVEL && kernel_refuses & 1u << name)
		return -EINVAL;
	ret = __real_wf_os_setsockopt(fd, level, name, value, len);
	if (ret == -ENOENT && level == IPPROTO_TCP && name == WF_TCP_KTLS_ULP)
		return kernel_attach(fd);
	if (ret && level == WF_TCP_KTLS_LEVEL && kernel_find(fd))
		return kernel_set(kernel_find(fd), name, value, len);
	return ret;
}

/* -- records ----------------------------------------------------------------- */

/* RFC 8446, 5.2 and 5.3. In place; the tag follows the text. False: the record
 * was changed, or has another number or key. */
static bool kernel_crypt(struct kernel_keys *k, uint8_t *record, size_t len,
			 bool seals)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t *text = record + KERNEL_HEAD, nonce[12];
	uint64_t number = htobe64(k->number++);
	int part, ok;

	assert_non_null(ctx);
	memcpy(nonce, k->iv, sizeof(nonce));
	for (unsigned int i = 0; i < 8; i++)
		nonce[4 + i] ^= ((const uint8_t *)&number)[i];
	ok = EVP_CipherInit_ex(ctx, k->cipher, NULL, k->key, nonce, seals);
	if (ok && !seals)
		ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, KERNEL_TAG,
					 text + len);
	ok = ok && EVP_CipherUpdate(ctx, NULL, &part, record, KERNEL_HEAD) &&
	     EVP_CipherUpdate(ctx, text, &part, text, (int)len) &&
	     EVP_CipherFinal_ex(ctx, text + part, &part);
	if (ok && seals)
		ok = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, KERNEL_TAG,
					 text + len);
	EVP_CIPHER_CTX_free(ctx);
	return ok;
}

static void kernel_name(uint8_t *record, size_t len)
{
	record[0] = KERNEL_APP_DATA;
	record[1] = 3;
	record[2] = 3;
	record[3] = (uint8_t)(len >> 8);
	record[4] = (uint8_t)len;
}

/* 0: nothing of a record is left. */
static int kernel_push(int fd, struct kernel_socket *s)
{
	ssize_t n;

	if (s->out_at == s->out_len)
		return 0;
	n = __real_wf_os_send(fd, s->out + s->out_at, s->out_len - s->out_at,
			      0);
	if (n < 0)
		return (int)n;
	s->out_at += (size_t)n;
	return s->out_at < s->out_len ? -EAGAIN : 0;
}

static void kernel_push_all(void)
{
	for (int fd = 0; fd < KERNEL_FDS; fd++) {
		if (kernel_sockets[fd])
			(void)kernel_push(fd, kernel_sockets[fd]);
	}
}

/* Bytes between this process and itself, up to those that cannot be accessed. */
static size_t kernel_copy(void *to, const void *from, size_t len, bool out)
{
	struct iovec local = { out ? (void *)from : to, len };
	struct iovec remote = { out ? to : (void *)from, len };
	ssize_t n =
		out ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0) :
		      process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

/* -- what goes --------------------------------------------------------------- */

/* A record of what begins at *@i, *@at of the vector. Bytes. */
static size_t kernel_gather(struct kernel_socket *s, const struct msghdr *head,
			    size_t *i, size_t *at, bool *bad)
{
	size_t len = 0;

	while (*i < head->msg_iovlen && len < KERNEL_DATA && !*bad) {
		const struct iovec *iov = &head->msg_iov[*i];
		size_t part = iov->iov_len - *at, got;

		if (part > KERNEL_DATA - len)
			part = KERNEL_DATA - len;
		got = kernel_copy(s->out + KERNEL_HEAD + len,
				  (const uint8_t *)iov->iov_base + *at, part,
				  false);
		*bad = got < part;
		len += got;
		*at += got;
		if (*at == iov->iov_len) {
			*at = 0;
			++*i;
		}
	}
	return len;
}

ssize_t __wrap_wf_os_sendmsg(int fd, const struct msghdr *head, int flags)
{
	struct kernel_socket *s = kernel_find(fd);
	size_t taken = 0, i = 0, at = 0;
	bool bad = false;
	int ret = 0;

	kernel_push_all();
	if (!s || !s->tx.cipher)
		return __real_wf_os_sendmsg(fd, head, flags);
	for (;;) {
		size_t len;

		ret = kernel_push(fd, s);
		if (ret)
			break;
		len = kernel_gather(s, head, &i, &at, &bad);
		if (!len)
			break;
		s->out[KERNEL_HEAD + len] = KERNEL_APP_DATA;
		kernel_name(s->out, len + 1 + KERNEL_TAG);
		assert_true(kernel_crypt(&s->tx, s->out, len + 1, true));
		s->out_at = 0;
		s->out_len = KERNEL_HEAD + len + 1 + KERNEL_TAG;
		taken += len;
	}
	if (taken)
		return (ssize_t)taken;
	return bad ? -EFAULT : ret;
}

ssize_t __wrap_wf_os_send(int fd, const void *bytes, size_t len, int flags)
{
	struct iovec iov = { (void *)bytes, len };
	struct msghdr head = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_wf_os_sendmsg(fd, &head, flags);
}

/* -- what comes -------------------------------------------------------------- */

/* Opens the next record. 1: it is there; 0: the end of the stream; -errno. */
static int kernel_open(int fd, struct kernel_socket *s)
{
	size_t want = KERNEL_HEAD;

	if (s->error)
		return s->error;
	for (;;) {
		ssize_t n;

		if (s->in_len >= KERNEL_HEAD)
			want = KERNEL_HEAD + ((size_t)s->in[3] << 8 | s->in[4]);
		if (want > sizeof(s->in))
			return s->error = -EMSGSIZE;
		if (s->in_len == want)
			break;
		n = __real_wf_os_recv(fd, s->in + s->in_len, want - s->in_len,
				      0);
		if (n <= 0)
			return (int)n;
		s->in_len += (size_t)n;
	}
	s->in_len = 0;
	want -= KERNEL_HEAD + KERNEL_TAG;
	if (!kernel_crypt(&s->rx, s->in, want, false))
		return s->error = -EBADMSG;
	if (s->in[KERNEL_HEAD + want - 1] != KERNEL_APP_DATA)
		return s->error = -EIO;
	s->plain_at = 0;
	s->plain_len = want - 1;
	memcpy(s->plain, s->in + KERNEL_HEAD, s->plain_len);
	return 1;
}

ssize_t __wrap_wf_os_recvmsg(int fd, struct msghdr *head, int flags)
{
	struct kernel_socket *s = kernel_find(fd);
	size_t i = 0, at = 0, total = 0;
	ssize_t ret = 0;

	kernel_push_all();
	if (!s || !s->rx.cipher)
		return __real_wf_os_recvmsg(fd, head, flags);
	while (i < head->msg_iovlen) {
		const struct iovec *iov = &head->msg_iov[i];
		size_t part = iov->iov_len - at, got;

		if (!part) {
			at = 0;
			i++;
			continue;
		}
		if (s->plain_at == s->plain_len) {
			ret = kernel_open(fd, s);
			if (ret <= 0)
				break;
		}
		if (part > s->plain_len - s->plain_at)
			part = s->plain_len - s->plain_at;
		got = kernel_copy((uint8_t *)iov->iov_base + at,
				  s->plain + s->plain_at, part, true);
		at += got;
		total += got;
		s->plain_at += got;
		if (got < part) {
			ret = -EFAULT;
			break;
		}
	}
	return total ? (ssize_t)total : ret;
}

ssize_t __wrap_wf_os_recv(int fd, void *bytes, size_t len, int flags)
{
	struct iovec iov = { bytes, len };
	struct msghdr head = { .msg_iov = &iov, .msg_iovlen = 1 };

	return __wrap_wf_os_recvmsg(fd, &head, flags);
}

/* -- its end ----------------------------------------------------------------- */

int __wrap_wf_os_shutdown(int fd, int how)
{
	kernel_push_all();
	return __real_wf_os_shutdown(fd, how);
}

int __wrap_wf_os_close(int fd)
{
	if (kernel_find(fd)) {
		(void)kernel_push(fd, kernel_sockets[fd]);
		free(kernel_sockets[fd]);
		kernel_sockets[fd] = NULL;
	}
	return __real_wf_os_close(fd);
}

int __wrap_wf_os_epoll_wait(int fd, struct epoll_event *events, int most,
			    int timeout_ms)
{
	kernel_push_all();
	return __real_wf_os_epoll_wait(fd, events, most, timeout_ms);
}

#endif
