/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a hostile client's socket can deliver before a request is looked at: packets
 * of any length, with as many descriptors as the kernel passes.
 */
#include "devd/harm_test.h"

#include <sys/eventfd.h>

#define MOST_FDS 253 /* in one message: SCM_MAX_FD of the kernel */

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.workers = 1;
	rig_fork(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_kill(&rig);
	return 0;
}

/* A packet of @len bytes that begins as a request does. */
static void send_cut(int sock, size_t len, int fd, size_t n)
{
	static char control[CMSG_SPACE(MOST_FDS * sizeof(int))];
	static char bytes[100000];
	struct wf_broker_request request = { .magic = WF_BROKER_MAGIC,
					     .version = WF_BROKER_VERSION,
					     .op = WF_BROKER_DEVICE };
	struct iovec iov = { bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	assert_true(len <= sizeof(bytes) && n <= MOST_FDS);
	memcpy(bytes, &request, sizeof(request));
	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (size_t i = 0; i < n; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd,
			       sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), len);
}

/* A packet of any other length than a request's ends its connection, whatever it
 * carries, and nothing of it stays. */
static void test_lengths(void **state)
{
	static const size_t carried[] = { 0, 1, 2, MOST_FDS };
	size_t whole = sizeof(struct wf_broker_request);
	int before = raw_count_fds(&rig), extra = eventfd(0, EFD_CLOEXEC);
	struct wf_broker_reply reply;

	(void)state;
	for (size_t len = 0; len <= 100000; len += len < 2 * whole ? 1 : 9999) {
		size_t n = carried[len % 4];
		int sock = raw_greet(rig.socket);

		assert_true(sock >= 0);
		send_cut(sock, len, extra, n);
		assert_int_equal(raw_take(sock, &reply, NULL, 0), len == whole);
		close(sock);
	}
	close(extra);
	raw_expect_fds(&rig, before);
	raw_expect_served();
}

/* As many descriptors as messages can carry, and nobody reads the replies until
 * all are sent. */
static void test_flood(void **state)
{
	enum { MESSAGES = 50 };
	int before = raw_count_fds(&rig), sock = raw_greet(rig.socket);
	int extra = eventfd(0, EFD_CLOEXEC);
	struct wf_broker_reply reply;
	struct wf_drv_device other;

	(void)state;
	assert_true(sock >= 0);
	assert_int_equal(rig_open(&other, "share-0", 1u << 16), 0);
	for (int i = 0; i < MESSAGES; i++) {
		send_cut(sock, sizeof(struct wf_broker_request), extra,
			 MOST_FDS);
		rig_nop(&other);
	}
	for (int i = 0; i < MESSAGES; i++) {
		assert_true(raw_take(sock, &reply, NULL, 0));
		assert_int_equal(reply.status, 0);
		assert_int_equal(reply.op, WF_BROKER_DEVICE);
	}
	/* The end comes before the last of them are read. */
	for (int i = 0; i < 5; i++)
		send_cut(sock, sizeof(struct wf_broker_request), extra,
			 MOST_FDS);
	close(sock);
	close(extra);
	wf_drv_device_close(&other);
	raw_expect_fds(&rig, before);
	raw_expect_served();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_lengths),
		TEST(test_flood),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
