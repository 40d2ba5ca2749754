/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a client keeps when its channel is closed counts until it is
 * gone. The bug it guards against: a client that opened a channel, reserved
 * memory, kept the mapping and closed the channel, again and again, had all
 * memory of the machine, charged to the device, and no limit counted it.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "devd/kept.h"
#include "devd/raw_test.h"
#include "devd/rig_test.h"
#include "devd/server.h"

#define MIB (1u << 20)

static struct rig rig;

static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static int start(void **state)
{
	(void)state;
	rig_init(&rig);
	rig.config.client_channels = 8;
	rig_start(&rig);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	rig_stop(&rig);
	return 0;
}

/* Of 12 MiB that a client may have. */
static void test_mapping(void **state)
{
	struct wf_drv_device device, other;

	(void)state;
	/* The process stays the same client. */
	assert_int_equal(rig_open(&other, "share-1", 0), 0);
	for (int type = WD_IOMMU_SHARE_DOMAIN; type <= WD_IOMMU_NONE; type++) {
		uint8_t *kept;

		assert_int_equal(rig_open(&device, rig_names[type], 8 * MIB),
				 0);
		/* The same memory, once more. */
		kept = mremap(device.ch.ss_va, 0, 8 * MIB, MREMAP_MAYMOVE);
		assert_ptr_not_equal(kept, MAP_FAILED);
		kept[8 * MIB - 1] = 7;
		wf_drv_device_close(&device);
		assert_int_equal(rig_open(&device, rig_names[type], 0), 0);
		assert_null(wd_reserve_mem(&device.ch, 8 * MIB));
		assert_int_equal(errno, ENOMEM);
		/* It is the client's, with what is in it. */
		assert_int_equal(kept[8 * MIB - 1], 7);
		munmap(kept, 8 * MIB);
		assert_non_null(wd_reserve_mem(&device.ch, 8 * MIB));
		wf_drv_device_close(&device);
	}
	wf_drv_device_close(&other);
}

static int raw_hello(void)
{
	int sock = raw_connect(rig.socket);

	assert_true(sock >= 0);
	assert_int_equal(
		raw_ask(sock,
			(struct wf_broker_request){ .op = WF_BROKER_HELLO }),
		0);
	return sock;
}

/* Its status; *@fd is what the first descriptor was. */
static int raw_get(int sock, struct wf_broker_request request,
		   struct wf_broker_reply *reply, int *fd)
{
	int fds[WF_BROKER_FDS_MAX] = { -1, -1, -1 };

	if (raw_send(sock, request, NULL, 0) ||
	    !raw_take(sock, reply, fds, WF_BROKER_FDS_MAX))
		return -EPIPE;
	for (int i = 1; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	*fd = fds[0];
	return reply->status;
}

static int raw_open(int sock, uint32_t *chan, int *fd)
{
	struct wf_broker_request request = { .op = WF_BROKER_OPEN };
	struct wf_broker_reply reply;
	int status;

	strcpy(request.name, "share-0");
	status = raw_get(sock, request, &reply, fd);
	*chan = reply.chan;
	return status;
}

static int raw_close(int sock, uint32_t chan)
{
	return raw_ask(sock, (struct wf_broker_request){ .op = WF_BROKER_CLOSE,
							 .chan = chan });
}

/* The queues of a closed channel count as one. */
static void test_queues(void **state)
{
	int sock = raw_hello(), kept[8], fd;
	uint32_t chan;

	(void)state;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(raw_open(sock, &chan, &kept[i]), 0);
		assert_int_equal(raw_close(sock, chan), 0);
	}
	assert_int_equal(raw_open(sock, &chan, &fd), -EBUSY);
	/* A copy that can only be read is one, too. */
	for (int i = 0; i < 8; i++) {
		char path[32];
		int copy;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", kept[i]);
		copy = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(copy >= 0);
		close(kept[i]);
		kept[i] = copy;
	}
	assert_int_equal(raw_open(sock, &chan, &fd), -EBUSY);
	close(kept[0]);
	assert_int_equal(raw_open(sock, &chan, &fd), 0);
	close(fd);
	assert_int_equal(raw_close(sock, chan), 0);
	for (int i = 1; i < 8; i++)
		close(kept[i]);
	/* Many more than the limit, one after the other. */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(raw_open(sock, &chan, &fd), 0);
		close(fd);
		assert_int_equal(raw_close(sock, chan), 0);
	}
	close(sock);
}

/* A descriptor that only names the file is not counted by the kernel, and can open
 * it later: nothing is left in the file then. */
static void test_named(void **state)
{
	int sock = raw_hello(), fd, named;
	char path[32];
	uint32_t chan;
	struct stat st;

	(void)state;
	assert_int_equal(raw_open(sock, &chan, &fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	named = open(path, O_PATH | O_CLOEXEC);
	assert_true(named >= 0);
	assert_int_equal(fstat(named, &st), 0);
	assert_true(st.st_blocks > 0);
	close(fd);
	assert_int_equal(raw_close(sock, chan), 0);
	for (int i = 0; i < 1000 && st.st_blocks; i++) {
		usleep(10000);
		assert_int_equal(fstat(named, &st), 0);
	}
	assert_int_equal(st.st_blocks, 0);
	close(named);
	close(sock);
}

static int ready[2], hold[2];

/* Its connection ends, and it keeps 4 MiB. */
static void keeper(uint64_t arg)
{
	struct wf_broker_request reserve = { .op = WF_BROKER_RESERVE,
					     .size = 4 * MIB };
	struct wf_broker_reply reply;
	int sock, queues, memory;
	char byte = 0;

	(void)arg;
	rig_become_nobody();
	close(hold[1]);
	sock = raw_hello();
	RIG_MUST(!raw_open(sock, &reserve.chan, &queues));
	RIG_MUST(!raw_get(sock, reserve, &reply, &memory) && memory >= 0);
	close(queues);
	close(sock);
	RIG_MUST(write(ready[1], &byte, 1) == 1);
	while (read(hold[0], &byte, 1) < 0 && errno == EINTR)
		;
}

/* @arg: whether it is refused. The device may not yet know that a process has
 * ended. */
static void asks_for_more(uint64_t refused)
{
	uint64_t end = wf_base_clock_ns() + RIG_PATIENCE;
	struct wf_drv_device device;

	rig_become_nobody();
	RIG_MUST(!rig_open(&device, "share-0", 0));
	if (refused) {
		RIG_MUST(!wd_reserve_mem(&device.ch, 4 * MIB) &&
			 errno == ENOMEM);
		RIG_MUST(wd_reserve_mem(&device.ch, 2 * MIB));
	} else {
		while (!wd_reserve_mem(&device.ch, 4 * MIB)) {
			RIG_MUST(errno == ENOMEM && wf_base_clock_ns() < end);
			usleep(1000);
		}
	}
	wf_drv_device_close(&device);
}

/* It stays the user's when the client has ended. */
static void test_user(void **state)
{
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid())
		skip();
	rig_init(&rig);
	rig.config.allow_uid = "65534";
	rig.config.user_memory = 6 * MIB;
	rig_fork(&rig);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(hold), 0);
	pid = rig_spawn(keeper, 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	rig_expect_exit(rig_spawn(asks_for_more, 1));
	close(hold[1]);
	rig_expect_exit(pid);
	rig_expect_exit(rig_spawn(asks_for_more, 0));
	close(hold[0]);
	close(ready[0]);
	close(ready[1]);
	rig_kill(&rig);
}

/* A request of one user does not look at what others keep. The bug it guards
 * against: each refused request made the device ask the kernel about the memory
 * of all. */
static void test_sweeps_its_own(void **state)
{
	struct wf_devd *devd = calloc(1, sizeof(*devd));
	struct wf_devd_user users[2] = { { .clients = 1 }, { .clients = 1 } };
	struct wf_devd_client *clients = calloc(2, sizeof(*clients));
	struct wf_devd_kept *kept;
	int theirs[2];

	(void)state;
	assert_non_null(devd);
	assert_non_null(clients);
	wf_base_list_init(&devd->kept);
	for (int i = 0; i < 2; i++) {
		clients[i].devd = devd;
		clients[i].user = &users[i];
		clients[i].memory = users[i].memory = MIB;
		assert_int_equal(
			wf_devd_kept_make("test", MIB, &kept, &theirs[i]), 0);
		wf_devd_kept_add(&clients[i], kept, MIB, NULL);
		assert_int_equal(users[i].n_kept, 1);
	}
	close(theirs[0]);
	close(theirs[1]);
	wf_devd_kept_sweep_user(devd, &users[1]);
	assert_int_equal(users[0].n_kept, 1);
	assert_int_equal(users[0].memory, MIB);
	assert_int_equal(users[1].n_kept, 0);
	assert_int_equal(users[1].memory, 0);
	wf_devd_kept_sweep(devd);
	assert_int_equal(users[0].memory, 0);
	assert_int_equal(devd->n_kept, 0);
	free(clients);
	free(devd);
}

/* Once the memory is there, nothing more has to be allocated to count it. The bug
 * it guards against: without memory for an entry it was not counted. */
static void test_counts_without_memory(void **state)
{
	struct wf_devd *devd = calloc(1, sizeof(*devd));
	struct wf_devd_user user = { .clients = 1, .memory = MIB };
	struct wf_devd_client *client = calloc(1, sizeof(*client));
	struct wf_devd_kept *kept;
	int theirs;

	(void)state;
	assert_non_null(devd);
	assert_non_null(client);
	wf_base_list_init(&devd->kept);
	client->devd = devd;
	client->user = &user;
	client->memory = MIB;
	assert_int_equal(wf_devd_kept_make("test", MIB, &kept, &theirs), 0);
	no_memory = true;
	wf_devd_kept_add(client, kept, MIB, NULL);
	no_memory = false;
	assert_int_equal(user.memory, MIB);
	assert_int_equal(devd->n_kept, 1);
	close(theirs);
	wf_devd_kept_free_all(devd);
	assert_int_equal(user.memory, 0);
	free(client);
	free(devd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mapping, start, stop),
		cmocka_unit_test_setup_teardown(test_queues, start, stop),
		cmocka_unit_test_setup_teardown(test_named, start, stop),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_sweeps_its_own),
		cmocka_unit_test(test_counts_without_memory),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
