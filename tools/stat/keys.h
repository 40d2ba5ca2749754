/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keyboard while a table is shown: `q` ends it. The terminal must be left as
 * it was found.
 */
#ifndef WF_TOOLS_STAT_KEYS_H
#define WF_TOOLS_STAT_KEYS_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct wf_tools_keys {
	bool listening; /* the input is a terminal, and nobody has hung up */
	bool changed;	/* it passes on each key at once, without showing it */
	struct termios before;
};

/* @wanted: otherwise no key is read. */
void wf_tools_keys_open(struct wf_tools_keys *keys, bool wanted);

/* Waits @seconds, or until `q` is pressed or *@interrupted is set. Returns
 * whether to go on. */
bool wf_tools_keys_wait(struct wf_tools_keys *keys, double seconds,
			const volatile sig_atomic_t *interrupted);

void wf_tools_keys_close(struct wf_tools_keys *keys);

#endif
