/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of waits: what a reader finds, also while the owner is in the middle of
 * writing, and what is left of them in a child.
 */
#include "base/waits.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct wf_addr addr = {
	.in = { .sin_family = AF_INET,
		.sin_port = 0x3930,
		.sin_addr = { 0x0100007f } },
};

static const struct wf_waits_bank *current_of(const struct wf_waits_page *page)
{
	return &page->banks[page->current];
}

static void write_one(struct wf_waits *waits, uint64_t now)
{
	struct wf_wait *wait;

	assert_true(wf_base_waits_begin(waits, WF_WAITS_MAX, now));
	wait = wf_base_waits_add(waits, WF_WAIT_SEND, WF_WAIT_FOR_MATCH, 5);
	assert_non_null(wait);
	wf_base_waits_peer(wait, &addr);
	wf_base_waits_publish(waits);
}

static void test_reader(void **state)
{
	const struct wf_waits_page *page;
	struct wf_waits waits;

	(void)state;
	wf_base_waits_open(&waits, &addr, 7);
	assert_non_null(waits.page);
	page = mmap(NULL, WF_WAITS_BYTES, PROT_READ, MAP_SHARED, waits.fd, 0);
	assert_true(page != MAP_FAILED);
	assert_int_equal(page->magic, WF_WAITS_MAGIC);
	assert_int_equal(page->pid, getpid());
	assert_int_equal(page->polled, 7);
	assert_string_equal(page->name, "127.0.0.1:12345");
	write_one(&waits, 100);
	assert_int_equal(current_of(page)->written, 100);
	assert_int_equal(current_of(page)->count, 1);
	assert_int_equal(current_of(page)->waits[0].since, 5);
	assert_string_equal(current_of(page)->waits[0].peer, "127.0.0.1:12345");
	/* A writer that is stopped here has not touched what readers see. */
	assert_true(wf_base_waits_begin(&waits, WF_WAITS_MAX, 200));
	assert_non_null(
		wf_base_waits_add(&waits, WF_WAIT_READ, WF_WAIT_FOR_ANSWER, 9));
	assert_int_equal(current_of(page)->written, 100);
	assert_int_equal(current_of(page)->waits[0].kind, WF_WAIT_SEND);
	wf_base_waits_publish(&waits);
	assert_int_equal(current_of(page)->written, 200);
	assert_int_equal(current_of(page)->waits[0].kind, WF_WAIT_READ);
	munmap((void *)page, WF_WAITS_BYTES);
	wf_base_waits_close(&waits);
	assert_null(waits.page);
}

/* Whoever can read can write: the owner must not use what it finds there. */
static void test_others_write(void **state)
{
	struct wf_waits_page *page;
	struct wf_waits waits;

	(void)state;
	wf_base_waits_open(&waits, &addr, 7);
	page = mmap(NULL, WF_WAITS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    waits.fd, 0);
	assert_true(page != MAP_FAILED);
	for (int round = 0; round < 3; round++) {
		assert_true(wf_base_waits_begin(&waits, WF_WAITS_MAX, 100));
		for (int i = 0; i < WF_WAITS_MAX; i++) {
			memset(page, 0xee, WF_WAITS_BYTES);
			assert_ptr_equal(wf_base_waits_add(&waits, WF_WAIT_SEND,
							   WF_WAIT_FOR_ROOM, 1),
					 &waits.bank->waits[i]);
		}
		assert_null(wf_base_waits_add(&waits, WF_WAIT_SEND,
					      WF_WAIT_FOR_ROOM, 1));
		assert_ptr_equal(waits.bank, &waits.page->banks[!(round & 1)]);
		wf_base_waits_publish(&waits);
		assert_int_equal(page->current, !(round & 1));
		assert_int_equal(current_of(page)->count, WF_WAITS_MAX);
	}
	munmap(page, WF_WAITS_BYTES);
	wf_base_waits_close(&waits);
}

static void test_full(void **state)
{
	struct wf_waits waits;

	(void)state;
	wf_base_waits_open(&waits, &addr, 7);
	assert_true(wf_base_waits_begin(&waits, WF_WAITS_MAX, 1));
	for (int i = 0; i < WF_WAITS_MAX; i++)
		assert_non_null(wf_base_waits_add(&waits, WF_WAIT_SEND,
						  WF_WAIT_FOR_ROOM, 1));
	for (int i = 0; i < 3; i++)
		assert_null(wf_base_waits_add(&waits, WF_WAIT_SEND,
					      WF_WAIT_FOR_ROOM, 1));
	wf_base_waits_publish(&waits);
	assert_int_equal(current_of(waits.page)->count, WF_WAITS_MAX);
	assert_int_equal(current_of(waits.page)->left_out, 3);
	wf_base_waits_close(&waits);
}

static void test_child(void **state)
{
	struct wf_waits waits;
	int status;
	pid_t pid;

	(void)state;
	wf_base_waits_open(&waits, &addr, 7);
	write_one(&waits, 100);
	pid = fork();
	if (!pid) {
		wf_base_waits_forked(&waits);
		/* All of them do nothing. */
		wf_base_waits_polled(&waits, 900);
		wf_base_waits_asleep(&waits, 900);
		_exit(wf_base_waits_begin(&waits, 1, 900) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(waits.page->polled, 7);
	assert_int_equal(current_of(waits.page)->written, 100);
	wf_base_waits_close(&waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_others_write),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
