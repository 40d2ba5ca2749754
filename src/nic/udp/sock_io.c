/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches of packets to and from the socket.
 *
 * Out: packets of one size for one peer that follow each other make one call's
 * worth of segments (UDP_SEGMENT); different ones make messages of one
 * sendmmsg. In: a coalesced datagram (UDP_GRO) is cut up again by the size that
 * the kernel tells.
 */
#include "nic/udp/sock.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/udp.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "os/socket.h"

#define GSO_SEGMENTS 64u /* UDP_MAX_SEGMENTS of older kernels */
#define GSO_BYTES 65000u
#define ERRORS_MOST 16

static bool same_host(const struct wf_addr *a, const struct wf_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

/* Whether a packet may join the message before it. */
static bool joins(const struct wf_udp_sock *sock,
		  const struct wf_udp_tx_msg *msg, const struct wf_addr *to,
		  size_t total)
{
	return sock->gso && !sock->fault && !msg->closed && total <= msg->seg &&
	       msg->count < GSO_SEGMENTS && msg->bytes + total <= GSO_BYTES &&
	       wf_base_addr_equal(&msg->to, to) &&
	       (!sock->any || same_host(&msg->from, &sock->from));
}

void *wf_udp_sock_packet(struct wf_udp_sock *sock, const struct wf_addr *to,
			 size_t total, bool alone, void *token)
{
	struct wf_udp_tx *tx = &sock->tx;
	struct wf_udp_tx_msg *msg = tx->msgs ? &tx->msg[tx->msgs - 1] : NULL;

	if (tx->packets == WF_UDP_TX_PACKETS || tx->iovs + 4 > WF_UDP_TX_IOVS)
		return NULL;
	if (!msg || alone || !joins(sock, msg, to, total)) {
		if (tx->msgs == WF_UDP_TX_MSGS)
			return NULL;
		msg = &tx->msg[tx->msgs];
		msg->to = *to;
		if (wf_unlikely(sock->any))
			msg->from = sock->from;
		msg->seg = (uint32_t)total;
		msg->bytes = 0;
		msg->first = (uint16_t)tx->packets;
		msg->count = 0;
		msg->closed = false;
		tx->heads[tx->msgs].msg_hdr = (struct msghdr){
			.msg_name = &msg->to,
			.msg_namelen = wf_base_addr_len(to),
			.msg_iov = &tx->iov[tx->iovs],
		};
		tx->msgs++;
	}
	/* Only the last segment may be shorter. */
	msg->closed = alone || total < msg->seg;
	msg->bytes += (uint32_t)total;
	msg->count++;
	tx->token[tx->packets] = token;
	return tx->room[tx->packets++];
}

void wf_udp_sock_piece(struct wf_udp_sock *sock, const void *bytes, size_t len)
{
	struct wf_udp_tx *tx = &sock->tx;

	tx->iov[tx->iovs++] = (struct iovec){ (void *)(uintptr_t)bytes, len };
	tx->heads[tx->msgs - 1].msg_hdr.msg_iovlen++;
	tx->iov_end[tx->packets - 1] = (uint16_t)tx->iovs;
}

/* Behind what is there already. */
static void add_control(struct msghdr *head, struct wf_udp_tx_msg *msg,
			int level, int type, const void *value, size_t len)
{
	struct cmsghdr c = { .cmsg_level = level,
			     .cmsg_type = type,
			     .cmsg_len = CMSG_LEN(len) };
	char *at = msg->control + head->msg_controllen;

	memset(at, 0, CMSG_SPACE(len));
	memcpy(at, &c, sizeof(c));
	memcpy(at + CMSG_LEN(0), value, len);
	head->msg_control = msg->control;
	head->msg_controllen += CMSG_SPACE(len);
}

static void add_segment_size(struct msghdr *head, struct wf_udp_tx_msg *msg)
{
	uint16_t seg = (uint16_t)msg->seg;

	add_control(head, msg, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg));
}

static void add_source(struct msghdr *head, struct wf_udp_tx_msg *msg)
{
	if (msg->from.sa.sa_family == AF_INET) {
		const struct in_pktinfo info = {
			.ipi_spec_dst = msg->from.in.sin_addr,
		};

		add_control(head, msg, IPPROTO_IP, IP_PKTINFO, &info,
			    sizeof(info));
	} else if (msg->from.sa.sa_family == AF_INET6) {
		const struct in6_pktinfo info = {
			.ipi6_addr = msg->from.in6.sin6_addr,
		};

		add_control(head, msg, IPPROTO_IPV6, IPV6_PKTINFO, &info,
			    sizeof(info));
	}
}

static void count_sent(struct wf_udp_sock *sock, unsigned from, unsigned to)
{
	uint64_t packets = 0, bytes = 0;

	for (; from < to; from++) {
		packets += sock->tx.msg[from].count;
		bytes += sock->tx.msg[from].bytes;
	}
	wf_nic_count(&sock->counters->tx_packets, packets);
	wf_nic_count(&sock->counters->tx_bytes, bytes);
}

static bool out_of_room(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == EINTR ||
	       error == ENOMEM;
}

/* Packets that the interface cannot segment are sent one by one to that peer
 * from now on. A segment that is larger than the path is another matter: the
 * device asks for the size of the path again. The message that failed counts as
 * lost, and is sent again soon. */
static void classify_failure(struct wf_udp_sock *sock, int error, bool segments)
{
	struct wf_udp_failure *failure = &sock->failure;

	failure->segments = segments;
	failure->too_large = error == EMSGSIZE || (segments && error == EINVAL);
	failure->no_segments =
		segments && (error == EIO || error == EOPNOTSUPP);
}

/* One message is the usual case where latency counts, and the plain call is the
 * cheaper one. The number that was sent, or -errno. */
static int send_some(const struct wf_udp_sock *sock, unsigned from)
{
	struct mmsghdr *heads = (struct mmsghdr *)sock->tx.heads + from;
	unsigned n = sock->tx.msgs - from;
	ssize_t len;

	if (n > 1)
		return wf_os_sendmmsg(sock->fd, heads, n, MSG_DONTWAIT);
	len = wf_os_sendmsg(sock->fd, &heads->msg_hdr, MSG_DONTWAIT);
	return len < 0 ? (int)len : 1;
}

/* How much of a second-level cache one look may fill. */
#define HOT_BYTES (256u << 10)

static int receive_some(struct wf_udp_sock *sock, unsigned want)
{
	struct mmsghdr *heads = sock->rx.heads;
	ssize_t len;

	if (want > 1)
		return wf_os_recvmmsg(sock->fd, heads, want, MSG_DONTWAIT);
	len = wf_os_recvmsg(sock->fd, &heads->msg_hdr, MSG_DONTWAIT);
	heads->msg_len = len < 0 ? 0 : (unsigned)len;
	return len < 0 ? (int)len : 1;
}

/* How many messages were sent or had to be skipped; less: no room. */
static unsigned send_all(struct wf_udp_sock *sock)
{
	struct wf_udp_tx *tx = &sock->tx;
	unsigned done = 0;

	for (unsigned i = 0; i < tx->msgs; i++) {
		if (tx->msg[i].count > 1)
			add_segment_size(&tx->heads[i].msg_hdr, &tx->msg[i]);
		if (wf_unlikely(sock->any))
			add_source(&tx->heads[i].msg_hdr, &tx->msg[i]);
	}
	while (done < tx->msgs) {
		int ret = send_some(sock, done);

		wf_nic_count(&sock->counters->tx_calls, 1);
		if (ret > 0) {
			count_sent(sock, done, done + (unsigned)ret);
			done += (unsigned)ret;
			continue;
		}
		if (ret == -ECONNREFUSED && !sock->errors) {
			/* News of an earlier packet; this one was not tried. */
			sock->errors = true;
			continue;
		}
		if (out_of_room(-ret)) {
			wf_nic_count(&sock->counters->tx_busy, 1);
			break;
		}
		classify_failure(sock, -ret, tx->msg[done].count > 1);
		/* An error of an earlier packet that the network reported, a
		 * link that is down, a route that is gone: lost. */
		wf_nic_count(&sock->counters->tx_errors, 1);
		sock->failed = true;
		sock->failure.to = tx->msg[done].to;
		done++;
	}
	return done;
}

static void send_faulty(struct wf_udp_sock *sock, uint64_t now)
{
	struct wf_udp_tx *tx = &sock->tx;
	unsigned at = 0;

	for (unsigned m = 0; m < tx->msgs; m++) {
		unsigned packet = tx->msg[m].first;
		unsigned end = packet + tx->msg[m].count;

		if (sock->any)
			add_source(&tx->heads[m].msg_hdr, &tx->msg[m]);

		for (; packet < end; packet++) {
			wf_udp_fault_send(sock->fault, &tx->msg[m].to,
					  &tx->heads[m].msg_hdr, &tx->iov[at],
					  (int)(tx->iov_end[packet] - at), now);
			at = tx->iov_end[packet];
		}
	}
	count_sent(sock, 0, tx->msgs);
	wf_udp_fault_run(sock->fault, now);
}

int wf_udp_sock_flush(struct wf_udp_sock *sock, uint64_t now,
		      void (*unsent)(void *arg, void *token), void *arg)
{
	struct wf_udp_tx *tx = &sock->tx;
	unsigned done = tx->msgs, packet;

	if (!tx->msgs)
		return 0;
	if (wf_unlikely(sock->fault))
		send_faulty(sock, now);
	else
		done = send_all(sock);
	packet = done < tx->msgs ? tx->msg[done].first : tx->packets;
	for (unsigned i = packet; i < tx->packets; i++) {
		if (tx->token[i])
			unsent(arg, tx->token[i]);
	}
	tx->msgs = 0;
	done = tx->packets - packet;
	tx->packets = 0;
	tx->iovs = 0;
	return done ? -EAGAIN : 0;
}

/* -- in --------------------------------------------------------------------- */

/* Which of our addresses it came to; bound to one it makes no difference. On an
 * IPv6 socket the kernel names one of IPv4 as an IPv6 address. */
static void read_destination(struct wf_udp_sock *sock, const struct cmsghdr *c)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct in6_pktinfo info6;
	struct in_pktinfo info;

	if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		sock->here = (struct wf_addr){
			.in = { .sin_family = AF_INET,
				.sin_addr = info.ipi_spec_dst },
		};
	} else if (c->cmsg_level == IPPROTO_IPV6 &&
		   c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&info6, CMSG_DATA(c), sizeof(info6));
		in6.sin6_addr = info6.ipi6_addr;
		(void)!wf_base_addr_set(&sock->here, &in6, sizeof(in6));
	}
}

/* The size of coalesced segments, 0: one packet. Notes lost packets. */
static size_t read_control(struct wf_udp_sock *sock, struct msghdr *head)
{
	struct cmsghdr *c;
	size_t seg = 0;

	for (c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			int value;

			memcpy(&value, CMSG_DATA(c), sizeof(value));
			seg = value > 0 ? (size_t)value : 0;
		} else if (c->cmsg_level == SOL_SOCKET &&
			   c->cmsg_type == SO_RXQ_OVFL) {
			uint32_t value;

			memcpy(&value, CMSG_DATA(c), sizeof(value));
			wf_nic_count(&sock->counters->rx_overflow,
				     value - sock->overflow);
			sock->overflow = value;
		} else if (sock->any) {
			read_destination(sock, c);
		}
	}
	return seg;
}

static void cut_up(struct wf_udp_sock *sock, unsigned i,
		   void (*packet)(void *arg, const struct wf_addr *from,
				  const uint8_t *bytes, size_t len),
		   void *arg)
{
	struct msghdr *head = &sock->rx.heads[i].msg_hdr;
	const uint8_t *at = sock->rx.iov[i].iov_base;
	size_t left = sock->rx.heads[i].msg_len;
	size_t seg = read_control(sock, head);
	struct wf_addr from;

	if (wf_base_addr_set(&from, head->msg_name, head->msg_namelen))
		return;
	wf_nic_count(&sock->counters->rx_bytes, left);
	if (!seg)
		seg = left;
	do {
		size_t len = left < seg ? left : seg;

		wf_nic_count(&sock->counters->rx_packets, 1);
		packet(arg, &from, at, len);
		at += len;
		left -= len;
	} while (left);
}

int wf_udp_sock_receive(struct wf_udp_sock *sock, unsigned most,
			void (*packet)(void *arg, const struct wf_addr *from,
				       const uint8_t *bytes, size_t len),
			void *arg)
{
	struct wf_udp_rx *rx = &sock->rx;
	unsigned want = rx->want < most ? rx->want : most;
	uint64_t bytes = 0;
	int got;

	for (unsigned i = 0; i < want; i++) {
		rx->heads[i].msg_hdr.msg_namelen = sizeof(rx->from[i]);
		rx->heads[i].msg_hdr.msg_controllen = sizeof(rx->control[i]);
	}
	got = receive_some(sock, want);
	if (got <= 0) {
		if (got < 0 && got != -EAGAIN && got != -EINTR)
			sock->errors = true;
		wf_nic_count(&sock->counters->rx_empty, 1);
		rx->want = 1;
		rx->full = false;
		return 0;
	}
	wf_nic_count(&sock->counters->rx_calls, 1);
	for (int i = 0; i < got; i++) {
		bytes += rx->heads[i].msg_len;
		cut_up(sock, (unsigned)i, packet, arg);
	}
	/* One at a time while one at a time comes: looking for a second costs
	 * as much as finding one. More after two looks that found as many as
	 * they asked for, nothing in between. */
	if ((unsigned)got < want || !rx->full) {
		rx->full = (unsigned)got == want;
		rx->want = rx->full ? want : 1;
	} else {
		rx->want =
			want * 2 > WF_UDP_RX_MSGS ? WF_UDP_RX_MSGS : want * 2;
	}
	/* The data that the kernel has just copied should still be in the cache
	 * when it is copied again. */
	while (rx->want > 1 && bytes / (unsigned)got * rx->want > HOT_BYTES)
		rx->want--;
	return got;
}

/* False: nothing that matters to a peer. */
static bool read_error(struct msghdr *head, struct wf_udp_icmp *icmp)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c;
	     c = CMSG_NXTHDR(head, c)) {
		struct sock_extended_err err;

		if (c->cmsg_len < CMSG_LEN(sizeof(err)) ||
		    (c->cmsg_level != IPPROTO_IP &&
		     c->cmsg_level != IPPROTO_IPV6))
			continue;
		memcpy(&err, CMSG_DATA(c), sizeof(err));
		icmp->refused = err.ee_errno == ECONNREFUSED;
		icmp->too_large = err.ee_errno == EMSGSIZE;
		icmp->mtu = icmp->too_large ? err.ee_info : 0;
		if (icmp->refused || icmp->too_large ||
		    err.ee_errno == EHOSTUNREACH || err.ee_errno == ENETUNREACH)
			return true;
	}
	return false;
}

void wf_udp_sock_errors(struct wf_udp_sock *sock,
			void (*found)(void *arg,
				      const struct wf_udp_icmp *icmp),
			void *arg)
{
	sock->errors = false;
	for (int i = 0; i < ERRORS_MOST; i++) {
		struct wf_udp_icmp icmp = { .quoted = 0 };
		char control[256] WF_ALIGNED(8);
		struct sockaddr_storage name;
		struct iovec iov = { icmp.quote, sizeof(icmp.quote) };
		struct msghdr head = {
			.msg_name = &name,
			.msg_namelen = sizeof(name),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t len = wf_os_recvmsg(sock->fd, &head,
					    MSG_ERRQUEUE | MSG_DONTWAIT);

		if (len < 0)
			return;
		icmp.quoted = (size_t)len;
		if (!wf_base_addr_set(&icmp.to, &name, head.msg_namelen) &&
		    read_error(&head, &icmp))
			found(arg, &icmp);
	}
}
