/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This header joins the CRC-32s of two pieces of data, in two steps: the first
 * one depends on the length of the second piece only. wd_comp_check_combine()
 * does both.
 */
#ifndef WF_ALG_CHECK_H
#define WF_ALG_CHECK_H

#include <stdint.h>

/* x^(8 * len) modulo the polynomial, as zlib's crc32_combine_gen(). */
uint32_t wf_alg_crc_power(uint64_t len);
/* crc(AB) = crc(A) * x^(8 * len(B)) + crc(B). */
uint32_t wf_alg_crc_join(uint32_t first, uint32_t second, uint32_t power);

#endif
