/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Communicators: duplicates keep messages apart, split ones have their own
 * ranks, inter-communicators connect two groups, topologies know neighbours,
 * hundreds are created and freed. With "spawn", further processes are started
 * and exchange messages.
 */
#include "check.h"

static int me, n;

/* The same source and tag in two communicators: no message arrives in the wrong
 * one. */
static void test_dup(void)
{
	MPI_Comm one, two;
	MPI_Request req[2];
	int x = 0, y = 0, from1 = me * 2, from2 = me * 2 + 1;
	int right = (me + 1) % n, left = (me + n - 1) % n;

	MPI_Comm_dup(MPI_COMM_WORLD, &one);
	MPI_Comm_idup(MPI_COMM_WORLD, &two, &req[0]);
	MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	MPI_Irecv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, two, &req[0]);
	MPI_Irecv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, one, &req[1]);
	MPI_Send(&from1, 1, MPI_INT, right, 4, one);
	MPI_Send(&from2, 1, MPI_INT, right, 4, two);
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	CHECK_EQ(x, left * 2);
	CHECK_EQ(y, left * 2 + 1);
	MPI_Comm_free(&one);
	MPI_Comm_free(&two);
}

static void test_split(void)
{
	int rank, size, total, odd = me % 2;
	MPI_Group world, some;
	MPI_Comm half, first;

	/* Ranks in reverse order. */
	MPI_Comm_split(MPI_COMM_WORLD, odd, n - me, &half);
	MPI_Comm_rank(half, &rank);
	MPI_Comm_size(half, &size);
	CHECK_EQ(size, n / 2);
	CHECK_EQ(rank, size - 1 - me / 2);
	MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, half);
	CHECK_EQ(total, size * (size - 1) + odd * size);
	MPI_Comm_free(&half);
	MPI_Comm_split(MPI_COMM_WORLD, me ? MPI_UNDEFINED : 1, 0, &half);
	CHECK((half == MPI_COMM_NULL) == (me != 0));
	if (half != MPI_COMM_NULL)
		MPI_Comm_free(&half);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 2, (const int[]){ 1, 0 }, &some);
	if (me < 2) {
		MPI_Comm_create_group(MPI_COMM_WORLD, some, 3, &first);
		MPI_Comm_rank(first, &rank);
		CHECK_EQ(rank, !me);
		MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, first);
		CHECK_EQ(total, 1);
		MPI_Comm_free(&first);
	}
	MPI_Group_free(&some);
	MPI_Group_free(&world);
}

/* Even and odd ranks, each a group, exchange messages between the groups. */
static void test_intercomm(void)
{
	int odd = me % 2, size, total, token = me, got, high, local;
	MPI_Comm half, inter, merged;
	MPI_Status status;

	MPI_Comm_split(MPI_COMM_WORLD, odd, me, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !odd, 12, &inter);
	MPI_Comm_remote_size(inter, &size);
	CHECK_EQ(size, n / 2);
	MPI_Comm_rank(inter, &local);
	MPI_Sendrecv(&token, 1, MPI_INT, local, 1, &got, 1, MPI_INT, local, 1,
		     inter, &status);
	CHECK_EQ(got, me ^ 1);
	CHECK_EQ(status.MPI_SOURCE, local);
	/* The sum of the other group. */
	MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, inter);
	CHECK_EQ(total, size * (size - 1) + !odd * size);
	MPI_Barrier(inter);
	got = -1;
	token = 4711;
	if (odd)
		MPI_Bcast(&got, 1, MPI_INT, 0, inter);
	else
		MPI_Bcast(&token, 1, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT,
			  inter);
	CHECK_EQ(odd ? got : token, 4711);
	MPI_Intercomm_merge(inter, odd, &merged);
	MPI_Comm_rank(merged, &high);
	CHECK_EQ(high, odd * (n / 2) + me / 2);
	MPI_Allreduce(&me, &total, 1, MPI_INT, MPI_SUM, merged);
	CHECK_EQ(total, n * (n - 1) / 2);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

static void test_topology(void)
{
	int dims[2] = { 0, 0 }, periods[2] = { 1, 1 }, left, right, got[4], i;
	MPI_Comm grid;
	int rank, up, down;

	MPI_Dims_create(n, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_shift(grid, 0, 1, &up, &down);
	MPI_Cart_shift(grid, 1, 1, &left, &right);
	MPI_Neighbor_allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, grid);
	CHECK_EQ(got[0], up);
	CHECK_EQ(got[1], down);
	CHECK_EQ(got[2], left);
	CHECK_EQ(got[3], right);
	for (i = 0; i < 50; i++)
		MPI_Sendrecv_replace(&rank, 1, MPI_INT, right, i, left, i, grid,
				     MPI_STATUS_IGNORE);
	for (i = 0; i < 50; i++)
		MPI_Sendrecv_replace(&rank, 1, MPI_INT, left, i, right, i, grid,
				     MPI_STATUS_IGNORE);
	MPI_Comm_rank(grid, &i);
	CHECK_EQ(rank, i);
	MPI_Comm_free(&grid);
}

/* Freed while a message is in flight, which still arrives. Many, one after
 * another. */
static void test_many(void)
{
	int i, k, total, right = (me + 1) % n, left = (me + n - 1) % n;
	MPI_Request req[2];
	MPI_Comm comms[24], held;

	for (i = 0; i < 40; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &held);
		k = -1;
		MPI_Irecv(&k, 1, MPI_INT, left, i, held, &req[0]);
		MPI_Isend(&me, 1, MPI_INT, right, i, held, &req[1]);
		MPI_Comm_free(&held);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		CHECK_EQ(k, left);
	}
	for (i = 0; i < 24; i++)
		MPI_Comm_dup(i ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
	for (i = 23; i >= 0; i--) {
		MPI_Allreduce(&i, &total, 1, MPI_INT, MPI_SUM, comms[i]);
		CHECK_EQ(total, n * i);
		MPI_Comm_free(&comms[i]);
	}
}

/* Children are new processes whose endpoints are new to all peers. */
static void test_spawn(const char *program)
{
	enum { CHILDREN = 2 };
	char *args[] = { "child", NULL };
	MPI_Comm inter, merged;
	int size, total, i, got;

	MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, 0,
		       MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
	MPI_Comm_remote_size(inter, &size);
	CHECK_EQ(size, CHILDREN);
	for (i = 0; !me && i < CHILDREN; i++) {
		MPI_Send(&i, 1, MPI_INT, i, 1, inter);
		MPI_Recv(&got, 1, MPI_INT, i, 2, inter, MPI_STATUS_IGNORE);
		CHECK_EQ(got, i + 100);
	}
	MPI_Intercomm_merge(inter, 0, &merged);
	i = 1;
	MPI_Allreduce(&i, &total, 1, MPI_INT, MPI_SUM, merged);
	CHECK_EQ(total, n + CHILDREN);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
}

static void be_child(void)
{
	MPI_Comm parent, merged;
	int got, one = 1, total;

	MPI_Comm_get_parent(&parent);
	CHECK(parent != MPI_COMM_NULL);
	MPI_Recv(&got, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
	CHECK_EQ(got, weft_mpi_rank);
	got += 100;
	MPI_Send(&got, 1, MPI_INT, 0, 2, parent);
	MPI_Intercomm_merge(parent, 1, &merged);
	MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, merged);
	CHECK(total > weft_mpi_size);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&parent);
}

int main(int argc, char **argv)
{
	bool child = argc > 1 && !strcmp(argv[1], "child");
	const char *program = argv[0];

	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	me = weft_mpi_rank;
	n = weft_mpi_size;
	if (child) {
		be_child();
		return weft_mpi_end();
	}
	CHECK_EQ(n % 2, 0);
	weft_mpi_step("dup");
	test_dup();
	weft_mpi_step("split");
	test_split();
	weft_mpi_step("intercomm");
	test_intercomm();
	weft_mpi_step("topology");
	test_topology();
	weft_mpi_step("many");
	test_many();
	if (argc > 1 && !strcmp(argv[1], "spawn")) {
		weft_mpi_step("spawn");
		test_spawn(program);
	}
	return weft_mpi_end();
}
