/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A job that hangs, for why.py: all ranks receive from the next one ("receive"),
 * or all but the last one enter a barrier ("compute").
 */
#include "check.h"

int main(int argc, char **argv)
{
	int value = 0, rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1 && !strcmp(argv[1], "compute")) {
		while (rank == size - 1)
			__asm__ volatile("" ::: "memory");
		MPI_Barrier(MPI_COMM_WORLD);
	} else {
		MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
