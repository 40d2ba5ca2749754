/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This program measures whether rings would gain from huge pages: what a bare
 * ring takes with many peers, in random order and one message at a time, if its
 * memory is in pages of 4 KiB, in a huge page of its own (of the system's pool,
 * or made by MADV_COLLAPSE), or packed with other rings into huge pages of the
 * pool. It has the places of a ring of ours (shm/ring_defs.h, shm/lap.h), and
 * one peer plays all of them, because the pages count and not the processes.
 *
 *	ring_pages [CPU OTHER_CPU]
 *
 * prints ns for a message one way, the median of blocks, and us to make a ring
 * and touch its first page. Fill the pool before, as root:
 *
 *	sysctl vm.nr_overcommit_hugepages=600
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
	MOST = 512, /* peers */
	BLOCKS = 5,
	TURNS = 20000,
	WARM = 20000,
	PAIR = 232 << 10, /* a ring for each direction */
	SLOTS_AT = 512,
	SLOT = 128,
	LAP = 28, /* slots */
	SMALL = 96,
	DATA_AT = 36 << 10,
	DATA = 8 << 10, /* of a lap */
};

static const size_t huge = (size_t)2 << 20;

enum pages { PAGES_4K, PAGES_COLLAPSED, PAGES_POOL, PAGES_PACKED, PAGES_KINDS };

static const char *const names[PAGES_KINDS] = { "4 KiB",
						"2 MiB each, collapsed",
						"2 MiB each, pool",
						"2 MiB, packed, pool" };

static const unsigned int crowds[] = { 8, 64, MOST };
static const size_t sizes[] = { 8, 2048 };

/* One direction of one peer, as one side sees it. */
struct end {
	uint8_t *ring;
	uint64_t at;
};

static struct {
	uint8_t *memory[MOST];
	uint8_t *whole; /* of packed rings */
	size_t bytes;	/* of each mapping */
	unsigned int count;
} rings;

static struct end out[MOST], in[MOST];
static uint8_t *user; /* what is sent, then what is received */

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "ring_pages: CPU %s: %s\n", cpu,
			strerror(errno));
}

/* -- memory ------------------------------------------------------------------- */

/* NULL: there is none. */
static uint8_t *make(size_t bytes, unsigned int flags)
{
	int fd = memfd_create("ring", MFD_CLOEXEC | flags);
	/* A mapping of a huge page is aligned to one only if it is told to be. */
	size_t room = bytes < huge ? bytes : bytes + huge;
	uint8_t *got = MAP_FAILED, *at;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		got = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (got != MAP_FAILED) {
		at = bytes < huge ? got : got + (-(uintptr_t)got & (huge - 1));
		got = mmap(at, bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	return got == MAP_FAILED ? NULL : got;
}

/* Whether ring @i is there, with its first page. */
static bool make_one(enum pages pages, unsigned int i)
{
	unsigned int flags = pages >= PAGES_POOL ? MFD_HUGETLB : 0;

	if (pages == PAGES_PACKED)
		rings.memory[i] = rings.whole + (size_t)i * PAIR;
	else
		rings.memory[i] = make(rings.bytes, flags);
	if (!rings.memory[i])
		return false;
	*(volatile uint8_t *)rings.memory[i] = 1;
	return pages != PAGES_COLLAPSED ||
	       !madvise(rings.memory[i], huge, MADV_COLLAPSE);
}

static void unmake(enum pages pages)
{
	for (unsigned int i = 0; i < rings.count; i++)
		if (pages != PAGES_PACKED && rings.memory[i])
			munmap(rings.memory[i], rings.bytes);
	if (rings.whole)
		munmap(rings.whole, rings.bytes);
	memset(&rings, 0, sizeof(rings));
}

/* The us that each of them took, or 0. */
static double make_all(enum pages pages, unsigned int count)
{
	double begin = now_ns();

	rings.bytes = pages == PAGES_4K ? PAIR : huge;
	if (pages == PAGES_PACKED) {
		rings.bytes = ((size_t)count * PAIR + huge - 1) & ~(huge - 1);
		rings.whole = make(rings.bytes, MFD_HUGETLB);
		if (!rings.whole)
			return 0;
	}
	for (; rings.count < count; rings.count++)
		if (!make_one(pages, rings.count))
			return 0;
	return (now_ns() - begin) / count / 1e3;
}

/* -- messages ----------------------------------------------------------------- */

static uint32_t next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static uint8_t *slot_of(const struct end *end)
{
	return end->ring + SLOTS_AT + end->at % LAP * SLOT;
}

static uint8_t *payload_of(const struct end *end, size_t size)
{
	if (size <= SMALL)
		return slot_of(end) + SLOT - SMALL;
	return end->ring + DATA_AT + end->at % (DATA / size) * size;
}

static void put(struct end *end, size_t size)
{
	uint8_t *slot = slot_of(end);

	memcpy(payload_of(end, size), user, size);
	/* Pairs with take(): the payload before the word. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)slot, ++end->at,
			      memory_order_release);
}

static void take(struct end *end, size_t size)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(void *)slot_of(end);

	while (atomic_load_explicit(word, memory_order_acquire) != end->at + 1)
		__builtin_ia32_pause();
	memcpy(user + DATA, payload_of(end, size), size);
	end->at++;
}

/* Both sides draw the same order. */
static void play(bool first, unsigned int peers, size_t size, uint32_t *state,
		 unsigned int turns)
{
	while (turns--) {
		unsigned int i = next(state) % peers;

		if (first)
			put(&out[i], size);
		take(&in[i], size);
		if (!first)
			put(&out[i], size);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void aim(bool first)
{
	for (unsigned int i = 0; i < rings.count; i++) {
		uint8_t *one = rings.memory[i], *two = one + PAIR / 2;

		out[i] = (struct end){ .ring = first ? one : two };
		in[i] = (struct end){ .ring = first ? two : one };
	}
}

static double measure(unsigned int peers, size_t size, char **cpus)
{
	uint32_t state = 2463534242u;
	double took[BLOCKS];
	pid_t pid;

	for (unsigned int i = 0; i < rings.count; i++)
		memset(rings.memory[i], 0, PAIR);
	/* At a real-time priority the child would not run to leave our CPU. */
	if (cpus)
		pin(cpus[1]);
	pid = fork();
	if (pid < 0) {
		perror("ring_pages");
		exit(1);
	}
	aim(pid != 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		play(false, peers, size, &state, WARM + BLOCKS * TURNS);
		_exit(0);
	}
	if (cpus)
		pin(cpus[0]);
	play(true, peers, size, &state, WARM);
	for (int i = 0; i < BLOCKS; i++) {
		double begin = now_ns();

		play(true, peers, size, &state, TURNS);
		took[i] = (now_ns() - begin) / TURNS / 2;
	}
	waitpid(pid, NULL, 0);
	qsort(took, BLOCKS, sizeof(took[0]), compare);
	return took[BLOCKS / 2];
}

static void run(enum pages pages, unsigned int peers, char **cpus)
{
	double made = make_all(pages, peers);

	printf("%5u  %-22s", peers, names[pages]);
	if (made > 0) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			printf("%9.0f", measure(peers, sizes[i], cpus));
		printf("%9.1f\n", made);
	} else {
		printf("  there are no such pages\n");
	}
	fflush(stdout);
	unmake(pages);
}

int main(int argc, char **argv)
{
	user = calloc(2, DATA);
	if (!user)
		return 1;
	printf("%5s  %-22s%9s%9s%9s\n", "peers", "pages", "8 B", "2 KiB",
	       "make");
	fflush(stdout);
	for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++)
		for (enum pages pages = 0; pages < PAGES_KINDS; pages++)
			run(pages, crowds[i], argc > 2 ? argv + 1 : NULL);
	return 0;
}
