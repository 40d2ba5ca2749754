/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile client of the software device. The input is a program: what the
 * client writes into its queues (jobs, doorbells, credit, any word anywhere),
 * what it requests, and when the device gets its turn. Much of it is valid, so
 * that it gets far. Whatever it does: no crash, nothing touched outside of the
 * memory that a channel may touch (which is between pages that nobody may
 * access), every completion belongs to a job that was taken, and the device
 * continues to work.
 *
 * With libFuzzer, all in one line:
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc
 *	-Iinclude fuzz/broker_client.c $(ls src/{base,queue,chan,devd}/[a-z]*.c |
 *	grep -v _test)
 * In the tests: together with driver.c.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "devd/alg.h"
#include "devd/worker.h"

#define DEPTH 16u
#define REGION (64u << 10)

struct wf_fuzz_stats wf_fuzz_stats;

struct program {
	const uint8_t *at;
	size_t left;
};

/* This struct holds what all inputs share: the server without its threads. */
struct world {
	struct wf_devd devd;
	struct wf_devd_worker worker;
	uint8_t *fenced; /* a region between pages that nobody may access */
	pid_t scapegoat; /* process whose memory SVA jobs may overwrite */
	int scapegoat_pidfd;
	int sock[2]; /* the client's, and where its replies arrive */
};

static uint64_t take(struct program *p, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > p->left)
		bytes = p->left;
	memcpy(&value, p->at, bytes);
	p->at += bytes;
	p->left -= bytes;
	return value;
}

/* -- the world ------------------------------------------------------------- */

static void add_device(struct wf_devd *devd, const char *name, int type)
{
	struct wf_devd_device_config *config =
		wf_devd_config_add(&devd->config, name, type);
	struct wf_devd_device *device =
		&devd->devices[devd->config.n_devices - 1];

	device->config = *config;
	device->config.algs = wf_devd_alg_all();
	device->config.instances = 6;
}

static pid_t make_scapegoat(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent) /* it may have ended already */
			pause();
		_exit(0);
	}
	return pid;
}

static struct world *make_world(void)
{
	static struct world world;
	struct wf_devd *devd = &world.devd;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (world.fenced)
		return &world;
	wf_devd_config_init(&devd->config);
	devd->config.depth = DEPTH;
	devd->config.workers = 1;
	devd->config.client_channels = 4;
	devd->config.client_memory = 4 * REGION;
	devd->workers = &world.worker;
	devd->epoll_fd = -1;
	wf_base_list_init(&devd->clients);
	wf_base_list_init(&devd->users);
	wf_base_list_init(&devd->kept);
	wf_base_list_init(&devd->inbox);
	pthread_mutex_init(&devd->inbox_lock, NULL);
	add_device(devd, "sva-0", WD_IOMMU_SVA);
	add_device(devd, "share-0", WD_IOMMU_SHARE_DOMAIN);
	add_device(devd, "noiommu-0", WD_IOMMU_NONE);
	if (wf_devd_arena_init(&devd->arena, 8 * REGION))
		abort();
	world.worker.devd = devd;
	wf_devd_job_guard();
	world.fenced = mmap(NULL, REGION + 2 * page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (world.fenced == MAP_FAILED ||
	    mprotect(world.fenced + page, REGION, PROT_READ | PROT_WRITE))
		abort();
	world.fenced += page;
	world.scapegoat = make_scapegoat();
	world.scapegoat_pidfd =
		(int)syscall(SYS_pidfd_open, world.scapegoat, 0);
	if (world.scapegoat_pidfd < 0)
		abort();
	return &world;
}

/* -- what it writes -------------------------------------------------------- */

static uint64_t any_address(struct program *p, const struct wf_devd_chan *chan,
			    uint32_t len)
{
	struct wf_devd_region *region = atomic_load(&chan->region);
	uint64_t start = region ? region->dma : (uintptr_t)&wf_fuzz_stats;
	uint8_t how = (uint8_t)take(p, 1);

	if (how < 150)
		return start + take(p, 2) % (REGION / 2);
	if (how < 200) /* at the very end */
		return start + REGION - len + take(p, 1) % 3 - 1;
	if (how < 220)
		return start - take(p, 1);
	return how < 240 ? take(p, 2) : take(p, 8);
}

static uint32_t any_length(struct program *p)
{
	uint8_t how = (uint8_t)take(p, 1);

	if (how < 200)
		return (uint32_t)take(p, 2) % 5000;
	return how < 230 ? (uint32_t)take(p, 2) : (uint32_t)take(p, 4);
}

static void write_job(struct program *p, struct wf_devd_chan *chan)
{
	uint8_t *dus = (uint8_t *)chan->base + WF_ACCEL_MMIO_SIZE;
	struct wf_accel_job *jobs = (void *)dus;
	uint32_t bell = atomic_load(&chan->mmio->doorbell);
	uint8_t how = (uint8_t)take(p, 1);
	struct wf_accel_job job = {
		.id = (uint32_t)take(p, 2),
		.alg = how % 3,
		.src_len = any_length(p),
		.seed = (uint32_t)take(p, 4),
	};

	if (job.alg == WF_ACCEL_NOP)
		job.src_len = 0;
	else
		job.src = any_address(p, chan, job.src_len);
	if (job.alg == WF_ACCEL_COPY) {
		job.dst_len = how & 0x80 ? job.src_len : any_length(p);
		job.dst = any_address(p, chan, job.dst_len);
	}
	/* Any byte of it may be anything. */
	if (how % 16 == 15)
		((uint8_t *)&job)[take(p, 1) % 64] = (uint8_t)take(p, 1);
	jobs[bell % DEPTH] = job;
	atomic_store(&chan->mmio->doorbell, (bell + 1) & 0xffff);
	wf_fuzz_stats.slots++;
}

static void write_word(struct program *p, struct wf_devd_chan *chan)
{
	size_t words = chan->bytes / 4;
	_Atomic uint32_t *word = chan->base;

	atomic_store(&word[take(p, 2) % words], (uint32_t)take(p, 4));
}

/* Reads completions as a client would, or claims to have read them. */
static void give_credit(struct program *p, struct wf_devd_chan *chan)
{
	uint16_t written = chan->cqw.written;
	uint8_t how = (uint8_t)take(p, 1);

	atomic_store(&chan->mmio->credit,
		     how < 240 ? written : (uint32_t)take(p, 3));
	wf_fuzz_stats.replies++;
}

static void run_turn(struct world *world, struct wf_devd_chan *chan)
{
	uint64_t refused = world->worker.refused, jobs = world->worker.jobs;
	uint64_t faults = world->worker.faults;
	unsigned int n = wf_devd_worker_turn(&world->worker, chan);

	if (n > DEPTH || world->worker.jobs - jobs != n)
		abort();
	refused = world->worker.refused - refused;
	wf_fuzz_stats.completed += n - refused;
	wf_fuzz_stats.failed += refused;
	wf_fuzz_stats.broken += world->worker.faults - faults;
}

/* -- what it asks ---------------------------------------------------------- */

static void ask(struct program *p, struct world *world,
		struct wf_devd_client *client)
{
	static const char *const names[] = { "sva-0", "share-0", "noiommu-0",
					     "none" };
	int fds[WF_BROKER_FDS_MAX] = { -1, -1, -1 };
	struct wf_broker_request request = {
		.magic = WF_BROKER_MAGIC,
		.version = WF_BROKER_VERSION,
		.op = (uint16_t)(take(p, 1) % (WF_BROKER_OPS + 1)),
		.chan = (uint32_t)take(p, 1) % 8,
		.target = (uint32_t)take(p, 1) % 8,
		.index = (uint32_t)take(p, 1) % 5,
	};
	uint8_t how = (uint8_t)take(p, 1);
	struct wf_devd_gift gift;
	struct wf_broker_reply reply;

	request.size = how < 200 ? (uint64_t)(how % 5) * 4096 : take(p, 8);
	request.offset = how % 7 ? 0 : take(p, 8);
	strcpy(request.name, names[take(p, 1) % 4]);
	if (how == 255)
		memset(request.name, 'x', sizeof(request.name));
	if (request.op == WF_BROKER_START) /* no threads here */
		return;
	gift = wf_devd_gift_take(&request, how % 3 ? -1 : dup(world->sock[1]),
				 client->pid,
				 client->devd->config.client_memory);
	if (wf_devd_request_handle(client, &request, &gift, &reply, fds) &&
	    reply.status > 0)
		abort();
	if (gift.region || gift.memory >= 0)
		abort();
	for (int i = 0; i < WF_BROKER_FDS_MAX; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	while (recv(world->sock[1], &reply, sizeof(reply), MSG_DONTWAIT) > 0)
		;
}

/* -- one input ------------------------------------------------------------- */

static struct wf_devd_chan *open_chan(struct wf_devd_client *client, int type)
{
	struct wf_devd_chan *chan;
	int memfd;

	if (wf_devd_chan_make(client, &client->devd->devices[type], &chan,
			      &memfd))
		abort();
	close(memfd);
	if (chan->sva) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%d/mem", (int)client->pid);
		chan->memory = open(path, O_RDWR | O_CLOEXEC);
		if (chan->memory < 0)
			abort();
	}
	return chan;
}

static void run_program(struct program *p, struct world *world,
			struct wf_devd_client *client,
			struct wf_devd_chan *chan)
{
	while (p->left) {
		uint8_t op = (uint8_t)take(p, 1);

		if (op < 120)
			write_job(p, chan);
		else if (op < 190)
			run_turn(world, chan);
		else if (op < 225)
			give_credit(p, chan);
		else if (op < 230)
			write_word(p, chan);
		else
			ask(p, world, client);
	}
	run_turn(world, chan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *world = make_world();
	struct program p = { data, size };
	struct wf_devd_region region = {
		.refs = 2, /* one is ours */
		.dma = 0x100000000ull,
		.size = REGION,
		.base = world->fenced,
	};
	struct wf_devd_client *client = calloc(1, sizeof(*client));
	struct wf_devd_user *user;
	int type = (int)(take(&p, 1) % 3);
	struct wf_devd_chan *chan;

	if (!client || wf_devd_user_get(&world->devd, geteuid(), &user) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, world->sock))
		abort();
	*client = (struct wf_devd_client){
		.devd = &world->devd,
		.fd = world->sock[0],
		.pidfd = dup(world->scapegoat_pidfd),
		.pid = world->scapegoat,
		.uid = geteuid(),
		.user = user,
		.greeted = true,
		.next_iova = WF_DEVD_IOVA_BASE,
	};
	wf_base_list_init(&client->chans);
	wf_base_list_add_tail(&world->devd.clients, &client->link);
	world->devd.n_clients++;
	chan = open_chan(client, type);
	/* An id that no request can name, so that none closes the channel that
	 * the program uses. */
	chan->id = UINT32_MAX;
	if (type != WD_IOMMU_SVA) {
		client->memory += REGION;
		atomic_store(&chan->region, &region);
	}
	run_program(&p, world, client, chan);
	atomic_store(&chan->region, NULL);
	wf_devd_client_drop(client);
	close(world->sock[1]);
	/* It has closed all that it got. */
	if (world->devd.n_clients || world->devd.n_chans || world->devd.n_kept)
		abort();
	for (int i = 0; i < 3; i++) {
		if (world->devd.devices[i].in_use ||
		    world->devd.devices[i].memory)
			abort();
	}
	return 0;
}
