/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that mean harm: more connections, channels and descriptors than there
 * may be, memory that is not what it is said to be. The device is a process of
 * its own.
 */
#include "devd/harm_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/log.h"
#include "devd/errand.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	/* Not while a test looks: a process that lingers is ended by signals
	 * here. */
	wf_devd_errand_ms = 60000;
	rig.config.workers = 1;
	rig.config.clients = 20;
	rig.config.client_channels = 16;
	rig_fork(&rig);
	return 0;
}

static int setup_hasty(void **state)
{
	(void)state;
	rig_init(&rig);
	wf_devd_errand_ms = 50;
	rig.config.workers = 1;
	rig.config.clients = 20;
	rig_fork(&rig);
	return 0;
}

static int teardown(void **state)
{
	struct wf_drv_device device;

	(void)state;
	if (rig_open(&device, "sva-0", 0))
		return -1;
	rig_nop(&device);
	wf_drv_device_close(&device);
	rig_kill(&rig);
	return 0;
}

static int open_raw(int fd, const char *name, uint32_t *chan)
{
	struct wf_broker_request request = { .op = WF_BROKER_OPEN };
	int fds[WF_BROKER_FDS_MAX] = { -1, -1, -1 };
	struct wf_broker_reply reply;

	strcpy(request.name, name);
	assert_int_equal(raw_send(fd, request, NULL, 0), 0);
	assert_true(raw_take(fd, &reply, fds, WF_BROKER_FDS_MAX));
	*chan = reply.chan;
	for (int i = 0; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return reply.status;
}

/* -- more than there may be ------------------------------------------------ */

static void test_connections(void **state)
{
	enum { OPEN = 60 };
	struct wf_drv_device own;
	int fds[OPEN], before, served = 0;
	uint64_t end;

	(void)state;
	before = raw_count_fds(&rig);
	assert_int_equal(rig_open(&own, "share-0", 1u << 16), 0);
	for (int i = 0; i < OPEN; i++)
		fds[i] = -1;
	for (int i = 0; i < 3000; i++) {
		int *fd = &fds[i % OPEN];

		if (*fd >= 0)
			close(*fd);
		/* With and without a greeting, half a request, nothing. */
		*fd = raw_connect(rig.socket);
		assert_true(*fd >= 0);
		if (i % 3 == 0)
			send(*fd, "half", 4, MSG_NOSIGNAL);
		if (i % 100 == 0)
			rig_nop(&own);
	}
	assert_true(raw_count_fds(&rig) < before + 20 * 2 + 10);
	for (int i = 0; i < OPEN; i++)
		close(fds[i]);
	/* There is room again. */
	end = wf_base_clock_ns() + RIG_PATIENCE;
	while (served < 15 && wf_base_clock_ns() < end) {
		fds[served] = raw_greet(rig.socket);
		if (fds[served] >= 0)
			served++;
		else
			usleep(10000);
	}
	assert_int_equal(served, 15);
	for (int i = 0; i < served; i++)
		close(fds[i]);
	rig_nop(&own);
	wf_drv_device_close(&own);
	raw_expect_fds(&rig, before);
}

static void test_channels(void **state)
{
	int before = raw_count_fds(&rig), fd = raw_greet(rig.socket),
	    opened = 0;
	uint32_t chan, last = 0;

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 10000; i++) {
		int status = open_raw(fd, "noiommu-0", &chan);

		if (!status) {
			opened++;
			last = chan;
		} else {
			assert_int_equal(status, -EBUSY);
			assert_int_equal(chan, 0);
		}
	}
	assert_int_equal(opened, 16);
	assert_true(raw_count_fds(&rig) < before + 16 * 3 + 6);
	/* One back, one more. */
	assert_int_equal(
		raw_ask(fd, (struct wf_broker_request){ .op = WF_BROKER_CLOSE,
							.chan = last }),
		0);
	assert_int_equal(
		raw_ask(fd, (struct wf_broker_request){ .op = WF_BROKER_CLOSE,
							.chan = last }),
		-EINVAL);
	assert_int_equal(open_raw(fd, "noiommu-0", &chan), 0);
	assert_int_equal(open_raw(fd, "noiommu-0", &chan), -EBUSY);
	assert_int_equal(open_raw(fd, "nothing", &chan), -ENODEV);
	close(fd);
	raw_expect_fds(&rig, before);
}

/* Descriptors that nobody asked for, as many as the kernel passes. */
static void test_descriptors(void **state)
{
	int before = raw_count_fds(&rig), fd = raw_greet(rig.socket), extra[64];
	uint32_t chan;

	(void)state;
	assert_int_equal(open_raw(fd, "share-0", &chan), 0);
	for (int i = 0; i < 64; i++)
		extra[i] = eventfd(0, EFD_CLOEXEC);
	for (int i = 0; i < 500; i++) {
		struct wf_broker_request request = {
			.op = (uint16_t)(i % (WF_BROKER_OPS + 2)),
			.chan = chan,
			.size = 4096,
		};
		struct wf_broker_reply reply;

		if (request.op == WF_BROKER_CLOSE)
			request.chan = 0;
		assert_int_equal(
			raw_send(fd, request, extra, (size_t)(1 + i % 64)), 0);
		assert_true(raw_take(fd, &reply, NULL, 0));
		assert_true(reply.status <= 0);
	}
	/* The client's, its channel's, and those of queues and memory. */
	raw_expect_fds(&rig, before + 2 + 4);
	for (int i = 0; i < 64; i++)
		close(extra[i]);
	close(fd);
	raw_expect_fds(&rig, before);
}

/* A file that takes a minute to be closed: sent to us, never read. */
static int lingering_socket(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger minute = { .l_onoff = 1, .l_linger = 60 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(in);
	const int little = 4096, more = 1 << 16;
	static char data[1 << 12];

	/* Little goes through, so that something stays even when the system is
	 * short of memory for TCP. */
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &more, sizeof(more));
	if (bind(listener, (struct sockaddr *)&in, sizeof(in)) ||
	    listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&in, &len) ||
	    connect(fd, (struct sockaddr *)&in, sizeof(in)))
		skip(); /* no loopback here */
	/* The other side stays open in this process. */
	assert_true(accept4(listener, NULL, NULL, SOCK_CLOEXEC) >= 0);
	close(listener);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)),
		0);
	return fd;
}

static void halt(void)
{
	int status;

	kill(rig.pid, SIGSTOP);
	while (waitpid(rig.pid, &status, WUNTRACED) != rig.pid ||
	       !WIFSTOPPED(status))
		;
}

/* The device has it alone, with @n others before it, when it goes on: the
 * process that closes it last waits. */
static void send_lingering(int sock, uint16_t op, size_t n)
{
	int fds[2] = { eventfd(0, EFD_CLOEXEC), lingering_socket() };
	struct wf_broker_request request = { .op = op };

	assert_int_equal(raw_send(sock, request, &fds[1 - n], 1 + n), 0);
	close(fds[1]);
	close(fds[0]);
}

static int count_threads(void)
{
	char path[64];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)rig.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void expect_threads(int count)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (count_threads() != count) {
		assert_true(wf_base_clock_ns() < end);
		usleep(1000);
	}
}

/* A signal ends what lingers. */
static void pulse(void)
{
	halt();
	kill(rig.pid, SIGCONT);
	usleep(5000);
}

/* No thread is held any more. One that has not come to close() yet misses a
 * signal, so there are more of them. */
static void release(int threads)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;

	while (count_threads() != threads) {
		assert_true(wf_base_clock_ns() < end);
		pulse();
	}
}

/* One thread of the device is held, and nobody else. */
static void expect_held(int threads)
{
	kill(rig.pid, SIGCONT);
	expect_threads(threads + 1);
	raw_expect_served();
}

/* A bug: descriptors of clients were closed by the thread that serves all of
 * them, and a socket that lingers held it for as long as its owner liked. */
static void test_lingering_descriptors(void **state)
{
	int threads = count_threads();

	(void)state;
	/* With a request that wants none, with one that does, behind the one
	 * that is taken. */
	for (int i = 0; i < 3; i++) {
		static const uint16_t ops[] = { WF_BROKER_DEVICE,
						WF_BROKER_ATTACH,
						WF_BROKER_OPEN };
		int sock = raw_greet(rig.socket);

		halt();
		send_lingering(sock, ops[i], i == 2);
		expect_held(threads);
		release(threads);
	}
}

/* Nobody reads them, and the kernel closes them with the connection: behind a
 * message that makes no sense, behind an empty one, of somebody who is not let
 * in. */
static void test_unread_descriptors(void **state)
{
	int threads = count_threads(), fds[20], sock;

	(void)state;
	for (size_t len = 4; len <= 4; len -= 4) {
		halt();
		sock = raw_connect(rig.socket);
		assert_int_equal(send(sock, "half", len, 0), len);
		send_lingering(sock, WF_BROKER_HELLO, 0);
		close(sock);
		expect_held(threads);
		release(threads);
	}
	for (int i = 0; i < 20; i++) {
		fds[i] = raw_greet(rig.socket);
		assert_true(fds[i] >= 0);
	}
	halt();
	sock = raw_connect(rig.socket);
	send_lingering(sock, WF_BROKER_HELLO, 0);
	kill(rig.pid, SIGCONT);
	expect_threads(threads + 1);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	for (int i = 0; i < 10000 && (fds[0] = raw_greet(rig.socket)) < 0; i++)
		usleep(1000);
	assert_true(fds[0] >= 0);
	close(fds[0]);
	raw_expect_served();
	close(sock);
}

/* Whether the device has let in whoever is behind @sock. */
static bool is_answered(int sock)
{
	struct pollfd poll_fd = { .fd = sock, .events = POLLIN };
	struct wf_broker_reply reply;

	if (!poll(&poll_fd, 1, 0))
		return false;
	assert_true(raw_take(sock, &reply, NULL, 0));
	assert_int_equal(reply.status, 0);
	return true;
}

/* 70 come while there is no room, each with a descriptor that lingers: 64 of
 * them are refused and hold a thread each, the others wait at the door. */
static void crowd(int refused[70])
{
	int threads = count_threads(), fds[19];
	struct wf_drv_device own;

	assert_int_equal(rig_open(&own, "share-0", 0), 0);
	for (int i = 0; i < 19; i++) {
		fds[i] = raw_greet(rig.socket);
		assert_true(fds[i] >= 0);
	}
	halt();
	for (int i = 0; i < 70; i++) {
		refused[i] = raw_connect(rig.socket);
		assert_true(refused[i] >= 0);
		send_lingering(refused[i], WF_BROKER_HELLO, 0);
	}
	kill(rig.pid, SIGCONT);
	/* Each is told that it is refused. */
	for (int i = 0; i < 64; i++) {
		struct pollfd told = { .fd = refused[i], .events = POLLIN };

		assert_int_equal(
			poll(&told, 1, (int)(RIG_PATIENCE / WF_NS_PER_MS)), 1);
	}
	if (wf_devd_errand_ms > 1000)
		expect_threads(threads + 64);
	rig_nop(&own);
	for (int i = 0; i < 19; i++)
		close(fds[i]);
	wf_drv_device_close(&own);
}

/* Those who are refused can hold a limited number of threads; clients that are
 * in do not notice, and the door opens again. */
static void test_many_refused(void **state)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	int refused[70], late;

	(void)state;
	crowd(refused);
	for (int i = 64; i < 70; i++) {
		while (!is_answered(refused[i])) {
			assert_true(wf_base_clock_ns() < end);
			pulse();
		}
	}
	late = raw_greet(rig.socket);
	assert_true(late >= 0);
	close(late);
	for (int i = 0; i < 70; i++)
		close(refused[i]);
}

/* A bug: the door stayed shut for as long as those who were refused liked, who
 * need not be allowed to use the device. */
static void test_refused_for_long(void **state)
{
	struct pollfd late = { .events = POLLIN };
	struct wf_broker_request hello = { .op = WF_BROKER_HELLO };
	struct wf_broker_reply reply = { .status = -1 };
	int refused[70];

	(void)state;
	crowd(refused);
	/* Turned away until the clients of before are gone. */
	for (int i = 0; i < 1000 && reply.status; i++) {
		late.fd = raw_connect(rig.socket);
		(void)raw_send(late.fd, hello, NULL, 0);
		assert_int_equal(
			poll(&late, 1, (int)(RIG_PATIENCE / WF_NS_PER_MS)), 1);
		raw_take(late.fd, &reply, NULL, 0);
		close(late.fd);
		usleep(1000);
	}
	assert_int_equal(reply.status, 0);
	for (int i = 0; i < 70; i++)
		close(refused[i]);
}

/* Only the client's own memory, opened by the client itself, is used as such:
 * neither another process's, nor a file that only looks like it. */
static void test_forged_memory(void **state)
{
	struct wf_broker_request request = { .op = WF_BROKER_OPEN,
					     .name = "sva-0" };
	int before = raw_count_fds(&rig), sock = raw_greet(rig.socket);
	struct wf_broker_reply reply;
	char other[64];
	int fd;

	(void)state;
	snprintf(other, sizeof(other), "/proc/%d/mem", (int)rig.pid);
	const struct {
		const char *path;
		int flags;
		int status;
	} forged[] = {
		{ "/proc/self/mem", O_RDWR, 0 },
		{ "/proc/self/mem", O_RDONLY, -EPERM },
		{ "/proc/self/oom_score_adj", O_RDWR, -EPERM },
		{ "/dev/zero", O_RDWR, -EPERM },
		{ other, O_RDWR, -EPERM },
		{ NULL, 0, -EPERM },
	};

	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		fd = forged[i].path ?
			     open(forged[i].path, forged[i].flags | O_CLOEXEC) :
			     dup(sock);
		if (fd < 0)
			continue; /* a rule of the kernel's */
		assert_int_equal(raw_send(sock, request, &fd, 1), 0);
		assert_true(raw_take(sock, &reply, NULL, 0));
		assert_int_equal(reply.status, forged[i].status);
		close(fd);
	}
	close(sock);
	raw_expect_fds(&rig, before);
}

/* -- memory that lies ------------------------------------------------------ */

static int make_file(int seals, off_t size)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int attach(int sock, int fd, uint64_t offset, uint64_t size)
{
	struct wf_broker_request request = { .op = WF_BROKER_ATTACH,
					     .offset = offset,
					     .size = size };
	struct wf_broker_reply reply;
	int status;

	assert_int_equal(open_raw(sock, "share-0", &request.chan), 0);
	assert_int_equal(raw_send(sock, request, &fd, fd >= 0), 0);
	assert_true(raw_take(sock, &reply, NULL, 0));
	status = reply.status;
	assert_int_equal(
		raw_ask(sock,
			(struct wf_broker_request){ .op = WF_BROKER_CLOSE,
						    .chan = request.chan }),
		0);
	return status;
}

static void test_attach_lies(void **state)
{
	const uint64_t page = 4096;
	int before = raw_count_fds(&rig), sock = raw_greet(rig.socket);
	int good = make_file(F_SEAL_SHRINK, 4 * 4096);
	int soft = make_file(0, 4 * 4096);
	int fixed = make_file(F_SEAL_SHRINK | F_SEAL_WRITE, 4 * 4096);
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	int event = eventfd(0, EFD_CLOEXEC);
	char path[64];
	int reading;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", good);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reading >= 0);
	assert_int_equal(attach(sock, good, 0, 4 * page), 0);
	assert_int_equal(attach(sock, good, page, 3 * page), 0);
	const struct {
		int fd;
		uint64_t offset, size;
		int status;
	} lies[] = {
		{ -1, 0, page, -EINVAL },
		{ good, 0, 5 * page, -EINVAL },
		{ good, page, 4 * page, -EINVAL },
		{ good, 4 * page, page, -EINVAL },
		{ good, 1, page, -EINVAL },
		{ good, UINT64_MAX - page + 1, page, -EINVAL },
		{ good, UINT64_MAX - page + 1, 2 * page, -EINVAL },
		{ good, 1ull << 63, page, -EINVAL },
		{ good, 0, 0, -EINVAL },
		{ good, 0, page + 1, -EINVAL },
		{ good, 0, UINT64_MAX, -EINVAL },
		{ good, 0, UINT64_MAX - page + 1, -ENOMEM },
		{ soft, 0, page, -EPERM },
		{ fixed, 0, page, -EPERM },
		{ reading, 0, page, -EACCES },
		{ zero, 0, page, -EINVAL },
		{ event, 0, page, -EINVAL },
		{ sock, 0, page, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		assert_int_equal(
			attach(sock, lies[i].fd, lies[i].offset, lies[i].size),
			lies[i].status);
	close(good);
	close(soft);
	close(fixed);
	close(zero);
	close(event);
	close(reading);
	close(sock);
	raw_expect_fds(&rig, before);
}

static int share(int sock, uint32_t chan, uint32_t target)
{
	return raw_ask(sock, (struct wf_broker_request){ .op = WF_BROKER_SHARE,
							 .chan = chan,
							 .target = target });
}

/* The library would not ask for these. */
static void test_share_lies(void **state)
{
	int sock = raw_greet(rig.socket), other = raw_greet(rig.socket);
	uint32_t a, b, c, phys, foreign;

	(void)state;
	assert_int_equal(open_raw(sock, "share-0", &a), 0);
	assert_int_equal(open_raw(sock, "share-1", &b), 0);
	assert_int_equal(open_raw(sock, "share-0", &c), 0);
	assert_int_equal(open_raw(sock, "noiommu-0", &phys), 0);
	/* Numbers are each client's own: this one is not known here. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(open_raw(other, "share-0", &foreign), 0);
	assert_int_equal(share(sock, a, b), -EINVAL); /* has none */
	assert_int_equal(
		raw_ask(sock,
			(struct wf_broker_request){ .op = WF_BROKER_RESERVE,
						    .chan = a,
						    .size = 4096 }),
		0);
	assert_int_equal(share(sock, a, a), -EINVAL);
	assert_int_equal(share(sock, a, phys), -EINVAL);
	assert_int_equal(share(sock, a, foreign), -EINVAL);
	assert_int_equal(share(sock, foreign, a), -EINVAL);
	assert_int_equal(share(other, a, foreign), -EINVAL);
	assert_int_equal(share(sock, a, b), 0);
	assert_int_equal(share(sock, a, b), -EINVAL); /* has some */
	assert_int_equal(share(sock, b, c), 0);
	/* Started once. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			raw_ask(sock,
				(struct wf_broker_request){
					.op = WF_BROKER_START, .chan = a }),
			i ? -EINVAL : 0);
	close(sock);
	close(other);
}

/* Memory that the device has mapped loses its pages while jobs run on it. */
static void test_holes(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32, .src_len = 1u << 20 };
	struct wf_drv_device device;
	struct wf_drv_result result;

	(void)state;
	assert_int_equal(rig_open(&device, "share-0", 0), 0);
	job.src = wd_reserve_mem(&device.ch, job.src_len);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
		/* The queues themselves, too: they read as nothing. */
		madvise((void *)(uintptr_t)job.src, job.src_len, MADV_REMOVE);
		result = rig_result(&device, false);
		assert_true(!result.status || result.status == -EFAULT);
	}
	wf_drv_device_close(&device);
}

/* A device that says what cannot be is not believed either: the test writes
 * into its own copy of the completions. */
static void forge(struct wf_drv_device *device, struct wf_accel_done done)
{
	struct wf_accel_job *jobs = device->dus;
	struct wf_accel_done *ring = (void *)(jobs + device->mmio->depth);
	uint8_t src[10] = { 0 }, dst[20];
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = sizeof(src),
				  .dst_len = sizeof(dst) };
	struct wf_drv_result result;

	/* Not rung: the device knows nothing of it. */
	assert_int_equal(wf_drv_device_submit(device, &job, true), 0);
	done.word = device->slots[0].id | WF_ACCEL_PHASE;
	ring[0] = done;
	assert_int_equal(wf_drv_device_poll(device, &result, 1), 1);
	assert_int_equal(result.status, -EPROTO);
	assert_int_equal(result.produced, 0);
	assert_int_equal(result.consumed, 0);
}

static void test_lying_completion(void **state)
{
	struct wf_drv_device device;

	(void)state;
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	forge(&device, (struct wf_accel_done){ .consumed = 11 });
	wf_drv_device_close(&device);
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	forge(&device, (struct wf_accel_done){ .produced = 21 });
	wf_drv_device_close(&device);
}

/* A job that is completed twice, and one that there never was: they are counted,
 * and no job ends by them. */
static void test_stray_completions(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	struct wf_drv_result results[8];
	struct wf_drv_device device;
	struct wf_accel_done *ring;
	uint32_t id;

	(void)state;
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	ring = (void *)((struct wf_accel_job *)device.dus + device.mmio->depth);
	assert_int_equal(wf_drv_device_submit(&device, &job, true), 0);
	id = device.slots[0].id;
	for (int i = 0; i < 3; i++)
		ring[i].word = (i < 2 ? id : id + 77) | WF_ACCEL_PHASE;
	assert_int_equal(wf_drv_device_poll(&device, results, 8), 1);
	assert_int_equal(results[0].status, 0);
	assert_int_equal(device.strays, 2);
	assert_int_equal(wf_drv_device_submit(&device, &job, true), 0);
	assert_int_equal(wf_drv_device_poll(&device, results, 8), 0);
	assert_int_equal(wf_drv_device_in_flight(&device), 1);
	wf_drv_device_close(&device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_connections),
		TEST(test_channels),
		TEST(test_descriptors),
		TEST(test_attach_lies),
		TEST(test_share_lies),
		TEST(test_holes),
		TEST(test_lying_completion),
		TEST(test_stray_completions),
		TEST(test_forged_memory),
		TEST(test_lingering_descriptors),
		TEST(test_unread_descriptors),
		TEST(test_many_refused),
		cmocka_unit_test_setup_teardown(test_refused_for_long,
						setup_hasty, teardown),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
