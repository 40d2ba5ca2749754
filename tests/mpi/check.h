/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every MPI test needs this: start and end, checks that end the whole job,
 * bytes that identify the message they belong to, and the proof at the end that
 * weft carried the messages. It knows MPI only, not how the job was started.
 */
#ifndef WEFT_TESTS_MPI_CHECK_H
#define WEFT_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int weft_mpi_rank;
extern int weft_mpi_size;

#define FAIL(...)                                                              \
	do {                                                                   \
		fprintf(stderr, "%s:%d: rank %d of %d: ", __FILE__, __LINE__,  \
			weft_mpi_rank, weft_mpi_size);                         \
		fprintf(stderr, __VA_ARGS__);                                  \
		fputc('\n', stderr);                                           \
		MPI_Abort(MPI_COMM_WORLD, 1);                                  \
		_exit(1);                                                      \
	} while (0)

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			FAIL("%s", #cond);                                     \
	} while (0)

#define CHECK_EQ(got, want)                                                    \
	do {                                                                   \
		long long got_ = (long long)(got);                             \
		long long want_ = (long long)(want);                           \
                                                                               \
		if (got_ != want_)                                             \
			FAIL("%s is %lld, not %s (%lld)", #got, got_, #want,   \
			     want_);                                           \
	} while (0)

/* Sizes below and above the limits of every protocol of weft and of Open
 * MPI. */
extern const int weft_mpi_sizes[];
extern const int weft_mpi_sizes_count;

/* @level is requested and must be granted. Ends the job after a deadline. */
void weft_mpi_begin(int *argc, char ***argv, int level);

/* Waits for all ranks, proves that weft was used, finalizes, returns 0. */
int weft_mpi_end(void);

/* Rank 0 prints the next step, so that you know where a test hangs. */
void weft_mpi_step(const char *what);

/* @len bytes that depend on @seed and on their position. */
void weft_mpi_fill(void *buf, size_t len, uint32_t seed);
void weft_mpi_verify(const void *buf, size_t len, uint32_t seed);

/* A pseudo-random number; the same on every rank for the same @state. */
uint32_t weft_mpi_random(uint32_t *state);

void *weft_mpi_alloc(size_t len);

/* Source, tag and length of a status, in bytes. */
void weft_mpi_check_status(const MPI_Status *status, int source, int tag,
			   int bytes);

/* Combines two words into a seed. */
static inline uint32_t weft_mpi_seed(int a, int b, int c)
{
	return (uint32_t)a * 2654435761u + (uint32_t)b * 40503u + (uint32_t)c;
}

#endif
