/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of what the network says against a peer. An ICMP message is easy
 * to forge: addresses and ports are all that the kernel checks. So it is
 * believed only if it quotes a packet of ours with the connection's id. Needs
 * a raw socket, so root.
 */
#include "nic/pair_test.h"

#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "nic/udp/dev.h"
#include "nic/udp/engine/inner.h"

static uint16_t ip_sum(const void *bytes, size_t len)
{
	const uint16_t *words = bytes;
	uint32_t sum = 0;

	for (size_t i = 0; i < len / 2; i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* As if a router told @to that its packet to @about was not delivered. */
static void forge(int raw, struct side *to, struct side *about, uint8_t code,
		  uint16_t mtu, const void *quote, size_t len)
{
	const struct wf_addr *src = wf_nic_socket(to->nic);
	const struct wf_addr *dst = wf_nic_socket(about->nic);
	struct {
		struct icmphdr icmp;
		struct iphdr ip;
		struct udphdr udp;
		uint8_t quote[64];
	} m;
	size_t total = sizeof(m) - sizeof(m.quote) + len;

	memset(&m, 0, sizeof(m));
	assert_true(len <= sizeof(m.quote) && len % 2 == 0);
	m.icmp.type = ICMP_DEST_UNREACH;
	m.icmp.code = code;
	m.icmp.un.frag.mtu = htons(mtu);
	m.ip.version = 4;
	m.ip.ihl = 5;
	m.ip.ttl = 64;
	m.ip.protocol = IPPROTO_UDP;
	m.ip.saddr = src->in.sin_addr.s_addr;
	m.ip.daddr = dst->in.sin_addr.s_addr;
	m.ip.tot_len = htons((uint16_t)(sizeof(m.ip) + sizeof(m.udp) + 1400));
	m.ip.check = ip_sum(&m.ip, sizeof(m.ip));
	m.udp.source = src->in.sin_port;
	m.udp.dest = dst->in.sin_port;
	m.udp.len = htons(sizeof(m.udp) + 1400);
	memcpy(m.quote, quote, len);
	m.icmp.checksum = ip_sum(&m, total);
	assert_int_equal(sendto(raw, &m, total, 0, &src->sa, sizeof(src->in)),
			 (ssize_t)total);
}

static int open_raw(void)
{
	int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);

	if (raw < 0)
		skip();
	return raw;
}

static void look_for_errors(struct side *s)
{
	wf_udp_dev_of(s->nic)->look_at = 0;
	wf_nic_progress(s->nic);
}

/* Review: three forged messages ended a live connection. The peer says nothing
 * meanwhile, so that nothing it sends takes them back. */
static void test_forged_unreachable(void **state)
{
	struct wf_udp_data lie = { .common = { .magic = WF_UDP_MAGIC,
					       .type = WF_UDP_DATA,
					       .dst_cid = 0x1234 } };
	const uint8_t codes[] = { ICMP_PORT_UNREACH, ICMP_HOST_UNREACH,
				  ICMP_NET_UNREACH };
	struct wf_udp_peer *peer;
	struct wf_nic_wr wr;
	struct pair p;
	int raw = open_raw();

	(void)state;
	pair_open(&p);
	hello(&p);
	peer = wf_udp_dev_of(p.a.nic)->engine.peers[0];
	for (int i = 0; i < 30; i++) {
		forge(raw, &p.a, &p.b, codes[i % 3], 0, &lie,
		      i % 2 ? sizeof(lie) : 0);
		look_for_errors(&p.a);
		assert_int_equal(peer->out.state, WF_UDP_OUT_UP);
	}
	assert_int_equal(COUNTED(&p.a, peer_deaths), 0);
	/* A hint all the same: the peer was asked, and answers. */
	peer->heard_at = 0;
	while (!peer->heard_at)
		pair_progress(&p);
	pair_recv(&p.b, 2, 0, 64);
	wr = pair_wr(&p.a, &p.b, 2);
	assert_int_equal(wf_nic_post_inline(p.a.qp, &wr, "x", 1), 0);
	assert_int_equal(pair_wait(&p, &p.b).len, 1);
	assert_int_equal(pair_wait(&p, &p.a).status, WF_NIC_OK);
	close(raw);
	pair_close(&p);
}

/* One that quotes what only the peer and the way there have seen counts. */
static void test_quoted_unreachable(void **state)
{
	struct wf_udp_data quote = { .common = { .magic = WF_UDP_MAGIC,
						 .type = WF_UDP_DATA } };
	struct wf_udp_peer *peer;
	struct pair p;
	int raw = open_raw();

	(void)state;
	pair_open(&p);
	hello(&p);
	peer = wf_udp_dev_of(p.a.nic)->engine.peers[0];
	quote.common.dst_cid = peer->out.remote_cid;
	for (int i = 0; i < 5; i++) {
		forge(raw, &p.a, &p.b, ICMP_PORT_UNREACH, 0, &quote,
		      sizeof(quote));
		look_for_errors(&p.a);
	}
	assert_int_equal(peer->out.state, WF_UDP_OUT_CLOSED);
	assert_int_equal(COUNTED(&p.a, peer_deaths), 1);
	close(raw);
	pair_close(&p);
}

/* A router that cannot carry a packet says what it can: believed if it quotes
 * one, down to a size that passes everywhere. */
static void test_too_large(void **state)
{
	struct wf_udp_data quote = { .common = { .magic = WF_UDP_MAGIC,
						 .type = WF_UDP_DATA,
						 .dst_cid = 0x1234 } };
	struct wf_udp_out *out;
	uint32_t wide;
	struct pair p;
	int raw = open_raw();

	(void)state;
	pair_open(&p);
	hello(&p);
	out = &wf_udp_dev_of(p.a.nic)->engine.peers[0]->out;
	wide = out->seg;
	forge(raw, &p.a, &p.b, ICMP_FRAG_NEEDED, 1400, &quote, sizeof(quote));
	look_for_errors(&p.a);
	assert_int_equal(out->seg, wide);
	quote.common.dst_cid = out->remote_cid;
	forge(raw, &p.a, &p.b, ICMP_FRAG_NEEDED, 1400, &quote, sizeof(quote));
	look_for_errors(&p.a);
	assert_int_equal(out->seg, 1400 - 28 - 64);
	forge(raw, &p.a, &p.b, ICMP_FRAG_NEEDED, 600, &quote, sizeof(quote));
	look_for_errors(&p.a);
	assert_int_equal(out->seg, 1200 - 64);
	close(raw);
	pair_close(&p);
}

/* The kernel believes forged messages, too, and remembers them for its routes:
 * other tests must not see that. */
static bool leave_network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	if (unshare(CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged_unreachable),
		cmocka_unit_test(test_quoted_unreachable),
		cmocka_unit_test(test_too_large),
	};

	if (!leave_network()) {
		printf("needs root, for a network of its own\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
