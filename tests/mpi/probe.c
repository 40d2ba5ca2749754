/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes, matched probes, wildcards and order. Rank 0 receives from all others,
 * which send sizes of every protocol of weft.
 */
#include "check.h"

enum { LONGEST = 300000, PER_RANK = 120, AT_ONCE = 24 };

static char *buf;

static int length_of(int source, int i)
{
	static const int lengths[] = { 0, 8, 40, 64, 300, 5000, 9000, 140000 };

	return lengths[(source * 3 + i) % 8];
}

static void send_one(int to, int i, int tag)
{
	int len = length_of(weft_mpi_rank, i);

	weft_mpi_fill(buf, (size_t)len, weft_mpi_seed(weft_mpi_rank, i, tag));
	MPI_Send(buf, len, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

/* Long messages must not block the next send. */
static void send_at_once(int to, int tag)
{
	MPI_Request req[AT_ONCE];
	char *bufs[AT_ONCE];
	int i, len;

	for (i = 0; i < AT_ONCE; i++) {
		len = length_of(weft_mpi_rank, i);
		bufs[i] = weft_mpi_alloc((size_t)len);
		weft_mpi_fill(bufs[i], (size_t)len,
			      weft_mpi_seed(weft_mpi_rank, i, tag));
		MPI_Isend(bufs[i], len, MPI_BYTE, to, tag, MPI_COMM_WORLD,
			  &req[i]);
	}
	MPI_Waitall(AT_ONCE, req, MPI_STATUSES_IGNORE);
	for (i = 0; i < AT_ONCE; i++)
		free(bufs[i]);
}

static void check_one(const MPI_Status *status, int source, int i, int tag)
{
	int len = length_of(source, i);

	weft_mpi_check_status(status, source, tag, len);
	weft_mpi_verify(buf, (size_t)len, weft_mpi_seed(source, i, tag));
}

/* MPI_Probe returns source, tag and length; the receive gets exactly that
 * message. */
static void test_probe(void)
{
	int next[64] = { 0 };
	MPI_Status seen, status;
	int i, len, source;

	if (weft_mpi_rank) {
		for (i = 0; i < PER_RANK; i++)
			send_one(0, i, 10 + i % 3);
		return;
	}
	for (i = 0; i < PER_RANK * (weft_mpi_size - 1); i++) {
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &seen);
		source = seen.MPI_SOURCE;
		MPI_Get_count(&seen, MPI_BYTE, &len);
		CHECK_EQ(len, length_of(source, next[source]));
		MPI_Recv(buf, len, MPI_BYTE, source, seen.MPI_TAG,
			 MPI_COMM_WORLD, &status);
		check_one(&status, source, next[source], seen.MPI_TAG);
		CHECK_EQ(status.MPI_TAG, 10 + next[source] % 3);
		next[source]++;
	}
}

static void test_iprobe(void)
{
	MPI_Status status;
	int flag, i, source, polls = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	if (weft_mpi_rank) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (i = 0; i < 8; i++)
			send_one(0, i, 2);
		return;
	}
	/* No message is there, however often the rank probes. */
	for (i = 0; i < 1000; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
			   &status);
		CHECK(!flag);
	}
	for (source = 1; source < weft_mpi_size; source++)
		MPI_Send(NULL, 0, MPI_BYTE, source, 1, MPI_COMM_WORLD);
	for (source = weft_mpi_size - 1; source > 0; source--) {
		for (i = 0; i < 8; i++) {
			do {
				MPI_Iprobe(source, 2, MPI_COMM_WORLD, &flag,
					   &status);
				polls++;
			} while (!flag);
			weft_mpi_check_status(&status, source, 2,
					      length_of(source, i));
			/* A probe does not remove the message. */
			MPI_Iprobe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
				   &status);
			CHECK(flag);
			MPI_Recv(buf, LONGEST, MPI_BYTE, source, 2,
				 MPI_COMM_WORLD, &status);
			check_one(&status, source, i, 2);
		}
	}
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
	CHECK(!flag);
	CHECK(polls > 0);
}

/* A message that a matched probe has taken is invisible to other receives and
 * probes. */
static void test_mprobe(void)
{
	MPI_Message first, second;
	MPI_Status status;
	MPI_Request req;
	int i, flag, source;

	if (weft_mpi_rank) {
		send_at_once(0, 3);
		return;
	}
	for (source = 1; source < weft_mpi_size; source++) {
		for (i = 0; i < AT_ONCE; i += 3) {
			MPI_Mprobe(source, 3, MPI_COMM_WORLD, &first, &status);
			weft_mpi_check_status(&status, source, 3,
					      length_of(source, i));
			do {
				MPI_Improbe(source, MPI_ANY_TAG, MPI_COMM_WORLD,
					    &flag, &second, &status);
			} while (!flag);
			weft_mpi_check_status(&status, source, 3,
					      length_of(source, i + 1));
			MPI_Recv(buf, LONGEST, MPI_BYTE, source, 3,
				 MPI_COMM_WORLD, &status);
			check_one(&status, source, i + 2, 3);
			MPI_Imrecv(buf, LONGEST, MPI_BYTE, &second, &req);
			CHECK(second == MPI_MESSAGE_NULL);
			MPI_Wait(&req, &status);
			check_one(&status, source, i + 1, 3);
			MPI_Mrecv(buf, LONGEST, MPI_BYTE, &first, &status);
			check_one(&status, source, i, 3);
		}
	}
	MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &first, &status);
	CHECK(first == MPI_MESSAGE_NO_PROC);
	MPI_Mrecv(buf, 1, MPI_BYTE, &first, &status);
	CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

/* Receives for any source and tag, posted early: messages of each sender stay
 * in order. */
static void test_wildcards(void)
{
	enum { DEPTH = 16, ROOM = 150000 };
	int total = PER_RANK * (weft_mpi_size - 1), next[64] = { 0 };
	MPI_Request req[DEPTH];
	MPI_Status status;
	int i, len, source;
	char *room;

	if (weft_mpi_rank) {
		for (i = 0; i < PER_RANK; i++)
			send_one(0, i, i);
		return;
	}
	room = weft_mpi_alloc((size_t)DEPTH * ROOM);
	for (i = 0; i < DEPTH; i++)
		MPI_Irecv(room + i * ROOM, ROOM, MPI_BYTE, MPI_ANY_SOURCE,
			  MPI_ANY_TAG, MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < total; i++) {
		MPI_Wait(&req[i % DEPTH], &status);
		source = status.MPI_SOURCE;
		len = length_of(source, next[source]);
		weft_mpi_check_status(&status, source, next[source], len);
		weft_mpi_verify(
			room + i % DEPTH * ROOM, (size_t)len,
			weft_mpi_seed(source, next[source], next[source]));
		next[source]++;
		if (i + DEPTH < total)
			MPI_Irecv(room + i % DEPTH * ROOM, ROOM, MPI_BYTE,
				  MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				  &req[i % DEPTH]);
	}
	free(room);
}

/* If several receives match, the one posted first gets the message. */
static void test_oldest_wins(void)
{
	static const int tags[] = { 5, MPI_ANY_TAG, 5, 6, MPI_ANY_TAG, 7 };
	/* Messages with the tags 5 6 5 6 7 7 match the receives in this
	 * order. */
	static const int sent[] = { 5, 6, 5, 6, 7, 7 };
	MPI_Request req[6];
	MPI_Status status[6];
	int got[6], i;

	if (weft_mpi_rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (i = 0; i < 6; i++)
			MPI_Send(&i, 1, MPI_INT, 0, sent[i], MPI_COMM_WORLD);
	}
	if (weft_mpi_rank)
		return;
	for (i = 0; i < 6; i++)
		MPI_Irecv(&got[i], 1, MPI_INT, i % 2 ? 1 : MPI_ANY_SOURCE,
			  tags[i], MPI_COMM_WORLD, &req[i]);
	MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
	MPI_Waitall(6, req, status);
	for (i = 0; i < 6; i++) {
		CHECK_EQ(got[i], i);
		CHECK_EQ(status[i].MPI_TAG, sent[i]);
		CHECK_EQ(status[i].MPI_SOURCE, 1);
	}
}

int main(int argc, char **argv)
{
	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	buf = weft_mpi_alloc(LONGEST);
	weft_mpi_step("probe");
	test_probe();
	MPI_Barrier(MPI_COMM_WORLD);
	weft_mpi_step("iprobe");
	test_iprobe();
	MPI_Barrier(MPI_COMM_WORLD);
	weft_mpi_step("mprobe");
	test_mprobe();
	MPI_Barrier(MPI_COMM_WORLD);
	weft_mpi_step("wildcards");
	test_wildcards();
	MPI_Barrier(MPI_COMM_WORLD);
	weft_mpi_step("the oldest receive wins");
	test_oldest_wins();
	free(buf);
	return weft_mpi_end();
}
