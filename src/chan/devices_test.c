/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of discovery on trees of files: both dialects of UACCE, devices
 * that say nonsense, and who comes first.
 */
#include "chan/devices.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "weft/wd_drv.h"

static char root[64], sysfs[80], dev_root[80];

static void put(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1;
	     (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void put_attr(const char *dev, const char *attr, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "sys/class/uacce/%s/%s", dev, attr);
	put(path, text);
}

static void put_node(const char *dev)
{
	char path[256];

	snprintf(path, sizeof(path), "dev/%s", dev);
	put(path, "");
}

static void put_mainline(const char *dev, const char *flags, const char *free_q,
			 const char *node, const char *algs)
{
	put_node(dev);
	put_attr(dev, "api", "hisi_qm_v2\n");
	put_attr(dev, "flags", flags);
	put_attr(dev, "available_instances", free_q);
	put_attr(dev, "algorithms", algs);
	put_attr(dev, "region_mmio_size", "16384\n");
	put_attr(dev, "region_dus_size", "135168\n");
	put_attr(dev, "device/numa_node", node);
}

static void put_seed(const char *dev, const char *flags, const char *offsets)
{
	put_node(dev);
	put_attr(dev, "attrs/api", "hisi_qm_v1\n");
	put_attr(dev, "attrs/flags", flags);
	put_attr(dev, "attrs/available_instances", "12\n");
	put_attr(dev, "attrs/algorithms", "zlib\ngzip\n");
	put_attr(dev, "attrs/qfrs_offset", offsets);
	put_attr(dev, "attrs/node_id", "1\n");
	put_attr(dev, "attrs/numa_distance", "32\n");
}

static int setup(void **state)
{
	(void)state;
	strcpy(root, "/tmp/weft-uacce-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(sysfs, sizeof(sysfs), "%s/sys", root);
	snprintf(dev_root, sizeof(dev_root), "%s/dev", root);
	return 0;
}

static int drop(const char *path, const struct stat *st, int kind,
		struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

static struct wf_chan_devices scan(const char *alg)
{
	struct wf_chan_devices devices = { 0 };

	assert_int_equal(wf_chan_uacce_scan(sysfs, dev_root, &devices), 0);
	wf_chan_devices_sort(&devices, alg);
	return devices;
}

static void test_no_uacce(void **state)
{
	struct wf_chan_devices devices = scan(NULL);

	(void)state;
	assert_int_equal(devices.count, 0);
	assert_null(devices.all);
}

static void test_mainline(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	struct wf_chan_devices devices;
	struct uacce_dev_info *dev;
	char path[WD_PATH_SIZE];

	(void)state;
	put_mainline("hisi_zip-0", "1\n", "256\n", "0\n",
		     "zlib\ngzip\ndeflate\nlz77_zstd\n");
	devices = scan(NULL);
	assert_int_equal(devices.count, 1);
	dev = &devices.all[0];
	assert_int_equal(dev->kind, WD_DEV_UACCE);
	assert_int_equal(dev->iommu_type, WD_IOMMU_SVA);
	assert_int_equal(dev->flags, 1);
	assert_int_equal(dev->node_id, 0);
	assert_int_equal(dev->available_instances, 256);
	assert_string_equal(dev->name, "hisi_zip-0");
	snprintf(path, sizeof(path), "%s/hisi_zip-0", dev_root);
	assert_string_equal(dev->dev_path, path);
	assert_string_equal(dev->api, "hisi_qm_v2");
	assert_int_equal(dev->qfrs_offset[UACCE_QFRT_MMIO], 0);
	assert_int_equal(dev->qfrs_offset[UACCE_QFRT_DUS], page);
	assert_int_equal(dev->qfrs_size[UACCE_QFRT_MMIO], 16384);
	assert_int_equal(dev->qfrs_size[UACCE_QFRT_DUS], 135168);
	assert_int_equal(dev->qfrs_size[UACCE_QFRT_SS], 0);
	assert_int_equal(wd_has_alg(dev, "zlib"), 1);
	assert_int_equal(wd_has_alg(dev, "lz77_zstd"), 1);
	assert_int_equal(wd_has_alg(dev, "lz77"), 0);
	assert_int_equal(wd_has_alg(dev, "lib"), 0);
	assert_int_equal(wd_has_alg(dev, ""), 0);
	assert_int_equal(wd_has_alg(dev, NULL), 0);
	assert_int_equal(wd_has_alg(NULL, "zlib"), 0);
	free(devices.all);
}

static void test_seed_dialect(void **state)
{
	struct wf_chan_devices devices;
	struct uacce_dev_info *dev;

	(void)state;
	put_seed("hisi_zip-2", "6\n", "0 12288 49152\n");
	devices = scan("gzip");
	assert_int_equal(devices.count, 1);
	dev = &devices.all[0];
	assert_int_equal(dev->kind, WD_DEV_UACCE_SEED);
	assert_int_equal(dev->iommu_type, WD_IOMMU_SVA);
	assert_int_equal(dev->node_id, 1);
	assert_int_equal(dev->numa_dis, 32);
	assert_int_equal(dev->qfrs_offset[UACCE_QFRT_DUS], 12288);
	assert_int_equal(dev->qfrs_size[UACCE_QFRT_MMIO], 12288);
	assert_int_equal(dev->qfrs_size[UACCE_QFRT_DUS], 36864);
	assert_true(dev->qfrs_size[UACCE_QFRT_SS] > 0);
	free(devices.all);

	put_seed("hisi_zip-2", "1\n", "0 18446744073709551615 4096\n");
	devices = scan(NULL);
	assert_int_equal(devices.all[0].iommu_type, WD_IOMMU_NONE);
	assert_int_equal(devices.all[0].qfrs_size[UACCE_QFRT_MMIO], 4096);
	assert_int_equal(devices.all[0].qfrs_size[UACCE_QFRT_DUS], 0);
	free(devices.all);

	put_seed("hisi_zip-2", "0\n", "0\t4096\t8192");
	devices = scan(NULL);
	assert_int_equal(devices.all[0].iommu_type, WD_IOMMU_SHARE_DOMAIN);
	free(devices.all);
}

/* A device that says nonsense is left out, and the others stay. */
static void test_nonsense(void **state)
{
	struct wf_chan_devices devices;
	char many[2000] = "", name[80];

	(void)state;
	put_mainline("good-0", "1\n", "1\n", "-1\n", "copy\n");
	put_mainline("flags-0", "yes\n", "1\n", "0\n", "copy\n");
	put_mainline("count-0", "1\n", "99999999999999999999\n", "0\n", "c\n");
	put_mainline("empty-0", "\n", "1\n", "0\n", "copy\n");
	put_seed("offsets-0", "0\n", "4096 0 8192\n");
	put_seed("few-0", "0\n", "4096\n");
	put_attr("nothing-0", "api", "x\n");
	put_node("nothing-0");
	put_attr("gone-0", "api", "no node in /dev\n");
	put("sys/class/uacce/file-0", "not a folder");
	memset(name, 'n', 70);
	name[70] = '\0';
	put_mainline(name, "1\n", "1\n", "0\n", "copy\n");
	devices = scan(NULL);
	assert_int_equal(devices.count, 1);
	assert_string_equal(devices.all[0].name, "good-0");
	assert_int_equal(devices.all[0].node_id, -1);
	free(devices.all);

	/* More algorithms than there is room for: whole names only. */
	while (strlen(many) < sizeof(many) - 20)
		strcat(many, "algorithm_x\n");
	put_mainline("good-0", "1\n", "1\n", "0\n", many);
	devices = scan("algorithm_x");
	assert_int_equal(devices.count, 1);
	assert_true(strlen(devices.all[0].algs) < WD_ALGS_SIZE);
	assert_int_equal(
		(strlen(devices.all[0].algs) + 1) % strlen("algorithm_x\n"), 0);
	free(devices.all);
}

static void test_order(void **state)
{
	static const char *const want[] = { "near-0", "near-1", "far-0",
					    "broken-0", "taken-0" };
	struct wf_chan_devices devices;
	char path[256];
	int here = wf_chan_uacce_here();

	(void)state;
	here = here < 0 ? 0 : here;
	snprintf(path, sizeof(path), "sys/devices/system/node/node%d/distance",
		 here);
	put(path, "10 21 31\n");
	put_mainline("far-0", "1\n", "900\n", here == 2 ? "1" : "2", "copy\n");
	put_mainline("near-0", "1\n", "20\n", "0\n", "zlib\ncopy\n");
	put_mainline("near-1", "1\n", "10\n", "0\n", "copy\n");
	put_mainline("taken-0", "1\n", "0\n", "0\n", "copy\n");
	put_mainline("broken-0", "1\n", "900\n", "0\n", "copy\n");
	put_attr("broken-0", "isolate", "1\n");
	put_mainline("other-0", "1\n", "900\n", "0\n", "sha256\n");
	devices = scan("copy");
	assert_int_equal(devices.count, 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(devices.all[i].name, want[i]);
	free(devices.all);
	devices = scan("zlib");
	assert_int_equal(devices.count, 1);
	free(devices.all);
	devices = scan("none");
	assert_int_equal(devices.count, 0);
	free(devices.all);
}

static void test_distance(void **state)
{
	(void)state;
	put("sys/devices/system/node/node1/distance", "21 10 31\n");
	assert_int_equal(wf_chan_uacce_distance(sysfs, 1, 0), 21);
	assert_int_equal(wf_chan_uacce_distance(sysfs, 1, 1), 10);
	assert_int_equal(wf_chan_uacce_distance(sysfs, 1, 2), 31);
	assert_int_equal(wf_chan_uacce_distance(sysfs, 1, 3), 10);
	assert_int_equal(wf_chan_uacce_distance(sysfs, 7, 1), 10);
	assert_int_equal(wf_chan_uacce_distance(sysfs, 1, -1), 10);
	assert_int_equal(wf_chan_uacce_distance(sysfs, -1, 1), 10);
}

/* The whole of it through the public calls, with files for device nodes: what
 * hardware would answer to ioctl() is all that is missing. */
static void test_public(void **state)
{
	struct uacce_dev_info *list;
	struct wd_chan ch = { 0 };

	(void)state;
	setenv(WF_CHAN_SYSFS_ENV, sysfs, 1);
	setenv(WF_CHAN_DEV_ENV, dev_root, 1);
	setenv("WEFT_DEVD", "/nonexistent/devd.sock", 1);
	assert_int_equal(wd_list_devices(NULL, NULL), -EINVAL);
	assert_int_equal(wd_list_devices(NULL, &list), 0);
	assert_null(list);
	assert_int_equal(wd_request_channel(&ch), -ENODEV);
	put_mainline("acc-0", "1\n", "4\n", "0\n", "copy\n");
	put_mainline("acc-1", "0\n", "2\n", "0\n", "copy\n");
	assert_int_equal(wd_list_devices("copy", &list), 2);
	assert_string_equal(list[0].name, "acc-0");

	ch.alg = "none";
	assert_int_equal(wd_request_channel(&ch), -ENODEV);
	ch.alg = "copy";
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_int_equal(wd_request_channel(&ch), -EINVAL);
	assert_string_equal(ch.dev_info->name, "acc-0");
	assert_string_equal(ch.dev_path, list[0].dev_path);
	assert_true(ch.fd >= 0);
	assert_int_equal(wd_is_sharing(&ch, NULL), 1);
	assert_true(wd_get_dma_from_va(&ch, &ch) == (uintptr_t)&ch);
	assert_int_equal(wd_get_pa_from_va(&ch, &ch), 0);
	wd_release_channel(&ch);
	assert_null(ch.core);
	assert_null(ch.dev_info);
	wd_release_channel(&ch);

	/* The seed's dialect has one; a file gives no address for it. */
	put_seed("old-0", "0\n", "0 4096 8192\n");
	memset(&ch, 0, sizeof(ch));
	strcpy(ch.dev_path, "old-0");
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_null(wd_reserve_mem(&ch, 4096));
	assert_int_equal(errno, ENOTTY);
	assert_null(ch.ss_va);
	assert_int_equal(wd_drv_start(&ch), -ENOTTY);
	wd_release_channel(&ch);

	/* By description, by name. Mainline has no SS region. */
	memset(&ch, 0, sizeof(ch));
	ch.dev_info = &list[1];
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_int_equal(wd_is_sharing(&ch, NULL), 0);
	assert_null(wd_reserve_mem(&ch, 4096));
	assert_int_equal(errno, EOPNOTSUPP);
	wd_release_channel(&ch);
	assert_ptr_equal(ch.dev_info, &list[1]);
	memset(&ch, 0, sizeof(ch));
	strcpy(ch.dev_path, "acc-1");
	assert_int_equal(wd_request_channel(&ch), 0);
	assert_string_equal(ch.dev_info->name, "acc-1");
	wd_release_channel(&ch);
	memset(&ch, 0, sizeof(ch));
	strcpy(ch.dev_path, "acc-7");
	assert_int_equal(wd_request_channel(&ch), -ENODEV);
	memset(ch.dev_path, 'x', sizeof(ch.dev_path));
	assert_int_equal(wd_request_channel(&ch), -EINVAL);
	assert_int_equal(wd_request_channel(NULL), -EINVAL);
	wd_free_devices(list);
	wd_free_devices(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_uacce, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mainline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_dialect, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_distance, setup, teardown),
		cmocka_unit_test_setup_teardown(test_public, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
