/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Up to which size messages go through the ring.
 */
#include "shm/pace.h"

#include "shm/put.h"

#define WINDOW 8 /* records that are clocked before a worse figure counts */

/* Through the ring the first record is copied by both sides, one after the other,
 * and each further one takes as long as the slower side and 100 ns around it:
 * fast + (slow + 100) * n / 4096 ns. By CMA a message takes FIXED + call / 4 +
 * 327 * n / 4096 ns; what both ways have in common is left out. From figures of three
 * machines (docs/performance.md), 8 KiB by the ring and by CMA: EPYC, one CCX (sides
 * 150 and 200 ns) 1.0 and 2.2 us; two CCX, 4.4 and 2.9 us; Xeon (1150 ns together) 2.4
 * and about 2.1 us. */
#define FIXED 895
#define SLOPE (327 - 100)

uint32_t wf_shm_pace_note(struct wf_shm_pace *pace, uint64_t ns, size_t len)
{
	uint64_t scaled = ns * 4096 / len;
	uint32_t figure = scaled > UINT32_MAX ? UINT32_MAX : (uint32_t)scaled;
	bool first = !pace->count++;

	/* 0 means that there is none. */
	if (!figure)
		figure = 1;
	if (first || figure < pace->best)
		pace->best = figure;
	if (pace->told && pace->best >= pace->told && pace->count < WINDOW)
		return 0;
	if (pace->count == WINDOW)
		pace->count = 0;
	if (pace->told == pace->best)
		return 0;
	pace->told = pace->best;
	return pace->told;
}

size_t wf_shm_pace_ring_max(uint32_t here, uint32_t there, uint64_t call_ns,
			    size_t most)
{
	int64_t slow = here > there ? here : there;
	int64_t fast = here > there ? there : here;
	int64_t room = 4096 * (FIXED + (int64_t)call_ns / 4 - fast);

	if (slow <= SLOPE && room > 0)
		return most;
	if (room <= WF_SHM_PUT_MAX * (slow - SLOPE))
		return WF_SHM_PUT_MAX;
	room /= slow - SLOPE;
	return (uint64_t)room < most ? (size_t)room : most;
}
