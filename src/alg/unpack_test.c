/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parallel decompression against one thread with the strict decoder: the same
 * bytes, the same result, whatever the data, the size of pieces, the number of
 * threads, and wherever the data is cut off or damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp.h>

#include "alg/defl.h"
#include "alg/unpack.h"
#include "deflate/inflate.h"

/* TSan makes each run ten times as long: it gets every fourth one of most, which
 * has all numbers of threads and sizes of pieces among them. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STEP 4
#endif
#endif
#if !defined(STEP)
#define STEP 1
#endif

#define PLAIN (3u << 19)
#define MOST (4u << 20)

struct bytes {
	uint8_t *data;
	size_t len;
};

static uint8_t *plain, *want, *got;
static struct bytes file;

static uint32_t draw(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Words, so that blocks look back far; some noise between them. */
static void make_text(uint8_t *out, size_t len, uint32_t seed)
{
	char words[512][12];
	size_t at = 0;

	for (int i = 0; i < 512; i++) {
		unsigned int n = 2 + draw(&seed) % 9;

		for (unsigned int j = 0; j < n; j++)
			words[i][j] = (char)('a' + draw(&seed) % 26);
		words[i][n] = '\0';
	}
	while (at < len) {
		const char *word = words[draw(&seed) % (draw(&seed) % 512 + 1)];
		size_t n = strlen(word);

		if (draw(&seed) % 16 == 0)
			out[at++] = (uint8_t)draw(&seed);
		n = n < len - at ? n : len - at;
		memcpy(out + at, word, n);
		at += n;
	}
}

static void make_noise(uint8_t *out, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)draw(&seed);
}

static void add(const void *data, size_t len)
{
	assert_true(file.len + len <= MOST);
	memcpy(file.data + file.len, data, len);
	file.len += len;
}

/* Appends a stream of the given format. */
static void pack(int alg, const uint8_t *data, size_t len, int level,
		 const char *driver)
{
	struct wd_comp_ctx ctx = { .alg_type = alg,
				   .comp_level = level,
				   .driver = driver };
	size_t in = len, out = MOST - file.len;

	assert_int_equal(
		wd_alg_deflate(&ctx, data, &in, file.data + file.len, &out), 0);
	file.len += out;
}

/* A member whose header has what a caller wants in it. */
static void pack_member(const uint8_t *data, size_t len, uint8_t flags,
			const uint8_t *more, size_t more_len)
{
	size_t at = file.len, raw;
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP, .comp_level = 6 };
	size_t in = len, out = MOST - at - more_len;

	assert_int_equal(wd_alg_deflate(&ctx, data, &in,
					file.data + at + more_len, &out),
			 0);
	raw = at + more_len;
	memmove(file.data + at, file.data + raw, 10);
	file.data[at + 3] = flags;
	memcpy(file.data + at + 10, more, more_len);
	file.len = raw + out;
}

/* The end of the file, where it is no whole byte. */
struct bits {
	uint64_t buf;
	unsigned int count;
};

static void add_bits(struct bits *b, unsigned int value, unsigned int n)
{
	b->buf |= (uint64_t)value << b->count;
	for (b->count += n; b->count >= 8; b->count -= 8) {
		add(&(uint8_t){ (uint8_t)b->buf }, 1);
		b->buf >>= 8;
	}
}

/* A Huffman code: its first bit is the highest one. */
static void add_code(struct bits *b, unsigned int code, unsigned int n)
{
	while (n--)
		add_bits(b, code >> n & 1, 1);
}

static void add_literal(struct bits *b, uint8_t v)
{
	if (v < 144)
		add_code(b, 0x30u + v, 8);
	else
		add_code(b, 0x190u + v - 144, 9);
}

/* Literals in one fixed block, which no search can find. */
static void pack_fixed(const uint8_t *data, size_t len)
{
	static const uint8_t head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	uint32_t check = wd_comp_check(WD_COMP_GZIP, 0, data, len);
	struct bits b = { 0 };

	add(head, sizeof(head));
	add_bits(&b, 3, 3); /* last, fixed */
	for (size_t i = 0; i < len; i++)
		add_literal(&b, data[i]);
	add_code(&b, 0, 7);
	add_bits(&b, 0, -b.count & 7);
	for (int i = 0; i < 4; i++)
		add(&(uint8_t){ (uint8_t)(check >> 8 * i) }, 1);
	for (int i = 0; i < 4; i++)
		add(&(uint8_t){ (uint8_t)(len >> 8 * i) }, 1);
}

/* Fixed blocks without a header before them: RUNS of 258 bytes and one byte in
 * each. An empty stored block is behind them, so that more can follow. */
#define RUNS 200
#define RUN_BLOCK (RUNS * 258 + 1)

static void add_runs(unsigned int blocks)
{
	struct bits b = { 0 };

	while (blocks--) {
		add_bits(&b, 2, 3); /* not the last, fixed */
		add_literal(&b, (uint8_t)blocks);
		for (int i = 0; i < RUNS; i++) {
			add_code(&b, 0xc5, 8); /* 258 bytes ... */
			add_code(&b, 0, 5);    /* ... from one back */
		}
		add_code(&b, 0, 7);
	}
	add_bits(&b, 0, 3);
	add_bits(&b, 0, -b.count & 7);
	add("\0\0\xff\xff", 4);
}

/* One member by the strict decoder. *in and *out are advanced. */
static int reference_one(int wrap, const uint8_t **in, const uint8_t *end,
			 uint8_t **out)
{
	struct wf_inflate_codes *codes = malloc(sizeof(*codes));
	struct wf_inflate s;
	struct wf_inflate_io io = { *in, (size_t)(end - *in), *out,
				    (size_t)(want + MOST - *out) };
	enum wf_inflate_ret ret;

	assert_non_null(codes);
	wf_deflate_inflate_init(&s, codes, wf_alg_std_mem,
				wrap | WF_INFLATE_CHECK, 15);
	do {
		ret = wf_deflate_inflate_run(&s, &io, WF_INFLATE_GO);
	} while (ret == WF_INFLATE_OK && io.in_len);
	wf_deflate_inflate_end(&s);
	free(codes);
	*in = io.in;
	*out = io.out;
	return ret == WF_INFLATE_END	  ? 0 :
	       ret == WF_INFLATE_BAD_DATA ? -EBADMSG :
					    -ENODATA;
}

/* As gzip does it with a file. */
static int reference(const uint8_t *in, size_t len, size_t *made)
{
	const uint8_t *end = in + len;
	uint8_t *out = want;
	int ret = -ENODATA;

	for (bool first = true;; first = false) {
		while (!first && in < end && !*in)
			in++;
		if (end - in < 2 || in[0] != 0x1f || in[1] != 0x8b) {
			if (first)
				ret = in == end || (end - in == 1 &&
						    *in == 0x1f) ?
					      -ENODATA :
					      -EINVAL;
			break;
		}
		ret = reference_one(WF_INFLATE_GZIP, &in, end, &out);
		if (ret)
			break;
	}
	*made = (size_t)(out - want);
	return ret;
}

/* A sink takes the output of the engine. */
struct sink {
	size_t len;
	size_t at; /* of a pipe's input */
	uint32_t seed;
};

static int put(void *arg, const uint8_t *data, size_t len)
{
	struct sink *s = arg;

	assert_true(s->len + len <= MOST);
	memcpy(got + s->len, data, len);
	s->len += len;
	return 0;
}

static int put_at(void *arg, uint64_t at, const uint8_t *data, size_t len)
{
	(void)arg;
	assert_true(at + len <= MOST);
	memcpy(got + at, data, len);
	return 0;
}

static struct bytes input;

static ssize_t read_some(void *arg, uint8_t *buf, size_t len)
{
	struct sink *s = arg;
	size_t n = 1 + draw(&s->seed) % (draw(&s->seed) % 2 ? 70000 : 300);

	n = n < len ? n : len;
	n = n < input.len - s->at ? n : input.len - s->at;
	memcpy(buf, input.data + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

/* All ways to run the engine on @len bytes must end as the reference. */
static void compare(size_t len, unsigned int threads, size_t chunk)
{
	size_t made;
	int ret = reference(file.data, len, &made);

	input = (struct bytes){ file.data, len };
	for (int way = 0; way < 3; way++) {
		struct sink sink = { .seed = (uint32_t)(len + chunk) };
		struct wf_unpack u = {
			.alg = WD_COMP_GZIP,
			.members = true,
			.threads = threads,
			.chunk = chunk,
			.in = way == 2 ? NULL : file.data,
			.in_len = len,
			.read = read_some,
			.put = put,
			.put_at = way == 1 ? put_at : NULL,
			.arg = &sink,
		};
		int r = wf_alg_unpack_run(&u);

		if (r != ret || u.total_out != made ||
		    memcmp(got, want, made) != 0)
			fail_msg("way %d, %zu bytes, %u threads, chunk %zu: "
				 "%d and %zu bytes, not %d and %zu",
				 way, len, threads, chunk, r,
				 (size_t)u.total_out, ret, made);
	}
}

static void compare_all(void)
{
	static const unsigned int threads[] = { 1, 2, 3, 7, 16 };

	for (size_t i = 0; i < 5; i += (STEP + 1) / 2)
		compare(file.len, threads[i], (size_t)8192 << i);
}

static void begin(void)
{
	file.len = 0;
}

static void test_kinds(void **state)
{
	static const char *const drivers[] = { "zlib", "isal", "libdeflate" };
	static const int levels[] = { 6, 1, 9 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		begin();
		make_text(plain, PLAIN, (uint32_t)i);
		pack(WD_COMP_GZIP, plain, PLAIN, levels[i], drivers[i]);
		compare_all();
	}
	/* Stored; stored with deflate data inside; fixed. */
	begin();
	pack(WD_COMP_GZIP, plain, 300000, 0, NULL);
	compare_all();
	memcpy(plain, file.data, file.len);
	begin();
	pack(WD_COMP_GZIP, plain, 300000, 6, "zlib");
	memcpy(plain + 100000, file.data, file.len);
	make_noise(plain + 200000, 100000, 5);
	begin();
	pack(WD_COMP_GZIP, plain, 400000, 0, NULL);
	pack(WD_COMP_GZIP, plain, 400000, 6, "zlib");
	compare_all();
	begin();
	make_text(plain, 400000, 9);
	pack_fixed(plain, 400000);
	pack(WD_COMP_GZIP, plain, 400000, 6, "zlib");
	compare_all();
}

static void test_members(void **state)
{
	static const uint8_t name[] = "name\0and a comment";
	uint8_t bgzf[8] = { 6, 0, 'B', 'C', 2, 0 };

	(void)state;
	make_text(plain, PLAIN, 3);
	begin();
	for (size_t i = 0; i < 600; i++)
		pack(WD_COMP_GZIP, plain + i * 100, i * i % 700, 6, NULL);
	for (size_t i = 0; i < 20; i++)
		pack_member(plain + i * 50000, i * 5000, 8 | 16, name,
			    sizeof(name));
	compare_all();
	/* Padding, then what is no member. */
	memset(file.data + file.len, 0, 1000);
	file.len += 1000;
	pack(WD_COMP_GZIP, plain, 100000, 6, NULL);
	compare_all();
	add("garbage", 8);
	compare_all();
	/* Members that tell their length; then one that lies. */
	begin();
	for (size_t i = 0; i < 20; i++) {
		size_t at = file.len;

		pack_member(plain + i * 60000, 60000, 4, bgzf, sizeof(bgzf));
		file.data[at + 16] = (uint8_t)(file.len - at - 1);
		file.data[at + 17] = (uint8_t)((file.len - at - 1) >> 8);
	}
	compare_all();
	file.data[16]++;
	compare_all();
}

/* Cut off, and damaged, at many places. */
static void test_damage(void **state)
{
	uint32_t seed = 7;
	size_t len;

	(void)state;
	make_text(plain, PLAIN, 4);
	begin();
	pack(WD_COMP_GZIP, plain, 1 << 20, 6, "zlib");
	pack(WD_COMP_GZIP, plain, 50000, 1, NULL);
	len = file.len;
	for (unsigned int i = 0; i < 25; i += STEP)
		compare(i, 2, 8192);
	for (unsigned int i = 0; i < 24; i += STEP)
		compare(draw(&seed) % len, 1 + i % 5, 8192u << i % 3);
	for (unsigned int i = 0; i < 12; i += STEP)
		compare(len - i, 1 + i % 3, 16384);
	for (unsigned int i = 0; i < 48; i += STEP) {
		size_t at = i < 12 ? i : draw(&seed) % len;
		uint8_t flip = (uint8_t)(1u << draw(&seed) % 8);

		file.data[at] ^= flip;
		compare(len, 1 + i % 5, 8192u << i % 3);
		file.data[at] ^= flip;
	}
	compare(len, 2, 8192);
}

/* Output that was made in order was once overtaken by the piece behind it, if
 * that was done at the very moment of the change. A slow pipe changes often. */
static void test_turns(void **state)
{
	(void)state;
	make_text(plain, PLAIN, 4);
	begin();
	pack(WD_COMP_GZIP, plain, 1 << 19, 6, "zlib");
	pack(WD_COMP_GZIP, plain, 50000, 1, NULL);
	input = file;
	for (unsigned int i = 0; i < 200; i += STEP) {
		struct sink sink = { .seed = i };
		struct wf_unpack u = { .alg = WD_COMP_GZIP,
				       .members = true,
				       .threads = 5,
				       .chunk = 8192,
				       .read = read_some,
				       .put = put,
				       .arg = &sink };

		assert_int_equal(wf_alg_unpack_run(&u), 0);
		assert_memory_equal(got, plain, 1 << 19);
		assert_int_equal(sink.len, (1 << 19) + 50000);
	}
}

/* Points that are farther from each other than there is room for input: the
 * engine once waited for all of it to be there. */
static void test_far_points(void **state)
{
	static const uint8_t nothing[1];
	struct wf_unpack_point points[] = {
		{ .at.bit = 80, .window = nothing },
		{ .at.bit = 11 << 20, .out = 11 << 17, .window = nothing },
	};

	(void)state;
	make_noise(plain, PLAIN, 4);
	begin();
	pack(WD_COMP_GZIP, plain, PLAIN, 1, NULL);
	input = file;
	for (unsigned int threads = 1; threads < 4; threads++) {
		struct sink sink = { .seed = threads };
		struct wf_unpack u = { .alg = WD_COMP_GZIP,
				       .members = true,
				       .threads = threads,
				       .chunk = 8192,
				       .read = read_some,
				       .put = put,
				       .points = points,
				       .points_count = 2,
				       .arg = &sink };

		assert_int_equal(wf_alg_unpack_run(&u), 0);
		assert_int_equal(sink.len, PLAIN);
		assert_memory_equal(got, plain, PLAIN);
	}
}

/* Much output from little input: pieces are cut where memory ends. */
static int count(void *arg, const uint8_t *data, size_t len)
{
	struct sink *s = arg;

	s->seed = wd_comp_check(WD_COMP_GZIP, s->seed, data, len);
	s->len += len;
	return 0;
}

static void test_bomb(void **state)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
				   .comp_level = 6,
				   .stream_mode = WD_COMP_STATEFUL,
				   .new_stream = 1,
				   .driver = "zlib" };
	struct sink sink = { 0 };
	struct wf_unpack u = { .alg = WD_COMP_GZIP,
			       .put = count,
			       .arg = &sink };

	(void)state;
	begin();
	memset(plain, 0, PLAIN);
	for (int i = 0; i < 64; i++) {
		size_t in = 1 << 20, out = MOST - file.len;

		ctx.flush_type = i == 63 ? WD_COMP_FINISH : WD_COMP_NO_FLUSH;
		assert_int_equal(wd_alg_deflate(&ctx, plain, &in,
						file.data + file.len, &out),
				 0);
		file.len += out;
	}
	wd_alg_end(&ctx);
	for (unsigned int threads = 1; threads < 4; threads += 2) {
		sink = (struct sink){ 0 };
		u.threads = threads;
		u.chunk = 16384;
		u.in = file.data;
		u.in_len = file.len;
		assert_int_equal(wf_alg_unpack_run(&u), 0);
		assert_int_equal(sink.len, 64u << 20);
		assert_int_equal(sink.seed, u.check);
	}
}

static void unpack_runs(struct wf_unpack *u, unsigned int threads)
{
	struct sink sink = { 0 };

	*u = (struct wf_unpack){ .alg = WD_COMP_RAW,
				 .threads = threads,
				 .chunk = 32768,
				 .in = file.data,
				 .in_len = file.len,
				 .put = count,
				 .arg = &sink };
	assert_int_equal(wf_alg_unpack_run(u), 0);
	assert_int_equal(u->total_out, sink.len);
	assert_int_equal(u->check, sink.seed);
}

/* No piece can begin in fixed blocks: several threads once searched all of them
 * in vain, because each piece in order made them begin again. */
static void test_fixed(void **state)
{
	(void)state;
	begin();
	add_runs(800);
	add("\3", 2); /* an empty fixed block, the last */
	for (unsigned int threads = 1; threads < 5; threads++) {
		struct wf_unpack u;

		unpack_runs(&u, threads);
		assert_int_equal(u.total_out, 800 * RUN_BLOCK);
		assert_int_equal(u.ahead, 0);
		assert_in_range(u.missed, 0, threads);
	}
}

/* Behind fixed blocks, which end the search, it begins again. A thread that does
 * not get a processor for so long can do nothing ahead: several rounds. */
static void test_fixed_before(void **state)
{
	bool again = false;

	(void)state;
	make_text(plain, PLAIN, 9);
	begin();
	add_runs(800);
	pack(WD_COMP_RAW, plain, PLAIN, 6, "zlib");
	for (int round = 0; round < 100 && !again; round++) {
		struct wf_unpack u;

		unpack_runs(&u, 2);
		assert_int_equal(u.total_out, 800 * RUN_BLOCK + PLAIN);
		again = u.missed && u.ahead;
	}
	assert_true(again);
}

/* One stream of any format; bytes behind it are left. */
static void test_formats(void **state)
{
	(void)state;
	make_text(plain, PLAIN, 6);
	for (int alg = WD_COMP_RAW; alg <= WD_COMP_GZIP; alg++) {
		size_t len;

		begin();
		pack(alg, plain, 1 << 20, 6, "zlib");
		len = file.len;
		add("\x1f\x8b and so on", 13);
		for (unsigned int threads = 1; threads < 4; threads++) {
			struct sink sink = { 0 };
			struct wf_unpack u = { .alg = alg,
					       .threads = threads,
					       .chunk = 16384,
					       .in = file.data,
					       .in_len = file.len,
					       .put = put,
					       .arg = &sink };

			assert_int_equal(wf_alg_unpack_run(&u), 0);
			assert_int_equal(u.total_in, len);
			assert_int_equal(u.total_out, 1 << 20);
			assert_memory_equal(got, plain, 1 << 20);
			if (alg != WD_COMP_RAW) {
				file.data[len - 3] ^= 1;
				assert_int_equal(wf_alg_unpack_run(&u),
						 -EBADMSG);
				file.data[len - 3] ^= 1;
			}
		}
	}
}

/* Failures of the caller's end it, with that error. */
static int put_fails(void *arg, const uint8_t *data, size_t len)
{
	struct sink *s = arg;

	(void)data;
	s->len += len;
	return s->len > 500000 ? -ENOSPC : 0;
}

static ssize_t read_fails(void *arg, uint8_t *buf, size_t len)
{
	struct sink *s = arg;
	ssize_t n = read_some(arg, buf, len);

	return s->at > 100000 ? -EIO : n;
}

static void test_failures(void **state)
{
	(void)state;
	make_text(plain, PLAIN, 8);
	begin();
	pack(WD_COMP_GZIP, plain, PLAIN, 6, "zlib");
	input = file;
	for (unsigned int threads = 1; threads < 5; threads++) {
		struct sink sink = { 0 };
		struct wf_unpack u = { .alg = WD_COMP_GZIP,
				       .members = true,
				       .threads = threads,
				       .chunk = 16384,
				       .in = file.data,
				       .in_len = file.len,
				       .put = put_fails,
				       .arg = &sink };

		assert_int_equal(wf_alg_unpack_run(&u), -ENOSPC);
		sink = (struct sink){ 0 };
		u.in = NULL;
		u.put = put;
		u.read = read_fails;
		assert_int_equal(wf_alg_unpack_run(&u), -EIO);
	}
}

static int set_up(void **state)
{
	(void)state;
	plain = malloc(PLAIN + 1024);
	want = malloc(MOST);
	got = malloc(MOST);
	file.data = malloc(MOST);
	return plain && want && got && file.data ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(plain);
	free(want);
	free(got);
	free(file.data);
	wd_alg_async_fini();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_fixed_before),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_far_points),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
