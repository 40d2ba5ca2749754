/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations: put, get, accumulate, fetch-and-op, compare-and-swap
 * with every kind of synchronization, on windows over the application's own
 * memory, allocated and attached ones. Every rank accesses every other, and all
 * ranks access one.
 */
#include "check.h"

static int me, n;
static bool apart; /* each rank is on a node of its own */

enum { WORDS = 8192 };

/* Returns the value that rank @from writes as word @i into the memory of rank
 * @to. */
static int64_t word(int from, int to, int i, int round)
{
	return ((int64_t)from << 40) + ((int64_t)to << 32) + i * 16 + round;
}

struct window {
	MPI_Win win;
	int64_t *base;
	bool own; /* the memory is ours to free */
};

/* WORDS words for each rank. */
static struct window open_window(int flavor)
{
	MPI_Aint bytes = (MPI_Aint)sizeof(int64_t) * WORDS * n;
	struct window w = { 0 };

	if (flavor == MPI_WIN_FLAVOR_ALLOCATE) {
		MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL,
				 MPI_COMM_WORLD, &w.base, &w.win);
	} else {
		w.base = weft_mpi_alloc((size_t)bytes);
		w.own = true;
		MPI_Win_create(w.base, bytes, sizeof(int64_t), MPI_INFO_NULL,
			       MPI_COMM_WORLD, &w.win);
	}
	memset(w.base, 0, (size_t)bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	return w;
}

static void close_window(struct window *w)
{
	MPI_Win_free(&w->win);
	if (w->own)
		free(w->base);
}

static const int counts[] = { 1, 2, 7, 64, 513, 1500, WORDS };
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static void fill(int64_t *out, int to, int count, int round)
{
	int i;

	for (i = 0; i < count; i++)
		out[i] = word(me, to, i, round);
}

static void expect(const int64_t *in, int from, int to, int count, int round)
{
	int i;

	for (i = 0; i < count; i++)
		CHECK_EQ(in[i], word(from, to, i, round));
}

/* Every rank puts into every window, then gets the data back. */
static void test_fence(struct window *w)
{
	int64_t *out = weft_mpi_alloc(sizeof(int64_t) * WORDS * (size_t)n);
	int64_t *in = weft_mpi_alloc(sizeof(int64_t) * WORDS * (size_t)n);
	int c, r, count;

	MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
	for (c = 0; c < COUNTS; c++) {
		count = counts[c];
		for (r = 0; r < n; r++) {
			fill(out + r * WORDS, r, count, c);
			MPI_Put(out + r * WORDS, count, MPI_INT64_T, r,
				(MPI_Aint)me * WORDS, count, MPI_INT64_T,
				w->win);
		}
		MPI_Win_fence(0, w->win);
		for (r = 0; r < n; r++)
			expect(w->base + r * WORDS, r, me, count, c);
		/* Rank r + 1 wrote these words to r. */
		for (r = 0; r < n; r++)
			MPI_Get(in + r * WORDS, count, MPI_INT64_T, r,
				(MPI_Aint)((r + 1) % n) * WORDS, count,
				MPI_INT64_T, w->win);
		MPI_Win_fence(0, w->win);
		for (r = 0; r < n; r++)
			expect(in + r * WORDS, (r + 1) % n, r, count, c);
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
	free(out);
	free(in);
}

/* A ring: each rank exposes its window to its left neighbour and writes to its
 * right one. */
static void test_pscw(struct window *w)
{
	int right = (me + 1) % n, left = (me + n - 1) % n, round, flag;
	MPI_Group world, to, from;
	int64_t out[64];

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &right, &to);
	MPI_Group_incl(world, 1, &left, &from);
	for (round = 0; round < 20; round++) {
		MPI_Win_post(from, 0, w->win);
		MPI_Win_start(to, 0, w->win);
		fill(out, right, 64, round % 16);
		MPI_Put(out, 64, MPI_INT64_T, right, (MPI_Aint)me * WORDS, 64,
			MPI_INT64_T, w->win);
		MPI_Win_complete(w->win);
		if (round % 2) {
			MPI_Win_wait(w->win);
		} else {
			do
				MPI_Win_test(w->win, &flag);
			while (!flag);
		}
		expect(w->base + left * WORDS, left, me, 64, round % 16);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Passive target: the owner makes no call, and sees the data after a
 * barrier. */
static void test_lock(struct window *w)
{
	int64_t *out = weft_mpi_alloc(sizeof(int64_t) * WORDS);
	int64_t *in = weft_mpi_alloc(sizeof(int64_t) * WORDS);
	int k, r, c, count;

	for (c = 0; c < COUNTS; c++) {
		count = counts[c];
		for (k = 0; k < n; k++) {
			r = (me + k) % n;
			fill(out, r, count, c + 8);
			MPI_Win_lock(c % 2 ? MPI_LOCK_SHARED :
					     MPI_LOCK_EXCLUSIVE,
				     r, 0, w->win);
			MPI_Put(out, count, MPI_INT64_T, r,
				(MPI_Aint)me * WORDS, count, MPI_INT64_T,
				w->win);
			MPI_Win_flush(r, w->win);
			MPI_Get(in, count, MPI_INT64_T, r, (MPI_Aint)me * WORDS,
				count, MPI_INT64_T, w->win);
			MPI_Win_unlock(r, w->win);
			expect(in, me, r, count, c + 8);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, me, 0, w->win);
		for (r = 0; r < n; r++)
			expect(w->base + r * WORDS, r, me, count, c + 8);
		MPI_Win_unlock(me, w->win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	free(out);
	free(in);
}

/* Requests of their own; lock_all, flush_local, flush_all. */
static void test_requests(struct window *w)
{
	enum { AT_ONCE = 32, PIECE = 100 };
	int64_t out[AT_ONCE][PIECE], in[AT_ONCE][PIECE];
	int right = (me + 1) % n, i, k;
	MPI_Request req[AT_ONCE];

	MPI_Win_lock_all(0, w->win);
	for (i = 0; i < AT_ONCE; i++) {
		fill(out[i], right, PIECE, i % 16);
		MPI_Rput(out[i], PIECE, MPI_INT64_T, right,
			 (MPI_Aint)me * WORDS + i * PIECE, PIECE, MPI_INT64_T,
			 w->win, &req[i]);
	}
	MPI_Waitall(AT_ONCE, req, MPI_STATUSES_IGNORE);
	MPI_Win_flush_local_all(w->win);
	MPI_Win_flush_all(w->win);
	for (i = 0; i < AT_ONCE; i++)
		MPI_Rget(in[i], PIECE, MPI_INT64_T, right,
			 (MPI_Aint)me * WORDS + i * PIECE, PIECE, MPI_INT64_T,
			 w->win, &req[i]);
	MPI_Waitall(AT_ONCE, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < AT_ONCE; i++) {
		for (k = 0; k < PIECE; k++)
			CHECK_EQ(in[i][k], word(me, right, k, i % 16));
	}
	MPI_Win_unlock_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Every other word of the target, from contiguous bytes. */
static void test_types(struct window *w)
{
	int64_t out[100], in[100];
	int right = (me + 1) % n, i;
	MPI_Datatype gaps;

	MPI_Type_vector(100, 1, 2, MPI_INT64_T, &gaps);
	MPI_Type_commit(&gaps);
	memset(w->base, 0, sizeof(int64_t) * WORDS * (size_t)n);
	fill(out, right, 100, 3);
	MPI_Win_fence(0, w->win);
	MPI_Put(out, 100, MPI_INT64_T, right, (MPI_Aint)me * WORDS, 1, gaps,
		w->win);
	MPI_Win_fence(0, w->win);
	for (i = 0; i < 200; i++)
		CHECK_EQ(w->base[(me + n - 1) % n * WORDS + i],
			 i % 2 ? 0 : word((me + n - 1) % n, me, i / 2, 3));
	MPI_Get(in, 100, MPI_INT64_T, right, (MPI_Aint)me * WORDS, 1, gaps,
		w->win);
	MPI_Win_fence(0, w->win);
	expect(in, me, right, 100, 3);
	MPI_Type_free(&gaps);
}

/*
 * All ranks add to the same words of rank 0 at the same time: nothing is lost.
 * The maximum is computed over many elements only: for a few, Open MPI 4.1.4
 * requests an atomic from btl/ofi that it does not have, and aborts.
 */
static void test_accumulate(struct window *w)
{
	enum { ROUNDS = 40, MANY = 300 };
	int64_t one = me + 1, many[MANY], total = (int64_t)n * (n + 1) / 2, got;
	double real = 0.25;
	int i, k;

	for (i = 0; i < MANY; i++)
		many[i] = i * (me + 1);
	memset(w->base, 0, sizeof(int64_t) * WORDS * (size_t)n);
	MPI_Win_fence(0, w->win);
	for (k = 0; k < ROUNDS; k++) {
		MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
			       MPI_SUM, w->win);
		MPI_Accumulate(&real, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE,
			       MPI_SUM, w->win);
		MPI_Accumulate(many, MANY, MPI_INT64_T, 0, 1000, MANY,
			       MPI_INT64_T, MPI_MAX, w->win);
		MPI_Accumulate(many, MANY, MPI_INT64_T, 0, 8, MANY, MPI_INT64_T,
			       MPI_SUM, w->win);
	}
	MPI_Win_fence(0, w->win);
	if (!me) {
		CHECK_EQ(w->base[0], ROUNDS * total);
		CHECK(*(double *)&w->base[1] == 0.25 * ROUNDS * n);
		for (i = 0; i < MANY; i++) {
			CHECK_EQ(w->base[8 + i], ROUNDS * total * i);
			CHECK_EQ(w->base[1000 + i], n * i);
		}
	}
	MPI_Win_fence(0, w->win);
	got = -1;
	MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got, 1, MPI_INT64_T, 0, 0, 1,
			   MPI_INT64_T, MPI_NO_OP, w->win);
	MPI_Win_fence(0, w->win);
	CHECK_EQ(got, ROUNDS * total);
}

/* Tickets: each number is drawn once. 64 and 32 bits. */
static void test_fetch_and_op(struct window *w)
{
	enum { EACH = 50 };
	int64_t one = 1, mine[EACH], *all = NULL;
	int32_t small = 1, old;
	char *seen;
	int i;

	memset(w->base, 0, sizeof(int64_t) * WORDS * (size_t)n);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w->win);
	for (i = 0; i < EACH; i++) {
		MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, 0, 5, MPI_SUM,
				 w->win);
		MPI_Win_flush(0, w->win);
		MPI_Fetch_and_op(&small, &old, MPI_INT32_T, n - 1, 6, MPI_SUM,
				 w->win);
		MPI_Win_flush(n - 1, w->win);
		CHECK(i == 0 || mine[i] > mine[i - 1]);
	}
	MPI_Win_unlock_all(w->win);
	all = weft_mpi_alloc(sizeof(int64_t) * EACH * (size_t)n);
	seen = weft_mpi_alloc(EACH * (size_t)n);
	MPI_Gather(mine, EACH, MPI_INT64_T, all, EACH, MPI_INT64_T, 0,
		   MPI_COMM_WORLD);
	for (i = 0; !me && i < EACH * n; i++) {
		CHECK(all[i] >= 0 && all[i] < EACH * n);
		CHECK(!seen[all[i]]++);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == n - 1)
		CHECK_EQ(*(int32_t *)&w->base[6], EACH * n);
	free(all);
	free(seen);
	MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * A lock that the program implements, which guards a word that is read and
 * written. Open MPI 4.1.4 crashes when it swaps in memory that it could access
 * directly, with every transport (fixed in 4.1.5). Therefore the owner, and on
 * one node every rank, takes part only where this does not happen.
 */
static void test_compare_and_swap(struct window *w)
{
	enum { EACH = 10 };
	int64_t free_ = 0, mine = me + 1, old, value;
	int i, takers = apart ? n : n - 1;

	memset(w->base, 0, sizeof(int64_t) * WORDS * (size_t)n);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w->win);
	for (i = 0; (apart || me) && i < EACH; i++) {
		do {
			MPI_Compare_and_swap(&mine, &free_, &old, MPI_INT64_T,
					     0, 0, w->win);
			MPI_Win_flush(0, w->win);
		} while (old != free_);
		MPI_Get(&value, 1, MPI_INT64_T, 0, 100, 1, MPI_INT64_T, w->win);
		MPI_Win_flush(0, w->win);
		value++;
		MPI_Put(&value, 1, MPI_INT64_T, 0, 100, 1, MPI_INT64_T, w->win);
		MPI_Win_flush(0, w->win);
		MPI_Compare_and_swap(&free_, &mine, &old, MPI_INT64_T, 0, 0,
				     w->win);
		MPI_Win_flush(0, w->win);
		CHECK_EQ(old, mine);
	}
	MPI_Win_unlock_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!me)
		CHECK_EQ(w->base[100], EACH * takers);
	MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * Memory attached to a window that was created without any. On one node only:
 * otherwise Open MPI 4.1.4 takes its lock of the list of regions twice and
 * hangs.
 */
static void test_dynamic(void)
{
	int64_t *room = weft_mpi_alloc(sizeof(int64_t) * WORDS), out[32];
	int right = (me + 1) % n, left = (me + n - 1) % n;
	MPI_Aint *where = weft_mpi_alloc(sizeof(MPI_Aint) * (size_t)n);
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, room, sizeof(int64_t) * WORDS);
	MPI_Get_address(room, &where[me]);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_AINT, where, 1, MPI_AINT,
		      MPI_COMM_WORLD);
	fill(out, right, 32, 1);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
	MPI_Put(out, 32, MPI_INT64_T, right,
		where[right] + 40 * (MPI_Aint)sizeof(int64_t), 32, MPI_INT64_T,
		win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	expect(room + 40, left, me, 32, 1);
	CHECK_EQ(room[39], 0);
	CHECK_EQ(room[72], 0);
	MPI_Win_detach(win, room);
	MPI_Win_free(&win);
	free(where);
	free(room);
}

static void test_all(int flavor, const char *name)
{
	struct window w = open_window(flavor);

	weft_mpi_step(name);
	test_fence(&w);
	weft_mpi_step("post, start, complete, wait");
	test_pscw(&w);
	weft_mpi_step("lock");
	test_lock(&w);
	weft_mpi_step("requests");
	test_requests(&w);
	weft_mpi_step("types");
	test_types(&w);
	weft_mpi_step("accumulate");
	test_accumulate(&w);
	weft_mpi_step("fetch and op");
	test_fetch_and_op(&w);
	weft_mpi_step("compare and swap");
	if (apart || flavor == MPI_WIN_FLAVOR_CREATE)
		test_compare_and_swap(&w);
	close_window(&w);
}

int main(int argc, char **argv)
{
	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	me = weft_mpi_rank;
	n = weft_mpi_size;
	apart = argc > 1 && !strcmp(argv[1], "apart");
	test_all(MPI_WIN_FLAVOR_CREATE, "fence, own memory");
	test_all(MPI_WIN_FLAVOR_ALLOCATE, "fence, allocated memory");
	weft_mpi_step("dynamic");
	if (!apart)
		test_dynamic();
	return weft_mpi_end();
}
