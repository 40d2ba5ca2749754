/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives: which packets of a peer belong together. Each side numbers its
 * messages from 0 on and puts one id, its life, into all of its packets. It
 * begins another life whenever it cannot continue the last one. This file
 * decides what an id means and touches nothing else; peer.c acts on it.
 *
 * An id says why its life began. Say A sends in life a and knows B by life b:
 *
 *	NEW	  A knows nothing of B. A process that was started, or one that
 *		  has forgotten B altogether.
 *	KEEP	  A has the messages that B sent in life b, and goes on with it.
 *	FORGOT b  A has lost its connection to B, and perhaps answers to B's
 *		  requests of life b with it. A still accepts messages of life
 *		  b, but does not answer them: B must begin another life.
 *
 * B is in life b and receives the first packet of life a:
 *
 *	FORGOT b	B's requests of b get no answers: b ends, B begins KEEP
 *	NEW, and B knew A by another life that had not ended
 *			another process is at A's address and knows nothing of
 *			b: the same
 *	anything else	A began a before it knew b, or continues with it: b goes
 *			on
 *
 * In all cases A's messages begin at 0.
 *
 * This converges because only FORGOT b ends b, and no side begins FORGOT
 * because of a packet that it received: a side that ends a life because of a
 * packet begins KEEP, which ends nothing. If both sides lose each other at the
 * same time, each FORGOT names a life that has already ended. So the loss of
 * one connection ends at most one life of each side, however packets are
 * delayed or cross each other.
 *
 * On a device whose addresses differ for each process (EFA: the key of a queue
 * pair is drawn at random) there are no lives: the id of a side is its key and
 * never changes, because the peer may be libfabric's efa, which knows one id
 * only. Numbers continue after a loss, and another id means another peer.
 *
 * The layer below guarantees two things. A life never outlasts its connection
 * (wf_nic_ah_renew()), so no packet of an earlier life arrives after the first
 * packet of a later one. And the other side receives everything that it
 * acknowledged of a life before the first packet of the next life.
 */
#ifndef WF_RDM_LIFE_H
#define WF_RDM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* Ids are never 0. */
struct wf_rdm_life {
	uint32_t ours;
	uint32_t theirs; /* 0: nothing was heard of it yet */
	uint32_t past;	 /* theirs before; 0: none */
	bool over; /* theirs gets no answers any more: see FORGOT; or none yet */
	bool fixed; /* ids do not change */
};

enum wf_rdm_life_news {
	WF_RDM_LIFE_SAME,     /* of the life that is known */
	WF_RDM_LIFE_OVER,     /* of that, but the peer is to begin another */
	WF_RDM_LIFE_STALE,    /* of the one before */
	WF_RDM_LIFE_RESTARTS, /* what it sends begins anew */
	WF_RDM_LIFE_ENDS,     /* that, and our life is to end */
};

/* Nothing is known of the peer. @number: differs for each life of an endpoint,
 * random at first, so that a process is not mistaken for its predecessor at the
 * address. */
void wf_rdm_life_begin(struct wf_rdm_life *life, uint32_t number);

/* For devices without lives: sets both ids, which never change. */
void wf_rdm_life_fix(struct wf_rdm_life *life, uint32_t ours, uint32_t theirs);

/* Our connection is lost: another life begins. */
void wf_rdm_life_lose(struct wf_rdm_life *life, uint32_t number);

/* A new connection, with nothing lost: the peer was released and returns. */
void wf_rdm_life_resume(struct wf_rdm_life *life, uint32_t number);

/* Says what a packet with @id (not 0) means. */
enum wf_rdm_life_news wf_rdm_life_classify(const struct wf_rdm_life *life,
					   uint32_t id);

/* The first packet of another life, classified as RESTARTS or ENDS. @silent:
 * nothing was sent in our present life, which may then say KEEP as well. */
void wf_rdm_life_hear(struct wf_rdm_life *life, uint32_t id, bool silent,
		      uint32_t number);

#endif
