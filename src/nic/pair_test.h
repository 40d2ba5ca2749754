/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two NICs in one process, for unit tests: each with a queue pair, a completion
 * queue, memory and a handle for the other. Statics: each test has its own.
 */
#ifndef WF_NIC_PAIR_TEST_H
#define WF_NIC_PAIR_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "nic/nic.h"
#include "nic/open.h"

#define PAIR_MEMORY (4u << 20)
#define PAIR_QUEUE 256u
#define PAIR_QKEY 0x1234u
#define PAIR_LOST 60 /* seconds after which a test has failed */

/* The two NICs of the pair are of this device. */
static const char *pair_device = "udp";
/* The file with its secret; NULL: it has none. */
static const char *pair_key;

struct side {
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	uint8_t *memory;
	struct wf_nic_mr mr;
	uint16_t ah;
};

struct pair {
	struct side a;
	struct side b;
};

static inline struct wf_nic_attr pair_attr(int family)
{
	struct wf_nic_attr attr = { .fd = -1, .key_file = pair_key };

	if (family == AF_INET) {
		attr.addr.in.sin_family = AF_INET;
		attr.addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		attr.addr.in6.sin6_family = AF_INET6;
		attr.addr.in6.sin6_addr = in6addr_loopback;
	}
	return attr;
}

static inline void side_open(struct side *s, const struct wf_nic_attr *attr)
{
	struct wf_nic_qp_attr qp = { .sq_entries = PAIR_QUEUE,
				     .rq_entries = PAIR_QUEUE,
				     .qkey = PAIR_QKEY,
				     .rnr_retry = WF_NIC_RNR_FOREVER };

	assert_int_equal(wf_nic_open(pair_device, attr, &s->nic), 0);
	assert_int_equal(wf_nic_cq_create(s->nic, 2 * PAIR_QUEUE, &s->cq), 0);
	qp.send_cq = s->cq;
	qp.recv_cq = s->cq;
	assert_int_equal(wf_nic_qp_create(s->nic, &qp, &s->qp), 0);
	s->memory = calloc(1, PAIR_MEMORY);
	assert_non_null(s->memory);
	assert_int_equal(wf_nic_mr_reg(s->nic, s->memory, PAIR_MEMORY,
				       WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ |
					       WF_NIC_REMOTE_WRITE,
				       &s->mr),
			 0);
}

static inline void side_close(struct side *s)
{
	if (s->qp)
		wf_nic_qp_destroy(s->qp);
	assert_int_equal(wf_nic_cq_destroy(s->cq), 0);
	wf_nic_close(s->nic);
	free(s->memory);
}

static inline void pair_join(struct pair *p)
{
	assert_int_equal(wf_nic_ah_create_socket(
				 p->a.nic, wf_nic_socket(p->b.nic), &p->a.ah),
			 0);
	assert_int_equal(wf_nic_ah_create_socket(
				 p->b.nic, wf_nic_socket(p->a.nic), &p->b.ah),
			 0);
}

static inline void pair_open_attr(struct pair *p, const struct wf_nic_attr *a,
				  const struct wf_nic_attr *b)
{
	memset(p, 0, sizeof(*p));
	side_open(&p->a, a);
	side_open(&p->b, b);
	pair_join(p);
}

static inline void pair_open(struct pair *p)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	pair_open_attr(p, &attr, &attr);
}

static inline void pair_close(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
}

static inline void pair_progress(struct pair *p)
{
	wf_nic_progress(p->a.nic);
	wf_nic_progress(p->b.nic);
}

/* One completion of @s; the test fails if none comes. */
static inline struct wf_nic_wc pair_wait(struct pair *p, struct side *s)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	struct wf_nic_wc wc;

	while (!wf_nic_cq_poll(s->cq, &wc, 1)) {
		pair_progress(p);
		assert_true(wf_base_clock_ns() < end);
	}
	return wc;
}

/* Returns the beginning of a request from @from to @to. */
static inline struct wf_nic_wr pair_wr(const struct side *from,
				       const struct side *to, uint64_t id)
{
	return (struct wf_nic_wr){ .wr_id = id,
				   .qkey = PAIR_QKEY,
				   .ah = from->ah,
				   .qpn = wf_nic_qp_num(to->qp) };
}

static inline struct wf_nic_sge pair_sge(const struct side *s, size_t off,
					 uint32_t len)
{
	return (struct wf_nic_sge){ s->memory + off, len, s->mr.lkey };
}

static inline void pair_recv(struct side *s, uint64_t id, size_t off,
			     uint32_t len)
{
	struct wf_nic_sge sge = pair_sge(s, off, len);

	assert_int_equal(wf_nic_post_recv(s->qp, id, &sge, false), 0);
}

static inline void fill(uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 7);
}

static inline bool filled(const uint8_t *bytes, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] !=
		    (uint8_t)((i * 2654435761u + seed * 40503u) >> 7))
			return false;
	}
	return true;
}

/* A message from A to B: afterwards they are connected. */
static inline void hello(struct pair *p)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, 1);

	pair_recv(&p->b, 1, 0, 64);
	assert_int_equal(wf_nic_post_inline(p->a.qp, &wr, "hello", 5), 0);
	assert_int_equal(pair_wait(p, &p->b).status, WF_NIC_OK);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
}

static inline uint64_t counter(const struct side *s, size_t offset)
{
	const char *at = (const char *)wf_nic_counters(s->nic);

	return wf_nic_counter((const _Atomic uint64_t *)(at + offset));
}

#define COUNTED(side, name)                                                    \
	counter(side, offsetof(struct wf_nic_counters, name))

#endif
