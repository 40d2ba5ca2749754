/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench wd`: the cost of a job through a channel compared with the bare
 * cache line, SMM compared with malloc, and how often bytes are copied. All are
 * measured in turns, and medians are shown. It prints, and draws no
 * conclusions.
 */
#include "tools/wd/bench.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/near.h"
#include "tools/output.h"
#include "tools/wd/measure.h"

#define REPS_MAX 1000
#define REPS_USUAL 51
#define N_FLIGHTS 4
#define N_SIZES 3
#define N_LOADS 3
#define TRIES 3

static const unsigned int flights[N_FLIGHTS] = { 1, 2, 8, 64 };
static const struct {
	uint32_t bytes;
	bool touched;
	const char *name;
} loads[N_LOADS] = {
	{ 64, false, "64 bytes" },
	{ 4096, false, "4 KiB" },
	{ 4096, true, "4 KiB, written and read" },
};
static const size_t sizes[N_SIZES] = { 64, 4096, 65536 };
static const char *const scenarios[] = { "SVA", "Share Domain", "NOIOMMU" };

struct options {
	int cpus[2];
	unsigned int reps; /* 0: as many as fit into the time, to REPS_USUAL */
	unsigned int time_s; /* no repetition begins later; 0: any time */
	unsigned int rounds;
	const char *json;
};

struct samples {
	double v[REPS_MAX];
	unsigned int n;
};

/* All that is measured, repetition by repetition. */
struct outcome {
	struct samples bare, empty, asleep;
	struct samples rate[N_LOADS][3][N_FLIGHTS];
	struct samples smm[N_SIZES], malloc[N_SIZES];
	double in[3][2], out[3][2]; /* scenario, foreign */
	int failed;
};

static const char help[] =
	"usage: weft bench wd [OPTIONS]\n"
	"\n"
	"Measures channels to a software device in another process: an empty\n"
	"job beside a bare cache line, copies of 64 bytes and 4 KiB a\n"
	"second, SMM beside malloc, and how often a byte is copied in each scenario.\n"
	"\n"
	"  -r, --reps N    repetitions, whose median is shown (51, or as many as\n"
	"                  fit into the time)\n"
	"  -t, --time S    begin no repetition after S seconds (30, unless you name\n"
	"                  a number of repetitions)\n"
	"  -n, --rounds N  round trips in a repetition (2000)\n"
	"      --cpus A,B  CPU of this process and of the device (the first\n"
	"                  two allowed)\n"
	"      --json FILE everything, every sample\n"
	"  -h, --help      print this and exit\n";

/* -- options --------------------------------------------------------------- */

static int default_cpus(int cpus[2])
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++) {
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	}
	if (n == 1)
		cpus[1] = cpus[0];
	return n ? 0 : -EINVAL;
}

static int read_count(const char *text, unsigned int max, unsigned int *value)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end || *text == '-' || !number || number > max) {
		fprintf(stderr,
			"weft bench wd: a number from 1 to %u, not '%s'\n", max,
			text);
		return -EINVAL;
	}
	*value = (unsigned int)number;
	return 0;
}

static int read_options(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "reps", required_argument, NULL, 'r' },
		{ "time", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "json", required_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option, err = default_cpus(options->cpus);
	char rest;

	optind = 1;
	while (!err && (option = getopt_long(argc, argv, "r:t:n:h", names,
					     NULL)) != -1) {
		switch (option) {
		case 'r':
			err = read_count(optarg, REPS_MAX, &options->reps);
			break;
		case 't':
			err = read_count(optarg, 100000, &options->time_s);
			break;
		case 'n':
			err = read_count(optarg, 10000000, &options->rounds);
			break;
		case 'c':
			if (sscanf(optarg, "%d,%d%c", &options->cpus[0],
				   &options->cpus[1], &rest) == 2 &&
			    options->cpus[0] >= 0 && options->cpus[1] >= 0)
				break;
			fputs("weft bench wd: --cpus wants two, as 0,1\n",
			      stderr);
			err = -EINVAL;
			break;
		case 'j':
			options->json = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 1;
		default:
			wf_tools_near_option("weft bench wd", argv, names);
			err = -EINVAL;
		}
	}
	if (!err && optind < argc) {
		fprintf(stderr, "weft bench wd: what is '%s'?\n", argv[optind]);
		err = -EINVAL;
	}
	/* On a machine that does other work a repetition takes seconds. */
	if (!options->reps && !options->time_s)
		options->time_s = 30;
	if (!options->reps)
		options->reps = REPS_USUAL;
	return err;
}

/* -- samples --------------------------------------------------------------- */

static void add(struct outcome *outcome, struct samples *samples, double value)
{
	if (value < 0)
		outcome->failed = 1;
	else
		samples->v[samples->n++] = value;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const struct samples *samples, double q)
{
	static double sorted[REPS_MAX];

	if (!samples->n)
		return 0;
	memcpy(sorted, samples->v, samples->n * sizeof(double));
	qsort(sorted, samples->n, sizeof(double), ascending);
	return sorted[(size_t)(q * (samples->n - 1) + 0.5)];
}

static double median(const struct samples *samples)
{
	return quantile(samples, 0.5);
}

/* The kind says what a sample is of. */
enum kind { BARE, EMPTY, ASLEEP, RATE, SMM, MALLOC };

struct what {
	enum kind kind;
	int type;
	struct wf_tools_wd_load load;
	size_t size;
};

static double run_sample(struct wf_tools_wd_rig *rig, const struct what *what,
			 uint64_t rounds)
{
	switch (what->kind) {
	case BARE:
		return wf_tools_wd_bare(rig, rounds);
	case EMPTY:
		return wf_tools_wd_empty(rig, rounds, false);
	case ASLEEP:
		return wf_tools_wd_empty(rig, rounds / 20 + 1, true);
	case RATE:
		return wf_tools_wd_rate(rig, what->type, &what->load, rounds);
	case SMM:
	case MALLOC:
		return wf_tools_wd_alloc(what->kind == SMM, what->size,
					 rounds * 4);
	}
	return -1;
}

/* Again if something else took a CPU meanwhile; the least disturbed counts. */
static void sample(struct wf_tools_wd_rig *rig, struct outcome *outcome,
		   struct samples *samples, struct what what, uint64_t rounds)
{
	uint64_t least = UINT64_MAX, count;
	double best = -1, value;

	for (int i = 0; i < TRIES && least; i++) {
		count = wf_tools_wd_preempted(rig);
		value = run_sample(rig, &what, rounds);
		count = wf_tools_wd_preempted(rig) - count;
		if (value < 0) {
			best = value;
			break;
		}
		if (count < least) {
			least = count;
			best = value;
		}
	}
	add(outcome, samples, best);
}

static void measure_rates(struct wf_tools_wd_rig *rig, struct outcome *outcome,
			  int job, uint64_t rounds)
{
	for (int i = 0; i < N_FLIGHTS; i++) {
		for (int type = 0; type < 3; type++)
			sample(rig, outcome, &outcome->rate[job][type][i],
			       (struct what){
				       .kind = RATE,
				       .type = type,
				       .load = { .bytes = loads[job].bytes,
						 .in_flight = flights[i],
						 .touched =
							 loads[job].touched } },
			       rounds);
	}
}

static void measure_once(struct wf_tools_wd_rig *rig, struct outcome *outcome,
			 uint64_t rounds)
{
	/* The neighbours that are compared come right after each other. */
	sample(rig, outcome, &outcome->bare, (struct what){ .kind = BARE },
	       rounds);
	sample(rig, outcome, &outcome->empty, (struct what){ .kind = EMPTY },
	       rounds);
	sample(rig, outcome, &outcome->asleep, (struct what){ .kind = ASLEEP },
	       rounds);
	for (int i = 0; i < N_LOADS; i++)
		measure_rates(rig, outcome, i, rounds);
	for (int i = 0; i < N_SIZES; i++) {
		sample(rig, outcome, &outcome->smm[i],
		       (struct what){ .kind = SMM, .size = sizes[i] }, rounds);
		sample(rig, outcome, &outcome->malloc[i],
		       (struct what){ .kind = MALLOC, .size = sizes[i] },
		       rounds);
	}
}

static int measure(struct wf_tools_wd_rig *rig, struct outcome *outcome,
		   const struct options *options)
{
	bool shown = isatty(STDERR_FILENO);
	uint64_t start = wf_base_clock_ns();
	int err = 0;

	for (unsigned int i = 0; i < options->reps && !outcome->failed; i++) {
		if (i && options->time_s &&
		    wf_base_clock_ns() - start > options->time_s * WF_NS_PER_S)
			break;
		if (shown)
			fprintf(stderr, "\r\033[Krepetition %u of %u", i + 1,
				options->reps);
		measure_once(rig, outcome, options->rounds);
	}
	if (shown)
		fputs("\r\033[K", stderr);
	for (int type = 0; type < 3 && !err; type++) {
		for (int foreign = 0; foreign < 2 && !err; foreign++)
			err = wf_tools_wd_copies(rig, type, foreign,
						 &outcome->in[type][foreign],
						 &outcome->out[type][foreign]);
	}
	return outcome->failed ? -EIO : err;
}

/* -- what comes out -------------------------------------------------------- */

static void print_rates(const struct outcome *o, int job)
{
	printf("\n%-24s M/s, in flight", loads[job].name);
	for (int i = 0; i < N_FLIGHTS; i++)
		printf(" %7u", flights[i]);
	for (int type = 0; type < 3; type++) {
		printf("\n  %-34s", scenarios[type]);
		for (int i = 0; i < N_FLIGHTS; i++)
			printf(" %7.2f", median(&o->rate[job][type][i]) / 1e6);
	}
	printf("\n  %-34s", "SVA / Share Domain");
	for (int i = 0; i < N_FLIGHTS; i++)
		printf(" %7.2f",
		       median(&o->rate[job][WD_IOMMU_SVA][i]) /
			       median(&o->rate[job][WD_IOMMU_SHARE_DOMAIN][i]));
}

static void print_table(const struct outcome *o, const struct options *options)
{
	double bare = median(&o->bare);

	printf("software device on CPU %d, client on CPU %d, medians of %u "
	       "(10th to 90th percentile)\n\n",
	       options->cpus[1], options->cpus[0], o->bare.n);
	if (o->bare.n < options->reps)
		printf("%u of %u repetitions were left out after %u s: the "
		       "machine does other work\n\n",
		       options->reps - o->bare.n, options->reps,
		       options->time_s);
	printf("cache line there and back  %8.0f ns (%.0f-%.0f)\n", bare,
	       quantile(&o->bare, 0.1), quantile(&o->bare, 0.9));
	printf("empty job, polling         %8.0f ns (%.0f-%.0f)  %.2f x\n",
	       median(&o->empty), quantile(&o->empty, 0.1),
	       quantile(&o->empty, 0.9), median(&o->empty) / bare);
	printf("empty job, client sleeps   %8.0f ns (%.0f-%.0f)\n",
	       median(&o->asleep), quantile(&o->asleep, 0.1),
	       quantile(&o->asleep, 0.9));
	printf("\ncopies");
	for (int i = 0; i < N_LOADS; i++)
		print_rates(o, i);
	printf("\n\none block out and back, ns        SMM   malloc      x\n");
	for (int i = 0; i < N_SIZES; i++)
		printf("  %6zu bytes               %7.1f  %7.1f  %5.2f\n",
		       sizes[i], median(&o->smm[i]), median(&o->malloc[i]),
		       median(&o->smm[i]) / median(&o->malloc[i]));
	printf("\ncopies of a byte besides the work   reserved      foreign\n"
	       "                                    in   out     in   out\n");
	for (int type = 0; type < 3; type++)
		printf("  %-31s %4.0f  %4.0f   %4.0f  %4.0f\n", scenarios[type],
		       o->in[type][0], o->out[type][0], o->in[type][1],
		       o->out[type][1]);
}

static void put_samples(FILE *out, const char *name, const struct samples *s)
{
	fprintf(out, "  \"%s\": [", name);
	for (unsigned int i = 0; i < s->n; i++)
		fprintf(out, "%s%.2f", i ? ", " : "", s->v[i]);
	fputs("],\n", out);
}

static void write_json(const struct outcome *o, FILE *out)
{
	char name[64];

	fputs("{\n", out);
	put_samples(out, "line_round_trip_ns", &o->bare);
	put_samples(out, "empty_job_ns", &o->empty);
	put_samples(out, "empty_job_asleep_ns", &o->asleep);
	for (int i = 0; i < N_LOADS * 3 * N_FLIGHTS; i++) {
		int job = i / 3 / N_FLIGHTS, type = i / N_FLIGHTS % 3;
		int flight = i % N_FLIGHTS;

		snprintf(name, sizeof(name), "jobs_per_s %s %u of %s",
			 scenarios[type], flights[flight], loads[job].name);
		put_samples(out, name, &o->rate[job][type][flight]);
	}
	for (int i = 0; i < N_SIZES; i++) {
		snprintf(name, sizeof(name), "smm_ns %zu", sizes[i]);
		put_samples(out, name, &o->smm[i]);
		snprintf(name, sizeof(name), "malloc_ns %zu", sizes[i]);
		put_samples(out, name, &o->malloc[i]);
	}
	fputs("  \"copies\": {", out);
	for (int type = 0; type < 3; type++)
		fprintf(out, "%s\"%s\": [%.2f, %.2f, %.2f, %.2f]",
			type ? ", " : "", scenarios[type], o->in[type][0],
			o->out[type][0], o->in[type][1], o->out[type][1]);
	fputs("}\n}\n", out);
}

int wf_tools_bench_wd_main(int argc, char **argv)
{
	struct options options = { .rounds = 2000 };
	static struct wf_tools_wd_rig rig;
	static struct outcome outcome;
	static struct wf_tools_output json;
	int err, written;

	err = read_options(&options, argc, argv);
	if (err)
		return err < 0 ? 2 : 0;
	/* Before the work: a typo must not cost the results. */
	written = options.json ? wf_tools_output_open(&json, options.json) : 0;
	if (written) {
		fprintf(stderr, "weft bench wd: cannot write %s: %s\n",
			options.json, strerror(-written));
		return 1;
	}
	wf_tools_output_guard(&json);
	if (options.cpus[0] == options.cpus[1])
		fputs("weft bench wd: one CPU for both: these are times of "
		      "task switches\n",
		      stderr);
	memcpy(rig.cpus, options.cpus, sizeof(rig.cpus));
	err = wf_tools_wd_rig_open(&rig);
	if (!err)
		err = measure(&rig, &outcome, &options);
	wf_tools_wd_rig_close(&rig);
	if (err)
		fprintf(stderr, "weft bench wd: %s%s\n", strerror(-err),
			err == -EIO ? ": the device process has ended, or did "
				      "not answer for long (a busy machine?)" :
				      "");
	else
		print_table(&outcome, &options);
	if (json.file && !err)
		write_json(&outcome, json.file);
	written = wf_tools_output_close(&json);
	if (written)
		fprintf(stderr, "weft bench wd: cannot write %s: %s\n",
			options.json, strerror(-written));
	err = err ? err : written;
	return err ? 1 : 0;
}
