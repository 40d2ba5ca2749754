/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws a scenario from a seed. Each run has a few kinds of faults, not all at
 * once: if everything fails, no operation gets far enough to go wrong.
 */
#include <string.h>

#include "sim.h"

const char *const sim_fault_names[SIM_FAULTS] = {
	[SIM_FAULT_MEMORY] = "memory",
	[SIM_FAULT_DESCRIPTORS] = "fds",
	[SIM_FAULT_REFS] = "refs",
	[SIM_FAULT_BUSY] = "busy",
	[SIM_FAULT_COPY] = "copy",
	[SIM_FAULT_KILL] = "kill",
	[SIM_FAULT_STOP] = "stop",
	[SIM_FAULT_COMPUTE] = "compute",
	[SIM_FAULT_PID] = "pid",
	[SIM_FAULT_LOSS] = "loss",
	[SIM_FAULT_PARTITION] = "partition",
	[SIM_FAULT_FULL] = "full",
	[SIM_FAULT_ICMP] = "icmp",
};

const char *const sim_work_names[SIM_WORKS] = {
	[SIM_WORK_ALL_TO_ALL] = "all-to-all",
	[SIM_WORK_MANY_TO_ONE] = "many-to-one",
	[SIM_WORK_REQUEST] = "request",
	[SIM_WORK_REMOTE] = "remote",
	[SIM_WORK_CONNECT] = "connect",
	[SIM_WORK_MIX] = "mix",
	[SIM_WORK_RESTART] = "restart",
	[SIM_WORK_CHURN] = "churn",
};

struct wf_sim_knobs wf_sim_knobs;
static struct sim_rng rng;

static unsigned int pick(const unsigned int *values, unsigned int count)
{
	return values[sim_rng_below(&rng, count)];
}

#define PICK(...)                                                              \
	pick((const unsigned int[]){ __VA_ARGS__ },                            \
	     sizeof((const unsigned int[]){ __VA_ARGS__ }) /                   \
		     sizeof(unsigned int))

static void draw_faults(struct sim_scenario *s)
{
	unsigned int kinds = PICK(0, 0, 1, 1, 2, 3, 5);

	while (kinds--)
		s->faults |= 1u << sim_rng_below(&rng, SIM_FAULTS);
	if (s->faults & 1u << SIM_FAULT_PID)
		s->faults |= 1u << SIM_FAULT_KILL;
	if (PICK(0, 1))
		s->faults |= 1u << SIM_FAULT_COMPUTE;
	s->fault_one_in = PICK(20, 100, 1000);
	s->kills = s->faults & 1u << SIM_FAULT_KILL ? PICK(1, 2, 5) : 0;
	s->heal_at = PICK(1, 5, 20, 100) * SIM_MS;
	if (s->work != SIM_WORK_RESTART)
		return;
	/* No other faults: only a death may then explain a failure. */
	if (PICK(0, 1))
		s->faults &= 1u << SIM_FAULT_COMPUTE;
	s->faults |= 1u << SIM_FAULT_KILL | 1u << SIM_FAULT_PID;
	s->kills = PICK(3, 8, 20);
	s->heal_at = PICK(5, 20, 100) * SIM_MS;
}

static void draw_knobs(struct sim_scenario *s)
{
	s->cma = PICK(1, 1, 1, 0);
	s->eager_max = PICK(16384, 4096, 0);
	s->cma_min = PICK(8193, 4097, 65536);
	s->coop_min = PICK(65536, 16384, 4096);
	s->tx_size = PICK(1024, 16, 64);
	s->rx_size = PICK(1024, 16);
	s->medium_max = PICK(16384, 2000);
	s->read_min = PICK(16385, 4096, 1000000000);
	s->runt_size = PICK(0, 0, 30000);
	s->mtu = PICK(0, 0, 1500);
	s->net_thread = PICK(0, 0, 0, 1);
	s->inject_size = PICK(4096, 64);
	s->shm = PICK(1, 1, 1, 1, 0);
	s->no_membarrier = !PICK(0, 1, 1, 1);
	s->knobs.compq_high_min = PICK(16384, 16, 64);
	s->knobs.watched_max = PICK(8, 1, 2);
	s->knobs.quiet_turns = PICK(256, 4, 32);
	s->knobs.idle_turns = PICK(4096, 8, 64);
	s->knobs.slots_log2 = PICK(8, 4, 5);
	s->knobs.lines_log2 = PICK(10, 8);
	s->knobs.max_peers = PICK(4096, 4096, 32);
	s->knobs.burst_min = PICK(8, 0, 2);
	s->knobs.burst_us = PICK(50, 2000);
	s->injects = PICK(0, 0, 1);
}

/* More addresses than a device has entries for peers: this tests packets
 * only. */
static void draw_churn(struct sim_scenario *s)
{
	s->knobs.max_peers = 32;
	s->shm = PICK(0, 0, 1);
	s->procs = PICK(4, 6, 8);
	s->churns = 48 / (s->procs - 1);
	s->messages = PICK(1, 4);
	s->blocked = false;
	s->srx = false;
	s->kills = 0;
	s->faults &= ~(1u << SIM_FAULT_KILL | 1u << SIM_FAULT_PID);
	if (s->largest > 9000)
		s->largest = 9000;
}

/* Processes compute, and there are no other faults: then messages must not be
 * late, either (see is_prompt() in app.c). */
static void draw_calm(struct sim_scenario *s)
{
	/* Under automatic progress, threads serve shared memory, too. */
	s->shm = s->progress;
	s->srx = false;
	s->fds_max = 0;
	s->narrow = 0;
	s->blocked = false;
	s->kills = 0;
	s->faults = 1u << SIM_FAULT_COMPUTE;
	s->messages = PICK(4, 20);
	s->largest = PICK(64, 3000);
}

/* From a stream of its own, so that the rest of a seed's scenario stays the
 * same. */
static bool draw_progress(uint64_t seed)
{
	struct sim_rng own;

	sim_rng_seed(&own, seed, "automatic progress");
	return sim_rng_one_in(&own, 5);
}

void sim_scenario_draw(struct sim_scenario *s, uint64_t seed)
{
	*s = (struct sim_scenario){ .seed = seed };
	sim_rng_seed(&rng, seed, "scenario");
	s->work = (enum sim_workload)sim_rng_below(&rng, SIM_WORKS);
	s->nodes = PICK(1, 1, 1, 2);
	s->procs = PICK(2, 3, 4, 6, 10, 14);
	s->messages = PICK(4, 20, 60, 150);
	s->largest = PICK(64, 3000, 9000, 40000, 200000);
	s->cq_size = PICK(1, 16, 1024);
	s->tiny = PICK(0, 0, 1);
	s->pct = PICK(0, 1);
	s->switch_one_in = PICK(2, 5, 20, 100, 1000);
	s->drain_one_in = PICK(1, 2, 4, 32);
	s->fds_max = PICK(0, 0, 0, 40);
	s->threads = !PICK(0, 1, 1);
	s->sleeps = PICK(0, 1);
	s->multi_recv = PICK(0, 1);
	s->srx = PICK(0, 0, 0, 1);
	s->any = PICK(0, 0, 0, 1);
	s->tcp = PICK(0, 1);
	s->progress = draw_progress(seed);
	draw_knobs(s);
	draw_faults(s);
	if (s->nodes > 1) {
		s->narrow = PICK(0, 0, 0, 1300);
		s->blocked = !PICK(0, 1, 1, 1, 1, 1, 1, 1);
	}
	if (s->work == SIM_WORK_CHURN)
		draw_churn(s);
	else if (!PICK(0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
		draw_calm(s);
	if (s->srx) {
		/* It has two queues. The application may read the end of a
		 * multi-receive from one before it reads, from the other, a
		 * message that arrived in it. */
		s->sleeps = false;
		s->multi_recv = false;
		s->any = false;
	}
	if (s->blocked)
		s->faults |= 1u << SIM_FAULT_PARTITION;
	/* Each message waits for its time-out. */
	if (s->blocked && s->messages > 10)
		s->messages = 10;
	/* Too few descriptors are a fault, too. */
	if (s->fds_max)
		s->faults |= 1u << SIM_FAULT_DESCRIPTORS;
	/* Polling threads delay those of lower priority for long. */
	if (s->progress && s->pct && s->procs > 6)
		s->procs = 6;
	if (s->nodes > s->procs)
		s->nodes = s->procs;
	/* Large messages take real time. */
	if (s->largest > 9000 && s->messages > 60)
		s->messages = 60;
}

void sim_scenario_print(const struct sim_scenario *s, FILE *to)
{
	fprintf(to,
		"seed %llu: %s, %u nodes, %u processes, %u messages of up to "
		"%u bytes, cq %u%s, %s scheduler 1/%u, drain 1/%u%s%s%s%s%s",
		(unsigned long long)s->seed, sim_work_names[s->work], s->nodes,
		s->procs, s->messages, s->largest, s->cq_size,
		s->tiny ? " read one by one" : "",
		s->pct ? "priority" : "random", s->switch_one_in,
		s->drain_one_in, s->threads ? ", FI_THREAD_SAFE" : "",
		s->sleeps ? ", sleeps" : "", s->shm ? "" : ", no shm",
		s->cma ? "" : ", no cma",
		s->no_membarrier ? ", no membarrier" : "");
	fprintf(to, "%s%s%s%s%s%s%s", s->tcp ? ", tcp" : ", udp",
		s->progress ? ", automatic progress" : "",
		s->multi_recv ? ", multi-receives" : "",
		s->narrow ? ", narrow" : "", s->blocked ? ", blocked" : "",
		s->srx ? ", shared receives" : "",
		s->any ? ", any address" : "");
	fprintf(to, ", faults");
	for (int i = 0; i < SIM_FAULTS; i++) {
		if (!(s->faults & 1u << i))
			continue;
		fprintf(to, " %s", sim_fault_names[i]);
		if (sim.fault_count[i])
			fprintf(to, ":%llu",
				(unsigned long long)sim.fault_count[i]);
	}
	fprintf(to, " (1/%u, until %llu us)\n", s->fault_one_in,
		(unsigned long long)(s->heal_at / SIM_US));
}
