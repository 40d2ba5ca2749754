/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This file measures what Warpdrive costs: the same work by a direct call to a
 * library and by wd_alg_deflate() or wd_alg_inflate() with that driver, in
 * turns, in the gzip format. And levels: ours beside zlib's. Times are of the
 * processor: one thread works, and others may want the machine.
 */
#include "tools/comp/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/wd_comp.h>

#include "tools/comp/direct.h"

#define ROUNDS_MOST 101
#define WORK (4u << 20) /* bytes per measurement */

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct chunks {
	const struct wf_comp_plan *plan;
	const struct wf_comp_direct *lib;
	size_t size;
	uint8_t *packed; /* each chunk's in a place of its own */
	size_t *lens;
	size_t room;
	uint8_t *out;
	bool inflate;
};

/* One pass over the data; returns bytes produced, 0 if something failed. */
static size_t pass(struct chunks *c, bool direct)
{
	size_t len = c->plan->len < WORK ? c->plan->len : WORK, total = 0;

	for (size_t at = 0, i = 0; at + c->size <= len; at += c->size, i++) {
		struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
					   .comp_level = c->lib->level,
					   .tight = 1,
					   .driver = c->lib->name };
		const uint8_t *plain = c->plan->data + at;
		uint8_t *packed = c->packed + i * c->room;
		size_t in = c->size, out = c->room;
		int ret = 0;

		if (c->inflate) {
			in = c->lens[i];
			out = c->size;
		}
		if (direct && c->inflate)
			out = c->lib->inflate(packed, in, c->out, out);
		else if (direct)
			out = c->lib->deflate(plain, in, packed, out);
		else if (c->inflate)
			ret = wd_alg_inflate(&ctx, packed, &in, c->out, &out);
		else
			ret = wd_alg_deflate(&ctx, plain, &in, packed, &out);
		if (ret || !out)
			return 0;
		if (!c->inflate)
			c->lens[i] = out;
		total += out;
	}
	return total;
}

static void race(struct chunks *c)
{
	double direct[ROUNDS_MOST], ours[ROUNDS_MOST], a, b;
	unsigned int rounds = c->plan->rounds * 3 < ROUNDS_MOST ?
				      c->plan->rounds * 3 :
				      ROUNDS_MOST;

	for (unsigned int i = 0; i < rounds; i++) {
		double start = cpu_now(), middle;

		if (!pass(c, i & 1))
			goto failed;
		middle = cpu_now();
		if (!pass(c, !(i & 1)))
			goto failed;
		a = middle - start;
		b = cpu_now() - middle;
		direct[i] = i & 1 ? a : b;
		ours[i] = i & 1 ? b : a;
	}
	a = wf_tools_comp_median(direct, rounds);
	b = wf_tools_comp_median(ours, rounds);
	printf("%-11s %-8s %8zu %9.1f %9.1f  %+6.2f %%\n", c->lib->name,
	       c->inflate ? "inflate" : "deflate", c->size, WORK / a / 1e6,
	       WORK / b / 1e6, 100 * (b / a - 1));
	return;
failed:
	printf("%-11s %-8s %8zu  failed\n", c->lib->name,
	       c->inflate ? "inflate" : "deflate", c->size);
}

void wf_tools_comp_calls(const struct wf_comp_plan *plan)
{
	static const size_t sizes[] = { 4096, 65536, 1u << 20 };

	puts("\nCalls: MB/s of plain data, gzip format, processor time\n"
	     "library     what         size    direct      weft  overhead");
	for (unsigned int i = 0; wf_tools_comp_direct(i); i++) {
		for (size_t k = 0; k < 3; k++) {
			struct chunks c = { .plan = plan,
					    .lib = wf_tools_comp_direct(i),
					    .size = sizes[k],
					    .room = sizes[k] + sizes[k] / 8 +
						    256 };
			size_t n = WORK / c.size;

			c.packed = malloc(n * c.room);
			c.lens = calloc(n, sizeof(*c.lens));
			c.out = malloc(c.size);
			if (c.packed && c.lens && c.out &&
			    plan->len >= c.size) {
				race(&c);
				c.inflate = true;
				race(&c);
			}
			free(c.packed);
			free(c.lens);
			free(c.out);
		}
	}
}

static double one_level(const struct wf_comp_plan *plan, int level,
			const char *driver, int tight, uint8_t *out,
			size_t *len, const char **used)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_ZLIB,
				   .comp_level = level,
				   .driver = driver,
				   .tight = tight };
	struct wd_comp_index none;
	size_t in = plan->len, room = plan->len + plan->len / 8 + 4096;
	double start = cpu_now();
	int ret;

	/* In pieces, as large streams are; zlib in one. */
	if (driver)
		ret = wd_alg_deflate(&ctx, plan->data, &in, out, &room);
	else
		ret = wd_alg_deflate_parallel(&ctx, 1, plan->data, &in, out,
					      &room, &none);
	if (!driver && !ret)
		wd_comp_index_free(&none);
	start = cpu_now() - start;
	*len = ret ? 0 : room;
	/* Parallel work does not say: ask a small piece. */
	in = 1000;
	room = 4096;
	wd_alg_deflate(&ctx, plan->data, &in, out, &room);
	*used = ctx.used;
	return start;
}

void wf_tools_comp_levels(const struct wf_comp_plan *plan)
{
	uint8_t *out = malloc(plan->len + plan->len / 8 + 4096);

	if (!out)
		return;
	puts("\nLevels: bytes and seconds of the processor, zlib and weft\n"
	     "level       zlib       s       weft       s   size    speed  by"
	     "          tight       s   size    speed");
	for (int level = 1; level <= 9; level++) {
		size_t z, w, t;
		const char *used, *name;
		double zs = one_level(plan, level, "zlib", 0, out, &z, &name);
		double ws = one_level(plan, level, NULL, 0, out, &w, &used);
		double ts = one_level(plan, level, NULL, 1, out, &t, &name);

		printf("%5d %10zu %7.3f %10zu %7.3f %+5.1f%% %7.2fx  %-10s "
		       "%10zu %7.3f %+5.1f%% %7.2fx\n",
		       level, z, zs, w, ws, 100.0 * ((double)w / (double)z - 1),
		       zs / ws, used, t, ts,
		       100.0 * ((double)t / (double)z - 1), zs / ts);
		fflush(stdout);
	}
	free(out);
}
