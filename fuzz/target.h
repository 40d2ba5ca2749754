/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between a fuzz target and its driver: libFuzzer's entry, and
 * counts that show how far inputs get.
 */
#ifndef WF_FUZZ_TARGET_H
#define WF_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

struct wf_fuzz_stats {
	uint64_t slots; /* written by the peer */
	uint64_t replies;
	uint64_t completed;
	uint64_t failed;
	uint64_t broken; /* inputs after which the receiver gave up the peer */
	uint64_t broken_sender; /* ... the sender did */
};

extern struct wf_fuzz_stats wf_fuzz_stats;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
