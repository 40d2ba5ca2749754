/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of nic/udp that touches the kernel: what its files share. The other
 * half, which decides, is in engine/. The NIC's lock covers all of it; every
 * function here is called with it held unless it says otherwise.
 *
 *   dev      the NIC: opening and closing it, the table of queue pairs
 *   pass     one pass of its work, and the thread
 *   port     what the engine asks for: packets out, bytes of requests
 *   target   where data packets put their bytes
 *   work     requests off the rings, and their completions
 *   sock     the socket
 */
#ifndef WF_NIC_UDP_DEV_H
#define WF_NIC_UDP_DEV_H

#include "base/clock.h"
#include "nic/attend.h"
#include "nic/soft.h"
#include "nic/udp/engine/engine.h"
#include "nic/udp/sock.h"
#include "nic/worker.h"

#define WF_UDP_READS_MOST 4096u /* of ours at a time; others wait */
#define WF_UDP_SERVE_MOST 1024u /* reads of one peer that we serve at a time */
#define WF_UDP_SERVE_ALL 16384u /* and of all together: their memory is ours */

/* A request of ours, or a read of a peer's. */
struct wf_udp_request {
	struct wf_udp_op op;  /* first; owner_link: of the queue pair */
	struct wf_nic_qp *qp; /* NULL: SERVE */
	uint16_t src_qpn;
	uint32_t got;	  /* READ: bytes that are here */
	uint32_t read_id; /* READ: ours; SERVE: the peer's */
	/* SERVE: raddr is here. */
	struct wf_nic_request req;
};

/* The device keeps this for a queue pair. */
struct wf_udp_qp {
	struct wf_list ops;
	struct wf_nic_stuck *stuck;
};

struct wf_udp_dev {
	union { /* first */
		struct wf_nic nic;
		struct wf_nic_soft soft;
	};
	struct wf_udp_engine engine;
	struct wf_udp_sock sock;
	uint64_t now; /* of the pass */
	_Atomic uint64_t looked_at;
	uint16_t rx_qpn;  /* whose receive the last message took */
	uint32_t serving; /* reads of all peers */
	struct wf_pool requests;
	struct wf_queue_ids read_ids;
	struct wf_udp_request **reads;
	bool ring_waits;      /* descriptors in some ring do: for a read id, or
				 memory */
	uint64_t look_at;     /* errors of the network are looked for now and
				 then */
	uint32_t kicks_held;  /* since ... */
	uint64_t received_at; /* the socket was looked at */
	uint64_t kicked_at;   /* ... packets left the last time */
	struct wf_nic_attend attend;
	struct wf_nic_worker worker;
	int poll_fd; /* of the socket and user_fd: threads, but none of ours */
	pid_t pid;   /* whose all of this is */
};

static inline struct wf_udp_dev *wf_udp_dev_of(struct wf_nic *nic)
{
	return (struct wf_udp_dev *)nic;
}

static inline struct wf_udp_dev *
wf_udp_dev_of_engine(struct wf_udp_engine *engine)
{
	return wf_container_of(engine, struct wf_udp_dev, engine);
}

#define wf_udp_dev_count(dev, name, n)                                         \
	wf_nic_count(&(dev)->nic.counters->name, n)

/* -- pass.c ----------------------------------------------------------------- */

/* Everything once. Returns how many things it did. */
int wf_udp_pass(struct wf_udp_dev *dev);
/* Sends what peers have to send. */
void wf_udp_pass_pump(struct wf_udp_dev *dev);
/* The time at which there is work even if nobody calls. */
uint64_t wf_udp_pass_next(struct wf_udp_dev *dev);
/* No lock. Opens the descriptors that a sleeper needs beside the socket.
 * @thread: the sleeper is the thread, which needs fewer. */
int wf_udp_pass_fds(struct wf_udp_dev *dev, bool thread);
int wf_udp_pass_start(struct wf_udp_dev *dev);
/* No lock. In the owner's place. */
uint64_t wf_udp_pass_attend(struct wf_nic_attend *attend, bool woken);

/* -- port.c ----------------------------------------------------------------- */

extern const struct wf_udp_port wf_udp_port;

/* Sends what is in the batch. -EAGAIN: not all of it. */
int wf_udp_port_flush(struct wf_udp_dev *dev);

/* -- target.c --------------------------------------------------------------- */

/* As place() of struct wf_udp_port. */
enum wf_nic_status wf_udp_target(struct wf_udp_engine *engine,
				 struct wf_udp_peer *peer,
				 const struct wf_udp_data *head,
				 const uint8_t *payload);

/* -- work.c ----------------------------------------------------------------- */

/* Takes the requests that the doorbell of @qp has announced, at dev->now. */
void wf_udp_work_take(struct wf_udp_dev *dev, struct wf_nic_qp *qp);
/* As ended() of struct wf_udp_port. */
void wf_udp_work_ended(struct wf_udp_engine *engine, struct wf_udp_op *op,
		       enum wf_nic_status status);
void wf_udp_work_flush(struct wf_udp_dev *dev, struct wf_nic_qp *qp);
void wf_udp_work_complete(struct wf_udp_dev *dev, struct wf_nic_qp *qp,
			  const struct wf_nic_cqe *cqe);

#endif
