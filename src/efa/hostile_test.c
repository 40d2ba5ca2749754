/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those who mean harm, or do not know better: packets that nobody asked for,
 * peers of another version, memory and queue pairs that go away while they are
 * in use, completion queues that are too small. Errors as EFA has them, and
 * everything else goes on.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "efa/pair_test.h"
#include "nic/udp/engine/packet_defs.h"
#include "nic/udp/engine/sum.h"
#include "nic/wqe.h"

#define PACKETS 2000
#define PACKET_MAX 1400
#define OTHER_VERSION (WF_UDP_VERSION + 1)
#define ANSWERS 3

static const struct kind srd = { .rnr_retry = -1 };

/* The pair still does what it is for. */
static void expect_working(struct pair *pair)
{
	struct end *from = &pair->end[0], *to = &pair->end[1];
	struct seen seen;

	memset(from->buf, 0x5a, 100);
	memset(to->buf, 0, 100);
	assert_int_equal(receive(to, 71, 0, 100), 0);
	assert_int_equal(send_to(pair, 72, 0, 100), 0);
	seen = wait_one(from);
	assert_int_equal(seen.wr_id, 72);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	seen = wait_one(to);
	assert_int_equal(seen.wr_id, 71);
	assert_int_equal(seen.status, IBV_WC_SUCCESS);
	assert_int_equal(seen.len, 100);
	assert_memory_equal(to->buf, from->buf, 100);
}

/* -- packets ---------------------------------------------------------------- */

/* A socket of somebody else, on the same address. */
static int stranger(const struct pair *pair, struct wf_addr *device,
		    struct wf_addr *own)
{
	socklen_t len = sizeof(own->in);
	union ibv_gid gid;
	int fd;

	assert_int_equal(ibv_query_gid(pair->context, 1, 0, &gid), 0);
	assert_int_equal(wf_efa_gid_addr(&gid, device), 0);
	*own = *device;
	own->in.sin_port = 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, &own->sa, sizeof(own->in)), 0);
	assert_int_equal(getsockname(fd, &own->sa, &len), 0);
	return fd;
}

static void seal(void *packet, size_t head)
{
	((struct wf_udp_common *)packet)->crc = wf_udp_sum_head(packet, head);
}

/* Bytes at random, and packets that are right but for what only a peer knows:
 * nothing is received, and nothing of the pair's is lost. */
static void test_forged(void **state)
{
	static _Alignas(8) uint8_t packet[PACKET_MAX];
	struct pair pair = open_pair(&srd);
	struct wf_addr device, own;
	int fd = stranger(&pair, &device, &own);
	struct seen seen;

	(void)state;
	srand(11);
	expect_working(&pair);
	assert_int_equal(receive(&pair.end[1], 1, 4096, 4096), 0);
	memset(pair.end[1].buf, 0, BYTES);
	for (int i = 0; i < PACKETS; i++) {
		struct wf_udp_data *data = (struct wf_udp_data *)packet;
		size_t len = (size_t)rand() % PACKET_MAX + 1;

		for (size_t k = 0; k < len; k++)
			packet[k] = (uint8_t)rand();
		if (i % 2 && len >= sizeof(*data)) {
			data->common.magic = WF_UDP_MAGIC;
			data->common.type =
				(uint8_t)(1 + i / 2 % (WF_UDP_TYPES - 1));
			data->dst_qpn = (uint16_t)pair.end[1].qp->qp_num;
			data->qkey = QKEY;
			data->key = pair.end[1].mr->rkey;
			data->addr = (uintptr_t)pair.end[1].buf;
			data->len = (uint16_t)(len - sizeof(*data));
			seal(packet, data->common.type == WF_UDP_DATA ?
					     sizeof(*data) :
					     len);
		}
		sendto(fd, packet, len, 0, &device.sa, sizeof(device.in));
		if (i % 64 == 0)
			assert_false(poll_one(&pair.end[1], &seen));
	}
	for (int i = 0; i < 100; i++)
		assert_false(poll_one(&pair.end[1], &seen));
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(pair.end[1].buf[i], 0);
	/* The receive is still there, and takes what is meant for it. */
	assert_int_equal(send_to(&pair, 2, 0, 64), 0);
	seen = wait_one(&pair.end[1]);
	assert_int_equal(seen.wr_id, 1);
	assert_int_equal(seen.len, 64);
	assert_int_equal(wait_one(&pair.end[0]).status, IBV_WC_SUCCESS);
	close(fd);
	close_pair(&pair);
}

/* A peer that speaks another version answers, and is not understood. When it is
 * gone, a send to it ends as one to nobody. */
static void test_version(void **state)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct pair pair = open_pair(&srd);
	struct ibv_ah *self = pair.ah;
	time_t until = time(NULL) + 30;
	struct wf_addr device, own;
	int fd = stranger(&pair, &device, &own);
	unsigned int answers = 0;
	struct seen seen;

	(void)state;
	wf_efa_gid_of(&own, &attr.grh.dgid);
	pair.ah = ibv_create_ah(pair.pd, &attr);
	assert_non_null(pair.ah);
	assert_int_equal(send_to(&pair, 5, 0, 8), 0);
	while (!poll_one(&pair.end[0], &seen)) {
		struct wf_udp_hello hello;

		assert_true(time(NULL) < until);
		if (answers == ANSWERS ||
		    recv(fd, &hello, sizeof(hello), 0) != sizeof(hello))
			continue;
		hello.common.type = WF_UDP_ACCEPT;
		hello.common.kind = OTHER_VERSION;
		hello.common.dst_cid = hello.src_cid;
		hello.src_cid = 7;
		seal(&hello, sizeof(hello));
		sendto(fd, &hello, sizeof(hello), 0, &device.sa,
		       sizeof(device.in));
		if (++answers == ANSWERS)
			close(fd);
	}
	assert_int_equal(answers, ANSWERS);
	assert_int_equal(seen.wr_id, 5);
	assert_int_equal(seen.vendor_err, WF_NIC_UNREACH);
	assert_int_equal(seen.status, IBV_WC_RESP_TIMEOUT_ERR);
	assert_int_equal(ibv_destroy_ah(pair.ah), 0);
	pair.ah = self;
	expect_working(&pair);
	close_pair(&pair);
}

/* -- what goes away --------------------------------------------------------- */

/* Sends that wait for a receive end when the queue pair is gone. */
static void test_target_gone(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *from = &pair.end[0], *to = &pair.end[1];

	(void)state;
	for (uint64_t i = 0; i < DEPTH; i++)
		assert_int_equal(send_to(&pair, i, 0, 8), 0);
	assert_int_equal(ibv_destroy_qp(to->qp), 0);
	for (uint64_t i = 0; i < DEPTH; i++) {
		struct seen seen = wait_one(from);

		assert_int_equal(seen.vendor_err, WF_NIC_BAD_QPN);
		assert_int_equal(seen.status, IBV_WC_REM_INV_RD_REQ_ERR);
	}
	to->qp = NULL;
	close_pair(&pair);
}

static void rdma(struct pair *pair, bool read, uint32_t rkey, uint64_t addr,
		 uint32_t len)
{
	struct end *from = &pair->end[0];

	ibv_wr_start(from->ex);
	from->ex->wr_id = 3;
	if (read)
		ibv_wr_rdma_read(from->ex, rkey, addr);
	else
		ibv_wr_rdma_write(from->ex, rkey, addr);
	ibv_wr_set_sge(from->ex, from->mr->lkey, (uintptr_t)from->buf, len);
	ibv_wr_set_ud_addr(from->ex, pair->ah, pair->end[1].qp->qp_num, QKEY);
	assert_int_equal(ibv_wr_complete(from->ex), 0);
}

/* A queue pair and its memory go away while peers answer its reads: nothing is
 * written any more. */
static void test_reader_gone(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct pair pair = open_pair(&srd);
		struct end *from = &pair.end[0];

		memset(pair.end[1].buf, 0x77, BYTES);
		for (int k = 0; k < 8; k++)
			rdma(&pair, true, pair.end[1].mr->rkey,
			     (uintptr_t)pair.end[1].buf, BYTES);
		if (i % 2)
			usleep((useconds_t)i * 50);
		assert_int_equal(ibv_destroy_qp(from->qp), 0);
		from->qp = NULL;
		memset(from->buf, 0x11, BYTES);
		usleep(1000);
		for (size_t at = 0; at < BYTES; at += 512)
			assert_int_equal(from->buf[at], 0x11);
		close_pair(&pair);
	}
}

/* Memory that is registered no longer: the receiver and the sender are told. */
static void test_memory_gone(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *to = &pair.end[1];
	struct seen seen;
	uint32_t rkey = to->mr->rkey;

	(void)state;
	assert_int_equal(receive(to, 9, 0, 100), 0);
	assert_int_equal(ibv_dereg_mr(to->mr), 0);
	assert_int_equal(send_to(&pair, 8, 0, 100), 0);
	seen = wait_one(to);
	assert_int_equal(seen.wr_id, 9);
	assert_int_equal(seen.vendor_err, WF_NIC_BAD_LKEY);
	assert_int_equal(seen.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wait_one(&pair.end[0]).vendor_err, WF_NIC_BAD_STATUS);
	for (int read = 0; read < 2; read++) {
		rdma(&pair, read, rkey, (uintptr_t)to->buf, 100);
		seen = wait_one(&pair.end[0]);
		assert_int_equal(seen.vendor_err, WF_NIC_REM_ADDR);
		assert_int_equal(seen.status, IBV_WC_REM_ACCESS_ERR);
	}
	to->mr = ibv_reg_mr(pair.pd, to->buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(to->mr);
	/* Registered for other things. */
	for (int read = 0; read < 2; read++) {
		rdma(&pair, read, to->mr->rkey, (uintptr_t)to->buf, 100);
		assert_int_equal(wait_one(&pair.end[0]).vendor_err,
				 WF_NIC_REM_ADDR);
	}
	expect_working(&pair);
	close_pair(&pair);
}

/* One byte before, one behind, and around the end of all addresses. */
static void test_bounds(void **state)
{
	struct pair pair = open_pair(&srd);
	struct end *to = &pair.end[1];
	const uint64_t from = (uintptr_t)to->buf;
	const struct {
		uint64_t addr;
		uint32_t len;
		uint32_t status;
	} cases[] = {
		{ from - 1, 8, WF_NIC_REM_ADDR },
		{ from + BYTES - 7, 8, WF_NIC_REM_ADDR },
		{ from + BYTES, 1, WF_NIC_REM_ADDR },
		{ UINT64_MAX - 3, 8, WF_NIC_REM_ADDR },
		{ 0, 8, WF_NIC_REM_ADDR },
		{ from + BYTES - 8, 8, WF_NIC_OK },
		{ from, 8, WF_NIC_OK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int read = 0; read < 2; read++) {
			rdma(&pair, read, to->mr->rkey, cases[i].addr,
			     cases[i].len);
			assert_int_equal(wait_one(&pair.end[0]).vendor_err,
					 cases[i].status);
		}
	}
	close_pair(&pair);
}

/* -- completions ------------------------------------------------------------ */

/* A queue with fewer places than there are requests: none is lost. */
static void test_overrun(void **state)
{
	struct pair pair =
		open_pair(&(struct kind){ .rnr_retry = -1, .cqe = 4 });
	bool sent[DEPTH] = { false }, got[DEPTH] = { false };

	(void)state;
	for (uint64_t i = 0; i < DEPTH; i++)
		assert_int_equal(receive(&pair.end[1], i, i * 64, 64), 0);
	for (uint64_t i = 0; i < DEPTH; i++)
		assert_int_equal(send_to(&pair, i, 0, 8), 0);
	/* The device goes on while nobody looks. */
	usleep(20000);
	for (unsigned int i = 0; i < DEPTH; i++) {
		struct seen seen = wait_one(&pair.end[1]);

		assert_int_equal(seen.status, IBV_WC_SUCCESS);
		assert_true(seen.wr_id < DEPTH && !got[seen.wr_id]);
		got[seen.wr_id] = true;
		seen = wait_one(&pair.end[0]);
		assert_int_equal(seen.status, IBV_WC_SUCCESS);
		assert_true(seen.wr_id < DEPTH && !sent[seen.wr_id]);
		sent[seen.wr_id] = true;
	}
	expect_working(&pair);
	close_pair(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_target_gone),
		cmocka_unit_test(test_reader_gone),
		cmocka_unit_test(test_memory_gone),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_overrun),
	};

	/* Nobody is waited for that long. */
	setenv("WEFT_EFA_TIMEOUT", "300ms", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
