/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Point to point in every mode and size: blocking, nonblocking, persistent, all
 * ways to wait, cancelling, truncation, sends to itself. Ranks work in pairs,
 * even with odd, so that all of them are busy at the same time.
 */
#include "check.h"

enum { LONGEST = 4194304, BSEND_ROOM = LONGEST + 65536 };

static char *out, *in;
static int peer;

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };

static void send_blocking(enum mode mode, int len, int tag)
{
	switch (mode) {
	case SYNCHRONOUS:
		MPI_Ssend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
		break;
	case BUFFERED:
		MPI_Bsend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
		break;
	case READY:
		/* The receiver tells that its receive is posted. */
		MPI_Recv(NULL, 0, MPI_BYTE, peer, 99, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Rsend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
		break;
	default:
		MPI_Send(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
		break;
	}
}

static void send_nonblocking(enum mode mode, int len, int tag, MPI_Request *req)
{
	switch (mode) {
	case SYNCHRONOUS:
		MPI_Issend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
		break;
	case BUFFERED:
		MPI_Ibsend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
		break;
	case READY:
		MPI_Recv(NULL, 0, MPI_BYTE, peer, 99, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Irsend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
		break;
	default:
		MPI_Isend(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
		break;
	}
}

static void init_persistent(enum mode mode, int len, int tag, MPI_Request *req)
{
	switch (mode) {
	case SYNCHRONOUS:
		MPI_Ssend_init(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			       req);
		break;
	case BUFFERED:
		MPI_Bsend_init(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			       req);
		break;
	case READY:
		MPI_Rsend_init(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			       req);
		break;
	default:
		MPI_Send_init(out, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD,
			      req);
		break;
	}
}

static void receive(enum mode mode, int len, int tag)
{
	MPI_Request req;
	MPI_Status status;

	memset(in, 0xee, (size_t)len + 1);
	if (mode == READY) {
		MPI_Irecv(in, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req);
		MPI_Send(NULL, 0, MPI_BYTE, peer, 99, MPI_COMM_WORLD);
		MPI_Wait(&req, &status);
	} else {
		MPI_Recv(in, len, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
	}
	weft_mpi_check_status(&status, peer, tag, len);
	CHECK_EQ((uint8_t)in[len], 0xee);
}

static void test_modes(void)
{
	int i, len, tag, turn;
	enum mode mode;
	uint32_t seed;
	MPI_Request req;

	for (i = 0; i < weft_mpi_sizes_count; i++) {
		len = weft_mpi_sizes[i];
		for (mode = STANDARD; mode < 2 * MODES; mode++) {
			tag = (int)mode + 10;
			turn = (i + (int)mode) % 2;
			seed = weft_mpi_seed(len, tag, 0);
			if (weft_mpi_rank % 2 == turn) {
				weft_mpi_fill(out, (size_t)len, seed);
				if (mode < MODES) {
					send_blocking(mode, len, tag);
					continue;
				}
				send_nonblocking(mode - MODES, len, tag, &req);
				MPI_Wait(&req, MPI_STATUS_IGNORE);
			} else {
				receive(mode % MODES, len, tag);
				weft_mpi_verify(in, (size_t)len, seed);
			}
		}
	}
}

/*
 * Buffered requests are started only once: at the second start Open MPI 4.1.4
 * sends the data of the first again, also over its own transports.
 */
static void test_persistent(void)
{
	MPI_Request req[2];
	MPI_Status status[2];
	enum mode mode;
	int i, len, round, rounds;

	for (i = 0; i < weft_mpi_sizes_count; i += 3) {
		len = weft_mpi_sizes[i];
		for (mode = STANDARD; mode < MODES; mode++) {
			rounds = mode == BUFFERED ? 1 : 3;
			init_persistent(mode, len, 3, &req[0]);
			MPI_Recv_init(in, len, MPI_BYTE, peer, 3,
				      MPI_COMM_WORLD, &req[1]);
			for (round = 0; round < rounds; round++) {
				weft_mpi_fill(out, (size_t)len,
					      weft_mpi_seed(len, mode, round));
				if (mode == READY) {
					MPI_Start(&req[1]);
					MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 9,
						     NULL, 0, MPI_BYTE, peer, 9,
						     MPI_COMM_WORLD,
						     MPI_STATUS_IGNORE);
					MPI_Start(&req[0]);
				} else {
					MPI_Startall(2, req);
				}
				MPI_Waitall(2, req, status);
				weft_mpi_check_status(&status[1], peer, 3, len);
				weft_mpi_verify(
					in, (size_t)len,
					weft_mpi_seed(len, mode, round));
			}
			MPI_Request_free(&req[0]);
			MPI_Request_free(&req[1]);
		}
	}
}

static void test_sendrecv(void)
{
	int right = (weft_mpi_rank + 1) % weft_mpi_size;
	int left = (weft_mpi_rank + weft_mpi_size - 1) % weft_mpi_size;
	MPI_Status status;
	int i, len;

	for (i = 0; i < weft_mpi_sizes_count; i++) {
		len = weft_mpi_sizes[i];
		weft_mpi_fill(out, (size_t)len,
			      weft_mpi_seed(len, weft_mpi_rank, 1));
		MPI_Sendrecv(out, len, MPI_BYTE, right, i, in, LONGEST,
			     MPI_BYTE, left, i, MPI_COMM_WORLD, &status);
		weft_mpi_check_status(&status, left, i, len);
		weft_mpi_verify(in, (size_t)len, weft_mpi_seed(len, left, 1));
		MPI_Sendrecv_replace(in, len, MPI_BYTE, left, i, right, i,
				     MPI_COMM_WORLD, &status);
		weft_mpi_check_status(&status, right, i, len);
		weft_mpi_verify(in, (size_t)len,
				weft_mpi_seed(len, weft_mpi_rank, 1));
	}
	MPI_Sendrecv(out, 1, MPI_BYTE, MPI_PROC_NULL, 0, in, 1, MPI_BYTE,
		     MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
	CHECK_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

enum { MANY = 64, PIECE = 12000 };

static int many_length(int i)
{
	static const int lengths[] = { 0, 8, 100, 3000, 9000, 12000 };

	return lengths[i % 6];
}

/* Receives complete one by one, in groups, or by testing. */
static void collect(MPI_Request *req, int how)
{
	int done = 0, n, flag, index, which[MANY];
	MPI_Status status[MANY];

	while (done < MANY) {
		switch (how) {
		case 0:
			MPI_Waitany(MANY, req, &index, status);
			CHECK(index != MPI_UNDEFINED);
			n = 1;
			which[0] = index;
			break;
		case 1:
			MPI_Waitsome(MANY, req, &n, which, status);
			break;
		case 2:
			MPI_Testany(MANY, req, &index, &flag, status);
			n = flag ? 1 : 0;
			which[0] = index;
			break;
		case 3:
			MPI_Testsome(MANY, req, &n, which, status);
			break;
		default:
			MPI_Testall(MANY, req, &flag, status);
			if (!flag)
				continue;
			for (n = 0; n < MANY; n++)
				which[n] = n;
			break;
		}
		CHECK(n != MPI_UNDEFINED);
		for (index = 0; index < n; index++)
			weft_mpi_check_status(&status[index], peer,
					      which[index],
					      many_length(which[index]));
		done += n;
	}
}

static void test_waits(void)
{
	MPI_Request rx[MANY], tx[MANY];
	int i, how;

	for (how = 0; how < 5; how++) {
		for (i = 0; i < MANY; i++)
			MPI_Irecv(in + i * PIECE, PIECE, MPI_BYTE, peer, i,
				  MPI_COMM_WORLD, &rx[i]);
		/* Sent in reverse order: matched by tag. */
		for (i = MANY - 1; i >= 0; i--) {
			weft_mpi_fill(out + i * PIECE, (size_t)many_length(i),
				      weft_mpi_seed(i, how, weft_mpi_rank));
			MPI_Isend(out + i * PIECE, many_length(i), MPI_BYTE,
				  peer, i, MPI_COMM_WORLD, &tx[i]);
		}
		collect(rx, how);
		MPI_Waitall(MANY, tx, MPI_STATUSES_IGNORE);
		for (i = 0; i < MANY; i++)
			weft_mpi_verify(in + i * PIECE, (size_t)many_length(i),
					weft_mpi_seed(i, how, peer));
	}
}

/* Everything is sent before the first receive is posted, and received in
 * reverse order. */
static void test_unexpected(void)
{
	MPI_Request tx[MANY];
	MPI_Status status;
	int i;

	for (i = 0; i < MANY; i++) {
		weft_mpi_fill(out + i * PIECE, (size_t)many_length(i),
			      weft_mpi_seed(i, 7, weft_mpi_rank));
		MPI_Isend(out + i * PIECE, many_length(i), MPI_BYTE, peer, i,
			  MPI_COMM_WORLD, &tx[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (i = MANY - 1; i >= 0; i--) {
		MPI_Recv(in, PIECE, MPI_BYTE, peer, i, MPI_COMM_WORLD, &status);
		weft_mpi_check_status(&status, peer, i, many_length(i));
		weft_mpi_verify(in, (size_t)many_length(i),
				weft_mpi_seed(i, 7, peer));
	}
	MPI_Waitall(MANY, tx, MPI_STATUSES_IGNORE);
}

static void test_cancel(void)
{
	MPI_Request req, other;
	MPI_Status status;
	int flag;

	MPI_Irecv(in, 100, MPI_BYTE, peer, 77, MPI_COMM_WORLD, &req);
	MPI_Irecv(in + 200, 100, MPI_BYTE, MPI_ANY_SOURCE, 78, MPI_COMM_WORLD,
		  &other);
	MPI_Cancel(&req);
	MPI_Cancel(&other);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(flag);
	MPI_Wait(&other, &status);
	MPI_Test_cancelled(&status, &flag);
	CHECK(flag);
	/* A cancelled receive matches no message. */
	MPI_Barrier(MPI_COMM_WORLD);
	weft_mpi_fill(out, 100, 5);
	memset(in, 0, 400);
	MPI_Sendrecv(out, 100, MPI_BYTE, peer, 77, in + 100, 100, MPI_BYTE,
		     peer, 77, MPI_COMM_WORLD, &status);
	weft_mpi_verify(in + 100, 100, 5);
	CHECK_EQ(in[0], 0);
	/* A receive that has its message cannot be cancelled. A barrier alone does
	 * not say that the message is there: it may come by other ranks. */
	MPI_Irecv(in, 100, MPI_BYTE, peer, 79, MPI_COMM_WORLD, &req);
	MPI_Ssend(out, 100, MPI_BYTE, peer, 79, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Cancel(&req);
	MPI_Wait(&req, &status);
	MPI_Test_cancelled(&status, &flag);
	if (!flag)
		weft_mpi_verify(in, 100, 5);
	else
		FAIL("a receive that was met has been cancelled");
}

/* @posted: the receive is posted before the message arrives, otherwise
 * after. */
static void truncate_one(MPI_Comm comm, int len, int room, bool posted)
{
	MPI_Request req, tx;
	MPI_Status status;
	int ret;

	weft_mpi_fill(out, (size_t)len, 9);
	memset(in, 0xee, (size_t)len + 1);
	if (posted)
		MPI_Irecv(in, room, MPI_BYTE, peer, 5, comm, &req);
	MPI_Barrier(comm);
	MPI_Isend(out, len, MPI_BYTE, peer, 5, comm, &tx);
	if (!posted) {
		MPI_Barrier(comm);
		MPI_Irecv(in, room, MPI_BYTE, peer, 5, comm, &req);
	}
	ret = MPI_Wait(&req, &status);
	MPI_Error_class(ret, &ret);
	CHECK_EQ(ret, MPI_ERR_TRUNCATE);
	MPI_Wait(&tx, MPI_STATUS_IGNORE);
	CHECK_EQ((uint8_t)in[room], 0xee);
	/* The next message is complete. */
	MPI_Sendrecv(out, len, MPI_BYTE, peer, 6, in, len, MPI_BYTE, peer, 6,
		     comm, &status);
	weft_mpi_verify(in, (size_t)len, 9);
}

static void test_truncation(void)
{
	static const int lengths[] = { 8, 100, 3000, 9000, 300000 };
	MPI_Comm comm;
	size_t i;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		truncate_one(comm, lengths[i], lengths[i] - 1, true);
		truncate_one(comm, lengths[i], lengths[i] / 2, false);
		truncate_one(comm, lengths[i], 0, true);
	}
	MPI_Comm_free(&comm);
}

static void test_self(void)
{
	MPI_Request req[2];
	MPI_Status status[2];
	int i, len;

	for (i = 0; i < weft_mpi_sizes_count; i++) {
		len = weft_mpi_sizes[i];
		weft_mpi_fill(out, (size_t)len, (uint32_t)i);
		MPI_Isend(out, len, MPI_BYTE, weft_mpi_rank, 1, MPI_COMM_WORLD,
			  &req[i % 2]);
		MPI_Irecv(in, len, MPI_BYTE, weft_mpi_rank, 1, MPI_COMM_WORLD,
			  &req[!(i % 2)]);
		MPI_Waitall(2, req, status);
		weft_mpi_check_status(&status[!(i % 2)], weft_mpi_rank, 1, len);
		weft_mpi_verify(in, (size_t)len, (uint32_t)i);
	}
}

int main(int argc, char **argv)
{
	char *room;
	int size;

	weft_mpi_begin(&argc, &argv, MPI_THREAD_SINGLE);
	CHECK_EQ(weft_mpi_size % 2, 0);
	peer = weft_mpi_rank ^ 1;
	out = weft_mpi_alloc(LONGEST + 1);
	in = weft_mpi_alloc(LONGEST + 1);
	room = weft_mpi_alloc(BSEND_ROOM);
	MPI_Buffer_attach(room, BSEND_ROOM);
	weft_mpi_step("modes");
	test_modes();
	weft_mpi_step("persistent");
	test_persistent();
	weft_mpi_step("sendrecv");
	test_sendrecv();
	weft_mpi_step("waits");
	test_waits();
	weft_mpi_step("unexpected");
	test_unexpected();
	weft_mpi_step("cancel");
	test_cancel();
	weft_mpi_step("truncation");
	test_truncation();
	weft_mpi_step("self");
	test_self();
	MPI_Buffer_detach(&room, &size);
	free(room);
	free(out);
	free(in);
	return weft_mpi_end();
}
