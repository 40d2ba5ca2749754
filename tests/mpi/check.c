/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Start, end and checks of the MPI tests. At the end each rank proves that weft
 * was used: with WEFT_MPI_EXPECT=weft it must have mapped rings of weft or
 * counters of packets, and no segment of Open MPI's own shared memory.
 */
#include "check.h"

#include <signal.h>

int weft_mpi_rank;
int weft_mpi_size;

const int weft_mpi_sizes[] = {
	0,     1,     7,      8,      48,     49,     64,      65,	192,
	193,   1000,  2048,   4095,   4096,   4097,   8191,    8192,	8193,
	16384, 50000, 131071, 131072, 262145, 524288, 1048579, 4194304,
};
const int weft_mpi_sizes_count =
	sizeof(weft_mpi_sizes) / sizeof(weft_mpi_sizes[0]);

static bool verbose;

void weft_mpi_begin(int *argc, char ***argv, int level)
{
	int given = MPI_THREAD_SINGLE;

	/* mpirun outlives a rank that hangs; this alarm ends the rank. */
	alarm(390);
	if (level == MPI_THREAD_SINGLE)
		MPI_Init(argc, argv);
	else
		MPI_Init_thread(argc, argv, level, &given);
	MPI_Comm_rank(MPI_COMM_WORLD, &weft_mpi_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &weft_mpi_size);
	if (given < level)
		FAIL("thread level %d, not %d", given, level);
	verbose = !weft_mpi_rank;
}

/* How many mappings have this text in their name. */
static int count_maps(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4400];
	int n = 0;

	if (!maps)
		FAIL("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, text) != NULL;
	fclose(maps);
	return n;
}

/* Whether a page of counters (base/stats_defs.h) is that of packets, which is
 * created with the first packet. */
static bool has_packets(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[4400];
	unsigned long at;

	if (!maps)
		FAIL("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:weft-stats") &&
		    sscanf(line, "%lx", &at) == 1)
			found |= !strcmp((const char *)at + 24, "packets");
	fclose(maps);
	return found;
}

/* With another MPI transport, to try the tests themselves, there is nothing to
 * prove. */
static void prove_weft(void)
{
	const char *expect = getenv("WEFT_MPI_EXPECT");

	if (expect && !strcmp(expect, "efa") && !count_maps("libweft-efa.so"))
		FAIL("libweft-efa.so is not loaded");
	if (!expect || strcmp(expect, "weft"))
		return;
	if (!count_maps("libweft-fi.so"))
		FAIL("libweft-fi.so is not loaded");
	if (weft_mpi_size > 1 && !count_maps("/memfd:weft-ring") &&
	    !has_packets())
		FAIL("no ring of weft's is mapped, and no packet was sent");
	if (count_maps("vader_segment"))
		FAIL("a segment of Open MPI's vader is mapped");
}

int weft_mpi_end(void)
{
	weft_mpi_step("end");
	MPI_Barrier(MPI_COMM_WORLD);
	prove_weft();
	MPI_Finalize();
	if (verbose)
		printf("good: %d ranks\n", weft_mpi_size);
	return 0;
}

void weft_mpi_step(const char *what)
{
	if (!verbose)
		return;
	printf("- %s\n", what);
	fflush(stdout);
}

uint32_t weft_mpi_random(uint32_t *state)
{
	uint32_t x = *state ? *state : 2463534242u;

	/* Marsaglia's xorshift with 32 bits. */
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

static uint8_t byte_at(uint32_t seed, size_t i)
{
	return (uint8_t)(seed + i * 7 + (i >> 8) * 13);
}

void weft_mpi_fill(void *buf, size_t len, uint32_t seed)
{
	uint8_t *p = buf;
	size_t i;

	seed ^= seed >> 15;
	for (i = 0; i < len; i++)
		p[i] = byte_at(seed, i);
}

void weft_mpi_verify(const void *buf, size_t len, uint32_t seed)
{
	const uint8_t *p = buf;
	size_t i;

	seed ^= seed >> 15;
	for (i = 0; i < len; i++) {
		if (p[i] != byte_at(seed, i))
			FAIL("byte %zu of %zu is %u, not %u", i, len, p[i],
			     byte_at(seed, i));
	}
}

void *weft_mpi_alloc(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		FAIL("no memory");
	return p;
}

void weft_mpi_check_status(const MPI_Status *status, int source, int tag,
			   int bytes)
{
	int count;

	CHECK_EQ(status->MPI_SOURCE, source);
	CHECK_EQ(status->MPI_TAG, tag);
	MPI_Get_count(status, MPI_BYTE, &count);
	CHECK_EQ(count, bytes);
}
