/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fetches parked messages, at the receiver: alone, in batches, together with
 * the sender, or through the ring.
 */
#include "shm/pull.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rest.h"
#include "op/iov.h"
#include "os/poll.h"
#include "os/shared.h"
#include "shm/conn.h"
#include "shm/ep.h"
#include "shm/link.h"
#include "shm/share.h"

/* A share is divided into about this many chunks: enough that both sides end at
 * about the same time, and so few that the system calls take little of it. */
#define CHUNKS_WANTED 8
#define CHUNK_MIN ((size_t)64 << 10)
#define CHUNK_MAX ((size_t)256 << 10)

/* A message below two of the smallest chunks is divided into halves: each side
 * makes one system call, at the same time. This is faster only if the sender
 * copies its half. If it did not, the receiver reads this many messages alone
 * before it tries again. */
#define ALONE_TURNS 16

/* Messages of a burst up to BATCH_PIECE are read in one call, without help of
 * the sender, which has other messages to send. One call reads about
 * BATCH_BYTES, which takes some 20 us. */
#define BATCH_PIECE ((size_t)128 << 10)
#define BATCH_BYTES ((size_t)256 << 10)

/* How long leave_share() waits for chunks that the sender copies. A chunk takes
 * some tens of microseconds, but the kernel may suspend the sender in the
 * middle of one for much longer, if many processes share its processor or if
 * somebody stops it. */
#define LEAVE_PATIENCE (10 * WF_NS_PER_S)

static const struct wf_ux_ops pull_ops;

static struct wf_envelope pull_envelope(const struct wf_shm_pull *pull)
{
	return (struct wf_envelope){
		.tag = pull->ux.tag,
		.data = pull->ux.data,
		.src = pull->ux.src,
		.flags = pull->ux.flags,
		.len = pull->ux.len,
	};
}

static void make_busy(struct wf_shm_pull *pull)
{
	wf_base_list_add_tail(&pull->in->busy, &pull->busy);
	pull->in->ep->busy_pulls++;
	wf_shm_in_busy(pull->in);
}

static void make_idle(struct wf_shm_pull *pull)
{
	if (wf_base_list_empty(&pull->busy))
		return;
	wf_base_list_del(&pull->busy);
	pull->in->ep->busy_pulls--;
}

static void pull_free(struct wf_shm_pull *pull)
{
	struct wf_shm_in *in = pull->in;

	make_idle(pull);
	if (in)
		wf_base_table_del(&in->pulls, wf_base_table_number(pull->op));
	if (in && !in->spare_pull)
		in->spare_pull = pull;
	else
		free(pull);
}

/* The last one that was freed, or a new one: most messages are read at once, one
 * after the other. */
static struct wf_shm_pull *pull_new(struct wf_shm_in *in)
{
	struct wf_shm_pull *pull = in->spare_pull;

	in->spare_pull = NULL;
	return pull ? pull : malloc(sizeof(*pull));
}

/* Takes a free share. A share is free after the sender has read its final
 * reply: before that the sender may still look there for chunks. */
static bool take_share(struct wf_shm_pull *pull)
{
	struct wf_shm_in *in = pull->in;

	for (uint32_t i = 0; i < WF_SHM_SHARES; i++) {
		if ((in->shares_used & 1u << i) ||
		    !wf_shm_reply_was_read(&in->replies, in->share_ended[i]))
			continue;
		in->shares_used |= 1u << i;
		pull->share = i;
		pull->has_share = true;
		return true;
	}
	return false;
}

/* Sends the final reply of an operation. */
static void reply_final(struct wf_shm_pull *pull, int err)
{
	struct wf_shm_in *in = pull->in;
	uint32_t place = wf_shm_in_reply_final(in, pull->op, err);

	if (!pull->has_share)
		return;
	in->share_ended[pull->share] = place;
	in->shares_used &= ~(1u << pull->share);
}

/* Counts the message under the way by which it came in the end. */
static void count(const struct wf_shm_pull *pull)
{
	struct wf_stats *stats = &pull->in->ep->stats;
	bool self = pull->in->mover.way == WF_SHM_WAY_SELF;
	enum wf_shm_stat item =
		self ? WF_SHM_STAT_pulled_self : WF_SHM_STAT_pulled_cma;

	if (pull->state == WF_SHM_PULL_SHARED)
		item = WF_SHM_STAT_pulled_shared;
	else if (pull->state == WF_SHM_PULL_STREAMED)
		item = WF_SHM_STAT_pulled_stream;
	wf_shm_stats_add(stats, item, 1);
	/* Each number of messages is followed by their bytes. */
	wf_shm_stats_add(stats, item + 1, pull->want);
}

/* How its messages are read. */
static enum wf_shm_way way_of(struct wf_shm_in *in)
{
	bool untried = in->mover.way == WF_SHM_WAY_UNTRIED;
	enum wf_shm_way way = wf_shm_mover_way(&in->mover);

	if (untried)
		wf_shm_conn_count_refusal(in->ep, &in->mover);
	return way;
}

/* As long as all messages of more than 4 KiB come through the ring, nobody else
 * tries whether CMA is allowed. Smaller ones do not need to know. */
void wf_shm_pull_paced(struct wf_shm_in *in, size_t len,
		       enum wf_shm_pace_way way, uint32_t stamp)
{
	uint32_t told = in->pace.told, now;

	if (!wf_shm_pace_is_open(len))
		return;
	if (len > WF_SHM_PACE_MIN)
		in->pace.has_no_cma = way_of(in) != WF_SHM_WAY_CMA;
	in->pace.may_go_around = in->features & WF_SHM_FEATURE_AROUND;
	now = stamp ? wf_shm_pace_stamp(wf_base_clock_ns()) : 0;
	if (!wf_shm_pace_note(&in->pace, len, way, stamp, now))
		return;
	wf_shared_store(&in->region.header->ways, in->pace.told, relaxed);
	/* The ways are compared as they will be used. */
	if (len > WF_SHM_PACE_MIN && !in->pace.has_no_cma &&
	    (in->pace.told & ~told & WF_SHM_WAYS_STAMP))
		wf_shm_mover_hurry(&in->mover);
}

void wf_shm_pull_paced_eager(struct wf_shm_in *in,
			     const struct wf_shm_slot *slot, uint8_t flags,
			     size_t len)
{
	uint32_t stamp = flags & WF_SHM_SLOT_STAMPED ? slot->eager.stamp : 0;

	wf_shm_pull_paced(in, len, wf_shm_pace_way(flags), stamp);
}

/* Ends the message for both sides. @err is positive. */
static void pull_finish(struct wf_shm_pull *pull, int err)
{
	struct wf_envelope env = pull_envelope(pull);
	bool is_read = !err && pull->state != WF_SHM_PULL_STREAMED;

	if (pull->in)
		reply_final(pull, err);
	if (pull->in && !err)
		count(pull);
	if (err)
		wf_match_rxq_fail(pull->ux.rxq, pull->rx, &env, err);
	else
		wf_match_rxq_done(pull->ux.rxq, pull->rx, &env);
	if (pull->in && is_read)
		wf_shm_pull_paced(pull->in, env.len, WF_SHM_PACE_CMA,
				  pull->stamp);
	pull_free(pull);
}

/* Reads a part of the message. The endpoint of the sender may be closed while
 * its process lives on, so `sender_left` is looked at after the copy: if it is
 * not set, the bytes that were read are the message. If the sender is in this
 * process, it waits until we have read, because its buffers may be unmapped
 * next (leave() in out.c); only then `reading` is set. */
static int read_part(void *arg, uint64_t offset, uint64_t part)
{
	const struct wf_shm_pull *pull = arg;
	struct wf_shm_header *header = pull->in->region.header;
	bool is_here = pull->in->mover.way == WF_SHM_WAY_SELF;
	struct iovec to[WF_OP_IOV_MAX], from[WF_SHM_SHARE_IOV];
	int ret = -ESRCH;
	size_t n, m;

	n = wf_op_iov_part(pull->rx->iov, pull->rx->iov_count, offset, part,
			   to);
	m = wf_op_iov_part(pull->iov, pull->iov_count, offset, part, from);
	if (is_here)
		wf_shared_store(&header->reading, 1, seq_cst);
	if (!wf_shared_load(&header->sender_left, seq_cst))
		ret = wf_shm_mover_read(&pull->in->mover, to, n, from, m, part);
	/* The fence keeps the load behind the copy. */
	wf_shared_fence(seq_cst);
	if (wf_shared_load(&header->sender_left, seq_cst))
		ret = -ESRCH;
	if (is_here)
		wf_shared_store(&header->reading, 0, seq_cst);
	return ret;
}

static void ask_for_stream(struct wf_shm_pull *pull)
{
	const struct wf_shm_kept_reply reply = {
		.op = pull->op,
		.kind = WF_SHM_REPLY_STREAM,
		.len = pull->want,
	};

	if (!(pull->in->features & WF_SHM_FEATURE_STREAM)) {
		pull_finish(pull, FI_EOPNOTSUPP);
		return;
	}
	pull->state = WF_SHM_PULL_STREAMED;
	pull->have = 0;
	make_idle(pull);
	wf_shm_in_reply(pull->in, &reply);
}

/* Reading failed. EFAULT ends the message. Any other error means that the
 * kernel does not allow CMA, and the message is sent through the ring, from its
 * start. */
static void read_failed(struct wf_shm_pull *pull, int err)
{
	if (err == EFAULT) {
		pull_finish(pull, FI_EFAULT);
		return;
	}
	if (err != ESRCH && pull->in->mover.way == WF_SHM_WAY_CMA) {
		wf_info("CMA is refused (error %d): using the ring", err);
		wf_shm_stats_add(&pull->in->ep->stats, WF_SHM_STAT_cma_refused,
				 1);
		wf_shm_mover_close(&pull->in->mover);
	}
	/* If the peer has ended, no stream comes; its socket soon says so. */
	ask_for_stream(pull);
}

static void read_alone(struct wf_shm_pull *pull)
{
	int ret;

	pull->state = WF_SHM_PULL_ALONE;
	ret = read_part(pull, 0, pull->want);
	if (ret) {
		read_failed(pull, -ret);
		return;
	}
	pull_finish(pull, 0);
}

/* Reads all of the batch in one call: entering the kernel, and finding the
 * process and its guard page, takes longer than copying 8 KiB. False: nothing
 * counts as read, because the call does not say which of them failed. */
static bool read_batch(struct wf_shm_in *in)
{
	struct wf_shm_header *header = in->region.header;
	struct iovec to[WF_SHM_IN_BATCH], from[WF_SHM_IN_BATCH];
	size_t len = 0;

	for (uint32_t i = 0; i < in->batch_count; i++) {
		const struct wf_shm_pull *pull = in->batch[i];

		to[i] = (struct iovec){ pull->rx->iov[0].iov_base, pull->want };
		from[i] = (struct iovec){ pull->iov[0].iov_base, pull->want };
		len += pull->want;
	}
	if (wf_shm_mover_read(&in->mover, to, in->batch_count, from,
			      in->batch_count, len))
		return false;
	/* As in read_part(). */
	wf_shared_fence(seq_cst);
	return !wf_shared_load(&header->sender_left, seq_cst);
}

void wf_shm_pull_flush(struct wf_shm_in *in)
{
	bool is_read = in->batch_count > 1 && read_batch(in);

	for (uint32_t i = 0; i < in->batch_count; i++) {
		if (is_read)
			pull_finish(in->batch[i], 0);
		else
			read_alone(in->batch[i]);
	}
	in->batch_count = 0;
	in->batch_bytes = 0;
}

/* Whether the message is to be read together with others of its burst. */
static bool is_for_batch(const struct wf_shm_pull *pull)
{
	const struct wf_shm_in *in = pull->in;

	return (in->burst || in->batch_count) && pull->want <= BATCH_PIECE &&
	       pull->iov_count == 1 && pull->rx->iov_count == 1;
}

static void put_off(struct wf_shm_pull *pull)
{
	struct wf_shm_in *in = pull->in;

	pull->state = WF_SHM_PULL_ALONE;
	in->batch[in->batch_count++] = pull;
	in->batch_bytes += pull->want;
	if (in->batch_count == WF_SHM_IN_BATCH ||
	    in->batch_bytes >= BATCH_BYTES)
		wf_shm_pull_flush(in);
}

static size_t page_up(size_t len)
{
	return (len + WF_SHM_PAGE - 1) & ~(size_t)(WF_SHM_PAGE - 1);
}

static bool is_halved(const struct wf_shm_pull *pull)
{
	return pull->want < 2 * CHUNK_MIN;
}

static size_t chunk_of(const struct wf_shm_pull *pull)
{
	size_t chunk = page_up(pull->want / CHUNKS_WANTED);

	if (is_halved(pull))
		return page_up(pull->want / 2);
	if (chunk < CHUNK_MIN)
		return CHUNK_MIN;
	return chunk < CHUNK_MAX ? chunk : CHUNK_MAX;
}

/* Whether it is worth asking the sender to copy a part. */
static bool is_worth_sharing(const struct wf_shm_pull *pull)
{
	struct wf_shm_in *in = pull->in;

	if (pull->want < in->ep->attr.share_min)
		return false;
	if (!is_halved(pull) || !in->alone)
		return true;
	in->alone--;
	return false;
}

static void start_share(struct wf_shm_pull *pull)
{
	const struct wf_shm_kept_reply reply = {
		.op = pull->op,
		.kind = WF_SHM_REPLY_SHARE,
		.share = pull->share,
	};
	struct wf_shm_in *in = pull->in;
	pull->state = WF_SHM_PULL_SHARED;
	pull->chunk = chunk_of(pull);
	pull->done = 0;
	pull->claims_over = false;
	pull->failed = 0;
	wf_shm_share_open(&in->region.shares[pull->share], pull->rx->iov,
			  pull->rx->iov_count, pull->want, pull->chunk);
	wf_shm_in_reply(in, &reply);
	make_busy(pull);
	wf_shm_pull_progress(pull);
}

/* Whether the sender has left: the message is lost, and no stream of it
 * comes. */
static bool has_left(const struct wf_shm_in *in)
{
	return in->ended ||
	       wf_shared_load(&in->region.header->sender_left, seq_cst);
}

static void start(struct wf_shm_pull *pull)
{
	struct wf_shm_in *in = pull->in;
	enum wf_shm_way way;

	pull->want =
		pull->ux.len < pull->rx->len ? pull->ux.len : pull->rx->len;
	if (!pull->want) {
		pull_finish(pull, 0);
		return;
	}
	if (has_left(in)) {
		pull_finish(pull, FI_ECONNRESET);
		return;
	}
	way = way_of(in);
	if (way == WF_SHM_WAY_NONE)
		ask_for_stream(pull);
	else if (way == WF_SHM_WAY_CMA && is_for_batch(pull))
		put_off(pull);
	else if (way == WF_SHM_WAY_CMA &&
		 (in->features & WF_SHM_FEATURE_SHARE) &&
		 is_worth_sharing(pull) && take_share(pull))
		start_share(pull);
	else
		read_alone(pull);
}

/* Claims all remaining chunks, so that the sender gets no more. Returns how
 * many the sender already had: it writes into the user's buffer until these are
 * done. */
static uint32_t take_claims(const struct wf_shm_pull *pull,
			    struct wf_shm_share *share)
{
	uint64_t chunks = (pull->want + pull->chunk - 1) / pull->chunk;
	uint64_t claimed =
		wf_shared_exchange(&share->claimed, UINT32_MAX / 2, relaxed);
	/* We claimed those that we copied, and the one that failed. */
	uint64_t ours = (uint64_t)pull->done + (pull->failed ? 1 : 0);

	if (claimed > chunks)
		claimed = chunks;
	return claimed > ours ? (uint32_t)(claimed - ours) : 0;
}

/* Our copying failed: remembers why, and how many chunks to wait for. */
static void stop_sharing(struct wf_shm_pull *pull, struct wf_shm_share *share,
			 int err)
{
	pull->failed = err;
	pull->theirs = take_claims(pull, share);
}

void wf_shm_pull_progress(struct wf_shm_pull *pull)
{
	struct wf_shm_share *share = &pull->in->region.shares[pull->share];
	uint64_t chunks = (pull->want + pull->chunk - 1) / pull->chunk;
	uint32_t theirs;
	bool gave_up;
	int ret;

	if (!pull->claims_over && !pull->failed) {
		ret = wf_shm_share_copy(share, pull->chunk, pull->want,
					read_part, pull, &pull->done);
		if (ret < 0)
			stop_sharing(pull, share, -ret);
		else
			pull->claims_over = ret;
	}
	gave_up = wf_shared_load(&share->sender_failed, acquire);
	/* Acquire: the bytes of the chunks that it has counted are there. */
	theirs = wf_shared_load(&share->sender_done, acquire);
	if (pull->failed) {
		if (gave_up || theirs >= pull->theirs)
			read_failed(pull, pull->failed);
	} else if (pull->claims_over) {
		if (gave_up)
			read_alone(pull);
		else if (pull->done + (uint64_t)theirs >= chunks) {
			if (is_halved(pull) && !theirs)
				pull->in->alone = ALONE_TURNS;
			pull_finish(pull, 0);
		}
	}
}

static void pull_deliver(struct wf_ux *ux, struct wf_rx *rx)
{
	struct wf_shm_pull *pull = wf_container_of(ux, struct wf_shm_pull, ux);

	pull->rx = rx;
	if (pull->in)
		start(pull);
	else
		pull_finish(pull, FI_ECONNRESET);
}

static void pull_discard(struct wf_ux *ux)
{
	struct wf_shm_pull *pull = wf_container_of(ux, struct wf_shm_pull, ux);

	if (pull->in)
		reply_final(pull, 0);
	pull_free(pull);
}

static bool parts_hold(const struct wf_shm_part *parts, uint32_t count,
		       uint64_t total)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (parts[i].len > UINT64_MAX - sum)
			return false;
		sum += parts[i].len;
	}
	return sum == total;
}

int wf_shm_pull_arrive(struct wf_shm_in *in, const struct wf_shm_parked *parked,
		       const struct wf_shm_part *parts, uint8_t flags,
		       uint64_t tag, uint64_t data)
{
	uint32_t number = wf_base_table_number(parked->op);
	bool tagged = flags & WF_SHM_SLOT_TAGGED;
	struct wf_rxq *rxq = in->ep->rxq;
	struct wf_shm_pull *pull;
	struct wf_rx *rx;

	if (wf_base_table_get(&in->pulls, number) ||
	    !parts_hold(parts, parked->iov_count, parked->total))
		return -EPROTO;
	pull = pull_new(in);
	if (!pull)
		return -EAGAIN;
	*pull = (struct wf_shm_pull){
		.ux = {
			.ops = &pull_ops,
			.rxq = rxq,
			.compq = rxq->compq,
			.cntr = rxq->cntr,
			.owner = in->ep,
			.reports_all = rxq->reports_all,
			.tag = tag,
			.data = data,
			.src = in->src,
			.flags = flags & WF_SHM_SLOT_DATA ? FI_REMOTE_CQ_DATA :
							    0,
			.len = parked->total,
		},
		.in = in,
		.op = parked->op,
		.iov_count = parked->iov_count,
		.stamp = parked->stamp,
	};
	for (uint32_t i = 0; i < parked->iov_count; i++) {
		pull->iov[i].iov_base = (void *)(uintptr_t)parts[i].addr;
		pull->iov[i].iov_len = parts[i].len;
	}
	wf_base_list_init(&pull->busy);
	if (wf_base_table_put(&in->pulls, number, pull)) {
		in->spare_pull = pull;
		return -EAGAIN;
	}
	rx = wf_match_rxq_take(rxq, tagged, tag, in->src, parked->total);
	if (!rx) {
		pull->stamp = 0;
		wf_match_park(wf_match_rxq_of(rxq, tagged), &pull->ux);
		return 0;
	}
	pull->rx = rx;
	start(pull);
	return 0;
}

int wf_shm_pull_stream(struct wf_shm_in *in, const struct wf_shm_stream *stream,
		       const uint8_t *bytes, size_t len)
{
	struct wf_shm_pull *pull =
		wf_base_table_get(&in->pulls, wf_base_table_number(stream->op));

	if (!pull || pull->op != stream->op ||
	    pull->state != WF_SHM_PULL_STREAMED ||
	    stream->offset != pull->have || !len ||
	    len > pull->want - pull->have)
		return -EPROTO;
	wf_op_iov_scatter(pull->rx->iov, pull->rx->iov_count, pull->have, bytes,
			  len);
	pull->have += len;
	if (pull->have == pull->want)
		pull_finish(pull, 0);
	return 0;
}

/* Whether the sender's process has ended, and cannot copy any more. */
static bool is_gone(const struct wf_shm_in *in)
{
	struct pollfd sock = { .fd = wf_shm_link_in_fd(in),
			       .events = POLLRDHUP };

	return in->ended || (wf_os_poll(&sock, 1, 0) > 0 &&
			     sock.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

/* Ends a share early, because the buffer goes back to the user. The sender gets
 * no more chunks, and LEAVE_PATIENCE to finish those that it has. If it takes
 * longer, it may still write into the buffer afterwards: nothing can prevent
 * that. */
static void leave_share(struct wf_shm_pull *pull)
{
	const struct wf_shm_in *in = pull->in;
	struct wf_shm_share *share = &in->region.shares[pull->share];
	uint64_t begin = wf_base_clock_ns();
	struct wf_rest rest = { 0 };
	uint32_t theirs =
		pull->failed ? pull->theirs : take_claims(pull, share);

	/* We do not wait for a sender that broke the protocol. */
	while (!in->broken && !wf_shared_load(&share->sender_failed, acquire) &&
	       wf_shared_load(&share->sender_done, acquire) < theirs &&
	       !is_gone(in) && wf_base_clock_ns() - begin < LEAVE_PATIENCE)
		wf_base_rest(&rest);
}

void wf_shm_pull_orphan(struct wf_shm_pull *pull, int err)
{
	/* A forked child does not have the ring. */
	if (pull->state == WF_SHM_PULL_SHARED && pull->in->region.base)
		leave_share(pull);
	make_idle(pull);
	pull->in = NULL;
	if (!pull->rx)
		return; /* unmatched: the receive that takes it will fail */
	if (err)
		pull_finish(pull, err);
	else
		pull_free(pull);
}

static const struct wf_ux_ops pull_ops = {
	.deliver = pull_deliver,
	.discard = pull_discard,
};
