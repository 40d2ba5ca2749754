/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of `weft bench wd`.
 */
#include "tools/wd/measure.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
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
#include "weft/smm.h"

#define POOL (4u << 20)
#define FOREIGN_BYTES (256u << 10)
#define BLOCKS 64
/* Long enough that it never sleeps between two jobs of a sample, short enough
 * that it is out of the way of the next one. */
#define SPIN_US 300

struct wf_tools_wd_lines {
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
};

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* -- the other side -------------------------------------------------------- */

static struct wf_devd *serving;

static void on_end(int number)
{
	(void)number;
	wf_devd_stop(serving);
}

static int run_device(const struct wf_tools_wd_rig *rig, int ready_fd)
{
	static const char *const names[] = { "bench_sva-0", "bench_share-0",
					     "bench_noiommu-0" };
	struct wf_devd_config config;
	int err;

	wf_devd_config_init(&config);
	config.socket = rig->socket;
	config.workers = 1;
	config.spin_us = SPIN_US;
	config.first_cpu = rig->cpus[1];
	for (int i = 0; i < 3; i++)
		wf_devd_config_add(&config, names[i], i);
	bind_to(rig->cpus[1]);
	if (wf_devd_open(&config, &serving))
		return 1;
	/* Its socket is a file, which it removes. */
	signal(SIGTERM, on_end);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (write(ready_fd, "r", 1) != 1)
		return 1;
	close(ready_fd);
	err = wf_devd_run(serving);
	wf_devd_close(serving);
	return err ? 1 : 0;
}

static int run_partner(const struct wf_tools_wd_rig *rig, int order_fd)
{
	struct wf_tools_wd_lines *lines = rig->lines;
	uint64_t rounds, at = 0;

	bind_to(rig->cpus[1]);
	while (read(order_fd, &rounds, sizeof(rounds)) == sizeof(rounds)) {
		while (rounds--) {
			at++;
			while (atomic_load_explicit(&lines->ping,
						    memory_order_acquire) != at)
				;
			atomic_store_explicit(&lines->pong, at,
					      memory_order_release);
		}
	}
	return 0;
}

static pid_t spawn(struct wf_tools_wd_rig *rig, int fd, int other,
		   int (*run)(const struct wf_tools_wd_rig *, int))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The parent ends us, and what it does at a signal is not for us. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	close(other);
	_exit(run(rig, fd));
}

static int start_device(struct wf_tools_wd_rig *rig)
{
	int fds[2];
	char ready;
	ssize_t got;

	if (pipe(fds))
		return -errno;
	rig->device_pid = spawn(rig, fds[1], fds[0], run_device);
	close(fds[1]);
	got = read(fds[0], &ready, 1);
	close(fds[0]);
	return got == 1 ? 0 : -EIO;
}

static int start_partner(struct wf_tools_wd_rig *rig)
{
	int fds[2];

	rig->lines = mmap(NULL, sizeof(*rig->lines), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (rig->lines == MAP_FAILED || pipe(fds))
		return -errno;
	rig->partner_pid = spawn(rig, fds[0], fds[1], run_partner);
	close(fds[0]);
	rig->partner_fd = fds[1];
	return 0;
}

int wf_tools_wd_rig_open(struct wf_tools_wd_rig *rig)
{
	static const char *const names[] = { "sva", "share", "noiommu" };
	int err;

	snprintf(rig->socket, sizeof(rig->socket), "/tmp/weft-bench-%d.sock",
		 (int)getpid());
	err = start_partner(rig);
	if (!err)
		err = start_device(rig);
	if (err)
		return err;
	bind_to(rig->cpus[0]);
	for (int i = 0; i < 3 && !err; i++) {
		snprintf(rig->devices[i].ch.dev_path,
			 sizeof(rig->devices[i].ch.dev_path), "%s:bench_%s-0",
			 rig->socket, names[i]);
		err = wf_drv_device_open(&rig->devices[i], POOL);
	}
	return err;
}

static void end(pid_t pid, int number)
{
	if (pid <= 0)
		return;
	kill(pid, number);
	waitpid(pid, NULL, 0);
}

void wf_tools_wd_rig_close(struct wf_tools_wd_rig *rig)
{
	for (int i = 0; i < 3; i++)
		wf_drv_device_close(&rig->devices[i]);
	end(rig->device_pid, SIGTERM);
	end(rig->partner_pid, SIGKILL);
	if (rig->partner_pid > 0)
		close(rig->partner_fd);
}

/* -- disturbance ----------------------------------------------------------- */

static uint64_t preempted_thread(const char *pid, const char *tid)
{
	static const char key[] = "nonvoluntary_ctxt_switches:";
	char path[96], line[128];
	uint64_t count = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%.16s/task/%.16s/status", pid, tid);
	in = fopen(path, "re");
	while (in && fgets(line, sizeof(line), in)) {
		if (!strncmp(line, key, sizeof(key) - 1))
			count = strtoull(line + sizeof(key) - 1, NULL, 10);
	}
	if (in)
		fclose(in);
	return count;
}

static uint64_t preempted_process(pid_t process)
{
	char pid[16], path[64];
	struct dirent *entry;
	uint64_t count = 0;
	DIR *dir;

	snprintf(pid, sizeof(pid), "%d", (int)process);
	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			count += preempted_thread(pid, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return count;
}

uint64_t wf_tools_wd_preempted(const struct wf_tools_wd_rig *rig)
{
	return preempted_process(getpid()) +
	       preempted_process(rig->device_pid) +
	       preempted_process(rig->partner_pid);
}

/* -- samples --------------------------------------------------------------- */

double wf_tools_wd_bare(struct wf_tools_wd_rig *rig, uint64_t rounds)
{
	struct wf_tools_wd_lines *lines = rig->lines;
	uint64_t first = atomic_load(&lines->ping), at = first;
	uint64_t warm = rounds / 8 + 1, total = rounds + warm, start = 0;

	if (write(rig->partner_fd, &total, sizeof(total)) != sizeof(total))
		return -1;
	while (at < first + total) {
		if (at == first + warm)
			start = wf_base_clock_ns();
		at++;
		atomic_store_explicit(&lines->ping, at, memory_order_release);
		while (atomic_load_explicit(&lines->pong,
					    memory_order_acquire) != at)
			;
	}
	return (double)(wf_base_clock_ns() - start) / (double)rounds;
}

static bool run_one(struct wf_drv_device *device, const struct wf_drv_job *job,
		    bool asleep, struct wf_drv_result *result)
{
	int n;

	if (wf_drv_device_submit(device, job, false))
		return false;
	while (!(n = wf_drv_device_poll(device, result, 1))) {
		if (asleep)
			wf_drv_device_wait(device, 1000);
	}
	return n == 1 && !result->status;
}

double wf_tools_wd_empty(struct wf_tools_wd_rig *rig, uint64_t rounds,
			 bool asleep)
{
	struct wf_drv_device *device = &rig->devices[WD_IOMMU_SHARE_DOMAIN];
	const struct wf_drv_job job = { .alg = WF_ACCEL_NOP };
	uint64_t warm = rounds / 8 + 1, start = 0;
	struct wf_drv_result result;

	for (uint64_t i = 0; i < rounds + warm; i++) {
		if (i == warm)
			start = wf_base_clock_ns();
		if (!run_one(device, &job, asleep, &result))
			return -1;
	}
	return (double)(wf_base_clock_ns() - start) / (double)rounds;
}

/* The buffers of the jobs in flight, and which of them are free. */
struct desk {
	const struct wf_tools_wd_load *load;
	uint8_t *memory;
	uint32_t free[WF_TOOLS_WD_FLIGHT_MAX];
	unsigned int n_free;
};

static uint8_t *src_of(const struct desk *desk, uint32_t at)
{
	return desk->memory + 2 * (size_t)at * desk->load->bytes;
}

static int send_one(struct wf_drv_device *device, struct desk *desk, bool more)
{
	uint32_t bytes = desk->load->bytes, at = desk->free[desk->n_free - 1];
	struct wf_drv_job job = {
		.alg = WF_ACCEL_COPY,
		.src = src_of(desk, at),
		.dst = src_of(desk, at) + bytes,
		.src_len = bytes,
		.dst_len = bytes,
		.cookie = (void *)(uintptr_t)at,
	};
	int err;

	if (desk->load->touched)
		memset(src_of(desk, at), (int)at + 1, bytes);
	err = wf_drv_device_submit(device, &job, more);
	if (!err)
		desk->n_free--;
	return err;
}

/* Whether the result is what was sent. */
static bool take_one(struct desk *desk, const struct wf_drv_result *result)
{
	uint32_t at = (uint32_t)(uintptr_t)result->cookie;
	uint32_t bytes = desk->load->bytes;
	const uint8_t *dst = src_of(desk, at) + bytes;
	uint64_t sum = 0, word;

	desk->free[desk->n_free++] = at;
	if (result->status)
		return false;
	if (!desk->load->touched)
		return true;
	for (uint32_t i = 0; i < bytes; i += sizeof(word)) {
		memcpy(&word, dst + i, sizeof(word));
		sum += word;
	}
	return sum ==
	       bytes / sizeof(word) * (0x0101010101010101u * (uint8_t)(at + 1));
}

double wf_tools_wd_rate(struct wf_tools_wd_rig *rig, int type,
			const struct wf_tools_wd_load *load, uint64_t jobs)
{
	struct wf_drv_device *device = &rig->devices[type];
	uint64_t warm = jobs / 8 + 1, total = jobs + warm, start = 0;
	uint64_t sent = 0, done = 0;
	struct wf_drv_result results[32];
	struct desk desk = { .load = load };
	int n;

	desk.memory = smm_alloc(device->ch.ss_va,
				2 * (size_t)load->bytes * load->in_flight);
	if (!desk.memory)
		return -1;
	while (desk.n_free < load->in_flight) {
		desk.free[desk.n_free] = desk.n_free;
		desk.n_free++;
	}
	while (done < total) {
		while (sent < total && desk.n_free) {
			bool last = sent + 1 == total || desk.n_free == 1;

			if (send_one(device, &desk, !last))
				return -1;
			sent++;
		}
		n = wf_drv_device_poll(device, results, 32);
		for (int i = 0; i < n; i++) {
			if (!take_one(&desk, &results[i]))
				return -1;
		}
		if (n < 0)
			return -1;
		if (done < warm && done + (uint64_t)n >= warm)
			start = wf_base_clock_ns();
		done += (uint64_t)n;
	}
	smm_free(device->ch.ss_va, desk.memory);
	return (double)jobs * 1e9 / (double)(wf_base_clock_ns() - start);
}

double wf_tools_wd_alloc(bool smm, size_t size, uint64_t rounds)
{
	static uint8_t *pool;
	void *blocks[BLOCKS] = { 0 };
	uint64_t start, i;
	size_t bytes = BLOCKS * (size + 4096) * 2;

	if (smm) {
		pool = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
		if (!pool || smm_init(pool, bytes, 63)) {
			free(pool);
			return -1;
		}
	}
	start = wf_base_clock_ns();
	for (i = 0; i < rounds; i++) {
		void **block = &blocks[i * 2654435761u % BLOCKS];

		if (smm) {
			smm_free(pool, *block);
			*block = smm_alloc(pool, size);
		} else {
			free(*block);
			*block = malloc(size);
			/* Or it is not called at all. */
			__asm__ volatile("" ::"r"(*block) : "memory");
		}
	}
	start = wf_base_clock_ns() - start;
	for (i = 0; i < BLOCKS && !smm; i++)
		free(blocks[i]);
	if (smm)
		free(pool);
	return (double)start / (double)rounds;
}

int wf_tools_wd_copies(struct wf_tools_wd_rig *rig, int type, bool foreign,
		       double *in, double *out)
{
	struct wf_drv_device *device = &rig->devices[type];
	uint8_t *memory =
		foreign ? malloc(2 * FOREIGN_BYTES) :
			  smm_alloc(device->ch.ss_va, 2 * FOREIGN_BYTES);
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32,
				  .src = memory,
				  .src_len = FOREIGN_BYTES };
	uint64_t before = device->bounced;
	struct wf_drv_result result;

	if (!memory)
		return -ENOMEM;
	memset(memory, 1, 2 * FOREIGN_BYTES);
	if (!run_one(device, &job, false, &result))
		return -EIO;
	*in = (double)(device->bounced - before + result.copied) /
	      FOREIGN_BYTES;
	job.alg = WF_ACCEL_COPY;
	job.dst = memory + FOREIGN_BYTES;
	job.dst_len = FOREIGN_BYTES;
	before = device->bounced;
	if (!run_one(device, &job, false, &result))
		return -EIO;
	*out = (double)(device->bounced - before + result.copied) /
		       FOREIGN_BYTES -
	       *in;
	if (foreign)
		free(memory);
	else
		smm_free(device->ch.ss_va, memory);
	return 0;
}
