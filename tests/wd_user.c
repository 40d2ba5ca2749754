/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses libwd.so and its headers only, with `weft devd` as
 * installed: it does what a vendor's driver and an application do, with public
 * names only.
 */
#include <weft/smm.h>
#include <weft/wd.h>
#include <weft/wd_drv.h>

#include "common/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* A vendor's channel. */
struct vendor_chan {
	struct wd_chan ch;
	void *mmio;
	void *dus;
};

static char socket_name[64];
static pid_t device;

static void start_device(void)
{
	const char *build = getenv("WEFT_BUILD");
	char path[512], line[128];
	int fds[2];
	FILE *out;

	CHECK(build);
	snprintf(path, sizeof(path), "%s/tools/weft", build);
	snprintf(socket_name, sizeof(socket_name), P_tmpdir "/weft-user-%d",
		 (int)getpid());
	CHECK_SYS(pipe(fds));
	device = fork();
	if (!device) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(path, "weft", "devd", "-s", socket_name, "-d",
		      "any-0,instances=3", "-d", "dom-0,scenario=share", "-d",
		      "phys-0,scenario=noiommu,algs=copy", NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	/* The daemon prints this when programs can find it. */
	CHECK(out && fgets(line, sizeof(line), out));
	CHECK(strstr(line, socket_name));
	fclose(out);
	setenv("WEFT_DEVD", socket_name, 1);
	setenv("WEFT_SYSFS", "/nonexistent", 1);
}

static void open_chan(struct vendor_chan *vc, const char *name)
{
	struct uacce_dev_info *dev;

	memset(vc, 0, sizeof(*vc));
	strcpy(vc->ch.dev_path, name);
	CHECK_EQ(wd_request_channel(&vc->ch), 0);
	dev = vc->ch.dev_info;
	vc->mmio = mmap(NULL, dev->qfrs_size[UACCE_QFRT_MMIO],
			PROT_READ | PROT_WRITE, MAP_SHARED, vc->ch.fd,
			(off_t)dev->qfrs_offset[UACCE_QFRT_MMIO]);
	vc->dus = mmap(NULL, dev->qfrs_size[UACCE_QFRT_DUS],
		       PROT_READ | PROT_WRITE, MAP_SHARED, vc->ch.fd,
		       (off_t)dev->qfrs_offset[UACCE_QFRT_DUS]);
	CHECK(vc->mmio != MAP_FAILED && vc->dus != MAP_FAILED);
	CHECK_EQ(wd_drv_start(&vc->ch), 0);
	CHECK_EQ(wd_drv_start(&vc->ch), -EINVAL);
	CHECK_EQ(wd_drv_alive(&vc->ch), 1);
	CHECK(wd_drv_event_fd(&vc->ch) >= 0);
	CHECK_EQ(wd_drv_wait(&vc->ch, 1), -ETIMEDOUT);
	CHECK_EQ(wd_drv_kick(&vc->ch), 0);
}

static void close_chan(struct vendor_chan *vc)
{
	munmap(vc->mmio, vc->ch.dev_info->qfrs_size[UACCE_QFRT_MMIO]);
	munmap(vc->dus, vc->ch.dev_info->qfrs_size[UACCE_QFRT_DUS]);
	wd_release_channel(&vc->ch);
	CHECK_EQ(wd_drv_alive(&vc->ch), 0);
}

static void check_lists(void)
{
	struct uacce_dev_info *list;

	CHECK_EQ(wd_list_devices(NULL, &list), 3);
	CHECK(!strcmp(list[0].name, "any-0")); /* SVA needs least */
	CHECK_EQ(list[0].available_instances, 3);
	wd_free_devices(list);
	CHECK_EQ(wd_list_devices("crc32", &list), 2);
	wd_free_devices(list);
	CHECK_EQ(wd_list_devices("rsa", &list), 0);
}

static void check_memory(void)
{
	struct vendor_chan a, b, phys;
	void *block;

	open_chan(&a, "dom-0");
	open_chan(&b, "dom-0");
	open_chan(&phys, "phys-0");
	CHECK(wd_reserve_mem(&a.ch, 1 << 20));
	CHECK_EQ(smm_init(a.ch.ss_va, 1 << 20, 4095), 0);
	block = smm_alloc(a.ch.ss_va, 10000);
	CHECK(block && !((uintptr_t)block % 4096));
	CHECK(wd_get_dma_from_va(&a.ch, block));
	CHECK(!wd_get_pa_from_va(&a.ch, block));
	CHECK_EQ(wd_share_dma_addr(&b.ch, &a.ch), 0);
	CHECK(wd_get_dma_from_va(&b.ch, block) ==
	      wd_get_dma_from_va(&a.ch, block));
	close_chan(&a);
	memset(block, 1, 10000); /* the memory is still there */
	CHECK_EQ(smm_free(b.ch.ss_va, block), 0);
	close_chan(&b);
	CHECK(wd_reserve_mem(&phys.ch, 8192));
	CHECK(wd_get_pa_from_va(&phys.ch, phys.ch.ss_va) ==
	      wd_get_dma_from_va(&phys.ch, phys.ch.ss_va));
	CHECK(wd_get_pa_from_va(&phys.ch, phys.ch.ss_va));
	close_chan(&phys);
}

static void check_end(void)
{
	struct vendor_chan vc;
	int status;

	open_chan(&vc, "any-0");
	kill(device, SIGTERM);
	CHECK_EQ(wd_drv_wait(&vc.ch, 10000), -ENODEV);
	CHECK_EQ(wd_drv_alive(&vc.ch), 0);
	CHECK_EQ(waitpid(device, &status, 0), device);
	CHECK_EQ(status, 0);
	close_chan(&vc);
	memset(&vc, 0, sizeof(vc));
	CHECK_EQ(wd_request_channel(&vc.ch), -ENODEV);
}

int main(void)
{
	alarm(60);
	start_device();
	check_lists();
	check_memory();
	check_end();
	return 0;
}
