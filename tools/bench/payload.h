/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that identify their message and position.
 */
#ifndef WF_TOOLS_BENCH_PAYLOAD_H
#define WF_TOOLS_BENCH_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

/* Fills in the bytes that a sender writes and a receiver expects in the message
 * of a number. */
void wf_tools_payload_fill(uint8_t *buf, size_t size, uint64_t number);

/* 0, or -EBADMSG with the difference in error. */
int wf_tools_payload_check(const uint8_t *buf, size_t size, uint64_t number,
			   char *error, size_t error_len);

#endif
