/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of TLS by the kernel: the keys that it gets, and connections of
 * which it does one direction, both or none on either side. Where the kernel has
 * no TLS (CONFIG_TLS, modprobe tls), ktls_kernel_test.h takes its place.
 */
#include "nic/pair_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "nic/tcp/dev.h"
#include "nic/tcp/ktls.h"
#include "nic/tcp/ktls_kernel_test.h"
#include "nic/tcp/tls.h"

static char key_file[] = "/tmp/weft-ktls-XXXXXX";

static int make_key(void **state)
{
	int fd = mkstemp(key_file);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123456789abcdef0123456789abcdef", 32), 32);
	close(fd);
	assert_true(wf_tcp_ktls_is_there());
	return 0;
}

static int remove_key(void **state)
{
	(void)state;
	return unlink(key_file);
}

/* -- keys -------------------------------------------------------------------- */

#define CLIENT                                                                 \
	"9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"
#define NUMBER                                                                 \
	" 0000000000000000000000000000000000000000000000000000000000000000 "

static void test_note(void **state)
{
	struct wf_tcp_ktls k = { .has_client = false };

	(void)state;
	wf_tcp_ktls_note(&k, "CLIENT_HANDSHAKE_TRAFFIC_SECRET" NUMBER CLIENT);
	wf_tcp_ktls_note(&k, "EXPORTER_SECRET" NUMBER CLIENT);
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0");
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0 " CLIENT);
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0" NUMBER "9e40");
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0" NUMBER CLIENT "00");
	wf_tcp_ktls_note(&k, "");
	assert_false(k.has_client);
	assert_false(k.has_server);
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0" NUMBER CLIENT);
	assert_true(k.has_client);
	assert_false(k.has_server);
	assert_int_equal(k.client[0], 0x9e);
	assert_int_equal(k.client[31], 0xa5);
	wf_tcp_ktls_wipe(&k);
	assert_false(k.has_client);
	assert_int_equal(k.client[0], 0);
}

/* The application traffic of RFC 8448, 3. */
static void test_derive(void **state)
{
	static const uint8_t client_key[] = { 0x17, 0x42, 0x2d, 0xda,
					      0x59, 0x6e, 0xd5, 0xd9,
					      0xac, 0xd8, 0x90, 0xe3,
					      0xc6, 0x3f, 0x50, 0x51 };
	static const uint8_t client_iv[] = {
		0x5b, 0x78, 0x92, 0x3d, 0xee, 0x08,
		0x57, 0x90, 0x33, 0xe5, 0x23, 0xd9
	};
	struct wf_tcp_ktls k = { .has_client = false };
	uint8_t key[16], iv[WF_TCP_KTLS_IV];

	(void)state;
	wf_tcp_ktls_note(&k, "CLIENT_TRAFFIC_SECRET_0" NUMBER CLIENT);
	assert_int_equal(
		wf_tcp_ktls_derive(NULL, k.client, key, sizeof(key), iv), 0);
	assert_memory_equal(key, client_key, sizeof(key));
	assert_memory_equal(iv, client_iv, sizeof(iv));
}

/* Whatever is missing, the connection stays with OpenSSL. */
static void test_refused(void **state)
{
	struct wf_tcp_ktls k = { .has_client = true, .has_server = true };
	struct wf_tcp_ktls none = { .has_client = true };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), two[2];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(
		wf_tcp_ktls_begin(&k, NULL, fd, true, 0x1301, WF_TCP_KTLS_BOTH),
		0);
	close(fd);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, two), 0);
	assert_int_equal(wf_tcp_ktls_begin(&k, NULL, two[0], true, 0x1301,
					   WF_TCP_KTLS_BOTH),
			 0);
	assert_int_equal(wf_tcp_ktls_begin(&none, NULL, two[0], true, 0x1301,
					   WF_TCP_KTLS_BOTH),
			 0);
	close(two[0]);
	close(two[1]);
}

/* -- connections ------------------------------------------------------------- */

static struct wf_tcp_tls *tls_of(const struct side *s)
{
	return wf_tcp_dev_of(s->nic)->tls;
}

static void open_limited(struct pair *p, unsigned int a, unsigned int b)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);

	attr.key_file = key_file;
	pair_open_attr(p, &attr, &attr);
	wf_tcp_tls_limit_kernel(tls_of(&p->a), a);
	wf_tcp_tls_limit_kernel(tls_of(&p->b), b);
}

/* All connections are done by the kernel as far as it may. */
static unsigned int count_conns(const struct side *s, unsigned int by_kernel)
{
	const struct wf_list *head = &wf_tcp_dev_of(s->nic)->conns, *pos;
	unsigned int count = 0;

	for (pos = head->next; pos != head; pos = pos->next) {
		const struct wf_tcp_conn *conn =
			wf_container_of(pos, struct wf_tcp_conn, link);

		assert_non_null(conn->tls);
		assert_int_equal(wf_tcp_tls_by_kernel(conn->tls), by_kernel);
		count++;
	}
	return count;
}

static void move(struct pair *p, bool reads, uint32_t len, uint32_t seed)
{
	struct wf_nic_remote there = { .addr = (uintptr_t)p->b.memory,
				       .rkey = p->b.mr.rkey };
	struct wf_nic_sge sge = pair_sge(&p->a, 0, len);
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, seed);

	fill(reads ? p->b.memory : p->a.memory, len, seed);
	assert_int_equal((reads ? wf_nic_post_read : wf_nic_post_write)(
				 p->a.qp, &wr, &there, &sge),
			 0);
	assert_int_equal(pair_wait(p, &p->a).status, WF_NIC_OK);
	assert_true(filled(reads ? p->a.memory : p->b.memory, len, seed));
}

/* The two directions of either side do not depend on each other. */
static void test_mixed(void **state)
{
	static const uint32_t sizes[] = { 1,	 1023,	 16361,	 16384,
					  16385, 114688, 1000003 };

	(void)state;
	for (unsigned int both = 0; both < 16; both++) {
		struct pair p;

		open_limited(&p, both & 3, both >> 2);
		hello(&p);
		for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]);
		     i++) {
			move(&p, false, sizes[i], i);
			move(&p, true, sizes[i], i + 100);
		}
		assert_int_equal(count_conns(&p.a, both & 3), 2);
		assert_int_equal(count_conns(&p.b, both >> 2), 2);
		assert_int_equal(COUNTED(&p.a, connects), 2);
		pair_close(&p);
	}
}

/* The kernel may refuse a direction after it has taken the other one (no memory,
 * a cipher that it has not): that one stays with OpenSSL. */
static void test_denied(void **state)
{
	static const unsigned int done[] = { WF_TCP_KTLS_BOTH, WF_TCP_KTLS_RX,
					     WF_TCP_KTLS_TX, 0 };

	(void)state;
	for (unsigned int tx = 0; tx < 2; tx++) {
		for (unsigned int rx = 0; rx < 2; rx++) {
			struct pair p;

			kernel_refuses = tx << WF_TCP_KTLS_OPTION_TX |
					 rx << WF_TCP_KTLS_OPTION_RX;
			open_limited(&p, WF_TCP_KTLS_BOTH, WF_TCP_KTLS_BOTH);
			hello(&p);
			move(&p, false, 100000, 1);
			move(&p, true, 100000, 2);
			count_conns(&p.a, done[tx + 2 * rx]);
			count_conns(&p.b, done[tx + 2 * rx]);
			assert_int_equal(COUNTED(&p.a, connects), 2);
			pair_close(&p);
		}
	}
	kernel_refuses = 0;
}

/* The setting says that OpenSSL does all of it. */
static void test_setting(void **state)
{
	struct wf_nic_attr attr = pair_attr(AF_INET);
	struct pair p;

	(void)state;
	attr.key_file = key_file;
	attr.no_ktls = true;
	pair_open_attr(&p, &attr, &attr);
	hello(&p);
	assert_true(count_conns(&p.a, 0) > 0);
	assert_true(count_conns(&p.b, 0) > 0);
	pair_close(&p);
}

/* -- keys that end ----------------------------------------------------------- */

#define AHEAD 8u
#define LONGEST 16900u /* of a message, and more than a record holds */

static uint32_t length_of(uint64_t number)
{
	return 1 + (uint32_t)number * 7919 % LONGEST;
}

static uint8_t *slot_of(struct side *s, uint64_t slot)
{
	return s->memory + slot * LONGEST;
}

static void post(struct pair *p, uint64_t number)
{
	struct wf_nic_wr wr = pair_wr(&p->a, &p->b, number);
	struct wf_nic_sge sge =
		pair_sge(&p->a, number % AHEAD * LONGEST, length_of(number));

	fill(sge.addr, sge.len, (uint32_t)number);
	assert_int_equal(wf_nic_post_send(p->a.qp, &wr, &sge, 1), 0);
}

/* Each message arrives once, in order and whole. */
static void check_all(struct pair *p, uint64_t count)
{
	uint64_t end = wf_base_clock_ns() + PAIR_LOST * WF_NS_PER_S;
	uint64_t posted = 0, sent = 0, came = 0;
	struct wf_nic_wc wc;

	for (uint64_t i = 0; i < AHEAD; i++)
		pair_recv(&p->b, i, i * LONGEST, LONGEST);
	while (sent < count || came < count) {
		while (posted < count && posted < sent + AHEAD)
			post(p, posted++);
		pair_progress(p);
		while (wf_nic_cq_poll(p->a.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			assert_int_equal(wc.wr_id, sent++);
		}
		while (wf_nic_cq_poll(p->b.cq, &wc, 1)) {
			assert_int_equal(wc.status, WF_NIC_OK);
			assert_int_equal(wc.len, length_of(came));
			assert_true(filled(slot_of(&p->b, wc.wr_id), wc.len,
					   (uint32_t)came));
			came++;
			pair_recv(&p->b, wc.wr_id, wc.wr_id * LONGEST, LONGEST);
		}
		assert_true(wf_base_clock_ns() < end);
	}
	assert_int_equal(COUNTED(&p->a, tls_refused), 0);
	assert_int_equal(COUNTED(&p->b, tls_refused), 0);
}

/* A kernel that sends does not change its key: another connection has another
 * one. A kernel that receives does not know what a change is: the same. */
static void test_rekey(void **state)
{
	static const struct {
		unsigned int a, b;
	} cases[] = {
		{ WF_TCP_KTLS_BOTH, WF_TCP_KTLS_BOTH },
		{ WF_TCP_KTLS_TX, 0 },
		{ 0, WF_TCP_KTLS_RX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		open_limited(&p, cases[i].a, cases[i].b);
		wf_tcp_tls_rekey_after(tls_of(&p.a), 500000);
		check_all(&p, 600);
		assert_true(COUNTED(&p.a, tls_handshakes) > 3);
		pair_close(&p);
	}
}

/* -- memory ------------------------------------------------------------------ */

#define SAFE (192u << 10) /* more than is read before its place is known */
#define WHOLE (256u << 10)

/* As without TLS, memory that cannot be accessed ends the operation and not the
 * connection. */
static void test_memory(void **state)
{
	struct wf_nic_remote there;
	struct wf_nic_mr mr[2];
	struct wf_nic_sge sge;
	struct wf_nic_wr wr;
	struct pair p;
	uint8_t *at;

	(void)state;
	open_limited(&p, WF_TCP_KTLS_BOTH, WF_TCP_KTLS_BOTH);
	hello(&p);
	move(&p, false, WHOLE, 1);
	at = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + SAFE, WHOLE - SAFE, PROT_NONE), 0);
	assert_int_equal(
		wf_nic_mr_reg(p.b.nic, at, WHOLE, WF_NIC_REMOTE_WRITE, &mr[0]),
		0);
	assert_int_equal(
		wf_nic_mr_reg(p.a.nic, at, WHOLE, WF_NIC_LOCAL_WRITE, &mr[1]),
		0);
	wr = pair_wr(&p.a, &p.b, 2);
	sge = pair_sge(&p.a, 0, WHOLE);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)at,
					.rkey = mr[0].rkey };
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_REM_ADDR);
	there = (struct wf_nic_remote){ .addr = (uintptr_t)p.b.memory,
					.rkey = p.b.mr.rkey };
	sge = (struct wf_nic_sge){ at, WHOLE, mr[1].lkey };
	assert_int_equal(wf_nic_post_read(p.a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_BAD_LKEY);
	assert_int_equal(wf_nic_post_write(p.a.qp, &wr, &there, &sge), 0);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_BAD_LKEY);
	move(&p, false, WHOLE, 3);
	hello(&p);
	pair_close(&p);
	munmap(at, WHOLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_note),	cmocka_unit_test(test_derive),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_setting),
		cmocka_unit_test(test_mixed),	cmocka_unit_test(test_denied),
		cmocka_unit_test(test_rekey),	cmocka_unit_test(test_memory),
	};

	pair_device = "tcp";
	return cmocka_run_group_tests(tests, make_key, remove_key);
}
