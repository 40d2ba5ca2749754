/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of an endpoint: at rest at most 1 MiB, a connected pair at most
 * 256 KiB. The test counts what this process has allocated, touched or not
 * (mallinfo2: bytes in use and mapped by malloc), and the touched pages of
 * rings (Rss of every weft memfd in /proc/self/smaps, once even if it is mapped
 * several times). `weft bench memory` counts touched pages only. The memory of
 * a pair is what is added when two endpoints of this process, each of which
 * already has a peer, begin to exchange messages: both rings and the
 * bookkeeping of both sides. Memory that an endpoint allocates once, at its
 * first messages, counts as the endpoint's. Sockets belong to the kernel and
 * are not counted.
 *
 * survive_window.c tests growth over many messages.
 */
#include "common/fabric.h"

#include <malloc.h>

#define ENDPOINT_MAX ((size_t)1 << 20)
#define PAIR_MAX ((size_t)256 << 10)
#define PIECES_MAX 64

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The touched memory that endpoints share, each piece once. The table of
 * registrations has room for many entries and holds few. */
static size_t shared_bytes(const char *name)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long long seen[PIECES_MAX], inode;
	size_t bytes = 0, kib;
	bool counts = false;
	char line[512];
	int count = 0;

	CHECK(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%*x-%*x %*s %*s %*s %llu", &inode) == 1) {
			counts = strstr(line, name);
			for (int i = 0; i < count; i++)
				counts &= seen[i] != inode;
			CHECK(count < PIECES_MAX);
			if (counts)
				seen[count++] = inode;
		} else if (counts && sscanf(line, "Rss: %zu kB", &kib) == 1) {
			bytes += kib << 10;
		}
	}
	fclose(smaps);
	return bytes;
}

static size_t ring_bytes(void)
{
	return shared_bytes("memfd:weft-ring");
}

static size_t all_bytes(void)
{
	return heap_bytes() + shared_bytes("memfd:weft");
}

/* Messages of all kinds, both ways. */
static void talk(struct weft_test *a, struct weft_test *b)
{
	fi_addr_t to_b = weft_test_know(a, b);
	fi_addr_t to_a = weft_test_know(b, a);

	for (uint64_t i = 0; i < 100; i++) {
		weft_test_exchange(a, to_b, b, i * i, i);
		weft_test_exchange(b, to_a, a, i * i, i);
	}
	weft_test_exchange(a, to_b, b, 1000000, 1);
	weft_test_exchange(b, to_a, a, 1000000, 2);
}

int main(void)
{
	size_t before, at_rest, used, rings, pair;
	struct weft_test t[4];

	weft_test_begin(60);
	weft_test_open(&t[0], NULL); /* allocates what is never freed */
	weft_test_close(&t[0]);
	before = all_bytes();
	weft_test_open(&t[0], NULL);
	at_rest = all_bytes() - before;
	for (int i = 1; i < 4; i++)
		weft_test_open(&t[i], NULL);
	talk(&t[0], &t[1]);
	talk(&t[2], &t[3]);
	used = (all_bytes() - before) / 4; /* with half a pair each */
	rings = ring_bytes();
	before = all_bytes();
	talk(&t[0], &t[2]);
	pair = all_bytes() - before;
	rings = ring_bytes() - rings;
	printf("allocated: an endpoint with its queues %zu KiB at rest, %zu "
	       "KiB in use; a pair %zu KiB, of these touched rings %zu KiB\n",
	       at_rest >> 10, used >> 10, pair >> 10, rings >> 10);
	CHECK(at_rest <= ENDPOINT_MAX);
	CHECK(used <= ENDPOINT_MAX);
	CHECK(rings && pair >= rings && pair <= PAIR_MAX);
	for (int i = 0; i < 4; i++)
		weft_test_close(&t[i]);
	CHECK_EQ(ring_bytes(), 0);
	return 0;
}
