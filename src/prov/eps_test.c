/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the endpoints behind a queue: how a thread that polls in vain
 * rests.
 */
#include "prov/eps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "prov/ep.h"

#define POLLS 5000

static int rests, begins;
static struct wf_rest *counted; /* NULL: all are */

void __wrap_wf_base_rest(struct wf_rest *rest);
void __wrap_wf_base_rest_begin(struct wf_rest *rest);

/* The linker has the calls of weft come here (src/meson.build). */
void __wrap_wf_base_rest(struct wf_rest *rest)
{
	(void)rest;
	rests++;
}

void __wrap_wf_base_rest_begin(struct wf_rest *rest)
{
	if (!counted || counted == rest)
		begins++;
}

static void poll_all(struct wf_prov_eps *eps)
{
	for (int i = 0; i < POLLS; i++)
		wf_prov_eps_progress(eps);
}

/* Bug: with locks, the sleeps went on growing after a message: a row of them never
 * began anew, and the next message could wait for 10 ms. */
static void rest_of(bool locks)
{
	struct wf_prov_ep *ep = calloc(1, sizeof(*ep));
	struct wf_host host = { .txq = NULL };
	struct wf_prov_eps_link link;
	struct wf_prov_eps eps;

	assert_non_null(ep);
	wf_core_init(&ep->core.common, locks);
	assert_int_equal(wf_core_open(&ep->core.common, &host), 0);
	wf_prov_eps_init(&eps, locks);
	assert_true(wf_prov_eps_attach(&eps, &link, ep));
	rests = 0;
	begins = 0;
	poll_all(&eps);
	assert_true(rests > 0);
	assert_int_equal(begins, 1);
	poll_all(&eps);
	assert_int_equal(begins, 1);
	wf_transport_host_active(&ep->core.common.host);
	poll_all(&eps);
	assert_int_equal(begins, 2);
	wf_prov_eps_detach(&link);
	wf_core_close(&ep->core.common);
	free(ep);
}

static void test_rests_anew(void **state)
{
	(void)state;
	rest_of(false);
	rest_of(true);
}

/* As many polls as a queue needs to rest, of both in an order that fits no number
 * of polls between two rests. */
static int begins_of(struct wf_prov_eps both[2], int which)
{
	begins = 0;
	counted = &both[which].rest;
	for (int i = 0; i < POLLS; i++)
		wf_prov_eps_progress(&both[i % 7 < 3]);
	counted = NULL;
	return begins;
}

/* Bug: of the queues of an endpoint, one began anew. */
static void test_each_rests_anew(void **state)
{
	struct wf_prov_ep *ep = calloc(1, sizeof(*ep));
	struct wf_host host = { .txq = NULL };
	struct wf_prov_eps_link links[2];
	struct wf_prov_eps both[2];

	(void)state;
	assert_non_null(ep);
	wf_core_init(&ep->core.common, true);
	assert_int_equal(wf_core_open(&ep->core.common, &host), 0);
	for (int i = 0; i < 2; i++) {
		wf_prov_eps_init(&both[i], true);
		assert_true(wf_prov_eps_attach(&both[i], &links[i], ep));
	}
	for (int i = 0; i < 4; i++) {
		wf_transport_host_active(&ep->core.common.host);
		assert_int_equal(begins_of(both, i & 1), 1);
		assert_int_equal(begins_of(both, i & 1), 0);
	}
	for (int i = 0; i < 2; i++)
		wf_prov_eps_detach(&links[i]);
	wf_core_close(&ep->core.common);
	free(ep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rests_anew),
		cmocka_unit_test(test_each_rests_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
