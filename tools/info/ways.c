/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file finds which way messages of a size take, from the thresholds in
 * force. The sizes that no variable changes are those of a slot and of a record
 * (src/shm/ring_defs.h, src/shm/put.h), and those of which the ways are tried
 * (src/shm/pace.h); tests/tool_info holds them together.
 */
#include "tools/info/facts.h"

#include <stdlib.h>

#define INLINE_MAX 96
#define EAGER_MAX 4096
#define TRIED_MIN 1024
#define TRIED_MAX 20480

static uint64_t threshold(const struct wf_tools_facts *facts, const char *name,
			  uint64_t otherwise)
{
	const struct wf_tools_param *param = wf_tools_param_find(facts, name);

	return param && *param->value ? strtoull(param->value, NULL, 10) :
					otherwise;
}

static void add(struct wf_tools_facts *facts, const char *name,
		const char *about, uint64_t from, uint64_t to)
{
	/* A threshold may leave nothing for a way. */
	if (from > to)
		return;
	facts->ways[facts->n_ways++] = (struct wf_tools_way){
		.name = name,
		.about = about,
		.from = from,
		.to = to,
	};
}

static bool is_given(const struct wf_tools_facts *facts, const char *name)
{
	const struct wf_tools_param *param = wf_tools_param_find(facts, name);

	return param && param->counts;
}

static void add_tried(struct wf_tools_facts *facts, uint64_t from, uint64_t to,
		      bool cma)
{
	if (from <= to)
		facts->tried[facts->n_tried++] = (struct wf_tools_tried){
			.from = from,
			.to = to,
			.cma = cma,
		};
}

/* Above a record, a limit that the user has set is not tried; larger messages than
 * @eager_max wait for their receive, so the ring is no way for them. */
static void find_tried(struct wf_tools_facts *facts, uint64_t eager_max)
{
	add_tried(facts, TRIED_MIN, EAGER_MAX, false);
	if (!facts->cma_on || !is_given(facts, "CMA_MIN"))
		add_tried(facts, EAGER_MAX + 1,
			  eager_max < TRIED_MAX ? eager_max : TRIED_MAX,
			  facts->cma_on);
}

void wf_tools_ways_find(struct wf_tools_facts *facts)
{
	uint64_t cma_min = threshold(facts, "CMA_MIN", 8193);
	uint64_t coop_min = threshold(facts, "COOP_MIN", 65536);
	uint64_t eager_max = threshold(facts, "EAGER_MAX", 16384);
	uint64_t chunked = facts->cma_on ? cma_min - 1 : eager_max;

	if (chunked < EAGER_MAX)
		chunked = EAGER_MAX;
	if (coop_min <= chunked)
		coop_min = chunked + 1;
	facts->n_ways = 0;
	facts->n_tried = 0;
	facts->both_from = 0;
	if (facts->shm_off)
		return;
	find_tried(facts, eager_max);
	add(facts, "inline", "in its slot of the ring", 0, INLINE_MAX);
	add(facts, "eager", "one record in the ring", INLINE_MAX + 1,
	    EAGER_MAX);
	add(facts, "chunked", "several records, copied in and out at once",
	    EAGER_MAX + 1, chunked);
	if (!facts->cma_on) {
		add(facts, "stream",
		    "waits for its receive, then goes by the ring", chunked + 1,
		    UINT64_MAX);
		return;
	}
	add(facts, "cma", "waits for its receive, which copies it once",
	    chunked + 1, coop_min - 1);
	add(facts, "shared", "the same, copied by both sides at once", coop_min,
	    UINT64_MAX);
	facts->both_from = coop_min;
	facts->both_measured =
		facts->cma.call_ns && !is_given(facts, "COOP_MIN");
}
