/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header decides how much may be in flight on one connection, and how fast
 * it leaves, by round trip times, a congestion window and pacing. Knows bytes
 * and times, no packets.
 *
 * The window is NewReno's as RFC 9002 has it: slow start, then one segment a
 * round trip; the first loss of a round trip halves it, whatever the round trip
 * time is. Any loss counts as congestion, because a sender cannot tell the two
 * apart: on a switch with a short buffer a full queue adds less delay than a
 * scheduler does. So a flow here takes as much of a full link as a TCP flow
 * does, and as little of a link that loses packets at random.
 */
#ifndef WF_NIC_UDP_CC_H
#define WF_NIC_UDP_CC_H

#include <stdbool.h>
#include <stdint.h>

struct wf_udp_cc {
	uint64_t cwnd; /* bytes */
	uint64_t ssthresh;
	uint64_t seg; /* bytes of a full packet */
	uint64_t srtt;
	uint64_t rttvar;
	uint64_t min_rtt;     /* of the last 10 to 20 s; UINT64_MAX: none yet */
	uint64_t min_rtt_now; /* of the present 10 s */
	uint64_t min_rtt_from; /* which began then */
	uint64_t round_min;    /* of this round */
	uint64_t round_end;    /* the round ends when this send is acked */
	uint64_t window_acked; /* bytes, since the window last grew */
	uint64_t recover; /* losses of sends up to here are answered already */
	uint64_t pace_at; /* when the next packet may leave */
	uint64_t cuts;
};

void wf_udp_cc_init(struct wf_udp_cc *cc, uint64_t seg);

void wf_udp_cc_rtt(struct wf_udp_cc *cc, uint64_t rtt, uint64_t now);

/* @bytes more were acknowledged, the latest of them sent as number @sent_no;
 * @newest is the number of the latest send. @limited: the window, and not the
 * user, was the limit. */
void wf_udp_cc_acked(struct wf_udp_cc *cc, uint64_t bytes, uint64_t sent_no,
		     uint64_t newest, bool limited);

/* The packet that was sent as number @sent_no is lost. */
void wf_udp_cc_lost(struct wf_udp_cc *cc, uint64_t sent_no, uint64_t newest);

/* Several timeouts in a row: begin anew. */
void wf_udp_cc_collapse(struct wf_udp_cc *cc);

/* Time until an acknowledgement is overdue. */
uint64_t wf_udp_cc_timeout(const struct wf_udp_cc *cc);

/* When @bytes may leave: now (any time up to @now) or later. */
uint64_t wf_udp_cc_pace(const struct wf_udp_cc *cc, uint64_t now);
void wf_udp_cc_sent(struct wf_udp_cc *cc, uint64_t bytes, uint64_t now);

#endif
