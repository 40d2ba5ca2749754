/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The packet side of an endpoint: a transport (transport/transport.h). It owns
 * the device, its peers and their operations; transport.c runs it. It is off
 * until there is a peer on another node: until then it is a few words and a
 * watched socket. The endpoint's lock covers all of it and is held by every
 * caller.
 */
#ifndef WF_RDM_EP_H
#define WF_RDM_EP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/stats.h"
#include "base/table.h"
#include "match/rxq.h"
#include "nic/counters.h"
#include "nic/nic.h"
#include "nic/open.h"
#include "op/compq.h"
#include "op/reg.h"
#include "rdm/stats.h"
#include "transport/host.h"
#include "transport/transport.h"

struct wf_rdm_buf;
struct wf_rdm_peer;
struct wf_rdm_tx;

/* Known to every endpoint of weft: it rejects stray packets, not attackers. */
#define WF_RDM_QKEY 0x77656674u

/* PEER_ERROR: what op_id is. */
#define WF_RDM_REF_OP 0u /* a number that the receiver gave */
#define WF_RDM_REF_NUMBER                                                      \
	1u		   /* a message of which the receiver may have a part */
#define WF_RDM_REF_SKIP 2u /* one that the receiver may not have seen */

#define WF_RDM_BUCKETS 256

/* Packets posted for one peer before others have their turn. */
#define WF_RDM_PEER_BUDGET 64

/* How often peers that we wait for are asked whether they are alive. */
#define WF_RDM_PROBE_EVERY (250 * WF_NS_PER_MS)

/* Of messages that come in several packets. A peer has at most WF_RDM_AHEAD / 2
 * of them under way, with numbers that follow each other: four to a bucket. */
#define WF_RDM_MSG_BUCKETS 256

struct wf_rdm_ep_attr {
	const char *device;   /* of the NIC; NULL: the default */
	const char *key_file; /* of the job; NULL: nothing is encrypted */
	bool no_ktls;	      /* the kernel shall not encrypt */
	int fd; /* the socket that owns our address; stays the caller's */
	struct wf_nic_port *port; /* of a device without sockets; the same */
	/* Further addresses of this host, over which bulk may go as well. */
	struct wf_addr more[WF_NIC_ADDRS_MOST - 1];
	unsigned int more_count;
	size_t medium_max;   /* longer messages do not go unasked */
	size_t read_min;     /* the receiver reads those from here on */
	bool medium_advised; /* the device says what medium_max ... */
	bool read_advised;   /* ... and read_min are */
	size_t runt_size;    /* bytes that go before they are read; 0: none */
	uint64_t order;	     /* FI_ORDER_* that were asked for */
	uint64_t connect_timeout_ms;
	uint64_t warn_ms;   /* silence that is told of; 0: 2 s */
	uint64_t idle_ms;   /* after which strangers are forgotten; 0: 10 s */
	uint32_t max_peers; /* 0: the device's choice */
	uint64_t dead_timeout_s;
	uint32_t mtu;	/* 0: ask the interface */
	bool thread;	/* the device works by itself */
	bool reads;	/* may messages be read at all */
	bool hard_keys; /* those of RMA may be the device's: caps.hard_* */
	const struct wf_nic_fault *fault; /* NULL: none */
};

struct wf_rdm_ep {
	bool awake;
	bool closing;
	bool warned;	  /* that the device cannot be opened */
	bool deaf;	  /* so that our socket is not looked at */
	bool dozing;	  /* wf_rdm_ep_doze() said yes */
	bool unrung;	  /* something was posted and not rung for */
	bool alone;	  /* an operation is submitted behind which none is */
	bool last;	  /* and this packet is all that it posts */
	bool aging;	  /* time to look for peers that are not in use */
	bool crowded;	  /* too many peers: some must be removed */
	bool shut;	  /* strangers are refused */
	bool warned_full; /* that no peer can be removed */
	bool unlooked;	  /* whether one can, since the last sleep */
	bool blocked;	  /* the last look at active peers could post nothing */
	bool direct;	  /* the device does RMA by itself: direct.h ... */
	bool hard;	  /* ... by keys of its own */
	bool deny_reads;  /* tests: as if there were no memory for it */
	uint16_t next_turn;
	uint32_t inline_max;
	uint32_t connid;     /* ours, for ever: see life.h; 0: lives have ids */
	uint32_t copy_max;   /* bytes that are copied, not registered */
	uint32_t max_msg;    /* bytes of a packet */
	uint32_t max_recv;   /* bytes of a peer's */
	uint32_t max_placed; /* bytes of a message that goes to a place */
	uint32_t outstanding;
	uint32_t posts; /* requests given to the device so far */
	uint32_t reading;
	uint32_t unexpected;
	uint32_t next_name;    /* random at first: see named.h */
	uint32_t silent_lines; /* told since no peer was silent */
	uint32_t dead_lines;   /* see dead.c; the last at ... */
	uint64_t dead_at;
	uint32_t next_life; /* random at first; part of our ids */
	uint64_t unclaimed; /* of all peers: see wf_rdm_place_claim() */
	uint64_t runting;   /* bytes sent before they are read, not yet done */
	struct wf_host *host;
	struct wf_way *way;
	struct wf_source
		socket_source; /* our socket, then the device's descriptor */
	uint64_t wake_at;   /* the device could not be opened: try again then */
	uint64_t wake_wait; /* and so long after that; grows */
	int wake_err;
	struct wf_compq *txq;
	struct wf_rxq *rxq;
	struct wf_nic *nic;
	struct wf_nic_cq *cq;
	struct wf_nic_qp *qp;
	struct wf_nic_mr own; /* all memory, for our own packets */
	struct wf_nic_mr bufs_mr;
	struct wf_list active;	/* wf_rdm_peer that have something to post */
	struct wf_list stalled; /* wf_rdm_buf that could not be taken in */
	struct wf_rdm_buf *bufs;
	uint8_t *buf_memory;
	size_t buf_bytes;
	uint32_t buf_count;

	struct wf_rdm_peer **by_name;
	size_t name_count;
	struct wf_rdm_peer **by_ah;
	size_t ah_count; /* its room; greater than the number of the next handle */
	uint32_t ah_next; /* the next new handle has this number at most */
	struct wf_list by_addr[WF_RDM_BUCKETS];
	struct wf_list
		by_msg[WF_RDM_MSG_BUCKETS]; /* wf_rdm_rx: wf_rdm_rx_find() */
	struct wf_list peers;
	struct wf_list leaving; /* of them, whose handle was given back */
	uint32_t peer_count;
	uint32_t peer_limit; /* handles that the device has */
	uint64_t full_since; /* no peer can be removed; 0: not so */
	uint64_t crowd_at;   /* the next try to let some go */
	uint64_t now;	     /* when the clock was last looked at */
	const _Atomic uint64_t
		*deaths;   /* of peers, as the device counts them */
	uint64_t resets;   /* of them, that were handled */
	uint64_t probe_at; /* when to ask silent peers */
	struct wf_table names;
	struct wf_pool tx_pool;
	struct wf_pool small_pkts;
	struct wf_pool large_pkts;
	uint32_t pkt_lkeys[2]; /* of small ones, of large ones */
	void *pkt_memory;      /* of large ones; NULL: the pool's own */
	size_t pkt_bytes;
	struct wf_pool runs; /* wf_rdm_pkt */
	uint32_t run_head;   /* of the device's; 0: it has no runs */
	uint32_t run_more;   /* messages of runs beyond the first of each */
	struct wf_stats stats;
	struct wf_rdm_ep_attr attr;
};

extern const struct wf_transport wf_rdm_transport;

/* Watches the socket and costs nothing else yet. 0 or -errno. */
int wf_rdm_ep_open(struct wf_rdm_ep *ep, const struct wf_rdm_ep_attr *attr,
		   struct wf_host *host, struct wf_way *way);

/* Opens the device. 0 or -errno, then everything is as before. */
int wf_rdm_ep_wake(struct wf_rdm_ep *ep);
/* Opens the device as wf_rdm_ep_wake() does. If that failed a moment ago, returns
 * its -errno and does not try. */
int wf_rdm_ep_try_wake(struct wf_rdm_ep *ep);
/* Watches our socket again if the device could not be opened and it is time to
 * try. */
void wf_rdm_ep_hear_again(struct wf_rdm_ep *ep, uint64_t now);

/* As the functions of transport/transport.h by these names. */
void wf_rdm_ep_close(struct wf_rdm_ep *ep);
int wf_rdm_ep_submit(struct wf_rdm_ep *ep, uint64_t dst,
		     const struct wf_tx *req);
bool wf_rdm_ep_drain(struct wf_rdm_ep *ep);
void wf_rdm_ep_removed(struct wf_rdm_ep *ep, uint64_t name);

/* Whether there is nothing to do until the device's descriptor is readable or
 * *@deadline, which is lowered. */
bool wf_rdm_ep_doze(struct wf_rdm_ep *ep, uint64_t *deadline);

/* False: there was nothing to do. */
bool wf_rdm_ep_progress(struct wf_rdm_ep *ep);

/* The device lost a peer, and that was not handled yet. */
static inline bool wf_rdm_ep_has_resets(const struct wf_rdm_ep *ep)
{
	return wf_nic_counter(ep->deaths) != ep->resets;
}

/* Queues @tx behind all others of @peer, and sends it if nothing is in the way.
 * 0, or -errno: it is freed. */
int wf_rdm_ep_enqueue(struct wf_rdm_ep *ep, struct wf_rdm_peer *peer,
		      struct wf_rdm_tx *tx);

/* The device's doorbell, for everything posted since the last. */
void wf_rdm_ep_ring(struct wf_rdm_ep *ep);

static inline bool wf_rdm_ep_has_room(const struct wf_rdm_ep *ep)
{
	return wf_nic_qp_send_room(ep->qp) > 0;
}

static inline void wf_rdm_stat_add(struct wf_rdm_ep *ep, enum wf_rdm_stat item,
				   uint64_t more)
{
	wf_base_stats_add(&ep->stats, item, more);
}

static inline void wf_rdm_stat_most(struct wf_rdm_ep *ep, enum wf_rdm_stat item,
				    uint64_t value)
{
	if (value > wf_base_stats_get(&ep->stats, item))
		wf_base_stats_set(&ep->stats, item, value);
}

#endif
