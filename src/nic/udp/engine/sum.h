/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums over packets: CRC32C against damage, SipHash-2-4 for cookies.
 */
#ifndef WF_NIC_UDP_SUM_H
#define WF_NIC_UDP_SUM_H

#include <stddef.h>
#include <stdint.h>

/* CRC32C (Castagnoli) of @len more bytes; begin with 0. */
uint32_t wf_udp_sum_crc(uint32_t crc, const void *data, size_t len);

/* The checksum of a header of @len bytes, at least 8, without the field of the
 * checksum, which is bytes 4 to 7. */
uint32_t wf_udp_sum_head(const void *head, size_t len);

uint64_t wf_udp_sum_sip(const uint64_t key[2], const void *data, size_t len);

#endif
