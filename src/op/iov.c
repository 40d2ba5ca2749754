/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking vectors of buffers.
 */
#include "op/iov.h"

size_t wf_op_iov_slice(const struct iovec *iov, size_t count, size_t offset,
		       size_t len, struct iovec *out)
{
	size_t n = 0;

	for (size_t i = 0; i < count && len; i++) {
		size_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset;
		if (part > len)
			part = len;
		/* As integers: it may be any address of another process. */
		out[n].iov_base = (void *)((uintptr_t)iov[i].iov_base + offset);
		out[n++].iov_len = part;
		len -= part;
		offset = 0;
	}
	return n;
}

void wf_op_iov_scatter(const struct iovec *iov, size_t count, size_t offset,
		       const void *from, size_t len)
{
	const char *pos = from;

	for (size_t i = 0; i < count && len; i++) {
		size_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset;
		if (part > len)
			part = len;
		memcpy((char *)iov[i].iov_base + offset, pos, part);
		pos += part;
		len -= part;
		offset = 0;
	}
}

void wf_op_iov_gather(const struct iovec *iov, size_t count, size_t offset,
		      void *to, size_t len)
{
	char *pos = to;

	for (size_t i = 0; i < count && len; i++) {
		size_t part;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		part = iov[i].iov_len - offset;
		if (part > len)
			part = len;
		memcpy(pos, (const char *)iov[i].iov_base + offset, part);
		pos += part;
		len -= part;
		offset = 0;
	}
}
