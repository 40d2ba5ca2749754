/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keyboard while the live view is shown. The terminal must be left as it
 * was found.
 */
#ifndef WF_TOOLS_STAT_KEYS_H
#define WF_TOOLS_STAT_KEYS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

/* Other keys are their character. */
enum {
	WF_TOOLS_KEY_NONE = 0, /* time is up, or a signal came */
	WF_TOOLS_KEY_TAB = '\t',
	WF_TOOLS_KEY_ENTER = '\n',
	WF_TOOLS_KEY_ESCAPE = 27,
	WF_TOOLS_KEY_BACKSPACE = 127,
	WF_TOOLS_KEY_UP = 256,
	WF_TOOLS_KEY_DOWN,
	WF_TOOLS_KEY_PAGE_UP,
	WF_TOOLS_KEY_PAGE_DOWN,
	WF_TOOLS_KEY_HOME,
	WF_TOOLS_KEY_END,
	WF_TOOLS_KEY_OTHER, /* a sequence that we do not know */
};

struct wf_tools_keys {
	bool listening; /* the input is a terminal, and nobody has hung up */
	bool changed;	/* it passes on each key at once, without showing it */
	struct termios before;
	char typed[64]; /* and not taken yet */
	unsigned count, next;
};

/* @wanted: otherwise no key is read. */
void wf_tools_keys_open(struct wf_tools_keys *keys, bool wanted);

/* Waits for a key until the clock shows @until, with the signals of @mask
 * blocked and no others. */
int wf_tools_keys_wait(struct wf_tools_keys *keys, uint64_t until,
		       const sigset_t *mask);

/* The key at the beginning of @typed, which is not empty. *@used: the bytes that
 * it takes. */
int wf_tools_keys_decode(const char *typed, unsigned count, unsigned *used);

/* Also before the process stops; waiting for a key opens again. */
void wf_tools_keys_close(struct wf_tools_keys *keys);

#endif
