/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs one scenario: starts the processes, kills, stops and restarts them, cuts
 * links, ends all faults, waits until everything has arrived that must arrive,
 * and checks what is left.
 */
#include "director.h"

#include <errno.h>
#include <string.h>

#include "app.h"
#include "fidelity.h"
#include "net.h"
#include "oracle.h"
#include "sim.h"

static unsigned int kills_left;

bool sim_fault(enum sim_fault fault)
{
	struct sim_proc *proc = sim_proc_current();

	if (!proc || sim.quiet || sim.healed || proc->calm ||
	    !(sim.s.faults & 1u << fault) ||
	    !sim_rng_one_in(&sim.fault[fault], sim.s.fault_one_in))
		return false;
	sim.fault_count[fault]++;
	sim_note("fault: %s", sim_fault_names[fault]);
	return true;
}

static struct sim_proc *draw_proc(void)
{
	return &sim.proc[sim_rng_below(&sim.draw, sim.s.procs)];
}

static void maybe_kill(void)
{
	struct sim_proc *proc = draw_proc();

	if (!kills_left || !proc->alive || proc->die_in ||
	    sim_rng_below(&sim.draw, 2))
		return;
	kills_left--;
	proc->die_in = 1 + sim_rng_below(&sim.draw,
					 1ull << sim_rng_below(&sim.draw, 10));
}

static void maybe_stop(void)
{
	struct sim_proc *proc = draw_proc();

	if (!(sim.s.faults & 1u << SIM_FAULT_STOP) || !proc->alive ||
	    sim_rng_below(&sim.draw, 4))
		return;
	proc->stopped_until = sim.now + sim_rng_below(&sim.draw, 20 * SIM_MS);
	sim.fault_count[SIM_FAULT_STOP]++;
	sim_trace("process %u stops until %llu us", proc->number,
		  (unsigned long long)(proc->stopped_until / SIM_US));
}

static void maybe_cut(void)
{
	unsigned int a, b;

	if (!(sim.s.faults & 1u << SIM_FAULT_PARTITION) || sim.s.nodes < 2 ||
	    sim_rng_below(&sim.draw, 4))
		return;
	a = (unsigned int)sim_rng_below(&sim.draw, sim.s.nodes);
	b = (a + 1) % sim.s.nodes;
	sim_net_cut(a, b, sim.now + sim_rng_below(&sim.draw, 50 * SIM_MS));
	sim.fault_count[SIM_FAULT_PARTITION]++;
	sim_trace("node %u does not reach node %u", a, b);
}

static void restart_dead(bool all)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		struct sim_proc *proc = &sim.proc[i];

		if (!proc->alive && (all || !sim_rng_below(&sim.draw, 4)))
			sim_proc_start(proc, app_main, proc);
	}
}

static void make_trouble(void)
{
	uint64_t step = (sim.s.heal_at - sim.now) / 16;

	while (sim.now < sim.s.heal_at) {
		sim_sleep_until(sim.now + 1 + sim_rng_below(&sim.draw, step),
				NULL);
		maybe_kill();
		maybe_stop();
		maybe_cut();
		restart_dead(false);
	}
	for (unsigned int i = 0; i < sim.s.procs; i++)
		sim.proc[i].die_in = 0;
	sim.healed = true;
	sim_trace("no more faults from here on");
	restart_dead(true);
}

static bool all_sent(void)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		const struct sim_app *app = sim.proc[i].app;

		if (!app || app->phase == APP_WORKS ||
		    (i && sim.proc[i].life < sim.s.churns))
			return false;
	}
	return true;
}

static bool all_gone(void)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		if (sim.proc[i].alive)
			return false;
	}
	return true;
}

static void direct(void)
{
	for (unsigned int i = 0; i < sim.s.procs; i++) {
		struct sim_proc *proc = &sim.proc[i];

		proc->number = i;
		proc->node = &sim.node[i % sim.s.nodes];
		sim_proc_start(proc, app_main, proc);
	}
	make_trouble();
	while (!all_sent() || !oracle_all_received()) {
		sim_sleep_until(sim.now + SIM_MS, NULL);
		if (sim.s.churns)
			restart_dead(true);
	}
	/* Some errors show later: messages that arrive twice. */
	sim_sleep_until(sim.now + 20 * SIM_MS, NULL);
	oracle_check_end();
	app_remote_check_end();
	sim_trace("everything has come: close");
	app_all_done = true;
	while (!all_gone())
		sim_sleep_until(sim.now + SIM_MS, NULL);
}

void fidelity_differs(const char *what, int line)
{
	sim_fail("fidelity.c:%d: not so in the simulator: %s (%d)", line, what,
		 errno);
}

static bool fidelity_over;

static void *assert_all(void *arg)
{
	fidelity_run("10.0.0.1");
	fidelity_over = true;
	sim_proc_exit(arg);
	return NULL;
}

static void direct_fidelity(void)
{
	sim.proc[0].node = &sim.node[0];
	sim_proc_start(&sim.proc[0], assert_all, &sim.proc[0]);
	while (!fidelity_over)
		sim_sleep_until(sim.now + SIM_MS, NULL);
}

static void begin(const struct sim_scenario *s, bool trace)
{
	memset(&sim, 0, sizeof(sim));
	sim.s = *s;
	/* If a fault is left out (--only), its count is 0, too. */
	if (!(s->faults & 1u << SIM_FAULT_KILL))
		sim.s.kills = 0;
	if (!(s->faults & 1u << SIM_FAULT_DESCRIPTORS))
		sim.s.fds_max = 0;
	sim.trace = trace;
	sim.now = SIM_S;
	sim.progress = sim.now;
	sim.s.heal_at += sim.now;
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		sim.node[i].number = i;
		sim.node[i].next_pid = 100;
	}
}

void director_fidelity(void)
{
	const struct sim_scenario s = { .nodes = 1, .procs = 1 };

	begin(&s, false);
	sim.healed = true;
	sim_task_run(direct_fidelity);
}

void director_run(const struct sim_scenario *s, bool trace)
{
	begin(s, trace);
	sim_rng_seed(&sim.sched, s->seed, "scheduler");
	sim_rng_seed(&sim.draw, s->seed, "director");
	sim_rng_seed(&sim.cost, s->seed, "cost");
	sim_rng_seed(&sim.random, s->seed, "getrandom");
	sim_rng_seed(&sim.net, s->seed, "network");
	for (int i = 0; i < SIM_FAULTS; i++)
		sim_rng_seed(&sim.fault[i], s->seed, sim_fault_names[i]);
	kills_left = sim.s.kills;
	wf_sim_knobs = s->knobs;
	sim_task_run(direct);
}
