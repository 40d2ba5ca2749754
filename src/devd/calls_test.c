/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every public call with what it must refuse, in every state a channel can have:
 * the answers are those of wd.h, wd_drv.h, smm.h and wd(3), line by line.
 */
#include "devd/rig_test.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "base/log.h"

static struct rig rig;

static int setup(void **state)
{
	(void)state;
	rig_init(&rig);
	rig_fork(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_kill(&rig);
	return 0;
}

/* Names the call when it answers something else. */
static void check(const char *call, long got, long want)
{
	if (got != want)
		print_error("%s is %ld (%s), not %ld\n", call, got,
			    got < 0 ? strerror((int)-got) : "", want);
	assert_int_equal(got, want);
}

#define CALL(call, want) check(#call, (long)(call), (want))

/* Those that return a pointer, as the others do. */
static int reserve(struct wd_chan *ch, size_t size)
{
	errno = 0;
	return wd_reserve_mem(ch, size) ? 0 : -errno;
}

static int alloc(void *pool, size_t size)
{
	errno = 0;
	return smm_alloc(pool, size) ? 0 : -errno;
}

static void *third_alloc(size_t size, uint64_t *dma)
{
	*dma = 0x1234000; /* its word, which a device that maps ignores */
	return aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
}

static const struct wd_3rd_memory third = { third_alloc, free, NULL };
static const struct wd_3rd_memory no_alloc = { NULL, free, NULL };
static const struct wd_3rd_memory no_free = { third_alloc, NULL, NULL };

static int request(struct wd_chan *ch, const char *name)
{
	*ch = (struct wd_chan){ 0 };
	strcpy(ch->dev_path, name);
	return wd_request_channel(ch);
}

/* -- not a channel --------------------------------------------------------- */

/* NULL, zeroed, and released: the same to everybody. */
static void no_channel(struct wd_chan *ch)
{
	struct wd_chan good;

	CALL(request(&good, "share-0"), 0);
	CALL(reserve(ch, 4096), -EINVAL);
	CALL(reserve(ch, 0), -EINVAL);
	CALL(wd_share_reserved_memory(ch, &good), -EINVAL);
	CALL(wd_share_reserved_memory(&good, ch), -EINVAL);
	CALL(wd_share_reserved_memory(ch, ch), -EINVAL);
	CALL(wd_share_dma_addr(ch, &good), -EINVAL);
	CALL(wd_share_dma_addr(&good, ch), -EINVAL);
	CALL(wd_is_sharing(ch, &good), -EINVAL);
	CALL(wd_get_dma_from_va(ch, &good), 0);
	CALL(wd_get_pa_from_va(ch, &good), 0);
	CALL(wd_register_3rd_memory(ch, &third), -EINVAL);
	CALL(wd_unregister_3rd_memory(ch), -EINVAL);
	CALL(wd_drv_start(ch), -EINVAL);
	CALL(wd_drv_stop(ch), -EINVAL);
	CALL(wd_drv_wait(ch, 0), -EINVAL);
	CALL(wd_drv_wait(ch, -1), -EINVAL);
	CALL(wd_drv_event_fd(ch), -EINVAL);
	CALL(wd_drv_kick(ch), -EINVAL);
	CALL(wd_drv_alive(ch), 0);
	wd_release_channel(ch);
	wd_release_channel(&good);
}

static void test_no_channel(void **state)
{
	struct wd_chan ch = { 0 };

	(void)state;
	no_channel(NULL);
	no_channel(&ch);
	CALL(request(&ch, "sva-0"), 0);
	wd_release_channel(&ch);
	no_channel(&ch);
	wd_release_channel(&ch);
}

/* -- lists and requests ---------------------------------------------------- */

static void test_lists(void **state)
{
	struct uacce_dev_info *list = (void *)&list;
	struct uacce_dev_info dev = { .algs = "nop\ncopy" };

	(void)state;
	CALL(wd_list_devices(NULL, NULL), -EINVAL);
	CALL(wd_list_devices("rsa", &list), 0);
	assert_null(list);
	CALL(wd_list_devices("", &list), 0);
	wd_free_devices(NULL);
	CALL(wd_has_alg(NULL, "copy"), 0);
	CALL(wd_has_alg(&dev, NULL), 0);
	CALL(wd_has_alg(&dev, ""), 0);
	CALL(wd_has_alg(&dev, "cop"), 0);
	CALL(wd_has_alg(&dev, "copyx"), 0);
	CALL(wd_has_alg(&dev, "opy"), 0);
	CALL(wd_has_alg(&dev, "nop\ncopy"), 0);
	CALL(wd_has_alg(&dev, "copy"), 1);
	CALL(wd_has_alg(&dev, "nop"), 1);
}

static void test_requests(void **state)
{
	static const char *const nobody[] = { "x",	  ":",	      ":sva-0",
					      "sva-0:",	  "@:sva-0",  "/:x",
					      "@x:sva-0", "/dev/null" };
	struct uacce_dev_info *list, dev;
	struct wd_chan ch = { 0 };

	(void)state;
	CALL(wd_request_channel(NULL), -EINVAL);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		CALL(request(&ch, nobody[i]), -ENODEV);
		assert_null(ch.core);
		assert_null(ch.dev_info);
	}
	memset(ch.dev_path, 'x', sizeof(ch.dev_path));
	CALL(wd_request_channel(&ch), -EINVAL);
	ch = (struct wd_chan){ .alg = "rsa" };
	CALL(wd_request_channel(&ch), -ENODEV);
	ch = (struct wd_chan){ .alg = "" };
	CALL(wd_request_channel(&ch), -ENODEV);
	/* Devices as a caller gives them. */
	CALL(wd_list_devices(NULL, &list), 4);
	dev = list[0];
	memset(dev.dev_path, 'x', sizeof(dev.dev_path));
	ch = (struct wd_chan){ .dev_info = &dev };
	CALL(wd_request_channel(&ch), -EINVAL);
	dev.dev_path[0] = '\0';
	CALL(wd_request_channel(&ch), -ENODEV);
	dev = list[0];
	dev.kind = WD_DEV_UACCE;
	CALL(wd_request_channel(&ch), -ENODEV); /* no such node */
	dev = list[0];
	CALL(wd_request_channel(&ch), 0);
	assert_ptr_equal(ch.dev_info, &dev);
	CALL(wd_request_channel(&ch), -EINVAL); /* has been requested */
	wd_release_channel(&ch);
	assert_ptr_equal(ch.dev_info, &dev); /* the caller's own */
	wd_free_devices(list);
}

/* -- an open channel ------------------------------------------------------- */

static void memory_of(int type)
{
	bool sva = type == WD_IOMMU_SVA;
	struct wd_chan a, b, c;

	CALL(request(&a, rig_names[type]), 0);
	CALL(request(&b, rig_names[type]), 0);
	CALL(request(&c, rig_names[(type + 1) % 3]), 0);
	CALL(reserve(&a, 0), -EINVAL);
	CALL(reserve(&a, SIZE_MAX), -ENOMEM);
	CALL(reserve(&a, SIZE_MAX / 2), -ENOMEM);
	CALL(reserve(&a, SIZE_MAX / 2 + 1), -ENOMEM);
	CALL(reserve(&a, SIZE_MAX - 4095), -ENOMEM);
	assert_null(a.ss_va);
	CALL(wd_share_reserved_memory(&a, &b), sva ? 0 : -EINVAL);
	CALL(wd_share_reserved_memory(&a, &a), -EINVAL);
	CALL(reserve(&a, 1), 0);
	CALL(reserve(&a, 1), -EEXIST);
	CALL(wd_register_3rd_memory(&a, &third), -EBUSY);
	CALL(wd_unregister_3rd_memory(&a), -ENOENT);
	CALL(wd_share_reserved_memory(&a, &c), -EINVAL);
	CALL(wd_share_reserved_memory(&c, &a), -EINVAL);
	CALL(wd_share_dma_addr(&b, &a), 0);
	CALL(wd_share_dma_addr(&b, &a), sva ? 0 : -EINVAL);
	CALL(wd_share_dma_addr(&a, &b), sva ? 0 : -EINVAL);
	CALL(reserve(&b, 4096), sva ? 0 : -EEXIST);
	CALL(wd_is_sharing(&a, NULL), sva);
	CALL(wd_is_sharing(&a, a.ss_va), sva);
	CALL(wd_get_pa_from_va(&a, NULL), 0);
	CALL(wd_get_pa_from_va(&a, &a), 0);
	if (!sva) {
		CALL(wd_get_dma_from_va(&a, NULL), 0);
		CALL(wd_get_dma_from_va(&a, &a), 0);
		CALL(wd_get_dma_from_va(&a, (uint8_t *)a.ss_va + 4096), 0);
		CALL(wd_get_dma_from_va(&a, (uint8_t *)a.ss_va - 1), 0);
	}
	wd_release_channel(&a);
	wd_release_channel(&c);
	wd_release_channel(&b);
}

static void test_memory(void **state)
{
	(void)state;
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++)
		memory_of(type);
}

static void test_third(void **state)
{
	struct wd_chan ch;

	(void)state;
	for (int type = WD_IOMMU_SVA; type <= WD_IOMMU_NONE; type++) {
		CALL(request(&ch, rig_names[type]), 0);
		CALL(wd_register_3rd_memory(&ch, NULL), -EINVAL);
		CALL(wd_register_3rd_memory(&ch, &no_alloc), -EINVAL);
		CALL(wd_register_3rd_memory(&ch, &no_free), -EINVAL);
		CALL(wd_unregister_3rd_memory(&ch), -ENOENT);
		CALL(wd_register_3rd_memory(&ch, &third), 0);
		CALL(wd_register_3rd_memory(&ch, &third), -EEXIST);
		/* A device that has to map it needs more than an address. */
		CALL(reserve(&ch, 4096),
		     type == WD_IOMMU_SVA ? 0 : -EOPNOTSUPP);
		CALL(wd_unregister_3rd_memory(&ch),
		     type == WD_IOMMU_SVA ? -EBUSY : 0);
		wd_release_channel(&ch);
	}
}

static void test_driver_calls(void **state)
{
	struct wd_chan ch;

	(void)state;
	CALL(request(&ch, "share-0"), 0);
	CALL(wd_drv_wait(&ch, 0), -ETIMEDOUT); /* not started: no interrupt */
	CALL(wd_drv_start(&ch), 0);
	CALL(wd_drv_start(&ch), -EINVAL);
	CALL(wd_drv_kick(&ch), 0);
	CALL(wd_drv_wait(&ch, 1), -ETIMEDOUT);
	CALL(wd_drv_stop(&ch), 0);
	CALL(wd_drv_stop(&ch), 0);
	CALL(wd_drv_start(&ch), -EINVAL);
	CALL(reserve(&ch, 4096), -EINVAL);
	CALL(wd_drv_wait(&ch, 1), -ETIMEDOUT);
	wd_release_channel(&ch);
}

/* A bug: when the memory could not be mapped here, the device kept it, and the
 * channel was told that it has some. */
static void test_no_address_space(void **state)
{
	struct rlimit before, tight;
	struct wd_chan ch;
	unsigned long pages;
	FILE *statm;
	int err;

	(void)state;
	CALL(request(&ch, "noiommu-0"), 0);
	statm = fopen("/proc/self/statm", "r");
	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	getrlimit(RLIMIT_AS, &before);
	tight = before;
	tight.rlim_cur = pages * 4096 + (4u << 20);
	setrlimit(RLIMIT_AS, &tight);
	err = reserve(&ch, 8u << 20);
	setrlimit(RLIMIT_AS, &before);
	CALL(err, -ENOMEM);
	CALL(reserve(&ch, 8u << 20), 0);
	wd_release_channel(&ch);
}

/* -- a device that is gone ------------------------------------------------- */

static void test_gone(void **state)
{
	struct wd_chan a, b, c;

	(void)state;
	CALL(request(&a, "share-0"), 0);
	CALL(request(&b, "share-0"), 0);
	CALL(request(&c, "share-0"), 0);
	CALL(reserve(&a, 4096), 0);
	CALL(wd_drv_start(&b), 0);
	rig_kill(&rig);
	CALL(wd_drv_wait(&b, -1), -ENODEV);
	CALL(wd_drv_wait(&b, 0), -ENODEV);
	CALL(wd_drv_alive(&b), 0);
	CALL(wd_drv_kick(&b), -ENODEV);
	CALL(wd_drv_start(&c), -ENODEV);
	CALL(wd_drv_stop(&b), -ENODEV);
	CALL(reserve(&b, 4096), -ENODEV);
	CALL(wd_share_reserved_memory(&a, &b), -ENODEV);
	/* Its memory stays. */
	memset(a.ss_va, 1, 4096);
	assert_int_not_equal(wd_get_dma_from_va(&a, a.ss_va), 0);
	wd_release_channel(&a);
	wd_release_channel(&b);
	wd_release_channel(&c);
	CALL(request(&a, "share-0"), -ENODEV);
	rig_fork(&rig);
}

static struct wd_chan parents[2];

static void in_child(uint64_t arg)
{
	struct wd_chan *ch = &parents[0];

	(void)arg;
	CALL(reserve(&parents[1], 4096), -ENODEV);
	CALL(wd_share_reserved_memory(ch, &parents[1]), -ENODEV);
	CALL(wd_register_3rd_memory(&parents[1], &third), -ENODEV);
	CALL(wd_unregister_3rd_memory(&parents[1]), -ENODEV);
	CALL(wd_get_dma_from_va(ch, ch->ss_va), 0);
	CALL(wd_get_pa_from_va(ch, ch->ss_va), 0);
	CALL(wd_drv_start(ch), -ENODEV);
	CALL(wd_drv_stop(ch), -ENODEV);
	CALL(wd_drv_wait(ch, -1), -ENODEV);
	CALL(wd_drv_event_fd(ch), -ENODEV);
	CALL(wd_drv_kick(ch), -ENODEV);
	CALL(wd_drv_alive(ch), 0);
	wd_release_channel(&parents[1]);
	wd_release_channel(ch);
	CALL(request(ch, "share-0"), 0);
	wd_release_channel(ch);
}

static void test_child(void **state)
{
	(void)state;
	CALL(request(&parents[0], "share-0"), 0);
	CALL(request(&parents[1], "share-0"), 0);
	CALL(reserve(&parents[0], 4096), 0);
	rig_expect_exit(rig_spawn(in_child, 0));
	CALL(wd_drv_start(&parents[0]), 0);
	wd_release_channel(&parents[0]);
	wd_release_channel(&parents[1]);
}

/* -- SMM ------------------------------------------------------------------- */

static void test_smm(void **state)
{
	static uint8_t memory[65536], other[65536];
	size_t largest = 1;
	uint8_t *block;

	(void)state;
	CALL(smm_init(NULL, sizeof(memory), 63), -EINVAL);
	CALL(smm_init(memory, 0, 63), -EINVAL);
	CALL(smm_init(memory, sizeof(memory), 62), -EINVAL);
	CALL(smm_init(memory, sizeof(memory), -2), -EINVAL);
	CALL(smm_init(memory, sizeof(memory), INT32_MIN), -EINVAL);
	CALL(smm_init(memory, sizeof(memory), INT32_MAX), -ENOMEM);
	CALL(smm_init(memory, SIZE_MAX, 63), -EINVAL);
	CALL(smm_init(memory, 64, 63), -ENOMEM);
	CALL(alloc(NULL, 1), -EINVAL);
	CALL(alloc(memory, 1), -EINVAL); /* no pool */
	CALL(smm_free(memory, memory), -EINVAL);
	CALL(smm_free(NULL, memory), -EINVAL);
	CALL(smm_free(NULL, NULL), -EINVAL);
	CALL(smm_available(NULL, &largest), 0);
	CALL(largest, 0);
	CALL(smm_available(memory, NULL), 0);
	CALL(smm_init(memory, sizeof(memory), 63), 0);
	CALL(smm_init(other, sizeof(other), 63), 0);
	CALL(alloc(memory, 0), -EINVAL);
	CALL(alloc(memory, sizeof(memory)), -ENOMEM);
	CALL(alloc(memory, SIZE_MAX), -ENOMEM);
	block = smm_alloc(memory, 1000);
	assert_non_null(block);
	CALL(smm_free(memory, NULL), 0);
	CALL(smm_free(other, block), -EINVAL); /* of another pool */
	CALL(smm_free(memory, block + 1), -EINVAL);
	CALL(smm_free(memory, block + 64), -EINVAL);
	CALL(smm_free(memory, memory), -EINVAL);
	CALL(smm_free(memory, &block), -EINVAL);
	CALL(smm_free(memory, block), 0);
	CALL(smm_free(memory, block), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_channel),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_third),
		cmocka_unit_test(test_driver_calls),
		cmocka_unit_test(test_no_address_space),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_smm),
	};

	wf_base_log_set_sink(rig_keep_quiet);
	return cmocka_run_group_tests(tests, setup, teardown);
}
