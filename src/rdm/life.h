/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lives: which packets of a peer belong together. Each side numbers what it
 * sends from 0 on and gives all of it one id, its life; it begins another life
 * whenever it cannot go on with the last one. This file decides what an id means
 * and touches nothing else; peer.c does what follows from it.
 *
 * An id says why its life began. Say A sends in life a and knows B by life b:
 *
 *	NEW	  A knows nothing of B. A process that was started, or one that
 *		  has forgotten B altogether.
 *	KEEP	  A has what B sent in life b, and goes on with it.
 *	FORGOT b  A has lost its connection to B, and with it perhaps answers to
 *		  what B sent in life b. It still takes messages of life b, but
 *		  does not answer them: B is to begin another one.
 *
 * B, in life b, hears the first packet of life a:
 *
 *	FORGOT b	what B sent in b has no answers: b ends, B begins KEEP
 *	NEW, and B knew A by another life that was not over
 *			another process is there, that knows nothing of b: the
 *			same
 *	anything else	A began a before it heard of b, or goes on with it: b
 *			goes on
 *
 * and in all cases what A sends begins at 0.
 *
 * It converges because only FORGOT b ends b, and nobody says FORGOT because of
 * what it hears: whoever ends a life because of what it heard begins KEEP, which
 * ends nothing. Where both lose the other at once, each says FORGOT of a life
 * that has ended already. So a loss of one connection ends one life of each side
 * at most, whatever is delayed or crosses.
 *
 * On a device whose addresses differ for each process (EFA: the key of a queue
 * pair is drawn at random) there are no lives: the id of a side is its key and
 * never changes, because the peer may be libfabric's efa, which knows one id only.
 * Numbers go on after a loss, and another id is that of another peer.
 *
 * Two things are promised by those below. A life never outlasts its connection
 * (wf_nic_ah_renew()), so that nothing of an earlier life comes after the first
 * packet of a later one, and what the other side acknowledged of a life it has
 * received before it hears the next one.
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

/* Both ids are known, and stay. */
void wf_rdm_life_fix(struct wf_rdm_life *life, uint32_t ours, uint32_t theirs);

/* Our connection is lost: another life begins. */
void wf_rdm_life_lose(struct wf_rdm_life *life, uint32_t number);

/* A new connection, with nothing lost: the peer was released and returns. */
void wf_rdm_life_resume(struct wf_rdm_life *life, uint32_t number);

/* What a packet with @id (not 0) means. */
enum wf_rdm_life_news wf_rdm_life_classify(const struct wf_rdm_life *life,
					   uint32_t id);

/* The first packet of another life, classified as RESTARTS or ENDS. @silent:
 * nothing was sent in our present life, which may then say KEEP as well. */
void wf_rdm_life_hear(struct wf_rdm_life *life, uint32_t id, bool silent,
		      uint32_t number);

#endif
