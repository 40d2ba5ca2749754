/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With these calls transports translate addresses into names (fi_addr_t) and
 * back. The owner of the address vector fills it in. Called under the
 * endpoint's lock, on slow paths.
 */
#ifndef WF_OP_NAMES_H
#define WF_OP_NAMES_H

#include <stdint.h>

#include "base/addr.h"

struct wf_names {
	/* 0 or -errno when @name is unknown. */
	int (*get)(void *arg, uint64_t name, struct wf_addr *addr);
	/* UINT64_MAX when @addr has no name. */
	uint64_t (*find)(void *arg, const struct wf_addr *addr);
	/* NULL, or counts changes that are not announced by a call: progress
	 * checks it. */
	const _Atomic uint64_t *changes;
	void *arg;
};

#endif
