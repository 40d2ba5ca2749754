/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attendant: see attend.c. A device embeds struct wf_nic_attend.
 */
#ifndef WF_NIC_ATTEND_H
#define WF_NIC_ATTEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/lock.h"

struct wf_nic_attend {
	struct wf_list link;
	/* The device's, set before wf_nic_attend_begin(): */
	int fd; /* readable when there is something to do */
	/* The owner sleeps at the descriptor and is woken himself. */
	const _Atomic uint32_t *owner_asleep;
	/* Does some of the device's work in the owner's place. @woken: by the
	 * descriptor. Returns when there is something to do next, by the
	 * monotonic clock; UINT64_MAX: never. Takes the device's lock. */
	uint64_t (*step_in)(struct wf_nic_attend *attend, bool woken);
	/* Set by step_in(): the descriptor is readable because of something
	 * that only the owner can take. A thread that sleeps at it would not
	 * sleep. */
	bool blind;
	bool on;
	/* The attendant's. */
	_Atomic uint32_t calls; /* of the owner */
	uint32_t calls_seen;
	bool watched; /* it sleeps at the descriptor */
};

/* From here on the attendant serves the device when the owner does not call,
 * until it is removed. 0 or -errno. No lock of the device is held. */
int wf_nic_attend_begin(struct wf_nic_attend *attend);
void wf_nic_attend_end(struct wf_nic_attend *attend);

/* For step_in(): takes the device's lock. False: somebody has it, who works, or is
 * in the middle of his work and has no processor. To wait for him would take the
 * processor that he needs: the device is looked at again after a while. */
bool wf_nic_attend_enter(struct wf_nic_attend *attend,
			 struct wf_lock *its_lock);

void wf_nic_attend_wake(void);

/* The owner calls, and the attendant has nothing to know. One owner at a time; lost
 * counts do no harm if there are more. */
static inline void wf_nic_attend_noted(struct wf_nic_attend *attend)
{
	atomic_store_explicit(
		&attend->calls,
		atomic_load_explicit(&attend->calls, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Notes a call of the owner, which may have set timers that a sleeping attendant
 * does not know. */
static inline void wf_nic_attend_called(struct wf_nic_attend *attend)
{
	wf_nic_attend_noted(attend);
	if (attend->on)
		wf_nic_attend_wake();
}

#endif
