/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wd_alg_deflate() and wd_alg_inflate() as an application calls them: every
 * format, level, flush and driver, cut everywhere, and what they answer to bad
 * input. The real zlib reads the data that weft writes, and the other way
 * round.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp_drv.h>

#include "zreal/real.h"

#define MOST (300u << 10)

static uint8_t text[MOST], noise[MOST], packed[MOST * 2], plain[MOST + 64];

static uint64_t seed = 1;

static unsigned int rnd(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % below;
}

static void make_data(void)
{
	static const char *const words[] = { "warp", "weft", "fabric",
					     "loom", "the ", "shuttle",
					     ", ",   "\n" };
	size_t n = 0;

	while (n < MOST) {
		const char *w = words[rnd(8)];

		for (; *w && n < MOST; w++)
			text[n++] = (uint8_t)*w;
		if (!rnd(40) && n < MOST)
			text[n++] = (uint8_t)rnd(256);
	}
	for (n = 0; n < MOST; n++)
		noise[n] = (uint8_t)rnd(256);
}

static int zlib_bits(int alg)
{
	return alg == WD_COMP_RAW ? -15 : alg == WD_COMP_ZLIB ? 15 : 31;
}

/* The judge: the real zlib unpacks it to exactly this. */
static void check_unpacks(int alg, const uint8_t *in, size_t in_len,
			  const uint8_t *want, size_t want_len)
{
	const struct wf_zreal *z = wf_zreal_get();
	z_stream s = { 0 };

	assert_non_null(z);
	assert_int_equal(
		z->inflateInit2_(&s, zlib_bits(alg), ZLIB_VERSION, sizeof(s)),
		Z_OK);
	s.next_in = (Bytef *)(uintptr_t)in;
	s.avail_in = (uInt)in_len;
	s.next_out = plain;
	s.avail_out = sizeof(plain);
	assert_int_equal(z->inflate(&s, Z_FINISH), Z_STREAM_END);
	assert_int_equal(s.avail_in, 0);
	assert_int_equal(s.total_out, want_len);
	assert_memory_equal(plain, want, want_len);
	z->inflateEnd(&s);
}

static size_t zlib_pack(int alg, int level, const uint8_t *in, size_t len,
			uint8_t *out, size_t room)
{
	const struct wf_zreal *z = wf_zreal_get();
	z_stream s = { 0 };
	size_t n;

	assert_int_equal(z->deflateInit2_(&s, level, Z_DEFLATED, zlib_bits(alg),
					  8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
					  sizeof(s)),
			 Z_OK);
	s.next_in = (Bytef *)(uintptr_t)in;
	s.avail_in = (uInt)len;
	s.next_out = out;
	s.avail_out = (uInt)room;
	assert_int_equal(z->deflate(&s, Z_FINISH), Z_STREAM_END);
	n = s.total_out;
	z->deflateEnd(&s);
	return n;
}

static const size_t sizes[] = { 0, 1, 63, 1000, 65536, 131073 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void whole_one(const char *driver, int alg, int level,
		      const uint8_t *data, size_t len)
{
	struct wd_comp_ctx ctx = { .alg_type = alg,
				   .comp_level = level,
				   .driver = driver };
	size_t in = len, out = wd_alg_deflate_bound(&ctx, len), back = MOST;
	int ret = wd_alg_deflate(&ctx, data, &in, packed, &out);

	if (ret == -ENOTSUP && driver)
		return;
	assert_int_equal(ret, 0);
	assert_int_equal(in, len);
	assert_int_equal(ctx.status, WD_COMP_END);
	assert_true(out <= wd_alg_deflate_bound(&ctx, len));
	check_unpacks(alg, packed, out, data, len);
	/* What comes after the stream is not touched. */
	packed[out] = 0x55;
	packed[out + 1] = 0xaa;
	in = out + 2;
	memset(plain, 0, sizeof(plain));
	ret = wd_alg_inflate(&ctx, packed, &in, plain, &back);
	assert_int_equal(ret, 0);
	assert_int_equal(in, out);
	assert_int_equal(back, len);
	assert_memory_equal(plain, data, len);
	/* Exactly the room it needs, and one byte too little. */
	if (!len)
		return;
	in = out;
	back = len;
	assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &back), 0);
	in = out;
	back = len - 1;
	assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &back),
			 -ENOSPC);
}

static void test_whole(void **state)
{
	static const char *const drivers[] = { NULL, "isal", "libdeflate",
					       "zlib" };

	(void)state;
	for (size_t d = 0; d < 4; d++) {
		for (int alg = WD_COMP_RAW; alg <= WD_COMP_GZIP; alg++) {
			for (int level = 0; level <= 9; level += d ? 4 : 1) {
				for (size_t i = 0; i < N_SIZES; i++) {
					whole_one(drivers[d], alg, level, text,
						  sizes[i]);
					whole_one(drivers[d], alg, level, noise,
						  sizes[i]);
				}
			}
		}
	}
}

/* A piece is unpacked by itself, with no room to spare; not if it is cut. */
static void check_piece(const uint8_t *want, size_t want_len,
			const uint8_t *piece, size_t len, bool last)
{
	struct wd_comp_ctx ctx = {
		.flush_type = last ? WD_COMP_FINISH : WD_COMP_SYNC_FLUSH,
	};
	size_t in = len, out = want_len;

	assert_int_equal(wd_alg_inflate(&ctx, piece, &in, plain, &out), 0);
	assert_int_equal(in, len);
	assert_int_equal(out, want_len);
	assert_memory_equal(plain, want, want_len);
	if (last)
		return;
	ctx.flush_type = WD_COMP_FINISH;
	in = len;
	out = want_len;
	assert_int_not_equal(wd_alg_inflate(&ctx, piece, &in, plain, &out), 0);
	ctx.flush_type = WD_COMP_SYNC_FLUSH;
	in = 1 + rnd((unsigned int)len - 1);
	out = want_len;
	if (in < len - 5)
		assert_int_not_equal(
			wd_alg_inflate(&ctx, piece, &in, plain, &out) == 0 &&
				out == want_len,
			1);
}

/* Pieces with a carried dictionary, put one after the other. */
static void test_pieces(void **state)
{
	static const int flushes[] = { WD_COMP_SYNC_FLUSH, WD_COMP_FULL_FLUSH };

	(void)state;
	for (int level = 0; level <= 9; level++) {
		for (int round = 0; round < 4; round++) {
			const uint8_t *data = round % 4 ? text : noise;
			size_t at = 0, packed_len = 0, total = 120000;
			bool alone = !(round & 1) || level > 2;

			while (at < total) {
				size_t n = 1 + rnd(round < 2 ? 50000 : 1200);
				struct wd_comp_ctx ctx = {
					.comp_level = level,
					.flush_type = flushes[round & 1],
				};
				size_t out = sizeof(packed) - packed_len;
				bool last;

				n = n < total - at ? n : total - at;
				last = at + n == total;
				if (last)
					ctx.flush_type = WD_COMP_FINISH;
				if (round & 1 && level <= 2) {
					ctx.dict_len = at < 32768 ? at : 32768;
					ctx.dict = data + at - ctx.dict_len;
				}
				assert_int_equal(
					wd_alg_deflate(&ctx, data + at, &n,
						       packed + packed_len,
						       &out),
					0);
				at += n;
				packed_len += out;
				if (alone)
					check_piece(data + at - n, n,
						    packed + packed_len - out,
						    out, last);
				if (!last)
					assert_memory_equal(
						packed + packed_len - 4,
						"\0\0\xff\xff", 4);
			}
			check_unpacks(WD_COMP_RAW, packed, packed_len, data,
				      total);
		}
	}
}

/* Runs a stream with cuts of at most @cut_in and @cut_out bytes. */
static size_t stream_pack(struct wd_comp_ctx *ctx, const uint8_t *data,
			  size_t len, unsigned int cut_in, unsigned int cut_out,
			  int flush_every)
{
	size_t in_at = 0, out_at = 0;
	int calls = 0;

	ctx->new_stream = 1;
	ctx->stream_mode = WD_COMP_STATEFUL;
	ctx->status = WD_COMP_MORE_IN;
	do {
		size_t in = 1 + rnd(cut_in), out = rnd(cut_out + 1);

		in = in < len - in_at ? in : len - in_at;
		if (ctx->status != WD_COMP_MORE_OUT)
			ctx->flush_type =
				in_at + in == len ? WD_COMP_FINISH :
				flush_every && !rnd((unsigned)flush_every) ?
						    (int)(1 + rnd(5)) :
						    WD_COMP_NO_FLUSH;
		else
			in = ctx->flush_type == WD_COMP_FINISH ? len - in_at :
								 0;
		assert_true(out_at < sizeof(packed));
		if (out > sizeof(packed) - out_at)
			out = sizeof(packed) - out_at;
		assert_int_equal(wd_alg_deflate(ctx, data + in_at, &in,
						packed + out_at, &out),
				 0);
		in_at += in;
		out_at += out;
		assert_true(++calls < 4000000);
	} while (ctx->status != WD_COMP_END);
	assert_int_equal(in_at, len);
	assert_int_equal(ctx->total_in, len);
	assert_int_equal(ctx->total_out, out_at);
	return out_at;
}

static void stream_unpack(struct wd_comp_ctx *ctx, size_t packed_len,
			  const uint8_t *want, size_t len, unsigned int cut_in,
			  unsigned int cut_out)
{
	size_t in_at = 0, out_at = 0;
	int idle = 0;

	ctx->new_stream = 1;
	ctx->stream_mode = WD_COMP_STATEFUL;
	do {
		size_t in = 1 + rnd(cut_in), out = 1 + rnd(cut_out);

		/* Two bytes more than the stream has: they stay. */
		in = in < packed_len + 2 - in_at ? in : packed_len + 2 - in_at;
		out = out < sizeof(plain) - out_at ? out :
						     sizeof(plain) - out_at;
		assert_int_equal(wd_alg_inflate(ctx, packed + in_at, &in,
						plain + out_at, &out),
				 0);
		idle = in || out ? 0 : idle + 1;
		assert_true(idle < 3);
		in_at += in;
		out_at += out;
	} while (ctx->status != WD_COMP_END);
	assert_int_equal(in_at, packed_len);
	assert_int_equal(out_at, len);
	assert_memory_equal(plain, want, len);
}

/* Over all of the plain data, of the kind the format or the caller wants. */
static void check_sum(const struct wd_comp_ctx *ctx, const uint8_t *data,
		      size_t len)
{
	int alg = ctx->alg_type == WD_COMP_RAW ? ctx->raw_check : ctx->alg_type;

	assert_int_equal(ctx->check, wd_comp_check(alg, wd_comp_check_init(alg),
						   data, len));
}

static void test_streams(void **state)
{
	static const unsigned int cuts[] = { 1, 7, 300, 5000, 70000, 400000 };
	struct wd_comp_ctx ctx = { 0 };

	(void)state;
	for (int round = 0; round < 40; round++) {
		unsigned int a = cuts[rnd(6)], b = cuts[rnd(6)];
		const uint8_t *data = rnd(4) ? text : noise;
		size_t len = rnd(a < 300 || b < 300 ? 8000 : MOST), n;

		ctx.alg_type = (int)rnd(3);
		ctx.raw_check = (int)rnd(3);
		ctx.comp_level = (int)rnd(10);
		ctx.window_size = rnd(5) ? 0 : (int)(9 + rnd(7));
		n = stream_pack(&ctx, data, len, a, b, rnd(3) ? 0 : 6);
		check_unpacks(ctx.alg_type, packed, n, data, len);
		check_sum(&ctx, data, len);
		packed[n] = 0x1f;
		packed[n + 1] = 0x8b;
		ctx.driver = rnd(2) ? NULL : "zlib";
		stream_unpack(&ctx, n, data, len, cuts[rnd(6)], cuts[rnd(6)]);
		check_sum(&ctx, data, len);
		ctx.driver = NULL;
		/* And what zlib packs. */
		n = zlib_pack(ctx.alg_type, (int)rnd(10), data, len, packed,
			      sizeof(packed));
		ctx.window_size = 0;
		stream_unpack(&ctx, n, data, len, cuts[rnd(6)], cuts[rnd(6)]);
	}
	wd_alg_end(&ctx);
}

/* After a flush everything so far can be unpacked. */
static void test_flush_shows(void **state)
{
	static const int flushes[] = { WD_COMP_SYNC_FLUSH, WD_COMP_FULL_FLUSH,
				       WD_COMP_PARTIAL_FLUSH };

	(void)state;
	for (int round = 0; round < 30; round++) {
		struct wd_comp_ctx pack = { .stream_mode = WD_COMP_STATEFUL,
					    .new_stream = 1,
					    .comp_level = (int)rnd(10),
					    .alg_type = (int)rnd(3) };
		const struct wf_zreal *z = wf_zreal_get();
		size_t at = 0, end = 0;
		z_stream s = { 0 };

		z->inflateInit2_(&s, zlib_bits(pack.alg_type), ZLIB_VERSION,
				 sizeof(s));
		s.next_out = plain;
		s.avail_out = sizeof(plain);
		for (int i = 0; i < 5; i++) {
			/* Five of them fit into plain. */
			size_t in = rnd(rnd(2) ? 100 : sizeof(plain) / 5);
			size_t out = sizeof(packed) - end;

			pack.flush_type = flushes[rnd(3)];
			assert_int_equal(wd_alg_deflate(&pack, text + at, &in,
							packed + end, &out),
					 0);
			assert_int_equal(pack.status, WD_COMP_MORE_IN);
			s.next_in = packed + end;
			s.avail_in = (uInt)out;
			z->inflate(&s, Z_SYNC_FLUSH);
			at += in;
			end += out;
			assert_int_equal(s.total_out, at);
		}
		assert_memory_equal(plain, text, at);
		z->inflateEnd(&s);
		wd_alg_end(&pack);
	}
}

/* Data that are noise by themselves take next to nothing with a dictionary,
 * both ways, and a reader without the dictionary cannot read them. */
static void test_dictionaries(void **state)
{
	static const char *const drivers[] = { NULL, "isal", "zlib" };
	const size_t len = 20000;

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		struct wd_comp_ctx ctx = { .comp_level = i % 3 ? 1 : 9,
					   .driver = drivers[i % 3],
					   .dict = noise,
					   .dict_len = len,
					   .flush_type =
						   i < 3 ? WD_COMP_SYNC_FLUSH :
							   WD_COMP_FINISH };
		size_t in = len, out = sizeof(packed), n;
		int ret = wd_alg_deflate(&ctx, noise, &in, packed, &out);

		if (ret == -ENOTSUP && ctx.driver)
			continue; /* not in this build */
		assert_int_equal(ret, 0);
		assert_true(out < len / 20);
		n = out;
		for (size_t j = 0; j < 3; j++) {
			ctx.driver = drivers[j];
			ctx.dict_len = len;
			in = n;
			out = len;
			memset(plain, 0, len);
			ret = wd_alg_inflate(&ctx, packed, &in, plain, &out);
			if (ret == -ENOTSUP && ctx.driver)
				continue;
			assert_int_equal(ret, 0);
			assert_int_equal(out, len);
			assert_memory_equal(plain, noise, len);
			ctx.dict_len = 0;
			in = n;
			out = len;
			assert_int_equal(
				wd_alg_inflate(&ctx, packed, &in, plain, &out),
				-EBADMSG);
		}
	}
}

static void test_damage(void **state)
{
	(void)state;
	for (int round = 0; round < 400; round++) {
		struct wd_comp_ctx ctx = { .alg_type = (int)(1 + rnd(2)),
					   .comp_level = 6 };
		size_t in = 5000, out = sizeof(packed), len, back;
		int ret;

		if (!(round & 1))
			ctx.driver = round & 2 ? "isal" : "zlib";
		assert_int_equal(
			zlib_pack(ctx.alg_type, 6, text, in, packed, out) > 0,
			1);
		len = zlib_pack(ctx.alg_type, 6, text, in, packed, out);
		/* A wrong byte: an error, or (in unchecked header fields) the
		 * right data; never wrong data. */
		packed[rnd((unsigned)len)] ^= (uint8_t)(1 + rnd(255));
		back = 6000;
		ctx.stream_mode = rnd(2) ? WD_COMP_STATEFUL : WD_COMP_STATELESS;
		ctx.new_stream = 1;
		ret = wd_alg_inflate(&ctx, packed, &len, plain, &back);
		if (!ret && ctx.status == WD_COMP_END) {
			assert_int_equal(back, in);
			assert_memory_equal(plain, text, in);
		} else if (ret) {
			assert_true(ret == -EBADMSG || ret == -ENODATA ||
				    ret == -ENOSPC);
		}
		wd_alg_end(&ctx);
		/* Cut short. */
		ctx.stream_mode = WD_COMP_STATELESS;
		len = zlib_pack(ctx.alg_type, 6, text, in, packed, out);
		len = rnd((unsigned)len);
		back = 6000;
		ret = wd_alg_inflate(&ctx, packed, &len, plain, &back);
		assert_true(ret == -ENODATA || ret == -EBADMSG);
	}
}

static void test_arguments(void **state)
{
	struct wd_comp_ctx ctx = { .comp_level = 13 };
	size_t in = 1, out = 100;

	(void)state;
	assert_int_equal(wd_alg_deflate(NULL, text, &in, packed, &out),
			 -EINVAL);
	assert_int_equal(wd_alg_deflate(&ctx, text, &in, packed, &out),
			 -EINVAL);
	ctx.comp_level = 6;
	assert_int_equal(wd_alg_deflate(&ctx, NULL, &in, packed, &out),
			 -EINVAL);
	ctx.driver = "no such driver";
	assert_int_equal(wd_alg_deflate(&ctx, text, &in, packed, &out),
			 -ENOTSUP);
	ctx.driver = NULL;
	in = 1;
	out = 100;
	ctx.alg_type = 7;
	assert_int_equal(wd_alg_deflate(&ctx, text, &in, packed, &out),
			 -EINVAL);
	ctx.alg_type = WD_COMP_GZIP;
	ctx.window_size = 16;
	assert_int_equal(wd_alg_inflate(&ctx, text, &in, packed, &out),
			 -EINVAL);
	ctx.window_size = 0;
	ctx.flush_type = WD_COMP_SYNC_FLUSH; /* no gzip file ends like this */
	assert_int_equal(wd_alg_deflate(&ctx, text, &in, packed, &out),
			 -EINVAL);
	ctx.flush_type = WD_COMP_FINISH;
	in = 1;
	out = 10;
	assert_int_equal(wd_alg_deflate(&ctx, text, &in, packed, &out),
			 -ENOSPC);
	assert_int_equal(out, 0);
}

static void test_checks(void **state)
{
	const struct wf_zreal *z = wf_zreal_get();

	(void)state;
	for (int i = 0; i < 500; i++) {
		unsigned int at = rnd(1000), len = rnd(60000),
			     cut = rnd(len + 1);
		const uint8_t *p = noise + at;

		for (int alg = WD_COMP_ZLIB; alg <= WD_COMP_GZIP; alg++) {
			uint32_t init = wd_comp_check_init(alg);
			uint32_t want =
				alg == WD_COMP_GZIP ?
					(uint32_t)z->crc32_z(0, p, len) :
					(uint32_t)z->adler32_z(1, p, len);
			uint32_t a = wd_comp_check(alg, init, p, cut);
			uint32_t b =
				wd_comp_check(alg, init, p + cut, len - cut);

			assert_int_equal(wd_comp_check(alg, init, p, len),
					 want);
			assert_int_equal(
				wd_comp_check(alg, a, p + cut, len - cut),
				want);
			assert_int_equal(
				wd_comp_check_combine(alg, a, b, len - cut),
				want);
		}
	}
	/* Lengths that no test has time for: beyond 32 bits. */
	for (int bits = 0; bits < 48; bits++) {
		uint64_t len = (1ull << bits) + rnd(100000);
		uint32_t a = rnd(65521) << 16 | rnd(65521);
		uint32_t b = rnd(65521) << 16 | rnd(65521);

		assert_int_equal(wd_comp_check_combine(WD_COMP_GZIP, a, b, len),
				 z->crc32_combine64(a, b, (off64_t)len));
		assert_int_equal(wd_comp_check_combine(WD_COMP_ZLIB, a, b, len),
				 z->adler32_combine64(a, b, (off64_t)len));
	}
}

static int setup(void **state)
{
	(void)state;
	make_data();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_flush_shows),
		cmocka_unit_test(test_dictionaries),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_checks),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
