/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of events. Every line goes into a hash, which two runs of one seed
 * must share, and into a ring whose end is printed when a run fails. Lines
 * contain no addresses, because these are not part of the scenario.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oracle.h"
#include "sim.h"

#define LINES 200
#define LINE_BYTES 160

static char lines[LINES][LINE_BYTES];
static unsigned int next_line;

static void keep(const char *text)
{
	uint64_t hash = sim.trace_hash;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
	sim.trace_hash = hash;
	snprintf(lines[next_line++ % LINES], LINE_BYTES, "%s", text);
	if (sim.trace)
		printf("%s\n", text);
}

static void write_line(char text[LINE_BYTES], const char *fmt, va_list args)
{
	const struct sim_task *task = sim.current;
	int at;

	at = snprintf(text, LINE_BYTES, "%9llu.%03llu us ",
		      (unsigned long long)(sim.now / 1000),
		      (unsigned long long)(sim.now % 1000));
	if (task && task->proc)
		at += snprintf(text + at, LINE_BYTES - (size_t)at,
			       "p%u.%u t%u ", task->proc->number,
			       task->proc->life, task->number);
	else
		at += snprintf(text + at, LINE_BYTES - (size_t)at, "director ");
	vsnprintf(text + at, LINE_BYTES - (size_t)at, fmt, args);
}

void sim_trace(const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (sim.quiet)
		return;
	va_start(args, fmt);
	write_line(text, fmt, args);
	va_end(args);
	keep(text);
}

void sim_note(const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (sim.quiet || !sim.trace)
		return;
	va_start(args, fmt);
	write_line(text, fmt, args);
	va_end(args);
	printf("%s\n", text);
}

void sim_trace_tail(FILE *to)
{
	unsigned int from = next_line > LINES ? next_line - LINES : 0;

	for (unsigned int i = from; i < next_line; i++)
		fprintf(to, "%s\n", lines[i % LINES]);
}

/* Failures of one kind end with the same status: shrink.c compares them. */
static int kind_of(const char *fmt)
{
	unsigned int hash = 0;

	while (*fmt)
		hash = hash * 31 + (unsigned char)*fmt++;
	return 10 + (int)(hash % 200);
}

void sim_fail(const char *fmt, ...)
{
	va_list args;

	sim.quiet = true;
	fflush(stdout);
	if (!sim.trace) {
		fprintf(stderr, "last events:\n");
		sim_trace_tail(stderr);
	}
	fprintf(stderr, "FAILED at %llu.%03llu us of virtual time",
		(unsigned long long)(sim.now / 1000),
		(unsigned long long)(sim.now % 1000));
	if (sim.current && sim.current->proc)
		fprintf(stderr, ", process %u life %u",
			sim.current->proc->number, sim.current->proc->life);
	fprintf(stderr, ": ");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, "\n");
	oracle_print(stderr);
	sim_scenario_print(&sim.s, stderr);
	fflush(NULL);
	_exit(kind_of(fmt));
}
