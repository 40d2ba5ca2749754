/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These tests check where device processes are looked for: only in folders that
 * nobody but their user or root can write to. Parts need root, to be two users.
 */
#include "chan/place.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

static char dir[64];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), P_tmpdir "/weft-place-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* Runs in a child, which may become somebody else. */
static void as_child(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define MUST(cond)                                                             \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s, line %d\n", #cond, __LINE__);     \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* -- the user's own -------------------------------------------------------- */

static void check_own(void)
{
	char socket[WF_CHAN_PLACE_SIZE], want[256], far[256];

	if (!geteuid()) {
		wf_chan_place_own(socket);
		MUST(!strcmp(socket, "/run/weft/devd.sock"));
		MUST(!chown(dir, NOBODY, NOBODY) && !setuid(NOBODY));
	}
	setenv("XDG_RUNTIME_DIR", dir, 1);
	wf_chan_place_own(socket);
	snprintf(want, sizeof(want), "%s/weft/devd.sock", dir);
	MUST(!strcmp(socket, want));
	/* Another user's, no folder, not from the root, too long, none. */
	snprintf(want, sizeof(want), "/tmp/weft-%u/devd.sock",
		 (unsigned int)geteuid());
	memset(far, '/', 120);
	strcpy(far + 120, dir);
	const char *const useless[] = { "/", "/nonexistent", ".", far, "" };

	for (size_t i = 0; i < sizeof(useless) / sizeof(useless[0]); i++) {
		setenv("XDG_RUNTIME_DIR", useless[i], 1);
		wf_chan_place_own(socket);
		MUST(!strcmp(socket, want));
	}
	unsetenv("XDG_RUNTIME_DIR");
	wf_chan_place_own(socket);
	MUST(!strcmp(socket, want));
}

static void test_own(void **state)
{
	(void)state;
	as_child(check_own);
}

/* -- what is safe ---------------------------------------------------------- */

static void check_list(void)
{
	char sockets[WF_CHAN_PLACES][WF_CHAN_PLACE_SIZE];
	char folder[128], want[256];
	int before;

	if (!geteuid())
		MUST(!chown(dir, NOBODY, NOBODY) && !setuid(NOBODY));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(folder, sizeof(folder), "%s/weft", dir);
	snprintf(want, sizeof(want), "%s/devd.sock", folder);
	before = wf_chan_place_list(sockets);
	MUST(!before || strcmp(sockets[0], want));
	MUST(!mkdir(folder, 0700));
	MUST(wf_chan_place_list(sockets) == before + 1);
	MUST(!strcmp(sockets[0], want));
	MUST(!chmod(folder, 0722));
	MUST(wf_chan_place_list(sockets) == before);
	MUST(!rmdir(folder) && !symlink("/", folder));
	MUST(wf_chan_place_list(sockets) == before);
	MUST(!unlink(folder));
}

static void test_list(void **state)
{
	(void)state;
	as_child(check_list);
}

/* A folder in /tmp that another user made first is not ours. */
static void test_other_owner(void **state)
{
	char socket[128];

	(void)state;
	if (geteuid())
		skip();
	snprintf(socket, sizeof(socket), "%s/devd.sock", dir);
	assert_int_equal(wf_chan_place_check(socket), 0);
	assert_int_equal(chown(dir, NOBODY, NOBODY), 0);
	assert_int_equal(wf_chan_place_check(socket), -EPERM);
}

/* A bug: in a user namespace without a number for this user, folders of all such
 * users seemed to be ours. */
static void check_unknown(void)
{
	char socket[128], own[WF_CHAN_PLACE_SIZE];

	snprintf(socket, sizeof(socket), "%s/devd.sock", dir);
	MUST(!wf_chan_place_check(socket));
	if (unshare(CLONE_NEWUSER))
		return; /* not allowed here */
	MUST(wf_chan_place_check(socket) == -EPERM);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	wf_chan_place_own(own);
	MUST(strncmp(own, dir, strlen(dir)));
}

static void test_unknown_owner(void **state)
{
	(void)state;
	as_child(check_unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		TEST(test_own),
		TEST(test_list),
		TEST(test_other_owner),
		TEST(test_unknown_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
