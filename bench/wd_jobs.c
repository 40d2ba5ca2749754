/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs a second through a software device: 1, 4 and 16 client processes, each
 * with 1, 8 and 64 jobs in flight, all at once. A job is a copy within memory of
 * the client. Clients poll, and sleep when nothing comes for long. The device has
 * as many workers as `weft devd`, or WORKERS. Medians of ROUNDS; processors that
 * do something else, or are fewer than clients and workers, show in the figures.
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
#define POOL (1u << 20)
/* Polls that find nothing before a client sleeps. */
#define PATIENCE 5000

static const char *const names[] = { "jobs_sva-0", "jobs_share-0" };
static const unsigned int clients[] = { 1, 4, CLIENTS_MAX };
static const unsigned int flights[] = { 1, 8, FLIGHT_MAX };
static const uint32_t sizes[] = { 64, 4096 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the processes share. */
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

/* Jobs until the end; -1 if one failed. */
static int64_t work(struct wf_drv_device *device, uint32_t size,
		    unsigned int flight)
{
	uint8_t *memory = smm_alloc(device->ch.ss_va, 2 * size);
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = memory,
				  .dst = memory + size,
				  .src_len = size,
				  .dst_len = size };
	struct wf_drv_result results[FLIGHT_MAX];
	unsigned int sent = 0, empty = 0;
	int64_t jobs = 0;
	bool over = false;

	while (!over || sent) {
		while (!over && sent < flight) {
			if (wf_drv_device_submit(device, &job, ++sent < flight))
				return -1;
		}
		int n = wf_drv_device_poll(device, results, FLIGHT_MAX);

		for (int i = 0; i < n; i++) {
			if (results[i].status)
				return -1;
		}
		if (n < 0)
			return -1;
		empty = n ? 0 : empty + 1;
		if (empty > PATIENCE)
			wf_drv_device_wait(device, 100);
		else if (!n)
			wf_base_cpu_relax();
		sent -= (unsigned int)n;
		jobs += n;
		over = wf_base_clock_ns() >= atomic_load(&board->end);
	}
	return jobs;
}

static int client(unsigned int at, const char *name, uint32_t size,
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
	jobs = work(&device, size, flight);
	board->done[at].seconds = (double)(wf_base_clock_ns() - start) / 1e9;
	if (jobs < 0)
		atomic_fetch_add(&board->failed, 1);
	else
		board->done[at].jobs = (uint64_t)jobs;
	wf_drv_device_close(&device);
	return jobs < 0;
}

/* Jobs a second of all clients; below 0: one failed. */
static double measure(const char *name, uint32_t size, unsigned int n,
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
			_exit(client(i, name, size, flight));
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

static int print_rates(unsigned int ms, unsigned int rounds)
{
	double rates[ROUNDS_MAX];

	printf("M jobs/s                 in flight %8u %8u %8u\n", flights[0],
	       flights[1], flights[2]);
	for (size_t i = 0; i < COUNT(names) * COUNT(sizes) * COUNT(clients);
	     i++) {
		const char *name = names[i / COUNT(clients) / COUNT(sizes)];
		uint32_t size = sizes[i / COUNT(clients) % COUNT(sizes)];
		unsigned int n = clients[i % COUNT(clients)];

		printf("%-13s %4u bytes, %2u clients ", name, size, n);
		for (size_t f = 0; f < COUNT(flights); f++) {
			for (unsigned int r = 0; r < rounds; r++) {
				rates[r] =
					measure(name, size, n, flights[f], ms);
				if (rates[r] < 0) {
					fputs("a job failed\n", stderr);
					return 1;
				}
			}
			qsort(rates, rounds, sizeof(rates[0]), ascending);
			printf(" %8.2f", rates[rounds / 2] / 1e6);
			fflush(stdout);
		}
		putchar('\n');
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
