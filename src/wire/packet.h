/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets, decoded and encoded. Only this file reads a packet's type before its
 * protocol is known, and it checks every field of a packet from the network:
 * lengths, counts, flags that belong to the type. The callers check the meaning
 * of the fields (whether the operation exists, whether the offset is within the
 * message).
 */
#ifndef WF_WIRE_PACKET_H
#define WF_WIRE_PACKET_H

#include <stdbool.h>
#include <string.h>

#include "wire/packet_defs.h"

/* Every packet's fields; which of them a type has is in packet.c, the others
 * are 0. */
struct wf_wire_packet {
	uint8_t type;
	uint16_t flags;
	uint32_t msg_id;
	uint32_t send_id;
	uint32_t recv_id;
	uint32_t connid; /* flag CONNID */
	uint64_t tag;
	uint64_t cq_data; /* flag CQ_DATA */
	uint64_t msg_length;
	uint64_t seg_offset;
	uint64_t seg_length;
	uint64_t recv_length;
	uint64_t runt_length;
	uint32_t credit_request;
	uint32_t datatype;
	uint32_t op;
	uint32_t op_id;
	uint32_t ref_kind;
	uint32_t prov_errno;
	uint32_t rma_iov_count;
	uint32_t read_iov_count;
	uint32_t raw_addr_len; /* flag RAW_ADDR */

	/* HANDSHAKE */
	uint32_t extra_count;
	uint64_t host_id;
	uint32_t device_version;
	uint32_t qpn;
	uint32_t qkey;
	uint8_t p2p;

	/* What follows the headers. Decoded: in the packet itself. */
	const uint8_t *data;
	size_t data_len;

	/* As many as are counted above; the rest is not set. */
	struct wf_wire_iov rma_iov[WF_WIRE_IOV_MAX];
	struct wf_wire_iov read_iov[WF_WIRE_IOV_MAX];
	uint8_t raw_addr[WF_WIRE_RAW_ADDR_MAX];
	uint64_t extra[WF_WIRE_EXTRA_MAX];
};

/* Everything but the arrays, which are most of it. */
static inline void wf_wire_packet_clear(struct wf_wire_packet *packet)
{
	memset(packet, 0, offsetof(struct wf_wire_packet, rma_iov));
}

/* The most frequent packet: a tagged message between two endpoints that know each
 * other. These are the values of the table in packet.c. */
#define WF_WIRE_EAGER_FLAGS (WF_WIRE_MSG | WF_WIRE_TAGGED | WF_WIRE_CONNID)
#define WF_WIRE_EAGER_FIRST                                                    \
	(WF_WIRE_EAGER_TAGRTM | (uint32_t)WF_WIRE_VERSION << 8 |               \
	 (uint32_t)WF_WIRE_EAGER_FLAGS << 16)
#define WF_WIRE_EAGER_HEADER 20u

static inline void wf_wire_packet_put_eager(uint8_t *to, uint32_t msg_id,
					    uint64_t tag, uint32_t connid)
{
	const uint32_t first = WF_WIRE_EAGER_FIRST;

	memcpy(to, &first, 4);
	memcpy(to + 4, &msg_id, 4);
	memcpy(to + 8, &tag, 8);
	memcpy(to + 16, &connid, 4);
}

/* False: it is another. */
static inline bool wf_wire_packet_get_eager(const uint8_t *from, size_t len,
					    uint32_t *msg_id, uint64_t *tag,
					    uint32_t *connid)
{
	uint32_t first;

	if (len < WF_WIRE_EAGER_HEADER)
		return false;
	memcpy(&first, from, 4);
	if (first != WF_WIRE_EAGER_FIRST)
		return false;
	memcpy(msg_id, from + 4, 4);
	memcpy(tag, from + 8, 8);
	memcpy(connid, from + 16, 4);
	return true;
}

/* These flags say what a type is, for the code that chooses a handler. */
#define WF_WIRE_KIND_REQUEST 0x01u /* has optional headers */
#define WF_WIRE_KIND_RTM 0x02u	   /* a message: ordered by msg_id */
#define WF_WIRE_KIND_RTA 0x04u	   /* an atomic: ordered as well */
#define WF_WIRE_KIND_RTW 0x08u
#define WF_WIRE_KIND_RTR 0x10u
#define WF_WIRE_KIND_TAGGED 0x20u
#define WF_WIRE_KIND_DC 0x40u	/* a RECEIPT is wanted */
#define WF_WIRE_KIND_DATA 0x80u /* bytes may follow the headers */

/* 0 when there is no such packet. */
unsigned int wf_wire_packet_kind(unsigned int type);
const char *wf_wire_packet_name(unsigned int type);

/* Bytes of the headers that @packet will have, data not included. */
size_t wf_wire_packet_header(const struct wf_wire_packet *packet);

/* Writes the headers; data follow them, put there by the caller. Returns their
 * length, or 0 when @room is too small. */
size_t wf_wire_packet_encode(const struct wf_wire_packet *packet, void *to,
			     size_t room);

/* Takes a packet apart. 0 or -EPROTO; then @packet is not to be used. */
int wf_wire_packet_decode(struct wf_wire_packet *packet, const void *from,
			  size_t len);

#endif
