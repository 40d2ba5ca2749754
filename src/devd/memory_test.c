/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of channels: reserving, fragmentation, sharing in every order of
 * release, third parties, and memory that vanishes under a job.
 */
#include "devd/rig_test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "devd/job.h"
#include "weft/wd_comp.h"

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

/* -- reserving and sharing ------------------------------------------------- */

static void test_reserve(void **state)
{
	struct wf_drv_device device;
	struct wd_chan *ch = &device.ch;
	struct wd_chan none = { 0 };

	(void)state;
	assert_null(wd_reserve_mem(NULL, 4096));
	assert_int_equal(errno, EINVAL);
	assert_null(wd_reserve_mem(&none, 4096));
	assert_int_equal(errno, EINVAL);
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++) {
		assert_int_equal(rig_open(&device, rig_names[type], 0), 0);
		assert_null(wd_reserve_mem(ch, 0));
		assert_int_equal(errno, EINVAL);
		assert_null(wd_reserve_mem(ch, SIZE_MAX));
		assert_int_equal(errno, ENOMEM);
		if (type != WD_IOMMU_SVA) {
			/* Over the client's limit. */
			assert_null(wd_reserve_mem(ch, 100u << 20));
			assert_int_equal(errno, ENOMEM);
		}
		assert_null(ch->ss_va);
		assert_non_null(wd_reserve_mem(ch, 5000));
		assert_int_equal(rig_is_mapped(&device, ch->ss_va),
				 type == WD_IOMMU_SVA);
		assert_int_equal((uintptr_t)ch->ss_va % 4096, 0);
		assert_null(wd_reserve_mem(ch, 4096));
		assert_int_equal(errno, EEXIST);
		rig_check_crc(&device, ch->ss_va, 5000);
		wf_drv_device_close(&device);
	}
}

static void copy(struct wf_drv_device *device, uint8_t *src, uint8_t *dst,
		 uint32_t len)
{
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = src,
				  .dst = dst,
				  .src_len = len,
				  .dst_len = len };

	rig_fill(src, len, len);
	memset(dst, 0, len);
	assert_int_equal(rig_run(device, &job).status, 0);
	assert_memory_equal(src, dst, len);
}

/* SVA: a job may be in reserved memory with one end only; and memory that the
 * device does not map, because it is over the limit, works as any other. */
static void test_reserve_sva(void **state)
{
	uint8_t *other = malloc(100000);
	struct wf_drv_device device;

	(void)state;
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	assert_non_null(wd_reserve_mem(&device.ch, 200000));
	for (uint32_t len = 100; len <= 100000; len *= 10) {
		uint8_t *ours = device.ch.ss_va;

		copy(&device, ours, other, len);
		copy(&device, other, ours, len);
		copy(&device, ours, ours + 100000, len);
	}
	wf_drv_device_close(&device);
	assert_int_equal(rig_open(&device, "sva-0", 0), 0);
	assert_non_null(wd_reserve_mem(&device.ch, 100u << 20));
	assert_false(rig_is_mapped(&device, device.ch.ss_va));
	rig_check_crc(&device, device.ch.ss_va, 1000);
	rig_check_crc(&device, device.ch.ss_va, 100000);
	wf_drv_device_close(&device);
	free(other);
}

/* Reserved memory is the program's until it releases the channel: its contents
 * outlive the channel's end at the device. */
static void test_stop_keeps(void **state)
{
	struct wf_drv_device device;
	uint8_t bytes[5000];

	(void)state;
	rig_fill(bytes, sizeof(bytes), 3);
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++) {
		assert_int_equal(rig_open(&device, rig_names[type], 0), 0);
		assert_non_null(wd_reserve_mem(&device.ch, sizeof(bytes)));
		memcpy(device.ch.ss_va, bytes, sizeof(bytes));
		wf_drv_device_stop(&device);
		assert_memory_equal(device.ch.ss_va, bytes, sizeof(bytes));
		wf_drv_device_close(&device);
	}
}

/* Submits @n jobs at once, and checks that each has its status. */
static void run_batch(struct wf_drv_device *device, struct wf_drv_job *jobs,
		      const int *statuses, int n)
{
	for (int i = 0; i < n; i++) {
		jobs[i].cookie = (void *)(uintptr_t)&statuses[i];
		assert_int_equal(
			wf_drv_device_submit(device, &jobs[i], i + 1 < n), 0);
	}
	for (int i = 0; i < n; i++) {
		struct wf_drv_result result = rig_result(device, i % 2);

		assert_int_equal(result.status, *(const int *)result.cookie);
		assert_int_equal(result.produced, result.status ? 0 : 64);
	}
	assert_int_equal(device->n_free_stages,
			 device->mmio->stage / WF_ACCEL_STAGE_SLOT);
}

/* It reports the faults that these tests are about. */
static void skip_under_valgrind(void)
{
	if (getenv("WEFT_TEST_VALGRIND"))
		skip();
}

/* A bad address that the driver copies from or to once was the SIGSEGV of the
 * program. */
static void bad_address(const char *name, size_t pool)
{
	enum { NONE, READ_ONLY, NO_ACCESS, GOOD, PAGES };
	static const int statuses[] = { 0,	 -EFAULT, 0, -EFAULT,
					-EFAULT, -EFAULT, 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *good = map + GOOD * page;
	struct wf_drv_job job = { .alg = WF_ACCEL_COPY,
				  .src = good,
				  .src_len = 64,
				  .dst = good + 64,
				  .dst_len = 64 };
	struct wf_drv_job jobs[] = { job, job, job, job, job, job, job };
	struct wf_drv_device device;
	struct sigaction action;

	/* cmocka and sanitizers have handlers of their own. */
	signal(SIGSEGV, SIG_DFL);
	assert_int_equal(rig_open(&device, name, pool), 0);
	rig_fill(good, 64, 1);
	/* It works, then the memory goes. */
	jobs[1].src = map + NONE * page;
	jobs[3].src = map + NO_ACCESS * page;
	jobs[4].dst = map + READ_ONLY * page;
	jobs[5].dst = map + page - 10;
	run_batch(&device, jobs, (const int[7]){ 0 }, 7);
	munmap(map, page);
	mprotect(map + READ_ONLY * page, page, PROT_READ);
	mprotect(map + NO_ACCESS * page, page, PROT_NONE);
	for (int i = 0; i < 3; i++)
		run_batch(&device, jobs, statuses, 7);
	assert_memory_equal(good, good + 64, 64);
	wf_drv_device_close(&device);
	sigaction(SIGSEGV, NULL, &action);
	assert_ptr_equal(action.sa_handler, SIG_DFL);
	munmap(map + page, (PAGES - 1) * page);
}

static void test_bad_address(void **state)
{
	(void)state;
	skip_under_valgrind();
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++)
		bad_address(rig_names[type], type == WD_IOMMU_SVA ? 0 : POOL);
}

static void on_segv(int number)
{
	(void)number;
	_exit(42);
}

/* Faults that are not of a job: the program's handler, or its end. */
static void fault_elsewhere(uint64_t handled)
{
	volatile uint8_t *nowhere =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wf_drv_device device;

	signal(SIGSEGV, handled ? on_segv : SIG_DFL);
	prctl(PR_SET_DUMPABLE, 0);
	if (rig_open(&device, "sva-0", 0))
		_exit(1);
	*nowhere = 1;
	_exit(2);
}

static void test_other_faults(void **state)
{
	(void)state;
	skip_under_valgrind();
	for (uint64_t handled = 0; handled < 2; handled++) {
		pid_t child = fork();
		int status;

		if (!child)
			fault_elsewhere(handled);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (handled)
			assert_int_equal(WEXITSTATUS(status), 42);
		else
			assert_int_equal(WTERMSIG(status), SIGSEGV);
	}
}

/* NOIOMMU: enough pages, but not in one piece. Nothing is lost by failing. */
static void test_fragmentation(void **state)
{
	struct wf_drv_device devices[8] = { 0 };
	struct wf_drv_device more[2] = { 0 };

	(void)state;
	/* 16 MiB of arena: 12 of them in eights, every second freed. Memory is
	 * limited by client, so another scenario's does not count here. */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(rig_open(&devices[i], "noiommu-0", 0), 0);
		assert_non_null(wd_reserve_mem(&devices[i].ch, 3u << 19));
	}
	for (int i = 0; i < 8; i += 2)
		wf_drv_device_close(&devices[i]);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_open(&more[i], "noiommu-0", 0), 0);
	assert_null(wd_reserve_mem(&more[0].ch, 5u << 20));
	assert_int_equal(errno, ENOMEM);
	/* The tail behind them is free. */
	assert_non_null(wd_reserve_mem(&more[0].ch, 4u << 20));
	rig_check_crc(&more[0], more[0].ch.ss_va, 4096);
	assert_null(wd_reserve_mem(&more[1].ch, 2u << 20));
	assert_int_equal(errno, ENOMEM);
	assert_non_null(wd_reserve_mem(&more[1].ch, 3u << 19));
	for (int i = 0; i < 2; i++)
		wf_drv_device_close(&more[i]);
	for (int i = 1; i < 8; i += 2)
		wf_drv_device_close(&devices[i]);
	assert_int_equal(rig_open(&more[0], "noiommu-0", 0), 0);
	assert_non_null(wd_reserve_mem(&more[0].ch, 12u << 20));
	wf_drv_device_close(&more[0]);
}

static void share_and_release(int type, int order)
{
	struct wf_drv_device a, b, c, d;
	uint8_t *memory;

	assert_int_equal(rig_open(&a, rig_names[type], POOL), 0);
	assert_int_equal(rig_open(&b, rig_names[type], 0), 0);
	assert_int_equal(rig_open(&c, rig_names[type], 0), 0);
	memory = smm_alloc(a.ch.ss_va, 8192);
	assert_int_equal(wd_share_reserved_memory(&a.ch, &b.ch), 0);
	assert_int_equal(wd_share_dma_addr(&c.ch, &b.ch), 0);
	assert_ptr_equal(b.ch.ss_va, a.ch.ss_va);
	assert_ptr_equal(c.ch.ss_dma, a.ch.ss_dma);
	/* Has one; is itself; has none. */
	assert_int_equal(wd_share_reserved_memory(&a.ch, &b.ch), -EINVAL);
	assert_int_equal(wd_share_reserved_memory(&a.ch, &a.ch), -EINVAL);
	assert_int_equal(rig_open(&d, rig_names[type], 0), 0);
	assert_int_equal(wd_share_reserved_memory(&d.ch, &a.ch), -EINVAL);
	wf_drv_device_close(&d);
	rig_check_crc(&b, memory, 8192);
	if (order == 0) {
		wf_drv_device_close(&a);
		rig_check_crc(&b, memory, 8192);
		wf_drv_device_close(&b);
		rig_check_crc(&c, memory, 8192);
		wf_drv_device_close(&c);
	} else if (order == 1) {
		wf_drv_device_close(&c);
		wf_drv_device_close(&b);
		rig_check_crc(&a, memory, 8192);
		wf_drv_device_close(&a);
	} else {
		wf_drv_device_close(&b);
		wf_drv_device_close(&a);
		rig_check_crc(&c, memory, 8192);
		wf_drv_device_close(&c);
	}
}

/* The last reference frees: the arena would be full otherwise. */
static void test_sharing(void **state)
{
	(void)state;
	for (int order = 0; order < 3; order++) {
		for (int i = 0; i < 4; i++) {
			share_and_release(WD_IOMMU_SHARE_DOMAIN, order);
			share_and_release(WD_IOMMU_NONE, order);
		}
	}
}

static void test_sharing_across(void **state)
{
	struct wf_drv_device sva[2], share, noiommu, neighbour;
	struct wd_chan none = { 0 };

	(void)state;
	assert_int_equal(rig_open(&sva[0], "sva-0", 0), 0);
	assert_int_equal(rig_open(&sva[1], "sva-0", POOL), 0);
	assert_int_equal(rig_open(&share, "share-0", POOL), 0);
	assert_int_equal(rig_open(&noiommu, "noiommu-0", 0), 0);
	/* Nothing to do; not of one kind; not a channel. */
	assert_int_equal(wd_share_reserved_memory(&sva[1].ch, &sva[0].ch), 0);
	assert_int_equal(wd_share_reserved_memory(&share.ch, &sva[0].ch),
			 -EINVAL);
	assert_int_equal(wd_share_reserved_memory(&sva[1].ch, &noiommu.ch),
			 -EINVAL);
	assert_int_equal(wd_share_reserved_memory(&share.ch, &noiommu.ch),
			 -EINVAL);
	assert_int_equal(wd_share_reserved_memory(&share.ch, &none), -EINVAL);
	assert_int_equal(wd_share_dma_addr(NULL, &share.ch), -EINVAL);
	assert_int_equal(wd_is_sharing(&none, NULL), -EINVAL);
	assert_int_equal(wd_is_sharing(NULL, NULL), -EINVAL);
	assert_int_equal(wd_get_dma_from_va(&none, &none), 0);
	assert_int_equal(wd_get_pa_from_va(NULL, &none), 0);
	assert_null(noiommu.ch.ss_va);
	/* Another device of the same domain sees the same memory. */
	assert_int_equal(rig_open(&neighbour, "share-1", 0), 0);
	assert_int_equal(wd_share_reserved_memory(&share.ch, &neighbour.ch), 0);
	rig_check_crc(&neighbour, (uint8_t *)share.ch.ss_va + POOL / 2, 4096);
	wf_drv_device_close(&neighbour);
	wf_drv_device_close(&noiommu);
	wf_drv_device_close(&share);
	wf_drv_device_close(&sva[1]);
	wf_drv_device_close(&sva[0]);
}

/* -- third-party memory ---------------------------------------------------- */

static int third_fd = -1, third_flags;
static size_t third_size;
static unsigned int third_frees;

static void *third_alloc(size_t size, uint64_t *dma)
{
	size_t unit = third_flags & MFD_HUGETLB ? 2u << 20 : 4096;
	void *va;

	*dma = 0;
	third_size = (size + unit - 1) & ~(unit - 1);
	third_fd =
		memfd_create("third", (unsigned int)third_flags | MFD_CLOEXEC |
					      MFD_ALLOW_SEALING);
	if (third_fd < 0)
		return NULL;
	if (ftruncate(third_fd, (off_t)third_size))
		return NULL;
	va = mmap(NULL, third_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		  third_fd, 0);
	return va == MAP_FAILED ? NULL : va;
}

static void third_free(void *va)
{
	munmap(va, third_size);
	close(third_fd);
	third_fd = -1;
	third_frees++;
}

static int third_get_fd(void *va, uint64_t *offset)
{
	(void)va;
	*offset = 0;
	return third_fd;
}

static void *third_none(size_t size, uint64_t *dma)
{
	(void)size;
	(void)dma;
	return NULL;
}

static void third_body(int type)
{
	const struct wd_3rd_memory third = { third_alloc, third_free,
					     third_get_fd };
	const struct wd_3rd_memory blind = { third_alloc, third_free, NULL };
	const struct wd_3rd_memory empty = { third_none, third_free, NULL };
	struct wf_drv_device device, other;
	struct wd_chan *ch = &device.ch;
	unsigned int frees = third_frees;
	void *memory;

	assert_int_equal(rig_open(&device, rig_names[type], 0), 0);
	assert_int_equal(wd_unregister_3rd_memory(ch), -ENOENT);
	assert_int_equal(wd_register_3rd_memory(ch, NULL), -EINVAL);
	assert_int_equal(wd_register_3rd_memory(NULL, &third), -EINVAL);
	assert_int_equal(wd_register_3rd_memory(ch, &empty), 0);
	assert_int_equal(ch->flags & WD_CHAN_3RD_MEMORY, WD_CHAN_3RD_MEMORY);
	assert_null(wd_reserve_mem(ch, 4096));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(wd_register_3rd_memory(ch, &third), -EEXIST);
	assert_int_equal(wd_unregister_3rd_memory(ch), 0);
	assert_int_equal(ch->flags, 0);
	/* Neither address nor descriptor: good for SVA only. */
	if (type != WD_IOMMU_SVA) {
		assert_int_equal(wd_register_3rd_memory(ch, &blind), 0);
		assert_null(wd_reserve_mem(ch, 4096));
		assert_int_equal(errno, EOPNOTSUPP);
		assert_int_equal(third_frees, ++frees);
		assert_int_equal(wd_unregister_3rd_memory(ch), 0);
	}
	assert_int_equal(wd_register_3rd_memory(ch, &third), 0);
	memory = wd_reserve_mem(ch, 1u << 20);
	assert_non_null(memory);
	assert_ptr_equal(memory, ch->ss_va);
	assert_int_equal(wd_unregister_3rd_memory(ch), -EBUSY);
	/* Without a copy: the device maps it (or reaches it by SVA). */
	rig_check_crc(&device, memory, 1u << 20);
	if (type != WD_IOMMU_SVA) {
		assert_int_equal(rig_open(&other, rig_names[type], 0), 0);
		assert_int_equal(wd_share_reserved_memory(ch, &other.ch), 0);
		wf_drv_device_close(&device);
		assert_int_equal(third_frees, frees);
		rig_check_crc(&other, memory, 1u << 20);
		wf_drv_device_close(&other);
	} else {
		wf_drv_device_close(&device);
	}
	assert_int_equal(third_frees, frees + 1);
}

static void test_third_memfd(void **state)
{
	(void)state;
	third_flags = 0;
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++)
		third_body(type);
}

/* Lets huge pages be made on demand (root only); returns what was set before,
 * for the same call to put back. -1: cannot. */
static int allow_huge(int pages)
{
	FILE *file = fopen("/proc/sys/vm/nr_overcommit_hugepages", "r+");
	int before = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &before) != 1)
		before = -1;
	rewind(file);
	fprintf(file, "%d\n", pages);
	return fclose(file) ? -1 : before;
}

/* The setting is one for the machine: one such test at a time, of all builds and
 * all runs. (Bug: one put it back while another one needed its pages.) */
static int lock_huge(void)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	return fd;
}

static void test_third_huge(void **state)
{
	int lock = lock_huge(), before = allow_huge(4);
	uint64_t dma;
	void *memory;

	(void)state;
	third_flags = MFD_HUGETLB;
	memory = third_alloc(1, &dma);
	if (memory) {
		third_free(memory);
		for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++)
			third_body(type);
	} else {
		close(third_fd);
	}
	if (before >= 0)
		allow_huge(before);
	close(lock);
	if (!memory)
		skip(); /* no huge pages here */
}

/* A file without the seal would be a way to kill the device. */
static void test_third_cannot_shrink(void **state)
{
	const struct wd_3rd_memory third = { third_alloc, third_free,
					     third_get_fd };
	struct wf_drv_device device;

	(void)state;
	third_flags = 0;
	assert_int_equal(rig_open(&device, "share-0", 0), 0);
	assert_int_equal(wd_register_3rd_memory(&device.ch, &third), 0);
	assert_non_null(wd_reserve_mem(&device.ch, 8192));
	assert_int_equal(ftruncate(third_fd, 0), -1);
	rig_check_crc(&device, device.ch.ss_va, 8192);
	wf_drv_device_close(&device);
}

/* Where no seal helps (a huge page that is not there): an error of the job. */
static void test_vanishing_memory(void **state)
{
	struct wf_devd_region region = { .dma = 1 << 20, .size = 8192 };
	struct wf_devd_scratch scratch = { 0 };
	struct wf_devd_chan chan = { .algs = ~0u };
	struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
				    .src = 1 << 20,
				    .src_len = 8192 };
	struct wf_accel_done done;
	int fd = memfd_create("vanishes", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	region.base =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	atomic_store(&chan.region, &region);
	wf_devd_job_run(&chan, &scratch, &job, &done);
	assert_int_equal(done.status, 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	/* cmocka has put its own handler over ours. */
	wf_devd_job_unguard();
	wf_devd_job_guard();
	for (int i = 0; i < 3; i++) {
		wf_devd_job_run(&chan, &scratch, &job, &done);
		assert_int_equal(done.status, EFAULT);
		assert_int_equal(done.consumed, 0);
	}
	/* A bug: one that had allocated something lost it. */
	job.alg = WF_ACCEL_DEFLATE;
	job.format = WF_ACCEL_FORMAT_RAW;
	job.flush = WD_COMP_FINISH;
	job.level = 1;
	job.dst = 1 << 20;
	job.dst_len = 4096;
	wf_devd_job_run(&chan, &scratch, &job, &done);
	assert_int_equal(done.status, EFAULT);
	job = (struct wf_accel_job){ .alg = WF_ACCEL_CRC32,
				     .src = 1 << 20,
				     .src_len = 4096 };
	wf_devd_job_run(&chan, &scratch, &job, &done);
	assert_int_equal(done.status, 0);
	wf_devd_scratch_fini(&scratch);
	munmap(region.base, 8192);
	close(fd);
}

static void wait_for_death(uint64_t arg)
{
	(void)arg;
	for (;;)
		pause();
}

/* The device does not reach into the rest of a client (its number may be
 * somebody else's): neither after its end nor after that of its connection. */
static void test_client_is_gone(void **state)
{
	struct wf_devd_client client = { .uid = geteuid() };
	struct wf_devd_chan chan = { .algs = ~0u,
				     .sva = true,
				     .client = &client };
	struct wf_accel_job job = { .alg = WF_ACCEL_CRC32,
				    .src = (uintptr_t)rig_names,
				    .src_len = 8 };
	struct wf_devd_scratch scratch = { 0 };
	struct wf_accel_done done;
	char path[32];

	(void)state;
	for (int hang_up = 0; hang_up < 2; hang_up++) {
		int sock[2];

		assert_int_equal(socketpair(AF_UNIX,
					    SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
					    sock),
				 0);
		client.fd = sock[0];
		client.pid = rig_spawn(wait_for_death, 0);
		client.pidfd = (int)syscall(SYS_pidfd_open, client.pid, 0);
		if (client.pidfd < 0) {
			kill(client.pid, SIGKILL);
			skip(); /* an old kernel, or valgrind */
		}
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)client.pid);
		chan.memory = open(path, O_RDWR | O_CLOEXEC);
		assert_true(chan.memory >= 0);
		chan.looked_at = 0;
		wf_devd_job_run(&chan, &scratch, &job, &done);
		assert_int_equal(done.status, 0);
		if (hang_up) /* the child has a copy of it */
			shutdown(sock[1], SHUT_RDWR);
		else
			kill(client.pid, SIGKILL);
		while (wf_devd_client_here(&client))
			usleep(100);
		chan.looked_at = 0;
		wf_devd_job_run(&chan, &scratch, &job, &done);
		assert_int_equal(done.status, ESRCH);
		kill(client.pid, SIGKILL);
		assert_int_equal(waitpid(client.pid, NULL, 0), client.pid);
		close(sock[1]);
		close(sock[0]);
		close(client.pidfd);
		close(chan.memory);
	}
	wf_devd_scratch_fini(&scratch);
}

static void test_arena(void **state)
{
	struct wf_devd_arena arena;
	uint64_t a, b, c;

	(void)state;
	assert_int_equal(wf_devd_arena_init(&arena, 10 * 4096), 0);
	a = wf_devd_arena_take(&arena, 3 * 4096);
	b = wf_devd_arena_take(&arena, 1);
	c = wf_devd_arena_take(&arena, 6 * 4096);
	assert_true(a == WF_DEVD_ARENA_BASE && b == a + 3 * 4096 &&
		    c == b + 4096);
	assert_int_equal(wf_devd_arena_take(&arena, 1), 0);
	wf_devd_arena_give(&arena, a, 3 * 4096);
	wf_devd_arena_give(&arena, c, 6 * 4096);
	assert_int_equal(wf_devd_arena_take(&arena, 7 * 4096), 0);
	assert_true(wf_devd_arena_take(&arena, 5 * 4096) == c);
	wf_devd_arena_give(&arena, b, 1);
	assert_true(wf_devd_arena_take(&arena, 4 * 4096) == a);
	wf_devd_arena_fini(&arena);
	assert_int_equal(wf_devd_arena_init(&arena, 0), 0);
	assert_int_equal(wf_devd_arena_take(&arena, 4096), 0);
	wf_devd_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arena),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_reserve_sva),
		cmocka_unit_test(test_stop_keeps),
		cmocka_unit_test(test_bad_address),
		cmocka_unit_test(test_other_faults),
		cmocka_unit_test(test_fragmentation),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_sharing_across),
		cmocka_unit_test(test_third_memfd),
		cmocka_unit_test(test_third_huge),
		cmocka_unit_test(test_third_cannot_shrink),
		cmocka_unit_test(test_vanishing_memory),
		cmocka_unit_test(test_client_is_gone),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
