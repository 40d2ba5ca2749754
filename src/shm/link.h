/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of open channels: who sleeps is woken by them, and the end of one
 * is the end of the peer. A channel is opened with a socket of its own. Two
 * endpoints that send to each other need one, not two: of two channels between
 * them, one gives up its socket and uses that of the other, its twin. So 512
 * peers are 512 descriptors.
 *
 * How: the endpoint with the lower address (A) asks on the socket that it was
 * connected by (the one to give up) to JOIN the one that it has connected. The
 * other (B) finds its end of that, has its sending end use it, and says JOINED;
 * it keeps listening to the old socket, by which A may still wake it. A then uses
 * the other socket, too, and closes the old one. If A goes before that, B is still
 * there by the old socket.
 *
 * While two channels have one socket, its end does not tell the end of one of
 * them: LEFT tells that of the sending end, SHUT that of the receiving end. Both
 * name the channel by the number that its receiver gave it, so that what comes
 * late is not taken for another.
 *
 * The endpoint's lock covers all of it.
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

/* The channel is open: looks for a twin. */
void wf_shm_link_out_opened(struct wf_shm_out *out);
void wf_shm_link_in_opened(struct wf_shm_in *in);

/* The socket of an open channel is ready. */
void wf_shm_link_out_ready(struct wf_shm_out *out, uint32_t events);
void wf_shm_link_in_ready(struct wf_source *source, uint32_t events,
			  uint64_t now);
void wf_shm_link_old_ready(struct wf_source *source, uint32_t events,
			   uint64_t now);

/* The channel lets go of its socket. The peer is told. */
void wf_shm_link_drop_out(struct wf_shm_out *out);
void wf_shm_link_drop_in(struct wf_shm_in *in);

/* In a forked child: closes what it has a copy of. */
void wf_shm_link_forked_out(struct wf_shm_out *out);
void wf_shm_link_forked_in(struct wf_shm_in *in);

#endif
