/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index in memory and in the extra field. An index that was read is a claim
 * that its user must check.
 */
#include "tools/gzip/index.h"

#include <string.h>

static void put(uint8_t *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get(const uint8_t *in)
{
	return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 |
	       (uint32_t)in[3] << 24;
}

size_t wf_tools_gzip_index_size(const struct wf_gzip_index *index)
{
	return WF_GZIP_INDEX_HEAD + 4 * (size_t)index->room;
}

void wf_tools_gzip_index_write(const struct wf_gzip_index *index, uint8_t *out)
{
	size_t len = wf_tools_gzip_index_size(index);

	memset(out, 0, len);
	out[0] = 'W';
	out[1] = 'F';
	out[2] = (uint8_t)(len - 4);
	out[3] = (uint8_t)((len - 4) >> 8);
	out[4] = 1;
	put(out + 8, index->span);
	put(out + 12, index->count);
	for (uint32_t i = 0; i < index->count; i++)
		put(out + WF_GZIP_INDEX_HEAD + 4 * (size_t)i,
		    index->lengths[i]);
}

static void halve(struct wf_gzip_index *index)
{
	uint32_t n = index->count / 2;

	for (uint32_t i = 0; i < n; i++)
		index->lengths[i] =
			index->lengths[2 * i] + index->lengths[2 * i + 1];
	/* An odd one at the end belongs to the segment being written. */
	if (index->count & 1) {
		index->last -= index->lengths[index->count - 1];
		index->skipped = index->skip + 1;
	}
	index->count = n;
	index->span *= 2;
	index->skip = index->skip * 2 + 1;
}

void wf_tools_gzip_index_add(struct wf_gzip_index *index, uint64_t at)
{
	if (!index->room || !index->span)
		return;
	if (index->skipped < index->skip) {
		index->skipped++;
		return;
	}
	/* A length of 4 GiB cannot be represented: write no index. */
	if (at - index->last > UINT32_MAX / 4 || index->span > 1u << 30) {
		index->count = 0;
		index->span = 0;
		return;
	}
	index->lengths[index->count++] = (uint32_t)(at - index->last);
	index->last = at;
	index->skipped = 0;
	if (index->count == index->room)
		halve(index);
}

bool wf_tools_gzip_index_read(struct wf_gzip_index *index, const uint8_t *extra,
			      size_t len)
{
	size_t at = 0;

	while (at + 4 <= len) {
		size_t n = extra[at + 2] | (size_t)extra[at + 3] << 8;
		const uint8_t *body = extra + at + 4;

		if (at + 4 + n > len)
			return false;
		at += 4 + n;
		if (memcmp(body - 4, "WF", 2) != 0 || n < 12 || body[0] != 1)
			continue;
		index->span = get(body + 4);
		index->count = get(body + 8);
		index->room = (uint32_t)(n - 12) / 4;
		if (!index->span || !index->count || index->count > index->room)
			return false;
		for (uint32_t i = 0; i < index->count; i++)
			index->lengths[i] = get(body + 12 + 4 * (size_t)i);
		return true;
	}
	return false;
}
