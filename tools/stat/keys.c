/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading keys between two tables.
 */
#include "tools/stat/keys.h"

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* The rest of a sequence follows its first byte at once. */
#define SEQUENCE_MS 25

static const struct {
	const char *text; /* after the escape character */
	int key;
} sequences[] = {
	{ "[A", WF_TOOLS_KEY_UP },	 { "OA", WF_TOOLS_KEY_UP },
	{ "[B", WF_TOOLS_KEY_DOWN },	 { "OB", WF_TOOLS_KEY_DOWN },
	{ "[5~", WF_TOOLS_KEY_PAGE_UP }, { "[6~", WF_TOOLS_KEY_PAGE_DOWN },
	{ "[H", WF_TOOLS_KEY_HOME },	 { "OH", WF_TOOLS_KEY_HOME },
	{ "[1~", WF_TOOLS_KEY_HOME },	 { "[F", WF_TOOLS_KEY_END },
	{ "OF", WF_TOOLS_KEY_END },	 { "[4~", WF_TOOLS_KEY_END },
};

/* A background job that touches its terminal is stopped. */
static bool in_foreground(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Also after the job was stopped and continued: the shell has changed the
 * settings of the terminal in between. */
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

/* -- what was typed -------------------------------------------------------- */

/* How many of the characters are arguments of a sequence; the character behind
 * them ends it. */
static unsigned arguments(const char *typed, unsigned count)
{
	unsigned at = 0;

	while (at < count &&
	       (typed[at] == ';' || (typed[at] >= '0' && typed[at] <= '9')))
		at++;
	return at;
}

static unsigned sequence_length(const char *typed, unsigned count)
{
	unsigned at = 2 + arguments(typed + 2, count - 2);

	return at < count ? at + 1 : count;
}

int wf_tools_keys_decode(const char *typed, unsigned count, unsigned *used)
{
	*used = 1;
	if (typed[0] == '\r')
		return WF_TOOLS_KEY_ENTER;
	if (typed[0] == '\b')
		return WF_TOOLS_KEY_BACKSPACE;
	if (typed[0] != WF_TOOLS_KEY_ESCAPE || count < 2 ||
	    (typed[1] != '[' && typed[1] != 'O'))
		return (unsigned char)typed[0];
	*used = sequence_length(typed, count);
	for (unsigned i = 0; i < sizeof(sequences) / sizeof(sequences[0]);
	     i++) {
		if (strlen(sequences[i].text) == *used - 1 &&
		    !memcmp(typed + 1, sequences[i].text, *used - 1))
			return sequences[i].key;
	}
	return WF_TOOLS_KEY_OTHER;
}

/* The last key is the beginning of a sequence. */
static bool is_cut(const char *typed, unsigned count)
{
	unsigned at = count;

	while (at && typed[at - 1] != WF_TOOLS_KEY_ESCAPE)
		at--;
	if (!at)
		return false;
	typed += at;
	count -= at;
	return !count || ((typed[0] == '[' || typed[0] == 'O') &&
			  arguments(typed + 1, count - 1) == count - 1);
}

static void take(struct wf_tools_keys *keys)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t got = read(STDIN_FILENO, keys->typed, sizeof(keys->typed) / 2);

	keys->next = keys->count = 0;
	if (got <= 0) {
		keys->listening = false;
		return;
	}
	keys->count = (unsigned)got;
	if (!is_cut(keys->typed, keys->count) ||
	    poll(&input, 1, SEQUENCE_MS) <= 0)
		return;
	got = read(STDIN_FILENO, keys->typed + keys->count,
		   sizeof(keys->typed) - keys->count);
	keys->count += got > 0 ? (unsigned)got : 0;
}

static int next_key(struct wf_tools_keys *keys)
{
	unsigned used;
	int key;

	if (keys->next == keys->count)
		return WF_TOOLS_KEY_NONE;
	key = wf_tools_keys_decode(keys->typed + keys->next,
				   keys->count - keys->next, &used);
	keys->next += used;
	return key;
}

int wf_tools_keys_wait(struct wf_tools_keys *keys, uint64_t until,
		       const sigset_t *mask)
{
	uint64_t now = wf_base_clock_ns(), left = until > now ? until - now : 0;
	struct timespec time = {
		.tv_sec = (time_t)(left / WF_NS_PER_S),
		.tv_nsec = (long)(left % WF_NS_PER_S),
	};
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	bool listens;

	if (keys->next < keys->count)
		return next_key(keys);
	if (keys->listening)
		prepare(keys);
	listens = keys->listening && in_foreground();
	if (ppoll(&input, listens, &time, mask) > 0 && in_foreground())
		take(keys);
	return next_key(keys);
}
