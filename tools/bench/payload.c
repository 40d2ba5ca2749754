/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and checks messages. Every byte of another message or another position
 * must be detected.
 */
#include "tools/bench/payload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/*
 * Words that differ from each other and from message to message. memset would
 * have other costs.
 */
void wf_tools_payload_fill(uint8_t *buf, size_t size, uint64_t number)
{
	uint64_t *words = (uint64_t *)(void *)buf;
	size_t i;

	for (i = 0; i < size / 8; i++)
		words[i] = number * 0x9e3779b97f4a7c15ull + i;
	for (i *= 8; i < size; i++)
		buf[i] = (uint8_t)(number + i);
}

int wf_tools_payload_check(const uint8_t *buf, size_t size, uint64_t number,
			   char *error, size_t error_len)
{
	const uint64_t *words = (const uint64_t *)(const void *)buf;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		if (words[i] != number * 0x9e3779b97f4a7c15ull + i)
			goto err_differs;
	}
	for (i *= 8; i < size; i++) {
		if (buf[i] != (uint8_t)(number + i))
			goto err_differs;
	}
	return 0;

err_differs:
	snprintf(error, error_len,
		 "wrong data: message %" PRIu64 " of %zu bytes, near byte %zu",
		 number, size, i < size / 8 ? i * 8 : i);
	return -EBADMSG;
}
