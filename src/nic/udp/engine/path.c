/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The largest packet that the path to a peer carries (RFC 8899 in its simplest
 * form). A connection begins with what both links carry. If packets of that
 * size vanish and smaller ones arrive, it continues with a size that passes
 * everywhere, and increases it again when a probe of a larger size was
 * answered. Packets that were made before are sent in parts.
 */
#include "base/log.h"
#include "nic/udp/engine/inner.h"

#define HEAD ((uint32_t)sizeof(struct wf_udp_data))
#define BASE 1200u /* bytes of UDP payload: RFC 8899, section 5.1.2 */
#define BASE_SEG (BASE - HEAD)
/* Round trips in a row whose large packets were all lost. */
#define HOLES_MOST 4
#define TRIES_MOST 3 /* of one size */
#define TRY_EVERY (100 * WF_NS_PER_MS)
#define SEARCH_AFTER WF_NS_PER_S
#define SEARCH_AGAIN (60 * WF_NS_PER_S)

/* Links that exist: jumbo frames, Ethernet, and tunnels on it. */
static const uint32_t links[] = { 9000, 1500, 1450, 1400 };

uint32_t wf_udp_path_payload(int family, uint32_t mtu)
{
	uint32_t heads = family == AF_INET ? 28 : 48;

	if (mtu > WF_UDP_DATAGRAM_MAX + heads)
		mtu = WF_UDP_DATAGRAM_MAX + heads;
	/* Every link carries 576 or 1280 bytes; less is a mistake. */
	return (mtu < 576 ? 576 : mtu) - heads;
}

void wf_udp_path_up(struct wf_udp_out *out, uint32_t seg)
{
	out->seg = seg;
	out->seg_most = seg;
	out->holes = 0;
	out->unheard = 0;
	out->hole_len = 0;
	out->hole_no = 0;
	out->size_at = WF_UDP_NEVER;
}

static void set_seg(struct wf_udp_out *out, uint32_t seg)
{
	out->seg = seg;
	out->cc.seg = seg;
	out->holes = 0;
	out->unheard = 0;
	out->hole_len = 0;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* From the largest on. */
static void search(struct wf_udp_out *out, uint64_t at)
{
	out->size_try = out->seg_most;
	out->size_tries = 0;
	out->size_at = at;
}

void wf_udp_path_narrow(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			uint32_t seg)
{
	struct wf_udp_out *out = &peer->out;
	uint32_t base = least(BASE_SEG, out->seg_most);
	char name[WF_ADDR_STR_LEN];

	if (out->state != WF_UDP_OUT_UP)
		return;
	if (seg < base)
		seg = base;
	if (seg >= out->seg)
		return;
	wf_info("path to %s: packets of %u bytes now, %u before",
		wf_base_addr_str(&peer->addr, name, sizeof(name)), seg + HEAD,
		out->seg + HEAD);
	set_seg(out, seg);
	search(out, engine->now + SEARCH_AFTER);
	wf_udp_peer_activate(engine, peer);
	wf_udp_peer_arm(engine, peer);
}

/* -- black holes ------------------------------------------------------------ */

/* Larger than what passes everywhere, and sent in one piece. */
static bool is_large(const struct wf_udp_out *out,
		     const struct wf_udp_slot *slot)
{
	return slot->len > BASE_SEG && slot->len <= out->seg;
}

static void fall_back(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	char name[WF_ADDR_STR_LEN];

	if (!out->warned)
		wf_warn("packets of %u bytes to %s get lost and smaller ones "
			"do not: %u bytes from now on (is the MTU of the "
			"path smaller than that of the interface? "
			"FI_WEFT_MTU sets it)",
			out->seg + HEAD,
			wf_base_addr_str(&peer->addr, name, sizeof(name)),
			BASE);
	out->warned = true;
	wf_udp_path_narrow(engine, peer, BASE_SEG);
}

void wf_udp_path_lost(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      const struct wf_udp_slot *slot)
{
	struct wf_udp_out *out = &peer->out;

	if (!is_large(out, slot))
		return;
	if (slot->len > out->hole_len)
		out->hole_len = slot->len;
	/* Sent before the last loss was known: the same round trip. */
	if (out->holes && slot->sent_no <= out->hole_no)
		return;
	out->hole_no = out->sent_no;
	if (++out->holes >= HOLES_MOST)
		fall_back(engine, peer);
}

void wf_udp_path_acked(struct wf_udp_out *out, const struct wf_udp_slot *slot)
{
	if (wf_likely(!out->holes) || slot->len < out->hole_len ||
	    !is_large(out, slot))
		return;
	out->holes = 0;
	out->hole_len = 0;
}

/* Each probe takes another one of the packets in flight, so that they are
 * counted together: one that is tried often enough by itself may be a long time
 * off. */
void wf_udp_path_again(struct wf_udp_out *out, const struct wf_udp_slot *slot)
{
	if (out->backoff == 1) /* the first timeout in a row */
		out->unheard = 0;
	if (is_large(out, slot) && out->unheard < HOLES_MOST)
		out->unheard++;
}

void wf_udp_path_unheard(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	if (peer->out.unheard >= HOLES_MOST)
		fall_back(engine, peer);
}

/* -- probes of a larger size ------------------------------------------------ */

/* The next smaller link that is still larger than what is used now; 0: none. */
static uint32_t next_size(const struct wf_udp_out *out, int family)
{
	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		uint32_t seg = wf_udp_path_payload(family, links[i]) - HEAD;

		if (seg < out->size_try && seg > out->seg)
			return seg;
	}
	return 0;
}

void wf_udp_path_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer)
{
	struct wf_udp_out *out = &peer->out;
	struct wf_udp_note note = {
		.common = { .type = WF_UDP_PROBE, .dst_cid = out->remote_cid },
	};

	if (out->size_tries == TRIES_MOST) {
		out->size_tries = 0;
		out->size_try = next_size(out, peer->addr.sa.sa_family);
	}
	if (out->size_try <= out->seg) {
		search(out, out->seg < out->seg_most ?
				    engine->now + SEARCH_AGAIN :
				    WF_UDP_NEVER);
		return;
	}
	out->size_tries++;
	out->size_at = engine->now + TRY_EVERY;
	note.seq = out->size_try + HEAD;
	wf_udp_engine_padded(engine, peer, &note, note.seq);
}

void wf_udp_path_probed(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			uint32_t size)
{
	struct wf_udp_out *out = &peer->out;

	/* The present one, or a late answer to one before it. */
	if (out->size_at == WF_UDP_NEVER || size <= out->seg + HEAD ||
	    size > out->seg_most + HEAD)
		return;
	wf_info("path to a peer: packets of %u bytes pass", size);
	set_seg(out, size - HEAD);
	search(out, out->seg < out->seg_most ? engine->now + SEARCH_AGAIN :
					       WF_UDP_NEVER);
}
