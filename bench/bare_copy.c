/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lower bound of RMA in ordinary memory on a node: what one copy from or to
 * another process costs, by each call that the kernel has for it, in a bare loop.
 * No key, no completion, no check whose memory it is. Beside it: the same with
 * the word that proves this (shm/guard.h) as a first piece.
 *
 *	bare_copy [CPU OTHER_CPU]
 *
 * prints ns, the fastest of many blocks, because other work can only make one
 * slower.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 200, ROUNDS = 100, MOST = 65536 };

static pid_t peer;
static int file; /* the memory of the peer */
static uint8_t *there, *here;
static uint64_t *guard;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fprintf(stderr, "bare_copy: CPU %d: %s\n", cpu,
			strerror(errno));
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static ssize_t by_file_write(size_t len)
{
	return pwrite(file, here, len, (off_t)(uintptr_t)there);
}

static ssize_t by_file_read(size_t len)
{
	return pread(file, here, len, (off_t)(uintptr_t)there);
}

static ssize_t by_vm(size_t len, bool write, bool guarded)
{
	uint64_t word;
	const struct iovec local[2] = { { &word, 8 }, { here, len } };
	const struct iovec remote[2] = { { guard, 8 }, { there, len } };
	const struct iovec *l = guarded ? local : local + 1;
	const struct iovec *r = guarded ? remote : remote + 1;
	size_t n = guarded ? 2 : 1;
	ssize_t ret;

	word = 0;
	ret = write ? process_vm_writev(peer, l, n, r, n, 0) :
		      process_vm_readv(peer, l, n, r, n, 0);
	return guarded ? ret - 8 : ret;
}

static ssize_t by_vm_write(size_t len)
{
	return by_vm(len, true, false);
}

static ssize_t by_vm_read(size_t len)
{
	return by_vm(len, false, false);
}

static ssize_t by_guarded_write(size_t len)
{
	return by_vm(len, true, true);
}

static ssize_t by_guarded_read(size_t len)
{
	return by_vm(len, false, true);
}

static const struct {
	const char *name;
	ssize_t (*copy)(size_t len);
} ways[] = {
	{ "pwrite", by_file_write },	     { "vm_writev", by_vm_write },
	{ "vm_writev+8", by_guarded_write }, { "pread", by_file_read },
	{ "vm_readv", by_vm_read },	     { "vm_readv+8", by_guarded_read },
};

static double measure(ssize_t (*copy)(size_t len), size_t len)
{
	double best = 0;

	for (int block = 0; block < BLOCKS; block++) {
		double begin = now_ns(), took;

		for (int i = 0; i < ROUNDS; i++) {
			if (copy(len) == (ssize_t)len)
				continue;
			perror("bare_copy");
			exit(1);
		}
		took = (now_ns() - begin) / ROUNDS;
		if (!best || took < best)
			best = took;
	}
	return best;
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(ways) / sizeof(ways[0]);
	char path[32];

	here = mmap(NULL, MOST, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	there = mmap(NULL, MOST, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guard = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (here == MAP_FAILED || there == MAP_FAILED || guard == MAP_FAILED)
		return 1;
	memset(here, 1, MOST);
	peer = fork();
	if (peer < 0)
		return 1;
	if (!peer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (argc > 2)
			pin(atoi(argv[2]));
		memset(there, 2, MOST);
		*guard = 1;
		for (;;)
			pause();
	}
	if (argc > 2)
		pin(atoi(argv[1]));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)peer);
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0) {
		perror(path);
		kill(peer, SIGKILL);
		return 1;
	}
	printf("%6s", "bytes");
	for (size_t i = 0; i < count; i++)
		printf("%13s", ways[i].name);
	printf("  ns\n");
	for (size_t len = 8; len <= MOST; len *= len < 4096 ? 8 : 2) {
		printf("%6zu", len);
		for (size_t i = 0; i < count; i++)
			printf("%13.0f", measure(ways[i].copy, len));
		printf("\n");
	}
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	return 0;
}
