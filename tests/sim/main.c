/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft-sim: runs scenarios, each in a process of its own, so that all start
 * with the same memory and a crash is a failure like any other.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "director.h"
#include "oracle.h"
#include "real.h"
#include "shrink.h"
#include "sim.h"

#define TWICE 50 /* every so many scenarios run a second time */
#define JOBS_MAX 64
#define REAL_SECONDS 60	 /* of processor time, for one scenario */
#define FAILURES_MAX 100 /* seeds that are listed at the end */
#define TELL_EVERY 60.0

static struct options {
	uint64_t seed;
	uint64_t count; /* scenarios; 0: until the time is up */
	double seconds;
	unsigned int jobs;
	bool trace, shrink, go_on;
	const char *file, *only;
} options = { .seed = 1, .jobs = 1, .shrink = true };

static struct totals {
	uint64_t runs, messages, steps;
	uint64_t faults[SIM_FAULTS];
} totals;

static struct failures {
	unsigned int count;
	uint64_t seeds[FAILURES_MAX];
} failures;

struct answer {
	uint64_t seed, hash, messages, steps;
	uint64_t faults[SIM_FAULTS];
};

static double seconds_now(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return (double)tv.tv_sec + (double)tv.tv_usec * 1e-6;
}

/* -- one scenario ----------------------------------------------------------- */

/* A child writes to a file, so that the output of several jobs is not mixed. */
static FILE *hearing(void)
{
	FILE *said = tmpfile();

	if (!said) {
		perror("weft-sim: tmpfile");
		exit(3);
	}
	return said;
}

static void repeat(FILE *said)
{
	char text[4096];
	size_t len;

	fflush(stdout);
	rewind(said);
	while ((len = fread(text, 1, sizeof(text), said)) > 0)
		fwrite(text, 1, len, stderr);
}

/* Runs in a child. */
static void run_child(const struct sim_scenario *s, int to, bool trace)
{
	struct answer answer = { .seed = s->seed };

	const struct rlimit most = { REAL_SECONDS, REAL_SECONDS };

	setrlimit(RLIMIT_CPU, &most);
	if (trace) {
		sim_scenario_print(s, stdout);
		printf("virtual time, process.life and thread (director: the "
		       "simulator itself), what\nhappens. pA-pB#N: message N "
		       "from process A to B; packet pA-pB: type and number.\n");
	}
	director_run(s, trace);
	answer.hash = sim.trace_hash;
	answer.messages = oracle_messages;
	answer.steps = sim.steps;
	memcpy(answer.faults, sim.fault_count, sizeof(answer.faults));
	fflush(NULL);
	if (to >= 0 && real_write(to, &answer, sizeof(answer)) < 0)
		_exit(2);
	_exit(0);
}

/* @said: the file for its standard error, or NULL. */
static pid_t start(const struct sim_scenario *s, int *from, bool trace,
		   FILE *said)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid) {
		real_close(pipes[1]);
		*from = pipes[0];
		return pid;
	}
	real_close(pipes[0]);
	if (said && dup2(fileno(said), STDERR_FILENO) < 0)
		_exit(3);
	run_child(s, pipes[1], trace);
	return -1;
}

/* Returns 0 and *@answer, or the status of wait(). */
static int finish(pid_t pid, int from, struct answer *answer)
{
	bool told = real_read(from, answer, sizeof(*answer)) ==
		    (ssize_t)sizeof(*answer);
	int status = 0;

	real_close(from);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status ? status : told ? 0 : 1;
}

int sim_outcome(const struct sim_scenario *s)
{
	struct answer answer;
	FILE *said = hearing();
	int from = -1, status;
	pid_t pid = start(s, &from, false, said);

	status = finish(pid, from, &answer);
	fclose(said);
	return status;
}

static void report(const struct sim_scenario *s, int status)
{
	struct sim_scenario small = *s;

	if (WIFSIGNALED(status))
		printf("seed %llu: ended by signal %d (%s)\n",
		       (unsigned long long)s->seed, WTERMSIG(status),
		       WTERMSIG(status) == SIGXCPU ||
				       WTERMSIG(status) == SIGKILL ?
			       "it takes too long" :
			       strsignal(WTERMSIG(status)));
	printf("seed %llu FAILED; repeat it: weft-sim --seed %llu --trace\n",
	       (unsigned long long)s->seed, (unsigned long long)s->seed);
	if (options.shrink && shrink(&small, status)) {
		char text[256];

		printf("smaller: weft-sim --seed %llu --trace --only %s\n",
		       (unsigned long long)s->seed,
		       shrink_text(&small, text, sizeof(text)));
	}
	fflush(stdout);
}

/* False: it failed. */
static bool check(const struct sim_scenario *s, int status,
		  const struct answer *first)
{
	struct answer again;
	int from = -1;
	pid_t pid;

	if (status) {
		report(s, status);
		return false;
	}
	totals.runs++;
	totals.messages += first->messages;
	totals.steps += first->steps;
	for (int i = 0; i < SIM_FAULTS; i++)
		totals.faults[i] += first->faults[i];
	if (totals.runs % TWICE)
		return true;
	pid = start(s, &from, false, NULL);
	status = finish(pid, from, &again);
	if (!status && again.hash == first->hash)
		return true;
	printf("seed %llu: the second run differs from the first\n",
	       (unsigned long long)s->seed);
	return false;
}

/* -- many ------------------------------------------------------------------- */

struct job {
	struct sim_scenario s;
	pid_t pid;
	int from;
	FILE *said;
};

static bool more(uint64_t started, double begin)
{
	if (options.count)
		return started < options.count;
	return seconds_now() - begin < options.seconds;
}

static void start_job(struct job *job, uint64_t seed)
{
	sim_scenario_draw(&job->s, seed);
	if (options.only && shrink_apply(&job->s, options.only)) {
		fprintf(stderr, "cannot apply --only %s to seed %llu\n",
			options.only, (unsigned long long)seed);
		exit(2);
	}
	job->said = hearing();
	job->pid = start(&job->s, &job->from, false, job->said);
}

/* False: it failed. */
static bool finish_job(struct job *job)
{
	struct answer answer;
	int status = finish(job->pid, job->from, &answer);
	bool good;

	if (status)
		repeat(job->said);
	fclose(job->said);
	good = check(&job->s, status, &answer);
	if (!good && failures.count < FAILURES_MAX)
		failures.seeds[failures.count] = job->s.seed;
	failures.count += !good;
	return good;
}

static void print_totals(double seconds)
{
	uint64_t runs = totals.runs + failures.count;

	printf("%llu scenarios from seed %llu on, %llu failed; %.1f s, %.1f a "
	       "second\n",
	       (unsigned long long)runs, (unsigned long long)options.seed,
	       (unsigned long long)failures.count, seconds,
	       (double)runs / seconds);
	printf("%llu messages arrived, %llu points; faults:",
	       (unsigned long long)totals.messages,
	       (unsigned long long)totals.steps);
	for (int i = 0; i < SIM_FAULTS; i++)
		printf(" %s %llu", sim_fault_names[i],
		       (unsigned long long)totals.faults[i]);
	printf("\n");
	if (!failures.count)
		return;
	printf("failed seeds:");
	for (unsigned int i = 0; i < failures.count && i < FAILURES_MAX; i++)
		printf(" %llu", (unsigned long long)failures.seeds[i]);
	printf("\n");
}

static void tell_progress(double begin, double *told)
{
	double now = seconds_now();

	if (now - *told < TELL_EVERY)
		return;
	*told = now;
	printf("%.0f s: %llu scenarios, %llu failed\n", now - begin,
	       (unsigned long long)(totals.runs + failures.count),
	       (unsigned long long)failures.count);
	fflush(stdout);
}

static int run_many(void)
{
	static struct job jobs[JOBS_MAX];
	uint64_t started = 0;
	unsigned int under_way = 0, at = 0;
	double begin = seconds_now(), told = begin;

	for (;;) {
		while (under_way < options.jobs && more(started, begin) &&
		       (!failures.count || options.go_on))
			start_job(&jobs[(at + under_way++) % options.jobs],
				  options.seed + started++);
		if (!under_way)
			break;
		finish_job(&jobs[at]);
		under_way--;
		at = (at + 1) % options.jobs;
		tell_progress(begin, &told);
	}
	print_totals(seconds_now() - begin);
	return failures.count != 0;
}

/* Seeds that once found a bug, one on each line; the rest of a line is a
 * comment. */
static int run_file(void)
{
	FILE *file = fopen(options.file, "re");
	char line[256];

	if (!file) {
		perror(options.file);
		return 1;
	}
	while (fgets(line, sizeof(line), file)) {
		struct job job;
		uint64_t seed = strtoull(line, NULL, 10);

		if (!seed)
			continue;
		start_job(&job, seed);
		finish_job(&job);
	}
	fclose(file);
	printf("%s: %llu seeds, %u failed\n", options.file,
	       (unsigned long long)totals.runs + failures.count,
	       failures.count);
	return failures.count != 0;
}

/* -- options ---------------------------------------------------------------- */

static int usage(FILE *to)
{
	fprintf(to,
		"usage: weft-sim [--seed FIRST] --count N | --for SECONDS"
		" [--jobs N] [--go-on]\n"
		"       weft-sim --seed S [--trace] [--only WHAT]\n"
		"       weft-sim --file SEEDS\n"
		"Runs the provider in simulated processes on a simulated kernel."
		" Sizes, faults\n"
		"and the order of events are drawn from the seed, so that a run"
		" can be repeated.\n"
		"A seed means the same run with the same program only.\n\n"
		"many seeds:\n"
		"  --seed FIRST   the first of them (1)\n"
		"  --count N      so many\n"
		"  --for SECONDS  as many as fit\n"
		"  --jobs N       at the same time (1)\n"
		"  --go-on        also after one has failed\n"
		"  --no-shrink    do not look for a smaller scenario that fails"
		"\n"
		"one seed:\n"
		"  --trace        print every event\n"
		"others:\n"
		"  --only WHAT    change the scenario, as a failure tells:\n"
		"                 procs=3,messages=4,largest=100,kills=1,"
		"faults=kill+memory\n"
		"                 (faults=none: without any); also nodes=2, shm=0,"
		" tcp=1, auto=1\n"
		"  --file SEEDS   run the seeds of a file, one a line\n"
		"  --fidelity     compare the simulated kernel with what is "
		"expected of one\n"
		"Exit status: 0 all is well, 1 a scenario failed, 2 wrong use."
		"\nSee docs/simulator.md.\n");
	return to == stderr ? 2 : 0;
}

static int run_one(void)
{
	struct sim_scenario s;
	struct answer answer;
	int from = -1, status;
	pid_t pid;

	sim_scenario_draw(&s, options.seed);
	if (options.only && shrink_apply(&s, options.only)) {
		fprintf(stderr, "cannot apply --only %s\n", options.only);
		return 2;
	}
	pid = start(&s, &from, options.trace, NULL);
	status = finish(pid, from, &answer);
	if (status) {
		if (!options.only)
			report(&s, status);
		return 1;
	}
	printf("seed %llu: well; %llu messages, %llu points, trace %016llx\n",
	       (unsigned long long)s.seed, (unsigned long long)answer.messages,
	       (unsigned long long)answer.steps,
	       (unsigned long long)answer.hash);
	return 0;
}

/* Makes addresses the same in every run, so that everything that depends on
 * them is repeated. */
static void fix_addresses(char **argv)
{
	int now = personality(0xffffffff);

	if (now < 0 || now & ADDR_NO_RANDOMIZE)
		return;
	if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "for", required_argument, NULL, 'f' },
		{ "count", required_argument, NULL, 'c' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "trace", no_argument, NULL, 't' },
		{ "only", required_argument, NULL, 'o' },
		{ "file", required_argument, NULL, 'F' },
		{ "no-shrink", no_argument, NULL, 'n' },
		{ "go-on", no_argument, NULL, 'g' },
		{ "fidelity", no_argument, NULL, 'y' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	fix_addresses(argv);
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			options.seed = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			options.seconds = strtod(optarg, NULL);
			break;
		case 'c':
			options.count = strtoull(optarg, NULL, 10);
			break;
		case 'j':
			options.jobs = (unsigned int)atoi(optarg);
			break;
		case 't':
			options.trace = true;
			break;
		case 'o':
			options.only = optarg;
			break;
		case 'F':
			options.file = optarg;
			break;
		case 'n':
			options.shrink = false;
			break;
		case 'g':
			options.go_on = true;
			break;
		case 'y':
			director_fidelity();
			return 0;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (!options.jobs || options.jobs > JOBS_MAX)
		return usage(stderr);
	if (options.file)
		return run_file();
	if (options.count || options.seconds > 0)
		return run_many();
	return run_one();
}
