/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole commands in turns: from a file to a file, both in memory where
 * /dev/shm is. Time on the clock, since threads are what is compared; the
 * processor's time is printed beside it, since others may want the machine.
 */
#include "tools/comp/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define ARGS 8
#define ROUNDS_MOST 101
#define SELF "weft"

struct contest {
	const char *args[ARGS];
	bool missing;
	double wall[ROUNDS_MOST];
	double cpu[ROUNDS_MOST];
	uint64_t size;
};

static const char *self, *preload;
static char folder[64], plain[96], packed[96], scratch[96];

/* Runs it once; false if it cannot be run or fails. */
static bool run_once(const struct contest *c, const char *in, const char *out,
		     double *wall, double *cpu)
{
	uint64_t start = wf_base_clock_ns();
	struct rusage used;
	int status;
	pid_t pid = fork();

	if (!pid) {
		int i = open(in, O_RDONLY);
		int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		int null = open("/dev/null", O_WRONLY);

		dup2(i, STDIN_FILENO);
		dup2(o, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		if (!strcmp(c->args[0], "preloaded")) {
			setenv("LD_PRELOAD", preload ? preload : "", 1);
			execvp(c->args[1], (char **)(uintptr_t)(c->args + 1));
		} else if (!strcmp(c->args[0], SELF)) {
			execv(self, (char **)(uintptr_t)c->args);
		} else {
			execvp(c->args[0], (char **)(uintptr_t)c->args);
		}
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status)
		return false;
	*wall = (double)(wf_base_clock_ns() - start) / 1e6;
	*cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
	return true;
}

static void run_all(struct contest *all, size_t n, unsigned int rounds,
		    const char *in, const char *out)
{
	for (unsigned int r = 0; r < rounds; r++) {
		for (size_t i = 0; i < n; i++) {
			struct stat st;

			if (all[i].missing)
				continue;
			if (!run_once(&all[i], in, out, &all[i].wall[r],
				      &all[i].cpu[r]) ||
			    stat(out, &st))
				all[i].missing = true;
			else
				all[i].size = (uint64_t)st.st_size;
			if (isatty(STDERR_FILENO))
				fprintf(stderr, "\r%u/%u %s\033[K", r + 1,
					rounds, all[i].args[0]);
		}
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static const char *title(const struct contest *c, char *buf, size_t room)
{
	size_t at = 0;

	buf[0] = '\0';
	for (int i = 0; i < ARGS && c->args[i] && at < room; i++) {
		if (strlen(c->args[i]) > 20)
			break;
		at += (size_t)snprintf(buf + at, room - at, "%s%s",
				       i ? " " : "", c->args[i]);
	}
	return buf;
}

/* One line each; speed beside the one at @base, or none. */
static void show(struct contest *all, size_t n, unsigned int rounds,
		 size_t plain_len)
{
	char name[80];

	for (size_t i = 0; i < n; i++) {
		double wall, cpu;

		title(&all[i], name, sizeof(name));
		if (all[i].missing) {
			printf("%-34s not here, or it failed\n", name);
			continue;
		}
		wall = wf_tools_comp_median(all[i].wall, rounds);
		cpu = wf_tools_comp_median(all[i].cpu, rounds);
		all[i].wall[0] = wall;
		printf("%-34s %10llu bytes %8.1f ms %8.1f ms cpu %8.1f MB/s\n",
		       name, (unsigned long long)all[i].size, wall, cpu,
		       (double)plain_len / wall / 1e3);
	}
}

static void compare(const char *what, const struct contest *ours,
		    const struct contest *theirs)
{
	if (ours->missing || theirs->missing)
		return;
	printf("  %-44s %5.2f x, size %+.2f %%\n", what,
	       theirs->wall[0] / ours->wall[0],
	       100.0 * ((double)ours->size / (double)theirs->size - 1));
}

static void race_pack(const struct wf_comp_plan *plan)
{
	static struct contest all[] = {
		{ .args = { SELF, "gzip", "-1", "-p", "2", "-c" } },
		{ .args = { SELF, "gzip", "-6", "-p", "2", "-c" } },
		{ .args = { SELF, "gzip", "-1", "-p", "1", "-c" } },
		{ .args = { "igzip", "-1", "-c" } },
		{ .args = { "igzip", "-2", "-c" } },
		{ .args = { "pigz", "-p2", "-1", "-c" } },
		{ .args = { "pigz", "-p2", "-6", "-c" } },
		{ .args = { "libdeflate-gzip", "-6", "-c" } },
		{ .args = { "gzip", "-6", "-c" } },
	};
	size_t n = sizeof(all) / sizeof(all[0]);

	puts("\nCommands, packing");
	run_all(all, n, plan->rounds, plain, scratch);
	show(all, n, plan->rounds, plan->len);
	compare("weft -1 -p2 beside igzip -1", &all[0], &all[3]);
	compare("weft -1 -p2 beside pigz -p2 -1", &all[0], &all[5]);
	compare("weft -6 -p2 beside pigz -p2 -6", &all[1], &all[6]);
}

static void race_unpack(const struct wf_comp_plan *plan, const char *who,
			const char *const *packer)
{
	struct contest all[] = {
		{ .args = { SELF, "gunzip", "-p", "2", "-c" } },
		{ .args = { "igzip", "-d", "-c" } },
		{ .args = { "libdeflate-gunzip", "-c" } },
		{ .args = { "pigz", "-p2", "-d", "-c" } },
		{ .args = { "gzip", "-d", "-c" } },
	};
	size_t n = sizeof(all) / sizeof(all[0]), best = 0;
	struct contest make = { .args = { NULL } };
	double wall, cpu;

	for (int i = 0; i < ARGS && packer[i]; i++)
		make.args[i] = packer[i];
	if (!run_once(&make, plain, packed, &wall, &cpu))
		return;
	printf("\nCommands, unpacking what %s wrote\n", who);
	run_all(all, n, plan->rounds, packed, scratch);
	show(all, n, plan->rounds, plan->len);
	for (size_t i = 1; i < n; i++) {
		if (!all[i].missing &&
		    (!best || all[i].wall[0] < all[best].wall[0]))
			best = i;
	}
	if (best)
		compare("weft -p2 beside the fastest other", &all[0],
			&all[best]);
}

static void race_python(const struct wf_comp_plan *plan)
{
	static const char program[] =
		"import sys,zlib,time\n"
		"d=sys.stdin.buffer.read()\n"
		"t=time.process_time();c=zlib.compress(d,6)\n"
		"t1=time.process_time();zlib.decompress(c)\n"
		"t2=time.process_time()\n"
		"print(len(c),t1-t,t2-t1)\n";
	struct contest all[] = {
		{ .args = { "preloaded", "python3", "-c", program } },
		{ .args = { "python3", "-c", program } },
	};
	double in[2][ROUNDS_MOST], out[2][ROUNDS_MOST], size[2] = { 0, 0 };

	if (!plan->library) {
		puts("\npython3: libweft-z.so is not found");
		return;
	}
	for (unsigned int r = 0; r < plan->rounds; r++) {
		for (int i = 0; i < 2; i++) {
			double wall, cpu;
			FILE *answer;

			if (!run_once(&all[i], plain, scratch, &wall, &cpu))
				return;
			answer = fopen(scratch, "r");
			if (!answer || fscanf(answer, "%lf %lf %lf", &size[i],
					      &in[i][r], &out[i][r]) != 3)
				size[i] = 0;
			if (answer)
				fclose(answer);
		}
	}
	if (size[0] <= 0 || size[1] <= 0)
		return;
	puts("\npython3, zlib.compress(data, 6) and decompress, processor time");
	for (int i = 0; i < 2; i++) {
		in[i][0] = wf_tools_comp_median(in[i], plan->rounds);
		out[i][0] = wf_tools_comp_median(out[i], plan->rounds);
		printf("%-34s %10.0f bytes %8.1f ms, back %8.1f ms\n",
		       i ? "plain zlib" : "libweft-z.so preloaded", size[i],
		       in[i][0] * 1e3, out[i][0] * 1e3);
	}
	printf("  %-44s %5.2f x, size %+.2f %%; back %.2f x\n",
	       "weft beside zlib", in[1][0] / in[0][0],
	       100 * (size[0] / size[1] - 1), out[1][0] / out[0][0]);
}

int wf_tools_comp_commands(const struct wf_comp_plan *plan)
{
	static const char *const ours[] = { SELF, "gzip", "-6", "-c", NULL };
	static const char *const fast[] = { SELF, "gzip", "-1", "-c", NULL };
	static const char *const theirs[] = { "gzip", "-6", "-c", NULL };
	FILE *file;
	int ret = 0;

	self = plan->self;
	preload = plan->library;
	snprintf(folder, sizeof(folder), "%s/weft-bench-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(folder))
		return -errno;
	snprintf(plain, sizeof(plain), "%s/plain", folder);
	snprintf(packed, sizeof(packed), "%s/packed", folder);
	snprintf(scratch, sizeof(scratch), "%s/scratch", folder);
	file = fopen(plain, "wb");
	if (!file || fwrite(plan->data, 1, plan->len, file) != plan->len)
		ret = -EIO;
	if (file && fclose(file))
		ret = -EIO;
	if (!ret) {
		race_pack(plan);
		race_unpack(plan, "weft gzip -6", ours);
		race_unpack(plan, "weft gzip -1", fast);
		race_unpack(plan, "gzip -6", theirs);
		race_python(plan);
	} else {
		fprintf(stderr, "weft bench comp: %s: cannot write\n", folder);
	}
	unlink(plain);
	unlink(packed);
	unlink(scratch);
	rmdir(folder);
	return ret;
}
