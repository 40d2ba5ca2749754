/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One buffer over several threads: one valid stream, read back in one run and
 * in parallel; indexes that lie; and the registry: whose turn it is, and what
 * happens when a device dies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weft/wd_comp_drv.h>

#define MOST (9u << 18)

static uint8_t *data, *packed, *plain;

static uint64_t seed = 5;

static unsigned int rnd(unsigned int below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned int)(seed >> 33) % below;
}

static size_t pack(struct wd_comp_ctx *ctx, size_t len,
		   struct wd_comp_index *index)
{
	size_t in = len, out = MOST + 10000;

	assert_int_equal(
		wd_alg_deflate_parallel(ctx, 3, data, &in, packed, &out, index),
		0);
	assert_int_equal(in, len);
	return out;
}

static void unpack(struct wd_comp_ctx *ctx, size_t packed_len, size_t len,
		   const struct wd_comp_index *index)
{
	size_t in = packed_len + 3, out = MOST;

	memset(plain, 0, len);
	assert_int_equal(wd_alg_inflate_parallel(ctx, 3, packed, &in, plain,
						 &out, index),
			 0);
	assert_int_equal(in, packed_len);
	assert_int_equal(out, len);
	assert_memory_equal(plain, data, len);
}

static void test_parallel(void **state)
{
	static const size_t sizes[] = { 0, 1, 1u << 19, (1u << 20) + 1, MOST };

	(void)state;
	for (int alg = WD_COMP_RAW; alg <= WD_COMP_GZIP; alg++) {
		for (int level = 0; level <= 9; level += 3) {
			for (size_t i = 0; i < 5; i++) {
				struct wd_comp_ctx ctx = {
					.alg_type = alg,
					.comp_level = level + (level == 3)
				};
				struct wd_comp_index index;
				size_t n = pack(&ctx, sizes[i], &index), in,
				       out;

				unpack(&ctx, n, sizes[i], &index);
				unpack(&ctx, n, sizes[i], NULL);
				in = n;
				out = MOST;
				assert_int_equal(wd_alg_inflate(&ctx, packed,
								&in, plain,
								&out),
						 0);
				assert_int_equal(out, sizes[i]);
				if (sizes[i] == MOST)
					assert_true(index.count > 1);
				wd_comp_index_free(&index);
			}
		}
	}
}

static void test_lying_index(void **state)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP, .comp_level = 1 };
	struct wd_comp_index index;
	size_t n = pack(&ctx, MOST, &index);

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct wd_comp_point *p =
			&index.points[rnd((unsigned int)index.count)];
		struct wd_comp_point kept = *p;

		if (i & 1)
			p->in += rnd(3) ? rnd(100) : rnd(1u << 31);
		else
			p->out -= rnd(3) ? rnd(100) : rnd(1u << 31);
		unpack(&ctx, n, MOST, &index);
		*p = kept;
	}
	/* Damage is found, with or without. */
	packed[n / 2] ^= 4;
	for (int i = 0; i < 2; i++) {
		size_t in = n, out = MOST;

		assert_int_not_equal(wd_alg_inflate_parallel(&ctx, 2, packed,
							     &in, plain, &out,
							     i ? &index : NULL),
				     0);
	}
	wd_comp_index_free(&index);
}

static atomic_int asked, exited;
static int answer = -ENODEV;

static int mock_deflate(struct wd_comp_job *job)
{
	(void)job;
	atomic_fetch_add(&asked, 1);
	return answer;
}

static void mock_exit(void)
{
	atomic_fetch_add(&exited, 1);
}

static const struct wd_alg_comp dying = {
	.name = "dying",
	.priority = 1000,
	.node = 0,
	.can = WD_COMP_CAN_DEFLATE | WD_COMP_CAN_INFLATE,
	.levels = 0x3ff,
	.min_window = 15,
	.exit = mock_exit,
	.deflate = mock_deflate,
	.inflate = mock_deflate,
};

static void test_device_dies(void **state)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP, .comp_level = 6 };
	struct wd_alg_comp bad = dying;
	size_t in = 1000, out = 2000, len;

	(void)state;
	bad.deflate = NULL;
	assert_int_equal(wd_alg_comp_register(&bad), -EINVAL);
	assert_int_equal(wd_alg_comp_register(NULL), -EINVAL);
	assert_int_equal(wd_alg_comp_register(&dying), 0);
	assert_int_equal(wd_alg_comp_register(&dying), -EEXIST);
	assert_string_equal(wd_alg_comp_list(0)->name, "dying");
	/* It is asked first, is gone, and the next one does it. */
	assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out), 0);
	assert_int_equal(atomic_load(&asked), 1);
	assert_string_not_equal(ctx.used, "dying");
	len = out;
	in = len;
	out = MOST;
	assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out), 0);
	assert_int_equal(atomic_load(&asked), 2);
	assert_memory_equal(plain, data, 1000);
	/* By name there is no next one. */
	ctx.driver = "dying";
	in = 1000;
	out = 2000;
	assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
			 -ENODEV);
	assert_int_equal(wd_alg_comp_unregister(&dying), 0);
	assert_int_equal(atomic_load(&exited), 1);
	assert_int_equal(wd_alg_comp_unregister(&dying), -ENOENT);
	in = 1000;
	out = 2000;
	assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
			 -ENOTSUP);
}

static void test_busy_driver(void **state)
{
	struct wd_comp_ctx ctx = { .stream_mode = WD_COMP_STATEFUL,
				   .new_stream = 1,
				   .driver = "zlib",
				   .comp_level = 6,
				   .flush_type = WD_COMP_NO_FLUSH };
	const struct wd_alg_comp *zlib = NULL;
	size_t in = 100, out = 1000;

	(void)state;
	for (unsigned int i = 0; wd_alg_comp_list(i); i++) {
		if (!strcmp(wd_alg_comp_list(i)->name, "zlib"))
			zlib = wd_alg_comp_list(i);
	}
	assert_non_null(zlib);
	assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out), 0);
	assert_int_equal(wd_alg_comp_unregister(zlib), -EBUSY);
	wd_alg_end(&ctx);
	assert_int_equal(wd_alg_comp_unregister(zlib), 0);
	assert_int_equal(wd_alg_comp_register(zlib), 0);
}

/* From one point to the next there is a piece that needs nothing else. */
static void test_index(void **state)
{
	(void)state;
	for (int level = 1; level <= 6; level += 5) {
		struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
					   .comp_level = level };
		struct wd_comp_index index;
		size_t len = pack(&ctx, MOST, &index);

		assert_true(index.count >= 2);
		for (size_t i = 0; i < index.count; i++) {
			const struct wd_comp_point *p = &index.points[i];
			bool last = i + 1 == index.count;
			struct wd_comp_ctx raw = {
				.flush_type = last ? WD_COMP_FINISH :
						     WD_COMP_SYNC_FLUSH,
			};
			size_t in = (last ? len - 8 : p[1].in) - p->in;
			size_t want = (last ? MOST : p[1].out) - p->out;
			size_t given = in, out = MOST;

			assert_int_equal(wd_alg_inflate(&raw, packed + p->in,
							&in, plain, &out),
					 0);
			assert_int_equal(in, given);
			assert_int_equal(out, want);
			assert_memory_equal(plain, data + p->out, want);
		}
		wd_comp_index_free(&index);
	}
}

/* Raw data has the checksum that was asked for, and the context says who did
 * it and is otherwise left as it was. */
static void test_raw_check(void **state)
{
	struct wd_comp_ctx ctx = { .comp_level = 1,
				   .raw_check = WD_COMP_GZIP,
				   .stream_mode = WD_COMP_STATEFUL,
				   .flush_type = WD_COMP_SYNC_FLUSH };
	uint32_t want = wd_comp_check(WD_COMP_GZIP, 0, data, MOST);
	struct wd_comp_index index;
	size_t in = MOST, out = MOST + 10000, len;

	(void)state;
	assert_int_equal(wd_alg_deflate_parallel(&ctx, 3, data, &in, packed,
						 &out, &index),
			 0);
	assert_int_equal(ctx.check, want);
	assert_non_null(ctx.used);
	len = out;
	for (int i = 0; i < 2; i++) {
		in = len;
		out = MOST;
		ctx.check = 0;
		ctx.used = NULL;
		assert_int_equal(wd_alg_inflate_parallel(&ctx, 3, packed, &in,
							 plain, &out,
							 i ? NULL : &index),
				 0);
		assert_int_equal(ctx.check, want);
		assert_non_null(ctx.used);
		assert_int_equal(ctx.stream_mode, WD_COMP_STATEFUL);
		assert_int_equal(ctx.flush_type, WD_COMP_SYNC_FLUSH);
	}
	wd_comp_index_free(&index);
}

static void test_checks(void **state)
{
	(void)state;
	assert_int_equal(wd_comp_check(WD_COMP_GZIP, 0, "123456789", 9),
			 0xcbf43926u);
	assert_int_equal(wd_comp_check(WD_COMP_ZLIB, 1, "Wikipedia", 9),
			 0x11e60398u);
	assert_int_equal(wd_comp_check(WD_COMP_RAW, 7, "Wikipedia", 9), 7);
	/* libdeflate begins again at NULL. */
	assert_int_equal(wd_comp_check(WD_COMP_GZIP, 7, NULL, 0), 7);
	assert_int_equal(wd_comp_check(WD_COMP_ZLIB, 7, NULL, 0), 7);
}

static int setup(void **state)
{
	(void)state;
	data = malloc(MOST);
	packed = malloc(MOST + 20000);
	plain = malloc(MOST);
	for (size_t i = 0; i < MOST; i++)
		data[i] =
			(uint8_t)(rnd(8) ? "weft and warp, loom"[rnd(19)] :
					   data[i ? rnd((unsigned int)i) : 0]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wd_alg_async_fini();
	free(data);
	free(packed);
	free(plain);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_raw_check),
		cmocka_unit_test(test_lying_index),
		cmocka_unit_test(test_device_dies),
		cmocka_unit_test(test_busy_driver),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
