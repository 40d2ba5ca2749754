/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses libwd.so and its headers only, with `weft devd` as
 * installed: it does what a vendor's driver and an application do, with public
 * names only: channels, memory, and jobs on memory that is reserved, shared, or
 * somebody else's.
 */
#include <weft/smm.h>
#include <weft/wd.h>
#include <weft/wd_comp.h>
#include <weft/wd_drv.h>

#include "common/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
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

#define PLAIN 60000u
#define ROOM (PLAIN + 1000)

/* Compressed and decompressed in @memory, which has room for three of them, on the
 * channel. True: by its device. Whoever did it, the account of copies is right: a
 * device copies each byte once, because others could change it meanwhile. */
static bool is_done_there(struct wd_chan *ch, uint8_t *memory)
{
	struct wd_comp_ctx there = { .ch = ch, .comp_level = 1 }, back = there;
	uint8_t *packed = memory + ROOM, *plain = packed + ROOM;
	size_t in = PLAIN, len = ROOM, out = PLAIN;
	bool by_device;

	for (size_t i = 0; i < PLAIN; i++)
		memory[i] = (uint8_t)(i * i >> 5);
	memset(packed, 0, 2 * ROOM);
	CHECK_EQ(wd_alg_deflate(&there, memory, &in, packed, &len), 0);
	CHECK_EQ(in, PLAIN);
	CHECK(len < PLAIN);
	in = len;
	CHECK_EQ(wd_alg_inflate(&back, packed, &in, plain, &out), 0);
	CHECK_EQ(out, PLAIN);
	CHECK(!memcmp(memory, plain, PLAIN));
	by_device = !strcmp(there.used, "device");
	CHECK_EQ(!strcmp(back.used, "device"), by_device);
	CHECK_EQ(there.copied, by_device ? PLAIN + len : 0);
	CHECK_EQ(back.copied, by_device ? PLAIN + len : 0);
	return by_device;
}

static int their_fd;

static void *their_alloc(size_t size, uint64_t *dma)
{
	void *va;

	*dma = 0;
	their_fd = memfd_create("theirs", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK_SYS(their_fd);
	CHECK_SYS(ftruncate(their_fd, (off_t)size));
	CHECK_SYS(fcntl(their_fd, F_ADD_SEALS, F_SEAL_SHRINK));
	va = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, their_fd, 0);
	return va == MAP_FAILED ? NULL : va;
}

static void their_free(void *va)
{
	CHECK_SYS(munmap(va, 3 * ROOM));
	CHECK_SYS(close(their_fd));
	their_fd = -1;
}

static int their_get_fd(void *va, uint64_t *offset)
{
	(void)va;
	*offset = 0;
	return their_fd;
}

static void check_jobs(void)
{
	static const struct wd_3rd_memory theirs = { their_alloc, their_free,
						     their_get_fd };
	static uint8_t ordinary[3 * ROOM];
	struct wd_chan a = { .dev_path = "dom-0" }, b = a, c = a;
	uint8_t *memory;

	CHECK_EQ(wd_request_channel(&a), 0);
	memory = wd_reserve_mem(&a, 3 * ROOM);
	CHECK(memory);
	CHECK(is_done_there(&a, memory));
	/* Its device does not reach this: no copy is made that nobody asked for. */
	CHECK(!is_done_there(&a, ordinary));
	CHECK_EQ(wd_request_channel(&b), 0);
	CHECK_EQ(wd_share_reserved_memory(&a, &b), 0);
	CHECK(is_done_there(&b, memory));
	wd_release_channel(&a);
	CHECK(is_done_there(&b, memory));
	wd_release_channel(&b);
	CHECK_EQ(wd_request_channel(&c), 0);
	CHECK_EQ(wd_register_3rd_memory(&c, &theirs), 0);
	memory = wd_reserve_mem(&c, 3 * ROOM);
	CHECK(memory);
	CHECK(is_done_there(&c, memory));
	wd_release_channel(&c);
	CHECK_EQ(their_fd, -1);
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
	alarm(250);
	start_device();
	check_lists();
	check_memory();
	check_jobs();
	check_end();
	return 0;
}
