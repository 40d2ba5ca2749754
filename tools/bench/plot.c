/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws the results as an SVG: a panel for each test, with both axes
 * logarithmic and the ratio to each other provider in a strip below it, or bars
 * if there is only one size. It needs no library and no font except sans-serif,
 * and must not show anything that was not measured.
 */
#include "tools/bench/report.h"
#include "tools/bench/size.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 960,
	HEAD = 84,
	LEFT = 92,
	RIGHT = 150, /* room for the legend */
	PLOT_HEIGHT = 360,
	RATIO_GAP = 16,
	RATIO_HEIGHT = 110,
	PANEL_TOP = 44,
	PANEL_BOTTOM = 58,
	BAR = 30,
};

#define PLOT_WIDTH (WIDTH - LEFT - RIGHT)

/* The coordinates of one panel: logarithms of the values at its edges. */
struct panel {
	const struct wf_tools_report *report;
	enum wf_tools_test test;
	double top, height; /* of the plot, in pixels */
	double x0, x1, y0, y1;
	FILE *out;
};

static bool is_floor(const struct wf_tools_series *s)
{
	return s->kind == WF_TOOLS_SERIES_RING ||
	       s->kind == WF_TOOLS_SERIES_HANDOFF;
}

/* Colours that the colour-blind can tell apart (Okabe and Ito). */
static const char *colour_of(const struct wf_tools_report *r, unsigned which)
{
	static const char *const colours[] = {
		"#0072b2", "#009e73", "#cc79a7", "#e69f00",
		"#56b4e9", "#8a6d00", "#5b3fa0", "#444444",
	};
	unsigned i, n = 0;

	if (!which)
		return "#d55e00";
	if (is_floor(r->series[which]))
		return "#888888";
	for (i = 1; i < which; i++)
		n += !is_floor(r->series[i]);
	return colours[n % (sizeof(colours) / sizeof(colours[0]))];
}

static const char *label_of(const struct wf_tools_series *s)
{
	if (s->kind == WF_TOOLS_SERIES_RING)
		return "bare ring";
	if (s->kind == WF_TOOLS_SERIES_HANDOFF)
		return "cache line";
	return s->name;
}

static void write_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void draw_label(FILE *out, double x, double y, const char *style,
		       const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	write_text(out, text);
	fputs("</text>\n", out);
}

static void draw_line(FILE *out, double x0, double y0, double x1, double y1,
		      const char *style)
{
	fprintf(out,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n",
		x0, y0, x1, y1, style);
}

static double x_of(const struct panel *p, double size)
{
	return LEFT + PLOT_WIDTH * (log10(size) - p->x0) / (p->x1 - p->x0);
}

static double y_of(const struct panel *p, double value)
{
	return p->top + p->height * (p->y1 - log10(value)) / (p->y1 - p->y0);
}

static bool get(const struct panel *p, unsigned which, unsigned index,
		struct wf_tools_stats *stats)
{
	size_t size = p->report->plan->sizes[p->test].v[index];
	double swap;

	if (!wf_tools_series_stats(p->report->series[which], p->test, index,
				   stats))
		return false;
	stats->median = wf_tools_series_value(p->test, size, stats->median);
	stats->low = wf_tools_series_value(p->test, size, stats->low);
	stats->high = wf_tools_series_value(p->test, size, stats->high);
	if (stats->low > stats->high) { /* less time, more bytes */
		swap = stats->low;
		stats->low = stats->high;
		stats->high = swap;
	}
	return stats->low > 0;
}

/* A round value as text. */
static const char *say(enum wf_tools_test test, double value, char buf[32])
{
	static const char *const units[][3] = {
		[WF_TOOLS_UNIT_TIME] = { "ns", "us", "ms" },
		[WF_TOOLS_UNIT_BANDWIDTH] = { "MB/s", "GB/s", "TB/s" },
		[WF_TOOLS_UNIT_RATE] = { "M/s", "G/s", "T/s" },
		[WF_TOOLS_UNIT_PERCENT] = { "%", "%", "%" },
		[WF_TOOLS_UNIT_MEMORY] = { "KiB", "MiB", "GiB" },
	};
	enum wf_tools_unit kind = wf_tools_test_get(test)->unit;
	double step = kind == WF_TOOLS_UNIT_MEMORY ? 1024 : 1000;
	unsigned unit = 0;

	while (value >= step && unit < 2 && kind != WF_TOOLS_UNIT_PERCENT) {
		value /= step;
		unit++;
	}
	snprintf(buf, 32, "%.3g %s", value, units[kind][unit]);
	return buf;
}

/* Moves the edges outward to the next 1, 2 or 5 of a decade. */
static void open_edges(struct panel *p, double low, double high)
{
	double decade = pow(10, floor(log10(low)));

	p->y0 = log10(low >= 5 * decade ? 5 * decade :
		      low >= 2 * decade ? 2 * decade :
					  decade);
	decade = pow(10, floor(log10(high)));
	p->y1 = log10(high <= decade	 ? decade :
		      high <= 2 * decade ? 2 * decade :
		      high <= 5 * decade ? 5 * decade :
					   10 * decade);
}

/* Computes the edges from the data. */
static bool scale(struct panel *p)
{
	const struct wf_tools_sizes *sizes = &p->report->plan->sizes[p->test];
	double low = INFINITY, high = 0;
	struct wf_tools_stats stats;
	unsigned i, k;

	for (k = 0; k < p->report->n_series; k++) {
		for (i = 0; i < sizes->n; i++) {
			if (!get(p, k, i, &stats))
				continue;
			low = fmin(low, stats.low);
			high = fmax(high, stats.high);
		}
	}
	if (high <= 0)
		return false;
	open_edges(p, low, fmax(high, low * 1.01));
	p->x0 = log10((double)sizes->v[0]);
	p->x1 = log10((double)sizes->v[sizes->n - 1]);
	return true;
}

static void draw_y_axis(const struct panel *p)
{
	static const int steps[] = { 1, 2, 5 };
	bool fine = p->y1 - p->y0 < 3;
	double value, y;
	char text[32];
	int decade;
	unsigned i;

	for (decade = (int)floor(p->y0); decade <= (int)ceil(p->y1); decade++) {
		for (i = 0; i < 3; i++) {
			value = steps[i] * pow(10, decade);
			if (log10(value) < p->y0 - 1e-9 ||
			    log10(value) > p->y1 + 1e-9)
				continue;
			y = y_of(p, value);
			draw_line(p->out, LEFT, y, LEFT + PLOT_WIDTH, y,
				  i ? "stroke=\"#f0f0f0\"" :
				      "stroke=\"#d8d8d8\"");
			if (i && !fine)
				continue;
			draw_label(p->out, LEFT - 8, y + 4,
				   "text-anchor=\"end\" class=\"tick\"",
				   say(p->test, value, text));
		}
	}
}

static const char *axis_of(enum wf_tools_test test)
{
	static const char *const axes[] = {
		[WF_TOOLS_AXIS_SIZE] = "bytes",
		[WF_TOOLS_AXIS_WORD] = "bytes",
		[WF_TOOLS_AXIS_PEERS] = "peers",
		[WF_TOOLS_AXIS_PROCESSES] = "processes",
	};

	return axes[wf_tools_test_get(test)->axis];
}

static void draw_x_grid(const struct panel *p)
{
	const struct wf_tools_sizes *sizes = &p->report->plan->sizes[p->test];
	unsigned i;

	for (i = 0; i < sizes->n; i++) {
		double x = x_of(p, (double)sizes->v[i]);

		draw_line(p->out, x, p->top, x, p->top + p->height,
			  "stroke=\"#f0f0f0\"");
	}
}

static void draw_x_axis(const struct panel *p)
{
	const struct wf_tools_sizes *sizes = &p->report->plan->sizes[p->test];
	double bottom = p->top + p->height, x, last = -1e9;
	char text[WF_TOOLS_SIZE_TEXT];
	unsigned i;

	for (i = 0; i < sizes->n; i++) {
		x = x_of(p, (double)sizes->v[i]);
		draw_line(p->out, x, bottom, x, bottom + 5,
			  "stroke=\"#333333\"");
		if (x - last < 27) /* no room for its label */
			continue;
		last = x;
		draw_label(p->out, x, bottom + 19,
			   "text-anchor=\"middle\" class=\"tick\"",
			   wf_tools_size_text(sizes->v[i], text));
	}
	draw_label(p->out, LEFT + PLOT_WIDTH / 2.0, bottom + 40,
		   "text-anchor=\"middle\" class=\"axis\"", axis_of(p->test));
}

static const char *dash_of(const struct wf_tools_series *s)
{
	if (s->kind == WF_TOOLS_SERIES_RING)
		return " stroke-dasharray=\"6 4\"";
	if (s->kind == WF_TOOLS_SERIES_HANDOFF)
		return " stroke-dasharray=\"2 3\"";
	return "";
}

static void draw_series(const struct panel *p, unsigned which)
{
	const struct wf_tools_sizes *sizes = &p->report->plan->sizes[p->test];
	const struct wf_tools_series *s = p->report->series[which];
	const char *colour = colour_of(p->report, which);
	struct wf_tools_stats stats;
	bool pen = false;
	unsigned i;
	double x;

	fprintf(p->out,
		"<g stroke=\"%s\" fill=\"%s\">\n<path fill=\"none\" "
		"stroke-width=\"%s\"%s d=\"",
		colour, colour, which ? "1.8" : "3", dash_of(s));
	for (i = 0; i < sizes->n; i++) {
		/* A gap where nothing was measured: no line crosses it. */
		if (!get(p, which, i, &stats)) {
			pen = false;
			continue;
		}
		fprintf(p->out, "%c%.1f %.1f ", pen ? 'L' : 'M',
			x_of(p, (double)sizes->v[i]), y_of(p, stats.median));
		pen = true;
	}
	fputs("\"/>\n", p->out);
	for (i = 0; i < sizes->n && s->kind != WF_TOOLS_SERIES_HANDOFF; i++) {
		if (!get(p, which, i, &stats))
			continue;
		x = x_of(p, (double)sizes->v[i]);
		draw_line(p->out, x, y_of(p, stats.low), x, y_of(p, stats.high),
			  "stroke-opacity=\"0.5\"");
		fprintf(p->out,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" "
			"stroke=\"none\"/>\n",
			x, y_of(p, stats.median), which ? "2.6" : "3.6");
	}
	fputs("</g>\n", p->out);
}

static void draw_legend(const struct panel *p)
{
	struct wf_tools_stats stats;
	double x = LEFT + PLOT_WIDTH + 16, y = p->top + 12;
	char style[128];
	unsigned i, k;
	bool any;

	for (k = 0; k < p->report->n_series; k++) {
		any = false;
		for (i = 0; i < p->report->plan->sizes[p->test].n; i++)
			any |= get(p, k, i, &stats);
		if (!any)
			continue;
		snprintf(style, sizeof(style),
			 "stroke=\"%s\" stroke-width=\"%s\"%s",
			 colour_of(p->report, k), k ? "1.8" : "3",
			 dash_of(p->report->series[k]));
		draw_line(p->out, x, y, x + 26, y, style);
		draw_label(p->out, x + 33, y + 4,
			   k ? "class=\"key\"" :
			       "class=\"key\" font-weight=\"bold\"",
			   label_of(p->report->series[k]));
		y += 22;
	}
}

static void draw_frame(const struct panel *p)
{
	fprintf(p->out,
		"<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
		"fill=\"none\" stroke=\"#333333\"/>\n",
		LEFT, p->top, PLOT_WIDTH, p->height);
}

/* As in the table: the median of the first divided by that of another. */
static bool get_ratio(const struct panel *p, unsigned which, unsigned index,
		      double *ratio)
{
	struct wf_tools_stats own, other;

	if (is_floor(p->report->series[which]) || !get(p, 0, index, &own) ||
	    !get(p, which, index, &other))
		return false;
	*ratio = own.median / other.median;
	return true;
}

/* 1 is always in the strip. False: there is nothing to compare. */
static bool scale_ratio(struct panel *p)
{
	double low = 1, high = 1, ratio;
	bool any = false;
	unsigned i, k;

	for (k = 1; k < p->report->n_series; k++) {
		for (i = 0; i < p->report->plan->sizes[p->test].n; i++) {
			if (!get_ratio(p, k, i, &ratio))
				continue;
			low = fmin(low, ratio);
			high = fmax(high, ratio);
			any = true;
		}
	}
	open_edges(p, low, fmax(high, 1.01));
	return any;
}

static void draw_ratio(const struct panel *p, unsigned which)
{
	const struct wf_tools_sizes *sizes = &p->report->plan->sizes[p->test];
	bool pen = false;
	double ratio;
	unsigned i;

	fprintf(p->out,
		"<path class=\"ratio\" fill=\"none\" stroke=\"%s\" "
		"stroke-width=\"1.8\" d=\"",
		colour_of(p->report, which));
	for (i = 0; i < sizes->n; i++) {
		if (!get_ratio(p, which, i, &ratio)) {
			pen = false;
			continue;
		}
		fprintf(p->out, "%c%.1f %.1f ", pen ? 'L' : 'M',
			x_of(p, (double)sizes->v[i]), y_of(p, ratio));
		pen = true;
	}
	fputs("\"/>\n", p->out);
}

static void draw_ratio_axis(const struct panel *p)
{
	static const double ticks[] = { 0.001, 0.01, 0.02, 0.05, 0.1,
					0.2,   0.5,  1,	   2,	 5,
					10,    20,   50,   100,	 1000 };
	/* Labels only at powers of ten if there is no room for all. */
	bool crowded = p->y1 - p->y0 > 2;
	char text[32];
	double y;
	unsigned i;

	for (i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
		if (log10(ticks[i]) < p->y0 - 1e-9 ||
		    log10(ticks[i]) > p->y1 + 1e-9)
			continue;
		y = y_of(p, ticks[i]);
		draw_line(p->out, LEFT, y, LEFT + PLOT_WIDTH, y,
			  ticks[i] == 1 ? "stroke=\"#333333\"" :
					  "stroke=\"#e4e4e4\"");
		if (crowded &&
		    fabs(log10(ticks[i]) - round(log10(ticks[i]))) > 1e-9)
			continue;
		snprintf(text, sizeof(text), "%g", ticks[i]);
		draw_label(p->out, LEFT - 8, y + 4,
			   "text-anchor=\"end\" class=\"tick\"", text);
	}
}

/* Below the curves, over the same sizes; the better side is shaded. */
static void draw_ratios(const struct panel *curves)
{
	bool more = wf_tools_test_is_more(curves->test);
	struct panel p = *curves;
	double one, x = LEFT + PLOT_WIDTH + 16;
	char text[64];
	unsigned k;

	p.top += p.height + RATIO_GAP;
	p.height = RATIO_HEIGHT;
	scale_ratio(&p);
	one = y_of(&p, 1);
	fprintf(p.out,
		"<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" "
		"fill=\"#eef6ee\"/>\n",
		LEFT, more ? p.top : one, PLOT_WIDTH,
		more ? one - p.top : p.top + p.height - one);
	draw_x_grid(&p);
	draw_ratio_axis(&p);
	draw_x_axis(&p);
	draw_frame(&p);
	for (k = p.report->n_series; k-- > 1;)
		draw_ratio(&p, k);
	snprintf(text, sizeof(text),
		 "%.24s / other:", p.report->series[0]->name);
	draw_label(p.out, x, p.top + 14, "class=\"axis\"", text);
	draw_label(p.out, x, p.top + 30, "class=\"axis\"",
		   more ? "above 1 is better" : "below 1 is better");
}

static bool has_ratios(const struct wf_tools_report *r, enum wf_tools_test test)
{
	struct panel p = { .report = r, .test = test };

	return r->plan->sizes[test].n > 1 && scale_ratio(&p);
}

static void draw_curves(const struct panel *p)
{
	unsigned k;

	draw_x_grid(p);
	draw_y_axis(p);
	if (has_ratios(p->report, p->test))
		draw_ratios(p);
	else
		draw_x_axis(p);
	draw_frame(p);
	/* The provider under test comes last, on top of the others. */
	for (k = p->report->n_series; k-- > 0;)
		draw_series(p, k);
	draw_legend(p);
}

static void draw_bars(const struct panel *p)
{
	struct wf_tools_stats stats;
	double y = p->top, longest = 0, width;
	char text[32];
	unsigned k;

	for (k = 0; k < p->report->n_series; k++) {
		if (get(p, k, 0, &stats))
			longest = fmax(longest, stats.median);
	}
	for (k = 0; k < p->report->n_series; k++) {
		if (!get(p, k, 0, &stats))
			continue;
		width = PLOT_WIDTH * stats.median / longest;
		fprintf(p->out,
			"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%d\" fill=\"%s\"/>\n",
			LEFT, y, width, BAR - 8, colour_of(p->report, k));
		draw_label(p->out, LEFT - 8, y + 15,
			   "text-anchor=\"end\" class=\"key\"",
			   label_of(p->report->series[k]));
		draw_label(p->out, LEFT + width + 7, y + 15, "class=\"tick\"",
			   say(p->test, stats.median, text));
		y += BAR;
	}
}

static bool is_bars(const struct wf_tools_report *r, enum wf_tools_test test)
{
	return r->plan->sizes[test].n == 1;
}

static double panel_height(const struct wf_tools_report *r,
			   enum wf_tools_test test)
{
	if (is_bars(r, test))
		return PANEL_TOP + BAR * (double)r->n_series + 24;
	return PANEL_TOP + PLOT_HEIGHT + PANEL_BOTTOM +
	       (has_ratios(r, test) ? RATIO_GAP + RATIO_HEIGHT : 0);
}

static void draw_panel(const struct wf_tools_report *r, enum wf_tools_test test,
		       double top, FILE *out)
{
	struct panel panel = {
		.report = r,
		.test = test,
		.top = top + PANEL_TOP,
		.height = PLOT_HEIGHT,
		.out = out,
	};
	char title[192], size[WF_TOOLS_SIZE_TEXT];

	snprintf(title, sizeof(title), "%s, ", wf_tools_test_get(test)->title);
	if (wf_tools_test_get(test)->window)
		snprintf(title + strlen(title), sizeof(title) - strlen(title),
			 "window %u, ", r->plan->window[test]);
	snprintf(title + strlen(title), sizeof(title) - strlen(title),
		 "%s is better",
		 wf_tools_test_is_more(test) ? "higher" : "lower");
	if (is_bars(r, test)) {
		wf_tools_size_text(r->plan->sizes[test].v[0], size);
		snprintf(title + strlen(title), sizeof(title) - strlen(title),
			 ", %s %s", size, axis_of(test));
	}
	draw_label(out, LEFT, top + 28, "class=\"panel\"", title);
	if (is_bars(r, test))
		draw_bars(&panel);
	else if (scale(&panel))
		draw_curves(&panel);
}

static void draw_head(const struct wf_tools_report *r, FILE *out)
{
	const struct wf_tools_machine *m = &r->machine;
	const char *about;
	char text[512];
	unsigned i;

	snprintf(text, sizeof(text), "weft bench: %s", r->plan->provider);
	for (i = 0; i < r->plan->n_against; i++) {
		strncat(text, i ? ", " : " against ",
			sizeof(text) - strlen(text) - 1);
		strncat(text, r->plan->against[i],
			sizeof(text) - strlen(text) - 1);
	}
	draw_label(out, LEFT, 34, "class=\"title\"", text);
	snprintf(text, sizeof(text), "%s%s%s%s, CPU %d and %d", m->cpu,
		 m->virtual_on[0] ? ", virtual (" : "", m->virtual_on,
		 m->virtual_on[0] ? ")" : "", r->plan->cpus[0],
		 r->plan->cpus[1]);
	for (i = 0; i < r->n_series; i++) {
		/* "libfabric 1.17" of "libfabric 1.17, shm, inject 4096" */
		about = r->series[i]->about;
		if (!i || r->series[i]->kind == WF_TOOLS_SERIES_UCX)
			snprintf(text + strlen(text),
				 sizeof(text) - strlen(text), ", %.*s",
				 (int)strcspn(about, ","), about);
	}
	draw_label(out, LEFT, 56, "class=\"axis\"", text);
	snprintf(text, sizeof(text),
		 "%s%s%s, medians of %u runs of %.0f ms, bars 10th to "
		 "90th percentile, %s",
		 r->series[0]->kind == WF_TOOLS_SERIES_MPI ? "MPI" :
		 r->plan->tagged			   ? "tagged API" :
							     "msg API",
		 r->plan->rewrite ? ", buffers rewritten" : "",
		 r->plan->verify ? ", data checked" : "", r->plan->reps,
		 (double)r->plan->run_ns / 1e6, m->time);
	draw_label(out, LEFT, 74, "class=\"axis\"", text);
}

void wf_tools_plot_svg(const struct wf_tools_report *r, FILE *out)
{
	double height = HEAD;
	unsigned t;

	for (t = 0; t < WF_TOOLS_TESTS; t++)
		height += r->plan->tests[t] ? panel_height(r, t) : 0;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%.0f\" viewBox=\"0 0 %d %.0f\" "
		"font-family=\"sans-serif\">\n"
		"<title>weft bench</title>\n"
		"<style>.title{font-size:20px;font-weight:bold}"
		".panel{font-size:15px;font-weight:bold}"
		".axis{font-size:12px;fill:#444}"
		".tick{font-size:11px;fill:#333}.key{font-size:13px}"
		"</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		WIDTH, height, WIDTH, height);
	draw_head(r, out);
	height = HEAD;
	for (t = 0; t < WF_TOOLS_TESTS; t++) {
		if (!r->plan->tests[t])
			continue;
		draw_panel(r, t, height, out);
		height += panel_height(r, t);
	}
	fputs("</svg>\n", out);
}
