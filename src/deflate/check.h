/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checksums of zlib and gzip, by the library that this build has. Both
 * begin with zlib's initial values: 0 for a CRC-32, 1 for an Adler-32.
 */
#ifndef WF_DEFLATE_CHECK_H
#define WF_DEFLATE_CHECK_H

#include <stddef.h>
#include <stdint.h>

uint32_t wf_deflate_crc32(uint32_t crc, const void *data, size_t len);
uint32_t wf_deflate_adler32(uint32_t adler, const void *data, size_t len);

#endif
