/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to addresses where nobody listens: each fails within
 * FI_WEFT_CONNECT_TIMEOUT, messages to others continue meanwhile, and a process
 * that starts in time is reached. A message to an address of another node fails
 * at once.
 */
#include "common/fabric.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#define TIMEOUT_MS 300

/* The machine may be busy, so only longer delays are errors. */
#define LATE_MS 60000

struct world {
	struct weft_test a;
	struct weft_test b;
	fi_addr_t to_b;
	fi_addr_t nobody;
	uint16_t free_port;
};

static void one_fails_others_go_on(struct world *w)
{
	struct fi_context small, large, confirmed;
	static uint8_t buf[100000];
	uint64_t begin = weft_test_ms(), took;
	int goes_on = 0, failed = 0;

	CHECK_OK(fi_tsend(w->a.ep, buf, 8, NULL, w->nobody, 1, &small));
	CHECK_OK(fi_tsend(w->a.ep, buf, sizeof(buf), NULL, w->nobody, 1,
			  &large));
	CHECK_OK(weft_test_tdeliver(&w->a, buf, 8, w->nobody, 1, &confirmed));
	while (failed < 3) {
		struct fi_context rx, tx;
		struct weft_test_comp comp;
		uint64_t in;

		CHECK_OK(weft_test_recv(&w->b, &in, sizeof(in), &rx));
		CHECK_OK(weft_test_send(&w->a, &begin, sizeof(begin), w->to_b,
					&tx));
		weft_test_wait_ok(w->b.rxcq, &rx);
		for (;;) {
			weft_test_wait(w->a.txcq, &comp);
			if (comp.entry.op_context == &tx)
				break;
			CHECK_EQ(comp.ret, -FI_EHOSTUNREACH);
			CHECK(comp.entry.op_context == &small ||
			      comp.entry.op_context == &large ||
			      comp.entry.op_context == &confirmed);
			failed++;
		}
		CHECK_EQ(comp.ret, 1);
		goes_on++;
		CHECK(weft_test_ms() - begin < TIMEOUT_MS + LATE_MS);
	}
	took = weft_test_ms() - begin;
	CHECK(took >= TIMEOUT_MS - 5); /* it waited for the whole time-out */
	CHECK(goes_on > 1);
	printf("gave up after %llu ms, %d messages to others meanwhile\n",
	       (unsigned long long)took, goes_on);
}

/* An accepted message fails with an error completion, although its success has
 * no completion (fi_cq(3)). Bug: the error was lost, and a program that waited
 * for the answer to an injected request waited for ever. */
static void inject_fails(struct world *w)
{
	uint64_t value = 0;

	for (int i = 0; i < 10; i++)
		CHECK_OK(weft_test_inject(&w->a, &value, sizeof(value),
					  w->nobody));
	for (int i = 0; i < 10; i++)
		weft_test_wait_err(w->a.txcq, NULL, FI_EHOSTUNREACH);
}

/* Shared memory accepts no injected message while nobody listens: the call
 * itself fails. */
static void inject_learns_it(struct world *w)
{
	uint64_t begin = weft_test_ms(), value = 0;
	ssize_t ret;

	if (weft_test_by_packets()) {
		inject_fails(w);
		return;
	}
	CHECK_EQ(fi_inject(w->a.ep, &value, sizeof(value), w->nobody),
		 -FI_EHOSTUNREACH); /* the error that the earlier sends found */
	do {
		ret = fi_inject(w->a.ep, &value, sizeof(value), w->nobody);
		weft_test_progress();
		CHECK(weft_test_ms() - begin < TIMEOUT_MS + LATE_MS);
	} while (ret == -FI_EAGAIN);
	CHECK_EQ(ret, -FI_EHOSTUNREACH);
	CHECK(weft_test_ms() - begin >= TIMEOUT_MS - 5);
}

static void elsewhere_fails_at_once(struct world *w)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(5555),
	};
	uint64_t begin = weft_test_ms(), value = 0;
	uint8_t name[WEFT_TEST_NAME_MAX] = { 0 };
	struct weft_test_comp comp;
	struct fi_context context;
	fi_addr_t far;
	ssize_t ret;

	inet_pton(AF_INET, "192.0.2.77", &sin.sin_addr); /* RFC 5737 */
	memcpy(name, &sin, sizeof(sin));
	far = weft_test_insert(&w->a, name);
	ret = fi_tsend(w->a.ep, &value, sizeof(value), NULL, far, 0, &context);
	if (!ret) {
		weft_test_wait(w->a.txcq, &comp);
		ret = comp.ret;
	}
	CHECK_EQ(ret, -FI_EHOSTUNREACH);
	CHECK(weft_test_ms() - begin < LATE_MS);
}

/* Bug: a send to an address that had just been given up freed the channel with
 * the operations that waited in it, which then never completed. */
static void each_send_fails(struct world *w)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(5556),
	};
	uint8_t name[WEFT_TEST_NAME_MAX] = { 0 };
	struct fi_context contexts[8];
	uint64_t value = 0;
	fi_addr_t far;

	inet_pton(AF_INET, "192.0.2.78", &sin.sin_addr); /* RFC 5737 */
	memcpy(name, &sin, sizeof(sin));
	far = weft_test_insert(&w->a, name);
	for (int i = 0; i < 8; i++)
		CHECK_OK(fi_tsend(w->a.ep, &value, sizeof(value), NULL, far, 0,
				  &contexts[i]));
	for (int i = 0; i < 8; i++)
		weft_test_wait_err(w->a.txcq, &contexts[i], FI_EHOSTUNREACH);
}

/* True unless the machine was so busy that the peer started too late. */
static bool reach_late_comer(struct world *w)
{
	struct weft_test_opts opts = { 0 };
	uint64_t value = 4711, got = 0, begin;
	struct weft_test_comp comp;
	struct fi_context tx, rx;
	struct weft_test late;
	char service[8];
	bool was_late;

	begin = weft_test_ms();
	CHECK_OK(weft_test_send(&w->a, &value, sizeof(value), w->nobody, &tx));
	weft_test_progress_for(TIMEOUT_MS / 10);
	snprintf(service, sizeof(service), "%u", w->free_port);
	opts.service = service;
	weft_test_open(&late, &opts);
	CHECK_OK(weft_test_recv(&late, &got, sizeof(got), &rx));
	weft_test_wait(w->a.txcq, &comp);
	was_late = comp.ret == -FI_EHOSTUNREACH &&
		   weft_test_ms() - begin >= TIMEOUT_MS;
	if (!was_late) {
		CHECK_EQ(comp.ret, 1);
		CHECK(comp.entry.op_context == &tx);
		weft_test_wait_ok(late.rxcq, &rx);
		CHECK_EQ(got, value);
	}
	weft_test_close(&late);
	return !was_late;
}

static void late_comer_is_reached(struct world *w)
{
	uint64_t begin = weft_test_ms();

	while (!reach_late_comer(w))
		CHECK(weft_test_ms() - begin < LATE_MS);
}

/* Addresses that are not in the AV, or no longer. */
static void unknown_names_fail(struct world *w)
{
	uint64_t value = 0;
	fi_addr_t gone = weft_test_insert(&w->a, w->b.name);

	CHECK(fi_send(w->a.ep, &value, sizeof(value), NULL, 12345, NULL) < 0);
	CHECK(fi_send(w->a.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC,
		      NULL) < 0);
	if (gone == w->to_b)
		return;
	CHECK_OK(fi_av_remove(w->a.av, &gone, 1, 0));
	CHECK(fi_inject(w->a.ep, &value, sizeof(value), gone) < 0);
}

int main(void)
{
	uint8_t name[WEFT_TEST_NAME_MAX];
	struct weft_test_traces before;
	struct world w;

	setenv("FI_WEFT_CONNECT_TIMEOUT", "300", 1);
	weft_test_begin(100);
	weft_test_open(&w.a, NULL);
	w.free_port = weft_test_port(&w.a);
	weft_test_close(&w.a);
	weft_test_look(&before);
	weft_test_open(&w.a, NULL);
	weft_test_open(&w.b, NULL);
	w.to_b = weft_test_know(&w.a, &w.b);
	weft_test_name_of_port(name, w.free_port);
	w.nobody = weft_test_insert(&w.a, name);
	one_fails_others_go_on(&w);
	inject_learns_it(&w);
	elsewhere_fails_at_once(&w);
	each_send_fails(&w);
	late_comer_is_reached(&w);
	unknown_names_fail(&w);
	weft_test_exchange(&w.a, w.to_b, &w.b, 100, 1);
	weft_test_close(&w.a);
	weft_test_close(&w.b);
	weft_test_check_clean(&before);
	return 0;
}
