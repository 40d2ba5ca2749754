/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver as programs use it: through libwd, by its name. CUDA is the fake
 * one here (fake_cuda.c); on a machine with a GPU this runs with the real one
 * as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/wd.h>
#include <weft/wd_comp_drv.h>
#include <weft/wd_drv.h>

#include "cuda/cuda_defs.h"
#include "cuda/library.h"
#include "tools/comp/bench.h"

#define CORPUS (4u << 20)
#define PIECE 65280u
#define PIECES (CORPUS / PIECE)
#define SOME 20

static uint8_t *corpus;
static struct wf_cu cu;

struct piece {
	struct wd_comp_ctx ctx;
	uint8_t *packed;
	size_t packed_len;
	uint8_t *plain;
	int result;
	int back;
};

static struct piece pieces[PIECES];

static void is_back(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct piece *p = arg;

	(void)ctx;
	p->result = result;
	p->back++;
}

static void wait_for_all(void)
{
	for (size_t i = 0; i < PIECES; i++) {
		while (!pieces[i].back) {
			wd_alg_wait(1000);
			wd_alg_poll(0);
		}
	}
}

/* Streams of all formats, by whichever library is best. */
static void pack_pieces(void)
{
	for (size_t i = 0; i < PIECES; i++) {
		struct piece *p = &pieces[i];
		struct wd_comp_ctx ctx = { .alg_type = (int)(i % 3),
					   .comp_level = 1 + (int)(i % 9) };
		size_t in = PIECE, room = wd_alg_deflate_bound(&ctx, PIECE);

		p->packed = malloc(room);
		p->plain = malloc(PIECE);
		assert_int_equal(wd_alg_deflate(&ctx, corpus + i * PIECE, &in,
						p->packed, &room),
				 0);
		p->packed_len = room;
	}
}

static void test_batch(void **state)
{
	(void)state;
	pack_pieces();
	for (size_t i = 0; i < PIECES; i++) {
		struct piece *p = &pieces[i];

		p->ctx = (struct wd_comp_ctx){ .alg_type = (int)(i % 3),
					       .driver = "cuda" };
		assert_int_equal(wd_alg_async_inflate(&p->ctx, is_back, p,
						      p->packed, p->packed_len,
						      p->plain, PIECE),
				 0);
	}
	wait_for_all();
	for (size_t i = 0; i < PIECES; i++) {
		struct piece *p = &pieces[i];

		assert_int_equal(p->back, 1);
		assert_int_equal(p->result, 0);
		assert_int_equal(p->ctx.out_len, PIECE);
		assert_string_equal(p->ctx.used, "cuda");
		assert_memory_equal(p->plain, corpus + i * PIECE, PIECE);
		/* Ordinary memory is copied there and back. */
		assert_true(p->ctx.copied > PIECE);
	}
}

/* A mistake in a piece is reported for it, and for no other. */
static void test_damaged(void **state)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP, .driver = "cuda" };
	struct piece *p = &pieces[2]; /* gzip */
	size_t in, out;

	(void)state;
	for (size_t at = 20; at < p->packed_len; at += 1 + at / 3) {
		in = p->packed_len;
		out = PIECE;
		p->packed[at] ^= 0x10;
		assert_int_not_equal(
			wd_alg_inflate(&ctx, p->packed, &in, p->plain, &out),
			0);
		p->packed[at] ^= 0x10;
	}
	in = p->packed_len / 2;
	out = PIECE;
	assert_int_equal(wd_alg_inflate(&ctx, p->packed, &in, p->plain, &out),
			 -ENODATA);
	in = p->packed_len;
	out = PIECE - 1;
	assert_int_equal(wd_alg_inflate(&ctx, p->packed, &in, p->plain, &out),
			 -ENOSPC);
	in = p->packed_len;
	out = PIECE;
	assert_int_equal(wd_alg_inflate(&ctx, p->packed, &in, p->plain, &out),
			 0);
	assert_memory_equal(p->plain, corpus + 2 * PIECE, PIECE);
}

/* Many threads, each with calls of its own, compress and decompress. */
static void *run_thread(void *arg)
{
	size_t first = (size_t)(uintptr_t)arg * 777, len = 300000;
	uint8_t *packed = malloc(2 * len), *plain = malloc(len);

	for (size_t i = 0; i < 8; i++) {
		const uint8_t *src = corpus + first + i * 1001;
		struct wd_comp_ctx ctx = { .alg_type = (int)(i % 3),
					   .comp_level = 1,
					   .driver = "cuda" };
		size_t in = len - i * 40000, out = 2 * len, n = in;

		if (wd_alg_deflate(&ctx, src, &in, packed, &out) || in != n ||
		    strcmp(ctx.used, "cuda") != 0)
			return (void *)1;
		/* By another: it must be a stream for anybody. */
		ctx.driver = i % 2 ? "zlib" : NULL;
		in = out;
		out = len;
		if (wd_alg_inflate(&ctx, packed, &in, plain, &out) ||
		    out != n || memcmp(src, plain, n) != 0)
			return (void *)2;
	}
	free(packed);
	free(plain);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[6];

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_thread,
						(void *)(uintptr_t)i),
				 0);
	for (size_t i = 0; i < 6; i++) {
		void *ret;

		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
}

/* Through the parallel calls, with an index, and data that does not shrink. */
static void test_parallel(void **state)
{
	struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP,
				   .comp_level = 1,
				   .driver = "cuda" };
	struct wd_comp_ctx back = { .alg_type = WD_COMP_GZIP };
	struct wd_comp_index index = { 0 };
	size_t in = CORPUS, out, room, len = CORPUS;
	uint8_t *packed, *plain = malloc(CORPUS);

	(void)state;
	for (size_t i = 0; i < 300000; i++)
		corpus[i] = (uint8_t)(i * i * 2654435761u >> 13);
	room = out = wd_alg_deflate_bound(&ctx, CORPUS);
	packed = malloc(room);
	assert_int_equal(wd_alg_deflate_parallel(&ctx, 4, corpus, &in, packed,
						 &out, &index),
			 0);
	assert_string_equal(ctx.used, "cuda");
	in = out;
	assert_int_equal(wd_alg_inflate_parallel(&back, 2, packed, &in, plain,
						 &len, &index),
			 0);
	assert_int_equal(len, CORPUS);
	assert_memory_equal(plain, corpus, CORPUS);
	/* From point to point, each piece by the driver. */
	for (size_t i = 0; i + 1 < index.count; i++) {
		struct wd_comp_ctx piece = { .alg_type = WD_COMP_RAW,
					     .raw_check = WD_COMP_GZIP,
					     .flush_type = WD_COMP_SYNC_FLUSH,
					     .driver = "cuda" };
		struct wd_comp_point *p = &index.points[i];

		in = p[1].in - p->in;
		len = p[1].out - p->out;
		memset(plain, 0, len);
		assert_int_equal(wd_alg_inflate(&piece, packed + p->in, &in,
						plain, &len),
				 0);
		assert_memory_equal(plain, corpus + p->out, len);
		assert_int_equal(piece.check,
				 wd_comp_check(WD_COMP_GZIP, 0, plain, len));
	}
	wd_comp_index_free(&index);
	free(packed);
	free(plain);
}

/* -- memory
 * ----------------------------------------------------------------- */

static void *context;

static void copy_sync(wf_cu_ptr to, wf_cu_ptr from, size_t len, int out)
{
	void *event, *stream, *old;

	cu.cuCtxPushCurrent_v2(context);
	assert_int_equal(cu.cuStreamCreate(&stream, WF_CU_STREAM_APART), 0);
	assert_int_equal(cu.cuEventCreate(&event, WF_CU_EVENT_NO_TIME), 0);
	if (out)
		cu.cuMemcpyDtoHAsync_v2((void *)to, from, len, stream);
	else
		cu.cuMemcpyHtoDAsync_v2(to, (void *)from, len, stream);
	cu.cuEventRecord(event, stream);
	while (cu.cuEventQuery(event) == WF_CU_NOT_READY)
		usleep(100);
	cu.cuEventDestroy_v2(event);
	cu.cuStreamDestroy_v2(stream);
	cu.cuCtxPopCurrent_v2(&old);
}

static wf_cu_ptr make_device(size_t len)
{
	wf_cu_ptr at = 0;
	void *old;

	cu.cuCtxPushCurrent_v2(context);
	assert_int_equal(cu.cuMemAlloc_v2(&at, len), 0);
	cu.cuCtxPopCurrent_v2(&old);
	return at;
}

/* Memory that the GPU copies itself, and its own: nobody copies, nor
 * touches. */
static void test_memory(void **state)
{
	struct wd_comp_ctx ctx = { .comp_level = 1,
				   .raw_check = WD_COMP_GZIP,
				   .driver = "cuda" };
	size_t len = 1000000, in = len, out = 2 * len, packed, last;
	wf_cu_ptr plain = make_device(len), there = make_device(2 * len);
	uint8_t *pinned = NULL, *pinned_out = NULL;
	void *old;

	(void)state;
	cu.cuCtxPushCurrent_v2(context);
	cu.cuMemHostAlloc((void **)&pinned, len, WF_CU_HOST_PORTABLE);
	cu.cuMemHostAlloc((void **)&pinned_out, 2 * len, WF_CU_HOST_PORTABLE);
	cu.cuCtxPopCurrent_v2(&old);
	memcpy(pinned, corpus + 500000, len);
	assert_int_equal(wd_alg_deflate(&ctx, pinned, &in, pinned_out, &out),
			 0);
	assert_int_equal(ctx.copied, 0);
	packed = out;
	/* The same in the GPU's own memory, byte by byte. */
	copy_sync(plain, (uintptr_t)pinned, len, 0);
	in = len;
	out = 2 * len;
	assert_int_equal(
		wd_alg_deflate(&ctx, (void *)plain, &in, (void *)there, &out),
		0);
	assert_int_equal(ctx.copied, 0);
	assert_int_equal(out, packed);
	assert_int_equal(ctx.check,
			 wd_comp_check(WD_COMP_GZIP, 0, pinned, len));
	memset(pinned, 0, len);
	in = packed;
	last = len;
	assert_int_equal(wd_alg_inflate(&ctx, pinned_out, &in, pinned, &last),
			 0);
	assert_int_equal(ctx.copied, 0);
	assert_memory_equal(pinned, corpus + 500000, len);
	copy_sync((uintptr_t)pinned_out, there, packed, 1);
	in = packed;
	last = len;
	assert_int_equal(
		wd_alg_inflate(&ctx, (void *)there, &in, (void *)plain, &last),
		0);
	assert_int_equal(last, len);
	memset(pinned, 0, len);
	copy_sync((uintptr_t)pinned, plain, len, 1);
	assert_memory_equal(pinned, corpus + 500000, len);
	/* Too little room: it is said, and nobody stores bytes there. */
	in = len;
	out = 1000;
	assert_int_equal(
		wd_alg_deflate(&ctx, (void *)plain, &in, (void *)there, &out),
		-ENOSPC);
}

/* -- channels -------------------------------------------------------------- */

static int (*host_register)(void *at, size_t len, unsigned int flags);
static int (*host_unregister)(void *at);
static int (*host_address)(wf_cu_ptr *at, void *host, unsigned int flags);
static int lent, given_back;

/* Allocators of somebody else's: memory of the GPU, and memory of the process
 * that CUDA is told of. */
static void *alloc_device(size_t size, uint64_t *dma)
{
	lent++;
	*dma = make_device(size);
	return (void *)*dma;
}

static void free_device(void *va)
{
	void *old;

	given_back++;
	cu.cuCtxPushCurrent_v2(context);
	cu.cuMemFree_v2((uintptr_t)va);
	cu.cuCtxPopCurrent_v2(&old);
}

static void *alloc_registered(size_t size, uint64_t *dma)
{
	void *va = aligned_alloc(4096, size), *old;

	lent++;
	cu.cuCtxPushCurrent_v2(context);
	assert_int_equal(host_register(va, size, 2 /* mapped */), 0);
	assert_int_equal(host_address(dma, va, 0), 0);
	cu.cuCtxPopCurrent_v2(&old);
	return va;
}

static void free_registered(void *va)
{
	void *old;

	given_back++;
	cu.cuCtxPushCurrent_v2(context);
	assert_int_equal(host_unregister(va), 0);
	cu.cuCtxPopCurrent_v2(&old);
	free(va);
}

static const struct wd_3rd_memory allocators[] = {
	{ .alloc_mem = alloc_device, .free_mem = free_device },
	{ .alloc_mem = alloc_registered, .free_mem = free_registered },
};

static void find_calls(void)
{
	const char *asked = getenv("WD_CUDA_LIBRARY");
	void *lib = dlopen(asked ? asked : "libcuda.so.1", RTLD_NOW);

	*(void **)&host_register = dlsym(lib, "cuMemHostRegister_v2");
	*(void **)&host_unregister = dlsym(lib, "cuMemHostUnregister");
	*(void **)&host_address = dlsym(lib, "cuMemHostGetDevicePointer_v2");
	assert_true(host_register && host_unregister && host_address);
}

#define LEN 700000u
#define HALF (1u << 20)

/* Compresses from the first half of a region to its second, and back. */
static void use_region(struct wd_chan *ch, uint8_t *va, bool device)
{
	struct wd_comp_ctx ctx = { .ch = ch,
				   .comp_level = 1,
				   .raw_check = WD_COMP_GZIP };
	size_t in = LEN, out = HALF, back = HALF;
	uint8_t *seen = malloc(HALF);

	ctx.driver = device ? "cuda" : NULL;
	if (device)
		copy_sync((uintptr_t)va, (uintptr_t)corpus + 900000, LEN, 0);
	else
		memcpy(va, corpus + 900000, LEN);
	assert_int_equal(wd_alg_deflate(&ctx, va, &in, va + HALF, &out), 0);
	assert_string_equal(ctx.used, "cuda");
	assert_int_equal(ctx.copied, 0);
	if (device)
		copy_sync((uintptr_t)va, (uintptr_t)seen, LEN, 0);
	else
		memset(va, 0, LEN);
	assert_int_equal(wd_alg_inflate(&ctx, va + HALF, &out, va, &back), 0);
	assert_string_equal(ctx.used, "cuda");
	assert_int_equal(ctx.copied, 0);
	assert_int_equal(back, LEN);
	if (device)
		copy_sync((uintptr_t)seen, (uintptr_t)va, LEN, 1);
	assert_memory_equal(device ? seen : va, corpus + 900000, LEN);
	free(seen);
}

/* To CUDA, as memory that is allocated. */
static bool is_known(void *va)
{
	unsigned int type = 0;
	void *old;
	int err;

	cu.cuCtxPushCurrent_v2(context);
	err = cu.cuPointerGetAttribute(&type, WF_CU_POINTER_TYPE,
				       (uintptr_t)va);
	cu.cuCtxPopCurrent_v2(&old);
	return !err && type;
}

/* A GPU in Share Domain: reserved memory is pinned and has an address of the
 * GPU's; a second channel uses it, too, and it lives until both are released. */
static void test_channel(void **state)
{
	struct wd_chan ch = { .dev_path = "cuda-0" }, more = ch;
	uint8_t *va;

	(void)state;
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_int_equal(wd_request_channel(&more), 0);
	assert_int_equal(ch.dev_info->iommu_type, WD_IOMMU_SHARE_DOMAIN);
	assert_int_equal(wd_is_sharing(&ch, NULL), 0);
	assert_int_equal(wd_drv_alive(&ch), 1);
	assert_int_equal(wd_drv_start(&ch), -EOPNOTSUPP);
	assert_int_equal(wd_drv_event_fd(&ch), -EOPNOTSUPP);
	va = wd_reserve_mem(&ch, 2 * HALF);
	assert_non_null(va);
	assert_null(wd_reserve_mem(&ch, HALF));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(va[0] | va[2 * HALF - 1], 0);
	assert_true(wd_get_dma_from_va(&ch, va) == (uintptr_t)ch.ss_dma);
	assert_true(wd_get_dma_from_va(&ch, va + 99) ==
		    (uintptr_t)ch.ss_dma + 99);
	assert_true(wd_get_dma_from_va(&ch, va + 2 * HALF) == 0);
	if (getenv("WD_CUDA_LIBRARY"))
		assert_true((uintptr_t)ch.ss_dma != (uintptr_t)va);
	use_region(&ch, va, false);
	assert_int_equal(wd_share_dma_addr(&more, &ch), 0);
	assert_true(more.ss_dma == ch.ss_dma);
	wd_release_channel(&ch);
	assert_true(is_known(va));
	use_region(&more, va, false);
	wd_release_channel(&more);
	assert_false(is_known(va));
}

/* Memory that the GPU does not reach goes to another driver: no hidden copy. */
static void test_unreached(void **state)
{
	struct wd_chan ch = { .dev_path = "cuda-0" };
	struct wd_comp_ctx ctx = { .ch = &ch, .comp_level = 1 };
	size_t in = PIECE, out = 2 * PIECE;
	uint8_t *packed = malloc(out);

	(void)state;
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_int_equal(wd_alg_deflate(&ctx, corpus, &in, packed, &out), 0);
	assert_string_not_equal(ctx.used, "cuda");
	assert_int_equal(ctx.copied, 0);
	wd_release_channel(&ch);
	free(packed);
}

static void test_third(void **state)
{
	(void)state;
	find_calls();
	for (int i = 0; i < 2; i++) {
		struct wd_chan ch = { .dev_path = "cuda-0" };
		uint8_t *va;

		assert_int_equal(wd_request_channel(&ch), 0);
		assert_int_equal(wd_register_3rd_memory(&ch, &allocators[i]),
				 0);
		va = wd_reserve_mem(&ch, 2 * HALF);
		assert_non_null(va);
		assert_true(wd_get_dma_from_va(&ch, va) != 0);
		use_region(&ch, va, !i);
		wd_release_channel(&ch);
		assert_int_equal(lent, i + 1);
		assert_int_equal(given_back, i + 1);
	}
}

/* It is listed for who looks for it, behind all others. Its node, or -2. */
static int listed_node(void)
{
	struct uacce_dev_info *list;
	int n = wd_list_devices("inflate", &list), node = -2;

	if (n > 0 && !strcmp(list[n - 1].name, "cuda-0") &&
	    list[n - 1].kind == WD_DEV_PLUGGED)
		node = list[n - 1].node_id;
	wd_free_devices(list);
	return node;
}

static void put_gpu(const char *root, const char *name, const char *node)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "d=%s/bus/pci/drivers/nvidia/%s; mkdir -p $d && "
		 "echo %s > $d/numa_node",
		 root, name, node);
	assert_int_equal(system(command), 0);
}

/* Where it is in the machine is what sysfs says: the node of all GPUs. */
static void test_listed(void **state)
{
	char root[] = "/tmp/weft-cuda-XXXXXX", command[64];
	struct wd_chan any = { .alg = "inflate" };

	(void)state;
	assert_non_null(mkdtemp(root));
	setenv("WEFT_SYSFS", root, 1);
	assert_int_equal(listed_node(), -1);
	/* A caller that names no device does not get one that it cannot submit
	 * to. */
	assert_true(wd_request_channel(&any) < 0);
	put_gpu(root, "0000:01:00.0", "3");
	put_gpu(root, "module", "7");
	assert_int_equal(listed_node(), 3);
	put_gpu(root, "0000:02:00.0", "3");
	assert_int_equal(listed_node(), 3);
	put_gpu(root, "0000:03:00.0", "4");
	assert_int_equal(listed_node(), -1);
	unsetenv("WEFT_SYSFS");
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static const struct wd_alg_comp *find_driver(void)
{
	const struct wd_alg_comp *driver;

	for (unsigned int i = 0; (driver = wd_alg_comp_list(i)); i++)
		if (!strcmp(driver->name, "cuda"))
			return driver;
	return NULL;
}

/* Many jobs in one call, more than a batch takes: a batch was launched
 * before the last of its inputs were there. */
static void test_submit(void **state)
{
	const struct wd_alg_comp *driver = find_driver();
	struct wd_comp_job jobs[PIECES], *list[PIECES], *done[PIECES];
	unsigned int given = 0, back = 0;
	void *chan = NULL;

	(void)state;
	assert_non_null(driver);
	assert_int_equal(driver->open_chan(&chan, NULL, WD_COMP_CAN_INFLATE),
			 0);
	for (size_t i = 0; i < PIECES; i++) {
		/* Behind the headers of gzip and zlib. */
		size_t head = i % 3 == 2 ? 10 : i % 3 == 1 ? 2 : 0;

		jobs[i] = (struct wd_comp_job){
			.src = pieces[i].packed + head,
			.src_len = pieces[i].packed_len - head,
			.dst = pieces[i].plain,
			.dst_len = PIECE,
			.inflate = 1,
		};
		list[i] = &jobs[i];
		memset(pieces[i].plain, 0, PIECE);
	}
	while (back < PIECES) {
		int n = driver->submit(chan, list + given, PIECES - given);

		assert_true(n >= 0);
		given += (unsigned int)n;
		n = driver->poll(chan, done, PIECES);
		assert_true(n >= 0);
		back += (unsigned int)n;
		if (!n)
			driver->wait(chan, 1000);
	}
	driver->close_chan(chan);
	for (size_t i = 0; i < PIECES; i++) {
		assert_int_equal(jobs[i].result, 0);
		assert_memory_equal(pieces[i].plain, corpus + i * PIECE, PIECE);
	}
}

/* A channel that is closed lets go of its jobs, wherever they are. */
static void test_close(void **state)
{
	const struct wd_alg_comp *driver = find_driver();
	struct wd_comp_job jobs[SOME], *list[SOME];
	uint8_t *out = malloc(SOME * PIECE);

	(void)state;
	assert_non_null(driver);
	for (int turn = 0; turn < 4; turn++) {
		void *chan = NULL;
		int taken;

		assert_int_equal(
			driver->open_chan(&chan, NULL, WD_COMP_CAN_DEFLATE), 0);
		for (size_t i = 0; i < SOME; i++) {
			jobs[i] = (struct wd_comp_job){
				.src = corpus + i * PIECE,
				.src_len = PIECE,
				.dst = out + i * PIECE,
				.dst_len = PIECE,
				.level = 1,
			};
			list[i] = &jobs[i];
		}
		taken = driver->submit(chan, list, SOME);
		assert_int_equal(taken, SOME);
		for (int k = 0; k < turn; k++) {
			struct wd_comp_job *done[16];

			driver->poll(chan, done, 16);
			usleep(500);
		}
		driver->close_chan(chan);
		memset(jobs, 0x5a, sizeof(jobs));
	}
	free(out);
	/* And others go on. */
	assert_null(run_thread(NULL));
}

/* -- what fails
 * ------------------------------------------------------------- */

/* In a process of its own, before this one has used the driver. 0: as
 * wanted. */
static int in_child(const char *name, const char *value, int (*run)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setenv(name, value, 1);
		_exit(run());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* WD_COMP_DRIVER=cuda: it is preferred, and another does what it cannot. */
static int run_anyway(void)
{
	uint8_t *packed = malloc(2 * PIECE), *plain = malloc(PIECE);

	for (int i = 0; i < 20; i++) {
		struct wd_comp_ctx ctx = { .comp_level = 1,
					   .alg_type = WD_COMP_GZIP };
		size_t in = PIECE, out = 2 * PIECE, n;

		if (wd_alg_deflate(&ctx, corpus, &in, packed, &out))
			return 1;
		in = out;
		n = PIECE;
		if (wd_alg_inflate(&ctx, packed, &in, plain, &n) ||
		    memcmp(plain, corpus, PIECE) != 0)
			return 2;
		if (i == 19 && !strcmp(ctx.used, "cuda"))
			return 3;
	}
	return 0;
}

static int run_refused(void)
{
	struct wd_comp_ctx ctx = { .comp_level = 1, .driver = "cuda" };
	size_t in = PIECE, out = 2 * PIECE;
	uint8_t *packed = malloc(out);

	return wd_alg_deflate(&ctx, corpus, &in, packed, &out) ? 0 : 1;
}

static void test_failures(void **state)
{
	(void)state;
	if (!getenv("WD_CUDA_LIBRARY"))
		skip(); /* the real one cannot be made to fail */
	setenv("WD_COMP_DRIVER", "cuda", 1);
	assert_int_equal(in_child("FAKE_CUDA_FAIL_AFTER", "5", run_anyway), 0);
	assert_int_equal(in_child("FAKE_CUDA_FAIL_AFTER", "0", run_anyway), 0);
	assert_int_equal(in_child("FAKE_CUDA_NO_GPU", "1", run_anyway), 0);
	assert_int_equal(in_child("WD_CUDA_LIBRARY", "/none", run_anyway), 0);
	assert_int_equal(in_child("WD_CUDA_DEVICE", "7", run_anyway), 0);
	unsetenv("WD_COMP_DRIVER");
	assert_int_equal(
		in_child("XDG_CACHE_HOME", "/dev/null/none", run_refused), 1);
	assert_int_equal(in_child("WD_CUDA_NVRTC", "/none", run_refused), 0);
	assert_int_equal(in_child("FAKE_CUDA_NO_GPU", "1", run_refused), 0);
}

/* CUDA does not survive a fork: the child is told, and does not hang. */
static void test_fork(void **state)
{
	(void)state;
	assert_int_equal(in_child("WD_CUDA_CHILD", "1", run_refused), 0);
	assert_null(run_thread(NULL));
}

static int setup(void **state)
{
	const char *why;

	(void)state;
	corpus = malloc(CORPUS);
	if (!corpus || wf_tools_comp_corpus(corpus, CORPUS) < CORPUS ||
	    wf_cuda_library_load(&cu, &why))
		return -1;
	return 0;
}

static int begin_cuda(void **state)
{
	(void)state;
	return cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test_setup(test_batch, begin_cuda),
		cmocka_unit_test(test_submit),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_channel),
		cmocka_unit_test(test_unreached),
		cmocka_unit_test(test_third),
		cmocka_unit_test(test_listed),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
