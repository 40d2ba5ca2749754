/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines, the scheduler and virtual time. A task is a thread of a simulated
 * process. makecontext() creates it; _setjmp() and _longjmp() switch, because
 * swapcontext() makes a system call each time. The provider's statics are one
 * section of the program (process.ld), which is exchanged when the next task
 * belongs to another process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"
#include "real.h"
#include "sim.h"

#define STACK_BYTES (256u << 10)
#define EVENTS_MAX 65536
#define HANG_NS (60 * SIM_S)
#define LIVELOCK 20000000u

struct sim_world sim;

extern char sim_statics_begin[], sim_statics_end[];
static char *pristine;

/* -- events ----------------------------------------------------------------- */

static struct event {
	uint64_t time, order;
	void (*fn)(void *arg);
	void *arg;
} heap[EVENTS_MAX];
static unsigned int heap_count;
static uint64_t heap_order;

static bool before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

void sim_event_at(uint64_t time, void (*fn)(void *arg), void *arg)
{
	unsigned int at = heap_count++;
	const struct event e = { time, heap_order++, fn, arg };

	if (heap_count == EVENTS_MAX)
		sim_fail("too many events");
	while (at && before(&e, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = e;
}

uint64_t sim_event_next(void)
{
	return heap_count ? heap[0].time : SIM_NEVER;
}

static struct event pop(void)
{
	const struct event top = heap[0];
	const struct event last = heap[--heap_count];
	unsigned int at = 0;

	for (;;) {
		unsigned int child = at * 2 + 1;

		if (child >= heap_count)
			break;
		if (child + 1 < heap_count &&
		    before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return top;
}

void sim_event_run(void)
{
	while (heap_count && heap[0].time <= sim.now) {
		const struct event e = pop();

		e.fn(e.arg);
	}
}

/* -- switching -------------------------------------------------------------- */

static void load_statics(struct sim_proc *proc)
{
	size_t bytes = (size_t)(sim_statics_end - sim_statics_begin);

	if (proc == sim.loaded || !proc)
		return;
	if (sim.loaded && sim.loaded->statics)
		memcpy(sim.loaded->statics, sim_statics_begin, bytes);
	memcpy(sim_statics_begin, proc->statics, bytes);
	sim.loaded = proc;
}

static void begin(void)
{
	struct sim_task *task = sim.current;

	task->entry(task->arg);
	sim_task_exit();
}

static __attribute__((noinline)) void switch_to(struct sim_task *next)
{
	struct sim_task *from = sim.current;

	if (next == from)
		return;
	if (from && from->state != SIM_OVER) {
		from->saved_errno = errno;
		if (_setjmp(from->jump))
			return;
	}
	sim.current = next;
	load_statics(next->proc);
	errno = next->saved_errno;
	if (next->entry && !next->joined) {
		next->joined = true; /* from now on by longjmp */
		setcontext(&next->birth);
	}
	_longjmp(next->jump, 1);
}

/* -- choosing --------------------------------------------------------------- */

static bool is_runnable(const struct sim_task *task)
{
	if (task->state == SIM_FREE || task->state == SIM_OVER)
		return false;
	if (task->proc && task->proc->stopped_until > sim.now)
		return false;
	return task->wake_at <= sim.now ||
	       (task->state == SIM_BLOCKED && task->seen != sim.changes);
}

static uint64_t next_time(void)
{
	uint64_t next = sim_event_next();

	for (unsigned int i = 0; i < sim.task_count; i++) {
		const struct sim_task *task = &sim.task[i];
		uint64_t at = task->wake_at;

		if (task->state == SIM_FREE || task->state == SIM_OVER)
			continue;
		if (task->state == SIM_BLOCKED && task->seen != sim.changes)
			at = sim.now;
		if (task->proc && task->proc->stopped_until > at)
			at = task->proc->stopped_until;
		if (at < next)
			next = at;
	}
	return next;
}

static struct sim_task *choose(void)
{
	struct sim_task *ready[SIM_TASKS], *best = NULL;
	unsigned int count = 0;

	for (unsigned int i = 0; i < sim.task_count; i++) {
		struct sim_task *task = &sim.task[i];

		if (!is_runnable(task))
			continue;
		ready[count++] = task;
		if (!best || task->priority > best->priority)
			best = task;
	}
	if (!count)
		return NULL;
	if (sim.s.pct)
		return best;
	return ready[sim_rng_below(&sim.sched, count)];
}

static void let_time_pass(void)
{
	uint64_t next = next_time();

	if (next == SIM_NEVER)
		sim_fail("every process waits for ever");
	if (next > sim.now) {
		sim.now = next;
		sim.points_at_now = 0;
	}
	if (sim.now > sim.progress + HANG_NS)
		sim_fail("nothing was achieved for 60 s: a hang");
}

static void schedule(void)
{
	struct sim_task *next;

	for (;;) {
		sim_event_run();
		sim_race_drain_old();
		next = choose();
		if (next)
			break;
		let_time_pass();
	}
	/* It checks again whether its wait is over. */
	if (next->state == SIM_BLOCKED)
		next->state = SIM_READY;
	switch_to(next);
}

/* -- points ----------------------------------------------------------------- */

static void new_priority(struct sim_task *task)
{
	task->priority = (unsigned int)sim_rng_below(&sim.sched, 1u << 30);
}

static void maybe_die(void)
{
	struct sim_proc *proc = sim_proc_current();

	if (!proc || !proc->die_in || --proc->die_in)
		return;
	sim.fault_count[SIM_FAULT_KILL]++;
	sim_proc_kill(proc, "died at a point");
}

void sim_point(void)
{
	struct sim_task *task = sim.current;

	if (!task || sim.quiet || !task->proc)
		return;
	sim.steps++;
	sim.now += 4;
	if (++sim.points_at_now > LIVELOCK)
		sim_fail("a livelock: %u points and nothing achieved",
			 LIVELOCK);
	maybe_die();
	if (!sim_rng_one_in(&sim.sched, sim.s.switch_one_in))
		return;
	if (sim.s.pct)
		new_priority(task);
	schedule();
}

void sim_enter(const char *call)
{
	(void)call;
	if (!sim.current || sim.quiet || !sim.current->proc)
		return;
	sim_race_drain(sim.current);
	sim.now += 20 + sim_rng_below(&sim.cost, 1000);
	sim_point();
}

void sim_sleep_until(uint64_t until, const char *waits)
{
	struct sim_task *task = sim.current;

	if (sim.quiet)
		return;
	task->wake_at = until;
	task->waits = waits;
	task->seen = sim.changes;
	task->state = waits ? SIM_BLOCKED : SIM_READY;
	schedule();
	task->wake_at = 0;
	task->waits = NULL;
}

#define IDLE_LEAST SIM_US
#define IDLE_MOST (300 * SIM_US)
/* After this time without progress the processes wait for a time-out, and may
 * do so in longer steps. */
#define IDLE_LONG (50 * SIM_MS)
#define IDLE_LONG_MOST (10 * SIM_MS)

void sim_idle(void)
{
	struct sim_task *task = sim.current;
	bool is_long = sim.now > sim.progress + IDLE_LONG;
	uint64_t ns;

	if (task->idle < IDLE_LEAST)
		task->idle = IDLE_LEAST;
	ns = 1 + sim_rng_below(&sim.sched, task->idle);
	if (!is_long && task->idle > IDLE_MOST)
		task->idle = IDLE_MOST;
	if (task->idle < (is_long ? IDLE_LONG_MOST : IDLE_MOST))
		task->idle += task->idle / 4;
	sim_sleep_until(sim.now + ns, NULL);
}

void sim_busy(void)
{
	sim.current->idle = IDLE_LEAST;
	sim.progress = sim.now;
	sim.points_at_now = 0;
}

void sim_changed(void)
{
	sim.changes++;
}

/* -- tasks ------------------------------------------------------------------ */

static __attribute__((noinline)) void conceive(struct sim_task *task)
{
	getcontext(&task->birth);
	task->birth.uc_stack.ss_sp = task->stack;
	task->birth.uc_stack.ss_size = STACK_BYTES;
	task->birth.uc_link = NULL;
	makecontext(&task->birth, begin, 0);
}

struct sim_task *sim_task_start(struct sim_proc *proc, void *(*entry)(void *),
				void *arg)
{
	struct sim_task *task = NULL;
	unsigned int i;

	for (i = 0; i < SIM_TASKS && !task; i++) {
		if (sim.task[i].state == SIM_FREE ||
		    (sim.task[i].state == SIM_OVER &&
		     &sim.task[i] != sim.current))
			task = &sim.task[i];
	}
	if (!task)
		sim_fail("too many tasks");
	if (i > sim.task_count)
		sim.task_count = i;
	if (!task->stack)
		task->stack =
			real_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	conceive(task);
	task->proc = proc;
	task->number = (unsigned int)(task - sim.task);
	task->births++;
	task->entry = entry;
	task->arg = arg;
	task->joined = false;
	task->wake_at = sim.now;
	task->state = SIM_READY;
	task->store_count = 0;
	task->saved_errno = 0;
	task->idle = 0;
	task->waits = NULL;
	new_priority(task);
	if (proc)
		proc->tasks++;
	return task;
}

void sim_task_exit(void)
{
	struct sim_task *task = sim.current;

	sim_race_drain(task);
	if (task->proc)
		task->proc->tasks--;
	task->state = SIM_OVER;
	sim_changed();
	schedule();
	abort();
}

static void (*director_fn)(void);
static jmp_buf home;

static void *direct(void *arg)
{
	(void)arg;
	director_fn();
	sim.quiet = true;
	_longjmp(home, 1);
	return NULL;
}

void sim_task_run(void (*director)(void))
{
	director_fn = director;
	sim_task_start(NULL, direct, NULL);
	if (!_setjmp(home))
		switch_to(&sim.task[0]);
	sim.current = NULL;
}

/* -- processes -------------------------------------------------------------- */

struct sim_proc *sim_proc_current(void)
{
	return sim.current ? sim.current->proc : NULL;
}

static void keep_pristine(void)
{
	size_t bytes = (size_t)(sim_statics_end - sim_statics_begin);

	pristine = real_malloc(bytes + 1);
	memcpy(pristine, sim_statics_begin, bytes);
}

static int new_pid(struct sim_node *node)
{
	int pid = node->free_pid;

	node->free_pid = 0;
	if (pid && (sim.s.faults & 1u << SIM_FAULT_PID) &&
	    sim_rng_one_in(&sim.fault[SIM_FAULT_PID], 2)) {
		sim_trace("pid %d is used again", pid);
		sim.fault_count[SIM_FAULT_PID]++;
		return pid;
	}
	return node->next_pid++;
}

void sim_proc_start(struct sim_proc *proc, void *(*entry)(void *), void *arg)
{
	size_t bytes = (size_t)(sim_statics_end - sim_statics_begin);

	if (!pristine)
		keep_pristine();
	if (!proc->statics)
		proc->statics = real_malloc(bytes + 1);
	memcpy(proc->statics, pristine, bytes);
	if (sim.loaded == proc)
		sim.loaded = NULL;
	proc->life++;
	/* The application of the previous incarnation has finished. */
	proc->app = NULL;
	proc->pid = new_pid(proc->node);
	proc->alive = true;
	proc->die_in = 0;
	proc->stopped_until = 0;
	proc->tasks = 0;
	proc->calm = false;
	sim_trace("process %u starts life %u on node %u, pid %d", proc->number,
		  proc->life, proc->node->number, proc->pid);
	sim_task_start(proc, entry, arg);
}

static void end(struct sim_proc *proc)
{
	proc->alive = false;
	proc->died_at = sim.now;
	proc->die_in = 0;
	for (unsigned int i = 0; i < sim.task_count; i++) {
		struct sim_task *task = &sim.task[i];

		if (task->proc != proc || task->state == SIM_OVER ||
		    task->state == SIM_FREE)
			continue;
		sim_race_drain(task);
		task->state = SIM_OVER;
	}
	proc->tasks = 0;
	sim_file_close_all(proc);
	sim_memory_end(proc);
	proc->node->free_pid = proc->pid;
	sim_changed();
	if (sim.loaded == proc)
		sim.loaded = NULL;
}

void sim_proc_kill(struct sim_proc *proc, const char *why)
{
	if (!proc->alive)
		return;
	sim_trace("process %u life %u is killed: %s", proc->number, proc->life,
		  why);
	end(proc);
	if (sim_proc_current() == proc)
		schedule();
}

void sim_proc_exit(struct sim_proc *proc)
{
	sim_trace("process %u life %u exits", proc->number, proc->life);
	end(proc);
	if (sim_proc_current() == proc)
		schedule();
}

struct sim_proc *sim_proc_find(const struct sim_node *node, int pid)
{
	for (unsigned int i = 0; i < SIM_PROCS; i++) {
		struct sim_proc *proc = &sim.proc[i];

		if (proc->alive && proc->node == node && proc->pid == pid)
			return proc;
	}
	return NULL;
}
