/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a device that was told none: made, found by programs, shared
 * with nobody, and gone with the device. In the runtime folder of a user who
 * is not root, so that the system's own place is not touched.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"

#define NOBODY 65534
#define SQUATTER 65533

static char dir[64], path[WF_DEVD_SOCKET_SIZE], folder[80];

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s, line %d\n", #cond, __LINE__);     \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), P_tmpdir "/weft-run-XXXXXX");
	if (!mkdtemp(dir) || (!geteuid() && chown(dir, NOBODY, NOBODY)))
		return -1;
	snprintf(folder, sizeof(folder), "%s/weft", dir);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	setenv("WEFT_SYSFS", "/nonexistent", 1);
	unsetenv("WEFT_DEVD");
	return 0;
}

/* Nothing may be left. */
static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void become_user(void)
{
	if (!geteuid())
		MUST(!setgid(NOBODY) && !setuid(NOBODY));
}

static void configure(struct rig *rig)
{
	rig_init(rig);
	unsetenv("WEFT_DEVD");
	wf_devd_config_place(&rig->config, path);
}

static bool is_there(const char *name)
{
	struct stat st;

	return !lstat(name, &st);
}

static void serve_once(void)
{
	struct rig rig, second;
	struct wf_drv_device device;

	configure(&rig);
	rig_start(&rig);
	MUST(!strncmp(path, dir, strlen(dir)) && is_there(path));
	configure(&second);
	MUST(wf_devd_open(&second.config, &second.devd) == -EADDRINUSE);
	/* Programs find it without being told. */
	MUST(!rig_open(&device, "share-0", 0));
	rig_nop(&device);
	wf_drv_device_close(&device);
	rig_stop(&rig);
	MUST(!is_there(folder));
}

static void default_place(uint64_t arg)
{
	struct rig rig;
	struct stat st;

	(void)arg;
	become_user();
	serve_once();
	/* A killed one leaves its files, the next one takes them over. */
	configure(&rig);
	rig_fork(&rig);
	MUST(!lstat(folder, &st) && (st.st_mode & 07777) == 0700);
	kill(rig.pid, SIGKILL);
	waitpid(rig.pid, NULL, 0);
	MUST(is_there(path));
	serve_once();
}

static void test_default_place(void **state)
{
	(void)state;
	rig_expect_exit(rig_spawn(default_place, 0));
}

static void open_folder(uint64_t arg)
{
	struct rig rig;

	(void)arg;
	become_user();
	MUST(!mkdir(folder, 0700) && !chmod(folder, 0777));
	configure(&rig);
	MUST(wf_devd_open(&rig.config, &rig.devd) == -EPERM);
	MUST(!chmod(folder, 0700));
	serve_once();
}

/* In a folder that others can write to they could take its place. */
static void test_open_folder(void **state)
{
	(void)state;
	rig_expect_exit(rig_spawn(open_folder, 0));
}

static void come_and_go(uint64_t rounds)
{
	struct rig rig;

	become_user();
	for (uint64_t i = 0; i < rounds; i++) {
		int err;

		configure(&rig);
		err = wf_devd_open(&rig.config, &rig.devd);
		MUST(!err || err == -EADDRINUSE);
		if (!err)
			wf_devd_close(rig.devd);
	}
}

/* A bug: a device that started while another removed its folder said that the
 * folder was open to others. */
static void test_come_and_go(void **state)
{
	pid_t pids[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		pids[i] = rig_spawn(come_and_go, 100);
	for (int i = 0; i < 3; i++)
		rig_expect_exit(pids[i]);
}

/* A bug: any user could take the name of another's device, in the namespace of
 * abstract names, and that device could not start. */
static void test_squatted(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1,
			   "weft-devd-%u", geteuid() ? geteuid() : NOBODY);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	if (!geteuid())
		assert_int_equal(seteuid(SQUATTER), 0);
	assert_int_equal(
		bind(sock, (struct sockaddr *)&un,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
			     (socklen_t)len),
		0);
	assert_int_equal(listen(sock, 1), 0);
	assert_int_equal(seteuid(getuid()), 0);
	rig_expect_exit(rig_spawn(default_place, 0));
	close(sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		TEST(test_default_place),
		TEST(test_open_folder),
		TEST(test_come_and_go),
		TEST(test_squatted),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
