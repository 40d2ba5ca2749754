/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control. The numbers, and where they come from:
 *   initial window 10 segments       RFC 6928
 *   halved once a round trip         RFC 9002, section 7.3.2
 *   one segment a round trip         RFC 9002, section 7.3.3
 *   leave slow start on delay        RFC 9406 (HyStart++), its 4 ms and 1/8
 *   srtt, rttvar                     RFC 9002, section 5.3
 *   pacing at 1.25 windows a round   RFC 9002, section 7.7
 */
#include "nic/udp/engine/cc.h"

#include "base/clock.h"

#define INITIAL_SEGS 10
#define MIN_SEGS 2
#define CWND_MOST (64ull << 20)
#define HYSTART_AT_LEAST (4 * WF_NS_PER_MS)
#define MIN_RTT_LASTS (10 * WF_NS_PER_S)
#define PACE_FROM WF_NS_PER_MS /* below, timers are coarser than round trips */
#define PACE_BURST WF_NS_PER_MS
#define TIMEOUT_AT_LEAST (500 * WF_NS_PER_US)
#define ACK_DELAY (200 * WF_NS_PER_US) /* what a peer may take, see in.c */
#define FIRST_TIMEOUT (20 * WF_NS_PER_MS)

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void wf_udp_cc_init(struct wf_udp_cc *cc, uint64_t seg)
{
	*cc = (struct wf_udp_cc){
		.cwnd = INITIAL_SEGS * seg,
		.ssthresh = CWND_MOST,
		.seg = seg,
		.min_rtt = UINT64_MAX,
		.min_rtt_now = UINT64_MAX,
		.round_min = UINT64_MAX,
	};
}

void wf_udp_cc_rtt(struct wf_udp_cc *cc, uint64_t rtt, uint64_t now)
{
	uint64_t apart;

	/* The least of a time, not the last at its end: then there may be a
	 * queue, and one would get used to it. */
	if (now - cc->min_rtt_from > MIN_RTT_LASTS) {
		cc->min_rtt = cc->min_rtt_now;
		cc->min_rtt_now = UINT64_MAX;
		cc->min_rtt_from = now;
	}
	cc->min_rtt_now = min(cc->min_rtt_now, rtt);
	cc->min_rtt = min(cc->min_rtt, rtt);
	cc->round_min = min(cc->round_min, rtt);
	if (!cc->srtt) {
		cc->srtt = rtt;
		cc->rttvar = rtt / 2;
		return;
	}
	apart = rtt > cc->srtt ? rtt - cc->srtt : cc->srtt - rtt;
	cc->rttvar = (3 * cc->rttvar + apart) / 4;
	cc->srtt = (7 * cc->srtt + rtt) / 8;
}

/* A queue that grows ends slow start before it overflows. */
static void end_round(struct wf_udp_cc *cc, uint64_t newest)
{
	if (cc->cwnd < cc->ssthresh && cc->round_min != UINT64_MAX &&
	    cc->min_rtt != UINT64_MAX &&
	    cc->round_min >
		    cc->min_rtt + max(cc->min_rtt / 8, HYSTART_AT_LEAST))
		cc->ssthresh = cc->cwnd;
	cc->round_min = UINT64_MAX;
	cc->round_end = newest;
}

void wf_udp_cc_acked(struct wf_udp_cc *cc, uint64_t bytes, uint64_t sent_no,
		     uint64_t newest, bool limited)
{
	if (sent_no > cc->round_end)
		end_round(cc, newest);
	/* Not while the acked packets were sent before the last cut. */
	if (!limited || sent_no <= cc->recover)
		return;
	if (cc->cwnd < cc->ssthresh) {
		cc->cwnd += bytes;
	} else {
		/* Whole windows are counted: a share of a segment for each ack
		 * would be rounded down to nothing where windows are large. */
		cc->window_acked += bytes;
		if (cc->window_acked >= cc->cwnd) {
			cc->window_acked -= cc->cwnd;
			cc->cwnd += cc->seg;
		}
	}
	cc->cwnd = min(cc->cwnd, CWND_MOST);
}

/* Losses of one round trip are one event: only packets that were sent after the
 * last cut show that it was not enough. */
void wf_udp_cc_lost(struct wf_udp_cc *cc, uint64_t sent_no, uint64_t newest)
{
	if (sent_no <= cc->recover)
		return;
	cc->cwnd = max(cc->cwnd / 2, MIN_SEGS * cc->seg);
	cc->ssthresh = cc->cwnd;
	cc->recover = newest;
	cc->window_acked = 0;
	cc->cuts++;
}

void wf_udp_cc_collapse(struct wf_udp_cc *cc)
{
	cc->ssthresh = max(cc->cwnd / 2, MIN_SEGS * cc->seg);
	cc->cwnd = MIN_SEGS * cc->seg;
	cc->cuts++;
}

uint64_t wf_udp_cc_timeout(const struct wf_udp_cc *cc)
{
	if (!cc->srtt)
		return FIRST_TIMEOUT;
	return max(cc->srtt + 4 * cc->rttvar + ACK_DELAY, TIMEOUT_AT_LEAST);
}

uint64_t wf_udp_cc_pace(const struct wf_udp_cc *cc, uint64_t now)
{
	return cc->srtt < PACE_FROM || cc->pace_at < now ? now : cc->pace_at;
}

void wf_udp_cc_sent(struct wf_udp_cc *cc, uint64_t bytes, uint64_t now)
{
	uint64_t rate; /* bytes per round trip */

	if (cc->srtt < PACE_FROM)
		return;
	rate = cc->cwnd < cc->ssthresh ? 2 * cc->cwnd : cc->cwnd * 5 / 4;
	/* Unused rate of the recent past may be made up for, to a limit. */
	if (cc->pace_at + PACE_BURST < now)
		cc->pace_at = now - PACE_BURST;
	cc->pace_at += bytes * cc->srtt / rate;
}

/* 64 MiB times 1000 s in nanoseconds is 2^66: srtt is bounded by the timeout
 * of a dead peer, bytes by a segment, so the product above stays below 2^52. */
