/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results for other programs: JSON with every sample, CSV with a line for each
 * median. Field names are an interface: fields may be added, not changed.
 */
#include "tools/bench/report.h"

#include "tools/json.h"

#include <math.h>

static void json_field(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\": ", name);
	wf_tools_json_quote(out, text);
}

static void json_machine(const struct wf_tools_report *r, FILE *out)
{
	const struct wf_tools_machine *m = &r->machine;

	fputs("  \"machine\": {\n    ", out);
	json_field(out, "cpu", m->cpu);
	fputs(",\n    ", out);
	json_field(out, "kernel", m->kernel);
	fputs(",\n    ", out);
	json_field(out, "governor", m->governor);
	fputs(",\n    ", out);
	json_field(out, "virtual", m->virtual_on);
	fprintf(out,
		",\n    \"cpus_online\": %u,\n    \"load\": %.2f,\n"
		"    \"siblings\": %s\n  },\n",
		m->n_cpus, m->load, m->siblings ? "true" : "false");
}

static void json_plan(const struct wf_tools_report *r, FILE *out)
{
	const struct wf_tools_plan *plan = r->plan;

	fprintf(out,
		"  \"plan\": {\n    \"api\": \"%s\",\n    \"reps\": %u,\n"
		"    \"run_ms\": %.0f,\n    \"cpus\": [%d, %d],\n"
		"    \"rewrite\": %s,\n    \"memfd\": %s,\n"
		"    \"verify\": %s,\n"
		"    \"over\": \"%s\",\n    \"mtu\": %u,\n    \"more\": %u,\n"
		"    \"window_bandwidth\": %u,\n    \"window_rate\": %u\n"
		"  },\n",
		plan->tagged ? "tagged" : "msg", plan->reps,
		(double)plan->run_ns / 1e6, plan->cpus[0], plan->cpus[1],
		plan->rewrite ? "true" : "false",
		plan->memfd ? "true" : "false", plan->verify ? "true" : "false",
		wf_tools_link_word(plan->link.over),
		plan->link.over == WF_TOOLS_OVER_VETH ? plan->link.mtu : 0,
		plan->more, plan->window[WF_TOOLS_BANDWIDTH],
		plan->window[WF_TOOLS_RATE]);
	if (plan->link.over != WF_TOOLS_OVER_HOSTS)
		return;
	fputs("  \"host\": {", out);
	json_field(out, "name", plan->link.host.name);
	fputs(", ", out);
	json_field(out, "address", plan->link.host.address);
	fputs(", ", out);
	json_field(out, "interface", plan->link.interface);
	fputs("},\n", out);
}

static void json_series(const struct wf_tools_report *r, FILE *out)
{
	static const char *const kinds[] = {
		[WF_TOOLS_SERIES_FABRIC] = "libfabric",
		[WF_TOOLS_SERIES_UCX] = "ucx",
		[WF_TOOLS_SERIES_MPI] = "mpi",
		[WF_TOOLS_SERIES_SOCKET] = "socket",
		[WF_TOOLS_SERIES_RING] = "floor",
		[WF_TOOLS_SERIES_HANDOFF] = "floor",
	};
	unsigned i;

	fputs("  \"series\": [", out);
	for (i = 0; i < r->n_series; i++) {
		fprintf(out, "%s\n    {", i ? "," : "");
		json_field(out, "name", r->series[i]->name);
		fputs(", ", out);
		json_field(out, "kind", kinds[r->series[i]->kind]);
		fputs(", ", out);
		json_field(out, "about", r->series[i]->about);
		fputs(", ", out);
		json_field(out, "error", r->series[i]->failure);
		fprintf(out, ", \"samples\": %u, \"disturbed\": %u}",
			r->series[i]->kept, r->series[i]->disturbed);
	}
	fputs("\n  ],\n", out);
}

static void json_cell(const struct wf_tools_report *r, unsigned which,
		      enum wf_tools_test test, unsigned index, FILE *out)
{
	const struct wf_tools_series *s = r->series[which];
	const struct wf_tools_cell *cell = &s->cells[test][index];
	size_t size = r->plan->sizes[test].v[index];
	struct wf_tools_stats stats;
	unsigned i;

	fprintf(out, "    {\"test\": \"%s\", \"size\": %zu, ",
		wf_tools_test_get(test)->word, size);
	json_field(out, "series", s->name);
	if (wf_tools_series_stats(s, test, index, &stats))
		fprintf(out,
			", \"median_ns\": %.2f, \"p10_ns\": %.2f, "
			"\"p90_ns\": %.2f, \"value\": %.4f, \"unit\": \"%s\"",
			stats.median, stats.low, stats.high,
			wf_tools_series_value(test, size, stats.median),
			wf_tools_test_unit(test));
	if (cell->error[0]) {
		fputs(", ", out);
		json_field(out, "error", cell->error);
	}
	fputs(", \"samples_ns\": [", out);
	for (i = 0; i < cell->n; i++)
		fprintf(out, "%s%.2f", i ? ", " : "", cell->ns[i]);
	fputs("]}", out);
}

/* Calls write for each cell that was to be measured. */
static void each_cell(const struct wf_tools_report *r, const char *between,
		      void (*write)(const struct wf_tools_report *, unsigned,
				    enum wf_tools_test, unsigned, FILE *),
		      FILE *out)
{
	bool first = true;
	unsigned t, i, k;

	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		for (i = 0; r->plan->tests[t] && i < r->plan->sizes[t].n; i++) {
			for (k = 0; k < r->n_series; k++) {
				if (!wf_tools_series_covers(
					    r->series[k], t,
					    r->plan->sizes[t].v[i]))
					continue;
				fputs(first ? "" : between, out);
				first = false;
				write(r, k, t, i, out);
			}
		}
	}
}

void wf_tools_export_json(const struct wf_tools_report *r, FILE *out)
{
	fputs("{\n  ", out);
	json_field(out, "time", r->machine.time);
	fputs(",\n", out);
	json_machine(r, out);
	json_plan(r, out);
	json_series(r, out);
	fputs("  \"results\": [\n", out);
	each_cell(r, ",\n", json_cell, out);
	fputs("\n  ]\n}\n", out);
}

/* Errors may contain commas and quotes, so the field is quoted. */
static void csv_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void csv_cell(const struct wf_tools_report *r, unsigned which,
		     enum wf_tools_test test, unsigned index, FILE *out)
{
	const struct wf_tools_series *s = r->series[which];
	const struct wf_tools_cell *cell = &s->cells[test][index];
	size_t size = r->plan->sizes[test].v[index];
	struct wf_tools_stats stats;

	fprintf(out, "%s,%zu,", wf_tools_test_get(test)->word, size);
	csv_text(out, s->name);
	if (wf_tools_series_stats(s, test, index, &stats))
		fprintf(out, ",%u,%.2f,%.2f,%.2f,%.4f,%s,", cell->n,
			stats.median, stats.low, stats.high,
			wf_tools_series_value(test, size, stats.median),
			wf_tools_test_unit(test));
	else
		fprintf(out, ",%u,,,,,%s,", cell->n, wf_tools_test_unit(test));
	csv_text(out, cell->error[0] ? cell->error : s->failure);
	fputc('\n', out);
}

void wf_tools_export_csv(const struct wf_tools_report *r, FILE *out)
{
	fputs("test,size,series,reps,median_ns,p10_ns,p90_ns,value,unit,"
	      "error\n",
	      out);
	each_cell(r, "", csv_cell, out);
}
