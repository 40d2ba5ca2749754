/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets, decoded and encoded from one table.
 */
#include "wire/packet.h"

#include <errno.h>
#include <string.h>

#include "base/cpu.h"

#define FIELDS_MAX 8

/* Where a member of struct wf_wire_packet stands in the mandatory header. */
struct field {
	uint16_t member; /* offset */
	uint8_t size;	 /* of the member; 0: end of the row */
	uint8_t at;	 /* in the packet */
	uint8_t width;	 /* there; not above size */
};

#define F(name, at_, width_)                                                   \
	{                                                                      \
		offsetof(struct wf_wire_packet, name),                         \
			sizeof(((struct wf_wire_packet *)0)->name), at_,       \
			width_                                                 \
	}

struct layout {
	const char *name;
	unsigned int kind;
	uint8_t header;	     /* bytes, tag included, without iovs */
	uint8_t connid;	     /* where it stands if the packet has room for it */
	bool connid_by_flag; /* ... which it has only with the flag */
	struct field fields[FIELDS_MAX];
};

#define REQ WF_WIRE_KIND_REQUEST
#define RTM (REQ | WF_WIRE_KIND_RTM)
#define RTA (REQ | WF_WIRE_KIND_RTA)
#define RTW (REQ | WF_WIRE_KIND_RTW)
#define RTR (REQ | WF_WIRE_KIND_RTR)
#define TAG WF_WIRE_KIND_TAGGED
#define DC WF_WIRE_KIND_DC
#define DATA WF_WIRE_KIND_DATA

/* A message packet with and without a tag: the tag is the last field. */
#define MESSAGE(id, more, bytes, ...)                                          \
	[WF_WIRE_##id##_MSGRTM] = { .name = #id "_MSGRTM",                     \
				    .kind = RTM | (more),                      \
				    .header = bytes,                           \
				    .fields = { __VA_ARGS__ } },               \
	[WF_WIRE_##id##_TAGRTM] = {                                            \
		.name = #id "_TAGRTM",                                         \
		.kind = RTM | TAG | (more),                                    \
		.header = (bytes) + 8,                                         \
		.fields = { __VA_ARGS__, F(tag, bytes, 8) },                   \
	}

#define PACKET(id, kind_, bytes, ...)                                          \
	[WF_WIRE_##id] = { .name = #id,                                        \
			   .kind = kind_,                                      \
			   .header = bytes,                                    \
			   .fields = { __VA_ARGS__ } }

static const struct layout layouts[256] = {
	[WF_WIRE_CTS] = { .name = "CTS",
			  .header = 24,
			  .connid = 4,
			  .fields = { F(send_id, 8, 4), F(recv_id, 12, 4),
				      F(recv_length, 16, 8) } },
	[WF_WIRE_CTSDATA] = { .name = "CTSDATA",
			      .kind = DATA,
			      .header = 24,
			      .connid = 24,
			      .connid_by_flag = true,
			      .fields = { F(recv_id, 4, 4), F(seg_length, 8, 8),
					  F(seg_offset, 16, 8) } },
	[WF_WIRE_READRSP] = { .name = "READRSP",
			      .kind = DATA,
			      .header = 24,
			      .connid = 4,
			      .fields = { F(recv_id, 8, 4), F(send_id, 12, 4),
					  F(seg_length, 16, 8) } },
	[WF_WIRE_EOR] = { .name = "EOR",
			  .header = 16,
			  .connid = 12,
			  .fields = { F(send_id, 4, 4), F(recv_id, 8, 4) } },
	[WF_WIRE_ATOMRSP] = { .name = "ATOMRSP",
			      .kind = DATA,
			      .header = 24,
			      .connid = 4,
			      .fields = { F(recv_id, 12, 4),
					  F(seg_length, 16, 8) } },
	[WF_WIRE_HANDSHAKE] = { .name = "HANDSHAKE", .header = 8 },
	[WF_WIRE_RECEIPT] = { .name = "RECEIPT",
			      .header = 16,
			      .connid = 12,
			      .fields = { F(send_id, 4, 4), F(msg_id, 8, 4) } },
	[WF_WIRE_READ_NACK] = { .name = "READ_NACK",
				.header = 16,
				.connid = 12,
				.fields = { F(send_id, 4, 4),
					    F(recv_id, 8, 4) } },
	[WF_WIRE_PEER_ERROR] = { .name = "PEER_ERROR",
				 .header = 20,
				 .connid = 16,
				 .fields = { F(op_id, 4, 4), F(ref_kind, 8, 4),
					     F(prov_errno, 12, 4) } },

	MESSAGE(EAGER, DATA, 8, F(msg_id, 4, 4)),
	MESSAGE(MEDIUM, DATA, 24, F(msg_id, 4, 4), F(msg_length, 8, 8),
		F(seg_offset, 16, 8)),
	MESSAGE(LONGCTS, DATA, 24, F(msg_id, 4, 4), F(msg_length, 8, 8),
		F(send_id, 16, 4), F(credit_request, 20, 4)),
	MESSAGE(LONGREAD, 0, 24, F(msg_id, 4, 4), F(msg_length, 8, 8),
		F(send_id, 16, 4), F(read_iov_count, 20, 4)),
	MESSAGE(RUNTREAD, DATA, 40, F(msg_id, 4, 4), F(msg_length, 8, 8),
		F(send_id, 16, 4), F(read_iov_count, 20, 4),
		F(seg_offset, 24, 8), F(runt_length, 32, 8)),
	MESSAGE(DC_EAGER, DC | DATA, 16, F(msg_id, 4, 4), F(send_id, 8, 4)),
	MESSAGE(DC_MEDIUM, DC | DATA, 32, F(msg_id, 4, 4), F(send_id, 8, 4),
		F(msg_length, 16, 8), F(seg_offset, 24, 8)),
	MESSAGE(DC_LONGCTS, DC | DATA, 24, F(msg_id, 4, 4), F(msg_length, 8, 8),
		F(send_id, 16, 4), F(credit_request, 20, 4)),

	PACKET(EAGER_RTW, RTW | DATA, 8, F(rma_iov_count, 4, 4)),
	PACKET(LONGCTS_RTW, RTW | DATA, 24, F(rma_iov_count, 4, 4),
	       F(msg_length, 8, 8), F(send_id, 16, 4),
	       F(credit_request, 20, 4)),
	PACKET(LONGREAD_RTW, RTW, 24, F(rma_iov_count, 4, 4),
	       F(msg_length, 8, 8), F(send_id, 16, 4),
	       F(read_iov_count, 20, 4)),
	PACKET(DC_EAGER_RTW, RTW | DC | DATA, 16, F(rma_iov_count, 4, 4),
	       F(send_id, 8, 4)),
	PACKET(DC_LONGCTS_RTW, RTW | DC | DATA, 24, F(rma_iov_count, 4, 4),
	       F(msg_length, 8, 8), F(send_id, 16, 4),
	       F(credit_request, 20, 4)),
	PACKET(SHORT_RTR, RTR, 24, F(rma_iov_count, 4, 4), F(msg_length, 8, 8),
	       F(recv_id, 16, 4), F(recv_length, 20, 4)),
	PACKET(LONGCTS_RTR, RTR, 24, F(rma_iov_count, 4, 4),
	       F(msg_length, 8, 8), F(recv_id, 16, 4), F(recv_length, 20, 4)),
	PACKET(WRITE_RTA, RTA | DATA, 24, F(msg_id, 4, 4),
	       F(rma_iov_count, 8, 4), F(datatype, 12, 4), F(op, 16, 4)),
	PACKET(FETCH_RTA, RTA | DATA, 24, F(msg_id, 4, 4),
	       F(rma_iov_count, 8, 4), F(datatype, 12, 4), F(op, 16, 4),
	       F(recv_id, 20, 4)),
	PACKET(COMPARE_RTA, RTA | DATA, 24, F(msg_id, 4, 4),
	       F(rma_iov_count, 8, 4), F(datatype, 12, 4), F(op, 16, 4),
	       F(recv_id, 20, 4)),
	PACKET(DC_WRITE_RTA, RTA | DC | DATA, 24, F(msg_id, 4, 4),
	       F(rma_iov_count, 8, 4), F(datatype, 12, 4), F(op, 16, 4),
	       F(send_id, 20, 4)),
};

unsigned int wf_wire_packet_kind(unsigned int type)
{
	return type < 256 ? layouts[type].kind : 0;
}

const char *wf_wire_packet_name(unsigned int type)
{
	return type < 256 && layouts[type].name ? layouts[type].name :
						  "unknown";
}

/* -- the packet that most are ------------------------------------------------ */

static bool is_eager(const struct wf_wire_packet *packet)
{
	return packet->type == WF_WIRE_EAGER_TAGRTM &&
	       packet->flags == WF_WIRE_EAGER_FLAGS;
}

static bool decode_eager(struct wf_wire_packet *packet, const uint8_t *from,
			 size_t len)
{
	uint32_t msg_id, connid;
	uint64_t tag;

	if (!wf_wire_packet_get_eager(from, len, &msg_id, &tag, &connid))
		return false;
	wf_wire_packet_clear(packet);
	packet->type = WF_WIRE_EAGER_TAGRTM;
	packet->flags = WF_WIRE_EAGER_FLAGS;
	packet->msg_id = msg_id;
	packet->tag = tag;
	packet->connid = connid;
	packet->data = from + WF_WIRE_EAGER_HEADER;
	packet->data_len = len - WF_WIRE_EAGER_HEADER;
	return true;
}

/* -- what a request or a handshake adds ------------------------------------ */

/* Flags that say what a packet is: it must have just these. */
static uint16_t own_flags(const struct layout *layout)
{
	if (layout->kind & WF_WIRE_KIND_RTM)
		return layout->kind & TAG ? WF_WIRE_MSG | WF_WIRE_TAGGED :
					    WF_WIRE_MSG;
	return layout->kind & WF_WIRE_KIND_RTA ? WF_WIRE_ATOMIC : 0;
}

static size_t optional_bytes(const struct layout *layout,
			     const struct wf_wire_packet *packet)
{
	uint16_t flags = packet->flags;
	size_t bytes = 0;

	if (packet->type == WF_WIRE_HANDSHAKE) {
		bytes += 8 * (size_t)packet->extra_count;
		for (uint16_t bit = WF_WIRE_HOST_ID; bit <= WF_WIRE_P2P;
		     bit = (uint16_t)(bit << 1))
			bytes += flags & bit ? 8 : 0;
		return bytes + (flags & WF_WIRE_CONNID ? 8 : 0);
	}
	if (layout->connid_by_flag)
		return flags & WF_WIRE_CONNID ? 8 : 0;
	if (!(layout->kind & REQ))
		return 0;
	if (flags & WF_WIRE_RAW_ADDR)
		bytes += 4 + (size_t)packet->raw_addr_len;
	if (flags & WF_WIRE_CQ_DATA)
		bytes += 8;
	return bytes + (flags & WF_WIRE_CONNID ? 4 : 0);
}

size_t wf_wire_packet_header(const struct wf_wire_packet *packet)
{
	const struct layout *layout = &layouts[packet->type];

	if (wf_likely(is_eager(packet)))
		return WF_WIRE_EAGER_HEADER;
	return layout->header + optional_bytes(layout, packet) +
	       (packet->rma_iov_count + packet->read_iov_count) *
		       sizeof(struct wf_wire_iov);
}

/* -- encoding -------------------------------------------------------------- */

struct writer {
	uint8_t *base;
	size_t at;
};

static void put(struct writer *w, const void *from, size_t len)
{
	memcpy(w->base + w->at, from, len);
	w->at += len;
}

static void put_padded(struct writer *w, uint32_t first, uint32_t second)
{
	put(w, &first, 4);
	put(w, &second, 4);
}

static void put_handshake(struct writer *w, const struct wf_wire_packet *packet)
{
	uint32_t count = packet->extra_count + WF_WIRE_EXTRA_BIAS;

	memcpy(w->base + 4, &count, 4);
	put(w, packet->extra, packet->extra_count * sizeof(uint64_t));
	if (packet->flags & WF_WIRE_CONNID)
		put_padded(w, packet->connid, 0);
	if (packet->flags & WF_WIRE_HOST_ID)
		put(w, &packet->host_id, 8);
	if (packet->flags & WF_WIRE_DEVICE)
		put_padded(w, packet->device_version, 0);
	if (packet->flags & WF_WIRE_QUEUE_PAIR)
		put_padded(w, packet->qpn, packet->qkey);
	if (packet->flags & WF_WIRE_P2P)
		put_padded(w, packet->p2p, 0);
}

static void put_optionals(struct writer *w, const struct wf_wire_packet *packet)
{
	if (packet->flags & WF_WIRE_RAW_ADDR) {
		put(w, &packet->raw_addr_len, 4);
		put(w, packet->raw_addr, packet->raw_addr_len);
	}
	if (packet->flags & WF_WIRE_CQ_DATA)
		put(w, &packet->cq_data, 8);
	if (packet->flags & WF_WIRE_CONNID)
		put(w, &packet->connid, 4);
}

size_t wf_wire_packet_encode(const struct wf_wire_packet *packet, void *to,
			     size_t room)
{
	const struct layout *layout = &layouts[packet->type];
	struct writer w = { .base = to };
	size_t need;

	if (wf_likely(is_eager(packet) && WF_WIRE_EAGER_HEADER <= room)) {
		wf_wire_packet_put_eager(to, packet->msg_id, packet->tag,
					 packet->connid);
		return WF_WIRE_EAGER_HEADER;
	}
	need = wf_wire_packet_header(packet);
	assert(layout->name && packet->rma_iov_count <= WF_WIRE_IOV_MAX &&
	       packet->read_iov_count <= WF_WIRE_IOV_MAX &&
	       packet->raw_addr_len <= WF_WIRE_RAW_ADDR_MAX);
	if (need > room)
		return 0;
	memset(w.base, 0, layout->header);
	w.base[0] = packet->type;
	w.base[1] = WF_WIRE_VERSION;
	memcpy(w.base + 2, &packet->flags, 2);
	for (const struct field *f = layout->fields; f->size; f++)
		memcpy(w.base + f->at, (const uint8_t *)packet + f->member,
		       f->width);
	if (layout->connid && !layout->connid_by_flag &&
	    (packet->flags & WF_WIRE_CONNID))
		memcpy(w.base + layout->connid, &packet->connid, 4);
	w.at = layout->header;
	put(&w, packet->rma_iov,
	    packet->rma_iov_count * sizeof(struct wf_wire_iov));
	if (packet->type == WF_WIRE_HANDSHAKE)
		put_handshake(&w, packet);
	else if (layout->kind & REQ)
		put_optionals(&w, packet);
	else if (layout->connid_by_flag && (packet->flags & WF_WIRE_CONNID))
		put_padded(&w, packet->connid, 0);
	put(&w, packet->read_iov,
	    packet->read_iov_count * sizeof(struct wf_wire_iov));
	assert(w.at == need);
	return need;
}

/* -- decoding -------------------------------------------------------------- */

struct reader {
	const uint8_t *base;
	size_t at;
	size_t len;
	bool bad;
};

static void get(struct reader *r, void *to, size_t len)
{
	if (r->bad || len > r->len - r->at) {
		r->bad = true;
		return;
	}
	memcpy(to, r->base + r->at, len);
	r->at += len;
}

static void get_padded(struct reader *r, uint32_t *first, uint32_t *second)
{
	get(r, first, 4);
	get(r, second, 4);
}

static void get_iovs(struct reader *r, struct wf_wire_iov *iov, uint32_t count)
{
	if (count > WF_WIRE_IOV_MAX)
		r->bad = true;
	else
		get(r, iov, count * sizeof(*iov));
}

/* Newer peers may send more than we understand: skip what is beyond our
 * room. */
static void get_handshake(struct reader *r, struct wf_wire_packet *packet)
{
	uint32_t count, pad, p2p = 0;

	memcpy(&count, r->base + 4, 4);
	if (count < WF_WIRE_EXTRA_BIAS ||
	    count - WF_WIRE_EXTRA_BIAS > (r->len - r->at) / 8) {
		r->bad = true;
		return;
	}
	count -= WF_WIRE_EXTRA_BIAS;
	packet->extra_count =
		count < WF_WIRE_EXTRA_MAX ? count : WF_WIRE_EXTRA_MAX;
	get(r, packet->extra, packet->extra_count * sizeof(uint64_t));
	r->at += (size_t)(count - packet->extra_count) * 8;
	if (packet->flags & WF_WIRE_CONNID)
		get_padded(r, &packet->connid, &pad);
	if (packet->flags & WF_WIRE_HOST_ID)
		get(r, &packet->host_id, 8);
	if (packet->flags & WF_WIRE_DEVICE)
		get_padded(r, &packet->device_version, &pad);
	if (packet->flags & WF_WIRE_QUEUE_PAIR)
		get_padded(r, &packet->qpn, &packet->qkey);
	if (packet->flags & WF_WIRE_P2P)
		get_padded(r, &p2p, &pad);
	packet->p2p = (uint8_t)p2p;
}

static void get_optionals(struct reader *r, struct wf_wire_packet *packet)
{
	if (packet->flags & WF_WIRE_RAW_ADDR) {
		get(r, &packet->raw_addr_len, 4);
		if (packet->raw_addr_len > WF_WIRE_RAW_ADDR_MAX)
			r->bad = true;
		else
			get(r, packet->raw_addr, packet->raw_addr_len);
	}
	if (packet->flags & WF_WIRE_CQ_DATA)
		get(r, &packet->cq_data, 8);
	if (packet->flags & WF_WIRE_CONNID)
		get(r, &packet->connid, 4);
}

static void get_headers(struct reader *r, const struct layout *layout,
			struct wf_wire_packet *packet)
{
	uint32_t pad;

	for (const struct field *f = layout->fields; f->size; f++)
		memcpy((uint8_t *)packet + f->member, r->base + f->at,
		       f->width);
	r->at = layout->header;
	get_iovs(r, packet->rma_iov, packet->rma_iov_count);
	if (packet->type == WF_WIRE_HANDSHAKE)
		get_handshake(r, packet);
	else if (layout->kind & REQ)
		get_optionals(r, packet);
	else if (!(packet->flags & WF_WIRE_CONNID))
		return;
	else if (layout->connid_by_flag)
		get_padded(r, &packet->connid, &pad);
	else
		memcpy(&packet->connid, r->base + layout->connid, 4);
	get_iovs(r, packet->read_iov, packet->read_iov_count);
}

/* Lengths that a packet states of itself. */
static bool is_consistent(const struct layout *layout,
			  const struct wf_wire_packet *packet)
{
	switch (packet->type) {
	case WF_WIRE_CTS:
		return packet->recv_length;
	case WF_WIRE_CTSDATA:
	case WF_WIRE_READRSP:
	case WF_WIRE_ATOMRSP:
		return packet->seg_length == packet->data_len;
	default:
		break;
	}
	/* A piece of a message lies inside it. */
	if (packet->msg_length &&
	    (packet->data_len > packet->msg_length ||
	     packet->seg_offset > packet->msg_length - packet->data_len))
		return false;
	if (packet->runt_length > packet->msg_length)
		return false;
	return (layout->kind & DATA) || !packet->data_len;
}

int wf_wire_packet_decode(struct wf_wire_packet *packet, const void *from,
			  size_t len)
{
	struct reader r = { .base = from, .len = len };
	const struct layout *layout;

	if (wf_likely(decode_eager(packet, from, len)))
		return 0;
	if (len < WF_WIRE_BASE || r.base[1] != WF_WIRE_VERSION)
		return -EPROTO;
	layout = &layouts[r.base[0]];
	if (!layout->name || len < layout->header)
		return -EPROTO;
	wf_wire_packet_clear(packet);
	packet->type = r.base[0];
	memcpy(&packet->flags, r.base + 2, 2);
	if ((packet->flags & own_flags(layout)) != own_flags(layout))
		return -EPROTO;
	get_headers(&r, layout, packet);
	if (r.bad)
		return -EPROTO;
	packet->data = r.base + r.at;
	packet->data_len = len - r.at;
	return is_consistent(layout, packet) ? 0 : -EPROTO;
}
