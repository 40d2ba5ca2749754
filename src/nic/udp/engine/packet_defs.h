/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of nic/udp: everything that two builds must agree on. Little-
 * endian. A peer is identified by its socket address; a connection carries one
 * way, from the side that opened it to the side that accepted it, and each side
 * identifies it by a random 64-bit id that only the other side knows. See
 * docs/nic.md.
 *
 * Any change changes WF_UDP_VERSION.
 */
#ifndef WF_NIC_UDP_PACKET_DEFS_H
#define WF_NIC_UDP_PACKET_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WF_UDP_DATAGRAM_MAX 65507u
#define WF_UDP_MAGIC 0x77 /* 'w' */
#define WF_UDP_VERSION 4

enum wf_udp_type {
	WF_UDP_INIT = 1, /* may I open? src_cid */
	WF_UDP_COOKIE,	 /* prove that you are there; nothing is kept */
	WF_UDP_OPEN,	 /* the cookie again */
	WF_UDP_ACCEPT,	 /* src_cid is what to send to */
	WF_UDP_RESET,	 /* dst_cid, which you sent to, is nobody */
	WF_UDP_CLOSE, /* goodbye; seq: all that came, if data came that way */
	WF_UDP_DATA,
	WF_UDP_ACK,
	WF_UDP_NACK,   /* this packet was refused: status */
	WF_UDP_PING,   /* answered by an ACK, or by a PING the other way */
	WF_UDP_PROBE,  /* padded to seq bytes: do they pass? */
	WF_UDP_PROBED, /* they do: seq */
	WF_UDP_TYPES,
};

enum wf_udp_data_op {
	WF_UDP_FILLER = 0, /* takes the place of what was given up */
	WF_UDP_SEND,
	WF_UDP_WRITE,	  /* addr, key */
	WF_UDP_WRITE_IMM, /* the same, the last of its write: arg = length */
	WF_UDP_READ,	  /* addr, key, arg = length, imm = read id */
	WF_UDP_READ_DATA, /* addr = offset, key = read id, arg = status */
	WF_UDP_DATA_OPS,
};

/* Flags of hellos. */
#define WF_UDP_HELLO_CRC 0x01u	/* payload is covered by the checksum */
#define WF_UDP_HELLO_LATE 0x02u /* as WF_UDP_ACK_LATE */

/* Flags of DATA. */
#define WF_UDP_DATA_ACKS 0x01u	  /* ack_base, ack_ts, ack_tag are valid */
#define WF_UDP_DATA_ACK_NOW 0x02u /* the sender waits */
#define WF_UDP_DATA_IMM 0x04u	  /* SEND: imm is valid */
#define WF_UDP_DATA_ACK_LATE 0x08u
#define WF_UDP_DATA_PART 0x10u /* wf_udp_part follows, then a part */

/* Flags of ACK. The receiver was not served when the packet arrived, and does
 * not know for how long it had waited: ts is not for measuring round trips. */
#define WF_UDP_ACK_LATE 0x01u

/* The beginning of every packet. The checksum is CRC32C of the whole header but
 * itself, and of the payload if the connection requires it. */
struct wf_udp_common {
	uint8_t magic;
	uint8_t type;
	uint8_t flags;
	uint8_t kind; /* version, data op, status, or words of bitmap */
	uint32_t crc;
	uint64_t dst_cid;
};

static_assert(sizeof(struct wf_udp_common) == 16, "common header");
static_assert(offsetof(struct wf_udp_common, type) == 1, "common header");
static_assert(offsetof(struct wf_udp_common, flags) == 2, "common header");
static_assert(offsetof(struct wf_udp_common, kind) == 3, "common header");
static_assert(offsetof(struct wf_udp_common, crc) == 4, "common header");
static_assert(offsetof(struct wf_udp_common, dst_cid) == 8, "common header");

/* INIT to ACCEPT: all of one size, so that an answer never amplifies. */
struct wf_udp_hello {
	struct wf_udp_common common;
	uint64_t src_cid;
	uint64_t cookie;
	uint32_t epoch; /* of the cookie */
	uint32_t mtu;  /* largest datagram, headers of IP and UDP not counted */
	uint32_t rwnd; /* bytes that may be in flight */
	uint32_t ts;   /* microseconds; echoed in the answer */
	uint64_t instance; /* of the device that sends it: random, never 0 */
	uint8_t reserved56[8];
};

static_assert(sizeof(struct wf_udp_hello) == 64, "hello");
static_assert(offsetof(struct wf_udp_hello, src_cid) == 16, "hello");
static_assert(offsetof(struct wf_udp_hello, cookie) == 24, "hello");
static_assert(offsetof(struct wf_udp_hello, epoch) == 32, "hello");
static_assert(offsetof(struct wf_udp_hello, mtu) == 36, "hello");
static_assert(offsetof(struct wf_udp_hello, rwnd) == 40, "hello");
static_assert(offsetof(struct wf_udp_hello, ts) == 44, "hello");
static_assert(offsetof(struct wf_udp_hello, instance) == 48, "hello");

struct wf_udp_data {
	struct wf_udp_common common;
	uint32_t seq;
	uint32_t ts;	   /* microseconds */
	uint32_t ack_base; /* of the connection the other way */
	uint32_t ack_ts;   /* echoed, plus the time it was held */
	uint16_t dst_qpn;
	uint16_t src_qpn;
	uint16_t len;	  /* of the payload */
	uint16_t ack_tag; /* of the connection that is acknowledged */
	uint32_t qkey;
	uint32_t imm;
	uint64_t addr;
	uint32_t key;
	uint32_t arg;
};

static_assert(sizeof(struct wf_udp_data) == 64, "data header");
static_assert(offsetof(struct wf_udp_data, seq) == 16, "data header");
static_assert(offsetof(struct wf_udp_data, ts) == 20, "data header");
static_assert(offsetof(struct wf_udp_data, ack_base) == 24, "data header");
static_assert(offsetof(struct wf_udp_data, ack_ts) == 28, "data header");
static_assert(offsetof(struct wf_udp_data, dst_qpn) == 32, "data header");
static_assert(offsetof(struct wf_udp_data, src_qpn) == 34, "data header");
static_assert(offsetof(struct wf_udp_data, len) == 36, "data header");
static_assert(offsetof(struct wf_udp_data, ack_tag) == 38, "data header");
static_assert(offsetof(struct wf_udp_data, qkey) == 40, "data header");
static_assert(offsetof(struct wf_udp_data, imm) == 44, "data header");
static_assert(offsetof(struct wf_udp_data, addr) == 48, "data header");
static_assert(offsetof(struct wf_udp_data, key) == 56, "data header");
static_assert(offsetof(struct wf_udp_data, arg) == 60, "data header");

/* After the header, and under its checksum. All parts of a packet have its
 * sequence number, and it is acknowledged when all are here. They begin and end
 * at a multiple of the unit or at the end of the whole. */
#define WF_UDP_PART_UNIT 128u
#define WF_UDP_PART_TOTAL 8192u

struct wf_udp_part {
	uint16_t off;
	uint16_t total; /* bytes of the whole */
	uint32_t reserved4;
};

static_assert(sizeof(struct wf_udp_part) == 8, "part");
static_assert(offsetof(struct wf_udp_part, total) == 2, "part");

#define WF_UDP_WINDOW 2048u /* packets of one connection in flight */
#define WF_UDP_ACK_WORDS (WF_UDP_WINDOW / 64)

/* common.kind words of bitmap follow: bit i says that base + 1 + i has
 * arrived. */
struct wf_udp_ack {
	struct wf_udp_common common;
	uint32_t base; /* everything before it is here */
	uint32_t ts;   /* echoed, plus the time it was held */
	uint32_t rwnd;
	uint16_t dups; /* packets received twice so far */
	uint16_t reserved30;
};

static_assert(sizeof(struct wf_udp_ack) == 32, "ack");
static_assert(offsetof(struct wf_udp_ack, base) == 16, "ack");
static_assert(offsetof(struct wf_udp_ack, ts) == 20, "ack");
static_assert(offsetof(struct wf_udp_ack, rwnd) == 24, "ack");
static_assert(offsetof(struct wf_udp_ack, dups) == 28, "ack");

/* RESET, CLOSE, NACK, PING, PROBE, PROBED. */
struct wf_udp_note {
	struct wf_udp_common common;
	uint32_t seq;
	uint32_t ts;
};

static_assert(sizeof(struct wf_udp_note) == 24, "note");
static_assert(offsetof(struct wf_udp_note, seq) == 16, "note");
static_assert(offsetof(struct wf_udp_note, ts) == 20, "note");

#endif
