/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds arrows. Both ends number the messages of a channel alike: slots of a
 * ring, or messages by packets. When a peer connects again, its numbers begin
 * again: a receive then belongs to the last send of that number before it.
 */
#include "tools/trace/arrows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/grow.h"

static bool is_wildcard(const char *name)
{
	return !strncmp(name, "0.0.0.0:", 8) || !strncmp(name, "[::]:", 5);
}

static bool has_address(const struct wf_tools_traced *traced,
			const struct wf_trace_channel *channel)
{
	const char *port = strrchr(channel->peer, ':');
	const char *own = strrchr(traced->name, ':');

	if (channel->place && traced->place && channel->place != traced->place)
		return false;
	return !strcmp(traced->name, channel->peer) ||
	       (is_wildcard(traced->name) && port && own && !strcmp(port, own));
}

static void find_peers(const struct wf_tools_capture *capture,
		       struct wf_tools_traced *traced)
{
	for (uint32_t i = 0; i < traced->channel_count; i++) {
		traced->peers[i] = NULL;
		for (size_t j = 0;
		     j < capture->count && traced->channels[i].peer[0] &&
		     !traced->peers[i];
		     j++) {
			if (has_address(&capture->all[j], &traced->channels[i]))
				traced->peers[i] = &capture->all[j];
		}
	}
}

static const struct wf_tools_traced *
peer_of(const struct wf_tools_traced *traced, uint16_t channel)
{
	return channel < traced->channel_count ? traced->peers[channel] : NULL;
}

/* -- messages under way from one endpoint to another ------------------------- */

/* A start may be the beginning of an arrow. */
struct start {
	uint32_t seq;
	bool by_packets;
	size_t event;
	uint64_t ticks;
};

struct starts {
	struct start *all;
	size_t count;
};

static int by_number(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	if (x->by_packets != y->by_packets)
		return x->by_packets ? 1 : -1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static int add(struct wf_tools_arrows *arrows,
	       const struct wf_tools_arrow *arrow)
{
	struct wf_tools_arrow *all = wf_tools_grow(arrows->all, arrows->count,
						   &arrows->room, sizeof(*all));

	if (!all)
		return -ENOMEM;
	arrows->all = all;
	all[arrows->count++] = *arrow;
	return 0;
}

static int collect(struct starts *starts, const struct wf_tools_traced *from,
		   const struct wf_tools_traced *to)
{
	starts->count = 0;
	starts->all = malloc((from->count + 1) * sizeof(*starts->all));
	if (!starts->all)
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++) {
		const struct wf_trace_event *e = &from->events[i];

		if ((e->type != WF_TRACE_PUT && e->type != WF_TRACE_POST) ||
		    peer_of(from, e->channel) != to)
			continue;
		starts->all[starts->count++] = (struct start){
			.seq = e->seq,
			.by_packets = e->type == WF_TRACE_POST,
			.event = i,
			.ticks = e->ticks,
		};
	}
	qsort(starts->all, starts->count, sizeof(*starts->all), by_number);
	return 0;
}

/* The last one with this number before @ticks, or NULL. */
static const struct start *find(const struct starts *starts, uint32_t seq,
				bool by_packets, uint64_t ticks)
{
	const struct start key = { seq, by_packets, 0, ticks };
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_number(&starts->all[middle], &key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || starts->all[low - 1].seq != seq ||
	    starts->all[low - 1].by_packets != by_packets)
		return NULL;
	return &starts->all[low - 1];
}

static int connect_messages(struct wf_tools_arrows *arrows,
			    const struct wf_tools_traced *from,
			    const struct wf_tools_traced *to)
{
	struct starts starts;
	int ret = collect(&starts, from, to);

	for (size_t i = 0; i < to->count && !ret; i++) {
		const struct wf_trace_event *e = &to->events[i];
		bool taken = e->type == WF_TRACE_TAKE;
		uint64_t count = taken ? e->len : 1;

		if ((!taken && e->type != WF_TRACE_CAME) ||
		    peer_of(to, e->channel) != from)
			continue;
		/* No poll takes more than a ring holds. */
		for (uint64_t j = 0; j < count && j < UINT16_MAX && !ret; j++) {
			const struct start *start =
				find(&starts, e->seq - (uint32_t)j, !taken,
				     e->ticks);
			const struct wf_tools_arrow arrow = {
				.from = from,
				.to = to,
				.from_event = start ? start->event : 0,
				.to_event = i,
			};

			if (start)
				ret = add(arrows, &arrow);
		}
	}
	free(starts.all);
	return ret;
}

/* A peer was woken: it wakes next. */
static int connect_wakes(struct wf_tools_arrows *arrows,
			 const struct wf_tools_traced *from)
{
	int ret = 0;

	for (size_t i = 0; i < from->count && !ret; i++) {
		const struct wf_trace_event *e = &from->events[i];
		const struct wf_tools_traced *to = NULL;
		size_t low = 0, high;

		if (e->type == WF_TRACE_RING)
			to = peer_of(from, e->channel);
		if (!to)
			continue;
		for (high = to->count; low < high;) {
			size_t middle = low + (high - low) / 2;

			if (to->events[middle].ticks < e->ticks)
				low = middle + 1;
			else
				high = middle;
		}
		while (low < to->count && to->events[low].type != WF_TRACE_WAKE)
			low++;
		if (low < to->count)
			ret = add(arrows, &(struct wf_tools_arrow){
						  .from = from,
						  .to = to,
						  .from_event = i,
						  .to_event = low,
						  .wakes = true,
					  });
	}
	return ret;
}

int wf_tools_arrows_find(struct wf_tools_arrows *arrows,
			 struct wf_tools_capture *capture)
{
	int ret = 0;

	*arrows = (struct wf_tools_arrows){ 0 };
	for (size_t i = 0; i < capture->count; i++)
		find_peers(capture, &capture->all[i]);
	for (size_t i = 0; i < capture->count && !ret; i++) {
		for (size_t j = 0; j < capture->count && !ret; j++)
			ret = connect_messages(arrows, &capture->all[i],
					       &capture->all[j]);
		if (!ret)
			ret = connect_wakes(arrows, &capture->all[i]);
	}
	if (ret)
		wf_tools_arrows_free(arrows);
	return ret;
}

void wf_tools_arrows_free(struct wf_tools_arrows *arrows)
{
	free(arrows->all);
	*arrows = (struct wf_tools_arrows){ 0 };
}
