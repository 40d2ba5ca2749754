/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading keys between two tables.
 */
#include "tools/stat/keys.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"

/* A background job that touches its terminal is stopped. */
static bool in_foreground(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Also after the job was stopped and continued: the shell has set the terminal
 * to its own liking in between. */
static void prepare(struct wf_tools_keys *keys)
{
	struct termios now;

	if (!in_foreground() || tcgetattr(STDIN_FILENO, &now) ||
	    !(now.c_lflag & ICANON))
		return;
	keys->before = now;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	keys->changed |= !tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

void wf_tools_keys_open(struct wf_tools_keys *keys, bool wanted)
{
	*keys = (struct wf_tools_keys){
		.listening = wanted && isatty(STDIN_FILENO),
	};
}

void wf_tools_keys_close(struct wf_tools_keys *keys)
{
	if (keys->changed && in_foreground())
		tcsetattr(STDIN_FILENO, TCSANOW, &keys->before);
	keys->changed = false;
}

/* False: `q` was among the keys. */
static bool take(struct wf_tools_keys *keys)
{
	char typed[64];
	ssize_t got = read(STDIN_FILENO, typed, sizeof(typed));

	if (got <= 0)
		keys->listening = false;
	for (ssize_t i = 0; i < got; i++) {
		if (typed[i] == 'q' || typed[i] == 'Q')
			return false;
	}
	return true;
}

bool wf_tools_keys_wait(struct wf_tools_keys *keys, double seconds,
			const volatile sig_atomic_t *interrupted)
{
	uint64_t end = wf_base_clock_ns() + (uint64_t)(seconds * 1e9), now;

	if (keys->listening)
		prepare(keys);
	/* Signals of a resized window or a continued job do not shorten it. */
	while (!*interrupted && (now = wf_base_clock_ns()) < end) {
		struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
		bool listens = keys->listening && in_foreground();
		uint64_t ms = (end - now + WF_NS_PER_MS - 1) / WF_NS_PER_MS;

		if (poll(&input, listens, (int)ms) > 0 && in_foreground() &&
		    !take(keys))
			return false;
	}
	return !*interrupted;
}
