/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Derived datatypes: data with gaps on one side arrives with other gaps on the
 * other side, small and large, and nothing in the gaps is touched.
 */
#include "check.h"

static int peer;

/* Both ranks send @sent from @out and receive @received into @in. */
static void exchange(const void *out, MPI_Datatype sent, int n_sent, void *in,
		     MPI_Datatype received, int n_received)
{
	MPI_Status status;
	int size, total, bytes;

	MPI_Sendrecv(out, n_sent, sent, peer, 1, in, n_received, received, peer,
		     1, MPI_COMM_WORLD, &status);
	CHECK_EQ(status.MPI_SOURCE, peer);
	MPI_Type_size(sent, &size);
	MPI_Get_elements(&status, MPI_INT, &total);
	MPI_Get_count(&status, MPI_BYTE, &bytes);
	CHECK_EQ(bytes, size * n_sent);
}

/* A column of a matrix is sent; a row, or a column, is received. */
static void test_vector(int n)
{
	int *out = weft_mpi_alloc(sizeof(int) * (size_t)n * 8);
	int *in = weft_mpi_alloc(sizeof(int) * (size_t)n * 8);
	MPI_Datatype column;
	int i;

	for (i = 0; i < n * 8; i++) {
		out[i] = weft_mpi_rank * 1000000 + i;
		in[i] = -1;
	}
	MPI_Type_vector(n, 1, 8, MPI_INT, &column);
	MPI_Type_commit(&column);
	exchange(out + 3, column, 1, in, MPI_INT, n);
	for (i = 0; i < n; i++)
		CHECK_EQ(in[i], peer * 1000000 + i * 8 + 3);
	for (i = 0; i < n * 8; i++)
		in[i] = -1;
	exchange(out, MPI_INT, n, in + 2, column, 1);
	for (i = 0; i < n * 8; i++)
		CHECK_EQ(in[i], i % 8 == 2 ? peer * 1000000 + i / 8 : -1);
	for (i = 0; i < n * 8; i++)
		in[i] = -1;
	exchange(out + 1, column, 1, in + 5, column, 1);
	for (i = 0; i < n * 8; i++)
		CHECK_EQ(in[i], i % 8 == 5 ? peer * 1000000 + i - 4 : -1);
	MPI_Type_free(&column);
	free(out);
	free(in);
}

struct record {
	char kind;
	double value;
	short codes[3];
	int id;
};

static MPI_Datatype record_type(void)
{
	static const int lengths[] = { 1, 1, 3, 1 };
	static const MPI_Aint places[] = {
		offsetof(struct record, kind),
		offsetof(struct record, value),
		offsetof(struct record, codes),
		offsetof(struct record, id),
	};
	MPI_Datatype types[] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT };
	MPI_Datatype bare, whole;

	MPI_Type_create_struct(4, lengths, places, types, &bare);
	MPI_Type_create_resized(bare, 0, sizeof(struct record), &whole);
	MPI_Type_commit(&whole);
	MPI_Type_free(&bare);
	return whole;
}

static void test_struct(int n)
{
	struct record *out = weft_mpi_alloc(sizeof(*out) * (size_t)n);
	struct record *in = weft_mpi_alloc(sizeof(*in) * (size_t)n);
	MPI_Datatype type = record_type();
	int i;

	memset(in, 0xee, sizeof(*in) * (size_t)n);
	for (i = 0; i < n; i++) {
		out[i].kind = (char)('a' + i % 26);
		out[i].value = weft_mpi_rank + i / 8.0;
		out[i].codes[0] = (short)i;
		out[i].codes[1] = (short)-i;
		out[i].codes[2] = (short)weft_mpi_rank;
		out[i].id = i * 7;
	}
	exchange(out, type, n, in, type, n);
	for (i = 0; i < n; i++) {
		CHECK_EQ(in[i].kind, 'a' + i % 26);
		CHECK(in[i].value == peer + i / 8.0);
		CHECK_EQ(in[i].codes[0], (short)i);
		CHECK_EQ(in[i].codes[1], (short)-i);
		CHECK_EQ(in[i].codes[2], peer);
		CHECK_EQ(in[i].id, i * 7);
		/* The padding after kind must not change. */
		CHECK_EQ(((uint8_t *)&in[i])[1], 0xee);
	}
	MPI_Type_free(&type);
	free(out);
	free(in);
}

static void test_subarray(void)
{
	enum { N = 96, SUB = 40 };
	static const int sizes[] = { N, N }, subs[] = { SUB, SUB };
	static const int from[] = { 10, 20 }, to[] = { 50, 5 };
	MPI_Datatype source, target;
	static int out[N][N], in[N][N];
	int i, j;

	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			out[i][j] = weft_mpi_rank * 100000 + i * N + j;
			in[i][j] = -1;
		}
	}
	MPI_Type_create_subarray(2, sizes, subs, from, MPI_ORDER_C, MPI_INT,
				 &source);
	MPI_Type_create_subarray(2, sizes, subs, to, MPI_ORDER_C, MPI_INT,
				 &target);
	MPI_Type_commit(&source);
	MPI_Type_commit(&target);
	exchange(out, source, 1, in, target, 1);
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			if (i < 50 || i >= 50 + SUB || j < 5 || j >= 5 + SUB)
				CHECK_EQ(in[i][j], -1);
			else
				CHECK_EQ(in[i][j],
					 peer * 100000 + (i - 40) * N + j + 15);
		}
	}
	MPI_Type_free(&source);
	MPI_Type_free(&target);
}

/* Blocks of different lengths in any order, by address. */
static void test_indexed(int scale)
{
	int lengths[] = { 3 * scale, 1 * scale, 5 * scale };
	int places[] = { 20 * scale, 0, 8 * scale };
	MPI_Aint bytes[] = { 0, 0, 0 };
	size_t n = 32 * (size_t)scale;
	short *out = weft_mpi_alloc(n * sizeof(*out));
	short *in = weft_mpi_alloc(n * sizeof(*in));
	MPI_Datatype source, target;
	int i, k, at = 0;

	for (i = 0; i < (int)n; i++)
		out[i] = (short)(weft_mpi_rank + i);
	for (i = 0; i < 3; i++)
		MPI_Get_address(&in[places[2 - i]], &bytes[i]);
	MPI_Type_indexed(3, lengths, places, MPI_SHORT, &source);
	lengths[0] = 5 * scale;
	lengths[2] = 3 * scale;
	MPI_Type_create_hindexed(3, lengths, bytes, MPI_SHORT, &target);
	MPI_Type_commit(&source);
	MPI_Type_commit(&target);
	exchange(out, source, 1, MPI_BOTTOM, target, 1);
	lengths[0] = 3 * scale;
	lengths[2] = 5 * scale;
	/* In the order of sending, they fill 8.., 0.., 20.. of the target. */
	for (k = 0; k < 3; k++) {
		for (i = 0; i < lengths[k]; i++, at++) {
			int to = at < 5 * scale ? 8 * scale + at :
				 at < 6 * scale ? at - 5 * scale :
						  20 * scale + at - 6 * scale;

			CHECK_EQ(in[to], (short)(peer + places[k] + i));
		}
	}
	MPI_Type_free(&source);
	MPI_Type_free(&target);
	free(out);
	free(in);
}

static void test_pack(void)
{
	char packed[256], text[16] = "warp and weft";
	int at = 0, number = 4711 + weft_mpi_rank, len;
	double real = 0.5 * weft_mpi_rank;
	MPI_Status status;

	MPI_Pack(&number, 1, MPI_INT, packed, sizeof(packed), &at,
		 MPI_COMM_WORLD);
	MPI_Pack(text, 16, MPI_CHAR, packed, sizeof(packed), &at,
		 MPI_COMM_WORLD);
	MPI_Pack(&real, 1, MPI_DOUBLE, packed, sizeof(packed), &at,
		 MPI_COMM_WORLD);
	MPI_Sendrecv_replace(packed, at, MPI_PACKED, peer, 2, peer, 2,
			     MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_PACKED, &len);
	CHECK_EQ(len, at);
	at = 0;
	memset(text, 0, sizeof(text));
	MPI_Unpack(packed, len, &at, &number, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Unpack(packed, len, &at, text, 16, MPI_CHAR, MPI_COMM_WORLD);
	MPI_Unpack(packed, len, &at, &real, 1, MPI_DOUBLE, MPI_COMM_WORLD);
	CHECK_EQ(number, 4711 + peer);
	CHECK(!strcmp(text, "warp and weft"));
	CHECK(real == 0.5 * peer);
}

/* Fewer elements than there is room for, and half an element. */
static void test_elements(void)
{
	int ints[10] = { 0 }, n;
	MPI_Datatype pair;
	MPI_Status status;

	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Sendrecv(ints, 5, MPI_INT, peer, 3, ints + 5, 2, pair,
		     MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
	MPI_Recv(ints, 5, pair, peer, 3, MPI_COMM_WORLD, &status);
	MPI_Get_elements(&status, pair, &n);
	CHECK_EQ(n, 5);
	MPI_Get_count(&status, pair, &n);
	CHECK_EQ(n, MPI_UNDEFINED);
	MPI_Type_free(&pair);
}

int main(int argc, char **argv)
{
	static const int counts[] = { 1, 5, 60, 700, 3000, 100000 };
	size_t i;

	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	peer = weft_mpi_rank ^ 1;
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		weft_mpi_step("vector");
		test_vector(counts[i]);
		weft_mpi_step("struct");
		test_struct(counts[i]);
	}
	weft_mpi_step("subarray");
	test_subarray();
	weft_mpi_step("indexed");
	test_indexed(1);
	test_indexed(1000);
	test_indexed(40000);
	weft_mpi_step("pack");
	test_pack();
	weft_mpi_step("elements");
	test_elements();
	return weft_mpi_end();
}
