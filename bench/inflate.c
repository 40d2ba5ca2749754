/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inflate beside its peers, in one process: libraries with zlib's functions
 * (the first one is compared with the others), libdeflate and ISA-L. Whole
 * buffers of each size, init and end included, and streams in calls of 1 and
 * 16 KiB. The sides take turns; shown is the least processor time of many
 * turns, which other load disturbs least, and the ratio of each side's time to
 * the first one's.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <isa-l/igzip_lib.h>
#include <libdeflate.h>

#include "tools/comp/bench.h"

#define CORPUS (16u << 20)
#define ROUNDS 25
#define TURN_NS 1.5e6
#define SIDES_MOST 8
#define BUFFERS_MOST 256

struct side {
	const char *name;
	int (*init)(z_streamp, int, const char *, int);
	int (*inflate)(z_streamp, int);
	int (*end)(z_streamp);
	/* For these: whole buffers only. */
	void (*whole)(const struct side *side, size_t i);
	double best;
};

static struct side sides[SIDES_MOST];
static unsigned int side_count;
static uint8_t *data, *packed, *out;
static size_t packed_len[BUFFERS_MOST];
static size_t size, room, count, piece;
static int bits;
static bool one_kind; /* only fixed blocks */
static struct libdeflate_decompressor *ld;

static void die(const char *who, const char *what)
{
	fprintf(stderr, "inflate: %s: %s\n", who, what);
	exit(1);
}

static void with_zlib(const struct side *side, size_t i)
{
	z_stream s = { .next_in = packed + i * room,
		       .avail_in = (uInt)packed_len[i],
		       .next_out = out,
		       .avail_out = (uInt)size };

	if (side->init(&s, bits, ZLIB_VERSION, sizeof(s)) ||
	    side->inflate(&s, Z_FINISH) != Z_STREAM_END || side->end(&s))
		die(side->name, "inflate failed");
}

static void with_stream(const struct side *side, size_t i)
{
	size_t at = 0, n = 0;
	z_stream s = { 0 };
	int ret = Z_OK;

	if (side->init(&s, bits, ZLIB_VERSION, sizeof(s)))
		die(side->name, "init failed");
	while (ret == Z_OK) {
		if (!s.avail_in) {
			n = packed_len[i] - at;
			n = n < piece ? n : piece;
			s.next_in = packed + i * room + at;
			s.avail_in = (uInt)n;
			at += n;
		}
		/* Always the same room, as a program that reads files has. */
		s.next_out = out;
		s.avail_out = (uInt)piece;
		ret = side->inflate(&s, Z_NO_FLUSH);
	}
	if (ret != Z_STREAM_END || side->end(&s))
		die(side->name, "inflate failed");
}

static void with_libdeflate(const struct side *side, size_t i)
{
	const uint8_t *in = packed + i * room;
	enum libdeflate_result ret =
		bits < 0 ? libdeflate_deflate_decompress(ld, in, packed_len[i],
							 out, size, NULL) :
		bits == 31 ? libdeflate_gzip_decompress(ld, in, packed_len[i],
							out, size, NULL) :
			     libdeflate_zlib_decompress(ld, in, packed_len[i],
							out, size, NULL);

	if (ret)
		die(side->name, "decompress failed");
}

static void with_isal(const struct side *side, size_t i)
{
	struct inflate_state s;

	isal_inflate_init(&s);
	s.crc_flag = bits < 0	? ISAL_DEFLATE :
		     bits == 31 ? ISAL_GZIP :
				  ISAL_ZLIB;
	s.next_in = packed + i * room;
	s.avail_in = (uint32_t)packed_len[i];
	s.next_out = out;
	s.avail_out = (uint32_t)size;
	if (isal_inflate(&s) != ISAL_DECOMP_OK || s.total_out != size)
		die(side->name, "inflate failed");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Buffers of @bytes, spread over the corpus. */
static void pack(size_t bytes, size_t len)
{
	z_stream s;

	size = bytes;
	room = bytes + bytes / 100 + 128;
	count = len / bytes;
	count = count < BUFFERS_MOST ? count : BUFFERS_MOST;
	for (size_t i = 0; i < count; i++) {
		memset(&s, 0, sizeof(s));
		s.next_in = data + (len - bytes) / count * i;
		s.avail_in = (uInt)bytes;
		s.next_out = packed + i * room;
		s.avail_out = (uInt)room;
		if (deflateInit2(&s, 6, Z_DEFLATED, bits, 8,
				 one_kind ? Z_FIXED : 0) ||
		    deflate(&s, Z_FINISH) != Z_STREAM_END)
			die("zlib", "deflate failed");
		packed_len[i] = s.total_out;
		deflateEnd(&s);
	}
}

static void run(const struct side *side, size_t i)
{
	if (piece)
		with_stream(side, i);
	else if (side->whole)
		side->whole(side, i);
	else
		with_zlib(side, i);
}

static void measure(void)
{
	for (unsigned int k = 0; k < side_count; k++)
		sides[k].best = 1e30;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int k = 0; k < side_count; k++) {
			double begin, took;
			size_t calls = 0;

			if (piece && sides[k].whole)
				continue;
			begin = now();
			do {
				for (size_t i = 0; i < count; i++)
					run(&sides[k], i);
				calls += count;
				took = now() - begin;
			} while (took < TURN_NS);
			if (took / (double)calls < sides[k].best)
				sides[k].best = took / (double)calls;
		}
	}
	for (unsigned int k = 0; k < side_count; k++) {
		if (piece && sides[k].whole)
			printf(" %16s", "");
		else if (!k)
			printf(" %10.0f %5.0f", sides[k].best,
			       (double)size / sides[k].best * 1e3);
		else
			printf(" %10.0f %5.2f", sides[k].best,
			       sides[k].best / sides[0].best);
	}
	printf("\n");
	fflush(stdout);
}

static void add_library(const char *name, const char *path)
{
	struct side *s = &sides[side_count++];
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		die(name, dlerror());
	s->name = name;
	*(void **)&s->init = dlsym(lib, "inflateInit2_");
	*(void **)&s->inflate = dlsym(lib, "inflate");
	*(void **)&s->end = dlsym(lib, "inflateEnd");
}

static void title(const char *what)
{
	printf("\n%-14s", what);
	for (unsigned int k = 0; k < side_count; k++)
		printf(" %10s %5s", sides[k].name, k ? "x" : "MB/s");
	printf("\n");
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 80,    256,	  1024,	   4096,
					16384, 256 << 10, 1 << 20, 16 << 20 };
	static const int formats[] = { 15, -15, 31 };
	static const char *const names[] = { "zlib", "raw", "gzip" };
	size_t len;
	int from = argc > 3 ? atoi(argv[3]) : 0, to = argc > 3 ? from : 2;

	if (argc < 2) {
		fprintf(stderr,
			"usage: inflate LIBWEFT-Z [LIBZ-NG [FORMAT]]\n");
		return 2;
	}
	add_library("weft", argv[1]);
	add_library("zlib", "libz.so.1");
	if (argc > 2)
		add_library("zlib-ng", argv[2]);
	sides[side_count++] =
		(struct side){ .name = "libdeflate", .whole = with_libdeflate };
	sides[side_count++] =
		(struct side){ .name = "ISA-L", .whole = with_isal };
	ld = libdeflate_alloc_decompressor();
	data = malloc(CORPUS);
	packed = malloc(CORPUS + (CORPUS >> 3) + (1 << 20));
	out = malloc(CORPUS);
	len = wf_tools_comp_corpus(data, CORPUS);
	for (int f = from; f <= to; f++) {
		bits = formats[f];
		piece = 0;
		title(names[f]);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (sizes[i] > len)
				break;
			pack(sizes[i], len);
			printf("%-14zu", sizes[i]);
			measure();
		}
		one_kind = true;
		pack(80, len);
		printf("%-14s", "80, fixed");
		measure();
		pack(16384, len);
		printf("%-14s", "16384, fixed");
		measure();
		one_kind = false;
		pack(1 << 20, len);
		for (piece = 1024; piece <= 65536; piece *= 4) {
			printf("calls of %-5zu", piece);
			measure();
		}
	}
	return 0;
}
