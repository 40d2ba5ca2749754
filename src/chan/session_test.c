/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library and a device process that lies, or hangs up: a thread that speaks
 * the protocol, badly. Nothing of it is believed, nothing is left open.
 */
#include "chan/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "weft/wd_drv.h"

#define BYTES 8192u

/* How it lies; everything else is right. */
struct lie {
	int hello;	  /* status, and hangs up */
	bool hang_up;	  /* without a word */
	int devices;	  /* how many it claims */
	bool bad_records; /* ... which make no sense */
	uint64_t dus_offset, dus_size;
	uint64_t mmio_size;
	int fds; /* descriptors with an OPEN */
	bool unsealed;
	uint64_t file; /* size of it */
	bool wrong_op;
	bool short_reply;
	int open_status;
	uint64_t dma;
	uint64_t reserved; /* size of the memory */
	bool sva;
	bool honest_place;  /* SVA: memory is where it was asked for */
	int reserve_status; /* of a RESERVE */
	int reserve_fds;    /* descriptors with one */
	bool made;	    /* needs no descriptors of its own */
};

static const struct lie honest = {
	.devices = 1,
	.dus_offset = 4096,
	.dus_size = 4096,
	.mmio_size = 4096,
	.fds = 3,
	.file = BYTES,
	.dma = 0x100000000,
	.reserved = BYTES,
	.reserve_fds = 1,
};

/* A test sets `lie`; `told` is the lie that was told, `act` the one that the
 * thread acts on. */
static struct lie lie, told, act;
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static int listener, quit[2], made[3];
static pthread_t thread;
static char name[64];
static atomic_int opens, closes, current;
static atomic_int lent; /* descriptors that were sent, and are not closed yet */
static _Atomic uint64_t place; /* what the last RESERVE asked for */

/* The thread's own copy of it. */
static void think(void)
{
	pthread_mutex_lock(&told_lock);
	act = told;
	pthread_mutex_unlock(&told_lock);
}

/* The test's word. */
static void tell(void)
{
	pthread_mutex_lock(&told_lock);
	told = lie;
	pthread_mutex_unlock(&told_lock);
}

static int make_file(uint64_t size, bool sealed)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, (off_t)size) ||
	    (sealed && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		abort();
	return fd;
}

static void send_fds(int sock, const struct wf_broker_reply *reply,
		     const int *fds, int n)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)reply,
			     sizeof(*reply) - (act.short_reply ? 8 : 0) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, (size_t)n * sizeof(int));
	}
	lent += n;
	sendmsg(sock, &msg, MSG_NOSIGNAL);
	for (int i = 0; i < n && !act.made; i++)
		close(fds[i]);
	lent -= n;
}

static void fill_record(struct wf_broker_record *record, uint32_t index)
{
	*record = (struct wf_broker_record){
		.node_id = -1,
		.iommu_type = act.sva ? WD_IOMMU_SVA : WD_IOMMU_SHARE_DOMAIN,
		.available_instances = 1,
		.offset = { 0, act.dus_offset, 0 },
		.size = { act.mmio_size, act.dus_size, 0 },
		.api = "x",
		.algs = "nop",
	};
	snprintf(record->name, sizeof(record->name), "liar-%u", index);
	if (act.bad_records && index % 2)
		record->iommu_type = 3;
	else if (act.bad_records)
		memset(record->name, 'x', sizeof(record->name));
}

static int make_fds(const struct wf_broker_request *request, int *fds)
{
	int n = 0;

	if (act.made && request->op == WF_BROKER_OPEN) {
		memcpy(fds, made, sizeof(made));
		return 3;
	}
	if (request->op == WF_BROKER_OPEN && act.fds)
		fds[n++] = make_file(act.file, !act.unsealed);
	while (request->op == WF_BROKER_OPEN && n < act.fds)
		fds[n++] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	while (request->op == WF_BROKER_RESERVE && n < act.reserve_fds)
		fds[n++] = make_file(act.reserved, true);
	return n;
}

/* False: hangs up. */
static bool answer(int sock)
{
	struct wf_broker_request request;
	struct wf_broker_reply reply = { .magic = WF_BROKER_MAGIC,
					 .version = WF_BROKER_VERSION };
	int fds[8], n;

	if (recv(sock, &request, sizeof(request), 0) != sizeof(request))
		return false;
	think();
	reply.op = (uint16_t)(request.op + act.wrong_op);
	if (request.op == WF_BROKER_HELLO) {
		reply.op = request.op;
		reply.size = 1;
	} else if (request.op == WF_BROKER_DEVICE) {
		reply.op = request.op;
		if (request.index < (uint32_t)act.devices)
			fill_record(&reply.record, request.index);
		else
			reply.status = -ENOENT;
	} else if (request.op == WF_BROKER_OPEN) {
		reply.status = act.open_status;
		reply.chan = 7;
		opens++;
	} else if (request.op == WF_BROKER_CLOSE) {
		closes++;
	} else {
		if (request.op == WF_BROKER_RESERVE) {
			reply.status = act.reserve_status;
			place = request.offset;
		}
		reply.dma = act.honest_place ? request.offset : act.dma;
	}
	n = reply.status ? 0 : make_fds(&request, fds);
	send_fds(sock, &reply, fds, n);
	return true;
}

static void serve(int sock)
{
	struct wf_broker_reply reply = { .magic = WF_BROKER_MAGIC,
					 .version = WF_BROKER_VERSION,
					 .op = WF_BROKER_HELLO };

	think();
	reply.status = act.hello;
	if (act.hello)
		send_fds(sock, &reply, NULL, 0);
	if (!act.hello && !act.hang_up) {
		while (answer(sock))
			;
	}
	close(sock);
}

static void *liar(void *arg)
{
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN },
				{ .fd = quit[0], .events = POLLIN } };

	(void)arg;
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		current = sock;
		if (sock >= 0)
			serve(sock);
		current = -1;
	}
	return NULL;
}

static int setup(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	static int number;

	(void)state;
	lie = honest;
	tell();
	opens = closes = 0;
	snprintf(name, sizeof(name), P_tmpdir "/weft-liar-%d-%d", (int)getpid(),
		 number++);
	strcpy(un.sun_path, name);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&un, sizeof(un)) ||
	    listen(listener, 5) || pipe2(quit, O_CLOEXEC))
		return -1;
	setenv("WEFT_DEVD", name, 1);
	setenv("WEFT_SYSFS", "/nonexistent", 1);
	return pthread_create(&thread, NULL, liar, NULL);
}

static int teardown(void **state)
{
	(void)state;
	close(quit[1]);
	shutdown(current, SHUT_RDWR); /* a test that failed left it open */
	pthread_join(thread, NULL);
	close(quit[0]);
	close(listener);
	unlink(name);
	return 0;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int request(struct wd_chan *ch)
{
	*ch = (struct wd_chan){ .dev_path = "liar-0" };
	tell();
	return wd_request_channel(ch);
}

/* -- what it claims -------------------------------------------------------- */

static void test_honest(void **state)
{
	struct wd_chan ch;

	(void)state;
	assert_int_equal(request(&ch), 0);
	assert_non_null(wd_reserve_mem(&ch, BYTES));
	assert_int_equal(wd_drv_start(&ch), 0);
	assert_int_equal(wd_drv_alive(&ch), 1);
	wd_release_channel(&ch);
	assert_int_equal(opens, 1);
	assert_int_equal(closes, 1);
}

static void test_endless_list(void **state)
{
	struct uacce_dev_info *list;

	(void)state;
	lie.devices = INT32_MAX;
	tell();
	assert_int_equal(wd_list_devices(NULL, &list), WF_BROKER_DEVICES_MAX);
	wd_free_devices(list);
	lie.bad_records = true;
	tell();
	assert_int_equal(wd_list_devices(NULL, &list), 0);
	assert_null(list);
}

static void refuse_open(int status)
{
	struct wd_chan ch, hold;
	struct lie as_is = lie;
	int before;

	/* Holds the connection, so that nothing hides behind its end. */
	lie = honest;
	lie.devices = as_is.devices;
	assert_int_equal(request(&hold), 0);
	lie = as_is;
	opens = closes = 0;
	while (lent)
		usleep(100);
	before = count_fds();
	assert_int_equal(request(&ch), status);
	assert_null(ch.core);
	assert_int_equal(ch.fd, -1);
	/* Every descriptor that the device has opened is closed again. */
	assert_int_equal(opens, closes);
	/* Its own descriptors come and go in the same process. */
	for (int i = 0; i < 60000 && count_fds() != before; i++)
		usleep(1000);
	assert_int_equal(count_fds(), before);
	lie = honest;
	wd_release_channel(&hold);
}

static void test_bad_regions(void **state)
{
	(void)state;
	lie.fds = 0;
	refuse_open(-EPROTO);
	lie.fds = 1;
	refuse_open(-EPROTO);
	lie.fds = 2;
	refuse_open(-EPROTO);
	lie = honest;
	lie.unsealed = true;
	refuse_open(-EPROTO);
	lie = honest;
	lie.file = 4096;
	refuse_open(-EPROTO);
	lie = honest;
	lie.mmio_size = BYTES + 1;
	refuse_open(-EPROTO);
	lie = honest;
	lie.dus_offset = BYTES;
	refuse_open(-EPROTO);
	/* Their sum is 0. */
	lie.dus_offset = 1ull << 63;
	lie.dus_size = 1ull << 63;
	refuse_open(-EPROTO);
	lie.dus_offset = UINT64_MAX - 4095;
	lie.dus_size = 4096;
	refuse_open(-EPROTO);
}

static void test_bad_memory(void **state)
{
	struct wd_chan ch;

	(void)state;
	for (int i = 0; i < 3; i++) {
		lie = honest;
		lie.dma = i == 0 ? 0 : i == 1 ? UINT64_MAX - 100 : lie.dma;
		lie.reserved = i == 2 ? 4096 : BYTES;
		assert_int_equal(request(&ch), 0);
		assert_null(wd_reserve_mem(&ch, BYTES));
		assert_int_equal(errno, EPROTO);
		assert_null(ch.ss_va);
		assert_int_equal(wd_get_dma_from_va(&ch, &ch), 0);
		wd_release_channel(&ch);
	}
}

static bool is_free(uint64_t at)
{
	void *want = (void *)(uintptr_t)at;
	void *got =
		mmap(want, BYTES, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got != MAP_FAILED)
		munmap(got, BYTES);
	return got == want;
}

/* Bug: an address that the device may have mapped, because the answer to that was
 * lost or made no sense, was given to other memory. */
static void test_place_that_may_be_mapped(void **state)
{
	static const struct {
		int status, fds;
		bool honest_place, kept;
	} cases[] = {
		{ -EDQUOT, 1, true, false },   /* refused */
		{ -ETIMEDOUT, 1, true, true }, /* nobody knows */
		{ 0, 5, true,
		  true }, /* more descriptors than we have room for */
		{ 0, 1, false, true }, /* somewhere else */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wd_chan ch;
		uint64_t used;

		lie.sva = true;
		lie.reserve_status = cases[i].status;
		lie.reserve_fds = cases[i].fds;
		lie.honest_place = cases[i].honest_place;
		assert_int_equal(request(&ch), 0);
		used = (uint64_t)(uintptr_t)wd_reserve_mem(&ch, BYTES);
		/* Memory that the device has not mapped serves, too. */
		assert_true(used);
		assert_true(place);
		if (cases[i].kept) {
			assert_int_not_equal(used, place);
			assert_false(is_free(place));
		} else {
			assert_true(used == place || is_free(place));
		}
		wd_release_channel(&ch);
		if (cases[i].kept)
			munmap((void *)(uintptr_t)place, BYTES);
	}
}

/* -- how it ends ----------------------------------------------------------- */

static void test_refusals(void **state)
{
	struct uacce_dev_info *list;
	struct wd_chan ch;

	(void)state;
	for (int i = 0; i < 20; i++) {
		lie.hello = i % 2 ? -EACCES : -EBUSY;
		assert_int_equal(request(&ch), lie.hello);
	}
	/* The list is of what can be had. */
	assert_int_equal(wd_list_devices(NULL, &list), 0);
	lie.hello = 0;
	lie.hang_up = true;
	assert_int_equal(request(&ch), -ENODEV);
	lie = honest;
	lie.open_status = -EBUSY;
	assert_int_equal(request(&ch), -EBUSY);
	lie.open_status = -ENOMEM;
	assert_int_equal(request(&ch), -ENOMEM);
	/* No errno of ours. */
	lie.open_status = 5;
	assert_int_equal(request(&ch), -ENODEV);
	lie = honest;
	lie.wrong_op = true;
	assert_int_equal(request(&ch), -ENODEV);
	lie = honest;
	lie.short_reply = true;
	assert_int_equal(request(&ch), -ENODEV);
	lie = honest;
	assert_int_equal(request(&ch), 0);
	wd_release_channel(&ch);
}

/* A bug: a channel whose descriptors found no room stayed open in the device,
 * and the reason was called a broken protocol. */
static void test_no_descriptors_left(void **state)
{
	struct rlimit before, none;
	struct wd_chan hold, ch;

	(void)state;
	assert_int_equal(request(&hold), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	made[0] = make_file(BYTES, true);
	made[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	made[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lie.made = true;
	opens = closes = 0;
	for (int more = 3; more < 40; more++) {
		int err;

		none = before;
		none.rlim_cur = (rlim_t)more;
		setrlimit(RLIMIT_NOFILE, &none);
		err = request(&ch);
		setrlimit(RLIMIT_NOFILE, &before);
		if (!err)
			wd_release_channel(&ch);
		else
			assert_int_equal(err, -EMFILE);
		assert_int_equal(opens, closes);
	}
	lie.made = false;
	tell();
	for (int i = 0; i < 3; i++)
		close(made[i]);
	wd_release_channel(&hold);
}

static void test_no_descriptor_for_memory(void **state)
{
	struct rlimit before, none;
	struct wd_chan ch;

	(void)state;
	assert_int_equal(request(&ch), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &none);
	assert_null(wd_reserve_mem(&ch, BYTES));
	assert_int_equal(errno, EMFILE);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_non_null(wd_reserve_mem(&ch, BYTES));
	wd_release_channel(&ch);
}

static bool may_wait; /* in connect() */

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);

/* The linker has the library's calls come here (src/meson.build). */
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	may_wait |= !(fcntl(fd, F_GETFL) & O_NONBLOCK);
	return __real_connect(fd, addr, len);
}

/* A bug: a device that was flooded, or whose name somebody had taken, made
 * every look at the devices take 5 s. */
static void test_full_backlog(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int full = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int waiting[8], n = 0;
	struct wd_chan ch = { .dev_path = "liar-0" };
	char path[80];

	(void)state;
	snprintf(path, sizeof(path), "%s-full", name);
	strcpy(un.sun_path, path);
	assert_int_equal(bind(full, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(full, 1), 0);
	do {
		waiting[n] = socket(
			AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	} while (!connect(waiting[n++], (struct sockaddr *)&un, sizeof(un)) &&
		 n < 8);
	assert_true(n < 8);
	setenv("WEFT_DEVD", path, 1);
	may_wait = false;
	assert_int_equal(wd_request_channel(&ch), -EBUSY);
	assert_false(may_wait);
	while (n)
		close(waiting[--n]);
	close(full);
	unlink(path);
}

static void keep_quiet(enum wf_log_level level, const char *func, int line,
		       const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	(void)text;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		TEST(test_honest),
		TEST(test_endless_list),
		TEST(test_bad_regions),
		TEST(test_bad_memory),
		TEST(test_place_that_may_be_mapped),
		TEST(test_refusals),
		TEST(test_no_descriptors_left),
		TEST(test_no_descriptor_for_memory),
		TEST(test_full_backlog),
	};

	wf_base_log_set_sink(keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
