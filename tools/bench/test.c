/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of tests. It must not know how anything is measured.
 */
#include "tools/bench/test.h"

#include <stddef.h>
#include <string.h>

#include "tools/near.h"

static const struct wf_tools_test_info infos[] = {
	[WF_TOOLS_LATENCY] = {
		.word = "latency",
		.title = "Latency, half a round trip",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "fabric",
		.messages = true,
	},
	[WF_TOOLS_BANDWIDTH] = {
		.word = "bandwidth",
		.title = "Bandwidth, one way",
		.unit = WF_TOOLS_UNIT_BANDWIDTH,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "fabric",
		.window = 64,
		.messages = true,
	},
	[WF_TOOLS_RATE] = {
		.word = "rate",
		.title = "Message rate, one way",
		.unit = WF_TOOLS_UNIT_RATE,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "fabric",
		.window = 256,
		.messages = true,
	},
	[WF_TOOLS_WRITE_LATENCY] = {
		.word = "write-latency",
		.group = "rma",
		.title = "RMA write, from the call to its completion",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "remote",
	},
	[WF_TOOLS_READ_LATENCY] = {
		.word = "read-latency",
		.group = "rma",
		.title = "RMA read, from the call to its completion",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "remote",
	},
	[WF_TOOLS_WRITE_BANDWIDTH] = {
		.word = "write-bandwidth",
		.group = "rma",
		.title = "RMA write bandwidth",
		.unit = WF_TOOLS_UNIT_BANDWIDTH,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "remote",
		.window = 64,
	},
	[WF_TOOLS_READ_BANDWIDTH] = {
		.word = "read-bandwidth",
		.group = "rma",
		.title = "RMA read bandwidth",
		.unit = WF_TOOLS_UNIT_BANDWIDTH,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "remote",
		.window = 64,
	},
	[WF_TOOLS_FETCH_ADD] = {
		.word = "fetch-add",
		.group = "atomics",
		.title = "Fetch and add of 64 bits, to its completion",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "remote",
	},
	[WF_TOOLS_COMPARE_SWAP] = {
		.word = "compare-swap",
		.group = "atomics",
		.title = "Compare and swap of 64 bits, to its completion",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "remote",
	},
	[WF_TOOLS_ADD_RATE] = {
		.word = "add-rate",
		.group = "atomics",
		.title = "Additions of 64 bits without fetching",
		.unit = WF_TOOLS_UNIT_RATE,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "remote",
		.window = 64,
	},
	[WF_TOOLS_IDLE] = {
		.word = "idle",
		.title = "One fi_cq_read that finds nothing",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_PEERS,
		.engine = "peers",
	},
	[WF_TOOLS_ENDPOINT_MEMORY] = {
		.word = "endpoint-memory",
		.group = "memory",
		.title = "Memory touched by an endpoint at rest (Pss)",
		.unit = WF_TOOLS_UNIT_MEMORY,
		.axis = WF_TOOLS_AXIS_PEERS,
		.engine = "peers",
		.fixed = 1,
		.own_value = true,
	},
	[WF_TOOLS_PAIR_MEMORY] = {
		.word = "pair-memory",
		.group = "memory",
		.title = "Memory touched by a pair after two messages each way (Pss)",
		.unit = WF_TOOLS_UNIT_MEMORY,
		.axis = WF_TOOLS_AXIS_PEERS,
		.engine = "peers",
		.fixed = 1,
		.own_value = true,
	},
	[WF_TOOLS_WAKE] = {
		.word = "wake-sread",
		.group = "wake",
		.title = "From a send to the return of fi_cq_sread",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "wake",
		.fixed = 40,
		.own_value = true,
	},
	[WF_TOOLS_WAKE_FD] = {
		.word = "wake-epoll",
		.group = "wake",
		.title = "From a send to the completion, with epoll",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "wake-fd",
		.fixed = 40,
		.own_value = true,
	},
	[WF_TOOLS_WAIT_CPU] = {
		.word = "wait-cpu",
		.group = "wake",
		.title = "CPU time used while waiting in fi_cq_sread",
		.unit = WF_TOOLS_UNIT_PERCENT,
		.axis = WF_TOOLS_AXIS_WORD,
		.engine = "wake",
		.fixed = 1,
		.own_value = true,
	},
	[WF_TOOLS_CROWD_TIME] = {
		.word = "crowd-time",
		.group = "crowd",
		.title = "Processes all to all, a message each: time of it all",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_PROCESSES,
	},
	[WF_TOOLS_CROWD_MEMORY] = {
		.word = "crowd-memory",
		.group = "crowd",
		.title = "Processes all to all: memory of them all together",
		.unit = WF_TOOLS_UNIT_MEMORY,
		.axis = WF_TOOLS_AXIS_PROCESSES,
	},
	[WF_TOOLS_ALLREDUCE] = {
		.word = "allreduce",
		.title = "MPI_Allreduce, two ranks, the time of one call",
		.unit = WF_TOOLS_UNIT_TIME,
		.axis = WF_TOOLS_AXIS_SIZE,
		.engine = "mpi",
		.collective = true,
	},
};

const struct wf_tools_test_info *wf_tools_test_get(enum wf_tools_test test)
{
	return &infos[test];
}

bool wf_tools_test_is(enum wf_tools_test test, const char *word)
{
	static const char *const brief[WF_TOOLS_TESTS] = {
		[WF_TOOLS_LATENCY] = "lat",
		[WF_TOOLS_BANDWIDTH] = "bw",
	};
	const struct wf_tools_test_info *info = &infos[test];

	return !strcmp(info->word, word) ||
	       (info->group && !strcmp(info->group, word)) ||
	       (brief[test] && !strcmp(brief[test], word));
}

const char *wf_tools_test_meant(const char *word)
{
	static const char *const more[] = { "mpi", "wd", "comp" };
	static const char *const alone[] = {
		"; `weft bench wd` has tests of its own",
		"; `weft bench comp` has tests of its own",
	};
	struct wf_tools_near near = { .word = word };

	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		if (!strcmp(word, more[1 + i]))
			return alone[i];
	}
	for (size_t i = 0; i < WF_TOOLS_TESTS; i++) {
		wf_tools_near_try(&near, infos[i].word);
		if (infos[i].group)
			wf_tools_near_try(&near, infos[i].group);
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		wf_tools_near_try(&near, more[i]);
	return wf_tools_near_text(&near);
}

const char *wf_tools_test_unit(enum wf_tools_test test)
{
	static const char *const units[] = {
		[WF_TOOLS_UNIT_TIME] = "ns",
		[WF_TOOLS_UNIT_BANDWIDTH] = "MB/s",
		[WF_TOOLS_UNIT_RATE] = "M/s",
		[WF_TOOLS_UNIT_PERCENT] = "%",
		[WF_TOOLS_UNIT_MEMORY] = "KiB",
	};

	return units[infos[test].unit];
}

const char *wf_tools_test_axis(enum wf_tools_test test)
{
	static const char *const names[] = {
		[WF_TOOLS_AXIS_SIZE] = "size",
		[WF_TOOLS_AXIS_WORD] = "size",
		[WF_TOOLS_AXIS_PEERS] = "peers",
		[WF_TOOLS_AXIS_PROCESSES] = "procs",
	};

	return names[infos[test].axis];
}
