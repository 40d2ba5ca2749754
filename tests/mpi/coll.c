/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives, blocking and nonblocking, from 0 bytes to a megabyte; every
 * element of every result is checked. The first, a middle and the last rank are
 * root in turn.
 */
#include "check.h"

static int me, n;

static const int counts[] = { 0, 1, 3, 33, 1000, 20000 };
enum { COUNTS = sizeof(counts) / sizeof(counts[0]), MOST = 20000 };

static int *a, *b; /* room for MOST ints of every rank */

static int value(int rank, int i)
{
	return rank * 100003 + i * 7 + 1;
}

static void fill(int *to, int rank, int count)
{
	int i;

	for (i = 0; i < count; i++)
		to[i] = value(rank, i);
}

static void expect(const int *got, int rank, int count)
{
	int i;

	for (i = 0; i < count; i++)
		CHECK_EQ(got[i], value(rank, i));
}

/* Sum of value() over the ranks below @ranks. */
static int sum(int ranks, int i)
{
	return ranks * (ranks - 1) / 2 * 100003 + ranks * (i * 7 + 1);
}

static void finish(MPI_Request *req, bool later)
{
	if (later)
		MPI_Wait(req, MPI_STATUS_IGNORE);
}

static void test_bcast(int count, int root, bool later)
{
	MPI_Request req;

	memset(b, 0, sizeof(int) * (size_t)count);
	if (me == root)
		fill(b, root, count);
	if (later)
		MPI_Ibcast(b, count, MPI_INT, root, MPI_COMM_WORLD, &req);
	else
		MPI_Bcast(b, count, MPI_INT, root, MPI_COMM_WORLD);
	finish(&req, later);
	expect(b, root, count);
}

static void test_reduce(int count, int root, bool later)
{
	MPI_Request req;
	int i;

	fill(a, me, count);
	memset(b, 0, sizeof(int) * (size_t)count);
	if (later)
		MPI_Ireduce(a, b, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD,
			    &req);
	else
		MPI_Reduce(a, b, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
	finish(&req, later);
	for (i = 0; me == root && i < count; i++)
		CHECK_EQ(b[i], sum(n, i));
	if (later)
		MPI_Iallreduce(a, b, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD,
			       &req);
	else
		MPI_Allreduce(a, b, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	finish(&req, later);
	expect(b, n - 1, count);
	/* In place, and a scan whose result differs between ranks. */
	MPI_Allreduce(MPI_IN_PLACE, a, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < count; i++)
		CHECK_EQ(a[i], sum(n, i));
}

static void test_scan(int count, bool later)
{
	MPI_Request req;
	int i;

	fill(a, me, count);
	if (later)
		MPI_Iscan(a, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &req);
	else
		MPI_Scan(a, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	finish(&req, later);
	for (i = 0; i < count; i++)
		CHECK_EQ(b[i], sum(me + 1, i));
	if (later)
		MPI_Iexscan(a, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
			    &req);
	else
		MPI_Exscan(a, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	finish(&req, later);
	for (i = 0; me && i < count; i++)
		CHECK_EQ(b[i], sum(me, i));
}

static void test_reduce_scatter(int each, bool later)
{
	int lengths[64], total = 0, before = 0, i;
	MPI_Request req;

	/* Blocks of different lengths, one of them empty. */
	for (i = 0; i < n; i++) {
		lengths[i] = i % 3 == 1 ? 0 : each / n;
		before += i < me ? lengths[i] : 0;
		total += lengths[i];
	}
	fill(a, me, total);
	if (later)
		MPI_Ireduce_scatter(a, b, lengths, MPI_INT, MPI_SUM,
				    MPI_COMM_WORLD, &req);
	else
		MPI_Reduce_scatter(a, b, lengths, MPI_INT, MPI_SUM,
				   MPI_COMM_WORLD);
	finish(&req, later);
	for (i = 0; i < lengths[me]; i++)
		CHECK_EQ(b[i], sum(n, before + i));
	fill(a, me, each / n * n);
	MPI_Reduce_scatter_block(a, b, each / n, MPI_INT, MPI_SUM,
				 MPI_COMM_WORLD);
	for (i = 0; i < each / n; i++)
		CHECK_EQ(b[i], sum(n, me * (each / n) + i));
}

static void test_gather(int count, int root, bool later)
{
	MPI_Request req;
	int r;

	fill(a, me, count);
	memset(b, 0, sizeof(int) * (size_t)count * (size_t)n);
	if (later)
		MPI_Igather(a, count, MPI_INT, b, count, MPI_INT, root,
			    MPI_COMM_WORLD, &req);
	else
		MPI_Gather(a, count, MPI_INT, b, count, MPI_INT, root,
			   MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; me == root && r < n; r++)
		expect(b + r * count, r, count);
	if (later)
		MPI_Iallgather(a, count, MPI_INT, b, count, MPI_INT,
			       MPI_COMM_WORLD, &req);
	else
		MPI_Allgather(a, count, MPI_INT, b, count, MPI_INT,
			      MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; r < n; r++)
		expect(b + r * count, r, count);
	for (r = 0; r < n; r++)
		fill(b + r * count, r + root, count);
	if (later)
		MPI_Iscatter(b, count, MPI_INT, a, count, MPI_INT, root,
			     MPI_COMM_WORLD, &req);
	else
		MPI_Scatter(b, count, MPI_INT, a, count, MPI_INT, root,
			    MPI_COMM_WORLD);
	finish(&req, later);
	expect(a, me + root, count);
}

/* Rank r contributes r + 1 parts; there are gaps between the parts. */
static void test_vectors(int count, int root, bool later)
{
	int part = count / n, lengths[64], places[64], r, at = 0;
	MPI_Request req;

	for (r = 0; r < n; r++) {
		lengths[r] = part ? part / (r + 1) + 1 : r % 2;
		places[r] = at;
		at += lengths[r] + 1;
	}
	fill(a, me, lengths[me]);
	memset(b, 0xff, sizeof(int) * (size_t)at);
	if (later)
		MPI_Igatherv(a, lengths[me], MPI_INT, b, lengths, places,
			     MPI_INT, root, MPI_COMM_WORLD, &req);
	else
		MPI_Gatherv(a, lengths[me], MPI_INT, b, lengths, places,
			    MPI_INT, root, MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; me == root && r < n; r++) {
		expect(b + places[r], r, lengths[r]);
		CHECK_EQ(b[places[r] + lengths[r]], -1);
	}
	if (later)
		MPI_Iallgatherv(a, lengths[me], MPI_INT, b, lengths, places,
				MPI_INT, MPI_COMM_WORLD, &req);
	else
		MPI_Allgatherv(a, lengths[me], MPI_INT, b, lengths, places,
			       MPI_INT, MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; r < n; r++)
		expect(b + places[r], r, lengths[r]);
	memset(a, 0, sizeof(int) * (size_t)lengths[me]);
	if (later)
		MPI_Iscatterv(b, lengths, places, MPI_INT, a, lengths[me],
			      MPI_INT, root, MPI_COMM_WORLD, &req);
	else
		MPI_Scatterv(b, lengths, places, MPI_INT, a, lengths[me],
			     MPI_INT, root, MPI_COMM_WORLD);
	finish(&req, later);
	expect(a, me, lengths[me]);
}

static void test_alltoall(int count, bool later)
{
	int out_n[64], in_n[64], out_at[64], in_at[64], r, out = 0, in = 0;
	int part = count / n + 1;
	MPI_Request req;

	for (r = 0; r < n; r++)
		fill(a + r * part, me * 64 + r, part);
	if (later)
		MPI_Ialltoall(a, part, MPI_INT, b, part, MPI_INT,
			      MPI_COMM_WORLD, &req);
	else
		MPI_Alltoall(a, part, MPI_INT, b, part, MPI_INT,
			     MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; r < n; r++)
		expect(b + r * part, r * 64 + me, part);
	/* From r to s: more the further apart they are; nothing to the rank
	 * itself. */
	for (r = 0; r < n; r++) {
		out_n[r] = abs(r - me) * part / n;
		in_n[r] = out_n[r];
		out_at[r] = out;
		in_at[r] = in;
		fill(a + out, me * 64 + r, out_n[r]);
		out += out_n[r];
		in += in_n[r];
	}
	if (later)
		MPI_Ialltoallv(a, out_n, out_at, MPI_INT, b, in_n, in_at,
			       MPI_INT, MPI_COMM_WORLD, &req);
	else
		MPI_Alltoallv(a, out_n, out_at, MPI_INT, b, in_n, in_at,
			      MPI_INT, MPI_COMM_WORLD);
	finish(&req, later);
	for (r = 0; r < n; r++)
		expect(b + in_at[r], r * 64 + me, in_n[r]);
}

/* Other operations and types; a user's operation that does not commute. */
static void first_of(void *in, void *inout, int *len, MPI_Datatype *type)
{
	int i;

	(void)type;
	for (i = 0; i < *len; i++)
		((int *)inout)[i] =
			((int *)in)[i] * 10 + ((int *)inout)[i] % 10;
}

static void test_operations(void)
{
	struct {
		double value;
		int rank;
	} mine = { (me * 5) % 7, me }, best;
	double real = 1.0 / (1 << me), total;
	unsigned long long bits = 1ull << me, all;
	int digit = me + 1, chain;
	MPI_Op op;

	MPI_Allreduce(&real, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	CHECK(total == 2.0 - 1.0 / (1 << (n - 1)));
	MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_BOR,
		      MPI_COMM_WORLD);
	CHECK(all == (1ull << n) - 1);
	MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC,
		      MPI_COMM_WORLD);
	CHECK_EQ((best.rank * 5) % 7, (int)best.value);
	CHECK(best.value >= mine.value);
	MPI_Op_create(first_of, 0, &op);
	MPI_Reduce(&digit, &chain, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
	if (!me && n == 2)
		CHECK_EQ(chain, 12);
	MPI_Op_free(&op);
}

/* Several collectives at the same time, and messages between them. */
static void test_overlap(void)
{
	enum { AT_ONCE = 12 };
	int ins[AT_ONCE], outs[AT_ONCE], i, right = (me + 1) % n, token;
	MPI_Request req[AT_ONCE + 1];

	for (i = 0; i < AT_ONCE; i++) {
		ins[i] = me + i;
		MPI_Iallreduce(&ins[i], &outs[i], 1, MPI_INT, MPI_SUM,
			       MPI_COMM_WORLD, &req[i]);
	}
	MPI_Ibarrier(MPI_COMM_WORLD, &req[AT_ONCE]);
	MPI_Sendrecv(&me, 1, MPI_INT, right, 1, &token, 1, MPI_INT,
		     (me + n - 1) % n, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK_EQ(token, (me + n - 1) % n);
	MPI_Waitall(AT_ONCE + 1, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < AT_ONCE; i++)
		CHECK_EQ(outs[i], n * (n - 1) / 2 + n * i);
}

/* No rank leaves a barrier before all ranks have entered it. */
static void test_barrier(void)
{
	int i, r, seen;

	for (i = 0; i < 100; i++) {
		if (!me) {
			for (r = 1; r < n; r++)
				MPI_Recv(&seen, 1, MPI_INT, r, 8,
					 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Ssend(&i, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (!me && n > 1) {
			MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &seen,
				   MPI_STATUS_IGNORE);
			CHECK(!seen);
		}
	}
}

int main(int argc, char **argv)
{
	int c, k, root, later;

	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	me = weft_mpi_rank;
	n = weft_mpi_size;
	CHECK(n <= 64);
	a = weft_mpi_alloc(sizeof(int) * (MOST + 64) * (size_t)n);
	b = weft_mpi_alloc(sizeof(int) * (MOST + 64) * (size_t)n);
	weft_mpi_step("barrier");
	test_barrier();
	for (later = 0; later < 2; later++) {
		weft_mpi_step(later ? "nonblocking" : "blocking");
		for (c = 0; c < COUNTS; c++) {
			for (k = 0; k < 3; k++) {
				root = k * (n - 1) / 2;
				test_bcast(counts[c], root, later);
				test_reduce(counts[c], root, later);
				test_gather(counts[c], root, later);
				test_vectors(counts[c], root, later);
			}
			test_scan(counts[c], later);
			test_reduce_scatter(counts[c], later);
			test_alltoall(counts[c], later);
		}
	}
	weft_mpi_step("operations");
	test_operations();
	weft_mpi_step("overlap");
	test_overlap();
	free(a);
	free(b);
	return weft_mpi_end();
}
