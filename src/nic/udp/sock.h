/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket of nic/udp: batches of packets out (sendmmsg, segmentation by the
 * kernel where it has that) and in (recvmmsg, coalescing likewise). Knows
 * nothing of what is in a packet.
 */
#ifndef WF_NIC_UDP_SOCK_H
#define WF_NIC_UDP_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "nic/udp/engine/engine.h"
#include "nic/udp/fault.h"
#include "os/socket.h"

#define WF_UDP_TX_MSGS 32u
#define WF_UDP_TX_PACKETS 256u
#define WF_UDP_TX_IOVS (WF_UDP_TX_PACKETS * 2)
/* A header and as much payload as is cheaper to copy than to point to. */
#define WF_UDP_TX_ROOM 320u
#define WF_UDP_RX_MSGS 8u
#define WF_UDP_RX_BYTES 65536u

#define WF_UDP_TX_CONTROL                                                      \
	(CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(struct in6_pktinfo)))

struct wf_udp_tx_msg {
	struct wf_addr to;
	uint32_t seg;	/* bytes of each packet; the last may be shorter */
	uint32_t bytes; /* of all */
	uint16_t first; /* packet */
	uint16_t count;
	bool closed;	     /* takes no more packets */
	struct wf_addr from; /* as sock->from was */
	_Alignas(struct cmsghdr) char control[WF_UDP_TX_CONTROL];
};

/* Packets that leave with the next flush. */
struct wf_udp_tx {
	unsigned msgs;
	unsigned packets;
	unsigned iovs;
	struct mmsghdr heads[WF_UDP_TX_MSGS];
	struct wf_udp_tx_msg msg[WF_UDP_TX_MSGS];
	struct iovec iov[WF_UDP_TX_IOVS];
	uint16_t iov_end[WF_UDP_TX_PACKETS]; /* for fault injection */
	void *token[WF_UDP_TX_PACKETS];
	uint8_t room[WF_UDP_TX_PACKETS][WF_UDP_TX_ROOM];
};

struct wf_udp_rx {
	struct mmsghdr heads[WF_UDP_RX_MSGS];
	struct iovec iov[WF_UDP_RX_MSGS];
	struct sockaddr_storage from[WF_UDP_RX_MSGS];
	char control[WF_UDP_RX_MSGS][128] WF_ALIGNED(8);
	uint8_t *buffers;
	unsigned want; /* how many to ask for next: adapts */
	bool full;     /* the last look found as many as it asked for */
};

struct wf_udp_sock {
	int fd;
	bool own_fd;
	bool gso;
	bool gro;
	bool errors; /* the kernel has some to tell */
	/* Bound to any address: a peer knows us by the one that it uses, so
	 * that packets to it must come from that one. Family 0: the kernel
	 * chooses. Ports do not matter. */
	bool any;
	bool dual;	     /* any address of IPv6, and so of IPv4 */
	struct wf_addr name; /* the one that peers are told; or none */
	struct wf_addr here; /* where the packet that is looked at came to */
	struct wf_addr from; /* where the packets made next leave from */
	uint32_t mtu_most;   /* as the caller said; 0: whatever the path has */
	uint32_t link_mtu;   /* of the interface we are bound to */
	uint32_t rcvbuf;
	uint32_t overflow; /* as the kernel last said */
	struct wf_nic_counters *counters;
	struct wf_udp_fault *fault; /* NULL: none */
	bool failed; /* the kernel would not send a packet, ... */
	struct wf_udp_failure failure; /* ... the last such one */
	struct wf_udp_tx tx;
	struct wf_udp_rx rx;
};

int wf_udp_sock_open(struct wf_udp_sock *sock, const struct wf_nic_attr *attr,
		     struct wf_addr *addr, struct wf_nic_counters *counters);
void wf_udp_sock_close(struct wf_udp_sock *sock);

/* Bytes of a datagram's payload that reach @to in one piece. */
uint32_t wf_udp_sock_path(const struct wf_udp_sock *sock,
			  const struct wf_addr *to);

/* A packet of @total bytes for @to. Its first bytes are written to what this
 * returns (WF_UDP_TX_ROOM), said with wf_udp_sock_piece(), and more pieces may
 * follow. NULL: flush first. @token comes back if the kernel does not take it.
 * @alone: no segment of a larger buffer.
 */
void *wf_udp_sock_packet(struct wf_udp_sock *sock, const struct wf_addr *to,
			 size_t total, bool alone, void *token);
void wf_udp_sock_piece(struct wf_udp_sock *sock, const void *bytes, size_t len);

/* Sends. @unsent is called for each packet that the kernel had no room for, in
 * order. -EAGAIN: there were some. */
int wf_udp_sock_flush(struct wf_udp_sock *sock, uint64_t now,
		      void (*unsent)(void *arg, void *token), void *arg);

/* Receives what is there, up to a batch, and calls @packet for each. Returns
 * how many datagrams; 0: none. */
int wf_udp_sock_receive(struct wf_udp_sock *sock, unsigned most,
			void (*packet)(void *arg, const struct wf_addr *from,
				       const uint8_t *bytes, size_t len),
			void *arg);

/* Errors that the network reported, each once. */
void wf_udp_sock_errors(struct wf_udp_sock *sock,
			void (*found)(void *arg,
				      const struct wf_udp_icmp *icmp),
			void *arg);

#endif
