/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The simulated world: nodes, processes, their threads (tasks), virtual time and
 * the random streams of one scenario. Everything runs in one real thread, and
 * everything that may differ between two runs comes from the seed.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

#include "os/knob.h"

#define SIM_US 1000ull
#define SIM_MS 1000000ull
#define SIM_S 1000000000ull
#define SIM_NEVER UINT64_MAX

#define SIM_NODES 4
#define SIM_PROCS 24
#define SIM_TASKS 128
#define SIM_FDS 512
#define SIM_BUFFERED 16

/* -- random streams --------------------------------------------------------- */

/* One stream for each purpose: leaving out one kind of fault does not change
 * what the others draw. */
struct sim_rng {
	uint64_t state;
};

uint64_t sim_rng_next(struct sim_rng *rng);
uint64_t sim_rng_below(struct sim_rng *rng, uint64_t n);
/* True once in @n draws; 0: never, and nothing is drawn. */
bool sim_rng_one_in(struct sim_rng *rng, uint64_t n);
void sim_rng_seed(struct sim_rng *rng, uint64_t seed, const char *purpose);

/* -- faults ----------------------------------------------------------------- */

enum sim_fault {
	SIM_FAULT_MEMORY,      /* malloc() and mmap() fail */
	SIM_FAULT_DESCRIPTORS, /* EMFILE */
	SIM_FAULT_REFS,	       /* ETOOMANYREFS, ENOBUFS from Unix sockets */
	SIM_FAULT_BUSY,	       /* EAGAIN where the kernel has no room */
	SIM_FAULT_COPY,	       /* process_vm_*: EPERM, short */
	SIM_FAULT_KILL,	       /* death at any call or shared access */
	SIM_FAULT_STOP,	       /* SIGSTOP, SIGCONT */
	SIM_FAULT_COMPUTE,     /* an application makes no call for long */
	SIM_FAULT_PID,	       /* a pid is used again */
	SIM_FAULT_LOSS,	       /* packets: lost, duplicated, late, damaged */
	SIM_FAULT_PARTITION,   /* packets between two nodes vanish */
	SIM_FAULT_FULL,	       /* ENOBUFS, EAGAIN from UDP sockets */
	SIM_FAULT_ICMP,	       /* forged: "our packets were refused" */
	SIM_FAULTS
};

extern const char *const sim_fault_names[SIM_FAULTS];

/* -- what a scenario is ----------------------------------------------------- */

enum sim_workload {
	SIM_WORK_ALL_TO_ALL,
	SIM_WORK_MANY_TO_ONE,
	SIM_WORK_REQUEST,
	SIM_WORK_REMOTE, /* RMA and atomics */
	SIM_WORK_CONNECT,
	SIM_WORK_MIX,
	SIM_WORK_RESTART, /* all to all, with many deaths */
	SIM_WORK_CHURN,	  /* requests of clients that come, go and come again
			     with another address */
	SIM_WORKS
};

extern const char *const sim_work_names[SIM_WORKS];

struct sim_scenario {
	uint64_t seed;
	enum sim_workload work;
	unsigned int nodes;
	unsigned int procs;    /* in all */
	unsigned int messages; /* of each process */
	unsigned int largest;  /* bytes of a message */
	unsigned int cq_size;
	unsigned int kills; /* at most */
	unsigned int tiny;  /* read one completion at a time, then compute */
	bool pct;
	unsigned int switch_one_in;
	unsigned int drain_one_in; /* of store buffers */
	unsigned int fds_max;
	uint32_t faults; /* bits of enum sim_fault */
	unsigned int fault_one_in;
	uint64_t heal_at; /* no fault begins after this time */
	bool no_membarrier;
	bool threads; /* FI_THREAD_SAFE */
	bool sleeps;  /* processes wait in fi_cq_sread() */
	unsigned int shm;
	bool multi_recv;
	bool srx;	       /* two endpoints that share their receives */
	unsigned int tcp;      /* use the device tcp, otherwise UDP */
	unsigned int progress; /* automatic progress */
	bool any;	       /* bound to every address of the node */
	unsigned int churns;   /* restarts of each client */
	unsigned int narrow;   /* larger packets are lost */
	bool blocked;	       /* no packet arrives at another node */
	bool injects;	       /* most messages that can be are injected */
	/* Settings of the provider. */
	unsigned int cma, eager_max, cma_min, coop_min, tx_size, rx_size;
	unsigned int medium_max, read_min, runt_size, mtu, net_thread;
	unsigned int inject_size;
	struct wf_sim_knobs knobs;
};

void sim_scenario_draw(struct sim_scenario *s, uint64_t seed);
void sim_scenario_print(const struct sim_scenario *s, FILE *to);

/* -- tasks and processes ---------------------------------------------------- */

enum sim_state { SIM_FREE, SIM_READY, SIM_BLOCKED, SIM_OVER };

struct sim_store {
	uintptr_t addr;
	uint64_t value[2];
	uint64_t at;
	uint32_t size;
};

struct sim_proc;

struct sim_task {
	jmp_buf jump;
	ucontext_t birth;
	void *stack;
	struct sim_proc *proc; /* NULL: the director */
	enum sim_state state;
	uint64_t wake_at;
	uint64_t seen;	   /* value of world.changes when it blocked */
	const char *waits; /* the call in which it is blocked */
	unsigned int number;
	unsigned int births; /* tasks that used this entry */
	unsigned int priority;
	void *(*entry)(void *arg);
	void *arg;
	bool detached;
	bool joined;
	int saved_errno;
	uint64_t idle; /* how long it idles the next time */
	/* Stores to shared memory that other processors do not see yet. */
	struct sim_store stores[SIM_BUFFERED];
	unsigned int store_count;
};

struct sim_file;
struct sim_block;
struct sim_map;
struct sim_app;

struct sim_node {
	unsigned int number;
	int next_pid;
	int free_pid; /* of a dead process, to be used again; 0: none */
	uint16_t next_port;
};

struct sim_proc {
	unsigned int number; /* index; a new incarnation has the same */
	unsigned int life;
	struct sim_node *node;
	int pid;
	bool alive;
	uint64_t stopped_until;
	uint64_t die_in; /* calls and shared accesses; 0: does not */
	char *statics; /* the provider's statics, while another process runs */
	struct sim_file *fds[SIM_FDS];
	unsigned int fd_count;
	struct sim_block *blocks; /* malloc() */
	size_t block_bytes;
	unsigned int block_count;
	struct sim_map *maps;
	unsigned int tasks;
	bool calm;	     /* no faults: the application opens or closes */
	unsigned int unsafe; /* depth: inside the simulator, no task switch */
	struct sim_app *app;
	uint64_t died_at;
};

/* -- the world -------------------------------------------------------------- */

struct sim_world {
	struct sim_scenario s;
	uint64_t now;
	uint64_t steps;	   /* points passed */
	uint64_t changes;  /* counts events that may end a blocking call */
	uint64_t progress; /* when an application last made progress */
	uint64_t points_at_now;
	unsigned int buffered; /* tasks whose stores are not all seen */
	struct sim_node node[SIM_NODES];
	struct sim_proc proc[SIM_PROCS];
	struct sim_task task[SIM_TASKS];
	unsigned int task_count;
	struct sim_task *current;
	struct sim_proc *loaded; /* the process whose statics are in place */
	struct sim_rng sched, draw, cost, fault[SIM_FAULTS], random, app, net;
	uint64_t fault_count[SIM_FAULTS];
	bool healed;
	bool quiet; /* the end: no trace, no scheduling */
	uint64_t trace_hash;
	bool trace;
};

extern struct sim_world sim;

/* Whether a fault of this kind happens to the current process now. */
bool sim_fault(enum sim_fault fault);

/* A point where another task may continue, or this process may die. */
void sim_point(void);
/* A call of the kernel: takes time, drains the store buffer, is a point. Has no
 * effect while the simulator itself is at work. */
void sim_enter(const char *call);
/* Gives up the processor until @until. If @waits is given, a change of anything
 * that a call can wait for may wake the task earlier. */
void sim_sleep_until(uint64_t until, const char *waits);
/* The application found nothing to do. */
void sim_idle(void);
/* The application found something to do. */
void sim_busy(void);
/* Something happened that may end a blocking call. */
void sim_changed(void);

struct sim_task *sim_task_start(struct sim_proc *proc, void *(*entry)(void *),
				void *arg);
__attribute__((noreturn)) void sim_task_exit(void);
/* Runs until the director's function returns. */
void sim_task_run(void (*director)(void));

void sim_proc_start(struct sim_proc *proc, void *(*entry)(void *), void *arg);
/* Ends a process as SIGKILL does. Returns unless it is the current one. */
void sim_proc_kill(struct sim_proc *proc, const char *why);
/* The process ended by itself, with everything closed. */
void sim_proc_exit(struct sim_proc *proc);
struct sim_proc *sim_proc_current(void);
struct sim_proc *sim_proc_find(const struct sim_node *node, int pid);

/* -- events ----------------------------------------------------------------- */

void sim_event_at(uint64_t time, void (*fn)(void *arg), void *arg);
uint64_t sim_event_next(void);
void sim_event_run(void);

/* -- trace and failure ------------------------------------------------------ */

__attribute__((format(printf, 1, 2))) void sim_trace(const char *fmt, ...);
/* The same for details: printed only with --trace. */
__attribute__((format(printf, 1, 2))) void sim_note(const char *fmt, ...);
/* The scenario failed: prints the reason, the last events and which processes
 * wait. */
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *fmt,
							      ...);
void sim_trace_tail(FILE *to);

/* -- store buffers (race.c) ------------------------------------------------- */

void sim_race_drain(struct sim_task *task);
void sim_race_drain_old(void);
void sim_race_drain_all(void);

#endif
