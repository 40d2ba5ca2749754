/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs a second through a software device: 1, 4 and 16 client processes, each
 * with 1, 8 and 64 jobs in flight, all at once. A job is a copy within memory of
 * the client, each in a place of its own: reserved memory that nobody but the
 * device touches, reserved memory where the client writes each source and reads
 * each result, as programs do, and the same in ordinary memory. Clients poll, and
 * sleep when nothing comes for long. The device has as many workers as `weft
 * devd`, or WORKERS. Medians of ROUNDS; the two scenarios take turns; processors
 * that do something else, or are fewer than clients and workers, show in the
 * figures.
 *
 *   wd_jobs [WORKERS [MS [ROUNDS]]]
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "devd/devd.h"
#include "drv/device.h"
#include "weft/smm.h"

#define CLIENTS_MAX 16
#define FLIGHT_MAX 64
#define ROUNDS_MAX 101
#define POOL (2u << 20) /* places, or what ordinary memory goes through */
/* Polls that find nothing before a client sleeps. */
#define PATIENCE 5000

static const char *const names[] = { "jobs_sva-0", "jobs_share-0" };
static const unsigned int clients[] = { 1, 4, CLIENTS_MAX };
static const unsigned int flights[] = { 1, 8, FLIGHT_MAX };

static const struct load {
	uint32_t size;
	bool used; /* by the client, too */
	bool ordinary;
	const char *memory;
} loads[] = {
	{ 64, false, false, "reserved" },
	{ 4096, false, false, "reserved" },
	{ 4096, true, false, "in use" },
	{ 4096, true, true, "ordinary" },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* This struct holds what the processes share. */
struct board {
	atomic_uint ready, failed;
	_Atomic uint64_t start, end; /* by the clock */
	struct {
		_Alignas(128) uint64_t jobs;
		double seconds;
	} done[CLIENTS_MAX];
};

static struct board *board;
static struct wf_devd *serving;

static void on_end(int number)
{
	(void)number;
	wf_devd_stop(serving);
}

static int serve(const char *socket, unsigned int workers, int ready_fd)
{
	struct wf_devd_config config;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	wf_devd_config_init(&config);
	config.socket = socket;
	if (workers)
		config.workers = workers;
	wf_devd_config_add(&config, names[0], WD_IOMMU_SVA);
	wf_devd_config_add(&config, names[1], WD_IOMMU_SHARE_DOMAIN);
	if (wf_devd_open(&config, &serving))
		return 1;
	signal(SIGTERM, on_end);
	if (write(ready_fd, "r", 1) != 1)
		return 1;
	wf_devd_run(serving);
	wf_devd_close(serving);
	return 0;
}

/* Places of jobs that are not in flight. */
struct desk {
	const struct load *load;
	uint8_t *memory;
	uint8_t *free[FLIGHT_MAX];
	unsigned int n_free;
};

static int open_desk(struct desk *desk, struct wf_drv_device *device,
		     unsigned int flight)
{
	size_t place = 2 * (size_t)desk->load->size;

	desk->memory = desk->load->ordinary ?
			       malloc(place * flight) :
			       smm_alloc(device->ch.ss_va, place * flight);
	if (!desk->memory)
		return -1;
	memset(desk->memory, 0, place * flight);
	while (desk->n_free < flight) {
		desk->free[desk->n_free] = desk->memory + desk->n_free * place;
		desk->n_free++;
	}
	return 0;
}

static int send_one(struct desk *desk, struct wf_drv_device *device)
{
	uint32_t size = desk->load->size;
	uint8_t *place = desk->free[--desk->n_free];
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = place,
				  .dst = place + size,
				  .src_len = size,
				  .dst_len = size,
				  .cookie = place };

	if (desk->load->used)
		memset(place, place[0] + 1, size);
	return wf_drv_device_submit(device, &job, desk->n_free);
}

/* Whether the result is right. */
static bool take_one(struct desk *desk, const struct wf_drv_result *result)
{
	uint8_t *place = result->cookie;
	uint32_t size = desk->load->size;
	uint64_t sum = 0, word;

	desk->free[desk->n_free++] = place;
	for (uint32_t i = 0; desk->load->used && i < size; i += sizeof(word)) {
		memcpy(&word, place + size + i, sizeof(word));
		sum += word;
	}
	return !result->status &&
	       (!desk->load->used ||
		sum == size / sizeof(word) *
				(0x0101010101010101u * (uint64_t)place[0]));
}

/* Jobs until the end; -1 if one failed. */
static int64_t work(struct wf_drv_device *device, const struct load *load,
		    unsigned int flight)
{
	struct desk desk = { .load = load };
	struct wf_drv_result results[FLIGHT_MAX];
	unsigned int empty = 0;
	int64_t jobs = 0;
	bool over = false;

	if (open_desk(&desk, device, flight))
		return -1;
	while (!over || desk.n_free < flight) {
		while (!over && desk.n_free) {
			if (send_one(&desk, device))
				return -1;
		}
		int n = wf_drv_device_poll(device, results, FLIGHT_MAX);

		for (int i = 0; i < n; i++) {
			if (!take_one(&desk, &results[i]))
				return -1;
		}
		if (n < 0)
			return -1;
		empty = n ? 0 : empty + 1;
		if (empty > PATIENCE)
			wf_drv_device_wait(device, 100);
		else if (!n)
			wf_base_cpu_relax();
		jobs += n;
		over = wf_base_clock_ns() >= atomic_load(&board->end);
	}
	return jobs;
}

static int client(unsigned int at, const char *name, const struct load *load,
		  unsigned int flight)
{
	struct wf_drv_device device = { 0 };
	uint64_t start;
	int64_t jobs;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	strcpy(device.ch.dev_path, name);
	if (wf_drv_device_open(&device, POOL)) {
		atomic_fetch_add(&board->failed, 1);
		return 1;
	}
	atomic_fetch_add(&board->ready, 1);
	while (!(start = atomic_load(&board->start)))
		usleep(100);
	while (wf_base_clock_ns() < start)
		wf_base_cpu_relax();
	jobs = work(&device, load, flight);
	board->done[at].seconds = (double)(wf_base_clock_ns() - start) / 1e9;
	if (jobs < 0)
		atomic_fetch_add(&board->failed, 1);
	else
		board->done[at].jobs = (uint64_t)jobs;
	wf_drv_device_close(&device);
	return jobs < 0;
}

/* Jobs a second of all clients; below 0: one failed. */
static double measure(const char *name, const struct load *load, unsigned int n,
		      unsigned int flight, unsigned int ms)
{
	uint64_t start;
	double rate = 0;

	memset(board, 0, sizeof(*board));
	for (unsigned int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (!pid)
			_exit(client(i, name, load, flight));
	}
	while (atomic_load(&board->ready) + atomic_load(&board->failed) < n)
		usleep(1000);
	start = wf_base_clock_ns() + 5 * WF_NS_PER_MS;
	atomic_store(&board->end, start + ms * WF_NS_PER_MS);
	atomic_store(&board->start, start);
	for (unsigned int i = 0; i < n; i++)
		wait(NULL);
	if (atomic_load(&board->failed))
		return -1;
	for (unsigned int i = 0; i < n; i++)
		rate += (double)board->done[i].jobs / board->done[i].seconds;
	return rate;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Both scenarios, one after the other in each round: medians, and their ratio. */
static int print_row(const struct load *load, unsigned int n, unsigned int ms,
		     unsigned int rounds)
{
	double rates[2][COUNT(flights)][ROUNDS_MAX];

	for (size_t i = 0; i < 2 * COUNT(flights) * rounds; i++) {
		size_t name = i % 2, f = i / 2 % COUNT(flights);
		double rate = measure(names[name], load, n, flights[f], ms);

		if (rate < 0)
			return 1;
		rates[name][f][i / 2 / COUNT(flights)] = rate / 1e6;
	}
	printf("%4u bytes, %-8s %2u clients ", load->size, load->memory, n);
	for (size_t i = 0; i < 2 * COUNT(flights); i++) {
		double *of = rates[i / COUNT(flights)][i % COUNT(flights)];

		qsort(of, rounds, sizeof(of[0]), ascending);
		printf(" %7.2f", of[rounds / 2]);
	}
	for (size_t f = 0; f < COUNT(flights); f++)
		printf(" %6.2f",
		       rates[0][f][rounds / 2] / rates[1][f][rounds / 2]);
	putchar('\n');
	fflush(stdout);
	return 0;
}

static int print_rates(unsigned int ms, unsigned int rounds)
{
	printf("M jobs/s; in flight: %u, %u, %u %18s %23s %20s\n", flights[0],
	       flights[1], flights[2], "SVA", "Share Domain", "ratio");
	for (size_t i = 0; i < COUNT(loads) * COUNT(clients); i++) {
		if (print_row(&loads[i / COUNT(clients)],
			      clients[i % COUNT(clients)], ms, rounds)) {
			fputs("a job failed\n", stderr);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int workers = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	unsigned int ms = argc > 2 ? (unsigned int)atoi(argv[2]) : 200;
	unsigned int rounds = argc > 3 ? (unsigned int)atoi(argv[3]) : 5;
	char socket[64], ready;
	int fds[2], err;
	pid_t pid;

	if (!ms || !rounds || rounds > ROUNDS_MAX ||
	    workers > WF_DEVD_WORKERS_MAX) {
		fputs("usage: wd_jobs [WORKERS [MS [ROUNDS]]]\n", stderr);
		return 2;
	}
	snprintf(socket, sizeof(socket), "/tmp/wd-jobs-%d", (int)getpid());
	setenv("WEFT_DEVD", socket, 1);
	setenv("WEFT_SYSFS", "/nonexistent", 1);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || pipe(fds))
		return 1;
	pid = fork();
	if (!pid)
		_exit(serve(socket, workers, fds[1]));
	close(fds[1]);
	if (pid < 0 || read(fds[0], &ready, 1) != 1) {
		fputs("wd_jobs: the device does not start\n", stderr);
		return 1;
	}
	err = print_rates(ms, rounds);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	return err;
}
