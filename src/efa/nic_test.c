/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of nic/efa, which uses EFA devices, on this one: two NICs of a
 * process, each with a queue pair of the device. All of them twice: by calls of
 * libibverbs, and by the rings of the device.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nic/efa/dev.h"
#include "nic/nic.h"
#include "nic/open.h"
#include "nic/wqe.h"

#define BYTES (64u << 10)
#define SENDS 256u
#define RECVS 64u

static bool rings; /* the way of this round */

struct end {
	struct wf_nic_port *port;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_addr addr;
	struct wf_nic_mr mr;  /* of memory */
	struct wf_nic_mr all; /* as rdm registers its own */
	uint8_t *memory;
	uint16_t ah; /* of the other end */
	int fd;
};

static void open_end(struct end *end)
{
	struct wf_nic_attr attr = { .fd = -1 };
	struct wf_nic_qp_attr qp = { .sq_entries = SENDS, .rq_entries = RECVS };

	assert_int_equal(wf_nic_port_open("efa", rings, &end->port, &end->addr,
					  &end->fd),
			 0);
	attr.port = end->port;
	assert_int_equal(wf_nic_open("efa", &attr, &end->nic), 0);
	assert_int_equal(wf_nic_cq_create(end->nic, SENDS + RECVS, &end->cq),
			 0);
	qp.send_cq = end->cq;
	qp.recv_cq = end->cq;
	assert_int_equal(wf_nic_qp_create(end->nic, &qp, &end->qp), 0);
	end->memory = calloc(1, BYTES);
	assert_non_null(end->memory);
	assert_int_equal(wf_nic_mr_reg(end->nic, end->memory, BYTES,
				       WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ,
				       &end->mr),
			 0);
	assert_int_equal(wf_nic_mr_reg(end->nic, NULL, SIZE_MAX,
				       WF_NIC_LOCAL_WRITE, &end->all),
			 0);
}

static void close_end(struct end *end)
{
	wf_nic_qp_destroy(end->qp);
	wf_nic_cq_destroy(end->cq);
	wf_nic_close(end->nic);
	wf_nic_port_close(end->port);
	free(end->memory);
}

static void meet(struct end *from, struct end *to)
{
	assert_int_equal(
		wf_nic_ah_create_socket(from->nic, &to->addr, &from->ah), 0);
}

static void open_pair(struct end pair[2])
{
	open_end(&pair[0]);
	open_end(&pair[1]);
	meet(&pair[0], &pair[1]);
	meet(&pair[1], &pair[0]);
}

static void close_pair(struct end pair[2])
{
	close_end(&pair[0]);
	close_end(&pair[1]);
}

static void recv_at(struct end *end, uint64_t id, uint32_t at, uint32_t len)
{
	const struct wf_nic_sge sge = { end->memory + at, len, end->mr.lkey };

	assert_int_equal(wf_nic_post_recv(end->qp, id, &sge, false), 0);
}

static struct wf_nic_wc await(struct end pair[2], struct end *end)
{
	time_t until = time(NULL) + 60;
	struct wf_nic_wc wc;

	while (!wf_nic_cq_poll(end->cq, &wc, 1)) {
		wf_nic_progress(pair[0].nic);
		wf_nic_progress(pair[1].nic);
		assert_true(time(NULL) < until);
	}
	return wc;
}

static struct wf_nic_wr wr_of(const struct end *end, uint64_t id)
{
	/* The number and the key of the peer are in its address. */
	return (struct wf_nic_wr){ .wr_id = id, .ah = end->ah };
}

static void test_device(void **state)
{
	char name[32], way[WF_NIC_WHY];
	struct wf_addr addr;

	(void)state;
	assert_int_equal(wf_nic_device_find("efa", name, sizeof(name), &addr),
			 0);
	assert_string_equal(name, "weft0");
	assert_true(wf_base_addr_is_efa(&addr));
	assert_int_equal(wf_nic_device_socket("efa"), 0);
	assert_int_equal(wf_nic_device_way("efa", rings, way), 0);
	assert_string_equal(way, rings ? "by the rings of the device" :
					 "by calls of libibverbs: "
					 "FI_WEFT_EFA_RINGS is 0");
	assert_int_equal(wf_nic_device_way("tcp", rings, way), -ENODEV);
	assert_int_equal(wf_nic_device_find("tcp", name, sizeof(name), &addr),
			 -ENODEV);
}

/* Bytes in the descriptor, in registered memory, in memory that the device does
 * not know, and in both. */
static void test_sends(void **state)
{
	uint8_t other[6000];
	struct end pair[2];
	struct wf_nic_wc wc;

	(void)state;
	open_pair(pair);
	for (unsigned i = 0; i < 4; i++) {
		struct wf_nic_wr wr = wr_of(&pair[0], 10 + i);
		struct wf_nic_sge sge[2] = {
			{ pair[0].memory, 1000, pair[0].mr.lkey },
			{ other, sizeof(other), pair[0].all.lkey },
		};
		uint32_t len[] = { 20, 1000, 2000 + 1000, 7000 };

		memset(pair[0].memory, 'a' + (int)i, 8192);
		memset(other, 'A' + (int)i, sizeof(other));
		recv_at(&pair[1], 30 + i, 0, 8192);
		if (i == 0)
			assert_int_equal(wf_nic_post_inline(pair[0].qp, &wr,
							    pair[0].memory, 20),
					 0);
		if (i == 1)
			assert_int_equal(
				wf_nic_post_send(pair[0].qp, &wr, sge, 1), 0);
		if (i == 2) { /* two pieces that are copied */
			sge[0] = (struct wf_nic_sge){ other, 1000,
						      pair[0].all.lkey };
			sge[1].len = 2000;
		}
		if (i >= 2)
			assert_int_equal(
				wf_nic_post_send(pair[0].qp, &wr, sge, 2), 0);
		/* The user may write to what was copied. */
		memset(other, 0, sizeof(other));
		wc = await(pair, &pair[1]);
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.wr_id, 30 + i);
		assert_int_equal(wc.len, len[i]);
		assert_int_equal(wc.ah, pair[1].ah);
		assert_int_equal(wc.src_qpn, pair[0].addr.efa.qpn);
		assert_int_equal(pair[1].memory[0],
				 i == 2 ? 'A' + (int)i : 'a' + (int)i);
		assert_int_equal(pair[1].memory[len[i] - 1],
				 i >= 2 ? 'A' + (int)i : 'a' + (int)i);
		wc = await(pair, &pair[0]);
		assert_int_equal(wc.status, WF_NIC_OK);
		assert_int_equal(wc.wr_id, 10 + i);
	}
	close_pair(pair);
}

/* Several laps of every ring, with doorbells for one request and for some. */
static void test_laps(void **state)
{
	struct end pair[2];

	(void)state;
	open_pair(pair);
	for (uint32_t i = 0; i < 2 * WF_SRD_SENDS + 100; i += 4) {
		unsigned int sent = 0, received = 0;

		for (uint32_t j = 0; j < 4; j++)
			recv_at(&pair[1], i + j, j * 64, 64);
		for (uint32_t j = 0; j < 4; j++) {
			struct wf_nic_wr wr = wr_of(&pair[0], i + j);
			uint32_t number = i + j;

			wr.flags = i % 8 ? 0 : WF_NIC_WR_MORE;
			wr.flags |= WF_NIC_WR_IMM;
			wr.imm = number;
			memcpy(pair[0].memory + j * 64, &number,
			       sizeof(number));
			assert_int_equal(
				wf_nic_post_send(
					pair[0].qp, &wr,
					&(struct wf_nic_sge){ pair[0].memory +
								      j * 64,
							      j % 2 ? 64 : 4,
							      pair[0].mr.lkey },
					1),
				0);
		}
		wf_nic_qp_ring(pair[0].qp);
		while (received < 4) {
			struct wf_nic_wc wc = await(pair, &pair[1]);
			uint32_t got;

			memcpy(&got, pair[1].memory + wc.wr_id % 4 * 64,
			       sizeof(got));
			assert_int_equal(wc.status, WF_NIC_OK);
			assert_true(wc.flags & WF_NIC_WC_IMM);
			assert_int_equal(wc.imm, got);
			assert_int_equal(wc.len, got % 2 ? 64 : 4);
			received++;
		}
		for (; sent < 4; sent++)
			assert_int_equal(await(pair, &pair[0]).status,
					 WF_NIC_OK);
	}
	close_pair(pair);
}

/* Completions of requests that there are not. By calls, libibverbs is what would
 * have to invent them. */
static void test_forged(void **state)
{
	struct wf_nic_cqe cqe = {
		.flags = wf_nic_cqe_flags(WF_NIC_CQE_SQ, WF_NIC_OP_SEND, false),
	};
	struct wf_queue_cqw writer;
	struct wf_srd_port *port;
	struct end pair[2];
	struct wf_nic_wc wc;

	(void)state;
	if (!rings)
		return;
	open_pair(pair);
	recv_at(&pair[0], 1, 0, 64);
	wf_nic_progress(pair[0].nic);
	port = (struct wf_srd_port *)pair[0].port;
	assert_int_equal(
		wf_queue_cqw_init(&writer,
				  &(struct wf_queue_cq_attr){
					  .ring = port->rings->cq.ring,
					  .entries = port->rings->cq.mask + 1u,
					  .stride = sizeof(cqe),
					  .phase_bit = WF_NIC_CQE_PHASE_BIT }),
		0);
	for (unsigned int i = 0; i < 6; i++) {
		if (i == 1) /* another generation of the receive */
			cqe.req_id = (uint16_t)(RECVS << 2);
		if (i == 2)
			cqe.req_id = UINT16_MAX;
		if (i == 3) /* of no queue */
			cqe.flags = 0;
		if (i == 4) /* a write */
			cqe.flags = WF_NIC_CQE_UNSOLICITED |
				    wf_nic_cqe_flags(WF_NIC_CQE_RQ,
						     WF_NIC_OP_WRITE, true);
		if (i == 5) {
			cqe.flags = wf_nic_cqe_flags(WF_NIC_CQE_RQ,
						     WF_NIC_OP_SEND, false);
			cqe.req_id = 77;
		}
		assert_int_equal(wf_queue_cqw_push(&writer, &cqe), 0);
	}
	while (!wf_nic_progress(pair[0].nic))
		;
	assert_int_equal(wf_nic_cq_poll(pair[0].cq, &wc, 1), 0);
	assert_int_equal(wf_nic_counters(pair[0].nic)->stale_completions, 6);
	/* More bytes than a message can have. */
	cqe.req_id = 0;
	cqe.length = UINT16_MAX;
	assert_int_equal(wf_queue_cqw_push(&writer, &cqe), 0);
	wf_nic_progress(pair[0].nic);
	assert_int_equal(wf_nic_cq_poll(pair[0].cq, &wc, 1), 1);
	assert_int_equal(wc.status, WF_NIC_QP_INTERNAL);
	assert_int_equal(wc.wr_id, 1);
	close_pair(pair);
}

/* The device knows the GID and the number of a sender, but not its key. */
static void test_stranger(void **state)
{
	struct end pair[2];
	struct wf_nic_wr wr;
	struct wf_nic_wc wc;
	struct wf_addr from;

	(void)state;
	open_end(&pair[0]);
	open_end(&pair[1]);
	meet(&pair[0], &pair[1]);
	recv_at(&pair[1], 1, 0, 64);
	wr = wr_of(&pair[0], 2);
	assert_int_equal(wf_nic_post_inline(pair[0].qp, &wr, "hello", 5), 0);
	wc = await(pair, &pair[1]);
	assert_int_equal(wc.ah, WF_NIC_AH_UNKNOWN);
	assert_int_equal(wf_nic_addr_to_socket(&wc.from, &from), 0);
	assert_true(wf_base_addr_is_efa(&from));
	assert_memory_equal(from.efa.gid, pair[0].addr.efa.gid, 16);
	assert_int_equal(from.efa.qpn, pair[0].addr.efa.qpn);
	assert_int_equal(from.efa.qkey, 0);
	close_pair(pair);
}

/* Peers read what was registered for it, by the key of the hardware. */
static void test_read(void **state)
{
	struct wf_nic_remote remote;
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct end pair[2];

	(void)state;
	open_pair(pair);
	for (uint32_t i = 0; i < BYTES; i++)
		pair[1].memory[i] = (uint8_t)(i * 7 + (i >> 8));
	sge = (struct wf_nic_sge){ pair[0].memory, BYTES, pair[0].mr.lkey };
	remote = (struct wf_nic_remote){
		.addr = (uintptr_t)pair[1].memory,
		.rkey = pair[1].mr.rkey,
	};
	wr = wr_of(&pair[0], 3);
	assert_int_equal(wf_nic_post_read(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_OK);
	assert_memory_equal(pair[0].memory, pair[1].memory, BYTES);
	/* A key that is not there, or not any more. */
	remote.rkey += 1;
	assert_int_equal(wf_nic_post_read(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_REM_ADDR);
	remote.rkey -= 1;
	assert_int_equal(wf_nic_mr_dereg(pair[1].nic, pair[1].mr.lkey), 0);
	assert_int_equal(wf_nic_post_read(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_REM_ADDR);
	/* It cannot read into memory that the device does not know. */
	sge.lkey = pair[0].all.lkey;
	assert_int_equal(wf_nic_post_read(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_BAD_LKEY);
	close_pair(pair);
}

/* Memory of an application, which any peer of its process reaches by the key of
 * the hardware, in the directions that it was registered for. */
static void test_write(void **state)
{
	struct wf_nic_remote remote;
	struct wf_nic_key *both, *reads;
	struct end pair[2];
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	uint8_t *memory;

	(void)state;
	open_pair(pair);
	assert_true(wf_nic_caps(pair[0].nic)->hard_writes);
	memory = calloc(1, BYTES);
	assert_non_null(memory);
	for (uint32_t i = 0; i < BYTES; i++)
		pair[0].memory[i] = (uint8_t)(i * 5 + (i >> 8));
	sge = (struct wf_nic_sge){ pair[0].memory, BYTES, pair[0].mr.lkey };
	remote = (struct wf_nic_remote){ .addr = (uintptr_t)memory };
	wr = wr_of(&pair[0], 4);
	assert_int_equal(wf_nic_key_open("efa", memory, BYTES,
					 WF_NIC_REMOTE_READ, &reads,
					 &remote.rkey),
			 0);
	assert_int_equal(wf_nic_post_write(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_REM_ADDR);
	assert_int_equal(memory[1], 0);
	assert_int_equal(
		wf_nic_key_open("efa", memory, BYTES,
				WF_NIC_REMOTE_READ | WF_NIC_REMOTE_WRITE, &both,
				&remote.rkey),
		0);
	assert_int_equal(wf_nic_post_write(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_OK);
	assert_memory_equal(memory, pair[0].memory, BYTES);
	/* From memory that the device does not know. */
	sge.lkey = pair[0].all.lkey;
	assert_int_equal(wf_nic_post_write(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_BAD_LKEY);
	sge.lkey = pair[0].mr.lkey;
	wf_nic_key_close(both);
	assert_int_equal(wf_nic_post_write(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_REM_ADDR);
	wf_nic_key_close(reads);
	close_pair(pair);
	free(memory);
}

/* Memory inside a registration of the application is not registered again, and is
 * the device's for as long as that is open. Other memory is registered. */
static void test_described(void **state)
{
	const unsigned int access = WF_NIC_LOCAL_WRITE | WF_NIC_REMOTE_READ;
	struct wf_nic_remote remote;
	struct wf_nic_mr inside, beyond, reads;
	struct wf_nic_sge sge;
	struct wf_nic_key *key;
	struct end pair[2];
	struct wf_nic_wr wr;
	uint8_t *memory;
	uint32_t rkey;
	void *desc;

	(void)state;
	open_pair(pair);
	memory = malloc(2 * BYTES);
	assert_non_null(memory);
	memset(memory, 'm', 2 * BYTES);
	assert_int_equal(
		wf_nic_key_open("efa", memory, BYTES, access, &key, &rkey), 0);
	desc = wf_nic_key_desc(key);
	assert_non_null(desc);
	wr = wr_of(&pair[0], 4);
	assert_int_equal(wf_nic_mr_use(pair[0].nic, desc, memory + 100, 4000,
				       access, &inside),
			 0);
	assert_int_equal(inside.rkey, rkey);
	assert_true(inside.lent);
	/* One byte more, and what the application has not allowed. */
	assert_int_equal(wf_nic_mr_use(pair[0].nic, desc, memory + 100, BYTES,
				       access, &beyond),
			 0);
	assert_int_not_equal(beyond.rkey, rkey);
	assert_false(beyond.lent);
	assert_int_equal(wf_nic_mr_use(pair[0].nic, desc, memory, BYTES,
				       WF_NIC_REMOTE_WRITE, &reads),
			 -EOPNOTSUPP);
	/* It is sent from, but not beyond what was asked for ... */
	sge = (struct wf_nic_sge){ memory + 100, 4000, inside.lkey };
	recv_at(&pair[1], 30, 0, 8192);
	assert_int_equal(wf_nic_post_send(pair[0].qp, &wr, &sge, 1), 0);
	assert_int_equal(await(pair, &pair[1]).len, 4000);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_OK);
	sge.len = 4001;
	assert_int_equal(wf_nic_post_send(pair[0].qp, &wr, &sge, 1), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_BAD_LKEY);
	/* ... and read into. */
	sge.len = 4000;
	remote = (struct wf_nic_remote){
		.addr = (uintptr_t)pair[1].memory,
		.rkey = pair[1].mr.rkey,
	};
	memset(pair[1].memory, 'r', 4000);
	assert_int_equal(wf_nic_post_read(pair[0].qp, &wr, &remote, &sge), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_OK);
	assert_memory_equal(memory + 100, pair[1].memory, 4000);
	assert_int_equal(memory[99], 'm');
	/* Closed: the hardware does not take what we still have, */
	wf_nic_key_close(key);
	recv_at(&pair[1], 31, 0, 8192);
	assert_int_equal(wf_nic_post_send(pair[0].qp, &wr, &sge, 1), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_BAD_LKEY);
	assert_int_equal(wf_nic_mr_dereg(pair[0].nic, inside.lkey), 0);
	/* and nothing is inside it. */
	assert_int_equal(wf_nic_mr_use(pair[0].nic, desc, memory + 100, 4000,
				       access, &inside),
			 0);
	assert_int_not_equal(inside.rkey, rkey);
	assert_false(inside.lent);
	sge.lkey = inside.lkey;
	assert_int_equal(wf_nic_post_send(pair[0].qp, &wr, &sge, 1), 0);
	assert_int_equal(await(pair, &pair[1]).len, 4000);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_OK);
	assert_int_equal(wf_nic_mr_dereg(pair[0].nic, inside.lkey), 0);
	assert_int_equal(wf_nic_mr_dereg(pair[0].nic, beyond.lkey), 0);
	close_pair(pair);
	free(memory);
}

/* More descriptors than there are: memory is registered without one. */
static void test_many_described(void **state)
{
	struct wf_nic_key **keys = calloc(70000, sizeof(*keys));
	unsigned int without = 0, count = 0;
	uint8_t memory[64];
	struct end end;
	uint32_t rkey;

	(void)state;
	assert_non_null(keys);
	open_end(&end);
	while (count < 70000 &&
	       !wf_nic_key_open("efa", memory, sizeof(memory),
				WF_NIC_LOCAL_WRITE, &keys[count], &rkey))
		without += !wf_nic_key_desc(keys[count++]);
	/* The device in software has fewer itself. */
	assert_true(count > 60000);
	assert_true(count < 70000 || without);
	while (count)
		wf_nic_key_close(keys[--count]);
	close_end(&end);
	free(keys);
}

/* An end with another key, or that is gone. */
static void test_refused(void **state)
{
	struct wf_addr wrong;
	struct end pair[2];
	struct wf_nic_wr wr;
	uint16_t ah;

	(void)state;
	open_pair(pair);
	wrong = pair[1].addr;
	wrong.efa.qkey ^= 1;
	assert_int_equal(wf_nic_ah_create_socket(pair[0].nic, &wrong, &ah), 0);
	assert_int_not_equal(ah, pair[0].ah);
	recv_at(&pair[1], 1, 0, 64);
	wr = wr_of(&pair[0], 2);
	wr.ah = ah;
	assert_int_equal(wf_nic_post_inline(pair[0].qp, &wr, "hello", 5), 0);
	assert_int_equal(await(pair, &pair[0]).status, WF_NIC_BAD_QPN);
	/* An address of a socket. */
	memset(&wrong, 0, sizeof(wrong));
	wrong.in.sin_family = AF_INET;
	wrong.in.sin_port = 9;
	wrong.in.sin_addr.s_addr = 0x0100007f;
	assert_int_equal(wf_nic_ah_create_socket(pair[0].nic, &wrong, &ah),
			 -EINVAL);
	close_pair(pair);
}

/* Every request comes back, also those that the hardware had. */
static void test_flush(void **state)
{
	unsigned int sends = 0, recvs = 0;
	struct end pair[2];
	struct wf_nic_wc wc;

	(void)state;
	open_pair(pair);
	for (uint32_t i = 0; i < RECVS; i++)
		recv_at(&pair[1], i, i * 64, 64);
	wf_nic_progress(pair[1].nic);
	/* Nobody has a receive for these. */
	for (uint32_t i = 0; i < 40; i++) {
		struct wf_nic_wr wr = wr_of(&pair[1], i);

		assert_int_equal(wf_nic_post_inline(pair[1].qp, &wr, "x", 1),
				 0);
	}
	wf_nic_qp_flush(pair[1].qp);
	while (wf_nic_cq_poll(pair[1].cq, &wc, 1)) {
		assert_int_equal(wc.status, WF_NIC_FLUSHED);
		if (wc.flags & WF_NIC_WC_RECV)
			recvs++;
		else
			sends++;
	}
	assert_int_equal(recvs, RECVS);
	assert_int_equal(sends, 40);
	close_pair(pair);
}

/* A memo about a peer is there when it comes back, and once. */
static void test_memo(void **state)
{
	const struct wf_nic_memo memo = { .words = { 1, 2, 3, 4, 5, 6, 7, 8 } };
	struct wf_nic_memo got;
	struct end pair[2];

	(void)state;
	open_pair(pair);
	assert_false(wf_nic_ah_recall(pair[0].nic, pair[0].ah, &got));
	assert_int_equal(wf_nic_ah_leave(pair[0].nic, pair[0].ah, &memo), 0);
	meet(&pair[0], &pair[1]);
	assert_true(wf_nic_ah_recall(pair[0].nic, pair[0].ah, &got));
	assert_memory_equal(&got, &memo, sizeof(memo));
	assert_false(wf_nic_ah_recall(pair[0].nic, pair[0].ah, &got));
	close_pair(pair);
}

/* A sleeper is woken by what arrives, and by nothing else. */
static void test_sleep(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct end pair[2];
	struct wf_nic_wr wr;
	uint64_t deadline;

	(void)state;
	open_pair(pair);
	assert_int_equal(wf_nic_wait_fd(pair[1].nic), pair[1].fd);
	recv_at(&pair[1], 1, 0, 64);
	while (wf_nic_wait_begin(pair[1].nic, pair[1].cq, &deadline))
		wf_nic_progress(pair[1].nic);
	fd.fd = pair[1].fd;
	assert_int_equal(poll(&fd, 1, 50), 0);
	wr = wr_of(&pair[0], 2);
	assert_int_equal(wf_nic_post_inline(pair[0].qp, &wr, "hello", 5), 0);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	wf_nic_wait_end(pair[1].nic);
	assert_int_equal(await(pair, &pair[1]).wr_id, 1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	close_pair(pair);
}

/* A port is for one NIC, and is used up by a queue pair. */
static void test_port(void **state)
{
	struct wf_nic_attr attr = { .fd = -1 };
	struct wf_nic *nic;
	struct end end;

	(void)state;
	assert_int_equal(wf_nic_open("efa", &attr, &nic), -EINVAL);
	open_end(&end);
	attr.port = end.port;
	assert_int_equal(wf_nic_open("efa", &attr, &nic), -EINVAL);
	close_end(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_laps),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_memo),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_many_described),
	};

	int failed = cmocka_run_group_tests_name("by calls", tests, NULL, NULL);

	rings = true;
	return failed +
	       cmocka_run_group_tests_name("by rings", tests, NULL, NULL);
}
