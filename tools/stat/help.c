/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The help screen of the live view.
 */
#include <string.h>

#include "tools/stat/view.h"
#include "tools/wrap.h"

#define KEY_WIDTH 14

static const struct {
	const char *key; /* NULL: a heading */
	const char *text;
} lines[] = {
	{ NULL, "Keys (any other key closes this help)" },
	{ "q", "quit" },
	{ "1 2 3 4 tab", "pages: endpoints, network (if packets flow), paths, "
			 "devices" },
	{ "up down j k",
	  "choose an endpoint, or scroll; also PgUp, PgDn, Home, "
	  "End" },
	{ "enter", "paths of the chosen endpoint; Esc goes back" },
	{ "s", "sort by the next column, or at once by: b bytes, m messages, "
	       "u unexpected, w sleeps, e peers, r job and rank, p pid" },
	{ "/", "filter by command, address, pid, job, or rank=3" },
	{ "i", "hide idle endpoints, show them again" },
	{ "g", "graphs off, on; the newest bar is the last one" },
	{ "space + -", "pause, go on; longer, shorter interval" },
	{ NULL, "Columns (/s: per second)" },
	{ "OUT IN", "messages; OUT-B, IN-B their bytes; OUT-P, IN-P packets" },
	{ "PEERS LOST", "connected peers; peers that went away" },
	{ "UNANS", "peers that have not answered so far" },
	{ "UNEXP PEND",
	  "messages that wait for a receive; operations that wait" },
	{ "", "(`weft why PID` says what they wait for)" },
	{ "RMA ATOM", "operations on remote memory, atomic operations" },
	{ "RING CMA", "bytes through rings; bytes copied between processes" },
	{ "NO-CMA SLEEP",
	  "channels where the kernel refused CMA; went to sleep" },
	{ "NET RETX LOSS", "bytes by packets; packets sent again; lost" },
	{ "RTT WINDOW", "round trip and window of the last peer heard" },
};
#define N_LINES (sizeof(lines) / sizeof(lines[0]))

/* Breaks a text between words, indented. */
static void write_text(const char *text, unsigned width, FILE *out)
{
	size_t room = width > KEY_WIDTH + 16 ? width - KEY_WIDTH : 16;
	int indent = 0; /* the key stands before the first line */

	while (*text) {
		size_t len = wf_tools_wrap_cut(text, room);

		fprintf(out, "%*s%.*s\n", indent, "", (int)len, text);
		text += len;
		text += *text == ' ';
		indent = KEY_WIDTH;
	}
}

void wf_tools_view_help(const struct wf_tools_view_frame *frame, FILE *out)
{
	for (size_t i = 0; i < N_LINES; i++) {
		if (!lines[i].key) {
			fprintf(out, "%s%s%s\n",
				wf_tools_paint(frame->paint, WF_TOOLS_HEAD),
				lines[i].text,
				wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
			continue;
		}
		fprintf(out, "%s%-*s%s",
			wf_tools_paint(frame->paint, WF_TOOLS_KEY), KEY_WIDTH,
			lines[i].key,
			wf_tools_paint(frame->paint, WF_TOOLS_NORMAL));
		write_text(lines[i].text, frame->width, out);
	}
}
