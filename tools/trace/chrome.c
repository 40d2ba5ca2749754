/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chrome's trace format: a list of events with a time in microseconds. Each
 * endpoint has two tracks: messages and sleep, and when it polls. Operations
 * that wait for a peer are asynchronous slices. An arrow is a pair of flow
 * events inside two slices.
 */
#include "tools/trace/chrome.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/json.h"

/* How wide an event is drawn, so that it can be seen and hold the end of an
 * arrow. */
#define MOMENT_NS 200.0
/* The endpoint did something else if it did not look at its descriptors for
 * longer than this. */
#define POLL_GAP_NS (3.0 * WF_NS_PER_MS)

#define LEN_MASK ((1ull << WF_TRACE_LEN_BITS) - 1)

#define X(name, text) text,
static const char *const slots[] = { "none", WF_TRACE_SLOTS(X) };
#undef X

static const char *const operations[] = { "send by packets", "write by packets",
					  "read by packets",
					  "atomic by packets" };

struct writer {
	const struct wf_tools_capture *capture;
	FILE *out;
	bool follows;
};

/* Whole ns, because the file holds no fractions: slices whose rounded ends
 * overlapped would be moved to another track. */
static double ns_of(const struct writer *w, const struct wf_trace_event *e)
{
	return round(wf_tools_capture_ns(w->capture, e->ticks));
}

/* The track of an endpoint's messages; that of its progress is one more. */
static size_t track_of(const struct writer *w, const struct wf_tools_traced *t)
{
	return 1 + 2 * (size_t)(t - w->capture->all);
}

/* Writes the members that all events have. The caller goes on with members, and
 * closes it. */
static void begin(struct writer *w, const char *phase, const char *name,
		  const struct wf_tools_traced *t, size_t track, double ns)
{
	fprintf(w->out,
		"%s\n{\"ph\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%zu,"
		"\"ts\":%.3f",
		w->follows ? "," : "", phase, name, (int)t->process.pid, track,
		ns / 1e3);
	w->follows = true;
}

static void end(struct writer *w)
{
	fputc('}', w->out);
}

/* -- names --------------------------------------------------------------------- */

static void write_name(struct writer *w, const char *what,
		       const struct wf_tools_traced *t, size_t track,
		       const char *name)
{
	begin(w, "M", what, t, track, 0);
	fputs(",\"args\":{\"name\":", w->out);
	wf_tools_json_quote(w->out, name);
	fputc('}', w->out);
	end(w);
}

static void write_names(struct writer *w, const struct wf_tools_traced *t)
{
	char text[128];

	if (t->job.rank >= 0)
		snprintf(text, sizeof(text), "rank %d, %s", t->job.rank,
			 t->process.command);
	else
		snprintf(text, sizeof(text), "%s", t->process.command);
	write_name(w, "process_name", t, track_of(w, t), text);
	write_name(w, "thread_name", t, track_of(w, t), t->name);
	snprintf(text, sizeof(text), "%s progress", t->name);
	write_name(w, "thread_name", t, track_of(w, t) + 1, text);
}

/* -- one endpoint ----------------------------------------------------------------- */

static void write_peer(struct writer *w, const struct wf_tools_traced *t,
		       const struct wf_trace_event *e)
{
	if (e->channel >= t->channel_count)
		return;
	fputs(",\"peer\":", w->out);
	wf_tools_json_quote(w->out, t->channels[e->channel].peer);
}

/* A slice that ends before the next event of its track. */
static void begin_moment(struct writer *w, const char *name,
			 const struct wf_tools_traced *t, size_t i)
{
	double at = ns_of(w, &t->events[i]), width = MOMENT_NS;

	if (i + 1 < t->count && ns_of(w, &t->events[i + 1]) - at < width)
		width = ns_of(w, &t->events[i + 1]) - at;
	begin(w, "X", name, t, track_of(w, t), at);
	fprintf(w->out, ",\"dur\":%.3f", width > 0 ? width / 1e3 : 0);
}

/* Operations that wait are told apart by endpoint, channel and number. */
static void write_operation(struct writer *w, const char *phase,
			    const char *name, const struct wf_tools_traced *t,
			    const struct wf_trace_event *e, uint64_t number)
{
	begin(w, phase, name, t, track_of(w, t), ns_of(w, e));
	fprintf(w->out,
		",\"cat\":\"operation\",\"id\":\"%d.%zu.%u.%" PRIu64 "\"",
		(int)t->process.pid, track_of(w, t), e->channel, number);
	end(w);
}

/* A message that leaves, by shared memory or by packets. */
static void write_message(struct writer *w, const char *name,
			  const struct wf_tools_traced *t, size_t i)
{
	const struct wf_trace_event *e = &t->events[i];

	begin_moment(w, name, t, i);
	fprintf(w->out,
		",\"args\":{\"bytes\":%" PRIu64 ",\"tag\":\"0x%" PRIx64
		"\",\"number\":%u",
		(uint64_t)(e->len & LEN_MASK), e->tag, e->seq);
	write_peer(w, t, e);
	fputc('}', w->out);
	end(w);
}

static void write_put(struct writer *w, const struct wf_tools_traced *t,
		      size_t i)
{
	const struct wf_trace_event *e = &t->events[i];
	char name[48];

	snprintf(name, sizeof(name), "send %s",
		 e->kind < WF_TRACE_SLOT_MAX ? slots[e->kind] : "unknown");
	write_message(w, name, t, i);
	if (e->kind == WF_TRACE_SLOT_PARKED)
		write_operation(w, "b", name, t, e,
				e->len >> WF_TRACE_LEN_BITS);
}

/* The name of an operation by packets: Perfetto looks for the end of one under
 * the name that it began with. */
static const char *packets_name(const struct wf_trace_event *e)
{
	return e->kind < sizeof(operations) / sizeof(operations[0]) ?
		       operations[e->kind] :
		       "operation by packets";
}

static void write_post(struct writer *w, const struct wf_tools_traced *t,
		       size_t i)
{
	const struct wf_trace_event *e = &t->events[i];

	write_message(w, packets_name(e), t, i);
	write_operation(w, "b", packets_name(e), t, e,
			e->len >> WF_TRACE_LEN_BITS);
}

static void write_received(struct writer *w, const struct wf_tools_traced *t,
			   size_t i)
{
	const struct wf_trace_event *e = &t->events[i];
	bool taken = e->type == WF_TRACE_TAKE;

	begin_moment(w, taken ? "receive" : "receive by packets", t, i);
	fprintf(w->out, ",\"args\":{\"%s\":%" PRIu64 ",\"number\":%u",
		taken ? "messages" : "bytes", e->len, e->seq);
	write_peer(w, t, e);
	fputc('}', w->out);
	end(w);
}

/* A slice from falling asleep to the wake-up. */
static void write_sleep(struct writer *w, const struct wf_tools_traced *t,
			size_t i)
{
	double at = ns_of(w, &t->events[i]), until;
	size_t j = i + 1;

	/* Up to the next SLEEP if there is no WAKE before it. */
	while (j < t->count && t->events[j].type != WF_TRACE_WAKE &&
	       t->events[j].type != WF_TRACE_SLEEP)
		j++;
	until = j < t->count ?
			ns_of(w, &t->events[j]) :
			(double)(w->capture->end_ns - w->capture->begin_ns);
	begin(w, "X", "sleep", t, track_of(w, t) + 1, at);
	fprintf(w->out, ",\"dur\":%.3f", until > at ? (until - at) / 1e3 : 0);
	end(w);
}

static void write_event(struct writer *w, const struct wf_tools_traced *t,
			size_t i)
{
	const struct wf_trace_event *e = &t->events[i];

	switch (e->type) {
	case WF_TRACE_PUT:
		write_put(w, t, i);
		break;
	case WF_TRACE_POST:
		write_post(w, t, i);
		break;
	case WF_TRACE_TAKE:
	case WF_TRACE_CAME:
		write_received(w, t, i);
		break;
	case WF_TRACE_END:
		write_operation(w, "e", "send parked", t, e, e->seq);
		break;
	case WF_TRACE_DONE:
		write_operation(w, "e", packets_name(e), t, e,
				e->len >> WF_TRACE_LEN_BITS);
		break;
	case WF_TRACE_REPLY:
		begin_moment(w, "fetched or acknowledged", t, i);
		end(w);
		break;
	case WF_TRACE_RING:
		begin_moment(w, "wake a peer", t, i);
		end(w);
		break;
	case WF_TRACE_WAKE:
		begin_moment(w, "awake", t, i);
		end(w);
		break;
	case WF_TRACE_SLEEP:
		write_sleep(w, t, i);
		break;
	default:
		break;
	}
}

/* A slice for each time span in which progress looked at its descriptors
 * regularly. */
static void write_polling(struct writer *w, const struct wf_tools_traced *t)
{
	double first = 0, last = 0;
	bool open = false;

	for (size_t i = 0; i <= t->count; i++) {
		const struct wf_trace_event *e = &t->events[i];
		bool over = i == t->count || e->type == WF_TRACE_SLEEP;
		double at = i < t->count ? ns_of(w, e) : 0;

		if (!over && e->type != WF_TRACE_POLL)
			continue;
		if (open && (over || at - last > POLL_GAP_NS)) {
			begin(w, "X", "polls", t, track_of(w, t) + 1, first);
			fprintf(w->out, ",\"dur\":%.3f", (last - first) / 1e3);
			end(w);
			open = false;
		}
		if (over)
			continue;
		if (!open)
			first = at;
		open = true;
		last = at;
	}
}

/* -- arrows ------------------------------------------------------------------------ */

static void write_arrow(struct writer *w, const struct wf_tools_arrow *arrow,
			size_t id)
{
	const char *name = arrow->wakes ? "wake-up" : "message";

	begin(w, "s", name, arrow->from, track_of(w, arrow->from),
	      ns_of(w, &arrow->from->events[arrow->from_event]));
	fprintf(w->out, ",\"cat\":\"%s\",\"id\":%zu", name, id);
	end(w);
	begin(w, "f", name, arrow->to, track_of(w, arrow->to),
	      ns_of(w, &arrow->to->events[arrow->to_event]));
	fprintf(w->out, ",\"cat\":\"%s\",\"id\":%zu,\"bp\":\"e\"", name, id);
	end(w);
}

void wf_tools_chrome_write(const struct wf_tools_capture *capture,
			   const struct wf_tools_arrows *arrows, FILE *out)
{
	struct writer w = { .capture = capture, .out = out };

	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
	for (size_t i = 0; i < capture->count; i++) {
		const struct wf_tools_traced *t = &capture->all[i];

		write_names(&w, t);
		for (size_t j = 0; j < t->count; j++)
			write_event(&w, t, j);
		if (t->count)
			write_polling(&w, t);
	}
	for (size_t i = 0; i < arrows->count; i++)
		write_arrow(&w, &arrows->all[i], i + 1);
	fputs("\n]}\n", out);
}
