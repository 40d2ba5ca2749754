/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packets of EFA's RDM protocol, version 4: numbers, flags and sizes.
 * Little-endian, offsets from the packet's start. The table of packet.c says
 * where each field stands, one row per packet; this file holds what does not
 * fit a row.
 *
 *	base		type u8, version u8, flags u16
 *	mandatory	by type, tag last, then rma_iov[]
 *	optional	requests: raw address, CQ data, connection id;
 *			handshake: connection id, host, device, queue pair, p2p
 *	data		read_iov[] first where the packet has one
 */
#ifndef WF_WIRE_PACKET_DEFS_H
#define WF_WIRE_PACKET_DEFS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define WF_WIRE_VERSION 4
#define WF_WIRE_BASE 4
#define WF_WIRE_IOV_MAX 4
#define WF_WIRE_EXTRA_MAX 16   /* words of features in a handshake */
#define WF_WIRE_EXTRA_BIAS 3   /* added to their number on the wire */
#define WF_WIRE_HEADER_MAX 512 /* of the largest packet, with room */

enum wf_wire_type {
	WF_WIRE_CTS = 3,
	WF_WIRE_CTSDATA = 4,
	WF_WIRE_READRSP = 5,
	WF_WIRE_EOR = 7,
	WF_WIRE_ATOMRSP = 8,
	WF_WIRE_HANDSHAKE = 9,
	WF_WIRE_RECEIPT = 10,
	WF_WIRE_READ_NACK = 11,
	WF_WIRE_PEER_ERROR = 12,
	WF_WIRE_EAGER_MSGRTM = 64,
	WF_WIRE_EAGER_TAGRTM = 65,
	WF_WIRE_MEDIUM_MSGRTM = 66,
	WF_WIRE_MEDIUM_TAGRTM = 67,
	WF_WIRE_LONGCTS_MSGRTM = 68,
	WF_WIRE_LONGCTS_TAGRTM = 69,
	WF_WIRE_EAGER_RTW = 70,
	WF_WIRE_LONGCTS_RTW = 71,
	WF_WIRE_SHORT_RTR = 72,
	WF_WIRE_LONGCTS_RTR = 73,
	WF_WIRE_WRITE_RTA = 74,
	WF_WIRE_FETCH_RTA = 75,
	WF_WIRE_COMPARE_RTA = 76,
	WF_WIRE_LONGREAD_MSGRTM = 128,
	WF_WIRE_LONGREAD_TAGRTM = 129,
	WF_WIRE_LONGREAD_RTW = 130,
	WF_WIRE_DC_EAGER_MSGRTM = 133,
	WF_WIRE_DC_EAGER_TAGRTM = 134,
	WF_WIRE_DC_MEDIUM_MSGRTM = 135,
	WF_WIRE_DC_MEDIUM_TAGRTM = 136,
	WF_WIRE_DC_LONGCTS_MSGRTM = 137,
	WF_WIRE_DC_LONGCTS_TAGRTM = 138,
	WF_WIRE_DC_EAGER_RTW = 139,
	WF_WIRE_DC_LONGCTS_RTW = 140,
	WF_WIRE_DC_WRITE_RTA = 141,
	WF_WIRE_RUNTREAD_MSGRTM = 145,
	WF_WIRE_RUNTREAD_TAGRTM = 146,
};

/* Flags of requests ... */
#define WF_WIRE_RAW_ADDR 0x0001u
#define WF_WIRE_CQ_DATA 0x0002u
#define WF_WIRE_MSG 0x0004u
#define WF_WIRE_TAGGED 0x0008u
#define WF_WIRE_ATOMIC 0x0020u
#define WF_WIRE_NACKED 0x2000u /* a fall-back after READ_NACK */
/* ... of CTS ... */
#define WF_WIRE_FOR_READ 0x0080u /* answers an RTR */
/* ... of a handshake ... */
#define WF_WIRE_HOST_ID 0x0001u
#define WF_WIRE_DEVICE 0x0002u
#define WF_WIRE_QUEUE_PAIR 0x0004u
#define WF_WIRE_P2P 0x0008u
/* ... and of any packet. */
#define WF_WIRE_CONNID 0x8000u

/* Features: bits of the first extra word of a handshake. */
#define WF_WIRE_FEATURE_RDMA_READ 0x001u
#define WF_WIRE_FEATURE_DC 0x002u
#define WF_WIRE_FEATURE_CONST_HDR 0x004u
#define WF_WIRE_FEATURE_CONNID 0x008u
#define WF_WIRE_FEATURE_RUNT 0x010u
#define WF_WIRE_FEATURE_RDMA_WRITE 0x020u
#define WF_WIRE_FEATURE_READ_NACK 0x040u
#define WF_WIRE_FEATURE_USER_RECV_QP 0x080u
#define WF_WIRE_FEATURE_UNSOL_WRITE 0x100u
#define WF_WIRE_FEATURE_PEER_ERROR 0x200u
/* weft's own, and not for ever: its last handshake says whether it is so. Long
 * messages are to be announced, because too many wait for their receive. */
#define WF_WIRE_FEATURE_ASK_FIRST 0x80000000u

/* A raw address: its length, then as many bytes. */
#define WF_WIRE_RAW_ADDR_MAX 36
#define WF_WIRE_RAW_ADDR_BYTES (4 + WF_WIRE_RAW_ADDR_MAX)

/* Remote memory, as it stands in packets. */
struct wf_wire_iov {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

static_assert(sizeof(struct wf_wire_iov) == 24, "as on the wire");
static_assert(offsetof(struct wf_wire_iov, key) == 16, "as on the wire");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "copied as it is");

#endif
