/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: files named on the command line, or
 * random inputs for some seconds, the same in every run. `driver -s N` runs the
 * inputs starting with number N, to reproduce a crash. `driver -s N COUNT` runs
 * COUNT of them, however long that takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "target.h"

#define LARGEST 4096
#define SECONDS 2
#define AT_LEAST 300 /* inputs, even if the build is slow */
#define BATCH 500

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void run_random(uint64_t number)
{
	static uint8_t input[LARGEST];
	uint64_t state = number;
	size_t size = 16 + next_random(&state) % (LARGEST - 16);

	for (size_t i = 0; i < size; i++)
		input[i] = (uint8_t)next_random(&state);
	LLVMFuzzerTestOneInput(input, size);
}

static int run_file(const char *path)
{
	static uint8_t input[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		return 1;
	}
	size = fread(input, 1, sizeof(input), file);
	fclose(file);
	LLVMFuzzerTestOneInput(input, size);
	return 0;
}

/* A hostile peer causes warnings all the time. */
static void keep_quiet(enum wf_log_level level, const char *func, int line,
		       const char *text)
{
	(void)level;
	(void)func;
	(void)line;
	(void)text;
}

int main(int argc, char **argv)
{
	uint64_t first = 0, count = AT_LEAST, batch = BATCH, number;
	time_t end = time(NULL) + SECONDS;

	wf_base_log_set_sink(keep_quiet);
	if (argc >= 3 && !strcmp(argv[1], "-s")) {
		first = strtoull(argv[2], NULL, 0);
		if (argc > 3) {
			count = strtoull(argv[3], NULL, 0);
			batch = count / 100 + 1;
			end = 0;
		}
	} else if (argc > 1) {
		for (int i = 1; i < argc; i++) {
			if (run_file(argv[i]))
				return 1;
		}
		return 0;
	}
	for (number = first;
	     number < first + count || (end && time(NULL) < end); number++) {
		if (number % batch == 0) {
			printf("from input %llu\n", (unsigned long long)number);
			fflush(stdout);
		}
		run_random(number);
	}
	printf("%llu inputs: %llu slots, %llu replies; %llu completions, "
	       "%llu failures; gave up %llu and %llu times\n",
	       (unsigned long long)(number - first),
	       (unsigned long long)wf_fuzz_stats.slots,
	       (unsigned long long)wf_fuzz_stats.replies,
	       (unsigned long long)wf_fuzz_stats.completed,
	       (unsigned long long)wf_fuzz_stats.failed,
	       (unsigned long long)wf_fuzz_stats.broken,
	       (unsigned long long)wf_fuzz_stats.broken_sender);
	/* Otherwise the inputs did not reach anything. */
	return wf_fuzz_stats.completed && wf_fuzz_stats.failed ? 0 : 1;
}
