/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression on the software device, in each scenario, through the calls that
 * applications use; and a device that is killed under jobs: the next driver
 * does them again, and each callback still runs once.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <weft/wd_comp.h>
#include <weft/wd_comp_drv.h>

#define SIZE (700u << 10)
#define JOBS 40
#define GZIP_AROUND 18 /* header and trailer */

static uint8_t data[SIZE], packed[SIZE + 4096], plain[SIZE];

/* A device of one scenario alone, in a process of its own. */
static void only(struct rig *rig, int scenario)
{
	rig_init(rig);
	rig->config.n_devices = 0;
	assert_non_null(wf_devd_config_add(&rig->config, "zip-0", scenario));
	rig->config.client_memory = 64u << 20;
	rig->config.arena = 64u << 20;
	rig_fork(rig);
}

static void round_trip(const char *driver, int alg, int level, size_t len)
{
	struct wd_comp_ctx ctx = { .alg_type = alg,
				   .comp_level = level,
				   .driver = driver };
	size_t in = len, out = wd_alg_deflate_bound(&ctx, len);

	assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out), 0);
	assert_int_equal(in, len);
	if (driver)
		assert_string_equal(ctx.used, driver);
	/* The device's is read here, and the other way round. */
	ctx.driver = driver ? NULL : "device";
	in = out;
	out = len;
	assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out), 0);
	assert_int_equal(out, len);
	assert_memory_equal(plain, data, len);
	if (!len)
		return;
	ctx.driver = "device";
	out = len - 1;
	assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out),
			 -ENOSPC);
	packed[in / 2] ^= 0x55;
	out = len;
	assert_int_not_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out), 0);
}

static void test_scenarios(void **state)
{
	static const size_t sizes[] = { 0, 1, 1000, 65536, SIZE };

	(void)state;
	for (int s = WD_IOMMU_SVA; s <= WD_IOMMU_NONE; s++) {
		struct rig rig;

		only(&rig, s);
		for (size_t i = 0; i < 5; i++) {
			for (int alg = WD_COMP_RAW; alg <= WD_COMP_GZIP;
			     alg++) {
				round_trip("device", alg, 1 + (int)i, sizes[i]);
				round_trip(NULL, alg, 6, sizes[i]);
			}
		}
		rig_kill(&rig);
		/* By name there is no other; without, nobody notices. */
		struct wd_comp_ctx ctx = { .comp_level = 6,
					   .driver = "device" };
		size_t in = 100, out = 1000;

		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 -ENODEV);
	}
}

struct job {
	struct wd_comp_ctx ctx;
	uint8_t out[70000];
	atomic_int calls;
	int result;
};

static struct job jobs[JOBS];

static void record(struct wd_comp_ctx *ctx, int result, void *arg)
{
	struct job *job = arg;

	(void)ctx;
	job->result = result;
	atomic_fetch_add(&job->calls, 1);
}

/* WD_COMP_DRIVER=device: it is asked first, and others after it. */
static void test_killed(void **state)
{
	int by_device = 0, by_others = 0;

	(void)state;
	for (int round = 0; round < 6; round++) {
		struct rig rig;
		int done = 0;

		only(&rig, round % 3);
		for (int i = 0; i < JOBS; i++) {
			struct job *job = &jobs[i];

			memset(&job->ctx, 0, sizeof(job->ctx));
			job->ctx.alg_type = WD_COMP_GZIP;
			job->ctx.comp_level = 6;
			atomic_store(&job->calls, 0);
			assert_int_equal(wd_alg_async_deflate(
						 &job->ctx, record, job,
						 data + i * 1000, 60000,
						 job->out, sizeof(job->out)),
					 0);
		}
		while (done < JOBS) {
			wd_alg_wait(-1);
			done += wd_alg_poll(1);
			if (done == round * 3)
				rig_kill(&rig);
		}
		if (!round)
			rig_kill(&rig);
		for (int i = 0; i < JOBS; i++) {
			struct wd_comp_ctx ctx = { .alg_type = WD_COMP_GZIP };
			size_t in = jobs[i].ctx.out_len, out = SIZE;

			assert_int_equal(atomic_load(&jobs[i].calls), 1);
			assert_int_equal(jobs[i].result, 0);
			if (!strcmp(jobs[i].ctx.used, "device"))
				by_device++;
			else
				by_others++;
			assert_int_equal(wd_alg_inflate(&ctx, jobs[i].out, &in,
							plain, &out),
					 0);
			assert_memory_equal(plain, data + i * 1000, 60000);
		}
		wd_alg_async_fini();
	}
	assert_true(by_device > 0);
	assert_true(by_others > 0);
}

static void by_nobody(uint64_t arg)
{
	struct wd_comp_ctx ctx = { .comp_level = 6, .driver = "device" };
	size_t in = 1000, out = sizeof(packed);

	(void)arg;
	if (setgid(65534) || setuid(65534))
		_exit(2);
	_exit(wd_alg_deflate(&ctx, data, &in, packed, &out) ? 1 : 0);
}

/* A bug: the best device of the list was tried and no other; here it is one
 * that other users may not use. */
static void test_next_device(void **state)
{
	struct rig rig;

	(void)state;
	if (geteuid())
		skip();
	rig_init(&rig);
	rig.config.allow_uid = "any";
	rig_fork(&rig);
	rig_expect_exit(rig_spawn(by_nobody, 0));
	rig_kill(&rig);
}

/* A bug: a channel that was kept was used for what its device cannot do. */
static void test_each_its_own(void **state)
{
	struct wf_devd_device_config *device;
	struct rig rig;

	(void)state;
	rig_init(&rig);
	rig.config.n_devices = 0;
	device = wf_devd_config_add(&rig.config, "pack-0", WD_IOMMU_SVA);
	device->algs = 1u << WF_ACCEL_DEFLATE;
	device = wf_devd_config_add(&rig.config, "unpack-0", WD_IOMMU_SVA);
	device->algs = 1u << WF_ACCEL_INFLATE;
	rig_fork(&rig);
	for (int i = 0; i < 4; i++) {
		struct wd_comp_ctx ctx = { .comp_level = 1,
					   .driver = "device" };
		size_t in = 5000, out = sizeof(packed);

		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		in = out;
		out = sizeof(plain);
		assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out),
				 0);
		assert_int_equal(out, 5000);
		assert_memory_equal(plain, data, out);
	}
	rig_kill(&rig);
}

/* A job on the application's channel; who did it. */
static const char *on_channel(struct wd_chan *ch, const uint8_t *src,
			      size_t len, uint8_t *dst, size_t room)
{
	struct wd_comp_ctx ctx = { .ch = ch,
				   .alg_type = WD_COMP_GZIP,
				   .comp_level = 6 };
	struct job *job = &jobs[0];
	size_t in = len, out = room;

	assert_int_equal(wd_alg_deflate(&ctx, src, &in, dst, &out), 0);
	/* The device works on copies of what a client can change (reserved
	 * memory) or what is not here (SVA); nobody else copies. */
	assert_int_equal(ctx.copied, strcmp(ctx.used, "device") ?
					     0 :
					     len + out - GZIP_AROUND);
	memset(plain, 0, len);
	in = out;
	out = len;
	assert_int_equal(
		wd_alg_inflate(
			&(struct wd_comp_ctx){ .alg_type = WD_COMP_GZIP }, dst,
			&in, plain, &out),
		0);
	assert_memory_equal(plain, data, len);
	/* The same, asynchronously. */
	job->ctx = (struct wd_comp_ctx){ .ch = ch,
					 .alg_type = WD_COMP_GZIP,
					 .comp_level = 6 };
	atomic_store(&job->calls, 0);
	assert_int_equal(wd_alg_async_deflate(&job->ctx, record, job, src, len,
					      dst, room),
			 0);
	while (!atomic_load(&job->calls)) {
		assert_int_equal(wd_alg_wait(RIG_PATIENCE / 1000000), 0);
		wd_alg_poll(0);
	}
	assert_int_equal(job->result, 0);
	assert_string_equal(job->ctx.used, ctx.used);
	assert_int_equal(job->ctx.copied, ctx.copied);
	return ctx.used;
}

/* Somebody else's allocator: a memfd. */
static int third_fd = -1;
static size_t third_size;

static void *third_alloc(size_t size, uint64_t *dma)
{
	void *va;

	*dma = 0;
	third_size = size;
	third_fd = memfd_create("third", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (third_fd < 0 || ftruncate(third_fd, (off_t)size) ||
	    fcntl(third_fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return NULL;
	va = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, third_fd, 0);
	return va == MAP_FAILED ? NULL : va;
}

static void third_free(void *va)
{
	munmap(va, third_size);
	close(third_fd);
	third_fd = -1;
}

static int third_get_fd(void *va, uint64_t *offset)
{
	(void)va;
	*offset = 0;
	return third_fd;
}

static void test_third_party(void **state)
{
	static const struct wd_3rd_memory third = { third_alloc, third_free,
						    third_get_fd };
	const size_t len = 60000, half = 128u << 10;

	(void)state;
	for (int s = WD_IOMMU_SVA; s <= WD_IOMMU_SHARE_DOMAIN; s++) {
		struct wd_chan ch = { .alg = "deflate" };
		struct rig rig;
		uint8_t *memory;

		only(&rig, s);
		assert_int_equal(wd_request_channel(&ch), 0);
		assert_int_equal(wd_register_3rd_memory(&ch, &third), 0);
		memory = wd_reserve_mem(&ch, 2 * half);
		assert_non_null(memory);
		assert_true(third_fd >= 0);
		memcpy(memory, data, len);
		assert_string_equal(
			on_channel(&ch, memory, len, memory + half, half),
			"device");
		wd_release_channel(&ch);
		assert_int_equal(third_fd, -1);
		wd_alg_async_fini();
		rig_kill(&rig);
	}
}

/* wd_comp_ctx.ch: its device does the work, on memory that was reserved or
 * shared on the channel where it lies; memory that the device cannot reach goes
 * to another driver, and no copy is made behind the application's back. */
static void test_channel(void **state)
{
	const size_t len = 60000, half = 128u << 10;

	(void)state;
	for (int s = WD_IOMMU_SVA; s <= WD_IOMMU_NONE; s++) {
		struct wd_chan ch = { .alg = "deflate" }, second = ch;
		struct rig rig;
		uint8_t *memory;

		only(&rig, s);
		assert_int_equal(wd_request_channel(&ch), 0);
		memory = wd_reserve_mem(&ch, 2 * half);
		assert_non_null(memory);
		memcpy(memory, data, len);
		assert_string_equal(
			on_channel(&ch, memory, len, memory + half, half),
			"device");
		assert_string_equal(
			on_channel(&ch, data, len, packed, sizeof(packed)),
			s == WD_IOMMU_SVA ? "device" : "libdeflate");
		assert_int_equal(wd_request_channel(&second), 0);
		if (s != WD_IOMMU_SVA)
			assert_int_equal(wd_share_dma_addr(&second, &ch), 0);
		assert_string_equal(
			on_channel(&second, memory, len, memory + half, half),
			"device");
		wd_release_channel(&second);
		assert_string_equal(
			on_channel(&ch, memory, len, memory + half, half),
			"device");
		/* Its device dies: another driver goes on. */
		rig_kill(&rig);
		assert_string_not_equal(
			on_channel(&ch, memory, len, memory + half, half),
			"device");
		wd_release_channel(&ch);
		/* A channel that was never requested is an error. */
		assert_int_equal(
			wd_alg_deflate(&(struct wd_comp_ctx){ .ch = &ch }, data,
				       &(size_t){ 1 }, packed,
				       &(size_t){ 100 }),
			-EINVAL);
		wd_alg_async_fini();
	}
}

/* Without a channel of the application's, the driver copies to and from reserved
 * memory of its own as well. */
static void test_copies(void **state)
{
	(void)state;
	for (int s = WD_IOMMU_SVA; s <= WD_IOMMU_NONE; s++) {
		struct wd_comp_ctx ctx = { .comp_level = 6,
					   .driver = "device" };
		size_t in = 60000, out = sizeof(packed), once;
		struct rig rig;

		only(&rig, s);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		once = in + out;
		assert_int_equal(ctx.copied,
				 s == WD_IOMMU_SVA ? once : 2 * once);
		in = out;
		out = SIZE;
		assert_int_equal(wd_alg_inflate(&ctx, packed, &in, plain, &out),
				 0);
		assert_int_equal(ctx.copied,
				 s == WD_IOMMU_SVA ? once : 2 * once);
		/* A small one goes through the stage in SVA. */
		in = 1000;
		out = 2000;
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		assert_int_equal(ctx.copied, 2 * (in + out));
		/* A stream gathers its input, and its output waits for room. */
		ctx.stream_mode = WD_COMP_STATEFUL;
		ctx.flush_type = WD_COMP_NO_FLUSH;
		ctx.new_stream = 1;
		in = 10000;
		out = sizeof(packed);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		assert_int_equal(ctx.copied, 10000);
		wd_alg_end(&ctx);
		/* A library needs none. */
		ctx = (struct wd_comp_ctx){ .comp_level = 6,
					    .driver = "libdeflate" };
		in = 60000;
		out = sizeof(packed);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		assert_int_equal(ctx.copied, 0);
		rig_kill(&rig);
	}
}

static int copying_deflate(struct wd_comp_job *job)
{
	const struct wd_alg_comp *d;
	int ret = -ENODEV;

	for (unsigned int i = 0; (d = wd_alg_comp_list(i)); i++) {
		if (!strcmp(d->name, "libdeflate"))
			ret = d->deflate(job);
	}
	job->copied = job->src_len + job->produced;
	return ret;
}

/* Only in the device process: as of a GPU behind it. */
static void test_copies_of_its_driver(void **state)
{
	static const struct wd_alg_comp copying = {
		.name = "copying",
		.priority = 1000,
		.node = -1,
		.can = WD_COMP_CAN_DEFLATE | WD_COMP_SIZED,
		.levels = 0x3fe,
		.min_window = 15,
		.version = WD_COMP_DRV_VERSION,
		.size = sizeof(struct wd_alg_comp),
		.deflate = copying_deflate,
	};

	(void)state;
	for (int s = WD_IOMMU_SVA; s <= WD_IOMMU_NONE; s++) {
		struct wd_comp_ctx ctx = { .comp_level = 6,
					   .driver = "device" };
		size_t in = 60000, out = sizeof(packed);
		struct rig rig;

		assert_int_equal(wd_alg_comp_register(&copying), 0);
		only(&rig, s);
		assert_int_equal(wd_alg_comp_unregister(&copying), 0);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &out),
				 0);
		assert_int_equal(ctx.copied,
				 (s == WD_IOMMU_SVA ? 2 : 3) * (in + out));
		rig_kill(&rig);
	}
}

static int call(int alg, int inflate, const void *src, size_t in, void *dst,
		size_t out)
{
	struct wd_comp_ctx ctx = { .alg_type = alg, .comp_level = 1 };

	return inflate ? wd_alg_inflate(&ctx, src, &in, dst, &out) :
			 wd_alg_deflate(&ctx, src, &in, dst, &out);
}

/* Asynchronous jobs; every second one has a bad source or destination. */
static void async_bad(void *src, void *dst)
{
	for (int i = 0; i < JOBS; i++) {
		bool bad = i % 2;

		jobs[i] = (struct job){ .ctx.comp_level = 1 };
		assert_int_equal(wd_alg_async_deflate(
					 &jobs[i].ctx, record, &jobs[i],
					 bad && src ? src : data, 1000,
					 bad && dst ? dst : jobs[i].out, 4000),
				 0);
	}
	for (int i = 0; i < JOBS; i++) {
		/* The thread that polls is there for the second kind. */
		while (!atomic_load(&jobs[i].calls)) {
			if (dst)
				usleep(1000);
			else if (!wd_alg_wait(1000))
				wd_alg_poll(0);
		}
		assert_int_equal(jobs[i].result, i % 2 ? -EFAULT : 0);
	}
}

/* A bad address is an error of the job, which the next driver does not get: that
 * would be the SIGSEGV of the program. Small and large. */
static void test_bad_address(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 1u << 20, len;
	/* Where the kernel maps nothing by itself. */
	uint8_t *bad = mmap((void *)0x10000000, most, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig rig;

	(void)state;
	munmap(bad, most);
	signal(SIGSEGV, SIG_DFL);
	only(&rig, WD_IOMMU_SVA);
	for (size_t n = 1000; n <= 100000; n *= 10) {
		struct wd_comp_ctx ctx = { .comp_level = 1 };
		size_t in = n;

		len = sizeof(packed);
		assert_int_equal(wd_alg_deflate(&ctx, data, &in, packed, &len),
				 0);
		assert_string_equal(ctx.used, "device");
		for (int alg = WD_COMP_RAW; alg <= WD_COMP_GZIP; alg++) {
			assert_int_equal(call(alg, 0, bad, n, plain, SIZE),
					 -EFAULT);
			assert_int_equal(call(alg, 0, data, n, bad, 2 * n),
					 -EFAULT);
		}
		assert_int_equal(call(WD_COMP_RAW, 1, bad, n, plain, SIZE),
				 -EFAULT);
		assert_int_equal(call(WD_COMP_RAW, 1, packed, len, bad, n),
				 -EFAULT);
		assert_int_equal(call(WD_COMP_RAW, 1, packed, len, plain, n),
				 0);
	}
	async_bad(bad + page, NULL);
	/* The thread that polls copies the results. */
	assert_int_equal(wd_alg_poll_start(), 0);
	async_bad(NULL, bad + page);
	assert_int_equal(wd_alg_poll_stop(), 0);
	wd_alg_async_fini();
	rig_kill(&rig);
}

static int setup(void **state)
{
	(void)state;
	/* Before anything asks the registry. */
	setenv("WD_COMP_DRIVER", "device", 1);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * (i >> 8) >> 5);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_its_own),
		cmocka_unit_test(test_next_device),
		cmocka_unit_test(test_scenarios),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_channel),
		cmocka_unit_test(test_third_party),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_copies_of_its_driver),
		cmocka_unit_test(test_bad_address),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
