/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that arrive in parts, because the path does not carry the whole
 * packet. Parts are kept until all of them have arrived, even if some are sent
 * again; then the packet is treated like one that arrived whole.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/udp/engine/inner.h"

/* Packets that are here in part: of one peer, and of all. Each takes memory. */
#define WHOLES_MOST 256u
#define WHOLES_ALL 1024u
/* If there is no room, a packet of which no part arrived for this long makes
 * some. Its parts were not acknowledged: they are sent again. */
#define WHOLE_LASTS (2 * WF_NS_PER_S)

struct whole {
	struct wf_list link; /* peer->wholes */
	struct wf_list
		all; /* engine->all_wholes, the one that was heard of last
				at the end */
	struct wf_udp_peer *peer;
	uint64_t at;   /* when the last part came */
	uint64_t here; /* by WF_UDP_PART_UNIT */
	uint32_t seq;
	uint16_t total;
	uint8_t bytes[WF_UDP_PART_TOTAL];
};

static_assert(WF_UDP_PART_TOTAL / WF_UDP_PART_UNIT <= 64, "bits of here");

static struct whole *find(const struct wf_udp_peer *peer, uint32_t seq)
{
	for (struct wf_list *pos = peer->wholes.next; pos != &peer->wholes;
	     pos = pos->next) {
		struct whole *whole = wf_container_of(pos, struct whole, link);

		if (whole->seq == seq)
			return whole;
	}
	return NULL;
}

static void drop(struct wf_udp_engine *engine, struct whole *whole)
{
	wf_base_list_unlink(&whole->link);
	wf_base_list_unlink(&whole->all);
	whole->peer->whole_count--;
	engine->wholes--;
	free(whole);
}

static void make_room(struct wf_udp_engine *engine)
{
	struct whole *oldest =
		wf_container_of(engine->all_wholes.next, struct whole, all);

	if (engine->wholes >= WHOLES_ALL &&
	    engine->now - oldest->at > WHOLE_LASTS)
		drop(engine, oldest);
}

static struct whole *make(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer, uint32_t seq,
			  uint16_t total)
{
	struct whole *whole;

	make_room(engine);
	if (peer->whole_count >= WHOLES_MOST || engine->wholes >= WHOLES_ALL)
		return NULL;
	whole = malloc(sizeof(*whole));
	if (!whole)
		return NULL;
	whole->peer = peer;
	whole->here = 0;
	whole->seq = seq;
	whole->total = total;
	wf_base_list_add_tail(&peer->wholes, &whole->link);
	wf_base_list_add_tail(&engine->all_wholes, &whole->all);
	peer->whole_count++;
	engine->wholes++;
	return whole;
}

/* Bits of the units from @from to before @to. */
static uint64_t units(uint32_t from, uint32_t to)
{
	uint64_t below = to / WF_UDP_PART_UNIT >= 64 ?
				 UINT64_MAX :
				 (1ull << to / WF_UDP_PART_UNIT) - 1;

	return below & ~((1ull << from / WF_UDP_PART_UNIT) - 1);
}

static uint32_t round_up(uint32_t bytes)
{
	return (bytes + WF_UDP_PART_UNIT - 1) / WF_UDP_PART_UNIT *
	       WF_UDP_PART_UNIT;
}

bool wf_udp_part_valid(const struct wf_udp_part *part, uint16_t len)
{
	uint32_t end = (uint32_t)part->off + len;

	/* All but the last are of whole units. */
	return len && part->total <= WF_UDP_PART_TOTAL && end <= part->total &&
	       part->off % WF_UDP_PART_UNIT == 0 &&
	       (end == part->total || end % WF_UDP_PART_UNIT == 0);
}

int wf_udp_part_take(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     const struct wf_udp_data *head,
		     const struct wf_udp_part *part, const uint8_t *payload,
		     const uint8_t **bytes)
{
	struct whole *whole = find(peer, head->seq);

	if (!whole)
		whole = make(engine, peer, head->seq, part->total);
	if (!whole)
		return -1;
	if (whole->total != part->total) {
		wf_udp_count(engine, bad_field, 1);
		return 0;
	}
	whole->at = engine->now;
	wf_base_list_unlink(&whole->all);
	wf_base_list_add_tail(&engine->all_wholes, &whole->all);
	memcpy(whole->bytes + part->off, payload, head->len);
	whole->here |= units(part->off, round_up(part->off + head->len));
	*bytes = whole->bytes;
	return whole->here == units(0, round_up(whole->total));
}

void wf_udp_part_drop(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      uint32_t seq)
{
	struct whole *whole = find(peer, seq);

	if (whole)
		drop(engine, whole);
}

void wf_udp_part_drop_all(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer)
{
	while (!wf_base_list_empty(&peer->wholes))
		drop(engine,
		     wf_container_of(peer->wholes.next, struct whole, link));
}
