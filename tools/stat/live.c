/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line for each endpoint. Columns that everybody wants come first; others
 * follow as far as the line is wide. It must not look anything up itself.
 */
#include "tools/stat/live.h"

#include <stdlib.h>
#include <string.h>

#define PID_WIDTH 7
#define COMMAND_MIN 7
#define ADDRESS_MIN 15 /* 127.0.0.1:12345 */
#define COLUMN_MIN 5   /* a scaled number */

/* In the order in which they appear; the first ones always do. */
static const enum wf_tools_quantity columns[] = {
	WF_TOOLS_PEERS,	     WF_TOOLS_OUT,	 WF_TOOLS_OUT_BYTES,
	WF_TOOLS_IN,	     WF_TOOLS_IN_BYTES,	 WF_TOOLS_UNANSWERED,
	WF_TOOLS_UNEXPECTED, WF_TOOLS_SLEEPS,	 WF_TOOLS_REFUSED,
	WF_TOOLS_RMA,	     WF_TOOLS_RMA_BYTES, WF_TOOLS_ATOMICS,
	WF_TOOLS_RING_BYTES, WF_TOOLS_CMA_BYTES, WF_TOOLS_PENDING,
	WF_TOOLS_LOST,	     WF_TOOLS_NET_BYTES, WF_TOOLS_RETRANSMITS,
	WF_TOOLS_RTT,
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_ALWAYS 5

struct layout {
	int command;
	int address;
	unsigned n_columns;
};

static int width_of(unsigned column)
{
	size_t len = strlen(wf_tools_quantity_title(columns[column]));

	return len < COLUMN_MIN ? COLUMN_MIN : (int)len;
}

/* Texts get what they need if the numbers everybody wants leave it; what is
 * left then goes to more numbers. */
static struct layout lay_out(const struct wf_tools_live *live)
{
	struct layout layout = { COMMAND_MIN, ADDRESS_MIN, N_ALWAYS };
	int command = COMMAND_MIN, address = ADDRESS_MIN;
	int left = (int)live->width - PID_WIDTH - 2 - COMMAND_MIN - ADDRESS_MIN;

	for (size_t i = 0; i < wf_tools_live_endpoints(live); i++) {
		const struct wf_tools_endpoint *ep = &live->now->endpoints[i];
		int len = (int)strlen(ep->command);

		command = len > command ? len : command;
		len = (int)strlen(ep->page.name);
		address = len > address ? len : address;
	}
	for (unsigned i = 0; i < N_ALWAYS; i++)
		left -= 1 + width_of(i);
	while (left > 0 && layout.address < address) {
		layout.address++;
		left--;
	}
	while (left > 0 && layout.command < command) {
		layout.command++;
		left--;
	}
	while (layout.n_columns < N_COLUMNS &&
	       left >= 1 + width_of(layout.n_columns))
		left -= 1 + width_of(layout.n_columns++);
	return layout;
}

/* Cut at its width; a '+' says so. */
static void write_text(FILE *out, const char *text, int width)
{
	bool cut = (int)strlen(text) > width;

	fprintf(out, " %-*.*s%s", cut ? width - 1 : width,
		cut ? width - 1 : width, text, cut ? "+" : "");
}

static void write_head(const struct layout *layout, FILE *out)
{
	fprintf(out, "%*s", PID_WIDTH, "PID");
	write_text(out, "COMMAND", layout->command);
	write_text(out, "ADDRESS", layout->address);
	for (unsigned i = 0; i < layout->n_columns; i++)
		fprintf(out, " %*s", width_of(i),
			wf_tools_quantity_title(columns[i]));
	fputc('\n', out);
}

static void write_line(const struct wf_tools_live *live,
		       const struct wf_tools_endpoint *ep,
		       const struct layout *layout, FILE *out)
{
	const struct wf_tools_endpoint *before =
		wf_tools_scan_find(live->before, ep);
	char text[WF_TOOLS_SCALED_LEN];

	fprintf(out, "%*d", PID_WIDTH, (int)ep->pid);
	write_text(out, ep->command, layout->command);
	write_text(out, ep->page.name, layout->address);
	for (unsigned i = 0; i < layout->n_columns; i++)
		fprintf(out, " %*s", width_of(i),
			wf_tools_quantity_scaled(
				wf_tools_quantity_value(columns[i], before, ep),
				text));
	fputc('\n', out);
}

void wf_tools_live_write(const struct wf_tools_live *live, FILE *out)
{
	struct layout layout = lay_out(live);
	size_t count = wf_tools_live_endpoints(live), shown = count;

	/* The head, and a line that says how many more there are. */
	if (live->height && shown + 1 > live->height)
		shown = live->height > 2 ? live->height - 2 : 0;
	write_head(&layout, out);
	for (size_t i = 0; i < shown; i++)
		write_line(live, &live->now->endpoints[i], &layout, out);
	if (shown < count)
		fprintf(out, "%*s and %zu more\n", PID_WIDTH, "...",
			count - shown);
}

/* -- order ----------------------------------------------------------------- */

struct ranked {
	struct wf_tools_endpoint endpoint;
	double first;  /* larger ones come first ... */
	double second; /* ... and among equals, by this */
};

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	bool device = wf_tools_scan_is_device(&x->endpoint);

	if (device != wf_tools_scan_is_device(&y->endpoint))
		return device ? 1 : -1;
	if (x->first != y->first)
		return x->first > y->first ? -1 : 1;
	if (x->second != y->second)
		return x->second > y->second ? -1 : 1;
	if (x->endpoint.pid != y->endpoint.pid)
		return x->endpoint.pid < y->endpoint.pid ? -1 : 1;
	return strcmp(x->endpoint.page.name, y->endpoint.page.name);
}

/* Both ways, and memory of others. */
static double busy(const struct wf_tools_endpoint *before,
		   const struct wf_tools_endpoint *now, bool bytes)
{
	static const enum wf_tools_quantity all[2][4] = {
		{ WF_TOOLS_OUT, WF_TOOLS_IN, WF_TOOLS_RMA, WF_TOOLS_ATOMICS },
		{ WF_TOOLS_OUT_BYTES, WF_TOOLS_IN_BYTES, WF_TOOLS_RMA_BYTES,
		  WF_TOOLS_ATOMICS },
	};
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += wf_tools_quantity_value(all[bytes][i], before, now);
	return sum;
}

static void rank(const struct wf_tools_live *live, struct ranked *r)
{
	const struct wf_tools_endpoint *before =
		wf_tools_scan_find(live->before, &r->endpoint);

	if (wf_tools_scan_is_device(&r->endpoint))
		return;
	switch (live->sort) {
	case WF_TOOLS_OUT_BYTES:
		r->first = busy(before, &r->endpoint, true);
		r->second = busy(before, &r->endpoint, false);
		break;
	case WF_TOOLS_OUT:
		r->first = busy(before, &r->endpoint, false);
		r->second = busy(before, &r->endpoint, true);
		break;
	case WF_TOOLS_QUANTITIES:
		break;
	default:
		r->first = wf_tools_quantity_value(live->sort, before,
						   &r->endpoint);
		break;
	}
}

size_t wf_tools_live_endpoints(const struct wf_tools_live *live)
{
	size_t n = live->now->count;

	while (n && wf_tools_scan_is_device(&live->now->endpoints[n - 1]))
		n--;
	return n;
}

void wf_tools_live_sort(const struct wf_tools_live *live)
{
	struct wf_tools_scan *now = live->now;
	struct ranked *all = calloc(now->count + 1, sizeof(*all));

	if (!all)
		return; /* as they were found is better than nothing */
	for (size_t i = 0; i < now->count; i++) {
		all[i].endpoint = now->endpoints[i];
		rank(live, &all[i]);
	}
	qsort(all, now->count, sizeof(*all), compare);
	for (size_t i = 0; i < now->count; i++)
		now->endpoints[i] = all[i].endpoint;
	free(all);
}
