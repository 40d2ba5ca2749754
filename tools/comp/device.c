/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file measures what a job costs its caller: done here by a synchronous
 * call, and on the software device with eight in flight. The device is a `weft
 * devd` of its own, which ends with the measurement.
 */
#include "tools/comp/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weft/wd_comp.h>

#define FLIGHT 8
#define JOB (256u << 10)
#define JOBS 64

struct job {
	struct wd_comp_ctx ctx;
	uint8_t *out;
	size_t room;
	const struct wf_comp_plan *plan;
	unsigned int *left;
	unsigned int *failed;
	unsigned int *elsewhere;
};

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const uint8_t *source(const struct wf_comp_plan *plan, unsigned int n)
{
	return plan->data + (size_t)(n % (plan->len / JOB)) * JOB;
}

/* Each callback starts the next job in its place. */
static void next(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct job *job = arg;

	*job->failed += result != 0;
	if (ctx->used && strcmp(ctx->used, "device") != 0)
		(*job->elsewhere)++;
	(*job->left)--;
	if (*job->left >= FLIGHT)
		wd_alg_async_deflate(ctx, next, job,
				     source(job->plan, *job->left), JOB,
				     job->out, job->room);
}

static double asynchronous(const struct wf_comp_plan *plan, struct job *jobs,
			   unsigned int *failed)
{
	unsigned int left = JOBS, elsewhere = 0;
	double start = cpu_now();

	for (unsigned int i = 0; i < FLIGHT; i++) {
		jobs[i].ctx = (struct wd_comp_ctx){ .comp_level = 6,
						    .driver = "device" };
		jobs[i].plan = plan;
		jobs[i].left = &left;
		jobs[i].failed = failed;
		jobs[i].elsewhere = &elsewhere;
		wd_alg_async_deflate(&jobs[i].ctx, next, &jobs[i],
				     source(plan, i), JOB, jobs[i].out,
				     jobs[i].room);
	}
	while (left) {
		wd_alg_wait(-1);
		wd_alg_poll(0);
	}
	*failed += elsewhere;
	return (cpu_now() - start) / JOBS;
}

static double synchronous(const struct wf_comp_plan *plan, struct job *job)
{
	double start = cpu_now();

	for (unsigned int i = 0; i < JOBS; i++) {
		struct wd_comp_ctx ctx = { .comp_level = 6 };
		size_t in = JOB, out = job->room;

		wd_alg_deflate(&ctx, source(plan, i), &in, job->out, &out);
	}
	return (cpu_now() - start) / JOBS;
}

/* A device of our own; its process, 0 if there is none. */
static pid_t start_device(const struct wf_comp_plan *plan)
{
	char name[64], ready;
	int fds[2];
	pid_t pid;

	snprintf(name, sizeof(name), "/tmp/weft-bench-%ld.sock",
		 (long)getpid());
	if (pipe(fds))
		return 0;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(fds[1], STDOUT_FILENO);
		execl(plan->self, "weft", "devd", "-s", name, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	/* Its first line says that it serves. */
	if (pid < 0 || read(fds[0], &ready, 1) != 1)
		pid = 0;
	close(fds[0]);
	setenv("WEFT_DEVD", name, 1);
	return pid;
}

void wf_tools_comp_device(const struct wf_comp_plan *plan)
{
	static struct job jobs[FLIGHT];
	double here[101], there[101], a, b;
	unsigned int failed = 0;
	pid_t pid;

	puts("\nThe caller's processor time per job of 256 KiB at level 6");
	pid = start_device(plan);
	if (!pid || plan->len < JOB) {
		puts("no software device could be started");
		return;
	}
	wd_alg_async_threads(FLIGHT);
	for (unsigned int i = 0; i < FLIGHT; i++) {
		jobs[i].room = wd_alg_deflate_bound(&jobs[i].ctx, JOB);
		jobs[i].out = malloc(jobs[i].room);
		if (!jobs[i].out)
			goto out;
	}
	for (unsigned int r = 0; r < plan->rounds; r++) {
		here[r] = synchronous(plan, &jobs[0]);
		there[r] = asynchronous(plan, jobs, &failed);
	}
	a = wf_tools_comp_median(here, plan->rounds);
	b = wf_tools_comp_median(there, plan->rounds);
	if (failed)
		printf("%u jobs failed or were done elsewhere\n", failed);
	else
		printf("synchronous %.1f us, on the device with %d in flight "
		       "%.1f us: %.1f %%\n",
		       a * 1e6, FLIGHT, b * 1e6, 100 * b / a);
out:
	wd_alg_async_fini();
	for (unsigned int i = 0; i < FLIGHT; i++)
		free(jobs[i].out);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}
