/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of one zlib call at each size in a program that uses zlib: plain,
 * and with LIBRARY preloaded. Two processes take turns; medians of processor
 * time are shown. `--count WHAT SIZE N` makes N calls and prints nothing, for
 * `valgrind --tool=callgrind --toggle-collect=measured`.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/comp/bench.h"

#define CORPUS (4u << 20)
#define ROUNDS 31
#define ROUND_NS 2e6 /* of one side */
#define PIECE 4096u

static uint8_t *data, *packed, *out;
static size_t *packed_len;
static size_t size, room, count; /* of a buffer, packed; how many buffers */

static void die(const char *what)
{
	fprintf(stderr, "zlib_small: %s failed\n", what);
	exit(1);
}

static void do_inflate(size_t i)
{
	z_stream s = { .next_in = packed + i * room,
		       .avail_in = (uInt)packed_len[i],
		       .next_out = out,
		       .avail_out = (uInt)size };

	if (inflateInit2_(&s, 15, ZLIB_VERSION, sizeof(s)) ||
	    inflate(&s, Z_FINISH) != Z_STREAM_END || inflateEnd(&s))
		die("inflate");
}

/* As a program that reads files and sockets does. */
static void do_inflate_pieces(size_t i)
{
	z_stream s = { 0 };
	size_t at = 0;
	int ret = Z_OK;

	if (inflateInit2_(&s, 15, ZLIB_VERSION, sizeof(s)))
		die("inflateInit");
	while (ret == Z_OK) {
		size_t n = packed_len[i] - at;

		n = n < PIECE ? n : PIECE;
		s.next_in = packed + i * room + at;
		s.avail_in = (uInt)n;
		at += n;
		do {
			s.next_out = out;
			s.avail_out = 4 * PIECE;
			ret = inflate(&s, Z_NO_FLUSH);
		} while (ret == Z_OK && !s.avail_out);
		if (ret == Z_BUF_ERROR)
			ret = Z_OK;
	}
	if (ret != Z_STREAM_END || inflateEnd(&s))
		die("inflate in pieces");
}

static void deflate_with(size_t i, int level, size_t piece)
{
	z_stream s = { .next_in = data + i * size,
		       .next_out = out,
		       .avail_out = (uInt)room };
	size_t left = size;
	int ret;

	if (deflateInit2_(&s, level, Z_DEFLATED, 15, 8, 0, ZLIB_VERSION,
			  sizeof(s)))
		die("deflateInit");
	do {
		s.avail_in = (uInt)(left < piece ? left : piece);
		left -= s.avail_in;
		ret = deflate(&s, left ? Z_NO_FLUSH : Z_FINISH);
	} while (left && ret == Z_OK);
	if (ret != Z_STREAM_END || deflateEnd(&s))
		die("deflate");
}

static void do_deflate_1(size_t i)
{
	deflate_with(i, 1, size);
}

static void do_deflate_6(size_t i)
{
	deflate_with(i, 6, size);
}

static void do_deflate_9(size_t i)
{
	deflate_with(i, 9, size);
}

static void do_deflate_pieces(size_t i)
{
	deflate_with(i, 6, size / 4 + 1 < PIECE ? size / 4 + 1 : PIECE);
}

/* A server that sends what it has. */
static void do_deflate_flushes(size_t i)
{
	z_stream s = { .next_in = data + i * size,
		       .next_out = out,
		       .avail_out = (uInt)room };

	if (deflateInit2_(&s, 6, Z_DEFLATED, 15, 8, 0, ZLIB_VERSION, sizeof(s)))
		die("deflateInit");
	s.avail_in = (uInt)(size / 2);
	if (deflate(&s, Z_SYNC_FLUSH))
		die("deflate");
	s.avail_in = (uInt)(size - size / 2);
	if (deflate(&s, Z_FINISH) != Z_STREAM_END || deflateEnd(&s))
		die("deflate");
}

/* One stream for many buffers. */
static void do_deflate_reset(size_t i)
{
	static z_stream stream;
	z_stream *s = &stream;

	if (!s->state &&
	    deflateInit2_(s, 6, Z_DEFLATED, 15, 8, 0, ZLIB_VERSION, sizeof(*s)))
		die("deflateInit");
	s->next_in = data + i * size;
	s->avail_in = (uInt)size;
	s->next_out = out;
	s->avail_out = (uInt)room;
	if (deflate(s, Z_FINISH) != Z_STREAM_END || deflateReset(s))
		die("deflate");
}

static void do_crc32(size_t i)
{
	if (crc32_z(0, data + i * size, size) == 1)
		die("crc32");
}

static void do_adler32(size_t i)
{
	if (!adler32_z(1, data + i * size, size))
		die("adler32");
}

static const struct {
	const char *name;
	void (*call)(size_t i);
} whats[] = {
	{ "inflate", do_inflate },
	{ "inflate-4K", do_inflate_pieces },
	{ "deflate-1", do_deflate_1 },
	{ "deflate-6", do_deflate_6 },
	{ "deflate-9", do_deflate_9 },
	{ "deflate-cut", do_deflate_pieces },
	{ "deflate-flush", do_deflate_flushes },
	{ "deflate-reset", do_deflate_reset },
	{ "crc32", do_crc32 },
	{ "adler32", do_adler32 },
};

#define WHATS (sizeof(whats) / sizeof(whats[0]))

/* Packs the corpus in buffers of @bytes, with zlib. */
static void prepare(size_t bytes, size_t len)
{
	size = bytes;
	room = size + size / 8 + 64;
	count = len / size < 512 ? len / size : 512;
	packed = realloc(packed, count * room);
	packed_len = realloc(packed_len, count * sizeof(*packed_len));
	out = realloc(out, room + 4 * PIECE);
	if (!packed || !packed_len || !out || !count)
		die("memory");
	for (size_t i = 0; i < count; i++) {
		/* Spread over the corpus: text and libraries. */
		size_t from = len / count * i;
		z_stream s = { .next_in = data + from,
			       .avail_in = (uInt)size,
			       .next_out = packed + i * room,
			       .avail_out = (uInt)room };

		memmove(data + i * size, data + from, size);
		s.next_in = data + i * size;
		deflateInit2_(&s, 6, Z_DEFLATED, 15, 8, 0, ZLIB_VERSION,
			      sizeof(s));
		deflate(&s, Z_FINISH);
		packed_len[i] = s.total_out;
		deflateEnd(&s);
	}
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void measured(size_t what, size_t calls);

__attribute__((noinline)) void measured(size_t what, size_t calls)
{
	for (size_t i = 0; i < calls; i++)
		whats[what].call(i % count);
}

static size_t what_of(const char *name)
{
	size_t i = 0;

	while (i < WHATS && strcmp(whats[i].name, name) != 0)
		i++;
	return i;
}

/* A process that works on request: it reads "what size calls" and answers with
 * ns. */
static int work(void)
{
	size_t what, bytes, calls, len = wf_tools_comp_corpus(data, CORPUS);

	while (scanf("%zu %zu %zu", &what, &bytes, &calls) == 3) {
		double start;

		if (bytes != size) {
			len = wf_tools_comp_corpus(data, CORPUS);
			prepare(bytes, len);
		}
		start = now_ns();
		measured(what, calls);
		printf("%.0f\n", now_ns() - start);
		fflush(stdout);
	}
	return 0;
}

struct worker {
	FILE *to;
	FILE *from;
};

static struct worker hire(const char *self, const char *library)
{
	int to[2], from[2];
	struct worker w;

	if (pipe(to) || pipe(from))
		die("pipe");
	if (!fork()) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		if (library)
			setenv("LD_PRELOAD", library, 1);
		execl(self, self, "--work", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	w.to = fdopen(to[1], "w");
	w.from = fdopen(from[0], "r");
	return w;
}

static double ask(struct worker *w, size_t what, size_t bytes, size_t calls)
{
	double ns;

	fprintf(w->to, "%zu %zu %zu\n", what, bytes, calls);
	fflush(w->to);
	if (fscanf(w->from, "%lf", &ns) != 1)
		die("a worker");
	return ns / (double)calls;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *times)
{
	qsort(times, ROUNDS, sizeof(*times), compare);
	return times[ROUNDS / 2];
}

static void race(struct worker workers[2], size_t what, size_t bytes)
{
	double times[2][ROUNDS], one;
	size_t calls;

	ask(&workers[1], what, bytes, 8);
	ask(&workers[0], what, bytes, 8);
	one = ask(&workers[0], what, bytes, 8);
	calls = one < ROUND_NS ? (size_t)(ROUND_NS / one) + 1 : 1;
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++) {
			int which = (i + k) & 1;

			times[which][i] =
				ask(&workers[which], what, bytes, calls);
		}
	}
	one = median(times[0]);
	printf("%-14s %8zu %11.0f %11.0f %7.2f\n", whats[what].name, bytes, one,
	       median(times[1]), median(times[1]) / one);
	fflush(stdout);
}

static int usage(void)
{
	fprintf(stderr, "usage: zlib_small LIBRARY [WHAT]\n"
			"       zlib_small --count WHAT SIZE N\nWHAT:");
	for (size_t i = 0; i < WHATS; i++)
		fprintf(stderr, " %s", whats[i].name);
	fputc('\n', stderr);
	return 1;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 80,    256,   1024,   4096,
					16384, 65536, 262144, 1048576 };
	struct worker workers[2];

	data = malloc(CORPUS);
	if (!data)
		die("memory");
	if (argc == 2 && !strcmp(argv[1], "--work"))
		return work();
	if (argc == 5 && !strcmp(argv[1], "--count") &&
	    what_of(argv[2]) < WHATS) {
		prepare(strtoul(argv[3], NULL, 10),
			wf_tools_comp_corpus(data, CORPUS));
		measured(what_of(argv[2]), strtoul(argv[4], NULL, 10));
		return 0;
	}
	if (argc < 2 || argc > 3 || argv[1][0] == '-' ||
	    (argc == 3 && what_of(argv[2]) == WHATS))
		return usage();
	workers[0] = hire("/proc/self/exe", NULL);
	workers[1] = hire("/proc/self/exe", argv[1]);
	printf("%-14s %8s %11s %11s %7s\n", "ns a call", "size", "plain",
	       "preloaded", "ratio");
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		for (size_t i = 0; i < WHATS; i++) {
			if (argc == 2 || i == what_of(argv[2]))
				race(workers, i, sizes[k]);
		}
	}
	return 0;
}
