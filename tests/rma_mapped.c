/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers on the same node map memory in a memfd that cannot shrink: writes,
 * reads and atomics need no call of the target, and atomics of both processes
 * on one word are atomic with respect to each other. Deregistering takes effect
 * at once.
 */
#include "amo_util.h"

#include <fcntl.h>
#include <sys/mman.h>

#define LEN ((size_t)1 << 20)
#define WORD 4096 /* the word that both add to */
#define ADDS 20000

static const size_t sizes[] = { 1, 8, 100, 4096, 70000, LEN - 8192 };

static uint64_t add(struct weft_test *t, fi_addr_t peer,
		    const struct rma_target *target, uint64_t more)
{
	struct fi_context context;
	uint64_t before = 0;

	POST(fi_fetch_atomic(t->ep, &more, 1, NULL, &before, NULL, peer,
			     target->base + WORD, target->key, FI_UINT64,
			     FI_SUM, &context));
	rma_wait(t, &context, FI_ATOMIC | FI_READ);
	return before;
}

static void initiator(struct weft_test *t, fi_addr_t peer,
		      struct weft_test_line *line, void *arg)
{
	struct rma_target target = rma_learn(line);
	uint8_t *buf = msg_alloc(LEN);
	uint64_t word = 0;

	(void)arg;
	/* From now on the target makes no call of libfabric. If the target had
	 * to run an atomic, it would never complete. */
	rma_get(t, peer, &target, 0, &word, 8);
	weft_test_sync(line);
	CHECK_EQ(add(t, peer, &target, 5), 0);
	CHECK_EQ(add(t, peer, &target, 7), 5);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		rma_check_size(t, peer, &target, buf, sizes[i], i);
	weft_test_put(line, "a", 1);
	for (int i = 0; i < ADDS; i++)
		add(t, peer, &target, 1);
	/* The target checks the memory, withdraws the key and unmaps the
	 * memory, and waits again. */
	weft_test_put(line, "l", 1);
	CHECK(weft_test_get(line, buf, 1));
	rma_check_withdrawn(t, peer, &target);
	weft_test_put(line, "e", 1);
	weft_test_sync(line);
	free(buf);
}

static uint8_t *map_memfd(int *fd)
{
	void *base;

	*fd = memfd_create("rma-mapped", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(*fd >= 0);
	CHECK_OK(ftruncate(*fd, LEN));
	CHECK_OK(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK));
	base = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(base != MAP_FAILED);
	return base;
}

static void target(struct weft_test *t, fi_addr_t peer,
		   struct weft_test_line *line, void *arg)
{
	size_t last = sizes[COUNT_OF(sizes) - 1];
	struct fid_mr *mr;
	uint8_t *region, mark;
	uint64_t *word;
	int fd;

	(void)peer;
	(void)arg;
	region = map_memfd(&fd);
	word = (uint64_t *)(region + WORD);
	rma_offer(t, line, region, LEN, &mr);
	close(fd);	      /* only registering needs it */
	weft_test_sync(line); /* lets the peer connect */
	CHECK(weft_test_get(line, &mark, 1));
	CHECK_EQ(mark, 'a');
	for (int i = 0; i < ADDS; i++)
		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
	CHECK(weft_test_get(line, &mark, 1));
	CHECK_EQ(mark, 'l');
	CHECK_EQ(*word, 12 + 2 * ADDS);
	CHECK(weft_test_holds(region + LEN - last, last, COUNT_OF(sizes) - 1));
	CHECK_OK(fi_close(&mr->fid));
	CHECK_OK(munmap(region, LEN));
	weft_test_put(line, "c", 1);
	CHECK(weft_test_get(line, &mark, 1));
	weft_test_sync(line);
}

int main(void)
{
	struct weft_test_opts opts = { .caps = AMO_CAPS };

	weft_test_begin(30);
	rma_need_reach();
	weft_test_pair(&opts, target, initiator, NULL);
	opts.threading = FI_THREAD_SAFE;
	opts.mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	weft_test_pair(&opts, target, initiator, NULL);
	return 0;
}
