/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check whose rights are used: the device stays who it is whatever
 * its clients are, and reaches their memory by the descriptors that they gave
 * it, not by a right to look into processes. Needs root, to be several users.
 */
#include "devd/rig_test.h"

#include <dirent.h>
#include <sys/syscall.h>

#include "base/log.h"

#define NOBODY 65534
#define OTHER_GROUP 65533

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s, line %d\n", #cond, __LINE__);     \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* In place of libc's: counts who is allowed to look into this process. */
static unsigned int allowed;

int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(args, unsigned long);
	va_end(args);
	allowed += option == PR_SET_PTRACER;
	return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2], arg[3]);
}

static void become(uid_t uid, gid_t gid)
{
	MUST(!setgid(gid) && !setuid(uid));
	/* A change of user takes it away. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* As a login would. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void use_sva(void)
{
	struct wf_drv_device device;
	/* Not through the stage. */
	uint8_t bytes[WF_ACCEL_STAGE_SLOT + 100];

	MUST(!rig_open(&device, "sva-0", 0));
	for (int i = 0; i < 50; i++)
		rig_check_crc(&device, bytes, sizeof(bytes));
	wf_drv_device_close(&device);
}

/* -- the device ------------------------------------------------------------ */

static struct rig rig;

static void attack(uint64_t arg)
{
	struct dirent *entry;
	char path[64];
	int threads = 0;
	DIR *dir;

	(void)arg;
	become(NOBODY, NOBODY);
	use_sva();
	MUST(kill(rig.pid, 0) == -1 && errno == EPERM);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)rig.pid);
	dir = opendir(path);
	MUST(dir);
	while ((entry = readdir(dir))) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		threads++;
		MUST(syscall(SYS_tgkill, rig.pid, tid, SIGKILL) == -1 &&
		     errno == EPERM);
		MUST(kill((pid_t)tid, SIGKILL) == -1 && errno == EPERM);
	}
	closedir(dir);
	MUST(threads >= 2);
	use_sva();
}

/* A bug: a thread of the device took on the user id of its client, who could
 * then send signals to all of root's device. */
static void test_cannot_be_killed(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	rig_init(&rig);
	rig.config.allow_uid = "any";
	rig.config.allow_sva = true;
	rig_fork(&rig);
	rig_expect_exit(rig_spawn(attack, 0));
	rig_kill(&rig);
}

/* -- the client ------------------------------------------------------------ */

static void serve_as_nobody(uint64_t ready)
{
	become(NOBODY, NOBODY);
	MUST(!wf_devd_open(&rig.config, &rig.devd));
	MUST(write((int)ready, "r", 1) == 1);
	wf_devd_run(rig.devd);
}

static void use_with_group(uint64_t gid)
{
	become(NOBODY, (gid_t)gid);
	use_sva();
}

/* A bug: a client of the same user, but of another group, got EPERM. */
static void test_other_group(void **state)
{
	int ready[2];
	char byte;

	(void)state;
	if (geteuid())
		skip();
	rig_init(&rig);
	assert_int_equal(pipe(ready), 0);
	rig.pid = rig_spawn(serve_as_nobody, (uint64_t)ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	rig_expect_exit(rig_spawn(use_with_group, NOBODY));
	rig_expect_exit(rig_spawn(use_with_group, OTHER_GROUP));
	rig_kill(&rig);
}

/* A bug: a program that only listed the devices allowed the device process to
 * look into it (PR_SET_PTRACER). Nobody needs that any more. */
static void test_nobody_is_allowed(void **state)
{
	struct uacce_dev_info *list;

	(void)state;
	rig_init(&rig);
	/* The device cannot reach us, which made the library allow it. */
	for (unsigned int i = 0; i < rig.config.n_devices; i++)
		rig.config.devices[i].iommu_type = WD_IOMMU_SHARE_DOMAIN;
	rig_fork(&rig);
	allowed = 0;
	assert_int_equal(wd_list_devices(NULL, &list), 4);
	wd_free_devices(list);
	assert_int_equal(allowed, 0);
	rig_kill(&rig);
	rig_init(&rig);
	rig_fork(&rig);
	use_sva();
	assert_int_equal(allowed, 0);
	rig_kill(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cannot_be_killed),
		cmocka_unit_test(test_other_group),
		cmocka_unit_test(test_nobody_is_allowed),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
