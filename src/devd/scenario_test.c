/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three scenarios through one body: the same jobs, and what differs: which
 * memory works, what address a descriptor carries, how often a byte is copied,
 * what is refused. Then which device one gets, and limits.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <sys/mman.h>

#define POOL (2u << 20)

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig_start(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_stop(&rig);
	return 0;
}

/* -- the body -------------------------------------------------------------- */

static void copy_jobs(struct wf_drv_device *device, uint8_t *src, uint8_t *dst,
		      uint32_t len, bool reserved)
{
	bool staged = !reserved && rig_is_staged(device, len, len);
	uint64_t bounced = device->bounced;
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = len,
				  .dst_len = len };
	struct wf_drv_result result;

	rig_fill(src, len, len);
	memset(dst, 0, len);
	result = rig_run(device, &job);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.consumed, len);
	assert_int_equal(result.produced, len);
	assert_memory_equal(src, dst, len);
	/* A byte in foreign memory is copied once on its way in and once on its
	 * way out: by the device (SVA), or by the driver (SVA and a small job,
	 * other scenarios); in reserved memory by nobody. */
	assert_int_equal(result.copied,
			 device->sva && !reserved && !staged ? 2 * len : 0);
	assert_int_equal(device->bounced - bounced,
			 staged || !(device->sva || reserved) ? 2 * len : 0);
}

static void crc_jobs(struct wf_drv_device *device, uint8_t *src, uint32_t len,
		     bool reserved)
{
	bool staged = rig_is_staged(device, len, 0);
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32,
				  .src = src,
				  .src_len = len };
	struct wf_drv_result result;

	rig_fill(src, len, ~len);
	result = rig_run(device, &job);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.consumed, len);
	assert_int_equal(result.produced, 0);
	assert_int_equal(result.checksum, rig_crc32(src, len));
	assert_int_equal(result.copied,
			 device->sva && !reserved && !staged ? len : 0);
	/* In two halves. */
	job.src_len = len / 3;
	result = rig_run(device, &job);
	job.seed = result.checksum;
	job.src = src + len / 3;
	job.src_len = len - len / 3;
	result = rig_run(device, &job);
	assert_int_equal(result.checksum, rig_crc32(src, len));
}

static void deep_jobs(struct wf_drv_device *device, uint8_t *src)
{
	uint32_t depth = device->mmio->depth, sent = 0, got = 0;
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32, .src = src };
	struct wf_drv_result results[16];
	uint8_t *seen = calloc(10 * depth, 1);

	rig_fill(src, 1024, 5);
	while (got < 10 * depth) {
		while (sent < 10 * depth) {
			job.src_len = sent % 1024;
			job.cookie = (void *)(uintptr_t)sent;
			if (wf_drv_device_submit(device, &job, sent % 7))
				break;
			sent++;
		}
		assert_true(wf_drv_device_in_flight(device) <= depth);
		wf_drv_device_ring(device);
		for (int n = wf_drv_device_poll(device, results, 16); n > 0;
		     n--) {
			struct wf_drv_result *r = &results[n - 1];
			uint32_t number = (uint32_t)(uintptr_t)r->cookie;

			assert_int_equal(r->status, 0);
			assert_int_equal(seen[number]++, 0);
			assert_int_equal(r->consumed, number % 1024);
			if (number % 64 == 0)
				assert_int_equal(r->checksum,
						 rig_crc32(src, number % 1024));
			got++;
		}
	}
	assert_int_equal(wf_drv_device_in_flight(device), 0);
	assert_int_equal(device->strays, 0);
	/* Whatever a job went through is free for the next one. */
	assert_int_equal(device->n_free_stages,
			 device->mmio->stage / WF_ACCEL_STAGE_SLOT);
	free(seen);
}

static void addresses(struct wf_drv_device *device, int type)
{
	uint8_t *in = device->ch.ss_va;
	uint64_t dma = wd_get_dma_from_va(&device->ch, in + 100);
	uint64_t pa = wd_get_pa_from_va(&device->ch, in + 100);
	int local;

	assert_int_equal(wd_is_sharing(&device->ch, in), type == WD_IOMMU_SVA);
	if (type == WD_IOMMU_SVA) {
		assert_true(dma == (uintptr_t)in + 100);
		assert_true(wd_get_dma_from_va(&device->ch, &local) ==
			    (uintptr_t)&local);
		assert_int_equal(pa, 0);
		return;
	}
	assert_true(dma && dma != (uintptr_t)in + 100);
	assert_true(dma == (uintptr_t)device->ch.ss_dma + 100);
	assert_true(pa == (type == WD_IOMMU_NONE ? dma : 0));
	assert_int_equal(wd_get_dma_from_va(&device->ch, &local), 0);
	assert_int_equal(wd_get_dma_from_va(&device->ch, in - 1), 0);
	assert_int_equal(wd_get_dma_from_va(&device->ch, in + POOL), 0);
	assert_true(wd_get_dma_from_va(&device->ch, in + POOL - 1) ==
		    dma - 100 + POOL - 1);
}

static void refuse(struct wf_drv_device *device, struct wf_accel_job raw,
		   int status)
{
	struct wf_drv_result result = rig_raw(device, &raw);

	assert_int_equal(result.status, -status);
	assert_int_equal(result.produced, 0);
	rig_nop(device); /* it lives */
}

/* Every scenario refuses these, whatever the memory. */
static void malformed(struct wf_drv_device *device, uint64_t good)
{
	const struct wf_accel_job copy = { .alg = WF_ACCEL_COPY,
					   .src = good,
					   .dst = good + 4096,
					   .src_len = 64,
					   .dst_len = 64 };
	struct wf_accel_job job;

#define TRY(field, value, status)                                              \
	do {                                                                   \
		job = copy;                                                    \
		job.field = value;                                             \
		refuse(device, job, status);                                   \
	} while (0)
	TRY(alg, 200, EOPNOTSUPP);
	TRY(alg, WF_ACCEL_ALGS, EOPNOTSUPP);
	TRY(alg, WF_ACCEL_NOP, EINVAL);	  /* takes no memory */
	TRY(alg, WF_ACCEL_CRC32, EINVAL); /* writes none */
	TRY(flags, 2, EINVAL);
	TRY(flags, WF_ACCEL_JOB_STAGED, device->sva ? EFAULT : EINVAL);
	TRY(spare, 1, EINVAL);
	TRY(spare2, 1ull << 63, EINVAL);
	TRY(level, 9, EINVAL);
	TRY(format, 1, EINVAL);
	TRY(dict, good, EINVAL);
	TRY(dict_len, 8, EINVAL);
	TRY(stream, 1, EINVAL);
	TRY(src_len, UINT32_MAX, EMSGSIZE);
	TRY(dst_len, WF_ACCEL_LEN_MAX + 1, EMSGSIZE);
	TRY(dst_len, 63, ENOSPC);
	TRY(src_len, 65, ENOSPC);
#undef TRY
}

static void out_of_bounds(struct wf_drv_device *device, int type)
{
	uint64_t start = (uintptr_t)device->ch.ss_dma, end = start + POOL;
	uint8_t local[64] = { 0 };
	/* From: before, across the end, far away, and each in the other's
	 * place. */
	const struct {
		uint64_t addr;
		uint32_t len;
	} bad[] = {
		{ start - 1, 64 },
		{ end - 63, 64 },
		{ end, 1 },
		{ start, POOL + 1 },
		{ 0, 64 },
		{ UINT64_MAX, 2 },
		{ UINT64_MAX - 10, 64 },
		{ (uintptr_t)device->ch.ss_va, 64 }, /* the virtual one */
		{ (uintptr_t)local, 64 },
		{ start, WF_ACCEL_LEN_MAX },
	};

	assert_int_not_equal(type, WD_IOMMU_SVA);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
					    .src = bad[i].addr,
					    .src_len = bad[i].len };

		refuse(device, job, EFAULT);
		job = (struct wf_accel_job){ .alg = WF_ACCEL_COPY,
					     .src = start,
					     .src_len = 1,
					     .dst = bad[i].addr,
					     .dst_len = bad[i].len };
		refuse(device, job, EFAULT);
	}
}

/* Where the result of the job that is under way will be. */
static const uint8_t *place_of_result(const struct wf_drv_device *device)
{
	for (uint32_t i = 0; i < device->mmio->depth; i++) {
		if (device->slots[i].used)
			return device->slots[i].out;
	}
	return NULL;
}

/* SVA: the next input goes where the result was, and the next result where the input
 * was, so that each side writes to lines that it has read. When each had its own
 * place, all lines went there and back once more. */
static void stage_turns(struct wf_drv_device *device)
{
	static uint8_t src[3000], dst[3000];
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = sizeof(src),
				  .dst_len = sizeof(dst) };
	const uint8_t *places[4];

	for (uint32_t i = 0; i < 4; i++) {
		rig_fill(src, sizeof(src), i);
		memset(dst, 0, sizeof(dst));
		assert_int_equal(wf_drv_device_submit(device, &job, false), 0);
		places[i] = place_of_result(device);
		assert_non_null(places[i]);
		if (i)
			assert_memory_equal(places[i - 1], src, sizeof(src));
		assert_int_equal(rig_result(device, true).status, 0);
		assert_memory_equal(dst, src, sizeof(src));
	}
	assert_ptr_not_equal(places[0], places[1]);
	assert_ptr_equal(places[0], places[2]);
	assert_ptr_equal(places[1], places[3]);
}

/* SVA: the stage is memory of the channel, and ends somewhere. */
static void beyond_the_stage(struct wf_drv_device *device)
{
	uint64_t end = device->mmio->stage;
	const struct {
		uint64_t addr;
		uint32_t len;
	} bad[] = {
		{ end - 63, 64 },	  { end, 1 },
		{ 0, (uint32_t)end + 1 }, { UINT64_MAX, 2 },
		{ UINT64_MAX - 10, 64 },
	};
	struct wf_accel_job good = { .alg = WF_ACCEL_CRC32,
				     .flags = WF_ACCEL_JOB_STAGED,
				     .src = end - 64,
				     .src_len = 64 };

	assert_true(end >= WF_ACCEL_STAGE_SLOT);
	assert_int_equal(rig_raw(device, &good).status, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
					    .flags = WF_ACCEL_JOB_STAGED,
					    .src = bad[i].addr,
					    .src_len = bad[i].len };

		refuse(device, job, EFAULT);
		job = (struct wf_accel_job){ .alg = WF_ACCEL_COPY,
					     .flags = WF_ACCEL_JOB_STAGED,
					     .src_len = 1,
					     .dst = bad[i].addr,
					     .dst_len = bad[i].len };
		refuse(device, job, EFAULT);
	}
}

/* SVA: any address works, and one that is nobody's is a fault of the job. */
static void faults(struct wf_drv_device *device)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 3 * (size_t)page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uintptr_t)map;
	struct wf_accel_job job = { .alg = WF_ACCEL_CRC32 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	munmap(map + page, (size_t)page);
	assert_ptr_not_equal(mmap(map + 2 * page, (size_t)page, PROT_READ,
				  MAP_SHARED | MAP_FIXED, fd, 0),
			     MAP_FAILED);
	close(fd);
	job.src = at + (uint64_t)page - 10;
	job.src_len = 64;
	refuse(device, job, EFAULT);
	job.src = 0;
	refuse(device, job, EFAULT);
	job.src = 0xffffffff80000000u;
	refuse(device, job, EFAULT);
	job.src = at + 2 * (uint64_t)page; /* may be read */
	assert_int_equal(rig_raw(device, &job).status, 0);
	job = (struct wf_accel_job){ .alg = WF_ACCEL_COPY,
				     .src = at,
				     .src_len = 64,
				     .dst = at + 2 * (uint64_t)page,
				     .dst_len = 64 };
	refuse(device, job, EFAULT); /* but not written: a file */
	job.dst = at + (uint64_t)page;
	refuse(device, job, EFAULT);
	munmap(map, (size_t)page);
	munmap(map + 2 * page, (size_t)page);
}

static void body(int type)
{
	static const uint32_t sizes[] = { 0, 1, 63, 64, 4096, 100000, 700001 };
	uint8_t *foreign = malloc(2 * 700001), *reserved;
	struct wf_drv_device device;

	assert_int_equal(rig_open(&device, rig_names[type], POOL), 0);
	assert_int_equal(device.ch.dev_info->iommu_type, type);
	rig_nop(&device);
	reserved = smm_alloc(device.ch.ss_va, 2 * 400000);
	assert_non_null(reserved);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t len = sizes[i];

		if (len <= 400000) {
			copy_jobs(&device, reserved, reserved + 400000, len,
				  true);
			crc_jobs(&device, reserved, len, true);
		}
		if (len < 100001 || type == WD_IOMMU_SVA) {
			copy_jobs(&device, foreign, foreign + 700001, len,
				  false);
			crc_jobs(&device, foreign, len, false);
		}
	}
	deep_jobs(&device, foreign);
	deep_jobs(&device, reserved);
	addresses(&device, type);
	malformed(&device, (uintptr_t)device.ch.ss_dma);
	if (type == WD_IOMMU_SVA) {
		faults(&device);
		stage_turns(&device);
		beyond_the_stage(&device);
	} else {
		out_of_bounds(&device, type);
	}
	assert_int_equal(smm_free(device.ch.ss_va, reserved), 0);
	wf_drv_device_close(&device);
	free(foreign);
}

static void test_sva(void **state)
{
	(void)state;
	body(WD_IOMMU_SVA);
}

static int reserve_at(struct wf_drv_device *device, uint64_t va, uint64_t size)
{
	struct wf_broker_request request = { .op = WF_BROKER_RESERVE,
					     .chan = device->ch.core->id,
					     .size = size,
					     .offset = va };
	int fds[WF_BROKER_FDS_MAX] = { -1, -1, -1 };
	struct wf_broker_reply reply;
	int err = wf_chan_session_call(device->ch.core->session, &request, -1,
				       &reply, fds);

	if (!err)
		close(fds[0]);
	return err;
}

/* SVA: where a client says that its reserved memory is, need not be possible. The
 * memory is all that is reached by it. */
static void test_odd_places(void **state)
{
	static const uint64_t places[] = {
		1,	   4095, 1ull << 63, UINT64_MAX - 8191, UINT64_MAX - 10,
		UINT64_MAX
	};
	static const uint8_t zeros[8192];

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
					    .src = places[i],
					    .src_len = 8192 };
		struct wf_drv_device device;
		struct wf_drv_result result;

		assert_int_equal(rig_open(&device, "sva-0", 0), 0);
		assert_int_equal(reserve_at(&device, 0, 8192), -EINVAL);
		assert_int_equal(reserve_at(&device, places[i], 8192), 0);
		assert_int_equal(reserve_at(&device, 4096, 8192), -EEXIST);
		/* Only the distance from the place counts. */
		result = rig_raw(&device, &job);
		assert_int_equal(result.status, 0);
		assert_int_equal(result.checksum, rig_crc32(zeros, 8192));
		job.src_len = 8193;
		refuse(&device, job, EFAULT);
		job.src = places[i] + 8192 - 63;
		job.src_len = 64;
		refuse(&device, job, EFAULT);
		job.src = places[i] - 1;
		refuse(&device, job, EFAULT);
		wf_drv_device_close(&device);
	}
}

static void test_share_domain(void **state)
{
	(void)state;
	body(WD_IOMMU_SHARE_DOMAIN);
}

static void test_noiommu(void **state)
{
	(void)state;
	body(WD_IOMMU_NONE);
}

/* -- limits, names --------------------------------------------------------- */

static void test_choice(void **state)
{
	struct uacce_dev_info *list;
	struct wf_drv_device device = { 0 };

	(void)state;
	assert_int_equal(wd_list_devices(NULL, &list), 4);
	assert_int_equal(list[0].kind, WD_DEV_SOFT);
	assert_int_equal(wd_has_alg(&list[0], "copy"), 1);
	wd_free_devices(list);
	assert_int_equal(wd_list_devices("sha256", &list), 0);
	device.ch.alg = "sha256";
	assert_int_equal(wf_drv_device_open(&device, 0), -ENODEV);
	device.ch.alg = "crc32";
	assert_int_equal(wf_drv_device_open(&device, 0), 0);
	rig_nop(&device);
	assert_string_equal(device.ch.dev_path, device.ch.dev_info->dev_path);
	wf_drv_device_close(&device);
	/* By its full path, though no list names the socket. */
	setenv("WEFT_DEVD", "/nonexistent/devd.sock", 1);
	memset(&device, 0, sizeof(device));
	snprintf(device.ch.dev_path, sizeof(device.ch.dev_path), "%s:sva-0",
		 rig.socket);
	assert_int_equal(wf_drv_device_open(&device, 0), 0);
	rig_nop(&device);
	wf_drv_device_close(&device);
	assert_int_equal(rig_open(&device, "sva-0", 0), -ENODEV);
	setenv("WEFT_DEVD", rig.socket, 1);
}

static void test_limits(void **state)
{
	enum { MANY = 4 };
	struct wf_drv_device devices[MANY + 1], last;
	struct rig small;

	(void)state;
	rig_init(&small);
	small.config.client_channels = MANY;
	small.config.devices[0].instances = 2;
	small.config.devices[1].algs = 1; /* nop alone */
	rig_start(&small);
	assert_int_equal(rig_open(&devices[0], "sva-0", 0), 0);
	assert_int_equal(rig_open(&devices[1], "sva-0", 0), 0);
	assert_int_equal(rig_open(&last, "sva-0", 0), -EBUSY);
	assert_int_equal(rig_open(&devices[2], "share-0", 0), 0);
	assert_int_equal(rig_open(&devices[3], "share-0", 0), 0);
	assert_int_equal(rig_open(&last, "share-0", 0), -EBUSY);
	refuse(&devices[2], (struct wf_accel_job){ .alg = WF_ACCEL_CRC32 },
	       EOPNOTSUPP);
	/* Given back at once: a release is over when it returns. */
	for (int i = 0; i < 20; i++) {
		wf_drv_device_close(&devices[0]);
		assert_int_equal(rig_open(&devices[0], "sva-0", 0), 0);
		rig_nop(&devices[0]);
	}
	for (int i = 0; i < MANY; i++)
		wf_drv_device_close(&devices[i]);
	rig_stop(&small);
	setenv("WEFT_DEVD", rig.socket, 1);
}

static void test_stop_cancels(void **state)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_CRC32, .src_len = 1u << 20 };
	struct wf_drv_result result;
	struct wf_drv_device device;
	unsigned int sent = 0, good = 0, cancelled = 0;
	uint8_t *memory = malloc(job.src_len);
	int n;

	(void)state;
	rig_fill(memory, job.src_len, 1);
	job.src = memory;
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	for (; sent < 40; sent++)
		assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	wf_drv_device_stop(&device);
	while ((n = wf_drv_device_poll(&device, &result, 1)) == 1) {
		if (!result.status)
			good++;
		else if (result.status == -ECANCELED)
			cancelled++;
	}
	assert_int_equal(n, -ECANCELED);
	assert_int_equal(good + cancelled, sent);
	assert_true(cancelled > 0);
	assert_int_equal(wf_drv_device_submit(&device, &job, false),
			 -ECANCELED);
	wf_drv_device_close(&device);
	free(memory);
}

/* When it returns the device touches nothing: neither goes on with the job that
 * ran nor begins another. */
static void stop_means_stop(const char *name)
{
	enum { BYTES = 8 << 20 };
	uint8_t *foreign = calloc(2, BYTES), *src = foreign;
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src_len = BYTES / 2,
				  .dst_len = BYTES / 2 };
	struct wf_drv_device device;
	volatile uint8_t *dst;

	assert_int_equal(rig_open(&device, name, 0), 0);
	if (!device.sva)
		src = wd_reserve_mem(&device.ch, BYTES);
	assert_non_null(src);
	dst = src + BYTES / 2;
	memset(src, 1, BYTES / 2);
	job.src = src;
	job.dst = src + BYTES / 2;
	for (int i = 0; i < 20; i++)
		assert_int_equal(wf_drv_device_submit(&device, &job, false), 0);
	while (!*dst)
		sched_yield();
	wf_drv_device_stop(&device);
	memset(job.dst, 0xee, job.dst_len);
	usleep(30000);
	for (uint32_t i = 0; i < job.dst_len; i++)
		assert_int_equal(dst[i], 0xee);
	wf_drv_device_close(&device);
	free(foreign);
}

static void test_stop_means_stop(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		stop_means_stop("sva-0");
		stop_means_stop("share-0");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sva),
		cmocka_unit_test(test_odd_places),
		cmocka_unit_test(test_share_domain),
		cmocka_unit_test(test_noiommu),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_stop_cancels),
		cmocka_unit_test(test_stop_means_stop),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
