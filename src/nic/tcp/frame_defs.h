/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header defines the frames that two NICs send to each other over TCP.
 * Little-endian. A connection begins with the hello of the side that connected
 * and the answer of the other side. Then frames follow in both directions: a
 * head, for RDMA an extension of the head, and the payload.
 *
 * Each channel counts its frames from WF_TCP_NACK on, in each direction. A head
 * says how many frames of the other side have arrived. The count continues when
 * a connection breaks and another one replaces it.
 */
#ifndef WF_NIC_TCP_FRAME_DEFS_H
#define WF_NIC_TCP_FRAME_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "frames are written in place");

#define WF_TCP_HELLO_MAGIC 0x50547477u /* "wtTP" */
#define WF_TCP_VERSION 4u

/* Small messages have a connection of their own, so that none waits for a large
 * one. Bulk has one for each address that both sides have: the first is
 * WF_TCP_BULK, the next ones follow it. */
#define WF_TCP_RAILS_MOST 4

enum wf_tcp_channel {
	WF_TCP_SMALL,
	WF_TCP_BULK,
	WF_TCP_CHANNELS = WF_TCP_BULK + WF_TCP_RAILS_MOST,
};

enum wf_tcp_word {
	WF_TCP_HELLO = 1,   /* of the side that connects */
	WF_TCP_WELCOME = 2, /* frames may follow */
	WF_TCP_YIELD = 3,   /* the other side's own connection is used */
	WF_TCP_ASTRAY = 4,  /* TLS: the connection did not lead to whom it names
			       */
};

/* An address. */
struct wf_tcp_rail {
	uint16_t family; /* 4 or 6 */
	uint16_t port;
	uint8_t addr[16]; /* IPv4: the first four, as in a packet */
};

static_assert(sizeof(struct wf_tcp_rail) == 20, "rail");

struct wf_tcp_hello {
	uint32_t magic;
	uint8_t version;
	uint8_t word;
	uint8_t channel;
	uint8_t insists; /* its connection is to be used whatever the other has
			    under way */
	uint64_t life;	 /* of the sender, as this peer knows it */
	uint64_t known;	 /* the life of the receiver that it knows; 0: none */
	uint32_t number; /* of its connections to this peer; from 1 on */
	/* Of the receiver's connections: the last one that the sender welcomed,
	 * which is over for it; 0: none. */
	uint32_t replaces;
	uint32_t taken; /* counted frames of the receiver that are here */
	uint16_t port;	/* where the sender listens */
	uint16_t rails; /* SMALL: further addresses of the sender */
	struct wf_tcp_rail rail[WF_TCP_RAILS_MOST - 1];
	/* HELLO by TLS: both ends of the connection as its sender sees them. All
	 * processes have the same key: without this, whoever can redirect a
	 * connection would choose which of them it leads to. Else zeroes. */
	struct wf_tcp_rail from; /* the port is the one above */
	struct wf_tcp_rail to;
	uint32_t reserved;
};

static_assert(sizeof(struct wf_tcp_hello) == 144, "hello");
static_assert(offsetof(struct wf_tcp_hello, life) == 8, "hello");
static_assert(offsetof(struct wf_tcp_hello, number) == 24, "hello");
static_assert(offsetof(struct wf_tcp_hello, taken) == 32, "hello");
static_assert(offsetof(struct wf_tcp_hello, port) == 36, "hello");
static_assert(offsetof(struct wf_tcp_hello, from) == 100, "hello");

#define WF_TCP_MAGIC 0xa7

enum wf_tcp_kind {
	WF_TCP_ACK = 1,
	WF_TCP_BYE = 2,	 /* the sender's NIC is being closed */
	WF_TCP_REST = 3, /* the connection was idle for long and is closed */
	WF_TCP_NACK = 4, /* a frame was refused; counted from here on */
	WF_TCP_SEND = 5,
	WF_TCP_WRITE = 6,
	WF_TCP_READ = 7,
	WF_TCP_DATA = 8, /* of a read */
	WF_TCP_FAIL = 9, /* a read cannot be served */
	WF_TCP_KINDS,
};

#define WF_TCP_HAS_IMM 0x1u
/* READ and WRITE: the key is one of the target's user, imm its higher half. */
#define WF_TCP_USER_KEY 0x2u
/* SEND: the first arg bytes complete a receive. Those from wf_tcp_split_at() on go
 * where the user says; the ones between mean nothing. So they begin at a line of
 * the stream, if the head does: kernels copy twice as fast what is aligned. */
#define WF_TCP_SPLIT 0x4u
/* ACK: the other side is to send one as well, over this connection. */
#define WF_TCP_ASKS 0x8u
#define WF_TCP_SPLIT_ALIGN 64u
/* SEND: nothing else is on its way, and somebody waits for the end of this: it is
 * to be acknowledged soon. */
#define WF_TCP_WAITS 0x10u

struct wf_tcp_head {
	uint8_t magic;
	uint8_t kind;
	uint8_t flags;
	uint8_t status; /* NACK, FAIL: why; SEND, WRITE: the tries without a
			   receive before it is to be refused */
	uint32_t len;	/* of the payload */
	/* Of SMALL; and of the bulk channel that the head is on, or on SMALL of
	 * the first one. */
	uint32_t ack[2];
	uint16_t dst_qpn;
	uint16_t src_qpn;
	uint32_t qkey;
	uint32_t imm;
	uint32_t arg; /* NACK: the frame's number; READ: bytes wanted; SEND:
			 WF_TCP_SPLIT */
};

static_assert(sizeof(struct wf_tcp_head) == 32, "head");
static_assert(offsetof(struct wf_tcp_head, len) == 4, "head");
static_assert(offsetof(struct wf_tcp_head, ack) == 8, "head");
static_assert(offsetof(struct wf_tcp_head, dst_qpn) == 16, "head");
static_assert(offsetof(struct wf_tcp_head, arg) == 28, "head");

/* WRITE and READ; DATA and FAIL have it for the id alone. */
struct wf_tcp_rdma {
	uint64_t addr;
	uint32_t key;
	uint32_t id; /* of a read, the reader's; NACK: unused */
};

static_assert(sizeof(struct wf_tcp_rdma) == 16, "RDMA");

struct wf_tcp_frame {
	struct wf_tcp_head head;
	struct wf_tcp_rdma rdma;
};

static inline uint32_t wf_tcp_split_at(uint32_t arg)
{
	const uint32_t head = sizeof(struct wf_tcp_head);

	return (head + arg + WF_TCP_SPLIT_ALIGN - 1) / WF_TCP_SPLIT_ALIGN *
		       WF_TCP_SPLIT_ALIGN -
	       head;
}

#define WF_TCP_FRAME_MAX ((uint32_t)sizeof(struct wf_tcp_frame))

static_assert(sizeof(struct wf_tcp_frame) == 48, "frame");

#endif
