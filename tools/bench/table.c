/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table on the terminal: medians, and ratios computed from the medians
 * shown. It must not hide a failure: the reason for each missing number is
 * below the table.
 */
#include "tools/bench/report.h"
#include "tools/bench/size.h"

#include <math.h>
#include <string.h>

enum { CELL = 24 };

void wf_tools_table_head(const struct wf_tools_report *r, FILE *out)
{
	const struct wf_tools_machine *m = &r->machine;
	const struct wf_tools_plan *plan = r->plan;
	char over[192];

	fprintf(out, "CPU       %s, %u on line%s%s%s\n", m->cpu, m->n_cpus,
		m->virtual_on[0] ? ", virtual (" : "", m->virtual_on,
		m->virtual_on[0] ? ")" : "");
	fprintf(out, "system    %s, governor %s, load %.2f\n", m->kernel,
		m->governor, m->load);
	if (m->load >= m->n_cpus)
		fputs("          other programs use the CPUs: expect figures that "
		      "are too slow and do not repeat\n",
		      out);
	if (plan->link.over == WF_TOOLS_OVER_HOSTS)
		fprintf(out, "pinning   CPU %d here, the server's there\n",
			plan->cpus[0]);
	else
		fprintf(out, "pinning   CPU %d and CPU %d%s\n", plan->cpus[0],
			plan->cpus[1],
			m->siblings ?
				", threads of one core: expect other numbers "
				"across cores" :
				"");
	fprintf(out, "runs      %u repetition%s of %.0f ms, taken in turns\n",
		plan->reps, plan->reps == 1 ? "" : "s",
		(double)plan->run_ns / 1e6);
	if (plan->mpi_hosts && plan->link.over == WF_TOOLS_OVER_NODE)
		fprintf(out, "over      a rank on each of %s, by mpirun\n",
			plan->mpi_hosts);
	if (plan->link.over != WF_TOOLS_OVER_NODE)
		fprintf(out, "over      %s\n",
			wf_tools_link_describe(&plan->link, over,
					       sizeof(over)));
	if (plan->more)
		fprintf(out,
			"more      bandwidth and rate: %u messages a batch, by "
			"FI_MORE (libfabric providers only)\n",
			plan->more);
	if (plan->rewrite)
		fputs("rewrite   latency: before each message its sender "
		      "writes the whole buffer anew; the\n"
		      "          time of that is measured on both sides "
		      "and subtracted (libfabric providers only)\n",
		      out);
	if (plan->memfd)
		fputs("memfd     buffers lie in a memfd that cannot shrink "
		      "(libfabric providers only)\n",
		      out);
	if (plan->verify)
		fputs("verify    every byte is written and checked inside the "
		      "time shown (libfabric providers only)\n",
		      out);
}

static const char *number(double value, char buf[CELL])
{
	int digits = value < 10 ? 2 : value < 100 ? 1 : 0;

	snprintf(buf, CELL, "%.*f", digits, value);
	return buf;
}

static const char *latency(double ns, char buf[CELL])
{
	if (ns < 10e3)
		snprintf(buf, CELL, "%.0f ns", ns);
	else if (ns < 10e6)
		snprintf(buf, CELL, "%.*f us", ns < 100e3, ns / 1e3);
	else
		snprintf(buf, CELL, "%.*f ms", ns < 100e6, ns / 1e6);
	return buf;
}

static const char *value(enum wf_tools_test test, size_t size, double ns,
			 char buf[CELL])
{
	if (wf_tools_test_get(test)->unit == WF_TOOLS_UNIT_TIME)
		return latency(ns, buf);
	return number(wf_tools_series_value(test, size, ns), buf);
}

/* Whether a series gets a column of this test. */
static bool has_column(const struct wf_tools_series *s, enum wf_tools_test test)
{
	return s->kind != WF_TOOLS_SERIES_HANDOFF &&
	       wf_tools_series_covers(s, test, 1) &&
	       (s->kept || !s->failure[0]);
}

static void write_title(const struct wf_tools_report *r,
			enum wf_tools_test test, FILE *out)
{
	const struct wf_tools_plan *plan = r->plan;
	const struct wf_tools_test_info *info = wf_tools_test_get(test);
	const char *name = r->series[0]->name;

	fprintf(out, "\n%s", info->title);
	if (info->messages && r->series[0]->kind != WF_TOOLS_SERIES_MPI)
		fputs(plan->tagged ? ", tagged" : ", plain", out);
	if (info->window)
		fprintf(out, ", window %u", plan->window[test]);
	if (info->unit == WF_TOOLS_UNIT_RATE)
		fputs(", millions a second", out);
	else if (info->unit != WF_TOOLS_UNIT_TIME)
		fprintf(out, ", %s", wf_tools_test_unit(test));
	fputc('\n', out);
	fprintf(out, "Medians of %u; spread: 10th to 90th percentile",
		plan->reps);
	if (r->n_series > 1)
		fprintf(out, "; x: %s / other, %s 1 is better for %s", name,
			wf_tools_test_is_more(test) ? "above" : "below", name);
	fputc('\n', out);
}

static void write_columns(const struct wf_tools_report *r,
			  enum wf_tools_test test, FILE *out)
{
	unsigned i;

	fprintf(out, "%6s", wf_tools_test_axis(test));
	for (i = 0; i < r->n_series; i++) {
		if (!has_column(r->series[i], test))
			continue;
		fprintf(out, " %11s %6s", r->series[i]->name,
			i ? "x" : "spread");
	}
	fputc('\n', out);
}

static void write_cell(const struct wf_tools_report *r, enum wf_tools_test test,
		       unsigned index, unsigned which,
		       const struct wf_tools_stats *own, FILE *out)
{
	const struct wf_tools_series *s = r->series[which];
	size_t size = r->plan->sizes[test].v[index];
	struct wf_tools_stats stats;
	char text[CELL];
	double ratio;

	if (!wf_tools_series_stats(s, test, index, &stats)) {
		fprintf(out, " %11s %6s",
			s->cells[test][index].error[0] ? "failed" : "-", "");
		return;
	}
	fprintf(out, " %11s", value(test, size, stats.median, text));
	if (!which) {
		fprintf(out, " %5.1f%%",
			100 * (stats.high - stats.low) /
				(stats.median > 0 ? stats.median : 1));
		return;
	}
	if (!own) {
		fprintf(out, " %6s", "");
		return;
	}
	ratio = own->median / stats.median;
	if (wf_tools_test_is_more(test))
		ratio = 1 / ratio;
	fprintf(out, " %6.2f", ratio);
}

static void write_test(const struct wf_tools_report *r, enum wf_tools_test test,
		       FILE *out)
{
	const struct wf_tools_sizes *sizes = &r->plan->sizes[test];
	struct wf_tools_stats own;
	char text[WF_TOOLS_SIZE_TEXT];
	unsigned i, k;
	bool measured;

	write_title(r, test, out);
	write_columns(r, test, out);
	for (i = 0; i < sizes->n; i++) {
		measured = wf_tools_series_stats(r->series[0], test, i, &own);
		fprintf(out, "%6s", wf_tools_size_text(sizes->v[i], text));
		for (k = 0; k < r->n_series; k++) {
			if (has_column(r->series[k], test))
				write_cell(r, test, i, k,
					   measured ? &own : NULL, out);
		}
		fputc('\n', out);
	}
}

static void write_hand_off(const struct wf_tools_report *r, FILE *out)
{
	struct wf_tools_stats stats;
	unsigned i;

	for (i = 0; i < r->n_series; i++) {
		if (r->series[i]->kind != WF_TOOLS_SERIES_HANDOFF)
			continue;
		if (wf_tools_series_total(r->series[i], r->plan,
					  WF_TOOLS_LATENCY, &stats))
			fprintf(out,
				"One cache line handed over: %.0f ns "
				"(%.0f to %.0f)\n",
				stats.median, stats.low, stats.high);
	}
}

/* Repetitions of a series that ended early: of its fullest cell. */
static unsigned reps_of(const struct wf_tools_report *r,
			const struct wf_tools_series *s)
{
	unsigned most = 0, t, i;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; i < r->plan->sizes[t].n; i++) {
			if (s->cells[t][i].n > most)
				most = s->cells[t][i].n;
		}
	}
	return most;
}

static void write_failures(const struct wf_tools_report *r,
			   const struct wf_tools_series *s, FILE *out)
{
	const struct wf_tools_cell *cell;
	char text[WF_TOOLS_SIZE_TEXT];
	unsigned t, i;

	if (s->failure[0] && s->kept)
		fprintf(out, "  %s: %s; its column has %u of %u repetitions\n",
			s->name, s->failure, reps_of(r, s), r->plan->reps);
	else if (s->failure[0])
		fprintf(out, "  %s: %s\n", s->name, s->failure);
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; i < r->plan->sizes[t].n; i++) {
			cell = &s->cells[t][i];
			if (!cell->error[0])
				continue;
			wf_tools_size_text(r->plan->sizes[t].v[i], text);
			fprintf(out, "  %s, %s of %s: %s\n", s->name,
				wf_tools_test_get(t)->word, text, cell->error);
		}
	}
}

static bool has_failures(const struct wf_tools_series *s)
{
	unsigned t, i;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; i < WF_TOOLS_MAX_SIZES; i++) {
			if (s->cells[t][i].error[0])
				return true;
		}
	}
	return s->failure[0];
}

static void write_disturbed(const struct wf_tools_report *r, FILE *out)
{
	unsigned kept = 0, disturbed = 0, i;

	for (i = 0; i < r->n_series; i++) {
		kept += r->series[i]->kept;
		disturbed += r->series[i]->disturbed;
	}
	if (disturbed)
		fprintf(out,
			"\nIn %u of %u runs something else took a CPU away, "
			"also when tried again.\n%s",
			disturbed, kept,
			disturbed > kept / 4 ?
				"These figures describe a busy machine, not the "
				"providers: measure again when it is idle, or "
				"with `chrt -f 1`.\n" :
				"");
}

void wf_tools_table_write(const struct wf_tools_report *r, FILE *out)
{
	const struct wf_tools_series *s;
	bool failures = false;
	unsigned i, t;

	for (i = 0; i < r->n_series; i++) {
		s = r->series[i];
		failures |= has_failures(s);
		if (s->kind == WF_TOOLS_SERIES_RING)
			fprintf(out,
				"%-9s bare slots in shared memory: the "
				"floor\n",
				s->name);
		else if (s->about[0] && strcmp(s->about, s->name))
			fprintf(out, "%-9s %s%s%s\n", s->name, s->about,
				s->path[0] ? ", from " : "", s->path);
	}
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (!r->plan->tests[t])
			continue;
		write_test(r, t, out);
		if (t == WF_TOOLS_LATENCY)
			write_hand_off(r, out);
	}
	write_disturbed(r, out);
	if (failures)
		fputs("\nNot measured:\n", out);
	for (i = 0; i < r->n_series; i++)
		write_failures(r, r->series[i], out);
}
