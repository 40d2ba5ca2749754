/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP sockets of the simulated nodes and the network between them. A packet to
 * a port that nobody owns causes an ICMP error, which the error queue of the
 * sender's socket reports. A packet that finds no room in the receiver's buffer
 * is lost, and so is a packet that is larger than the link's MTU and must not
 * be fragmented (EMSGSIZE).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/udp.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "kernel.h"
#include "net.h"
#include "nic/udp/engine/packet_defs.h"
#include "real.h"
#include "wrap.h"

#define RCVBUF (4u << 20)
#define SKB_OVERHEAD 768u
#define PORT_FIRST 33000
#define LINK_NS (15 * SIM_US)
#define LOCAL_NS (3 * SIM_US)
#define RETRY_NS (200 * SIM_MS) /* of TCP */
#define HEADS 28u
#define FIRST_NET 0x0a000001u
#define SECOND_NET 0x0a010001u
#define HEADER 24u /* bytes protected by their own checksum */

struct datagram {
	struct datagram *next;
	struct sockaddr_in from, to;
	struct sim_node *src, *dst;
	int error; /* an ICMP message about a packet that we sent */
	size_t len;
	uint8_t data[];
};

struct inet_file {
	struct sim_file file;
	struct sim_node *node;
	struct inet_file *next;
	struct sockaddr_in here; /* port 0: not bound */
	struct sockaddr_in there;
	bool pktinfo, recverr, connected;
	int pending; /* so_error */
	struct datagram *first, **last;
	struct datagram *errors;
	size_t queued;
};

static struct inet_file *sockets;
static const struct sim_file_ops inet_ops;
static uint64_t cut_until[SIM_NODES][SIM_NODES];

/* -- addresses -------------------------------------------------------------- */

struct in_addr sim_net_addr(const struct sim_node *node)
{
	return (struct in_addr){ htonl(FIRST_NET + node->number) };
}

struct in_addr sim_net_second(const struct sim_node *node)
{
	return (struct in_addr){ htonl(SECOND_NET + node->number) };
}

static bool is_loopback(struct in_addr addr)
{
	return ntohl(addr.s_addr) >> 24 == 127;
}

struct sim_node *sim_net_node(struct in_addr addr)
{
	uint32_t n = ntohl(addr.s_addr) - FIRST_NET;

	if (n >= sim.s.nodes && sim.s.any)
		n = ntohl(addr.s_addr) - SECOND_NET;
	return n < sim.s.nodes ? &sim.node[n] : NULL;
}

struct sim_node *sim_net_seen(struct sim_node *from, struct in_addr addr)
{
	return is_loopback(addr) ? from : sim_net_node(addr);
}

bool sim_net_has(const struct sim_node *node, struct in_addr addr)
{
	return !addr.s_addr || is_loopback(addr) || sim_net_node(addr) == node;
}

struct in_addr sim_net_source(struct sim_node *node, struct in_addr to)
{
	return sim_net_seen(node, to) == node ? to : sim_net_addr(node);
}

uint64_t sim_net_arrival(struct sim_node *from, struct in_addr addr)
{
	const struct sim_node *to = sim_net_seen(from, addr);
	uint64_t at = sim.now;

	if (!to || (to != from && sim.s.blocked))
		return SIM_NEVER;
	if (cut_until[from->number][to->number] > at)
		at = cut_until[from->number][to->number] + RETRY_NS;
	return at + (to == from ? LOCAL_NS : LINK_NS) +
	       sim_rng_below(&sim.net, 2 * SIM_US);
}

void sim_net_cut(unsigned int from, unsigned int to, uint64_t until)
{
	cut_until[from][to] = until;
}

struct sim_file *sim_inet_socket(bool nonblocking)
{
	struct inet_file *sock = real_calloc(1, sizeof(*sock));

	sock->file.ops = &inet_ops;
	sock->file.refs = 1;
	sock->file.nonblocking = nonblocking;
	sock->node = sim_proc_current()->node;
	sock->last = &sock->first;
	sock->here.sin_family = AF_INET;
	sock->next = sockets;
	sockets = sock;
	return &sock->file;
}

static struct inet_file *find_socket(const struct sim_node *node,
				     struct sockaddr_in to, bool exact)
{
	for (struct inet_file *s = sockets; s; s = s->next) {
		if (s->node != node || s->here.sin_port != to.sin_port)
			continue;
		if (s->here.sin_addr.s_addr == to.sin_addr.s_addr ||
		    !s->here.sin_addr.s_addr || (exact && !to.sin_addr.s_addr))
			return s;
	}
	return NULL;
}

static int inet_bind(struct sim_file *file, const struct sockaddr *sa,
		     socklen_t len)
{
	struct inet_file *sock = (struct inet_file *)file;
	struct sockaddr_in want;

	if (len < sizeof(want) || sa->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	memcpy(&want, sa, sizeof(want));
	if (!sim_net_has(sock->node, want.sin_addr))
		return -EADDRNOTAVAIL;
	if (want.sin_port && find_socket(sock->node, want, true))
		return -EADDRINUSE;
	while (!want.sin_port) {
		want.sin_port =
			htons((uint16_t)(PORT_FIRST + sock->node->next_port++));
		if (find_socket(sock->node, want, true))
			want.sin_port = 0;
	}
	sock->here = want;
	return 0;
}

/* The source address of packets to @to. */
static struct in_addr source_for(const struct inet_file *sock,
				 struct in_addr to)
{
	if (sock->here.sin_addr.s_addr)
		return sock->here.sin_addr;
	return sim_net_source(sock->node, to);
}

static int inet_connect(struct sim_file *file, const struct sockaddr *sa,
			socklen_t len)
{
	struct inet_file *sock = (struct inet_file *)file;

	if (len < sizeof(sock->there) || sa->sa_family != AF_INET)
		return -EAFNOSUPPORT;
	memcpy(&sock->there, sa, sizeof(sock->there));
	sock->connected = true;
	return 0;
}

static int inet_getname(struct sim_file *file, struct sockaddr *sa,
			socklen_t *len)
{
	const struct inet_file *sock = (struct inet_file *)file;
	struct sockaddr_in name = sock->here;

	if (sock->connected)
		name.sin_addr = source_for(sock, sock->there.sin_addr);
	memcpy(sa, &name, *len < sizeof(name) ? *len : sizeof(name));
	*len = sizeof(name);
	return 0;
}

/* -- the network ------------------------------------------------------------ */

static void enqueue(struct inet_file *sock, struct datagram *d)
{
	size_t bytes = d->len + SKB_OVERHEAD;

	if (sock->queued + bytes > RCVBUF) {
		real_free(d);
		return;
	}
	sock->queued += bytes;
	*sock->last = d;
	sock->last = &d->next;
	sim_changed();
}

static void refuse(void *arg)
{
	struct datagram *d = arg;
	struct inet_file *sock = find_socket(d->src, d->from, false);

	if (!sock || !sock->recverr) {
		real_free(d);
		return;
	}
	d->error = ECONNREFUSED;
	d->next = sock->errors;
	sock->errors = d;
	sock->pending = ECONNREFUSED;
	sim_changed();
}

static void arrive(void *arg)
{
	struct datagram *d = arg;
	struct inet_file *sock = find_socket(d->dst, d->to, false);

	d->next = NULL;
	if (sock)
		enqueue(sock, d);
	else
		sim_event_at(sim.now + LOCAL_NS, refuse, d);
}

static struct datagram *copy_of(const struct datagram *d)
{
	struct datagram *copy = real_malloc(sizeof(*d) + d->len);

	memcpy(copy, d, sizeof(*d) + d->len);
	return copy;
}

/* For the trace: source and destination of a packet, its type and sequence
 * number, and what happens to it (see nic/udp/engine/packet_defs.h). */
static void note_packet(const struct datagram *d, const char *fate)
{
	static const char *const types[] = {
		"?",	"INIT", "COOKIE", "OPEN", "ACCEPT", "RESET",  "CLOSE",
		"DATA", "ACK",	"NACK",	  "PING", "PROBE",  "PROBED",
	};
	uint8_t type = d->len > 1 ? d->data[1] : 0;
	uint32_t seq = 0;

	if (d->len >= 20)
		memcpy(&seq, d->data + 16, sizeof(seq));
	if (type >= sizeof(types) / sizeof(types[0]))
		type = 0;
	if (type >= WF_UDP_CLOSE)
		sim_note("packet p%u-p%u: %s %u, %zu bytes%s",
			 app_of_port(d->from.sin_port),
			 app_of_port(d->to.sin_port), types[type], seq, d->len,
			 fate);
	else
		sim_note("packet p%u-p%u: %s%s", app_of_port(d->from.sin_port),
			 app_of_port(d->to.sin_port), types[type], fate);
}

static bool never_arrives(const struct datagram *d, const struct sim_node *from,
			  const struct sim_node *to)
{
	return cut_until[from->number][to->number] > sim.now ||
	       (to != from &&
		(sim.s.blocked ||
		 (sim.s.narrow && d->len + HEADS > sim.s.narrow)));
}

/* Returns when it arrives; 0: never. Other packets may arrive in its place. */
static uint64_t damage(struct datagram *d, uint64_t at)
{
	struct sim_rng *rng = &sim.fault[SIM_FAULT_LOSS];

	switch (sim_rng_below(rng, 5)) {
	case 2:
		note_packet(d, ", comes twice");
		sim_event_at(at + sim_rng_below(rng, 3 * SIM_MS), arrive,
			     copy_of(d));
		return at;
	case 3:
		note_packet(d, ", comes late");
		return at + sim_rng_below(rng, 500 * SIM_US);
	case 4:
		/* The kernel's checksum detects damage, unless a hostile or
		 * broken device on the way has computed a new checksum. Only
		 * the header is protected against that. */
		note_packet(d, ", is damaged");
		if (d->len > HEADER)
			d->data[sim_rng_below(rng, HEADER)] ^=
				(uint8_t)(1u << sim_rng_below(rng, 8));
		return at;
	default:
		note_packet(d, ", is lost");
		return 0;
	}
}

/* An attacker who knows addresses and ports, but has not seen the packet,
 * reports several times that it was refused. */
static void forge(const struct datagram *about)
{
	uint64_t count = 1 + sim_rng_below(&sim.fault[SIM_FAULT_ICMP], 6);

	note_packet(about, ": somebody says that it was refused");
	while (count--) {
		struct datagram *d = copy_of(about);

		d->len = d->len < 16 ? d->len : 16;
		if (d->len)
			real_memset(d->data, 0, d->len);
		sim_event_at(sim.now + LOCAL_NS, refuse, d);
	}
}

/* Applies the faults of the link to a packet. */
static void transmit(struct datagram *d)
{
	const struct sim_node *from = d->src, *to = d->dst;
	uint64_t at;

	if (!to) {
		real_free(d);
		return;
	}
	if (sim_fault(SIM_FAULT_ICMP))
		forge(d);
	at = sim.now + (to == from ? LOCAL_NS : LINK_NS) +
	     sim_rng_below(&sim.net, 2 * SIM_US);
	if (never_arrives(d, from, to)) {
		note_packet(d, ", does not pass");
		at = 0;
	} else if (sim_fault(SIM_FAULT_LOSS)) {
		at = damage(d, at);
	} else {
		note_packet(d, "");
	}
	if (at)
		sim_event_at(at, arrive, d);
	else
		real_free(d);
}

static void control_of(const struct msghdr *msg, size_t *segment,
		       struct in_addr *from)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		if (c->cmsg_level == IPPROTO_UDP &&
		    c->cmsg_type == UDP_SEGMENT) {
			uint16_t size;

			memcpy(&size, CMSG_DATA(c), sizeof(size));
			*segment = size;
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			if (info.ipi_spec_dst.s_addr)
				*from = info.ipi_spec_dst;
		}
	}
}

static ssize_t inet_sendmsg(struct sim_file *file, const struct msghdr *msg,
			    int flags)
{
	struct inet_file *sock = (struct inet_file *)file;
	struct sockaddr_in to = sock->there, from = sock->here;
	static uint8_t whole[1 << 17];
	size_t len = 0, segment = 0, mtu;

	(void)flags;
	if (sock->pending) {
		int err = sock->pending;

		sock->pending = 0;
		return -err;
	}
	if (msg->msg_name)
		memcpy(&to, msg->msg_name, sizeof(to));
	if (sim_fault(SIM_FAULT_FULL))
		return sim_rng_one_in(&sim.fault[SIM_FAULT_FULL], 2) ? -EAGAIN :
								       -ENOBUFS;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		memcpy(whole + len, msg->msg_iov[i].iov_base,
		       msg->msg_iov[i].iov_len);
		len += msg->msg_iov[i].iov_len;
	}
	from.sin_addr = source_for(sock, to.sin_addr);
	control_of(msg, &segment, &from.sin_addr);
	if (!segment)
		segment = len;
	mtu = sim_net_seen(sock->node, to.sin_addr) == sock->node ? 65536u :
								    SIM_NET_MTU;
	if (segment + HEADS > mtu)
		return -EMSGSIZE;
	for (size_t at = 0; at < len || !at; at += segment) {
		size_t n = len - at < segment ? len - at : segment;
		struct datagram *d = real_calloc(1, sizeof(*d) + n);

		d->from = from;
		d->to = to;
		d->src = sock->node;
		d->dst = sim_net_seen(sock->node, to.sin_addr);
		d->len = n;
		memcpy(d->data, whole + at, n);
		transmit(d);
		if (!len)
			break;
	}
	return (ssize_t)len;
}

static void put_control(struct msghdr *msg, size_t room, int level, int type,
			const void *value, size_t len)
{
	struct cmsghdr c = { .cmsg_level = level,
			     .cmsg_type = type,
			     .cmsg_len = CMSG_LEN(len) };
	char *at = (char *)msg->msg_control + msg->msg_controllen;

	if (msg->msg_controllen + CMSG_SPACE(len) > room)
		return;
	memset(at, 0, CMSG_SPACE(len));
	memcpy(at, &c, sizeof(c));
	memcpy(at + CMSG_LEN(0), value, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

static ssize_t hand_over(struct msghdr *msg, const struct datagram *d,
			 struct sockaddr_in name)
{
	size_t done = 0;

	if (msg->msg_name) {
		memcpy(msg->msg_name, &name, sizeof(name));
		msg->msg_namelen = sizeof(name);
	}
	for (size_t i = 0; i < msg->msg_iovlen && done < d->len; i++) {
		size_t n = d->len - done;

		if (n > msg->msg_iov[i].iov_len)
			n = msg->msg_iov[i].iov_len;
		memcpy(msg->msg_iov[i].iov_base, d->data + done, n);
		done += n;
	}
	msg->msg_flags = done < d->len ? MSG_TRUNC : 0;
	return (ssize_t)done;
}

static ssize_t take_error(struct inet_file *sock, struct msghdr *msg)
{
	struct datagram *d = sock->errors;
	struct sock_extended_err err = { .ee_origin = SO_EE_ORIGIN_ICMP };
	size_t room = msg->msg_controllen;
	ssize_t len;

	if (!d)
		return -EAGAIN;
	sock->errors = d->next;
	err.ee_errno = (uint32_t)d->error;
	msg->msg_controllen = 0;
	len = hand_over(msg, d, d->to);
	put_control(msg, room, IPPROTO_IP, IP_RECVERR, &err, sizeof(err));
	real_free(d);
	return len;
}

static ssize_t inet_recvmsg(struct sim_file *file, struct msghdr *msg,
			    int flags)
{
	struct inet_file *sock = (struct inet_file *)file;
	struct datagram *d = sock->first;
	size_t room = msg->msg_controllen;
	ssize_t len;

	if (flags & MSG_ERRQUEUE)
		return take_error(sock, msg);
	if (sock->pending) {
		int err = sock->pending;

		sock->pending = 0;
		return -err;
	}
	if (!d)
		return -EAGAIN;
	sock->first = d->next;
	if (!sock->first)
		sock->last = &sock->first;
	sock->queued -= d->len + SKB_OVERHEAD;
	msg->msg_controllen = 0;
	len = hand_over(msg, d, d->from);
	if (sock->pktinfo) {
		const struct in_pktinfo info = { .ipi_spec_dst = d->to.sin_addr,
						 .ipi_addr = d->to.sin_addr };

		put_control(msg, room, IPPROTO_IP, IP_PKTINFO, &info,
			    sizeof(info));
	}
	real_free(d);
	return len;
}

static uint32_t inet_events(struct sim_file *file)
{
	const struct inet_file *sock = (struct inet_file *)file;

	return EPOLLOUT | (sock->first ? EPOLLIN : 0) |
	       (sock->errors || sock->pending ? EPOLLERR : 0);
}

static void inet_release(struct sim_file *file)
{
	struct inet_file *sock = (struct inet_file *)file, **at;
	struct datagram *d;

	for (at = &sockets; *at != sock; at = &(*at)->next)
		;
	*at = sock->next;
	while ((d = sock->first)) {
		sock->first = d->next;
		real_free(d);
	}
	while ((d = sock->errors)) {
		sock->errors = d->next;
		real_free(d);
	}
	real_free(sock);
}

static int inet_getopt(struct sim_file *file, int level, int name, void *value,
		       socklen_t *len)
{
	const struct inet_file *sock = (struct inet_file *)file;
	int answer;

	if (level == SOL_SOCKET && name == SO_RCVBUF)
		answer = RCVBUF;
	else if (level == IPPROTO_IP && name == IP_MTU)
		answer = sim_net_node(sock->there.sin_addr) == sock->node ||
					 is_loopback(sock->there.sin_addr) ?
				 65536 :
				 SIM_NET_MTU;
	else if (level == IPPROTO_UDP && name == UDP_SEGMENT)
		answer = 0;
	else
		return -ENOPROTOOPT;
	memcpy(value, &answer, sizeof(answer));
	*len = sizeof(answer);
	return 0;
}

static int inet_setopt(struct sim_file *file, int level, int name,
		       const void *value, socklen_t len)
{
	struct inet_file *sock = (struct inet_file *)file;
	int on = 0;

	memcpy(&on, value, len < sizeof(on) ? len : sizeof(on));
	if (level == IPPROTO_IP && name == IP_RECVERR)
		sock->recverr = on;
	if (level == IPPROTO_IP && name == IP_PKTINFO)
		sock->pktinfo = on;
	/* Packets are received one by one: the simulated network does not
	 * coalesce them. */
	if (level == IPPROTO_UDP && name == UDP_GRO)
		return -ENOPROTOOPT;
	return 0;
}

static const struct sim_file_ops inet_ops = {
	.name = "udp",
	.events = inet_events,
	.release = inet_release,
	.sendmsg = inet_sendmsg,
	.recvmsg = inet_recvmsg,
	.bind = inet_bind,
	.connect = inet_connect,
	.getname = inet_getname,
	.getopt = inet_getopt,
	.setopt = inet_setopt,
};
