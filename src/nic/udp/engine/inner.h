/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the engine, and used by nobody else: see engine.h. All
 * of it runs at engine->now.
 */
#ifndef WF_NIC_UDP_ENGINE_INNER_H
#define WF_NIC_UDP_ENGINE_INNER_H

#include "base/clock.h"
#include "base/cpu.h"
#include "nic/udp/engine/engine.h"
#include "os/types.h"

/* Microseconds for the wire. */
static inline uint32_t wf_udp_engine_us(const struct wf_udp_engine *engine)
{
	return (uint32_t)(engine->now / WF_NS_PER_US);
}

#define wf_udp_count(engine, name, n) wf_nic_count(&(engine)->counters->name, n)

/* -- engine.c --------------------------------------------------------------- */

uint64_t wf_udp_engine_random(struct wf_udp_engine *engine);
/* One packet of @len bytes that nobody waits for, from @from, which is an
 * address of ours: an answer leaves from the address at which the question
 * arrived. */
void wf_udp_engine_answer(struct wf_udp_engine *engine,
			  const struct wf_addr *to, const struct wf_addr *from,
			  struct wf_udp_common *packet, size_t len);
/* A note over our connection to @peer with zeros behind it, @len bytes in all.
 */
void wf_udp_engine_padded(struct wf_udp_engine *engine,
			  const struct wf_udp_peer *peer,
			  struct wf_udp_note *note, size_t len);

/* -- peer.c ----------------------------------------------------------------- */

struct wf_udp_peer *wf_udp_peer_find(struct wf_udp_engine *engine,
				     const struct wf_addr *addr);
/* NULL: too many, or no memory. @stranger: a peer that connected by itself.
 * Those cannot take the places of peers that the user wants to reach. */
struct wf_udp_peer *wf_udp_peer_get(struct wf_udp_engine *engine,
				    const struct wf_addr *addr, bool stranger);
void wf_udp_peer_free(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* The peer one of whose connections has our id @cid. NULL: none. */
struct wf_udp_peer *wf_udp_peer_by_cid(struct wf_udp_engine *engine,
				       uint64_t cid);
/* A timer has moved: the NIC's next one may have, too. */
void wf_udp_peer_arm(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
void wf_udp_peer_activate(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer);
/* As wf_udp_engine_abandon(). */
void wf_udp_peer_abandon(struct wf_udp_engine *engine,
			 struct wf_udp_peer *peer);
/* The peer reports it: as wf_udp_peer_abandon(), and it counts as a death. */
void wf_udp_peer_refused(struct wf_udp_engine *engine,
			 struct wf_udp_peer *peer);
/* Everything that depends on it fails, both ways. */
void wf_udp_peer_fail(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      enum wf_nic_status status);
void wf_udp_peer_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* A packet that is certainly its own came. */
void wf_udp_peer_heard(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* The network proves, or our kernel reports, that it cannot be reached. */
void wf_udp_peer_against(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 bool refused);
/* Whether @bytes are of a packet that we sent to the peer: they contain an id
 * that only the peer knows. */
bool wf_udp_peer_quoted(const struct wf_udp_peer *peer, const uint8_t *bytes,
			size_t len);
/* An unproved report: the peer is asked. */
void wf_udp_peer_doubt(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* Whether it is to be given up, if @since is when we began to wait. Then it
 * has been. */
bool wf_udp_peer_overdue(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			 uint64_t since);
/* Asks for a sign of life that costs little. @cid: which of its ends. */
void wf_udp_peer_ping(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      uint64_t cid);
/* The last handle for it is gone: so is it, once nothing is left to do. */
void wf_udp_peer_release(struct wf_udp_engine *engine,
			 struct wf_udp_peer *peer);
uint64_t wf_udp_peer_new_cid(struct wf_udp_engine *engine,
			     struct wf_udp_peer *peer);

/* -- hello.c: the handshake ------------------------------------------------- */

void wf_udp_hello_start(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
void wf_udp_hello_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
void wf_udp_hello_receive(struct wf_udp_engine *engine,
			  const struct wf_addr *from,
			  const struct wf_udp_hello *hello);
uint32_t wf_udp_hello_rwnd(const struct wf_udp_engine *engine);

/* -- out.c, pump.c: sending ------------------------------------------------- */

void wf_udp_out_init(struct wf_udp_out *out);
int wf_udp_out_up(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		  uint32_t seg, uint32_t rwnd);
void wf_udp_out_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		    uint32_t base, const uint64_t *bits, unsigned words,
		    uint32_t ts, bool late);
void wf_udp_out_nack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     uint32_t seq, enum wf_nic_status status);
void wf_udp_out_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* Detaches @op from its packets in flight, which only fill their numbers then. */
void wf_udp_out_forget(struct wf_udp_op *op);
/* Frees every slot; ops are the caller's to end. */
void wf_udp_out_close(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
/* A packet was seen to arrive after one that was sent later. */
void wf_udp_out_reorders(struct wf_udp_out *out);
void wf_udp_out_set_probe(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer);

/* Sends what may be sent, up to @quantum packets; leaves the active list when
 * that is nothing. */
void wf_udp_pump(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		 unsigned quantum);
/* Sends one packet without regard to the window. -EAGAIN: the socket is full. */
int wf_udp_pump_slot(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     struct wf_udp_slot *slot, bool ack_now);

/* -- path.c: how large a packet may be -------------------------------------- */

void wf_udp_path_up(struct wf_udp_out *out, uint32_t seg);
/* A report that the path carries no more than @seg. */
void wf_udp_path_narrow(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			uint32_t seg);
/* These report what became of packets: lost; acknowledged; sent again, because
 * nothing says whether it arrived; unheard: the peer answers pings, but
 * acknowledges none. */
void wf_udp_path_lost(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      const struct wf_udp_slot *slot);
void wf_udp_path_acked(struct wf_udp_out *out, const struct wf_udp_slot *slot);
void wf_udp_path_again(struct wf_udp_out *out, const struct wf_udp_slot *slot);
void wf_udp_path_unheard(struct wf_udp_engine *engine,
			 struct wf_udp_peer *peer);
void wf_udp_path_tick(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
void wf_udp_path_probed(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			uint32_t size);

/* -- part.c: packets in parts ----------------------------------------------- */

bool wf_udp_part_valid(const struct wf_udp_part *part, uint16_t len);
/* 1: all parts are here, *@bytes is the whole, which stays until it is dropped;
 * 0: not yet; -1: no room for another. */
int wf_udp_part_take(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		     const struct wf_udp_data *head,
		     const struct wf_udp_part *part, const uint8_t *payload,
		     const uint8_t **bytes);
void wf_udp_part_drop(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		      uint32_t seq);
void wf_udp_part_drop_all(struct wf_udp_engine *engine,
			  struct wf_udp_peer *peer);

/* -- in.c: receiving -------------------------------------------------------- */

void wf_udp_in_open(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
		    uint64_t remote_cid, bool crc);
void wf_udp_in_close(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
void wf_udp_in_send_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer);
uint32_t wf_udp_in_echo(const struct wf_udp_engine *engine,
			const struct wf_udp_peer *peer);
/* The part of an ack that fits a data header; false: there is nothing to say,
 * or more than fits. */
bool wf_udp_in_fill_ack(struct wf_udp_engine *engine, struct wf_udp_peer *peer,
			struct wf_udp_data *head);

/* The buffer that it filled in has not been sent. */
void wf_udp_in_ack_again(struct wf_udp_engine *engine,
			 struct wf_udp_peer *peer);

/* -- op.c ------------------------------------------------------------------- */

/* An op that lost or finished a packet: is it done? */
void wf_udp_op_check(struct wf_udp_engine *engine, struct wf_udp_op *op);

#endif
