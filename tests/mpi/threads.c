/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI_THREAD_MULTIPLE: threads of every rank send, receive, probe and take part
 * in collectives at the same time, each on its own communicator or all on one
 * with different tags. To see that Open MPI then asks for FI_THREAD_SAFE, the
 * program replaces fi_getinfo.
 */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

enum { MAX_THREADS = 4, ROUNDS = 80, BURST = 8, LONGEST = 140000 };

struct worker {
	pthread_t thread;
	int id;
	MPI_Comm comm;
};

static int threads, peer;
static MPI_Comm shared;
static enum fi_threading asked;

/*
 * The linker finds this one before libfabric's, because the program comes first
 * in the search. Only hints with tagged messages are those of mtl/ofi.
 */
int fi_getinfo(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints,
	       struct fi_info **info)
{
	int (*real)(uint32_t, const char *, const char *, uint64_t,
		    const struct fi_info *, struct fi_info **);

	if (hints && (hints->caps & FI_TAGGED) && hints->domain_attr)
		asked = hints->domain_attr->threading;
	*(void **)&real = dlsym(RTLD_NEXT, "fi_getinfo");
	return real(version, node, service, flags, hints, info);
}

static int length_of(int i)
{
	static const int lengths[] = { 8, 0, 60, 500, 5000, 8500, 40, 135000 };

	return lengths[i % 8];
}

/* One exchange with the same thread of the peer. */
static void exchange(const struct worker *w, int i, char *out, char *in)
{
	int len = length_of(i + w->id), tag = w->id * 1000 + i;
	MPI_Request req[2];
	MPI_Status status[2];
	MPI_Message message;

	weft_mpi_fill(out, (size_t)len, weft_mpi_seed(weft_mpi_rank, tag, 1));
	MPI_Isend(out, len, MPI_BYTE, peer, tag, w->comm, &req[0]);
	switch (i % 4) {
	case 0:
		MPI_Recv(in, LONGEST, MPI_BYTE, peer, tag, w->comm, &status[1]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Mprobe(peer, tag, w->comm, &message, &status[0]);
		MPI_Mrecv(in, LONGEST, MPI_BYTE, &message, &status[1]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		break;
	case 2:
		MPI_Probe(peer, tag, w->comm, &status[0]);
		MPI_Recv(in, LONGEST, MPI_BYTE, peer, tag, w->comm, &status[1]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
		break;
	default:
		MPI_Irecv(in, LONGEST, MPI_BYTE, peer, tag, w->comm, &req[1]);
		MPI_Waitall(2, req, status);
		break;
	}
	weft_mpi_check_status(&status[1], peer, tag, len);
	weft_mpi_verify(in, (size_t)len, weft_mpi_seed(peer, tag, 1));
}

/* Many messages in flight from one thread while the others do the same. */
static void burst(const struct worker *w, int i, char *out, char *in)
{
	enum { PIECE = 9000 };
	MPI_Request req[2 * BURST];
	int k, len;

	for (k = 0; k < BURST; k++)
		MPI_Irecv(in + k * PIECE, PIECE, MPI_BYTE, peer, w->id, w->comm,
			  &req[k]);
	for (k = 0; k < BURST; k++) {
		len = length_of(k) % PIECE;
		weft_mpi_fill(out + k * PIECE, (size_t)len,
			      weft_mpi_seed(i, k, w->id));
		MPI_Isend(out + k * PIECE, len, MPI_BYTE, peer, w->id, w->comm,
			  &req[BURST + k]);
	}
	MPI_Waitall(2 * BURST, req, MPI_STATUSES_IGNORE);
	for (k = 0; k < BURST; k++)
		weft_mpi_verify(in + k * PIECE, (size_t)length_of(k) % PIECE,
				weft_mpi_seed(i, k, w->id));
}

static void *messages(void *arg)
{
	const struct worker *w = arg;
	char *out = weft_mpi_alloc(LONGEST);
	char *in = weft_mpi_alloc(LONGEST);
	int i;

	for (i = 0; i < ROUNDS; i++) {
		exchange(w, i, out, in);
		if (i % 4 == 0)
			burst(w, i, out, in);
	}
	free(out);
	free(in);
	return NULL;
}

/* On its own communicator, because collectives of one communicator need one
 * order. */
static void *collectives(void *arg)
{
	const struct worker *w = arg;
	int i, mine, total, all[64];

	for (i = 0; i < ROUNDS; i++) {
		mine = weft_mpi_rank + i * w->id;
		MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, w->comm);
		CHECK_EQ(total, weft_mpi_size * (weft_mpi_size - 1) / 2 +
					weft_mpi_size * i * w->id);
		MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, w->comm);
		CHECK_EQ(all[weft_mpi_size - 1], weft_mpi_size - 1 + i * w->id);
		MPI_Bcast(&mine, 1, MPI_INT, i % weft_mpi_size, w->comm);
		CHECK_EQ(mine, i % weft_mpi_size + i * w->id);
		if (i % 10 == 0)
			MPI_Barrier(w->comm);
	}
	return NULL;
}

/* Half of the threads send messages, the others take part in collectives. */
static void *both(void *arg)
{
	struct worker *w = arg;

	return w->id % 2 ? messages(w) : collectives(w);
}

static void run(const char *what, void *(*body)(void *), bool own)
{
	struct worker workers[MAX_THREADS];
	int i;

	weft_mpi_step(what);
	for (i = 0; i < threads; i++) {
		workers[i].id = i + 1;
		workers[i].comm = shared;
		if (own)
			MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
	}
	for (i = 0; i < threads; i++)
		CHECK(!pthread_create(&workers[i].thread, NULL, body,
				      &workers[i]));
	for (i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (i = 0; own && i < threads; i++)
		MPI_Comm_free(&workers[i].comm);
}

int main(int argc, char **argv)
{
	const char *expect = getenv("WEFT_MPI_EXPECT");

	weft_mpi_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
	threads = weft_mpi_size > 2 ? 2 : MAX_THREADS;
	peer = weft_mpi_rank ^ 1;
	if (expect && !strcmp(expect, "weft"))
		CHECK_EQ(asked, FI_THREAD_SAFE);
	MPI_Comm_dup(MPI_COMM_WORLD, &shared);
	run("messages, one communicator", messages, false);
	run("messages, own communicators", messages, true);
	run("collectives, own communicators", collectives, true);
	run("both at once, own communicators", both, true);
	MPI_Comm_free(&shared);
	return weft_mpi_end();
}
