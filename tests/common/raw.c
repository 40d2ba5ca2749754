/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer without weft's code.
 */
#include "common/raw.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/check.h"

#define DESCRIPTORS_MAX 253 /* the kernel's SCM_MAX_FD */

static socklen_t socket_name(struct sockaddr_un *un, uint16_t port)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)sprintf(un->sun_path + 1,
					   "weft/127.0.0.1:%u", port));
}

int weft_test_raw_connect(uint16_t port)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, port);

	CHECK_SYS(sock);
	CHECK_SYS(connect(sock, (struct sockaddr *)&un, len));
	return sock;
}

int weft_test_raw_listen(uint16_t port)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, port);

	CHECK_SYS(sock);
	CHECK_SYS(bind(sock, (struct sockaddr *)&un, len));
	CHECK_SYS(listen(sock, 16));
	return sock;
}

int weft_test_raw_memfd(size_t bytes, int seals)
{
	struct wf_shm_header header = {
		.magic = WF_SHM_MAGIC,
		.layout = WF_SHM_LAYOUT,
		.slots_log2 = WEFT_TEST_RAW_SLOTS,
		.lines_log2 = WEFT_TEST_RAW_LINES,
	};
	int fd = memfd_create("weft-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_SYS(fd);
	CHECK_SYS(ftruncate(fd, (off_t)bytes));
	CHECK_EQ(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	if (seals)
		CHECK_SYS(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

struct wf_shm_hello weft_test_raw_hello(uint16_t own_port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(own_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct wf_shm_hello hello = {
		.greeting = {
			.magic = WF_SHM_MAGIC,
			.layout = WF_SHM_LAYOUT,
			.size = sizeof(hello),
			.features = WF_SHM_FEATURES,
		},
		.process = 0x123456789,
		.slots_log2 = WEFT_TEST_RAW_SLOTS,
		.lines_log2 = WEFT_TEST_RAW_LINES,
	};

	memcpy(hello.addr, &sin, sizeof(sin));
	return hello;
}

void weft_test_raw_send(int sock, const void *buf, size_t len, int fd,
			int count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int) * DESCRIPTORS_MAX)];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	CHECK(count <= DESCRIPTORS_MAX);
	if (count) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
		for (int i = 0; i < count; i++)
			memcpy(CMSG_DATA(cmsg) + (size_t)i * sizeof(int), &fd,
			       sizeof(int));
	}
	CHECK_EQ(sendmsg(sock, &msg, MSG_NOSIGNAL), (ssize_t)len);
}

int weft_test_raw_recv(int sock, void *buf, size_t len, int ms)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	int ready = poll(&pfd, 1, ms);
	ssize_t got;

	CHECK_SYS(ready);
	if (!ready)
		return -1;
	/* Without room for control data the kernel keeps the descriptor. */
	got = recv(sock, buf, len, 0);
	return got > 0 ? (int)got : 0;
}

bool weft_test_raw_open(struct weft_test_raw *raw, uint16_t port,
			const struct wf_shm_hello *hello,
			struct wf_shm_welcome *welcome)
{
	raw->bytes =
		wf_shm_region_bytes(WEFT_TEST_RAW_SLOTS, WEFT_TEST_RAW_LINES);
	raw->memfd =
		weft_test_raw_memfd(raw->bytes, F_SEAL_SHRINK | F_SEAL_GROW);
	raw->base = mmap(NULL, raw->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 raw->memfd, 0);
	CHECK(raw->base != MAP_FAILED);
	raw->sock = weft_test_raw_connect(port);
	weft_test_raw_send(raw->sock, hello, sizeof(*hello), raw->memfd, 1);
	memset(welcome, 0, sizeof(*welcome));
	CHECK_EQ(
		weft_test_raw_recv(raw->sock, welcome, sizeof(*welcome), 10000),
		sizeof(*welcome));
	return !welcome->greeting.status;
}

void weft_test_raw_close(struct weft_test_raw *raw)
{
	munmap(raw->base, raw->bytes);
	close(raw->memfd);
	close(raw->sock);
}

struct wf_shm_slot *weft_test_raw_slot(struct weft_test_raw *raw,
				       uint32_t number)
{
	struct wf_shm_slot *slots = (void *)(raw->base + WF_SHM_SLOTS_AT);

	return &slots[number % (1u << WEFT_TEST_RAW_SLOTS)];
}

void weft_test_raw_publish(struct wf_shm_slot *slot, uint32_t number,
			   size_t len, uint8_t kind, uint8_t flags)
{
	atomic_store_explicit(&slot->word,
			      WF_SHM_WORD(number + 1, len, kind, flags),
			      memory_order_release);
}
