/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of open channels. The socket of a channel wakes a peer that
 * sleeps, and its end tells that the peer has ended. Each channel is opened
 * with a socket of its own. Two endpoints that send to each other need one
 * socket, not two: one of the two channels between them closes its socket and
 * uses that of the other, its twin. So 512 peers take 512 descriptors.
 *
 * They agree as follows: the endpoint with the lower address (A) sends JOIN on
 * the socket that the other endpoint (B) has connected, which is the one to
 * close. It names the channel that A has connected. B finds its end of that
 * channel, uses its socket for sending, too, and answers JOINED; B still reads
 * the old socket, because A may use it to wake B. A then also uses the shared
 * socket, and closes the old one. If A ends before that, B still has the old
 * socket. If B cannot do it yet, because a ring that A has given up is still
 * its twin, B does it when that ring has gone: A asks once for each channel
 * that it connects.
 *
 * While two channels share a socket, the end of the socket cannot tell the end
 * of only one of them. LEFT tells that the sending end is closed, SHUT that the
 * receiving end is. Both name the channel by the number that its receiver gave
 * it, so that a late note is not taken for another channel.
 *
 * The endpoint's lock protects all of it.
 */
#ifndef WF_SHM_LINK_H
#define WF_SHM_LINK_H

#include "shm/in.h"
#include "shm/out.h"

/* The descriptor of a channel, its own or its twin's; -1: none. */
static inline int wf_shm_link_out_fd(const struct wf_shm_out *out)
{
	return out->sock.fd < 0 && out->twin ? out->twin->sock.fd :
					       out->sock.fd;
}

static inline int wf_shm_link_in_fd(const struct wf_shm_in *in)
{
	return in->sock.fd < 0 && in->twin ? in->twin->sock.fd : in->sock.fd;
}

/* The channel was opened: looks for a twin. */
void wf_shm_link_out_opened(struct wf_shm_out *out);
void wf_shm_link_in_opened(struct wf_shm_in *in);

/* The socket of an open channel is ready. */
void wf_shm_link_out_ready(struct wf_shm_out *out, uint32_t events);
void wf_shm_link_in_ready(struct wf_source *source, uint32_t events,
			  uint64_t now);
void wf_shm_link_old_ready(struct wf_source *source, uint32_t events,
			   uint64_t now);

/* Wakes the peer, which sleeps. Without memory for that, each look tries again. */
void wf_shm_link_wake_receiver(struct wf_shm_out *out);
void wf_shm_link_wake_sender(struct wf_shm_in *in);
/* At each look: peers that could not be woken. */
void wf_shm_link_wake_again(struct wf_shm_ep *ep);

/* Tells the sender that its offer (offer.h) will not be used. */
void wf_shm_link_decline(const struct wf_shm_in *in);

/* The channel stops using its socket. The peer is notified. */
void wf_shm_link_drop_out(struct wf_shm_out *out);
void wf_shm_link_drop_in(struct wf_shm_in *in);

/* In a forked child: closes its copies of the descriptors. */
void wf_shm_link_forked_out(struct wf_shm_out *out);
void wf_shm_link_forked_in(struct wf_shm_in *in);

#endif
