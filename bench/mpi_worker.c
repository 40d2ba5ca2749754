/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of two measured MPI ranks: blocking ping-pong, windows of nonblocking
 * sends with an acknowledgement, or sums over both ranks. It does not use libfabric: mpirun chooses the
 * transport that carries the messages. `weft bench` sends commands to both
 * ranks through pipes, so that several pairs can sleep until their turn.
 * Between hosts rank 0 reads commands from mpirun's input and passes them to
 * rank 1. Without commands it prints a table of its own.
 */
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 1, ORDER_TAG = 2, ACK_BYTES = 8, MAX_WINDOW = 65536, LINE = 128 };

/* Interval at which rank 1 on another host looks for commands: pairs that are
 * measured meanwhile use the same processor. */
#define NAP_NS 10000000

/* One line of commands: kind, then numbers. */
struct order {
	char kind[16]; /* "latency", "stream" or "allreduce" */
	size_t size;
	unsigned long count;  /* messages each way, or of the stream */
	unsigned long warm;   /* the same before the clock starts */
	unsigned long window; /* of a stream */
};

struct rank {
	int me;
	int peer;
	FILE *orders; /* NULL: rank 0 sends them */
	FILE *results;
	bool relays; /* commands, to a rank 1 that has no pipe */
	char *out;
	char *in;
	size_t room; /* bytes of each */
	MPI_Request *requests;
};

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return 1e9 * (double)ts.tv_sec + (double)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "weft-bench-mpi: %s: %s\n", what, strerror(errno));
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Touched completely: a page fault is not part of a transport. */
static char *buffer(size_t size)
{
	char *p = aligned_alloc(4096, size);

	if (!p)
		die("no memory");
	memset(p, 1, size);
	return p;
}

static void make_room(struct rank *r, size_t size)
{
	size = (size + ACK_BYTES + 4095) / 4096 * 4096;
	if (size <= r->room)
		return;
	free(r->out);
	free(r->in);
	r->out = buffer(size);
	r->in = buffer(size);
	r->room = size;
}

static void ping(struct rank *r, int size)
{
	MPI_Send(r->out, size, MPI_CHAR, r->peer, TAG, MPI_COMM_WORLD);
	MPI_Recv(r->in, size, MPI_CHAR, r->peer, TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void pong(struct rank *r, int size)
{
	MPI_Recv(r->in, size, MPI_CHAR, r->peer, TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Send(r->out, size, MPI_CHAR, r->peer, TAG, MPI_COMM_WORLD);
}

static double play_latency(struct rank *r, const struct order *o)
{
	unsigned long i;
	double start = 0;

	for (i = 0; i < o->warm + o->count; i++) {
		if (i == o->warm)
			start = now_ns();
		if (r->me)
			pong(r, (int)o->size);
		else
			ping(r, (int)o->size);
	}
	return (now_ns() - start) / (double)o->count / 2;
}

static void play_window(struct rank *r, const struct order *o, unsigned long n)
{
	unsigned long i;

	for (i = 0; i < n; i++) {
		if (r->me)
			MPI_Irecv(r->in, (int)o->size, MPI_CHAR, r->peer, TAG,
				  MPI_COMM_WORLD, &r->requests[i]);
		else
			MPI_Isend(r->out, (int)o->size, MPI_CHAR, r->peer, TAG,
				  MPI_COMM_WORLD, &r->requests[i]);
	}
	MPI_Waitall((int)n, r->requests, MPI_STATUSES_IGNORE);
	if (r->me)
		MPI_Send(r->out, ACK_BYTES, MPI_CHAR, r->peer, TAG,
			 MPI_COMM_WORLD);
	else
		MPI_Recv(r->in, ACK_BYTES, MPI_CHAR, r->peer, TAG,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Whole windows only, so that both ranks have the same count. */
static double play_stream(struct rank *r, const struct order *o)
{
	unsigned long warm = (o->warm + o->window - 1) / o->window;
	unsigned long count = (o->count + o->window - 1) / o->window;
	unsigned long i;
	double start = 0;

	for (i = 0; i < warm + count; i++) {
		if (i == warm)
			start = now_ns();
		play_window(r, o, o->window);
	}
	return (now_ns() - start) / (double)(count * o->window);
}

/* Sums of doubles; a size that is no multiple of one is summed byte by byte. */
static double play_allreduce(struct rank *r, const struct order *o)
{
	bool doubles = o->size % sizeof(double) == 0;
	MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_UNSIGNED_CHAR;
	int n = (int)(doubles ? o->size / sizeof(double) : o->size);
	unsigned long i;
	double start = 0;

	for (i = 0; i < o->warm + o->count; i++) {
		if (i == o->warm)
			start = now_ns();
		MPI_Allreduce(r->out, r->in, n, type, MPI_SUM, MPI_COMM_WORLD);
	}
	return (now_ns() - start) / (double)o->count;
}

static double play(struct rank *r, const struct order *o)
{
	make_room(r, o->size);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strcmp(o->kind, "latency"))
		return play_latency(r, o);
	if (!strcmp(o->kind, "allreduce"))
		return play_allreduce(r, o);
	return play_stream(r, o);
}

static FILE *open_pipe(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		die(path);
	return f;
}

/* Waits without polling for a line of rank 0. */
static void hear_order(struct rank *r, char line[LINE])
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	int there = 0;

	for (;;) {
		MPI_Iprobe(r->peer, ORDER_TAG, MPI_COMM_WORLD, &there,
			   MPI_STATUS_IGNORE);
		if (there)
			break;
		nanosleep(&nap, NULL);
	}
	MPI_Recv(line, LINE, MPI_CHAR, r->peer, ORDER_TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* Sleeps between two commands; false at their end. */
static bool next_order(struct rank *r, char line[LINE])
{
	memset(line, 0, LINE);
	if (!r->orders)
		hear_order(r, line);
	else if (!fgets(line, LINE, r->orders))
		line[0] = '\0';
	if (r->relays)
		MPI_Send(line, LINE, MPI_CHAR, r->peer, ORDER_TAG,
			 MPI_COMM_WORLD);
	return line[0];
}

static void obey(struct rank *r)
{
	FILE *out = r->results;
	struct order o;
	char line[LINE];
	int mine, pids[2];
	double ns;

	mine = (int)getpid();
	MPI_Gather(&mine, 1, MPI_INT, pids, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (out) {
		fprintf(out, "ready %d %d\n", pids[0], pids[1]);
		fflush(out);
	}
	while (next_order(r, line)) {
		if (sscanf(line, "%15s %zu %lu %lu %lu", o.kind, &o.size,
			   &o.count, &o.warm, &o.window) != 5 ||
		    !o.count || !o.window || o.window > MAX_WINDOW) {
			errno = EINVAL;
			die(line);
		}
		ns = play(r, &o);
		if (out) {
			fprintf(out, "result %.3f\n", ns);
			fflush(out);
		}
	}
	if (out)
		fclose(out);
	if (r->orders)
		fclose(r->orders);
}

/* Commands come by pipes of `weft bench`, whose names are arguments, or between
 * hosts. */
static void open_orders(struct rank *r, int argc, char **argv)
{
	if (argc == 5) {
		r->orders = open_pipe(argv[2 + r->me], "re");
		r->results = r->me ? NULL : open_pipe(argv[4], "we");
	} else if (!r->me) {
		r->orders = stdin;
		r->results = stdout;
		r->relays = true;
	}
}

static void show_table(struct rank *r)
{
	struct order o = { .kind = "latency", .window = 1 };
	double ns;

	for (o.size = 8; o.size <= 1 << 20; o.size *= 2) {
		o.count = 1000;
		o.warm = 100;
		ns = play(r, &o);
		MPI_Bcast(&ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		o.count = (unsigned long)(5e7 / ns) + 10;
		ns = play(r, &o);
		if (!r->me)
			printf("%8zu B %10.3f us\n", o.size, ns / 1e3);
	}
}

/* Before MPI_Init, so that the threads it starts stay on the CPU as well. */
static void pin(const char *cpus)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	cpu_set_t set;
	int cpu[2];

	if (!rank || sscanf(cpus, "%d,%d", &cpu[0], &cpu[1]) != 2) {
		fputs("weft-bench-mpi: no rank, or wrong CPUs\n", stderr);
		exit(2);
	}
	CPU_ZERO(&set);
	CPU_SET(cpu[atoi(rank) & 1], &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("weft-bench-mpi: sched_setaffinity");
		exit(2);
	}
}

/* Arguments: none; CPUS ORDERS-OF-0 ORDERS-OF-1 RESULTS; or CPUS, with orders on
 * standard input. */
int main(int argc, char **argv)
{
	struct rank r = { 0 };
	int size;

	if (argc != 1 && argc != 2 && argc != 5) {
		fputs("usage: mpirun -np 2 weft-bench-mpi\n", stderr);
		return 2;
	}
	if (argc > 1)
		pin(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.me);
	r.peer = !r.me;
	r.requests = calloc(MAX_WINDOW, sizeof(MPI_Request));
	errno = EINVAL;
	if (size != 2 || !r.requests)
		die("two ranks are needed");
	if (argc > 1) {
		open_orders(&r, argc, argv);
		obey(&r);
	} else {
		show_table(&r);
	}
	free(r.requests);
	free(r.out);
	free(r.in);
	MPI_Finalize();
	return 0;
}
