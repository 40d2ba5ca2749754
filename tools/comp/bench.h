/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `weft bench comp`: compression compared with its peers.
 */
#ifndef WF_TOOLS_COMP_BENCH_H
#define WF_TOOLS_COMP_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int wf_tools_bench_comp_main(int argc, char **argv);

struct wf_comp_plan {
	uint8_t *data;
	size_t len;
	unsigned int rounds;
	const char *self;    /* this program */
	const char *library; /* libweft-z.so, NULL if it is not found */
};

/* Files of this system, always the same: half text, half binaries. Returns how
 * much there is, at most @want. */
size_t wf_tools_comp_corpus(uint8_t *data, size_t want);

/* Calls into the library beside calls to zlib, libdeflate and ISA-L. */
void wf_tools_comp_calls(const struct wf_comp_plan *plan);
/* Every level beside zlib's. */
void wf_tools_comp_levels(const struct wf_comp_plan *plan);
/* Measures what a job on the software device costs its caller. */
void wf_tools_comp_device(const struct wf_comp_plan *plan);
/* weft gzip beside gzip, pigz, igzip and libdeflate-gzip. 0 or -errno. */
int wf_tools_comp_commands(const struct wf_comp_plan *plan);

/* The middle of @n times; sorts them. */
double wf_tools_comp_median(double *times, unsigned int n);

#endif
