/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registering memory for peers: keys chosen by the application and by the
 * provider, offsets and virtual addresses, several pieces as one region, all
 * memory as one region, memory that is allocated later, many regions that come
 * and go.
 */
#include "rma_util.h"

#include <sys/mman.h>

#define LEN 20000
#define MANY 300
#define BIG_KEY 0xfedcba9876543210ull

/* Both ends in one thread; a region of @b as @a sees it. */
struct world {
	struct weft_test a;
	struct weft_test b;
	fi_addr_t to;
	int mr_mode;
};

static void world_open(struct world *w, int mr_mode)
{
	struct weft_test_opts opts = { .caps = RMA_CAPS, .mr_mode = mr_mode };

	weft_test_open(&w->a, &opts);
	weft_test_open(&w->b, &opts);
	w->to = weft_test_know(&w->a, &w->b);
	weft_test_know(&w->b, &w->a);
	w->mr_mode = w->b.info->domain_attr->mr_mode;
	/* fi_getinfo() may return only modes that were offered. */
	CHECK(!(w->mr_mode & ~mr_mode));
}

static void world_close(struct world *w)
{
	weft_test_close(&w->a);
	weft_test_close(&w->b);
}

static bool prov_keys(const struct world *w)
{
	return w->mr_mode & FI_MR_PROV_KEY || w->mr_mode == FI_MR_BASIC;
}

/* Writes and reads the region from the peer. */
static void check_reachable(struct world *w, const struct rma_target *target,
			    const uint8_t *memory, uint64_t seed)
{
	size_t len = target->len;
	uint8_t *buf = msg_alloc(len);

	weft_test_fill(buf, len, seed);
	rma_put(&w->a, w->to, target, 0, buf, len);
	CHECK(weft_test_holds(memory, len, seed));
	memset(buf, 0, len);
	rma_get(&w->a, w->to, target, 0, buf, len);
	CHECK(weft_test_holds(buf, len, seed));
	free(buf);
}

static void check_refused(struct world *w, const struct rma_target *target)
{
	uint8_t buf[8] = { 0 };
	struct fi_context context;

	CHECK_OK(fi_write(w->a.ep, buf, 8, NULL, w->to, target->base,
			  target->key, &context));
	CHECK_EQ(rma_wait_refused(&w->a, &context), FI_EKEYREJECTED);
}

/* -- keys ------------------------------------------------------------------ */

static void test_user_keys(struct world *w)
{
	static const uint64_t keys[] = { 0, 1, BIG_KEY, ~1ull };
	uint8_t *memory = msg_alloc(COUNT_OF(keys) * LEN);
	struct rma_target targets[COUNT_OF(keys)];
	struct fid_mr *mr[COUNT_OF(keys)], *other;

	CHECK(w->b.info->domain_attr->mr_key_size >= 8);
	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		targets[i] = rma_expose(&w->b, memory + i * LEN, LEN,
					RMA_ACCESS, keys[i], &mr[i]);
		CHECK_EQ(targets[i].key, keys[i]);
		CHECK_EQ(fi_mr_reg(w->b.domain, memory, 1, FI_REMOTE_READ, 0,
				   keys[i], 0, &other, NULL),
			 -FI_ENOKEY);
	}
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		check_reachable(w, &targets[i], memory + i * LEN, i);
	/* A key can be used again after its region is closed. */
	CHECK_OK(fi_close(&mr[2]->fid));
	check_refused(w, &targets[2]);
	targets[2] =
		rma_expose(&w->b, memory, 100, RMA_ACCESS, BIG_KEY, &mr[2]);
	check_reachable(w, &targets[2], memory, 9);
	/* Each domain has its own keys: the same key in the other domain. */
	rma_expose(&w->a, memory, 100, RMA_ACCESS, BIG_KEY, &other);
	CHECK_OK(fi_close(&other->fid));
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		CHECK_OK(fi_close(&mr[i]->fid));
	free(memory);
}

static void test_provider_keys(struct world *w)
{
	uint8_t *memory = msg_alloc(4 * LEN);
	struct rma_target targets[4];
	struct fid_mr *mr[4];

	for (size_t i = 0; i < 4; i++) {
		/* The requested key does not count. */
		targets[i] = rma_expose(&w->b, memory + i * LEN, LEN,
					RMA_ACCESS, 7, &mr[i]);
		CHECK(targets[i].key != FI_KEY_NOTAVAIL);
		for (size_t k = 0; k < i; k++)
			CHECK(targets[k].key != targets[i].key);
	}
	for (size_t i = 0; i < 4; i++)
		check_reachable(w, &targets[i], memory + i * LEN, i);
	CHECK_OK(fi_close(&mr[1]->fid));
	check_refused(w, &targets[1]);
	check_reachable(w, &targets[0], memory, 5);
	for (size_t i = 0; i < 4; i++)
		if (i != 1)
			CHECK_OK(fi_close(&mr[i]->fid));
	free(memory);
}

/* -- shapes ---------------------------------------------------------------- */

/* Pieces that are far apart. With offsets they follow one another; with virtual
 * addresses each is at its own address. */
static void test_pieces(struct world *w, bool by_attr)
{
	uint8_t *memory = msg_alloc(3 * LEN), *buf = msg_alloc(LEN);
	struct iovec iov[2] = { { memory + 2 * LEN, 1000 }, { memory, 3000 } };
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = 2,
		.access = RMA_ACCESS,
		.requested_key = 12,
	};
	struct rma_target first, second;
	struct fid_mr *mr;

	CHECK(w->b.info->domain_attr->mr_iov_limit >= 2);
	if (by_attr)
		CHECK_OK(fi_mr_regattr(w->b.domain, &attr, 0, &mr));
	else
		CHECK_OK(fi_mr_regv(w->b.domain, iov, 2, RMA_ACCESS, 0, 12, 0,
				    &mr, NULL));
	first = (struct rma_target){ rma_base(&w->b, iov[0].iov_base),
				     fi_mr_key(mr), 1000 };
	second = (struct rma_target){ rma_base(&w->b, iov[1].iov_base),
				      fi_mr_key(mr), 3000 };
	if (!second.base)
		second.base = 1000;
	check_reachable(w, &first, iov[0].iov_base, 1);
	check_reachable(w, &second, iov[1].iov_base, 2);
	CHECK(weft_test_holds(iov[0].iov_base, 1000, 1));
	if (!first.base) {
		/* Across the boundary of two pieces. */
		first.len = 4000;
		rma_get(&w->a, w->to, &first, 0, buf, 4000);
		CHECK(weft_test_holds(buf, 1000, 1));
		CHECK(weft_test_holds(buf + 1000, 3000, 2));
	}
	/* The memory between them is not part of the region. */
	CHECK_EQ(memory[3000], 0xee);
	CHECK_EQ(memory[2 * LEN - 1], 0xee);
	CHECK_EQ(memory[2 * LEN + 1000], 0xee);
	CHECK_OK(fi_close(&mr->fid));
	free(memory);
	free(buf);
}

/* Every address of the process: the offset is the address, in both modes. */
static void test_all_memory(struct world *w)
{
	uint8_t *memory = msg_alloc(LEN);
	struct rma_target target = { .len = LEN };
	struct fid_mr *mr;

	CHECK_OK(fi_mr_reg(w->b.domain, NULL, SIZE_MAX, RMA_ACCESS, 0, 3, 0,
			   &mr, NULL));
	target.key = fi_mr_key(mr);
	target.base = (uint64_t)(uintptr_t)memory;
	check_reachable(w, &target, memory, 3);
	CHECK_OK(fi_close(&mr->fid));
	free(memory);
}

/* Without FI_MR_ALLOCATED a range may be registered before it has memory. Until
 * then an access fails and does no harm. */
static void test_later(struct world *w)
{
	uint8_t *memory =
		mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rma_target target;
	struct fid_mr *mr;

	CHECK(memory != MAP_FAILED);
	target = rma_expose(&w->b, memory, LEN, RMA_ACCESS, 8, &mr);
	CHECK_SYS(mprotect(memory, LEN, PROT_READ | PROT_WRITE));
	check_reachable(w, &target, memory, 4);
	CHECK_OK(fi_close(&mr->fid));
	munmap(memory, LEN);
}

/* A region may cover read-only memory: peers read it. */
static void test_constants(struct world *w)
{
	static const uint8_t constants[64] = { 1, 2, 3, 4 };
	uint8_t buf[64] = { 0 };
	struct rma_target target;
	struct fid_mr *mr;

	target = rma_expose(&w->b, (void *)(uintptr_t)constants, 64,
			    FI_REMOTE_READ, 8, &mr);
	rma_get(&w->a, w->to, &target, 0, buf, 64);
	CHECK(!memcmp(buf, constants, 64));
	CHECK_OK(fi_close(&mr->fid));
}

static void test_many(struct world *w)
{
	static struct rma_target targets[MANY];
	static struct fid_mr *mr[MANY];
	uint64_t *words = msg_alloc(MANY * sizeof(*words)), word;

	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < MANY; i++) {
			words[i] = i << round;
			targets[i] = rma_expose(&w->b, &words[i], 8, RMA_ACCESS,
						100 + i * 977, &mr[i]);
		}
		for (uint64_t i = 0; i < MANY; i++) {
			rma_get(&w->a, w->to, &targets[i], 0, &word, 8);
			CHECK_EQ(word, i << round);
		}
		/* Close every other one first. */
		for (uint64_t i = 0; i < MANY; i += 2)
			CHECK_OK(fi_close(&mr[i]->fid));
		check_refused(w, &targets[0]);
		rma_get(&w->a, w->to, &targets[1], 0, &word, 8);
		for (uint64_t i = 1; i < MANY; i += 2)
			CHECK_OK(fi_close(&mr[i]->fid));
		check_refused(w, &targets[1]);
	}
	free(words);
}

/* The same memory in several regions, each with its own access rights. */
static void test_overlap(struct world *w)
{
	uint64_t words[2] = { 1, 2 }, word = 3;
	struct rma_target whole, part;
	struct fid_mr *mr[2];
	struct fi_context context;

	whole = rma_expose(&w->b, words, 16, FI_REMOTE_READ, 1, &mr[0]);
	part = rma_expose(&w->b, &words[1], 8, FI_REMOTE_WRITE, 2, &mr[1]);
	rma_put(&w->a, w->to, &part, 0, &word, 8);
	rma_get(&w->a, w->to, &whole, 8, &word, 8);
	CHECK_EQ(word, 3);
	CHECK_OK(fi_write(w->a.ep, &word, 8, NULL, w->to, whole.base, whole.key,
			  &context));
	rma_wait_refused(&w->a, &context);
	CHECK_EQ(words[0], 1);
	for (int i = 0; i < 2; i++)
		CHECK_OK(fi_close(&mr[i]->fid));
}

static void run(int mr_mode)
{
	struct world w;

	world_open(&w, mr_mode);
	if (prov_keys(&w))
		test_provider_keys(&w);
	else
		test_user_keys(&w);
	test_pieces(&w, false);
	test_pieces(&w, true);
	test_all_memory(&w);
	if (!(w.mr_mode & FI_MR_ALLOCATED) && w.mr_mode != FI_MR_BASIC)
		test_later(&w);
	test_constants(&w);
	test_many(&w);
	test_overlap(&w);
	world_close(&w);
}

int main(void)
{
	weft_test_begin(60);
	run(0);
	run(FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED);
	run(FI_MR_BASIC);
	return 0;
}
